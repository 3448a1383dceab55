//! The canonical form: as few digits, axes and pieces as possible.
//!
//! Two neighbouring digits are merged where every position moves by `size` times as much along the first as along the second; digits and
//! axes of size 1 are dropped; tables of an arithmetic progression are affine; empty pieces are dropped, and neighbouring pieces that
//! continue each other are one.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::Undecided;
use super::form::{
    Atom, Axes, Axis, Core, Fill, Form, Index, IndexMap, Lookup, MOST_DIGITS, MOST_PIECES, Piece, Pieces, Read, Table,
    Term, is_at_most, is_equal, minus, number, one, over, plus, times, zero,
};
use super::refine::{Refined, holds_equal, merged};
use crate::dim::{Dim, Scope};

impl Core {
    /// The map of a result without elements.
    pub fn empty() -> Core {
        Core { digits: smallvec![zero()], form: Form::Fill(Fill(0)) }
    }

    pub fn is_empty(&self) -> bool {
        self.digits.iter().any(|size| size.is_const(0))
    }

    /// The number of pieces, nested ones included.
    pub fn pieces(&self) -> usize {
        match &self.form {
            Form::Pieces(pieces) => pieces.parts.iter().map(|piece| piece.core.pieces()).sum(),
            _ => 1,
        }
    }
}

pub(super) fn of_fill(scope: &Scope, digits: &[Dim], fill: Fill) -> Core {
    let total = digits.iter().fold(one(), |product, size| times(scope, &product, size));
    if total.is_const(0) {
        return Core::empty();
    }
    let digits = if total.is_const(1) { SmallVec::new() } else { smallvec![total] };
    Core { digits, form: Form::Fill(fill) }
}

pub(super) fn of_read(scope: &Scope, mut digits: SmallVec<[Dim; 6]>, mut read: Read) -> Result<Core, Undecided> {
    if digits.iter().any(|size| size.is_const(0)) {
        return Ok(Core::empty());
    }
    let mut at = digits.len();
    while let Some(digit) = at.checked_sub(1) {
        at = digit;
        if digits.get(digit).is_some_and(|size| size.is_const(1)) {
            digits.remove(digit);
            for axis in &mut read.axes {
                axis.at.remove_digit(digit, None);
            }
        }
    }
    read.axes.retain(|axis| !axis.size.is_const(1));
    with_one_table(scope, &digits, &mut read.axes)?;
    split_tables(scope, &mut digits, &mut read.axes)?;
    let mut at = digits.len().saturating_sub(1);
    while let Some(digit) = at.checked_sub(1) {
        at = digit;
        let (Some(high), Some(low)) = (digits.get(digit), digits.get(at.saturating_add(1)).cloned()) else { continue };
        let both = times(scope, high, &low);
        // A product with minima and maxima may not have its factors any more.
        if both.as_const().is_none() && over(scope, &both, &low).as_ref() != Some(high) {
            continue;
        }
        let Some(axes) = with_merged_digits(scope, &read.axes, digit, &low) else { continue };
        read.axes = axes;
        digits.remove(digit.saturating_add(1));
        if let Some(high) = digits.get_mut(digit) {
            *high = both;
        }
    }
    if digits.len() > MOST_DIGITS { Err(Undecided::DigitLimit) } else { Ok(Core { digits, form: Form::Read(read) }) }
}

