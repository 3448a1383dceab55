//! Counterexamples: where an expression is too small for one assignment, no search needs to show that it never is.
//!
//! Numbers only ever refute here. An assignment is drawn within the bounds of each symbol; one that breaks a given relation
//! says nothing. The numbers are the same on every run.

use super::Symbol;
use super::expr::Dim;
use super::scope::{Scope, Table};

/// Assignments one question is tried at; fewer than there are bits in a `u32`.
const TRIES: u64 = 20;
/// Larger expressions are not tried: the search does not look at them either.
const LARGEST: u32 = 256;

impl Scope {
    /// Whether an assignment within what is known of the symbols makes `a` less than `goal`.
    pub(super) fn is_refuted(&self, a: &Dim, goal: i64) -> bool {
        if a.size() > LARGEST {
            return false;
        }
        self.with_table(|table| {
            let allowed = self.allowed(table, a);
            (0..TRIES)
                .filter(|attempt| allowed >> attempt & 1 == 1)
                .any(|attempt| a.evaluate(&|symbol| drawn(table, symbol, attempt)).is_some_and(|value| value < goal))
        })
    }

    /// The attempts, a bit for each, that keep the relations about the symbols of `a`.
    fn allowed(&self, table: &Table, a: &Dim) -> u32 {
        let mut holding = self.holding.borrow_mut();
        if holding.len() != table.relations.len() {
            *holding = table.relations.iter().map(|relation| attempts_keeping(table, relation)).collect();
        }
        let near = table.relations.iter().zip(holding.iter()).filter(|(relation, _)| relation.mask() & a.mask() != 0);
        near.fold(u32::MAX, |allowed, (_, holds)| allowed & holds)
    }
}

fn attempts_keeping(table: &Table, relation: &Dim) -> u32 {
    let holds = |attempt: &u64| {
        let value = relation.evaluate(&|symbol| drawn(table, symbol, *attempt));
        value.is_some_and(|value| value >= 0)
    };
    (0..TRIES).filter(holds).fold(0, |kept, attempt| kept | 1 << attempt)
}

/// A value for a symbol: as little above its lower bound as the attempt says, or below its upper bound.
fn drawn(table: &Table, symbol: Symbol, attempt: u64) -> Option<i64> {
    let interval = table.interval(symbol);
    let step = i128::from(distance(symbol, attempt));
    let value = match (interval.low, interval.high) {
        (Some(low), _) => low.checked_add(step)?,
        (None, Some(high)) => high.checked_sub(step)?,
        // Of a number with any sign, both.
        (None, None) => step / 2 * if step % 2 == 0 { 1 } else { -1 },
    };
    let multiple = i128::from(table.multiple(symbol)).max(1);
    let value = value.checked_add(multiple - 1)?.div_euclid(multiple).checked_mul(multiple)?;
    let within = interval.low.is_none_or(|low| value >= low) && interval.high.is_none_or(|high| value <= high);
    i64::try_from(value).ok().filter(|_| within)
}

/// How far from its bound a symbol is: all of them equally far at first, then each another way.
fn distance(symbol: Symbol, attempt: u64) -> u64 {
    const EQUAL: [u64; 8] = [0, 1, 2, 3, 6, 15, 100, 1001];
    const SPANS: [u64; 4] = [3, 8, 40, 2000];
    if let Some(&distance) = usize::try_from(attempt).ok().and_then(|attempt| EQUAL.get(attempt)) {
        return distance;
    }
    let mixed = (u64::from(symbol.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(attempt);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
    SPANS.get((attempt % 4) as usize).map_or(0, |span| mixed % span)
}
