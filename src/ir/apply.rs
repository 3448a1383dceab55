//! Applies edits to a model.

use smallvec::SmallVec;

use super::edit::{FIRST_PLACEHOLDER, Stem};
use super::naming::Naming;
use super::{Broken, Constant, Definition, Edit, GraphId, Model, NewNode, Node, NodeId, ValueId};

/// The values that an edit created, in the order of their placeholders.
pub struct Made(Vec<ValueId>);

impl Made {
    /// Returns the value of a placeholder, or any other value itself. `None` for a placeholder of another edit.
    pub fn value(&self, value: ValueId) -> Option<ValueId> {
        match value.number().checked_sub(FIRST_PLACEHOLDER) {
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
    /// Returns `true` if no node reads a result that the edit removes, and nothing outside the wiring names it.
    /// Readers are kept nodes, such as a Slice whose bound is its data, and nodes that the edit adds.
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
            staying.next().is_none() && !read_anew && !self.is_named(value)
        })
    }

    /// Returns `true` if each value has one definition after the edit. Added nodes and constants must define distinct
    /// values that no input, initializer or kept node defines.
    #[must_use]
    pub fn leaves_one_definition(&self, edit: &Edit) -> bool {
        let results = edit.insert.iter().flat_map(|node| node.outputs.iter().flatten().copied());
        let mut added: SmallVec<[ValueId; 8]> = results.chain(edit.constants.iter().map(|&(value, _)| value)).collect();
        // Placeholders have no definition in the model before the edit is applied.
        let is_defined = |&value: &ValueId| !value.is_placeholder() && self.keeps_definition(value, edit);
        let are_free = !added.iter().any(is_defined);
        added.sort_unstable();
        are_free && added.windows(2).all(|pair| matches!(pair, [a, b] if a != b))
    }

    fn keeps_definition(&self, value: ValueId, edit: &Edit) -> bool {
        match self.value(value).definition() {
            Definition::Node(producer, _) => !edit.remove.contains(&producer),
            Definition::Input(_) | Definition::Initializer(_) => true,
            Definition::Nothing => false,
        }
    }

    /// Applies an edit. Returns the created values.
    ///
    /// # Errors
    /// [`Broken`] if the edit defines a value twice or contains a value of another edit. The model is unusable then.
    pub fn apply(&mut self, mut edit: Edit) -> Result<Made, Broken> {
        #[cfg(feature = "seeded-faults")]
        super::faults::in_edit(&mut edit);
        let mut naming = Naming::of(self, &edit);
        let mut inserted = std::mem::take(&mut edit.insert);
        for node in &mut inserted {
            naming.complete(node, &edit.role(node));
        }
        let made = self.make_values(edit.made)?;
        let (first, mut next) =
            edit.place.and_then(|place| self.order_of(place)).unwrap_or_else(|| self.order_at_end());
        for node in &edit.remove {
            self.remove_node(*node);
        }
        for (value, tensor) in edit.constants {
            self.add_initializer(edit.graph, made.known(value)?, Constant::dense(tensor))?;
        }
        for node in inserted {
            next = next.saturating_add(1);
            self.insert_node(edit.graph, made.node(node)?, (first, next))?;
        }
        for (node, slot, value) in edit.rewire {
            self.set_input(node, slot, made.optional(value)?);
            if value.is_none() {
                self.truncate_inputs(node, usize::MAX);
            }
        }
        // If one value replaces two results, it has the name of the first when the second is replaced.
        let mut renamed: Vec<(ValueId, ValueId)> = Vec::new();
        for (old, new) in edit.replace {
            let (old, new) = (made.known(old)?, made.known(new)?);
            let new = renamed.iter().find(|(before, _)| *before == new).map_or(new, |&(_, after)| after);
            if self.replace_value(old, new, edit.graph, (first, next.saturating_add(1)))? {
                renamed.push((new, old));
            }
        }
        #[cfg(feature = "seeded-faults")]
        super::faults::applied();
        Ok(made)
    }

    fn make_values(&mut self, stems: Vec<Stem>) -> Result<Made, Broken> {
        let mut made = Made(Vec::with_capacity(stems.len()));
        for stem in stems {
            let stem = match stem {
                Stem::Name(name) => name,
                Stem::After(like, suffix) => format!("{}_{suffix}", self.value(made.known(like)?).name),
            };
            made.0.push(self.new_value(&stem));
        }
        Ok(made)
    }

    /// Replaces `old` by `new`. Returns `true` if the producer of `new` now computes `old`.
    fn replace_value(&mut self, old: ValueId, new: ValueId, graph: GraphId, order: (u32, u32)) -> Result<bool, Broken> {
        self.replace_uses(old, new);
        if !self.is_named(old) {
            return Ok(false);
        }
        // The name must survive. The producer of `new` takes it over if the name of `new` need not survive.
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
