//! The peak memory of the activations, by their live ranges in an execution order.
//!
//! An activation is live from the node that computes it to its last consumer. Graph inputs are always live, because the caller
//! holds them; graph outputs are live once computed. While a node runs, its operands and results are live, plus the peak of its
//! costliest subgraph. A view of an operand (Reshape, Squeeze, Identity) takes no memory and keeps the operand live. Constants
//! are weights.

use rustc_hash::FxHashMap;

use super::{Figure, Known, PeakMemory};
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, traits_of};

/// The largest depth of subgraphs.
const DEEPEST: usize = 64;

/// The largest number of candidate peaks.
const MOST_PEAKS: usize = 12;

/// The largest number of comparisons with a proof.
const MOST_PROOFS: usize = 10_000;

/// The largest number of terms of a compared sum.
const MOST_TERMS: usize = 32;

/// Finds the peak of the main graph.
pub(super) fn peak(model: &Model, facts: &Facts, known: &Known<'_>) -> PeakMemory {
    let mut finder = Finder { model, facts, known, unsized_values: 0, proofs: MOST_PROOFS };
    let found = finder.graph(model.main(), DEEPEST);
    let scope = facts.scope();
    let bytes = match found.peaks.as_slice() {
        _ if found.overflows => Figure::Unknown,
        _ if found.is_undecided => known.needs(&found.all),
        // No sizes are known, or only data-dependent ones.
        [(only, _)] if only.is_const(0) && finder.unsized_values > 0 => Figure::Unknown,
        [] => Figure::Number(0),
        [(only, _)] => known.figure(only),
        several => {
            let first = Dim::constant(0);
            match known.figure(&several.iter().fold(first, |most, (one, _)| scope.max(&most, one))) {
                Figure::Unknown => known.needs(&found.all),
                figure => figure,
            }
        }
    };
    let node = match found.peaks.as_slice() {
        [(_, Some(node))] if !found.is_undecided => Some(model.describe(*node)),
        _ => None,
    };
    PeakMemory { bytes, node, unsized_values: finder.unsized_values }
}

/// The peaks of a graph.
struct Peaks {
    /// Sums, one of which is the largest, each with the node that runs at that time.
    peaks: Vec<(Dim, Option<NodeId>)>,
    /// `true` if there are too many to compare.
    is_undecided: bool,
    /// `true` if a sum exceeds 63 bits.
    overflows: bool,
    /// An expression with the symbols of all activations.
    all: Dim,
}

struct Finder<'f> {
    model: &'f Model,
    facts: &'f Facts,
    known: &'f Known<'f>,
    unsized_values: usize,
    proofs: usize,
}

/// The activations of a graph and their last consumers.
#[derive(Default)]
struct Lives {
    /// The value whose memory a view shares.
    sources: FxHashMap<ValueId, ValueId>,
    /// The position of the last consumer.
    last: FxHashMap<ValueId, usize>,
}

impl Lives {
    fn source(&self, value: ValueId) -> ValueId {
        self.sources.get(&value).copied().unwrap_or(value)
    }

    fn read(&mut self, value: ValueId, place: usize) {
        let last = self.last.entry(self.source(value)).or_default();
        *last = place.max(*last);
    }
}

