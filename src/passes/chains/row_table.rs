//! Numbers rows, and caches results that are the same in every search.
//!
//! Searches look up the same few rows thousands of times. So a row is compared and hashed once, when it gets its number, and results that do not
//! depend on the draft are computed once.

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
    /// The axes with the sizes.
    pub axes: Indices,
    /// The rank of the tensor.
    pub rank: usize,
}

/// A row, and cached results about it.
pub(super) struct NumberedRow {
    pub row: Rc<Row>,
    /// A bit per term (modulo 64). If another row lacks a bit, it lacks a term.
    pub mask: u64,
    /// The row as a tensor, if its terms are numbers.
    pub constant: Option<Tensor>,
    /// The operations that compute the row.
    pub operations: Option<Rc<[Rc<Operation>]>>,
    /// The kinds of its elements.
    pub kinds: Option<Rc<[Kind]>>,
    /// The tensors it can be read from, the earliest first.
    pub sources: Option<Rc<[Source]>>,
}

/// The rows of the searches.
#[derive(Default)]
pub(super) struct RowTable {
    list: Vec<NumberedRow>,
    ids: FxHashMap<Rc<Row>, RowId>,
    /// The rows of whole shapes.
    pub shapes: FxHashMap<ValueId, RowId>,
}

impl RowTable {
    /// Returns the number of a row, if it has one.
    pub fn find(&self, row: &Row) -> Option<RowId> {
        self.ids.get(row).copied()
    }

    /// Adds a new row, and returns its number. `constant` is the row as a tensor.
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
