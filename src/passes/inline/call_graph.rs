//! The functions a model brings along: who calls whom, how large they are, and the removal of those that nobody calls.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{FunctionId, GraphId, Model, NodeId, ValueId};
use crate::passes::dead::{self, graphs_below};
use crate::passes::edits::EditCounter;
use crate::sort;

/// Who calls whom.
pub(in crate::passes) struct Calls {
    /// The functions that the main graph calls, directly or not: each after those it calls itself. Those that call themselves in a
    /// circle are left out.
    pub(in crate::passes) order: Vec<FunctionId>,
    /// Every function that can be reached.
    reached: FxHashSet<FunctionId>,
    /// The nodes that call each function, in the main graph or in a function that can be reached.
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
        // How many calls of each function are of one that has a place already.
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

    /// Whether a function calls itself, by way of others or not.
    pub(in crate::passes) fn has_circles(&self) -> bool {
        self.order.len() < self.reached.len()
    }

    /// Puts the functions in an order that depends on nothing but the model: by how deep the calls below them go, then as in the file.
    fn sort(&mut self, callees: &BTreeMap<FunctionId, Vec<FunctionId>>) {
        let mut depth: FxHashMap<FunctionId, usize> = FxHashMap::default();
        for &id in &self.order {
            let below = callees.get(&id).into_iter().flatten().filter_map(|callee| depth.get(callee)).max();
            depth.insert(id, below.map_or(0, |below| below + 1));
        }
        sort::by_key(&mut self.order, |id| (depth.get(id).copied().unwrap_or_default(), *id));
    }

    /// Notes the calls in a graph and those inside it; returns the functions called, once for each call.
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

/// How many nodes there are in a graph and those inside it.
pub(in crate::passes) fn size(model: &Model, root: GraphId) -> usize {
    graphs_below(model, root).into_iter().map(|graph| model.graph(graph).node_count()).sum()
}

/// How many nodes a model has, those of its functions included.
pub(in crate::passes) fn model_size(model: &Model) -> usize {
    model.functions().fold(size(model, model.main()), |sum, (_, function)| sum + size(model, function.body))
}

/// Removes the functions that nothing can call.
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

/// Empties a body that no function has any more.
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
