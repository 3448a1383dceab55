//! Composition: the map of one movement after another.
//!
//! The outer map reads positions of a tensor that the inner map makes. The outer map's source axes are aligned with the inner map's
//! result digits, and each digit is replaced by the position on its axes. Where the inner map has pieces, the outer map gets pieces
//! with the same borders.

use std::sync::Arc;

use smallvec::SmallVec;

use super::form::{
    Atom, Axes, Axis, Core, Form, Index, IndexMap, Lookup, MOST_PIECES, Piece, Pieces, Read, Shape, Term, is_at_most,
    is_negative, minus, number, one, over, plus, times, zero,
};
use super::refine::{Refined, holds, merged};
use super::undecided::Undecided;
use super::{canonical, join};
use crate::dim::{Dim, Scope};

/// The most positions that become a piece each.
const MOST_SINGLES: i64 = 8;

impl IndexMap {
    /// The map of `outer` applied to the result of this map, which is the only source of `outer`.
    ///
    /// # Errors
    /// A question about dims that is not decided.
    pub fn then(&self, scope: &Scope, outer: &IndexMap) -> Result<IndexMap, Undecided> {
        outer.applied_to(scope, &[self])
    }

    /// The map of `self` where its source `i` is the result of `inner[i]`. The sources of the result are those of `inner[0]`,
    /// then those of `inner[1]`, and so on; [`with_sources`](IndexMap::with_sources) makes equal ones one.
    ///
    /// # Errors
    /// A question about dims that is not decided.
    pub fn applied_to(&self, scope: &Scope, inner: &[&IndexMap]) -> Result<IndexMap, Undecided> {
        if inner.len() != self.sources.len() {
            return Err(Undecided::Rank);
        }
        let sources = inner.iter().flat_map(|map| map.sources.iter().cloned()).collect();
        if let ([only], true) = (inner, self.is_flat()) {
            return Ok(IndexMap { sources, result: self.result.clone(), core: only.core.clone() });
        }
        let mut base = 0;
        let mut cores: SmallVec<[Core; 2]> = SmallVec::new();
        for map in inner {
            cores.push(if base == 0 { map.core.clone() } else { map.core.with_sources(&|source| source + base) });
            base += map.sources.len();
        }
        let core = through(scope, &self.core, &cores)?;
        Ok(IndexMap { sources, result: self.result.clone(), core })
    }

    /// Renumbers the sources: source `i` becomes source `to[i]` of `sources`. Pieces of sources that are now one source may be joined.
    ///
    /// # Errors
    /// There are too many pieces.
    pub fn with_sources(&self, scope: &Scope, sources: &[Shape], to: &[usize]) -> Result<IndexMap, Undecided> {
        let mut core = self.core.with_sources(&|source| to.get(source).copied().unwrap_or(source));
        if to.iter().enumerate().any(|(at, source)| to.iter().take(at).any(|other| other == source)) {
            core = join::joined(scope, core)?;
        }
        Ok(IndexMap { sources: sources.into(), result: self.result.clone(), core })
    }

    /// Whether each element of the result is the element of the only source at the same flat position.
    pub fn is_flat(&self) -> bool {
        self.sources.len() == 1 && self.core.is_flat()
    }
}

impl Core {
    pub fn is_flat(&self) -> bool {
        let Form::Read(read) = &self.form else { return false };
        match (self.digits.as_slice(), read.axes.as_slice()) {
            ([], []) => true,
            ([size], [axis]) => {
                axis.size == *size
                    && axis.at.offset.is_const(0)
                    && matches!(axis.at.terms.as_slice(), [term] if term.coefficient.is_const(1) && term.atom == Atom::Digit(0))
            }
            _ => false,
        }
    }

    pub fn with_sources(&self, to: &dyn Fn(usize) -> usize) -> Core {
        let form = match &self.form {
            Form::Fill(fill) => Form::Fill(*fill),
            Form::Read(read) => Form::Read(read.with_sources(to)),
            Form::Pieces(pieces) => {
                let part = |piece: &Piece| Piece { len: piece.len.clone(), core: piece.core.with_sources(to) };
                let parts = pieces.parts.iter().map(part).collect();
                let (before, after) = (pieces.before.clone(), pieces.after.clone());
                Form::Pieces(Arc::new(Pieces { before, after, parts }))
            }
        };
        Core { digits: self.digits.clone(), form }
    }
}

