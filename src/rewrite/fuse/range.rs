//! Bounds of the elements of a value.

use crate::ir::ValueId;
use crate::ops::traits::ValueRange;
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// The most nodes that are followed upwards.
const REACH: usize = 16;

/// Returns the largest finite number of a type.
pub(super) fn last_finite(dtype: DType) -> Option<f64> {
    match dtype {
        DType::Float => Some(f32::MAX.into()),
        DType::Double => Some(f64::MAX),
        DType::Float16 => Some(65504.0),
        _ => None,
    }
}

/// Returns the bounds of the elements of a floating-point value, for all inputs of the model.
pub(super) fn range(place: &Place<'_>, value: ValueId) -> Option<ValueRange> {
    range_above(place, value, REACH)
}

fn range_above(place: &Place<'_>, value: ValueId, reach: usize) -> Option<ValueRange> {
    last_finite(place.dtype(value)?)?;
    let reach = reach.checked_sub(1)?;
    let view = place.view(place.model.value(value).producer()?)?;
    let operand = |slot: usize| range_above(place, view.input(slot)?, reach);
    let traits = view.traits();
    match traits.range {
        Some(range) => range(&view, &operand),
        None if traits.moves_first() => operand(0),
        None => None,
    }
}
