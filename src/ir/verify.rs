//! Verifies the invariants of a model that all passes assume.

use rustc_hash::FxHashMap;

use super::{Attribute, Definition, FunctionId, GraphId, Model, Node, NodeId, ValueId};

/// A violated invariant of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A value has two definitions.
    #[error("'{0}' is defined twice")]
    DefinedTwice(String),
    /// A value that is read has no definition.
    #[error("{reader} reads '{value}', which has no definition")]
    Undefined {
        /// The reader.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// A value is read in a graph that does not see it.
    #[error("{reader} reads '{value}', which is not visible in its graph")]
    OutOfScope {
        /// The reader.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// A value is read where its name denotes another one.
    #[error("'{0}' is read where another value has this name")]
    Hidden(String),
    /// Nodes depend on each other.
    #[error("the graph has a cycle through {0}")]
    Cycle(String),
    /// The tables contradict each other, for example if a value's producer does not list it.
    #[error("the tables of the graph are inconsistent about '{0}'")]
    Inconsistent(String),
    /// Graphs are nested too deeply, or a graph contains itself.
    #[error("graphs are nested more than {0} deep")]
    TooDeep(usize),
    /// A node lacks the subgraph of its operator.
    #[error("{node} has no graph in attribute '{attribute}'")]
    NoBody {
        /// The node.
        node: String,
        /// The attribute of the subgraph.
        attribute: &'static str,
    },
    /// A Constant has no value or more than one.
    #[error("{node} has {count} values instead of one")]
    Values {
        /// The node.
        node: String,
        /// The number of values.
        count: usize,
    },
    /// A function calls itself, directly or through others.
    #[error("function '{0}' calls itself")]
    Recursive(String),
}

/// The attributes that give a Constant its value; exactly one is present.
const VALUES: [&str; 8] = [
    "value",
    "sparse_value",
    "value_float",
    "value_floats",
    "value_int",
    "value_ints",
    "value_string",
    "value_strings",
];

/// Returns the required subgraphs of an operator of the default domain.
fn bodies(op_type: &str) -> &'static [&'static str] {
    match op_type {
        "If" => &["then_branch", "else_branch"],
        "Loop" | "Scan" | "SequenceMap" => &["body"],
        _ => &[],
    }
}

/// The largest nesting depth of graphs.
const MAX_GRAPH_DEPTH: usize = 32;

impl Model {
    /// Checks all graphs of the model. Each value has one definition and is visible to its readers; there are no
    /// cycles; the tables agree; required attributes are present. No function calls itself (section "Functions" of
    /// the standard's IR document).
    ///
    /// # Errors
    /// The first violation in file order.
    pub fn verify(&self) -> Result<(), Broken> {
        let mut open: Vec<(GraphId, usize)> = vec![(self.main(), 0)];
        // A function's body is the main graph while the body is folded.
        let bodies = self.functions().map(|(_, function)| function.body).filter(|&body| body != self.main());
        open.extend(bodies.map(|body| (body, 0)));
        let mut owner: FxHashMap<GraphId, ()> = FxHashMap::default();
        while let Some((graph, depth)) = open.pop() {
            if depth > MAX_GRAPH_DEPTH || owner.insert(graph, ()).is_some() {
                return Err(Broken::TooDeep(MAX_GRAPH_DEPTH));
            }
            for id in self.graph(graph).nodes() {
                let Some(node) = self.node(id) else { return Err(Broken::Inconsistent(format!("{id:?}"))) };
                self.verify_attributes(id, node)?;
                for &value in node.inputs().iter().flatten() {
                    self.verify_read(graph, value, || self.describe(id))?;
                }
                for (slot, value) in node.outputs().iter().enumerate() {
                    if let Some(value) = value
                        && self.value(*value).definition() != Definition::Node(id, slot)
                    {
                        return Err(Broken::Inconsistent(self.value(*value).name.to_string()));
                    }
                }
                open.extend(node.subgraphs().map(|inner| (inner, depth + 1)));
            }
            for &value in self.graph(graph).outputs() {
                self.verify_read(graph, value, || format!("the outputs of graph '{}'", self.graph(graph).name))?;
            }
            if !self.is_in_file_order(graph) {
                self.topological(graph)?;
            }
        }
        self.verify_calls()
    }

    /// Checks that a node of the default domain has its subgraphs, and a Constant its value. In a function the call
    /// may give them.
    fn verify_attributes(&self, id: NodeId, node: &Node) -> Result<(), Broken> {
        if !node.canonical_domain().is_empty() || self.function_of(node).is_some() {
            return Ok(());
        }
        for &attribute in bodies(&node.op_type) {
            if !matches!(node.attribute(attribute), Some(Attribute::Graph(_) | Attribute::Reference { .. })) {
                return Err(Broken::NoBody { node: self.describe(id), attribute });
            }
        }
        if node.op_type == "Constant" {
            let count = VALUES.iter().filter(|name| node.attribute(name).is_some()).count();
            if count != 1 {
                return Err(Broken::Values { node: self.describe(id), count });
            }
        }
        Ok(())
    }

    /// Checks that the functions can be ordered so that each calls only earlier ones.
    fn verify_calls(&self) -> Result<(), Broken> {
        let mut all: Vec<(FunctionId, Vec<FunctionId>)> = Vec::new();
        for (id, function) in self.functions() {
            let (mut calls, mut open) = (Vec::new(), vec![function.body]);
            while let Some(graph) = open.pop() {
                for node in self.graph(graph).nodes().filter_map(|id| self.node(id)) {
                    calls.extend(self.function_of(node).map(|(callee, _)| callee));
                    open.extend(node.subgraphs());
                }
            }
            calls.sort_unstable();
            calls.dedup();
            all.push((id, calls));
        }
        let mut callers: FxHashMap<FunctionId, Vec<FunctionId>> = FxHashMap::default();
        let mut left: FxHashMap<FunctionId, usize> = FxHashMap::default();
        for (id, calls) in &all {
            left.insert(*id, calls.len());
            for &callee in calls {
                callers.entry(callee).or_default().push(*id);
            }
        }
        let mut ready: Vec<FunctionId> = all.iter().filter(|(_, calls)| calls.is_empty()).map(|(id, _)| *id).collect();
        while let Some(callee) = ready.pop() {
            for caller in callers.get(&callee).into_iter().flatten() {
                let Some(count) = left.get_mut(caller) else { continue };
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(*caller);
                }
            }
        }
        match self.functions().find(|(id, _)| left.get(id).is_some_and(|&count| count > 0)) {
            Some((_, function)) => Err(Broken::Recursive(function.name.clone())),
            None => Ok(()),
        }
    }

    fn verify_read(&self, graph: GraphId, value: ValueId, reader: impl Fn() -> String) -> Result<(), Broken> {
        let name = || self.value(value).name.to_string();
        match self.graph_of(value) {
            None => Err(Broken::Undefined { reader: reader(), value: name() }),
            Some(home) if !self.is_within(graph, home) => Err(Broken::OutOfScope { reader: reader(), value: name() }),
            Some(_) => Ok(()),
        }
    }
}
