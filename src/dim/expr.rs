//! The canonical form: integer polynomials over atoms, and the arithmetic that needs no knowledge of the symbols.
//!
//! A polynomial is a list of terms `coefficient · monomial` in descending graded lexicographic order, with non-zero coefficients and
//! distinct monomials. Equal lists are equal polynomials, so `Eq`, `Ord` and `Hash` of a [`Dim`] compare only the list. All arithmetic is
//! checked: `None` means that a coefficient overflows `i64`, or that the result would exceed [`MAX_TERMS`], [`MAX_DEPTH`] or
//! [`MAX_DEGREE`](super::monomial::MAX_DEGREE). These three limits bound every expression, so recursion over nested atoms is bounded, too,
//! in depth and in total.

mod polynomial;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::monomial::{Atom, Monomial, Summand, combine};

/// The most terms in one expression, including those inside its atoms.
pub(super) const MAX_TERMS: u32 = 4096;
/// The deepest nesting of atoms.
pub(super) const MAX_DEPTH: u32 = 64;

/// A symbol of one [`Scope`](super::Scope), ordered by creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(pub(super) u32);

impl Symbol {
    /// Returns this symbol's bit in the masks of symbols that an expression may contain.
    pub(super) fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// An integer expression in canonical form: an integer polynomial over symbols, floor divisions and maxima.
///
/// A constant is stored inline. Other expressions are shared, so that a clone costs one reference count. Comparison and hashing are
/// structural. Two dims that differ may still be equal for every value of their symbols; [`Scope::eq`](super::Scope::eq) decides that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Const(i64),
    /// Never a constant.
    Poly(Arc<Poly>),
}

impl PartialOrd for Repr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Repr {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Repr::Const(a), Repr::Const(b)) => a.cmp(b),
            (Repr::Const(_), Repr::Poly(_)) => Ordering::Less,
            (Repr::Poly(_), Repr::Const(_)) => Ordering::Greater,
            (Repr::Poly(a), Repr::Poly(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Repr::Poly(a), Repr::Poly(b)) => a.terms.cmp(&b.terms),
        }
    }
}

/// The shared part of a dim. All fields but `terms` are derived from `terms`.
struct Poly {
    terms: Vec<Summand>,
    hash: u64,
    mask: u64,
    size: u32,
    depth: u32,
}

impl PartialEq for Poly {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.terms == other.terms
    }
}

impl Eq for Poly {}

impl Hash for Poly {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The terms of a dim, also of a constant.
pub(super) enum Terms<'d> {
    Constant(Option<Summand>),
    Shared(&'d [Summand]),
}

impl Deref for Terms<'_> {
    type Target = [Summand];

    fn deref(&self) -> &[Summand] {
        match self {
            Terms::Constant(term) => term.as_slice(),
            Terms::Shared(terms) => terms,
        }
    }
}

impl Dim {
    /// Returns the constant `value`.
    pub const fn constant(value: i64) -> Dim {
        Dim(Repr::Const(value))
    }

    /// Returns the expression that consists of `symbol`.
    pub fn symbol(symbol: Symbol) -> Dim {
        let monomial = Monomial::atom(Atom::Symbol(symbol));
        let term = Summand { monomial, coefficient: 1 };
        let (hash, mask) = (hash_of(&term), symbol.bit());
        Dim(Repr::Poly(Arc::new(Poly { terms: vec![term], hash, mask, size: 1, depth: 0 })))
    }

    /// Returns the value of a constant expression.
    pub fn as_const(&self) -> Option<i64> {
        match &self.0 {
            Repr::Const(value) => Some(*value),
            Repr::Poly(_) => None,
        }
    }

    /// Returns `true` for the constant `value`.
    pub fn is_const(&self, value: i64) -> bool {
        self.as_const() == Some(value)
    }

    /// Returns the symbol, if the expression consists of one symbol.
    pub fn as_symbol(&self) -> Option<Symbol> {
        match self.as_atom() {
            Some(Atom::Symbol(symbol)) => Some(*symbol),
            _ => None,
        }
    }

