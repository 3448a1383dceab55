//! The model: arenas of graphs, nodes and values, and the wiring between them.
//!
//! The wiring is one petgraph for the whole model. Its vertices are the values, the nodes and, as sinks, the graphs'
//! output lists; an edge runs from a value to whatever reads it and from a node to what it computes. A capture is then
//! an edge like any other. Edges are never taken out one by one (unlinking from a value with very many readers would
//! make a pass quadratic): an edge counts only while the reader still names the value in that slot, and the whole wiring
//! is laid anew once most of it is stale.
#![allow(clippy::indexing_slicing, reason = "ids are given out by the model, whose arenas never shrink")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Broken, Constant, DeclaredType, Definition, Extra, FunctionId, GraphId, NamedAttribute, NewNode, Node, NodeId,
    Value, ValueId,
};

/// One entry of `opset_import`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpsetImport {
    /// The domain as written.
    pub domain: String,
    /// The version.
    pub version: i64,
    /// Unknown fields.
    pub extra: Extra,
}

/// A graph. Its nodes are reached through [`Model`].
#[derive(Clone, Debug)]
pub struct Graph {
    /// The graph's name.
    pub name: String,
    /// Documentation, metadata, quantization annotations and unknown fields.
    pub extra: Extra,
    parent: Option<NodeId>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    initializers: Vec<ValueId>,
    nodes: BTreeSet<((u32, u32), NodeId)>,
    sink: NodeIndex,
}

impl Graph {
    /// The node whose attribute holds this graph; `None` for the main graph and function bodies.
    pub fn parent(&self) -> Option<NodeId> {
        self.parent
    }

    /// The inputs in order.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// The outputs in order. One value may be listed more than once.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// The initializers in order, defaults of inputs included.
    pub fn initializers(&self) -> &[ValueId] {
        &self.initializers
    }

    /// The nodes, in file order; see [`Model::topological`] for an order to compute in.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.nodes.iter().map(|&(_, node)| node)
    }

    /// How many nodes there are, those of subgraphs not counted.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
}

/// Another name of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// Its domain; `""` is the default one.
    pub domain: String,
    pub op_type: String,
    /// Domain and name of the operator it stands for.
    pub means: (String, String),
}

/// A function that the model brings along.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub domain: String,
    pub overload: String,
    /// The body; its inputs and outputs are the function's formal parameters.
    pub body: GraphId,
    /// Names of attributes without a default.
    pub attributes: Vec<String>,
    /// Attributes with a default.
    pub defaults: Vec<NamedAttribute>,
    /// The operator sets the body is written in.
    pub opsets: Vec<OpsetImport>,
    /// Documentation, metadata and unknown fields.
    pub extra: Extra,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Vertex {
    Value,
    Node(NodeId),
    Outputs(GraphId),
}

/// A whole model.
#[derive(Clone, Debug)]
pub struct Model {
    /// The version of the file format.
    pub ir_version: i64,
    /// The operator sets of the main graph, in file order.
    pub opsets: Vec<OpsetImport>,
    /// Everything else at the top of the file: producer, version, documentation, metadata, training information, device
    /// configurations and unknown fields.
    pub extra: Extra,
    /// Whether the functions stay as they are, called or not: graphs of training information in `extra` may call them.
    pub keeps_functions: bool,
    main: GraphId,
    graphs: Vec<Graph>,
    nodes: Vec<Option<Node>>,
    values: Vec<Value>,
    functions: Vec<Option<Function>>,
    functions_by_name: FxHashMap<String, Vec<FunctionId>>,
    synonyms: Vec<Synonym>,
    /// How many values were ever given each name.
    names: FxHashMap<String, u32>,
    wiring: DiGraph<Vertex, u32, u32>,
    value_at: Vec<NodeIndex>,
    node_at: Vec<NodeIndex>,
    /// Where each value was listed as a graph's output. Like an edge, a place counts only while the value still stands there.
    listed: FxHashMap<ValueId, Vec<(GraphId, usize)>>,
    stale: usize,
    next_order: u32,
}

impl Default for Model {
    fn default() -> Self {
        Model::new()
    }
}

