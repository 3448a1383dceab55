//! Rewrites: a rule inspects a node and its facts, and returns an [`Edit`](crate::ir::Edit) that computes the same with
//! less.
//!
//! A rule is a pure function: it sees the model and changes nothing. The values its edit makes are placeholders until the driver
//! applies the edit; an edit that is not applied leaves nothing behind. The driver counts how often each rule fired. Every rule is a
//! record ([`Rule`]): the law it rests on, and the premises under which it fires, each of which a fixture in `tests/rules` shows to
//! fail. To add one: write the function and its record in the family's file.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `miss` | the reason for which a rule declines: the premise that failed, with its operand or dim |
//! | `place` | a node with its facts, as a rule sees it |
//! | `rule` | a rule as data |
//! | `guards` | conditions on every edit, whatever its rule proves |
//! | `list` | all rules, in the order they are tried; no other file here imports it |

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
