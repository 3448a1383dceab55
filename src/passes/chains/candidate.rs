//! Candidates: the ways to compute a row.

use std::rc::Rc;

use smallvec::SmallVec;

use super::row::RowId;
use super::step::{Indices, Operand};
use crate::ir::ValueId;
use crate::tensor::DType;

/// A way to compute a row.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    /// Entries of a vector in the plan, and the number of all its entries.
    Pick { data: Operand, length: usize, indices: Indices },
    /// Axes of a tensor's shape.
    Read(Reading),
    /// A copy of the node that computes the row now, on equal operands.
    Copy(ValueId),
    /// One operation on rows.
    Apply(Rc<Operation>),
    /// A Cast of the same integers from this other type.
    Cast(DType),
    /// The scalar of a vector, or the vector of a scalar.
    OtherRank(RowId),
    /// A Concat of rows of these lengths.
    Concat(Vec<usize>),
    /// A vector that differs only in numbers, and the row to add to it.
    Patched { data: Operand, offsets: RowId },
    /// Entries of a vector with numbers appended.
    Among { vector: RowId, numbers: RowId },
}

/// Some axes of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub tensor: ValueId,
    pub axes: Indices,
}

impl Reading {
    /// Returns `true` if the axes are consecutive.
    pub fn is_run(&self) -> bool {
        is_run(&self.axes)
    }
}

/// Returns `true` if axes are consecutive.
pub(super) fn is_run(axes: &[usize]) -> bool {
    axes.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b))
}

/// An operator and its operands.
#[derive(Debug)]
pub(super) struct Operation {
    pub operator: &'static str,
    /// `true` if it reduces a vector to one element.
    pub reduces: bool,
    /// The type of the result.
    pub to: DType,
    /// `true` if it keeps the first element that is no number.
    pub skips_first: bool,
    /// The rows for each operand; `None` if every operand is uniform, because the result would have one element.
    pub operands: Option<Vec<SmallVec<[RowId; 2]>>>,
}
