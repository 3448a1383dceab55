//! A node during its conversion to another version of its operator, with the nodes and constants that it needs.

use crate::dim::Dim;
use crate::ir::{Attribute, Edit, Fact, Facts, FunctionId, Model, NamedAttribute, NewNode, NodeId, ValueId};
use crate::ops::Opset;
use crate::rewrite::Build;
use crate::tensor::{DType, Tensor, nearest_bf16, nearest_f16};

/// The advice if a node cannot be converted because a required shape is unknown.
pub(super) const STATE_SHAPES: &str = "state the shapes of the inputs (--overwrite-input-shape)";

/// A node under conversion.
pub(super) struct NodeDraft<'a> {
    pub model: &'a mut Model,
    /// The facts about the values of the file. New values have none.
    pub facts: &'a Facts,
    /// The function whose body the node is part of.
    pub function: Option<FunctionId>,
    /// The final operator set. New nodes are written directly in it.
    pub target: Opset,
    /// The node in the version reached so far, with its results.
    pub node: NewNode,
    /// New values and constants; [`Edit::insert`] has the nodes to insert before this one.
    pub edit: Edit,
    /// The nodes to insert after this one.
    pub after: Vec<NewNode>,
}

impl<'a> NodeDraft<'a> {
    /// Creates the draft of an unchanged node.
    pub(super) fn of(
        model: &'a mut Model,
        facts: &'a Facts,
        function: Option<FunctionId>,
        id: NodeId,
        target: Opset,
    ) -> Option<Self> {
        let old = model.node(id)?;
        let mut node = NewNode::like(old);
        node.outputs = old.outputs().to_vec();
        let edit = Edit::at(model, id)?;
        Some(NodeDraft { model, facts, function, target, node, edit, after: Vec::new() })
    }

    /// Returns the value that new ones are named after.
    fn stem(&self) -> Option<ValueId> {
        let old = |value: &&ValueId| !value.is_placeholder();
        self.node.outputs.iter().chain(&self.node.inputs).flatten().find(old).copied()
    }

    /// Creates a new value.
    pub(super) fn new_value(&mut self, suffix: &'static str) -> ValueId {
        match self.stem() {
            Some(like) => self.edit.new_value(like, suffix),
            None => self.edit.value_named(suffix),
        }
    }

    /// Creates a new constant.
    pub(super) fn constant(&mut self, suffix: &'static str, tensor: Tensor) -> ValueId {
        match self.stem() {
            Some(like) => self.edit.constant(like, suffix, tensor),
            None => self.edit.constant_named(suffix, tensor),
        }
    }

    /// Returns a builder of nodes in the target's operator set.
    pub(super) fn build(&mut self, name: &'static str) -> Build<'_> {
        match self.stem() {
            Some(like) => Build::after(&mut self.edit, self.target, like),
            None => Build::named(&mut self.edit, self.target, name),
        }
    }

    /// Inserts a node of the default domain before this one, and returns its result.
    pub(super) fn op(&mut self, op_type: &'static str, operands: &[ValueId], suffix: &'static str) -> ValueId {
        self.before(NewNode::new(op_type, operands.iter().copied().map(Some)), suffix)
    }

    /// Replaces this node by another one, with the same name and results.
    pub(super) fn replace(&mut self, node: NewNode) {
        let old = std::mem::take(&mut self.node);
        self.node = NewNode { name: old.name, outputs: old.outputs, extra: old.extra, ..node };
    }

    /// Computes result `slot` by a node before this one, and returns the value: the old one if the node has that result, otherwise a new one.
    pub(super) fn give(&mut self, slot: usize, node: NewNode, suffix: &'static str) -> ValueId {
        match self.node.outputs.get_mut(slot).and_then(Option::take) {
            Some(old) => {
                self.edit.insert.push(node.output(old));
                old
            }
            None => self.before(node, suffix),
        }
    }

    /// Inserts a node before this one, and returns its new result.
    pub(super) fn before(&mut self, node: NewNode, suffix: &'static str) -> ValueId {
        let value = self.new_value(suffix);
        self.edit.insert.push(node.output(value));
        value
    }

    /// Makes result `slot` a new value, from which `node`, inserted after this one, computes the old one.
    pub(super) fn behind(&mut self, slot: usize, suffix: &'static str, node: impl FnOnce(ValueId) -> NewNode) {
        let value = self.new_value(suffix);
        let Some(place) = self.node.outputs.get_mut(slot) else { return };
        if let Some(old) = place.replace(value) {
            self.after.push(node(value).output(old));
        }
    }

    /// Returns operand `slot`, if it exists.
    pub(super) fn input(&self, slot: usize) -> Option<ValueId> {
        self.node.inputs.get(slot).copied().flatten()
    }

    /// Replaces operand `slot`.
    pub(super) fn set_input(&mut self, slot: usize, value: ValueId) {
        self.node = std::mem::take(&mut self.node).reading(slot, value);
    }

    /// Drops absent operands at the end, and all from `count` on.
    pub(super) fn truncate(&mut self, count: usize) {
        self.node.inputs.truncate(count);
        while self.node.inputs.last() == Some(&None) {
            self.node.inputs.pop();
        }
    }

    /// Returns `true` if result `slot` has a reader.
    pub(super) fn is_read(&self, slot: usize) -> bool {
        let value = self.node.outputs.get(slot).copied().flatten();
        value.is_some_and(|value| value.is_placeholder() || !self.model.is_unused(value))
    }

    /// Returns the fact about operand `slot`.
    pub(super) fn fact(&self, slot: usize) -> Option<&'a Fact> {
        self.facts.get(self.input(slot)?)
    }

