//! The model: arenas of graphs, nodes and values, and the wiring between them.
//!
//! `reading` answers what there is, `building` changes it, `wiring` tells who reads what, and `order` gives an order to compute in. What the
//! methods of the first and the third read is noted where somebody asks for that, and so is what the second changes (`ir::watch`).
#![allow(clippy::indexing_slicing, reason = "ids are given out by the model, whose arenas never shrink")]

mod building;
mod order;
mod reading;
mod wiring;

use order::Order;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

use super::by_name::ByName;
use super::sequence::Sequence;
use super::{CustomOperator, Extra, FunctionId, GraphId, Name, NamedAttribute, Node, NodeId, Value, ValueId, Watch};

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

/// A quantization annotation (`TensorAnnotation`): it names a value, and others that hold its scale and zero point.
///
/// The exporter writes it with the graph that defines the value, and drops it if one of these values is gone or renamed.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The value, and the name that the annotation has for it.
    pub tensor: (ValueId, Name),
    /// The same of the values that hold its parameters.
    pub parameters: Vec<(ValueId, Name)>,
    /// The field of the graph as wire bytes.
    pub field: Extra,
}

impl Annotation {
    /// The values that it names.
    pub fn values(&self) -> impl Iterator<Item = &(ValueId, Name)> {
        std::iter::once(&self.tensor).chain(&self.parameters)
    }
}

/// A graph. Its nodes are reached through [`Model`].
#[derive(Clone, Debug)]
pub struct Graph {
    /// The graph's name.
    pub name: String,
    /// Documentation, metadata and unknown fields.
    pub extra: Extra,
    parent: Option<NodeId>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    initializers: Vec<ValueId>,
    nodes: Sequence,
    order: Order,
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
        self.nodes.iter()
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
    /// The quantization annotations of all graphs.
    pub annotations: Vec<Annotation>,
    /// Whether the operator set was made newer on request: then idioms become its operators, also where runtimes know the older spelling better.
    pub is_newer: bool,
    main: GraphId,
    graphs: Vec<Graph>,
    nodes: Vec<Option<Node>>,
    values: Vec<Value>,
    functions: Vec<Option<Function>>,
    functions_by_name: FxHashMap<String, Vec<FunctionId>>,
    synonyms: Vec<Synonym>,
    custom: Vec<CustomOperator>,
    /// How often each name was given that a value has.
    names: ByName,
    /// The same of names that values had before, and of those that none may have.
    other_names: FxHashMap<String, u32>,
    wiring: DiGraph<Vertex, u32, u32>,
    value_at: Vec<NodeIndex>,
    node_at: Vec<NodeIndex>,
    /// Where each value was listed as a graph's output. Like an edge, a place counts only while the value still stands there.
    listed: FxHashMap<ValueId, Vec<(GraphId, usize)>>,
    stale: usize,
    next_order: u32,
    watch: Watch,
    /// Whether any graph was ever held by a node.
    has_subgraphs: bool,
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
            annotations: Vec::new(),
            is_newer: false,
            main: GraphId(0),
            graphs: Vec::new(),
            nodes: Vec::new(),
            values: Vec::new(),
            functions: Vec::new(),
            functions_by_name: FxHashMap::default(),
            synonyms: Vec::new(),
            custom: Vec::new(),
            names: ByName::default(),
            other_names: FxHashMap::default(),
            wiring: DiGraph::default(),
            value_at: Vec::new(),
            node_at: Vec::new(),
            listed: FxHashMap::default(),
            stale: 0,
            next_order: 0,
            watch: Watch::default(),
            has_subgraphs: false,
        };
        model.main = model.add_graph("", None);
        model
    }
}
