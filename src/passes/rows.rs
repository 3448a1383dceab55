//! Loops that collect rows, and whether they run.

use crate::dim::Dim;
use crate::ir::{Facts, Model, Node};

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
