//! Which sizes ONNX Runtime infers when it loads a model.
//!
//! What it infers by is a trait of operators ([`ShapeInference`]). It matters where the runtime goes by what it has inferred: of a Loop that runs
//! no iteration it gives rows of the sizes that it has found in the body.

use rustc_hash::FxHashSet;

use super::registry::operator_of;
use super::traits::{NumbersOf, ShapeInference, traits_of};
use crate::dim::Dim;
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Fact, Facts, Model, Node, ValueId};

/// Whether ONNX Runtime infers the sizes of a value that are numbers when it loads the model: it is constant as it is written, an input that the
/// file declares with these numbers, or computed of such values by operators whose shapes it infers from no more ([`ShapeInference`]).
pub(super) fn infers_numbers(model: &Model, facts: &Facts, value: ValueId) -> bool {
    let shape = |value: ValueId| facts.get(value).and_then(Fact::shape);
    let is_number = |dim: &Dim| dim.as_const().is_some();
    let is_written = |value: ValueId| {
        let producer = model.value(value).producer().and_then(|id| model.node(id));
        model.value(value).is_constant() || producer.is_some_and(|node| node.is("Constant"))
    };
    let (mut open, mut seen) = (vec![value], FxHashSet::default());
    while let Some(value) = open.pop() {
        if !seen.insert(value) || is_written(value) {
            continue;
        }
        let Some(node) = model.value(value).producer().and_then(|id| model.node(id)) else {
            let Some(declared) = model.value(value).declared.as_ref().and_then(DeclaredType::shape) else {
                return false;
            };
            let is_known = |at: usize| shape(value).is_some_and(|shape| shape.get(at).is_some_and(is_number));
            let is_declared = |dim: &DeclaredDim| matches!(dim.claim, DimClaim::Value(_));
            if declared.iter().enumerate().any(|(at, dim)| is_known(at) && !is_declared(dim)) {
                return false;
            }
            continue;
        };
        let Some(inference) = shape_inference(model, node) else { return false };
        if inference.without.is_some_and(|flag| node.flag(flag, false) != Some(false)) {
            return false;
        }
        // Of what is computed it infers no contents.
        if node.inputs().iter().skip(inference.contents_from).flatten().any(|&value| !is_written(value)) {
            return false;
        }
        let has_same = |operand: ValueId| {
            let Some((result, operand)) = shape(value).zip(shape(operand)) else { return false };
            let mut dims = result.iter().zip(operand);
            result.len() == operand.len() && dims.all(|(result, operand)| !is_number(result) || is_number(operand))
        };
        let is_whole = |operand: ValueId| shape(operand).is_some_and(|shape| shape.iter().all(is_number));
        let has_numbers = match inference.numbers {
            NumbersOf::Any => true,
            NumbersOf::Whole(count) => node.inputs().iter().take(count).flatten().all(|&operand| is_whole(operand)),
            NumbersOf::SameAxisOfFirst => node.input(0).is_some_and(has_same),
            NumbersOf::SameAxisOfEach => node.inputs().iter().flatten().all(|&operand| has_same(operand)),
        };
        if !has_numbers {
            return false;
        }
        open.extend(node.inputs().iter().flatten());
    }
    true
}

/// By what the shapes of a node's results are inferred. Of a node that goes by another name nothing is known, whatever it is taken for.
fn shape_inference(model: &Model, node: &Node) -> Option<ShapeInference> {
    let operator = operator_of(model, node)?;
    let goes_by_its_name = node.op_type == operator.name && node.canonical_domain() == operator.domain;
    traits_of(model, node).shape_inference.filter(|_| goes_by_its_name)
}
