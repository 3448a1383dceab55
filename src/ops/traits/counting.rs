//! Affine integer tensors: an offset and a step along each axis, both expressions in dims.
//!
//! The trait [`counts`](super::Traits::counts) in each family's file returns the affine form of a result from those
//! of its operands. This module contains their shared parts.

use std::cell::Cell;

use smallvec::SmallVec;

use super::{Movement, NodeFacts};
use crate::dim::{Dim, Scope};
use crate::index_map::Affine;
use crate::ir::{Facts, Model, ValueId};
use crate::tensor::DType;

/// The largest number of producers on a path from the tensor.
const MAX_DEPTH: usize = 24;

/// The largest number of nodes examined per tensor; a node reached on two paths counts twice.
const MAX_STEPS: usize = 128;

/// Larger constants are only checked for equal elements.
const MAX_CONSTANT: usize = 4096;

/// An integer (or boolean, as 0 and 1) tensor `t` with `t[i₀, i₁, …] = offset + Σ steps[k] · iₖ`.
///
/// The step along an axis of dim 1 is 0.
#[derive(Clone, Debug)]
pub struct Counting {
    /// The dim of each axis.
    pub shape: Vec<Dim>,
    /// The element at the origin.
    pub offset: Dim,
    /// The step along each axis.
    pub steps: Vec<Dim>,
}

impl Counting {
    /// Returns the affine form of a value, if it is proved: by its known content, or by its operator and operands.
    pub fn of(model: &Model, facts: &Facts, opset: i64, value: ValueId) -> Option<Self> {
        Trail { model, facts, opset, steps: Cell::new(MAX_STEPS) }.follow(value, MAX_DEPTH)
    }

    /// Creates a tensor with equal elements.
    pub fn splat(shape: Vec<Dim>, offset: Dim) -> Self {
        let steps = vec![Dim::constant(0); shape.len()];
        Counting { shape, offset, steps }
    }

    /// Returns `true` if all elements equal the offset.
    pub fn is_splat(&self) -> bool {
        self.steps.iter().all(|step| step.is_const(0))
    }

    /// Returns the axes with a step other than 0.
    pub fn moving(&self) -> SmallVec<[usize; 4]> {
        (0..self.steps.len()).filter(|&axis| self.steps.get(axis).is_some_and(|step| !step.is_const(0))).collect()
    }

    /// Returns a lower and an upper bound of the elements, if the signs of the steps are proved.
    pub fn bounds(&self, scope: &Scope) -> Option<(Dim, Dim)> {
        let (mut low, mut high) = (self.offset.clone(), self.offset.clone());
        for (step, dim) in self.steps.iter().zip(&self.shape) {
            let reach = scope.mul(step, &scope.sub(dim, &Dim::constant(1)));
            if scope.ge(step, &Dim::constant(0)).is_yes() {
                high = scope.add(&high, &reach);
            } else if scope.le(step, &Dim::constant(0)).is_yes() {
                low = scope.add(&low, &reach);
            } else {
                return None;
            }
        }
        Some((low, high))
    }

    /// Returns the same elements in a shape that differs in axes of size 1 only.
    fn with_other_ones(&self, to: &[Dim]) -> Option<Counting> {
        let mut wide = self.shape.iter().zip(&self.steps).filter(|(dim, _)| !dim.is_const(1));
        let step = |goal: &Dim| match goal.is_const(1) {
            true => Some(Dim::constant(0)),
            false => wide.next().filter(|(dim, _)| *dim == goal).map(|(_, step)| step.clone()),
        };
        let steps = to.iter().map(step).collect::<Option<_>>()?;
        wide.next().is_none().then(|| Counting { shape: to.to_vec(), offset: self.offset.clone(), steps })
    }

    /// Broadcasts the elements along axes of dim 1, and along new leading axes.
    pub fn spread(&self, scope: &Scope, to: &[Dim]) -> Option<Counting> {
        let added = to.len().checked_sub(self.shape.len())?;
        let mut steps = vec![Dim::constant(0); added];
        for ((dim, step), goal) in self.shape.iter().zip(&self.steps).zip(to.get(added..)?) {
            let keeps = step.is_const(0) || scope.eq(dim, goal).is_yes();
            if !keeps {
                return None;
            }
            steps.push(step.clone());
        }
        Some(Counting { shape: to.to_vec(), offset: self.offset.clone(), steps })
    }

    /// Multiplies all elements by a factor.
    pub fn scaled(mut self, scope: &Scope, factor: &Dim) -> Self {
        self.offset = scope.mul(&self.offset, factor);
        for step in &mut self.steps {
            *step = scope.mul(step, factor);
        }
        self
    }

    /// Returns the form of a node's result, unless an element may overflow the result's type.
    pub fn unless_wrapped(self, view: &NodeFacts<'_>) -> Option<Self> {
        let (scope, bits) = (view.scope(), view.result()?.dtype()?.bits()?);
        let (low, high) = self.bounds(scope)?;
        // In 64 bits, dims bound the elements of an existing tensor.
        let fits = |dim: &Dim| match bits {
            64.. => scope.fits_bits(dim, bits, true),
            _ => scope.lies_within(dim, -1 << bits.saturating_sub(1), (1 << bits.saturating_sub(1)) - 1),
        };
        (fits(&low) && fits(&high)).then_some(self)
    }

