//! Infers the shape of a slice.

use super::SliceError;
use super::resolve::{Resolved, resolve, resolve_index};
use super::spec::{AxisOp, SliceSpec};
use crate::dim::{Dim, Scope};

/// The effect of a slice on one axis of the data, or a new axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InferredAxis {
    /// The whole axis.
    All,
    /// A range of the axis.
    Range(Resolved),
    /// One index of the axis, counted from the front; `None` if unknown.
    Index(Option<Dim>),
    /// An axis of dim 1 that the data does not have.
    New,
}

/// The inferred shape and axes of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    /// The result's shape.
    pub shape: Vec<Dim>,
    /// The effect on each axis, in the order of [`SliceSpec::dense`].
    pub axes: Vec<InferredAxis>,
}

impl Inferred {
    /// Returns the first end for which the readings differ, if any.
    pub fn disputed(&self) -> Option<i64> {
        self.axes.iter().find_map(|axis| match axis {
            InferredAxis::Range(resolved) => resolved.disputed,
            _ => None,
        })
    }
}

/// Infers the shape of a slice of data with this shape; each dim holds for every value of the symbols. An axis with
/// an unknown length gets a new symbol as its dim; the other axes are not affected. `None` if the rank of the result
/// is unknown.
///
/// # Errors
/// The slice is invalid for data of this shape, for every value of the symbols.
pub fn infer(scope: &Scope, spec: &SliceSpec, shape: Option<&[Dim]>) -> Result<Option<Inferred>, SliceError> {
    let Some(dims) = shape else { return Ok(None) };
    let Some(ops) = spec.dense(dims.len())? else { return Ok(None) };
    let mut dims = dims.iter();
    let mut inferred = Inferred { shape: Vec::with_capacity(ops.len()), axes: Vec::with_capacity(ops.len()) };
    for op in &ops {
        let taken = match op {
            AxisOp::NewAxis => {
                inferred.shape.push(Dim::constant(1));
                InferredAxis::New
            }
            AxisOp::Keep => {
                inferred.shape.extend(dims.next().cloned());
                InferredAxis::All
            }
            AxisOp::Range(range) => {
                let Some(dim) = dims.next() else { continue };
                let resolved = resolve(scope, dim, range, spec.reading)?;
                inferred.shape.push(resolved.len.clone());
                InferredAxis::Range(resolved)
            }
            AxisOp::Index(index) => {
                let Some(dim) = dims.next() else { continue };
                InferredAxis::Index(resolve_index(scope, dim, index)?)
            }
        };
        inferred.axes.push(taken);
    }
    Ok(Some(inferred))
}
