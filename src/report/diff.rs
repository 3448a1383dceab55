//! What is different in two models, by what their nodes compute and not by what they are called.
//!
//! Each value of both models gets a number. Two values have the same one if and only if they are the same input (by its name), constants of
//! the same content, or the same result of nodes with the same operator, operator set and attributes that read values of the same numbers.
//! A node whose results have numbers that the other model has, too, is the same there, whatever it is called and wherever it stands. What is
//! left is matched by the names of the results: such a node computes something else because it, or something before it, was changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::ir::text::{attribute_text, node_text, tensor_text};
use crate::ir::{Attribute, Definition, GraphId, Model, Node, NodeId, ValueId};
use crate::tensor::Tensor;

use super::census::Interface;

/// What is different in `b` from what is in `a`, as text: a line for each difference. Empty if nothing is.
pub(crate) fn diff(a: &Model, b: &Model) -> String {
    let mut classes = Classes::default();
    let (a, b) = (Numbered::new(a, &mut classes), Numbered::new(b, &mut classes));
    let mut text = String::new();
    headers(&mut text, a.model, b.model);
    outputs(&mut text, &a, &b);
    constants(&mut text, &a, &b);
    nodes(&mut text, &a, &b);
    text
}

/// The numbers of values, the same for equal values of both models.
#[derive(Default)]
struct Classes {
    keys: FxHashMap<Vec<u8>, u32>,
    tensors: FxHashMap<u64, Vec<(Tensor, u32)>>,
    next: u32,
}

impl Classes {
    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn of(&mut self, key: String) -> u32 {
        let next = self.next + 1;
        let number = *self.keys.entry(key.into_bytes()).or_insert(next);
        self.next = self.next.max(number);
        number
    }

    fn of_tensor(&mut self, tensor: &Tensor) -> u32 {
        let next = self.next + 1;
        let alike = self.tensors.entry(tensor.hash_sample()).or_default();
        if let Some((_, number)) = alike.iter().find(|(other, _)| other.same(tensor)) {
            return *number;
        }
        alike.push((tensor.clone(), next));
        self.next = next;
        next
    }
}

/// A model and the number of each of its values.
struct Numbered<'m> {
    model: &'m Model,
    numbers: FxHashMap<ValueId, u32>,
    /// The nodes of the main graph in an order to compute in, each with its number.
    nodes: Vec<(NodeId, u32)>,
}

impl<'m> Numbered<'m> {
    fn new(model: &'m Model, classes: &mut Classes) -> Self {
        let mut numbered = Numbered { model, numbers: FxHashMap::default(), nodes: Vec::new() };
        let main = model.main();
        for &value in model.graph(main).inputs() {
            let number = classes.of(format!("input {}", model.value(value).name));
            numbered.numbers.insert(value, number);
        }
        numbered.nodes = numbered.graph(main, classes);
        numbered
    }

    fn number(&self, value: ValueId) -> u32 {
        self.numbers.get(&value).copied().unwrap_or(0)
    }

    // Graphs nest at most 32 deep, which the verifier has checked, so recursion is bounded.
    fn graph(&mut self, graph: GraphId, classes: &mut Classes) -> Vec<(NodeId, u32)> {
        let model = self.model;
        for &value in model.graph(graph).initializers() {
            let place = model.value(value);
            if matches!(place.definition(), Definition::Initializer(_)) {
                let number = match (place.tensor(), place.constant.as_ref().and_then(|held| held.verbatim.as_ref())) {
                    (Some(tensor), _) => classes.of_tensor(tensor),
                    // Elements that cannot be read are the same where the messages are.
                    (None, Some(message)) => classes.of(format!("constant {message:?}")),
                    (None, None) => classes.fresh(),
                };
                self.numbers.insert(value, number);
            }
        }
        let order = model.topological(graph).unwrap_or_else(|_| model.graph(graph).nodes().collect());
        let mut nodes = Vec::with_capacity(order.len());
        for id in order {
            let Some(node) = model.node(id) else { continue };
            let key = self.key(node, classes);
            let number = classes.of(key);
            for (slot, value) in node.outputs().iter().enumerate() {
                let Some(value) = *value else { continue };
                let number = if slot == 0 { number } else { classes.of(format!("result {slot} of {number}")) };
                self.numbers.insert(value, number);
            }
            nodes.push((id, number));
        }
        nodes
    }

