//! What nodes that move elements take of their data, and where they put it, for pictures.

use super::cuts::{AxisTaken, axis, pictured};
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model, Node, NodeId};
use crate::ops::{NodeView, Opset, slice_spec};
use crate::slicing::{self, AxisOp, Bound, SliceRule};

/// The largest number of indices of a Gather that are listed.
const LISTED: usize = 256;

/// A Slice, a strided slice of another dialect, a Gather, a Pad or a Transpose.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedAxis {
    /// What becomes of the axis: `keep`, `range`, `index` or `new`.
    pub form: &'static str,
    /// What is taken of it.
    pub taken: AxisTaken,
    /// The elements that a Pad adds before and after it.
    pub pads: Option<(i64, i64)>,
    /// The constant indices that a Gather takes of it.
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
            moved.taken.picture = None;
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
            let taken = axis(scope, dim, exact, step, form != "keep");
            found.axes.push(MovedAxis { form, taken, pads: None, picks: None });
        }
    }
    Some(found)
}

/// An axis of which all is taken.
fn moved_axis(scope: &Scope, form: &'static str, dim: &Dim) -> MovedAxis {
    let picture = pictured(dim).map(|size| (0, size, size));
    let taken = AxisTaken { size: scope.format(dim), taken: None, is_known: true, picture, step: Some(1) };
    MovedAxis { form, taken, pads: None, picks: None }
}
