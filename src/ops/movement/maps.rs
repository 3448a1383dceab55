//! Index maps of layouts, and of operators that read or write positions which an operand holds.

use super::gather::gather_axis;
use crate::dim::Dim;
use crate::index_map::{IndexMap, MOST_ENTRIES, Undecided};
use crate::ops::traits::{Moved, NodeFacts};

/// A map, or why it is not known.
pub(in crate::ops) type MapResult = Result<Moved, Undecided>;

/// Equal elements in equal order: Reshape, Squeeze, Unsqueeze, Flatten, Identity.
pub(in crate::ops) fn layout(view: &NodeFacts<'_>, output: usize) -> MapResult {
    Ok(Moved::of_first(IndexMap::reshape(view.scope(), view.dims(0)?, view.result_dims(output)?)))
}

/// The integers of a constant operand.
pub(super) fn constant_ints(view: &NodeFacts<'_>, slot: usize) -> Result<Vec<i64>, Undecided> {
    let fact = view.fact(slot).ok_or(Undecided::Operands)?;
    if let Some(tensor) = fact.constant_tensor() {
        let is_small = i64::try_from(tensor.len()).is_ok_and(|len| len <= MOST_ENTRIES);
        return if is_small { tensor.to_i64s().ok_or(Undecided::Operands) } else { Err(Undecided::TableLimit) };
    }
    fact.const_ints().ok_or(Undecided::Operands)
}

/// The numbers of these dims.
pub(super) fn numbers(dims: &[Dim]) -> Result<Vec<i64>, Undecided> {
    dims.iter().map(Dim::as_const).collect::<Option<_>>().ok_or(Undecided::Symbolic)
}

/// A Gather by constant indices, or by indices that are computed at run time: then these are the second source.
pub(super) fn gather(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (scope, data, shape) = (view.scope(), view.dims(0)?, view.dims(1)?);
    let axis = gather_axis(&view.known_site()?, data.len())?;
    match constant_ints(view, 1) {
        Ok(indices) => Ok(Moved::of_first(IndexMap::gather(scope, data, axis, &numbers(shape)?, &indices)?)),
        Err(_) => {
            let map = IndexMap::gather_at_run_time(scope, data, axis, shape)?;
            Ok(Moved { slots: vec![0, 1], map })
        }
    }
}
