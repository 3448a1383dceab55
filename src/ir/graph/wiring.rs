//! Finds the readers of values.
//!
//! The wiring is one petgraph for the whole model. Its vertices are the values, the nodes and, as sinks, the output
//! lists of graphs. An edge leads from a value to each reader, and from a node to each result, so a capture is an
//! ordinary edge. Edges are never removed one by one: removal from a value with many readers would make a pass
//! quadratic. An edge counts only while the reader has the value in that slot. The wiring is rebuilt when most of it
//! is stale.

use petgraph::Direction;

use super::{Model, Vertex};
use crate::ir::{GraphId, NodeId, Users, ValueId};

impl Model {
    /// Returns the operands that read a value, including those in subgraphs, as sorted (node, slot) pairs.
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

    /// Returns the graphs that list the value as an output, as sorted (graph, position) pairs.
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

    /// Returns `true` if a graph lists the value as an output. The time does not depend on the number of readers.
    pub fn is_output(&self, value: ValueId) -> bool {
        self.watch.read_value(value);
        self.listed.get(&value).is_some_and(|places| {
            let still =
                |&(graph, slot): &(GraphId, usize)| self.graphs[graph.index()].outputs.get(slot) == Some(&value);
            places.iter().any(|place| still(place) && self.is_live(place.0))
        })
    }

    /// Returns `true` if the value's name must survive: it is a graph's output, or something outside the wiring names
    /// it.
    pub fn is_named(&self, value: ValueId) -> bool {
        self.value(value).pinned || self.is_output(value)
    }

    /// Returns `true` if the value's name can change: a node of `graph` computes the value, and the name need not
    /// survive.
    pub fn may_rename(&self, value: ValueId, graph: GraphId) -> bool {
        let producer = self.value(value).producer().and_then(|id| self.look_at(id));
        producer.is_some_and(|node| node.graph == graph) && !self.is_named(value)
    }

    /// Returns `true` if readers of `old` can read `new` without an Identity. Either the name of `old` need not
    /// survive, or a producer of `new` in the same graph takes it over.
    pub fn may_replace(&self, old: ValueId, new: ValueId, graph: GraphId) -> bool {
        !self.is_named(old) || self.may_rename(new, graph)
    }

    /// Returns `true` if exactly one operand reads the value, and nothing outside the wiring names it. Stops at the
    /// second reader.
    pub fn is_read_once(&self, value: ValueId) -> bool {
        if self.value(value).pinned {
            return false;
        }
        let mut readers = self.readers(value);
        // The same operand may have several edges to the value.
        readers.next().is_some_and(|first| matches!(first.0, Vertex::Node(_)) && readers.all(|other| other == first))
    }

    /// Returns `true` if only these nodes read the value. Graph outputs and names outside the wiring count as other
    /// readers. Stops at the first other reader, since values may have many readers.
    pub fn is_read_only_by(&self, value: ValueId, nodes: &[NodeId]) -> bool {
        !self.value(value).pinned
            && self.readers(value).all(|(vertex, _)| matches!(vertex, Vertex::Node(node) if nodes.contains(&node)))
    }

    /// Returns `true` if the value has more than `than` readers, graph outputs included. Stops at the first excess
    /// reader.
    pub fn has_more_readers(&self, value: ValueId, than: usize) -> bool {
        self.readers(value).nth(than).is_some()
    }

    /// Returns `true` if nothing reads the value and nothing outside the wiring names it.
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
                // A removed branch reads nothing.
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

    /// Rebuilds the wiring if most of it is stale.
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
