//! What a name stands for in a file: the innermost definition around the reader.
//!
//! In the representation a reader holds the value itself, so a graph inside may come to read an outer value whose name stands for
//! another one there. In a file that would be another model. Names inside bodies are nobody else's business, so they give way.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Broken, Definition, GraphId, Model, ValueId};

/// An outer value that is read where its name stands for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hidden {
    captured: ValueId,
    /// Defined in a graph inside the captured value's, the reader's or one around that.
    by: ValueId,
}

/// A step of the walk through nested graphs.
enum Step {
    Enter(GraphId),
    Leave(GraphId),
}

impl Model {
    /// Gives values inside bodies new names where their names hide outer values that are read there. The names of everything else
    /// stay. Takes time linear in the model.
    pub fn separate_names(&mut self) {
        let hidden = self.hidden();
        let roots: FxHashSet<GraphId> = self.roots().collect();
        let mut renamed = FxHashSet::default();
        for Hidden { captured, by } in hidden {
            // What is named from outside the wiring keeps its name if the other one is free to change it.
            let (place, home) = (self.value(captured), self.graph_of(captured));
            let is_public = home.is_none_or(|home| {
                let graph = self.graph(home);
                roots.contains(&home) && (graph.inputs().contains(&captured) || graph.outputs().contains(&captured))
            });
            let gone = if !self.value(by).pinned {
                by
            } else if !place.pinned && !is_public {
                captured
            } else {
                continue;
            };
            if renamed.insert(gone) {
                let name = self.unused_name(&self.value(gone).name);
                self.rename(gone, name);
            }
        }
    }

    /// Checks that every name that is read stands for the value that is meant.
    ///
    /// # Errors
    /// [`Broken::Hidden`] for the first one that does not.
    pub fn verify_names(&self) -> Result<(), Broken> {
        match self.hidden().first() {
            Some(hidden) => Err(Broken::Hidden(self.value(hidden.captured).name.clone())),
            None => Ok(()),
        }
    }

    /// The graphs that lie in no other.
    fn roots(&self) -> impl Iterator<Item = GraphId> + '_ {
        std::iter::once(self.main()).chain(self.functions().map(|(_, function)| function.body))
    }

    fn hidden(&self) -> Vec<Hidden> {
        let mut found = Vec::new();
        self.roots().for_each(|root| self.hidden_below(root, &mut found));
        found
    }

    fn hidden_below(&self, root: GraphId, found: &mut Vec<Hidden>) {
        let captured = self.captured_names(root);
        if captured.is_empty() {
            return;
        }
        // What each of these names stands for, innermost last.
        let mut scopes: FxHashMap<&str, Vec<ValueId>> = FxHashMap::default();
        let mut steps = vec![Step::Enter(root)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(graph) => {
                    for value in self.defined_in(graph) {
                        let name = self.value(value).name.as_str();
                        if captured.contains(name) {
                            scopes.entry(name).or_default().push(value);
                        }
                    }
                    for value in self.read_in(graph) {
                        let Some(scope) = scopes.get_mut(self.value(value).name.as_str()) else { continue };
                        if !scope.contains(&value) {
                            continue;
                        }
                        // What hides one value gets another name, so from here on it hides none.
                        while let Some(by) = scope.pop_if(|&mut innermost| innermost != value) {
                            found.push(Hidden { captured: value, by });
                        }
                    }
                    steps.push(Step::Leave(graph));
                    let nodes = self.graph(graph).nodes().rev().filter_map(|id| self.node(id));
                    steps.extend(nodes.flat_map(|node| node.subgraphs()).map(Step::Enter));
                }
                Step::Leave(graph) => {
                    for value in self.defined_in(graph) {
                        if let Some(scope) = scopes.get_mut(self.value(value).name.as_str()) {
                            scope.pop_if(|&mut innermost| innermost == value);
                        }
                    }
                }
            }
        }
    }

    /// The names of the values that graphs inside `root` read from graphs around them.
    fn captured_names(&self, root: GraphId) -> FxHashSet<&str> {
        let mut names = FxHashSet::default();
        let mut open: Vec<GraphId> = vec![root];
        while let Some(graph) = open.pop() {
            let foreign = |&value: &ValueId| self.graph_of(value) != Some(graph);
            names.extend(self.read_in(graph).filter(foreign).map(|value| self.value(value).name.as_str()));
            open.extend(self.graph(graph).nodes().filter_map(|id| self.node(id)).flat_map(|node| node.subgraphs()));
        }
        names
    }

    /// The values a graph defines. The default of an input is the input.
    fn defined_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let held = self.graph(graph);
        let initializers = held
            .initializers()
            .iter()
            .filter(move |&&value| matches!(self.value(value).definition(), Definition::Initializer(_)));
        let results = held.nodes().filter_map(|id| self.node(id)).flat_map(|node| node.outputs().iter().flatten());
        held.inputs().iter().chain(initializers).chain(results).copied()
    }

    /// The values that a graph's nodes and its list of outputs read.
    fn read_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let held = self.graph(graph);
        let operands = held.nodes().filter_map(|id| self.node(id)).flat_map(|node| node.inputs().iter().flatten());
        operands.chain(held.outputs()).copied()
    }
}
