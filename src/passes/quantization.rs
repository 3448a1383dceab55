//! Selects the dequantized constants that are kept quantized.
//!
//! `DequantizeLinear` of a constant is a constant, but its float value would lose the quantization: the integer kernel of a runtime, and a model of a
//! quarter of the size. So its result is not folded while a run-time node reads it, directly or through nodes that only move elements. Where each
//! element keeps its scale, those nodes move the quantized tensor instead (`rewrite/dequantized.rs`); others, such as a Concat with floats, are kept.
//! Constants computed from it in other ways are ordinary constants. The result itself is one, too, if only they or the outputs of the model read it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dead::{graphs_below, live_graphs};
use super::options::Options;
use crate::ir::{Broken, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::operator_of;
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::is_quantization;

/// Returns the nodes that are kept although their results are constant: dequantizations of constants with run-time readers, and the nodes in between
/// that move elements. Each has `true` if another constant is computed from it, which needs its result at fold time.
///
/// # Errors
/// A graph has a cycle.
pub(super) fn kept(model: &Model, options: &Options) -> Result<FxHashMap<NodeId, bool>, Broken> {
    let mut graphs = live_graphs(model);
    graphs.extend(model.functions().flat_map(|(_, function)| graphs_below(model, function.body)));
    let mut nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let mut kept = FxHashMap::default();
    if options.fold_dequantize || !nodes.any(is_dequantization) {
        return Ok(kept);
    }
    let mut order: Vec<NodeId> = Vec::new();
    for &graph in &graphs {
        order.extend(model.topological(graph)?);
    }
    let pairs = constant_pairs(model, &order);
    kept.extend(pairs.iter().map(|&id| (id, false)));
    let known = constant_values(model, &graphs, &order, &pairs);
    // The values that run-time nodes read, and those that constants are computed from. A graph precedes its subgraphs, so in reverse order every
    // reader precedes its operands.
    let (mut read, mut folded): (FxHashSet<ValueId>, FxHashSet<ValueId>) = Default::default();
    for &id in order.iter().rev() {
        let Some(node) = model.node(id) else { continue };
        let any_in = |values: &FxHashSet<ValueId>| node.outputs().iter().flatten().any(|value| values.contains(value));
        let is_dequantized = || moves(model, node) || is_dequantization(node);
        if !node.outputs().iter().flatten().all(|value| known.contains(value)) {
            // Inference may find a constant here from known sizes, and then the constants of readers, too.
            if any_in(&read) && is_dequantized() {
                kept.insert(id, true);
            }
            read.extend(node.inputs().iter().flatten());
        } else if any_in(&read) && is_dequantized() {
            let is_needed = any_in(&folded);
            kept.insert(id, is_needed);
            if moves(model, node) {
                read.extend(moved(model, node));
            }
            if is_needed {
                folded.extend(node.inputs().iter().flatten());
            }
        } else {
            folded.extend(node.inputs().iter().flatten());
        }
    }
    // Movements of other constants are ordinary constants.
    let mut dequantized: FxHashSet<ValueId> = FxHashSet::default();
    for &id in &order {
        let Some(node) = model.node(id).filter(|_| kept.contains_key(&id) && !pairs.contains(&id)) else { continue };
        if is_dequantization(node) || moved(model, node).any(|value| dequantized.contains(&value)) {
            dequantized.extend(node.outputs().iter().flatten());
        } else {
            kept.remove(&id);
        }
    }
    Ok(kept)
}

/// Returns the quantizations whose dequantized results have other readers than products with weights. ONNX Runtime has integer kernels for additions,
/// multiplications and the like of two quantized tensors, but does not use them if one tensor is an initializer. So such a pair is kept as in the
/// file. Weights are smaller as integers, and their kernels expect integers.
fn constant_pairs(model: &Model, order: &[NodeId]) -> FxHashSet<NodeId> {
    let readers = |value: ValueId| model.users(value).into_iter().filter_map(|(id, _)| model.node(id));
    let feeds_others = |node: &Node| {
        let mut dequantized =
            node.outputs().iter().flatten().flat_map(|&value| readers(value)).filter(|n| is_dequantization(n));
        dequantized.any(|node| {
            let mut users = node.outputs().iter().flatten().flat_map(|&value| readers(value));
            users.any(|user| !traits_of(model, user).is_product())
        })
    };
    let quantizations = order.iter().copied().filter(|&id| model.node(id).is_some_and(is_quantization));
    quantizations.filter(|&id| model.node(id).is_some_and(feeds_others)).collect()
}

/// Returns the values that only depend on initializers. Excludes inputs of a graph, results of random operators and of nodes with subgraphs, and
/// those quantized in `pairs`.
fn constant_values(
    model: &Model,
    graphs: &[GraphId],
    order: &[NodeId],
    pairs: &FxHashSet<NodeId>,
) -> FxHashSet<ValueId> {
    let initializers = graphs.iter().flat_map(|&graph| model.graph(graph).initializers());
    let mut constant: FxHashSet<ValueId> =
        initializers.copied().filter(|&value| model.value(value).is_constant()).collect();
    for node in order.iter().filter(|id| !pairs.contains(id)).filter_map(|&id| model.node(id)) {
        let repeats = operator_of(model, node).is_some_and(|operator| operator.deterministic);
        let known = node.inputs().iter().flatten().all(|value| constant.contains(value));
        if repeats && known && node.subgraphs().next().is_none() {
            constant.extend(node.outputs().iter().flatten());
        }
    }
    constant
}

/// Returns `true` if results are elements of operands, whatever their type.
fn moves(model: &Model, node: &Node) -> bool {
    let traits = traits_of(model, node);
    traits.any_type && traits.moves.is_some()
}

/// Returns the operands whose elements a node moves.
fn moved<'m>(model: &Model, node: &'m Node) -> impl Iterator<Item = ValueId> + 'm {
    let count = if traits_of(model, node).moves == Some(Movement::Join) { usize::MAX } else { 1 };
    node.inputs().iter().take(count).flatten().copied()
}

fn is_dequantization(node: &Node) -> bool {
    node.op_type == "DequantizeLinear" && ["", "com.microsoft"].contains(&node.canonical_domain())
}

/// Returns `true` if a value is an operand of a quantization or dequantization. Those of a subgraph must not leave it: ONNX Runtime fuses a product
/// with the dequantization of its weights. It looks for these in the subgraph only, and otherwise does not load the model.
pub(super) fn is_quantization_operand(model: &Model, value: ValueId) -> bool {
    let quantizes = |id: NodeId| model.node(id).is_some_and(|node| is_quantization(node) || is_dequantization(node));
    model.users(value).into_iter().any(|(reader, _)| quantizes(reader))
}
