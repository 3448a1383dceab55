//! The canonical form: integer polynomials over atoms, and the arithmetic that needs no knowledge of the symbols.
//!
//! A polynomial is a list of terms `coefficient · monomial`, sorted by descending graded lexicographic order, every
//! coefficient non-zero and every monomial at most once. Equal lists are equal polynomials, so `Eq`, `Ord` and `Hash`
//! of a [`Dim`] look at the list and at nothing else. Everything here is checked: `None` says that a coefficient left
//! `i64` or that the result would outgrow [`MAX_TERMS`], [`MAX_DEPTH`] or [`MAX_DEGREE`]. Those three bound every
//! expression, so recursion over nested atoms is bounded too, in depth and in total.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHasher;

/// Terms in one expression, those inside its atoms included.
pub(super) const MAX_TERMS: u32 = 4096;
/// How deep atoms may nest.
pub(super) const MAX_DEPTH: u32 = 64;
/// The total degree of a monomial.
pub(super) const MAX_DEGREE: u32 = 64;

/// A symbol of one [`Scope`](super::Scope), ordered by creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(pub(super) u32);

impl Symbol {
    /// This symbol's bit in the masks that say which symbols an expression may contain.
    fn bit(self) -> u64 {
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
    terms: Vec<Term>,
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

/// `coefficient · monomial`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term {
    pub(super) monomial: Monomial,
    pub(super) coefficient: i64,
}

/// A product of powers of distinct atoms, sorted by atom; the empty product is 1.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Monomial {
    One,
    Power(Factor),
    /// At least two factors.
    Product(Arc<[Factor]>),
}

/// `atom ^ exponent`, the exponent at least 1.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Factor {
    pub(super) atom: Atom,
    pub(super) exponent: u32,
}

/// What a polynomial is written in.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Symbol(Symbol),
    Floor(Arc<Floor>),
    /// The largest of at least two members, sorted.
    Max(Arc<Vec<Dim>>),
}

