//! The shape of a slice.

use super::SliceError;
use super::resolve::{Resolved, resolve, resolve_index};
use super::spec::{AxisOp, SliceSpec};
use crate::dim::{Dim, Scope};

/// What one axis of the data, or a new one, comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InferredAxis {
    /// The axis as it is.
    All,
    /// A range of it.
    Range(Resolved),
    /// One index of it, counted from the front; `None` when it is not known.
    Index(Option<Dim>),
    /// An axis of dim 1 that the data does not have.
    New,
}

/// What is known of the result of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    /// The result's shape.
    pub shape: Vec<Dim>,
    /// What becomes of each axis, in the order of [`SliceSpec::dense`].
    pub axes: Vec<InferredAxis>,
}

impl Inferred {
    /// The end over which the readings are in dispute, if there is one.
    pub fn disputed(&self) -> Option<i64> {
        self.axes.iter().find_map(|axis| match axis {
            InferredAxis::Range(resolved) => resolved.disputed,
            _ => None,
        })
    }
}

/// The shape that `spec` makes of data of this shape, each dim an expression that is right for every value of the symbols. What
/// is not known of one axis says nothing about the others: its dim is a new symbol, and only that. `None` when not even the
/// result's rank is known.
///
/// # Errors
/// The slice cannot be taken of data of this shape, whatever the symbols are.
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
