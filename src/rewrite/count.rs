//! Tensors of integers that count along their axes: what stands at a place is a sum of multiples of its indices.
//!
//! Exporters make masks of such tensors: `mask[b, k]` is gathered with the numbers of the rows and of the columns, which gives
//! the mask again. Laws, for `v[i] = c + Σ sₖ·iₖ`:
//!
//! * `Gather(x, v)` along an axis that `v` counts through in order is `x`, with the axes of `v` in the axis' place
//! * `GatherND(x, [v₀ … vₘ])`, where each counts along an axis of its own, in order, is `x`, with axes of size 1 between
//! * `ReverseSequence(x, v)`, where all of `v` is the length of the axis, is `x[::-1]`
//! * `v ≥ w` holds throughout where it holds at each end of every axis

use super::merge::place_reshape;
use super::slices::taken;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NewNode, Node, ValueId};
use crate::ops::axis_in;
use crate::slicing::Bound;
use crate::tensor::DType;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "gather-in-order", operators: &["Gather"], exact: true, apply: gather },
    Rule { name: "gather-nd-in-order", operators: &["GatherND"], exact: true, apply: gather_nd },
    Rule { name: "reverse-whole", operators: &["ReverseSequence"], exact: true, apply: reverse },
];

/// How many nodes are looked at in a row.
const REACH: usize = 16;

/// How large constants are looked at.
const SMALL: usize = 4096;

/// `v[i] = offset + Σ steps[k]·i[k]`. A step along an axis of size 1 is 0.
#[derive(Clone, Debug)]
pub(super) struct Count {
    pub offset: Dim,
    pub steps: Vec<Dim>,
    pub dims: Vec<Dim>,
}

impl Count {
    /// How a tensor of integers counts, if it is known to.
    pub fn of(place: &Place<'_>, value: ValueId) -> Option<Count> {
        Count::within(place, value, REACH)
    }

    fn within(place: &Place<'_>, value: ValueId, reach: usize) -> Option<Count> {
        let reach = reach.checked_sub(1)?;
        let dims = place.shape(value)?.to_vec();
        if !matches!(place.dtype(value)?, DType::Int64 | DType::Int32) {
            return None;
        }
        let mut count = match known(place, value, &dims) {
            Some(count) => count,
            None => {
                let node = place.model.value(value).producer().and_then(|id| place.model.node(id))?;
                Count::computed(place, node, &dims, reach)?
            }
        };
        for (step, dim) in count.steps.iter_mut().zip(&dims) {
            if dim.is_const(1) {
                *step = Dim::constant(0);
            }
        }
        (count.steps.len() == dims.len()).then_some(Count { dims, ..count })
    }

