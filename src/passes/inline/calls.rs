//! Replaces calls of the model's functions by the function's body.

use rustc_hash::FxHashMap;

use super::call_graph::{Calls, discard, model_size, size};
use crate::ir::{Attribute, Binding, Broken, FunctionId, Model, Node, NodeId, OpsetImport, ValueId};
use crate::ops::operator;
use crate::passes::dead::graphs_below;
use crate::passes::edits::EditCounter;

/// The name of the pass, under which its edits are counted.
pub(in crate::passes) const NAME: &str = "inline-function";

/// Replaces calls by the bodies of their functions: the only call of a function, and calls of bodies with at most `largest` nodes, unless the model
/// would have more than `most` nodes. Removes functions without calls. Returns the number of replaced calls.
///
/// Law: a call is the body with the operands for its inputs and the results for its outputs. The attributes of the call, or else their defaults,
/// replace those that the body refers to.
///
/// # Errors
/// The model is inconsistent.
pub(in crate::passes) fn inline(
    model: &mut Model,
    largest: usize,
    most: usize,
    edits: &mut EditCounter,
) -> Result<usize, Broken> {
    let mut inlined = 0;
    let mut total = model_size(model);
    let calls = Calls::of(model);
    // Callees come first, so that the calls in later functions have not moved yet.
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
            let imports = fitting(model, id, site);
            if let Some(imports) = imports.filter(|_| edits.take(NAME, || model.describe(site))) {
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

/// Replaces calls by the bodies of their functions as long as the model has at most `most` nodes. Calls that cannot be replaced are kept.
///
/// # Errors
/// The model is inconsistent.
pub(crate) fn inline_all(model: &mut Model, most: usize) -> Result<(), Broken> {
    inline(model, usize::MAX, most, &mut EditCounter::new(usize::MAX, false)).map(|_| ())
}

/// Returns the values of a call for the attributes that a function declares, including defaults.
pub(in crate::passes) fn bindings(model: &Model, id: FunctionId, site: NodeId) -> FxHashMap<String, Binding> {
    let (Some(function), Some(node)) = (model.function(id), model.node(site)) else { return FxHashMap::default() };
    let required = function.attributes.iter().map(|name| (name.as_str(), None));
    let defaulted = function.defaults.iter().map(|default| (default.name.as_str(), Some(&default.value)));
    let bound = |(name, default): (&str, Option<&Attribute>)| {
        let value = node.attribute(name).or(default).cloned();
        (name.to_string(), value.map_or(Binding::Absent, Binding::Value))
    };
    required.chain(defaulted).map(bound).collect()
}

/// Returns the operator sets to import at a call so that the function's body has the same meaning there. Returns `None` if this is impossible, or if
/// the call does not fit the function.
fn fitting(model: &Model, id: FunctionId, site: NodeId) -> Option<Vec<OpsetImport>> {
    let (function, call) = (model.function(id)?, model.node(site)?);
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
                let default = function.defaults.iter().find(|default| default.name == *name).map(|held| &held.value);
                // A graph attribute captures values around the call.
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
    OpsetImport { domain: node.domain.to_string(), version, extra: crate::ir::Extra::new() }
}

/// Returns `true` if a node has the same meaning under both versions of its operator set.
fn same_definition(model: &Model, node: &Node, ours: Option<i64>, theirs: Option<i64>) -> bool {
    // A function is defined by its body, whatever the versions.
    if model.function_of(node).is_some() {
        return true;
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return false };
    let newest = crate::ops::newest_opset(&node.domain);
    let Some(operator) = operator(&node.domain, &node.op_type) else { return false };
    let known = newest.is_some_and(|newest| ours <= newest && theirs <= newest);
    known && operator.since(ours).is_some() && operator.since(ours) == operator.since(theirs)
}

/// Imports operator sets into the model or function that contains a call.
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
