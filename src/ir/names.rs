//! Resolves names as a file does: a name denotes the innermost definition around the reader.
//!
//! In the representation a reader refers to the value itself. Therefore a subgraph may read an outer value whose name
//! denotes another value there. In a file that would be a different model. Names in subgraphs are private, so they
//! are changed.
//!
//! They are also changed where they hide nothing: runtimes reject a subgraph's name if an earlier value of an
//! enclosing graph has it. Folded values come before all nodes, and removed nodes change a runtime's order.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Broken, Definition, GraphId, Model, ValueId};

/// An outer value that is read where its name denotes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hidden {
    captured: ValueId,
    /// The hiding value, defined in a graph between that of the captured value and the reader's.
    by: ValueId,
}

/// A step of the walk through nested graphs.
enum Visit {
    Enter(GraphId),
    Leave(GraphId),
}

impl Model {
    /// Renames values in subgraphs if outer values have the same name. All other names are kept. Takes time linear in
    /// the model.
    pub fn separate_names(&mut self) {
        let hidden = self.hidden();
        let roots: FxHashSet<GraphId> = self.roots().collect();
        let mut renamed = FxHashSet::default();
        for Hidden { captured, by } in hidden {
            // A pinned value keeps its name if the other value can be renamed.
            let (place, home) = (self.value(captured), self.graph_of(captured));
            let is_public = home.is_none_or(|home| {
                let graph = self.graph(home);
                roots.contains(&home) && (graph.inputs().contains(&captured) || graph.outputs().contains(&captured))
            });
            let gives_way = self.value(by).pinned && !place.pinned && !is_public;
            let gone = if gives_way { captured } else { by };
            if renamed.insert(gone) {
                self.rename_after(gone, &self.value(gone).name.clone());
            }
        }
        for value in self.repeated() {
            self.rename_after(value, &self.value(value).name.clone());
        }
    }

    /// Returns the values of subgraphs that share their name with an outer value. Results of the nodes around the
    /// subgraph do not count: they come after it in any order. Pinned values are not returned.
    fn repeated(&self) -> Vec<ValueId> {
        let mut found = Vec::new();
        for root in self.roots() {
            let names = self.names_inside(root, |graph| self.defined_in(graph));
            self.in_scopes(root, &names, &mut |graph, scopes| {
                for value in self.defined_in(graph) {
                    let scope = scopes.get(self.value(value).name.as_str()).map(Vec::as_slice);
                    if let Some([outer @ .., innermost]) = scope
                        && *innermost == value
                        && !self.value(value).pinned
                        && outer.iter().any(|&outer| !self.is_given_around(graph, outer))
                    {
                        found.push(value);
                    }
                }
            });
        }
        found
    }

    /// Returns `true` if a value is a result of a node around this subgraph.
    fn is_given_around(&self, body: GraphId, value: ValueId) -> bool {
        let producer = self.value(value).producer();
        let mut owner = self.graph(body).parent();
        while let Some(id) = owner {
            if producer == Some(id) {
                return true;
            }
            owner = self.node(id).and_then(|node| self.graph(node.graph()).parent());
        }
        false
    }

    /// Checks that every name that is read denotes the intended value.
    ///
    /// # Errors
    /// [`Broken::Hidden`] for the first hidden value.
    pub fn verify_names(&self) -> Result<(), Broken> {
        match self.hidden().first() {
            Some(hidden) => Err(Broken::Hidden(self.value(hidden.captured).name.to_string())),
            None => Ok(()),
        }
    }

