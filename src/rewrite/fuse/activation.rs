//! Recognizes activation functions that are written in basic operators, and replaces them by the operator of the opset, if it has one.
//!
//! | law | since |
//! | --- | --- |
//! | `½·x·(1 + erf(x/√2)) = Gelu(x)` | 20 |
//! | `½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) = Gelu(x; tanh)` | 20 |
//! | `x·sigmoid(α·x) = Swish(x; α)` | 24, on request |
//! | `x·cut(x/6 + ½, 0, 1) = HardSwish(x)`, also as `x·cut(x + 3, 0, 6)/6` | 14 |
//! | `x·tanh(softplus(x)) = Mish(x)` | 18 |
//!
//! [`kernels`](super::kernels) lists the element types, and the reason why Swish needs a request for a newer opset. Factors and terms may
//! have any order. Constants may differ from the law by the rounding to their type.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::kernels::{as_attribute, has_kernel};
use super::pattern::{Product, Reader};
use super::{Fusion, Operand};
use crate::ir::{Attribute, Edit, NamedAttribute, NodeId, ValueId};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "spelled-activation",
    law: "½·x·(1 + erf(x/√2)) = Gelu(x), x·sigmoid(α·x) = Swish(x; α), x·clip(x/6 + ½, 0, 1) = HardSwish(x), \
            x·tanh(softplus(x)) = Mish(x)",
    sentence: "Replaces a decomposed activation by the operator of the activation.",
    premises: &[
        (
            "known",
            "the model's operator set contains the operator: HardSwish exists since operator set 14, Mish since 18, Gelu since 20, and Swish since 24. The rule writes Swish only if `--opset` requests the operator set",
        ),
        ("constants", "the constants in the graph equal the constants of the formula, up to rounding"),
        ("has-kernel", "runtimes have a kernel of the operator for the element type"),
        ("same-shape", "the result has the shape of x"),
        ("covered-type", "the element type is float16, float or double"),
        ("one-reader", "the intermediate values of the formula have no other consumer"),
    ],
    exact: false,
    operators: &["Mul", "Div"],
    apply: activation,
}];

/// A recognized activation function.
pub(super) struct Activation {
    operator: &'static str,
    attribute: Option<NamedAttribute>,
    /// The operand of the function.
    pub x: ValueId,
    /// The nodes of the formula.
    pub nodes: Vec<NodeId>,
}

