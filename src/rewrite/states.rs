//! Initial states of recurrent operators.
//!
//! Law: an initial state that is left out is zero. Exporters compute zeros of the batch's size for it.
//!
//! Runtimes leave out the product with a state that is not there, and `0·∞` is NaN: so what multiplies the state has to be finite.

use super::{Place, Rule};
use crate::ir::{Edit, Node, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "zero-state",
    law: "LSTM(x, W, R, B, lens, 0, 0) = LSTM(x, W, R, B, lens)",
    sentence: "Removes an initial state of zeros.",
    premises: &[
        ("zero", "every element of the state is proved to be +0"),
        ("finite", "the weights that multiply the state are constant and finite"),
    ],
    exact: true,
    operators: &["LSTM", "GRU", "RNN"],
    apply: zero_state,
}];

/// How many nodes are looked at above an operand.
const REACH: usize = 32;

/// Leaves out `initial_h` and `initial_c` where they are zero. That they have the shape they must have, a run that gives a
/// result has seen.
fn zero_state(place: &Place<'_>) -> Option<Edit> {
    // R multiplies `initial_h`, the peepholes `initial_c`.
    let states = [(5, 2), (6, 7)];
    let (slot, _) = states.into_iter().find(|&(slot, weights)| {
        place.input(slot).is_some_and(|state| is_zero(place, state)) && is_finite(place, place.input(weights))
    })?;
    let mut edit = place.edit()?;
    edit.rewire.push((place.id, slot, None));
    Some(edit)
}

/// Whether weights, if there are any, are constant and have neither infinities nor NaN.
fn is_finite(place: &Place<'_>, weights: Option<ValueId>) -> bool {
    let finite =
        |tensor: &Tensor| tensor.to_f64s().is_some_and(|numbers| numbers.iter().all(|number| number.is_finite()));
    weights.is_none_or(|weights| place.constant(weights).is_some_and(finite))
}

/// Whether every element of a value is a positive zero, as far as the nodes above show it.
fn is_zero(place: &Place<'_>, value: ValueId) -> bool {
    let mut open = vec![value];
    for _ in 0..REACH {
        let Some(value) = open.pop() else { return true };
        if let Some(tensor) = place.constant(value) {
            if !is_zero_tensor(tensor) {
                return false;
            }
            continue;
        }
        let node = place.model.value(value).producer().and_then(|id| place.model.node(id));
        match node.and_then(|node| zero_if(place, node)) {
            Some(operands) => open.extend(operands),
            None => return false,
        }
    }
    false
}

/// The values that make the first result of a node zero if they are.
fn zero_if(place: &Place<'_>, node: &Node) -> Option<Vec<ValueId>> {
    if !node.canonical_domain().is_empty() {
        return None;
    }
    let traits = traits_of(place.model, node);
    if node.is("ConstantOfShape") {
        return match node.attribute("value") {
            None => Some(Vec::new()),
            Some(_) => is_zero_tensor(node.tensor("value")?).then(Vec::new),
        };
    }
    if traits.moves == Some(Movement::Join) {
        return node.inputs().iter().copied().collect();
    }
    (traits.moves_first() || node.is("Cast")).then(|| node.input(0).into_iter().collect())
}

fn is_zero_tensor(tensor: &Tensor) -> bool {
    let positive =
        |numbers: Vec<f64>| numbers.first().is_some_and(|number| *number == 0.0 && number.is_sign_positive());
    tensor.uniform().and_then(|zero| zero.to_f64s()).is_some_and(positive)
}
