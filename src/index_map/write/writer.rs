//! A search with its parameters.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::aligned::Aligned;
use super::search::Allowed;
use crate::dim::Scope;
use crate::index_map::form::{Atom, Axis, Form, IndexMap, Shape, Term};
use crate::index_map::memo::Memo;

/// A search for one map.
#[derive(Clone, Copy)]
pub(super) struct Writer<'s> {
    pub scope: &'s Scope,
    pub allowed: &'s Allowed,
    /// The shapes of the sources. The map of a chain numbers its data 0, and source `i` with run-time positions `i + 1`.
    pub sources: &'s [Shape],
    /// Whether tables may be written as Gather.
    pub tables: bool,
    /// Earlier searches.
    pub memo: &'s Memo,
    /// The remaining units of work.
    pub work: &'s Cell<usize>,
    /// The maps of this search whose axes and digits were aligned.
    pub aligned: &'s RefCell<FxHashMap<IndexMap, Option<Rc<Aligned>>>>,
}

/// The entries of a table that cost one unit of work.
const ENTRIES_PER_UNIT: usize = 1024;

impl Writer<'_> {
    /// The map with its axes and digits aligned, if it can be.
    pub fn aligned(&self, map: &IndexMap) -> Option<Rc<Aligned>> {
        if let Some(known) = self.aligned.borrow().get(map) {
            return known.clone();
        }
        let aligned = Aligned::of(self.scope, map).map(Rc::new);
        self.aligned.borrow_mut().insert(map.clone(), aligned.clone());
        aligned
    }

    /// Takes the work of examining a map; `None` if not enough remains.
    pub fn spend(&self, map: &IndexMap) -> Option<()> {
        let entries_of = |term: &Term| match &term.atom {
            Atom::Table(table) => table.values.len(),
            _ => 0,
        };
        let axes: &[Axis] = if let Form::Read(read) = &map.core.form { &read.axes } else { &[] };
        let entries: usize = axes.iter().flat_map(|axis| &axis.at.terms).map(entries_of).sum();
        let units = (entries / ENTRIES_PER_UNIT).saturating_add(1);
        self.work.set(self.work.get().checked_sub(units)?);
        Some(())
    }
}
