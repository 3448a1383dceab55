//! Lookups in a vector that repeats a constant: exporters number the classes of each detection so, and look up those that are kept.
//!
//! Law: let `c` have `k ≥ 1` elements and `v` be `n` times `c`, one behind the other, so `v[p] = c[p mod k]` for `0 ≤ p < n·k`. An
//! index `p < 0` stands for `p + n·k`, which has the same remainder. So `v[p] = c[p mod k]` for every `p` that is looked up, with the
//! remainder that takes the sign of `k`, as Mod of integers does.

use crate::ir::{Data, Edit, NewNode, NodeId, ValueId};
use crate::ops::traits::Movement;
use crate::ops::{Environment, axis_in, evaluate_node};
use crate::rewrite::Place;
use crate::rewrite::build::Build;
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// The most slices between what repeats and its layout. Without it, a chain of N slices is followed from each of its nodes.
const MAX_SLICES: usize = 4;

pub(super) fn by_remainder(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    if place.shape(data)?.len() != 1 || !place.opset.has("Mod") {
        return None;
    }
    let period = period(place, data)?;
    let length = match place.dtype(indices)? {
        DType::Int64 => Tensor::scalar(i64::try_from(period.len()).ok()?),
        DType::Int32 => Tensor::scalar(i32::try_from(period.len()).ok()?),
        _ => return None,
    };
    let mut edit = place.edit()?;
    let (length, period) = (edit.constant(output, "length", length), edit.constant(output, "period", period));
    let remainder = edit.new_value(output, "remainder");
    edit.insert.push(NewNode::new("Mod", [Some(indices), Some(length)]).output(remainder));
    place.instead(edit, Build::gather(period, remainder, 0usize))
}

/// The constant that a vector repeats, if nothing else reads the vector and what it is laid out from.
fn period(place: &Place<'_>, vector: ValueId) -> Option<Tensor> {
    let mut wide = place.layout(vector)?.1.input(0)?;
    if !place.has_one_reader(vector) || !place.has_one_reader(wide) {
        return None;
    }
    let mut slices = Vec::new();
    while let Some((id, slice)) = place.producer(wide, "Slice") {
        slices.push(id);
        wide = slice.input(0)?;
        if slices.len() > MAX_SLICES || !place.has_one_reader(wide) {
            return None;
        }
    }
    let (_, spread) = place.producer_with(wide, |traits| traits.moves == Some(Movement::Spread))?;
    let mut period = place.constant(spread.input(0)?)?.clone();
    let [repeated @ .., last] = place.shape(wide)? else { return None };
    let [ones @ .., length] = period.shape() else { return None };
    let is_whole = last.as_const() == i64::try_from(*length).ok();
    if !is_whole || ones.iter().any(|&size| size != 1) || ones.len() > repeated.len() {
        return None;
    }
    let one_row: Vec<usize> = repeated.iter().map(|_| 1).chain([*length]).collect();
    period = period.reshape(&one_row).ok()?;
    for &id in slices.iter().rev() {
        period = cut(place, id, period)?;
    }
    (!period.is_empty()).then(|| period.reshape(&[period.len()]).ok()).flatten()
}

/// What a Slice makes of one row, if it cuts along the row alone, between numbers.
fn cut(place: &Place<'_>, id: NodeId, row: Tensor) -> Option<Tensor> {
    let node = place.model.node(id)?;
    let last = row.shape().len().checked_sub(1)?;
    let axes = place.read(node).slice_axes()?;
    if !axes.iter().all(|&axis| axis_in(axis, row.shape().len()).is_ok_and(|axis| axis == last)) {
        return None;
    }
    let bounds = node.inputs().iter().skip(1).map(|input| match input {
        Some(input) => place.constant(*input).map(|bound| Some(Data::Tensor(bound.clone()))),
        None => Some(None),
    });
    let operands: Option<Vec<Option<Data>>> = std::iter::once(Some(Some(Data::Tensor(row)))).chain(bounds).collect();
    let environment = Environment::of(place.model);
    let results = evaluate_node(&environment, id, node, operands?, place.budget, SliceRule::Agree, 0).ok()?;
    results.first()?.tensor().cloned()
}
