//! Requirements on sizes that hold in every successful run.
//!
//! Some operators refuse some sizes for any data. A model with such a node on its main path fails for these sizes, so a run with a result
//! satisfies the opposite. A node on which no output depends implies nothing, because not every runtime computes it. Only refusals that the
//! standard defines and the runtimes implement are used. Each operator declares its own in the trait
//! [`needs`](super::traits::Traits::needs):
//!
//! * a Reshape cannot infer −1, constant or computed, if its other sizes multiply to 0;
//! * a Gather with a constant index needs that many entries, and one with counted positions needs as many as its last position: a mask is
//!   at least as long as the part that is looked up;
//! * a Resize requires positive scales, and `0 / 0` is not positive: for a scale that divides a multiple of a size by the size, the size is
//!   not 0;
//! * a convolution requires spatial axes that its kernel fits into, with the padding;
//! * no integer is divided by 0;
//! * of two broadcast dims one is 1, or both are equal. So next to a constant dim of 2 or more no dim is 0 or larger, and next to
//!   `min(d, 64)` no `d` is larger than 64 (`laws/bounds.py`). The same holds for the sizes of an Expand;
//! * a Squeeze removes axes of dim 1 only;
//! * a MatMul requires equal summed dims: an attention mask broadcasts to the scores;
//! * no tensor has a negative dim: a convolution whose kernel does not fit has no result.
//!
//! Relations between products of sizes are used by trials only, because the prover is slow with them:
//!
//! * a view and its operand have equal element counts: `x[seq, batch, 12]` to `[seq, 6, 2]` needs `seq·batch = seq` ([`equal_sizes`]);
//! * operands of a Concat that are not empty have equal dims except along its axis: `x[::2]` next to `x[1::2]` needs an even dim
//!   ([`equal_sizes`]);
//! * two dims that are broadcast are equal, or one of them is 1 ([`broadcast_choices`]).

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Walk;
use super::traits::{Counting, Movement, NodeFacts};
use crate::dim::{Dim, Operation, Scope, Symbol};
use crate::ir::{Fact, Facts, Model, NodeId};

/// The most recorded expressions about one size. Later proofs about the size visit each of them, so without the limit a model of N nodes
/// that each need another bound of one sum takes N² visits.
const MOST_RELATIONS: usize = 32;

/// The number of expressions about each size.
#[derive(Default)]
struct Relations(FxHashMap<Symbol, usize>);

impl Relations {
    /// Counts an expression. Returns `false` if one of its sizes has too many.
    fn take(&mut self, dim: &Dim) -> bool {
        let symbols = dim.symbols();
        let has_room = symbols.iter().all(|symbol| self.0.get(symbol).is_none_or(|&count| count < MOST_RELATIONS));
        if has_room {
            symbols.into_iter().for_each(|symbol| *self.0.entry(symbol).or_default() += 1);
        }
        has_room
    }
}

/// The most operands of a node that are compared in pairs.
const MOST_OPERANDS: usize = 8;

impl Walk {
    /// Tightens the bounds of symbols by the requirements of these nodes of the main graph, which every run computes. Returns `true` if
    /// there are new facts. Earlier results remain correct, but may have a shorter form now.
    pub fn learn(&mut self, model: &Model, computed: &[NodeId]) -> bool {
        let mut learned = false;
        let mut relations = Relations::default();
        let opset = model.opset(model.main(), "").unwrap_or(0);
        let mut known: FxHashSet<Symbol> = FxHashSet::default();
        for (id, node) in computed.iter().filter_map(|&id| Some((id, model.node(id)?))) {
            let Some(view) = NodeFacts::of(model, &self.facts, id, opset) else { continue };
            let traits = view.traits();
            if let Some(needs) = traits.needs {
                let positions = |value| Counting::of(model, &self.facts, opset, value);
                for (dim, least) in needs(&NodeFacts { positions: &positions, ..view }) {
                    learned |= at_least(&self.scope, &dim, least, &mut relations);
                }
            }
            if let Some((a, b)) = traits.needs_equal.and_then(|equal| equal(&view)) {
                learned |= self.scope.assume_met(&a, &b) | self.scope.assume_met(&b, &a);
            }
            if traits.is_broadcasting(opset) || traits.broadcast_with.is_some() {
                for (dim, least, most) in broadcast_limits(&view) {
                    learned |= at_least(&self.scope, &dim, least, &mut relations)
                        | at_most(&self.scope, &dim, most, &mut relations);
                }
            }
            let results = node.outputs().iter().flatten().filter_map(|&value| self.facts.get(value)?.shape());
            for symbol in results.clone().flatten().filter_map(Dim::as_symbol) {
                // A symbol that is a size is one permanently.
                if known.insert(symbol) && !self.scope.is_of_sizes(&Dim::symbol(symbol)) {
                    self.scope.set_size(symbol);
                    learned = true;
                }
            }
            for dim in results.flatten().filter(|dim| dim.as_const().is_none() && dim.as_symbol().is_none()) {
                if !self.scope.ge(dim, &Dim::constant(0)).is_yes() && relations.take(dim) {
                    learned = true;
                    self.scope.assume_le(&Dim::constant(0), dim);
                }
            }
        }
        learned
    }
}

