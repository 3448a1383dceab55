//! Positions as values that can be compared: two tensors that count alike are one.

use super::counting::counting;
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};
use crate::rewrite::Place;
use crate::tensor::{DType, Tensor};

/// The most elements of a tensor that is written out because its size turns out to be known. Longer ones take more bytes than the nodes.
const MAX_WRITTEN: usize = 64;

/// An integer (or boolean, as 0 and 1) tensor `t` with `t[i₀, i₁, …] = offset + Σ steps[k] · iₖ`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Positions {
    /// The element type.
    pub dtype: DType,
    /// The size of each axis.
    pub shape: Vec<Dim>,
    /// The element at the origin.
    pub offset: Dim,
    /// The step along each axis.
    pub steps: Vec<Dim>,
}

/// What a tensor counts, if all that is in it is proved to count.
pub fn positions(place: &Place<'_>, value: ValueId) -> Option<Positions> {
    let dtype = place.dtype(value)?;
    let count = counting(place, value)?;
    Some(Positions { dtype, shape: count.shape, offset: count.offset, steps: count.steps })
}

/// The first few of many positions are numbers, however many there are: `Range(0, n, 1)[: 4] = [0, 1, 2, 3]` where `n ≥ 4`.
pub(super) fn written(place: &Place<'_>) -> Option<Edit> {
    let output = place.output(0)?;
    let sizes = place.fact(output)?.static_shape()?;
    let len = place.fact(output)?.static_len().filter(|len| (1..=MAX_WRITTEN).contains(len))?;
    if place.model.is_named(output) || place.dtype(output)? != DType::Int64 || place.constant(output).is_some() {
        return None;
    }
    let count = counting(place, output)?;
    let offset = count.offset.as_const()?;
    let steps: Vec<i64> = count.steps.iter().map(Dim::as_const).collect::<Option<_>>()?;
    let mut numbers = Vec::with_capacity(len);
    for index in 0..len {
        let (mut rest, mut number) = (index, offset);
        for (&size, step) in sizes.iter().zip(&steps).rev() {
            let along = i64::try_from(rest.checked_rem(size)?).ok()?;
            number = number.checked_add(step.checked_mul(along)?)?;
            rest = rest.checked_div(size)?;
        }
        numbers.push(number);
    }
    let mut edit = place.edit()?.removing(place.id);
    let value = edit.constant(output, "positions", Tensor::from_vec(&sizes, numbers).ok()?);
    edit.rewire.extend(place.model.users(output).into_iter().map(|(reader, slot)| (reader, slot, Some(value))));
    Some(edit)
}
