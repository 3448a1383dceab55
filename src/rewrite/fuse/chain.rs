//! Two steps of arithmetic with constants are one.
//!
//! Laws: `(x·a)·b = x·(a·b)`, with `x/a` for `x·a⁻¹`, and `±(±x + a) + b = ±x + (b ± a)`. Of integers they hold bit for bit, for
//! both sides wrap alike. Of floats they hold up to rounding, where neither the product leaves the numbers that have all
//! digits nor the sum is much smaller than a term: `(x + a) − a` is a way to round `x`. Numbers made of sizes are left alone.

use super::magnitude::may_scale;
use super::ordinary::is_ordinary;
use super::{Fusion, Operand, has_arithmetic};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::index;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, Element, Number, StridedView, Tensor, dispatch_numeric, gather, product};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "constant-chain",
        law: "(x·a)·b = x·(a·b), ±(±x + a) + b = ±x + (b ± a)",
        sentence: "Merges two successive arithmetic operators with constants.",
        premises: &[
            (
                "no-cancelling",
                "in a sum, b ± a is not much smaller than a and b. For example, (x + a) − a rounds x, so that replacing the expression by x would change the result",
            ),
            (
                "in-range",
                "in a product, a·b is finite and not subnormal. If b could hide an overflow or underflow of x·a, the product x·a neither overflows nor underflows for x of moderate size (2⁻³² to 2³² in float)",
            ),
            ("no-sizes", "x is not computed from dims alone, because consumers may convert the result back to a dim"),
            ("no-larger", "the new constants take no more bytes than the removed constants"),
            ("one-reader", "the result of the first operator has no other consumer"),
        ],
        exact: false,
        operators: &["Mul", "Div", "Add", "Sub"],
        apply: floats,
    },
    Rule {
        name: "integer-constant-chain",
        law: "(x·a)·b = x·(a·b), ±(±x + a) + b = ±x + (b ± a), modulo 2³² or 2⁶⁴",
        sentence: "Merges two successive operators of integer arithmetic with constants.",
        premises: &[
            (
                "wrapping-type",
                "the element type is an integer type of 32 or 64 bits: an overflow wraps around in the same way on both sides of the law",
            ),
            ("no-larger", "the new constants take at most 768 bytes more than the removed constants"),
            ("one-reader", "the result of the first operator has no other consumer"),
        ],
        exact: true,
        operators: &["Mul", "Add", "Sub"],
        apply: integers,
    },
    Rule {
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
    },
];

/// `x ± 0 = x`, whichever zero it is; the sign of a zero aside, which [`neutral-element`](super::super::neutral) keeps.
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

/// Whether a node makes another number of a negative zero in its operand of this slot: it divides by it, for one.
fn shows_zero_sign(place: &Place<'_>, &(id, slot): &(NodeId, usize)) -> bool {
    place.model.node(id).is_some_and(|reader| traits_of(place.model, reader).shows_zero_sign == Some(slot))
}

fn floats(place: &Place<'_>) -> Result<Edit, Miss> {
    let steps = steps(place)?;
    let of_sizes = place.is_of_sizes(place.only_output().ok_or(Miss::ROOT)?);
    ensure(!of_sizes, miss!("no-sizes"))?;
    chain(place, steps, (has_arithmetic, Miss::ROOT), 0)
}

/// How many bytes a node takes in a file, with names and shapes. Indices of windows are a row and a column that are added one by one.
const OF_A_NODE: usize = 768;

fn integers(place: &Place<'_>) -> Result<Edit, Miss> {
    let wraps = |dtype| matches!(dtype, DType::Int32 | DType::Int64 | DType::Uint32 | DType::Uint64);
    chain(place, steps(place)?, (wraps, miss!("wrapping-type")), OF_A_NODE)
}

