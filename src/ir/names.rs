//! What a name stands for in a file: the innermost definition around the reader.
//!
//! In the representation a reader holds the value itself, so a graph inside may come to read an outer value whose name stands for
//! another one there. In a file that would be another model. Names inside bodies are nobody else's business, so they give way.
//!
//! So they do where nothing is hidden, for runtimes want names to be free in all graphs around a body as far as these are computed before it:
//! what is folded is computed before everything, and nodes that go change the order in which a runtime comes to the others.

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
enum Visit {
    Enter(GraphId),
    Leave(GraphId),
}

impl Model {
    /// Gives values inside bodies new names where outer values have their names. The names of everything else stay. Takes time linear
    /// in the model.
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

    /// The values inside bodies whose names values around them have as well, but for results of the nodes that have the bodies: these come
    /// behind them in any order. What is pinned keeps its name.
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

    /// Whether a value is a result of a node that has this body, or one around it.
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

    /// Checks that every name that is read stands for the value that is meant.
    ///
    /// # Errors
    /// [`Broken::Hidden`] for the first one that does not.
    pub fn verify_names(&self) -> Result<(), Broken> {
        match self.hidden().first() {
            Some(hidden) => Err(Broken::Hidden(self.value(hidden.captured).name.to_string())),
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
        self.in_scopes(root, &self.captured_names(root), &mut |graph, scopes| {
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
        });
    }

    /// Pins initializers of bodies that have the name of a value around the body, and these values: some runtimes take the one, some
    /// the other, whatever the standard says. So neither is a constant, and both keep their names.
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

    /// Goes through a graph and those inside it, outer ones first, with what each of these names stands for, innermost last.
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

    /// The names of the values that graphs inside `root` read from graphs around them.
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

    /// The names of some values of each graph inside a root graph.
    fn names_inside<V: Iterator<Item = ValueId>>(&self, root: GraphId, of: impl Fn(GraphId) -> V) -> FxHashSet<&str> {
        let mut names = FxHashSet::default();
        let mut open: Vec<GraphId> = self.inside(root).collect();
        while let Some(graph) = open.pop() {
            names.extend(of(graph).map(|value| self.value(value).name.as_str()));
            open.extend(self.inside(graph));
        }
        names
    }

    /// The graphs directly inside one, the last first.
    fn inside(&self, graph: GraphId) -> impl Iterator<Item = GraphId> + '_ {
        self.graph(graph).nodes().rev().filter_map(|id| self.node(id)).flat_map(|node| node.subgraphs())
    }

    /// The initializers of a graph that are no defaults of inputs.
    fn initialized_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let is_own = |&value: &ValueId| matches!(self.value(value).definition(), Definition::Initializer(_));
        self.graph(graph).initializers().iter().copied().filter(is_own)
    }

    /// The values a graph defines.
    fn defined_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let held = self.graph(graph);
        let results = held.nodes().filter_map(|id| self.node(id)).flat_map(|node| node.outputs().iter().flatten());
        held.inputs().iter().chain(results).copied().chain(self.initialized_in(graph))
    }

    /// The values that a graph's nodes and its list of outputs read.
    fn read_in(&self, graph: GraphId) -> impl Iterator<Item = ValueId> + '_ {
        let held = self.graph(graph);
        let operands = held.nodes().filter_map(|id| self.node(id)).flat_map(|node| node.inputs().iter().flatten());
        operands.chain(held.outputs()).copied()
    }
}
