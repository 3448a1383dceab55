//! Lookups whose indices only count.
//!
//! Laws, for data `x` and indices that count in order from `o`:
//! `Gather(x, [o, o + 1, … ])` is `x[o : o + n]` with the axes the indices are laid out in; and
//! `GatherND(x, [i₀, …, iₖ])` with `iₘ = oₘ + (position along axis aₘ)` and `a₀ < … < aₖ` is `x[o₀ : o₀ + n₀, …, oₖ : oₖ + nₖ]`
//! with axes of size 1 in between. An index beyond the data fails, if anything is looked up: where another axis of the indices is empty
//! nothing is, and the part may be longer than the data. So it is proved to lie in the data, or the other axes not to be empty.

use super::counting::{columns, counting};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, ValueId};
use crate::rewrite::Place;
use crate::rewrite::build::{Build, axes};
use crate::tensor::Tensor;

/// The most values that are looked at for one of a size. Without it, N lookups in a graph of N values take N².
const MAX_SOURCES: usize = 32;

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
    let from = place.shape(data)?;
    let axis = place.read(node).axis(from.len())?;
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
    place.reshape_instead(data)
}

fn gather_nd(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    if node.int("batch_dims", 0)? != 0 {
        return None;
    }
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let columns = columns(place, indices)?;
    let (from, to) = (place.shape(data)?, place.shape(output)?);
    let mut parts = Vec::new();
    let mut shape = from.to_vec();
    let mut counted: Vec<usize> = Vec::new();
    for (axis, (column, value)) in columns.iter().enumerate() {
        let [moves] = column.moving()[..] else { return None };
        let in_turn = counted.last().is_none_or(|last| *last < moves);
        let start = column.offset.as_const().filter(|start| *start >= 0)?;
        if !in_turn || !column.steps.get(moves)?.is_const(1) {
            return None;
        }
        let size = column.shape.get(moves)?.clone();
        let dim = from.get(axis)?;
        let whole = start == 0 && place.scope().eq(&size, dim).is_yes();
        if !whole {
            let end = place.scope().add(&Dim::constant(start), &size);
            if !place.scope().le(&end, dim).is_yes() && !is_looked_up(place.scope(), &column.shape, moves) {
                return None;
            }
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
    let same = place.same_dims(&shape, to);
    if same && parts.is_empty() {
        return place.forward(data);
    }
    let mut edit = place.edit()?;
    let [part] = parts.as_slice() else {
        if !parts.is_empty() {
            return None;
        }
        let node = place.build(&mut edit, output).reshape_to(place.scope(), data, &shape, to)?;
        return place.instead(edit, node);
    };
    let slice = cut(place, &mut edit, data, part)?;
    if same {
        // The name stays with what lays the result out.
        return Some(edit.removing(place.id).inserting(slice.output(output)));
    }
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let node = place.build(&mut edit, output).reshape_to(place.scope(), value, &shape, to)?;
    place.instead(edit, node)
}

/// The same of a part that may be longer than the data: if it is, nothing was looked up, and the result is as empty as the part of the data.
/// Then only the shape is left to tell, which a Reshape is told size by size.
pub(super) fn by_sizes(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    if node.int("batch_dims", 0)? != 0 || !place.opset.reshape_may_keep_zero() {
        return None;
    }
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let columns = columns(place, indices)?;
    let from = place.shape(data)?;
    let (layout, _) = columns.first()?;
    if columns.len() != from.len() {
        return None;
    }
    let (mut counted, mut part): (Vec<usize>, Option<Part>) = (Vec::new(), None);
    for (axis, (column, value)) in columns.iter().enumerate() {
        let [moves] = column.moving()[..] else { return None };
        let in_turn = counted.last().is_none_or(|last| *last < moves);
        if !in_turn || !column.offset.is_const(0) || !column.steps.get(moves)?.is_const(1) {
            return None;
        }
        let size = column.shape.get(moves)?.clone();
        if !place.scope().eq(&size, from.get(axis)?).is_yes() {
            let witness = source_of(place, *value, &size)?;
            if part.replace(Part { axis, start: 0, size, witness }).is_some() {
                return None;
            }
        }
        counted.push(moves);
    }
    if !layout.shape.iter().enumerate().all(|(axis, dim)| dim.is_const(1) || counted.contains(&axis)) {
        return None;
    }
    let part = part?;
    let mut edit = place.edit()?;
    let slice = cut(place, &mut edit, data, &part)?;
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let mut sizes = Vec::new();
    for (axis, dim) in layout.shape.iter().enumerate() {
        if let Some(size) = dim.as_const() {
            sizes.push(edit.constant(output, "size", Tensor::vector(vec![size])));
            continue;
        }
        let column = counted.iter().position(|&moves| moves == axis)?;
        let witness = source_of(place, columns.get(column)?.1, dim)?;
        let size = edit.new_value(output, "size");
        edit.insert.push(Build::shape(witness).output(size));
        sizes.push(size);
    }
    let target = edit.new_value(output, "sizes");
    edit.insert.push(Build::concat(sizes, 0usize).output(target));
    place.instead(edit, NewNode::new("Reshape", [Some(value), Some(target)]).with("allowzero", 1i64))
}

/// `Gather(Reshape(x, [a · p]), p · i + k) = x[:, : n]` for `i < a` and `k < n`: the front of every row of `x`, looked up in all rows one behind
/// the other. An index beyond the last row fails, so `n` is at most `p` where anything is looked up.
pub(super) fn in_rows(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let [all, rest @ ..] = place.shape(data)? else { return None };
    let whole = place.layout(data)?.1.input(0)?;
    let [rows, width, inner @ ..] = place.shape(whole)? else { return None };
    let scope = place.scope();
    // Behind the rows the layouts may differ in axes of size 1 only.
    let wide = |dims: &[Dim]| dims.iter().filter(|dim| !dim.is_const(1)).cloned().collect::<Vec<_>>();
    let (inner_wide, rest_wide) = (wide(inner), wide(rest));
    let is_alike = scope.eq(all, &scope.mul(rows, width)).is_yes()
        && inner_wide.len() == rest_wide.len()
        && inner_wide.iter().zip(&rest_wide).all(|(a, b)| scope.eq(a, b).is_yes());
    if place.read(node).axis(place.shape(data)?.len())? != 0 || !is_alike {
        return None;
    }
    let count = counting(place, indices)?;
    let [row, column] = count.moving()[..] else { return None };
    let step = |axis: usize, of: &Dim| count.steps.get(axis).is_some_and(|step| scope.eq(step, of).is_yes());
    let (looked_up, length) = (count.shape.get(row)?, count.shape.get(column)?);
    let others = count.shape.iter().enumerate().filter(|&(axis, _)| axis != row && axis != column);
    let is_grid = row < column && others.clone().all(|(_, dim)| dim.is_const(1));
    if !is_grid
        || !count.offset.is_const(0)
        || !step(row, width)
        || !step(column, &Dim::constant(1))
        || !scope.eq(looked_up, rows).is_yes()
    {
        return None;
    }
    if !scope.le(length, width).is_yes() && !scope.ge(rows, &Dim::constant(1)).is_yes() {
        return None;
    }
    let part = Part { axis: 1, start: 0, size: length.clone(), witness: source_along(place, indices, length)? };
    let mut edit = place.edit()?;
    let slice = cut(place, &mut edit, whole, &part)?;
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let shape = [&[rows.clone(), length.clone()], inner].concat();
    let node = place.build(&mut edit, output).reshape_to(scope, value, &shape, place.shape(output)?)?;
    place.instead(edit, node)
}

/// `GatherND(x, Unsqueeze(i, −1)) = Gather(x, i)`: both take row `i` of `x`, counted from the end where it is negative, and fail where there
/// is none. Of empty rows GatherND looks nothing up, whatever the indices are, where Gather fails: rows are proved to hold something.
pub(super) fn by_column(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, indices) = (node.input(0)?, node.input(1)?);
    let [lead @ .., columns] = place.shape(indices)? else { return None };
    let [_, row @ ..] = place.shape(data)? else { return None };
    let has_elements = row.iter().all(|dim| place.scope().ge(dim, &Dim::constant(1)).is_yes());
    if node.int("batch_dims", 0)? != 0 || !columns.is_const(1) || !has_elements {
        return None;
    }
    let mut edit = place.edit()?;
    if let Some(tensor) = place.constant(indices) {
        let [dims @ .., _] = tensor.shape() else { return None };
        let gather = place.build(&mut edit, data).gather_at(data, tensor.reshape(dims).ok()?, 0usize);
        return place.instead(edit, gather);
    }
    let rows = place.layout(indices)?.1.input(0)?;
    let own = place.shape(rows)?;
    let same = own.len() == lead.len() && own.iter().zip(lead).all(|(a, b)| place.scope().eq(a, b).is_yes());
    same.then(|| place.instead(edit, Build::gather(data, rows, 0usize))).flatten()
}

/// Whether every place along this axis of the indices is looked up: no other axis of them is empty.
fn is_looked_up(scope: &Scope, shape: &[Dim], axis: usize) -> bool {
    let mut others = shape.iter().enumerate().filter(|(other, _)| *other != axis);
    others.all(|(_, dim)| scope.ge(dim, &Dim::constant(1)).is_yes())
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
        at = node.input(0)?;
    }
    None
}

