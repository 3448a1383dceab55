//! Infers the shapes of an ONNX model, folds constant subgraphs, and writes the smaller model.
//!
//! # A tour
//!
//! An [`OnnxModel`] is opened from a file or decoded from bytes, folded, and written:
//!
//! ```
//! use onnx_slice_fold::{OnnxModel, Options};
//!
//! let mut model = OnnxModel::open("models/bert_dy18d.onnx")?;
//! let report = model.fold(&Options::new())?;
//! assert_eq!((report.before.nodes(), report.after.nodes()), (104, 80));
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("bert.folded.onnx");
//! model.save(path)?;
//! # Ok::<(), onnx_slice_fold::Error>(())
//! ```
//!
//! The [`Report`] is data, and prints as a table. Its [notes](Report::notes) list the kept nodes with reasons:
//!
//! ```
//! # use onnx_slice_fold::{OnnxModel, Options};
//! # let mut model = OnnxModel::open("models/bert_dy18d.onnx")?;
//! # let report = model.fold(&Options::new())?;
//! println!("{report}");
//! for note in &report.notes {
//!     println!("{}: {}", note.node, note.reason);
//! }
//! assert_eq!(report.after.operators.get("Expand"), None);
//! assert!(report.fired["reshape-to-constant"] > 0);
//! # Ok::<(), onnx_slice_fold::Error>(())
//! ```
//!
//! [`Options`] control the rewrites and hold assumptions about the inputs. With more known sizes, more is folded:
//!
//! ```
//! # use onnx_slice_fold::{OnnxModel, Options};
//! let mut model = OnnxModel::open("models/bert_dy18d.onnx")?;
//! let report = model.fold(&Options::new().exact(true).dim("s33=1").dim("s50=1..512"))?;
//! assert!(model.text().contains("(int64[1,s50] input_ids"));
//! # Ok::<(), onnx_slice_fold::Error>(())
//! ```
//!
//! Every call returns the same [`Error`] type. Its [kind](Error::kind) shows how a caller can react:
//!
//! ```
//! # use onnx_slice_fold::{OnnxModel, Options};
//! use onnx_slice_fold::ErrorKind;
//!
//! let mut model = OnnxModel::open("models/bert_dy18d.onnx")?;
//! let error = model.fold(&Options::new().dim("s34=1")).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Assumption);
//! assert!(error.to_string().starts_with("dimension \"s34\" not found; the model's symbolic dimensions are s33 (input_ids, axis 0)"));
//! # Ok::<(), onnx_slice_fold::Error>(())
//! ```
//!
//! A user's operator is described by a [`CustomOperator`] and [registered](OnnxModel::register). Inference and folding then continue after
//! its nodes.
//!
//! No function here needs a file system: [`OnnxModel::from_bytes`] and [`OnnxModel::to_bytes`] read and write memory. An opened model may
//! be sent to another thread between calls.
//!
//! # Features
//!
//! | feature | default | effect |
//! | --- | --- | --- |
//! | `cli` | yes | the program `onnx-slice-fold`, with `clap`, `indicatif`, `anyhow`, `mimalloc` and others; enables `mmap` |
//! | `algebra` | no | documents the modules `dim`, `slicing` and `index_map`: symbolic sizes, slices of seven dialects, and the algebra of data movement |
//! | `mmap` | by `cli` | maps files of 1 MiB and more instead of reading them. A file that is truncated while it is mapped would kill the process: a handler for SIGBUS turns this into an error, and is installed with the first mapping |
//! | `images` | yes | ImageDecoder on PNG, WebP and JPEG 2000; without it, such nodes are kept |
//!
//! A library that depends on this one sets `default-features = false`, and `features = ["images"]` if needed. Files are then read whole, no
//! handler is installed, and the program chooses the allocator.
//!
//! # Inside
//!
//! Only the items documented here are covered by the compatibility promise. The folders of the source are modules that this documentation
//! hides, and that may change in any version. `RUSTDOCFLAGS="--cfg internals" cargo doc` shows them, and ARCHITECTURE.md describes them.
#![deny(unsafe_code)]
// A file must not be able to end the process. Tests may panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]
// Without threads, methods of rayon's traits are those of the standard library's iterators.
#![cfg_attr(target_family = "wasm", allow(unused_imports))]
// The same input gives the same bytes.
#![deny(clippy::iter_over_hash_type)]

// The command line uses the public API by the crate's name, like any other program.
#[cfg(feature = "cli")]
extern crate self as onnx_slice_fold;

#[cfg_attr(not(internals), doc(hidden))]
pub mod check;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod clock;
mod consumers;
#[cfg_attr(not(any(internals, feature = "algebra")), doc(hidden))]
pub mod dim;
mod error;
mod evaluation;
mod explain;
#[cfg_attr(not(any(internals, feature = "algebra")), doc(hidden))]
pub mod index_map;
#[cfg_attr(not(internals), doc(hidden))]
pub mod ir;
mod model;
#[cfg_attr(not(internals), doc(hidden))]
pub mod onnx;
#[cfg_attr(not(internals), doc(hidden))]
pub mod ops;
#[doc(hidden)]
pub mod pages;
#[cfg_attr(not(internals), doc(hidden))]
pub mod passes;
mod report;
#[cfg_attr(not(internals), doc(hidden))]
pub mod rewrite;
#[doc(hidden)]
pub mod sizes;
#[cfg_attr(not(any(internals, feature = "algebra")), doc(hidden))]
pub mod slicing;
mod sort;
mod stated;
#[cfg_attr(not(internals), doc(hidden))]
pub mod tensor;

pub use check::{Checked, Culprit, Difference};
pub use consumers::{Construct, ConstructError};
pub use error::{Error, ErrorKind};
#[doc(hidden)]
pub use explain::shell_word;
pub use explain::{
    Cause, CauseKind, Explanation, FailedPremise, MapDigit, MapPiece, MappedAxis, MappedRange, MappedTensor,
    MovementMap, OpenSize, RangeDensity, RuleAtNode, RuleExplanation, Suggestion,
};
#[cfg(feature = "seeded-faults")]
#[doc(hidden)]
pub use ir::faults;
pub use ir::{CustomNode, CustomOperator, CustomType, Data};
pub use model::OnnxModel;
pub use onnx::{ExternalData, MissingData, ModelSink, OpenOptions, SaveOptions, Saved, SavedFile};
pub use ops::{EventKind, SliceDialect, SliceName, SliceNameError, newest_opset};
pub use passes::{Assumption, LastEdit, Options, PassRun, Shapes};
pub use report::{
    Avoided, Census, DataFile, Detail, Drawing, DrawingForm, DrawnNode, DynamicDim, Figure, FunctionInfo, Inspection,
    LargeTensor, LeftOut, MacCount, NotDrawn, Note, Parameters, PeakMemory, Port, Report, RuleUse, inspection_text,
    operator_table, rule_table, rule_text,
};
#[doc(hidden)]
pub use rewrite::meant as nearest_name;
pub use slicing::SliceRule;
#[doc(hidden)]
pub use tensor::threads;
pub use tensor::{ByteRange, ByteSource, DType, SharedSource, Tensor, TensorError};
