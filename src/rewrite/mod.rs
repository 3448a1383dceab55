//! Rewrites: a rule inspects a node and its facts, and returns an [`Edit`](crate::ir::Edit) to a cheaper equivalent subgraph.
//!
//! A rule is a pure function of the model. The new values of its edit are placeholders until the driver applies the edit; a discarded edit
//! leaves no trace. The driver counts how often each rule fires. Every rule is a record ([`Rule`]): the law that it rests on, and the
//! premises under which it fires. For each premise, a fixture in `tests/rules` shows a model where it fails. To add a rule, write its
//! function and its record in the file of its family.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `miss` | the reason for which a rule declines: the premise that failed, with its operand or dim |
//! | `place` | a node with its facts, as a rule sees it |
//! | `rule` | a rule as data |
//! | `guards` | conditions on every edit, whatever its rule proves |
//! | `list` | all rules, in the order they are tried; no other file here imports it |

mod avoided;
mod axes;
mod batches;
pub mod build;
mod cache;
mod containers;
mod dequantized;
mod divisors;
mod fuse;
mod groups;
mod guards;
mod identity;
mod index;
mod inserted;
mod introduced;
mod lanes;
mod lift;
mod limits;
mod list;
mod miss;
mod movement;
mod names;
mod narrow;
mod neutral;
mod parts;
mod place;
mod ranges;
mod rule;
mod shown;
mod sizes;
mod slices;
mod split;
mod stacked;
mod strided_slice;
mod strings;
mod turned;
mod weighted;

pub use avoided::remaining;
pub use build::Build;
pub use cache::Taken;
pub use fuse::embedded::{PositionEnd, counted_positions};
pub use fuse::idiom::Idioms;
pub use fuse::normalized::is_only_normalized;
pub use fuse::residual::constant_addend;
pub use guards::{GUARDS, check};
pub use index::{Positions, positions};
pub use list::{ASKED_FOR, LATE_RULES, RULES, rules};
pub use miss::{About, Miss, SHARED};
pub use names::{meant, nearest};
pub use place::Place;
pub use rule::{Premise, Rule, as_pass};
pub use shown::{is_quantization, is_quantized_turned};
