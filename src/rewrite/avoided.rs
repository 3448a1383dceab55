//! Constructs that the consumer of the result lacks, see [`Construct`].

use super::cache::Taken;
use super::introduced::steps_backwards;
use super::place::Place;
use crate::consumers::Construct;
use crate::index_map::Operators;
use crate::ir::{Facts, Model, NodeId};
use crate::ops::{Budget, Opset};

impl Place<'_> {
    /// Returns `true` if a movement node has a construct that the consumer lacks, and other nodes may compute the same without the construct. `is_low`
    /// says that the rank of the results is no obstacle.
    pub fn is_replaceable(&self, id: NodeId, is_low: bool) -> bool {
        self.avoided.iter().any(|construct| match construct {
            Construct::Operator { .. } | Construct::NegativeSteps => self.has_construct(construct, id),
            Construct::RankAbove(_) => is_low && self.has_construct(construct, id),
            _ => false,
        })
    }

    /// The most axes of a tensor that the consumer reads.
    pub fn most_rank(&self) -> Option<usize> {
        let rank = |construct: &Construct| if let Construct::RankAbove(rank) = construct { Some(*rank) } else { None };
        self.avoided.iter().filter_map(rank).min()
    }

    fn has_construct(&self, construct: &Construct, id: NodeId) -> bool {
        let steps_backward = || steps_backwards(self, id);
        self.model.node(id).is_some_and(|node| construct.is_in(self.model, self.facts, node, steps_backward))
    }

    /// Returns `true` if the consumer lacks an operator of the default domain.
    pub fn lacks(&self, operator: &str) -> bool {
        self.avoided.iter().any(|construct| construct.is_operator(operator))
    }

    /// The movement operators that the consumer lacks.
    pub fn lacked_movements(&self) -> Operators {
        if self.avoided.is_empty() { Operators::NONE } else { Operators::that(|operator| self.lacks(operator)) }
    }
}

/// Returns the constructs that the nodes of a model have, in the order of the graphs, subgraphs and functions included.
pub fn remaining<'c>(model: &Model, facts: &Facts, avoided: &'c [Construct]) -> Vec<(NodeId, &'c Construct)> {
    let (budget, taken) = (Budget::default(), Taken::default());
    let mut found = Vec::new();
    for graph in model.graphs().filter(|&graph| !avoided.is_empty() && model.is_live(graph)) {
        let opset = Opset::of(model, graph);
        for id in model.topological(graph).unwrap_or_else(|_| model.graph(graph).nodes().collect()) {
            let place = Place { model, facts, id, opset, budget: &budget, taken: &taken, avoided };
            found.extend(avoided.iter().filter(|construct| place.has_construct(construct, id)).map(|it| (id, it)));
        }
    }
    found
}