/// Neighbouring axes with tables of one digit are one axis, and terms of one digit are one table.
fn with_one_table(scope: &Scope, digits: &[Dim], axes: &mut Axes) -> Result<(), Undecided> {
    let table_of = |axis: &Axis| {
        axis.at.terms.iter().find_map(|term| match &term.atom {
            Atom::Table(table) => Some(table.digits.clone()),
            _ => None,
        })
    };
    let mut at = 0;
    while at < axes.len() {
        let Some(own) = axes.get(at).and_then(table_of) else {
            at += 1;
            continue;
        };
        let next = at.saturating_add(1);
        if axes.get(next).and_then(table_of).as_ref() == Some(&own) {
            let whole = merged(scope, axes.get(at..=next).unwrap_or_default());
            axes.remove(next);
            if let Some(axis) = axes.get_mut(at) {
                *axis = whole;
            }
            continue;
        }
        at = next;
        let Some(axis) = axes.get_mut(next.saturating_sub(1)) else { break };
        let is_own = |term: &Term| match &term.atom {
            Atom::Digit(digit) => own.as_slice() == [*digit],
            Atom::Table(table) => table.digits == own,
            Atom::Lookup(_) => false,
        };
        let terms: SmallVec<[Term; 2]> = axis.at.terms.iter().filter(|term| is_own(term)).cloned().collect();
        let Some(weight) = terms.first().map(|term| term.coefficient.without_content()) else { continue };
        let weight = if weight.as_const().is_some() { one() } else { weight };
        let scaled = terms
            .iter()
            .map(|term| Some(Term { coefficient: over(scope, &term.coefficient, &weight)?, atom: term.atom.clone() }));
        let Some(scaled) = scaled.collect::<Option<SmallVec<[Term; 2]>>>() else { continue };
        if scaled.len() < 2 {
            continue;
        }
        let Ok((used, values)) = (Index { offset: zero(), terms: scaled }).as_table(digits) else { continue };
        let index = Index::of_values(scope, &used, digits, &values)?;
        axis.at.terms.retain(|term| !is_own(term));
        axis.at.add(scope, &index, &weight);
    }
    Ok(())
}

/// Splits digits so that tables are over as few positions as possible.
fn split_tables(scope: &Scope, digits: &mut SmallVec<[Dim; 6]>, axes: &mut Axes) -> Result<(), Undecided> {
    let table_of = |term: &Term| match &term.atom {
        Atom::Table(table) => match table.digits.as_slice() {
            [digit] => separation(&table.values).map(|low| (*digit, low)),
            _ => None,
        },
        _ => None,
    };
    while let Some((digit, low)) = axes.iter().flat_map(|axis| &axis.at.terms).find_map(table_of) {
        let next = digit.saturating_add(1);
        let mut refined = Refined::new(scope, digits, axes);
        refined.split_digit(digit, &number(i64::try_from(low).map_err(|_| Undecided::Overflow)?))?;
        for axis in &mut refined.axes {
            let is_split =
                |term: &Term| matches!(&term.atom, Atom::Table(table) if table.digits.as_slice() == [digit, next]);
            let tables: SmallVec<[Term; 2]> = axis.at.terms.iter().filter(|term| is_split(term)).cloned().collect();
            axis.at.terms.retain(|term| !is_split(term));
            for term in tables {
                let Atom::Table(table) = &term.atom else { continue };
                let index = separated(scope, table, low, &refined.digits)?;
                axis.at.add(scope, &index, &term.coefficient);
            }
        }
        (*digits, *axes) = (refined.digits, refined.axes);
    }
    Ok(())
}

/// The table as a sum of an index over each of its two digits, if it is one.
fn separated(scope: &Scope, table: &Table, low: usize, digits: &[Dim]) -> Result<Index, Undecided> {
    let [high_digit, low_digit] = table.digits.as_slice() else { return Err(Undecided::Rank) };
    let rows: Vec<i64> = table.values.chunks(low).filter_map(|row| row.first().copied()).collect();
    let first = table.values.first().copied().unwrap_or(0);
    let columns: Vec<i64> = table.values.iter().take(low).filter_map(|value| value.checked_sub(first)).collect();
    let is_sum =
        table.values.chunks(low).zip(&rows).all(|(row, start)| {
            row.iter().zip(&columns).all(|(value, column)| start.checked_add(*column) == Some(*value))
        });
    if !is_sum {
        // Another table was split with the digit.
        return Index::of_values(scope, &[*high_digit, *low_digit], digits, &table.values);
    }
    let mut index = Index::of_values(scope, &[*high_digit], digits, &rows)?;
    index.add(scope, &Index::of_values(scope, &[*low_digit], digits, &columns)?, &one());
    Ok(index)
}

