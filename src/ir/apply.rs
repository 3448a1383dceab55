//! Edits carried out.

use smallvec::SmallVec;

use super::edit::{FIRST_PLACEHOLDER, Stem};
use super::naming::Naming;
use super::{Broken, Constant, Definition, Edit, GraphId, Model, NewNode, Node, NodeId, ValueId};

/// The values that an edit made, in the order of their placeholders.
pub struct Made(Vec<ValueId>);

impl Made {
    /// The value that a placeholder of the edit became; any other value is itself. `None` for a placeholder of another edit.
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
    /// Whether nothing would read a result that an edit takes away: neither a node that stays, as with a Slice whose bound is
    /// the value it cuts, nor one the edit adds; and nothing outside the wiring names it.
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

    /// Whether each value has one definition after an edit: nodes and constants that it adds define different ones, and none that is an
    /// input or an initializer, or that a node which stays defines.
    #[must_use]
    pub fn leaves_one_definition(&self, edit: &Edit) -> bool {
        let results = edit.insert.iter().flat_map(|node| node.outputs.iter().flatten().copied());
        let mut added: SmallVec<[ValueId; 8]> = results.chain(edit.constants.iter().map(|&(value, _)| value)).collect();
        // A value that the edit makes is in the model only when it is made.
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

    /// Carries out an edit. Answers with the values that were made.
    ///
    /// # Errors
    /// [`Broken`] when the edit would define a value twice, or names a value of another edit; the model is then not to be used
    /// further.
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
        // A value that two results become has the name of the first by the time of the second.
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
