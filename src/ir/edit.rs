//! Edits: what a rewrite wants done, as data. A rule looks at a place and answers with an [`Edit`]; only
//! [`Model::apply`] changes the model.
//!
//! The values that an edit makes do not exist before it is applied. Until then they are placeholders: ids that mean something
//! inside of their edit only, and that the model must not be asked about. An edit that is thrown away leaves nothing behind.

use super::{Attribute, Broken, Constant, Extra, GraphId, Model, NamedAttribute, Node, NodeId, ValueId};
use crate::tensor::Tensor;

/// Ids from here on are placeholders. No model has so many values.
const FIRST_PLACEHOLDER: u32 = 1 << 31;

impl ValueId {
    /// Whether this stands for a value that an [`Edit`] will make, and no model has yet.
    pub fn is_placeholder(self) -> bool {
        self.0 >= FIRST_PLACEHOLDER
    }
}

/// What a value to be made is named after: no two values get one name.
#[derive(Clone, Debug)]
enum Stem {
    /// This name.
    Name(String),
    /// The name of a value, `_`, and this.
    After(ValueId, &'static str),
}

/// A node to be made.
#[derive(Clone, Debug, Default)]
pub struct NewNode {
    pub name: String,
    pub domain: String,
    pub op_type: String,
    pub overload: String,
    pub attributes: Vec<NamedAttribute>,
    pub inputs: Vec<Option<ValueId>>,
    pub outputs: Vec<Option<ValueId>>,
    pub extra: Extra,
}

impl NewNode {
    /// A node of the default domain.
    pub fn new(op_type: &str, inputs: impl IntoIterator<Item = Option<ValueId>>) -> Self {
        NewNode { op_type: op_type.to_string(), inputs: inputs.into_iter().collect(), ..NewNode::default() }
    }

    /// What another node is, without results.
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

    /// With one more attribute.
    pub fn with(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        self.attributes.push(NamedAttribute::new(name, value.into()));
        self
    }

    /// With this attribute in place of one of the same name.
    pub fn set(self, name: &str, value: impl Into<Attribute>) -> Self {
        self.without(name).with(name, value)
    }

    /// Without this attribute.
    pub fn without(mut self, name: &str) -> Self {
        self.attributes.retain(|attribute| attribute.name != name);
        self
    }

    /// With this value as operand `slot`; what is missing before it is left out.
    pub fn reading(mut self, slot: usize, value: ValueId) -> Self {
        if self.inputs.len() <= slot {
            self.inputs.resize(slot.saturating_add(1), None);
        }
        if let Some(input) = self.inputs.get_mut(slot) {
            *input = Some(value);
        }
        self
    }

    /// With one more output.
    pub fn output(mut self, value: ValueId) -> Self {
        self.outputs.push(Some(value));
        self
    }

    /// With this name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// A change to the model around one place. It takes effect when it is applied, and not before.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The graph the edit happens in.
    graph: GraphId,
    /// The new nodes stand where this node stood, or at the end.
    place: Option<NodeId>,
    /// The values to make, in order.
    made: Vec<Stem>,
    /// Nodes to take away.
    pub remove: Vec<NodeId>,
    /// Initializers to add.
    pub constants: Vec<(ValueId, Tensor)>,
    /// Nodes to add, in order.
    pub insert: Vec<NewNode>,
    /// Every reader of the first value is to read the second. When the first is a graph output, its name is kept: whatever
    /// computes the second computes it under that name, or an Identity does where that cannot be.
    pub replace: Vec<(ValueId, ValueId)>,
    /// Operands to change: (node, slot, value).
    pub rewire: Vec<(NodeId, usize, Option<ValueId>)>,
}

impl Edit {
    /// An edit at `place` that does nothing yet; `None` if the node is gone.
    pub fn at(model: &Model, place: NodeId) -> Option<Self> {
        Some(Edit { place: Some(place), ..Edit::at_end(model.node(place)?.graph()) })
    }

    /// An edit at the end of a graph that does nothing yet.
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

    /// A new value named after another one, which may be one of this edit's own.
    pub fn new_value(&mut self, like: ValueId, suffix: &'static str) -> ValueId {
        self.make(Stem::After(like, suffix))
    }

    /// A new value of this name, or one like it if there is such a value already.
    pub fn value_named(&mut self, name: impl Into<String>) -> ValueId {
        self.make(Stem::Name(name.into()))
    }

    /// A new initializer named after another value.
    pub fn constant(&mut self, like: ValueId, suffix: &'static str, tensor: Tensor) -> ValueId {
        let value = self.new_value(like, suffix);
        self.constants.push((value, tensor));
        value
    }

    /// A new initializer of this name, or one like it.
    pub fn constant_named(&mut self, name: impl Into<String>, tensor: Tensor) -> ValueId {
        let value = self.value_named(name);
        self.constants.push((value, tensor));
        value
    }

    fn make(&mut self, stem: Stem) -> ValueId {
        let placeholder = ValueId(FIRST_PLACEHOLDER + self.made.len() as u32);
        self.made.push(stem);
        placeholder
    }

    /// Also makes `old`'s readers read `new`.
    pub fn replacing(mut self, old: ValueId, new: ValueId) -> Self {
        self.replace.push((old, new));
        self
    }

    /// Also takes `node` away.
    pub fn removing(mut self, node: NodeId) -> Self {
        self.remove.push(node);
        self
    }

