//! Why a map is not known: the question that was not decided, or the bound that was exceeded.

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
    /// More than [`MOST_DIGITS`](super::MOST_DIGITS) digits.
    DigitLimit,
    /// More than [`MOST_PIECES`](super::MOST_PIECES) pieces.
    PieceLimit,
    /// More than [`MOST_ENTRIES`](super::MOST_ENTRIES) entries of a table.
    TableLimit,
    /// A number beyond 64 bits.
    Overflow,
    /// Axes that do not fit the ranks.
    Rank,
    /// Shapes or contents of operands that determine the positions are not known.
    Operands,
    /// Runtimes differ in the positions that an operator reads.
    Disputed,
    /// The operator computes elements.
    NoMovement,
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
            Undecided::Operands => "shapes or contents of operands that determine the positions are not known",
            Undecided::Disputed => "runtimes differ in the positions that the operator reads",
            Undecided::NoMovement => "the operator computes elements",
        })
    }
}

impl std::error::Error for Undecided {}
