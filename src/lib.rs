//! Infers the shapes of an ONNX model, folds what is decided, and writes the smaller model.
//!
//! ```no_run
//! use onnx_slice_fold::{Document, Options};
//!
//! let mut document = Document::open("model.onnx")?;
//! let report = document.fold(&Options::default())?;
//! println!("{report}");
//! document.save("model.folded.onnx")?;
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! The folders of the source are the pipeline: [`onnx`] decodes a file into the representation of [`ir`]; [`passes`] state
//! what is known of its values through the operators of [`ops`], whose sizes are the symbolic expressions of [`dim`] and
//! whose contents the tensors of [`tensor`]; [`onnx`] writes it back. Everything that slices goes through [`slicing`].
#![deny(unsafe_code)]

pub mod dim;
mod document;
pub mod ir;
pub mod onnx;
pub mod ops;
pub mod passes;
pub mod report;
pub mod rewrite;
pub mod slicing;
pub mod tensor;

pub use document::Document;
pub use ops::{SliceDialect, SliceName, SliceNameError};
pub use passes::{Assumption, Options};
pub use report::{Report, operator_table, rule_table, rule_text};
