//! Edits: changes that a rewrite requests, as data. A rule examines a node and returns an [`Edit`]; only
//! [`Model::apply`] changes the model (`apply`).
//!
//! The values that an edit creates do not exist before it is applied. Until then they are placeholders: ids that are
//! valid only within their edit and must not be looked up in the model. A discarded edit has no effect.

use super::{Attribute, Extra, Fact, Facts, GraphId, Model, Name, NamedAttribute, Node, NodeId, Users, ValueId};
use crate::tensor::Tensor;

/// The first placeholder id. No model has as many values.
pub(super) const FIRST_PLACEHOLDER: u32 = 1 << 31;

impl ValueId {
    /// Returns `true` if this is the placeholder of a value that an [`Edit`] will create.
    pub fn is_placeholder(self) -> bool {
        self.number() >= FIRST_PLACEHOLDER
    }
}

/// The origin of a new value's name. Names are made unique.
#[derive(Clone, Debug)]
pub(super) enum Stem {
    /// The given name.
    Name(String),
    /// The name of a value, followed by `_` and the suffix.
    After(ValueId, &'static str),
}

/// A node to be created.
#[derive(Clone, Debug, Default)]
pub struct NewNode {
    pub name: Name,
    pub domain: Name,
    pub op_type: Name,
    pub overload: Name,
    pub attributes: Vec<NamedAttribute>,
    pub inputs: Vec<Option<ValueId>>,
    pub outputs: Vec<Option<ValueId>>,
    pub extra: Extra,
}

impl NewNode {
    /// Creates a node of the default domain.
    pub fn new(op_type: &str, inputs: impl IntoIterator<Item = Option<ValueId>>) -> Self {
        NewNode { op_type: op_type.into(), inputs: inputs.into_iter().collect(), ..NewNode::default() }
    }

    /// Copies another node without its results.
    pub fn like(node: &Node) -> Self {
        NewNode {
            name: node.name.clone(),
            domain: node.domain.clone(),
            op_type: node.op_type.clone(),
            overload: node.overload.clone(),
            attributes: node.attributes.clone(),
            inputs: node.inputs().to_vec(),
            outputs: Vec::new(),
            extra: node.extra.clone(),
        }
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        self.attributes.push(NamedAttribute::new(name, value.into()));
        self
    }

    /// Sets an attribute, replacing one of the same name.
    pub fn set(self, name: &str, value: impl Into<Attribute>) -> Self {
        self.without(name).with(name, value)
    }

    /// Removes an attribute.
    pub fn without(mut self, name: &str) -> Self {
        self.attributes.retain(|attribute| attribute.name != name);
        self
    }

    /// Sets operand `slot`; missing operands before it are omitted ones.
    pub fn reading(mut self, slot: usize, value: ValueId) -> Self {
        if self.inputs.len() <= slot {
            self.inputs.resize(slot.saturating_add(1), None);
        }
        if let Some(input) = self.inputs.get_mut(slot) {
            *input = Some(value);
        }
        self
    }

    /// Adds an output.
    pub fn output(mut self, value: ValueId) -> Self {
        self.outputs.push(Some(value));
        self
    }

    /// Sets the name.
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }
}

/// A change of the model around one node. It takes effect only when it is applied.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The graph of the new nodes and constants.
    pub(super) graph: GraphId,
    /// The node whose position the new nodes get; at the end if `None`.
    pub(super) place: Option<NodeId>,
    /// The values to create, in order.
    pub(super) made: Vec<Stem>,
    /// Nodes to remove.
    pub remove: Vec<NodeId>,
    /// Initializers to add.
    pub constants: Vec<(ValueId, Tensor)>,
    /// Nodes to add, in order.
    pub insert: Vec<NewNode>,
    /// Values to replace: readers of the first value read the second. The name of a graph output is kept: the
    /// producer of the second value computes it under that name, or an Identity does if that is not possible.
    pub replace: Vec<(ValueId, ValueId)>,
    /// Operands to change: (node, slot, value).
    pub rewire: Vec<(NodeId, usize, Option<ValueId>)>,
}

