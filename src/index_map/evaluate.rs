//! Evaluation at given sizes, element by element. Slow and plain: it is what the laws are tested against.

use super::form::{Atom, Axis, Core, Fill, Form, Index, IndexMap, MOST_PIECES, Read, Term, number};
use crate::dim::{Dim, Symbol};
use crate::tensor::{StridedView, product};

/// Where an element of a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// The element of a source at a flat position.
    Source {
        /// Which source.
        source: usize,
        /// Its position in row-major order.
        position: i64,
    },
    /// A constant.
    Fill(Fill),
}

/// Sizes of the symbols, and contents of the sources that hold run-time positions.
pub struct Binding<'a> {
    /// The value of each symbol.
    pub sizes: &'a dyn Fn(Symbol) -> Option<i64>,
    /// The integer of a source at a flat position.
    pub positions: &'a dyn Fn(usize, i64) -> Option<i64>,
}

impl IndexMap {
    /// Where each element of the result comes from, in row-major order. `None` if a dim has no value at these sizes or a run-time
    /// position none.
    pub fn evaluate(&self, binding: &Binding) -> Option<Vec<Element>> {
        let mut total = 1i64;
        for dim in &self.result {
            total = total.checked_mul(binding.dim(dim)?)?;
        }
        (0..total).map(|position| self.evaluate_at(binding, position)).collect()
    }

    /// The origin of the element of the result at a flat position, as [`evaluate`](IndexMap::evaluate).
    pub fn evaluate_at(&self, binding: &Binding, position: i64) -> Option<Element> {
        binding.element(&self.core, position)
    }
}

/// The elements of a result in row-major order, as copies of elements of sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copies {
    /// A constant, this many times.
    Fill(Fill, usize),
    /// A view of a flat source.
    View(usize, StridedView),
    /// This many rows, each of which is a row of each part.
    Rows(usize, Vec<Copies>),
}

impl IndexMap {
    /// Returns the copies that compute the result. `None` if a size is not constant, or if positions are not at constant strides.
    pub fn copies(&self) -> Option<Copies> {
        self.core.copies()
    }
}

impl Core {
    fn copies(&self) -> Option<Copies> {
        match &self.form {
            Form::Fill(fill) => Some(Copies::Fill(*fill, product(&numbers(&self.digits)?)?)),
            Form::Read(read) => read.copies(&self.digits),
            Form::Pieces(pieces) => {
                let parts = pieces.parts.iter().map(|piece| piece.core.copies());
                let [before] = numbers(std::slice::from_ref(&pieces.before))?[..] else { return None };
                Some(Copies::Rows(before, parts.collect::<Option<_>>()?))
            }
        }
    }
}

/// Returns constant sizes.
fn numbers(dims: &[Dim]) -> Option<Vec<usize>> {
    dims.iter().map(|dim| usize::try_from(dim.as_const()?).ok()).collect()
}

impl Read {
    /// Views whose dims are the digits. A table of one digit becomes a view for each arithmetic progression in it.
    fn copies(&self, digits: &[Dim]) -> Option<Copies> {
        let is_affine = |axis: &Axis| axis.at.terms.iter().all(|term| matches!(term.atom, Atom::Digit(_)));
        let Some(tabled) = self.axes.iter().position(|axis| !is_affine(axis)) else {
            return Some(Copies::View(self.source, self.view(&numbers(digits)?)?));
        };
        let (used, values) = self.axes.get(tabled)?.at.as_table(digits).ok()?;
        let &[digit] = used.as_slice() else { return None };
        if self.axes.iter().filter(|axis| axis.at.digits().contains(&digit)).count() > 1 {
            return None;
        }
        let (mut parts, mut rest) = (Vec::new(), values.as_slice());
        while let Some((&first, others)) = rest.split_first().filter(|_| parts.len() < MOST_PIECES) {
            let step = others.first().map_or(Some(0), |next| next.checked_sub(first))?;
            let is_next = |pair: &&[i64]| matches!(pair, [a, b] if b.checked_sub(*a) == Some(step));
            let len = rest.windows(2).take_while(is_next).count().checked_add(1)?;
            rest = rest.get(len..)?;
            let (mut read, mut digits) = (self.clone(), digits.to_vec());
            let at = &mut read.axes.get_mut(tabled)?.at;
            *at = Index::constant(number(first));
            at.terms.extend((step != 0).then(|| Term { coefficient: number(step), atom: Atom::Digit(digit) }));
            *digits.get_mut(digit)? = number(i64::try_from(len).ok()?);
            parts.push(read.copies(&digits)?);
        }
        rest.is_empty().then_some(Copies::Rows(product(&numbers(digits.get(..digit)?)?)?, parts))
    }

