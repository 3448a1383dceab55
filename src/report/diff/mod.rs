//! Lists the differences between two models. Nodes are matched by the function they compute, not by name.
//!
//! Each value of both models gets a number (`numbers`). Two values have the same one if and only if they are the same input (by its name),
//! constants of the same content, or the same result of nodes with the same operator, operator set and attributes that read values of the same
//! numbers. A node whose number occurs in the other model is the same there; name and place do not matter. The remaining nodes are matched by
//! the names of their results: such a node has changed, or depends on a node, function or subgraph that has.
//!
//! Subgraphs and function bodies are compared in the same way, with inputs identified by position. `heading` compares the rest of
//! the file.

mod heading;
mod numbers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::ir::text::{node_text, tensor_text};
use crate::ir::{Definition, Function, GraphId, Model, Node, NodeId, ValueId};
use crate::sort;
use numbers::{Classes, Numbered, operator_key, parameters};

/// Returns the differences of `b` from `a`, one line each; empty if there is none.
pub(crate) fn diff(a: &Model, b: &Model) -> String {
    let mut classes = Classes::default();
    let (a, b) = (Numbered::new(a, &mut classes), Numbered::new(b, &mut classes));
    let mut text = String::new();
    heading::models(&mut text, a.model, b.model);
    heading::interface(&mut text, &a, &b, &mut classes);
    heading::types(&mut text, &a, &b);
    let mains = (a.model.main(), b.model.main());
    outputs(&mut text, (&a, mains.0), (&b, mains.1));
    text.push_str(&graphs((&a, mains.0), (&b, mains.1)));
    text.push_str(&functions(&a, &b));
    if !text.is_empty() {
        let same = b.nodes_of(mains.1).len() - left((&b, mains.1), (&a, mains.0)).len();
        let _ = writeln!(text, "{same} nodes compute the same values in both models");
    }
    text
}

/// A graph of a model whose values are numbered.
type Root<'r, 'm> = (&'r Numbered<'m>, GraphId);

/// Lists the constants and nodes that only one of the graphs has, and the differences inside subgraphs of nodes that both have. Graphs nest at
/// most 32 deep, so recursion is bounded.
fn graphs(a: Root<'_, '_>, b: Root<'_, '_>) -> String {
    let mut text = String::new();
    constants(&mut text, a, b);
    nodes(&mut text, a, b);
    text
}

/// Adds a title and the indented lines below it, unless there are none.
fn section(text: &mut String, title: &str, lines: &str) {
    if !lines.is_empty() {
        let _ = writeln!(text, "~ {title}:");
        lines.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
}

/// Lists added and removed functions, and the differences inside the others.
fn functions(a: &Numbered<'_>, b: &Numbered<'_>) -> String {
    let all = |model: &Model| -> BTreeMap<String, Function> {
        sort::map(model.functions().map(|(_, function)| (function_name(function), function.clone())))
    };
    let (old, new) = (all(a.model), all(b.model));
    let mut text = String::new();
    for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => section(&mut text, &format!("function {name}"), &function((a, old), (b, new))),
            (old, _) => {
                let _ = writeln!(text, "{} function {name}", if old.is_some() { '-' } else { '+' });
            }
        }
    }
    text
}

/// Returns domain, name and overload of a function.
fn function_name(function: &Function) -> String {
    let domain = if function.domain.is_empty() { "ai.onnx" } else { &function.domain };
    let overload = if function.overload.is_empty() { String::new() } else { format!(":{}", function.overload) };
    format!("{domain}.{}{overload}", function.name)
}

fn function((a, old): (&Numbered<'_>, &Function), (b, new): (&Numbered<'_>, &Function)) -> String {
    let mut text = String::new();
    heading::opsets(&mut text, &old.opsets, &new.opsets);
    for kind in ["input", "output"] {
        let names = |of: &Numbered<'_>, body: GraphId| -> Vec<String> {
            let graph = of.model.graph(body);
            let values = if kind == "input" { graph.inputs() } else { graph.outputs() };
            values.iter().map(|&value| of.model.value(value).name.to_string()).collect()
        };
        let (old, new) = (names(a, old.body), names(b, new.body));
        heading::order(&mut text, kind, &old, &new);
        if old.len() != new.len() {
            let _ = writeln!(text, "~ {kind}s: {}, now {}", old.join(", "), new.join(", "));
        }
    }
    let named = |of: &Numbered<'_>, function: &Function| -> BTreeMap<String, String> {
        let parameters = parameters(of.model, function);
        sort::map(parameters.into_iter().map(|(name, value)| (format!("attribute {name}"), value)))
    };
    heading::entries(&mut text, &named(a, old), &named(b, new));
    let bodies = ((a, old.body), (b, new.body));
    for (place, (&x, &y)) in results(bodies.0).iter().zip(results(bodies.1)).enumerate() {
        if a.of(x) != b.of(y) {
            let _ = writeln!(text, "~ output {place} ({}) is computed differently", a.model.value(x).name);
        }
    }
    text.push_str(&graphs(bodies.0, bodies.1));
    text
}

