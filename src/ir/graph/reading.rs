//! Reading a model: its graphs, nodes, values and functions, and how they lie in one another.

use rustc_hash::FxHashSet;

use super::{Annotation, Function, Graph, Model, OpsetImport};
use crate::ir::node::{Mark, canonical};
use crate::ir::{CustomOperator, Definition, FunctionId, GraphId, Name, Node, NodeId, Part, Value, ValueId, Watch};
use crate::tensor::Tensor;

impl Model {
    /// What is read and changes here.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The same, to begin or to end.
    pub fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Makes room in the notes of what is read for all there is now.
    pub fn make_room_to_watch(&mut self) {
        self.watch.make_room(self.nodes.len(), self.values.len(), self.graphs.len());
    }

    /// Says that what is decided next depends on more than is worth noting.
    pub fn note_all_read(&self) {
        self.watch.read_everything();
    }

    /// The main graph.
    pub fn main(&self) -> GraphId {
        self.main
    }

    /// Makes another root graph, a function's body, the one that passes work on. Returns the one it was before.
    pub fn set_main(&mut self, graph: GraphId) -> GraphId {
        self.watch.changed(Part::Everything);
        std::mem::replace(&mut self.main, graph)
    }

    /// A graph.
    pub fn graph(&self, graph: GraphId) -> &Graph {
        self.watch.read_graph(graph);
        &self.graphs[graph.index()]
    }

    /// A graph's name and documentation, to change them.
    pub fn graph_mut(&mut self, graph: GraphId) -> &mut Graph {
        self.watch.changed(Part::Graph(graph));
        &mut self.graphs[graph.index()]
    }