    /// Returns the element type of operand `slot`.
    pub(super) fn dtype(&self, slot: usize) -> Option<DType> {
        self.fact(slot)?.dtype()
    }

    /// Returns the dims of operand `slot`.
    pub(super) fn shape(&self, slot: usize) -> Option<&'a [Dim]> {
        self.fact(slot)?.shape()
    }

    /// Returns the rank of operand `slot`.
    ///
    /// # Errors
    /// The rank is unknown.
    pub(super) fn rank(&self, slot: usize) -> Result<usize, String> {
        let rank = self.fact(slot).and_then(Fact::rank);
        rank.ok_or_else(|| format!("the rank of operand {slot} is unknown; {STATE_SHAPES}"))
    }

    /// Returns the constant of operand `slot` that an earlier step made.
    fn own_constant(&self, slot: usize) -> Option<&Tensor> {
        let value = self.input(slot)?;
        self.edit.constants.iter().find(|(constant, _)| *constant == value).map(|(_, tensor)| tensor)
    }

    /// Returns the integers in operand `slot`.
    ///
    /// # Errors
    /// The operand is not constant.
    pub(super) fn const_ints(&self, slot: usize, what: &str) -> Result<Vec<i64>, String> {
        let own = self.own_constant(slot).and_then(Tensor::to_i64s);
        let numbers = own.or_else(|| self.fact(slot).and_then(Fact::const_ints));
        numbers.ok_or_else(|| {
            format!("operand {slot}, {what}, is computed, and the older version has an attribute; make it a constant")
        })
    }

    /// Returns the element type of operand `slot`.
    ///
    /// # Errors
    /// The type is unknown.
    pub(super) fn known_dtype(&self, slot: usize) -> Result<DType, String> {
        self.dtype(slot).ok_or_else(|| format!("the element type of operand {slot} is unknown; {STATE_SHAPES}"))
    }

    /// Returns the dims of operand `slot`.
    ///
    /// # Errors
    /// The rank is unknown.
    pub(super) fn known_shape(&self, slot: usize) -> Result<&'a [Dim], String> {
        self.rank(slot)?;
        Ok(self.shape(slot).unwrap_or_default())
    }

    /// Returns operand `slot`.
    ///
    /// # Errors
    /// The operand is absent.
    pub(super) fn operand(&self, slot: usize) -> Result<ValueId, String> {
        self.input(slot).ok_or_else(|| format!("operand {slot} is missing; correct the model"))
    }

    /// Returns the numbers in operand `slot`.
    pub(super) fn const_numbers(&self, slot: usize) -> Option<Vec<f64>> {
        let tensor = self.own_constant(slot).or_else(|| self.fact(slot)?.constant_tensor());
        tensor?.to_f64s()
    }

    /// Returns the attribute of this name.
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.node.attributes.iter().find(|held| held.name == name).map(|held| &held.value)
    }

    /// Removes the attribute of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Attribute> {
        let at = self.node.attributes.iter().position(|held| held.name == name)?;
        Some(self.node.attributes.remove(at).value)
    }

    /// Sets an attribute.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Attribute>) {
        let value = value.into();
        match self.node.attributes.iter_mut().find(|held| held.name == name) {
            Some(held) => held.value = value,
            None => self.node.attributes.push(NamedAttribute::new(name, value)),
        }
    }

    /// Returns the INT attribute of this name, or the default if it is absent.
    ///
    /// # Errors
    /// The attribute has another kind, or refers to the calling node.
    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, String> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Int(value)) => Ok(*value),
            Some(other) => Err(unreadable(name, other)),
        }
    }

    /// Returns the FLOAT attribute of this name.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub(super) fn float(&self, name: &str) -> Result<Option<f32>, String> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Float(value)) => Ok(Some(*value)),
            Some(other) => Err(unreadable(name, other)),
        }
    }

    /// Returns the INTS attribute of this name.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub(super) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, String> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(values)) => Ok(Some(values.clone())),
            Some(other) => Err(unreadable(name, other)),
        }
    }

    /// Returns the STRING attribute of this name, or the default if it is absent.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub(super) fn text(&self, name: &str, default: &str) -> Result<String, String> {
        match self.attribute(name) {
            None => Ok(default.to_string()),
            Some(Attribute::String(value)) => Ok(String::from_utf8_lossy(value).into_owned()),
            Some(other) => Err(unreadable(name, other)),
        }
    }

    /// Turns an INTS attribute into operand `slot`, a vector. Returns `true` if the attribute existed.
    ///
    /// # Errors
    /// The attribute has another kind, or refers to an attribute that the calling node may omit.
    pub(super) fn ints_to_operand(&mut self, name: &'static str, slot: usize) -> Result<bool, String> {
        let numbers = match self.take(name) {
            None => return Ok(false),
            Some(Attribute::Ints(numbers)) => numbers,
            Some(held @ Attribute::Reference { .. }) => {
                let value = self.of_the_call(name, held, "value_ints")?;
                self.set_input(slot, value);
                return Ok(true);
            }
            Some(other) => return Err(unreadable(name, &other)),
        };
        let value = self.constant(name, Tensor::vector(numbers));
        self.set_input(slot, value);
        Ok(true)
    }

    /// Returns the calling node's value for an attribute inside a function, as the result of a Constant.
    fn of_the_call(&mut self, name: &'static str, held: Attribute, spelled: &str) -> Result<ValueId, String> {
        let Attribute::Reference { name: outer, .. } = &held else { return Err(unreadable(name, &held)) };
        let function = self.function.and_then(|id| self.model.function(id));
        let is_always_there =
            function.is_some_and(|function| function.defaults.iter().any(|default| default.name == *outer));
        if !is_always_there {
            return Err(format!(
                "attribute '{name}' refers to '{outer}' of the calling node, which may omit it; give '{outer}' a default, or inline the function"
            ));
        }
        Ok(self.before(NewNode::new("Constant", []).with(spelled, held), name))
    }

    /// Creates a constant of one number in the element type of operand 0.
    ///
    /// # Errors
    /// The type is unknown, and the target has no CastLike.
    pub(super) fn number(&mut self, suffix: &'static str, number: f64) -> Result<ValueId, String> {
        match self.dtype(0) {
            Some(dtype) => self.number_of(dtype, suffix, number),
            None if self.target.has("CastLike") => {
                let (data, number) = (self.input(0), self.constant(suffix, Tensor::scalar(number as f32)));
                Ok(self.before(NewNode::new("CastLike", [Some(number), data]), suffix))
            }
            None => Err(format!("the element type of operand 0 is unknown; {STATE_SHAPES}")),
        }
    }

    /// Creates a constant of one number in a float type.
    ///
    /// # Errors
    /// The type is not a float.
    pub(super) fn number_of(&mut self, dtype: DType, suffix: &'static str, number: f64) -> Result<ValueId, String> {
        let tensor = match dtype {
            DType::Float => Tensor::scalar(number as f32),
            DType::Double => Tensor::scalar(number),
            DType::Float16 => Tensor::scalar(nearest_f16(number)),
            DType::Bfloat16 => Tensor::scalar(nearest_bf16(number)),
            other => return Err(format!("the operator does not accept elements of type {}", other.name())),
        };
        Ok(self.constant(suffix, tensor))
    }
}

/// Describes an attribute that cannot be read.
pub(super) fn unreadable(name: &str, value: &Attribute) -> String {
    match value {
        Attribute::Reference { name: outer, .. } => {
            format!("attribute '{name}' is '{outer}' of the calling node; inline the function first")
        }
        other => format!("attribute '{name}' is of kind {:?}; correct the model", other.kind()),
    }
}
