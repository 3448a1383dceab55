//! A product with an inverse is a quotient.
//!
//! Law: `x·(1/y) = x/y`, up to one rounding.

use super::{Fusion, Place, Rule, has_arithmetic};
use crate::ir::{Edit, NodeId, ValueId};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "product-with-inverse",
    law: "x · (1/y) = x/y",
    sentence: "A product with an inverse is a quotient.",
    premises: &[
        ("one", "what is divided is 1"),
        ("inverse-shape", "the inverse has the shape of y"),
        ("no-sizes", "it is not computed from sizes alone: what reads such numbers rounds them to sizes again"),
        ("one-reader", "nothing else reads what is between"),
    ],
    exact: false,
    operators: &["Mul"],
    apply: quotient,
}];

fn quotient(place: &Place<'_>) -> Option<Edit> {
    let result = place.only_output()?;
    let &[Some(a), Some(b)] = place.node()?.inputs() else { return None };
    if !place.opset.arithmetic_broadcasts() || a == b || !place.dtype(result).is_some_and(has_arithmetic) {
        return None;
    }
    let (x, (id, y)) = [(a, b), (b, a)].into_iter().find_map(|(x, inverse)| Some((x, inverted(place, inverse)?)))?;
    if place.is_of_sizes(result) {
        return None;
    }
    let (remove, operands) = (vec![id, place.id], vec![Some(x).into(), Some(y).into()]);
    Fusion { remove, like: place.id, operator: "Div", attributes: Vec::new(), operands }.edit(place)
}

/// The node that computes `value = 1/y`, and `y`.
fn inverted(place: &Place<'_>, value: ValueId) -> Option<(NodeId, ValueId)> {
    let (id, y) = if let Some((id, node)) = place.producer(value, "Reciprocal") {
        (id, node.input(0)?)
    } else {
        let (id, node) = place.producer(value, "Div")?;
        let &[Some(one), Some(y)] = node.inputs() else { return None };
        if place.scalar(one) != Some(1.0) || !place.same_shape(y, value) {
            return None;
        }
        (id, y)
    };
    (place.is_internal(value, &[place.id]) && place.tensor(y).is_none()).then_some((id, y))
}
