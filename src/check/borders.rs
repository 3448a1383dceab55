//! The sizes at which an assumption about sizes ends.
//!
//! Shapes are written under the assumption that sizes fit the types they are computed in (`dim/scope/assumed`). Each law behind one has a reach,
//! so for a single size there is a last one that it holds for. Results must be equal there and behind it: nothing but shapes may rest on it.

use std::rc::Rc;

use crate::dim::{Dim, Scope, Symbol};
use crate::ir::Model;
use crate::passes::{Options, run};
use crate::sort;

/// So many borders are tried.
const MOST: usize = 8;
/// No size that is tried is larger.
const LARGEST: i64 = 1 << 40;

/// The last size for which each law that inference uses holds, and the one after it, by name.
pub fn borders(original: &Model, options: &Options) -> Vec<(String, i64)> {
    let scope = Rc::new(Scope::new());
    let untouched = options.clone().stop_after(0);
    if run(&mut original.clone(), Rc::clone(&scope), &untouched, 0, &mut |_| {}).is_err() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (operand, law) in scope.assumptions() {
        let symbols: Vec<Symbol> = operand.symbols().into_iter().collect();
        let &[symbol] = symbols.as_slice() else { continue };
        if let Some(last) = last_within(&operand, law.reach).filter(|_| !scope.is_fresh(symbol)) {
            let name = scope.name(symbol).to_string();
            found.extend([last, last + 1].map(|size| (name.clone(), size)));
        }
    }
    sort::sort(&mut found);
    found.dedup();
    found.truncate(MOST);
    found
}

/// The last size for which an expression of one size is at most `reach`, if it grows beyond that.
fn last_within(operand: &Dim, reach: i64) -> Option<i64> {
    let is_within = |size: i64| operand.evaluate(&|_| Some(size)).is_some_and(|value| value <= reach);
    if !is_within(1) || is_within(LARGEST) {
        return None;
    }
    let (mut within, mut beyond) = (1, LARGEST);
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if is_within(middle) { within = middle } else { beyond = middle }
    }
    Some(within)
}
