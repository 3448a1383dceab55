//! The functions a model brings along: who calls whom, which of them nobody calls, and calls that are replaced by the body.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::dead::graphs_below;
use crate::ir::{Attribute, Binding, Broken, Function, FunctionId, GraphId, Model, Node, NodeId, OpsetImport, ValueId};
use crate::ops::operator;

/// Who calls whom.
pub(super) struct Calls {
    /// The functions that the main graph calls, directly or not: each after those it calls itself. Those that call themselves in a
    /// circle are left out.
    pub(super) order: Vec<FunctionId>,
    /// Every function that can be reached.
    reached: FxHashSet<FunctionId>,
    /// The nodes that call each function, in the main graph or in a function that can be reached.
    pub(super) sites: FxHashMap<FunctionId, Vec<NodeId>>,
}

impl Calls {
    pub(super) fn of(model: &Model) -> Self {
        let mut calls = Calls { order: Vec::new(), reached: FxHashSet::default(), sites: FxHashMap::default() };
        let mut callees: BTreeMap<FunctionId, Vec<FunctionId>> = BTreeMap::new();
        let mut open: Vec<FunctionId> = calls.note(model, model.main());
        while let Some(id) = open.pop() {
            if calls.reached.insert(id)
                && let Some(function) = function(model, id)
            {
                let inner = calls.note(model, function.body);
                open.extend(&inner);
                callees.insert(id, inner);
            }
        }
        // How many calls of each function are of one that has a place already.
        let mut waiting: BTreeMap<FunctionId, usize> = callees.iter().map(|(&id, inner)| (id, inner.len())).collect();
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
    pub(super) fn has_circles(&self) -> bool {
        self.order.len() < self.reached.len()
    }

    /// Puts the functions in an order that depends on nothing but the model: by how deep the calls below them go, then as in the file.
    fn sort(&mut self, callees: &BTreeMap<FunctionId, Vec<FunctionId>>) {
        let mut depth: FxHashMap<FunctionId, usize> = FxHashMap::default();
        for &id in &self.order {
            let below = callees.get(&id).into_iter().flatten().filter_map(|callee| depth.get(callee)).max();
            depth.insert(id, below.map_or(0, |below| below + 1));
        }
        self.order.sort_by_key(|id| (depth.get(id).copied().unwrap_or_default(), *id));
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

/// Nodes that passes are not to understand, with the domains they have.
pub(super) type Veiled = Vec<(NodeId, String)>;

/// Makes the nodes that are meant opaque to every pass.
pub(super) fn veil(model: &mut Model, graphs: &[GraphId], is_meant: &dyn Fn(&Model, &Node) -> bool) -> Veiled {
    let nodes: Vec<NodeId> = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).collect();
    let meant = nodes.into_iter().filter(|&id| model.node(id).is_some_and(|node| is_meant(model, node)));
    let mut veiled = Veiled::new();
    for id in meant.collect::<Vec<_>>() {
        if let Some(node) = model.node_mut(id) {
            veiled.push((id, std::mem::replace(&mut node.domain, "\u{0}opaque".to_string())));
        }
    }
    veiled
}

/// Gives the nodes that are still there their domains back.
pub(super) fn unveil(model: &mut Model, veiled: &Veiled) {
    for (id, domain) in veiled {
        if let Some(node) = model.node_mut(*id) {
            node.domain.clone_from(domain);
        }
    }
}

/// Veils the nodes that name an operator and a function of the model's at once. Which of both has precedence is up to the runtime
/// (`ModelProto.functions`): ONNX Runtime takes the operator, others the function.
pub(super) fn veil_disputed(model: &mut Model) -> Veiled {
    if !model.functions().any(|(_, function)| operator(&function.domain, &function.name).is_some()) {
        return Veiled::new();
    }
    let roots = std::iter::once(model.main()).chain(model.functions().map(|(_, function)| function.body));
    let graphs: Vec<GraphId> = roots.flat_map(|root| graphs_below(model, root)).collect();
    veil(model, &graphs, &|model, node| {
        let operator = operator(&node.domain, &node.op_type).filter(|_| model.function_of(node).is_some());
        // Where no operator set with it is imported, there is only the function.
        let opset = model.opset(node.graph(), &node.domain);
        operator.is_some_and(|operator| opset.is_none_or(|opset| operator.since(opset).is_some()))
    })
}

pub(super) fn function(model: &Model, id: FunctionId) -> Option<&Function> {
    model.function(id)
}

/// How many nodes there are in a graph and those inside it.
pub(super) fn size(model: &Model, root: GraphId) -> usize {
    graphs_below(model, root).into_iter().map(|graph| model.graph(graph).node_count()).sum()
}

/// How many nodes a model has, those of its functions included.
pub(super) fn model_size(model: &Model) -> usize {
    model.functions().fold(size(model, model.main()), |sum, (_, function)| sum + size(model, function.body))
}

/// Removes the functions that nothing can call. Returns how many there were.
pub(super) fn prune(model: &mut Model) -> usize {
    if model.keeps_functions {
        return 0;
    }
    let calls = Calls::of(model);
    let unused: Vec<(FunctionId, GraphId)> =
        model.functions().filter(|(id, _)| !calls.reached.contains(id)).map(|(id, f)| (id, f.body)).collect();
    for &(id, body) in &unused {
        model.remove_function(id);
        discard(model, body);
    }
    unused.len()
}

/// Empties a body that no function has any more.
pub(super) fn discard(model: &mut Model, body: GraphId) {
    let mut initializers: FxHashSet<ValueId> = FxHashSet::default();
    for graph in graphs_below(model, body).into_iter().rev() {
        initializers.extend(model.graph(graph).initializers());
        for id in model.graph(graph).nodes().collect::<Vec<_>>() {
            model.remove_node(id);
        }
    }
    model.remove_initializers(&initializers);
}

/// Replaces calls by the bodies of the functions called: where that is the only call, and where the body has at most `largest`
/// nodes, unless the model would then have more than `most` nodes. Returns how many calls there were, functions without calls
/// are removed.
///
/// Law: a call is the body with the operands for its inputs, the results for its outputs, and the attributes of the call, or else
/// their defaults, for those the body refers to.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn inline(model: &mut Model, largest: usize, most: usize) -> Result<usize, Broken> {
    let mut inlined = 0;
    let mut total = model_size(model);
    let calls = Calls::of(model);
    // Those that are called come first, so the calls of what comes later are still where they were.
    for &id in &calls.order {
        let (Some(function), Some(sites)) = (model.function(id), calls.sites.get(&id)) else { continue };
        let body = function.body;
        let nodes = size(model, body);
        let grown = total.saturating_add(nodes.saturating_mul(sites.len()));
        if (sites.len() > 1 && nodes > largest) || grown > most.max(total.saturating_add(nodes)) {
            continue;
        }
        let mut replaced = 0;
        for &site in sites {
            if let Some(imports) = fitting(model, id, site) {
                let bindings = bindings(model, id, site);
                import(model, site, imports);
                model.inline_call(site, id, &bindings)?;
                replaced += 1;
            }
        }
        total = total.saturating_add(nodes.saturating_mul(replaced)).saturating_sub(replaced);
        if replaced == sites.len() && !model.keeps_functions {
            model.remove_function(id);
            discard(model, body);
            total = total.saturating_sub(nodes);
        }
        inlined += replaced;
    }
    Ok(inlined)
}

/// What a call gives for the attributes that a function declares, its defaults filled in.
pub(super) fn bindings(model: &Model, id: FunctionId, site: NodeId) -> FxHashMap<String, Binding> {
    let (Some(function), Some(node)) = (function(model, id), model.node(site)) else { return FxHashMap::default() };
    let required = function.attributes.iter().map(|name| (name, None));
    let defaulted = function.defaults.iter().map(|default| (&default.name, Some(&default.value)));
    let bound = |(name, default): (&String, Option<&Attribute>)| {
        let value = node.attribute(name).or(default).cloned();
        (name.clone(), value.map_or(Binding::Absent, Binding::Value))
    };
    required.chain(defaulted).map(bound).collect()
}

/// The operator sets to import where a function is called, so that its body means the same there. `None` if it cannot, or if the
/// call and the function do not fit.
fn fitting(model: &Model, id: FunctionId, site: NodeId) -> Option<Vec<OpsetImport>> {
    let (function, call) = (function(model, id)?, model.node(site)?);
    let body = model.graph(function.body);
    if call.inputs().len() > body.inputs().len() || call.outputs().len() > body.outputs().len() {
        return None;
    }
    let left_out: Vec<ValueId> =
        (0..).zip(body.inputs()).filter(|(i, _)| call.input(*i).is_none()).map(|(_, &input)| input).collect();
    let mut imports: Vec<OpsetImport> = Vec::new();
    for graph in graphs_below(model, function.body) {
        if model.graph(graph).outputs().iter().any(|output| left_out.contains(output)) {
            return None;
        }
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            for held in &node.attributes {
                let Attribute::Reference { name, .. } = &held.value else { continue };
                let default = function.defaults.iter().find(|default| &default.name == name).map(|held| &held.value);
                // A graph that is handed over sees what is around the call.
                if call.attribute(name).or(default).is_some_and(|value| !value.graphs().is_empty()) {
                    return None;
                }
            }
            let ours = model.opset(graph, &node.domain);
            let theirs = model.opset(call.graph(), &node.domain);
            match (ours, theirs) {
                (Some(version), None) => imports.push(import_of(node, version)),
                (ours, theirs) if ours == theirs || same_definition(model, node, ours, theirs) => {}
                _ => return None,
            }
        }
    }
    Some(imports)
}

