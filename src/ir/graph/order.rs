//! Topological order of nodes.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::Model;
use crate::ir::{Broken, GraphId, NodeId, ValueId};

/// The known property of a graph's file order.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// `true` if all nodes except the doubtful ones follow their producers.
    is_known: Cell<bool>,
    doubtful: RefCell<Vec<NodeId>>,
}

impl Order {
    /// Records that a node may precede one of its producers.
    pub fn doubt(&self, node: NodeId) {
        if self.is_known.get() {
            self.doubtful.borrow_mut().push(node);
        }
    }
}

impl Model {
    /// Returns the nodes of `graph` in topological order; captures of subgraphs count as operands. File order breaks
    /// ties, so a sorted file keeps its order.
    ///
    /// # Errors
    /// [`Broken::Cycle`] if there is no such order.
    pub fn topological(&self, graph: GraphId) -> Result<Vec<NodeId>, Broken> {
        let nodes: Vec<NodeId> = self.graph(graph).nodes().collect();
        if self.is_in_file_order(graph) {
            return Ok(nodes);
        }
        let place: FxHashMap<NodeId, u32> = nodes.iter().copied().zip(0u32..).collect();
        // For all nodes, the indices of their producers in one list, and the begin of each node's part.
        let mut before: Vec<u32> = Vec::with_capacity(nodes.len() * 2);
        let mut begin: Vec<usize> = Vec::with_capacity(nodes.len() + 1);
        for &id in &nodes {
            begin.push(before.len());
            self.for_each_read(id, &mut |value| {
                before.extend(self.value(value).producer().and_then(|producer| place.get(&producer)));
            });
        }
        begin.push(before.len());
        let reads = |at: usize| begin.get(at..at + 2).and_then(|span| before.get(span[0]..span[1])).unwrap_or(&[]);
        // The inverse relation: the consumers of each node.
        let mut begin_after = vec![0usize; nodes.len() + 1];
        for &producer in &before {
            begin_after[producer as usize + 1] += 1;
        }
        for at in 1..begin_after.len() {
            begin_after[at] += begin_after[at - 1];
        }
        let mut after = vec![0u32; before.len()];
        let mut next = begin_after.clone();
        for at in 0..nodes.len() {
            for &producer in reads(at) {
                let slot = &mut next[producer as usize];
                after[*slot] = at as u32;
                *slot += 1;
            }
        }
        let mut waiting: Vec<usize> = (0..nodes.len()).map(|at| reads(at).len()).collect();
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..nodes.len()).filter(|&at| waiting[at] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(Reverse(at)) = ready.pop() {
            order.push(nodes[at]);
            for &follower in &after[begin_after[at]..begin_after[at + 1]] {
                let left = &mut waiting[follower as usize];
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse(follower as usize));
                }
            }
        }
        if order.len() == nodes.len() {
            return Ok(order);
        }
        let first = (0..nodes.len()).find(|&at| waiting[at] > 0);
        Err(Broken::Cycle(first.map(|at| self.describe(nodes[at])).unwrap_or_default()))
    }

    /// Returns `true` if the file order of `graph` is topological. With subgraphs, which may capture any value, it
    /// checks all nodes; otherwise only the doubtful ones.
    pub fn is_in_file_order(&self, graph: GraphId) -> bool {
        let order = &self.graphs[graph.index()].order;
        let mut doubtful = order.doubtful.borrow_mut();
        let follows = |id: NodeId| self.follows_all_it_reads(id);
        let is_in_order = match order.is_known.get() && !self.has_subgraphs {
            true => doubtful.iter().all(|&id| follows(id)),
            false => self.graphs[graph.index()].nodes().all(follows),
        };
        if !is_in_order {
            return false;
        }
        doubtful.clear();
        order.is_known.set(!self.has_subgraphs);
        true
    }

    /// Records that a node has a new result, so that its order and that of the readers is doubtful.
    pub(super) fn doubt_order_of_new(&self, id: NodeId) {
        let Some(node) = self.look_at(id) else { return };
        let order = &self.graphs[node.graph.index()].order;
        if order.is_known.get() {
            order.doubt(id);
            let readers = node.outputs.iter().flatten().flat_map(|&value| self.users(value));
            readers.for_each(|(reader, _)| order.doubt(reader));
        }
    }

    /// Returns `true` if all producers of a node in the same graph precede it in file order.
    fn follows_all_it_reads(&self, id: NodeId) -> bool {
        let Some(node) = self.node(id) else { return true };
        let mut follows = true;
        self.for_each_read(id, &mut |value| {
            let producer = self.value(value).producer().and_then(|id| Some((id, self.node(id)?)));
            if let Some((before, producer)) = producer.filter(|(_, producer)| producer.graph == node.graph) {
                follows &= (producer.order, before) < (node.order, id);
            }
        });
        follows
    }

    /// Calls `each` with all operands of a node, and with all values that its subgraphs read or list as outputs.
    fn for_each_read(&self, node: NodeId, each: &mut dyn FnMut(ValueId)) {
        let mut open: Vec<NodeId> = Vec::new();
        let mut next = Some(node);
        while let Some(id) = next {
            if let Some(node) = self.node(id) {
                node.inputs.iter().flatten().for_each(|&value| each(value));
                for graph in node.subgraphs() {
                    self.graph(graph).outputs.iter().for_each(|&value| each(value));
                    open.extend(self.graph(graph).nodes());
                }
            }
            next = open.pop();
        }
    }

    /// Returns a position after all others.
    pub(in crate::ir) fn order_at_end(&mut self) -> (u32, u32) {
        self.next_order += 1;
        (self.next_order, 0)
    }

    /// Returns the position of a node. Positions of a graph's nodes compare in file order.
    pub fn order_of(&self, node: NodeId) -> Option<(u32, u32)> {
        self.node(node).map(|node| node.order)
    }
}
