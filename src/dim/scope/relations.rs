//! The given relations, indexed by their symbols.
//!
//! Every question to the prover visits only the relations about its own symbols. Relations about other parts of the model neither displace
//! them nor cost time.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dim::expr::{Dim, Symbol};

/// The most relations about one symbol. Further ones are dropped, which is always sound. Without the limit, N nodes that each imply another
/// relation about one symbol cost N² comparisons.
const MOST_ABOUT_A_SYMBOL: usize = 1024;

/// Expressions that are at least 0.
#[derive(Clone, Debug, Default)]
pub(in crate::dim) struct Relations {
    list: Vec<Dim>,
    /// The indices in `list` of the relations that mention each symbol, ascending.
    about: FxHashMap<Symbol, Vec<usize>>,
}

impl Relations {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Dim> {
        self.list.iter()
    }

    /// Adds a relation. Returns `None` if it mentions a symbol with too many relations, and `false` if it is known or mentions no symbol.
    pub fn push(&mut self, relation: Dim) -> Option<bool> {
        let symbols = relation.symbols();
        let count = |symbol: &Symbol| self.about.get(symbol).map_or(0, Vec::len);
        let is_full = symbols.iter().any(|symbol| count(symbol) >= MOST_ABOUT_A_SYMBOL);
        let Some(rarest) = symbols.iter().min_by_key(|symbol| count(symbol)) else { return Some(false) };
        if self.about.get(rarest).into_iter().flatten().any(|&at| self.list.get(at) == Some(&relation)) {
            return Some(false);
        }
        if is_full {
            return None;
        }
        let at = self.list.len();
        symbols.into_iter().for_each(|symbol| self.about.entry(symbol).or_default().push(at));
        self.list.push(relation);
        Some(true)
    }

    /// Removes all relations except the first `count`.
    pub fn truncate(&mut self, count: usize) {
        for relation in self.list.split_off(count.min(self.list.len())) {
            for symbol in relation.symbols() {
                if let Some(places) = self.about.get_mut(&symbol) {
                    places.pop();
                }
            }
        }
    }

    /// Returns `true` if a relation mentions a symbol of `a`.
    pub fn are_about(&self, a: &Dim) -> bool {
        !self.list.is_empty() && a.has_symbol(|symbol| self.about.get(&symbol).is_some_and(|places| !places.is_empty()))
    }

    /// Returns the indices of the relations that mention `symbol`.
    pub fn about_symbol(&self, symbol: Symbol) -> &[usize] {
        self.about.get(&symbol).map_or(&[], Vec::as_slice)
    }

    /// Returns the relations that mention a symbol of `a`, with their indices, in the order in which they were added.
    pub fn about(&self, a: &Dim) -> impl Iterator<Item = (usize, &Dim)> {
        let mut places: SmallVec<[usize; 16]> = SmallVec::new();
        if !self.list.is_empty() {
            a.has_symbol(|symbol| {
                places.extend_from_slice(self.about_symbol(symbol));
                false
            });
            places.sort_unstable();
            places.dedup();
        }
        places.into_iter().filter_map(|at| Some((at, self.list.get(at)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Scope;

    #[test]
    fn relations_are_found_by_their_symbols() {
        let scope = Scope::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| Dim::symbol(scope.named(name)));
        let mut relations = Relations::default();
        let (first, second) = (scope.sub(&a, &b), scope.sub(&b, &c));
        let added = [first.clone(), first, second.clone()].map(|relation| relations.push(relation));
        assert_eq!(added, [Some(true), Some(false), Some(true)]);
        let about = |relations: &Relations, dim: &Dim| relations.about(dim).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(about(&relations, &scope.add(&a, &c)), [0, 1]);
        assert_eq!(about(&relations, &a), [0]);
        relations.truncate(1);
        assert!(!relations.are_about(&c) && relations.are_about(&b));
        assert!(relations.push(second) == Some(true) && relations.len() == 2);
    }

    #[test]
    fn one_symbol_has_a_limited_number_of_relations() {
        let scope = Scope::new();
        let a = Dim::symbol(scope.named("a"));
        let mut relations = Relations::default();
        let other = |at: usize| scope.sub(&a, &Dim::symbol(scope.named(&format!("s{at}"))));
        assert!((0..MOST_ABOUT_A_SYMBOL).all(|at| relations.push(other(at)) == Some(true)));
        assert_eq!([relations.push(other(MOST_ABOUT_A_SYMBOL)), relations.push(other(0))], [None, Some(false)]);
        assert_eq!(relations.push(Dim::symbol(scope.named("elsewhere"))), Some(true));
    }
}
