//! Compares everything except nodes and constants: format version, operator sets, metadata, inputs and outputs, declared types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::numbers::{Classes, Numbered};
use crate::ir::text::type_text;
use crate::ir::{Extra, Model, Node, OpsetImport, ValueId, fields};
use crate::report::census::Interface;
use crate::sort;

/// The fields of a `ModelProto` that the representation keeps as wire bytes, by number.
const OF_MODEL: &[(u64, &str)] = &[
    (2, "producer"),
    (3, "version of the producer"),
    (4, "domain of the model"),
    (5, "version of the model"),
    (6, "documentation of the model"),
    (14, "metadata of the model"),
    (20, "training information"),
    (26, "device configurations"),
];

/// The same fields of its `GraphProto`.
const OF_GRAPH: &[(u64, &str)] = &[
    (10, "documentation of the main graph"),
    (13, "declared types of values that are not in the main graph"),
    (14, "quantization annotations"),
    (16, "metadata of the main graph"),
];

/// Compares the fields of the models and of their main graphs.
pub(super) fn models(text: &mut String, a: &Model, b: &Model) {
    changed(text, "version of the file format", &a.ir_version.to_string(), &b.ir_version.to_string());
    opsets(text, &a.opsets, &b.opsets);
    kept(text, OF_MODEL, &a.extra, &b.extra);
    let (main_a, main_b) = (a.graph(a.main()), b.graph(b.main()));
    changed(text, "name of the main graph", &main_a.name, &main_b.name);
    kept(text, OF_GRAPH, &main_a.extra, &main_b.extra);
}

fn changed(text: &mut String, what: &str, old: &str, new: &str) {
    if old != new {
        let _ = writeln!(text, "~ {what}: {old}, now {new}");
    }
}

/// Lists the operator sets that are imported in different versions, or by one model only.
pub(super) fn opsets(text: &mut String, a: &[OpsetImport], b: &[OpsetImport]) {
    let sets = |imports: &[OpsetImport]| -> BTreeMap<String, String> {
        let mut sets: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for import in imports {
            let domain = if import.domain.is_empty() { "ai.onnx" } else { &import.domain };
            sets.entry(format!("operator set of {domain}")).or_default().push(import.version);
        }
        let told = |versions: Vec<i64>| versions.iter().map(i64::to_string).collect::<Vec<_>>().join(" and ");
        sets.into_iter().map(|(domain, versions)| (domain, told(versions))).collect()
    };
    entries(text, &sets(a), &sets(b));
}

/// Lists the entries that are in one map only, or have different values.
pub(super) fn entries<K: Ord + std::fmt::Display>(text: &mut String, a: &BTreeMap<K, String>, b: &BTreeMap<K, String>) {
    for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        let _ = match (a.get(key), b.get(key)) {
            (Some(old), Some(new)) if old != new => writeln!(text, "~ {key}: {old}, now {new}"),
            (Some(old), None) => writeln!(text, "- {key}: {old}"),
            (None, Some(new)) => writeln!(text, "+ {key}: {new}"),
            _ => Ok(()),
        };
    }
}

/// Lists the fields that differ among those that the representation keeps as wire bytes. Their order does not matter.
fn kept(text: &mut String, names: &[(u64, &str)], a: &Extra, b: &Extra) {
    let all = |extra: &Extra| -> BTreeMap<u64, Vec<Vec<u8>>> {
        let mut all: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        for field in fields(extra) {
            // Bytes that are not valid fields count as one field.
            let (number, bytes) = field.map_or((0, &extra[..]), |field| (field.number, field.whole));
            all.entry(number).or_default().push(bytes.to_vec());
        }
        all.values_mut().for_each(|held| sort::sort(held));
        all
    };
    let (a, b) = (all(a), all(b));
    for number in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        if a.get(number) == b.get(number) {
            continue;
        }
        let name = names.iter().find(|(known, _)| known == number).map(|(_, name)| *name);
        let _ = match name {
            Some(name) => writeln!(text, "~ {name}: different"),
            None => writeln!(text, "~ field {number}, which this program does not know: different"),
        };
    }
}