impl Finder<'_> {
    fn scope(&self) -> &Scope {
        self.facts.scope()
    }

    fn graph(&mut self, graph: GraphId, depth: usize) -> Peaks {
        let (model, held) = (self.model, self.model.graph(graph));
        let mut found = Peaks { peaks: Vec::new(), is_undecided: false, overflows: false, all: Dim::constant(0) };
        let (Ok(order), Some(depth)) = (model.topological(graph), depth.checked_sub(1)) else {
            found.is_undecided = true;
            return found;
        };
        let nodes: Vec<(NodeId, &Node)> = order.iter().filter_map(|&id| Some((id, model.node(id)?))).collect();
        let lives = self.lives(graph, &nodes);
        let mut live = Dim::constant(0);
        for &input in held.inputs() {
            live = self.grown(&live, input, &mut found);
        }
        self.note(&mut found, live.clone(), None);
        let mut dying: FxHashMap<usize, Vec<ValueId>> = FxHashMap::default();
        for (place, &(id, node)) in nodes.iter().enumerate() {
            for &result in node.outputs().iter().flatten().filter(|&&result| lives.source(result) == result) {
                live = self.grown(&live, result, &mut found);
                dying.entry(lives.last.get(&result).copied().unwrap_or(place).max(place)).or_default().push(result);
            }
            let mut inside: Vec<Peaks> = node.subgraphs().map(|body| self.graph(body, depth)).collect();
            found.is_undecided |= inside.iter().any(|body| body.is_undecided);
            for body in &mut inside {
                found.overflows |= body.overflows;
                found.all = self.scope().add(&found.all, &body.all);
                for (peak, _) in body.peaks.drain(..) {
                    self.note(&mut found, self.scope().add(&live, &peak), Some(id));
                }
            }
            self.note(&mut found, live.clone(), Some(id));
            for value in dying.remove(&place).into_iter().flatten() {
                if let Some(bytes) = self.bytes(value) {
                    live = self.scope().sub(&live, &bytes);
                }
            }
        }
        found
    }

    fn lives(&self, graph: GraphId, nodes: &[(NodeId, &Node)]) -> Lives {
        let (model, mut lives) = (self.model, Lives::default());
        for (place, (_, node)) in nodes.iter().enumerate() {
            let moves = traits_of(model, node).moves;
            if let (Some(Movement::Through | Movement::Layout), Some(from), Some(to)) =
                (moves, node.input(0), node.output(0))
            {
                let source = lives.source(from);
                lives.sources.insert(to, source);
            }
            for &operand in node.inputs().iter().flatten() {
                lives.read(operand, place);
            }
            for captured in node.subgraphs().flat_map(|body| model.captures(body)) {
                lives.read(captured, place);
            }
        }
        for &output in model.graph(graph).outputs() {
            lives.read(output, usize::MAX);
        }
        lives
    }

    /// Adds an activation that becomes live.
    fn grown(&mut self, live: &Dim, value: ValueId, found: &mut Peaks) -> Dim {
        match self.bytes(value) {
            Some(bytes) => {
                if bytes.as_const().is_none() && !found.all.symbols().is_superset(&bytes.symbols()) {
                    found.all = self.scope().add(&found.all, &bytes);
                }
                self.scope().add(live, &bytes)
            }
            None => {
                self.unsized_values = self.unsized_values.saturating_add(1);
                live.clone()
            }
        }
    }

    /// Returns the bytes of a value: 0 for constants, `None` if the sizes of the inputs do not determine them.
    fn bytes(&self, value: ValueId) -> Option<Dim> {
        let fact = self.facts.get(value);
        if self.model.value(value).constant.is_some() || fact.is_some_and(|fact| fact.data().is_some()) {
            return Some(Dim::constant(0));
        }
        let (fact, scope) = (fact?, self.scope());
        let bits = i64::try_from(fact.dtype()?.bits()?).ok()?;
        let elements = scope.product(fact.shape()?);
        let bytes = match bits.checked_rem(8)? {
            0 => scope.mul(&elements, &Dim::constant(bits.checked_div(8)?)),
            _ => scope.ceil_div(&scope.mul(&elements, &Dim::constant(bits)), &Dim::constant(8)),
        };
        self.known.determined(&bytes)
    }

    /// Records a sum that may be the largest.
    fn note(&mut self, found: &mut Peaks, sum: Dim, node: Option<NodeId>) {
        if found.is_undecided {
            return;
        }
        if !self.known.determines(&sum) {
            found.overflows = true;
            return;
        }
        if found.peaks.iter().any(|(peak, _)| self.is_at_least(peak, &sum)) {
            return;
        }
        let mut kept = std::mem::take(&mut found.peaks);
        kept.retain(|(peak, _)| !self.is_at_least(&sum, peak));
        kept.push((sum, node));
        found.is_undecided |= kept.len() > MOST_PEAKS || self.proofs == 0;
        found.peaks = kept;
    }

    fn is_at_least(&mut self, large: &Dim, small: &Dim) -> bool {
        if let (Some(large), Some(small)) = (large.as_const(), small.as_const()) {
            return large >= small;
        }
        if large == small {
            return true;
        }
        if self.proofs == 0 || large.term_count().max(small.term_count()) > MOST_TERMS {
            self.proofs = 0;
            return false;
        }
        self.proofs -= 1;
        self.scope().ge(large, small).is_yes()
    }
}
