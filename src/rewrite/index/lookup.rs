//! Lookups of consecutive positions whose number is not proved to fit the data.
//!
//! Law: `GatherND(x, [i₀, …, iₖ])`, where `iₘ` counts from 0 along axis `aₘ` of the indices and `a₀ < … < aₖ`, is `x[: n₀, …, : nₖ]` with axes of
//! size 1 in between. An index beyond the data fails if any position is looked up. None is if another axis of the indices is empty; then the part
//! may be longer than the data. If a part is proved to fit, the rule [`movement`](crate::rewrite::movement) applies.

use super::counting::{columns, counting};
use super::{LATE_RULES, RULES};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, ValueId};
use crate::rewrite::build::{Build, axes};
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::tensor::Tensor;

/// The most values that are looked at for one of a size. Without it, N lookups in a graph of N values take N².
const MAX_SOURCES: usize = 32;

/// A part of an axis: `x[: size]`.
struct Part {
    axis: usize,
    size: Dim,
    /// A value whose first axis has that size.
    witness: ValueId,
}

/// Replaces a GatherND by a Slice and a Reshape. If the part is longer than the data, no position is looked up, and both results are empty. The
/// Reshape determines the shape by its sizes.
pub(super) fn by_sizes(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    ensure(node.int("batch_dims", 0).ok_or(Miss::ROOT)? == 0, miss!(LATE_RULES, "in-order"))?;
    ensure(place.opset.reshape_may_keep_zero(), miss!(LATE_RULES, "says-zero"))?;
    let (data, output) = (place.operand(0)?, place.result()?);
    let columns = columns(place).ok_or(miss!(LATE_RULES, "in-order"))?;
    let from = place.shape(data).ok_or(miss!(LATE_RULES, "in-order").of(data))?;
    let (layout, _) = columns.first().ok_or(Miss::ROOT)?;
    ensure(columns.len() == from.len(), miss!(LATE_RULES, "in-order"))?;
    let (mut counted, mut part): (Vec<usize>, Option<Part>) = (Vec::new(), None);
    for (axis, (column, value)) in columns.iter().enumerate() {
        let [moves] = column.moving()[..] else { return Err(miss!(LATE_RULES, "in-order")) };
        let in_turn = counted.last().is_none_or(|last| *last < moves);
        ensure(in_turn, miss!(LATE_RULES, "in-order"))?;
        ensure(column.offset.is_const(0), miss!(LATE_RULES, "in-order"))?;
        ensure(
            column.steps.get(moves).ok_or(miss!(LATE_RULES, "in-order"))?.is_const(1),
            miss!(LATE_RULES, "in-order"),
        )?;
        let size = column.shape.get(moves).ok_or(miss!(LATE_RULES, "in-order"))?.clone();
        if !place.scope().eq(&size, from.get(axis).ok_or(miss!(LATE_RULES, "in-order"))?).is_yes() {
            let witness = source_of(place, *value, &size).ok_or(miss!(LATE_RULES, "one-part"))?;
            ensure(part.replace(Part { axis, size, witness }).is_none(), miss!(LATE_RULES, "one-part"))?;
        }
        counted.push(moves);
    }
    ensure(
        layout.shape.iter().enumerate().all(|(axis, dim)| dim.is_const(1) || counted.contains(&axis)),
        miss!(LATE_RULES, "in-order"),
    )?;
    let part = part.ok_or(miss!(LATE_RULES, "one-part"))?;
    let mut edit = place.begin()?;
    let slice = cut(place, &mut edit, data, &part).ok_or(Miss::EXPRESSIBLE)?;
    let mut shape = from.to_vec();
    *shape.get_mut(part.axis).ok_or(Miss::ROOT)? = part.size.clone();
    // Without an empty axis every position is looked up, so the part is in the data.
    let mut others = layout.shape.iter().enumerate().filter(|(axis, _)| Some(axis) != counted.get(part.axis));
    let is_looked_up = others.all(|(_, dim)| place.scope().ge(dim, &Dim::constant(1)).is_yes());
    if is_looked_up && place.same_dims(&shape, &layout.shape) {
        return Ok(edit.removing(place.id).inserting(slice.output(output)));
    }
    let value = edit.new_value(data, "part");
    edit.insert.push(slice.output(value));
    let mut sizes = Vec::new();
    for (axis, dim) in layout.shape.iter().enumerate() {
        if let Some(size) = dim.as_const() {
            sizes.push(edit.constant(output, "size", Tensor::vector(vec![size])));
            continue;
        }
        let column = counted.iter().position(|&moves| moves == axis).ok_or(miss!(LATE_RULES, "in-order"))?;
        let witness = source_of(place, columns.get(column).ok_or(miss!(LATE_RULES, "in-order"))?.1, dim)
            .ok_or(miss!(LATE_RULES, "in-order"))?;
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
    let part =
        Part { axis: 1, size: length.clone(), witness: source_along(place, indices, length).ok_or(miss!("front"))? };
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

/// A Slice of `data` that selects the part.
fn cut(place: &Place<'_>, edit: &mut Edit, data: ValueId, part: &Part) -> Option<NewNode> {
    let (starts, axes) = (vec![0], axes([part.axis]));
    if let Some(size) = part.size.as_const() {
        return place.build(edit, data).slice(data, starts, vec![size], axes, vec![1]);
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
