//! Arithmetic and logic with a neutral element, selections that are decided, and pairs that cancel.

use super::{Place, Rule, index};
use crate::ir::{Edit, NewNode, NodeId, Scalar, ValueId};
use crate::ops::traits::{Commutes, IDEMPOTENT, INVOLUTIONS, WITH_NEUTRAL, traits_of};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "neutral-element",
        law: "x + 0 = x − 0 = x · 1 = x / 1 = x¹ = x ∧ true = x ∨ false = x",
        sentence: "Removes arithmetic and logic with a neutral element.",
        premises: &[
            (
                "neutral",
                "the other operand is the neutral element everywhere; of a sum of floats that is −0, for −0 + 0 is 0",
            ),
            ("same-shape", "the result has the shape of x"),
            (
                "float-power",
                "the base of the power 1 is a float: runtimes compute powers of integers in double precision",
            ),
        ],
        exact: true,
        operators: WITH_NEUTRAL,
        apply: neutral,
    },
    Rule {
        name: "zero-before-softmax",
        law: "f(x + 0) = f(x) for f in Softmax, LogSoftmax, Exp, Sigmoid",
        sentence: "Removes the addition of a zero before an exponential.",
        premises: &[
            (
                "blind-readers",
                "every consumer is one of these, with equal results for −0 and 0; the sum is not a graph output",
            ),
            ("zero", "the other operand is 0 everywhere"),
            ("same-shape", "the sum has the shape of x"),
        ],
        exact: true,
        operators: &["Add"],
        apply: zero_before_softmax,
    },
    Rule {
        name: "decided-where",
        law: "Where(true, x, y) = x, Where(false, x, y) = y, Where(c, x, x) = x",
        sentence: "Replaces a Where with a constant condition by the selected operand.",
        premises: &[
            (
                "decided",
                "the condition is one known flag everywhere, computed of a few numbers at most, or both choices are the same value",
            ),
            (
                "sign-of-zero",
                "it is not a float in the true branch of a Where, because ONNX Runtime's kernel returns 0 for −0 there",
            ),
            ("same-elements", "the result has the elements of the selected operand, and further axes only of size 1"),
        ],
        exact: true,
        operators: &["Where"],
        apply: decided_where,
    },
    Rule {
        name: "decided-where-of-floats",
        law: "Where(true, x, y) = x, Where(c, x, x) = x",
        sentence: "Replaces a Where of floats with a constant condition by the selected operand.",
        premises: &[
            ("decided", "the condition is true everywhere, or both choices are the same value"),
            ("float", "it is a float, of which only the sign of zero may be another"),
            ("same-elements", "the result has the elements of the selected operand, and further axes only of size 1"),
        ],
        exact: false,
        operators: &["Where"],
        apply: decided_where_of_floats,
    },
    Rule {
        name: "double-not",
        law: "¬¬x = x, −−x = x",
        sentence: "Removes pairs of negations.",
        premises: &[("same-operator", "both nodes are the same operator")],
        exact: true,
        operators: INVOLUTIONS,
        apply: double,
    },
    Rule {
        name: "negated-difference",
        law: "−(a − b) = b − a, of integers",
        sentence: "Replaces a negated difference by the difference with swapped operands.",
        premises: &[
            ("integers", "the operands are integers, which wrap identically: a float 0 could become −0"),
            ("only-reader", "the difference has no other consumer"),
        ],
        exact: true,
        operators: &["Neg"],
        apply: negated_difference,
    },
    Rule {
        name: "idempotent",
        law: "f(f(x)) = f(x) for f in Relu, Abs, Floor, Ceil, Round, Sign",
        sentence: "Removes the second of two identical idempotent operators.",
        premises: &[("same-operator", "both nodes are the same operator")],
        exact: true,
        operators: IDEMPOTENT,
        apply: idempotent,
    },
    Rule {
        name: "negated-comparison",
        law: "¬(a < b) = a ≥ b, ¬(a > b) = a ≤ b, ¬(a ≤ b) = a > b, ¬(a ≥ b) = a < b, of integers",
        sentence: "Replaces a negated comparison by the opposite comparison.",
        premises: &[
            (
                "total-order",
                "the operands are integers of 32 or 64 bits: a NaN is neither less nor greater, and runtimes lack other types",
            ),
            ("only-reader", "the comparison has no other consumer"),
            ("operator-is-there", "the operator set has the opposite comparison"),
        ],
        exact: true,
        operators: &["Not"],
        apply: negated_comparison,
    },
    Rule {
        name: "comparison-of-casts",
        law: "float(a) < float(b) = a < b, likewise ≤, >, ≥ and =, where no integer is rounded, or b is a constant below 2^p (p digits of the float type)",
        sentence: "Compares sizes as integers instead of floats.",
        premises: &[
            (
                "not-rounded",
                "the float type represents both integers exactly, or one of them is a constant below 2^p, which no other integer is rounded to or across",
            ),
            ("only-reader", "the floats have no other consumer"),
            ("takes-integers", "the comparison supports integers in this operator set"),
        ],
        exact: true,
        operators: &["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"],
        apply: comparison_of_casts,
    },
];