/// Compares names, types and order of inputs and outputs, and the defaults of inputs.
pub(super) fn interface(text: &mut String, a: &Numbered<'_>, b: &Numbered<'_>, classes: &mut Classes) {
    let (before, after) = (Interface::of(a.model), Interface::of(b.model));
    for (kind, old, new) in [("input", &before.inputs, &after.inputs), ("output", &before.outputs, &after.outputs)] {
        for (name, ty) in old {
            match new.iter().find(|(other, _)| other == name) {
                None => {
                    let _ = writeln!(text, "- {kind} {ty} {name}");
                }
                Some((_, now)) => changed(text, &format!("{kind} {name}"), ty, now),
            }
        }
        for (name, ty) in new.iter().filter(|(name, _)| old.iter().all(|(other, _)| other != name)) {
            let _ = writeln!(text, "+ {kind} {ty} {name}");
        }
        let names = |ports: &[(String, String)]| ports.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        order(text, kind, &names(old), &names(new));
    }
    let mut defaults = |of: &Numbered<'_>| -> BTreeMap<String, Option<u32>> {
        let inputs = of.model.graph(of.model.main()).inputs().iter();
        sort::map(inputs.map(|&value| (of.model.value(value).name.to_string(), of.of_constant(value, classes))))
    };
    let (before, after) = (defaults(a), defaults(b));
    for (name, default) in before {
        if after.get(&name).is_some_and(|other| *other != default) {
            let _ = writeln!(text, "~ default of input {name}: different");
        }
    }
}

/// Adds a line if the same names are in a different order.
pub(super) fn order(text: &mut String, kind: &str, old: &[String], new: &[String]) {
    if old != new && old.iter().collect::<BTreeSet<_>>() == new.iter().collect::<BTreeSet<_>>() {
        let _ = writeln!(text, "~ {kind}s are in another order: {}", new.join(", "));
    }
}

/// Compares the declared types of results that both models compute.
pub(super) fn types(text: &mut String, a: &Numbered<'_>, b: &Numbered<'_>) {
    let (before, after) = (declared(a), declared(b));
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for (number, (name, old)) in &before {
        match after.get(number) {
            Some((_, new)) if old.is_empty() != new.is_empty() => {
                *counts.entry(if new.is_empty() { '-' } else { '+' }).or_default() += 1;
            }
            Some((_, new)) if old != new => {
                let told = |types: &BTreeSet<String>| types.iter().cloned().collect::<Vec<_>>().join(" and ");
                lines.insert(format!("~ type of {name}: {}, now {}", told(old), told(new)));
            }
            _ => {}
        }
    }
    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    for (sign, count) in counts {
        let _ = writeln!(text, "{sign} types of {count} common results");
    }
}

/// Returns the declared types of results of nodes, by number, each with a name. `interface` compares outputs of the main graph.
fn declared(of: &Numbered<'_>) -> BTreeMap<u32, (String, BTreeSet<String>)> {
    let model = of.model;
    let mut found: BTreeMap<u32, (String, BTreeSet<String>)> = BTreeMap::new();
    let live = model.graphs().filter(|&graph| model.is_live(graph));
    let nodes = live.flat_map(|graph| of.nodes_of(graph)).filter_map(|(id, _)| model.node(*id));
    let outputs = model.graph(model.main()).outputs();
    let results = |node: &'_ Node| -> Vec<ValueId> { node.outputs().iter().flatten().copied().collect() };
    for value in nodes.flat_map(results).filter(|value| !outputs.contains(value)) {
        let place = model.value(value);
        let (_, types) = found.entry(of.of(value)).or_insert_with(|| (place.name.to_string(), BTreeSet::new()));
        types.extend(place.declared.as_ref().map(type_text));
    }
    found
}