/// `⌊numerator / denominator⌋`, the denominator positive wherever the symbols are within what is known of them.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Floor {
    pub(super) numerator: Dim,
    pub(super) denominator: Dim,
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |atom: &Atom| match atom {
            Atom::Symbol(_) => 0,
            Atom::Floor(_) => 1,
            Atom::Max(_) => 2,
        };
        match (self, other) {
            (Atom::Symbol(a), Atom::Symbol(b)) => a.cmp(b),
            (Atom::Floor(a), Atom::Floor(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Atom::Floor(a), Atom::Floor(b)) => a.cmp(b),
            (Atom::Max(a), Atom::Max(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Atom::Max(a), Atom::Max(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl Atom {
    fn size(&self) -> u32 {
        match self {
            Atom::Symbol(_) => 0,
            Atom::Floor(floor) => floor.numerator.size().saturating_add(floor.denominator.size()),
            Atom::Max(members) => members.iter().fold(0, |sum, member| sum.saturating_add(member.size())),
        }
    }

    pub(super) fn depth(&self) -> u32 {
        match self {
            Atom::Symbol(_) => 0,
            Atom::Floor(floor) => floor.numerator.depth().max(floor.denominator.depth()).saturating_add(1),
            Atom::Max(members) => members.iter().map(Dim::depth).max().unwrap_or(0).saturating_add(1),
        }
    }

    fn mask(&self) -> u64 {
        match self {
            Atom::Symbol(symbol) => symbol.bit(),
            Atom::Floor(floor) => floor.numerator.mask() | floor.denominator.mask(),
            Atom::Max(members) => members.iter().fold(0, |mask, member| mask | member.mask()),
        }
    }

    /// The expressions directly inside this atom.
    pub(super) fn inner(&self) -> impl Iterator<Item = &Dim> {
        let (pair, members): ([Option<&Dim>; 2], &[Dim]) = match self {
            Atom::Symbol(_) => ([None, None], &[]),
            Atom::Floor(floor) => ([Some(&floor.numerator), Some(&floor.denominator)], &[]),
            Atom::Max(members) => ([None, None], members),
        };
        pair.into_iter().flatten().chain(members)
    }

    /// This atom as an expression; `None` when it is nested too deep or is too large.
    pub(super) fn dim(self) -> Option<Dim> {
        Monomial::atom(self).dim()
    }
}

/// Graded lexicographic: by total degree, then by the exponents of the atoms, an earlier atom weighing more. The order
/// is compatible with multiplication, which makes the remainder of a division unique.
impl Ord for Monomial {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_degree = self.degree().cmp(&other.degree());
        if by_degree != Ordering::Equal {
            return by_degree;
        }
        for (a, b) in self.factors().iter().zip(other.factors()) {
            let order = b.atom.cmp(&a.atom).then(a.exponent.cmp(&b.exponent));
            if order != Ordering::Equal {
                return order;
            }
        }
        self.factors().len().cmp(&other.factors().len())
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Monomial {
    pub(super) fn atom(atom: Atom) -> Monomial {
        Monomial::Power(Factor { atom, exponent: 1 })
    }

    /// This monomial as an expression; `None` when it is nested too deep or is too large.
    pub(super) fn dim(self) -> Option<Dim> {
        Dim::from_sorted(vec![Term { monomial: self, coefficient: 1 }])
    }

    pub(super) fn factors(&self) -> &[Factor] {
        match self {
            Monomial::One => &[],
            Monomial::Power(factor) => std::slice::from_ref(factor),
            Monomial::Product(factors) => factors,
        }
    }

    /// `factors` are sorted and distinct.
    pub(super) fn from_factors(mut factors: Vec<Factor>) -> Monomial {
        match factors.len() {
            0 | 1 => factors.pop().map_or(Monomial::One, Monomial::Power),
            _ => Monomial::Product(factors.into()),
        }
    }

    pub(super) fn is_one(&self) -> bool {
        matches!(self, Monomial::One)
    }

    /// The atom of a monomial that is one atom to the first power.
    pub(super) fn as_atom(&self) -> Option<&Atom> {
        match self {
            Monomial::Power(factor) if factor.exponent == 1 => Some(&factor.atom),
            _ => None,
        }
    }

    pub(super) fn degree(&self) -> u32 {
        self.factors().iter().fold(0, |sum, factor| sum.saturating_add(factor.exponent))
    }

    pub(super) fn exponent_of(&self, atom: &Atom) -> u32 {
        self.factors().iter().find(|factor| factor.atom == *atom).map_or(0, |factor| factor.exponent)
    }

    pub(super) fn times(&self, other: &Monomial) -> Option<Monomial> {
        if self.is_one() {
            return Some(other.clone());
        }
        if other.is_one() {
            return Some(self.clone());
        }
        if self.degree().checked_add(other.degree())? > MAX_DEGREE {
            return None;
        }
        let (mut left, mut right) = (self.factors().iter().peekable(), other.factors().iter().peekable());
        let mut factors = Vec::with_capacity(left.len().saturating_add(right.len()));
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let order = a.atom.cmp(&b.atom);
            let exponent = match order {
                Ordering::Less => a.exponent,
                Ordering::Equal => a.exponent.checked_add(b.exponent)?,
                Ordering::Greater => b.exponent,
            };
            let atom = if order == Ordering::Greater { b.atom.clone() } else { a.atom.clone() };
            factors.push(Factor { atom, exponent });
            if order != Ordering::Greater {
                left.next();
            }
            if order != Ordering::Less {
                right.next();
            }
        }
        factors.extend(left.cloned());
        factors.extend(right.cloned());
        Some(Monomial::from_factors(factors))
    }

    /// `self / other`, when every exponent allows it.
    pub(super) fn over(&self, other: &Monomial) -> Option<Monomial> {
        if other.is_one() {
            return Some(self.clone());
        }
        let mut divisor = other.factors().iter().peekable();
        let mut factors = Vec::new();
        for factor in self.factors() {
            let mut exponent = factor.exponent;
            if let Some(taken) = divisor.next_if(|next| next.atom == factor.atom) {
                exponent = exponent.checked_sub(taken.exponent)?;
            }
            if exponent > 0 {
                factors.push(Factor { atom: factor.atom.clone(), exponent });
            }
        }
        divisor.next().is_none().then(|| Monomial::from_factors(factors))
    }

    /// The greatest monomial that divides both.
    pub(super) fn common(&self, other: &Monomial) -> Monomial {
        let shared = self.factors().iter().filter_map(|factor| {
            let exponent = factor.exponent.min(other.exponent_of(&factor.atom));
            (exponent > 0).then(|| Factor { atom: factor.atom.clone(), exponent })
        });
        Monomial::from_factors(shared.collect())
    }
}

/// The terms of a dim, a constant's included.
pub(super) enum Terms<'d> {
    Constant(Option<Term>),
    Shared(&'d [Term]),
}

impl Deref for Terms<'_> {
    type Target = [Term];

    fn deref(&self) -> &[Term] {
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
        Dim::assemble(vec![Term { monomial, coefficient: 1 }], 1, 0)
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
        let mut sum = 0i128;
        for term in self.terms().iter() {
            let mut product = i128::from(term.coefficient);
            for factor in term.monomial.factors() {
                let base = match &factor.atom {
                    Atom::Symbol(symbol) => i128::from(binding(*symbol)?),
                    Atom::Floor(floor) => {
                        let numerator = floor.numerator.evaluate_wide(binding)?;
                        floor_quotient(numerator, floor.denominator.evaluate_wide(binding)?)?
                    }
                    Atom::Max(members) => {
                        let mut largest = None;
                        for member in members.iter() {
                            largest = largest.max(Some(member.evaluate_wide(binding)?));
                        }
                        largest?
                    }
                };
                product = product.checked_mul(base.checked_pow(factor.exponent)?)?;
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
                [Term { monomial, coefficient: 1 }] => monomial.as_atom(),
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
            Repr::Const(value) => Terms::Constant(Some(Term { monomial: Monomial::One, coefficient: *value })),
            Repr::Poly(poly) => Terms::Shared(&poly.terms),
        }
    }

    /// The constant term.
    pub(super) fn offset(&self) -> i64 {
        match &self.0 {
            Repr::Const(value) => *value,
            Repr::Poly(poly) => match poly.terms.last() {
                Some(Term { monomial: Monomial::One, coefficient }) => *coefficient,
                _ => 0,
            },
        }
    }

    /// The greatest term; the constant itself for a constant.
    pub(super) fn leading(&self) -> Term {
        self.terms().first().cloned().unwrap_or(Term { monomial: Monomial::One, coefficient: 0 })
    }

    /// Sorts, adds up equal monomials and drops zeros.
    pub(super) fn from_terms(mut terms: Vec<Term>) -> Option<Dim> {
        combine(&mut terms)?;
        Dim::from_sorted(terms)
    }

    /// `terms` are already in canonical order.
    pub(super) fn from_sorted(terms: Vec<Term>) -> Option<Dim> {
        match terms.as_slice() {
            [] => return Some(Dim::constant(0)),
            [Term { monomial: Monomial::One, coefficient }] => return Some(Dim::constant(*coefficient)),
            _ => {}
        }
        let (mut size, mut depth) = (0u32, 0);
        for term in &terms {
            size = size.saturating_add(1);
            for factor in term.monomial.factors() {
                size = size.saturating_add(factor.atom.size());
                depth = depth.max(factor.atom.depth());
            }
        }
        (size <= MAX_TERMS && depth <= MAX_DEPTH).then(|| Dim::assemble(terms, size, depth))
    }

    fn assemble(terms: Vec<Term>, size: u32, depth: u32) -> Dim {
        let mut hasher = FxHasher::default();
        terms.hash(&mut hasher);
        let factors = terms.iter().flat_map(|term| term.monomial.factors());
        let mask = factors.fold(0, |mask, factor| mask | factor.atom.mask());
        Dim(Repr::Poly(Arc::new(Poly { terms, hash: hasher.finish(), mask, size, depth })))
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
                        terms.push(Term { monomial: a.monomial.clone(), coefficient });
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

    pub(super) fn times_term(&self, term: &Term) -> Option<Dim> {
        let scaled: Option<Vec<Term>> = self.terms().iter().map(|own| own.times(term)).collect();
        Dim::from_terms(scaled?)
    }

    /// Replaces every coefficient; `change` never answers zero.
    fn map_coefficients(&self, change: impl Fn(i64) -> Option<i64>) -> Option<Dim> {
        match &self.0 {
            Repr::Const(value) => Some(Dim::constant(change(*value)?)),
            Repr::Poly(poly) => {
                let changed = poly
                    .terms
                    .iter()
                    .map(|term| Some(Term { monomial: term.monomial.clone(), coefficient: change(term.coefficient)? }));
                Some(Dim::assemble(changed.collect::<Option<_>>()?, poly.size, poly.depth))
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
            .map(|term| Some(Term { monomial: term.monomial.over(monomial)?, coefficient: term.coefficient }));
        Dim::from_terms(divided.collect::<Option<_>>()?)
    }

    /// The greatest common divisor of the coefficients, the constant term's included. Zero for the constant 0.
    pub(super) fn content(&self) -> u64 {
        self.terms().iter().fold(0, |gcd, term| greatest_common_divisor(gcd, term.coefficient.unsigned_abs()))
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

    /// The polynomial in `atom` alone: `(exponent, cofactor)`, in no particular order.
    pub(super) fn collect(&self, atom: &Atom) -> Option<Vec<(u32, Dim)>> {
        let mut parts: Vec<(u32, Vec<Term>)> = Vec::new();
        for term in self.terms().iter() {
            let exponent = term.monomial.exponent_of(atom);
            let factors = term.monomial.factors().iter().filter(|factor| factor.atom != *atom);
            let rest = Monomial::from_factors(factors.cloned().collect());
            let rest = Term { monomial: rest, coefficient: term.coefficient };
            match parts.iter_mut().find(|(other, _)| *other == exponent) {
                Some((_, terms)) => terms.push(rest),
                None => parts.push((exponent, vec![rest])),
            }
        }
        parts.into_iter().map(|(exponent, terms)| Some((exponent, Dim::from_terms(terms)?))).collect()
    }

    /// `value` in place of `atom`, wherever it is a factor of a term. Occurrences inside other atoms stay.
    pub(super) fn replace_atom(&self, atom: &Atom, value: &Dim) -> Option<Dim> {
        let mut sum = Vec::new();
        for (exponent, cofactor) in self.collect(atom)? {
            let product = (0..exponent).try_fold(cofactor, |product, _| product.times(value))?;
            sum.extend_from_slice(&product.terms());
        }
        Dim::from_terms(sum)
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
                (share != 0).then_some(Term { monomial, coefficient: share })
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

impl Term {
    pub(super) fn scaled(&self, scale: i64) -> Option<Term> {
        Some(Term { monomial: self.monomial.clone(), coefficient: self.coefficient.checked_mul(scale)? })
    }

    pub(super) fn times(&self, other: &Term) -> Option<Term> {
        let coefficient = self.coefficient.checked_mul(other.coefficient)?;
        Some(Term { monomial: self.monomial.times(&other.monomial)?, coefficient })
    }
}

/// Brings `terms` into canonical order. `None` when a coefficient overflows.
pub(super) fn combine(terms: &mut Vec<Term>) -> Option<()> {
    terms.sort_by(|a, b| b.monomial.cmp(&a.monomial));
    let mut overflow = false;
    terms.dedup_by(|next, kept| {
        let equal = next.monomial == kept.monomial;
        if equal {
            let sum = kept.coefficient.checked_add(next.coefficient);
            overflow |= sum.is_none();
            kept.coefficient = sum.unwrap_or(0);
        }
        equal
    });
    terms.retain(|term| term.coefficient != 0);
    (!overflow).then_some(())
}

/// The quotient rounded down. `None` for a zero divisor or on overflow.
pub(super) fn floor_quotient(numerator: i128, denominator: i128) -> Option<i128> {
    let quotient = numerator.checked_div(denominator)?;
    let inexact = numerator.checked_rem(denominator)? != 0;
    if inexact && (numerator < 0) != (denominator < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

pub(super) fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
