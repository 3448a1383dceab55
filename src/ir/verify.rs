//! The verifier: is the model what every pass may assume it to be?

use rustc_hash::FxHashMap;

use super::{Attribute, Definition, FunctionId, GraphId, Model, Node, NodeId, ValueId};

/// What is wrong with a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Two definitions of one value.
    #[error("'{0}' is defined twice")]
    DefinedTwice(String),
    /// A value that is read and that nothing defines.
    #[error("{reader} reads '{value}', which has no definition")]
    Undefined {
        /// Who reads it.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// A value read in a graph that does not see it.
    #[error("{reader} reads '{value}', which is not visible in its graph")]
    OutOfScope {
        /// Who reads it.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// A value read where its name stands for another one.
    #[error("'{0}' is read where another value has this name")]
    Hidden(String),
    /// Nodes that wait for each other.
    #[error("the graph has a cycle through {0}")]
    Cycle(String),
    /// A value whose producer does not list it, or the like: the tables contradict each other.
    #[error("the tables of the graph are inconsistent about '{0}'")]
    Inconsistent(String),
    /// Graphs nested too deeply, or a graph inside itself.
    #[error("graphs are nested more than {0} deep")]
    TooDeep(usize),
    /// A node without the body that its operator is about.
    #[error("{node} has no graph in attribute '{attribute}'")]
    NoBody {
        /// The node.
        node: String,
        /// The attribute that holds the body.
        attribute: &'static str,
    },
    /// A Constant without a value, or with more than one.
    #[error("{node} has {count} values instead of one")]
    Values {
        /// The node.
        node: String,
        /// How many values it has.
        count: usize,
    },
    /// A function that calls itself, directly or through others.
    #[error("function '{0}' calls itself")]
    Recursive(String),
}

/// The attributes that give a Constant its value; it has exactly one of them.
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

/// The graphs that operators of the default domain cannot be without.
fn bodies(op_type: &str) -> &'static [&'static str] {
    match op_type {
        "If" => &["then_branch", "else_branch"],
        "Loop" | "Scan" | "SequenceMap" => &["body"],
        _ => &[],
    }
}

/// How deeply graphs may be nested.
const MAX_GRAPH_DEPTH: usize = 32;

impl Model {
    /// Checks every graph of the model: each value has one definition, whoever reads one lies where it is seen, nothing
    /// waits for itself, the tables agree, and what a node is about is there. No function calls itself (section "Functions" of the
    /// standard's IR document).
    ///
    /// # Errors
    /// The first thing found broken, in file order.
    pub fn verify(&self) -> Result<(), Broken> {
        let mut open: Vec<(GraphId, usize)> = vec![(self.main(), 0)];
        // A function's body is the main graph while it is folded.
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

    /// A node of the default domain has its bodies, and a Constant its value. In a function either may come from the call.
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

    /// Functions can be put in an order in which each calls earlier ones only.
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
