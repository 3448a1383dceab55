//! The errors of slices: invalid slices and undecided ones.

use crate::dim::Dim;
use crate::tensor::TensorError;

/// An error for a slice that breaks a rule of its dialect or cannot be computed. The caller adds the node's name to
/// the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// A step is 0.
    #[error("a step is 0")]
    ZeroStep,

    /// An entry names an axis that the data does not have.
    #[error("axis {axis} is out of range for rank {rank}")]
    AxisOutOfRange { axis: i64, rank: usize },

    /// Two entries name the same axis.
    #[error("axis {axis} is listed twice")]
    RepeatedAxis { axis: usize },

    /// The dialect does not slice scalars.
    #[error("the data is a scalar, which cannot be sliced")]
    Scalar,

    /// Two operands with one element per entry differ in length.
    #[error("'{first}' has {first_len} elements and '{second}' has {second_len}")]
    LengthsDiffer { first: &'static str, first_len: usize, second: &'static str, second_len: usize },

    /// An operand is not 1-D.
    #[error("'{operand}' should have rank 1 but has rank {rank}")]
    OperandRank { operand: &'static str, rank: usize },

    /// An operand has an element type that the dialect does not accept.
    #[error("'{operand}' should hold integers")]
    OperandType { operand: &'static str },

    /// A required operand is omitted.
    #[error("'{operand}' is missing")]
    OperandMissing { operand: &'static str },

    /// More entries select from axes than the data has axes.
    #[error("{entries} entries select from the axes of data of rank {rank}")]
    TooManyEntries { entries: usize, rank: usize },

    /// The number of entries exceeds a limit: the bits of TensorFlow's masks, or more than any tensor has axes.
    #[error("{entries} entries exceed the limit of {limit}")]
    EntryLimit { entries: usize, limit: usize },

    /// More than one entry is an ellipsis.
    #[error("several entries are ellipses")]
    Ellipses,

    /// A single index lies outside the axis. Single indices are never clamped.
    #[error("index {index} is out of range for a dim of {dim}")]
    IndexOutOfRange { index: i64, dim: i64 },

    /// A single index lies outside the axis for every value of the symbols.
    #[error("an index is out of range whatever the dims are")]
    IndexNeverInRange,

    /// The stride of a single index is not positive; TensorFlow rejects that.
    #[error("the stride of a single index is {stride}, which is not positive")]
    IndexStride { stride: i64 },

    /// A mask is not valid in the dialect.
    #[error("'{mask}' is not a mask: {reason}")]
    Mask { mask: &'static str, reason: &'static str },

    /// The readings that [`SliceRule::Agree`](super::SliceRule::Agree) compares differ for this end.
    #[error(
        "ONNX Runtime takes the end {end} with a negative step for the end of the axis, the operator's text for an ordinary \
         bound"
    )]
    Disputed { end: i64 },

    /// A required number is not constant.
    #[error("an operand is not constant")]
    NotConstant,

    /// The tensor cannot be copied.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl SliceError {
    /// Returns `true` if the slice may be valid: it is disputed, not constant or too large.
    pub fn is_undecided(&self) -> bool {
        matches!(
            self,
            SliceError::Disputed { .. } | SliceError::NotConstant | SliceError::Tensor(TensorError::OutOfMemory { .. })
        )
    }

    pub(super) fn index(index: &Dim, dim: &Dim) -> SliceError {
        match (index.as_const(), dim.as_const()) {
            (Some(index), Some(dim)) => SliceError::IndexOutOfRange { index, dim },
            _ => SliceError::IndexNeverInRange,
        }
    }
}