    fn computed(place: &Place<'_>, node: &Node, dims: &[Dim], reach: usize) -> Option<Count> {
        if !node.canonical_domain().is_empty() || node.outputs().len() != 1 {
            return None;
        }
        let scope = place.scope();
        let operand = |slot: usize| Count::within(place, node.input(slot)?, reach);
        let dims = dims.to_vec();
        match node.op_type.as_str() {
            "Range" => {
                let scalar = |slot: usize| place.fact(node.input(slot)?)?.ints()?.first().cloned();
                Some(Count { offset: scalar(0)?, steps: vec![scalar(2)?], dims })
            }
            "Identity" => operand(0),
            // A wider type holds the same integers.
            "Cast" if place.dtype(node.output(0)?)? == DType::Int64 => operand(0),
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
                let inner = operand(0)?;
                let long = |(dim, step): (&Dim, &Dim)| (!dim.is_const(1)).then(|| (dim.clone(), step.clone()));
                let mut rest = inner.dims.iter().zip(&inner.steps).filter_map(long);
                let mut steps = Vec::with_capacity(dims.len());
                for dim in &dims {
                    if dim.is_const(1) {
                        steps.push(Dim::constant(0));
                    } else {
                        let (own, step) = rest.next()?;
                        scope.eq(&own, dim).is_yes().then_some(())?;
                        steps.push(step);
                    }
                }
                rest.next().is_none().then_some(Count { offset: inner.offset, steps, dims })
            }
            "Expand" => Some(operand(0)?.stretched(place, &dims)?),
            "Transpose" => {
                let inner = operand(0)?;
                let perm = super::merge::permutation(node, inner.dims.len())?;
                let steps = perm.iter().map(|&axis| inner.steps.get(axis).cloned()).collect::<Option<_>>()?;
                Some(Count { offset: inner.offset, steps, dims })
            }
            "Add" | "Sub" if place.opset >= 7 => {
                let (a, b) = (operand(0)?.stretched(place, &dims)?, operand(1)?.stretched(place, &dims)?);
                let join = |a: &Dim, b: &Dim| if node.is("Add") { scope.add(a, b) } else { scope.sub(a, b) };
                let steps = a.steps.iter().zip(&b.steps).map(|(a, b)| join(a, b)).collect();
                Some(Count { offset: join(&a.offset, &b.offset), steps, dims })
            }
            // The product of two sizes need not fit the narrower type.
            "Mul" if place.opset >= 7 && place.dtype(node.output(0)?)? == DType::Int64 => {
                let (a, b) = (operand(0)?.stretched(place, &dims)?, operand(1)?.stretched(place, &dims)?);
                let (count, factor) =
                    if b.is_uniform() { (a, b.offset) } else { (b, a.is_uniform().then_some(a.offset)?) };
                let steps = count.steps.iter().map(|step| scope.mul(step, &factor)).collect();
                Some(Count { offset: scope.mul(&count.offset, &factor), steps, dims })
            }
            "Slice" => {
                let inner = operand(0)?;
                let slice = taken(place, place.model.value(node.output(0)?).producer()?)?;
                let (mut offset, mut steps) = (inner.offset, inner.steps);
                for (step, range) in steps.iter_mut().zip(&slice.ranges) {
                    let Some(range) = range else { continue };
                    let begin = match &range.begin {
                        Bound::At(begin) => begin.as_const().filter(|&begin| begin >= 0)?,
                        Bound::Open => 0,
                        Bound::Unknown => return None,
                    };
                    let stride = range.step.filter(|&stride| stride > 0)?;
                    offset = scope.add(&offset, &scope.mul(step, &Dim::constant(begin)));
                    *step = scope.mul(step, &Dim::constant(stride));
                }
                Some(Count { offset, steps, dims })
            }
            _ => None,
        }
    }

    /// The same, stretched to the shape of a result it is broadcast to.
    fn stretched(self, place: &Place<'_>, dims: &[Dim]) -> Option<Count> {
        let missing = dims.len().checked_sub(self.dims.len())?;
        let mut steps = vec![Dim::constant(0); missing];
        for ((own, step), dim) in self.dims.iter().zip(self.steps).zip(dims.get(missing..)?) {
            // What has size 1 is repeated, and has no step.
            if !own.is_const(1) && !place.scope().eq(own, dim).is_yes() {
                return None;
            }
            steps.push(step);
        }
        Some(Count { offset: self.offset, steps, dims: dims.to_vec() })
    }

    fn is_uniform(&self) -> bool {
        self.steps.iter().all(|step| step.is_const(0))
    }

    /// Whether it counts 0, 1, 2 … through all its places in order. How many there are, if so.
    fn in_order(&self, place: &Place<'_>) -> Option<Dim> {
        let scope = place.scope();
        let mut next = Dim::constant(1);
        for (dim, step) in self.dims.iter().zip(&self.steps).rev() {
            if dim.is_const(1) {
                continue;
            }
            scope.eq(step, &next).is_yes().then_some(())?;
            next = scope.mul(&next, dim);
        }
        self.offset.is_const(0).then_some(next)
    }

    /// Whether no element is less than `least`.
    pub fn is_at_least(&self, place: &Place<'_>, least: i64) -> bool {
        let scope = place.scope();
        let zero = Dim::constant(0);
        let mut low = self.offset.clone();
        for (dim, step) in self.dims.iter().zip(&self.steps) {
            if scope.ge(step, &zero).is_yes() {
                continue;
            }
            if !scope.le(step, &zero).is_yes() {
                return false;
            }
            low = scope.add(&low, &scope.mul(step, &scope.sub(dim, &Dim::constant(1))));
        }
        scope.ge(&low, &Dim::constant(least)).is_yes()
    }

    /// The difference of two such tensors, broadcast against each other to this shape.
    pub fn minus(self, other: Count, place: &Place<'_>, dims: &[Dim]) -> Option<Count> {
        let (a, b) = (self.stretched(place, dims)?, other.stretched(place, dims)?);
        let scope = place.scope();
        let steps = a.steps.iter().zip(&b.steps).map(|(a, b)| scope.sub(a, b)).collect();
        Some(Count { offset: scope.sub(&a.offset, &b.offset), steps, dims: dims.to_vec() })
    }
}

