//! Finds shapes that let ONNX Runtime fuse a sum with its normalization.
//!
//! When ONNX Runtime (1.31) knows the shapes of `a` and `b`, it replaces `LayerNormalization(Add(a, b))` by its SkipLayerNormalization. The shapes
//! must have rank 3, and each dim the same number or name in both. On CPUs that kernel is slower than the two nodes, and differs in its last bits
//! (`docs/runtimes.md`). The runtime knows declared shapes, and infers others from those of operands. So the shapes of the operands must be omitted
//! together with those that they are inferred from, up to shapes that the runtime always knows.

use rustc_hash::FxHashSet;

use super::dead::{graphs_below, live_graphs};
use crate::ir::{DeclaredDim, DeclaredType, Definition, DimClaim, Fact, Facts, Model, Node, NodeId, ValueId};
use crate::ops::{Budget, Opset, infers_shapes};
use crate::rewrite::{Place, Taken, is_only_normalized};
use crate::tensor::DType;

/// Sums that ONNX Runtime would fuse, and the shapes that allow it.
#[derive(Default)]
pub(crate) struct Fused {
    /// The number of sums with a normalization.
    pub sums: usize,
    /// The values whose shapes the runtime knows only from the file, and from which it infers the operands of these sums.
    pub values: FxHashSet<ValueId>,
}

/// Finds the sums that ONNX Runtime fuses with a normalization only because the model declares shapes, apart from those of `given` values.
pub(crate) fn fused_by_shapes(model: &Model, facts: &Facts, given: &dyn Fn(ValueId) -> bool) -> Fused {
    let mut sums = sums(model, facts);
    if sums.is_empty() {
        return Fused::default();
    }
    let known = known(model, facts, given);
    sums.retain(|operands| operands.iter().any(|operand| !known.contains(operand)));
    let (mut open, mut values) = (sums.concat(), FxHashSet::default());
    while let Some(value) = open.pop() {
        if known.contains(&value) || !values.insert(value) {
            continue;
        }
        // ONNX Runtime infers the input of a subgraph from the operands of its node, and from the outputs of the subgraph.
        let id = match model.value(value).definition() {
            Definition::Node(id, _) => Some(id),
            Definition::Input(graph) => model.graph(graph).parent(),
            _ => None,
        };
        let Some(node) = id.and_then(|id| model.node(id)) else { continue };
        open.extend(node.inputs().iter().flatten());
        for graph in node.subgraphs().flat_map(|graph| graphs_below(model, graph)) {
            let inner = model.graph(graph).nodes().filter_map(|id| model.node(id));
            open.extend(inner.flat_map(|node| node.inputs().iter().chain(node.outputs())).flatten());
            open.extend(model.graph(graph).outputs());
        }
    }
    Fused { sums: sums.len(), values }
}

/// Returns the operands of each sum that ONNX Runtime fuses with a normalization if it knows their shapes.
fn sums(model: &Model, facts: &Facts) -> Vec<[ValueId; 2]> {
    let (budget, taken) = (Budget::default(), Taken::default());
    let mut sums = Vec::new();
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        let operands = |id: NodeId| {
            let place = Place { model, facts, id, opset, budget: &budget, taken: &taken, avoided: &[] };
            let node = model.node(id).filter(|node| node.is("Add"))?;
            let (&[Some(a), Some(b)], &[Some(sum)]) = (node.inputs(), node.outputs()) else { return None };
            let is_float = facts.get(sum).and_then(Fact::dtype) == Some(DType::Float);
            let is_fused = is_float && !model.is_output(sum) && have_one_shape(model, facts, a, b);
            (is_fused && is_only_normalized(&place, sum)).then_some([a, b])
        };
        sums.extend(model.graph(graph).nodes().filter_map(operands));
    }
    sums
}

/// Returns `true` if the written shapes of two values have rank 3 and the same dims.
fn have_one_shape(model: &Model, facts: &Facts, a: ValueId, b: ValueId) -> bool {
    let written = |value: ValueId| -> Option<Vec<DimClaim>> {
        let claims = |dims: &[DeclaredDim]| dims.iter().map(|dim| dim.claim.clone()).collect();
        let number = |dim: &crate::dim::Dim| dim.as_const().map(DimClaim::Value);
        match model.value(value).declared.as_ref().and_then(DeclaredType::shape) {
            Some(dims) => Some(claims(dims)),
            None => facts.get(value).and_then(Fact::shape)?.iter().map(number).collect(),
        }
    };
    let dims = written(a).filter(|dims| dims.len() == 3 && !dims.contains(&DimClaim::Unknown));
    dims.is_some() && dims == written(b)
}

/// Returns the values whose shapes ONNX Runtime always knows: constants, inputs, those `given`, and results that it infers from these.
fn known(model: &Model, facts: &Facts, given: &dyn Fn(ValueId) -> bool) -> FxHashSet<ValueId> {
    let mut known = FxHashSet::default();
    for graph in live_graphs(model) {
        let own = model.graph(graph);
        known.extend(own.initializers());
        if graph == model.main() {
            known.extend(own.inputs());
        }
        known.extend(own.inputs().iter().filter(|&&input| given(input)));
        // The order is topological: a model without one was rejected before.
        for node in model.topological(graph).unwrap_or_default().into_iter().filter_map(|id| model.node(id)) {
            let knows = |node: &Node| node.inputs().iter().flatten().all(|operand| known.contains(operand));
            let is_inferred = knows(node) && infers_shapes(model, facts, node);
            known.extend(node.outputs().iter().flatten().filter(|&&result| is_inferred || given(result)));
        }
    }
    known
}
