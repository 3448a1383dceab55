//! Arithmetic and logic with a neutral element, selections that are decided, and pairs that cancel.

use super::{Place, Rule, index};
use crate::ir::{Edit, NodeId, ValueId};
use crate::ops::traits::{IDEMPOTENT, INVOLUTIONS, WITH_NEUTRAL, traits_of};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "neutral-element", operators: WITH_NEUTRAL, exact: true, apply: neutral },
    Rule { name: "zero-before-softmax", operators: &["Add"], exact: true, apply: zero_before_softmax },
    Rule { name: "decided-where", operators: &["Where"], exact: true, apply: decided_where },
    Rule { name: "double-not", operators: INVOLUTIONS, exact: true, apply: double },
    Rule { name: "idempotent", operators: IDEMPOTENT, exact: true, apply: idempotent },
];

/// `f(x, e) = x` where `e` is the operator's neutral element, and `f(e, x) = x` where it commutes (`x + 0`, `x · 1`, `x ∧ true`; see the trait
/// `neutral`): when broadcasting does not change the shape of `x`.
fn neutral(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (output, &[Some(a), Some(b)]) = (node.output(0)?, node.inputs()) else { return None };
    let neutral = traits_of(place.model, node).neutral?;
    let pairs: &[(ValueId, ValueId)] = if neutral.commutes { &[(a, b), (b, a)] } else { &[(a, b)] };
    for &(value, other) in pairs {
        let Some(dtype) = place.dtype(value).filter(|dtype| place.dtype(output) == Some(*dtype)) else { continue };
        let is_neutral = index::uniform(place, other).is_some_and(|number| (neutral.is)(dtype, &number));
        if is_neutral && place.same_shape(value, output) {
            return forward(place, "neutral-element", value);
        }
    }
    None
}

/// `x + 0` is `x` but for `-0`, which becomes `0`; to what looks at `x` through an exponential both are one.
fn zero_before_softmax(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (a, b, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let is_blind = |(id, _): &(NodeId, usize)| {
        let node = place.model.node(*id);
        node.is_some_and(|node| traits_of(place.model, node).ignores_zero_sign)
    };
    if place.model.is_output(output)
        || place.model.value(output).pinned
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
    forward(place, "zero-before-softmax", value)
}

fn forward(place: &Place<'_>, rule: &'static str, value: ValueId) -> Option<Edit> {
    let output = place.output(0)?;
    let named = place.model.is_output(output) || place.model.value(output).pinned;
    // An output's name needs a node to compute it; Identity would be no gain over the node that is there.
    let graph = place.node()?.graph();
    let producer = place.model.value(value).producer().and_then(|id| place.model.node(id));
    let takes_over = producer.is_some_and(|node| node.graph() == graph)
        && !place.model.is_output(value)
        && !place.model.value(value).pinned;
    if named && !takes_over { None } else { place.forward(rule, value) }
}

/// `Where(true, x, y) = x`, `Where(false, x, y) = y`, `Where(c, x, x) = x`: when broadcasting does not change the shape.
fn decided_where(place: &mut Place<'_>) -> Option<Edit> {
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
    forward(place, "decided-where", chosen)
}

/// `¬¬x = x`, `−−x = x`.
fn double(place: &mut Place<'_>) -> Option<Edit> {
    let operator = place.node()?.op_type.clone();
    let (_, inner) = place.producer(place.input(0)?, &operator)?;
    let value = inner.input(0)?;
    forward(place, "double-not", value)
}

/// `f(f(x)) = f(x)`.
fn idempotent(place: &mut Place<'_>) -> Option<Edit> {
    let operator = place.node()?.op_type.clone();
    let value = place.input(0)?;
    place.producer(value, &operator)?;
    forward(place, "idempotent", value)
}
