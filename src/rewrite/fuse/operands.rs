//! Factors of both operands of a product are one factor of the product.
//!
//! Law: `(a·x)·(b·y) = (a·b)·(x·y)` for numbers `a` and `b`.
//!
//! Exporters scale queries and keys by the root of what the scores are to be scaled by. Scores that are scaled by one number are an
//! [attention](super::attention) to tools; where none is known, the one factor moves on into [weights](super::factor).

use super::magnitude::{has_room, keeps_digits, may_move};
use super::ordinary::is_ordinary;
use super::{has_arithmetic, rounded};
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "factors-of-operands",
    law: "(a·x)·(b·y) = (a·b)·(x·y)",
    sentence: "Merges scalar factors of both operands of a matrix product into one factor of the product.",
    premises: &[
        ("two-numbers", "each operand is the result of a multiplication or division by one number"),
        (
            "moderate",
            "a·b is positive and near 1 (2⁻¹⁶ to 2¹⁶ in float). For x and y of moderate size (2⁻³² to 2³² in float), a·x and b·y neither overflow nor underflow",
        ),
        (
            "no-sizes",
            "the product is not computed from dims alone, because consumers may convert the result back to a dim",
        ),
        ("one-reader", "the intermediate values have no other consumer"),
        (
            "not-dequantized",
            "neither x nor y is the result of a DequantizeLinear. ONNX Runtime would fuse the DequantizeLinear and the MatMul, and the kernel of the fused node refuses an operand x with one scale per column",
        ),
    ],
    exact: false,
    operators: &["MatMul"],
    apply: of_product,
}];

/// `factor·x`, computed by a node that only the product reads.
struct Scaled {
    node: NodeId,
    x: ValueId,
    factor: f64,
}

impl Scaled {
    fn of(place: &Place<'_>, value: ValueId) -> Result<Scaled, Miss> {
        let other = miss!("two-numbers").of(value);
        let (node, product) = place.producer_of(value, &["Mul", "Div"]).ok_or(other)?;
        let &[Some(a), Some(b)] = product.inputs() else { return Err(other) };
        let (x, factor) = match (place.scalar(a), place.scalar(b)) {
            (None, Some(factor)) if product.is("Div") => (a, factor.recip()),
            (None, Some(factor)) => (a, factor),
            (Some(factor), None) if product.is("Mul") => (b, factor),
            _ => return Err(other),
        };
        ensure(factor.is_normal() && place.same_shape(x, value), other)?;
        ensure(place.is_internal(value, &[place.id]), miss!("one-reader").of(value))?;
        ensure(place.producer(x, "DequantizeLinear").is_none(), miss!("not-dequantized").of(x))?;
        Ok(Scaled { node, x, factor })
    }
}

fn of_product(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
    ensure(a != b, miss!("two-numbers"))?;
    ensure(place.opset.arithmetic_broadcasts(), Miss::EXPRESSIBLE)?;
    let (a, b) = (Scaled::of(place, a)?, Scaled::of(place, b)?);
    let factor = a.factor * b.factor;
    // The product of zeros is 0 whatever their signs, of which a factor below 0 makes −0 behind it.
    let fits = |dtype: &_| {
        factor > 0.0 && may_move(*dtype, factor) && may_move(*dtype, factor.recip()) && keeps_digits(*dtype, factor)
    };
    let dtype =
        place.dtype(result).filter(|&dtype| has_arithmetic(dtype)).filter(fits).ok_or(miss!("moderate").of(result))?;
    let has_room = |scaled: &Scaled| has_room(dtype, scaled.factor) && is_ordinary(place, scaled.x);
    ensure(!place.is_of_sizes(result), miss!("no-sizes"))?;
    ensure([&a, &b].into_iter().all(has_room), miss!("moderate"))?;
    let mut edit = place.begin()?;
    edit.remove.extend([a.node, b.node]);
    let product = edit.new_value(result, "product");
    edit.insert.push(NewNode { inputs: vec![Some(a.x), Some(b.x)], ..NewNode::like(node) }.output(product));
    let factor = edit.constant(result, "factor", rounded(dtype, &[], &[factor]).ok_or(Miss::COMPUTABLE)?);
    Ok(edit.removing(place.id).inserting(NewNode::new("Mul", [Some(product), Some(factor)]).output(result)))
}
