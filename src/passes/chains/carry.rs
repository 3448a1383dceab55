//! Turns the steps of a plan into nodes, and rewires the readers.

use rustc_hash::{FxHashMap, FxHashSet};

use super::demands::{Demands, holder_in};
use super::step::{Claim, Operand, Plan, Step};
use super::survey::Survey;
use crate::ir::{Broken, Edit, GraphId, Model, NewNode, NodeId, ValueId};
use crate::rewrite::build::{self, Build};
use crate::tensor::Tensor;

/// Creates the nodes of a plan, and rewires the readers to their results.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn carry_out(model: &mut Model, survey: &Survey, demands: &Demands, plan: Plan) -> Result<(), Broken> {
    let Some(first) = demands.list.first() else { return Ok(()) };
    let anchor = holder_in(model, survey.graph, first.reader);
    let Some(edit) = Edit::at(model, anchor) else { return Ok(()) };
    let names = counterparts(survey, &plan);
    let mut writer = Writer { model, survey, edit, made: Vec::with_capacity(plan.steps.len()) };
    for (at, planned) in plan.steps.into_iter().enumerate() {
        let Some(value) = writer.make(planned.step, names.get(&at).copied()) else { return Ok(()) };
        writer.made.push(value);
    }
    let mut readers: FxHashSet<NodeId> = FxHashSet::default();
    for (at, operand) in plan.answers {
        let Some(demand) = demands.list.get(at) else { continue };
        readers.insert(demand.reader);
        let value = writer.value(operand);
        writer.edit.rewire.push((demand.reader, demand.slot, value));
    }
    for (reader, slot, tensor) in demands.constants.iter().filter(|(reader, ..)| readers.contains(reader)) {
        let value = writer.edit.constant_named("size", tensor.clone());
        writer.edit.rewire.push((*reader, *slot, Some(value)));
    }
    let edit = writer.edit;
    model.apply(edit)?;
    Ok(())
}

/// Returns the first value that now has the content of each step. The result of the step is named after it.
fn counterparts(survey: &Survey, plan: &Plan) -> FxHashMap<usize, ValueId> {
    let same = plan.steps.iter().enumerate().filter_map(|(at, planned)| match &planned.claim {
        Claim::Row(row) => Some((at, survey.first.get(row)?.0)),
        Claim::Value(value) => Some((at, *value)),
    });
    same.collect()
}

struct Writer<'a> {
    model: &'a Model,
    survey: &'a Survey,
    edit: Edit,
    /// The result of each step.
    made: Vec<ValueId>,
}

