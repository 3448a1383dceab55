//! Lookups whose indices only count.
//!
//! Laws, for data `x` and indices that count in order from `o`:
//! `Gather(x, [o, o + 1, … ])` is `x[o : o + n]` with the axes the indices are laid out in; and
//! `GatherND(x, [i₀, …, iₖ])` with `iₘ = oₘ + (position along axis aₘ)` and `a₀ < … < aₖ` is `x[o₀ : o₀ + n₀, …, oₖ : oₖ + nₖ]`
//! with axes of size 1 in between. An index beyond the data fails, if anything is looked up: where another axis of the indices is empty
//! nothing is, and the part may be longer than the data. So it is proved to lie in the data, or the other axes not to be empty.

use super::RULES;
use super::counting::{columns, counting};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, ValueId};
use crate::rewrite::build::{Build, axes};
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::tensor::Tensor;

/// The most values that are looked at for one of a size. Without it, N lookups in a graph of N values take N².
const MAX_SOURCES: usize = 32;

pub(super) fn in_order(place: &Place<'_>) -> Result<Edit, Miss> {
    if place.root()?.op_type == "Gather" { gather(place) } else { gather_nd(place) }
}

/// A part of an axis: `x[start : start + size]`.
struct Part {
    axis: usize,
    start: i64,
    size: Dim,
    /// A value whose first axis has that size.
    witness: ValueId,
}

fn gather(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (data, indices) = (node.input(0).ok_or(Miss::ROOT)?, node.input(1).ok_or(Miss::ROOT)?);
    let from = place.shape(data).ok_or(miss!("in-order").of(data))?;
    let axis = place.read(node).axis(from.len()).ok_or(Miss::ROOT)?;
    let count = counting(place, indices).ok_or(miss!("in-order").of(indices))?;
    let scope = place.scope();
    // In row-major order the indices are consecutive: each axis goes on where the next one ends.
    let mut size = Dim::constant(1);
    for (dim, step) in count.shape.iter().zip(&count.steps).rev().filter(|(dim, _)| !dim.is_const(1)) {
        prove(scope.eq(step, &size), miss!("in-order").of(indices))?;
        size = scope.mul(&size, dim);
    }
    ensure(count.offset.is_const(0), miss!("whole").of(indices))?;
    prove(scope.eq(&size, from.get(axis).ok_or(Miss::ROOT)?), miss!("whole").dim(data, axis))?;
    // Nothing but the layout of the axes is between the data and the result.
    place.reshape_instead(data).or(Err(miss!("sizes-said").of(data)))
}

