//! A BatchNormalization of the rows of a product goes into the product.
//!
//! Law: with `rows(y)` the matrix of the last axis' vectors of `y`, and `A(y) = s·y + t` on each place of that axis,
//! `A(rows(x·W)) = rows(x·(W·s) + t)`.
//!
//! A BatchNormalization knows channels along the second axis alone, so exporters flatten what has them along the last, and lay it out
//! again behind. What is added has no such bounds, and the two layouts meet.

use super::affine::{Affine, Channels};
use super::magnitude::keeps_digits;
use super::ordinary::is_ordinary;
use super::scaled::{Blocks, scaled};
use super::{Place, Rule, rounded};
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::ops::traits::traits_of;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "normalized-rows",
    law: "s·rows(x·W) + t = rows(x·(W·s) + t)",
    sentence: "Merges a BatchNormalization of rows into the weights of the product before it.",
    premises: &[
        ("inference", "the BatchNormalization does not train"),
        ("rows", "it consumes all rows of a product of rank 3 or more"),
        ("own-weights", "the weights are a constant matrix without other consumers"),
        ("in-range", "the new weights, times operands of ordinary size, are normal numbers of the type"),
        ("one-reader", "the values in between have no other consumer, except for their shapes"),
    ],
    exact: false,
    operators: &["BatchNormalization"],
    apply: of_rows,
}];

fn of_rows(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (rows, result) = (node.input(0)?, place.only_output()?);
    let (layout, flatten) = place.layout(rows)?;
    let product = flatten.input(0)?;
    let (matmul, multiply) = place.producer(product, "MatMul")?;
    let weights = multiply.input(1)?;
    let &[_, count] = place.tensor(weights)?.shape() else { return None };
    let is_own = place.model.value(weights).is_constant() && place.is_internal(weights, &[matmul]);
    let are_rows = place.shape(product)?.len() >= 3 && is_last(place, product, count) && is_last(place, rows, count);
    let reads_sizes = |id: NodeId| place.model.node(id).is_some_and(|node| traits_of(place.model, node).of_shape);
    let users = place.model.users(product);
    let is_inner = !place.model.is_named(product) && users.iter().all(|&(id, _)| id == layout || reads_sizes(id));
    if !is_own || !are_rows || !is_inner || place.shape(rows)?.len() != 2 || !place.is_internal(rows, &[place.id]) {
        return None;
    }
    if !is_ordinary(place, multiply.input(0)?) {
        return None;
    }
    let dtype = place.dtype(result).filter(|&dtype| place.dtype(weights) == Some(dtype))?;
    let Affine { scale, shift } = Affine::of(place, node, 0, Channels { rank: 2, axis: 1, count })?;
    if !place.opset.arithmetic_broadcasts() || !shift.iter().all(|&shift| keeps_digits(dtype, shift)) {
        return None;
    }
    let old = place.tensor(weights)?;
    let new = scaled(place.budget, old, Blocks::along(old.shape(), 1)?, &scale)?;
    let mut edit = place.edit()?;
    let new = edit.constant_named(place.fused_name(weights), new);
    let bias = edit.constant_named(place.fused_name(node.input(2)?), rounded(dtype, &[count], &shift)?);
    edit.rewire.push((matmul, 1, Some(new)));
    let sum = edit.new_value(product, "shifted");
    edit.insert.push(NewNode::new("Add", [Some(product), Some(bias)]).named(node.name.clone()).output(sum));
    edit.remove.extend([layout, place.id]);
    Some(edit.inserting(NewNode::like(flatten).reading(0, sum).output(result)))
}

/// Whether the last axis of a value has this size.
fn is_last(place: &Place<'_>, value: ValueId, count: usize) -> bool {
    let size = place.shape(value).and_then(|dims| dims.last()?.as_const());
    size.is_some_and(|size| usize::try_from(size) == Ok(count))
}
