//! Lookups whose indices only count.
//!
//! Laws, for data `x` and indices that count in order from `o`:
//! `Gather(x, [o, o + 1, … ])` is `x[o : o + n]` with the axes the indices are laid out in; and
//! `GatherND(x, [i₀, …, iₖ])` with `iₘ = oₘ + (position along axis aₘ)` and `a₀ < … < aₖ` is `x[o₀ : o₀ + n₀, …, oₖ : oₖ + nₖ]`
//! with axes of size 1 in between. An index beyond the data fails in either reading of the model that gives a result.

use super::counting::{Counting, MAX_CONSTANT, counting, in_steps};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NewNode, ValueId};
use crate::rewrite::Place;
use crate::rewrite::merge::{insert_reshape, place_reshape};
use crate::tensor::Tensor;

pub(super) fn in_order(place: &Place<'_>) -> Option<Edit> {
    if place.node()?.op_type == "Gather" { gather(place) } else { gather_nd(place) }
}

/// A part of an axis: `x[start : start + size]`.
struct Part {
    axis: usize,
    start: i64,
    size: Dim,
    /// A value whose first axis has that size.
    witness: ValueId,
}

fn gather(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, indices) = (node.input(0)?, node.input(1)?);
    if place.constant(indices).is_some() {
        return None;
    }
    let from = place.shape(data)?.to_vec();
    let axis = match node.attribute("axis") {
        Some(Attribute::Int(axis)) if *axis < 0 => usize::try_from(axis + i64::try_from(from.len()).ok()?).ok()?,
        Some(Attribute::Int(axis)) => usize::try_from(*axis).ok()?,
        _ => 0,
    };
    let count = counting(place, indices)?;
    let scope = place.scope();
    // In row-major order the indices are consecutive: each axis goes on where the next one ends.
    let mut size = Dim::constant(1);
    for (dim, step) in count.shape.iter().zip(&count.steps).rev().filter(|(dim, _)| !dim.is_const(1)) {
        if !scope.eq(step, &size).is_yes() {
            return None;
        }
        size = scope.mul(&size, dim);
    }
    let whole = count.offset.is_const(0) && scope.eq(&size, from.get(axis)?).is_yes();
    if !whole {
        return None;
    }
    // Nothing but the layout of the axes is between the data and the result.
    place_reshape(place, data)
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
    let axis = match concat.attribute("axis") {
        Some(Attribute::Int(axis)) if *axis < 0 => usize::try_from(axis + i64::try_from(rank).ok()?).ok()?,
        Some(Attribute::Int(axis)) => usize::try_from(*axis).ok()?,
        _ => return None,
    };
    if axis != last {
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

fn gather_nd(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    if matches!(node.attribute("batch_dims"), Some(Attribute::Int(batch)) if *batch != 0) {
        return None;
    }
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let columns = columns(place, indices)?;
    let from = place.shape(data)?.to_vec();
    let to = place.shape(output)?.to_vec();
    let mut parts = Vec::new();
    let mut shape = from.clone();
    let mut counted: Vec<usize> = Vec::new();
    for (axis, (column, value)) in columns.iter().enumerate() {
        let [moves] = column.moving()[..] else { return None };
        let in_turn = counted.last().is_none_or(|last| *last < moves);
        let start = column.offset.as_const().filter(|start| *start >= 0)?;
        if !in_turn || !column.steps.get(moves)?.is_const(1) {
            return None;
        }
        let size = column.shape.get(moves)?.clone();
        let whole = start == 0 && place.scope().eq(&size, from.get(axis)?).is_yes();
        if !whole {
            let witness = source_of(place, *value, &size)?;
            parts.push(Part { axis, start, size: size.clone(), witness });
        }
        *shape.get_mut(axis)? = size;
        counted.push(moves);
    }
    // Along an axis that no column counts through the entries repeat, unless there is one.
    let (layout, _) = columns.first()?;
    if !layout.shape.iter().enumerate().all(|(axis, dim)| dim.is_const(1) || counted.contains(&axis)) {
        return None;
    }
    let same = shape.len() == to.len() && shape.iter().zip(&to).all(|(a, b)| place.scope().eq(a, b).is_yes());
    if same && parts.is_empty() {
        return place.forward(data);
    }
    let mut edit = place.edit()?.removing(place.id);
    let part = cut(place, &mut edit, data, &parts, same.then_some(output))?;
    if !same {
        insert_reshape(place, &mut edit, part, &shape, output)?;
    }
    Some(edit)
}

/// A vector of that size that the value was laid out from: what Range made.
fn source_of(place: &Place<'_>, value: ValueId, size: &Dim) -> Option<ValueId> {
    if size.as_const().is_some() {
        return Some(value);
    }
    let mut at = value;
    for _ in 0..16 {
        if place.shape(at)?.first().is_some_and(|dim| place.scope().eq(dim, size).is_yes())
            && place.shape(at)?.len() == 1
        {
            return Some(at);
        }
        let node = place.model.value(at).producer().and_then(|id| place.model.node(id))?;
        if !matches!(node.op_type.as_str(), "Unsqueeze" | "Expand" | "Reshape" | "Squeeze" | "Add" | "Identity") {
            return None;
        }
        at = node.input(0)?;
    }
    None
}

/// `data` cut to the parts by one Slice, computed into `output` if that is given.
fn cut(place: &Place<'_>, edit: &mut Edit, data: ValueId, parts: &[Part], output: Option<ValueId>) -> Option<ValueId> {
    let [part] = parts else { return parts.is_empty().then_some(data) };
    let axis = i64::try_from(part.axis).ok()?;
    let starts = edit.constant(data, "starts", Tensor::vector(vec![part.start]));
    let axes = edit.constant(data, "axes", Tensor::vector(vec![axis]));
    let ends = edit.new_value(data, "ends");
    match part.size.as_const() {
        Some(size) => edit.constants.push((ends, Tensor::vector(vec![part.start.checked_add(size)?]))),
        None if part.start == 0 => {
            let mut shape = NewNode::new("Shape", [Some(part.witness)]);
            if place.opset >= 15 {
                shape = shape.with("start", 0i64).with("end", 1i64);
            }
            edit.insert.push(shape.output(ends));
        }
        None => return None,
    }
    let result = match output {
        Some(output) => output,
        None => edit.new_value(data, "part"),
    };
    edit.insert.push(NewNode::new("Slice", [Some(data), Some(starts), Some(ends), Some(axes)]).output(result));
    Some(result)
}