    /// What a node computes: equal keys mean equal results.
    fn key(&mut self, node: &Node, classes: &mut Classes) -> String {
        let mut key = operator_key(self.model, node);
        for value in node.inputs() {
            let _ = write!(key, " {}", value.map_or(0, |value| self.number(value)));
        }
        for held in &node.attributes {
            for &body in held.value.graphs() {
                let _ = write!(key, " {} (", held.name);
                for (i, &value) in self.model.graph(body).inputs().iter().enumerate() {
                    // Which body it is of does not matter: equal bodies have equal keys.
                    let number = classes.of(format!("input {i} of a body"));
                    self.numbers.insert(value, number);
                }
                self.graph(body, classes);
                for &value in self.model.graph(body).outputs() {
                    let _ = write!(key, " {}", self.number(value));
                }
                key.push(')');
            }
        }
        key
    }
}

/// Operator, operator set, attributes and number of results of a node.
fn operator_key(model: &Model, node: &Node) -> String {
    let opset = model.opset(node.graph(), &node.domain).unwrap_or(0);
    let mut key = format!("{}:{} {opset} {} ", node.operator(), node.overload, node.outputs().len());
    // Attributes may come in any order.
    let plain: BTreeMap<&str, String> = node
        .attributes
        .iter()
        .filter(|held| held.value.graphs().is_empty())
        .map(|held| (held.name.as_str(), attribute_key(model, &held.value)))
        .collect();
    for (name, value) in plain {
        let _ = write!(key, "{name}={value};");
    }
    key
}

fn attribute_key(model: &Model, value: &Attribute) -> String {
    match value {
        // The text of a long tensor leaves elements out.
        Attribute::Tensor(tensor, _) => format!("{} {:016x}", tensor_text(tensor), tensor.hash_content()),
        value => attribute_text(model, value),
    }
}

fn headers(text: &mut String, a: &Model, b: &Model) {
    let sets = |model: &Model| -> BTreeMap<String, i64> {
        model.opsets.iter().map(|import| (import.domain.clone(), import.version)).collect()
    };
    let (before, after) = (sets(a), sets(b));
    for domain in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let shown = if domain.is_empty() { "ai.onnx" } else { domain };
        match (before.get(domain), after.get(domain)) {
            (Some(old), Some(new)) if old != new => {
                let _ = writeln!(text, "~ operator set of {shown}: {old}, now {new}");
            }
            (Some(old), None) => {
                let _ = writeln!(text, "- operator set of {shown}: {old}");
            }
            (None, Some(new)) => {
                let _ = writeln!(text, "+ operator set of {shown}: {new}");
            }
            _ => {}
        }
    }
    let (before, after) = (Interface::of(a), Interface::of(b));
    for (kind, old, new) in [("input", &before.inputs, &after.inputs), ("output", &before.outputs, &after.outputs)] {
        for (name, ty) in old {
            match new.iter().find(|(other, _)| other == name) {
                None => {
                    let _ = writeln!(text, "- {kind} {ty} {name}");
                }
                Some((_, now)) if now != ty => {
                    let _ = writeln!(text, "~ {kind} {name}: {ty}, now {now}");
                }
                Some(_) => {}
            }
        }
        for (name, ty) in new.iter().filter(|(name, _)| old.iter().all(|(other, _)| other != name)) {
            let _ = writeln!(text, "+ {kind} {ty} {name}");
        }
        let names = |ports: &[(String, String)]| ports.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let (old, new) = (names(old), names(new));
        if old != new && old.iter().collect::<BTreeSet<_>>() == new.iter().collect::<BTreeSet<_>>() {
            let _ = writeln!(text, "~ {kind}s are in another order: {}", new.join(", "));
        }
    }
}

