//! What a counting tensor is, and how it is recognised.

use std::cell::Cell;

use smallvec::SmallVec;

use crate::dim::{Dim, Scope};
use crate::ir::{Node, NodeId, ValueId};
use crate::rewrite::Place;
use crate::rewrite::slices::cuts::taken;
use crate::slicing::Bound;
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
pub(super) struct Counting {
    /// The size of each axis.
    pub shape: Vec<Dim>,
    /// The element at the origin.
    pub offset: Dim,
    /// The step along each axis.
    pub steps: Vec<Dim>,
}

impl Counting {
    fn splat(shape: Vec<Dim>, offset: Dim) -> Self {
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
    fn reshaped(&self, scope: &Scope, to: &[Dim]) -> Option<Counting> {
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
    fn spread(&self, scope: &Scope, to: &[Dim]) -> Option<Counting> {
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

    fn scaled(mut self, scope: &Scope, factor: &Dim) -> Self {
        self.offset = scope.mul(&self.offset, factor);
        for step in &mut self.steps {
            *step = scope.mul(step, factor);
        }
        self
    }

    fn plus(mut self, scope: &Scope, other: &Counting) -> Self {
        self.offset = scope.add(&self.offset, &other.offset);
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            *step = scope.add(step, other);
        }
        self
    }
}

/// A value as a counting tensor, if it is proved to be one.
pub(super) fn counting(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    follow(place, value, MAX_DEPTH, &Cell::new(MAX_STEPS))
}

fn follow(place: &Place<'_>, value: ValueId, depth: usize, steps: &Cell<usize>) -> Option<Counting> {
    steps.set(steps.get().checked_sub(1)?);
    let fact = place.fact(value)?;
    let dtype = fact.dtype()?;
    if !matches!(dtype, DType::Int64 | DType::Int32 | DType::Bool) {
        return None;
    }
    let shape = fact.shape()?.to_vec();
    if let Some(known) = known(place, value, &shape) {
        return Some(known);
    }
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id).filter(|node| node.canonical_domain().is_empty())?;
    let depth = depth.checked_sub(1)?;
    let scope = place.scope();
    match node.op_type.as_str() {
        "Identity" => follow(place, node.input(0)?, depth, steps),
        "Range" => {
            let start = single(place, node.input(0)?)?;
            let delta = single(place, node.input(2)?)?;
            Some(Counting { shape, offset: start, steps: vec![delta] })
        }
        "ConstantOfShape" => {
            let [number] = node.tensor("value")?.to_i64s()?[..] else { return None };
            Some(Counting::splat(shape, Dim::constant(number)))
        }
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
            follow(place, node.input(0)?, depth, steps)?.reshaped(scope, &shape)
        }
        "Expand" => follow(place, node.input(0)?, depth, steps)?.spread(scope, &shape),
        "Transpose" => transposed(place, node, follow(place, node.input(0)?, depth, steps)?, shape),
        // Widening keeps every number.
        "Cast" if dtype == DType::Int64 || place.dtype(node.input(0)?)? == dtype => {
            Some(Counting { shape, ..follow(place, node.input(0)?, depth, steps)? })
        }
        "Neg" => Some(follow(place, node.input(0)?, depth, steps)?.scaled(scope, &Dim::constant(-1))),
        "Add" | "Sub" => {
            let (a, b) = pair(place, node, (depth, steps), &shape)?;
            let b = if node.op_type == "Sub" { b.scaled(scope, &Dim::constant(-1)) } else { b };
            Some(a.plus(scope, &b))
        }
        // The product of two sizes need not fit the narrower type.
        "Mul" if dtype == DType::Int64 => {
            let (a, b) = pair(place, node, (depth, steps), &shape)?;
            match (a.is_splat(), b.is_splat()) {
                (_, true) => Some(a.scaled(scope, &b.offset)),
                (true, false) => Some(b.scaled(scope, &a.offset)),
                (false, false) => None,
            }
        }
        "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" => {
            let (a, b) = pair(place, node, (depth, steps), &shape)?;
            let difference = a.plus(scope, &b.scaled(scope, &Dim::constant(-1)));
            let decided = decided(scope, &node.op_type, &difference)?;
            Some(Counting::splat(shape, Dim::constant(i64::from(decided))))
        }
        "And" | "Or" => {
            let absorbing = Dim::constant(i64::from(node.op_type == "Or"));
            let flag = |value| follow(place, value, depth, steps).filter(Counting::is_splat).map(|flag| flag.offset);
            let (a, b) = (flag(node.input(0)?), flag(node.input(1)?));
            if a.as_ref() == Some(&absorbing) || b.as_ref() == Some(&absorbing) {
                return Some(Counting::splat(shape, absorbing));
            }
            (a? == b?).then(|| Counting::splat(shape, Dim::constant(i64::from(node.op_type == "And"))))
        }
        "Not" => {
            let flag = follow(place, node.input(0)?, depth, steps)?;
            let flag = flag.is_splat().then_some(flag.offset.as_const()?)?;
            Some(Counting::splat(shape, Dim::constant(i64::from(flag == 0))))
        }
        "Slice" => sliced(place, id, follow(place, node.input(0)?, depth, steps)?, shape),
        // The places of a vector without zeros, one after the other.
        "NonZero" => {
            let [_] = place.shape(node.input(0)?)? else { return None };
            let data = follow(place, node.input(0)?, depth, steps)?;
            let full = data.is_splat() && data.offset.as_const().is_some_and(|number| number != 0);
            full.then(|| Counting { shape, offset: Dim::constant(0), steps: vec![Dim::constant(0), Dim::constant(1)] })
        }
        // Any entry of a tensor of one number is that number.
        "Gather" | "GatherElements" | "GatherND" | "Tile" => {
            let data = follow(place, node.input(0)?, depth, steps)?;
            data.is_splat().then(|| Counting::splat(shape, data.offset))
        }
        _ => None,
    }
}