    /// Returns every symbol of the expression, including those inside floor divisions and maxima.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let mut found = BTreeSet::new();
        self.visit_symbols(&mut |symbol| {
            found.insert(symbol);
        });
        found
    }

    /// Returns `true` if this is a sum of a constant and multiples of symbols, with at least one negative multiple. Then `≥ 0` is an upper
    /// bound of the subtracted symbol.
    pub fn is_difference(&self) -> bool {
        let is_number = |term: &Summand| term.monomial.is_one();
        let is_symbol = |term: &Summand| matches!(term.monomial.as_atom(), Some(Atom::Symbol(_)));
        self.terms().iter().all(|term| is_number(term) || is_symbol(term))
            && self.terms().iter().any(|term| !is_number(term) && term.coefficient < 0)
    }

    /// Returns the number of terms, including those inside floor divisions and maxima.
    pub fn term_count(&self) -> usize {
        self.size() as usize
    }

    /// Returns the value for the symbols' values in `binding`. `None` if a symbol has no value, a divisor is zero, or a value exceeds the
    /// range of exact computation.
    pub fn evaluate(&self, binding: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        i64::try_from(self.evaluate_wide(binding)?).ok()
    }

    fn evaluate_wide(&self, binding: &dyn Fn(Symbol) -> Option<i64>) -> Option<i128> {
        self.evaluate_over(|atom| match atom {
            Atom::Symbol(symbol) => binding(*symbol).map(i128::from),
            _ => atom.evaluate(|inner| inner.evaluate_wide(binding)),
        })
    }

    /// Returns the value for the atoms' values in `value_of`.
    pub(super) fn evaluate_over(&self, mut value_of: impl FnMut(&Atom) -> Option<i128>) -> Option<i128> {
        let poly = match &self.0 {
            Repr::Const(value) => return Some(i128::from(*value)),
            Repr::Poly(poly) => poly,
        };
        let mut sum = 0i128;
        for term in &poly.terms {
            let mut product = i128::from(term.coefficient);
            for factor in term.monomial.factors() {
                let base = value_of(&factor.atom)?;
                let power = if factor.exponent == 1 { base } else { base.checked_pow(factor.exponent)? };
                product = product.checked_mul(power)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// Returns `true` if `is_it` holds for a symbol of the expression.
    pub fn has_symbol(&self, mut is_it: impl FnMut(Symbol) -> bool) -> bool {
        if let Some(symbol) = self.as_symbol() {
            return is_it(symbol);
        }
        let mut found = false;
        self.visit_symbols(&mut |symbol| found |= is_it(symbol));
        found
    }

    fn visit_symbols(&self, visit: &mut dyn FnMut(Symbol)) {
        for factor in self.terms().iter().flat_map(|term| term.monomial.factors()) {
            if let Atom::Symbol(symbol) = factor.atom {
                visit(symbol);
            }
            factor.atom.inner().for_each(|inner| inner.visit_symbols(visit));
        }
    }

    /// Returns the absolute values of all constant terms, those inside floor divisions and maxima included.
    pub(super) fn constants(&self) -> BTreeSet<i64> {
        let mut found = BTreeSet::from([self.offset().saturating_abs()]);
        let terms = self.terms();
        for factor in terms.iter().flat_map(|term| term.monomial.factors()) {
            factor.atom.inner().for_each(|inner| found.extend(inner.constants()));
        }
        found
    }

    /// Returns `true` if the expression contains `symbol`.
    pub(super) fn mentions(&self, symbol: Symbol) -> bool {
        let mut found = false;
        if self.mask() & symbol.bit() != 0 {
            self.visit_symbols(&mut |other| found |= other == symbol);
        }
        found
    }

    pub(super) fn as_atom(&self) -> Option<&Atom> {
        match &self.0 {
            Repr::Poly(poly) => match poly.terms.as_slice() {
                [Summand { monomial, coefficient: 1 }] => monomial.as_atom(),
                _ => None,
            },
            Repr::Const(_) => None,
        }
    }

    pub(super) fn size(&self) -> u32 {
        match &self.0 {
            Repr::Const(_) => 1,
            Repr::Poly(poly) => poly.size,
        }
    }

    pub(super) fn depth(&self) -> u32 {
        match &self.0 {
            Repr::Const(_) => 0,
            Repr::Poly(poly) => poly.depth,
        }
    }

    /// Returns one bit for each symbol (modulo 64): expressions without a common bit have no common symbol.
    pub(super) fn mask(&self) -> u64 {
        match &self.0 {
            Repr::Const(_) => 0,
            Repr::Poly(poly) => poly.mask,
        }
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        match &self.0 {
            Repr::Const(0) => Terms::Constant(None),
            Repr::Const(value) => Terms::Constant(Some(Summand { monomial: Monomial::One, coefficient: *value })),
            Repr::Poly(poly) => Terms::Shared(&poly.terms),
        }
    }

    /// Returns the constant term.
    pub fn offset(&self) -> i64 {
        match &self.0 {
            Repr::Const(value) => *value,
            Repr::Poly(poly) => match poly.terms.last() {
                Some(Summand { monomial: Monomial::One, coefficient }) => *coefficient,
                _ => 0,
            },
        }
    }

    /// Returns the greatest term; for a constant, the constant.
    pub(super) fn leading(&self) -> Summand {
        self.terms().first().cloned().unwrap_or(Summand { monomial: Monomial::One, coefficient: 0 })
    }

    /// Sorts the terms, merges equal monomials and removes zeros.
    pub(super) fn from_terms(mut terms: Vec<Summand>) -> Option<Dim> {
        combine(&mut terms)?;
        Dim::from_sorted(terms)
    }

    /// Builds a dim from terms in canonical order.
    pub(super) fn from_sorted(terms: Vec<Summand>) -> Option<Dim> {
        match terms.as_slice() {
            [] => return Some(Dim::constant(0)),
            [Summand { monomial: Monomial::One, coefficient }] => return Some(Dim::constant(*coefficient)),
            _ => {}
        }
        let (mut hash, mut mask, mut size, mut depth) = (0u64, 0, 0u32, 0);
        for term in &terms {
            let (own_size, own_depth, own_mask) = term.reach();
            hash = hash.wrapping_add(hash_of(term));
            mask |= own_mask;
            size = size.saturating_add(own_size);
            depth = depth.max(own_depth);
        }
        let poly = Poly { terms, hash, mask, size, depth };
        (size <= MAX_TERMS && depth <= MAX_DEPTH).then(|| Dim(Repr::Poly(Arc::new(poly))))
    }
}

/// Returns the hash of a term. The hash of a dim is the sum over its terms, so that one term can be replaced.
fn hash_of(term: &Summand) -> u64 {
    let mut hasher = FxHasher::default();
    term.hash(&mut hasher);
    hasher.finish()
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim::constant(value)
    }
}

impl From<Symbol> for Dim {
    fn from(symbol: Symbol) -> Dim {
        Dim::symbol(symbol)
    }
}
