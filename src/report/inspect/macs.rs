//! Sums the multiply-accumulates of the nodes.

use std::collections::BTreeMap;

use super::{Figure, Known, MacCount};
use crate::dim::Dim;
use crate::ir::{Facts, GraphId, Model, Node, NodeId};
use crate::ops::operator_of;
use crate::ops::traits::NodeFacts;

/// The largest number of terms of a sum; longer ones need the sizes of dims.
const MOST_TERMS: usize = 64;

/// The largest depth of subgraphs.
const DEEPEST: usize = 64;

/// The sums of a graph.
#[derive(Default)]
struct Sums {
    operators: BTreeMap<String, Dim>,
    uncounted: BTreeMap<String, usize>,
}

struct Counter<'f> {
    model: &'f Model,
    facts: &'f Facts,
    known: &'f Known<'f>,
}

/// Counts the multiply-accumulates of the main graph and of its subgraphs, times the number of their runs.
pub(super) fn count(model: &Model, facts: &Facts, known: &Known<'_>) -> MacCount {
    let sums = Counter { model, facts, known }.graph(model.main(), DEEPEST);
    let scope = facts.scope();
    let total = sums.operators.values().fold(Dim::constant(0), |sum, own| scope.add(&sum, own));
    let figure = |dim: &Dim| match dim.term_count() > MOST_TERMS {
        true => known.needs(dim),
        false => known.figure(dim),
    };
    MacCount {
        total: if sums.operators.is_empty() && !sums.uncounted.is_empty() { Figure::Unknown } else { figure(&total) },
        operators: sums.operators.iter().map(|(name, sum)| (name.clone(), figure(sum))).collect(),
        uncounted: sums.uncounted,
    }
}

impl Counter<'_> {
    fn graph(&self, graph: GraphId, depth: usize) -> Sums {
        let mut sums = Sums::default();
        let opset = self.model.opset(graph, "").unwrap_or(0);
        for id in self.model.graph(graph).nodes() {
            if let Some(node) = self.model.node(id) {
                self.node(&mut sums, (id, node, opset), depth);
            }
        }
        sums
    }

    fn node(&self, sums: &mut Sums, (id, node, opset): (NodeId, &Node, i64), depth: usize) {
        let miss = |sums: &mut Sums| *sums.uncounted.entry(node.operator()).or_default() += 1;
        let Some(view) = NodeFacts::of(self.model, self.facts, id, opset) else { return };
        if self.model.function_of(node).is_some() || operator_of(self.model, node).is_none() {
            return miss(sums);
        }
        let traits = view.traits();
        if let Some(macs) = traits.macs {
            match macs(&view).and_then(|macs| self.known.determined(&macs)) {
                Some(macs) => self.add(sums, node.operator(), &macs),
                None => return miss(sums),
            }
        }
        let bodies: Vec<Sums> = match depth.checked_sub(1) {
            Some(depth) => node.subgraphs().map(|body| self.graph(body, depth)).collect(),
            None => return miss(sums),
        };
        self.bodies(sums, (&view, node), bodies);
    }

    /// Adds the work of a node's subgraphs; if only one of several runs, counts the costliest.
    fn bodies(&self, sums: &mut Sums, (view, node): (&NodeFacts<'_>, &Node), bodies: Vec<Sums>) {
        let scope = self.facts.scope();
        for (name, count) in bodies.iter().flat_map(|body| &body.uncounted) {
            *sums.uncounted.entry(name.clone()).or_default() += count;
        }
        let total = |body: &Sums| body.operators.values().fold(Dim::constant(0), |sum, own| scope.add(&sum, own));
        let mut costly: Vec<(Dim, Sums)> = bodies.into_iter().map(|body| (total(&body), body)).collect();
        costly.retain(|(total, _)| !total.is_const(0));
        let costliest = costly.iter().position(|(one, _)| costly.iter().all(|(all, _)| scope.ge(one, all).is_yes()));
        if costly.is_empty() {
            return;
        }
        let runs = view.traits().iterations.and_then(|runs| self.known.determined(&runs(view)?));
        match costliest.map(|at| costly.swap_remove(at)).zip(runs) {
            Some(((_, body), runs)) => {
                body.operators.into_iter().for_each(|(name, own)| self.add(sums, name, &scope.mul(&own, &runs)));
            }
            None => *sums.uncounted.entry(node.operator()).or_default() += 1,
        }
    }

    fn add(&self, sums: &mut Sums, name: String, macs: &Dim) {
        let sum = sums.operators.entry(name).or_insert_with(|| Dim::constant(0));
        *sum = self.facts.scope().add(sum, macs);
    }
}
