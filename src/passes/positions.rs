//! Positions of an embedding that are counted in the nodes that optimizers look for: see [`counted_positions`].

use super::dead::live_graphs;
use super::outcome::RunError;
use crate::ir::{Constant, Edit, Facts, GraphId, Model, NewNode, NodeId, ValueId};
use crate::ops::{Budget, Opset};
use crate::rewrite::{Build, Place, Taken, counted_positions};
use crate::tensor::Tensor;

/// Reads the ends of such positions in those nodes. Tells whether there were any.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn spell_out(model: &mut Model, facts: &Facts) -> Result<bool, RunError> {
    let (budget, taken, mut is_any) = (Budget::default(), Taken::default(), false);
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        let nodes: Vec<NodeId> = model.graph(graph).nodes().collect();
        for id in nodes {
            let at = Place { model, facts, id, opset, budget: &budget, taken: &taken };
            let Some(count) = counted_positions(&at) else { continue };
            let Some(reader) = model.node(count.reader) else { continue };
            let (Some(end), name) = (reader.output(0), reader.name.clone()) else { continue };
            let Some(mut edit) = Edit::at(model, count.reader) else { continue };
            // What was spelled so in the file was taken for less, and has the same names again.
            let mut value = |suffix: &'static str| {
                let former = model.left_value(&format!("{}_{suffix}", model.value(end).name));
                former.unwrap_or_else(|| edit.new_value(end, suffix))
            };
            let (size, shape) = (value("words"), count.shape.unwrap_or_else(|| value("sizes")));
            let index = constant(model, graph, &mut edit, (end, "words_index"), Tensor::scalar(1i64))?;
            let mut unsqueeze = NewNode::new("Unsqueeze", [Some(size)]);
            if opset.axes_are_operands() {
                let axes = constant(model, graph, &mut edit, (end, "words_axes"), Tensor::vector(vec![0i64]))?;
                unsqueeze.inputs.push(Some(axes));
            } else {
                unsqueeze = unsqueeze.with("axes", vec![0i64]);
            }
            if count.shape.is_none() {
                edit = edit.inserting(Build::shape(count.words).output(shape));
            }
            let gather = Build::gather(shape, index, 0i64).named(format!("{name}/words")).output(size);
            let edit = edit.removing(count.reader).inserting(gather);
            model.apply(edit.inserting(unsqueeze.named(name).output(end)))?;
            is_any = true;
        }
    }
    Ok(is_any)
}

/// A constant of the graph: one that is there, or a new one of this name.
fn constant(
    model: &mut Model,
    graph: GraphId,
    edit: &mut Edit,
    (like, suffix): (ValueId, &'static str),
    tensor: Tensor,
) -> Result<ValueId, RunError> {
    let is_it = |&value: &ValueId| model.value(value).tensor().is_some_and(|known| known.same(&tensor));
    if let Some(known) = model.graph(graph).initializers().iter().copied().find(is_it) {
        return Ok(known);
    }
    let Some(former) = model.left_value(&format!("{}_{suffix}", model.value(like).name)) else {
        return Ok(edit.constant(like, suffix, tensor));
    };
    model.add_initializer(graph, former, Constant::dense(tensor))?;
    Ok(former)
}
