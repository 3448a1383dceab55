//! Reads a model: its graphs, nodes, values and functions, and their nesting.

use rustc_hash::FxHashSet;

use super::{Annotation, Function, Graph, Model, OpsetImport};
use crate::ir::node::{Mark, canonical};
use crate::ir::{CustomOperator, Definition, FunctionId, GraphId, Name, Node, NodeId, Part, Value, ValueId, Watch};
use crate::tensor::Tensor;

impl Model {
    /// Returns the record of reads and changes.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Returns the record of reads and changes, to start or stop it.
    pub fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Reserves room in the record of reads for all current parts.
    pub fn make_room_to_watch(&mut self) {
        self.watch.make_room(self.nodes.len(), self.values.len(), self.graphs.len());
    }

    /// Records a dependency on more parts than can be listed.
    pub fn note_all_read(&self) {
        self.watch.read_everything();
    }

    /// Returns the main graph.
    pub fn main(&self) -> GraphId {
        self.main
    }

    /// Makes another root graph, a function's body, the main graph for passes. Returns the previous one.
    pub fn set_main(&mut self, graph: GraphId) -> GraphId {
        self.watch.changed(Part::Everything);
        std::mem::replace(&mut self.main, graph)
    }

    /// Returns a graph.
    pub fn graph(&self, graph: GraphId) -> &Graph {
        self.watch.read_graph(graph);
        &self.graphs[graph.index()]
    }

    /// Returns a graph to change its name or documentation.
    pub fn graph_mut(&mut self, graph: GraphId) -> &mut Graph {
        self.watch.changed(Part::Graph(graph));
        &mut self.graphs[graph.index()]
    }

