//! Candidates: the ways to get a row.

use super::row::Row;
use super::step::{Indices, Operand};
use super::terms::Terms;
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
    Apply(Operation),
    /// The same integers in this other type, cast.
    Cast(DType),
    /// The scalar of a vector or the vector of a scalar.
    OtherRank(Row),
    /// Rows of these lengths, one after the other.
    Concat(Vec<usize>),
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
        self.axes.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b))
    }
}

/// An operator and, for each of its operands, the terms that the operand is to hold.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Operation {
    pub operator: &'static str,
    /// The type of the operands.
    pub from: DType,
    /// The type of the result.
    pub to: DType,
    pub columns: Vec<Terms>,
}