    /// Returns the graphs that are not nested: the main graph and function bodies.
    fn roots(&self) -> impl Iterator<Item = GraphId> + '_ {
        std::iter::once(self.main()).chain(self.functions().map(|(_, function)| function.body))
    }

    fn hidden(&self) -> Vec<Hidden> {
        let mut found = Vec::new();
        self.roots().for_each(|root| self.hidden_below(root, &mut found));
        found
    }

    fn hidden_below(&self, root: GraphId, found: &mut Vec<Hidden>) {
        self.in_scopes(root, &self.captured_names(root), &mut |graph, scopes| {
            for value in self.read_in(graph) {
                let Some(scope) = scopes.get_mut(self.value(value).name.as_str()) else { continue };
                if !scope.contains(&value) {
                    continue;
                }
                // The hiding value will be renamed, so it hides no further value.
                while let Some(by) = scope.pop_if(|&mut innermost| innermost != value) {
                    found.push(Hidden { captured: value, by });
                }
            }
        });
    }

    /// Pins initializers of subgraphs that share their name with an outer value, and pins these outer values.
    /// Runtimes disagree which one is read, despite the standard. So neither is a constant, and both keep their
    /// names.
    pub fn pin_shadowing(&mut self) {
        let mut found: Vec<ValueId> = Vec::new();
        for root in self.roots() {
            let names = self.names_inside(root, |graph| self.initialized_in(graph));
            self.in_scopes(root, &names, &mut |graph, scopes| {
                for value in self.initialized_in(graph) {
                    if let Some([.., outer, inner]) = scopes.get(self.value(value).name.as_str()).map(Vec::as_slice)
                        && *inner == value
                    {
                        found.extend([*inner, *outer]);
                    }
                }
            });
        }
        for value in found {
            self.value_mut(value).pinned = true;
        }
    }

    /// Visits a graph and its nested graphs, outer ones first, with the definitions of these names in scope,
    /// innermost last.
    fn in_scopes<'m>(
        &'m self,
        root: GraphId,
        names: &FxHashSet<&'m str>,
        enter: &mut dyn FnMut(GraphId, &mut FxHashMap<&'m str, Vec<ValueId>>),
    ) {
        if names.is_empty() {
            return;
        }
        let mut scopes: FxHashMap<&str, Vec<ValueId>> = FxHashMap::default();
        let mut steps = vec![Visit::Enter(root)];
        while let Some(step) = steps.pop() {
            match step {
                Visit::Enter(graph) => {
                    for value in self.defined_in(graph) {
                        let name = self.value(value).name.as_str();
                        if names.contains(name) {
                            scopes.entry(name).or_default().push(value);
                        }
                    }
                    enter(graph, &mut scopes);
                    steps.push(Visit::Leave(graph));
                    steps.extend(self.inside(graph).map(Visit::Enter));
                }
                Visit::Leave(graph) => {
                    for value in self.defined_in(graph) {
                        if let Some(scope) = scopes.get_mut(self.value(value).name.as_str()) {
                            scope.pop_if(|&mut innermost| innermost == value);
                        }
                    }
                }
            }
        }
    }

    /// Returns the names of outer values that nested graphs of `root` read.
    fn captured_names(&self, root: GraphId) -> FxHashSet<&str> {
        let mut names = FxHashSet::default();
        let mut open: Vec<GraphId> = vec![root];
        while let Some(graph) = open.pop() {
            let foreign = |&value: &ValueId| self.graph_of(value) != Some(graph);
            names.extend(self.read_in(graph).filter(foreign).map(|value| self.value(value).name.as_str()));
            open.extend(self.inside(graph));
        }
        names
    }

    /// Returns the names of selected values of all graphs nested in a root graph.
    fn names_inside<V: Iterator<Item = ValueId>>(&self, root: GraphId, of: impl Fn(GraphId) -> V) -> FxHashSet<&str> {
        let mut names = FxHashSet::default();
        let mut open: Vec<GraphId> = self.inside(root).collect();
        while let Some(graph) = open.pop() {
            names.extend(of(graph).map(|value| self.value(value).name.as_str()));
            open.extend(self.inside(graph));
        }
        names
    }

    /// Returns the graphs directly nested in a graph, the last first.
    fn inside(&self, graph: GraphId) -> impl Iterator<Item = GraphId> + '_ {
        self.graph(graph).nodes().rev().filter_map(|id| self.node(id)).flat_map(|node| node.subgraphs())
    }

    /// Returns the initializers of a graph that are not defaults of inputs.
    fn initialized_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let is_own = |&value: &ValueId| matches!(self.value(value).definition(), Definition::Initializer(_));
        self.graph(graph).initializers().iter().copied().filter(is_own)
    }

    /// Returns the values that a graph defines.
    fn defined_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let held = self.graph(graph);
        let results = held.nodes().filter_map(|id| self.node(id)).flat_map(|node| node.outputs().iter().flatten());
        held.inputs().iter().chain(results).copied().chain(self.initialized_in(graph))
    }

    /// Returns the values that a graph's nodes and output list read.
    fn read_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let held = self.graph(graph);
        let operands = held.nodes().filter_map(|id| self.node(id)).flat_map(|node| node.inputs().iter().flatten());
        operands.chain(held.outputs()).copied()
    }
}