/// A node as a link of a chain that starts at `x`: `x·c`, `x·c⁻¹`, `x + c`, `x − c` or `c − x`.
#[derive(Clone, Copy)]
struct Link {
    x: ValueId,
    constant: ValueId,
    is_sum: bool,
    /// The constant is divided by, or subtracted.
    inverse: bool,
    /// It is `x` that is subtracted.
    negates: bool,
}

impl Link {
    fn of(place: &Place<'_>, node: &Node) -> Option<Link> {
        let &[Some(a), Some(b)] = node.inputs() else { return None };
        let is_sum = node.is("Add") || node.is("Sub");
        let inverts = node.is("Div") || node.is("Sub");
        if !is_sum && !inverts && !node.is("Mul") || node.outputs().len() != 1 {
            return None;
        }
        match (place.tensor(a).is_some(), place.tensor(b).is_some()) {
            (false, true) => Some(Link { x: a, constant: b, is_sum, inverse: inverts, negates: false }),
            (true, false) if !node.is("Div") => {
                Some(Link { x: b, constant: a, is_sum, inverse: false, negates: node.is("Sub") })
            }
            _ => None,
        }
    }
}

/// The node before this one, and both as steps that may become one.
fn steps(place: &Place<'_>) -> Result<(NodeId, Link, Link), Miss> {
    ensure(place.opset.arithmetic_broadcasts(), Miss::ROOT)?;
    let node = place.root()?;
    let outer = Link::of(place, node).ok_or(Miss::ROOT)?;
    let id = place.model.value(outer.x).producer().ok_or(Miss::ROOT)?;
    let first = place.model.node(id).filter(|first| first.graph() == node.graph()).ok_or(Miss::ROOT)?;
    let inner = Link::of(place, first).filter(|inner| inner.is_sum == outer.is_sum).ok_or(Miss::ROOT)?;
    Ok((id, inner, outer))
}

/// `more` are the bytes that the new constant may take beyond those that go.
fn chain(
    place: &Place<'_>,
    (id, inner, outer): (NodeId, Link, Link),
    (is_covered, uncovered): (fn(DType) -> bool, Miss),
    more: usize,
) -> Result<Edit, Miss> {
    ensure(place.is_internal(outer.x, &[place.id]), Miss::READ.of(outer.x))?;
    let (a, b) = (place.tensor(inner.constant).ok_or(Miss::ROOT)?, place.tensor(outer.constant).ok_or(Miss::ROOT)?);
    ensure(a.dtype() == b.dtype(), Miss::ROOT)?;
    ensure(is_covered(a.dtype()), uncovered.of(outer.x))?;
    let remove = vec![id, place.id];
    let shape = broadcast(a.shape(), b.shape()).ok_or(Miss::ROOT)?;
    let bytes = a.dtype().byte_len(product(&shape).ok_or(Miss::COMPUTABLE)?).ok_or(Miss::ROOT)?;
    // Constants that spread each other may be larger than both.
    ensure(bytes <= place.allowance(&remove).saturating_add(more), Miss::LARGER)?;
    place.budget.take_bytes(bytes.checked_mul(3).ok_or(Miss::COMPUTABLE)?).or(Err(Miss::COMPUTABLE))?;
    let inexact = match (a.dtype().is_float(), outer.is_sum) {
        (false, _) => Miss::COMPUTABLE,
        (true, true) => miss!("no-cancelling").of(inner.constant),
        (true, false) => miss!("in-range").of(inner.constant),
    };
    let combined = combined(&shape, [a, b], [inner, outer]).ok_or(inexact)?;
    ensure(!a.dtype().is_float() || outer.is_sum || is_ordinary(place, inner.x), inexact)?;
    let constant = Operand::Constant(combined, inner.constant);
    let (operator, operands) = match (outer.is_sum, inner.negates != outer.negates, inner.inverse && outer.inverse) {
        (true, false, _) => ("Add", vec![Operand::Value(inner.x), constant]),
        (true, true, _) => ("Sub", vec![constant, Operand::Value(inner.x)]),
        (false, _, true) => ("Div", vec![Operand::Value(inner.x), constant]),
        (false, _, false) => ("Mul", vec![Operand::Value(inner.x), constant]),
    };
    Fusion { remove, like: place.id, operator, attributes: Vec::new(), operands }.edit_with(place, more)
}