    /// The elements as a view whose dims are the digits.
    fn view(&self, dims: &[usize]) -> Option<StridedView> {
        let mut strides = vec![0i64; dims.len()];
        let (mut offset, mut inner) = (0i64, 1i64);
        for Axis { size, at } in self.axes.iter().rev() {
            offset = offset.checked_add(at.offset.as_const()?.checked_mul(inner)?)?;
            for term in &at.terms {
                let Atom::Digit(digit) = term.atom else { return None };
                let stride = strides.get_mut(digit)?;
                *stride = stride.checked_add(term.coefficient.as_const()?.checked_mul(inner)?)?;
            }
            inner = inner.checked_mul(size.as_const()?)?;
        }
        let strides = strides.into_iter().map(|stride| isize::try_from(stride).ok()).collect::<Option<Vec<_>>>()?;
        StridedView::new(dims, &strides, isize::try_from(offset).ok()?).ok()
    }
}

impl Binding<'_> {
    fn dim(&self, dim: &Dim) -> Option<i64> {
        dim.evaluate(self.sizes)
    }

    fn element(&self, core: &Core, position: i64) -> Option<Element> {
        match &core.form {
            Form::Fill(fill) => Some(Element::Fill(*fill)),
            Form::Read(read) => {
                let mut digits = Vec::with_capacity(core.digits.len());
                let mut rest = position;
                for size in core.digits.iter().rev() {
                    let size = self.dim(size)?;
                    digits.push((rest.checked_rem_euclid(size)?, size));
                    rest = rest.checked_div_euclid(size)?;
                }
                digits.reverse();
                Some(Element::Source { source: read.source, position: self.position(read, &digits)? })
            }
            Form::Pieces(pieces) => {
                let after = self.dim(&pieces.after)?;
                let lens = pieces.parts.iter().map(|piece| self.dim(&piece.len)).collect::<Option<Vec<_>>>()?;
                let middle: i64 = lens.iter().sum();
                let low = position.checked_rem_euclid(after)?;
                let rest = position.checked_div_euclid(after)?;
                let mut at = rest.checked_rem_euclid(middle)?;
                let high = rest.checked_div_euclid(middle)?;
                for (piece, len) in pieces.parts.iter().zip(lens) {
                    if at < len {
                        let own = high.checked_mul(len)?.checked_add(at)?.checked_mul(after)?.checked_add(low)?;
                        return self.element(&piece.core, own);
                    }
                    at = at.checked_sub(len)?;
                }
                None
            }
        }
    }

    fn position(&self, read: &Read, digits: &[(i64, i64)]) -> Option<i64> {
        let mut position = 0i64;
        for Axis { size, at } in &read.axes {
            let (size, at) = (self.dim(size)?, self.index(at, digits)?);
            // A position outside of its axis is a defect of the map, never of a model.
            if !(0..size).contains(&at) {
                return None;
            }
            position = position.checked_mul(size)?.checked_add(at)?;
        }
        Some(position)
    }

    fn index(&self, index: &Index, digits: &[(i64, i64)]) -> Option<i64> {
        let mut sum = self.dim(&index.offset)?;
        for term in &index.terms {
            let value = match &term.atom {
                Atom::Digit(digit) => digits.get(*digit)?.0,
                Atom::Table(table) => {
                    let mut place = 0i64;
                    for &digit in &table.digits {
                        let (at, size) = digits.get(digit)?;
                        place = place.checked_mul(*size)?.checked_add(*at)?;
                    }
                    *table.values.get(usize::try_from(place).ok()?)?
                }
                Atom::Lookup(lookup) => {
                    let place = self.position(&lookup.read, digits)?;
                    let at = (self.positions)(lookup.read.source, place)?;
                    if at < 0 { at.checked_add(self.dim(&lookup.size)?)? } else { at }
                }
            };
            sum = sum.checked_add(self.dim(&term.coefficient)?.checked_mul(value)?)?;
        }
        Some(sum)
    }
}
