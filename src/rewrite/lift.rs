//! Removes Reshapes around matrix products: exporters flatten `[batch, seq, K]` to `[batch·seq, K]`, multiply, and reshape the rows back.
//! The batched product needs neither Reshape, nor the computed shape operand of the second one.
//!
//! Law: with `rows(x)` the matrix of the last-axis vectors of `x`, `unrows(rows(x) · W + c) = x · W + c`.

use super::build::rebuilt;
use super::fuse::normalized::is_result as is_normalized;
use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::tensor::{StridedView, Tensor, gather_later};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "product-of-rows",
    law: "Reshape(rows(x) · W + c, dims of x but the last, columns of W) = x · W + c, where rows(x) is x flattened to a matrix",
    sentence: "Removes the Reshapes around a matrix product, of which the first flattens the operand to rows, and the last restores the dims.",
    premises: &[
        ("same-lead", "the last Reshape restores all dims of x but the last"),
        ("plain-product", "the product is a MatMul, or a Gemm with alpha = beta = 1 and transA = 0"),
        (
            "open-sizes",
            "at least one of three statements holds: (1) x has a dynamic dim; (2) no c is added; (3) x is the result of a layer normalization, and the product is a Gemm. In all other cases, runtimes flatten x to rows themselves",
        ),
        ("row-bias", "c is a scalar, or has one element per column of W"),
        (
            "own-weights",
            "if the product transposes W (attribute transB), W is a constant without other consumers, because the model would otherwise store W twice",
        ),
        ("one-reader", "the product has no other consumer"),
    ],
    exact: false,
    operators: &["Reshape"],
    apply: product_of_rows,
}];

/// A product of flattened rows: the flattened data, the weights and the bias.
struct Product {
    rows: ValueId,
    weights: ValueId,
    transposed: bool,
    bias: Option<ValueId>,
    nodes: Vec<NodeId>,
    /// The MatMul and the Add that the edit rebuilds, if the product has this form instead of a Gemm.
    matmul: Option<NodeId>,
    add: Option<NodeId>,
}

fn product_of_rows(place: &Place<'_>) -> Result<Edit, Miss> {
    let (flat, output) = (place.operand(0)?, place.result()?);
    ensure(place.opset.everything_broadcasts(), Miss::EXPRESSIBLE)?;
    let product = product(place, flat).ok_or(miss!("plain-product"))?;
    ensure(place.has_one_reader(flat), miss!("one-reader").of(flat))?;
    let (_, flatten) = place.layout(product.rows).ok_or(Miss::ROOT)?;
    let whole = flatten.input(0).ok_or(Miss::ROOT)?;
    let (from, to) = (place.dims(whole)?, place.dims(output)?);
    let [_, inner] = place.dims(product.rows)? else {
        return Err(miss!("same-lead").of(product.rows));
    };
    let [_, outer] = place.dims(flat)? else {
        return Err(miss!("same-lead").of(flat));
    };
    let scope = place.scope();
    let is_misread = product.matmul.is_none() && flatten.is("Reshape") && is_normalized(place, whole);
    ensure(product.bias.is_none() || !place.runs_in_rows(from) || is_misread, miss!("open-sizes"))?;
    let equal = |a, b| scope.eq(a, b).is_yes();
    let (last_from, lead_from) = from.split_last().ok_or(Miss::ROOT)?;
    let (last_to, lead_to) = to.split_last().ok_or(Miss::ROOT)?;
    let same_lead = lead_from.len() == lead_to.len() && lead_from.iter().zip(lead_to).all(|(a, b)| equal(a, b));
    ensure(same_lead && !lead_from.is_empty() && equal(last_from, inner) && equal(last_to, outer), miss!("same-lead"))?;
    if let Some(bias) = product.bias {
        let fits = match place.dims(bias)? {
            [] => true,
            [columns] => equal(columns, outer) || columns.is_const(1),
            _ => false,
        };
        ensure(fits, miss!("row-bias"))?;
    }
    let name = place.root()?.name.clone();
    let mut edit = place.begin()?.removing(place.id);
    let weights = if product.transposed {
        let tensor = transposed(place, product.weights).ok_or(miss!("own-weights"))?;
        edit.constant(product.weights, "transposed", tensor)
    } else {
        product.weights
    };
    let bias = product.bias;
    let sum = if bias.is_some() { edit.new_value(output, "product") } else { output };
    edit.remove.extend(product.nodes);
    let again = |old: Option<NodeId>, new: NewNode| match old.and_then(|id| place.model.node(id)) {
        Some(old) => rebuilt(old, new),
        None => new,
    };
    let matmul = again(product.matmul, NewNode::new("MatMul", [Some(whole), Some(weights)]));
    edit.insert.push(matmul.named(name).output(sum));
    if let Some(bias) = bias {
        let add = again(product.add, NewNode::new("Add", [Some(sum), Some(bias)]));
        edit.insert.push(add.output(output));
    }
    Ok(edit)
}

/// Returns the product that computes a value, if no other node reads its intermediate values.
fn product(place: &Place<'_>, value: ValueId) -> Option<Product> {
    if let Some((id, node)) = place.producer(value, "Gemm") {
        let plain = node.float("alpha", 1.0)? == 1.0 && node.float("beta", 1.0)? == 1.0;
        if !plain || node.flag("transA", false)? || !place.opset.arithmetic_broadcasts() {
            return None;
        }
        return Some(Product {
            rows: node.input(0)?,
            weights: node.input(1)?,
            transposed: node.flag("transB", false)?,
            bias: node.input(2),
            nodes: vec![id],
            matmul: None,
            add: None,
        });
    }
    if let Some((id, node)) = place.producer(value, "MatMul") {
        return of_matmul((id, node), None);
    }
    let (add, node) = place.producer(value, "Add")?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    for (product, bias) in [(a, b), (b, a)] {
        if let Some((id, node)) = place.producer(product, "MatMul").filter(|_| place.has_one_reader(product)) {
            return of_matmul((id, node), Some((add, bias)));
        }
    }
    None
}

fn of_matmul((id, node): (NodeId, &Node), added: Option<(NodeId, ValueId)>) -> Option<Product> {
    let add = added.map(|(add, _)| add);
    Some(Product {
        rows: node.input(0)?,
        weights: node.input(1)?,
        transposed: false,
        bias: added.map(|(_, bias)| bias),
        nodes: add.into_iter().chain([id]).collect(),
        matmul: Some(id),
        add,
    })
}

/// Returns constant weights with swapped axes, if they have no other consumer. With another consumer, the model would store them twice.
fn transposed(place: &Place<'_>, weights: ValueId) -> Option<Tensor> {
    if !place.has_one_reader(weights) || !place.model.value(weights).is_constant() {
        return None;
    }
    let tensor = place.constant(weights)?;
    let view = StridedView::of(tensor).permute(&[1, 0]).ok()?;
    gather_later(tensor, &view).ok()
}
