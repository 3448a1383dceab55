//! What a run that succeeds needs of the sizes.
//!
//! Some operators refuse some sizes, whatever the data: a model that has such a node on its main path cannot run on them, so
//! for every run that gives a result the opposite holds. Only refusals that the standard states and the runtimes carry
//! out are used. Each operator states its own as its trait [`needs`](super::traits::Traits::needs):
//!
//! * a Reshape cannot tell what −1 stands for when its other sizes multiply to 0, be the −1 a computed one;
//! * a Gather with a fixed index needs that many entries;
//! * a Resize wants positive scales, and `0 / 0` is none: what is a multiple of a size, divided by the size, needs a size that is not 0;
//! * no integer is divided by 0;
//! * no tensor has a negative dim: a convolution whose kernel does not fit has no result.

use super::Walk;
use super::traits::NodeFacts;
use crate::dim::{Dim, Scope};
use crate::ir::Model;

/// How many expressions are noted not to be negative: each is looked at by later proofs.
const MOST_RELATIONS: usize = 32;

impl Walk {
    /// Tightens the bounds of symbols by what the nodes of the main graph need. Returns whether anything was learned; what was
    /// stated before is still true, but may be said more simply.
    pub fn learn(&mut self, model: &Model) -> bool {
        let mut learned = false;
        let mut relations = MOST_RELATIONS;
        let opset = model.opset(model.main(), "").unwrap_or(0);
        for (id, node) in model.graph(model.main()).nodes().filter_map(|id| Some((id, model.node(id)?))) {
            let view = NodeFacts::of(model, &self.facts, id, opset);
            let needs = view.and_then(|view| Some(view.traits().needs?(&view)));
            for (dim, least) in needs.unwrap_or_default() {
                learned |= at_least(&self.scope, &dim, least);
            }
            let results = node.outputs().iter().flatten().filter_map(|&value| self.facts.get(value)?.shape());
            for symbol in results.clone().flatten().filter_map(Dim::as_symbol) {
                if !self.scope.is_of_sizes(&Dim::symbol(symbol)) {
                    self.scope.set_size(symbol);
                    learned = true;
                }
            }
            for dim in results.flatten().filter(|dim| dim.as_const().is_none() && dim.as_symbol().is_none()) {
                if relations > 0 && !self.scope.ge(dim, &Dim::constant(0)).is_yes() {
                    relations -= 1;
                    learned = true;
                    self.scope.assume_le(&Dim::constant(0), dim);
                }
            }
        }
        learned
    }
}

/// Notes that a size is at least `least`, if that is news: a symbol is more than what would make the size smaller, whatever
/// the others are.
fn at_least(scope: &Scope, dim: &Dim, least: i64) -> bool {
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
    learned
}
