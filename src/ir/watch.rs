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
    /// What was read, each part once: many rules look at the same few parts.
    read: RefCell<Vec<Part>>,
    /// By number, the lot of reads in which a part was noted last. What is beyond the end is noted each time.
    nodes: Vec<Cell<u32>>,
    values: Vec<Cell<u32>>,
    facts: Vec<Cell<u32>>,
    graphs: Vec<Cell<u32>>,
    /// The lot that is being noted, counted from 1.
    lot: Cell<u32>,
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
        *self = Watch { changes: notes, lot: Cell::new(1), ..Watch::default() };
    }

    /// Makes room for so many nodes, values and graphs.
    pub fn make_room(&mut self, nodes: usize, values: usize, graphs: usize) {
        let grow = |lots: &mut Vec<Cell<u32>>, count: usize| {
            if lots.len() < count {
                lots.resize(count.saturating_add(count / 4), Cell::new(0));
            }
        };
        grow(&mut self.nodes, nodes);
        grow(&mut self.values, values);
        grow(&mut self.facts, values);
        grow(&mut self.graphs, graphs);
    }

    #[inline]
    pub(super) fn read_node(&self, node: NodeId) {
        self.read(&self.nodes, node.index(), Part::Node(node));
    }

    #[inline]
    pub(super) fn read_value(&self, value: ValueId) {
        self.read(&self.values, value.index(), Part::Value(value));
    }

    #[inline]
    pub(super) fn read_fact(&self, value: ValueId) {
        self.read(&self.facts, value.index(), Part::Fact(value));
    }

    #[inline]
    pub(super) fn read_graph(&self, graph: GraphId) {
        self.read(&self.graphs, graph.index(), Part::Graph(graph));
    }

    pub(super) fn read_everything(&self) {
        if self.reads.get() {
            self.note(Part::Everything);
        }
    }

    /// Notes a part unless it has been noted in this lot.
    #[inline]
    fn read(&self, lots: &[Cell<u32>], at: usize, part: Part) {
        let lot = self.lot.get();
        if self.reads.get() && lots.get(at).is_none_or(|noted| noted.replace(lot) != lot) {
            self.note(part);
        }
    }

    #[cold]
    fn note(&self, part: Part) {
        self.read.borrow_mut().push(part);
    }

    pub(super) fn changed(&mut self, part: Part) {
        if self.changes {
            self.changed.push(part);
        }
    }

    /// Hands over what was read since this was asked last.
    pub fn take_read(&self, each: impl FnMut(Part)) {
        self.read.borrow_mut().drain(..).for_each(each);
        self.lot.set(self.lot.get().wrapping_add(1));
        if self.lot.get() == 0 {
            for noted in [&self.nodes, &self.values, &self.facts, &self.graphs].into_iter().flatten() {
                noted.set(0);
            }
            self.lot.set(1);
        }
    }

    /// Hands over what has changed since this was asked last.
    pub fn take_changed(&mut self, each: impl FnMut(Part)) {
        self.changed.drain(..).for_each(each);
    }
}