/// Returns the limits of broadcast dims, as `(dim, least, most)`. Next to a constant `k ≥ 2` or to `min(d, k)`, a dim `d` is at most `k`.
/// Next to the constant `k`, it is also not 0.
fn broadcast_limits(view: &NodeFacts<'_>) -> Vec<(Dim, i64, i64)> {
    let mut limits = Vec::new();
    for (dim, other) in broadcast_pairs(view) {
        match other.as_const() {
            Some(fixed) if fixed >= 2 => limits.push((dim, 1, fixed)),
            Some(_) => {}
            None => limits.extend(cut_at(view.scope(), &other, &dim).map(|most| (dim.clone(), 0, most))),
        }
    }
    limits
}

/// Returns each non-constant dim of a node's operands, with each dim that it is broadcast with.
fn broadcast_pairs(view: &NodeFacts<'_>) -> Vec<(Dim, Dim)> {
    let sizes = view.traits().broadcast_with.map(|slot| view.fact(slot).and_then(Fact::ints).unwrap_or_default());
    let shapes: SmallVec<[&[Dim]; 3]> = match &sizes {
        Some(sizes) => view.shape(0).into_iter().chain([sizes.as_slice()]).collect(),
        None => (0..view.node.inputs().len()).filter_map(|slot| view.shape(slot)).collect(),
    };
    let mut pairs = Vec::new();
    if shapes.len() > MOST_OPERANDS {
        return pairs;
    }
    for (i, shape) in shapes.iter().enumerate() {
        for (from_end, dim) in shape.iter().rev().enumerate().filter(|(_, dim)| dim.as_const().is_none()) {
            let others = shapes.iter().enumerate().filter(|&(other, _)| other != i);
            let others = others.filter_map(|(_, shape)| shape.iter().rev().nth(from_end));
            pairs.extend(others.map(|other| (dim.clone(), other.clone())));
        }
    }
    pairs
}

/// Returns expressions that are 0 in every run that gives a result and in which no operand of a Concat is empty: differences between sizes
/// that a node requires to be equal.
pub fn equal_sizes(model: &Model, facts: &Facts, computed: &[NodeId]) -> Vec<Dim> {
    const LARGEST: usize = 64;
    let scope = facts.scope();
    let opset = model.opset(model.main(), "").unwrap_or(0);
    let (mut found, mut relations) = (Vec::new(), Relations::default());
    for view in computed.iter().filter_map(|&id| NodeFacts::of(model, facts, id, opset)) {
        let equal = match view.traits().moves {
            Some(Movement::Layout) => equal_counts(scope, &view).into_iter().collect(),
            Some(Movement::Join) => equal_dims(&view),
            _ => continue,
        };
        for (a, b) in equal.into_iter().filter(|(a, b)| a.term_count().max(b.term_count()) <= LARGEST) {
            let difference = scope.sub(&a, &b).without_content();
            let is_new = difference.as_const().is_none() && !found.contains(&difference) && !scope.eq(&a, &b).is_yes();
            if is_new && relations.take(&difference) {
                found.push(difference);
            }
        }
    }
    found
}

/// Returns the element counts of a view and of its operand, unless their dims other than 1 are the same.
fn equal_counts(scope: &Scope, view: &NodeFacts<'_>) -> Option<(Dim, Dim)> {
    let (from, to) = view.shape(0).zip(view.result_shape())?;
    let is_other = |dim: &Dim, others: &[Dim]| !dim.is_const(1) && !others.contains(dim);
    let differ = from.iter().any(|dim| is_other(dim, to)) || to.iter().any(|dim| is_other(dim, from));
    differ.then(|| (scope.product(from), scope.product(to)))
}

