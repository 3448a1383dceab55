//! The shared slicing core.
//!
//! Slices of every dialect come here and nowhere else: nobody else in the program clamps an index.
//!
//! 1. A dialect's reader ([`onnx`], [`tensorflow`], [`openvino`]) makes a [`SliceSpec`] of operands and attributes, of which any
//!    may be a number, an expression or unknown.
//! 2. [`SliceSpec::dense`] lays it over a rank: one [`AxisOp`] an axis.
//! 3. [`resolve`](fn@resolve) lays a range over a dim: which elements, and how many. On numbers it is [`resolve_integers`].
//! 4. [`infer`](fn@infer) makes a shape of that, [`slice`](fn@copy::slice) the data.
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

mod compose;
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

pub use compose::{compose, from_end, is_identity, takes_all, with_numbers};
pub use copy::{slice, view};
pub use error::SliceError;
pub use infer::{Inferred, InferredAxis, infer};
pub use map::index_map;
pub use reading::{Floor, IntMax, Reading};
pub use resolve::{Resolved, Selection, index_integer, resolve, resolve_exactly, resolve_index, resolve_integers};
pub use spec::{AxisOp, Bound, Entry, Operand, Range, Repeated, SliceSpec};

/// How the cases are read in which ONNX Runtime, the operator's text and the reference implementation disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceRule {
    /// Only what ONNX Runtime and the text agree on is stated or folded.
    #[default]
    Agree,
    /// As ONNX Runtime computes it.
    OnnxRuntime,
    /// As the operator's text has it.
    Spec,
    /// As the reference implementation and numpy have it.
    Numpy,
}

#[cfg(test)]
mod tests;
