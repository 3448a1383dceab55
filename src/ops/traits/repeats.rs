//! What operators make of operands that are spread from smaller ones.
//!
//! Law: let `v` be `w` repeated along some axes. An operator that treats the places of an axis alike, each for itself, repeats its
//! result along that axis: `f(v)` is `f(w)` repeated. Which axes an operator treats so follows from its traits, or is told by
//! its trait [`repeats`](super::Traits::repeats); along the others `w` must have its full size.

use smallvec::SmallVec;

use super::{NodeFacts, Operands, Traits, Variation};
use crate::dim::{Dim, Scope};
use crate::ir::ValueId;

/// A node whose operands have smaller forms.
pub struct Repetition<'a> {
    /// The node.
    pub view: NodeFacts<'a>,
    /// The dims of the smaller form of a value, if it has one. They line up with those of the value at the end.
    pub narrow: &'a dyn Fn(ValueId) -> Option<&'a [Dim]>,
    /// The shape of the result on the operands as they are.
    pub goal: &'a [Dim],
}

impl<'a> Repetition<'a> {
    /// The shape of the node's result on the smaller forms of its operands; `None` if it tells apart places where they only repeat, or
    /// if it might fail where it did not. If `exact`, only if results stay equal bit for bit.
    pub fn shape(&self, exact: bool) -> Option<Vec<Dim>> {
        self.shape_by(self.view.traits(), exact)
    }

    /// The same for an operator that says this of itself.
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

    /// Whether the smaller result has elements only if the result has: what fails for one of them fails for one of those.
    fn runs_alike(&self, shape: &[Dim]) -> bool {
        let Some(added) = self.goal.len().checked_sub(shape.len()) else { return false };
        self.goal.iter().enumerate().all(|(axis, wide)| {
            let own = axis.checked_sub(added).and_then(|axis| shape.get(axis));
            own.is_some_and(|own| self.view.equal(own, wide)) || self.view.at_least(wide, 1)
        })
    }

    /// The dims of an operand's smaller form.
    pub fn smaller(&self, value: ValueId) -> Option<&'a [Dim]> {
        (self.narrow)(value)
    }

    /// The dims of an operand as it is.
    pub fn wide(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.view.facts.get(value)?.shape()
    }

    /// The dims of an operand, of its smaller form where there is one.
    pub fn dims(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.smaller(value).or_else(|| self.wide(value))
    }

    /// Whether no operand but the first has a smaller form.
    pub fn others_stay(&self) -> bool {
        self.view.node.inputs().iter().skip(1).flatten().all(|&other| self.smaller(other).is_none())
    }

    /// The dims of the first operand's smaller form and as they are; it must have all axes, and no other operand a smaller form.
    pub fn only_first(&self) -> Option<(&'a [Dim], &'a [Dim])> {
        let data = self.view.input(0)?;
        let (narrow, wide) = (self.dims(data)?, self.wide(data)?);
        (self.others_stay() && narrow.len() == wide.len()).then_some((narrow, wide))
    }

    /// All operands are broadcast against each other.
    fn elementwise(&self) -> Option<Vec<Dim>> {
        let inputs = self.view.node.inputs().iter();
        let shapes: SmallVec<[&[Dim]; 4]> = inputs.map(|input| self.dims((*input)?)).collect::<Option<_>>()?;
        broadcast_narrow(self.view.scope(), &shapes, self.goal)
    }

    /// Element by element, with single numbers as further operands.
    fn by_numbers(&self) -> Option<Vec<Dim>> {
        let data = self.smaller(self.view.input(0)?)?;
        let mut rest = self.view.node.inputs().iter().skip(1).flatten();
        let single = rest.all(|&other| self.wide(other).is_some_and(<[Dim]>::is_empty));
        (single && self.others_stay()).then(|| data.to_vec())
    }

    /// An operator that keeps the shape and tells places apart along these axes only.
    fn along(&self, axes: &[usize]) -> Option<Vec<Dim>> {
        let (narrow, wide) = self.only_first()?;
        let whole = |&axis: &usize| Some(self.view.equal(narrow.get(axis)?, wide.get(axis)?));
        axes.iter().all(|axis| whole(axis) == Some(true)).then(|| narrow.to_vec())
    }

    /// An operator that takes axes away, or leaves them with size 1, and treats places along the others alike. Kernels may fail where
    /// nothing is reduced to one number, so that the axes must hold something.
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

    /// Elements stay in order; axes that are run together or taken apart must all repeat, or none of them.
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

/// What shapes broadcast to that are known to be spread to `goal`. `None` if it is not clear.
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
