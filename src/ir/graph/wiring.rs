//! Who reads what.
//!
//! The wiring is one petgraph for the whole model. Its vertices are the values, the nodes and, as sinks, the graphs'
//! output lists; an edge runs from a value to whatever reads it and from a node to what it computes. A capture is then
//! an edge like any other. Edges are never taken out one by one (unlinking from a value with very many readers would
//! make a pass quadratic): an edge counts only while the reader still names the value in that slot, and the whole wiring
//! is laid anew once most of it is stale.

use petgraph::Direction;

use super::{Model, Vertex};
use crate::ir::{GraphId, NodeId, Users, ValueId};

impl Model {
    /// The operands that read a value, in subgraphs too, as (node, slot), sorted.
    pub fn users(&self, value: ValueId) -> Users {
        let mut users: Users = self
            .readers(value)
            .filter_map(|(vertex, slot)| match vertex {
                Vertex::Node(node) => Some((node, slot)),
                _ => None,
            })
            .collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// The graphs that list the value among their outputs, as (graph, position), sorted.
    pub fn output_uses(&self, value: ValueId) -> Vec<(GraphId, usize)> {
        let mut uses: Vec<_> = self
            .readers(value)
            .filter_map(|(vertex, slot)| match vertex {
                Vertex::Outputs(graph) => Some((graph, slot)),
                _ => None,
            })
            .collect();
        uses.sort_unstable();
        uses.dedup();
        uses
    }

    /// Whether some graph lists the value among its outputs. However many readers it has, this takes no longer.
    pub fn is_output(&self, value: ValueId) -> bool {
        self.watch.read_value(value);
        self.listed.get(&value).is_some_and(|places| {
            let still =
                |&(graph, slot): &(GraphId, usize)| self.graphs[graph.index()].outputs.get(slot) == Some(&value);
            places.iter().any(|place| still(place) && self.is_live(place.0))
        })
    }

    /// Whether the value's name must survive: it is some graph's output, or something outside the wiring names it.
    pub fn is_named(&self, value: ValueId) -> bool {
        self.value(value).pinned || self.is_output(value)
    }

    /// Whether what computes the value may compute it under another name: it is a node of `graph`, and the name need not survive.
    pub fn may_rename(&self, value: ValueId, graph: GraphId) -> bool {
        let producer = self.value(value).producer().and_then(|id| self.look_at(id));
        producer.is_some_and(|node| node.graph == graph) && !self.is_named(value)
    }

    /// Whether every reader of `old` may read `new` instead without a node that gives `new` the name of `old`: the name of `old`
    /// need not survive, or what computes `new` in the same graph takes it over.
    pub fn may_replace(&self, old: ValueId, new: ValueId, graph: GraphId) -> bool {
        !self.is_named(old) || self.may_rename(new, graph)
    }

    /// Whether exactly one operand of one node reads the value, and nothing outside the wiring names it. It ends at the second one.
    pub fn is_read_once(&self, value: ValueId) -> bool {
        if self.value(value).pinned {
            return false;
        }
        let mut readers = self.readers(value);
        // The same operand may have come to read the value more than once.
        readers.next().is_some_and(|first| matches!(first.0, Vertex::Node(_)) && readers.all(|other| other == first))
    }

    /// Whether every reader of the value is one of these nodes; a graph that lists it among its outputs is none of them, nor is what
    /// names it from outside the wiring. It is asked of values with very many readers, too, so it ends at the first other one.
    pub fn is_read_only_by(&self, value: ValueId, nodes: &[NodeId]) -> bool {
        !self.value(value).pinned
            && self.readers(value).all(|(vertex, _)| matches!(vertex, Vertex::Node(node) if nodes.contains(&node)))
    }

    /// Whether more operands and outputs than this are the value. It ends at the first that is too many.
    pub fn has_more_readers(&self, value: ValueId, than: usize) -> bool {
        self.readers(value).nth(than).is_some()
    }

    /// Whether nothing reads the value and nothing outside the wiring names it.
    pub fn is_unused(&self, value: ValueId) -> bool {
        !self.value(value).pinned && self.readers(value).next().is_none()
    }

    fn readers(&self, value: ValueId) -> impl Iterator<Item = (Vertex, usize)> + '_ {
        use petgraph::visit::EdgeRef;
        self.watch.read_value(value);
        let at = self.value_at[value.index()];
        self.wiring.edges_directed(at, Direction::Outgoing).filter_map(move |edge| {
            let (vertex, slot) = (self.wiring[edge.target()], *edge.weight() as usize);
            let live = match vertex {
                // A branch that is not taken any more reads nothing.
                Vertex::Node(node) => {
                    self.look_at(node).is_some_and(|node| node.input(slot) == Some(value) && self.is_live(node.graph))
                }
                Vertex::Outputs(graph) => {
                    self.is_live(graph) && self.graphs[graph.index()].outputs.get(slot) == Some(&value)
                }
                Vertex::Value => false,
            };
            live.then_some((vertex, slot))
        })
    }

    /// Lays the wiring anew when more of it is stale than not.
    pub(super) fn relay_when_stale(&mut self) {
        if self.stale < 1024 || self.stale * 2 < self.wiring.edge_count() {
            return;
        }
        self.wiring.clear_edges();
        self.stale = 0;
        for (id, node) in (0u32..).zip(&self.nodes) {
            let Some(node) = node else { continue };
            let at = self.node_at[id as usize];
            for (slot, value) in node.inputs.iter().enumerate() {
                if let Some(value) = value {
                    self.wiring.add_edge(self.value_at[value.index()], at, slot as u32);
                }
            }
            for (slot, value) in node.outputs.iter().enumerate() {
                if let Some(value) = value {
                    self.wiring.add_edge(at, self.value_at[value.index()], slot as u32);
                }
            }
        }
        for graph in &self.graphs {
            for (slot, value) in graph.outputs.iter().enumerate() {
                self.wiring.add_edge(self.value_at[value.index()], graph.sink, slot as u32);
            }
        }
    }
}