/// Whether the comparison of a difference with 0 comes out the same everywhere.
fn decided(scope: &Scope, operator: &str, difference: &Counting) -> Option<bool> {
    let (low, high) = difference.bounds(scope)?;
    let zero = Dim::constant(0);
    let (ge, gt) = (scope.ge(&low, &zero).is_yes(), scope.gt(&low, &zero).is_yes());
    let (le, lt) = (scope.le(&high, &zero).is_yes(), scope.lt(&high, &zero).is_yes());
    match operator {
        "Equal" if ge && le => Some(true),
        "Equal" if gt || lt => Some(false),
        "Less" if lt => Some(true),
        "Less" if ge => Some(false),
        "LessOrEqual" if le => Some(true),
        "LessOrEqual" if gt => Some(false),
        "Greater" if gt => Some(true),
        "Greater" if le => Some(false),
        "GreaterOrEqual" if ge => Some(true),
        "GreaterOrEqual" if lt => Some(false),
        _ => None,
    }
}

/// The one number of a tensor with one element.
fn single(place: &Place<'_>, value: ValueId) -> Option<Dim> {
    let ints = place.fact(value)?.ints()?;
    match <[Dim; 1]>::try_from(ints) {
        Ok([number]) => Some(number),
        Err(_) => None,
    }
}

/// Both operands, spread to the result's shape.
fn pair(
    place: &Place<'_>,
    node: &Node,
    (depth, steps): (usize, &Cell<usize>),
    shape: &[Dim],
) -> Option<(Counting, Counting)> {
    if !place.opset.arithmetic_broadcasts() {
        return None;
    }
    let operand = |slot| follow(place, node.input(slot)?, depth, steps)?.spread(place.scope(), shape);
    Some((operand(0)?, operand(1)?))
}

fn transposed(place: &Place<'_>, node: &Node, from: Counting, shape: Vec<Dim>) -> Option<Counting> {
    let order = place.read(node).permutation(from.shape.len())?;
    let steps = order.iter().map(|&axis| from.steps.get(axis).cloned()).collect::<Option<Vec<Dim>>>()?;
    (steps.len() == shape.len()).then_some(Counting { shape, offset: from.offset, steps })
}

/// From `begin` on, every so many: the offset moves, and the steps grow.
fn sliced(place: &Place<'_>, id: NodeId, mut from: Counting, shape: Vec<Dim>) -> Option<Counting> {
    if from.is_splat() {
        return Some(Counting::splat(shape, from.offset));
    }
    let scope = place.scope();
    let (ranges, _) = taken(place, id)?;
    for (step, range) in from.steps.iter_mut().zip(&ranges) {
        let Some(range) = range else { continue };
        let begin = match &range.begin {
            Bound::At(begin) => begin.as_const().filter(|begin| *begin >= 0)?,
            Bound::Open => 0,
            Bound::Unknown => return None,
        };
        let stride = range.step.filter(|stride| *stride > 0)?;
        from.offset = scope.add(&from.offset, &scope.mul(step, &Dim::constant(begin)));
        *step = scope.mul(step, &Dim::constant(stride));
    }
    Some(Counting { shape, ..from })
}

/// What the content that is already known says.
fn known(place: &Place<'_>, value: ValueId, shape: &[Dim]) -> Option<Counting> {
    let fact = place.fact(value)?;
    if let Some(tensor) = fact.constant_tensor() {
        if let Some(one) = tensor.uniform() {
            let [number] = one.to_i64s()?[..] else { return None };
            return Some(Counting::splat(shape.to_vec(), Dim::constant(number)));
        }
        if tensor.len() > MAX_CONSTANT {
            return None;
        }
        let numbers: Vec<Dim> = tensor.to_i64s()?.into_iter().map(Dim::constant).collect();
        return in_steps(place.scope(), shape, &numbers);
    }
    in_steps(place.scope(), shape, &fact.ints()?)
}

/// The elements as an offset and steps, if that is what they are.
fn in_steps(scope: &Scope, shape: &[Dim], elements: &[Dim]) -> Option<Counting> {
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

/// The columns of an index tensor `[…, k]`, constant or a Concat of `k` along the last axis, each as a counting tensor over the
/// other axes.
pub(super) fn columns(place: &Place<'_>, indices: ValueId) -> Option<Vec<(Counting, ValueId)>> {
    let rank = place.shape(indices)?.len();
    let last = rank.checked_sub(1)?;
    if let Some(tensor) = place.constant(indices).filter(|tensor| tensor.len() <= MAX_CONSTANT) {
        let shape = place.shape(indices)?;
        let width = usize::try_from(shape.get(last)?.as_const()?).ok().filter(|width| *width > 0)?;
        let front = shape.get(..last)?;
        let numbers: Vec<Dim> = tensor.to_i64s()?.into_iter().map(Dim::constant).collect();
        let column = |at: usize| {
            let elements: Vec<Dim> = numbers.iter().skip(at).step_by(width).cloned().collect();
            Some((in_steps(place.scope(), front, &elements)?, indices))
        };
        return (0..width).map(column).collect();
    }
    let (_, concat) = place.producer(indices, "Concat")?;
    if place.read(concat).axis(rank)? != last {
        return None;
    }
    let column = |value: &Option<ValueId>| {
        let value = (*value)?;
        let mut count = counting(place, value)?;
        count.steps.pop()?;
        count.shape.pop()?.is_const(1).then_some((count, value))
    };
    concat.inputs().iter().map(column).collect()
}
