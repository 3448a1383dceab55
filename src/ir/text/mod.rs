//! The ONNX text syntax: prints models for readers, and parses test models.
//!
//! The grammar is that of the standard's printer and parser. It has no syntax for documentation of single nodes,
//! device configurations and training information, so these are not printed. Printing is for people, encoding is for
//! files.
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
