//! Index maps of operators that move elements.
//!
//! Each operator implements [`Traits::index_map`](super::Traits::index_map) in its family's file.

use super::NodeFacts;
use crate::dim::Dim;
use crate::index_map::{IndexMap, Undecided};
use crate::ir::{Fact, Facts, Model, NodeId};
use crate::ops::{Decline, Refusal, Site};

/// A result of a node as an index map over operands.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The operands that are the sources of the map, by source. Operands that only determine positions are excluded.
    pub slots: Vec<usize>,
    /// The map. Its constants have the bits of an element of the result's type ([`Fill`](crate::index_map::Fill)).
    pub map: IndexMap,
}

impl Moved {
    /// Creates a map over the first operand.
    pub fn of_first(map: IndexMap) -> Moved {
        Moved { slots: vec![0], map }
    }
}

/// Returns the map of one result, by its output slot.
pub type IndexMapOf = fn(&NodeFacts<'_>, usize) -> Result<Moved, Undecided>;

/// Returns the index map of a node's result over the operands that it moves. The map's result has the proved shape of
/// the value.
///
/// # Errors
/// The operator computes elements, inference rejects the node, or facts do not determine the positions.
pub fn index_map_of(model: &Model, facts: &Facts, id: NodeId, output: usize, opset: i64) -> Result<Moved, Undecided> {
    let view = NodeFacts::of(model, facts, id, opset).ok_or(Undecided::NoMovement)?;
    let hook = view.traits().index_map.ok_or(Undecided::NoMovement)?;
    // Inference returns a shape for each node that it accepts.
    let proved = view.result_dims(output)?;
    let mut moved = hook(&view, output)?;
    if proved.len() != moved.map.result().len() {
        return Err(Undecided::Rank);
    }
    moved.map = moved.map.reshaped(proved);
    Ok(moved)
}

impl<'a> NodeFacts<'a> {
    /// Returns the shape of operand `i`, required for a map.
    pub(in crate::ops) fn dims(&self, i: usize) -> Result<&'a [Dim], Undecided> {
        self.shape(i).ok_or(Undecided::Operands)
    }

    /// Returns the proved shape of a result, required for a map.
    pub(in crate::ops) fn result_dims(&self, output: usize) -> Result<&'a [Dim], Undecided> {
        let fact = match self.place {
            Some(place) => place.results.get(output),
            None => self.node.output(output).and_then(|value| self.facts.get(value)),
        };
        fact.and_then(Fact::shape).ok_or(Undecided::Operands)
    }

    /// Returns the node with its attributes, required for a map.
    pub(in crate::ops) fn known_site(&self) -> Result<Site<'a>, Undecided> {
        self.site().ok_or(Undecided::Operands)
    }
}

/// A node that inference rejects has no map.
impl From<Refusal> for Undecided {
    fn from(_: Refusal) -> Self {
        Undecided::Operands
    }
}

/// A node that evaluation declines has no map.
impl From<Decline> for Undecided {
    fn from(_: Decline) -> Self {
        Undecided::Operands
    }
}

/// An evaluation without a map is declined.
impl From<Undecided> for Decline {
    fn from(reason: Undecided) -> Self {
        Decline::unsupported(reason.to_string())
    }
}