    /// Returns a node, if it was not removed.
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.watch.read_node(node);
        self.look_at(node)
    }

    /// Returns a node without recording the read, where the record covers it, as for the readers of a value.
    pub(super) fn look_at(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(node.index()).and_then(Option::as_ref)
    }

    /// Returns a node to change its name, operator or attributes. The methods of `building` change the wiring.
    pub fn node_mut(&mut self, node: NodeId) -> Option<&mut Node> {
        self.watch.changed(Part::Everything);
        let node = self.nodes.get_mut(node.index()).and_then(Option::as_mut)?;
        node.mark = Mark::default();
        Some(node)
    }

    /// Returns a value.
    pub fn value(&self, value: ValueId) -> &Value {
        self.watch.read_value(value);
        &self.values[value.index()]
    }

    /// Returns a value to change its type or content. [`Model::rename`] changes the name.
    pub fn value_mut(&mut self, value: ValueId) -> &mut Value {
        self.watch.changed(Part::Value(value));
        &mut self.values[value.index()]
    }

    /// Returns an initializer of a graph that has this content in every run: callers and training steps cannot change
    /// it.
    pub fn constant_of(&self, graph: GraphId, tensor: &Tensor) -> Option<ValueId> {
        let holds = |&value: &ValueId| self.value(value).constant_tensor().is_some_and(|held| held.same(tensor));
        self.graph(graph).initializers().iter().copied().find(holds)
    }

    /// Returns the number of values ever created: one more than the largest [`ValueId::index`].
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of nodes ever created: one more than the largest [`NodeId::index`].
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns all graphs ever created, including those of removed nodes.
    pub fn graphs(&self) -> impl Iterator<Item = GraphId> + '_ {
        (0..self.graphs.len() as u32).map(GraphId)
    }

    /// Returns a function, if it was not removed.
    pub fn function(&self, function: FunctionId) -> Option<&Function> {
        self.functions.get(function.index()).and_then(Option::as_ref)
    }

    /// Returns the functions in file order.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function)> + '_ {
        (0u32..).zip(&self.functions).filter_map(|(i, function)| Some((FunctionId(i), function.as_ref()?)))
    }

    /// Returns the function that a node calls, if any.
    pub fn function_of(&self, node: &Node) -> Option<(FunctionId, &Function)> {
        let candidates = self.functions_by_name.get(node.op_type.as_str())?;
        candidates.iter().find_map(|&id| {
            let function = self.functions.get(id.index())?.as_ref()?;
            (canonical(&function.domain) == node.canonical_domain() && function.overload == node.overload)
                .then_some((id, function))
        })
    }

    /// Returns `true` if any node contains or contained a graph.
    pub fn has_subgraphs(&self) -> bool {
        self.has_subgraphs
    }

    /// Returns `true` if some operators have synonyms; see [`Model::meaning`].
    pub fn has_synonyms(&self) -> bool {
        !self.synonyms.is_empty()
    }

    /// Returns the operator of a node, as domain (`""` is the default one) and name, with synonyms resolved. The
    /// model's own functions take precedence.
    pub fn meaning<'m>(&'m self, node: &'m Node) -> (&'m str, &'m str) {
        let own = (node.canonical_domain(), node.op_type.as_str());
        if self.synonyms.is_empty() || self.function_of(node).is_some() {
            return own;
        }
        let found = self.synonyms.iter().find(|synonym| (synonym.domain.as_str(), synonym.op_type.as_str()) == own);
        found.map_or(own, |synonym| (synonym.means.0.as_str(), synonym.means.1.as_str()))
    }

    /// Returns the user's definition of the node's operator. The model's own functions take precedence.
    pub fn custom(&self, node: &Node) -> Option<&CustomOperator> {
        let known = self.custom.iter().find(|custom| custom.is_operator_of(node))?;
        self.function_of(node).is_none().then_some(known)
    }

    /// Returns the operator sets that apply in `graph`: those of its function, or else the model's.
    pub fn opsets_of(&self, graph: GraphId) -> &[OpsetImport] {
        let root = self.root(graph);
        self.functions()
            .find(|(_, function)| function.body == root)
            .map_or(&self.opsets, |(_, function)| &function.opsets)
    }

    /// Returns the version of `domain` that applies in `graph`. Without an import of the default domain it is 1
    /// before IR 3, and `None` otherwise. `None` for a domain with two imported versions: runtimes disagree which one
    /// applies.
    pub fn opset(&self, graph: GraphId, domain: &str) -> Option<i64> {
        let domain = canonical(domain);
        let imports = self.opsets_of(graph).iter().filter(|import| canonical(&import.domain) == domain);
        let mut versions = imports.map(|import| import.version);
        match versions.next() {
            Some(version) => versions.all(|other| other == version).then_some(version),
            None => (domain.is_empty() && self.ir_version < 3).then_some(1),
        }
    }

    /// Returns the outermost graph around `graph`: the main graph or a function's body.
    pub fn root(&self, mut graph: GraphId) -> GraphId {
        while let Some(owner) = self.graphs[graph.index()].parent.and_then(|parent| self.look_at(parent)) {
            graph = owner.graph;
        }
        graph
    }

    /// Returns `true` if `inner` is `outer` or nested in it.
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

    /// Returns the annotations of values that a graph defines, unless one of their values was removed or renamed.
    pub fn annotations_of(&self, graph: GraphId) -> impl Iterator<Item = &Annotation> {
        let is_there = |(value, name): &(ValueId, Name)| {
            let place = self.value(*value);
            place.name == *name && place.definition() != Definition::Nothing
        };
        let are_there = move |annotation: &&Annotation| annotation.values().all(is_there);
        let is_here = move |annotation: &&Annotation| self.graph_of(annotation.tensor.0) == Some(graph);
        self.annotations.iter().filter(is_here).filter(are_there)
    }

    /// Returns the graph that defines a value.
    pub fn graph_of(&self, value: ValueId) -> Option<GraphId> {
        match self.value(value).definition {
            Definition::Input(graph) | Definition::Initializer(graph) => Some(graph),
            Definition::Node(node, _) => self.look_at(node).map(|node| node.graph),
            Definition::Nothing => None,
        }
    }

    /// Returns `true` if the graph is part of the model: no node around it was removed.
    pub fn is_live(&self, mut graph: GraphId) -> bool {
        while let Some(parent) = self.graphs[graph.index()].parent {
            match self.look_at(parent) {
                Some(node) if node.subgraphs().any(|held| held == graph) => graph = node.graph,
                _ => return false,
            }
        }
        true
    }

    /// Returns the outer values that `graph` and its nested graphs read, in order of first use.
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

    /// Describes a node in messages: operator, and name or first output.
    pub fn describe(&self, node: NodeId) -> String {
        let Some(node) = self.node(node) else { return "a removed node".to_string() };
        // A temporarily opaque node has a domain with a prefix: a number between NUL characters.
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
