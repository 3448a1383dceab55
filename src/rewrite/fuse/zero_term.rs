//! Removes added zeros.
//!
//! Law: `x ± 0 = x`, but for the sign of a zero: `−0 + 0` is `+0`. Only a division by the sum shows this sign.

use super::has_arithmetic;
use crate::ir::{Edit, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::index;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "zero-term",
    law: "x ± 0 = x, but for the sign of a zero",
    sentence: "Removes the addition or subtraction of a zero.",
    premises: &[
        ("zero", "every element of the other operand is 0"),
        ("same-shape", "the result has the shape of x"),
        ("no-divisor", "no consumer divides by the result, because 1/(−0) is −∞, but 1/(−0 + 0) is ∞"),
    ],
    exact: false,
    operators: &["Add", "Sub"],
    apply: zero_term,
}];

/// Removes the addition or subtraction of a zero of either sign. [`neutral-element`](super::super::neutral) is the variant that keeps the
/// sign of zero results.
fn zero_term(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
    let is_zero = |value: ValueId| {
        let number = index::uniform(place, value).filter(|number| has_arithmetic(number.dtype()));
        number.and_then(|zero| zero.to_f64s()).is_some_and(|zero| zero == [0.0])
    };
    let x = if is_zero(b) {
        a
    } else if node.is("Add") && is_zero(a) {
        b
    } else {
        return Err(miss!("zero"));
    };
    let result = place.only_output().ok_or(Miss::ROOT)?;
    prove(place.compare_shapes(x, result), miss!("same-shape").of(x))?;
    ensure(!place.model.users(result).iter().any(|user| shows_zero_sign(place, user)), miss!("no-divisor"))?;
    place.forward(x)
}

/// Returns `true` if a node reveals the sign of a zero in its operand of this slot, for example as a divisor.
fn shows_zero_sign(place: &Place<'_>, &(id, slot): &(NodeId, usize)) -> bool {
    place.model.node(id).is_some_and(|reader| traits_of(place.model, reader).shows_zero_sign == Some(slot))
}
