//! The operators of the standard: what each makes of the types, the known contents and the values of its operands.
//!
//! An operator is plain data ([`Operator`]) in the table of its family's file; `registry` finds it by domain and name.
//! The walk over a graph that calls them is `walk`; evaluation of graphs (bodies of If, Loop, Scan, functions) is
//! `interpret`.

mod attention;
#[cfg(test)]
mod bodies;
mod broadcast;
mod context;
mod control;
mod conv;
mod elementwise;
mod image;
mod interpret;
mod join;
mod lane;
mod linear;
mod microsoft;
mod ml;
mod movement;
mod needs;
mod outcome;
mod pieces;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod registry;
mod sequence;
mod signal;
#[cfg(test)]
mod single;
mod slice;
mod slice_dialect;
mod slice_name;
mod text;
mod walk;
mod window;

pub use context::{EvalCx, InferCx, Site, axis_in};
pub use interpret::{Environment, evaluate_graph};
pub use movement::concat_split::concat;
pub use outcome::{Budget, Decline, EvalResult, InferResult, Refusal};
pub use registry::{Eval, Infer, Operator, Status, newest_opset, operator, operator_of, operators};
pub use slice::slice_spec;
pub use slice_dialect::SliceDialect;
pub use slice_name::{SliceName, SliceNameError};
pub use walk::{Event, EventKind, Walk, declared_fact, plain_names};
