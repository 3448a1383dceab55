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

mod canonical;
mod compose;
mod construct;
mod equal;
mod evaluate;
mod form;
mod inverse;
mod join;
mod places;
mod refine;
mod tables;
mod write;

pub use construct::{BlockMode, PadMode, Selected};
pub use evaluate::{Binding, Element};
pub use form::{Fill, IndexMap, MOST_DIGITS, MOST_ENTRIES, MOST_PIECES, Shape};
pub use write::{Allowed, AxisRange, Movement, Operand, Program, Step};

use crate::dim::{Dim, Scope};

/// Why a map is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undecided {
    /// The first dim is not known to divide the second.
    Divides(Dim, Dim),
    /// The first dim is not known to be at most the second.
    AtMost(Dim, Dim),
    /// The dims are not known to be equal.
    Equal(Dim, Dim),
    /// A table would need constant sizes.
    Symbolic,
    /// A run-time position would have to be split or replaced.
    RunTime,
    /// Some element of the source is read twice, or not at all.
    NoBijection,
    /// A constant index is outside of its axis.
    OutOfRange,
    /// More than [`MOST_DIGITS`] digits.
    DigitLimit,
    /// More than [`MOST_PIECES`] pieces.
    PieceLimit,
    /// More than [`MOST_ENTRIES`] entries of a table.
    TableLimit,
    /// A number beyond 64 bits.
    Overflow,
    /// Axes that do not fit the ranks.
    Rank,
}

impl Undecided {
    /// The open question in words, such as ``does `7` divide `h`?``.
    pub fn question(&self, scope: &Scope) -> String {
        let text = |dim: &Dim| scope.format(dim);
        match self {
            Undecided::Divides(a, b) => format!("does `{}` divide `{}`?", text(a), text(b)),
            Undecided::AtMost(a, b) => format!("is `{}` at most `{}`?", text(a), text(b)),
            Undecided::Equal(a, b) => format!("is `{}` equal to `{}`?", text(a), text(b)),
            other => other.to_string(),
        }
    }
}

impl std::fmt::Display for Undecided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Undecided::Divides(..) => "it is not known whether a dim divides another",
            Undecided::AtMost(..) => "it is not known whether a dim is at most another",
            Undecided::Equal(..) => "it is not known whether two dims are equal",
            Undecided::Symbolic => "a table of positions would need constant sizes",
            Undecided::RunTime => "a position that is computed at run time cannot be split",
            Undecided::NoBijection => "the map is no bijection",
            Undecided::OutOfRange => "a constant index is outside of its axis",
            Undecided::DigitLimit => "the map has more than 16 digits",
            Undecided::PieceLimit => "the map has more than 64 pieces",
            Undecided::TableLimit => "a table of positions has more than 65,536 entries",
            Undecided::Overflow => "a number does not fit 64 bits",
            Undecided::Rank => "the axes do not fit the ranks",
        })
    }
}

impl std::error::Error for Undecided {}

#[cfg(test)]
mod tests;
