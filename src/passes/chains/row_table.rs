//! Rows by number, and what is the same however often a search looks for one.
//!
//! Searches look for the same few rows thousands of times, so a row is compared and hashed once, when it gets its number, and what does
//! not depend on the draft is found once.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::candidate::Operation;
use super::partition::Kind;
use super::row::{Row, RowId};
use super::step::Indices;
use crate::ir::ValueId;
use crate::tensor::Tensor;

/// A tensor from whose shape a row can be read.
#[derive(Debug)]
pub(super) struct Source {
    pub tensor: ValueId,
    pub position: usize,
    /// The axes that have the sizes.
    pub axes: Indices,
    /// How many axes the tensor has.
    pub rank: usize,
}

/// A row, and what was found of it.
pub(super) struct NumberedRow {
    pub row: Rc<Row>,
    /// A bit per term (modulo 64): a bit that another row lacks, a term that it lacks.
    pub mask: u64,
    /// The row as a tensor, if it is one of numbers.
    pub constant: Option<Tensor>,
    /// The operations that give the row.
    pub operations: Option<Rc<[Rc<Operation>]>>,
    /// What its elements are.
    pub kinds: Option<Rc<[Kind]>>,
    /// The tensors it can be read from, the earliest first.
    pub sources: Option<Rc<[Source]>>,
}

/// The rows that were looked for.
#[derive(Default)]
pub(super) struct RowTable {
    list: Vec<NumberedRow>,
    ids: FxHashMap<Rc<Row>, RowId>,
    /// The rows that whole shapes are.
    pub shapes: FxHashMap<ValueId, RowId>,
}

impl RowTable {
    /// The number of a row, if it has one.
    pub fn find(&self, row: &Row) -> Option<RowId> {
        self.ids.get(row).copied()
    }

    /// Gives a row a number, which has none yet. `constant` is the row as a tensor.
    pub fn add(&mut self, row: Row, constant: Option<Tensor>) -> RowId {
        let id = RowId::of(self.list.len());
        let mask = row.terms.iter().fold(0, |mask, term| mask | term.bit());
        let row = Rc::new(row);
        self.ids.insert(Rc::clone(&row), id);
        self.list.push(NumberedRow { row, mask, constant, operations: None, kinds: None, sources: None });
        id
    }

    pub fn get(&self, id: RowId) -> Option<&NumberedRow> {
        self.list.get(id.index())
    }

    pub fn get_mut(&mut self, id: RowId) -> Option<&mut NumberedRow> {
        self.list.get_mut(id.index())
    }
}
