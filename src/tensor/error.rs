//! Errors of constructing tensors and views.

use super::dtype::DType;
use super::index::Shape;

/// An invalid tensor, or a view that does not fit its tensor. The messages do not name the operator or value; callers add them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    #[error("dims {shape:?} describe more elements than memory can address")]
    ElementCount { shape: Shape },

    #[error("dims {shape:?} of {dtype} describe more bytes than memory can address")]
    ByteCount { dtype: DType, shape: Shape },

    #[error("the payload is {found} bytes, but {dtype} with dims {shape:?} needs {expected}")]
    PayloadLength { dtype: DType, shape: Shape, expected: usize, found: usize },

    #[error("there are {found} strings, but dims {shape:?} need {expected}")]
    StringCount { shape: Shape, expected: usize, found: usize },

    #[error("strings have no dense payload")]
    StringPayload,

    #[error("a payload of {bytes} bytes could not be allocated")]
    OutOfMemory { bytes: usize },

    #[error("dims {from:?} cannot be reshaped to {to:?}: the number of elements differs")]
    Reshape { from: Shape, to: Shape },

    #[error("axis {axis} is not an axis of a tensor of rank {rank}")]
    Axis { axis: usize, rank: usize },

    #[error("{permutation:?} is not a permutation of the {rank} axes")]
    Permutation { permutation: Shape, rank: usize },

    #[error("dims {from:?} do not broadcast to {to:?}")]
    Broadcast { from: Shape, to: Shape },

    #[error("start {start}, step {step}, length {len} leaves a dim of {dim}")]
    Slice { start: usize, step: isize, len: usize, dim: usize },

    #[error("a view of {strides} strides cannot have {dims} dims")]
    StrideCount { dims: usize, strides: usize },

    #[error("the view reaches outside the tensor's {elements} elements")]
    ViewOutOfBounds { elements: usize },
}
