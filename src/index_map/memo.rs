//! Compositions and searches, cached by value: the layers of a model often move data in the same way.
//!
//! Results are kept while nothing more becomes known of the symbols in them. A memo only saves time: its size is bounded, and a result that
//! a limit on proofs has cut is not kept.

use std::cell::{Cell, RefCell};
use std::hash::Hash;
use std::rc::{Rc, Weak};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::form::{IndexMap, Shape};
use super::undecided::Undecided;
use super::write::{Allowed, Chain, Program, Search};
use crate::dim::Scope;

/// The most entries of each table of a memo. A full table is emptied.
const MOST_KNOWN: usize = 1 << 12;

/// The results for one scope of symbols. Compositions and searches in other scopes are not kept, because a symbol of another scope may have other values.
#[derive(Default)]
pub struct Memo {
    composed: RefCell<FxHashMap<Composition, Result<Rc<IndexMap>, Undecided>>>,
    written: RefCell<FxHashMap<(Rc<IndexMap>, Allowed), SmallVec<[Written; 2]>>>,
    chains: RefCell<FxHashMap<Chain, Search>>,
    /// The scope of the symbols in the maps.
    scope: RefCell<Weak<Scope>>,
    /// How much was known of symbols when the oldest result was kept, and how many symbols there were when the last one was.
    learned: Cell<usize>,
    symbols: Cell<usize>,
}

/// A map of which one source is the result of another map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Composition {
    /// The map whose source is replaced.
    pub outer: Rc<IndexMap>,
    /// The number of this source.
    pub at: usize,
    /// The map of which this source is the result.
    pub inner: Rc<IndexMap>,
    /// The sources of the composed map.
    pub sources: SmallVec<[Shape; 2]>,
    /// Which of them are the sources of the outer map, with those of the inner map in place of source `at`.
    pub to: SmallVec<[usize; 4]>,
}

impl Composition {
    fn compose(&self, scope: &Scope) -> Result<IndexMap, Undecided> {
        let kept = |(source, shape): (usize, &Shape)| (source != self.at).then(|| IndexMap::identity(scope, shape));
        let kept: SmallVec<[Option<IndexMap>; 2]> = self.outer.sources.iter().enumerate().map(kept).collect();
        let parts: SmallVec<[&IndexMap; 2]> = kept.iter().map(|kept| kept.as_ref().unwrap_or(&self.inner)).collect();
        self.outer.applied_to(scope, &parts)?.with_sources(scope, &self.sources, &self.to)
    }
}

/// The program of a map with at most this many nodes, if there is one.
struct Written {
    nodes: usize,
    program: Option<Program>,
}

impl Written {
    /// Returns `true` if a search for at most this many nodes gives the same.
    fn is_for(&self, nodes: usize) -> bool {
        let least = self.program.as_ref().map_or(0, Program::nodes);
        (least..=self.nodes).contains(&nodes)
    }
}

impl Memo {
    /// Drops all results if they are for another scope, or if more has become known of their symbols.
    pub fn keep_valid(&self, scope: &Rc<Scope>) {
        let before = self.scope.replace(Rc::downgrade(scope));
        let is_same = Weak::ptr_eq(&before, &Rc::downgrade(scope));
        if is_same && !scope.has_learned_since(self.learned.get(), self.symbols.get()) {
            return;
        }
        self.composed.borrow_mut().clear();
        self.written.borrow_mut().clear();
        self.chains.borrow_mut().clear();
        self.learned.set(scope.learned());
        self.symbols.set(0);
    }

    /// Returns `true` if results for this scope are kept.
    fn is_for(&self, scope: &Scope) -> bool {
        std::ptr::eq(self.scope.borrow().as_ptr(), scope)
    }

    /// Composes two maps.
    ///
    /// # Errors
    /// A question about dims that is not decided.
    pub fn composed(&self, scope: &Scope, composition: Composition) -> Result<Rc<IndexMap>, Undecided> {
        if let Some(found) = self.composed.borrow().get(&composition).filter(|_| self.is_for(scope)) {
            return found.clone();
        }
        let composed = composition.compose(scope).map(Rc::new);
        self.keep(scope, &self.composed, composition, composed.clone());
        composed
    }

    /// Returns the shortest program found for a map, if it has at most the allowed number of nodes.
    pub fn program(&self, scope: &Scope, map: &Rc<IndexMap>, allowed: &Allowed) -> Option<Program> {
        let key = (Rc::clone(map), Allowed { nodes: 0, ..*allowed });
        let earlier = self.written.borrow_mut().remove(&key);
        let mut all = earlier.filter(|_| self.is_for(scope)).unwrap_or_default();
        let found = all.iter().find(|one| one.is_for(allowed.nodes)).map(|one| one.program.clone());
        let program = found.unwrap_or_else(|| {
            let program = map.written(scope, allowed, self);
            all.push(Written { nodes: allowed.nodes, program: program.clone() });
            program
        });
        self.keep(scope, &self.written, key, all);
        program
    }

    /// Returns the chain of at most `nodes` nodes that `search` finds for a map, which resumes an earlier search.
    pub(super) fn chain<R>(&self, scope: &Scope, chain: Chain, search: impl FnOnce(&mut Search) -> R) -> R {
        let known = self.chains.borrow_mut().remove(&chain);
        let mut known = known.filter(|_| self.is_for(scope)).unwrap_or_default();
        let found = search(&mut known);
        self.keep(scope, &self.chains, chain, known);
        found
    }

    fn keep<K: Eq + Hash, V>(&self, scope: &Scope, table: &RefCell<FxHashMap<K, V>>, key: K, value: V) {
        if scope.is_cut() || !self.is_for(scope) {
            return;
        }
        self.symbols.set(scope.symbol_count());
        let mut table = table.borrow_mut();
        if table.len() >= MOST_KNOWN {
            table.clear();
        }
        table.insert(key, value);
    }
}
