//! What is read of a model and of the facts beside it, and what changes in them.
//!
//! Whoever decides something by looking at them can so be told when to look again: what was read while it decided is noted by the
//! methods it reads with, and what changes by those that change it. Neither costs more than a comparison while nobody asks for it.

use std::cell::{Cell, RefCell};

use super::{GraphId, NodeId, ValueId};

/// A part of what can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A node: that it is there, its operator, attributes, operands and results.
    Node(NodeId),
    /// A value: what defines it, what reads it, its constant.
    Value(ValueId),
    /// What is proved of a value.
    Fact(ValueId),
    /// A graph: its inputs, outputs and initializers, and which nodes it has.
    Graph(GraphId),
    /// More than is worth telling apart.
    Everything,
}

/// Notes what is read and what changes.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    reads: Cell<bool>,
    read: RefCell<Vec<Part>>,
    changes: bool,
    changed: Vec<Part>,
}

impl Watch {
    /// From now on what is read is noted, or it is not.
    pub fn note_reads(&self, notes: bool) {
        self.reads.set(notes);
    }

    /// From now on what changes is noted, or it is not; what was noted before is dropped.
    pub fn note_changes(&mut self, notes: bool) {
        self.changes = notes;
        self.changed = Vec::new();
        self.read = RefCell::default();
    }

    pub(super) fn read(&self, part: Part) {
        if self.reads.get() {
            self.read.borrow_mut().push(part);
        }
    }

    pub(super) fn changed(&mut self, part: Part) {
        if self.changes {
            self.changed.push(part);
        }
    }

    /// Hands over what was read since this was asked last.
    pub fn take_read(&self, each: impl FnMut(Part)) {
        self.read.borrow_mut().drain(..).for_each(each);
    }

    /// Hands over what has changed since this was asked last.
    pub fn take_changed(&mut self, each: impl FnMut(Part)) {
        self.changed.drain(..).for_each(each);
    }
}
