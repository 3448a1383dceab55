//! The call graph of the model's functions: callers, sizes, and the removal of uncalled functions.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{FunctionId, GraphId, Model, NodeId, ValueId};
use crate::passes::dead::{self, graphs_below};
use crate::passes::edits::EditCounter;
use crate::sort;

/// The call graph.
pub(in crate::passes) struct Calls {
    /// The functions that the main graph calls, directly or not, each after its callees. Recursive functions are omitted.
    pub(in crate::passes) order: Vec<FunctionId>,
    /// Every reachable function.
    reached: FxHashSet<FunctionId>,
    /// The nodes that call each function, in the main graph or in a reachable function.
    pub(in crate::passes) sites: FxHashMap<FunctionId, Vec<NodeId>>,
}

impl Calls {
    pub(in crate::passes) fn of(model: &Model) -> Self {
        let mut calls = Calls { order: Vec::new(), reached: FxHashSet::default(), sites: FxHashMap::default() };
        let mut callees: BTreeMap<FunctionId, Vec<FunctionId>> = BTreeMap::new();
        let mut open: Vec<FunctionId> = calls.note(model, model.main());
        while let Some(id) = open.pop() {
            if calls.reached.insert(id)
                && let Some(function) = model.function(id)
            {
                let inner = calls.note(model, function.body);
                open.extend(&inner);
                callees.insert(id, inner);
            }
        }
        // The number of calls in each function whose callee has no place yet.
        let mut waiting: BTreeMap<FunctionId, usize> = sort::map(callees.iter().map(|(&id, inner)| (id, inner.len())));
        let mut callers: FxHashMap<FunctionId, Vec<FunctionId>> = FxHashMap::default();
        for (&caller, inner) in &callees {
            inner.iter().for_each(|&callee| callers.entry(callee).or_default().push(caller));
        }
        let mut ready: Vec<FunctionId> = waiting.iter().filter(|(_, left)| **left == 0).map(|(&id, _)| id).collect();
        while let Some(id) = ready.pop() {
            calls.order.push(id);
            for caller in callers.get(&id).into_iter().flatten() {
                if let Some(left) = waiting.get_mut(caller) {
                    *left = left.saturating_sub(1);
                    if *left == 0 {
                        ready.push(*caller);
                    }
                }
            }
        }
        calls.sort(&callees);
        calls
    }

    /// Returns `true` if a function calls itself, directly or not.
    pub(in crate::passes) fn has_circles(&self) -> bool {
        self.order.len() < self.reached.len()
    }

    /// Sorts the functions by the depth of calls below them, then as in the file, so that the order only depends on the model.
    fn sort(&mut self, callees: &BTreeMap<FunctionId, Vec<FunctionId>>) {
        let mut depth: FxHashMap<FunctionId, usize> = FxHashMap::default();
        for &id in &self.order {
            let below = callees.get(&id).into_iter().flatten().filter_map(|callee| depth.get(callee)).max();
            depth.insert(id, below.map_or(0, |below| below + 1));
        }
        sort::by_key(&mut self.order, |id| (depth.get(id).copied().unwrap_or_default(), *id));
    }

    /// Records the calls in a graph and its subgraphs; returns the callees, once for each call.
    fn note(&mut self, model: &Model, root: GraphId) -> Vec<FunctionId> {
        let mut called = Vec::new();
        for graph in graphs_below(model, root) {
            for id in model.graph(graph).nodes() {
                let Some((callee, _)) = model.node(id).and_then(|node| model.function_of(node)) else { continue };
                self.sites.entry(callee).or_default().push(id);
                called.push(callee);
            }
        }
        called
    }
}

/// Returns the number of nodes in a graph and its subgraphs.
pub(in crate::passes) fn size(model: &Model, root: GraphId) -> usize {
    graphs_below(model, root).into_iter().map(|graph| model.graph(graph).node_count()).sum()
}

/// Returns the number of nodes of a model, including its functions.
pub(in crate::passes) fn model_size(model: &Model) -> usize {
    model.functions().fold(size(model, model.main()), |sum, (_, function)| sum + size(model, function.body))
}

/// Removes the functions that no call reaches.
pub(in crate::passes) fn prune(model: &mut Model, edits: &mut EditCounter) {
    if model.keeps_functions {
        return;
    }
    let calls = Calls::of(model);
    let unused: Vec<(FunctionId, GraphId)> =
        model.functions().filter(|(id, _)| !calls.reached.contains(id)).map(|(id, f)| (id, f.body)).collect();
    for (id, body) in unused {
        let name = || model.function(id).map(|function| format!("function '{}'", function.name)).unwrap_or_default();
        if edits.take(dead::NAME, name) {
            model.remove_function(id);
            discard(model, body);
        }
    }
}

/// Empties a body that no function uses any more.
pub(in crate::passes) fn discard(model: &mut Model, body: GraphId) {
    let mut initializers: FxHashSet<ValueId> = FxHashSet::default();
    for graph in graphs_below(model, body).into_iter().rev() {
        initializers.extend(model.graph(graph).initializers());
        for id in model.graph(graph).nodes().collect::<Vec<_>>() {
            model.remove_node(id);
        }
    }
    model.remove_initializers(&initializers);
}