fn import_of(node: &Node, version: i64) -> OpsetImport {
    OpsetImport { domain: node.domain.clone(), version, extra: crate::ir::Extra::new() }
}

/// Whether a node means the same under both versions of its operator set.
fn same_definition(model: &Model, node: &Node, ours: Option<i64>, theirs: Option<i64>) -> bool {
    // A function is its body, whatever the versions.
    if model.function_of(node).is_some() {
        return true;
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return false };
    let newest = crate::ops::newest_opset(&node.domain);
    let Some(operator) = operator(&node.domain, &node.op_type) else { return false };
    let known = newest.is_some_and(|newest| ours <= newest && theirs <= newest);
    known && operator.since(ours).is_some() && operator.since(ours) == operator.since(theirs)
}

/// Imports operator sets where a call stands.
fn import(model: &mut Model, site: NodeId, imports: Vec<OpsetImport>) {
    let Some(root) = model.node(site).map(|node| model.root(node.graph())) else { return };
    let owner = model.functions().find(|(_, function)| function.body == root).map(|(id, _)| id);
    for import in imports {
        let lists = match owner {
            None => &mut model.opsets,
            Some(id) => match model.function_mut(id) {
                Some(function) => &mut function.opsets,
                None => return,
            },
        };
        if !lists.iter().any(|known| known.domain == import.domain) {
            lists.push(import);
        }
    }
}