/// The core of `outer` where source `i` is what `inner[i]` maps.
fn through(scope: &Scope, outer: &Core, inner: &[Core]) -> Result<Core, Undecided> {
    match &outer.form {
        Form::Fill(_) => Ok(outer.clone()),
        Form::Read(read) => {
            let axes = with_lookups_through(scope, &outer.digits, &read.axes, inner)?;
            if let Some(core) = inner.get(read.source).filter(|core| core.is_flat())
                && let Form::Read(own) = &core.form
            {
                let read = Read { source: own.source, axes };
                return Ok(Core { digits: outer.digits.clone(), form: Form::Read(read) });
            }
            pull(scope, &outer.digits, &axes, inner.get(read.source).ok_or(Undecided::Rank)?)
        }
        Form::Pieces(pieces) => {
            let mut parts = Vec::with_capacity(pieces.parts.len());
            for piece in &pieces.parts {
                parts.push(Piece { len: piece.len.clone(), core: through(scope, &piece.core, inner)? });
            }
            of_pieces(scope, &pieces.before, &pieces.after, parts)
        }
    }
}

/// Run-time positions are elements of a source as well: these are replaced first.
fn with_lookups_through(scope: &Scope, digits: &[Dim], axes: &Axes, inner: &[Core]) -> Result<Axes, Undecided> {
    let mut axes = axes.clone();
    for term in axes.iter_mut().flat_map(|axis| &mut axis.at.terms) {
        let Atom::Lookup(lookup) = &term.atom else { continue };
        let core = inner.get(lookup.read.source).ok_or(Undecided::Rank)?;
        let Form::Read(positions) = &core.form else { return Err(Undecided::RunTime) };
        let own = with_lookups_through(scope, digits, &lookup.read.axes, inner)?;
        let refined = Refined::new(scope, digits, &own).align(&core.digits)?;
        if refined.digits.len() != digits.len() {
            return Err(Undecided::RunTime);
        }
        let by: SmallVec<[Index; 4]> = refined.groups.iter().map(|group| merged(scope, group).at).collect();
        let read = positions.substitute(scope, &core.digits, &by, digits)?;
        term.atom = Atom::Lookup(Arc::new(Lookup { read, size: lookup.size.clone() }));
    }
    Ok(axes)
}

/// The elements at these axes of what `core` maps.
pub(super) fn pull(scope: &Scope, digits: &[Dim], axes: &[Axis], core: &Core) -> Result<Core, Undecided> {
    if digits.iter().any(|size| size.is_const(0)) {
        return Ok(Core::empty());
    }
    match &core.form {
        Form::Fill(fill) => Ok(canonical::of_fill(scope, digits, *fill)),
        Form::Read(read) => {
            let refined = Refined::new(scope, digits, axes).align(&core.digits)?;
            let by: SmallVec<[Index; 4]> = refined.groups.iter().map(|group| merged(scope, group).at).collect();
            let mut composed = Read { source: read.source, axes: Axes::new() };
            for axis in &read.axes {
                let parts = axis.at.as_shifted_digit().and_then(|digit| refined.groups.get(digit));
                let Some(parts) = parts else {
                    let at = axis.at.substitute(scope, &core.digits, &by, &refined.digits)?;
                    composed.axes.push(Axis { size: axis.size.clone(), at });
                    continue;
                };
                composed.axes.extend(shifted_parts(scope, axis, parts));
            }
            canonical::of_read(scope, refined.digits, composed)
        }
        Form::Pieces(pieces) => {
            let middle = pieces.len(scope);
            let refined = Refined::new(scope, digits, axes);
            let refined = refined.align(&[pieces.before.clone(), middle, pieces.after.clone()])?;
            let [before, middle, after] = refined.groups.as_slice() else { return Err(Undecided::Rank) };
            let at = merged(scope, middle).at;
            Selected { scope, digits: &refined.digits, before, at: &at, after, pieces, is_single: false }.select()
        }
    }
}

/// Returns the axes for `offset + position`, where the position has parts. Each part keeps an axis, and with it its bound, as far as
/// their sizes divide the offset.
fn shifted_parts(scope: &Scope, axis: &Axis, parts: &[Axis]) -> Axes {
    let (mut size, mut offset) = (axis.size.clone(), axis.at.offset.clone());
    let mut axes = Axes::new();
    let mut rest = parts;
    while let Some((last, before)) = rest.split_last() {
        let quotients = over(scope, &size, &last.size).zip(over(scope, &offset, &last.size));
        let Some((more, shift)) = quotients.filter(|_| !before.is_empty()) else { break };
        axes.push(last.clone());
        (size, offset, rest) = (more, shift, before);
    }
    let mut at = merged(scope, rest).at;
    at.offset = plus(scope, &at.offset, &offset);
    axes.push(Axis { size, at });
    axes.reverse();
    axes
}

