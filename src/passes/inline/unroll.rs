//! Loop unrolling: replaces a Loop or Scan that is proved to run a few times by that many copies of its subgraph.

use rustc_hash::FxHashMap;

use super::cost::Cost;
use super::repeated::{Repeated, constant, from_front};
use super::{divides_openly, is_moved, nodes_of};
use crate::ir::{Broken, Edit, Fact, Facts, GraphId, Model, NodeId, Type, ValueId};
use crate::ops::{Opset, axis_in};
use crate::passes::edits::EditCounter;
use crate::passes::untouched::Untouched;
use crate::rewrite::build::Build;
use crate::tensor::{DType, Tensor};

/// The name of the pass, under which its edits are counted.
pub(in crate::passes) const NAME: &str = "unrolled-loop";

/// The most iterations that are unrolled.
const MOST_TRIPS: usize = 16;

/// Replaces every Loop and Scan of the main graph and its subgraphs that is proved to run 2 to [`MOST_TRIPS`] times, according to `trips`. Keeps a
/// node whose replacement adds more nodes than it saves, except for `extra` nodes in total. Returns the number of added nodes.
///
/// Law: iteration `j` is the subgraph with the number `j`, a true condition, and the values carried from the iteration before. It reads slice `j` of
/// each scanned operand, counted from the end if the direction is reversed. The scan outputs are stacked along a new axis.
///
/// # Errors
/// The model is inconsistent.
pub(in crate::passes) fn inline(
    model: &mut Model,
    facts: &Facts,
    trips: &FxHashMap<NodeId, usize>,
    (extra, exact): (usize, bool),
    (untouched, edits): (&Untouched, &mut EditCounter),
) -> Result<usize, Broken> {
    let mut grown = 0usize;
    for id in nodes_of(model, &["Loop", "Scan"], exact) {
        let Some(&trips) = trips.get(&id).filter(|trips| (2..=MOST_TRIPS).contains(*trips)) else { continue };
        if untouched.contains(id) || divides_openly(model, facts, id) {
            continue;
        }
        let Some(plan) = Plan::of(model, facts, id, trips) else { continue };
        let more = plan.come.saturating_sub(plan.go);
        if more <= extra.saturating_sub(grown) && edits.take(NAME, || model.describe(id)) {
            grown += more;
            plan.carry_out(model, id)?;
        }
    }
    Ok(grown)
}

/// The plan to unroll one node.
struct Plan {
    repeated: Repeated,
    trips: usize,
    /// The shapes of the iteration number and the condition in the subgraph.
    leading: [Vec<usize>; 2],
    /// The axis of each scanned operand, in a form that the operator set supports.
    sliced: Vec<(ValueId, i64)>,
    /// The axis of each scan output; `None` if nothing reads the output.
    stacked: Vec<Option<i64>>,
    /// The number of removed nodes, and of those that replace them after folding (`come`).
    go: usize,
    come: usize,
}

