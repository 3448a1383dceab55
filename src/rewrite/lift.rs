//! Matrix products on flattened rows: exporters flatten `[batch, seq, K]` to `[batch·seq, K]`, multiply, and shape the rows back.
//! The product of the whole needs neither reshape, nor the sizes the second one is told.
//!
//! Law: with `rows(x)` the matrix of the last axis' vectors of `x`, `unrows(rows(x) · W + c) = x · W + c`.

use super::{Place, Rule};
use crate::ir::{Attribute, Edit, NewNode, Node, NodeId, ValueId};
use crate::tensor::{StridedView, Tensor, gather};

pub(super) const RULES: &[Rule] =
    &[Rule { name: "product-of-rows", operators: &["Reshape"], exact: false, apply: product_of_rows }];

/// A product of flattened rows: what is flattened, the weights, and what is added.
struct Product {
    rows: ValueId,
    weights: ValueId,
    transposed: bool,
    bias: Option<ValueId>,
    nodes: Vec<NodeId>,
}

fn product_of_rows(place: &mut Place<'_>) -> Option<Edit> {
    let (flat, output) = (place.input(0)?, place.output(0)?);
    if place.opset < 8 {
        return None;
    }
    let product = product(place, flat)?;
    let (_, flatten) = place.layout(product.rows)?;
    let whole = flatten.input(0)?;
    let (from, to) = (place.shape(whole)?, place.shape(output)?);
    let [_, inner] = place.shape(product.rows)? else { return None };
    let [_, outer] = place.shape(flat)? else { return None };
    let scope = place.scope();
    let equal = |a, b| scope.eq(a, b).is_yes();
    let (last_from, lead_from) = from.split_last()?;
    let (last_to, lead_to) = to.split_last()?;
    let same_lead = lead_from.len() == lead_to.len() && lead_from.iter().zip(lead_to).all(|(a, b)| equal(a, b));
    if !same_lead || lead_from.is_empty() || !equal(last_from, inner) || !equal(last_to, outer) {
        return None;
    }
    if let Some(bias) = product.bias {
        let fits = match place.shape(bias)? {
            [] => true,
            [columns] => equal(columns, outer) || columns.is_const(1),
            _ => false,
        };
        if !fits {
            return None;
        }
    }
    let name = place.node()?.name.clone();
    let weights = if product.transposed { transposed(place, product.weights)? } else { (product.weights, None) };
    let bias = product.bias;
    let sum = if bias.is_some() { place.new_value(output, "product") } else { output };
    let mut edit = place.edit("product-of-rows")?.removing(place.id);
    edit.remove.extend(product.nodes);
    edit.constants.extend(weights.1.map(|tensor| (weights.0, tensor)));
    edit.insert.push(NewNode::new("MatMul", [Some(whole), Some(weights.0)]).named(name).output(sum));
    if let Some(bias) = bias {
        edit.insert.push(NewNode::new("Add", [Some(sum), Some(bias)]).output(output));
    }
    Some(edit)
}

/// The product that computes a value, if nothing else reads what it computes on the way.
fn product(place: &Place<'_>, value: ValueId) -> Option<Product> {
    if !place.has_one_reader(value) {
        return None;
    }
    if let Some((id, node)) = place.producer(value, "Gemm") {
        let is = |name: &str, wanted: f32| match node.attribute(name) {
            None => true,
            Some(Attribute::Float(value)) => *value == wanted,
            Some(_) => false,
        };
        let flag = |name: &str| matches!(node.attribute(name), Some(Attribute::Int(flag)) if *flag != 0);
        if !is("alpha", 1.0) || !is("beta", 1.0) || flag("transA") || place.opset < 7 {
            return None;
        }
        return Some(Product {
            rows: node.input(0)?,
            weights: node.input(1)?,
            transposed: flag("transB"),
            bias: node.input(2),
            nodes: vec![id],
        });
    }
    if let Some((id, node)) = place.producer(value, "MatMul") {
        return of_matmul(node, None, vec![id]);
    }
    let (add, node) = place.producer(value, "Add")?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    for (product, bias) in [(a, b), (b, a)] {
        if let Some((id, node)) = place.producer(product, "MatMul").filter(|_| place.has_one_reader(product)) {
            return of_matmul(node, Some(bias), vec![add, id]);
        }
    }
    None
}

fn of_matmul(node: &Node, bias: Option<ValueId>, nodes: Vec<NodeId>) -> Option<Product> {
    Some(Product { rows: node.input(0)?, weights: node.input(1)?, transposed: false, bias, nodes })
}

/// Constant weights with their axes swapped, if nothing else reads them: they would be stored twice otherwise.
fn transposed(place: &mut Place<'_>, weights: ValueId) -> Option<(ValueId, Option<Tensor>)> {
    if !place.has_one_reader(weights) || !place.model.value(weights).is_constant() {
        return None;
    }
    let tensor = place.constant(weights)?;
    let view = StridedView::of(tensor).permute(&[1, 0]).ok()?;
    let tensor = gather(tensor, &view).ok()?;
    Some((place.new_value(weights, "transposed"), Some(tensor)))
}
