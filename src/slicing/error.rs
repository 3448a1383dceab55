//! Why a slice is refused or not decided.

use crate::dim::Dim;
use crate::tensor::TensorError;

/// A slice that breaks a rule of its dialect, or that cannot be carried out. The sentences name no node: whoever knows it adds
/// it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// A step of 0 selects nothing in particular.
    #[error("a step is 0")]
    ZeroStep,

    /// An entry names an axis the data does not have.
    #[error("axis {axis} is out of range for rank {rank}")]
    AxisOutOfRange { axis: i64, rank: usize },

    /// Two entries name one axis.
    #[error("axis {axis} is listed twice")]
    RepeatedAxis { axis: usize },

    /// The dialect does not slice scalars.
    #[error("the data is a scalar, which cannot be sliced")]
    Scalar,

    /// Operands that give one number an entry have different lengths.
    #[error("'{first}' has {first_len} elements and '{second}' has {second_len}")]
    LengthsDiffer { first: &'static str, first_len: usize, second: &'static str, second_len: usize },

    /// An operand is not 1-D.
    #[error("'{operand}' should have rank 1 but has rank {rank}")]
    OperandRank { operand: &'static str, rank: usize },

    /// An operand holds other elements than the dialect allows.
    #[error("'{operand}' should hold integers")]
    OperandType { operand: &'static str },

    /// A required operand is left out.
    #[error("'{operand}' is missing")]
    OperandMissing { operand: &'static str },

    /// More entries want an axis than there are axes.
    #[error("{entries} entries select from the axes of data of rank {rank}")]
    TooManyEntries { entries: usize, rank: usize },

    /// TensorFlow's masks have bits for so many entries only, and no tensor has very many axes.
    #[error("{entries} entries exceed the limit of {limit}")]
    EntryLimit { entries: usize, limit: usize },

    /// At most one entry may be an ellipsis.
    #[error("several entries are ellipses")]
    Ellipses,

    /// A single index is checked, never clamped.
    #[error("index {index} is out of range for a dim of {dim}")]
    IndexOutOfRange { index: i64, dim: i64 },

    /// The same, where numbers are not known but the index is outside for all of them.
    #[error("an index is out of range whatever the dims are")]
    IndexNeverInRange,

    /// TensorFlow wants a positive stride where a single index is taken.
    #[error("the stride of a single index is {stride}, which is not positive")]
    IndexStride { stride: i64 },

    /// A mask is something else than the dialect's mask.
    #[error("'{mask}' is not a mask: {reason}")]
    Mask { mask: &'static str, reason: &'static str },

    /// The readings of the operator that [`SliceRule::Agree`](super::SliceRule::Agree) wants to agree do not.
    #[error(
        "ONNX Runtime takes the end {end} with a negative step for the end of the axis, the operator's text for an ordinary \
         bound"
    )]
    Disputed { end: i64 },

    /// A number that is needed is not known.
    #[error("an operand is not constant")]
    NotConstant,

    /// The copy cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl SliceError {
    /// Whether the slice may be valid all the same: it is disputed, not constant or too large, rather than wrong.
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
