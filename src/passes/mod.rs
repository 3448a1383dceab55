//! The passes over a model. `pipeline` lists them in the order they run in, `driver` runs them until nothing changes, and
//! `manager` does what is before and after: what the user assumes, functions, and what is written beside the values.

mod addends;
mod agenda;
mod annotate;
mod assume;
mod believed;
mod chains;
mod claims;
mod common_subexpressions;
mod dead;
mod driver;
mod edits;
mod extract;
mod fold;
mod function_bodies;
mod hoist;
mod inline;
mod manager;
mod opaque;
mod opset;
mod options;
mod outcome;
mod packing;
mod pass;
mod pipeline;
mod positions;
mod profile;
mod quantization;
mod records;
mod remembered;
mod rows;
mod shape_reads;
mod simplify;
mod spelling;
mod untouched;
mod value_numbering;

pub use assume::{AssumeError, Assumption, is_possible, relations_in_labels};
pub use edits::{Fired, LastEdit};
pub use extract::{ExtractError, extract, remove_outputs, values};
pub use manager::run;
pub use options::Options;
pub use outcome::{NoRule, OpsetError, Outcome, RunError};
pub use pass::Pass;
pub use pipeline::{INFER, PASSES};
pub use profile::{PassRun, peak_memory};
pub use records::{RECORDS, record, records};
