//! Finds subgraphs whose shapes ONNX Runtime uses when it loads a model: Loops that collect rows and may not run, branches that differ.

use rustc_hash::FxHashSet;

use super::dead::graphs_below;
use crate::dim::Dim;
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Fact, Facts, GraphId, Model, Node, NodeId, ValueId};

/// Returns `true` if a node is a Loop that stacks a result of each iteration: its subgraph has more outputs than the condition and the carried
/// values. A Scan does not count: ONNX Runtime rejects one without rows, so shapes written there change no result.
pub(super) fn collects_rows(model: &Model, node: &Node) -> bool {
    let Some(body) = node.subgraphs().next().filter(|_| node.is("Loop")) else { return false };
    // In addition to the carried values, the subgraph has two inputs (iteration number and condition) and one output (condition).
    let (inputs, outputs) = (model.graph(body).inputs().len(), model.graph(body).outputs().len());
    outputs > inputs.saturating_sub(1)
}

/// Returns `true` if a Loop is proved to run at least once.
pub(super) fn always_runs(facts: &Facts, node: &Node) -> bool {
    let number = |slot: usize| facts.get(node.input(slot)?)?.ints()?.first().cloned();
    let enough = number(0).is_some_and(|trips| facts.scope().ge(&trips, &Dim::constant(1)).is_yes());
    let starts = node.input(1).is_none() || number(1).is_some_and(|condition| condition.is_const(1));
    enough && starts
}

/// Returns `true` if a Loop is known not to run.
pub(super) fn never_runs(facts: &Facts, node: &Node) -> bool {
    let is = |slot: usize, most: i64| {
        let number = node.input(slot).and_then(|value| facts.get(value)?.ints()?.first()?.as_const());
        number.is_some_and(|number| number <= most)
    };
    is(0, 0) || is(1, 0)
}

/// Returns the nodes from which ONNX Runtime infers the shape of a Loop's rows. Without rows, the empty result has that shape, as far as it is known
/// at load time. In the subgraph, these are all ancestors of rows, since another node in their place may reveal more. Outside, these are nodes with
/// known contents: as constants they would reveal sizes.
///
/// Returns none for rows whose shape is always known: single numbers, and those with declared rank and known dims.
pub(super) fn telling_rows(model: &Model, facts: &Facts, node: &Node) -> Vec<NodeId> {
    let Some(body) = node.subgraphs().next() else { return Vec::new() };
    // In addition to the condition, a subgraph has one output per carried value; its inputs have the iteration number, too.
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

/// Returns the rows of a Loop, and their ancestors inside it.
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

/// Returns `true` if ONNX Runtime knows the same shape of a row whatever its producer: the rank is declared, and so are the dims that are proved to
/// be numbers. The runtime proves no more than this program. Edits may reveal unproved dims, so an unproved shape requires all dims to be declared.
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

/// Returns `true` if a node is an If whose branches are not proved to return equal shapes.
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
