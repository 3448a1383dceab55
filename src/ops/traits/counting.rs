//! Tensors that count: an offset and a step along each axis, all of them expressions in the sizes.
//!
//! What an operator makes of such operands is its trait [`counts`](super::Traits::counts), written in the family's file. Here is what
//! they share.

use std::cell::Cell;

use smallvec::SmallVec;

use super::NodeFacts;
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model, ValueId};
use crate::tensor::DType;

/// How far back a tensor is followed through the nodes that compute it.
const MAX_DEPTH: usize = 24;

/// How many nodes are looked at for one tensor; a node that is reached on two ways counts twice.
const MAX_STEPS: usize = 128;

/// Constants with more elements are only asked whether all of them are one number.
const MAX_CONSTANT: usize = 4096;

/// An integer (or boolean, as 0 and 1) tensor `t` with `t[i₀, i₁, …] = offset + Σ steps[k] · iₖ`.
///
/// Along an axis of size 1 the step says nothing and is 0.
#[derive(Clone, Debug)]
pub struct Counting {
    /// The size of each axis.
    pub shape: Vec<Dim>,
    /// The element at the origin.
    pub offset: Dim,
    /// The step along each axis.
    pub steps: Vec<Dim>,
}

impl Counting {
    /// A value as a counting tensor, if it is proved to be one: what is known of its content, or else what its operator makes of its operands.
    pub fn of(model: &Model, facts: &Facts, opset: i64, value: ValueId) -> Option<Self> {
        Trail { model, facts, opset, steps: Cell::new(MAX_STEPS) }.follow(value, MAX_DEPTH)
    }

    /// One number everywhere.
    pub fn splat(shape: Vec<Dim>, offset: Dim) -> Self {
        let steps = vec![Dim::constant(0); shape.len()];
        Counting { shape, offset, steps }
    }

    /// Whether every element is the offset.
    pub fn is_splat(&self) -> bool {
        self.steps.iter().all(|step| step.is_const(0))
    }

    /// The axes along which it changes.
    pub fn moving(&self) -> SmallVec<[usize; 4]> {
        (0..self.steps.len()).filter(|&axis| self.steps.get(axis).is_some_and(|step| !step.is_const(0))).collect()
    }

    /// An expression no element is below, and one no element is above, where the signs of the steps are proved.
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

    /// The same elements in row-major order under another shape.
    pub fn reshaped(&self, scope: &Scope, to: &[Dim]) -> Option<Counting> {
        if self.is_splat() {
            return Some(Counting::splat(to.to_vec(), self.offset.clone()));
        }
        let one = |dim: &Dim| dim.is_const(1);
        let mut steps = vec![Dim::constant(0); to.len()];
        let mut from = self.shape.iter().zip(&self.steps).filter(|(dim, _)| !one(dim)).peekable();
        let mut open = to.iter().enumerate().filter(|(_, dim)| !one(dim)).peekable();
        while let Some((dim, step)) = from.next() {
            let (axis, goal) = open.next()?;
            if scope.eq(dim, goal).is_yes() {
                *steps.get_mut(axis)? = step.clone();
                continue;
            }
            // One axis is counted out along several: the inner ones make up its steps.
            let mut group: SmallVec<[(usize, &Dim); 4]> = SmallVec::new();
            group.push((axis, goal));
            let mut whole = goal.clone();
            while let Some(&(axis, goal)) = open.peek() {
                whole = scope.mul(&whole, goal);
                group.push((axis, goal));
                open.next();
                if scope.eq(&whole, dim).is_yes() {
                    break;
                }
            }
            if scope.eq(&whole, dim).is_yes() {
                let mut step = step.clone();
                for (axis, goal) in group.into_iter().rev() {
                    *steps.get_mut(axis)? = step.clone();
                    step = scope.mul(&step, goal);
                }
                continue;
            }
            // Several axes run together into one: each must go on where the next ends.
            let [(axis, goal)] = group.as_slice() else { return None };
            let (mut whole, mut inner) = (dim.clone(), step.clone());
            for (dim, step) in from.by_ref() {
                if !scope.eq(&inner, &scope.mul(step, dim)).is_yes() {
                    return None;
                }
                whole = scope.mul(&whole, dim);
                inner = step.clone();
                if scope.eq(&whole, goal).is_yes() {
                    break;
                }
            }
            if !scope.eq(&whole, goal).is_yes() {
                return None;
            }
            *steps.get_mut(*axis)? = inner;
        }
        open.next().is_none().then(|| Counting { shape: to.to_vec(), offset: self.offset.clone(), steps })
    }

    /// The elements spread along axes of size 1, and along new ones in front.
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

    /// Every element times a number.
    pub fn scaled(mut self, scope: &Scope, factor: &Dim) -> Self {
        self.offset = scope.mul(&self.offset, factor);
        for step in &mut self.steps {
            *step = scope.mul(step, factor);
        }
        self
    }

    /// What a node computed, if no element leaves the type of its result.
    pub fn unless_wrapped(self, view: &NodeFacts<'_>) -> Option<Self> {
        let (scope, bits) = (view.scope(), view.result()?.dtype()?.bits()?);
        let (low, high) = self.bounds(scope)?;
        // In 64 bits the elements of a tensor that there is are counted by its dims.
        let fits = |dim: &Dim| match bits {
            64.. => scope.fits_bits(dim, bits, true),
            _ => scope.lies_within(dim, -1 << bits.saturating_sub(1), (1 << bits.saturating_sub(1)) - 1),
        };
        (fits(&low) && fits(&high)).then_some(self)
    }

    /// The sum, element by element, of two of one shape.
    pub fn plus(mut self, scope: &Scope, other: &Counting) -> Self {
        self.offset = scope.add(&self.offset, &other.offset);
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            *step = scope.add(step, other);
        }
        self
    }
}

/// The way back from a tensor through the nodes that compute it.
struct Trail<'a> {
    model: &'a Model,
    facts: &'a Facts,
    opset: i64,
    /// How many more nodes may be looked at.
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
        // Any element of a tensor of one number is that number.
        let data = operand(0).filter(|data| traits.moves_first() && data.is_splat())?;
        Some(Counting::splat(shape, data.offset))
    }

    /// What the content that is already known says.
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

/// Both operands of a node, spread to the result's shape as they meet since operator set 7.
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

/// The first operand's elements in row-major order in the result's shape.
pub(in crate::ops) fn laid_out(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    operand(0)?.reshaped(view.scope(), shape)
}

/// The elements as an offset and steps, if that is what they are.
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