impl Writer<'_> {
    fn value(&self, operand: Operand) -> Option<ValueId> {
        match operand {
            Operand::Value(value) => Some(value),
            Operand::Step(step) => self.made.get(step).copied(),
        }
    }

    fn values(&self, operands: &[Operand]) -> Vec<Option<ValueId>> {
        operands.iter().map(|&operand| self.value(operand)).collect()
    }

    /// Returns the result of a step.
    fn make(&mut self, step: Step, counterpart: Option<ValueId>) -> Option<ValueId> {
        let (stem, node) = match step {
            Step::Constant(tensor) => return Some(self.edit.constant_named("size", tensor)),
            Step::Apply { .. } | Step::Reduce { .. } => self.named(counterpart, &step)?,
            Step::Copy(..) => {
                let name = counterpart.map(|value| self.model.value(value).name.to_string());
                (name.unwrap_or_default(), self.node(&step)?)
            }
            Step::Shape(tensor, _) => (format!("{}_shape", self.model.value(tensor).name), self.node(&step)?),
            Step::Concat(_) => ("sizes".to_string(), self.node(&step)?),
            Step::Gather { .. } | Step::Unsqueeze(_) | Step::Squeeze(_) => ("size".to_string(), self.node(&step)?),
        };
        if let Some(value) = existing(self.model, self.survey.graph, &node, &self.edit.constants) {
            return Some(value);
        }
        let value = self.edit.value_named(stem);
        self.edit.insert.push(node.output(value));
        Some(value)
    }

    /// Builds the node of a step, without a result.
    fn node(&mut self, step: &Step) -> Option<NewNode> {
        let opset = self.survey.opset;
        Some(match step {
            Step::Constant(_) => return None,
            Step::Shape(tensor, None) => Build::shape(*tensor),
            Step::Shape(tensor, Some((start, end))) => {
                Build::named(&mut self.edit, opset, "").shape_of_run(*tensor, *start..*end)?
            }
            Step::Gather { data, indices, is_vector } => {
                let list = build::axes(indices.iter().copied());
                let indices = match list.as_slice() {
                    [index] if !is_vector => Tensor::scalar(*index),
                    _ => Tensor::vector(list),
                };
                let data = self.value(*data);
                Build::named(&mut self.edit, opset, "axis").gather_at(data, indices, 0usize)
            }
            Step::Concat(pieces) => {
                Build::concat(self.values(pieces).into_iter().collect::<Option<Vec<ValueId>>>()?, 0usize)
            }
            Step::Unsqueeze(scalar) => {
                let scalar = self.value(*scalar);
                Build::named(&mut self.edit, opset, "axes").unsqueeze(scalar, vec![0])
            }
            Step::Squeeze(vector) => NewNode::new("Squeeze", [self.value(*vector)]),
            Step::Apply { operator, operands, to } => {
                let node = NewNode::new(operator, self.values(operands));
                if let Some(to) = to { node.with("to", *to) } else { node }
            }
            Step::Reduce { operator, operand, keeps_axis } => {
                Build::reduce_all(operator, self.value(*operand), *keeps_axis)
            }
            Step::Copy(id, operands) => {
                let mut copy = NewNode::like(self.model.node(*id)?);
                copy.inputs = operands.iter().map(|operand| operand.and_then(|operand| self.value(operand))).collect();
                copy
            }
        })
    }

    /// Builds the node of a step, and a stem for the name of its result. The value that has the same content now gives both their names.
    fn named(&mut self, counterpart: Option<ValueId>, step: &Step) -> Option<(String, NewNode)> {
        let node = self.node(step)?;
        let Some(value) = counterpart else { return Some(("size".to_string(), node)) };
        let value = self.model.value(value);
        let own = value.producer().and_then(|id| self.model.node(id)).filter(|own| own.is(&node.op_type));
        let node = match own {
            Some(own) => node.named(own.name.clone()),
            None => node,
        };
        Some((value.name.to_string(), node))
    }
}

/// Returns the result of an existing node that equals a new one, so that the name is kept. The operands of the new node precede its readers, so the
/// existing node can, too.
fn existing(model: &Model, graph: GraphId, wanted: &NewNode, constants: &[(ValueId, Tensor)]) -> Option<ValueId> {
    let made = |value: ValueId| constants.iter().find(|(constant, _)| *constant == value).map(|(_, tensor)| tensor);
    let first = wanted.inputs.iter().flatten().copied().find(|&value| made(value).is_none())?;
    if first.is_placeholder() {
        return None;
    }
    let same = |a: &Option<ValueId>, b: &Option<ValueId>| match (a, b) {
        (Some(a), Some(b)) => {
            let constants = || model.value(*a).constant_tensor().zip(made(*b));
            a == b || constants().is_some_and(|(a, b)| a.same(b))
        }
        (a, b) => a == b,
    };
    model.users(first).into_iter().find_map(|(reader, _)| {
        let node = model.node(reader).filter(|node| node.graph() == graph && node.is(&wanted.op_type))?;
        let attributes = node.attributes.len() == wanted.attributes.len()
            && node.attributes.iter().zip(&wanted.attributes).all(|(a, b)| a.name == b.name && a.value.same(&b.value));
        let inputs = node.inputs().len() == wanted.inputs.len()
            && node.inputs().iter().zip(&wanted.inputs).all(|(a, b)| same(a, b));
        let [Some(output)] = *node.outputs() else { return None };
        (attributes && inputs).then_some(output)
    })
}
