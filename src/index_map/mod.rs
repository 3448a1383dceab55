//! One algebra for data movement: canonical index maps with symbolic sizes.
//!
//! An [`IndexMap`] is a function from the elements of a result to elements of sources or constants, for every value of the symbols in the
//! dims. Slice, Transpose, Reshape, Expand, Tile, Gather, Pad, Concat and their relatives are such maps; maps compose, have a canonical
//! form, and are written as the fewest nodes ([`IndexMap::write`]).
//!
//! ```
//! use onnx_slice_fold::dim::{Dim, Scope};
//! use onnx_slice_fold::index_map::IndexMap;
//!
//! // roll(x, 1), then roll(x, n - 1), on an axis of any size of at least 1.
//! let scope = Scope::new();
//! let n = Dim::symbol(scope.named("n"));
//! scope.restrict(n.as_symbol().unwrap(), Some(1), None);
//! let one = Dim::constant(1);
//! let first = IndexMap::roll(&scope, &[n.clone()], 0, &one)?;
//! let second = IndexMap::roll(&scope, &[n.clone()], 0, &scope.sub(&n, &one))?;
//! let both = first.then(&scope, &second)?;
//! assert!(both.equals(&scope, &IndexMap::identity(&scope, &[n])));
//! # Ok::<(), onnx_slice_fold::index_map::Undecided>(())
//! ```
//!
//! # Form
//! - The result is one flat position, split into **digits** in mixed radix; its shape is kept apart. So Reshape changes the shape and
//!   nothing else.
//! - A source has **axes** that split its flat position the same way, independent of the source's own axes. The position on an axis is
//!   `offset + Σ coefficient · atom`, where an atom is a digit, a table of constants over digits, or a run-time position.
//! - Along a digit a map may have **pieces**, each with its map: a source or a constant.
//!
//! # What holds
//! - Every statement is about elements that exist: it may assume that each digit is at least 1. Sizes 0 and 1 need no special case.
//! - A question that the prover does not decide is an error with the question in it ([`Undecided`]); no number is ever guessed.
//! - Digits, pieces and tables are bounded; a map over a bound is an error with the bound's name.

mod block;
mod canonical;
mod compose;
mod construct;
mod equal;
mod evaluate;
mod fill;
mod form;
mod inverse;
mod join;
mod memo;
mod places;
mod refine;
mod regions;
mod tables;
mod undecided;
mod write;

pub use block::Affine;
pub use construct::{BlockMode, PadMode, Selected};
pub use evaluate::{Binding, Copies, Element};
pub use form::{Fill, IndexMap, MOST_DIGITS, MOST_ENTRIES, MOST_PIECES, Shape};
pub use memo::{Composition, Memo};
pub use places::{Origin, Run};
pub(crate) use refine::{holds_equal, present};
pub use regions::{Position, Region, RegionDigit, RegionOrigin, Variable};
pub use undecided::Undecided;
pub use write::{Allowed, AxisRange, Movement, Operand, Operators, Program, Step};

#[cfg(test)]
mod tests;
