//! Removes arithmetic and logic with a neutral element, and Wheres with a decided condition.

use super::index;
use super::miss::{Miss, ensure, prove};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Edit, NewNode, Scalar, ValueId};
use crate::ops::traits::{Commutes, WITH_NEUTRAL, traits_of};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "neutral-element",
        law: "x + 0 = x − 0 = x · 1 = x / 1 = x¹ = x ∧ true = x ∨ false = x",
        sentence: "Removes arithmetic and logic with a neutral element.",
        premises: &[
            (
                "neutral",
                "every element of the other operand is the neutral element. The neutral element of a sum of floats is −0, because −0 + 0 = 0",
            ),
            ("same-shape", "the result is proved to have the shape of x"),
            (
                "float-power",
                "in x¹, x is a float tensor, because runtimes compute powers of integers in double precision",
            ),
        ],
        exact: true,
        operators: WITH_NEUTRAL,
        apply: neutral,
    },
    Rule {
        name: "decided-where",
        law: "Where(true, x, y) = x, Where(false, x, y) = y, Where(c, x, x) = x",
        sentence: "Replaces a Where with a constant condition by the selected operand.",
        premises: &[
            (
                "decided",
                "all elements of the condition c are proved to have the same known value, or x and y are the same value",
            ),
            (
                "sign-of-zero",
                "if c is true, x is not a float tensor, because ONNX Runtime's Where replaces −0 in x by 0",
            ),
            ("same-elements", "the result is the selected operand, broadcast to additional axes of size 1 at most"),
        ],
        exact: true,
        operators: &["Where"],
        apply: decided_where,
    },
    Rule {
        name: "comparison-of-casts",
        law: "float(a) < float(b) = a < b, likewise ≤, >, ≥ and =, where no integer is rounded, or b is a constant below 2^p (p digits of the float type)",
        sentence: "Compares integers directly, instead of casting the integers to floats and comparing the floats.",
        premises: &[
            (
                "not-rounded",
                "the casts round neither a nor b. Alternatively, one of a and b is a constant below 2^p, so that rounding the other operand cannot change the order",
            ),
            ("only-reader", "the results of both casts have no other consumer"),
            ("takes-integers", "the comparison operator accepts integers in the model's operator set"),
        ],
        exact: true,
        operators: &["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"],
        apply: comparison_of_casts,
    },
];

/// `f(x, e) = x` where `e` is the neutral element of `f`, and `f(e, x) = x` if `f` commutes (`x + 0`, `x · 1`, `x ∧ true`; see the trait
/// `neutral`). Broadcasting must not change the shape of `x`.
fn neutral(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (output, &[Some(a), Some(b)]) = (node.output(0).ok_or(Miss::ROOT)?, node.inputs()) else {
        return Err(Miss::ROOT);
    };
    let traits = traits_of(place.model, node);
    let neutral = traits.neutral.ok_or(Miss::ROOT)?;
    let pairs: &[(ValueId, ValueId)] = if traits.commutes == Commutes::Always { &[(a, b), (b, a)] } else { &[(a, b)] };
    let mut miss = miss!("neutral");
    for &(value, other) in pairs {
        let Some(dtype) = place.dtype(value).filter(|dtype| place.dtype(output) == Some(*dtype)) else { continue };
        let is_neutral = index::uniform(place, other).is_some_and(|number| (neutral.is)(dtype, &number));
        if !is_neutral {
            if node.is("Pow") && dtype.is_integer() {
                miss = miss!("float-power").of(value);
            }
            continue;
        }
        match prove(place.compare_shapes(value, output), miss!("same-shape").of(value)) {
            Ok(()) => return place.forward(value),
            Err(other) => miss = other,
        }
    }
    Err(miss)
}

/// `Where(true, x, y) = x`, `Where(false, x, y) = y`, `Where(c, x, x) = x`, bit for bit.
fn decided_where(place: &Place<'_>) -> Result<Edit, Miss> {
    let choice = choice(place)?;
    ensure(!choice.may_lose_sign, miss!("sign-of-zero").of(choice.value))?;
    choice.instead(place)
}

/// The operand that a decided Where selects.
struct Choice {
    value: ValueId,
    /// `true` if ONNX Runtime's kernel turns its −0 into 0.
    may_lose_sign: bool,
}

impl Choice {
    /// Replaces the Where by the selected operand.
    fn instead(&self, place: &Place<'_>) -> Result<Edit, Miss> {
        let is_alike = place.same_shape(self.value, place.result()?);
        if is_alike { place.forward(self.value) } else { place.reshape_instead(self.value) }
    }
}

