//! Initial states of recurrent operators.
//!
//! Law: an initial state that is left out is zero. Exporters compute zeros of the batch's size for it.

use super::{Place, Rule};
use crate::ir::{Edit, Node, ValueId};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "zero-state",
    law: "LSTM(x, W, R, B, lens, 0, 0) = LSTM(x, W, R, B, lens)",
    sentence: "An initial state of zeros is left out.",
    premises: &[("zero", "every element of the state is +0, as far as the nodes above tell")],
    exact: true,
    operators: &["LSTM", "GRU", "RNN"],
    apply: zero_state,
}];

/// How many nodes are looked at above an operand.
const REACH: usize = 32;

/// Leaves out `initial_h` and `initial_c` where they are zero. That they have the shape they must have, a run that gives a
/// result has seen.
fn zero_state(place: &Place<'_>) -> Option<Edit> {
    let slot = [5, 6].into_iter().find(|&slot| place.input(slot).is_some_and(|state| is_zero(place, state)))?;
    let mut edit = place.edit()?;
    edit.rewire.push((place.id, slot, None));
    Some(edit)
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
        match node.and_then(zero_if) {
            Some(operands) => open.extend(operands),
            None => return false,
        }
    }
    false
}

/// The values that make the first result of a node zero if they are.
fn zero_if(node: &Node) -> Option<Vec<ValueId>> {
    if !node.canonical_domain().is_empty() {
        return None;
    }
    match node.op_type.as_str() {
        "ConstantOfShape" => match node.attribute("value") {
            None => Some(Vec::new()),
            Some(_) => is_zero_tensor(node.tensor("value")?).then(Vec::new),
        },
        "Slice" | "Expand" | "Tile" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" | "Transpose" | "Identity"
        | "Cast" | "Gather" => Some(vec![node.input(0)?]),
        "Concat" => node.inputs().iter().copied().collect(),
        _ => None,
    }
}

fn is_zero_tensor(tensor: &Tensor) -> bool {
    let positive =
        |numbers: Vec<f64>| numbers.first().is_some_and(|number| *number == 0.0 && number.is_sign_positive());
    tensor.uniform().and_then(|zero| zero.to_f64s()).is_some_and(positive)
}
