//! Arithmetic and logic with a neutral element, selections that are decided, and pairs that cancel.

use super::{Place, Rule, index};
use crate::ir::{Edit, NodeId, ValueId};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "neutral-element",
        law: "x + 0 = x − 0 = x · 1 = x / 1 = x¹ = x ∧ true = x ∨ false = x",
        sentence: "Arithmetic and logic with a neutral element goes.",
        premises: &[
            (
                "neutral",
                "the other operand is the neutral element everywhere; of a sum of floats that is −0, for −0 + 0 is 0",
            ),
            ("same-shape", "the result has the shape of x"),
            ("float-power", "what is raised to the power 1 is a float: runtimes compute powers of integers in doubles"),
            (
                "name-is-free",
                "the result is no graph output, or the node of the operand can compute it under that name",
            ),
        ],
        exact: true,
        operators: &["Add", "Sub", "Mul", "Div", "Pow", "And", "Or"],
        apply: neutral,
    },
    Rule {
        name: "zero-before-softmax",
        law: "f(x + 0) = f(x) for f in Softmax, LogSoftmax, Exp, Sigmoid",
        sentence: "A zero added before an exponential goes.",
        premises: &[
            (
                "blind-readers",
                "every reader is one of these, which gives the same for −0 and 0; the sum is no graph output",
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
        sentence: "A selection that is decided is what is selected.",
        premises: &[
            ("decided", "the condition is one known flag everywhere, or both choices are the same value"),
            ("same-shape", "the result has the shape of what is selected"),
            (
                "name-is-free",
                "the result is no graph output, or the node of the operand can compute it under that name",
            ),
        ],
        exact: true,
        operators: &["Where"],
        apply: decided_where,
    },
    Rule {
        name: "double-not",
        law: "¬¬x = x, −−x = x",
        sentence: "Two negations cancel.",
        premises: &[
            ("same-operator", "both nodes are the same operator"),
            (
                "name-is-free",
                "the result is no graph output, or the node of the operand can compute it under that name",
            ),
        ],
        exact: true,
        operators: &["Not", "Neg"],
        apply: double,
    },
    Rule {
        name: "idempotent",
        law: "f(f(x)) = f(x) for f in Relu, Abs, Floor, Ceil, Round, Sign",
        sentence: "What changes nothing the second time is done once.",
        premises: &[
            ("same-operator", "both nodes are the same operator"),
            (
                "name-is-free",
                "the result is no graph output, or the node of the operand can compute it under that name",
            ),
        ],
        exact: true,
        operators: &["Relu", "Abs", "Floor", "Ceil", "Round", "Sign"],
        apply: idempotent,
    },
];

/// `x + 0 = x` (integers; for floats only `-0`, since `-0 + 0` is `0`), `x − 0 = x`, `x · 1 = x`, `x / 1 = x`, `x¹ = x` (floats), `x ∧ true = x`,
/// `x ∨ false = x`: when broadcasting does not change the shape of `x`.
fn neutral(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (operator, output) = (node.op_type.clone(), node.output(0)?);
    let (a, b) = (node.input(0)?, node.input(1)?);
    let commutes = matches!(operator.as_str(), "Add" | "Mul" | "And" | "Or");
    let pairs: &[(ValueId, ValueId)] = if commutes { &[(a, b), (b, a)] } else { &[(a, b)] };
    for &(value, other) in pairs {
        let is_neutral =
            index::uniform(place, other).is_some_and(|number| is_neutral(&operator, place.dtype(value), &number));
        if is_neutral
            && place.same_shape(value, output)
            && place.dtype(value).is_some()
            && place.dtype(value) == place.dtype(output)
        {
            return place.forward_freely(value);
        }
    }
    None
}

/// `x + 0` is `x` but for `-0`, which becomes `0`; to what looks at `x` through an exponential both are one.
fn zero_before_softmax(place: &Place<'_>) -> Option<Edit> {
    const EXPONENTIALS: [&str; 4] = ["Softmax", "LogSoftmax", "Exp", "Sigmoid"];
    let node = place.node()?;
    let (a, b, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let is_blind = |(id, _): &(NodeId, usize)| {
        let node = place.model.node(*id);
        node.is_some_and(|node| EXPONENTIALS.iter().any(|operator| node.is(operator)))
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
    place.forward_freely(value)
}

/// Whether `number` beside a value of that type leaves it as it is.
fn is_neutral(operator: &str, value: Option<DType>, one: &Tensor) -> bool {
    match (operator, one.dtype()) {
        ("And", DType::Bool) => one.to_i64s().is_some_and(|v| v == [1]),
        ("Or", DType::Bool) => one.to_i64s().is_some_and(|v| v == [0]),
        ("Add", dtype) if dtype.is_float() => {
            one.to_f64s().is_some_and(|v| v.first().is_some_and(|v| *v == 0.0 && v.is_sign_negative()))
        }
        ("Sub", dtype) if dtype.is_float() => {
            one.to_f64s().is_some_and(|v| v.first().is_some_and(|v| *v == 0.0 && v.is_sign_positive()))
        }
        ("Add" | "Sub", dtype) if dtype.is_integer() => one.to_i64s().is_some_and(|v| v == [0]),
        ("Mul" | "Div", dtype) if dtype.is_float() || dtype.is_integer() => one.to_f64s().is_some_and(|v| v == [1.0]),
        // Powers of integers go through doubles in ONNX Runtime, which do not hold all of them.
        ("Pow", _) => value.is_some_and(DType::is_float) && one.to_f64s().is_some_and(|v| v == [1.0]),
        _ => false,
    }
}

/// `Where(true, x, y) = x`, `Where(false, x, y) = y`, `Where(c, x, x) = x`: when broadcasting does not change the shape.
fn decided_where(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (condition, yes, no, output) = (node.input(0)?, node.input(1)?, node.input(2)?, node.output(0)?);
    let chosen = if yes == no {
        yes
    } else {
        let flag = index::uniform(place, condition)?.to_i64s()?;
        if flag == [1] { yes } else { no }
    };
    if !place.same_shape(chosen, output) {
        return None;
    }
    place.forward_freely(chosen)
}

/// `¬¬x = x`, `−−x = x`.
fn double(place: &Place<'_>) -> Option<Edit> {
    let operator = place.node()?.op_type.clone();
    let (_, inner) = place.producer(place.input(0)?, &operator)?;
    let value = inner.input(0)?;
    place.forward_freely(value)
}

/// `f(f(x)) = f(x)`.
fn idempotent(place: &Place<'_>) -> Option<Edit> {
    let operator = place.node()?.op_type.clone();
    let value = place.input(0)?;
    place.producer(value, &operator)?;
    place.forward_freely(value)
}
