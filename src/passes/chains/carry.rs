//! Carrying a plan out.

use rustc_hash::FxHashMap;

use super::plan::{Planned, Rewired, Step};
use super::survey::Survey;
use crate::ir::{Broken, Edit, GraphId, Model, NewNode, Node, ValueId};
use crate::ops::Opset;
use crate::rewrite::build::{self, Build};
use crate::tensor::Tensor;

/// A plan to be carried out.
pub(super) struct Carried {
    pub steps: Vec<Step>,
    pub answers: Vec<Rewired>,
    /// The values that hold now what the steps will: new ones are named after them.
    pub counterparts: FxHashMap<usize, ValueId>,
}

/// Makes the nodes of the plan, and lets those who asked read them.
pub(super) fn carry_out(model: &mut Model, graph: GraphId, survey: &Survey, carried: Carried) -> Result<(), Broken> {
    let Carried { steps, answers, counterparts } = carried;
    let Some(first) = survey.asked.first() else { return Ok(()) };
    let mut anchor = first.reader;
    while let Some(holder) =
        model.node(anchor).map(Node::graph).filter(|&at| at != graph).and_then(|at| model.graph(at).parent())
    {
        anchor = holder;
    }
    let Some(mut edit) = Edit::at(model, anchor) else { return Ok(()) };
    let opset = Opset::new(survey.opset);
    let mut made: Vec<ValueId> = Vec::with_capacity(steps.len());
    let resolve = |made: &[ValueId], planned: Planned| match planned {
        Planned::Value(value) => Some(value),
        Planned::Step(step) => made.get(step).copied(),
    };
    for (at, step) in steps.into_iter().enumerate() {
        let (stem, node) = match step {
            Step::Constant(tensor) => {
                made.push(edit.constant_named("size", tensor));
                continue;
            }
            Step::Shape(tensor, part) => {
                let stem = format!("{}_shape", model.value(tensor).name);
                let write = Build::named(&mut edit, opset, "");
                let run = part.and_then(|(start, end)| write.shape_of_run(tensor, start..end));
                // A part is only planned where the operator set knows it.
                if part.is_some() && run.is_none() {
                    return Ok(());
                }
                (stem, run.unwrap_or_else(|| Build::shape(tensor)))
            }
            Step::Entries(shape, axes, is_vector) => {
                let list = build::axes(axes);
                let indices = match list.as_slice() {
                    [axis] if !is_vector => Tensor::scalar(*axis),
                    _ => Tensor::vector(list),
                };
                let shape = resolve(&made, shape);
                ("size".to_string(), Build::named(&mut edit, opset, "axis").gather_at(shape, indices, 0usize))
            }
            Step::Concat(pieces) => {
                let pieces: Option<Vec<ValueId>> = pieces.into_iter().map(|piece| resolve(&made, piece)).collect();
                let Some(pieces) = pieces else { return Ok(()) };
                ("sizes".to_string(), Build::concat(pieces, 0usize))
            }
            Step::Vector(scalar) => {
                let scalar = resolve(&made, scalar);
                ("size".to_string(), Build::named(&mut edit, opset, "axes").unsqueeze(scalar, vec![0]))
            }
            Step::Scalar(vector) => ("size".to_string(), NewNode::new("Squeeze", [resolve(&made, vector)])),
            Step::Apply(operator, operands, to) => {
                let inputs: Vec<Option<ValueId>> =
                    operands.into_iter().map(|operand| resolve(&made, operand)).collect();
                let node = NewNode::new(operator, inputs);
                named(model, counterparts.get(&at), if let Some(to) = to { node.with("to", to) } else { node })
            }
            Step::Reduce(operator, vector, keeps) => {
                let node = Build::reduce_all(operator, resolve(&made, vector), keeps);
                named(model, counterparts.get(&at), node)
            }
            Step::Again(id, inputs) => {
                let Some(node) = model.node(id) else { return Ok(()) };
                let mut again = NewNode::like(node);
                again.inputs = inputs.into_iter().map(|input| input.and_then(|input| resolve(&made, input))).collect();
                let stem = node.output(0).map(|output| model.value(output).name.clone());
                (stem.unwrap_or_default(), again)
            }
        };
        if let Some(value) = existing(model, graph, &node, &edit.constants) {
            made.push(value);
            continue;
        }
        let value = edit.value_named(stem);
        made.push(value);
        edit.insert.push(node.output(value));
    }
    for (reader, slot, planned) in answers {
        edit.rewire.push((reader, slot, resolve(&made, planned)));
    }
    for (reader, slot, tensor) in &survey.constants {
        let value = edit.constant_named("size", tensor.clone());
        edit.rewire.push((*reader, *slot, Some(value)));
    }
    model.apply(edit)?;
    Ok(())
}

/// A stem for the name of a result and its node, after the value that holds the same now.
fn named(model: &Model, counterpart: Option<&ValueId>, node: NewNode) -> (String, NewNode) {
    let Some(&value) = counterpart else { return ("size".to_string(), node) };
    let own = model.value(value).producer().and_then(|id| model.node(id)).filter(|own| own.is(&node.op_type));
    (model.value(value).name.clone(), own.map_or(node.clone(), |own| node.named(own.name.clone())))
}

/// The result of a node that is there and does just that: it keeps its name.
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
