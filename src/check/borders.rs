//! The sizes at which an assumption about dims stops holding.
//!
//! Shapes are written under the assumption that sizes fit the integer types they are computed in (`dim/scope/assumed`). Each assumed law has a reach:
//! a symbol has a last size within it. Results must be equal at that size and the next one, because only shapes may rest on the law.

use std::rc::Rc;

use crate::dim::{Dim, Scope, Symbol};
use crate::ir::Model;
use crate::passes::{Options, run};
use crate::sort;

/// The most border sizes that are tried.
const MOST: usize = 8;
/// The largest size that is tried.
const LARGEST: i64 = 1 << 40;

/// Returns the last size for which each assumed law of one symbol holds, and the next size, by symbol name.
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

/// Returns the last size for which an expression of one symbol is at most `reach`; `None` if it is not in 1..[`LARGEST`].
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