impl Edit {
    /// Creates an empty edit at `place`; `None` if the node was removed.
    pub fn at(model: &Model, place: NodeId) -> Option<Self> {
        Some(Edit { place: Some(place), ..Edit::at_end(model.node(place)?.graph()) })
    }

    /// Returns the operands of kept nodes that the edit replaces, recomputes or makes constant, with their new value.
    pub fn changed_operands<'e>(&'e self, model: &'e Model) -> impl Iterator<Item = (NodeId, usize, ValueId)> + 'e {
        let readers = |value: ValueId| if value.is_placeholder() { Users::new() } else { model.users(value) };
        let computed = self.insert.iter().flat_map(|node| &node.outputs).flatten().copied();
        let made = computed.chain(self.constants.iter().map(|&(value, _)| value));
        let replaced = made.map(|value| (value, value)).chain(self.replace.iter().copied());
        let replaced =
            replaced.flat_map(move |(old, new)| readers(old).into_iter().map(move |(id, slot)| (id, slot, new)));
        let rewired = self.rewire.iter().filter_map(|&(id, slot, new)| Some((id, slot, new?)));
        replaced.chain(rewired).filter(|(id, ..)| !self.remove.contains(id))
    }

    /// Returns the role of a node in the edit: the suffix of its first new result, or else its operator.
    pub(super) fn role(&self, node: &NewNode) -> String {
        let made = node.outputs.iter().flatten().find_map(|value| {
            let at = value.number().checked_sub(FIRST_PLACEHOLDER)?;
            match self.made.get(at as usize)? {
                Stem::After(_, suffix) => Some((*suffix).to_string()),
                Stem::Name(_) => None,
            }
        });
        made.filter(|role| !role.is_empty()).unwrap_or_else(|| node.op_type.to_lowercase())
    }

    /// Creates an empty edit at the end of a graph.
    pub fn at_end(graph: GraphId) -> Self {
        Edit {
            graph,
            place: None,
            made: Vec::new(),
            remove: Vec::new(),
            constants: Vec::new(),
            insert: Vec::new(),
            replace: Vec::new(),
            rewire: Vec::new(),
        }
    }

    /// Adds a value named after another one, which may be a placeholder of this edit.
    pub fn new_value(&mut self, like: ValueId, suffix: &'static str) -> ValueId {
        self.make(Stem::After(like, suffix))
    }

    /// Adds a value of this name, made unique if needed.
    pub fn value_named(&mut self, name: impl Into<String>) -> ValueId {
        self.make(Stem::Name(name.into()))
    }

    /// Returns a value for known integers, named after an existing value. Reuses a removed value of that name if it
    /// provably had the same integers: this keeps the author's name, and folding a result again gives the same names.
    /// Other removed values keep their names, since their facts and declared types differ.
    pub fn value_of_ints(
        &mut self,
        (model, facts): (&Model, &Facts),
        like: ValueId,
        suffix: &'static str,
        ints: &Fact,
    ) -> ValueId {
        let held = |value| facts.get(value).is_some_and(|fact| fact.has_same_ints(ints, facts.scope()));
        let former = model.removed_value(&format!("{}_{suffix}", model.value(like).name), held);
        former.unwrap_or_else(|| self.new_value(like, suffix))
    }

    /// Adds an initializer named after another value.
    pub fn constant(&mut self, like: ValueId, suffix: &'static str, tensor: Tensor) -> ValueId {
        let value = self.new_value(like, suffix);
        self.constants.push((value, tensor));
        value
    }

    /// Adds an initializer of this name, made unique if needed.
    pub fn constant_named(&mut self, name: impl Into<String>, tensor: Tensor) -> ValueId {
        let value = self.value_named(name);
        self.constants.push((value, tensor));
        value
    }