    /// Adds two tensors of equal shape element by element.
    pub fn plus(mut self, scope: &Scope, other: &Counting) -> Self {
        self.offset = scope.add(&self.offset, &other.offset);
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            *step = scope.add(step, other);
        }
        self
    }
}

/// The search from a tensor through its producers.
struct Trail<'a> {
    model: &'a Model,
    facts: &'a Facts,
    opset: i64,
    /// The number of nodes that may still be examined.
    steps: Cell<usize>,
}

impl Trail<'_> {
    fn follow(&self, value: ValueId, depth: usize) -> Option<Counting> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        let fact = self.facts.get(value)?;
        if !matches!(fact.dtype()?, DType::Int64 | DType::Int32 | DType::Bool) {
            return None;
        }
        let shape = fact.shape()?.to_vec();
        if let Some(known) = self.known(value, &shape) {
            return Some(known);
        }
        let view = NodeFacts::of(self.model, self.facts, self.model.value(value).producer()?, self.opset)?;
        let depth = depth.checked_sub(1)?;
        let operand = |slot: usize| self.follow(view.input(slot)?, depth);
        let traits = view.traits();
        if let Some(counts) = traits.counts {
            return counts(&view, &shape, &operand);
        }
        // All elements of a tensor with equal elements are equal, so moving them has no effect.
        let data = operand(0).filter(|data| traits.moves_first() && data.is_splat())?;
        Some(Counting::splat(shape, data.offset))
    }

    /// Returns the affine form of known content.
    fn known(&self, value: ValueId, shape: &[Dim]) -> Option<Counting> {
        let (fact, scope) = (self.facts.get(value)?, self.facts.scope());
        if let Some(tensor) = fact.constant_tensor() {
            if let Some(one) = tensor.uniform() {
                let [number] = one.to_i64s()?[..] else { return None };
                return Some(Counting::splat(shape.to_vec(), Dim::constant(number)));
            }
            if tensor.len() > MAX_CONSTANT {
                return None;
            }
            let numbers: Vec<Dim> = tensor.to_i64s()?.into_iter().map(Dim::constant).collect();
            return in_steps(scope, shape, &numbers);
        }
        in_steps(scope, shape, &fact.ints()?)
    }
}

/// Returns both operands of a node, broadcast to the result's shape by the rule since opset 7.
pub(in crate::ops) fn pair(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<(Counting, Counting)> {
    if view.opset < 7 {
        return None;
    }
    let spread = |slot| operand(slot)?.spread(view.scope(), shape);
    Some((spread(0)?, spread(1)?))
}

/// Returns the affine form of a movement of the first operand: that of the operand, composed with the index map.
pub(in crate::ops) fn moved(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    let data = operand(0)?;
    if data.is_splat() {
        return Some(Counting::splat(shape.to_vec(), data.offset));
    }
    // Both cases need no map: axes of size 1 have no steps, and a layout often keeps the others.
    let known = match view.traits().moves? {
        Movement::Layout => data.with_other_ones(shape),
        Movement::Spread => data.spread(view.scope(), shape),
        _ => None,
    };
    if known.is_some() {
        return known;
    }
    let map = view.traits().index_map?(view, 0).ok()?.map.reshaped(shape);
    let numbers = Affine { offset: data.offset, terms: data.steps.into_iter().enumerate().collect() };
    let moved = map.affine_result(view.scope(), &numbers)?;
    let mut count = Counting::splat(shape.to_vec(), moved.offset);
    for (axis, step) in moved.terms {
        *count.steps.get_mut(axis)? = step;
    }
    Some(count)
}

/// Returns offset and steps of the elements, if they are affine.
pub fn in_steps(scope: &Scope, shape: &[Dim], elements: &[Dim]) -> Option<Counting> {
    let sizes: Vec<usize> =
        shape.iter().map(|dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok())).collect::<Option<_>>()?;
    let offset = elements.first()?.clone();
    let mut stride = elements.len();
    let mut steps = Vec::with_capacity(sizes.len());
    for &size in &sizes {
        stride = stride.checked_div(size)?;
        let step = if size > 1 { scope.sub(elements.get(stride)?, &offset) } else { Dim::constant(0) };
        steps.push(step);
    }
    for (index, element) in elements.iter().enumerate() {
        let (mut rest, mut stride) = (index, elements.len());
        let mut expected = offset.clone();
        for (&size, step) in sizes.iter().zip(&steps) {
            stride /= size.max(1);
            let along = i64::try_from(rest / stride.max(1)).ok()?;
            rest %= stride.max(1);
            expected = scope.add(&expected, &scope.mul(step, &Dim::constant(along)));
        }
        if expected != *element {
            return None;
        }
    }
    Some(Counting { shape: shape.to_vec(), offset, steps })
}