/// A vector of that size that a grid of indices is a sum of.
fn source_along(place: &Place<'_>, indices: ValueId, size: &Dim) -> Option<ValueId> {
    let mut open = vec![indices];
    for _ in 0..MAX_SOURCES {
        let value = open.pop()?;
        let dims = place.shape(value)?;
        if let [dim] = dims
            && place.scope().eq(dim, size).is_yes()
        {
            return Some(value);
        }
        let node = place.model.value(value).producer().and_then(|id| place.model.node(id));
        open.extend(node.iter().flat_map(|node| node.inputs()).flatten());
    }
    None
}

/// A Slice of `data` that takes the part.
fn cut(place: &Place<'_>, edit: &mut Edit, data: ValueId, part: &Part) -> Option<NewNode> {
    let (starts, axes) = (vec![part.start], axes([part.axis]));
    if let Some(size) = part.size.as_const() {
        let ends = vec![part.start.checked_add(size)?];
        return place.build(edit, data).slice(data, starts, ends, axes, vec![1]);
    }
    if part.start != 0 {
        return None;
    }
    let starts = edit.constant(data, "starts", Tensor::vector(starts));
    let ends = edit.new_value(data, "ends");
    let mut build = place.build(edit, data);
    // The witness has one axis.
    let shape = build.shape_of_run(part.witness, 0..1).unwrap_or_else(|| Build::shape(part.witness));
    let slice = build.slice_between(data, starts, ends, axes, vec![1])?;
    edit.insert.push(shape.output(ends));
    Some(slice)
}
