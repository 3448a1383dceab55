//! Infers results for operands that are broadcast from smaller ones.
//!
//! Law: let `v` be `w` repeated along some axes. If an operator maps the slices along an axis equally and
//! independently, its result repeats along that axis: `f(v)` is `f(w)` repeated. An operator's traits or its trait
//! [`repeats`](super::Traits::repeats) determine these axes; along the others `w` must have its full dim.

use smallvec::SmallVec;

use super::{NodeFacts, Operands, Traits, Variation};
use crate::dim::{Dim, Scope};
use crate::ir::ValueId;

/// A node whose operands have smaller forms.
pub struct Repetition<'a> {
    /// The node.
    pub view: NodeFacts<'a>,
    /// Returns the dims of a value's smaller form, if it has one. They are aligned with the value's last dims.
    pub narrow: &'a dyn Fn(ValueId) -> Option<&'a [Dim]>,
    /// The shape of the result for the original operands.
    pub goal: &'a [Dim],
}

impl<'a> Repetition<'a> {
    /// Returns the shape of the node's result for the smaller operands. `None` if the result may not repeat, or if
    /// the node may fail only for the smaller operands. `exact` requires equal bits.
    pub fn shape(&self, exact: bool) -> Option<Vec<Dim>> {
        self.shape_by(self.view.traits(), exact)
    }

    /// Returns the same shape for an operator with these traits.
    pub(super) fn shape_by(&self, traits: &Traits, exact: bool) -> Option<Vec<Dim>> {
        let most = if exact { Variation::None } else { Variation::Rounding };
        if self.view.dtype(0).is_none_or(|dtype| traits.variation(dtype) > most) {
            return None;
        }
        let shape = match (traits.repeats, traits.pointwise, traits.mixes, traits.reduces) {
            (Some(repeats), ..) => repeats(self)?,
            (_, Some(pointwise), ..) => match pointwise.operands {
                Operands::Broadcast => self.elementwise()?,
                Operands::First | Operands::Scaled => self.by_numbers()?,
                Operands::Stretched => return None,
            },
            (.., Some(mixes), _) => self.along(&mixes(&self.view)?)?,
            (.., Some(reduction)) => self.reduced((reduction.axes)(&self.view)?)?,
            _ => return None,
        };
        (traits.cannot_fail(&self.view) || self.runs_alike(&shape)).then_some(shape)
    }

    /// Returns `true` if the smaller result has elements only if the original has: each failure then also occurs in
    /// the original.
    fn runs_alike(&self, shape: &[Dim]) -> bool {
        let Some(added) = self.goal.len().checked_sub(shape.len()) else { return false };
        self.goal.iter().enumerate().all(|(axis, wide)| {
            let own = axis.checked_sub(added).and_then(|axis| shape.get(axis));
            own.is_some_and(|own| self.view.equal(own, wide)) || self.view.at_least(wide, 1)
        })
    }

