//! Values whose shape in a runtime differs from the standard without an error.
//!
//! ONNX Runtime's reductions, including ArgMax and ArgMin, resolve negative axes only for nonempty operands. For an empty operand
//! they look up the negative number, find no axis, and keep the operand's shape. A later Slice or Reshape may restore the shape
//! of the standard. So such a node is not redundant, even if it is the identity by the standard.
//!
//! For an Attention with packed heads whose value size is unknown, ONNX Runtime infers 0 as hidden size
//! ([`misreads_hidden_size`]).
//!
//! OpenVINO (2026.4) assigns the operand's sizes to a strided Slice if they come from a window (Conv, MaxPool) through a Reshape.
//! Consumers of these sizes compute with the operand's ([`is_strided`]).

use super::traits::{Movement, traits_of};
use crate::dim::Dim;
use crate::ir::{Attribute, Facts, Model, Node, ValueId};
use crate::ops::axis_in;

/// The maximum number of nodes to follow up to a reduction.
const FOLLOWED: usize = 16;

/// Returns `true` if the shape of a value in ONNX Runtime may differ from the proved one. This applies to reductions of possibly
/// empty operands along negative axes, to element-wise results of these and constants, and to parts of them.
pub fn may_be_misread(model: &Model, facts: &Facts, mut value: ValueId) -> bool {
    for _ in 0..FOLLOWED {
        let Some(node) = model.value(value).producer().and_then(|id| model.node(id)) else { return false };
        let traits = traits_of(model, node);
        if traits.reduces.is_some() {
            return counts_from_end(facts, node) && may_be_empty(facts, node);
        }
        if matches!(traits.moves, Some(Movement::Through | Movement::Selection)) {
            let Some(data) = node.input(0) else { return false };
            value = data;
            continue;
        }
        let mut computed = node.inputs().iter().flatten().filter(|&&operand| !model.value(operand).is_constant());
        match (traits.pointwise, computed.next(), computed.next()) {
            (Some(_), Some(&only), None) => value = only,
            _ => return false,
        }
    }
    false
}

/// Returns `true` if the sizes of a value are those of a strided Slice of an unknown dim, and no Shape reads them yet.
/// Element-wise operators and data movement may forward them.
pub fn is_strided(model: &Model, facts: &Facts, value: ValueId) -> bool {
    let reads = |(id, _)| model.node(id).is_some_and(|node| node.is("Shape"));
    if model.users(value).into_iter().any(reads) {
        return false;
    }
    let mut open = vec![value];
    for _ in 0..FOLLOWED {
        let Some(value) = open.pop() else { return false };
        let Some(node) = model.value(value).producer().and_then(|id| model.node(id)) else { continue };
        let traits = traits_of(model, node);
        if node.is("Slice") && has_steps(facts, node).unwrap_or(false) {
            return true;
        }
        let moves = traits.moves.is_some_and(|movement| movement != Movement::Layout);
        if moves || traits.pointwise.is_some() || traits.mixes.is_some() || node.is("MatMul") {
            open.extend(node.inputs().iter().flatten().filter(|&&operand| is_open(facts, operand)));
        }
    }
    false
}

/// Returns `true` if a Slice skips elements along an axis of unknown size.
fn has_steps(facts: &Facts, node: &Node) -> Option<bool> {
    let shape = facts.get(node.input(0)?)?.shape()?;
    let steps = facts.get(node.input(4)?)?.const_ints()?;
    let axes = match node.input(3) {
        Some(axes) => facts.get(axes)?.const_ints()?,
        None => (0i64..).take(steps.len()).collect(),
    };
    let is_open = |axis: i64| {
        let axis = axis_in(axis, shape.len()).ok().and_then(|axis| shape.get(axis));
        axis.is_some_and(|dim| dim.as_const().is_none())
    };
    Some(axes.into_iter().zip(steps).any(|(axis, step)| step.unsigned_abs() > 1 && is_open(axis)))
}

/// Returns `true` if some dim of a value is not constant.
fn is_open(facts: &Facts, value: ValueId) -> bool {
    let shape = facts.get(value).and_then(|fact| fact.shape());
    shape.is_some_and(|shape| shape.iter().any(|dim| dim.as_const().is_none()))
}

/// Returns `true` if ONNX Runtime infers a hidden size of 0 for the result of a node at load time, which differs from the run: an
/// Attention with packed heads and an unknown value size.
pub fn misreads_hidden_size(facts: &Facts, node: &Node) -> bool {
    let values = || node.input(2).and_then(|values| facts.get(values)?.shape());
    node.is("Attention") && matches!(values(), Some([_, _, hidden]) if hidden.as_const().is_none())
}

/// Returns `true` if a reduction may have a negative axis.
fn counts_from_end(facts: &Facts, node: &Node) -> bool {
    let named = ["axes", "axis"].into_iter().find_map(|name| node.attribute(name));
    match (named, node.input(1)) {
        (Some(Attribute::Ints(axes)), _) => axes.iter().any(|&axis| axis < 0),
        (Some(Attribute::Int(axis)), _) => *axis < 0,
        (Some(_), _) => true,
        (None, Some(axes)) => {
            facts.get(axes).and_then(|fact| fact.const_ints()).is_none_or(|axes| axes.iter().any(|&axis| axis < 0))
        }
        (None, None) => false,
    }
}

/// Returns `true` unless the first operand is proved to have elements.
fn may_be_empty(facts: &Facts, node: &Node) -> bool {
    let shape = node.input(0).and_then(|data| facts.get(data)?.shape());
    let is_there = |dim: &Dim| facts.scope().ge(dim, &Dim::constant(1)).is_yes();
    shape.is_none_or(|shape| !shape.iter().all(is_there))
}
