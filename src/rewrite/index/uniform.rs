//! Finds uniform tensors, of any size.

use std::cell::Cell;

use super::counting::counting;
use crate::ir::ValueId;
use crate::rewrite::limits::{DEPTH, NODES};
use crate::rewrite::place::Place;
use crate::tensor::{DType, Tensor};

/// Returns the number (of rank 0, in the value's type) that every element of a value equals. An empty tensor counts as uniform for any
/// number.
pub(in crate::rewrite) fn uniform(place: &Place<'_>, value: ValueId) -> Option<Tensor> {
    follow(place, value, DEPTH, &Cell::new(NODES))
}

fn follow(place: &Place<'_>, value: ValueId, depth: usize, steps: &Cell<usize>) -> Option<Tensor> {
    if let Some(tensor) = place.constant(value) {
        return tensor.uniform();
    }
    let view = place.view(place.model.value(value).producer()?)?;
    let traits = view.traits();
    if let (Some(depth), Some(left)) = (depth.checked_sub(1), steps.get().checked_sub(1)) {
        steps.set(left);
        let operand = |slot: usize| follow(place, view.input(slot)?, depth, steps);
        if let Some(uniform) = traits.uniform {
            return uniform(&view, &operand);
        }
        // Movements keep the number.
        if traits.moves_first() {
            return operand(0);
        }
    }
    if place.dtype(value)? != DType::Bool {
        return None;
    }
    let flag = counting(place, value).filter(super::counting::Counting::is_splat)?.offset.as_const()?;
    Tensor::from_bools(&[], &[flag != 0]).ok()
}
