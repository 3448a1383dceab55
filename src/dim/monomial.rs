//! The parts of a polynomial: atoms, products of their powers, and terms.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::expr::{Dim, Symbol};
use super::integer::floor_quotient;

/// The largest total degree of a monomial.
pub(super) const MAX_DEGREE: u32 = 64;

/// `coefficient · monomial`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Summand {
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

/// The smallest unit of a polynomial.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Symbol(Symbol),
    Floor(Arc<Floor>),
    /// The largest of at least two members, sorted.
    Max(Arc<Maximum>),
}

/// `⌊numerator / denominator⌋`. The denominator is positive for all assignments within the known facts.
pub(super) struct Floor {
    pub(super) numerator: Dim,
    pub(super) denominator: Dim,
    extent: Extent,
}

/// The largest of at least two members, sorted.
pub(super) struct Maximum {
    members: Vec<Dim>,
    extent: Extent,
}

/// Data that is derived from the expressions inside an atom, and read whenever the atom becomes part of a sum.
#[derive(Clone, Copy)]
struct Extent {
    hash: u64,
    mask: u64,
    size: u32,
    depth: u32,
}

impl Extent {
    fn of(inner: &[&Dim]) -> Extent {
        let mut hasher = FxHasher::default();
        let (mut mask, mut size, mut depth) = (0, 0u32, 0);
        for dim in inner {
            dim.hash(&mut hasher);
            mask |= dim.mask();
            size = size.saturating_add(dim.size());
            depth = dim.depth().max(depth);
        }
        Extent { hash: hasher.finish(), mask, size, depth: depth.saturating_add(1) }
    }
}

impl Floor {
    fn parts(&self) -> (&Dim, &Dim) {
        (&self.numerator, &self.denominator)
    }
}

impl PartialEq for Floor {
    fn eq(&self, other: &Self) -> bool {
        self.extent.hash == other.extent.hash && self.parts() == other.parts()
    }
}

impl Eq for Floor {}

impl PartialOrd for Floor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Floor {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Hash for Floor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.extent.hash);
    }
}

impl Maximum {
    pub(super) fn as_slice(&self) -> &[Dim] {
        &self.members
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Dim> {
        self.members.iter()
    }
}

impl PartialEq for Maximum {
    fn eq(&self, other: &Self) -> bool {
        self.extent.hash == other.extent.hash && self.members == other.members
    }
}

impl Eq for Maximum {}

impl PartialOrd for Maximum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Maximum {
    fn cmp(&self, other: &Self) -> Ordering {
        self.members.cmp(&other.members)
    }
}

impl Hash for Maximum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.extent.hash);
    }
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
    /// Returns `⌊numerator / denominator⌋`.
    pub(super) fn floor(numerator: Dim, denominator: Dim) -> Atom {
        let extent = Extent::of(&[&numerator, &denominator]);
        Atom::Floor(Arc::new(Floor { numerator, denominator, extent }))
    }

    /// Returns the maximum of sorted members.
    pub(super) fn max(members: Vec<Dim>) -> Atom {
        let extent = Extent::of(&members.iter().collect::<Vec<_>>());
        Atom::Max(Arc::new(Maximum { members, extent }))
    }

    fn extent(&self) -> Option<&Extent> {
        match self {
            Atom::Symbol(_) => None,
            Atom::Floor(floor) => Some(&floor.extent),
            Atom::Max(maximum) => Some(&maximum.extent),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.extent().map_or(0, |extent| extent.size)
    }

    pub(super) fn depth(&self) -> u32 {
        self.extent().map_or(0, |extent| extent.depth)
    }

    pub(super) fn mask(&self) -> u64 {
        match self {
            Atom::Symbol(symbol) => symbol.bit(),
            Atom::Floor(floor) => floor.extent.mask,
            Atom::Max(maximum) => maximum.extent.mask,
        }
    }

    /// Returns this atom's bit in traces.
    fn trace(&self) -> u64 {
        match self {
            Atom::Symbol(symbol) => symbol.bit(),
            Atom::Floor(_) | Atom::Max(_) => 1 << (self.extent().map_or(0, |extent| extent.hash >> 32) % 64),
        }
    }

    /// Returns the value of a floor or a maximum, for the values of its inner expressions in `value_of`.
    pub(super) fn evaluate(&self, mut value_of: impl FnMut(&Dim) -> Option<i128>) -> Option<i128> {
        match self {
            Atom::Symbol(_) => None,
            Atom::Floor(floor) => floor_quotient(value_of(&floor.numerator)?, value_of(&floor.denominator)?),
            Atom::Max(members) => members
                .iter()
                .try_fold(None, |largest: Option<i128>, member| Some(largest.max(Some(value_of(member)?))))?,
        }
    }

    /// Returns the expressions directly inside this atom.
    pub(super) fn inner(&self) -> impl Iterator<Item = &Dim> {
        let (pair, members): ([Option<&Dim>; 2], &[Dim]) = match self {
            Atom::Symbol(_) => ([None, None], &[]),
            Atom::Floor(floor) => ([Some(&floor.numerator), Some(&floor.denominator)], &[]),
            Atom::Max(members) => ([None, None], members.as_slice()),
        };
        pair.into_iter().flatten().chain(members)
    }

    /// Returns this atom as an expression; `None` if it is nested too deep or is too large.
    pub(super) fn dim(self) -> Option<Dim> {
        Monomial::atom(self).dim()
    }
}