impl Plan {
    fn of(model: &Model, facts: &Facts, id: NodeId, trips: usize) -> Option<Plan> {
        let node = model.node(id)?;
        let repeated = Repeated::read(model, node)?;
        let body = model.graph(repeated.body);
        let outputs = body.outputs().get(repeated.carried_outputs()..)?;
        if outputs.len() < node.outputs().len() {
            return None;
        }
        // If a rank changes between iterations, runtimes may reject the copies.
        let has_rank = |&value: &ValueId| match facts.get(value).and_then(|fact| fact.ty.as_ref()) {
            Some(Type::Tensor(tensor)) => tensor.shape.is_some(),
            Some(_) => true,
            None => false,
        };
        if !body.inputs().iter().skip(repeated.leading).chain(outputs).all(has_rank) {
            return None;
        }
        let wanted: Vec<bool> =
            node.outputs().iter().map(|result| result.is_some_and(|result| !model.is_unused(result))).collect();
        let cost = Cost::of(model, facts, &repeated, &wanted)?;
        let come = cost.unrolled(model, trips, &repeated, node);
        // Before operator set 11, no axis is counted from the end.
        let forward = !Opset::of(model, node.graph()).counts_from_the_end();
        let axis = |value, axis, more| {
            let axis = if forward { from_front(facts, value, axis, more) } else { axis };
            (!forward || axis >= 0).then_some(axis)
        };
        // A scan of operands with different lengths fails, but slices of them would not. ONNX Runtime's Gather only copies the first string of each
        // entry.
        let count = i64::try_from(trips).ok()?;
        let has_all = |&(value, at): &(ValueId, i64)| {
            let shape = facts.get(value).and_then(Fact::shape).unwrap_or_default();
            let dtype = facts.get(value).and_then(Fact::dtype);
            let is_number = dtype.is_some_and(|dtype| dtype != DType::String);
            is_number && axis_in(at, shape.len()).is_ok_and(|at| shape.get(at).is_some_and(|size| size.is_const(count)))
        };
        if !repeated.sliced.iter().all(has_all) {
            return None;
        }
        let sliced = repeated.sliced.iter().map(|&(value, at)| Some((value, axis(value, at, 0)?)));
        let left = outputs.iter().zip(&wanted).enumerate().skip(repeated.initial.len());
        let stacked = left.map(|(index, (&output, &wanted))| {
            let at = repeated.output_axes.get(index - repeated.initial.len()).copied().unwrap_or(0);
            wanted.then(|| axis(output, at, 1)).map_or(Some(None), |axis| axis.map(Some))
        });
        let (sliced, stacked) = (sliced.collect::<Option<Vec<_>>>()?, stacked.collect::<Option<Vec<_>>>()?);
        let left = outputs.iter().skip(repeated.initial.len()).zip(&stacked).filter(|(_, axis)| axis.is_some());
        if sliced.iter().any(|&(value, _)| !is_moved(model, facts, node.graph(), "Gather", value))
            || left.map(|(&output, _)| output).any(|output| !is_moved(model, facts, node.graph(), "Concat", output))
        {
            return None;
        }
        // ONNX Runtime stacks rows without elements whatever their shapes are, but rejects a Concat of them.
        let rows = outputs.iter().zip(node.outputs()).skip(repeated.initial.len()).zip(&stacked);
        let has_one_shape = |row: ValueId, result: Option<ValueId>, axis: i64| {
            let (row, result) = (facts.get(row)?.shape()?, facts.get(result?)?.shape()?);
            let at = axis_in(axis, result.len()).ok()?;
            Some(result.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, dim)| dim).eq(row))
        };
        let mut rows = rows.filter_map(|((&row, &result), axis)| Some((row, result, (*axis)?)));
        if !rows.all(|(row, result, axis)| has_one_shape(row, result, axis).unwrap_or(false)) {
            return None;
        }
        let shape = |at: usize| match (repeated.leading, body.inputs().get(at)) {
            (2, Some(&input)) => facts.get(input).and_then(Fact::static_shape),
            _ => Some(Vec::new()),
        };
        let leading = [shape(0)?, shape(1)?];
        Some(Plan { trips, leading, sliced, stacked, go: 1 + cost.nodes, come, repeated })
    }

    fn carry_out(self, model: &mut Model, id: NodeId) -> Result<(), Broken> {
        let Some(home) = model.node(id).map(|node| node.graph()) else { return Ok(()) };
        let states = self.repeated.initial.len();
        let mut carried = self.repeated.initial.clone();
        let mut left: Vec<Vec<ValueId>> = vec![Vec::new(); self.stacked.len()];
        for step in 0..self.trips {
            let mut arguments = self.leading(model, home, step)?;
            arguments.append(&mut carried);
            for (at, &(operand, axis)) in self.sliced.iter().enumerate() {
                let turned = self.repeated.input_reversed.get(at).copied().unwrap_or(false);
                let place = if turned { self.trips - 1 - step } else { step };
                arguments.push(sliced(model, id, (operand, axis), place)?);
            }
            let made = model.copy_iteration(id, self.repeated.body, &arguments, step)?;
            let mut made = made.into_iter().skip(self.repeated.carried_outputs());
            carried.extend(made.by_ref().take(states));
            for (column, value) in left.iter_mut().zip(made) {
                column.push(value);
            }
        }
        let Some(results) = model.node(id).map(|node| node.outputs().to_vec()) else { return Ok(()) };
        let Some(mut edit) = Edit::at(model, id) else { return Ok(()) };
        let opset = Opset::of(model, home);
        for (index, result) in results.into_iter().enumerate() {
            let Some(result) = result.filter(|&result| !model.is_unused(result)) else { continue };
            let read_as = match index.checked_sub(states) {
                None => carried.get(index).copied(),
                Some(at) => {
                    let turned = self.repeated.output_reversed.get(at).copied().unwrap_or(false);
                    let axis = self.stacked.get(at).copied().flatten();
                    let column = left.get_mut(at).filter(|column| column.len() == self.trips);
                    column.zip(axis).map(|(column, axis)| {
                        if turned {
                            column.reverse();
                        }
                        stacked(&mut edit, opset, (result, axis), column)
                    })
                }
            };
            let Some(read_as) = read_as else { return Err(Broken::Inconsistent(model.describe(id))) };
            edit.replace.push((result, read_as));
        }
        edit.remove.push(id);
        model.apply(edit)?;
        Ok(())
    }

    /// Returns the iteration number and the condition of a Loop.
    fn leading(&self, model: &mut Model, home: GraphId, step: usize) -> Result<Vec<ValueId>, Broken> {
        let inputs: Vec<ValueId> =
            model.graph(self.repeated.body).inputs().iter().take(self.repeated.leading).copied().collect();
        let [number, condition] = inputs.as_slice() else { return Ok(Vec::new()) };
        let inconsistent = |_| Broken::Inconsistent(model.value(*number).name.to_string());
        let [number_shape, condition_shape] = &self.leading;
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let step = Tensor::from_vec(number_shape, vec![step]).map_err(inconsistent)?;
        let runs = Tensor::from_bools(condition_shape, &[true]).map_err(inconsistent)?;
        Ok(vec![constant(model, home, *number, step)?, constant(model, home, *condition, runs)?])
    }
}