    /// Also adds `node`.
    pub fn inserting(mut self, node: NewNode) -> Self {
        self.insert.push(node);
        self
    }
}

/// The values that an edit made, in the order of their placeholders.
pub struct Made(Vec<ValueId>);

impl Made {
    /// The value that a placeholder of the edit became; any other value is itself. `None` for a placeholder of another edit.
    pub fn value(&self, value: ValueId) -> Option<ValueId> {
        match value.0.checked_sub(FIRST_PLACEHOLDER) {
            None => Some(value),
            Some(at) => self.0.get(at as usize).copied(),
        }
    }

    fn known(&self, value: ValueId) -> Result<ValueId, Broken> {
        self.value(value).ok_or_else(|| Broken::Inconsistent(format!("{value:?}")))
    }

    fn optional(&self, value: Option<ValueId>) -> Result<Option<ValueId>, Broken> {
        value.map(|value| self.known(value)).transpose()
    }

    fn node(&self, mut node: NewNode) -> Result<NewNode, Broken> {
        for value in node.inputs.iter_mut().chain(&mut node.outputs) {
            *value = self.optional(*value)?;
        }
        Ok(node)
    }
}

impl Model {
    /// Whether nothing would read a result that an edit takes away: neither a node that stays, as with a Slice whose bound is
    /// the value it cuts, nor one the edit adds.
    #[must_use]
    pub fn leaves_no_reader_behind(&self, edit: &Edit) -> bool {
        let made = |value: ValueId| {
            let outputs = edit.insert.iter().flat_map(|node| &node.outputs);
            let remade = outputs.into_iter().any(|output| *output == Some(value));
            remade
                || edit.replace.iter().any(|&(old, _)| old == value)
                || edit.constants.iter().any(|&(own, _)| own == value)
        };
        let removed = edit.remove.iter().filter_map(|&id| self.node(id));
        let mut gone = removed.flat_map(Node::outputs).flatten().filter(|&&value| !made(value));
        gone.all(|&value| {
            let rewired = |reader: (NodeId, usize)| {
                edit.rewire.iter().any(|&(node, slot, to)| (node, slot) == reader && to != Some(value))
            };
            let readers = self.users(value);
            let mut staying =
                readers.iter().filter(|&&(node, slot)| !edit.remove.contains(&node) && !rewired((node, slot)));
            let read_anew = edit.insert.iter().any(|node| node.inputs.contains(&Some(value)));
            staying.next().is_none() && !read_anew && !self.is_output(value)
        })
    }

    /// Carries out an edit. Answers with the values that were made.
    ///
    /// # Errors
    /// [`Broken`] when the edit would define a value twice, or names a value of another edit; the model is then not to be used
    /// further.
    pub fn apply(&mut self, edit: Edit) -> Result<Made, Broken> {
        let made = self.make_values(edit.made)?;
        let (first, mut next) =
            edit.place.and_then(|place| self.order_of(place)).unwrap_or_else(|| self.order_at_end());
        for node in &edit.remove {
            self.remove_node(*node);
        }
        for (value, tensor) in edit.constants {
            self.add_initializer(edit.graph, made.known(value)?, Constant::dense(tensor))?;
        }
        for node in edit.insert {
            next = next.saturating_add(1);
            self.insert_node(edit.graph, made.node(node)?, (first, next))?;
        }
        for (node, slot, value) in edit.rewire {
            self.set_input(node, slot, made.optional(value)?);
            if value.is_none() {
                self.truncate_inputs(node, usize::MAX);
            }
        }
        // A value that two results become has the name of the first by the time of the second.
        let mut renamed: Vec<(ValueId, ValueId)> = Vec::new();
        for (old, new) in edit.replace {
            let (old, new) = (made.known(old)?, made.known(new)?);
            let new = renamed.iter().find(|(before, _)| *before == new).map_or(new, |&(_, after)| after);
            if self.replace_value(old, new, edit.graph, (first, next.saturating_add(1)))? {
                renamed.push((new, old));
            }
        }
        Ok(made)
    }

    fn make_values(&mut self, stems: Vec<Stem>) -> Result<Made, Broken> {
        let mut made = Made(Vec::with_capacity(stems.len()));
        for stem in stems {
            let stem = match stem {
                Stem::Name(name) => name,
                Stem::After(like, suffix) => format!("{}_{suffix}", self.value(made.known(like)?).name),
            };
            let name = self.unused_name(&stem);
            made.0.push(self.add_value(name));
        }
        Ok(made)
    }

    /// Returns whether what computed `new` computes `old` now.
    fn replace_value(&mut self, old: ValueId, new: ValueId, graph: GraphId, order: (u32, u32)) -> Result<bool, Broken> {
        self.replace_uses(old, new);
        if !self.is_named(old) {
            return Ok(false);
        }
        // The name must survive. The producer of `new` may take it over if `new` itself is nobody's name.
        if let Some(producer) = self.value(old).producer() {
            let Some(slot) = self.node(producer).and_then(|node| node.outputs().iter().position(|&o| o == Some(old)))
            else {
                return Ok(false);
            };
            if self.node(producer).is_some_and(|node| node.outputs().iter().flatten().count() == 1) {
                self.remove_node(producer);
            } else {
                self.drop_output(producer, slot);
            }
        }
        let takes_over = self.may_rename(new, graph);
        if takes_over {
            self.redirect_output(new, old)?;
            self.replace_uses(new, old);
        } else {
            self.insert_node(graph, NewNode::new("Identity", [Some(new)]).output(old), order)?;
        }
        Ok(takes_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `y = Relu(x)`, and `y` is the output.
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
    fn an_edit_that_is_not_applied_leaves_nothing_behind() {
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
        // Two edits made side by side each have placeholders of their own.
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
}
