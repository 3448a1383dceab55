//! A product with an inverse is a quotient.
//!
//! Law: `x·(1/y) = x/y`, up to one rounding.

use super::{Fusion, Place, Rule, has_arithmetic};
use crate::ir::{Edit, NodeId, ValueId};
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "product-with-inverse",
    law: "x · (1/y) = x/y",
    sentence: "Replaces a product with an inverse by a quotient.",
    premises: &[
        ("one", "the dividend is 1"),
        ("inverse-shape", "the inverse has the shape of y"),
        (
            "keeps-axes",
            "y is not the root of a mean with removed axes, because ONNX Runtime wrongly matches a quotient by it as a normalization",
        ),
        (
            "epsilon-read",
            "y is not the root of a mean plus ε, except in binary32 with a scalar ε after a mean of squares, because ONNX Runtime matches a quotient by it as a normalization with ε = 10⁻⁵",
        ),
        (
            "wide-axis",
            "it is not the root of a mean over an axis that may have size 1, because the scale of the normalization may be wider, which ONNX Runtime rejects",
        ),
        ("no-sizes", "the value is not computed from dims alone, because its consumers may round it to dims again"),
        ("one-reader", "the values in between have no other consumer"),
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
    if is_misread_root(place, result, y) || place.is_of_sizes(result) {
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

/// Whether a divisor is `√(mean(x) + ε)` of a mean that does not keep its axes, or of another type than binary32, or the quotient has a last
/// axis that may be of size 1. Of what is centred ONNX Runtime reads no ε in front of the mean, and takes any power for a square; an ε of
/// more axes than the mean gives the quotient axes that its kernel does not.
fn is_misread_root(place: &Place<'_>, quotient: ValueId, value: ValueId) -> bool {
    let Some((_, root)) = place.producer(value, "Sqrt") else { return false };
    let Some((_, sum)) = root.input(0).and_then(|sum| place.producer(sum, "Add")) else { return false };
    let &[Some(a), Some(b)] = sum.inputs() else { return false };
    let is_misread = place.dtype(value) != Some(DType::Float);
    let is_open =
        place.shape(quotient).and_then(<[_]>::last).is_none_or(|dim| matches!(dim.as_const(), None | Some(1)));
    let misleads = |mean_of: ValueId, epsilon: ValueId| {
        let Some((_, mean)) = place.producer(mean_of, "ReduceMean") else { return false };
        let is_single = place.tensor(epsilon).is_some_and(|tensor| {
            tensor.len() == 1 && place.shape(mean_of).is_some_and(|shape| tensor.rank() <= shape.len())
        });
        let power = mean.input(0).and_then(|power| place.producer(power, "Pow"));
        let is_square = power.is_none_or(|(_, power)| {
            power.input(1).and_then(|exponent| place.scalar(exponent)).is_some_and(|exponent| exponent == 2.0)
        });
        let is_behind = Some(epsilon) == sum.input(1) || !is_centred(place, mean.input(0));
        let is_read = is_single && is_square && is_behind;
        is_misread || is_open || !is_read || mean.flag("keepdims", true) != Some(true)
    };
    misleads(a, b) || misleads(b, a)
}

/// Whether a value is computed of a difference: a power of it, or a product.
fn is_centred(place: &Place<'_>, value: Option<ValueId>) -> bool {
    let power = value.and_then(|value| place.producer_of(value, &["Pow", "Mul"]));
    power.is_some_and(|(_, power)| {
        power.inputs().iter().flatten().any(|&operand| place.producer(operand, "Sub").is_some())
    })
}