/// What is known of the content: the same everywhere, or numbers in equal steps along each axis.
fn known(place: &Place<'_>, value: ValueId, dims: &[Dim]) -> Option<Count> {
    let fact = place.fact(value)?;
    let uniform = |offset: Dim| Count { offset, steps: vec![Dim::constant(0); dims.len()], dims: dims.to_vec() };
    if let Some(tensor) = fact.constant_tensor().filter(|tensor| tensor.len() > SMALL) {
        return Some(uniform(Dim::constant(tensor.uniform()?.to_i64s()?.first().copied()?)));
    }
    let elements = fact.ints()?;
    let first = elements.first()?.clone();
    if elements.iter().all(|element| *element == first) {
        return Some(uniform(first));
    }
    let numbers: Vec<i64> = elements.iter().map(Dim::as_const).collect::<Option<_>>()?;
    let sizes: Vec<usize> = dims.iter().map(|dim| usize::try_from(dim.as_const()?).ok()).collect::<Option<_>>()?;
    Count::of_numbers(&numbers, &sizes)
}

impl Count {
    /// How numbers in row-major order count.
    fn of_numbers(numbers: &[i64], sizes: &[usize]) -> Option<Count> {
        let offset = *numbers.first()?;
        let strides = crate::tensor::strides_of(sizes)?;
        let step = |(&size, &stride): (&usize, &isize)| {
            if size == 1 { Some(0) } else { numbers.get(usize::try_from(stride).ok()?)?.checked_sub(offset) }
        };
        let steps: Vec<i64> = sizes.iter().zip(strides.iter()).map(step).collect::<Option<_>>()?;
        let mut indices = crate::tensor::Indices::new(sizes);
        for &number in numbers {
            let place = indices.advance()?;
            let mut expected = offset;
            for (&index, &step) in place.iter().zip(&steps) {
                expected = expected.checked_add(step.checked_mul(i64::try_from(index).ok()?)?)?;
            }
            (expected == number).then_some(())?;
        }
        let dims = sizes.iter().map(|&size| i64::try_from(size).ok().map(Dim::constant)).collect::<Option<_>>()?;
        Some(Count { offset: Dim::constant(offset), steps: steps.into_iter().map(Dim::constant).collect(), dims })
    }
}

/// `Gather(x, v)`, where `v` counts through the axis in order.
fn gather(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let data = node.input(0)?;
    let dims = place.shape(data)?;
    let axis = match node.attribute("axis") {
        None => 0,
        Some(Attribute::Int(axis)) => axis_in(*axis, dims.len()).ok()?,
        Some(_) => return None,
    };
    let total = Count::of(place, node.input(1)?)?.in_order(place)?;
    if !place.scope().eq(&total, dims.get(axis)?).is_yes() {
        return None;
    }
    place_reshape(place, "gather-in-order", data)
}