    /// Returns the dims of an operand's smaller form.
    pub fn smaller(&self, value: ValueId) -> Option<&'a [Dim]> {
        (self.narrow)(value)
    }

    /// Returns the dims of the original operand.
    pub fn wide(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.view.facts.get(value)?.shape()
    }

    /// Returns the dims of an operand's smaller form, or else of the original.
    pub fn dims(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.smaller(value).or_else(|| self.wide(value))
    }

    /// Returns `true` if no operand but the first has a smaller form.
    pub fn others_stay(&self) -> bool {
        self.view.node.inputs().iter().skip(1).flatten().all(|&other| self.smaller(other).is_none())
    }

    /// Returns the smaller and original dims of the first operand; `None` if their ranks differ or another operand is
    /// smaller.
    pub fn only_first(&self) -> Option<(&'a [Dim], &'a [Dim])> {
        let data = self.view.input(0)?;
        let (narrow, wide) = (self.dims(data)?, self.wide(data)?);
        (self.others_stay() && narrow.len() == wide.len()).then_some((narrow, wide))
    }

    /// Infers the shape if all operands are broadcast against each other.
    fn elementwise(&self) -> Option<Vec<Dim>> {
        let inputs = self.view.node.inputs().iter();
        let shapes: SmallVec<[&[Dim]; 4]> = inputs.map(|input| self.dims((*input)?)).collect::<Option<_>>()?;
        broadcast_narrow(self.view.scope(), &shapes, self.goal)
    }

    /// Infers the shape of a pointwise result with scalars as further operands.
    fn by_numbers(&self) -> Option<Vec<Dim>> {
        let data = self.smaller(self.view.input(0)?)?;
        let mut rest = self.view.node.inputs().iter().skip(1).flatten();
        let single = rest.all(|&other| self.wide(other).is_some_and(<[Dim]>::is_empty));
        (single && self.others_stay()).then(|| data.to_vec())
    }

    /// Infers the shape of an operator that keeps the shape and mixes only these axes.
    fn along(&self, axes: &[usize]) -> Option<Vec<Dim>> {
        let (narrow, wide) = self.only_first()?;
        let whole = |&axis: &usize| Some(self.view.equal(narrow.get(axis)?, wide.get(axis)?));
        axes.iter().all(|axis| whole(axis) == Some(true)).then(|| narrow.to_vec())
    }

    /// Infers the shape of a reduction, which maps slices along the other axes equally. Kernels may fail if the
    /// reduced axes are empty, so these must not be.
    fn reduced(&self, (axes, keeps): (Vec<usize>, bool)) -> Option<Vec<Dim>> {
        let (narrow, wide) = self.only_first()?;
        let is_whole = |&axis: &usize| {
            let (own, dim) = (narrow.get(axis)?, wide.get(axis)?);
            Some(self.view.equal(own, dim) && self.view.at_least(dim, 1))
        };
        if !axes.iter().all(|axis| is_whole(axis) == Some(true)) {
            return None;
        }
        let one = Dim::constant(1);
        let own = narrow.iter().enumerate().filter_map(|(axis, dim)| match axes.contains(&axis) {
            true => keeps.then(|| one.clone()),
            false => Some(dim.clone()),
        });
        Some(own.collect())
    }

    /// Infers the shape of a result with the elements in order. Among merged or split axes, all must repeat or none.
    pub fn layout(&self) -> Option<Vec<Dim>> {
        let data = self.view.input(0)?;
        let wide = self.wide(data)?;
        let narrow = self.smaller(data)?;
        if !self.others_stay() {
            return None;
        }
        let scope = self.view.scope();
        let one = Dim::constant(1);
        let added = wide.len().checked_sub(narrow.len())?;
        let mut full = vec![one.clone(); added];
        full.extend_from_slice(narrow);
        let (from, to) = (wide, self.goal);
        let (mut i, mut j) = (0, 0);
        let mut shape = Vec::with_capacity(to.len());
        while i < from.len() || j < to.len() {
            match (from.get(i), to.get(j)) {
                (Some(a), Some(b)) if self.view.equal(a, b) => {
                    shape.push(full.get(i)?.clone());
                    (i, j) = (i + 1, j + 1);
                }
                (_, Some(b)) if b.is_const(1) => {
                    shape.push(one.clone());
                    j += 1;
                }
                (Some(a), _) if a.is_const(1) => i += 1,
                _ => {
                    let (a, b) = (from.get(i..)?, to.get(j..)?);
                    let back = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| self.view.equal(a, b)).count();
                    let (a, b) = (a.get(..a.len().checked_sub(back)?)?, b.get(..b.len().checked_sub(back)?)?);
                    let own = full.get(i..)?.get(..a.len())?;
                    if !self.view.equal(&scope.product(a), &scope.product(b)) {
                        return None;
                    }
                    if own.iter().zip(a).all(|(own, dim)| self.view.equal(own, dim)) {
                        shape.extend_from_slice(b);
                    } else if own.iter().all(|own| own.is_const(1)) {
                        shape.extend(b.iter().map(|_| one.clone()));
                    } else {
                        return None;
                    }
                    (i, j) = (i + a.len(), j + b.len());
                }
            }
        }
        Some(shape)
    }
}

/// Returns the broadcast shape of shapes that are known to broadcast to `goal`. `None` if it is undecided.
pub fn broadcast_narrow(scope: &Scope, shapes: &[&[Dim]], goal: &[Dim]) -> Option<Vec<Dim>> {
    let rank = shapes.iter().map(|shape| shape.len()).max()?;
    let mut result = Vec::with_capacity(rank);
    for (axis, dim) in goal.iter().enumerate().skip(goal.len().checked_sub(rank)?) {
        let along = |shape: &&[Dim]| shape.get((axis + shape.len()).checked_sub(goal.len())?).cloned();
        let mut dims = shapes.iter().filter_map(along);
        let reaches = dims.clone().any(|own| scope.eq(&own, dim).is_yes());
        if !reaches && !dims.all(|own| own.is_const(1)) {
            return None;
        }
        result.push(if reaches { dim.clone() } else { Dim::constant(1) });
    }
    Some(result)
}
