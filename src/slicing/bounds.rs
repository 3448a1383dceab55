//! Bounds of a range on a known axis: recognizes ranges that select the whole axis, and writes bounds as integers.

use super::reading::Reading;
use super::resolve::resolve_exactly;
use super::spec::{Bound, Range};
use crate::dim::{Dim, Scope};

/// Returns `true` if `range` provably selects every element of an axis of `dim` in order.
pub fn is_identity(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> bool {
    is_in_order(scope, dim, range)
        && resolve_exactly(scope, dim, range, reading).is_some_and(|(_, len)| scope.eq(&len, dim).is_yes())
}

/// Returns `true` if `range` is the identity, given that it selects `len` elements.
pub fn takes_all(scope: &Scope, dim: &Dim, range: &Range, len: &Dim) -> bool {
    // A forward range of step 1 that selects `dim` elements selects all of them.
    is_in_order(scope, dim, range) && scope.eq(len, dim).is_yes()
}

fn is_in_order(scope: &Scope, dim: &Dim, range: &Range) -> bool {
    range.step == Some(1) || scope.le(dim, &Dim::constant(1)).is_yes()
}

/// Returns the negative index of position `at`: `-k` for `at = dim - k`, if `k > 0` and the axis has at least `k`
/// elements.
pub fn from_end(scope: &Scope, dim: &Dim, at: &Dim) -> Option<i64> {
    let before = scope.sub(dim, at).as_const().filter(|&before| before > 0)?;
    scope.ge(dim, &Dim::constant(before)).is_yes().then(|| before.checked_neg()).flatten()
}

/// Replaces symbolic bounds by integers: `dim - k` becomes `-k` on an axis of at least `k` elements. A bound beyond
/// the axis becomes open, or `i64::MAX` as a forward begin. Keeps all other bounds.
pub fn with_numbers(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> Range {
    let Some(step) = range.step else { return range.clone() };
    let is_beyond = |at: &Dim, end: &Dim| scope.ge(at, end).is_yes();
    let from_end = |at: &Dim| from_end(scope, dim, at).map(|number| Bound::At(Dim::constant(number)));
    let is_before = |at: &Dim, first: i64| {
        scope.lt(at, &Dim::constant(0)).is_yes() && scope.le(&scope.add(at, dim), &Dim::constant(first)).is_yes()
    };
    let begin = |at: &Dim| match step > 0 {
        true if is_before(at, 0) => Some(Bound::Open),
        true if is_beyond(at, dim) => Some(Bound::At(Dim::constant(i64::MAX))),
        false if is_beyond(at, &scope.sub(dim, &Dim::constant(1))) => Some(Bound::Open),
        _ => from_end(at),
    };
    let end = |at: &Dim| match step > 0 {
        true if is_beyond(at, dim) => Some(Bound::Open),
        false if is_before(at, -1) => Some(Bound::Open),
        _ => from_end(at),
    };
    let is_expression = |bound: &Bound| matches!(bound, Bound::At(at) if at.as_const().is_none());
    let mut told = range.clone();
    if let Bound::At(at) = &range.begin
        && is_expression(&range.begin)
    {
        told.begin = begin(at).unwrap_or(told.begin);
    }
    if let Bound::At(at) = &range.end
        && is_expression(&range.end)
        && reading.is_ordinary(scope, &range.end, step > 0)
    {
        told.end = end(at).unwrap_or(told.end);
    }
    told
}
