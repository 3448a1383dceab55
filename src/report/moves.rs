//! Data of pictures of nodes that move elements: the parts of their operands and the places in their results.

use super::cuts::{AxisTaken, axis};
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model, Node, NodeId};
use crate::ops::{NodeView, Opset, slice_spec};
use crate::slicing::{self, AxisOp, Bound, SliceRule};

/// The largest number of indices of a Gather that are listed.
const LISTED: usize = 256;

/// The size that an example gives every open dim.
const EXAMPLE: i64 = 64;

/// A Slice, a strided slice of another dialect, a Gather, a Pad or a Transpose.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Move {
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// Its operator.
    pub operator: String,
    /// Its first result.
    pub result: String,
    /// The value whose elements it moves.
    pub data: String,
    /// The axes of the data, and those that a strided slice adds.
    pub axes: Vec<MovedAxis>,
    /// The axes of the data in the order of the result, for a Transpose.
    pub permutation: Option<Vec<usize>>,
    /// The axis along which a Gather looks up.
    pub axis: Option<usize>,
    /// The indices of a Gather, as far as they are known.
    pub indices: Option<String>,
    /// The mode of a Pad.
    pub mode: Option<String>,
}

/// An axis of a [`Move`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MovedAxis {
    /// The form: `keep`, `range`, `index` or `new`.
    pub form: &'static str,
    /// The range of the axis.
    pub taken: AxisTaken,
    /// Start, length and size where every open dim is 64, for an example; `None` if the range does not lie within the axis.
    pub example: Option<(i64, i64, i64)>,
    /// The elements that a Pad adds before and after it.
    pub pads: Option<(i64, i64)>,
    /// The constant indices of a Gather along it.
    pub picks: Option<Vec<i64>>,
}

/// Returns what the nodes of the main graph that move elements take.
pub(crate) fn moves(model: &Model, facts: &Facts) -> Vec<Move> {
    let nodes = model.graph(model.main()).nodes();
    nodes.filter_map(|id| moved(model, facts, id, model.node(id)?)).collect()
}

fn moved(model: &Model, facts: &Facts, id: NodeId, node: &Node) -> Option<Move> {
    let data = node.input(0)?;
    let dims = facts.get(data)?.shape()?;
    let name = |value| model.value(value).name.to_string();
    let mut found = Move {
        node: model.describe(id),
        operator: node.operator(),
        result: name(node.output(0)?),
        data: name(data),
        axes: Vec::new(),
        permutation: None,
        axis: None,
        indices: None,
        mode: None,
    };
    let scope = facts.scope();
    let view = NodeView { node, facts, opset: Opset::of(model, node.graph()) };
    let whole = || dims.iter().map(|dim| moved_axis(scope, "keep", dim)).collect::<Vec<_>>();
    if node.is("Transpose") {
        (found.axes, found.permutation) = (whole(), Some(view.permutation(dims.len())?));
    } else if node.is("Pad") {
        found.axes = whole();
        for (axis, pads) in found.axes.iter_mut().zip(view.pads()?) {
            axis.pads = Some(pads);
        }
        found.mode = Some(String::from_utf8_lossy(node.text("mode", b"constant")?).into_owned());
    } else if node.is("Gather") {
        found.axes = whole();
        let axis = view.axis(dims.len())?;
        found.axis = Some(axis);
        let indices = facts.get(node.input(1)?);
        let known = indices.and_then(|indices| indices.ints()).filter(|known| known.len() <= LISTED);
        found.indices = known.as_ref().map(|known| {
            let texts: Vec<String> = known.iter().map(|index| scope.format(index)).collect();
            texts.join(", ")
        });
        if let Some(moved) = found.axes.get_mut(axis) {
            moved.form = if indices?.rank() == Some(0) { "index" } else { "range" };
            moved.picks = known.and_then(|known| known.iter().map(Dim::as_const).collect());
            moved.taken.is_known = moved.picks.is_some();
            (moved.taken.span, moved.example) = (None, None);
        }
    } else {
        let spec = slice_spec(model, facts, id, SliceRule::Agree).ok()??;
        let mut rest = dims.iter();
        for op in spec.dense(dims.len()).ok()?? {
            if op == AxisOp::NewAxis {
                found.axes.push(moved_axis(scope, "new", &Dim::constant(1)));
                continue;
            }
            let dim = rest.next()?;
            let (form, exact, step) = match op {
                AxisOp::Keep | AxisOp::NewAxis => ("keep", Some((Dim::constant(0), dim.clone())), Some(1)),
                AxisOp::Range(range) => {
                    let range = slicing::with_numbers(scope, dim, &range, spec.reading);
                    let exact = slicing::resolve_exactly(scope, dim, &range, spec.reading);
                    ("range", exact.map(|(selection, len)| (selection.start, len)), range.step)
                }
                AxisOp::Index(index) => {
                    let at =
                        if index == Bound::Unknown { None } else { slicing::resolve_index(scope, dim, &index).ok()? };
                    ("index", at.map(|at| (at, Dim::constant(1))), Some(1))
                }
            };
            let example = exact.as_ref().and_then(|(start, len)| example(dim, start, len, step));
            let taken = axis(scope, dim, exact, step, form != "keep");
            found.axes.push(MovedAxis { form, taken, example, pads: None, picks: None });
        }
    }
    Some(found)
}

/// An axis of which all is taken.
fn moved_axis(scope: &Scope, form: &'static str, dim: &Dim) -> MovedAxis {
    let whole = (Dim::constant(0), dim.clone());
    let example = example(dim, &whole.0, &whole.1, Some(1));
    MovedAxis { form, taken: axis(scope, dim, Some(whole), Some(1), false), example, pads: None, picks: None }
}

fn example(size: &Dim, start: &Dim, len: &Dim, step: Option<i64>) -> Option<(i64, i64, i64)> {
    let number = |dim: &Dim| dim.evaluate(&|_| Some(EXAMPLE));
    let (size, start, len) = (number(size)?, number(start)?, number(len)?);
    let last = start.checked_add(len.checked_sub(1)?.checked_mul(step.unwrap_or(1))?)?;
    let is_inside = |place| (0..size).contains(&place);
    (len == 0 || len > 0 && is_inside(start) && is_inside(last)).then_some((start, len, size))
}
