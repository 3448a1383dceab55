//! Node forms that some consumers misread or refuse, although these consumers accept the original nodes.
//!
//! Law: an edit writes a node of such a form only where a replaced node has the form. So a model without the form never receives it, with
//! every option. If an author wrote one, rules compose it with its neighbours like any other node.
//!
//! | form | consumer | observed |
//! | --- | --- | --- |
//! | Slice with a negative step | OpenCV 4 | computes `7:INT64_MIN:-3` wrongly without an error (issue 22794) |
//! | | ncnn, onnx-mlir, IREE, MIGraphX | refuse it (issues 1961, 386, 24584, 757) |
//! | Loop without a condition | onnx.reference 1.23 | runs `Loop(n, "", …)` zero times without an error |
//! | | IREE 3.13 | cannot legalize it |
//!
//! The replaced nodes are those that the edit removes, and the producers of the operands and values that it changes. A producer above a
//! replaced node is replaced, too, if only replaced nodes read it and no new node does.

use rustc_hash::FxHashSet;

use super::place::Place;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops;
use crate::rewrite::limits::NODES;
use crate::slicing::{AxisOp, Range, SliceRule};

/// A form of a node, in the model and in an edit.
struct Form {
    /// Returns `true` if a node of the model has the form.
    is_there: fn(&Place<'_>, NodeId) -> bool,
    /// Returns `true` if a node that an edit writes has the form.
    is_written: fn(&Place<'_>, &Edit, &Written<'_>) -> bool,
}

/// The forms that no edit introduces.
const NEVER_INTRODUCED: &[Form] = &[
    Form { is_there: steps_backwards, is_written: writes_backward_steps },
    Form {
        is_there: |place, id| place.model.node(id).is_some_and(|node| is_unconditional(&Written::stays(node))),
        is_written: |_, _, node| is_unconditional(node),
    },
];

/// A node of the default domain after an edit.
struct Written<'a> {
    operator: &'a str,
    inputs: Vec<Option<ValueId>>,
}

impl<'a> Written<'a> {
    fn new(node: &'a NewNode) -> Option<Self> {
        let is_default = ["", "ai.onnx"].contains(&node.domain.as_str());
        is_default.then(|| Written { operator: &node.op_type, inputs: node.inputs.clone() })
    }

    fn stays(node: &'a Node) -> Self {
        let operator = if node.canonical_domain().is_empty() { node.op_type.as_str() } else { "" };
        Written { operator, inputs: node.inputs().to_vec() }
    }

    /// Returns a node of the model with the operands that the edit gives it.
    fn rewired(node: &'a Node, id: NodeId, edit: &Edit) -> Self {
        let mut written = Written::stays(node);
        for &(_, slot, value) in edit.rewire.iter().filter(|(rewired, ..)| *rewired == id) {
            if let Some(input) = written.inputs.get_mut(slot) {
                *input = value;
            }
        }
        written
    }

    fn input(&self, slot: usize) -> Option<ValueId> {
        self.inputs.get(slot).copied().flatten()
    }
}

/// Returns `true` if each listed form that the edit writes is also the form of a node that it replaces.
pub(super) fn introduces_nothing(place: &Place<'_>, edit: &Edit) -> bool {
    let rewired = edit.rewire.iter().filter_map(|&(id, ..)| Some(Written::rewired(place.model.node(id)?, id, edit)));
    let written: Vec<Written<'_>> = edit.insert.iter().filter_map(Written::new).chain(rewired).collect();
    let is_kept = |is_there: &dyn Fn(NodeId) -> bool| replaced(place, edit).into_iter().any(is_there);
    NEVER_INTRODUCED.iter().all(|form| {
        let is_written = written.iter().any(|node| (form.is_written)(place, edit, node));
        !is_written || is_kept(&|id| (form.is_there)(place, id))
    }) && written.iter().all(|node| {
        // Operators of other domains are written by no rule.
        !place.lacks(node.operator) || is_kept(&|id| place.model.node(id).is_some_and(|old| old.is(node.operator)))
    })
}

/// Returns the nodes that an edit replaces.
fn replaced(place: &Place<'_>, edit: &Edit) -> Vec<NodeId> {
    let model = place.model;
    let is_read = |value: ValueId| {
        edit.insert.iter().any(|node| node.inputs.contains(&Some(value)))
            || edit.rewire.iter().any(|&(.., new)| new == Some(value))
            || edit.replace.iter().any(|&(_, new)| new == value)
    };
    let mut found: Vec<NodeId> = edit.remove.clone();
    found.extend(edit.rewire.iter().map(|&(id, ..)| id));
    let own: FxHashSet<NodeId> = found.iter().copied().collect();
    let changed = edit.changed_operands(model).filter_map(|(id, slot, _)| model.node(id)?.input(slot));
    let operands = edit.remove.iter().filter_map(|&id| model.node(id)).flat_map(Node::inputs).flatten().copied();
    let mut open: Vec<ValueId> = changed.chain(operands).filter(|&value| !is_read(value)).collect();
    let mut seen = own;
    while let Some(value) = open.pop().filter(|_| found.len() < NODES) {
        let Some(id) = model.value(value).producer().filter(|&id| seen.insert(id)) else { continue };
        found.push(id);
        let above = model.node(id).into_iter().flat_map(Node::inputs).flatten().copied();
        open.extend(above.filter(|&value| !is_read(value)));
    }
    found
}

/// Returns `true` if a node is a Slice of the standard or of another dialect that may have a negative step.
pub(super) fn steps_backwards(place: &Place<'_>, id: NodeId) -> bool {
    let Ok(Some(spec)) = ops::slice_spec(place.model, place.facts, id, SliceRule::Agree) else { return false };
    let rank = place.model.node(id).and_then(|node| node.input(0)).and_then(|data| place.shape(data)).map(<[_]>::len);
    let may_be_negative = |range: &Range| range.step.is_none_or(|step| step < 0);
    match rank.map(|rank| spec.dense(rank)) {
        Some(Ok(Some(axes))) => axes.iter().any(|op| matches!(op, AxisOp::Range(range) if may_be_negative(range))),
        _ => true,
    }
}

/// Returns `true` if the steps of a Slice are not proved to be positive.
fn writes_backward_steps(place: &Place<'_>, edit: &Edit, node: &Written<'_>) -> bool {
    let Some(steps) = node.input(4).filter(|_| node.operator == "Slice") else { return false };
    let made = edit.constants.iter().find(|(value, _)| *value == steps).map(|(_, tensor)| tensor);
    let known = made.or_else(|| if steps.is_placeholder() { None } else { place.constant(steps) });
    !known.and_then(|steps| steps.to_i64s()).is_some_and(|steps| steps.iter().all(|&step| step > 0))
}

fn is_unconditional(node: &Written<'_>) -> bool {
    node.operator == "Loop" && node.input(1).is_none()
}