/// Pieces as few as possible, nested in one order.
fn of_pieces(scope: &Scope, before: &Dim, after: &Dim, parts: Vec<Piece>) -> Result<Core, Undecided> {
    match with_outer_first(scope, before, after, &parts)? {
        Some(core) => Ok(core),
        None => join::of_pieces(scope, before, after, parts),
    }
}

/// The same map with its pieces along the most significant digit outermost: if a part has pieces along a digit before this one, all parts are
/// cut there.
fn with_outer_first(scope: &Scope, before: &Dim, after: &Dim, parts: &[Piece]) -> Result<Option<Core>, Undecided> {
    let outer = parts.iter().find_map(|piece| {
        let Form::Pieces(nested) = &piece.core.form else { return None };
        let len = nested.len(scope);
        let rest = over(scope, before, &times(scope, &nested.before, &len))?;
        Some((nested, len, rest))
    });
    let Some((nested, size, rest)) = outer.filter(|_| parts.len() > 1) else { return Ok(None) };
    let mut start = zero();
    let mut cut = Vec::with_capacity(nested.parts.len());
    for segment in &nested.parts {
        let own = times(scope, &times(scope, &nested.before, &segment.len), &rest);
        let mut inner = Vec::with_capacity(parts.len());
        for piece in parts {
            let low = times(scope, &times(scope, &rest, &piece.len), after);
            let digits = [nested.before.clone(), segment.len.clone(), low.clone()];
            let mut middle = Index::digit(1);
            middle.offset = start.clone();
            let axes = [
                Axis { size: nested.before.clone(), at: Index::digit(0) },
                Axis { size: size.clone(), at: middle },
                Axis { size: low, at: Index::digit(2) },
            ];
            inner.push(Piece { len: piece.len.clone(), core: pull(scope, &digits, &axes, &piece.core)? });
        }
        cut.push(Piece { len: segment.len.clone(), core: of_pieces(scope, &own, after, inner)? });
        start = plus(scope, &start, &segment.len);
    }
    let len = parts.iter().fold(zero(), |sum, piece| plus(scope, &sum, &piece.len));
    let below = times(scope, &times(scope, &rest, &len), after);
    of_pieces(scope, &nested.before, &below, cut).map(Some)
}

impl Pieces {
    pub fn len(&self, scope: &Scope) -> Dim {
        self.parts.iter().fold(zero(), |sum, piece| plus(scope, &sum, &piece.len))
    }
}

/// Positions along a digit that has pieces.
struct Selected<'a> {
    scope: &'a Scope,
    digits: &'a [Dim],
    before: &'a [Axis],
    at: &'a Index,
    after: &'a [Axis],
    pieces: &'a Pieces,
    /// Whether this is one position of a digit that was taken apart.
    is_single: bool,
}

/// A part of a digit, and the piece that its positions lie in.
struct Part {
    start: Dim,
    len: Dim,
    piece: usize,
}

