//! A map as boxes of the result, each with one index function: the form for readers.
//!
//! The digits of the canonical form are split at the borders of the axes of result and source, so that each axis has a separate position. A digit
//! along pieces begins where its piece begins: the second part of a Concat has the digit `n ≤ i < n + m` and the position `i − n`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::construct::product;
use super::form::{
    Atom, Axes, Axis, Core, Fill, Form, Index, IndexMap, Lookup, Pieces, Read, Shape, minus, one, over, plus, times,
    zero,
};
use super::refine::{Refined, merged};
use super::undecided::Undecided;
use crate::dim::{Dim, Scope};

/// A box of the result whose elements have one origin and one index function.
#[derive(Clone, Debug)]
pub struct Region {
    /// The digits.
    pub digits: Vec<RegionDigit>,
    /// The position on each axis of the result; or one position in row-major order, if digits do not align with the axes.
    pub result: Vec<Position>,
    /// The origin of the elements.
    pub origin: RegionOrigin,
}

/// An integer `start ≤ i < start + len`.
#[derive(Clone, Debug)]
pub struct RegionDigit {
    /// The least value.
    pub start: Dim,
    /// The number of values.
    pub len: Dim,
}

/// The origin of the elements of a region.
#[derive(Clone, Debug)]
pub enum RegionOrigin {
    /// A constant.
    Fill(Fill),
    /// The elements of a source at these positions: one for each axis, or one in row-major order.
    Source(usize, Vec<Position>),
}

/// `offset + Σ coefficient · variable`.
#[derive(Clone, Debug)]
pub struct Position {
    /// The constant part.
    pub offset: Dim,
    /// Coefficients and variables.
    pub terms: Vec<(Dim, Variable)>,
}

/// A variable of a position.
#[derive(Clone, Debug)]
pub enum Variable {
    /// A digit, by its number.
    Digit(usize),
    /// A table with an entry for each combination of these digits, in row-major order.
    Table(Vec<usize>, Arc<[i64]>),
    /// The integer that another source holds at these positions.
    Lookup(usize, Vec<Position>),
}

/// A box of the result: its digits, and the position on each axis of the result.
struct Part<'a> {
    core: &'a Core,
    digits: SmallVec<[Dim; 6]>,
    result: Axes,
}

impl IndexMap {
    /// The map as regions, in the order of the result. Regions have positions on axes if the digits align with the axes, and otherwise positions in
    /// row-major order.
    ///
    /// # Errors
    /// A digit does not align with the borders of the pieces.
    pub fn regions(&self, scope: &Scope) -> Result<Vec<Region>, Undecided> {
        let flat = [product(scope, &self.result)];
        self.regions_over(scope, &self.result).or_else(|_| self.regions_over(scope, &flat))
    }

    fn regions_over(&self, scope: &Scope, dims: &[Dim]) -> Result<Vec<Region>, Undecided> {
        let axes = dims.iter().enumerate().map(|(digit, size)| Axis { size: size.clone(), at: Index::digit(digit) });
        let mut open = vec![Part { core: &self.core, digits: dims.into(), result: axes.collect() }];
        let mut regions = Vec::new();
        while let Some(part) = open.pop() {
            match &part.core.form {
                Form::Fill(fill) => regions.push(part.filled(scope, *fill)?),
                Form::Read(read) => regions.push(part.read(scope, &self.sources, read)?),
                Form::Pieces(pieces) => open.extend(part.pieces(scope, pieces)?.into_iter().rev()),
            }
        }
        Ok(regions)
    }
}