    fn make(&mut self, stem: Stem) -> ValueId {
        let placeholder = ValueId::of(FIRST_PLACEHOLDER + self.made.len() as u32);
        self.made.push(stem);
        placeholder
    }

    /// Replaces `old` by `new` in its readers.
    pub fn replacing(mut self, old: ValueId, new: ValueId) -> Self {
        self.replace.push((old, new));
        self
    }

    /// Removes `node`.
    pub fn removing(mut self, node: NodeId) -> Self {
        self.remove.push(node);
        self
    }

    /// Adds `node`.
    pub fn inserting(mut self, node: NewNode) -> Self {
        self.insert.push(node);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the model `y = Relu(x)` with output `y`.
    fn model() -> (Model, NodeId, ValueId, ValueId) {
        let mut model = Model::new();
        let main = model.main();
        let (x, y) = (model.add_value("x"), model.add_value("y"));
        model.add_input(main, x).unwrap();
        let node = model.add_node(main, NewNode::new("Relu", [Some(x)]).output(y)).unwrap();
        model.add_output(main, y);
        (model, node, x, y)
    }

    #[test]
    fn a_discarded_edit_has_no_effect() {
        let (model, node, x, y) = model();
        let values = model.value_count();
        let mut edit = Edit::at(&model, node).unwrap();
        let made = edit.new_value(x, "new");
        let constant = edit.constant(made, "one", Tensor::scalar(1i64));
        assert!(made.is_placeholder() && constant.is_placeholder() && made != constant && !y.is_placeholder());
        drop(edit);
        assert_eq!(model.value_count(), values);
        assert!(!model.has_name("x_new") && !model.has_name("x_new_one"));
    }

    #[test]
    fn placeholders_become_values_when_the_edit_is_applied() {
        let (mut model, node, x, y) = model();
        // Two edits that are built at the same time have separate placeholders.
        let mut unrelated = Edit::at(&model, node).unwrap();
        unrelated.value_named("other");
        let mut edit = Edit::at(&model, node).unwrap();
        let middle = edit.new_value(x, "new");
        let factor = edit.constant(middle, "factor", Tensor::scalar(2.0f32));
        edit.insert.push(NewNode::new("Mul", [Some(x), Some(factor)]).output(middle));
        edit.rewire.push((node, 0, Some(middle)));
        model.apply(edit).unwrap();
        model.verify().unwrap();
        let read = model.node(node).unwrap().input(0).unwrap();
        assert_eq!(model.value(read).name, "x_new");
        let product = model.value(read).producer().and_then(|id| model.node(id)).unwrap();
        let constant = product.input(1).unwrap();
        assert_eq!((product.op_type.as_str(), product.input(0)), ("Mul", Some(x)));
        assert_eq!(model.value(constant).name, "x_new_factor");
        assert!(model.value(constant).is_constant() && !model.has_name("other") && model.is_output(y));
    }

    #[test]
    fn a_placeholder_of_another_edit_is_refused() {
        let (mut model, node, x, _) = model();
        let mut other = Edit::at(&model, node).unwrap();
        let foreign = other.new_value(x, "foreign");
        let mut edit = Edit::at(&model, node).unwrap();
        edit.rewire.push((node, 0, Some(foreign)));
        assert!(model.apply(edit).is_err());
    }

    #[test]
    fn a_second_definition_is_noticed() {
        let (model, node, x, y) = model();
        let edit = |removed: bool, results: &[ValueId]| {
            let mut edit = Edit::at(&model, node).unwrap();
            edit.insert.extend(results.iter().map(|&value| NewNode::new("Neg", [Some(x)]).output(value)));
            if removed { edit.removing(node) } else { edit }
        };
        assert!(model.leaves_one_definition(&edit(true, &[y])));
        assert!(!model.leaves_one_definition(&edit(false, &[y])));
        assert!(!model.leaves_one_definition(&edit(true, &[y, y])));
    }
}
