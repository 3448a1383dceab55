//! Names new nodes, when an edit is applied and before a model is written. No other module does.
//!
//! * A node gets the name of the node whose result it computes.
//! * Any other new node is named after the matched node and its role in the edit: `/layer/Slice/starts`. A name that
//!   a rule copied from a node of another operator would mislead, and is not used.
//! * Documentation and metadata are merged from all removed nodes for a node that computes their result. Other nodes
//!   get those of the first; a copy keeps its own.
//! * Before a model is written, unnamed nodes are named after their first result, and node names are made unique.
//! * No constant has a name that ONNX Runtime gives to constants: it adds them without checking for an existing one.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Edit, Extra, GraphId, Model, Name, NewNode, Node, NodeId, ValueId, extra};

/// The metadata key under which this program records what it did.
const STAMP: &str = "onnx-slice-fold";

/// The metadata key of the remembered dims.
const SIZES: &str = "onnx-slice-fold.sizes";

/// The names of constants that ONNX Runtime adds as operands, possibly with `_token_` and a number. Files written by
/// ONNX Runtime contain such constants; adding another one of the name makes it reject the model.
const RUNTIME_NAMES: &[&str] = &[
    "ConstAsInitializer",
    "SqueezeAxesInitializer",
    "fused_Split",
    "gemm_input_shape",
    "gemm_output_shape",
    "squeeze_axes",
];

/// A node before the edit.
struct Former {
    name: Name,
    op_type: Name,
    outputs: Vec<ValueId>,
    extra: Extra,
}

/// The state before an edit that names depend on.
pub(super) struct Naming {
    /// The edit's place, if it exists, and the removed nodes.
    former: Vec<Former>,
    /// The prefix of inner nodes' names; empty if no node here has a name.
    stem: Name,
    /// The replaced values, each with its replacement.
    replace: Vec<(ValueId, ValueId)>,
    given: FxHashSet<Name>,
}

impl Naming {
    pub(super) fn of(model: &Model, edit: &Edit) -> Naming {
        let noted = |id: NodeId| {
            let node = model.node(id)?;
            Some(Former {
                name: node.name.clone(),
                op_type: node.op_type.clone(),
                outputs: node.outputs().iter().flatten().copied().collect(),
                extra: node.extra.clone(),
            })
        };
        let others = edit.remove.iter().copied().filter(|id| Some(*id) != edit.place);
        let former: Vec<Former> = edit.place.into_iter().chain(others).filter_map(noted).collect();
        let stem = former.iter().map(|former| former.name.clone()).find(|name| !name.is_empty()).unwrap_or_default();
        Naming { former, stem, replace: edit.replace.clone(), given: FxHashSet::default() }
    }

    /// Gives a new node its name, documentation and metadata. `role` is its role in the edit. Its results may be
    /// placeholders.
    pub(super) fn complete(&mut self, node: &mut NewNode, role: &str) {
        node.name = self.name(node, role);
        self.given.insert(node.name.clone());
        if node.extra.is_empty() {
            // A node that computes a result describes all removed nodes; an inner node describes the edit's place.
            let all = self.former.iter().any(|former| self.stands_for(node, former));
            let count = if all { self.former.len() } else { 1 };
            node.extra = extra::merged(self.former.iter().take(count).map(|former| &former.extra));
        }
    }

    /// Returns `true` if a new node computes a result of a former one.
    fn stands_for(&self, node: &NewNode, former: &Former) -> bool {
        former.outputs.iter().any(|value| {
            let replaces = |&(old, new): &(ValueId, ValueId)| old == *value && node.outputs.contains(&Some(new));
            node.outputs.contains(&Some(*value)) || self.replace.iter().any(replaces)
        })
    }

    fn name(&self, node: &NewNode, role: &str) -> Name {
        let is_free = |name: &str| !name.is_empty() && !self.given.contains(name);
        // A rule's name is kept if the name comes from a node of the same operator, or from no node of the edit.
        let named_after = self.former.iter().find(|former| former.name == node.name);
        let is_true = named_after.is_none_or(|former| former.op_type == node.op_type);
        if is_true && is_free(&node.name) {
            return node.name.clone();
        }
        if let Some(former) =
            self.former.iter().find(|former| self.stands_for(node, former)).filter(|former| is_free(&former.name))
        {
            return former.name.clone();
        }
        match self.stem.as_str() {
            "" => Name::default(),
            // Repeated edits of the same node do not lengthen its name.
            stem if stem.rsplit('/').next() == Some(role) => self.stem.clone(),
            stem => format!("{stem}/{role}").into(),
        }
    }
}

/// Returns `true` if ONNX Runtime may give this name to a constant.
fn is_runtime_name(name: &str) -> bool {
    let is_numbered = |rest: &str| rest.strip_prefix("_token_").is_some_and(|number| number.parse::<u64>().is_ok());
    RUNTIME_NAMES.iter().filter_map(|own| name.strip_prefix(own)).any(|rest| rest.is_empty() || is_numbered(rest))
}

