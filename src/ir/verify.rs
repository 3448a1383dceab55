//! The verifier: is the model what every pass may assume it to be?

use rustc_hash::FxHashMap;

use super::{Definition, GraphId, Model, ValueId};

/// What is wrong with a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Two definitions of one value.
    #[error("'{0}' is defined twice")]
    DefinedTwice(String),
    /// A value that is read and that nothing defines.
    #[error("{reader} reads '{value}', which nothing defines")]
    Undefined {
        /// Who reads it.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// A value read in a graph that does not see it.
    #[error("{reader} reads '{value}', which belongs to a graph it does not lie in")]
    OutOfScope {
        /// Who reads it.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// Nodes that wait for each other.
    #[error("the graph has a cycle through {0}")]
    Cycle(String),
    /// A value whose producer does not list it, or the like: the tables contradict each other.
    #[error("the tables disagree about '{0}'")]
    Inconsistent(String),
    /// Graphs nested too deeply, or a graph inside itself.
    #[error("graphs are nested more than {0} deep")]
    TooDeep(usize),
}

/// How deeply graphs may be nested.
const MAX_GRAPH_DEPTH: usize = 32;

impl Model {
    /// Checks every graph of the model: each value has one definition, whoever reads one lies where it is seen, nothing
    /// waits for itself, and the tables agree.
    ///
    /// # Errors
    /// The first thing found broken, in file order.
    pub fn verify(&self) -> Result<(), Broken> {
        let mut open: Vec<(GraphId, usize)> = vec![(self.main(), 0)];
        open.extend(self.functions().map(|(_, function)| (function.body, 0)));
        let mut owner: FxHashMap<GraphId, ()> = FxHashMap::default();
        while let Some((graph, depth)) = open.pop() {
            if depth > MAX_GRAPH_DEPTH || owner.insert(graph, ()).is_some() {
                return Err(Broken::TooDeep(MAX_GRAPH_DEPTH));
            }
            for id in self.graph(graph).nodes() {
                let Some(node) = self.node(id) else { return Err(Broken::Inconsistent(format!("{id:?}"))) };
                for &value in node.inputs().iter().flatten() {
                    self.verify_read(graph, value, || self.describe(id))?;
                }
                for (slot, value) in node.outputs().iter().enumerate() {
                    if let Some(value) = value
                        && self.value(*value).definition() != Definition::Node(id, slot)
                    {
                        return Err(Broken::Inconsistent(self.value(*value).name.clone()));
                    }
                }
                open.extend(node.subgraphs().map(|inner| (inner, depth + 1)));
            }
            for &value in self.graph(graph).outputs() {
                self.verify_read(graph, value, || format!("the outputs of graph '{}'", self.graph(graph).name))?;
            }
            self.topological(graph)?;
        }
        Ok(())
    }

    fn verify_read(&self, graph: GraphId, value: ValueId, reader: impl Fn() -> String) -> Result<(), Broken> {
        let name = || self.value(value).name.clone();
        match self.graph_of(value) {
            None => Err(Broken::Undefined { reader: reader(), value: name() }),
            Some(home) if !self.is_within(graph, home) => Err(Broken::OutOfScope { reader: reader(), value: name() }),
            Some(_) => Ok(()),
        }
    }
}