/// The operator that a product matches, and its attribute.
type Found = (&'static str, Option<NamedAttribute>);

fn activation(place: &Place<'_>) -> Result<Edit, Miss> {
    let found = read(place)?;
    ensure(place.opset.has(found.operator), miss!("known"))?;
    let is_fit = has_kernel(found.operator, place.dtype(found.x).ok_or(miss!("has-kernel").of(found.x))?);
    ensure(is_fit, miss!("has-kernel"))?;
    ensure(found.operator != "Swish" || is_swish_wanted(place), miss!("known"))?;
    let (attributes, operands) = (found.attribute.into_iter().collect(), vec![Operand::Value(found.x)]);
    Fusion { remove: found.nodes, like: place.id, operator: found.operator, attributes, operands }.edit(place)
}

/// Returns `true` if the formula of Swish becomes the operator: the user requested opset 24, the only one in which runtimes load it.
fn is_swish_wanted(place: &Place<'_>) -> bool {
    place.model.is_newer && place.opset.version() == 24
}

/// Reads the node's result as an activation function, even if the opset has no operator for it.
pub(super) fn read(place: &Place<'_>) -> Result<Activation, Miss> {
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place.dtype(result).ok_or(miss!("covered-type").of(result))?;
    ensure(matches!(dtype, DType::Float | DType::Double | DType::Float16), miss!("covered-type"))?;
    let product = Product::of(place, result, None).ok_or(Miss::ROOT)?;
    let &[a, b] = product.factors.as_slice() else { return Err(Miss::ROOT) };
    let (x, (operator, attribute), nodes) = [(a, b), (b, a)]
        .into_iter()
        .find_map(|(x, gate)| {
            let mut reader = Reader { place, nodes: product.nodes.clone(), dtype };
            let found = gated(&mut reader, product.coefficient, x, gate)?;
            Some((x, found, reader.nodes))
        })
        .ok_or(miss!("constants"))?;
    let fits = place.same_shape(x, result) && place.dtype(x).ok_or(miss!("same-shape").of(x))? == dtype;
    ensure(fits, miss!("same-shape"))?;
    Ok(Activation { operator, attribute, x, nodes })
}

/// Reads `coefficient · x · gate` as a function of `x`.
fn gated(reader: &mut Reader<'_, '_>, coefficient: f64, x: ValueId, gate: ValueId) -> Option<Found> {
    let place = reader.place;
    let is_half = reader.is(coefficient, 0.5);
    match place.model.node(place.model.value(gate).producer()?)?.op_type.as_str() {
        "Add" if is_half => {
            let (curve, one) = reader.sum(gate)?;
            if one != 1.0 {
                return None;
            }
            if place.producer(curve, "Erf").is_some() {
                let argument = reader.node(curve, "Erf")?.input(0)?;
                let (factor, power) = reader.monomial(argument, x)?;
                return (power == 1 && reader.is(factor, FRAC_1_SQRT_2)).then_some(("Gelu", None));
            }
            let argument = reader.node(curve, "Tanh")?.input(0)?;
            let approximate = NamedAttribute::new("approximate", Attribute::String("tanh".into()));
            is_cubic(reader, argument, x)?.then_some(("Gelu", Some(approximate)))
        }
        "Sigmoid" if coefficient == 1.0 => {
            let argument = reader.node(gate, "Sigmoid")?.input(0)?;
            let (factor, power) = reader.monomial(argument, x)?;
            let alpha = as_attribute(factor, reader.dtype)?;
            let attribute = (alpha != 1.0).then(|| NamedAttribute::new("alpha", Attribute::Float(alpha)));
            (power == 1).then_some(("Swish", attribute))
        }
        "HardSigmoid" if coefficient == 1.0 => {
            let node = reader.node(gate, "HardSigmoid")?;
            let (alpha, beta) = (node.float("alpha", 0.2)?, node.float("beta", 0.5)?);
            let fits = node.input(0) == Some(x) && beta == 0.5 && (alpha - 1.0 / 6.0).abs() <= 5e-8;
            fits.then_some(("HardSwish", None))
        }
        "Clip" if reader.is(coefficient, 1.0 / 6.0) => {
            let node = reader.node(gate, "Clip")?;
            let bound = |slot: usize| place.scalar(node.input(slot)?);
            let (low, high) = (bound(1)?, bound(2)?);
            let (term, three) = reader.sum(node.input(0)?)?;
            (term == x && (low, high, three) == (0.0, 6.0, 3.0)).then_some(("HardSwish", None))
        }
        "Tanh" if coefficient == 1.0 => {
            let inner = reader.node(gate, "Tanh")?.input(0)?;
            (reader.node(inner, "Softplus")?.input(0) == Some(x)).then_some(("Mish", None))
        }
        _ => None,
    }
}

/// Returns `true` if `value = √(2/π)·(x + 0.044715·x³)`, also in the form `√(2/π)·x·(1 + 0.044715·x²)`.
fn is_cubic(reader: &mut Reader<'_, '_>, value: ValueId, x: ValueId) -> Option<bool> {
    const CUBIC: f64 = 0.044715;
    let product = Product::of(reader.place, value, Some(x))?;
    reader.nodes.extend(&product.nodes);
    let (factor, power, wanted) = match *product.factors.as_slice() {
        [sum] => {
            let &[Some(a), Some(b)] = reader.node(sum, "Add")?.inputs() else { return None };
            let cube = if a == x { b } else { a };
            let (factor, power) = reader.monomial(cube, x)?;
            (factor, power, if a == x || b == x { 3 } else { 0 })
        }
        [a, b] if a == x || b == x => {
            let (square, one) = reader.sum(if a == x { b } else { a })?;
            let (factor, power) = reader.monomial(square, x)?;
            (factor, power, if one == 1.0 { 2 } else { 0 })
        }
        _ => return None,
    };
    Some(reader.is(product.coefficient, (2.0 / PI).sqrt()) && power == wanted && power > 0 && reader.is(factor, CUBIC))
}