/// The constant of both steps in one.
fn combined(shape: &[usize], constants: [&Tensor; 2], steps: [Link; 2]) -> Option<Tensor> {
    let stretched = |tensor: &Tensor| gather(tensor, &StridedView::of(tensor).broadcast_to(shape).ok()?).ok();
    let [a, b] = constants.map(stretched);
    let (a, b) = (a?, b?);
    dispatch_numeric!(a.dtype(), T => typed::<T>(shape, &a, &b, steps), else => None)
}

fn typed<T: Number>(shape: &[usize], a: &Tensor, b: &Tensor, steps: [Link; 2]) -> Option<Tensor> {
    let mut values = Vec::with_capacity(a.len());
    for first in (0..a.len()).step_by(Tensor::BLOCK) {
        let (a, b) = (a.block(first)?, b.block(first)?);
        for (&a, &b) in a.elements::<T>()?.iter().zip(b.elements::<T>()?.iter()) {
            values.push(if T::FLOAT { real(a, b, steps) } else { whole(a, b, steps) }?);
        }
    }
    Tensor::from_vec(shape, values).ok()
}

/// Wraps as the steps do.
fn whole<T: Number>(a: T, b: T, [inner, outer]: [Link; 2]) -> Option<T> {
    if !outer.is_sum {
        // A quotient of whole numbers has lost its remainder.
        return (!inner.inverse && !outer.inverse).then(|| Number::mul(a, b));
    }
    let signed = |value: T, negative: bool| if negative { Number::neg(value) } else { value };
    Some(Number::add(signed(a, inner.inverse != outer.negates), signed(b, outer.inverse)))
}

fn real<T: Number>(a: T, b: T, [inner, outer]: [Link; 2]) -> Option<T> {
    let (x, y) = (a.to_f64(), b.to_f64());
    if !x.is_finite() || !y.is_finite() {
        return None;
    }
    if outer.is_sum {
        let x = if inner.inverse != outer.negates { -x } else { x };
        let y = if outer.inverse { -y } else { y };
        let sum = T::from_f64(x + y).filter(|sum| sum.to_f64().is_finite())?;
        let (less, more) = if x.abs() < y.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
        // Of terms that differ much the smaller one would be rounded away, although `x` may make up for the larger one.
        let alike = less == 0.0 || less >= more / 16.0;
        return (alike && sum.to_f64().abs() >= more / 2.0).then_some(sum);
    }
    let product = match (inner.inverse, outer.inverse) {
        (false, false) | (true, true) => x * y,
        (false, true) => x / y,
        (true, false) => y / x,
    };
    let [first, second] =
        [(x, inner.inverse), (y, outer.inverse)].map(|(c, inverse)| if inverse { c.recip() } else { c });
    if !may_scale(T::DTYPE, first, second) {
        return None;
    }
    let rounded = T::from_f64(product)?;
    let size = rounded.to_f64().abs();
    let zero = product == 0.0 && !inner.inverse && !outer.inverse;
    (size.is_finite() && (zero || size >= smallest::<T>()?)).then_some(rounded)
}

/// The smallest number of a type with all digits.
fn smallest<T: Element>() -> Option<f64> {
    match T::DTYPE {
        DType::Float | DType::Bfloat16 => Some(f32::MIN_POSITIVE.into()),
        DType::Double => Some(f64::MIN_POSITIVE),
        DType::Float16 => Some(1.0 / 16384.0),
        _ => None,
    }
}

fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let dim =
        |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).and_then(|at| shape.get(at).copied());
    (0..rank)
        .map(|axis| match (dim(a, axis).unwrap_or(1), dim(b, axis).unwrap_or(1)) {
            (1, dim) | (dim, 1) => Some(dim),
            (a, b) => (a == b).then_some(a),
        })
        .collect()
}
