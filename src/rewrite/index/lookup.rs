//! Lookups at the front of every row of a flattened matrix.

use super::RULES;
use super::counting::counting;
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};
use crate::rewrite::build::Build;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::tensor::Tensor;

/// The most values that are looked at for one of a size. Without it, N lookups in a graph of N values take N².
const MAX_SOURCES: usize = 32;

/// `Gather(Reshape(x, [a · p]), p · i + k) = x[:, : n]` for `i < a` and `k < n`: the front of every row of `x`, looked up in all rows in order. An
/// index after the last row fails, so `n` is at most `p` if the Gather looks up any element.
pub(super) fn in_rows(place: &Place<'_>) -> Result<Edit, Miss> {
    let (node, data, indices, output) = (place.root()?, place.operand(0)?, place.operand(1)?, place.result()?);
    let shape = place.dims(data)?;
    let whole = place.layout(data).and_then(|(_, layout)| layout.input(0)).ok_or(Miss::ROOT)?;
    let ([all, rest @ ..], [rows, width, inner @ ..]) = (shape, place.dims(whole)?) else {
        return Err(miss!("rows").of(whole));
    };
    let scope = place.scope();
    // After the rows the layouts may differ in axes of size 1 only.
    let is_flat = scope.eq(all, &scope.mul(rows, width)).is_yes() && place.same_but_ones(inner, rest);
    ensure(is_flat && place.read(node).axis(shape.len()) == Some(0), miss!("rows").of(data))?;
    let count = counting(place, indices).ok_or(miss!("front"))?;
    let [row, column] = count.moving()[..] else { return Err(miss!("front")) };
    let step = |axis: usize, of: &Dim| count.steps.get(axis).is_some_and(|step| scope.eq(step, of).is_yes());
    let (Some(looked_up), Some(length)) = (count.shape.get(row), count.shape.get(column)) else {
        return Err(miss!("rows"));
    };
    let mut others = count.shape.iter().enumerate().filter(|&(axis, _)| axis != row && axis != column);
    let is_grid = row < column && others.all(|(_, dim)| dim.is_const(1));
    ensure(is_grid && count.offset.is_const(0) && step(row, width) && step(column, &Dim::constant(1)), miss!("front"))?;
    prove(scope.eq(looked_up, rows), miss!("rows"))?;
    if !scope.le(length, width).is_yes() {
        prove(scope.ge(rows, &Dim::constant(1)), miss!("looked-up").dim(whole, 0))?;
    }
    let mut edit = place.begin()?;
    let part = edit.new_value(data, "part");
    let mut build = place.build(&mut edit, whole);
    let slice = match length.as_const() {
        Some(length) => build.slice(whole, vec![0], vec![length], vec![1], vec![1]),
        None => {
            let counted = source_along(place, indices, length).ok_or(miss!("front"))?;
            let starts = build.constant("starts", Tensor::vector(vec![0i64]));
            let ends = edit.new_value(whole, "ends");
            edit.insert.push(Build::shape(counted).output(ends));
            place.build(&mut edit, whole).slice_between(whole, starts, ends, vec![1], vec![1])
        }
    };
    edit.insert.push(slice.ok_or(Miss::EXPRESSIBLE)?.output(part));
    let from = [&[rows.clone(), length.clone()], inner].concat();
    let reshape = place.build(&mut edit, output).reshape_to(scope, part, &from, place.dims(output)?);
    place.instead(edit, reshape.ok_or(Miss::EXPRESSIBLE)?)
}

/// A vector of this size among the terms of a grid of indices.
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