/// The most entries of a table that is taken apart.
const MOST_SEPARATED: usize = 4096;

/// The size of the second of two digits of which one only adds a multiple of itself: `T(a, b) = U(a) + c · b`, or `c · a + U(b)`.
fn separation(values: &[i64]) -> Option<usize> {
    if values.len() > MOST_SEPARATED {
        return None;
    }
    let steps = |values: &[i64]| -> Option<i64> { values.get(1)?.checked_sub(*values.first()?) };
    let is_progression = |values: &[i64], step: i64| {
        values.windows(2).all(|pair| matches!(pair, [a, b] if b.checked_sub(*a) == Some(step)))
    };
    let divides = |low: &usize| values.len().checked_rem(*low) == Some(0);
    let step = steps(values)?;
    let inner =
        (2..values.len()).rev().filter(divides).find(|&low| values.chunks(low).all(|row| is_progression(row, step)));
    inner.or_else(|| {
        (2..values.len()).filter(divides).find(|&low| {
            let Some(step) = values.get(low).zip(values.first()).and_then(|(next, first)| next.checked_sub(*first))
            else {
                return false;
            };
            values.iter().zip(values.iter().skip(low)).all(|(value, next)| next.checked_sub(*value) == Some(step))
        })
    })
}

/// The axes where digits `digit` and `digit + 1` are one, of which the second has size `low`; `None` if some position does not depend on
/// them as one.
fn with_merged_digits(scope: &Scope, axes: &[Axis], digit: usize, low: &Dim) -> Option<Axes> {
    let next = digit.saturating_add(1);
    let mut merged_axes: Axes = axes.into();
    let mut at = 0;
    while at < merged_axes.len() {
        let axis = merged_axes.get(at)?;
        match (axis.at.coefficient(digit)?, axis.at.coefficient(next)?) {
            (None, None) => {}
            (Some(high), Some(weight)) if is_equal(scope, &high, &times(scope, &weight, low)) => {}
            (Some(high), None) => {
                let below = merged_axes.get(at.saturating_add(1))?;
                let weight = below.at.coefficient(next)??;
                if below.at.coefficient(digit)?.is_some() {
                    return None;
                }
                if !is_equal(scope, &times(scope, &high, &below.size), &times(scope, &weight, low)) {
                    return None;
                }
                let whole = merged(scope, merged_axes.get(at..at.saturating_add(2))?);
                merged_axes.remove(at);
                *merged_axes.get_mut(at)? = whole;
            }
            _ => return None,
        }
        at = at.saturating_add(1);
    }
    for axis in &mut merged_axes {
        for term in &mut axis.at.terms {
            match &mut term.atom {
                Atom::Lookup(lookup) => {
                    let axes = with_merged_digits(scope, &lookup.read.axes, digit, low)?;
                    let read = Read { source: lookup.read.source, axes };
                    term.atom = Atom::Lookup(Arc::new(Lookup { read, size: lookup.size.clone() }));
                }
                Atom::Table(table) => *table = table.with_merged_digits(digit)?,
                Atom::Digit(_) => {}
            }
        }
        axis.at.remove_digit(digit, Some(next));
    }
    Some(merged_axes)
}

impl Table {
    fn with_merged_digits(&self, digit: usize) -> Option<Table> {
        let next = digit.saturating_add(1);
        let mut digits = self.digits.clone();
        match digits.iter().position(|&at| at == digit) {
            Some(at) if digits.get(at.saturating_add(1)) == Some(&next) => {
                digits.remove(at.saturating_add(1));
            }
            None if !digits.contains(&next) => {}
            _ => return None,
        }
        Some(Table { digits, values: self.values.clone() })
    }
}

impl Index {
    /// The coefficient of a digit; `None` within if it does not occur.
    #[allow(clippy::option_option, clippy::unnecessary_wraps)]
    fn coefficient(&self, digit: usize) -> Option<Option<Dim>> {
        Some(self.terms.iter().find(|term| term.atom == Atom::Digit(digit)).map(|term| term.coefficient.clone()))
    }