/// Which outputs are computed by other nodes.
fn outputs(text: &mut String, a: &Numbered<'_>, b: &Numbered<'_>) {
    let values = |of: &Numbered<'_>| -> BTreeMap<String, u32> {
        let outputs = of.model.graph(of.model.main()).outputs();
        outputs.iter().map(|&value| (of.model.value(value).name.to_string(), of.number(value))).collect()
    };
    let after = values(b);
    for (name, number) in values(a) {
        if after.get(&name).is_some_and(|other| *other != number) {
            let _ = writeln!(text, "~ output {name} is computed in another way");
        }
    }
}

fn constants(text: &mut String, a: &Numbered<'_>, b: &Numbered<'_>) {
    let held = |of: &Numbered<'_>| -> BTreeMap<u32, String> {
        let values = of.model.graph(of.model.main()).initializers().iter();
        let values = values.filter(|&&value| of.model.value(value).is_constant());
        let told = |&value: &ValueId| {
            let place = of.model.value(value);
            let tensor = place.tensor().map_or_else(String::new, tensor_text);
            (of.number(value), format!("{tensor} {}", place.name))
        };
        values.map(told).collect()
    };
    let (old, new) = (held(a), held(b));
    for (sign, mine, other) in [('-', &old, &new), ('+', &new, &old)] {
        let mut gone: Vec<&String> =
            mine.iter().filter(|(number, _)| !other.contains_key(number)).map(|(_, told)| told).collect();
        gone.sort();
        for told in gone {
            let _ = writeln!(text, "{sign} constant {told}");
        }
    }
}

fn nodes(text: &mut String, a: &Numbered<'_>, b: &Numbered<'_>) {
    let counts = |of: &Numbered<'_>| {
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        of.nodes.iter().for_each(|(_, number)| *counts.entry(*number).or_default() += 1);
        counts
    };
    let left = |of: &Numbered<'_>, mut other: FxHashMap<u32, usize>| -> Vec<NodeId> {
        let mut is_left = |number: &u32| match other.get_mut(number) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        of.nodes.iter().filter(|(_, number)| is_left(number)).map(|(id, _)| *id).collect()
    };
    let (gone, new) = (left(a, counts(b)), left(b, counts(a)));
    // The rest is matched by the name of the first result.
    let first = |model: &Model, id: NodeId| -> Option<String> {
        let value = model.node(id)?.outputs().iter().flatten().next()?;
        Some(model.value(*value).name.to_string())
    };
    let by_name: BTreeMap<String, NodeId> = new.iter().filter_map(|&id| Some((first(b.model, id)?, id))).collect();
    let mut matched: BTreeSet<NodeId> = BTreeSet::new();
    let mut follows = 0usize;
    for &id in &gone {
        let counterpart = first(a.model, id).and_then(|name| by_name.get(&name).copied());
        let (Some(old), Some(other)) = (a.model.node(id), counterpart) else {
            let _ = writeln!(text, "- {}", a.model.node(id).map_or_else(String::new, |node| node_text(a.model, node)));
            continue;
        };
        let Some(now) = b.model.node(other) else { continue };
        matched.insert(other);
        let (before, after) = (node_text(a.model, old), node_text(b.model, now));
        let same =
            operator_key(a.model, old) == operator_key(b.model, now) && names(a.model, old) == names(b.model, now);
        match same {
            true => follows += 1,
            false => {
                let _ = writeln!(text, "- {before}\n+ {after}");
            }
        }
    }
    for &id in new.iter().filter(|id| !matched.contains(id)) {
        let _ = writeln!(text, "+ {}", b.model.node(id).map_or_else(String::new, |node| node_text(b.model, node)));
    }
    if follows > 0 {
        let _ = writeln!(text, "{follows} nodes are the same and read, directly or not, what is different");
    }
    let same = b.nodes.len() - new.len();
    if !text.is_empty() {
        let _ = writeln!(text, "{same} nodes compute the same in both");
    }
}

fn names<'m>(model: &'m Model, node: &Node) -> Vec<&'m str> {
    node.inputs().iter().map(|value| value.map_or("", |value| model.value(value).name.as_str())).collect()
}
