//! Candidates: the ways to get a row.

use std::rc::Rc;

use smallvec::SmallVec;

use super::row::RowId;
use super::step::{Indices, Operand};
use crate::ir::ValueId;
use crate::tensor::DType;

/// A way to get a row.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    /// Entries of a vector that the plan has, and how many it has in all.
    Pick { data: Operand, length: usize, indices: Indices },
    /// Axes of a tensor's shape.
    Read(Reading),
    /// The node that computes the row now, on operands that hold the same as its own.
    Copy(ValueId),
    /// One operation on rows.
    Apply(Rc<Operation>),
    /// The same integers in this other type, cast.
    Cast(DType),
    /// The scalar of a vector or the vector of a scalar.
    OtherRank(RowId),
    /// Rows of these lengths, one after the other.
    Concat(Vec<usize>),
    /// A vector that differs in numbers only, and what is added to it.
    Patched { data: Operand, offsets: RowId },
    /// Entries of a vector and of numbers behind it.
    Among { vector: RowId, numbers: RowId },
}

/// Some axes of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub tensor: ValueId,
    pub axes: Indices,
}

impl Reading {
    /// Whether the axes follow one another.
    pub fn is_run(&self) -> bool {
        is_run(&self.axes)
    }
}

/// Whether axes follow one another.
pub(super) fn is_run(axes: &[usize]) -> bool {
    axes.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b))
}

/// An operator and its operands.
#[derive(Debug)]
pub(super) struct Operation {
    pub operator: &'static str,
    /// Whether it makes one element of a vector.
    pub reduces: bool,
    /// The type of the result.
    pub to: DType,
    /// Whether it leaves the first element that is no number as it is.
    pub skips_first: bool,
    /// The rows that serve as each operand; `None` if with all of them the result would have one element.
    pub operands: Option<Vec<SmallVec<[RowId; 2]>>>,
}
