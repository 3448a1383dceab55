//! Records reads and changes of a model and its facts.
//!
//! A rule that was evaluated must be evaluated again when a part that it read changes. The methods that read or
//! change parts record them. Without a recording each costs one comparison.

use std::cell::{Cell, RefCell};

use super::{GraphId, NodeId, ValueId};

/// A part that can be read or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A node: its existence, operator, attributes, operands and results.
    Node(NodeId),
    /// A value: its definition, its readers, its constant.
    Value(ValueId),
    /// The fact of a value.
    Fact(ValueId),
    /// A graph: its inputs, outputs and initializers, and its set of nodes.
    Graph(GraphId),
    /// More parts than can be listed.
    Everything,
}

/// Records reads and changes.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    reads: Cell<bool>,
    /// The read parts, without duplicates: many rules read the same few parts.
    read: RefCell<Vec<Part>>,
    /// For each part, the batch in which it was last recorded. Parts beyond the end are recorded each time.
    nodes: Vec<Cell<u32>>,
    values: Vec<Cell<u32>>,
    facts: Vec<Cell<u32>>,
    graphs: Vec<Cell<u32>>,
    /// The current batch, counted from 1.
    lot: Cell<u32>,
    changes: bool,
    changed: Vec<Part>,
}

impl Watch {
    /// Starts or stops recording reads.
    pub fn note_reads(&self, notes: bool) {
        self.reads.set(notes);
    }

    /// Starts or stops recording changes; drops earlier records.
    pub fn note_changes(&mut self, notes: bool) {
        *self = Watch { changes: notes, lot: Cell::new(1), ..Watch::default() };
    }

    /// Reserves room for this many nodes, values and graphs.
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

    /// Records a part unless the current batch already contains it.
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

    /// Calls `each` with all parts read since the last call.
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

    /// Calls `each` with all parts changed since the last call.
    pub fn take_changed(&mut self, each: impl FnMut(Part)) {
        self.changed.drain(..).for_each(each);
    }
}