/// Returns the operand that a Where selects, if the condition is decided and broadcasting adds no elements to the operand.
fn choice(place: &Place<'_>) -> Result<Choice, Miss> {
    let node = place.root()?;
    let (&[Some(condition), Some(yes), Some(no)], output) = (node.inputs(), place.result()?) else {
        return Err(Miss::ROOT);
    };
    let flag = index::uniform(place, condition).and_then(|flag| flag.bools()?.first().copied());
    let takes_yes = yes == no || flag.ok_or(miss!("decided").of(condition))?;
    let value = if takes_yes { yes } else { no };
    let is_alike = place.same_but_ones(place.dims(value)?, place.dims(output)?);
    ensure(is_alike, miss!("same-elements").of(value))?;
    let dtype = place.dtype(value).ok_or(miss!("same-elements").of(value))?;
    let has_sign = !matches!(dtype, DType::String | DType::Bool) && !dtype.is_integer();
    Ok(Choice { value, may_lose_sign: takes_yes && has_sign })
}

/// Compares integers directly instead of their casts to floats, if the casts represent them exactly.
fn comparison_of_casts(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
    let is_bounded = |value: ValueId| place.constant(value).is_some_and(has_whole_numbers);
    let casts = [a, b].into_iter().filter(|&value| place.producer(value, "Cast").is_some());
    for cast in casts {
        ensure(place.model.is_read_only_by(cast, &[place.id]), miss!("only-reader").of(cast))?;
    }
    let (first, second) = (cast_integers(place, a, is_bounded(b)), cast_integers(place, b, is_bounded(a)));
    let dtype = place.dtype(first.or(second).ok_or(miss!("not-rounded"))?).ok_or(miss!("not-rounded"))?;
    let takes = traits_of(place.model, node).pointwise.ok_or(miss!("takes-integers"))?.takes(place.opset, dtype);
    let mut edit = place.begin()?;
    let mut operands = Vec::with_capacity(2);
    for (value, cast) in [(a, first), (b, second)] {
        operands.push(match cast {
            Some(integers) if place.dtype(integers) == Some(dtype) => Some(integers),
            Some(_) => return Err(miss!("not-rounded").of(value)),
            None => Some(
                edit.constant(
                    value,
                    "integers",
                    integers_of(place.constant(value).ok_or(miss!("not-rounded").of(value))?, dtype)
                        .ok_or(miss!("not-rounded").of(value))?,
                ),
            ),
        });
    }
    let comparison = NewNode { inputs: operands, ..NewNode::like(node) };
    ensure(takes, miss!("takes-integers"))?;
    place.instead(edit, comparison)
}

/// Returns the integers that a value is cast from, if no other node reads the value, and either `may_round` is set or each integer is proved to
/// be represented exactly.
fn cast_integers(place: &Place<'_>, value: ValueId, may_round: bool) -> Option<ValueId> {
    let (_, node) = place.producer(value, "Cast")?;
    let integers = node.input(0)?;
    let is_plain = matches!(place.dtype(integers)?, DType::Int32 | DType::Int64);
    if is_plain && may_round && place.model.is_read_only_by(value, &[place.id]) {
        return Some(integers);
    }
    let floats = place.fact(value)?.elements()?;
    let ints = place.fact(integers)?.ints()?;
    let held = floats.iter().zip(&ints).all(|(float, int)| match float {
        Scalar::Real { num, den: 1 } => num == int,
        Scalar::Float(float) => int.as_const().is_some_and(|int| int as f64 == *float),
        _ => false,
    });
    (is_plain && held && floats.len() == ints.len() && place.model.is_read_only_by(value, &[place.id]))
        .then_some(integers)
}

/// Returns `true` if all elements of a float tensor are whole numbers below 2^p, where p is the number of binary digits of the type. Each
/// whole number up to 2^p is represented exactly and rounding is monotone, so that no other integer is rounded to or across such an element.
fn has_whole_numbers(tensor: &Tensor) -> bool {
    let digits = match tensor.dtype() {
        DType::Double => 53,
        DType::Float => 24,
        DType::Float16 => 11,
        DType::Bfloat16 => 8,
        _ => return false,
    };
    let most = 2f64.powi(digits);
    tensor.every_f64(|x| x.fract() == 0.0 && x.abs() < most) == Some(true)
}

/// Returns whole numbers as integers of a type.
fn integers_of(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    let numbers = has_whole_numbers(tensor).then(|| tensor.to_f64s())??;
    match dtype {
        DType::Int32 => Tensor::from_vec(tensor.shape(), numbers.into_iter().map(|x| x as i32).collect()).ok(),
        DType::Int64 => Tensor::from_vec(tensor.shape(), numbers.into_iter().map(|x| x as i64).collect()).ok(),
        _ => None,
    }
}
