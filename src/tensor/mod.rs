//! Dense tensors: element types, one storage, strided copies.
//!
//! A [`Tensor`] is an element type, a shape and one contiguous row-major payload in the byte layout of ONNX `raw_data`
//! (little-endian, small elements packed). It is checked once, at construction; then it is valid, immutable and cheap to clone. A
//! [`StridedView`] selects elements of a tensor, and [`gather`](fn@gather) copies them to another tensor.
//!
//! This module does not depend on operators, symbolic dims or files.

mod buffer;
mod copy;
mod deferred;
mod dtype;
mod element;
mod error;
mod gather;
mod index;
mod join;
mod outside;
mod packed;
mod selection;
pub mod smallfloat;
mod storage;
mod strided;
#[cfg_attr(target_family = "wasm", path = "threads/single.rs")]
pub mod threads;

pub(crate) use buffer::Buffer;
#[cfg(test)]
pub(crate) use deferred::DEEPEST;
pub(crate) use deferred::Recipe;
pub use dtype::DType;
pub(crate) use gather::gather_later;
pub(crate) use join::join_later;

pub(crate) use element::dispatch_numeric;
pub use element::{Bool, Complex64, Complex128, Element, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, Number};
pub use element::{nearest_bf16, nearest_f16};
pub use error::TensorError;
pub use gather::gather;
pub use index::{Indices, Shape, Strides, counted_in, product, strides_of};
pub use outside::{ByteRange, ByteSource, SharedSource};
pub use packed::{Codes, pack};
pub use storage::{PayloadKey, Tensor};
pub use strided::StridedView;

#[cfg(test)]
mod tests;
