//! The sizes that ONNX Runtime infers when it loads a model.
//!
//! Operators declare the inputs of that inference as a trait ([`ShapeInference`]). It matters if the runtime uses inferred sizes:
//! for a Loop without iterations, it returns rows with the sizes inferred in the subgraph.

use rustc_hash::FxHashSet;

use super::registry::operator_of;
use super::traits::{NumbersOf, ShapeInference, traits_of};
use crate::dim::Dim;
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Fact, Facts, Model, Node, ValueId};

/// Returns `true` if ONNX Runtime infers the constant dims of a value when it loads the model. The value must be constant in the
/// file, or an input declared with these dims. Operators may compute it from such values if their shapes depend on no more
/// ([`ShapeInference`]).
pub(super) fn infers_numbers(model: &Model, facts: &Facts, value: ValueId) -> bool {
    let (mut open, mut seen) = (vec![value], FxHashSet::default());
    while let Some(value) = open.pop() {
        if !seen.insert(value) || is_written(model, value) {
            continue;
        }
        let Some(node) = model.value(value).producer().and_then(|id| model.node(id)) else {
            let Some(declared) = model.value(value).declared.as_ref().and_then(DeclaredType::shape) else {
                return false;
            };
            let shape = facts.get(value).and_then(Fact::shape);
            let is_known = |at: usize| shape.is_some_and(|shape| shape.get(at).is_some_and(is_number));
            let is_declared = |dim: &DeclaredDim| matches!(dim.claim, DimClaim::Value(_));
            if declared.iter().enumerate().any(|(at, dim)| is_known(at) && !is_declared(dim)) {
                return false;
            }
            continue;
        };
        if !infers_numbers_of(model, facts, node, value) {
            return false;
        }
        open.extend(node.inputs().iter().flatten());
    }
    true
}

/// Returns `true` if ONNX Runtime infers every dim of a node's results when it loads the model, given the shapes of the operands.
/// It keeps the name of an operand's dim, and computes no other dim from names.
pub fn infers_shapes(model: &Model, facts: &Facts, node: &Node) -> bool {
    let shape = |value: ValueId| facts.get(value).and_then(Fact::shape);
    let operands: Vec<ValueId> = node.inputs().iter().flatten().copied().collect();
    let is_kept = |dim: &Dim| {
        let has_dim = |&operand: &ValueId| shape(operand).is_some_and(|dims| dims.contains(dim));
        dim.as_symbol().is_some() && operands.iter().any(has_dim)
    };
    // The dim that a Reshape computes for −1 has no name.
    let computes = |value: ValueId| {
        let contents = model.value(value).tensor().and_then(|tensor| tensor.to_i64s());
        contents.is_none_or(|sizes| sizes.contains(&-1))
    };
    if node.is("Constant") {
        return true;
    }
    let Some(inference) = shape_inference(model, node) else { return false };
    let mut contents = node.inputs().iter().skip(inference.contents_from).flatten();
    let keeps_names = inference.numbers == NumbersOf::Any && !contents.any(|&value| computes(value));
    let is_inferred = |dim: &Dim| is_number(dim) || (keeps_names && is_kept(dim));
    node.outputs().iter().flatten().all(|&value| {
        infers_numbers_of(model, facts, node, value) && shape(value).is_some_and(|dims| dims.iter().all(is_inferred))
    })
}

/// Returns `true` if ONNX Runtime infers the constant dims of a node's result, given those of the operands.
fn infers_numbers_of(model: &Model, facts: &Facts, node: &Node, result: ValueId) -> bool {
    let shape = |value: ValueId| facts.get(value).and_then(Fact::shape);
    let Some(inference) = shape_inference(model, node) else { return false };
    if inference.without.is_some_and(|flag| node.flag(flag, false) != Some(false)) {
        return false;
    }
    // ONNX Runtime does not infer the contents of computed values.
    if node.inputs().iter().skip(inference.contents_from).flatten().any(|&value| !is_written(model, value)) {
        return false;
    }
    let has_same = |operand: ValueId| {
        let Some((result, operand)) = shape(result).zip(shape(operand)) else { return false };
        let mut dims = result.iter().zip(operand);
        result.len() == operand.len() && dims.all(|(result, operand)| !is_number(result) || is_number(operand))
    };
    let is_whole = |operand: ValueId| shape(operand).is_some_and(|shape| shape.iter().all(is_number));
    match inference.numbers {
        NumbersOf::Any => true,
        NumbersOf::Whole(count) => node.inputs().iter().take(count).flatten().all(|&operand| is_whole(operand)),
        NumbersOf::SameAxisOfFirst => node.input(0).is_some_and(has_same),
        NumbersOf::SameAxisOfEach => node.inputs().iter().flatten().all(|&operand| has_same(operand)),
    }
}

fn is_number(dim: &Dim) -> bool {
    dim.as_const().is_some()
}

/// Returns `true` if the file contains the elements of a value.
fn is_written(model: &Model, value: ValueId) -> bool {
    let producer = model.value(value).producer().and_then(|id| model.node(id));
    model.value(value).is_constant() || producer.is_some_and(|node| node.is("Constant"))
}

/// Returns the dependencies of ONNX Runtime's shape inference for a node; `None` for a node with a registered alias.
fn shape_inference(model: &Model, node: &Node) -> Option<ShapeInference> {
    let operator = operator_of(model, node)?;
    let goes_by_its_name = node.op_type == operator.name && node.canonical_domain() == operator.domain;
    traits_of(model, node).shape_inference.filter(|_| goes_by_its_name)
}
