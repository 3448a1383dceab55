//! The model: arenas of graphs, nodes and values, and the wiring between them.
//!
//! `reading` looks up parts, `building` changes them, `wiring` finds readers of values, and `order` sorts nodes
//! topologically. The methods record reads and changes on request (`ir::watch`).
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

/// An entry of `opset_import`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpsetImport {
    /// The domain as written.
    pub domain: String,
    /// The version.
    pub version: i64,
    /// Unknown fields.
    pub extra: Extra,
}

/// A quantization annotation (`TensorAnnotation`): it names a value, and the values of its scale and zero point.
///
/// The exporter writes it with the graph that defines the value, and drops it if one of these values is removed or
/// renamed.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The value, and its name in the annotation.
    pub tensor: (ValueId, Name),
    /// The values of its parameters, with their names in the annotation.
    pub parameters: Vec<(ValueId, Name)>,
    /// The field of the graph as wire bytes.
    pub field: Extra,
}

impl Annotation {
    /// Returns the values that the annotation names.
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
    /// Returns the node whose attribute contains this graph; `None` for the main graph and function bodies.
    pub fn parent(&self) -> Option<NodeId> {
        self.parent
    }

    /// Returns the inputs in order.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// Returns the outputs in order. A value may occur more than once.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// Returns the initializers in order, including defaults of inputs.
    pub fn initializers(&self) -> &[ValueId] {
        &self.initializers
    }

    /// Returns the nodes in file order; see [`Model::topological`] for a topological order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.nodes.iter()
    }

    /// Returns the number of nodes, without those of subgraphs.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
}

/// A synonym of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// Its domain; `""` is the default one.
    pub domain: String,
    pub op_type: String,
    /// Domain and name of the operator that the synonym denotes.
    pub means: (String, String),
}

/// A function of the model.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub domain: String,
    pub overload: String,
    /// The body; its inputs and outputs are the function's formal parameters.
    pub body: GraphId,
    /// The names of attributes without a default.
    pub attributes: Vec<String>,
    /// The attributes with a default.
    pub defaults: Vec<NamedAttribute>,
    /// The operator sets of the body.
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
    /// The other fields of the model: producer, version, documentation, metadata, training information, device
    /// configurations and unknown fields.
    pub extra: Extra,
    /// `true` if functions are kept unchanged, even without calls: training graphs in `extra` may call them.
    pub keeps_functions: bool,
    /// The quantization annotations of all graphs.
    pub annotations: Vec<Annotation>,
    /// `true` if the opset was raised on request: idioms then become its operators, even if runtimes optimize the
    /// older form better.
    pub is_newer: bool,
    main: GraphId,
    graphs: Vec<Graph>,
    nodes: Vec<Option<Node>>,
    values: Vec<Value>,
    functions: Vec<Option<Function>>,
    functions_by_name: FxHashMap<String, Vec<FunctionId>>,
    synonyms: Vec<Synonym>,
    custom: Vec<CustomOperator>,
    /// The names of values, with the number of times that each was given.
    names: ByName,
    /// Former names of values and reserved names, with their counts.
    other_names: FxHashMap<String, u32>,
    wiring: DiGraph<Vertex, u32, u32>,
    value_at: Vec<NodeIndex>,
    node_at: Vec<NodeIndex>,
    /// The places where values were listed as graph outputs. Like an edge, a place counts only while the value is
    /// still there.
    listed: FxHashMap<ValueId, Vec<(GraphId, usize)>>,
    stale: usize,
    next_order: u32,
    watch: Watch,
    /// `true` if any node ever contained a graph.
    has_subgraphs: bool,
}

impl Default for Model {
    fn default() -> Self {
        Model::new()
    }
}

impl Model {
    /// Creates an empty model with an empty main graph.
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