    /// Removes a digit: its terms are 0, or those of `merged` with the coefficient of `merged`.
    fn remove_digit(&mut self, digit: usize, merged: Option<usize>) {
        let is_dropped = |at: usize| at == digit;
        self.terms.retain(|term| !matches!(&term.atom, Atom::Digit(at) if is_dropped(*at)));
        for term in &mut self.terms {
            match &mut term.atom {
                Atom::Digit(at) => {
                    if *at > digit {
                        *at -= 1;
                    }
                }
                Atom::Table(table) => {
                    if merged.is_none() {
                        table.digits.retain(|at| !is_dropped(*at));
                    }
                    for at in &mut table.digits {
                        if *at > digit {
                            *at -= 1;
                        }
                    }
                }
                Atom::Lookup(lookup) => {
                    if merged.is_none() {
                        let mut read = lookup.read.clone();
                        for axis in &mut read.axes {
                            axis.at.remove_digit(digit, merged);
                        }
                        let size = lookup.size.clone();
                        *lookup = Arc::new(Lookup { read, size });
                    }
                }
            }
        }
    }
}

/// The core with its pieces joined where they continue each other.
pub(super) fn joined(scope: &Scope, core: Core) -> Result<Core, Undecided> {
    let Form::Pieces(pieces) = &core.form else { return Ok(core) };
    let own = |piece: &Piece| Ok(Piece { len: piece.len.clone(), core: joined(scope, piece.core.clone())? });
    let parts = pieces.parts.iter().map(own).collect::<Result<_, Undecided>>()?;
    of_pieces(scope, &pieces.before, &pieces.after, parts)
}

/// Pieces as few as possible.
pub(super) fn of_pieces(scope: &Scope, before: &Dim, after: &Dim, parts: Vec<Piece>) -> Result<Core, Undecided> {
    let mut joined: Vec<Piece> = Vec::with_capacity(parts.len());
    for piece in parts {
        if piece.len.is_const(0) || before.is_const(0) || after.is_const(0) {
            continue;
        }
        let nested = match &piece.core.form {
            Form::Pieces(nested)
                if is_equal(scope, &nested.before, before) && is_equal(scope, &nested.after, after) =>
            {
                nested.parts.clone()
            }
            _ => vec![piece],
        };
        for piece in nested {
            let last = joined.last().and_then(|last| join(scope, before, after, last, &piece));
            match (last, joined.last_mut()) {
                (Some(whole), Some(last)) => *last = whole,
                _ => joined.push(piece),
            }
        }
    }
    if let [_] = joined.as_slice() {
        return joined.pop().map(|piece| piece.core).ok_or(Undecided::Rank);
    }
    if joined.is_empty() {
        return Ok(Core::empty());
    }
    if joined.iter().map(|piece| piece.core.pieces()).sum::<usize>() > MOST_PIECES {
        return Err(Undecided::PieceLimit);
    }
    let len = joined.iter().fold(zero(), |sum, piece| plus(scope, &sum, &piece.len));
    let digits = [before, &len, after].into_iter().filter(|size| !size.is_const(1)).cloned().collect();
    let pieces = Pieces { before: before.clone(), after: after.clone(), parts: joined };
    Ok(Core { digits, form: Form::Pieces(Arc::new(pieces)) })
}

/// One piece for two neighbours, if the second continues the first.
fn join(scope: &Scope, before: &Dim, after: &Dim, first: &Piece, second: &Piece) -> Option<Piece> {
    let len = plus(scope, &first.len, &second.len);
    match (&first.core.form, &second.core.form) {
        (Form::Fill(one), Form::Fill(other)) if one == other => {
            let core = of_fill(scope, &[before.clone(), len.clone(), after.clone()], *one);
            Some(Piece { len, core })
        }
        (Form::Read(one), Form::Read(other)) if one.source == other.source => {
            let inner = [
                super::form::one(),
                inner_of(scope, before, after, first, one),
                inner_of(scope, before, after, second, other),
            ];
            let joined = |inner: &Dim| {
                let one = Along::of(scope, before, inner, after, first, one)?;
                one.continued_by(scope, &Along::of(scope, before, inner, after, second, other)?)
            };
            let (first, rest) = inner.split_first()?;
            let core = joined(first).or_else(|| rest.iter().filter(|inner| !inner.is_const(1)).find_map(joined))?;
            Some(Piece { len, core })
        }
        _ => None,
    }
}

