//! What new nodes are called: given here and nowhere else, when an edit is applied and before a model is written.
//!
//! * A node that computes what another computed has its name.
//! * Any other new node is called after the node that was looked at and its own part in the matter: `/layer/Slice/starts`. A name that
//!   its rule took from a node of another operator would lie, and is not used.
//! * Documentation and metadata are those of the nodes that went, together, if it computes what they computed, and else those of the first;
//!   a copy has its own.
//! * Before the model is written, nodes without a name are called as their first result is, and no two nodes have one name.
//! * No constant is called as ONNX Runtime calls constants that it adds, which it does without looking whether there is one of that name.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Edit, Extra, GraphId, Model, Name, NewNode, Node, NodeId, ValueId, extra};

/// The key of the model's metadata under which this program tells what it did.
const STAMP: &str = "onnx-slice-fold";

/// The key under which it is kept what the sizes are beside what the nodes tell.
const SIZES: &str = "onnx-slice-fold.sizes";

/// What ONNX Runtime calls constants of operands it adds, with `_token_` and a number where a node has that name. Files have such constants that
/// it has written itself; if it adds another of the name it refuses the model.
const RUNTIME_NAMES: &[&str] = &[
    "ConstAsInitializer",
    "SqueezeAxesInitializer",
    "fused_Split",
    "gemm_input_shape",
    "gemm_output_shape",
    "squeeze_axes",
];

/// A node as it was before the edit.
struct Former {
    name: Name,
    op_type: Name,
    outputs: Vec<ValueId>,
    extra: Extra,
}

/// What an edit finds, noted before anything is changed.
pub(super) struct Naming {
    /// The node looked at first if it is among them or stays, and those that go.
    former: Vec<Former>,
    /// What inner nodes are called after; empty if nothing here has a name.
    stem: Name,
    /// Values that new ones replace, each with the new one.
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

    /// Gives a new node its name, and what is said of it. `role` is its part in the edit. Its results are still those of the edit.
    pub(super) fn complete(&mut self, node: &mut NewNode, role: &str) {
        node.name = self.name(node, role);
        self.given.insert(node.name.clone());
        if node.extra.is_empty() {
            // What computes a result tells of all that went; what is on the way there, of where it stands.
            let all = self.former.iter().any(|former| self.stands_for(node, former));
            let count = if all { self.former.len() } else { 1 };
            node.extra = extra::merged(self.former.iter().take(count).map(|former| &former.extra));
        }
    }

    /// Whether a new node computes what another one computed.
    fn stands_for(&self, node: &NewNode, former: &Former) -> bool {
        former.outputs.iter().any(|value| {
            let replaces = |&(old, new): &(ValueId, ValueId)| old == *value && node.outputs.contains(&Some(new));
            node.outputs.contains(&Some(*value)) || self.replace.iter().any(replaces)
        })
    }

    fn name(&self, node: &NewNode, role: &str) -> Name {
        let is_free = |name: &str| !name.is_empty() && !self.given.contains(name);
        // A rule that names a node after another has its reason, if that is of the same operator or was no part of the edit.
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
            // A name does not grow with each edit that looks at it again.
            stem if stem.rsplit('/').next() == Some(role) => self.stem.clone(),
            stem => format!("{stem}/{role}").into(),
        }
    }
}

/// Whether ONNX Runtime may call a constant so.
fn is_runtime_name(name: &str) -> bool {
    let is_numbered = |rest: &str| rest.strip_prefix("_token_").is_some_and(|number| number.parse::<u64>().is_ok());
    RUNTIME_NAMES.iter().filter_map(|own| name.strip_prefix(own)).any(|rest| rest.is_empty() || is_numbered(rest))
}

impl Model {
    /// Gives every node of the main graph, the graphs inside it and the bodies of functions a name that no other has there. The first
    /// node of a name keeps it.
    pub fn name_nodes(&mut self) {
        let bodies: Vec<GraphId> = self.functions().map(|(_, function)| function.body).collect();
        for root in std::iter::once(self.main()).chain(bodies) {
            for (id, name) in self.names_below(root) {
                self.rename_node(id, name.into());
            }
        }
    }

    /// Gives constants another name that have one which ONNX Runtime may give, in the main graph and the graphs inside it.
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

    /// The nodes below a root graph that need another name, with the name.
    fn names_below(&self, root: GraphId) -> Vec<(NodeId, String)> {
        let nodes = self.nodes_below(root);
        let mut renamed = Vec::new();
        // Every name, and whether a node has kept or been given it so far.
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

    /// What a node without a name is called: as its first result.
    fn plain_name<'m>(&'m self, node: &'m Node) -> &'m str {
        let first = node.outputs().iter().flatten().next().map(|&value| self.value(value).name.as_str());
        first.filter(|name| !name.is_empty()).unwrap_or(&node.op_type)
    }

    /// The nodes of a graph and of the graphs inside it, in order.
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

    /// Tells in the model's metadata what was done to it, in place of what an earlier run told.
    pub fn stamp(&mut self, what: &str) {
        self.extra = extra::with_metadata(&self.extra, STAMP, Some(what));
    }

    /// Takes away what the model's metadata tells of this.
    pub fn unstamp(&mut self) {
        self.extra = extra::with_metadata(&self.extra, STAMP, None);
        self.remember("");
    }

    /// Whether the model's metadata tells of an earlier run of this program.
    pub fn is_stamped(&self) -> bool {
        self.stamped().is_some()
    }

    /// What the model's metadata tells of an earlier run of this program.
    pub fn stamped(&self) -> Option<String> {
        extra::metadata(&self.extra, STAMP)
    }

    /// What an earlier run learned of the sizes, as the model's metadata has it.
    pub fn remembered(&self) -> Option<String> {
        extra::metadata(&self.extra, SIZES)
    }

    /// Keeps in the model's metadata what was learned of the sizes, in place of what an earlier run learned.
    pub fn remember(&mut self, sizes: &str) {
        self.extra = extra::with_metadata(&self.extra, SIZES, Some(sizes).filter(|sizes| !sizes.is_empty()));
    }

    /// Takes away documentation and metadata of a node.
    pub fn forget_texts(&mut self, node: NodeId) {
        if let Some(node) = self.node_mut(node) {
            node.extra = extra::without_texts(&node.extra);
        }
    }
}
