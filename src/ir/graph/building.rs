//! Builds and changes a model, one graph, node or value at a time. All methods keep the wiring consistent.

use rustc_hash::FxHashSet;

use super::order::Order;
use super::{Function, Graph, Model, Synonym, Vertex};
use crate::ir::node::{Mark, Values};
use crate::ir::sequence::Sequence;
use crate::ir::{
    Broken, Constant, CustomOperator, DeclaredType, Definition, Extra, FunctionId, GraphId, Name, NewNode, Node,
    NodeId, Part, Value, ValueId,
};

impl Model {
    /// Adds a synonym of a supported operator. Nodes keep their names.
    pub fn add_synonym(&mut self, synonym: Synonym) {
        self.synonyms.retain(|known| (&known.domain, &known.op_type) != (&synonym.domain, &synonym.op_type));
        self.synonyms.push(synonym);
    }

    /// Adds a user-defined operator.
    pub fn add_custom(&mut self, operator: CustomOperator) {
        self.custom.retain(|known| (known.domain(), known.name()) != (operator.domain(), operator.name()));
        self.custom.push(operator);
    }

    /// Reserves room for more values, nodes and operands, and for the additions of edits. Unused room takes no
    /// memory, while tables that grow are copied.
    pub fn reserve(&mut self, values: usize, nodes: usize, operands: usize) {
        let with_more = |count: usize| count.saturating_add(count / 4);
        self.values.reserve(with_more(values));
        self.value_at.reserve(with_more(values));
        self.names.reserve(values);
        self.nodes.reserve(with_more(nodes));
        self.node_at.reserve(with_more(nodes));
        self.wiring.reserve_nodes(with_more(values.saturating_add(nodes)));
        self.wiring.reserve_edges(operands);
    }

