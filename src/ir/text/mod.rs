//! The ONNX text syntax: models printed to be read, and test models written to be parsed.
//!
//! The grammar is the one of the standard's own printer and parser. What it has no words for (documentation of single nodes,
//! device configurations, training information) is not shown; printing is for people, encoding is for files.
//!
//! ```
//! use onnx_slice_fold::ir::text;
//!
//! let model = text::parse(
//!     r#"<ir_version: 8, opset_import: ["": 17]>
//!        g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }"#,
//! )?;
//! assert!(text::print(&model).contains("y = Relu (x)"));
//! # Ok::<(), text::ParseError>(())
//! ```

mod lexer;
mod literal;
mod parser;
mod printer;

pub use lexer::ParseError;
pub use parser::parse;
pub use printer::{attribute_text, node_text, print, print_for_parser, print_with, tensor_text, type_text};

pub use literal::quote_plainly;
