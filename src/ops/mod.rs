//! The operators of the standard: inference of types and contents, and evaluation.
//!
//! An operator is plain data ([`Operator`]) in the table of its family's file; `engine/registry` finds it by domain and name.
//! `engine/walk` traverses a graph and calls the operators; `engine/interpret` evaluates graphs (subgraphs of If, Loop, Scan,
//! functions). `shared` contains computations of several families.

mod attention;
mod contents;
mod control;
mod conv;
mod elementwise;
mod engine;
mod image;
mod inferred;
mod linear;
mod microsoft;
mod misread;
mod ml;
mod movement;
mod needs;
mod node_view;
mod opset;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod sequence;
mod shared;
mod signal;
pub mod size_operand;
mod slice;
mod slice_cuts;
mod slice_dialect;
mod slice_name;
#[cfg(test)]
mod testing;
mod text;
pub mod traits;

use engine::{context, declared, event, interpret, outcome, registry, walk};
use movement::pieces;
use shared::{broadcast, join, lane, vector, window};
#[cfg(test)]
use testing::{bodies, single};

pub use context::{EvalCx, InferCx, Site, axis_in};
pub use declared::{declared_fact, input_labels, label_relations, label_size};
pub use engine::loads::{has_kernel_for_narrow, is_loaded};
pub use event::{Event, EventKind};
pub use inferred::infers_shapes;
pub use interpret::{Environment, evaluate_graph, evaluate_node, evaluate_observed, may_be_evaluated};
pub use misread::{is_strided, may_be_misread, misreads_hidden_size};
pub(crate) use movement::gather::gather_along;
pub use movement::pieces::concat;
pub(crate) use movement::pieces::concat_later;
pub(crate) use movement::positions::{columns_of, written_block};
pub use needs::{broadcast_choices, equal_sizes};
pub use node_view::{NodeView, Number};
pub use opset::Opset;
pub use outcome::{Budget, Decline, EvalResult, InferResult, Refusal};
pub use registry::{
    Eval, Infer, Operator, Status, newest_opset, nonstandard, operator, operator_of, operators, surplus, with_surplus,
};
pub use slice::slice_spec;
pub use slice_cuts::{SliceCut, SliceCuts, slice_cuts};
pub use slice_dialect::SliceDialect;
pub use slice_name::{SliceName, SliceNameError};
pub use traits::{Moved, index_map_of};
pub use walk::Walk;
