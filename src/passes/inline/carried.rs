//! Removes values that a Loop or Scan carries unnecessarily from one iteration to the next.

use super::nodes_of;
use super::repeated::{Needed, Repeated, remove_all};
use crate::ir::{Attribute, Broken, DeclaredType, Definition, Edit, Fact, Facts, GraphId, Model, NodeId, ValueId};
use crate::ops::Opset;
use crate::passes::edits::EditCounter;
use crate::passes::quantization::is_quantization_operand;
use crate::passes::rows::{always_runs, collects_rows};
use crate::passes::untouched::Untouched;

/// The name of the pass, under which its edits are counted.
pub(in crate::passes) const NAME: &str = "carried-value";

/// Removes unnecessary carried values and results of the Loops and Scans of the main graph and its subgraphs.
///
/// Law: a value that each iteration returns unchanged equals the initial one, in each iteration and after the last. A value need be neither carried
/// nor returned if neither the condition nor a result with readers depends on it.
///
/// # Errors
/// The model is inconsistent.
pub(in crate::passes) fn uncarry(
    model: &mut Model,
    facts: &Facts,
    untouched: &Untouched,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    for id in nodes_of(model, &["Loop", "Scan"], false).into_iter().filter(|&id| !untouched.contains(id)) {
        let Some(repeated) = model.node(id).and_then(|node| Repeated::read(model, node)) else { continue };
        // Without rows, ONNX Runtime returns the shape that it inferred for a row, and it infers nothing about carried values.
        if model.node(id).is_some_and(|node| !collects_rows(model, node) || always_runs(facts, node)) {
            replace_unchanged(model, facts, (id, &repeated), edits)?;
        }
        drop_unneeded(model, (id, &repeated), edits)?;
    }
    Ok(())
}

/// Replaces a carried value that never changes by its initial value, in the subgraph and for readers of the result.
fn replace_unchanged(
    model: &mut Model,
    facts: &Facts,
    (id, repeated): (NodeId, &Repeated),
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let body = model.graph(repeated.body);
    let inputs = body.inputs().iter().skip(repeated.leading);
    let outputs = body.outputs().iter().skip(repeated.carried_outputs());
    let states: Vec<(ValueId, ValueId)> = inputs.copied().zip(outputs.copied()).collect();
    for (index, ((input, output), &initial)) in states.into_iter().zip(&repeated.initial).enumerate() {
        let may_read = is_copied(model, facts, input, initial) && !is_quantization_operand(model, input);
        if !is_handed_on(model, repeated.body, input, output) || !may_read {
            continue;
        }
        let result = model.node(id).and_then(|node| node.output(index));
        let result = result.filter(|&result| !model.is_unused(result) && !model.is_named(result));
        let is_read = model.users(input).into_iter().any(|(reader, _)| !is_copy_of(model, reader, output));
        if (!is_read && result.is_none()) || !edits.take(NAME, || model.describe(id)) {
            continue;
        }
        // A copy is kept, now of the initial value: ONNX Runtime's Scan returns nothing if an output of its subgraph is an input of it.
        model.replace_uses(input, initial);
        if let (Some(result), Some(edit)) = (result, Edit::at(model, id)) {
            model.apply(edit.replacing(result, initial))?;
        }
    }
    Ok(())
}

/// Returns `true` if an iteration returns a value unchanged, itself or a copy.
fn is_handed_on(model: &Model, body: GraphId, input: ValueId, output: ValueId) -> bool {
    let Definition::Node(id, _) = model.value(output).definition() else { return input == output };
    let copies = |id| model.node(id).is_some_and(|node| node.is("Identity") && node.input(0) == Some(input));
    copies(id) && model.node(id).is_some_and(|node| node.graph() == body)
}

/// Returns `true` if a node is the producer of the returned value.
fn is_copy_of(model: &Model, id: NodeId, output: ValueId) -> bool {
    matches!(model.value(output).definition(), Definition::Node(by, _) if by == id)
}

/// Returns `true` if the subgraph gets exactly the initial value, and may read it outside as well. A sequence is moved into the subgraph, and a value
/// of another type may become an optional.
fn is_copied(model: &Model, facts: &Facts, input: ValueId, initial: ValueId) -> bool {
    let wraps = matches!(model.value(input).declared, Some(DeclaredType::Optional { .. }));
    !wraps && facts.get(initial).is_some_and(Fact::is_copied)
}

