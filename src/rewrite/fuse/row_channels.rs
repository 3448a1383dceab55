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
use super::rounded;
use super::scaled::{Blocks, scaled};
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "normalized-rows",
    law: "s·rows(x·W) + t = rows(x·(W·s) + t)",
    sentence: "Merges a BatchNormalization of rows into the weights of the product before it.",
    premises: &[
        ("inference", "the BatchNormalization does not train"),
        ("rows", "it reads the rows of a product of three axes or more, all of them"),
        ("own-weights", "the weights are a constant matrix that nothing else reads"),
        ("in-range", "the new weights, times operands of ordinary size, are normal numbers of the type"),
        ("one-reader", "nothing else reads what is between, but for its sizes"),
    ],
    exact: false,
    operators: &["BatchNormalization"],
    apply: of_rows,
}];

fn of_rows(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (rows, result) = (node.input(0).ok_or(Miss::ROOT)?, place.only_output().ok_or(Miss::ROOT)?);
    let (layout, flatten) = place.layout(rows).ok_or(Miss::ROOT)?;
    let product = flatten.input(0).ok_or(Miss::ROOT)?;
    let (matmul, multiply) = place.producer(product, "MatMul").ok_or(Miss::ROOT)?;
    let weights = multiply.input(1).ok_or(Miss::ROOT)?;
    let &[_, count] = place.tensor(weights).ok_or(miss!("own-weights").of(weights))?.shape() else {
        return Err(miss!("own-weights").of(weights));
    };
    let is_own = place.model.value(weights).is_constant() && place.is_internal(weights, &[matmul]);
    let are_rows = place.shape(product).ok_or(miss!("rows").of(product))?.len() >= 3
        && is_last(place, product, count)
        && is_last(place, rows, count);
    let reads_sizes = |id: NodeId| place.model.node(id).is_some_and(|node| traits_of(place.model, node).of_shape);
    let users = place.model.users(product);
    let is_inner = !place.model.is_named(product) && users.iter().all(|&(id, _)| id == layout || reads_sizes(id));
    ensure(is_own, miss!("own-weights"))?;
    ensure(are_rows, miss!("rows"))?;
    ensure(is_inner, miss!("one-reader").of(product))?;
    ensure(place.shape(rows).ok_or(miss!("rows").of(rows))?.len() == 2, miss!("rows").of(rows))?;
    ensure(place.is_internal(rows, &[place.id]), miss!("one-reader").of(rows))?;
    ensure(is_ordinary(place, multiply.input(0).ok_or(Miss::ROOT)?), miss!("in-range"))?;
    let dtype = place
        .dtype(result)
        .filter(|&dtype| place.dtype(weights) == Some(dtype))
        .ok_or(miss!("own-weights").of(weights))?;
    let Affine { scale, shift } =
        Affine::of(place, node, 0, Channels { rank: 2, axis: 1, count }).ok_or(miss!("inference"))?;
    ensure(place.opset.arithmetic_broadcasts(), Miss::EXPRESSIBLE)?;
    ensure(shift.iter().all(|&shift| keeps_digits(dtype, shift)), miss!("in-range"))?;
    let old = place.tensor(weights).ok_or(miss!("rows").of(weights))?;
    let new =
        scaled(place.budget, old, Blocks::along(old.shape(), 1).ok_or(Miss::ROOT)?, &scale).ok_or(miss!("in-range"))?;
    let mut edit = place.begin()?;
    let new = edit.constant_named(place.fused_name(weights), new);
    let bias = edit.constant_named(
        place.fused_name(node.input(2).ok_or(Miss::ROOT)?),
        rounded(dtype, &[count], &shift).ok_or(Miss::COMPUTABLE)?,
    );
    edit.rewire.push((matmul, 1, Some(new)));
    let sum = edit.new_value(product, "shifted");
    edit.insert.push(NewNode::new("Add", [Some(product), Some(bias)]).named(node.name.clone()).output(sum));
    edit.remove.extend([layout, place.id]);
    Ok(edit.inserting(NewNode::like(flatten).reading(0, sum).output(result)))
}

/// Whether the last axis of a value has this size.
fn is_last(place: &Place<'_>, value: ValueId, count: usize) -> bool {
    let size = place.shape(value).and_then(|dims| dims.last()?.as_const());
    size.is_some_and(|size| usize::try_from(size) == Ok(count))
}