    /// Adds an empty graph; `parent` is the node whose attribute contains it.
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
            nodes: Sequence::default(),
            order: Order::default(),
            sink,
        });
        self.has_subgraphs |= parent.is_some();
        id
    }

    /// Sets the node whose attribute contains `graph`.
    pub fn set_parent(&mut self, graph: GraphId, parent: NodeId) {
        self.watch.changed(Part::Everything);
        self.has_subgraphs = true;
        self.graphs[graph.index()].parent = Some(parent);
    }

    /// Adds an undefined value with a name from a file. Two values may share a name only in graphs that do not see
    /// each other. Passes call [`Model::new_value`].
    pub fn add_value(&mut self, name: impl Into<Name>) -> ValueId {
        let id = ValueId::of(self.values.len() as u32);
        let name = name.into();
        self.give_name(&name, id);
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

    /// Records a name for a value, which may be added later.
    fn give_name(&mut self, name: &str, value: ValueId) {
        match self.other_names.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                let values = &self.values;
                self.names.insert(name, value, |value| name_in(values, value));
            }
        }
    }

    /// Returns the number of times that a name was given.
    fn times_given(&self, name: &str) -> u32 {
        let own = self.names.get(name, |value| name_in(&self.values, value)).map(|(_, count)| count);
        own.or_else(|| self.other_names.get(name).copied()).unwrap_or(0)
    }

    /// Adds an undefined value with an unused name: `stem`, `stem_1`, `stem_2`, …
    pub fn new_value(&mut self, stem: &str) -> ValueId {
        let name = self.unused_name(stem);
        self.add_value(name)
    }

    /// Gives a value an unused name: `stem`, `stem_1`, `stem_2`, …
    pub fn rename_after(&mut self, value: ValueId, stem: &str) {
        let name = self.unused_name(stem);
        self.rename(value, name);
    }

    /// Returns a name that no value has or had. All generated names of values are made here.
    fn unused_name(&self, stem: &str) -> String {
        if !stem.is_empty() && !self.has_name(stem) {
            return stem.to_string();
        }
        // Starting at the number of values avoids counting through used names.
        let mut n = if self.has_name(&format!("{stem}_8")) { self.values.len() as u64 } else { 1 };
        loop {
            let name = format!("{stem}_{n}");
            if !self.has_name(&name) {
                return name;
            }
            n += 1;
        }
    }

    /// Returns `true` if a value has or had the name, or the name is reserved.
    pub fn has_name(&self, name: &str) -> bool {
        self.times_given(name) > 0
    }

    /// Returns the first removed value accepted by `is_wanted`, among the names that [`Model::new_value`] would try.
    pub(in crate::ir) fn removed_value(&self, stem: &str, is_wanted: impl Fn(ValueId) -> bool) -> Option<ValueId> {
        let names = std::iter::once(stem.to_string()).chain((1..8).map(|number| format!("{stem}_{number}")));
        let mut values = names.filter_map(|name| Some(self.names.get(&name, |value| name_in(&self.values, value))?.0));
        values.find(|&value| self.value(value).definition == Definition::Nothing && is_wanted(value))
    }

    /// Reserves a name, so that no new value gets it.
    pub fn reserve_name(&mut self, name: &str) {
        if let Some((value, _)) = self.names.get(name, |value| name_in(&self.values, value)) {
            self.give_name(name, value);
        } else {
            *self.other_names.entry(name.to_string()).or_default() += 1;
        }
    }

    /// Renames a node.
    pub(in crate::ir) fn rename_node(&mut self, node: NodeId, name: Name) {
        self.watch.changed(Part::Node(node));
        if let Some(node) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) {
            node.name = name;
        }
    }

    /// Renames a value.
    pub fn rename(&mut self, value: ValueId, name: impl Into<Name>) {
        let name = name.into();
        self.watch.changed(Part::Value(value));
        let former = std::mem::take(&mut self.values[value.index()].name);
        if let Some(count) = self.names.remove(&former, value) {
            self.other_names.insert(former.to_string(), count);
        }
        self.give_name(&name, value);
        self.values[value.index()].name = name;
    }

    /// Appends `value` to the inputs of `graph`.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if the value already has a definition.
    pub fn add_input(&mut self, graph: GraphId, value: ValueId) -> Result<(), Broken> {
        self.define(value, Definition::Input(graph))?;
        self.watch.changed(Part::Graph(graph));
        self.graphs[graph.index()].inputs.push(value);
        Ok(())
    }

    /// Appends `value` to the outputs of `graph`.
    pub fn add_output(&mut self, graph: GraphId, value: ValueId) {
        let slot = self.graphs[graph.index()].outputs.len();
        self.note_listed(graph, value);
        self.graphs[graph.index()].outputs.push(value);
        self.listed.entry(value).or_default().push((graph, slot));
        self.wiring.add_edge(self.value_at[value.index()], self.graphs[graph.index()].sink, slot as u32);
    }

    /// Replaces output `slot` of `graph`. Callers of a root graph see the value's name, so this is for subgraphs.
    pub fn set_output(&mut self, graph: GraphId, slot: usize, value: ValueId) {
        let sink = self.graphs[graph.index()].sink;
        if let Some(place) = self.graphs[graph.index()].outputs.get_mut(slot) {
            let before = std::mem::replace(place, value);
            self.note_listed(graph, before);
            self.note_listed(graph, value);
            self.listed.entry(value).or_default().push((graph, slot));
            self.wiring.add_edge(self.value_at[value.index()], sink, slot as u32);
            self.stale += 1;
        }
    }

    /// Replaces the outputs of `graph`.
    pub fn set_outputs(&mut self, graph: GraphId, outputs: &[ValueId]) {
        let before = std::mem::take(&mut self.graphs[graph.index()].outputs);
        self.stale += before.len();
        before.into_iter().for_each(|value| self.note_listed(graph, value));
        for &value in outputs {
            self.add_output(graph, value);
        }
        self.relay_when_stale();
    }

    /// Records a change of a graph's outputs or initializers that concerns a value.
    fn note_listed(&mut self, graph: GraphId, value: ValueId) {
        self.watch.changed(Part::Graph(graph));
        self.watch.changed(Part::Value(value));
    }

    /// Replaces the inputs of `graph`. A removed input with a default becomes an initializer; any other becomes
    /// undefined.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if a new input already has another definition.
    pub fn set_inputs(&mut self, graph: GraphId, inputs: &[ValueId]) -> Result<(), Broken> {
        self.watch.changed(Part::Graph(graph));
        for value in std::mem::take(&mut self.graphs[graph.index()].inputs) {
            self.watch.changed(Part::Value(value));
            let place = &mut self.values[value.index()];
            let has_default = place.constant.is_some() && !inputs.contains(&value);
            place.definition = if has_default { Definition::Initializer(graph) } else { Definition::Nothing };
        }
        inputs.iter().try_for_each(|&value| self.add_input(graph, value))
    }

    /// Gives `value` content: as an initializer of `graph`, or as the default of an input of `graph`.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if a node or another initializer already defines the value.
    pub fn add_initializer(
        &mut self,
        graph: GraphId,
        value: ValueId,
        #[cfg_attr(not(feature = "seeded-faults"), expect(unused_mut))] mut constant: Constant,
    ) -> Result<(), Broken> {
        #[cfg(feature = "seeded-faults")]
        crate::ir::faults::in_constant(&mut constant);
        if self.values[value.index()].constant.is_some() {
            return Err(Broken::DefinedTwice(self.value(value).name.to_string()));
        }
        if self.values[value.index()].definition != Definition::Input(graph) {
            self.define(value, Definition::Initializer(graph))?;
        }
        self.note_listed(graph, value);
        self.values[value.index()].constant = Some(Box::new(constant));
        self.graphs[graph.index()].initializers.push(value);
        Ok(())
    }

    /// Removes an initializer or the default of an input. A former initializer becomes an undefined value.
    pub fn remove_initializer(&mut self, value: ValueId) {
        let graph = match self.value(value).definition {
            Definition::Initializer(graph) => {
                self.values[value.index()].definition = Definition::Nothing;
                graph
            }
            Definition::Input(graph) => graph,
            _ => return,
        };
        self.note_listed(graph, value);
        self.values[value.index()].constant = None;
        self.graphs[graph.index()].initializers.retain(|&held| held != value);
    }

    /// Removes many initializers at once, in time linear in the initializers of their graphs.
    pub fn remove_initializers(&mut self, gone: &FxHashSet<ValueId>) {
        let mut homes = FxHashSet::default();
        #[allow(clippy::iter_over_hash_type, reason = "each value is changed for itself")]
        for &value in gone {
            if let Definition::Initializer(home) = self.value(value).definition {
                homes.insert(home);
                self.note_listed(home, value);
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
        self.watch.changed(Part::Value(value));
        let place = &mut self.values[value.index()];
        if place.definition != Definition::Nothing {
            return Err(Broken::DefinedTwice(place.name.to_string()));
        }
        place.definition = definition;
        Ok(())
    }

    /// Appends a node to `graph`.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if one of its outputs already has a definition.
    pub fn add_node(&mut self, graph: GraphId, node: NewNode) -> Result<NodeId, Broken> {
        let order = self.order_at_end();
        self.insert_node(graph, node, order)
    }

    pub(in crate::ir) fn insert_node(
        &mut self,
        graph: GraphId,
        new: NewNode,
        order: (u32, u32),
    ) -> Result<NodeId, Broken> {
        let id = NodeId(self.nodes.len() as u32);
        self.watch.changed(Part::Node(id));
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
                self.watch.changed(Part::Value(*value));
                self.wiring.add_edge(self.value_at[value.index()], at, slot as u32);
            }
        }
        self.watch.changed(Part::Graph(graph));
        for held in new.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
            self.watch.changed(Part::Everything);
            self.has_subgraphs = true;
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
            inputs: Values::from_slice(&new.inputs),
            outputs: Values::from_slice(&new.outputs),
            order,
            mark: Mark::default(),
        }));
        self.doubt_order_of_new(id);
        Ok(id)
    }

    /// Removes a node. Its results become undefined; its operands are unchanged.
    pub fn remove_node(&mut self, node: NodeId) {
        let Some(gone) = self.nodes.get_mut(node.index()).and_then(Option::take) else { return };
        self.graphs[gone.graph.index()].nodes.remove(&(gone.order, node));
        self.watch.changed(Part::Node(node));
        self.watch.changed(Part::Graph(gone.graph));
        gone.inputs.iter().chain(&gone.outputs).flatten().for_each(|&value| self.watch.changed(Part::Value(value)));
        if gone.subgraphs().next().is_some() {
            self.watch.changed(Part::Everything);
        }
        for value in gone.outputs.iter().flatten() {
            if matches!(self.value(*value).definition, Definition::Node(by, _) if by == node) {
                self.values[value.index()].definition = Definition::Nothing;
            }
        }
        self.stale += gone.inputs.len() + gone.outputs.len();
        self.relay_when_stale();
    }

    /// Sets operand `slot` of a node, or omits it.
    pub fn set_input(&mut self, node: NodeId, slot: usize, value: Option<ValueId>) {
        let at = self.node_at[node.index()];
        let Some(place) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) else { return };
        if slot >= place.inputs.len() {
            place.inputs.resize(slot + 1, None);
        }
        let before = std::mem::replace(&mut place.inputs[slot], value);
        self.graphs[place.graph.index()].order.doubt(node);
        self.watch.changed(Part::Node(node));
        if let Some(before) = before {
            self.stale += 1;
            self.watch.changed(Part::Value(before));
        }
        if let Some(value) = value {
            self.watch.changed(Part::Value(value));
            self.wiring.add_edge(self.value_at[value.index()], at, slot as u32);
        }
        self.relay_when_stale();
    }

    /// Removes operands from `count` on, and trailing omitted operands.
    pub fn truncate_inputs(&mut self, node: NodeId, count: usize) {
        self.watch.changed(Part::Node(node));
        if let Some(node) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) {
            let gone = node.inputs.iter().skip(count).flatten();
            gone.for_each(|&value| self.watch.changed(Part::Value(value)));
            node.inputs.truncate(count);
            while node.inputs.last() == Some(&None) {
                node.inputs.pop();
            }
        }
    }

    /// Omits an optional output of a node; its value becomes undefined.
    pub fn drop_output(&mut self, node: NodeId, slot: usize) {
        let Some(place) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) else { return };
        let Some(value) = place.outputs.get_mut(slot).and_then(Option::take) else { return };
        while place.outputs.last() == Some(&None) {
            place.outputs.pop();
        }
        self.watch.changed(Part::Node(node));
        self.watch.changed(Part::Value(value));
        self.values[value.index()].definition = Definition::Nothing;
        self.stale += 1;
    }

    /// Replaces the results of a node by a subsequence of them. The other results become undefined.
    pub fn set_results(&mut self, node: NodeId, results: &[Option<ValueId>]) {
        let at = self.node_at[node.index()];
        let Some(place) = self.nodes.get_mut(node.index()).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut place.outputs, results.into());
        self.watch.changed(Part::Node(node));
        self.stale += before.len();
        for value in before.into_iter().flatten() {
            self.watch.changed(Part::Value(value));
            self.values[value.index()].definition = Definition::Nothing;
        }
        for (slot, value) in results.iter().enumerate() {
            let Some(value) = value else { continue };
            self.values[value.index()].definition = Definition::Node(node, slot);
            self.wiring.add_edge(at, self.value_at[value.index()], slot as u32);
        }
        self.relay_when_stale();
    }

    /// Moves the definition of `value` to `to`: the node computes `to` instead.
    ///
    /// # Errors
    /// [`Broken::DefinedTwice`] if `to` already has a definition.
    pub fn redirect_output(&mut self, value: ValueId, to: ValueId) -> Result<(), Broken> {
        let Definition::Node(node, slot) = self.value(value).definition else { return Ok(()) };
        self.define(to, Definition::Node(node, slot))?;
        self.watch.changed(Part::Node(node));
        self.watch.changed(Part::Value(value));
        self.values[value.index()].definition = Definition::Nothing;
        if let Some(place) = self.nodes[node.index()].as_mut().and_then(|node| node.outputs.get_mut(slot)) {
            *place = Some(to);
        }
        self.wiring.add_edge(self.node_at[node.index()], self.value_at[to.index()], slot as u32);
        self.stale += 1;
        self.doubt_order_of_new(node);
        Ok(())
    }

    /// Makes all operands that read `old` read `new`. Graph outputs are unchanged.
    pub fn replace_uses(&mut self, old: ValueId, new: ValueId) {
        self.watch.changed(Part::Value(old));
        self.watch.changed(Part::Value(new));
        for (node, slot) in self.users(old) {
            self.watch.changed(Part::Node(node));
            let Some(reader) = self.nodes[node.index()].as_mut() else { continue };
            self.graphs[reader.graph.index()].order.doubt(node);
            if let Some(place) = reader.inputs.get_mut(slot) {
                *place = Some(new);
                self.wiring.add_edge(self.value_at[new.index()], self.node_at[node.index()], slot as u32);
                self.stale += 1;
            }
        }
        self.relay_when_stale();
    }

    /// Adds a function whose body is `function.body`.
    pub fn add_function(&mut self, function: Function) -> FunctionId {
        self.watch.changed(Part::Everything);
        let id = FunctionId(self.functions.len() as u32);
        self.functions_by_name.entry(function.name.clone()).or_default().push(id);
        self.functions.push(Some(function));
        id
    }

    /// Returns a function to change it.
    pub fn function_mut(&mut self, function: FunctionId) -> Option<&mut Function> {
        self.watch.changed(Part::Everything);
        self.functions.get_mut(function.index())?.as_mut()
    }

    /// Removes a function.
    pub fn remove_function(&mut self, function: FunctionId) {
        self.watch.changed(Part::Everything);
        if let Some(place) = self.functions.get_mut(function.index()) {
            *place = None;
        }
    }

    /// Declares the type of a value.
    pub fn declare(&mut self, value: ValueId, ty: DeclaredType) {
        self.watch.changed(Part::Value(value));
        self.values[value.index()].declared = Some(ty);
    }

    /// Removes the declared type of a value.
    pub fn undeclare(&mut self, value: ValueId) {
        self.watch.changed(Part::Value(value));
        self.values[value.index()].declared = None;
    }

    /// Returns `true` if another value has or had this value's name.
    pub(in crate::ir) fn name_is_shared(&self, value: ValueId) -> bool {
        self.times_given(&self.value(value).name) > 1
    }

    /// Moves an initializer to another graph.
    pub(in crate::ir) fn move_initializer(&mut self, value: ValueId, from: GraphId, to: GraphId) {
        self.note_listed(from, value);
        self.note_listed(to, value);
        self.graphs[from.index()].initializers.retain(|&held| held != value);
        self.graphs[to.index()].initializers.push(value);
        self.values[value.index()].definition = Definition::Initializer(to);
    }

    /// Moves a node to another graph, at a position in the order.
    pub(in crate::ir) fn move_node(&mut self, id: NodeId, to: GraphId, order: (u32, u32)) {
        self.watch.changed(Part::Everything);
        let Some(node) = self.nodes.get_mut(id.index()).and_then(Option::as_mut) else { return };
        let (from, old) = (std::mem::replace(&mut node.graph, to), std::mem::replace(&mut node.order, order));
        self.graphs[from.index()].order = Order::default();
        self.graphs[to.index()].order = Order::default();
        self.graphs[from.index()].nodes.remove(&(old, id));
        self.graphs[to.index()].nodes.insert((order, id));
    }
}

/// Returns the name of a value; an empty name if the value does not exist yet.
fn name_in(values: &[Value], value: ValueId) -> &str {
    values.get(value.index()).map_or("", |value| value.name.as_str())
}