fn gather_nd(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    ensure(node.int("batch_dims", 0).ok_or(Miss::ROOT)? == 0, miss!("in-order"))?;
    let (data, output) = (place.operand(0)?, place.result()?);
    let columns = columns(place).ok_or(miss!("in-order"))?;
    let (from, to) = (
        place.shape(data).ok_or(miss!("in-order").of(data))?,
        place.shape(output).ok_or(miss!("in-order").of(output))?,
    );
    let mut parts = Vec::new();
    let mut shape = from.to_vec();
    let mut counted: Vec<usize> = Vec::new();
    for (axis, (column, value)) in columns.iter().enumerate() {
        let [moves] = column.moving()[..] else { return Err(miss!("in-order")) };
        let in_turn = counted.last().is_none_or(|last| *last < moves);
        let start = column.offset.as_const().filter(|start| *start >= 0).ok_or(miss!("in-order"))?;
        ensure(in_turn, miss!("in-order"))?;
        ensure(column.steps.get(moves).ok_or(miss!("in-order"))?.is_const(1), miss!("in-order"))?;
        let size = column.shape.get(moves).ok_or(miss!("in-order"))?.clone();
        let dim = from.get(axis).ok_or(miss!("in-order"))?;
        let whole = start == 0 && place.scope().eq(&size, dim).is_yes();
        if !whole {
            let end = place.scope().add(&Dim::constant(start), &size);
            if !is_looked_up(place.scope(), &column.shape, moves) {
                prove(place.scope().le(&end, dim), miss!("looked-up").dim(data, axis))?;
            }
            let witness = source_of(place, *value, &size).ok_or(miss!("in-order"))?;
            parts.push(Part { axis, start, size: size.clone(), witness });
        }
        *shape.get_mut(axis).ok_or(miss!("in-order"))? = size;
        counted.push(moves);
    }
    // Along an axis that no column counts through the entries repeat, unless there is one.
    let (layout, _) = columns.first().ok_or(Miss::ROOT)?;
    ensure(
        layout.shape.iter().enumerate().all(|(axis, dim)| dim.is_const(1) || counted.contains(&axis)),
        miss!("in-order"),
    )?;
    let same = place.same_dims(&shape, to);
    if same && parts.is_empty() {
        return place.forward(data);
    }
    let mut edit = place.begin()?;
    let [part] = parts.as_slice() else {
        ensure(parts.is_empty(), miss!("whole").of(data))?;
        let node = place
            .build(&mut edit, output)
            .reshape_to(place.scope(), data, &shape, to)
            .ok_or(miss!("sizes-said").of(data))?;
        return place.instead(edit, node);
    };
    let slice = cut(place, &mut edit, data, part).ok_or(miss!("in-order"))?;
    if same {
        // The name stays with what lays the result out.
        return Ok(edit.removing(place.id).inserting(slice.output(output)));
    }
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let node = place
        .build(&mut edit, output)
        .reshape_to(place.scope(), value, &shape, to)
        .ok_or(miss!("sizes-said").of(data))?;
    place.instead(edit, node)
}