impl Model {
    /// An empty model with an empty main graph.
    pub fn new() -> Self {
        let mut model = Model {
            ir_version: 0,
            opsets: Vec::new(),
            extra: Extra::new(),
            keeps_functions: false,
            main: GraphId(0),
            graphs: Vec::new(),
            nodes: Vec::new(),
            values: Vec::new(),
            functions: Vec::new(),
            functions_by_name: FxHashMap::default(),
            synonyms: Vec::new(),
            names: FxHashMap::default(),
            wiring: DiGraph::default(),
            value_at: Vec::new(),
            node_at: Vec::new(),
            listed: FxHashMap::default(),
            stale: 0,
            next_order: 0,
        };
        model.main = model.add_graph("", None);
        model
    }

    // ---- reading -------------------------------------------------------------------------------------------------

    /// The main graph.
    pub fn main(&self) -> GraphId {
        self.main
    }

    /// Makes another root graph, a function's body, the one that passes work on. Returns the one it was before.
    pub fn set_main(&mut self, graph: GraphId) -> GraphId {
        std::mem::replace(&mut self.main, graph)
    }

    /// A graph.
    pub fn graph(&self, graph: GraphId) -> &Graph {
        &self.graphs[graph.index()]
    }

    /// A graph's name and documentation, to change them.
    pub fn graph_mut(&mut self, graph: GraphId) -> &mut Graph {
        &mut self.graphs[graph.index()]
    }

