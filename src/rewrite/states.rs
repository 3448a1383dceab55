//! Initial states of recurrent operators.
//!
//! Law: an absent initial state is zero. Exporters write a tensor of zeros of the batch's size.
//!
//! Runtimes leave out the product with an absent state, and `0·∞` is NaN: so the weights that multiply the state have to be finite.
//!
//! Some consumers need the operand, so the rule keeps it where they would fail (measured):
//!
//! | consumer | without an initial state |
//! | --- | --- |
//! | tract 0.23 | ends its process if the size of the batch is open, allocates zeros if it is a number |
//! | OpenCV 4, and the classic engine of 5 | refuses a GRU of fewer than six operands, allocates zeros for an LSTM |

use super::miss::{Miss, ensure, first_of};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Edit, ValueId};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "zero-state",
    law: "LSTM(x, W, R, B, lens, 0, 0) = LSTM(x, W, R, B, lens)",
    sentence: "Removes a constant initial state of zeros from a recurrent operator.",
    premises: &[
        ("zero", "the initial state is a constant with all elements +0"),
        ("finite", "the weights R, which multiply the state, are constant and finite, because 0·∞ is NaN"),
        (
            "known-batch",
            "the batch size is a constant, because some runtimes cannot create a missing initial state for a dynamic batch size",
        ),
    ],
    exact: true,
    operators: &["LSTM", "RNN"],
    apply: zero_state,
}];

/// Leaves out `initial_h` and `initial_c` where they are zero. That they have the shape they must have, a run that gives a
/// result has seen.
fn zero_state(place: &Place<'_>) -> Result<Edit, Miss> {
    let batch = usize::from(place.root()?.int("layout", 0).ok_or(Miss::ROOT)? == 0);
    place.dims(place.operand(0)?)?.get(batch).ok_or(miss!("known-batch"))?.as_const().ok_or(miss!("known-batch"))?;
    let is_zero = |state: ValueId| place.constant(state).is_some_and(is_zero_tensor);
    // R multiplies `initial_h`, the peepholes `initial_c`.
    let states = [(5, 2), (6, 7)];
    let zeros = states.into_iter().filter(|&(slot, _)| place.input(slot).is_some_and(is_zero));
    let found =
        zeros.map(|(slot, weights)| ensure(is_finite(place, place.input(weights)), miss!("finite")).map(|()| slot));
    let slot = first_of(found).map_err(|miss| if miss.is_root() { miss!("zero") } else { miss })?;
    let mut edit = place.begin()?;
    edit.rewire.push((place.id, slot, None));
    Ok(edit)
}

/// Returns `true` if weights, if there are any, are constant and have neither infinities nor NaN.
fn is_finite(place: &Place<'_>, weights: Option<ValueId>) -> bool {
    let finite = |tensor: &Tensor| tensor.every_f64(f64::is_finite) == Some(true);
    weights.is_none_or(|weights| place.constant(weights).is_some_and(finite))
}

fn is_zero_tensor(tensor: &Tensor) -> bool {
    let positive =
        |numbers: Vec<f64>| numbers.first().is_some_and(|number| *number == 0.0 && number.is_sign_positive());
    tensor.uniform().and_then(|zero| zero.to_f64s()).is_some_and(positive)
}