/// The product of the digits along a piece but for the first one.
fn inner_of(scope: &Scope, before: &Dim, after: &Dim, piece: &Piece, read: &Read) -> Dim {
    let mut refined = Refined::new(scope, &piece.core.digits, &read.axes);
    let Ok(counts) = refined.align_digits(&[before.clone(), piece.len.clone(), after.clone()]) else { return one() };
    let [first, middle, _] = counts.as_slice() else { return one() };
    let inner = refined.digits.iter().skip(first.saturating_add(1)).take(middle.saturating_sub(1));
    inner.fold(one(), |product, size| times(scope, &product, size))
}

/// A read whose digits are split into those before, along and after the pieces. The positions along a piece are `units` times `inner`, and
/// the pieces are joined along the units.
struct Along {
    source: usize,
    units: Dim,
    digits: SmallVec<[Dim; 6]>,
    /// The digit along the pieces; `None` if the piece has one position.
    digit: Option<usize>,
    before: usize,
    axes: Axes,
}

impl Along {
    fn of(scope: &Scope, before: &Dim, inner: &Dim, after: &Dim, piece: &Piece, read: &Read) -> Option<Along> {
        let units = over(scope, &piece.len, inner)?;
        let mut refined = Refined::new(scope, &piece.core.digits, &read.axes);
        let sizes = [before.clone(), units.clone(), inner.clone(), after.clone()];
        let counts = refined.align_digits(&sizes).ok()?;
        let [first, middle, ..] = counts.as_slice() else { return None };
        let digit = match middle {
            0 => None,
            1 => Some(*first),
            _ => return None,
        };
        Some(Along { source: read.source, units, digits: refined.digits, digit, before: *first, axes: refined.axes })
    }

    fn digits_around(&self) -> impl Iterator<Item = &Dim> {
        self.digits.iter().enumerate().filter(|(at, _)| Some(*at) != self.digit).map(|(_, size)| size)
    }

    /// The index without the digit along the pieces, numbered as if that one were there; and the coefficient of it.
    fn parts_of(&self, index: &Index) -> Option<(SmallVec<[Term; 2]>, Option<Dim>)> {
        let mut coefficient = None;
        let mut rest = SmallVec::new();
        for term in &index.terms {
            match &term.atom {
                Atom::Digit(at) if Some(*at) == self.digit => coefficient = Some(term.coefficient.clone()),
                Atom::Digit(at) => {
                    let at = if self.digit.is_none() && *at >= self.before { at.saturating_add(1) } else { *at };
                    rest.push(Term { coefficient: term.coefficient.clone(), atom: Atom::Digit(at) });
                }
                Atom::Table(table) if self.digit.is_some_and(|digit| table.digits.as_slice() == [digit]) => {}
                _ => {
                    let own = Index { offset: zero(), terms: std::iter::once(term.clone()).collect() };
                    if self.digit.is_none_or(|digit| own.digits().contains(&digit)) {
                        return None;
                    }
                    rest.push(term.clone());
                }
            }
        }
        Some((rest, coefficient))
    }

    fn is_along(&self, term: &Term) -> bool {
        match &term.atom {
            Atom::Digit(at) => Some(*at) == self.digit,
            Atom::Table(table) => self.digit.is_some_and(|digit| table.digits.as_slice() == [digit]),
            Atom::Lookup(_) => false,
        }
    }

    /// The coefficient along the pieces, if it is no number.
    fn weight(&self, index: &Index) -> Option<Dim> {
        let term = index.terms.iter().find(|term| self.is_along(term))?;
        term.coefficient.as_const().is_none().then(|| term.coefficient.clone())
    }