/// Returns pairs of different dims that a Concat requires to be equal: each operand's dims next to the first operand's, except along the axis.
fn equal_dims(view: &NodeFacts<'_>) -> Vec<(Dim, Dim)> {
    let Some((first, axis)) = view.shape(0).zip(view.axis(1)) else { return Vec::new() };
    let others = (1..view.node.inputs().len().min(MOST_OPERANDS)).filter_map(|slot| view.shape(slot));
    let pairs = others.flat_map(|shape| first.iter().zip(shape).enumerate());
    let unequal = pairs.filter(|(at, (a, b))| *at != axis && a != b);
    unequal.map(|(_, (a, b))| (a.clone(), b.clone())).collect()
}

/// Returns expressions that are 0 in every run that gives a result: `(a − 1)·(b − 1)·(a − b)` for dims `a` and `b` that are broadcast, since
/// one of them is 1 or both are equal. A proof would need a case distinction; a trial only evaluates the product.
pub fn broadcast_choices(model: &Model, facts: &Facts, computed: &[NodeId]) -> Vec<Dim> {
    const LARGEST: usize = 32;
    let (scope, one) = (facts.scope(), Dim::constant(1));
    let opset = model.opset(model.main(), "").unwrap_or(0);
    let mut seen: FxHashSet<(Dim, Dim)> = FxHashSet::default();
    let (mut choices, mut relations) = (Vec::new(), Relations::default());
    for view in computed.iter().filter_map(|&id| NodeFacts::of(model, facts, id, opset)) {
        if !view.traits().is_broadcasting(opset) && view.traits().broadcast_with.is_none() {
            continue;
        }
        for (a, b) in broadcast_pairs(&view) {
            let is_plain = a == b || b.is_const(1) || a.term_count().saturating_add(b.term_count()) > LARGEST;
            if is_plain || !seen.insert((a.clone(), b.clone())) {
                continue;
            }
            if seen.contains(&(b.clone(), a.clone())) || scope.eq(&a, &b).is_yes() {
                continue;
            }
            let choice = scope.product(&[scope.sub(&a, &one), scope.sub(&b, &one), scope.sub(&a, &b)]);
            if relations.take(&choice) {
                choices.push(choice);
            }
        }
    }
    choices
}

/// Returns the constant `k ≥ 2` if a dim is `min(whole, k)`.
fn cut_at(scope: &Scope, dim: &Dim, whole: &Dim) -> Option<i64> {
    if dim == whole || dim.as_symbol().is_some() {
        return None;
    }
    scope.parts(dim).into_iter().filter(|(operation, ..)| *operation == Operation::Min).find_map(|(_, a, b)| {
        let most = if a == *whole { b } else { Some(a).filter(|_| b == *whole)? };
        most.as_const().filter(|&most| most >= 2)
    })
}

/// Records that a size is at least `least`, unless that is known. It derives a lower bound of one symbol that holds for all values of the
/// others. If this bound is not equivalent, it records the inequality itself (`past + seq` is at most the length of the mask). A sum other
/// than 0 bounds no single size, and proofs would need a case distinction.
fn at_least(scope: &Scope, dim: &Dim, least: i64, relations: &mut Relations) -> bool {
    const STEPS: usize = 64;
    let least = Dim::constant(least);
    if scope.ge(dim, &least).is_yes() {
        return false;
    }
    if let Some(symbol) = dim.as_symbol() {
        scope.restrict(symbol, least.as_const(), None);
        return true;
    }
    let mut learned = false;
    for symbol in dim.symbols() {
        for _ in 0..STEPS {
            let (Some(low), _) = scope.bounds(&Dim::symbol(symbol)) else { break };
            let there = scope.substitute(dim, &|other| (other == symbol).then(|| Dim::constant(low)));
            let Some(next) = low.checked_add(1).filter(|_| scope.lt(&there, &least).is_yes()) else { break };
            scope.restrict(symbol, Some(next), None);
            learned = true;
        }
    }
    if dim.is_difference() && !scope.ge(dim, &least).is_yes() && relations.take(dim) {
        scope.assume_le(&least, dim);
        learned = true;
    }
    learned
}

/// Records that a size is at most `most`, unless that is known.
fn at_most(scope: &Scope, dim: &Dim, most: i64, relations: &mut Relations) -> bool {
    let limit = Dim::constant(most);
    if scope.le(dim, &limit).is_yes() {
        return false;
    }
    match dim.as_symbol() {
        Some(symbol) => scope.restrict(symbol, None, Some(most)),
        None if !relations.take(dim) => return false,
        None => scope.assume_le(dim, &limit),
    }
    true
}