/// Returns one slice of a scanned operand, computed before `place`.
fn sliced(model: &mut Model, place: NodeId, (operand, axis): (ValueId, i64), number: usize) -> Result<ValueId, Broken> {
    let inconsistent = || Broken::Inconsistent(model.describe(place));
    let mut edit = Edit::at(model, place).ok_or_else(inconsistent)?;
    let home = model.node(place).map(|node| node.graph()).ok_or_else(inconsistent)?;
    let slice = edit.new_value(operand, "slice");
    let number = Tensor::scalar(i64::try_from(number).unwrap_or(i64::MAX));
    let node = Build::after(&mut edit, Opset::of(model, home), slice).gather_at(operand, number, axis).output(slice);
    let made = model.apply(edit.inserting(node))?;
    made.value(slice).ok_or_else(|| Broken::Inconsistent(String::new()))
}

/// Returns the scan outputs of all iterations, stacked along a new axis.
fn stacked(edit: &mut Edit, opset: Opset, (result, axis): (ValueId, i64), column: &[ValueId]) -> ValueId {
    let mut parts = Vec::with_capacity(column.len());
    for &value in column {
        let part = edit.new_value(value, "stacked");
        let node = Build::named(edit, opset, "axes").unsqueeze(value, vec![axis]).output(part);
        edit.insert.push(node);
        parts.push(part);
    }
    let whole = edit.new_value(result, "all");
    edit.insert.push(Build::concat(parts, axis).output(whole));
    whole
}