    /// The values along the pieces in units of `weight`, if they are numbers.
    fn values(&self, scope: &Scope, index: &Index, weight: &Dim) -> Option<Vec<i64>> {
        let mut own = Index::constant(over(scope, &index.offset, weight)?);
        for term in index.terms.iter().filter(|term| self.is_along(term)) {
            own.terms.push(Term { coefficient: over(scope, &term.coefficient, weight)?, atom: term.atom.clone() });
        }
        let (_, values) = own.as_table(&self.digits).ok()?;
        let len = usize::try_from(self.units.as_const()?).ok()?;
        Some(if values.len() == len { values } else { vec![values.first().copied()?; len] })
    }

    fn continued_by(&self, scope: &Scope, other: &Along) -> Option<Core> {
        let len = plus(scope, &self.units, &other.units);
        if !self.digits_around().eq(other.digits_around()) {
            return None;
        }
        let (own, others) = with_equal_axes(scope, self, other)?;
        let digit = self.before;
        let mut digits: SmallVec<[Dim; 6]> = self.digits_around().cloned().collect();
        digits.insert(digit, len);
        let mut tables = 0;
        let mut axes = Axes::new();
        for (one, next) in own.iter().zip(&others) {
            let ((rest, step), (other_rest, other_step)) = (self.parts_of(&one.at)?, other.parts_of(&next.at)?);
            if rest != other_rest {
                return None;
            }
            let mut at = Index { offset: one.at.offset.clone(), terms: rest };
            let affine = self.step_to(scope, (&one.at, step), other, (&next.at, other_step));
            if let Some(step) = affine {
                at.add_term(scope, step, Atom::Digit(digit));
            } else {
                let weight = self.weight(&one.at).or_else(|| other.weight(&next.at)).unwrap_or_else(super::form::one);
                let mut values = self.values(scope, &one.at, &weight)?;
                values.extend(other.values(scope, &next.at, &weight)?);
                tables += 1;
                let along = Index::of_values(scope, &[digit], &digits, &values).ok()?;
                at.offset = zero();
                at.add(scope, &along, &weight);
            }
            axes.push(Axis { size: one.size.clone(), at });
        }
        if tables > 1 {
            return None;
        }
        of_read(scope, digits, Read { source: self.source, axes }).ok()
    }

    /// The step with which both are one progression.
    fn step_to(
        &self,
        scope: &Scope,
        one: (&Index, Option<Dim>),
        other: &Along,
        next: (&Index, Option<Dim>),
    ) -> Option<Dim> {
        let has_table = |index: &Index, digit: Option<usize>| {
            let is_along = |term: &Term| matches!(&term.atom, Atom::Table(table) if digit.is_some_and(|digit| table.digits.contains(&digit)));
            index.terms.iter().any(is_along)
        };
        if has_table(one.0, self.digit) || has_table(next.0, other.digit) {
            return None;
        }
        let distance = minus(scope, &next.0.offset, &one.0.offset);
        // The step along one position can be any.
        let is_single = |along: &Along| along.digit.is_none() || is_at_most(scope, &along.units, &super::form::one());
        let step = match (is_single(self), is_single(other)) {
            (false, false) => {
                let (one, next) = (one.1.unwrap_or_else(zero), next.1.unwrap_or_else(zero));
                if !is_equal(scope, &one, &next) {
                    return None;
                }
                one
            }
            (false, true) => one.1.unwrap_or_else(zero),
            (true, false) => next.1.unwrap_or_else(zero),
            (true, true) => over(scope, &distance, &self.units)?,
        };
        // Only where the second piece has positions.
        holds_equal(scope, &other.digits, &times(scope, &step, &self.units), &distance).then_some(step)
    }
}

