//! Bodies of which ONNX Runtime tells shapes when it loads a model: Loops that collect rows and may not run, branches that differ.

use rustc_hash::FxHashSet;

use super::dead::graphs_below;
use crate::dim::Dim;
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Fact, Facts, GraphId, Model, Node, NodeId, ValueId};

/// Whether a node is a Loop that stacks a result of each iteration: its body has more outputs than the condition and the values carried from
/// one iteration to the next. Scans are not meant: ONNX Runtime refuses one without rows, so shapes written there change no result.
pub(super) fn collects_rows(model: &Model, node: &Node) -> bool {
    let Some(body) = node.subgraphs().next().filter(|_| node.is("Loop")) else { return false };
    // Beside the carried values the body has two inputs, the iteration's number and the condition, and one output, the condition.
    let (inputs, outputs) = (model.graph(body).inputs().len(), model.graph(body).outputs().len());
    outputs > inputs.saturating_sub(1)
}

/// Whether a Loop is proved to run at least once.
pub(super) fn always_runs(facts: &Facts, node: &Node) -> bool {
    let number = |slot: usize| facts.get(node.input(slot)?)?.ints()?.first().cloned();
    let enough = number(0).is_some_and(|trips| facts.scope().ge(&trips, &Dim::constant(1)).is_yes());
    let starts = node.input(1).is_none() || number(1).is_some_and(|condition| condition.is_const(1));
    enough && starts
}

/// Whether a Loop is known not to run.
pub(super) fn never_runs(facts: &Facts, node: &Node) -> bool {
    let is = |slot: usize, most: i64| {
        let number = node.input(slot).and_then(|value| facts.get(value)?.ints()?.first()?.as_const());
        number.is_some_and(|number| number <= most)
    };
    is(0, 0) || is(1, 0)
}

/// The nodes that tell ONNX Runtime the shape of the rows that a Loop collects: if there is no row, the empty result has that shape, as far
/// as it is told when the model is loaded. In the body it is everything that rows are computed from, for every node may let more be known than
/// another in its place. Outside it is what computes contents that are known: as constants they would tell sizes.
///
/// Nothing for rows whose shape is told in any case: single numbers, and those whose rank and known dims the file declares.
pub(super) fn telling_rows(model: &Model, facts: &Facts, node: &Node) -> Vec<NodeId> {
    let Some(body) = node.subgraphs().next() else { return Vec::new() };
    // Beside the condition a body gives as many carried values as it takes beside the iteration's number and the condition.
    let carried = model.graph(body).inputs().len().saturating_sub(1);
    let rows = model.graph(body).outputs().iter().skip(carried).copied();
    let inside: FxHashSet<GraphId> = graphs_below(model, body).into_iter().collect();
    let mut open: Vec<ValueId> = rows.filter(|&row| !is_told(model, facts, row)).collect();
    let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
    while let Some(value) = open.pop() {
        let Some(id) = model.value(value).producer().filter(|id| seen.insert(*id)) else { continue };
        let Some(node) = model.node(id) else { continue };
        if !inside.contains(&node.graph()) && facts.get(value).is_none_or(|fact| fact.data().is_none()) {
            continue;
        }
        found.push(id);
        open.extend(node.inputs().iter().flatten());
        let held: Vec<GraphId> = node.subgraphs().flat_map(|held| graphs_below(model, held)).collect();
        for graph in held {
            open.extend(model.graph(graph).outputs());
        }
    }
    found
}

/// The values that the rows of a Loop are computed from inside it, and the rows.
pub(super) fn read_for_rows(model: &Model, node: &Node) -> FxHashSet<ValueId> {
    let Some(body) = node.subgraphs().next() else { return FxHashSet::default() };
    let carried = model.graph(body).inputs().len().saturating_sub(1);
    let mut open: Vec<ValueId> = model.graph(body).outputs().iter().skip(carried).copied().collect();
    let inside: FxHashSet<GraphId> = graphs_below(model, body).into_iter().collect();
    let mut found = FxHashSet::default();
    while let Some(value) = open.pop() {
        if !model.graph_of(value).is_some_and(|graph| inside.contains(&graph)) || !found.insert(value) {
            continue;
        }
        let Some(node) = model.value(value).producer().and_then(|id| model.node(id)) else { continue };
        open.extend(node.inputs().iter().flatten());
        for held in node.subgraphs().flat_map(|held| graphs_below(model, held)) {
            open.extend(model.graph(held).outputs());
        }
    }
    found
}

/// Whether ONNX Runtime is told as much of the shape of a row whatever computes it: the rank is declared, and of the dims those that are
/// proved to be numbers. It proves no more than this program does. Of what is not proved yet an edit may tell more, so then all dims are to
/// be declared.
fn is_told(model: &Model, facts: &Facts, row: ValueId) -> bool {
    let declared = model.value(row).declared.as_ref().and_then(DeclaredType::shape);
    let is_number = |declared: &DeclaredDim| matches!(declared.claim, DimClaim::Value(_));
    let Some(proved) = facts.get(row).and_then(Fact::shape) else {
        return declared.is_some_and(|declared| declared.iter().all(is_number));
    };
    let is_open = |(proved, declared): (&Dim, &DeclaredDim)| proved.as_const().is_none() || is_number(declared);
    let agrees = |declared: &[DeclaredDim]| declared.len() == proved.len() && proved.iter().zip(declared).all(is_open);
    proved.is_empty() || declared.is_some_and(|declared| agrees(declared))
}

/// Whether a node is an If whose branches are not proved to give results of the same shapes.
pub(super) fn has_unlike_branches(model: &Model, facts: &Facts, node: &Node) -> bool {
    let branches: Vec<GraphId> = node.subgraphs().collect();
    let [one, other] = *branches.as_slice() else { return false };
    let shape = |value: &ValueId| facts.get(*value).and_then(Fact::shape);
    let are_alike = |(a, b): (&ValueId, &ValueId)| match (shape(a), shape(b)) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| facts.scope().eq(a, b).is_yes()),
        _ => false,
    };
    node.is("If") && !model.graph(one).outputs().iter().zip(model.graph(other).outputs()).all(are_alike)
}