/// The same of a part that may be longer than the data: if it is, nothing was looked up, and the result is as empty as the part of the data.
/// Then only the shape is left to tell, which a Reshape is told size by size.
pub(super) fn by_sizes(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    ensure(node.int("batch_dims", 0).ok_or(Miss::ROOT)? == 0, miss!(super::LATE_RULES, "in-order"))?;
    ensure(place.opset.reshape_may_keep_zero(), miss!(super::LATE_RULES, "says-zero"))?;
    let (data, output) = (place.operand(0)?, place.result()?);
    let columns = columns(place).ok_or(miss!(super::LATE_RULES, "in-order"))?;
    let from = place.shape(data).ok_or(miss!(super::LATE_RULES, "in-order").of(data))?;
    let (layout, _) = columns.first().ok_or(Miss::ROOT)?;
    ensure(columns.len() == from.len(), miss!(super::LATE_RULES, "in-order"))?;
    let (mut counted, mut part): (Vec<usize>, Option<Part>) = (Vec::new(), None);
    for (axis, (column, value)) in columns.iter().enumerate() {
        let [moves] = column.moving()[..] else { return Err(miss!(super::LATE_RULES, "in-order")) };
        let in_turn = counted.last().is_none_or(|last| *last < moves);
        ensure(in_turn, miss!(super::LATE_RULES, "in-order"))?;
        ensure(column.offset.is_const(0), miss!(super::LATE_RULES, "in-order"))?;
        ensure(
            column.steps.get(moves).ok_or(miss!(super::LATE_RULES, "in-order"))?.is_const(1),
            miss!(super::LATE_RULES, "in-order"),
        )?;
        let size = column.shape.get(moves).ok_or(miss!(super::LATE_RULES, "in-order"))?.clone();
        if !place.scope().eq(&size, from.get(axis).ok_or(miss!(super::LATE_RULES, "in-order"))?).is_yes() {
            let witness = source_of(place, *value, &size).ok_or(miss!(super::LATE_RULES, "one-part"))?;
            ensure(
                part.replace(Part { axis, start: 0, size, witness }).is_none(),
                miss!(super::LATE_RULES, "one-part"),
            )?;
        }
        counted.push(moves);
    }
    ensure(
        layout.shape.iter().enumerate().all(|(axis, dim)| dim.is_const(1) || counted.contains(&axis)),
        miss!(super::LATE_RULES, "in-order"),
    )?;
    let part = part.ok_or(miss!(super::LATE_RULES, "one-part"))?;
    let mut edit = place.begin()?;
    let slice = cut(place, &mut edit, data, &part).ok_or(Miss::EXPRESSIBLE)?;
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let mut sizes = Vec::new();
    for (axis, dim) in layout.shape.iter().enumerate() {
        if let Some(size) = dim.as_const() {
            sizes.push(edit.constant(output, "size", Tensor::vector(vec![size])));
            continue;
        }
        let column = counted.iter().position(|&moves| moves == axis).ok_or(miss!(super::LATE_RULES, "in-order"))?;
        let witness = source_of(place, columns.get(column).ok_or(miss!(super::LATE_RULES, "in-order"))?.1, dim)
            .ok_or(miss!(super::LATE_RULES, "in-order"))?;
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
pub(super) fn in_rows(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (data, indices, output) =
        (node.input(0).ok_or(Miss::ROOT)?, node.input(1).ok_or(Miss::ROOT)?, node.output(0).ok_or(Miss::ROOT)?);
    let [all, rest @ ..] = place.shape(data).ok_or(miss!("rows").of(data))? else { return Err(miss!("rows").of(data)) };
    let whole = place.layout(data).ok_or(Miss::ROOT)?.1.input(0).ok_or(Miss::ROOT)?;
    let [rows, width, inner @ ..] = place.shape(whole).ok_or(miss!("rows").of(whole))? else {
        return Err(miss!("rows").of(whole));
    };
    let scope = place.scope();
    // Behind the rows the layouts may differ in axes of size 1 only.
    let wide = |dims: &[Dim]| dims.iter().filter(|dim| !dim.is_const(1)).cloned().collect::<Vec<_>>();
    let (inner_wide, rest_wide) = (wide(inner), wide(rest));
    let is_alike = scope.eq(all, &scope.mul(rows, width)).is_yes()
        && inner_wide.len() == rest_wide.len()
        && inner_wide.iter().zip(&rest_wide).all(|(a, b)| scope.eq(a, b).is_yes());
    ensure(
        place.read(node).axis(place.shape(data).ok_or(miss!("rows").of(data))?.len()).ok_or(Miss::ROOT)? == 0,
        miss!("rows").of(data),
    )?;
    ensure(is_alike, miss!("rows"))?;
    let count = counting(place, indices).ok_or(miss!("front"))?;
    let [row, column] = count.moving()[..] else { return Err(miss!("front")) };
    let step = |axis: usize, of: &Dim| count.steps.get(axis).is_some_and(|step| scope.eq(step, of).is_yes());
    let (looked_up, length) =
        (count.shape.get(row).ok_or(miss!("rows"))?, count.shape.get(column).ok_or(miss!("rows"))?);
    let others = count.shape.iter().enumerate().filter(|&(axis, _)| axis != row && axis != column);
    let is_grid = row < column && others.clone().all(|(_, dim)| dim.is_const(1));
    ensure(is_grid, miss!("front"))?;
    ensure(count.offset.is_const(0), miss!("front"))?;
    ensure(step(row, width), miss!("front"))?;
    ensure(step(column, &Dim::constant(1)), miss!("front"))?;
    prove(scope.eq(looked_up, rows), miss!("rows"))?;
    if !scope.le(length, width).is_yes() {
        prove(scope.ge(rows, &Dim::constant(1)), miss!("looked-up").dim(whole, 0))?;
    }
    let part = Part {
        axis: 1,
        start: 0,
        size: length.clone(),
        witness: source_along(place, indices, length).ok_or(miss!("front"))?,
    };
    let mut edit = place.begin()?;
    let slice = cut(place, &mut edit, whole, &part).ok_or(Miss::EXPRESSIBLE)?;
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let shape = [&[rows.clone(), length.clone()], inner].concat();
    let node = place
        .build(&mut edit, output)
        .reshape_to(scope, value, &shape, place.shape(output).ok_or(miss!("rows").of(output))?)
        .ok_or(Miss::EXPRESSIBLE)?;
    place.instead(edit, node)
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
