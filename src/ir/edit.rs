//! Edits: what a rewrite wants done, as data. A rule looks at a place and answers with an [`Edit`]; only
//! [`Model::apply`] changes the model.

use super::{Attribute, Broken, Constant, Definition, Extra, GraphId, Model, NamedAttribute, Node, NodeId, ValueId};
use crate::tensor::Tensor;

/// An output of a node to be made.
#[derive(Clone, Debug)]
pub enum NewOutput {
    /// Left out.
    Absent,
    /// A value that exists and has no definition (or loses it in the same edit).
    Existing(ValueId),
}

impl NewOutput {
    pub(super) fn resolve(self, _model: &mut Model) -> Option<ValueId> {
        match self {
            NewOutput::Absent => None,
            NewOutput::Existing(value) => Some(value),
        }
    }
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
    pub outputs: Vec<NewOutput>,
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

    /// With one more output.
    pub fn output(mut self, value: ValueId) -> Self {
        self.outputs.push(NewOutput::Existing(value));
        self
    }

    /// With this name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// A change to the model around one place. It is built against a model, may make new values in it
/// (see [`Model::add_value`]), and takes effect when applied.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The rule, in kebab case: `slice-of-slice`.
    pub rule: &'static str,
    /// The graph the edit happens in.
    pub graph: GraphId,
    /// The new nodes stand where this node stood.
    pub place: NodeId,
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
    /// An edit at `place` that does nothing yet.
    pub fn at(model: &Model, rule: &'static str, place: NodeId) -> Option<Self> {
        let graph = model.node(place)?.graph();
        Some(Edit {
            rule,
            graph,
            place,
            remove: Vec::new(),
            constants: Vec::new(),
            insert: Vec::new(),
            replace: Vec::new(),
            rewire: Vec::new(),
        })
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

/// What an edit did, for whoever keeps facts and worklists.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The nodes that were made.
    pub inserted: Vec<NodeId>,
    /// The nodes whose operands changed.
    pub touched: Vec<NodeId>,
}

impl Model {
    /// Whether nothing would read a result that an edit takes away: neither a node that stays, as with a Slice whose bound is
    /// the value it cuts, nor one the edit adds.
    #[must_use]
    pub fn leaves_no_reader_behind(&self, edit: &Edit) -> bool {
        let made = |value: ValueId| {
            let outputs = edit.insert.iter().flat_map(|node| &node.outputs);
            let remade = outputs.into_iter().any(|output| matches!(output, NewOutput::Existing(own) if *own == value));
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

    /// Carries out an edit.
    ///
    /// # Errors
    /// [`Broken`] when the edit would define a value twice; the model is then not to be used further.
    pub fn apply(&mut self, edit: Edit) -> Result<Applied, Broken> {
        let mut applied = Applied::default();
        let (first, mut next) = self.order_of(edit.place).unwrap_or((u32::MAX, 0));
        for node in &edit.remove {
            self.remove_node(*node);
        }
        for (value, tensor) in edit.constants {
            self.add_initializer(edit.graph, value, Constant::dense(tensor))?;
        }
        for node in edit.insert {
            next = next.saturating_add(1);
            applied.inserted.push(self.insert_node(edit.graph, node, (first, next))?);
        }
        for (node, slot, value) in edit.rewire {
            self.set_input(node, slot, value);
            if value.is_none() {
                self.truncate_inputs(node, usize::MAX);
            }
            applied.touched.push(node);
        }
        // A value that two results become has the name of the first by the time of the second.
        let mut renamed: Vec<(ValueId, ValueId)> = Vec::new();
        for (old, new) in edit.replace {
            let new = renamed.iter().find(|(before, _)| *before == new).map_or(new, |&(_, after)| after);
            applied.touched.extend(self.users(old).into_iter().map(|(node, _)| node));
            if self.replace_value(old, new, edit.graph, (first, next.saturating_add(1)), &mut applied)? {
                renamed.push((new, old));
            }
        }
        Ok(applied)
    }

    /// Returns whether what computed `new` computes `old` now.
    fn replace_value(
        &mut self,
        old: ValueId,
        new: ValueId,
        graph: GraphId,
        order: (u32, u32),
        applied: &mut Applied,
    ) -> Result<bool, Broken> {
        self.replace_uses(old, new);
        if !self.is_output(old) && !self.value(old).pinned {
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
        let takes_over = matches!(self.value(new).definition(), Definition::Node(node, _)
            if self.node(node).is_some_and(|node| node.graph() == graph))
            && !self.is_output(new)
            && !self.value(new).pinned;
        if takes_over {
            self.redirect_output(new, old)?;
            self.replace_uses(new, old);
        } else {
            let node = NewNode::new("Identity", [Some(new)]).output(old);
            applied.inserted.push(self.insert_node(graph, node, order)?);
        }
        Ok(takes_over)
    }
}