/// Drops unneeded carried values and results.
fn drop_unneeded(
    model: &mut Model,
    (id, repeated): (NodeId, &Repeated),
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let Some(node) = model.node(id).cloned() else { return Ok(()) };
    let (inputs, outputs) = {
        let body = model.graph(repeated.body);
        (body.inputs().to_vec(), body.outputs().to_vec())
    };
    let (before, states) = (repeated.carried_outputs(), repeated.initial.len());
    let wanted = |index: usize| node.output(index).is_some_and(|result| !model.is_unused(result));
    let needed = needed(model, repeated, (&inputs, &outputs), &wanted);
    let stays = |index: usize| {
        let is_read = || inputs.get(repeated.leading + index).is_some_and(|input| needed.values.contains(input));
        wanted(index) || (index < states && is_read())
    };
    let kept: Vec<usize> = (0..outputs.len() - before).filter(|&index| stays(index)).collect();
    // Dead code elimination removes a node without used results.
    if kept.len() == outputs.len() - before || kept.is_empty() || !(0..outputs.len() - before).any(&wanted) {
        return Ok(());
    }
    // Before operator set 11, a Loop must carry a value.
    let carries = kept.iter().any(|&index| index < states);
    if node.is("Loop") && !carries && Opset::of(model, node.graph()).version() < 11 {
        return Ok(());
    }
    if !edits.take(NAME, || model.describe(id)) {
        return Ok(());
    }
    let is_kept = |index: &usize| *index >= states || kept.contains(index);
    let stays_at = |at: usize, first: usize| at.checked_sub(first).is_none_or(|index| is_kept(&index));
    // A Loop and its subgraph have equally many inputs before the carried ones.
    let operands: Vec<Option<ValueId>> = remaining(node.inputs(), |at| stays_at(at, repeated.leading));
    let left: Vec<ValueId> = remaining(&inputs, |at| stays_at(at, repeated.leading));
    let given: Vec<ValueId> =
        remaining(&outputs, |at| at.checked_sub(before).is_none_or(|index| kept.contains(&index)));
    let mut results: Vec<Option<ValueId>> = kept.iter().map(|&index| node.output(index)).collect();
    while results.last() == Some(&None) {
        results.pop();
    }
    keep_entries(model, id, &kept.iter().filter_map(|index| index.checked_sub(states)).collect::<Vec<usize>>());
    model.set_outputs(repeated.body, &given);
    remove_all(model, needed.unneeded);
    model.set_inputs(repeated.body, &left)?;
    for (slot, &operand) in operands.iter().enumerate() {
        model.set_input(id, slot, operand);
    }
    model.truncate_inputs(id, operands.len());
    // A Loop has at least two operands, named or not.
    if repeated.leading == 2 && operands.get(1) == Some(&None) {
        model.set_input(id, 1, None);
    }
    model.set_results(id, &results);
    Ok(())
}

/// Returns the items at the kept places.
fn remaining<T: Copy>(items: &[T], stays: impl Fn(usize) -> bool) -> Vec<T> {
    items.iter().copied().enumerate().filter(|&(at, _)| stays(at)).map(|(_, item)| item).collect()
}

/// Keeps the axes and directions of these scan outputs of a Scan.
fn keep_entries(model: &mut Model, id: NodeId, kept: &[usize]) {
    let Some(node) = model.node_mut(id) else { return };
    for held in &mut node.attributes {
        let is_of_outputs = ["scan_output_axes", "scan_output_directions"].contains(&held.name.as_str());
        if let Attribute::Ints(entries) = &mut held.value
            && is_of_outputs
        {
            *entries = kept.iter().filter_map(|&at| entries.get(at).copied()).collect();
        }
    }
}

/// Returns the part of the subgraph that the condition and the results with readers depend on, in the last iteration or an earlier one.
fn needed(
    model: &Model,
    repeated: &Repeated,
    (inputs, outputs): (&[ValueId], &[ValueId]),
    wanted: &dyn Fn(usize) -> bool,
) -> Needed {
    let before = repeated.carried_outputs();
    let results: Vec<(ValueId, bool)> =
        outputs.iter().skip(before).enumerate().map(|(index, &output)| (output, wanted(index))).collect();
    let states: Vec<ValueId> = inputs.iter().skip(repeated.leading).take(repeated.initial.len()).copied().collect();
    Needed::in_any(model, repeated.body, &states, outputs.iter().take(before).copied(), &results)
}