impl Selected<'_> {
    fn select(&self) -> Result<Core, Undecided> {
        let scope = self.scope;
        let mut starts = vec![zero()];
        for piece in &self.pieces.parts {
            starts.push(plus(scope, starts.last().unwrap_or(&zero()), &piece.len));
        }
        if let Some(core) = self.one_piece(&starts) {
            return core;
        }
        let (digit, parts) = match self.at.terms.as_slice() {
            [term] if matches!(term.atom, Atom::Table(_)) => self.runs(&starts)?,
            _ => match self.cuts(&starts) {
                Ok(cuts) => cuts,
                Err(reason) => return self.singles(reason),
            },
        };
        let (before, after) = self.around(digit);
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            if part.len.is_const(0) {
                continue;
            }
            pieces.push(Piece { core: self.part(digit, &part, &starts)?, len: part.len });
            if pieces.len() > MOST_PIECES {
                return Err(Undecided::PieceLimit);
            }
        }
        of_pieces(scope, &before, &after, pieces)
    }

    /// One piece for each position of the least significant digit, if these are few.
    fn singles(&self, reason: Undecided) -> Result<Core, Undecided> {
        let scope = self.scope;
        if self.is_single {
            return Err(reason);
        }
        let few = |term: &&Term| {
            let Atom::Digit(digit) = term.atom else { return false };
            self.digits.get(digit).and_then(Dim::as_const).is_some_and(|size| (2..=MOST_SINGLES).contains(&size))
        };
        let weight = |term: &&Term| term.coefficient.as_const().map_or(i64::MAX, i64::saturating_abs);
        let Some(Atom::Digit(digit)) = self.at.terms.iter().filter(few).min_by_key(weight).map(|term| &term.atom)
        else {
            return Err(reason);
        };
        let size = self.digits.get(*digit).and_then(Dim::as_const).unwrap_or(0);
        let mut pieces = Vec::new();
        for start in 0..size {
            let part = Part { start: number(start), len: one(), piece: 0 };
            let (digits, before, at, after) = self.shifted(*digit, &part)?;
            let (before, after, at) = (before.as_slice(), after.as_slice(), &at);
            let selected = Selected { scope, digits: &digits, before, at, after, pieces: self.pieces, is_single: true };
            pieces.push(Piece { len: one(), core: selected.select()? });
        }
        let (before, after) = self.around(*digit);
        of_pieces(scope, &before, &after, pieces)
    }

    /// The products of the sizes before and after a digit.
    fn around(&self, digit: usize) -> (Dim, Dim) {
        let scope = self.scope;
        let size = |range: &[Dim]| range.iter().fold(one(), |product, size| times(scope, &product, size));
        let before = size(self.digits.get(..digit).unwrap_or_default());
        (before, size(self.digits.get(digit.saturating_add(1)..).unwrap_or_default()))
    }

    /// The elements, if all positions are proved to lie in one piece.
    fn one_piece(&self, starts: &[Dim]) -> Option<Result<Core, Undecided>> {
        let scope = self.scope;
        let least = self.at.least(scope, self.digits)?;
        let most = plus(scope, &self.at.most(scope, self.digits)?, &one());
        for (number, (piece, ends)) in self.pieces.parts.iter().zip(starts.windows(2)).enumerate() {
            let [start, end] = ends else { continue };
            if piece.len.is_const(0) || !holds(scope, self.digits, &[(start, &least), (&most, end)]) {
                continue;
            }
            return Some(self.within(number, self.digits, self.before, self.at, self.after, start));
        }
        None
    }

    fn within(
        &self,
        piece: usize,
        digits: &[Dim],
        before: &[Axis],
        at: &Index,
        after: &[Axis],
        start: &Dim,
    ) -> Result<Core, Undecided> {
        let piece = self.pieces.parts.get(piece).ok_or(Undecided::Rank)?;
        let mut at = at.clone();
        at.offset = minus(self.scope, &at.offset, start);
        let middle = Axis { size: piece.len.clone(), at };
        let axes: Axes = before.iter().cloned().chain([middle]).chain(after.iter().cloned()).collect();
        pull(self.scope, digits, &axes, &piece.core)
    }

    /// The elements of a part of a digit.
    fn part(&self, digit: usize, part: &Part, starts: &[Dim]) -> Result<Core, Undecided> {
        let (digits, before, at, after) = self.shifted(digit, part)?;
        let start = starts.get(part.piece).ok_or(Undecided::Rank)?;
        self.within(part.piece, &digits, &before, &at, &after, start)
    }

    /// The digits and the positions, where a digit is only a part of itself.
    #[allow(clippy::type_complexity)]
    fn shifted(&self, digit: usize, part: &Part) -> Result<(SmallVec<[Dim; 6]>, Axes, Index, Axes), Undecided> {
        let scope = self.scope;
        let mut digits: SmallVec<[Dim; 6]> = self.digits.into();
        *digits.get_mut(digit).ok_or(Undecided::Rank)? = part.len.clone();
        let mut by: SmallVec<[Index; 6]> = (0..digits.len()).map(Index::digit).collect();
        let own = by.get_mut(digit).ok_or(Undecided::Rank)?;
        own.offset = part.start.clone();
        if part.len.is_const(1) {
            own.terms.clear();
        }
        let shifted = |axes: &[Axis]| -> Result<Axes, Undecided> {
            let shift = |axis: &Axis| {
                let at = axis.at.substitute(scope, self.digits, &by, &digits)?;
                Ok(Axis { size: axis.size.clone(), at })
            };
            axes.iter().map(shift).collect()
        };
        let (before, after) = (shifted(self.before)?, shifted(self.after)?);
        let at = self.at.substitute(scope, self.digits, &by, &digits)?;
        Ok((digits, before, at, after))
    }

    /// The runs of a table's values that lie in one piece each.
    fn runs(&self, starts: &[Dim]) -> Result<(usize, Vec<Part>), Undecided> {
        let (used, values) = self.at.as_table(self.digits)?;
        let [digit] = used.as_slice() else { return Err(Undecided::Symbolic) };
        let starts: Vec<i64> = starts.iter().map(Dim::as_const).collect::<Option<_>>().ok_or(Undecided::Symbolic)?;
        let mut parts: Vec<(i64, i64, usize)> = Vec::new();
        for (at, value) in (0i64..).zip(values) {
            let ends = starts.iter().skip(1);
            let piece = ends.take_while(|&&end| end <= value).count();
            match parts.last_mut() {
                Some((_, len, last)) if *last == piece => *len += 1,
                _ => parts.push((at, 1, piece)),
            }
            if parts.len() > MOST_PIECES {
                return Err(Undecided::PieceLimit);
            }
        }
        let part = |(start, len, piece)| Part { start: number(start), len: number(len), piece };
        Ok((*digit, parts.into_iter().map(part).collect()))
    }

    /// The parts of the digit with the greatest weight between the borders of the pieces.
    fn cuts(&self, starts: &[Dim]) -> Result<(usize, Vec<Part>), Undecided> {
        let scope = self.scope;
        let mut reason = Undecided::Symbolic;
        for (number_of_term, term) in self.at.terms.iter().enumerate() {
            let Atom::Digit(digit) = term.atom else { continue };
            let Some(size) = self.digits.get(digit) else { continue };
            let Some(is_reversed) = is_negative(scope, &term.coefficient) else { continue };
            let weight = if is_reversed { scope.neg(&term.coefficient) } else { term.coefficient.clone() };
            let mut rest = self.at.clone();
            rest.terms.remove(number_of_term);
            let (Some(least), Some(most)) = (rest.least(scope, self.digits), rest.most(scope, self.digits)) else {
                continue;
            };
            let span = plus(scope, &minus(scope, &most, &least), &one());
            if !holds(scope, self.digits, &[(&span, &weight)]) {
                continue;
            }
            // The position of the first element, counted along the digit or against it.
            let last = times(scope, &weight, &minus(scope, size, &one()));
            let first = if is_reversed { minus(scope, &least, &last) } else { least };
            match self.cuts_of(starts, size, &weight, &first, &span) {
                Ok(cuts) => return Ok((digit, parts_between(scope, &cuts, size, is_reversed))),
                Err(undecided) => reason = undecided,
            }
        }
        Err(reason)
    }

    /// How many positions of the digit lie before each border.
    fn cuts_of(
        &self,
        starts: &[Dim],
        size: &Dim,
        weight: &Dim,
        first: &Dim,
        span: &Dim,
    ) -> Result<Vec<Dim>, Undecided> {
        let scope = self.scope;
        let past = plus(scope, first, &times(scope, weight, size));
        let mut cuts = Vec::with_capacity(starts.len());
        for (number_of_border, border) in starts.iter().enumerate() {
            let is_last = number_of_border.saturating_add(1) == starts.len();
            cuts.push(if number_of_border == 0 || is_at_most(scope, border, first) {
                zero()
            } else if is_last || is_at_most(scope, &past, border) {
                size.clone()
            } else {
                let distance = minus(scope, border, first);
                let cut = match (over(scope, &distance, weight), distance.as_const(), weight.as_const()) {
                    (Some(cut), _, _) => cut,
                    (None, Some(distance), Some(weight)) if span.is_const(1) => {
                        // The ceiling, of a positive distance and weight.
                        number(distance.checked_sub(1).and_then(|d| d.checked_div(weight)).map_or(0, |cut| cut + 1))
                    }
                    _ => return Err(Undecided::Divides(weight.clone(), distance)),
                };
                let cut = if is_at_most(scope, &zero(), &cut) { cut } else { scope.max(&zero(), &cut) };
                if is_at_most(scope, &cut, size) { cut } else { scope.min(&cut, size) }
            });
        }
        Ok(cuts)
    }
}

fn parts_between(scope: &Scope, cuts: &[Dim], size: &Dim, is_reversed: bool) -> Vec<Part> {
    let part = |(piece, ends): (usize, &[Dim])| {
        let [from, to] = ends else { return None };
        let start = if is_reversed { minus(scope, size, to) } else { from.clone() };
        Some(Part { start, len: minus(scope, to, from), piece })
    };
    let mut parts: Vec<Part> = cuts.windows(2).enumerate().filter_map(part).collect();
    if is_reversed {
        parts.reverse();
    }
    parts
}

impl Read {
    pub fn whole(source: usize, total: Dim) -> Read {
        let mut axes = Axes::new();
        if !total.is_const(1) {
            axes.push(Axis { size: total, at: Index::digit(0) });
        }
        Read { source, axes }
    }
}