impl Model {
    /// Makes node names unique in the main graph and its nested graphs, and in each function body. The first node of
    /// a name keeps it.
    pub fn name_nodes(&mut self) {
        let bodies: Vec<GraphId> = self.functions().map(|(_, function)| function.body).collect();
        for root in std::iter::once(self.main()).chain(bodies) {
            for (id, name) in self.names_below(root) {
                self.rename_node(id, name.into());
            }
        }
    }

    /// Renames constants of the main graph and its nested graphs whose names ONNX Runtime may use.
    pub fn name_constants(&mut self) {
        let inside = self.nodes_below(self.main()).into_iter().filter_map(|id| self.node(id)).flat_map(Node::subgraphs);
        let graphs: Vec<GraphId> = std::iter::once(self.main()).chain(inside).collect();
        let constants = graphs.into_iter().flat_map(|graph| self.graph(graph).initializers());
        let is_renamed = |&value: &ValueId| {
            let known = self.value(value);
            known.is_constant() && !self.is_output(value) && is_runtime_name(&known.name)
        };
        for value in constants.copied().filter(is_renamed).collect::<Vec<_>>() {
            self.rename_after(value, &self.value(value).name.clone());
        }
    }

    /// Returns the nodes below a root graph that need another name, with that name.
    fn names_below(&self, root: GraphId) -> Vec<(NodeId, String)> {
        let nodes = self.nodes_below(root);
        let mut renamed = Vec::new();
        // All names; `true` if a node has kept or been given it so far.
        let mut taken: FxHashMap<Cow<str>, bool> = FxHashMap::default();
        taken.reserve(nodes.len());
        for name in nodes.iter().filter_map(|&id| Some(self.node(id)?.name.as_str())).filter(|name| !name.is_empty()) {
            taken.insert(Cow::Borrowed(name), false);
        }
        for id in nodes {
            let Some(node) = self.node(id) else { continue };
            if taken.get_mut(node.name.as_str()).is_some_and(|met| !std::mem::replace(met, true)) {
                continue;
            }
            let stem = if node.name.is_empty() { self.plain_name(node) } else { &node.name };
            let numbered = (1..).map(|number: u64| Cow::Owned(format!("{stem}_{number}")));
            let mut candidates = std::iter::once(Cow::Borrowed(stem)).chain(numbered);
            let Some(name) = candidates.find(|name| !taken.contains_key(name)) else { continue };
            renamed.push((id, name.to_string()));
            taken.insert(name, true);
        }
        renamed
    }

    /// Returns the default name of an unnamed node: that of its first result.
    fn plain_name<'m>(&'m self, node: &'m Node) -> &'m str {
        let first = node.outputs().iter().flatten().next().map(|&value| self.value(value).name.as_str());
        first.filter(|name| !name.is_empty()).unwrap_or(&node.op_type)
    }

    /// Returns the nodes of a graph and its nested graphs, in order.
    fn nodes_below(&self, root: GraphId) -> Vec<NodeId> {
        let (mut found, mut open) = (Vec::new(), vec![root]);
        while let Some(graph) = open.pop() {
            for id in self.graph(graph).nodes() {
                found.push(id);
                open.extend(self.node(id).into_iter().flat_map(Node::subgraphs));
            }
        }
        found
    }

    /// Records in the model's metadata what was done to it, and replaces an earlier record.
    pub fn stamp(&mut self, what: &str) {
        self.extra = extra::with_metadata(&self.extra, STAMP, Some(what));
    }

    /// Removes the record of an earlier run and the remembered dims from the model's metadata.
    pub fn unstamp(&mut self) {
        self.extra = extra::with_metadata(&self.extra, STAMP, None);
        self.remember("");
    }

    /// Returns `true` if the model's metadata contains the record of an earlier run.
    pub fn is_stamped(&self) -> bool {
        self.stamped().is_some()
    }

    /// Returns the record of an earlier run in the model's metadata.
    pub fn stamped(&self) -> Option<String> {
        extra::metadata(&self.extra, STAMP)
    }

    /// Returns the dims that an earlier run stored in the model's metadata.
    pub fn remembered(&self) -> Option<String> {
        extra::metadata(&self.extra, SIZES)
    }

    /// Stores learned dims in the model's metadata, and replaces those of an earlier run.
    pub fn remember(&mut self, sizes: &str) {
        self.extra = extra::with_metadata(&self.extra, SIZES, Some(sizes).filter(|sizes| !sizes.is_empty()));
    }

    /// Removes documentation and metadata of a node.
    pub fn forget_texts(&mut self, node: NodeId) {
        if let Some(node) = self.node_mut(node) {
            node.extra = extra::without_texts(&node.extra);
        }
    }
}
