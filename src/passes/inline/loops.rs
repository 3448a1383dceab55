//! Replaces a Loop or Scan that is proved to run once by its subgraph, and one that never runs by its initial values.

use rustc_hash::{FxHashMap, FxHashSet};

use super::repeated::{Needed, Repeated, constant, from_front, is_typed_alike, remove_all};
use super::{divides_openly, holds_names, is_moved, nodes_of};
use crate::ir::{Broken, Data, Definition, Edit, Fact, Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::Opset;
use crate::passes::edits::EditCounter;
use crate::passes::untouched::Untouched;
use crate::rewrite::build::Build;

/// The name of the pass, under which its edits are counted.
pub(in crate::passes) const NAME: &str = "decided-loop";

/// Replaces every Loop and Scan of the main graph and its subgraphs that is proved to run once or never, according to `trips`. Keeps a node whose
/// replacement takes more nodes than it saves.
///
/// Law: one iteration is the subgraph with 0 for the iteration number and the initial values for the carried ones. A scan reads the only slice of
/// each operand, and adds an axis of size 1 to each output. Without an iteration, the initial values are the results, and each scan output is a
/// tensor with an axis of size 0.
///
/// # Errors
/// The model is inconsistent.
pub fn inline(
    model: &mut Model,
    facts: &Facts,
    trips: &FxHashMap<NodeId, usize>,
    exact: bool,
    (untouched, edits): (&Untouched, &mut EditCounter),
) -> Result<(), Broken> {
    for id in nodes_of(model, &["Loop", "Scan"], exact) {
        match trips.get(&id) {
            // The replacement of a loop may reveal more of a shape.
            Some(0) if !untouched.tells_rows(id) => never(model, facts, id, edits)?,
            // Runtimes check subgraphs for invalid nodes less strictly.
            Some(1)
                if !untouched.contains(id)
                    && !holds_broken(model, untouched, id)
                    && !divides_openly(model, facts, id) =>
            {
                once(model, facts, id, edits)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn holds_broken(model: &Model, untouched: &Untouched, id: NodeId) -> bool {
    let mut bodies = model.node(id).into_iter().flat_map(Node::subgraphs);
    bodies.any(|body| untouched.has_broken(model, body))
}

/// Replaces a node whose subgraph never runs.
fn never(model: &mut Model, facts: &Facts, id: NodeId, edits: &mut EditCounter) -> Result<(), Broken> {
    let Some(node) = model.node(id) else { return Ok(()) };
    let Some(repeated) = Repeated::read(model, node) else { return Ok(()) };
    let results = node.outputs().to_vec();
    if !is_typed_alike(model, facts, &repeated) {
        return Ok(());
    }
    let Some(mut edit) = Edit::at(model, id) else { return Ok(()) };
    let mut identities = 0;
    for (index, result) in results.into_iter().enumerate() {
        let Some(result) = result.filter(|&result| !model.is_unused(result)) else { continue };
        match repeated.initial.get(index) {
            Some(&initial) => {
                identities += usize::from(model.is_named(result));
                edit.replace.push((result, initial));
            }
            None => {
                // Only known content determines the result of runtimes.
                let empty = facts.get(result).and_then(Fact::data).and_then(Data::tensor).cloned();
                let Some(empty) = empty.filter(|tensor| tensor.is_empty() && !model.is_named(result)) else {
                    return Ok(());
                };
                let value = edit.constant(result, "empty", empty);
                edit.replace.push((result, value));
            }
        }
    }
    if identities > 1 + model.graph(repeated.body).node_count() {
        return Ok(());
    }
    edit.remove.push(id);
    if edits.take(NAME, || model.describe(id)) {
        model.apply(edit)?;
    }
    Ok(())
}

/// Replaces a node whose subgraph runs once.
fn once(model: &mut Model, facts: &Facts, id: NodeId, edits: &mut EditCounter) -> Result<(), Broken> {
    let Some(node) = model.node(id) else { return Ok(()) };
    let Some(repeated) = Repeated::read(model, node) else { return Ok(()) };
    let (home, body) = (node.graph(), repeated.body);
    let results = node.outputs().to_vec();
    let inputs = model.graph(body).inputs().to_vec();
    let outputs = model.graph(body).outputs().get(repeated.carried_outputs()..).unwrap_or_default().to_vec();
    if outputs.len() < results.len() || holds_names(model, body) || !is_typed_alike(model, facts, &repeated) {
        return Ok(());
    }
    let wanted: Vec<(usize, ValueId)> = (0..)
        .zip(results.iter().zip(&outputs))
        .filter(|(_, (result, _))| result.is_some_and(|result| !model.is_unused(result)))
        .map(|(index, (_, &output))| (index, output))
        .collect();
    let needed = Needed::of(model, body, wanted.iter().map(|&(_, output)| output));
    // Before operator set 11, no axis is counted from the end.
    let forward = !Opset::of(model, home).counts_from_the_end();
    let counted = |value, axis, more| if forward { from_front(facts, value, axis, more) } else { axis };
    let sliced: Vec<(usize, ValueId, i64)> = (repeated.leading + repeated.initial.len()..)
        .zip(&repeated.sliced)
        .filter(|&(at, _)| inputs.get(at).is_some_and(|input| needed.values.contains(input)))
        .map(|(at, &(operand, axis))| (at, operand, counted(operand, axis, 0)))
        .collect();
    let scans = wanted.iter().filter(|&&(index, _)| index >= repeated.initial.len());
    let stacked: Vec<(usize, ValueId, i64)> = scans
        .map(|&(index, output)| {
            let axis = repeated.output_axes.get(index - repeated.initial.len()).copied().unwrap_or(0);
            (index, output, counted(output, axis, 1))
        })
        .collect();
    let mut axes = sliced.iter().chain(&stacked).map(|&(_, _, axis)| axis);
    if forward && axes.any(|axis| axis < 0) {
        return Ok(());
    }
    if sliced.len() + stacked.len() + identities(model, body, &repeated, &results, &wanted) > 1 + needed.unneeded.len()
    {
        return Ok(());
    }
    if sliced.iter().any(|&(_, operand, _)| !is_moved(model, facts, home, "Squeeze", operand))
        || stacked.iter().any(|&(_, output, _)| !is_moved(model, facts, home, "Unsqueeze", output))
    {
        return Ok(());
    }
    let is_known = |input: &ValueId| facts.get(*input).and_then(Fact::data).and_then(Data::tensor).is_some();
    let mut leading = inputs.iter().take(repeated.leading);
    if !leading.all(|input| is_known(input) || !needed.values.contains(input)) {
        return Ok(());
    }
    // All checks have passed; the changes start here.
    if !edits.take(NAME, || model.describe(id)) {
        return Ok(());
    }
    let mut arguments = Vec::with_capacity(inputs.len());
    for (index, &input) in inputs.iter().enumerate() {
        let argument = if index < repeated.leading {
            let known = facts.get(input).and_then(Fact::data).and_then(Data::tensor).cloned();
            match known.filter(|_| needed.values.contains(&input)) {
                Some(tensor) => Some(constant(model, home, input, tensor)?),
                None => None,
            }
        } else {
            repeated.initial.get(index - repeated.leading).copied()
        };
        arguments.push(argument);
    }
    for (index, operand, axis) in sliced {
        let slice = squeezed(model, id, home, operand, axis)?;
        if let Some(argument) = arguments.get_mut(index) {
            *argument = slice;
        }
    }
    // Nodes that no wanted result needs may read subgraph inputs without an argument, so they are removed before the subgraph is inlined.
    remove_all(model, needed.unneeded);
    let mut read_as = outputs;
    for (index, output, axis) in stacked {
        let stacked = unsqueezed(model, body, output, axis)?;
        if let Some((place, stacked)) = read_as.get_mut(index).zip(stacked) {
            *place = stacked;
        }
    }
    let arguments: Vec<ValueId> =
        inputs.iter().zip(arguments).map(|(&input, argument)| argument.unwrap_or(input)).collect();
    model.inline_subgraph(id, body, &arguments, &read_as)?;
    Ok(())
}

/// Returns the most Identities that the results need. A result whose name must survive needs one, unless a node of the subgraph computes it and no
/// other result: then that node takes the name.
fn identities(
    model: &Model,
    body: GraphId,
    repeated: &Repeated,
    results: &[Option<ValueId>],
    wanted: &[(usize, ValueId)],
) -> usize {
    let mut taken = FxHashSet::default();
    let needs_one = |&&(index, output): &&(usize, ValueId)| {
        let named = results.get(index).copied().flatten().is_some_and(|result| model.is_named(result));
        let computed = matches!(model.value(output).definition(), Definition::Node(node, _)
            if model.node(node).is_some_and(|node| node.graph() == body));
        // A result with a new axis has a separate producer.
        let own = index >= repeated.initial.len() || (computed && taken.insert(output));
        named && !own
    };
    wanted.iter().filter(needs_one).count()
}

/// Returns the only slice of a scanned operand, computed before `place`.
fn squeezed(
    model: &mut Model,
    place: NodeId,
    home: GraphId,
    operand: ValueId,
    axis: i64,
) -> Result<Option<ValueId>, Broken> {
    let Some(mut edit) = Edit::at(model, place) else { return Ok(None) };
    let slice = edit.new_value(operand, "slice");
    let node = Build::named(&mut edit, Opset::of(model, home), "axes").squeeze(operand, vec![axis]).output(slice);
    Ok(model.apply(edit.inserting(node))?.value(slice))
}

/// Returns an output of the subgraph with an additional axis of size 1.
fn unsqueezed(model: &mut Model, body: GraphId, output: ValueId, axis: i64) -> Result<Option<ValueId>, Broken> {
    let mut edit = Edit::at_end(body);
    let stacked = edit.new_value(output, "stacked");
    let node = Build::named(&mut edit, Opset::of(model, body), "axes").unsqueeze(output, vec![axis]).output(stacked);
    Ok(model.apply(edit.inserting(node))?.value(stacked))
}
