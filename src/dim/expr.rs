//! The canonical form: integer polynomials over atoms, and the arithmetic that needs no knowledge of the symbols.
//!
//! A polynomial is a list of terms `coefficient · monomial`, sorted by descending graded lexicographic order, every
//! coefficient non-zero and every monomial at most once. Equal lists are equal polynomials, so `Eq`, `Ord` and `Hash`
//! of a [`Dim`] look at the list and at nothing else. Everything here is checked: `None` says that a coefficient left
//! `i64` or that the result would outgrow [`MAX_TERMS`], [`MAX_DEPTH`] or [`MAX_DEGREE`](super::monomial::MAX_DEGREE). Those three bound every
//! expression, so recursion over nested atoms is bounded too, in depth and in total.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::integer::greatest_common_divisor;
use super::monomial::{Atom, Monomial, Summand, combine};

/// Terms in one expression, those inside its atoms included.
pub(super) const MAX_TERMS: u32 = 4096;
/// How deep atoms may nest.
pub(super) const MAX_DEPTH: u32 = 64;

/// A symbol of one [`Scope`](super::Scope), ordered by creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(pub(super) u32);

impl Symbol {
    /// This symbol's bit in the masks that say which symbols an expression may contain.
    pub(super) fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// An integer expression in canonical form: an integer polynomial over symbols, floor divisions and maxima.
///
/// A constant is stored in place; anything else is shared, so that a clone costs one reference count. Comparison and
/// hashing are structural. Two dims that differ may still be equal for every value of their symbols: that is the
/// question [`Scope::eq`](super::Scope::eq) answers.
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

/// The shared part of a dim. All but `terms` is derived from them.
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

/// The terms of a dim, a constant's included.
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
    /// The constant `value`.
    pub const fn constant(value: i64) -> Dim {
        Dim(Repr::Const(value))
    }

    /// The expression that is `symbol` alone.
    pub fn symbol(symbol: Symbol) -> Dim {
        let monomial = Monomial::atom(Atom::Symbol(symbol));
        let term = Summand { monomial, coefficient: 1 };
        let (hash, mask) = (hash_of(&term), symbol.bit());
        Dim(Repr::Poly(Arc::new(Poly { terms: vec![term], hash, mask, size: 1, depth: 0 })))
    }

    /// The value of a constant expression.
    pub fn as_const(&self) -> Option<i64> {
        match &self.0 {
            Repr::Const(value) => Some(*value),
            Repr::Poly(_) => None,
        }
    }

    /// Whether this is the constant `value`.
    pub fn is_const(&self, value: i64) -> bool {
        self.as_const() == Some(value)
    }

    /// The symbol, when the expression is nothing else.
    pub fn as_symbol(&self) -> Option<Symbol> {
        match self.as_atom() {
            Some(Atom::Symbol(symbol)) => Some(*symbol),
            _ => None,
        }
    }

