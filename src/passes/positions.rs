//! Computes the end of an embedding's positions by the nodes that optimizers match: see [`counted_positions`].

use super::dead::live_graphs;
use super::edits::EditCounter;
use super::untouched::Untouched;
use crate::dim::Dim;
use crate::ir::{Broken, Edit, Fact, Facts, GraphId, Model, NewNode, NodeId, Scalar, ValueId};
use crate::ops::{Budget, Opset};
use crate::rewrite::{Build, Place, PositionEnd, Taken, counted_positions};
use crate::tensor::{DType, Tensor};

/// The name of the pass, under which its edits are counted.
pub(super) const NAME: &str = "positions";

/// Writes `Shape(words, start = 1, end = 2)` and the like as `Unsqueeze(Gather(Shape(words), 1), [0])`.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn spell_out(
    model: &mut Model,
    (facts, untouched): (&Facts, &Untouched),
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let (budget, taken) = (Budget::default(), Taken::default());
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        let nodes: Vec<NodeId> = model.graph(graph).nodes().collect();
        for id in nodes {
            let place = Place { model, facts, id, opset, budget: &budget, taken: &taken, avoided: &[] };
            let Some(count) = counted_positions(&place).filter(|count| !untouched.contains(count.reader)) else {
                continue;
            };
            let Some(edit) = spelled_out(&place, graph, &count) else { continue };
            if !edits.take(NAME, || model.describe(count.reader)) {
                return Ok(());
            }
            model.apply(edit)?;
        }
    }
    Ok(())
}

fn spelled_out(place: &Place<'_>, graph: GraphId, count: &PositionEnd) -> Option<Edit> {
    let (model, opset) = (place.model, place.opset);
    let reader = model.node(count.reader)?;
    let end = reader.output(0)?;
    // A node without a name is called like its result.
    let name = if reader.name.is_empty() { &model.value(end).name } else { &reader.name };
    let dims = place.shape(count.words)?;
    let mut edit = Edit::at(model, count.reader)?.removing(count.reader);
    let known = (model, place.facts);
    let shape = match count.shape {
        Some(shape) => shape,
        None => {
            let shape = edit.value_of_ints(known, end, "sizes", &sizes(vec![Dim::constant(2)], dims));
            edit = edit.inserting(Build::shape(count.words).named(format!("{name}/sizes")).output(shape));
            shape
        }
    };
    let size = edit.value_of_ints(known, end, "words", &sizes(Vec::new(), dims.get(1..2)?));
    let index = constant(place, graph, &mut edit, (end, "words_index"), Tensor::scalar(1i64));
    edit = edit.inserting(Build::gather(shape, index, 0i64).named(format!("{name}/words")).output(size));
    let mut unsqueeze = NewNode::new("Unsqueeze", [Some(size)]);
    if opset.axes_are_operands() {
        let axes = constant(place, graph, &mut edit, (end, "words_axes"), Tensor::vector(vec![0i64]));
        unsqueeze.inputs.push(Some(axes));
    } else {
        unsqueeze = unsqueeze.with("axes", vec![0i64]);
    }
    Some(edit.inserting(unsqueeze.named(name.clone()).output(end)))
}

/// Returns the fact of an int64 tensor of this shape with these elements.
fn sizes(shape: Vec<Dim>, elements: &[Dim]) -> Fact {
    let elements = elements.iter().cloned().map(Scalar::Int).collect();
    Fact::tensor(Some(DType::Int64), Some(shape)).with_elements(elements)
}

/// Returns a constant of the graph: an initializer with the tensor as value in every run, or a new one.
fn constant(
    place: &Place<'_>,
    graph: GraphId,
    edit: &mut Edit,
    (like, suffix): (ValueId, &'static str),
    tensor: Tensor,
) -> ValueId {
    place.model.constant_of(graph, &tensor).unwrap_or_else(|| {
        let value = edit.value_of_ints((place.model, place.facts), like, suffix, &Fact::constant(tensor.clone()));
        edit.constants.push((value, tensor));
        value
    })
}