fn results<'m>((of, graph): Root<'_, 'm>) -> &'m [ValueId] {
    of.model.graph(graph).outputs()
}

/// Lists the outputs of the main graph that are computed differently.
fn outputs(text: &mut String, a: Root<'_, '_>, b: Root<'_, '_>) {
    let values = |root: Root<'_, '_>| -> BTreeMap<String, u32> {
        let named = |&value: &ValueId| (root.0.model.value(value).name.to_string(), root.0.of(value));
        sort::map(results(root).iter().map(named))
    };
    let after = values(b);
    for (name, number) in values(a) {
        if after.get(&name).is_some_and(|other| *other != number) {
            let _ = writeln!(text, "~ output {name} is computed differently");
        }
    }
}

fn constants(text: &mut String, a: Root<'_, '_>, b: Root<'_, '_>) {
    let held = |(of, graph): Root<'_, '_>| -> BTreeMap<u32, String> {
        let values = of.model.graph(graph).initializers().iter();
        let values = values.filter(|&&value| matches!(of.model.value(value).definition(), Definition::Initializer(_)));
        let told = |&value: &ValueId| {
            let place = of.model.value(value);
            let tensor = place.tensor().map_or_else(String::new, tensor_text);
            (of.of(value), format!("{tensor} {}", place.name))
        };
        sort::map(values.map(told))
    };
    let (old, new) = (held(a), held(b));
    for (sign, mine, other) in [('-', &old, &new), ('+', &new, &old)] {
        let mut gone: Vec<&String> =
            mine.iter().filter(|(number, _)| !other.contains_key(number)).map(|(_, told)| told).collect();
        sort::sort(&mut gone);
        for told in gone {
            let _ = writeln!(text, "{sign} constant {told}");
        }
    }
}

/// Returns the nodes of a graph that do not occur in another.
fn left((of, graph): Root<'_, '_>, (other, beside): Root<'_, '_>) -> Vec<NodeId> {
    let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
    other.nodes_of(beside).iter().for_each(|(_, number)| *counts.entry(*number).or_default() += 1);
    let mut is_left = |number: &u32| match counts.get_mut(number) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    of.nodes_of(graph).iter().filter(|(_, number)| is_left(number)).map(|(id, _)| *id).collect()
}

fn nodes(text: &mut String, a: Root<'_, '_>, b: Root<'_, '_>) {
    let (before, after) = (a.0.model, b.0.model);
    let (gone, new) = (left(a, b), left(b, a));
    // The others are matched by the name of the first result.
    let first = |model: &Model, id: NodeId| -> Option<String> {
        let value = model.node(id)?.outputs().iter().flatten().next()?;
        Some(model.value(*value).name.to_string())
    };
    let by_name: BTreeMap<String, NodeId> = sort::map(new.iter().filter_map(|&id| Some((first(after, id)?, id))));
    let mut matched: BTreeSet<NodeId> = BTreeSet::new();
    let mut follows = 0usize;
    for &id in &gone {
        let Some(old) = before.node(id) else { continue };
        let counterpart = first(before, id).and_then(|name| by_name.get(&name).copied());
        let Some((other, now)) = counterpart.and_then(|other| Some((other, after.node(other)?))) else {
            let _ = writeln!(text, "- {}", node_text(before, old));
            continue;
        };
        matched.insert(other);
        if operator_key(before, old) != operator_key(after, now) || names(before, old) != names(after, now) {
            let _ = match (node_text(before, old), node_text(after, now)) {
                (old, now) if old == now => {
                    writeln!(text, "~ {old}: the operator set or an attribute differs")
                }
                (old, now) => writeln!(text, "- {old}\n+ {now}"),
            };
            continue;
        }
        let inside = bodies((a.0, old), (b.0, now));
        match inside.is_empty() {
            true => follows += 1,
            false => section(text, &format!("inside {}", before.describe(id)), &inside),
        }
    }
    for node in new.iter().filter(|id| !matched.contains(id)).filter_map(|&id| after.node(id)) {
        let _ = writeln!(text, "+ {}", node_text(after, node));
    }
    if follows > 0 {
        let _ = writeln!(text, "{follows} equal nodes compute other values, because an operand differs");
    }
}

/// Lists the differences between the subgraphs of two nodes.
fn bodies((a, old): (&Numbered<'_>, &Node), (b, new): (&Numbered<'_>, &Node)) -> String {
    let mut text = String::new();
    for held in &old.attributes {
        let Some(other) = new.attributes.iter().find(|other| other.name == held.name) else { continue };
        for (&x, &y) in held.value.graphs().iter().zip(other.value.graphs()) {
            let mut lines = graphs((a, x), (b, y));
            for (place, (&u, &v)) in results((a, x)).iter().zip(results((b, y))).enumerate() {
                if a.of(u) != b.of(v) {
                    let _ = writeln!(lines, "~ output {place} ({}) is computed differently", a.model.value(u).name);
                }
            }
            section(&mut text, &held.name, &lines);
        }
    }
    text
}

fn names<'m>(model: &'m Model, node: &Node) -> Vec<&'m str> {
    node.inputs().iter().map(|value| value.map_or("", |value| model.value(value).name.as_str())).collect()
}