/// Graded lexicographic order: by total degree, then by the exponents of the atoms, the first atom first. The order is compatible with
/// multiplication, so the remainder of a division is unique.
impl Ord for Monomial {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Monomial::One, Monomial::One) => return Ordering::Equal,
            (Monomial::One, _) => return Ordering::Less,
            (_, Monomial::One) => return Ordering::Greater,
            (Monomial::Power(a), Monomial::Power(b)) => {
                return a.exponent.cmp(&b.exponent).then_with(|| b.atom.cmp(&a.atom));
            }
            _ => {}
        }
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

    /// Returns this monomial as an expression; `None` if it is nested too deep or is too large.
    pub(super) fn dim(self) -> Option<Dim> {
        Dim::from_sorted(vec![Summand { monomial: self, coefficient: 1 }])
    }

    pub(super) fn factors(&self) -> &[Factor] {
        match self {
            Monomial::One => &[],
            Monomial::Power(factor) => std::slice::from_ref(factor),
            Monomial::Product(factors) => factors,
        }
    }

    /// Builds a monomial from sorted and distinct factors.
    pub(super) fn from_factors(mut factors: Vec<Factor>) -> Monomial {
        match factors.len() {
            0 | 1 => factors.pop().map_or(Monomial::One, Monomial::Power),
            _ => Monomial::Product(factors.into()),
        }
    }

    pub(super) fn is_one(&self) -> bool {
        matches!(self, Monomial::One)
    }

    /// Returns the atom, if the monomial is one atom to the first power.
    pub(super) fn as_atom(&self) -> Option<&Atom> {
        match self {
            Monomial::Power(factor) if factor.exponent == 1 => Some(&factor.atom),
            _ => None,
        }
    }

    /// Returns one bit for each atom (modulo 64): a monomial that divides another has no bit that the other lacks.
    pub(super) fn trace(&self) -> u64 {
        self.factors().iter().fold(0, |trace, factor| trace | factor.atom.trace())
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
        if let (Monomial::Power(a), Monomial::Power(b)) = (self, other) {
            return Some(match a.atom.cmp(&b.atom) {
                Ordering::Less => Monomial::Product(Arc::new([a.clone(), b.clone()])),
                Ordering::Equal => {
                    let exponent = a.exponent.checked_add(b.exponent)?;
                    Monomial::Power(Factor { atom: a.atom.clone(), exponent })
                }
                Ordering::Greater => Monomial::Product(Arc::new([b.clone(), a.clone()])),
            });
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

    /// Returns `self / other`, if every exponent allows it.
    pub(super) fn over(&self, other: &Monomial) -> Option<Monomial> {
        match (self, other) {
            (_, Monomial::One) => return Some(self.clone()),
            // A product has two atoms at least.
            (Monomial::One, _) | (Monomial::Power(_), Monomial::Product(_)) => return None,
            (Monomial::Power(a), Monomial::Power(b)) => {
                return match a.exponent.checked_sub(b.exponent).filter(|_| a.atom == b.atom)? {
                    0 => Some(Monomial::One),
                    exponent => Some(Monomial::Power(Factor { atom: a.atom.clone(), exponent })),
                };
            }
            (Monomial::Product(_), _) => {}
        }
        if !other.factors().iter().all(|factor| self.exponent_of(&factor.atom) >= factor.exponent) {
            return None;
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

    /// Returns the greatest monomial that divides both.
    pub(super) fn common(&self, other: &Monomial) -> Monomial {
        let shared = self.factors().iter().filter_map(|factor| {
            let exponent = factor.exponent.min(other.exponent_of(&factor.atom));
            (exponent > 0).then(|| Factor { atom: factor.atom.clone(), exponent })
        });
        Monomial::from_factors(shared.collect())
    }
}

impl Summand {
    /// Returns the number of terms: this one and all terms inside its atoms.
    pub(super) fn size(&self) -> u32 {
        self.reach().0
    }

    pub(super) fn depth(&self) -> u32 {
        self.reach().1
    }

    pub(super) fn mask(&self) -> u64 {
        self.reach().2
    }

    /// Returns size, depth and mask.
    pub(super) fn reach(&self) -> (u32, u32, u64) {
        let factors = self.monomial.factors().iter();
        factors.fold((1u32, 0, 0), |(size, depth, mask), factor| match factor.atom.extent() {
            None => (size, depth, mask | factor.atom.mask()),
            Some(own) => (size.saturating_add(own.size), own.depth.max(depth), mask | own.mask),
        })
    }

    pub(super) fn scaled(&self, scale: i64) -> Option<Summand> {
        Some(Summand { monomial: self.monomial.clone(), coefficient: self.coefficient.checked_mul(scale)? })
    }

    pub(super) fn times(&self, other: &Summand) -> Option<Summand> {
        let coefficient = self.coefficient.checked_mul(other.coefficient)?;
        Some(Summand { monomial: self.monomial.times(&other.monomial)?, coefficient })
    }
}

/// Sorts `terms` into canonical order and merges equal monomials. `None` if a coefficient overflows.
pub(super) fn combine(terms: &mut Vec<Summand>) -> Option<()> {
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