impl Part<'_> {
    fn filled(&self, scope: &Scope, fill: Fill) -> Result<Region, Undecided> {
        // A digit of size 1 is 0.
        let by: SmallVec<[Index; 4]> = (0..).zip(&self.digits).map(|(digit, size)| of_digit(digit, size)).collect();
        let result = self.result_by(scope, &by, &self.digits)?;
        Ok(region(scope, &self.digits, &result, |_| RegionOrigin::Fill(fill)))
    }

    fn read(&self, scope: &Scope, sources: &[Shape], read: &Read) -> Result<Region, Undecided> {
        // Positions of the source, then those of each run-time position.
        let mut lookups: SmallVec<[Arc<Lookup>; 1]> = SmallVec::new();
        for term in read.axes.iter().flat_map(|axis| &axis.at.terms) {
            match &term.atom {
                Atom::Lookup(lookup) if !lookups.contains(lookup) => lookups.push(Arc::clone(lookup)),
                _ => {}
            }
        }
        let reads: SmallVec<[&Read; 2]> =
            std::iter::once(read).chain(lookups.iter().map(|lookup| &lookup.read)).collect();
        let axes: Axes = reads.iter().flat_map(|read| read.axes.iter().cloned()).collect();
        let dims = |read: &Read| sources.get(read.source).map_or_else(Vec::new, |dims| dims.to_vec());
        let sizes: Vec<Dim> = reads.iter().flat_map(|read| dims(read)).collect();
        let aligned = Refined::new(scope, &self.core.digits, &axes).align(&sizes);
        let aligned = aligned.and_then(|mut refined| Ok((refined.align_digits(&self.digits)?, refined)));
        let is_flat = aligned.is_err();
        let (counts, refined) = match aligned {
            Ok(aligned) => aligned,
            Err(_) => {
                let groups = reads.iter().map(|read| read.axes.clone()).collect();
                let mut refined = Refined { groups, ..Refined::new(scope, &self.core.digits, &[]) };
                (refined.align_digits(&self.digits)?, refined)
            }
        };
        let mut by: SmallVec<[Index; 4]> = SmallVec::new();
        let mut next = 0;
        for count in counts {
            let end = count.saturating_add(next);
            let own = (next..end).filter_map(|digit| {
                let size = refined.digits.get(digit)?;
                Some(Axis { size: size.clone(), at: of_digit(digit, size) })
            });
            by.push(merged(scope, &own.collect::<Axes>()).at);
            next = end;
        }
        let result = self.result_by(scope, &by, &refined.digits)?;
        let mut groups = refined.groups.iter().map(|group| merged(scope, group).at);
        let mut positions: Vec<Vec<Index>> = Vec::new();
        for read in &reads {
            positions.push(groups.by_ref().take(if is_flat { 1 } else { dims(read).len() }).collect());
        }
        Ok(region(scope, &refined.digits, &result, |starts| {
            let own = positions.first().map_or(&[][..], Vec::as_slice);
            let lookups = lookups.iter().zip(positions.iter().skip(1));
            let aligned: Vec<Aligned> =
                lookups.map(|(lookup, at)| Aligned { source: lookup.read.source, at }).collect();
            let own = own.iter().map(|index| position(scope, index, starts, &aligned)).collect();
            RegionOrigin::Source(read.source, own)
        }))
    }

    /// The parts between the borders of the pieces.
    fn pieces<'p>(&self, scope: &Scope, pieces: &'p Pieces) -> Result<Vec<Part<'p>>, Undecided> {
        let mut refined = Refined::new(scope, &self.digits, &self.result);
        let sizes = [pieces.before.clone(), pieces.len(scope), pieces.after.clone()];
        let counts = refined.align_digits(&sizes)?;
        let [before, middle, _] = counts.as_slice() else { return Err(Undecided::Rank) };
        // The pieces divide the first digit of the group.
        let mut group =
            refined.digits.iter().enumerate().skip(*before).take(*middle).filter(|(_, size)| !size.is_const(1));
        let (cut, _) = group.next().ok_or(Undecided::Rank)?;
        let rest = group.fold(one(), |product, (_, size)| times(scope, &product, size));
        let mut start = zero();
        let mut parts = Vec::with_capacity(pieces.parts.len());
        for piece in &pieces.parts {
            let quotient =
                |dim: &Dim| over(scope, dim, &rest).ok_or_else(|| Undecided::Divides(rest.clone(), dim.clone()));
            let (own, len) = (quotient(&start)?, quotient(&piece.len)?);
            start = plus(scope, &start, &piece.len);
            let by: SmallVec<[Index; 4]> = (0..refined.digits.len())
                .map(|digit| {
                    let mut index = Index::digit(digit);
                    if digit == cut {
                        index.offset = own.clone();
                    }
                    index
                })
                .collect();
            let mut digits = refined.digits.clone();
            if let Some(size) = digits.get_mut(cut) {
                *size = len;
            }
            let result = refined.axes.iter().map(|axis| {
                let at = axis.at.substitute(scope, &refined.digits, &by, &digits)?;
                Ok(Axis { size: axis.size.clone(), at })
            });
            parts.push(Part { core: &piece.core, result: result.collect::<Result<_, Undecided>>()?, digits });
        }
        Ok(parts)
    }

    /// The position on each axis of the result over other digits.
    fn result_by(&self, scope: &Scope, by: &[Index], digits: &[Dim]) -> Result<Vec<Index>, Undecided> {
        self.result.iter().map(|axis| axis.at.substitute(scope, &self.digits, by, digits)).collect()
    }
}

fn of_digit(digit: usize, size: &Dim) -> Index {
    if size.is_const(1) { Index::constant(zero()) } else { Index::digit(digit) }
}

/// The region with these positions. The first digit of an axis begins at the offset of the axis, if it divides the offset.
fn region(scope: &Scope, digits: &[Dim], result: &[Index], origin: impl FnOnce(&[Dim]) -> RegionOrigin) -> Region {
    let mut starts = vec![zero(); digits.len()];
    for index in result {
        let Some(term) = index.terms.first() else { continue };
        let (Atom::Digit(digit), Some(start)) = (&term.atom, over(scope, &index.offset, &term.coefficient)) else {
            continue;
        };
        if let Some(own) = starts.get_mut(*digit) {
            *own = start;
        }
    }
    let of = |(start, len): (&Dim, &Dim)| RegionDigit { start: start.clone(), len: len.clone() };
    Region {
        digits: starts.iter().zip(digits).map(of).collect(),
        result: result.iter().map(|index| position(scope, index, &starts, &[])).collect(),
        origin: origin(&starts),
    }
}

/// A run-time position that is aligned with the axes of its source.
struct Aligned<'a> {
    source: usize,
    at: &'a [Index],
}

/// The position over digits that begin at `starts` instead of 0.
fn position(scope: &Scope, index: &Index, starts: &[Dim], lookups: &[Aligned]) -> Position {
    let mut offset = index.offset.clone();
    let mut terms = Vec::with_capacity(index.terms.len());
    for term in &index.terms {
        let variable = match &term.atom {
            Atom::Digit(digit) => {
                let start = starts.get(*digit).cloned().unwrap_or_else(zero);
                offset = minus(scope, &offset, &times(scope, &term.coefficient, &start));
                Variable::Digit(*digit)
            }
            Atom::Table(table) => Variable::Table(table.digits.to_vec(), Arc::clone(&table.values)),
            Atom::Lookup(lookup) => {
                let source = lookup.read.source;
                let mut aligned = lookups.iter().filter(|aligned| aligned.source == source);
                // Two lookups in one source are not distinguished, so neither has positions.
                let at = aligned.next().filter(|_| aligned.next().is_none()).map_or(&[][..], |aligned| aligned.at);
                Variable::Lookup(source, at.iter().map(|index| position(scope, index, starts, &[])).collect())
            }
        };
        terms.push((term.coefficient.clone(), variable));
    }
    Position { offset, terms }
}