/// `f(x, e) = x` where `e` is the operator's neutral element, and `f(e, x) = x` where it commutes (`x + 0`, `x · 1`, `x ∧ true`; see the trait
/// `neutral`): when broadcasting does not change the shape of `x`.
fn neutral(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (output, &[Some(a), Some(b)]) = (node.output(0)?, node.inputs()) else { return None };
    let traits = traits_of(place.model, node);
    let neutral = traits.neutral?;
    let pairs: &[(ValueId, ValueId)] = if traits.commutes == Commutes::Always { &[(a, b), (b, a)] } else { &[(a, b)] };
    for &(value, other) in pairs {
        let Some(dtype) = place.dtype(value).filter(|dtype| place.dtype(output) == Some(*dtype)) else { continue };
        let is_neutral = index::uniform(place, other).is_some_and(|number| (neutral.is)(dtype, &number));
        if is_neutral && place.same_shape(value, output) {
            return place.forward(value);
        }
    }
    None
}

/// `x + 0` is `x` but for `-0`, which becomes `0`; to what looks at `x` through an exponential both are one.
fn zero_before_softmax(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (a, b, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let is_blind = |(id, _): &(NodeId, usize)| {
        let node = place.model.node(*id);
        node.is_some_and(|node| traits_of(place.model, node).ignores_zero_sign)
    };
    if place.model.is_named(output)
        || !place.dtype(output)?.is_float()
        || !place.model.users(output).iter().all(is_blind)
    {
        return None;
    }
    let is_zero = |value: ValueId| {
        let number = index::uniform(place, value).and_then(|number| number.to_f64s());
        number.is_some_and(|number| number == [0.0])
    };
    let value = if is_zero(b) && place.same_shape(a, output) {
        a
    } else if is_zero(a) && place.same_shape(b, output) {
        b
    } else {
        return None;
    };
    place.forward(value)
}

/// `Where(true, x, y) = x`, `Where(false, x, y) = y`, `Where(c, x, x) = x`, bit for bit.
fn decided_where(place: &Place<'_>) -> Option<Edit> {
    let choice = choice(place)?;
    if choice.may_lose_sign { None } else { choice.instead(place) }
}

/// The same where a −0 may have become 0.
fn decided_where_of_floats(place: &Place<'_>) -> Option<Edit> {
    let choice = choice(place)?;
    if choice.may_lose_sign { choice.instead(place) } else { None }
}

/// What a Where that is decided selects.
struct Choice {
    value: ValueId,
    /// Whether ONNX Runtime's kernel makes 0 of its −0.
    may_lose_sign: bool,
}

impl Choice {
    /// What is selected, in the place of the Where.
    fn instead(&self, place: &Place<'_>) -> Option<Edit> {
        let is_alike = place.same_shape(self.value, place.output(0)?);
        if is_alike { place.forward(self.value) } else { place.reshape_instead(self.value) }
    }
}

/// What a Where selects, if that is decided and broadcasting adds no elements to it.
fn choice(place: &Place<'_>) -> Option<Choice> {
    let node = place.node()?;
    let (condition, yes, no, output) = (node.input(0)?, node.input(1)?, node.input(2)?, node.output(0)?);
    let takes_yes = yes == no || index::flag(place, condition)?;
    let value = if takes_yes { yes } else { no };
    let wide = |value| Some(place.shape(value)?.iter().filter(|dim| !dim.is_const(1)).collect::<Vec<_>>());
    let (own, whole) = (wide(value)?, wide(output)?);
    if own.len() != whole.len() || !own.iter().zip(&whole).all(|(a, b)| place.scope().eq(a, b).is_yes()) {
        return None;
    }
    let has_sign = !matches!(place.dtype(value)?, DType::String | DType::Bool) && !place.dtype(value)?.is_integer();
    Some(Choice { value, may_lose_sign: takes_yes && has_sign })
}

/// `¬¬x = x`, `−−x = x`.
fn double(place: &Place<'_>) -> Option<Edit> {
    let operator = place.node()?.op_type.clone();
    let (_, inner) = place.producer(place.input(0)?, &operator)?;
    let value = inner.input(0)?;
    place.forward(value)
}

/// `−(a − b) = b − a`.
fn negated_difference(place: &Place<'_>) -> Option<Edit> {
    let difference = place.input(0)?;
    let (id, node) = place.producer(difference, "Sub")?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    if !place.dtype(difference)?.is_integer()
        || !place.has_one_reader(difference)
        || !place.opset.arithmetic_broadcasts()
    {
        return None;
    }
    place.instead(place.edit()?.removing(id), NewNode::new("Sub", [Some(b), Some(a)]))
}

/// `¬(a < b) = a ≥ b`, and so on.
fn negated_comparison(place: &Place<'_>) -> Option<Edit> {
    const OPPOSITES: [(&str, &str); 4] = [
        ("Less", "GreaterOrEqual"),
        ("Greater", "LessOrEqual"),
        ("LessOrEqual", "Greater"),
        ("GreaterOrEqual", "Less"),
    ];
    let found = place.input(0)?;
    let of = |(operator, opposite)| place.producer(found, operator).map(|(_, node)| (node, opposite));
    let (comparison, opposite) = OPPOSITES.into_iter().find_map(of)?;
    let &[Some(a), Some(b)] = comparison.inputs() else { return None };
    let is_ordered = matches!(place.dtype(a)?, DType::Int32 | DType::Int64);
    if !is_ordered || !place.has_one_reader(found) || !place.opset.has(opposite) {
        return None;
    }
    place.instead(place.edit()?, NewNode::new(opposite, [Some(a), Some(b)]))
}

/// A comparison of integers cast to floats is one of the integers, where the floats are the very numbers.
fn comparison_of_casts(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let is_bounded = |value: ValueId| place.constant(value).is_some_and(|tensor| whole_numbers(tensor).is_some());
    let (first, second) = (cast_integers(place, a, is_bounded(b)), cast_integers(place, b, is_bounded(a)));
    let dtype = place.dtype(first.or(second)?)?;
    let takes = traits_of(place.model, node).pointwise?.takes(place.opset, dtype);
    let mut edit = place.edit()?;
    let mut operands = Vec::with_capacity(2);
    for (value, cast) in [(a, first), (b, second)] {
        operands.push(match cast {
            Some(integers) if place.dtype(integers) == Some(dtype) => Some(integers),
            Some(_) => return None,
            None => Some(edit.constant(value, "integers", integers_of(place.constant(value)?, dtype)?)),
        });
    }
    let comparison = NewNode { inputs: operands, ..NewNode::like(node) };
    takes.then(|| place.instead(edit, comparison)).flatten()
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

/// Returns the elements of a float tensor if all of them are whole numbers below 2^p, where p is the number of binary digits of the type. Each
/// whole number up to 2^p is represented exactly and rounding is monotone, so that no other integer is rounded to or across such an element.
fn whole_numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    let digits = match tensor.dtype() {
        DType::Double => 53,
        DType::Float => 24,
        DType::Float16 => 11,
        DType::Bfloat16 => 8,
        _ => return None,
    };
    let most = 2f64.powi(digits);
    tensor.to_f64s().filter(|numbers| numbers.iter().all(|x| x.fract() == 0.0 && x.abs() < most))
}

/// Returns whole numbers as integers of a type.
fn integers_of(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    let numbers = whole_numbers(tensor)?;
    match dtype {
        DType::Int32 => Tensor::from_vec(tensor.shape(), numbers.into_iter().map(|x| x as i32).collect()).ok(),
        DType::Int64 => Tensor::from_vec(tensor.shape(), numbers.into_iter().map(|x| x as i64).collect()).ok(),
        _ => None,
    }
}

/// `f(f(x)) = f(x)`.
fn idempotent(place: &Place<'_>) -> Option<Edit> {
    let operator = place.node()?.op_type.clone();
    let value = place.input(0)?;
    place.producer(value, &operator)?;
    place.forward(value)
}