/// The axes of both reads, split alike.
fn with_equal_axes(scope: &Scope, one: &Along, other: &Along) -> Option<(Axes, Axes)> {
    let sizes = |axes: &Axes| axes.iter().map(|axis| axis.size.clone()).collect::<SmallVec<[Dim; 4]>>();
    let (first, second) = (sizes(&one.axes), sizes(&other.axes));
    if first == second {
        return Some((one.axes.clone(), other.axes.clone()));
    }
    let aligned = |along: &Along, to: &[Dim]| -> Option<Axes> {
        let refined = Refined::new(scope, &along.digits, &along.axes).align(to).ok()?;
        if refined.digits.len() != along.digits.len() {
            return None;
        }
        Some(refined.groups.iter().map(|group| merged(scope, group)).collect())
    };
    let whole = |along: &Along| -> Axes { std::iter::once(merged(scope, &along.axes)).collect() };
    if let Some(axes) = aligned(other, &first).filter(|axes| sizes(axes) == first) {
        return Some((one.axes.clone(), axes));
    }
    if let Some(axes) = aligned(one, &second).filter(|axes| sizes(axes) == second) {
        return Some((axes, other.axes.clone()));
    }
    let (one, other) = (whole(one), whole(other));
    (sizes(&one) == sizes(&other)).then_some((one, other))
}

impl IndexMap {
    /// Whether both maps have the same sources and result and the same canonical form: then they read the same elements.
    pub fn equals(&self, scope: &Scope, other: &IndexMap) -> bool {
        let same_dims =
            |a: &[Dim], b: &[Dim]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(scope, a, b));
        same_dims(&self.result, &other.result)
            && self.sources.len() == other.sources.len()
            && self.sources.iter().zip(&other.sources).all(|(a, b)| same_dims(a, b))
            && self.core.equals(scope, &other.core)
    }
}

impl Core {
    pub fn equals(&self, scope: &Scope, other: &Core) -> bool {
        if self == other || self.is_empty() && other.is_empty() {
            return true;
        }
        let same_digits = self.digits.len() == other.digits.len()
            && self.digits.iter().zip(&other.digits).all(|(a, b)| is_equal(scope, a, b));
        match (&self.form, &other.form) {
            (Form::Fill(a), Form::Fill(b)) => a == b,
            (Form::Read(a), Form::Read(b)) => {
                same_digits
                    && a.source == b.source
                    && flat(scope, &a.axes)
                        .is_some_and(|index| flat(scope, &b.axes).is_some_and(|other| index.equals(scope, &other)))
            }
            (Form::Pieces(a), Form::Pieces(b)) => {
                is_equal(scope, &a.before, &b.before)
                    && is_equal(scope, &a.after, &b.after)
                    && a.parts.len() == b.parts.len()
                    && a.parts
                        .iter()
                        .zip(&b.parts)
                        .all(|(a, b)| is_equal(scope, &a.len, &b.len) && a.core.equals(scope, &b.core))
            }
            _ => false,
        }
    }
}

/// The flat position in the source, whose tables have values that start at 0 and a coefficient of 1 where that is a number.
fn flat(scope: &Scope, axes: &[Axis]) -> Option<Index> {
    let whole = merged(scope, axes).at;
    let mut index = Index::constant(whole.offset.clone());
    for term in &whole.terms {
        match (&term.atom, term.coefficient.as_const()) {
            (Atom::Table(table), Some(scale)) if scale != 1 => {
                let scaled = table.values.iter().map(|value| value.checked_mul(scale)).collect::<Option<Vec<_>>>()?;
                let least = scaled.iter().copied().min().unwrap_or(0);
                index.offset = plus(scope, &index.offset, &number(least));
                let values = scaled.iter().map(|value| value.checked_sub(least)).collect::<Option<Vec<_>>>()?;
                let table = Table { digits: table.digits.clone(), values: values.into() };
                index.add_term(scope, one(), Atom::Table(table));
            }
            _ => index.add_term(scope, term.coefficient.clone(), term.atom.clone()),
        }
    }
    Some(index)
}

impl Index {
    fn equals(&self, scope: &Scope, other: &Index) -> bool {
        is_equal(scope, &self.offset, &other.offset)
            && self.terms.len() == other.terms.len()
            && self.terms.iter().all(|term| {
                let same = other.terms.iter().find(|other| other.atom == term.atom);
                same.is_some_and(|other| is_equal(scope, &term.coefficient, &other.coefficient))
            })
    }
}
