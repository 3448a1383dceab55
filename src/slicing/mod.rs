//! The shared slicing core.
//!
//! All dialects resolve their slices here; no other module clamps an index.
//!
//! 1. A dialect's reader ([`onnx`], [`tensorflow`], [`openvino`]) builds a [`SliceSpec`] from operands and
//!    attributes. Each element may be a number, an expression or unknown.
//! 2. [`SliceSpec::dense`] applies the spec to a rank and returns [`AxisOp`]s, one per axis.
//! 3. [`resolve`](fn@resolve) applies a range to a dim: start, step and length. Its form on integers is
//!    [`resolve_integers`].
//! 4. [`infer`](fn@infer) infers the shape; [`slice`](fn@copy::slice) copies the data.
//!
//! ```
//! use onnx_slice_fold::slicing::{self, Operand, SliceRule, onnx};
//! use onnx_slice_fold::tensor::Tensor;
//!
//! let operands = onnx::Operands {
//!     starts: Operand::constant(&[-3]),
//!     ends: Operand::constant(&[i64::MAX]),
//!     axes: None,
//!     steps: None,
//! };
//! let spec = onnx::slice(&operands, SliceRule::Agree)?;
//! let data = Tensor::vector(vec![1i64, 2, 3, 4]);
//! assert_eq!(slicing::slice(&data, &spec)?.to_i64s(), Some(vec![2, 3, 4]));
//! # Ok::<(), slicing::SliceError>(())
//! ```

mod bounds;
mod copy;
mod error;
mod infer;
mod map;
pub mod onnx;
pub mod openvino;
mod reading;
mod resolve;
mod spec;
pub mod tensorflow;

pub use bounds::{from_end, is_identity, takes_all, with_numbers};
pub use copy::{slice, view};
pub use error::SliceError;
pub use infer::{Inferred, InferredAxis, infer};
pub use map::index_map;
pub use reading::{Floor, IntMax, Reading};
pub use resolve::{Resolved, Selection, index_integer, resolve, resolve_exactly, resolve_index, resolve_integers};
pub use spec::{AxisOp, Bound, Entry, Operand, Range, Repeated, SliceSpec};

/// The reading to follow where ONNX Runtime, the operator's text and the reference implementation disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceRule {
    /// States and folds only results on which ONNX Runtime and the text agree.
    #[default]
    Agree,
    /// Follows ONNX Runtime.
    OnnxRuntime,
    /// Follows the text of the operator.
    Spec,
    /// Follows the reference implementation and numpy.
    Numpy,
}

#[cfg(test)]
mod tests;
