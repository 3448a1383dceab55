//! Caches of earlier results, so that no question is answered twice.
//!
//! A cache only saves time. It is cleared when it is full, and new facts remove the entries that they may change.

use std::cell::{Cell, RefCell};
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Scope;
use crate::dim::answer::Answer;
use crate::dim::bounds::Interval;
use crate::dim::expr::Dim;
use crate::dim::monomial::Atom;

/// The most entries of a cache before it is cleared.
const MAX_MEMO: usize = 1 << 12;
/// The most terms in the keys of a cache before it is cleared.
const MAX_WEIGHT: u32 = 1 << 18;

/// A cache with a bounded size.
#[derive(Debug)]
pub(super) struct Memo<K, V> {
    pub(super) known: RefCell<FxHashMap<K, V>>,
    weight: Cell<u32>,
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Memo { known: RefCell::default(), weight: Cell::default() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Memo<K, V> {
    fn recall(&self, key: &K) -> Option<V> {
        self.known.borrow().get(key).cloned()
    }

    fn remember(&self, key: &K, size: u32, value: V) {
        let mut known = self.known.borrow_mut();
        let mut weight = self.weight.get().saturating_add(size);
        if known.len() >= MAX_MEMO || weight > MAX_WEIGHT {
            known.clear();
            weight = size;
        }
        known.insert(key.clone(), value);
        self.weight.set(weight);
    }

    pub(super) fn forget(&self) {
        self.known.borrow_mut().clear();
        self.weight.set(0);
    }

    pub(super) fn take(&self) -> Memo<K, V> {
        Memo { known: RefCell::new(self.known.take()), weight: Cell::new(self.weight.take()) }
    }

    pub(super) fn restore(&self, taken: Memo<K, V>) {
        self.known.replace(taken.known.into_inner());
        self.weight.set(taken.weight.get());
    }
}

/// Results under assumptions: lower bounds, proofs of `a ≥ 0`, maxima, answers to `a = b` and `a ≤ b`, and quotients.
#[derive(Debug, Default)]
pub(super) struct Findings {
    lows: Memo<Dim, Option<i128>>,
    proofs: Memo<Dim, bool>,
    maxima: Memo<Vec<Dim>, Option<Dim>>,
    equal: Memo<(Dim, Dim), Answer>,
    at_most: Memo<(Dim, Dim), Answer>,
    quotients: Memo<(Dim, Dim), Option<Dim>>,
}

/// The assumptions of results: the suppositions, and `true` if sizes are assumed to fit their types.
pub(super) type Supposed = (Vec<Dim>, bool);

/// The most sets of assumptions whose results are kept.
const MOST_SUPPOSED: usize = 16;

impl Findings {
    pub(super) fn take(&self) -> Findings {
        Findings {
            lows: self.lows.take(),
            proofs: self.proofs.take(),
            maxima: self.maxima.take(),
            equal: self.equal.take(),
            at_most: self.at_most.take(),
            quotients: self.quotients.take(),
        }
    }

    pub(super) fn restore(&self, taken: Findings) {
        self.lows.restore(taken.lows);
        self.proofs.restore(taken.proofs);
        self.maxima.restore(taken.maxima);
        self.equal.restore(taken.equal);
        self.at_most.restore(taken.at_most);
        self.quotients.restore(taken.quotients);
    }

    /// Removes the results that new facts may change. A proof of `a ≥ 0` is still valid.
    pub(super) fn forget_searches(&self) {
        self.lows.forget();
        self.proofs.known.borrow_mut().retain(|_, proved| *proved);
        self.maxima.forget();
    }

    pub(super) fn forget_answers(&self) {
        self.equal.forget();
        self.at_most.forget();
        self.quotients.forget();
    }
}

impl Scope {
    /// Returns the results of an earlier call under these assumptions, if there are no new facts since.
    pub(super) fn recall_supposed(&self, supposed: &Supposed) -> Findings {
        self.supposed.borrow_mut().remove(supposed).unwrap_or_default()
    }

    pub(super) fn remember_supposed(&self, supposed: Supposed, found: Findings) {
        let mut known = self.supposed.borrow_mut();
        if known.len() >= MOST_SUPPOSED {
            known.clear();
        }
        known.insert(supposed, found);
    }

    pub(in crate::dim) fn recall_interval(&self, atom: &Atom) -> Option<Interval> {
        self.intervals.recall(atom)
    }

    pub(in crate::dim) fn remember_interval(&self, atom: &Atom, interval: Interval) {
        self.intervals.remember(atom, atom.size(), interval);
    }

    /// Returns the cached lower bound.
    pub(in crate::dim) fn recall_low(&self, a: &Dim) -> Option<Option<i128>> {
        self.found.lows.recall(a)
    }

    pub(in crate::dim) fn remember_low(&self, a: &Dim, low: Option<i128>) {
        self.found.lows.remember(a, a.size(), low);
    }

    /// Returns the cached result of a proof of `a ≥ 0`.
    pub(in crate::dim) fn recall_proof(&self, a: &Dim) -> Option<bool> {
        self.found.proofs.recall(a)
    }

    pub(in crate::dim) fn remember_proof(&self, a: &Dim, proved: bool) {
        self.found.proofs.remember(a, a.size(), proved);
    }

    /// Returns the cached maximum of these members.
    pub(in crate::dim) fn recall_maximum(&self, members: &Vec<Dim>) -> Option<Option<Dim>> {
        self.found.maxima.recall(members)
    }

    pub(in crate::dim) fn remember_maximum(&self, members: &Vec<Dim>, maximum: Option<Dim>) {
        let size = members.iter().fold(0u32, |sum, member| sum.saturating_add(member.size()));
        self.found.maxima.remember(members, size, maximum);
    }

    /// Returns the cached answer to `a = b`, or that of `find`.
    pub(in crate::dim) fn whether_equal(&self, a: &Dim, b: &Dim, find: impl FnOnce() -> Answer) -> Answer {
        self.answered(&self.found.equal, a, b, find)
    }

    /// Returns the cached answer to `a ≤ b`, or that of `find`.
    pub(in crate::dim) fn whether_at_most(&self, a: &Dim, b: &Dim, find: impl FnOnce() -> Answer) -> Answer {
        self.answered(&self.found.at_most, a, b, find)
    }

    /// Returns the cached quotient of two dims, or that of `find`.
    pub(in crate::dim) fn known_quotient(&self, a: &Dim, b: &Dim, find: impl FnOnce() -> Option<Dim>) -> Option<Dim> {
        self.answered(&self.found.quotients, a, b, find)
    }

    fn answered<T: Clone>(&self, answers: &Memo<(Dim, Dim), T>, a: &Dim, b: &Dim, find: impl FnOnce() -> T) -> T {
        // Doubts count each question, so the cache is bypassed.
        if self.doubts.borrow().is_some() {
            return find();
        }
        let question = (a.clone(), b.clone());
        if let Some(known) = answers.recall(&question) {
            return known;
        }
        let answer = find();
        if !self.is_cut() {
            answers.remember(&question, a.size().saturating_add(b.size()), answer.clone());
        }
        answer
    }

    /// Returns the interned atom that equals this one.
    pub(in crate::dim) fn shared(&self, atom: Atom) -> Atom {
        self.atoms.recall(&atom).unwrap_or_else(|| {
            self.atoms.remember(&atom, atom.size(), atom.clone());
            atom
        })
    }

    /// Returns the cached text of an expression.
    pub(in crate::dim) fn recall_text(&self, a: &Dim) -> Option<Arc<str>> {
        self.texts.recall(a)
    }

    pub(in crate::dim) fn remember_text(&self, a: &Dim, text: &str) {
        self.texts.remember(a, a.size(), text.into());
    }

    /// Returns the dims whose broadcast an expression is. Rules rely on this knowledge, so no entry is dropped.
    pub(in crate::dim) fn recall_parts(&self, a: &Dim) -> Option<Arc<[Dim]>> {
        self.parts.borrow().get(a).cloned()
    }

    pub(in crate::dim) fn remember_parts(&self, a: &Dim, parts: Arc<[Dim]>) {
        self.parts.borrow_mut().insert(a.clone(), parts);
    }
}