    /// A node, if it is still there.
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.watch.read_node(node);
        self.look_at(node)
    }

    /// A node, without a note that it was read: for what is noted as a whole, such as the readers of a value.
    pub(super) fn look_at(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(node.index()).and_then(Option::as_ref)
    }

    /// A node's name, operator and attributes, to change them. Wiring is changed by the methods below.
    pub fn node_mut(&mut self, node: NodeId) -> Option<&mut Node> {
        self.watch.changed(Part::Everything);
        let node = self.nodes.get_mut(node.index()).and_then(Option::as_mut)?;
        node.mark = Mark::default();
        Some(node)
    }

    /// A value.
    pub fn value(&self, value: ValueId) -> &Value {
        self.watch.read_value(value);
        &self.values[value.index()]
    }

    /// A value's name, type and content, to change them. Rename with [`Model::rename`].
    pub fn value_mut(&mut self, value: ValueId) -> &mut Value {
        self.watch.changed(Part::Value(value));
        &mut self.values[value.index()]
    }

    /// An initializer of a graph that holds this tensor in every run: no caller overrides it, and no training step changes it.
    pub fn constant_of(&self, graph: GraphId, tensor: &Tensor) -> Option<ValueId> {
        let holds = |&value: &ValueId| self.value(value).constant_tensor().is_some_and(|held| held.same(tensor));
        self.graph(graph).initializers().iter().copied().find(holds)
    }

    /// How many values were ever made: one past the largest [`ValueId::index`].
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// How many nodes were ever made: one past the largest [`NodeId::index`].
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// All graphs ever made, those of removed nodes included.
    pub fn graphs(&self) -> impl Iterator<Item = GraphId> + '_ {
        (0..self.graphs.len() as u32).map(GraphId)
    }

    /// A function, if it is still there.
    pub fn function(&self, function: FunctionId) -> Option<&Function> {
        self.functions.get(function.index()).and_then(Option::as_ref)
    }

    /// The functions in file order.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function)> + '_ {
        (0u32..).zip(&self.functions).filter_map(|(i, function)| Some((FunctionId(i), function.as_ref()?)))
    }

    /// The function a node calls, if it calls one.
    pub fn function_of(&self, node: &Node) -> Option<(FunctionId, &Function)> {
        let candidates = self.functions_by_name.get(node.op_type.as_str())?;
        candidates.iter().find_map(|&id| {
            let function = self.functions.get(id.index())?.as_ref()?;
            (canonical(&function.domain) == node.canonical_domain() && function.overload == node.overload)
                .then_some((id, function))
        })
    }

    /// Whether any node has, or had, a graph inside it.
    pub fn has_subgraphs(&self) -> bool {
        self.has_subgraphs
    }

    /// Whether some operators have other names; see [`Model::meaning`].
    pub fn has_synonyms(&self) -> bool {
        !self.synonyms.is_empty()
    }

    /// The operator a node is taken for, as domain (`""` is the default one) and name: its own, unless that is another name of
    /// one. The model's own functions come first.
    pub fn meaning<'m>(&'m self, node: &'m Node) -> (&'m str, &'m str) {
        let own = (node.canonical_domain(), node.op_type.as_str());
        if self.synonyms.is_empty() || self.function_of(node).is_some() {
            return own;
        }
        let found = self.synonyms.iter().find(|synonym| (synonym.domain.as_str(), synonym.op_type.as_str()) == own);
        found.map_or(own, |synonym| (synonym.means.0.as_str(), synonym.means.1.as_str()))
    }

    /// What a user said of the node's operator. The model's own functions come first.
    pub fn custom(&self, node: &Node) -> Option<&CustomOperator> {
        let known = self.custom.iter().find(|custom| custom.is_operator_of(node))?;
        self.function_of(node).is_none().then_some(known)
    }

    /// The operator sets in force in `graph`: the function's if it lies in one, else the model's.
    pub fn opsets_of(&self, graph: GraphId) -> &[OpsetImport] {
        let root = self.root(graph);
        self.functions()
            .find(|(_, function)| function.body == root)
            .map_or(&self.opsets, |(_, function)| &function.opsets)
    }

    /// The version of `domain` in force in `graph`. A missing import of the default domain means version 1 before IR 3 and is
    /// `None` otherwise. It is `None` as well where a domain is imported in two versions: runtimes differ in which they take.
    pub fn opset(&self, graph: GraphId, domain: &str) -> Option<i64> {
        let domain = canonical(domain);
        let imports = self.opsets_of(graph).iter().filter(|import| canonical(&import.domain) == domain);
        let mut versions = imports.map(|import| import.version);
        match versions.next() {
            Some(version) => versions.all(|other| other == version).then_some(version),
            None => (domain.is_empty() && self.ir_version < 3).then_some(1),
        }
    }

    /// The outermost graph around `graph`: the main graph or a function's body.
    pub fn root(&self, mut graph: GraphId) -> GraphId {
        while let Some(owner) = self.graphs[graph.index()].parent.and_then(|parent| self.look_at(parent)) {
            graph = owner.graph;
        }
        graph
    }

    /// Whether `inner` is `outer` or lies somewhere inside it.
    pub fn is_within(&self, mut inner: GraphId, outer: GraphId) -> bool {
        loop {
            if inner == outer {
                return true;
            }
            match self.graphs[inner.index()].parent.and_then(|parent| self.look_at(parent)) {
                Some(owner) => inner = owner.graph,
                None => return false,
            }
        }
    }

    /// The annotations of values that a graph defines, without those that name a value which is gone or renamed.
    pub fn annotations_of(&self, graph: GraphId) -> impl Iterator<Item = &Annotation> {
        let is_there = |(value, name): &(ValueId, Name)| {
            let place = self.value(*value);
            place.name == *name && place.definition() != Definition::Nothing
        };
        let are_there = move |annotation: &&Annotation| annotation.values().all(is_there);
        let is_here = move |annotation: &&Annotation| self.graph_of(annotation.tensor.0) == Some(graph);
        self.annotations.iter().filter(is_here).filter(are_there)
    }

    /// The graph a value is defined in.
    pub fn graph_of(&self, value: ValueId) -> Option<GraphId> {
        match self.value(value).definition {
            Definition::Input(graph) | Definition::Initializer(graph) => Some(graph),
            Definition::Node(node, _) => self.look_at(node).map(|node| node.graph),
            Definition::Nothing => None,
        }
    }

    /// Whether the graph still belongs to the model: neither its owner has been removed, nor that of a graph around it.
    pub fn is_live(&self, mut graph: GraphId) -> bool {
        while let Some(parent) = self.graphs[graph.index()].parent {
            match self.look_at(parent) {
                Some(node) if node.subgraphs().any(|held| held == graph) => graph = node.graph,
                _ => return false,
            }
        }
        true
    }

    /// The outer values that `graph` and the graphs inside it read, in order of first use.
    pub fn captures(&self, graph: GraphId) -> Vec<ValueId> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![graph];
        let mut note = |value: ValueId, found: &mut Vec<ValueId>| {
            let outside = self.graph_of(value).is_none_or(|home| !self.is_within(home, graph));
            if outside && seen.insert(value) {
                found.push(value);
            }
        };
        while let Some(inner) = open.pop() {
            for node in self.graph(inner).nodes().filter_map(|node| self.node(node)) {
                for value in node.inputs.iter().flatten() {
                    note(*value, &mut found);
                }
                open.extend(node.subgraphs());
            }
            for value in &self.graph(inner).outputs {
                note(*value, &mut found);
            }
        }
        found
    }

    /// How messages name a node: operator, and name or first output.
    pub fn describe(&self, node: NodeId) -> String {
        let Some(node) = self.node(node) else { return "a removed node".to_string() };
        // A node that is opaque for a time has its domain behind a number between zeros.
        let operator = node.operator();
        let hidden = operator.strip_prefix('\0').and_then(|rest| rest.split_once('\0'));
        let operator = hidden.map_or(operator.as_str(), |(_, own)| own.trim_start_matches('.'));
        if !node.name.is_empty() {
            return format!("{operator} node '{}'", node.name);
        }
        match node.outputs.iter().flatten().next() {
            Some(&value) => format!("{operator} node that computes '{}'", self.value(value).name),
            None => format!("{operator} node without outputs"),
        }
    }
}
