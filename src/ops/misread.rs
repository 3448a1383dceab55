//! Values to which a runtime gives another shape than the standard does, without failing.
//!
//! ONNX Runtime's reductions, ArgMax and ArgMin among them, count an axis from the end only where there is something to reduce: of an operand
//! without elements they look for the axis by the number that is written, find none, and keep the operand's shape. A Slice or Reshape
//! behind such a node may take what the standard says is there, and so repairs the shape; one that does nothing by the standard is
//! then not for nothing.
//!
//! For the result of an Attention with heads side by side it infers 0 as hidden size where that of the values is open
//! ([`misreads_hidden_size`]).
//!
//! OpenVINO (2026.4) gives a Slice with steps the sizes of its operand where these come from a window (Conv, MaxPool) by way of a Reshape: what reads
//! them there computes with the operand's ([`is_strided`]).

use super::traits::{Movement, traits_of};
use crate::dim::Dim;
use crate::ir::{Attribute, Facts, Model, Node, ValueId};
use crate::ops::axis_in;

/// How many nodes are followed up to a reduction.
const FOLLOWED: usize = 16;

/// Whether a value may have another shape in ONNX Runtime than is proved of it: it is reduced along an axis that is counted from the end,
/// of what may be empty, or is computed element by element of that and of constants, or a part of it.
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

/// Whether the sizes of a value are those that a Slice with steps leaves of an open size, handed on by what computes element by element or moves
/// elements, and no Shape reads them yet.
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

/// Whether a Slice passes over elements along an axis of open size.
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

/// Whether some size of a value is no number.
fn is_open(facts: &Facts, value: ValueId) -> bool {
    let shape = facts.get(value).and_then(|fact| fact.shape());
    shape.is_some_and(|shape| shape.iter().any(|dim| dim.as_const().is_none()))
}

/// Whether ONNX Runtime infers a hidden size of 0 for the result of a node when it loads the model, which the run then does not give: an Attention
/// with heads side by side, of values whose hidden size is open.
pub fn misreads_hidden_size(facts: &Facts, node: &Node) -> bool {
    let values = || node.input(2).and_then(|values| facts.get(values)?.shape());
    node.is("Attention") && matches!(values(), Some([_, _, hidden]) if hidden.as_const().is_none())
}

/// Whether a reduction may name an axis by a negative number.
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

/// Whether the first operand may have no elements, for all that is proved.
fn may_be_empty(facts: &Facts, node: &Node) -> bool {
    let shape = node.input(0).and_then(|data| facts.get(data)?.shape());
    let is_there = |dim: &Dim| facts.scope().ge(dim, &Dim::constant(1)).is_yes();
    shape.is_none_or(|shape| !shape.iter().all(is_there))
}
