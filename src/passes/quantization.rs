//! Which dequantized constants stay quantized.
//!
//! `DequantizeLinear` of a constant is a constant, but a runtime that finds its float value in its place has lost the quantization:
//! the kernel on integers, and a model of a quarter of the size. So its result is not written out while anything that is computed at
//! run time reads it, directly or through nodes that only move elements. Where each element keeps its scale, those nodes move the quantized
//! tensor instead (`rewrite/dequantized.rs`); others, such as a Concat with floats, are run. Constants that are computed from it in other
//! ways are constants like any other, and so is the result itself where only they, or the outputs of the model, read it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dead::{graphs_below, live_graphs};
use super::options::Options;
use crate::ir::{Broken, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::operator_of;
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::is_quantization;

/// The nodes that stay although their results are constant: dequantizations of constants whose results are read at run time, and the nodes
/// in between that move elements. For each, whether another constant is computed from it, which needs its result at fold time.
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
    // What is read at run time, and what constants are computed from. A graph comes before those inside it, so that against this order
    // every reader comes before what it reads.
    let (mut read, mut folded): (FxHashSet<ValueId>, FxHashSet<ValueId>) = Default::default();
    for &id in order.iter().rev() {
        let Some(node) = model.node(id) else { continue };
        let any_in = |values: &FxHashSet<ValueId>| node.outputs().iter().flatten().any(|value| values.contains(value));
        let is_dequantized = || moves(model, node) || is_dequantization(node);
        if !node.outputs().iter().flatten().all(|value| known.contains(value)) {
            // Inference may find a constant here by sizes that it knows, and then that of readers it finds constants too.
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
    // Movements of constants that are not dequantized are constants like any other.
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

/// The quantizations whose results are dequantized for something else than a product with weights. ONNX Runtime has kernels on integers
/// for additions, multiplications and the like of two quantized tensors, and uses none of them where it finds that one of the two is an
/// initializer; so such a pair stays as the exporter wrote it. Weights are smaller as integers, and their kernels want them so.
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

/// The values that follow from initializers alone: the inputs of a graph do not, nor what is random or has subgraphs, nor what is
/// quantized in `pairs`.
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

/// The operands whose elements a node moves.
fn moved<'m>(model: &Model, node: &'m Node) -> impl Iterator<Item = ValueId> + 'm {
    let count = if traits_of(model, node).moves == Some(Movement::Join) { usize::MAX } else { 1 };
    node.inputs().iter().take(count).flatten().copied()
}

fn is_dequantization(node: &Node) -> bool {
    node.op_type == "DequantizeLinear" && ["", "com.microsoft"].contains(&node.canonical_domain())
}

/// Whether a value is an operand of a quantization or dequantization. Those of a body stay in it: ONNX Runtime, making one kernel of a product
/// and what dequantizes its weights, looks for these in the body alone, and does not load the model if they are not there.
pub(super) fn is_quantization_operand(model: &Model, value: ValueId) -> bool {
    let quantizes = |id: NodeId| model.node(id).is_some_and(|node| is_quantization(node) || is_dequantization(node));
    model.users(value).into_iter().any(|(reader, _)| quantizes(reader))
}
