//! Pieces that continue each other are one piece.
//!
//! The law: `x ↦ o₁ + c·x` on `0 .. len`, followed by `x ↦ o₂ + c·x`, is one progression if `o₂ = o₁ + c·len`. Where sizes are numbers and no
//! progression fits, the positions of both are a table.

use std::sync::Arc;

use smallvec::SmallVec;

use super::canonical::{of_fill, of_read};
use super::form::{
    Atom, Axes, Axis, Core, Form, Index, MOST_PIECES, Piece, Pieces, Read, Term, is_at_most, is_equal, minus, one,
    over, plus, times, zero,
};
use super::refine::{Refined, holds_equal, merged};
use super::undecided::Undecided;
use crate::dim::{Dim, Scope};

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
fn join(scope: &Scope, before: &Dim, after: &Dim, first_piece: &Piece, second: &Piece) -> Option<Piece> {
    let len = plus(scope, &first_piece.len, &second.len);
    match (&first_piece.core.form, &second.core.form) {
        (Form::Fill(one), Form::Fill(other)) if one == other => {
            let core = of_fill(scope, &[before.clone(), len.clone(), after.clone()], *one);
            Some(Piece { len, core })
        }
        (Form::Read(one), Form::Read(other)) if one.source == other.source => {
            let inner = [
                super::form::one(),
                inner_of(scope, before, after, first_piece, one),
                inner_of(scope, before, after, second, other),
            ];
            let joined = |inner: &Dim| {
                let one = Along::of(scope, before, inner, after, first_piece, one)?;
                one.continued_by(scope, &Along::of(scope, before, inner, after, second, other)?)
            };
            let (first, rest) = inner.split_first()?;
            let repeated = || {
                let one = Along::repeated(scope, before, after, first_piece, one)?;
                one.continued_by(scope, &Along::repeated(scope, before, after, second, other)?)
            };
            let core = joined(first)
                .or_else(|| rest.iter().filter(|inner| !inner.is_const(1)).find_map(joined))
                .or_else(repeated)?;
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

    /// A piece whose positions are those of one term, repeated: the digits along the piece become one digit, and the positions a table.
    fn repeated(scope: &Scope, before: &Dim, after: &Dim, piece: &Piece, read: &Read) -> Option<Along> {
        let mut refined = Refined::new(scope, &piece.core.digits, &read.axes);
        let counts = refined.align_digits(&[before.clone(), piece.len.clone(), after.clone()]).ok()?;
        let &[first, middle, _] = counts.as_slice() else { return None };
        if middle < 2 {
            return Along::of(scope, before, &super::form::one(), after, piece, read);
        }
        let along: SmallVec<[usize; 4]> = (first..first.checked_add(middle)?).collect();
        let mut digits: SmallVec<[Dim; 6]> = refined.digits.iter().take(first).cloned().collect();
        digits.push(piece.len.clone());
        digits.extend(refined.digits.iter().skip(first.saturating_add(middle)).cloned());
        let moved = |digit: usize| if digit < first { digit } else { digit.saturating_sub(middle.saturating_sub(1)) };
        let by: SmallVec<[Index; 6]> = (0..refined.digits.len()).map(|digit| Index::digit(moved(digit))).collect();
        let mut axes = Axes::new();
        for axis in &refined.axes {
            let index = |offset: Dim, terms: SmallVec<[Term; 2]>| Index { offset, terms };
            let is_along = |term: &Term| {
                let used = index(zero(), std::iter::once(term.clone()).collect()).digits();
                used.iter().all(|digit| along.contains(digit))
            };
            let (own, others): (SmallVec<[Term; 2]>, _) = axis.at.terms.iter().cloned().partition(is_along);
            let rest = index(axis.at.offset.clone(), others);
            if own.len() > 1 || rest.digits().iter().any(|digit| along.contains(digit)) {
                return None;
            }
            let mut at = rest.substitute(scope, &refined.digits, &by, &digits).ok()?;
            if let [Term { coefficient, atom }] = own.as_slice() {
                let values = Index::of_atom(atom.clone()).values_over(&along, &refined.digits)?;
                at.add(scope, &Index::of_values(scope, &[first], &digits, &values).ok()?, coefficient);
            }
            axes.push(Axis { size: axis.size.clone(), at });
        }
        Some(Along { source: read.source, units: piece.len.clone(), digits, digit: Some(first), before: first, axes })
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

    /// The symbolic part of the coefficient along the pieces, if it is no number.
    fn weight(&self, index: &Index) -> Option<Dim> {
        let term = index.terms.iter().find(|term| self.is_along(term))?;
        term.coefficient.as_const().is_none().then(|| term.coefficient.without_content())
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
        let axes = with_equal_axes(scope, self, other);
        let found = axes.and_then(|axes| self.continued_along(scope, other, axes));
        // Positions that change on two axes are one table of flat positions.
        found.or_else(|| self.continued_along(scope, other, with_one_axis(scope, self, other)?))
    }

    fn continued_along(&self, scope: &Scope, other: &Along, (own, others): (Axes, Axes)) -> Option<Core> {
        if !self.digits_around().eq(other.digits_around()) {
            return None;
        }
        let digit = self.before;
        // Pieces of a whole axis have the size of the axis together, in one form: min(k, n) + max(0, n - k) is n.
        let sum = plus(scope, &self.units, &other.units);
        let len = own.iter().find(|axis| is_equal(scope, &axis.size, &sum)).map_or(sum, |axis| axis.size.clone());
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

/// Returns the axes of both reads, split at the same borders.
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
    if let Some(axes) = aligned(other, &first).filter(|axes| sizes(axes) == first) {
        return Some((one.axes.clone(), axes));
    }
    if let Some(axes) = aligned(one, &second).filter(|axes| sizes(axes) == second) {
        return Some((axes, other.axes.clone()));
    }
    None
}

/// Returns all axes of both reads as one axis.
fn with_one_axis(scope: &Scope, one: &Along, other: &Along) -> Option<(Axes, Axes)> {
    let whole = |along: &Along| merged(scope, &along.axes);
    let (one, other) = (whole(one), whole(other));
    let axes = |axis: Axis| -> Axes { std::iter::once(axis).collect() };
    (one.size == other.size).then(|| (axes(one), axes(other)))
}
