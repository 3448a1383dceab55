//! What a run that succeeds needs of the sizes.
//!
//! Some operators refuse some sizes, whatever the data: a model that has such a node on its main path cannot run on them, so
//! for every run that gives a result the opposite holds. A node that no output depends on tells nothing: not every runtime computes
//! it. Only refusals that the standard states and the runtimes carry
//! out are used. Each operator states its own as its trait [`needs`](super::traits::Traits::needs):
//!
//! * a Reshape cannot tell what −1 stands for when its other sizes multiply to 0, be the −1 a computed one;
//! * a Gather with a fixed index needs that many entries, and one with positions that are counted out as many as the last of them
//!   says: the front of a mask that is looked up is no longer than the mask;
//! * a Resize wants positive scales, and `0 / 0` is none: what is a multiple of a size, divided by the size, needs a size that is not 0;
//! * a convolution wants axes that its kernel fits into, with the padding;
//! * no integer is divided by 0;
//! * of two dims that are broadcast one is 1, or both are equal: beside a fixed dim of 2 or more no dim is 0, nor larger, and beside
//!   `min(d, 64)` no `d` is larger than 64 (`laws/bounds.py`), the sizes that an Expand is given included;
//! * a Squeeze removes axes of dim 1 only;
//! * a MatMul needs as many columns of the first matrix as rows of the second: an attention mask broadcasts to the scores;
//! * no tensor has a negative dim: a convolution whose kernel does not fit has no result.
//!
//! Relations between products of sizes are left to trials, since the prover would be slow with them:
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

/// The most expressions about one size that are noted not to be negative: each is looked at by later proofs about that size, so without the limit
/// a model of N nodes that each need another bound of one sum takes N² looks.
const MOST_RELATIONS: usize = 32;

/// How many expressions there are about each size.
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

/// Each two operands of a node are looked at.
const MOST_OPERANDS: usize = 8;

impl Walk {
    /// Tightens the bounds of symbols by what these nodes of the main graph need, which every run computes. Returns whether anything was
    /// learned; what was stated before is still true, but may be said more simply.
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
                // What is a size once is one for good.
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

/// What dims that are broadcast need, each with the least and the most that it may be: beside a fixed `k ≥ 2` or beside `min(d, k)` a dim `d`
/// is at most `k`, and beside `k` itself it is not 0.
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

/// Each dim of a node's operands that is no number, with each dim that it is broadcast with.
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

/// The constant `k ≥ 2` where a dim is `min(whole, k)`.
fn cut_at(scope: &Scope, dim: &Dim, whole: &Dim) -> Option<i64> {
    if dim == whole || dim.as_symbol().is_some() {
        return None;
    }
    scope.parts(dim).into_iter().filter(|(operation, ..)| *operation == Operation::Min).find_map(|(_, a, b)| {
        let most = if a == *whole { b } else { Some(a).filter(|_| b == *whole)? };
        most.as_const().filter(|&most| most >= 2)
    })
}

/// Notes that a size is at least `least`, if that is news: a symbol is more than what would make the size smaller, whatever
/// the others are. Where that does not say it all, a difference is noted as it is (`past + seq` is at most the length of the mask). That a
/// sum is not 0 says nothing of any one size; proofs would have to tell cases apart.
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

/// Notes that a size is at most `most`, if that is news.
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