    /// A node, if it is still there.
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(node.index()).and_then(Option::as_ref)
    }

    /// A node's name, operator and attributes, to change them. Wiring is changed by the methods below.
    pub fn node_mut(&mut self, node: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(node.index()).and_then(Option::as_mut)
    }

    /// A value.
    pub fn value(&self, value: ValueId) -> &Value {
        &self.values[value.index()]
    }

    /// A value's name, type and content, to change them. Rename with [`Model::rename`].
    pub fn value_mut(&mut self, value: ValueId) -> &mut Value {
        &mut self.values[value.index()]
    }

    /// How many values were ever made: one past the largest [`ValueId::index`].
    pub fn value_count(&self) -> usize {
        self.values.len()
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
        let candidates = self.functions_by_name.get(&node.op_type)?;
        candidates.iter().find_map(|&id| {
            let function = self.functions.get(id.index())?.as_ref()?;
            let domain = if function.domain == "ai.onnx" { "" } else { &function.domain };
            (domain == node.canonical_domain() && function.overload == node.overload).then_some((id, function))
        })
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
        let canonical = |domain: &str| if domain == "ai.onnx" { String::new() } else { domain.to_string() };
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
        while let Some(owner) = self.graph(graph).parent.and_then(|parent| self.node(parent)) {
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
            match self.graph(inner).parent.and_then(|parent| self.node(parent)) {
                Some(owner) => inner = owner.graph,
                None => return false,
            }
        }
    }

    /// The graph a value is defined in.
    pub fn graph_of(&self, value: ValueId) -> Option<GraphId> {
        match self.value(value).definition {
            Definition::Input(graph) | Definition::Initializer(graph) => Some(graph),
            Definition::Node(node, _) => self.node(node).map(|node| node.graph),
            Definition::Nothing => None,
        }
    }

    /// The operands that read a value, in subgraphs too, as (node, slot), sorted.
    pub fn users(&self, value: ValueId) -> Vec<(NodeId, usize)> {
        let mut users: Vec<_> = self
            .readers(value)
            .filter_map(|(vertex, slot)| match vertex {
                Vertex::Node(node) => Some((node, slot)),
                _ => None,
            })
            .collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// The graphs that list the value among their outputs, as (graph, position), sorted.
    pub fn output_uses(&self, value: ValueId) -> Vec<(GraphId, usize)> {
        let mut uses: Vec<_> = self
            .readers(value)
            .filter_map(|(vertex, slot)| match vertex {
                Vertex::Outputs(graph) => Some((graph, slot)),
                _ => None,
            })
            .collect();
        uses.sort_unstable();
        uses.dedup();
        uses
    }

    /// Whether some graph lists the value among its outputs. However many readers it has, this takes no longer.
    pub fn is_output(&self, value: ValueId) -> bool {
        self.listed.get(&value).is_some_and(|places| {
            let still = |&(graph, slot): &(GraphId, usize)| self.graph(graph).outputs.get(slot) == Some(&value);
            places.iter().any(|place| still(place) && self.is_live(place.0))
        })
    }

    /// Whether the value's name must survive: it is some graph's output, or something outside the wiring names it.
    pub fn is_named(&self, value: ValueId) -> bool {
        self.value(value).pinned || self.is_output(value)
    }

    /// Whether what computes the value may compute it under another name: it is a node of `graph`, and the name need not survive.
    pub fn may_rename(&self, value: ValueId, graph: GraphId) -> bool {
        let producer = self.value(value).producer().and_then(|id| self.node(id));
        producer.is_some_and(|node| node.graph == graph) && !self.is_named(value)
    }

    /// Whether every reader of `old` may read `new` instead without a node that gives `new` the name of `old`: the name of `old`
    /// need not survive, or what computes `new` in the same graph takes it over.
    pub fn may_replace(&self, old: ValueId, new: ValueId, graph: GraphId) -> bool {
        !self.is_named(old) || self.may_rename(new, graph)
    }

    /// Whether exactly one operand of one node reads the value, and nothing outside the wiring names it. It ends at the second one.
    pub fn is_read_once(&self, value: ValueId) -> bool {
        if self.value(value).pinned {
            return false;
        }
        let mut readers = self.readers(value);
        // The same operand may have come to read the value more than once.
        readers.next().is_some_and(|first| matches!(first.0, Vertex::Node(_)) && readers.all(|other| other == first))
    }

    /// Whether every reader of the value is one of these nodes; a graph that lists it among its outputs is none of them, nor is what
    /// names it from outside the wiring. It is asked of values with very many readers, too, so it ends at the first other one.
    pub fn is_read_only_by(&self, value: ValueId, nodes: &[NodeId]) -> bool {
        !self.value(value).pinned
            && self.readers(value).all(|(vertex, _)| matches!(vertex, Vertex::Node(node) if nodes.contains(&node)))
    }

    /// Whether nothing reads the value and nothing outside the wiring names it.
    pub fn is_unused(&self, value: ValueId) -> bool {
        !self.value(value).pinned && self.readers(value).next().is_none()
    }

    fn readers(&self, value: ValueId) -> impl Iterator<Item = (Vertex, usize)> + '_ {
        use petgraph::visit::EdgeRef;
        let at = self.value_at[value.index()];
        self.wiring.edges_directed(at, Direction::Outgoing).filter_map(move |edge| {
            let (vertex, slot) = (self.wiring[edge.target()], *edge.weight() as usize);
            let live = match vertex {
                Vertex::Node(node) => self.node(node).is_some_and(|node| node.input(slot) == Some(value)),
                Vertex::Outputs(graph) => self.is_live(graph) && self.graph(graph).outputs.get(slot) == Some(&value),
                Vertex::Value => false,
            };
            live.then_some((vertex, slot))
        })
    }

    /// Whether the graph still belongs to the model: its owner has not been removed.
    pub fn is_live(&self, graph: GraphId) -> bool {
        match self.graph(graph).parent {
            None => true,
            Some(parent) => self.node(parent).is_some_and(|node| node.subgraphs().any(|held| held == graph)),
        }
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

    /// The nodes of `graph` so that each comes after everything it reads, its subgraphs' captures included. Where the wiring
    /// leaves a choice, file order decides, so a file that was in order stays in its own order.
    ///
    /// # Errors
    /// [`Broken::Cycle`] when there is no such order.
    pub fn topological(&self, graph: GraphId) -> Result<Vec<NodeId>, Broken> {
        let nodes: Vec<NodeId> = self.graph(graph).nodes().collect();
        if nodes.iter().all(|&id| self.follows_all_it_reads(id)) {
            return Ok(nodes);
        }
        let place: FxHashMap<NodeId, u32> = nodes.iter().copied().zip(0u32..).collect();
        // For each node the places of those it reads, one after the other, and where its own begin.
        let mut before: Vec<u32> = Vec::with_capacity(nodes.len() * 2);
        let mut begin: Vec<usize> = Vec::with_capacity(nodes.len() + 1);
        for &id in &nodes {
            begin.push(before.len());
            self.for_each_read(id, &mut |value| {
                before.extend(self.value(value).producer().and_then(|producer| place.get(&producer)));
            });
        }
        begin.push(before.len());
        let reads = |at: usize| begin.get(at..at + 2).and_then(|span| before.get(span[0]..span[1])).unwrap_or(&[]);
        // The same turned around: who follows each node.
        let mut begin_after = vec![0usize; nodes.len() + 1];
        for &producer in &before {
            begin_after[producer as usize + 1] += 1;
        }
        for at in 1..begin_after.len() {
            begin_after[at] += begin_after[at - 1];
        }
        let mut after = vec![0u32; before.len()];
        let mut next = begin_after.clone();
        for at in 0..nodes.len() {
            for &producer in reads(at) {
                let slot = &mut next[producer as usize];
                after[*slot] = at as u32;
                *slot += 1;
            }
        }
        let mut waiting: Vec<usize> = (0..nodes.len()).map(|at| reads(at).len()).collect();
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..nodes.len()).filter(|&at| waiting[at] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(Reverse(at)) = ready.pop() {
            order.push(nodes[at]);
            for &follower in &after[begin_after[at]..begin_after[at + 1]] {
                let left = &mut waiting[follower as usize];
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse(follower as usize));
                }
            }
        }
        if order.len() == nodes.len() {
            return Ok(order);
        }
        let first = (0..nodes.len()).find(|&at| waiting[at] > 0);
        Err(Broken::Cycle(first.map(|at| self.describe(nodes[at])).unwrap_or_default()))
    }

    /// Whether everything in the same graph that a node reads is computed by nodes before it in file order.
    fn follows_all_it_reads(&self, id: NodeId) -> bool {
        let Some(node) = self.node(id) else { return true };
        let mut follows = true;
        self.for_each_read(id, &mut |value| {
            let producer = self.value(value).producer().and_then(|id| Some((id, self.node(id)?)));
            if let Some((before, producer)) = producer.filter(|(_, producer)| producer.graph == node.graph) {
                follows &= (producer.order, before) < (node.order, id);
            }
        });
        follows
    }

    /// Calls `each` with every value that a node reads, and those that the graphs it holds read or list as outputs.
    fn for_each_read(&self, node: NodeId, each: &mut dyn FnMut(ValueId)) {
        let mut open: Vec<NodeId> = Vec::new();
        let mut next = Some(node);
        while let Some(id) = next {
            if let Some(node) = self.node(id) {
                node.inputs.iter().flatten().for_each(|&value| each(value));
                for graph in node.subgraphs() {
                    self.graph(graph).outputs.iter().for_each(|&value| each(value));
                    open.extend(self.graph(graph).nodes());
                }
            }
            next = open.pop();
        }
    }

    /// How messages name a node: operator, and name or first output.
    pub fn describe(&self, node: NodeId) -> String {
        let Some(node) = self.node(node) else { return "a removed node".to_string() };
        if !node.name.is_empty() {
            return format!("{} node '{}'", node.operator(), node.name);
        }
        match node.outputs.iter().flatten().next() {
            Some(&value) => format!("{} node that computes '{}'", node.operator(), self.value(value).name),
            None => format!("{} node without outputs", node.operator()),
        }
    }

    // ---- building ------------------------------------------------------------------------------------------------

    /// Makes an operator another name of one the program knows. Nodes keep the name they have.
    pub fn add_synonym(&mut self, synonym: Synonym) {
        self.synonyms.retain(|known| (&known.domain, &known.op_type) != (&synonym.domain, &synonym.op_type));
        self.synonyms.push(synonym);
    }

    /// Makes room for as many more values and nodes, and for the operands and results of those.
    pub fn reserve(&mut self, values: usize, nodes: usize, operands: usize) {
        self.values.reserve(values);
        self.value_at.reserve(values);
        self.names.reserve(values);
        self.nodes.reserve(nodes);
        self.node_at.reserve(nodes);
        self.wiring.reserve_nodes(values.saturating_add(nodes));
        self.wiring.reserve_edges(operands);
    }

    /// A new empty graph, held by `parent`'s attribute if given.
    pub fn add_graph(&mut self, name: &str, parent: Option<NodeId>) -> GraphId {
        let id = GraphId(self.graphs.len() as u32);
        let sink = self.wiring.add_node(Vertex::Outputs(id));
        self.graphs.push(Graph {
            name: name.to_string(),
            extra: Extra::new(),
            parent,
            inputs: Vec::new(),
            outputs: Vec::new(),
            initializers: Vec::new(),
            nodes: BTreeSet::new(),
            sink,
        });
        id
    }

    /// Says which node's attribute holds `graph`.
    pub fn set_parent(&mut self, graph: GraphId, parent: NodeId) {
        self.graphs[graph.index()].parent = Some(parent);
    }

    /// A new value that nothing defines yet. Two values may have one name only in graphs that do not see each other.
    pub fn add_value(&mut self, name: impl Into<String>) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        let name = name.into();
        *self.names.entry(name.clone()).or_default() += 1;
        self.value_at.push(self.wiring.add_node(Vertex::Value));
        self.values.push(Value {
            name,
            declared: None,
            constant: None,
            extra: Extra::new(),
            pinned: false,
            definition: Definition::Nothing,
        });
        id
    }

    /// A name that no value has or had: `stem`, or `stem_1`, `stem_2`, …
    pub fn unused_name(&self, stem: &str) -> String {
        if !stem.is_empty() && !self.names.contains_key(stem) {
            return stem.to_string();
        }
        // Starting at how many values there are keeps this from counting up through names that are taken.
        let mut n = if self.names.contains_key(&format!("{stem}_8")) { self.values.len() as u64 } else { 1 };
        loop {
            let name = format!("{stem}_{n}");
            if !self.names.contains_key(&name) {
                return name;
            }
            n += 1;
        }
    }

    /// Whether some value has or had the name, or it is reserved.
    pub fn has_name(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Keeps a name from being given to a new value.
    pub fn reserve_name(&mut self, name: &str) {
        *self.names.entry(name.to_string()).or_default() += 1;
    }

    /// Gives a value another name.
    pub fn rename(&mut self, value: ValueId, name: impl Into<String>) {
        let name = name.into();
        *self.names.entry(name.clone()).or_default() += 1;
        self.values[value.index()].name = name;
    }

    /// Makes `value` the next input of `graph`.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if something defines the value already.
    pub fn add_input(&mut self, graph: GraphId, value: ValueId) -> Result<(), Broken> {
        self.define(value, Definition::Input(graph))?;
        self.graphs[graph.index()].inputs.push(value);
        Ok(())
    }

    /// Makes `value` the next output of `graph`.
    pub fn add_output(&mut self, graph: GraphId, value: ValueId) {
        let slot = self.graphs[graph.index()].outputs.len();
        self.graphs[graph.index()].outputs.push(value);
        self.listed.entry(value).or_default().push((graph, slot));
        self.wiring.add_edge(self.value_at[value.index()], self.graphs[graph.index()].sink, slot as u32);
    }

    /// Makes `graph`'s output number `slot` another value. The name a caller sees is the value's, so this is for subgraphs.
    pub fn set_output(&mut self, graph: GraphId, slot: usize, value: ValueId) {
        let sink = self.graphs[graph.index()].sink;
        if let Some(place) = self.graphs[graph.index()].outputs.get_mut(slot) {
            *place = value;
            self.listed.entry(value).or_default().push((graph, slot));
            self.wiring.add_edge(self.value_at[value.index()], sink, slot as u32);
            self.stale += 1;
        }
    }

    /// Gives `value` content: an initializer of `graph`, or the default of an input of it.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if a node or another initializer defines the value already.
    pub fn add_initializer(&mut self, graph: GraphId, value: ValueId, constant: Constant) -> Result<(), Broken> {
        if self.values[value.index()].constant.is_some() {
            return Err(Broken::DefinedTwice(self.value(value).name.clone()));
        }
        if self.values[value.index()].definition != Definition::Input(graph) {
            self.define(value, Definition::Initializer(graph))?;
        }
        self.values[value.index()].constant = Some(Box::new(constant));
        self.graphs[graph.index()].initializers.push(value);
        Ok(())
    }

    /// Takes an initializer (or the default of an input) away. The value itself stays, defined by nothing.
    pub fn remove_initializer(&mut self, value: ValueId) {
        let graph = match self.value(value).definition {
            Definition::Initializer(graph) => {
                self.values[value.index()].definition = Definition::Nothing;
                graph
            }
            Definition::Input(graph) => graph,
            _ => return,
        };
        self.values[value.index()].constant = None;
        self.graphs[graph.index()].initializers.retain(|&held| held != value);
    }

    /// Takes many initializers away at once, in time linear in those of their graphs.
    pub fn remove_initializers(&mut self, gone: &FxHashSet<ValueId>) {
        let mut homes = FxHashSet::default();
        #[allow(clippy::iter_over_hash_type, reason = "each value is changed for itself")]
        for &value in gone {
            if let Definition::Initializer(home) = self.value(value).definition {
                homes.insert(home);
                self.values[value.index()].definition = Definition::Nothing;
                self.values[value.index()].constant = None;
            }
        }
        #[allow(clippy::iter_over_hash_type, reason = "each graph is changed for itself")]
        for home in homes {
            let (graph, values) = (&mut self.graphs[home.index()], &self.values);
            graph.initializers.retain(|&held| !gone.contains(&held) || values[held.index()].constant.is_some());
        }
    }

    fn define(&mut self, value: ValueId, definition: Definition) -> Result<(), Broken> {
        let place = &mut self.values[value.index()];
        if place.definition != Definition::Nothing {
            return Err(Broken::DefinedTwice(place.name.clone()));
        }
        place.definition = definition;
        Ok(())
    }

    /// A new node at the end of `graph`.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if one of its outputs has a definition already.
    pub fn add_node(&mut self, graph: GraphId, node: NewNode) -> Result<NodeId, Broken> {
        let order = self.order_at_end();
        self.insert_node(graph, node, order)
    }

    pub(super) fn insert_node(&mut self, graph: GraphId, new: NewNode, order: (u32, u32)) -> Result<NodeId, Broken> {
        let id = NodeId(self.nodes.len() as u32);
        let at = self.wiring.add_node(Vertex::Node(id));
        self.node_at.push(at);
        for (slot, value) in new.outputs.iter().enumerate() {
            if let Some(value) = value {
                self.define(*value, Definition::Node(id, slot))?;
                self.wiring.add_edge(at, self.value_at[value.index()], slot as u32);
            }
        }
        for (slot, value) in new.inputs.iter().enumerate() {
            if let Some(value) = value {
                self.wiring.add_edge(self.value_at[value.index()], at, slot as u32);
            }
        }
        for held in new.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
            self.graphs[held.index()].parent = Some(id);
        }
        self.graphs[graph.index()].nodes.insert((order, id));
        self.nodes.push(Some(Node {
            name: new.name,
            domain: new.domain,
            op_type: new.op_type,
            overload: new.overload,
            attributes: new.attributes,
            extra: new.extra,
            graph,
            inputs: new.inputs,
            outputs: new.outputs,
            order,
        }));
        Ok(id)
    }

    /// Takes a node away. What it computed is then defined by nothing; what it read is untouched.
    pub fn remove_node(&mut self, node: NodeId) {
        let Some(gone) = self.nodes.get_mut(node.index()).and_then(Option::take) else { return };
        self.graphs[gone.graph.index()].nodes.remove(&(gone.order, node));
        for value in gone.outputs.iter().flatten() {
            if matches!(self.value(*value).definition, Definition::Node(by, _) if by == node) {
                self.values[value.index()].definition = Definition::Nothing;
            }
        }
        self.stale += gone.inputs.len() + gone.outputs.len();
        self.relay_when_stale();
    }

    /// Makes operand `slot` of a node another value, or none.
    pub fn set_input(&mut self, node: NodeId, slot: usize, value: Option<ValueId>) {
        let at = self.node_at[node.index()];
        let Some(place) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) else { return };
        if slot >= place.inputs.len() {
            place.inputs.resize(slot + 1, None);
        }
        if place.inputs[slot].is_some() {
            self.stale += 1;
        }
        place.inputs[slot] = value;
        if let Some(value) = value {
            self.wiring.add_edge(self.value_at[value.index()], at, slot as u32);
        }
        self.relay_when_stale();
    }

    /// Drops trailing operands that are left out, and any beyond `count`.
    pub fn truncate_inputs(&mut self, node: NodeId, count: usize) {
        if let Some(node) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) {
            node.inputs.truncate(count);
            while node.inputs.last() == Some(&None) {
                node.inputs.pop();
            }
        }
    }

    /// Leaves an optional output of a node out; the value is then defined by nothing.
    pub fn drop_output(&mut self, node: NodeId, slot: usize) {
        let Some(place) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) else { return };
        let Some(value) = place.outputs.get_mut(slot).and_then(Option::take) else { return };
        while place.outputs.last() == Some(&None) {
            place.outputs.pop();
        }
        self.values[value.index()].definition = Definition::Nothing;
        self.stale += 1;
    }

    /// Hands what `value` is computed by over to `to`: the node then computes `to` in its place.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if something defines `to` already.
    pub fn redirect_output(&mut self, value: ValueId, to: ValueId) -> Result<(), Broken> {
        let Definition::Node(node, slot) = self.value(value).definition else { return Ok(()) };
        self.define(to, Definition::Node(node, slot))?;
        self.values[value.index()].definition = Definition::Nothing;
        if let Some(place) = self.nodes[node.index()].as_mut().and_then(|node| node.outputs.get_mut(slot)) {
            *place = Some(to);
        }
        self.wiring.add_edge(self.node_at[node.index()], self.value_at[to.index()], slot as u32);
        self.stale += 1;
        Ok(())
    }

    /// Makes every operand that reads `old` read `new`. Graph outputs keep reading `old`.
    pub fn replace_uses(&mut self, old: ValueId, new: ValueId) {
        for (node, slot) in self.users(old) {
            if let Some(place) = self.nodes[node.index()].as_mut().and_then(|node| node.inputs.get_mut(slot)) {
                *place = Some(new);
                self.wiring.add_edge(self.value_at[new.index()], self.node_at[node.index()], slot as u32);
                self.stale += 1;
            }
        }
        self.relay_when_stale();
    }

    /// A new function whose body is `function.body`.
    pub fn add_function(&mut self, function: Function) -> FunctionId {
        let id = FunctionId(self.functions.len() as u32);
        self.functions_by_name.entry(function.name.clone()).or_default().push(id);
        self.functions.push(Some(function));
        id
    }

    /// A function, to change it.
    pub fn function_mut(&mut self, function: FunctionId) -> Option<&mut Function> {
        self.functions.get_mut(function.index())?.as_mut()
    }

    /// Takes a function away.
    pub fn remove_function(&mut self, function: FunctionId) {
        if let Some(place) = self.functions.get_mut(function.index()) {
            *place = None;
        }
    }

    /// Lays the wiring anew when more of it is stale than not.
    fn relay_when_stale(&mut self) {
        if self.stale < 1024 || self.stale * 2 < self.wiring.edge_count() {
            return;
        }
        self.wiring.clear_edges();
        self.stale = 0;
        for (id, node) in (0u32..).zip(&self.nodes) {
            let Some(node) = node else { continue };
            let at = self.node_at[id as usize];
            for (slot, value) in node.inputs.iter().enumerate() {
                if let Some(value) = value {
                    self.wiring.add_edge(self.value_at[value.index()], at, slot as u32);
                }
            }
            for (slot, value) in node.outputs.iter().enumerate() {
                if let Some(value) = value {
                    self.wiring.add_edge(at, self.value_at[value.index()], slot as u32);
                }
            }
        }
        for graph in &self.graphs {
            for (slot, value) in graph.outputs.iter().enumerate() {
                self.wiring.add_edge(self.value_at[value.index()], graph.sink, slot as u32);
            }
        }
    }

    /// Declares the type of a value.
    pub fn declare(&mut self, value: ValueId, ty: DeclaredType) {
        self.values[value.index()].declared = Some(ty);
    }

    /// Whether another value has or had this value's name.
    pub(super) fn name_is_shared(&self, value: ValueId) -> bool {
        self.names.get(&self.value(value).name).is_some_and(|&count| count > 1)
    }

    /// Makes an initializer of one graph one of another.
    pub(super) fn move_initializer(&mut self, value: ValueId, from: GraphId, to: GraphId) {
        self.graphs[from.index()].initializers.retain(|&held| held != value);
        self.graphs[to.index()].initializers.push(value);
        self.values[value.index()].definition = Definition::Initializer(to);
    }

    /// Makes a node of one graph one of another, at this place.
    pub(super) fn move_node(&mut self, id: NodeId, to: GraphId, order: (u32, u32)) {
        let Some(node) = self.nodes.get_mut(id.index()).and_then(Option::as_mut) else { return };
        let (from, old) = (std::mem::replace(&mut node.graph, to), std::mem::replace(&mut node.order, order));
        self.graphs[from.index()].nodes.remove(&(old, id));
        self.graphs[to.index()].nodes.insert((order, id));
    }

    /// A place behind all there are.
    pub(super) fn order_at_end(&mut self) -> (u32, u32) {
        self.next_order += 1;
        (self.next_order, 0)
    }

    pub(super) fn order_of(&self, node: NodeId) -> Option<(u32, u32)> {
        self.node(node).map(|node| node.order)
    }
}
