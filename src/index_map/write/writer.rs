//! The parameters of the search.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::movement::Movement;
use super::single::Aligned;
use crate::dim::Scope;
use crate::index_map::form::{Atom, Axis, Form, IndexMap, Term};
use crate::index_map::memo::Memo;

/// The movements that a written program may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allowed {
    /// Gather, where Slice, or Concat of a few slices, would do.
    pub gather: bool,
    /// Slices with a negative step.
    pub negative_step: bool,
    /// SpaceToDepth and DepthToSpace.
    pub blocks: bool,
    /// The most nodes.
    pub nodes: usize,
}

impl Allowed {
    /// All movements, and this many nodes.
    pub fn all(nodes: usize) -> Allowed {
        Allowed { gather: true, negative_step: true, blocks: true, nodes }
    }
}

/// A search for one map.
#[derive(Clone, Copy)]
pub(super) struct Writer<'s> {
    pub scope: &'s Scope,
    pub allowed: &'s Allowed,
    /// Whether tables may be written as Gather.
    pub tables: bool,
    /// Earlier searches.
    pub memo: &'s Memo,
    /// The remaining units of work.
    pub work: &'s Cell<usize>,
    /// The maps of this search whose axes and digits were aligned.
    pub aligned: &'s RefCell<FxHashMap<IndexMap, Option<Rc<Aligned>>>>,
}

/// The map of a chain, and the movements that the chain may contain.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::index_map) struct Chain {
    pub map: IndexMap,
    pub allowed: Allowed,
    pub tables: bool,
}

/// A search for a chain.
pub(in crate::index_map) struct Search {
    /// The length up to which chains were searched for, or the length at which one was found.
    pub length: usize,
    pub found: Option<Vec<Movement>>,
    /// The remaining units of work.
    pub work: usize,
}

impl Default for Search {
    fn default() -> Self {
        Search { length: 0, found: None, work: MOST_WORK }
    }
}

/// The work of one search. A unit is a map that is examined as one node; a table costs one more for each [`ENTRIES_PER_UNIT`] entries. Chains of
/// four movements that have a shorter program take 3 units, 99 of 100 at most 42; a search in vain takes all.
const MOST_WORK: usize = 48;
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
