//! The inverse of a bijection.

use super::canonical;
use super::form::{Atom, Axes, Axis, Form, Index, IndexMap, Read, is_equal, number, one};
use super::refine::{Refined, sizes_by_digit};
use super::undecided::Undecided;
use crate::dim::{Dim, Scope};
use smallvec::SmallVec;

impl IndexMap {
    /// The map with source and result exchanged, if each element of the only source is read exactly once.
    ///
    /// # Errors
    /// The map is no bijection, or is not known to be one.
    pub fn inverse(&self, scope: &Scope) -> Result<IndexMap, Undecided> {
        let (Form::Read(read), [source]) = (&self.core.form, self.sources.as_slice()) else {
            return Err(Undecided::NoBijection);
        };
        let sizes = sizes_by_digit(scope, &read.axes);
        let refined = Refined::new(scope, &self.core.digits, &read.axes).align(&sizes)?;
        let mut digits: SmallVec<[Dim; 6]> = SmallVec::new();
        let mut places: SmallVec<[Option<Index>; 6]> = SmallVec::from_elem(None, refined.digits.len());
        for axis in refined.groups.iter().flatten() {
            let own = digits.len();
            digits.push(axis.size.clone());
            let (digit, position) = axis.position_of(scope, &refined.digits, own)?;
            if places.get_mut(digit).ok_or(Undecided::Rank)?.replace(position).is_some() {
                return Err(Undecided::NoBijection);
            }
        }
        let mut axes = Axes::new();
        for (size, place) in refined.digits.iter().zip(places) {
            axes.push(Axis { size: size.clone(), at: place.ok_or(Undecided::NoBijection)? });
        }
        let core = canonical::of_read(scope, digits, Read { source: 0, axes })?;
        Ok(IndexMap { sources: std::iter::once(self.result.clone()).collect(), result: source.clone(), core })
    }
}

impl Axis {
    /// The digit that a position on this whole axis is read at, and where on it: the axis is digit `own` of the inverse.
    fn position_of(&self, scope: &Scope, digits: &[Dim], own: usize) -> Result<(usize, Index), Undecided> {
        let [term] = self.at.terms.as_slice() else { return Err(Undecided::NoBijection) };
        match &term.atom {
            Atom::Digit(digit) => {
                let size = digits.get(*digit).ok_or(Undecided::Rank)?;
                if !is_equal(scope, size, &self.size) {
                    return Err(Undecided::NoBijection);
                }
                let mut position = Index::digit(own);
                if term.coefficient.is_const(1) && self.at.offset.is_const(0) {
                    return Ok((*digit, position));
                }
                let last = scope.sub(size, &one());
                if !term.coefficient.is_const(-1) || !is_equal(scope, &self.at.offset, &last) {
                    return Err(Undecided::NoBijection);
                }
                position = Index::constant(last);
                position.add_term(scope, number(-1), Atom::Digit(own));
                Ok((*digit, position))
            }
            Atom::Table(_) => {
                let (used, values) = self.at.as_table(digits)?;
                let [digit] = used.as_slice() else { return Err(Undecided::NoBijection) };
                let mut back: Vec<Option<i64>> = vec![None; values.len()];
                for (at, &value) in (0i64..).zip(&values) {
                    let place = usize::try_from(value).ok().and_then(|value| back.get_mut(value));
                    if place.ok_or(Undecided::NoBijection)?.replace(at).is_some() {
                        return Err(Undecided::NoBijection);
                    }
                }
                let back = back.into_iter().collect::<Option<Vec<_>>>().ok_or(Undecided::NoBijection)?;
                if !is_equal(scope, &self.size, &number(i64::try_from(back.len()).map_err(|_| Undecided::Overflow)?)) {
                    return Err(Undecided::NoBijection);
                }
                let mut sizes: SmallVec<[Dim; 6]> = SmallVec::from_elem(one(), own);
                sizes.push(self.size.clone());
                Ok((*digit, Index::of_values(scope, &[own], &sizes, &back)?))
            }
            Atom::Lookup(_) => Err(Undecided::RunTime),
        }
    }
}