    /// Every symbol that occurs, inside floor divisions and maxima too.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let mut found = BTreeSet::new();
        self.visit_symbols(&mut |symbol| {
            found.insert(symbol);
        });
        found
    }

    /// How many terms the expression has, those inside floor divisions and maxima included.
    pub fn term_count(&self) -> usize {
        self.size() as usize
    }

    /// The value where each symbol has the value `binding` gives it. `None` when a symbol has none, a divisor is zero,
    /// or a value leaves the range in which it can be computed exactly.
    pub fn evaluate(&self, binding: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        i64::try_from(self.evaluate_wide(binding)?).ok()
    }

    fn evaluate_wide(&self, binding: &dyn Fn(Symbol) -> Option<i64>) -> Option<i128> {
        self.evaluate_over(|atom| match atom {
            Atom::Symbol(symbol) => binding(*symbol).map(i128::from),
            _ => atom.evaluate(|inner| inner.evaluate_wide(binding)),
        })
    }

    /// The value where each atom of a term has the value `value_of` gives it.
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

    fn visit_symbols(&self, visit: &mut dyn FnMut(Symbol)) {
        for factor in self.terms().iter().flat_map(|term| term.monomial.factors()) {
            if let Atom::Symbol(symbol) = factor.atom {
                visit(symbol);
            }
            factor.atom.inner().for_each(|inner| inner.visit_symbols(visit));
        }
    }

    /// Whether `symbol` occurs anywhere.
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

    /// A bit per symbol (modulo 64): no common bit, no common symbol.
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

    /// The constant term.
    pub(super) fn offset(&self) -> i64 {
        match &self.0 {
            Repr::Const(value) => *value,
            Repr::Poly(poly) => match poly.terms.last() {
                Some(Summand { monomial: Monomial::One, coefficient }) => *coefficient,
                _ => 0,
            },
        }
    }

    /// The greatest term; the constant itself for a constant.
    pub(super) fn leading(&self) -> Summand {
        self.terms().first().cloned().unwrap_or(Summand { monomial: Monomial::One, coefficient: 0 })
    }

    /// Sorts, adds up equal monomials and drops zeros.
    pub(super) fn from_terms(mut terms: Vec<Summand>) -> Option<Dim> {
        combine(&mut terms)?;
        Dim::from_sorted(terms)
    }

    /// `terms` are already in canonical order.
    pub(super) fn from_sorted(terms: Vec<Summand>) -> Option<Dim> {
        match terms.as_slice() {
            [] => return Some(Dim::constant(0)),
            [Summand { monomial: Monomial::One, coefficient }] => return Some(Dim::constant(*coefficient)),
            _ => {}
        }
        let (mut hash, mut mask, mut size, mut depth) = (0u64, 0, 0u32, 0);
        for term in &terms {
            hash = hash.wrapping_add(hash_of(term));
            mask |= term.mask();
            size = size.saturating_add(term.size());
            depth = depth.max(term.depth());
        }
        let poly = Poly { terms, hash, mask, size, depth };
        (size <= MAX_TERMS && depth <= MAX_DEPTH).then(|| Dim(Repr::Poly(Arc::new(poly))))
    }

    pub(super) fn plus(&self, other: &Dim) -> Option<Dim> {
        self.plus_scaled(other, 1)
    }

    pub(super) fn minus(&self, other: &Dim) -> Option<Dim> {
        self.plus_scaled(other, -1)
    }

    /// `self + scale · other`.
    pub(super) fn plus_scaled(&self, other: &Dim, scale: i64) -> Option<Dim> {
        if let (Repr::Const(a), Repr::Const(b)) = (&self.0, &other.0) {
            return Some(Dim::constant(a.checked_add(b.checked_mul(scale)?)?));
        }
        if scale == 0 || other.is_const(0) {
            return Some(self.clone());
        }
        if let Some(sum) = self.plus_few(other, scale) {
            return Some(sum);
        }
        let (left, right) = (self.terms(), other.terms());
        let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
        let mut terms = Vec::with_capacity(left.len().saturating_add(right.len()));
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.monomial.cmp(&b.monomial) {
                Ordering::Greater => terms.extend(left.next().cloned()),
                Ordering::Less => {
                    terms.push(b.scaled(scale)?);
                    right.next();
                }
                Ordering::Equal => {
                    let coefficient = a.coefficient.checked_add(b.coefficient.checked_mul(scale)?)?;
                    if coefficient != 0 {
                        terms.push(Summand { monomial: a.monomial.clone(), coefficient });
                    }
                    left.next();
                    right.next();
                }
            }
        }
        terms.extend(left.cloned());
        for term in right {
            terms.push(term.scaled(scale)?);
        }
        Dim::from_sorted(terms)
    }

    /// [`plus_scaled`](Dim::plus_scaled) for a long sum and few terms to add, without looking at every term: what makes a
    /// long chain of additions quick. `None` where the general way is to be taken.
    fn plus_few(&self, few: &Dim, scale: i64) -> Option<Dim> {
        let Repr::Poly(poly) = &self.0 else { return None };
        let few = few.terms();
        if few.len().saturating_mul(16) > poly.terms.len() {
            return None;
        }
        let Poly { mut hash, mut mask, mut size, mut depth, .. } = **poly;
        let mut terms = Vec::with_capacity(poly.terms.len().saturating_add(few.len()));
        let mut rest = poly.terms.as_slice();
        for term in few.iter() {
            let mut added = term.scaled(scale)?;
            let place = rest.partition_point(|own| own.monomial > added.monomial);
            let (before, after) = rest.split_at_checked(place)?;
            terms.extend_from_slice(before);
            rest = after;
            match after.split_first() {
                Some((own, after)) if own.monomial == added.monomial => {
                    added.coefficient = added.coefficient.checked_add(own.coefficient).filter(|sum| *sum != 0)?;
                    hash = hash.wrapping_sub(hash_of(own));
                    rest = after;
                }
                _ => {
                    size = size.checked_add(added.size())?;
                    depth = depth.max(added.depth());
                    mask |= added.mask();
                }
            }
            hash = hash.wrapping_add(hash_of(&added));
            terms.push(added);
        }
        terms.extend_from_slice(rest);
        (size <= MAX_TERMS).then(|| Dim(Repr::Poly(Arc::new(Poly { terms, hash, mask, size, depth }))))
    }

    pub(super) fn times(&self, other: &Dim) -> Option<Dim> {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => Some(Dim::constant(a.checked_mul(*b)?)),
            (Repr::Const(scale), _) => other.scaled(*scale),
            (_, Repr::Const(scale)) => self.scaled(*scale),
            (Repr::Poly(a), Repr::Poly(b)) => {
                let count = a.terms.len().checked_mul(b.terms.len())?;
                if count > 2 * MAX_TERMS as usize {
                    return None;
                }
                let mut terms = Vec::with_capacity(count);
                for left in &a.terms {
                    for right in &b.terms {
                        terms.push(left.times(right)?);
                    }
                }
                Dim::from_terms(terms)
            }
        }
    }

    pub(super) fn scaled(&self, scale: i64) -> Option<Dim> {
        match scale {
            0 => Some(Dim::constant(0)),
            1 => Some(self.clone()),
            _ => self.map_coefficients(|coefficient| coefficient.checked_mul(scale)),
        }
    }

    /// The order is compatible with multiplication, so the terms stay sorted.
    pub(super) fn times_term(&self, term: &Summand) -> Option<Dim> {
        if term.monomial.is_one() || term.coefficient == 0 {
            return self.scaled(term.coefficient);
        }
        let scaled: Option<Vec<Summand>> = self.terms().iter().map(|own| own.times(term)).collect();
        Dim::from_sorted(scaled?)
    }

    /// Replaces every coefficient; `change` never answers zero.
    fn map_coefficients(&self, change: impl Fn(i64) -> Option<i64>) -> Option<Dim> {
        match &self.0 {
            Repr::Const(value) => Some(Dim::constant(change(*value)?)),
            Repr::Poly(poly) => {
                let changed = poly.terms.iter().map(|term| {
                    Some(Summand { monomial: term.monomial.clone(), coefficient: change(term.coefficient)? })
                });
                let terms: Vec<Summand> = changed.collect::<Option<_>>()?;
                let hash = terms.iter().fold(0u64, |hash, term| hash.wrapping_add(hash_of(term)));
                let Poly { mask, size, depth, .. } = **poly;
                Some(Dim(Repr::Poly(Arc::new(Poly { terms, hash, mask, size, depth }))))
            }
        }
    }

    /// Divides every coefficient by `divisor`, which divides them all.
    pub(super) fn over_const(&self, divisor: i64) -> Option<Dim> {
        if divisor == 1 { Some(self.clone()) } else { self.map_coefficients(|c| c.checked_div(divisor)) }
    }

    /// Divides by `monomial`, which divides every term.
    pub(super) fn over_monomial(&self, monomial: &Monomial) -> Option<Dim> {
        let terms = self.terms();
        let divided = terms
            .iter()
            .map(|term| Some(Summand { monomial: term.monomial.over(monomial)?, coefficient: term.coefficient }));
        Dim::from_terms(divided.collect::<Option<_>>()?)
    }

    /// The greatest common divisor of the coefficients, the constant term's included. Zero for the constant 0.
    pub(super) fn content(&self) -> u64 {
        self.terms().iter().fold(0, |gcd, term| greatest_common_divisor(gcd, term.coefficient.unsigned_abs()))
    }

    /// The greatest common divisor of the coefficients but the constant term. Zero for a constant.
    pub(super) fn step(&self) -> u64 {
        let mut step = 0;
        for term in self.terms().iter().filter(|term| !term.monomial.is_one()) {
            step = greatest_common_divisor(step, term.coefficient.unsigned_abs());
            if step == 1 {
                break;
            }
        }
        step
    }

    /// `(p, c, k)` with `self = c·p + k`, the coefficients of `p` having no common divisor and no constant term.
    pub(super) fn primitive(&self) -> Option<(Dim, i64, i64)> {
        let offset = self.offset();
        let variable = if offset == 0 { self.clone() } else { self.minus(&Dim::constant(offset))? };
        let content = i64::try_from(variable.content()).ok().filter(|content| *content > 0)?;
        Some((variable.over_const(content)?, content, offset))
    }

    /// The greatest monomial that divides every term.
    pub(super) fn common_monomial(&self) -> Monomial {
        let terms = self.terms();
        let mut rest = terms.iter();
        let mut common = rest.next().map_or(Monomial::One, |first| first.monomial.clone());
        for term in rest {
            if common.is_one() {
                break;
            }
            common = common.common(&term.monomial);
        }
        common
    }

    /// The polynomial in `atom` alone: `(exponent, cofactor)`, in no particular order. What is left of terms with the same power
    /// of `atom` keeps its order, which is compatible with multiplication.
    pub(super) fn collect(&self, atom: &Atom) -> Option<Vec<(u32, Dim)>> {
        let mut parts: Vec<(u32, Vec<Summand>)> = Vec::new();
        for term in self.terms().iter() {
            let exponent = term.monomial.exponent_of(atom);
            let monomial = if exponent == 0 {
                term.monomial.clone()
            } else {
                let factors = term.monomial.factors().iter().filter(|factor| factor.atom != *atom);
                Monomial::from_factors(factors.cloned().collect())
            };
            let rest = Summand { monomial, coefficient: term.coefficient };
            match parts.iter_mut().find(|(other, _)| *other == exponent) {
                Some((_, terms)) => terms.push(rest),
                None => parts.push((exponent, vec![rest])),
            }
        }
        parts.into_iter().map(|(exponent, terms)| Some((exponent, Dim::from_sorted(terms)?))).collect()
    }

    /// `value` in place of `atom`, wherever it is a factor of a term. Occurrences inside other atoms stay.
    pub(super) fn replace_atom(&self, atom: &Atom, value: &Dim) -> Option<Dim> {
        let mut parts = self
            .collect(atom)?
            .into_iter()
            .map(|(exponent, cofactor)| (0..exponent).try_fold(cofactor, |product, _| product.times(value)));
        let Some(first) = parts.next() else { return Some(Dim::constant(0)) };
        parts.try_fold(first?, |sum, part| sum.plus(&part?))
    }

    /// The quotient and remainder of polynomial division: `self = quotient · divisor + remainder`, where no term of the
    /// remainder can still be lowered by the divisor's leading term (coefficients stay in `0 ..` the leading one).
    /// The divisor's leading coefficient is positive.
    pub(super) fn divide(&self, divisor: &Dim) -> Option<(Dim, Dim)> {
        let leading = divisor.leading();
        if leading.coefficient <= 0 {
            return None;
        }
        let (mut quotient, mut remainder) = (Vec::new(), self.clone());
        // Each round removes the greatest reducible term; the bound only keeps a pathological division short.
        for _ in 0..64 {
            let step = remainder.terms().iter().find_map(|term| {
                let share = term.coefficient.div_euclid(leading.coefficient);
                let monomial = term.monomial.over(&leading.monomial)?;
                (share != 0).then_some(Summand { monomial, coefficient: share })
            });
            let Some(step) = step else {
                return Some((Dim::from_terms(quotient)?, remainder));
            };
            remainder = remainder.minus(&divisor.times_term(&step)?)?;
            quotient.push(step);
        }
        None
    }
}

/// Hashes of terms are added up, so that a term can be exchanged.
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
