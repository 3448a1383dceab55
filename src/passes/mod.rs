//! The passes over a model, and the order they run in: infer, fold, drop what is dead, until nothing changes; then write
//! what is known beside the values.

mod annotate;
mod assume;
mod chains;
mod claims;
mod common;
mod contents;
mod dead;
mod fold;
mod functions;
mod inline;
mod library;
mod manager;
mod options;
mod quantization;
mod records;
mod simplify;
mod untouched;

pub use assume::{AssumeError, Assumption};
pub use manager::{Outcome, RunError, run};
pub use options::Options;
pub use records::{NoRule, PASSES, record, records};
pub use simplify::Fired;
