//! Copies the elements that a slice selects.

use super::SliceError;
use super::resolve::{index_integer, resolve_integers};
use super::spec::{AxisOp, Bound, Range, SliceSpec};
use crate::tensor::{StridedView, Tensor, gather};

/// Returns a view of the elements that a slice selects.
///
/// # Errors
/// The slice is not valid for this tensor, or an operand is not constant.
pub fn view(tensor: &Tensor, spec: &SliceSpec) -> Result<StridedView, SliceError> {
    let mut view = StridedView::of(tensor);
    let ops = spec.dense(view.rank())?.ok_or(SliceError::NotConstant)?;
    let mut axis = 0;
    for op in &ops {
        match op {
            AxisOp::Keep => axis += 1,
            AxisOp::NewAxis => {
                view = view.insert_axis(axis)?;
                axis += 1;
            }
            AxisOp::Range(range) => {
                let (start, step, len) = resolve_constant(dim_of(&view, axis), range, spec)?;
                let (start, len) = (unsigned(start), unsigned(len));
                view = view.slice_axis(axis, start, isize::try_from(step).unwrap_or(isize::MAX), len)?;
                axis += 1;
            }
            AxisOp::Index(index) => {
                let Bound::At(index) = index else { return Err(SliceError::NotConstant) };
                let index = index.as_const().ok_or(SliceError::NotConstant)?;
                view = view.select(axis, unsigned(index_integer(dim_of(&view, axis), index)?))?;
            }
        }
    }
    Ok(view)
}

fn resolve_constant(dim: i64, range: &Range, spec: &SliceSpec) -> Result<(i64, i64, i64), SliceError> {
    let number = |bound: &Bound| match bound {
        Bound::Open => Ok(None),
        Bound::At(at) => at.as_const().map(Some).ok_or(SliceError::NotConstant),
        Bound::Unknown => Err(SliceError::NotConstant),
    };
    let (begin, end) = (number(&range.begin)?, number(&range.end)?);
    resolve_integers(dim, begin, end, range.step.ok_or(SliceError::NotConstant)?, spec.reading)
}

/// Returns the dim of an axis of the view.
fn dim_of(view: &StridedView, axis: usize) -> i64 {
    view.shape().get(axis).map_or(0, |&dim| i64::try_from(dim).unwrap_or(i64::MAX))
}

/// Converts a result of [`resolve_integers`] or [`index_integer`], which is never negative.
fn unsigned(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

/// Slices a tensor of any element type. Contiguous elements are shared, not copied. The caller bounds the allocation
/// beforehand by the shape of [`view`].
///
/// # Errors
/// The errors of [`view`], or the copy does not fit in memory.
pub fn slice(tensor: &Tensor, spec: &SliceSpec) -> Result<Tensor, SliceError> {
    Ok(gather(tensor, &view(tensor, spec)?)?)
}
