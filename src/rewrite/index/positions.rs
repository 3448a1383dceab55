//! Counting tensors in a comparable form: equal forms are equal tensors.

use super::counting::counting;
use crate::dim::Dim;
use crate::ir::ValueId;
use crate::rewrite::place::Place;
use crate::tensor::DType;

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

/// Returns the counting form of a tensor, if all its elements are proved to count.
pub fn positions(place: &Place<'_>, value: ValueId) -> Option<Positions> {
    let dtype = place.dtype(value)?;
    let count = counting(place, value)?;
    Some(Positions { dtype, shape: count.shape, offset: count.offset, steps: count.steps })
}