/// `GatherND(x, v)`, where each number of a place counts along an axis of `v` of its own, in order.
fn gather_nd(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, indices) = (node.input(0)?, node.input(1)?);
    match node.attribute("batch_dims") {
        None | Some(Attribute::Int(0)) => {}
        Some(_) => return None,
    }
    let counts = columns(place, indices)?;
    let dims = place.shape(data)?.to_vec();
    let mut next = 0;
    let mut cut = None;
    for (at, (count, dim)) in counts.iter().zip(&dims).enumerate() {
        let mut long = count.dims.iter().zip(&count.steps).enumerate().filter(|(_, (_, step))| !step.is_const(0));
        let Some((axis, (size, step))) = long.next().filter(|_| long.next().is_none()) else {
            // Along an axis of size 1 there is only 0.
            if count.is_uniform() && dim.is_const(1) {
                continue;
            }
            return None;
        };
        if axis < next || !step.is_const(1) || !count.offset.is_const(0) {
            return None;
        }
        next = axis.checked_add(1)?;
        if !place.scope().eq(size, dim).is_yes() {
            // Only the first of the rows are there, as many as something else has.
            if cut.is_some() {
                return None;
            }
            cut = Some((at, size.clone()));
        }
    }
    // Nothing is repeated: every axis that is not of size 1 is counted along.
    let along = |axis: usize| counts.iter().any(|count| count.steps.get(axis).is_some_and(|step| !step.is_const(0)));
    let lead = &counts.first()?.dims;
    if lead.iter().enumerate().any(|(axis, dim)| !dim.is_const(1) && !along(axis)) {
        return None;
    }
    let rule = "gather-nd-in-order";
    let Some((axis, size)) = cut else { return place_reshape(place, rule, data) };
    let output = place.output(0)?;
    let (source, from) = holder(place, &size)?;
    let (end, zero) = (place.new_value(output, "end"), place.new_value(output, "start"));
    let (axes, part) = (place.new_value(output, "axes"), place.new_value(output, "part"));
    let to_dim = |axis: usize| i64::try_from(axis).ok();
    let mut edit = place.edit(rule)?.removing(place.id);
    let shape =
        NewNode::new("Shape", [Some(source)]).with("start", to_dim(from)?).with("end", to_dim(from)?.checked_add(1)?);
    edit.insert.push(shape.output(end));
    edit.constants.push((zero, crate::tensor::Tensor::vector(vec![0i64])));
    edit.constants.push((axes, crate::tensor::Tensor::vector(vec![to_dim(axis)?])));
    edit.insert.push(NewNode::new("Slice", [Some(data), Some(zero), Some(end), Some(axes)]).output(part));
    let mut dims = dims;
    *dims.get_mut(axis)? = size;
    super::merge::insert_reshape(place, &mut edit, part, &dims, output)?;
    Some(edit)
}

/// `ReverseSequence(x, v)` along an axis that all of `v` is the length of.
fn reverse(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, output) = (node.input(0)?, node.output(0)?);
    let axis = match node.attribute("time_axis") {
        None => 0,
        Some(Attribute::Int(axis @ (0 | 1))) => *axis,
        Some(_) => return None,
    };
    let dim = place.shape(data)?.get(usize::try_from(axis).ok()?)?;
    let lengths = Count::of(place, node.input(1)?)?;
    if !lengths.is_uniform() || !place.scope().eq(&lengths.offset, dim).is_yes() {
        return None;
    }
    let name = node.name.clone();
    let mut edit = place.edit("reverse-whole")?.removing(place.id);
    let mut inputs = vec![Some(data)];
    for (suffix, number) in [("starts", -1), ("ends", i64::MIN), ("axes", axis), ("steps", -1)] {
        let constant = place.new_value(output, suffix);
        edit.constants.push((constant, crate::tensor::Tensor::vector(vec![number])));
        inputs.push(Some(constant));
    }
    Some(edit.inserting(NewNode::new("Slice", inputs).named(name).output(output)))
}

/// An input of the main graph with such a dim, and its axis.
fn holder(place: &Place<'_>, size: &Dim) -> Option<(ValueId, usize)> {
    if place.opset < 15 {
        return None;
    }
    let main = place.model.graph(place.model.main());
    main.inputs().iter().find_map(|&input| {
        let axis = place.shape(input)?.iter().position(|dim| place.scope().eq(dim, size).is_yes())?;
        Some((input, axis))
    })
}

/// The numbers of places that a GatherND reads: how each counts over the places.
fn columns(place: &Place<'_>, indices: ValueId) -> Option<Vec<Count>> {
    if let Some(tensor) = place.constant(indices).filter(|tensor| tensor.len() <= SMALL) {
        let (numbers, (&width, sizes)) = (tensor.to_i64s()?, tensor.shape().split_last()?);
        let column = |at: usize| {
            let column: Vec<i64> = numbers.iter().skip(at).step_by(width.max(1)).copied().collect();
            Count::of_numbers(&column, sizes)
        };
        return (0..width).map(column).collect();
    }
    let (_, concat) = place.producer(indices, "Concat")?;
    let rank = place.shape(indices)?.len();
    let last = rank.checked_sub(1)?;
    match concat.attribute("axis")? {
        Attribute::Int(axis) if axis_in(*axis, rank).ok()? == last => {}
        _ => return None,
    }
    let column = |value: &Option<ValueId>| {
        let mut count = Count::of(place, (*value)?)?;
        let dim = count.dims.pop()?;
        count.steps.pop()?;
        dim.is_const(1).then_some(count)
    };
    concat.inputs().iter().map(column).collect()
}
