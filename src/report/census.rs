//! The operators, tensors and interface of a model.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::text::type_text;
use crate::ir::{DeclaredType, DimClaim, Model, Node, ValueId};
use crate::ops::operator_of;

/// The contents of a model, including subgraphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// Nodes by operator, with the domain if it is not the default one.
    pub operators: BTreeMap<String, usize>,
    /// The number of node results that are tensors or of unknown type.
    pub tensors: usize,
    /// The number of these with a declared size for every dim.
    pub shaped: usize,
    /// The number of these with a dim that only this program names, because the inputs' dims do not determine it.
    pub named: usize,
    /// Nodes by operator that neither this program nor a function of the model defines. They are kept unchanged.
    pub unknown: BTreeMap<String, usize>,
    /// The number of initializers.
    pub initializers: usize,
}

impl Census {
    /// Counts a model.
    pub fn of(model: &Model) -> Self {
        Census::knowing(model, &author_names(model))
    }

    /// Counts a model; names that are not in `known` are this program's.
    pub(crate) fn knowing(model: &Model, known: &BTreeSet<String>) -> Self {
        let mut census = Census::default();
        // Operators and dims are few and nodes many, so properties of either are computed once. For an operator, these are the number of
        // nodes and if it is unknown; for a dim, if this program named it. A known operator is identified by the address of its entry.
        let mut known_operators: FxHashMap<usize, (&Node, usize)> = FxHashMap::default();
        let mut operators: FxHashMap<(&str, &str, &str), (&Node, usize, bool)> = FxHashMap::default();
        let has_synonyms = model.has_synonyms();
        let mut ours: FxHashMap<&str, bool> = FxHashMap::default();
        for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
            census.initializers += model.graph(graph).initializers().len();
            for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
                match operator_of(model, node).filter(|_| !has_synonyms) {
                    Some(operator) => {
                        known_operators.entry(std::ptr::from_ref(operator).addr()).or_insert((node, 0)).1 += 1
                    }
                    None => {
                        let key = (node.domain.as_str(), node.op_type.as_str(), node.overload.as_str());
                        let is_unknown = || operator_of(model, node).is_none() && model.function_of(node).is_none();
                        operators.entry(key).or_insert_with(|| (node, 0, is_unknown())).1 += 1;
                    }
                }
                for &value in node.outputs().iter().flatten() {
                    let declared = model.value(value).declared.as_ref();
                    if !matches!(declared, None | Some(DeclaredType::Tensor { .. })) {
                        continue;
                    }
                    census.tensors += 1;
                    let Some(dims) = declared.and_then(DeclaredType::shape) else { continue };
                    if dims.iter().any(|dim| dim.claim == DimClaim::Unknown) {
                        continue;
                    }
                    census.shaped += 1;
                    let is_ours = |text| identifiers(text).any(|name| !known.contains(name));
                    let mut texts = dims.iter().filter_map(|dim| text_of(&dim.claim));
                    census.named += usize::from(texts.any(|text| *ours.entry(text).or_insert_with(|| is_ours(text))));
                }
            }
        }
        let known_operators = known_operators.into_values().map(|(node, count)| (node, count, false));
        // Insert each into the sorted table.
        for (node, count, is_unknown) in known_operators.chain(operators.into_values()) {
            *census.operators.entry(node.operator()).or_default() += count;
            if is_unknown {
                *census.unknown.entry(node.operator()).or_default() += count;
            }
        }
        census
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.operators.values().sum()
    }
}

/// An input or output, with its type before and after folding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its type in the ONNX text syntax; empty if none is declared.
    pub before: String,
    /// Its type after folding.
    pub after: String,
    /// `true` for an input with an initializer. This is only its default: a caller may pass another value, so it is not constant.
    pub has_default: bool,
}

/// The names and types of inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub inputs: Vec<(String, String)>,
    pub outputs: Vec<(String, String)>,
    /// A flag for each input: `true` if it has a default.
    defaults: Vec<bool>,
}

impl Interface {
    pub(crate) fn of(model: &Model) -> Self {
        let graph = model.graph(model.main());
        let port = |value: &ValueId| {
            let place = model.value(*value);
            (place.name.to_string(), place.declared.as_ref().map_or_else(String::new, type_text))
        };
        let ports = |values: &[ValueId]| values.iter().map(port).collect();
        let defaults = graph.inputs().iter().map(|&value| model.value(value).constant.is_some()).collect();
        Interface { inputs: ports(graph.inputs()), outputs: ports(graph.outputs()), defaults }
    }

    /// Returns the names of inputs, then of outputs.
    pub(crate) fn names(&self) -> (Vec<&str>, Vec<&str>) {
        (names(&self.inputs), names(&self.outputs))
    }

    /// Returns inputs and outputs with their types before and after folding. Names and order never change.
    pub(crate) fn until(self, after: Interface) -> (Vec<Port>, Vec<Port>) {
        let both = |before: Vec<(String, String)>, after: Vec<(String, String)>, defaults: Vec<bool>| {
            let ports = before.into_iter().zip(after).zip(defaults);
            let port = |(((name, before), (_, after)), has_default)| Port { name, before, after, has_default };
            ports.map(port).collect()
        };
        let none = vec![false; self.outputs.len()];
        (both(self.inputs, after.inputs, self.defaults), both(self.outputs, after.outputs, none))
    }
}

fn names(ports: &[(String, String)]) -> Vec<&str> {
    ports.iter().map(|(name, _)| name.as_str()).collect()
}

/// Returns the identifiers in the dims that a model declares: the author's names of sizes.
pub(crate) fn author_names(model: &Model) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
        let held = model.graph(graph);
        let results = held.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten());
        names.extend(names_in(model, held.inputs().iter().chain(held.outputs()).chain(results)));
    }
    names
}

/// Returns the identifiers in the dims of the inputs.
pub(crate) fn input_names(model: &Model) -> BTreeSet<String> {
    names_in(model, model.graph(model.main()).inputs().iter())
}

fn names_in<'v>(model: &Model, values: impl Iterator<Item = &'v ValueId>) -> BTreeSet<String> {
    let shapes = values.filter_map(|&value| model.value(value).declared.as_ref().and_then(DeclaredType::shape));
    let texts: FxHashSet<&str> = shapes.flatten().filter_map(|dim| text_of(&dim.claim)).collect();
    texts.into_iter().flat_map(identifiers).map(str::to_string).collect()
}

/// Returns the declared text of a dim, if any.
fn text_of(claim: &DimClaim) -> Option<&str> {
    match claim {
        DimClaim::Param(text) => Some(text),
        _ => None,
    }
}

/// Returns the identifiers in a declared dim, except function names.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words = text.split(move |c| !is_part(c));
    words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !FUNCTIONS.contains(word))
}

/// The functions of dim expressions.
const FUNCTIONS: [&str; 7] = ["floor", "ceil", "max", "min", "Max", "Min", "Mod"];
