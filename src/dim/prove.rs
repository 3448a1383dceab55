//! Proves lower bounds of expressions that hold for every assignment.
//!
//! Every question reduces to a lower bound of one polynomial: `a ≤ b` is `b − a ≥ 0`, and an upper bound is the lower bound of the
//! negation. Interval arithmetic gives the fast answer. If it does not suffice, a short search applies these laws:
//!
//! - `x ↦ low + x′` with `x′ ≥ 0` for every atom of a product, and `m·n ≥ m` for integers `m, n ≥ 0` when `n` is a product
//!   of factors of `m`;
//! - `B·max(mᵢ) = minᵢ B·mᵢ` for `B ≤ 0`, `B·max(mᵢ) ≥ B·mᵢ` for `B ≥ 0`, and `max(mᵢ) = mᵢ` in the case that `mᵢ` is
//!   the largest;
//! - `a − b + 1 ≤ b·⌊a/b⌋ ≤ a` for `b > 0`, after which `p` is bounded by the ceiling of a bound of `b·p`;
//! - a given relation `r ≥ 0` may be subtracted any number of times;
//! - piecewise linear expressions in one symbol are decided at their breakpoints (`piecewise.rs`).
//!
//! No other law assigns numbers to the symbols, and the prover's fuel bounds every step. The questions of one attempt (a rule at one node,
//! or inference of one node) have a common limit ([`Scope::attempt`]): after the last step, only interval arithmetic answers.

mod relations;

use std::cell::{OnceCell, RefCell};

use super::Symbol;
use super::bounds::Interval;
use super::expr::Dim;
use super::integer::ceil_quotient;
use super::monomial::{Atom, Floor, Monomial, Summand};
use super::scope::Scope;
use super::size::LONGEST_AXIS;
use rustc_hash::FxHashMap;

/// The most polynomials that one question visits.
const FUEL: u32 = 32;
/// The size up to which a polynomial costs one unit of fuel; twice that size costs two. Sizes in detectors have hundreds of terms. With
/// this limit the corpus takes two thirds of the time, and every model keeps its number of nodes.
const FUEL_SIZE: u32 = 16;
/// The most laws applied in sequence.
const LEVELS: u32 = 6;
/// The deepest nesting of case distinctions.
const CASES: usize = 3;
/// The largest expression that is searched. Larger ones get interval arithmetic only.
const SEARCH_SIZE: u32 = 256;

impl Scope {
    /// Returns `true` if `a ≥ goal` is proved.
    pub(super) fn at_least(&self, a: &Dim, goal: i64) -> bool {
        self.is_proved(a, goal, |slack| self.is_refuted(slack))
    }

    /// Returns `true` if `a ≥ goal` is proved. Skips the search if `is_refuted` returns `true`. A failed proof is recorded as a doubt.
    pub(super) fn is_proved(&self, a: &Dim, goal: i64, is_refuted: impl FnOnce(&Dim) -> bool) -> bool {
        let proved = self.finds_proof(a, goal, is_refuted);
        if !proved {
            self.doubt(a, goal);
        }
        proved
    }

    fn finds_proof(&self, a: &Dim, goal: i64, is_refuted: impl FnOnce(&Dim) -> bool) -> bool {
        if let Some(value) = a.as_const() {
            return value >= goal;
        }
        let mut prover = Prover::new(self);
        if prover.quick_low(a).is_some_and(|low| low >= i128::from(goal)) {
            return true;
        }
        // Such a number exceeds the longest axis.
        if a.offset() >= LONGEST_AXIS && self.interval_of_axes(a).low.is_some_and(|low| low >= i128::from(goal)) {
            return true;
        }
        // The remaining expression has at most one term less.
        if a.size() > SEARCH_SIZE + 1 || prover.is_settled(a) {
            return false;
        }
        // c·p + k ≥ goal  ⇔  p ≥ ⌈(goal − k)/c⌉, the values being integers.
        let slack = if a.step() == 1 {
            a.minus(&Dim::constant(goal))
        } else {
            a.primitive().and_then(|(p, content, offset)| {
                let bound = ceil_quotient(i128::from(goal).checked_sub(offset.into())?, content.into())?;
                p.minus(&Dim::constant(i64::try_from(bound).ok()?))
            })
        };
        let Some(slack) = slack else { return false };
        if let Some(known) = self.recall_proof(&slack) {
            return known;
        }
        // Most questions are about relations that do not hold.
        let proved = !is_refuted(&slack)
            && (prover.low(&slack, 0, LEVELS).is_some_and(|low| low >= 0) || self.is_nonnegative_by_pieces(&slack));
        if proved || !prover.is_cut {
            self.remember_proof(&slack, proved);
        }
        proved
    }

    /// Returns the result of interval arithmetic.
    pub(super) fn quick_interval(&self, a: &Dim) -> Interval {
        Prover::new(self).interval(a)
    }

    /// Returns the result of interval arithmetic with an additional interval for each of these symbols.
    pub(super) fn interval_within(&self, a: &Dim, cases: Vec<(Symbol, Interval)>) -> Interval {
        Prover { cases, ..Prover::new(self) }.interval(a)
    }

    /// Returns the best upper bound that can be proved.
    pub(super) fn proved_high(&self, a: &Dim) -> Option<i128> {
        self.proved_low(&a.scaled(-1)?)?.checked_neg()
    }

    /// Returns the best lower bound that can be proved.
    pub(super) fn proved_low(&self, a: &Dim) -> Option<i128> {
        let mut prover = Prover::new(self);
        let quick = prover.quick_low(a);
        if prover.is_settled(a) {
            return quick;
        }
        if let Some(known) = self.recall_low(a) {
            return known;
        }
        let low = quick.max(prover.low(a, i128::MAX, LEVELS));
        if !prover.is_cut {
            self.remember_low(a, low);
        }
        low
    }
}

struct Prover<'s> {
    scope: &'s Scope,
    /// The assumptions of the present case about single symbols, and about whole expressions (each at least 0).
    cases: Vec<(Symbol, Interval)>,
    relations: Vec<Dim>,
    /// The bounds found under the present case, with the remaining depth of each search.
    seen: FxHashMap<Dim, (u32, Option<i128>)>,
    /// The intervals of atoms with symbols of the present case.
    narrowed: RefCell<FxHashMap<Atom, Interval>>,
    fuel: u32,
    /// `true` if the attempt had no steps left for a search.
    is_cut: bool,
}

impl<'s> Prover<'s> {
    fn new(scope: &'s Scope) -> Prover<'s> {
        Prover {
            scope,
            cases: Vec::new(),
            relations: Vec::new(),
            seen: FxHashMap::default(),
            narrowed: RefCell::default(),
            fuel: FUEL,
            is_cut: false,
        }
    }

    /// Returns `true` if interval arithmetic is already exact: for a linear polynomial of unrelated symbols.
    fn is_settled(&self, a: &Dim) -> bool {
        let linear = a
            .terms()
            .iter()
            .all(|term| term.monomial.is_one() || matches!(term.monomial.as_atom(), Some(Atom::Symbol(_))));
        linear && !self.scope.with_table(|table| table.relations.are_about(a))
    }

    fn atom_interval(&self, atom: &Atom) -> Interval {
        let symbol = match atom {
            Atom::Symbol(symbol) => *symbol,
            _ => return self.compound_interval(atom),
        };
        let known = self.scope.with_table(|table| table.interval(symbol));
        let narrowed = self.cases.iter().filter(|(other, _)| *other == symbol);
        narrowed.fold(known, |known, (_, case)| known.intersect(*case))
    }

    fn compound_interval(&self, atom: &Atom) -> Interval {
        // The present case, if any, is about other symbols.
        let as_ever = self.cases.iter().all(|(symbol, _)| symbol.bit() & atom.mask() == 0);
        let known = if as_ever { self.scope.recall_interval(atom) } else { self.narrowed.borrow().get(atom).copied() };
        if let Some(known) = known {
            return known;
        }
        let interval = match atom {
            Atom::Symbol(_) => Interval::ANY,
            Atom::Floor(floor) => self.interval(&floor.numerator).floor_over(self.interval(&floor.denominator)),
            Atom::Max(members) => members.iter().map(|member| self.interval(member)).fold(
                Interval { low: None, high: Some(i128::MIN) },
                |all, member| Interval {
                    low: all.low.max(member.low),
                    high: all.high.zip(member.high).map(|(a, b)| a.max(b)),
                },
            ),
        };
        if as_ever {
            self.scope.remember_interval(atom, interval);
        } else {
            self.narrowed.borrow_mut().insert(atom.clone(), interval);
        }
        interval
    }

    fn monomial_interval(&self, monomial: &Monomial) -> Interval {
        let factors = monomial.factors().iter();
        factors.fold(Interval::point(1), |product, factor| {
            let power = self.atom_interval(&factor.atom).power(factor.exponent);
            if product == Interval::point(1) { power } else { product.times(power) }
        })
    }

    fn interval(&self, a: &Dim) -> Interval {
        a.terms().iter().fold(Interval::point(0), |sum, term| {
            if sum == Interval::ANY {
                return sum;
            }
            sum.plus(self.monomial_interval(&term.monomial).scaled(i128::from(term.coefficient)))
        })
    }

    /// Returns the lower end of [`interval`](Prover::interval). The first term without a lower bound ends the loop.
    fn quick_low(&self, p: &Dim) -> Option<i128> {
        p.terms().iter().try_fold(0i128, |sum, term| {
            sum.checked_add(self.monomial_interval(&term.monomial).scaled(i128::from(term.coefficient)).low?)
        })
    }

    /// Returns a lower bound of `p`, as good as the fuel allows, or any bound that is at least `goal`.
    fn low(&mut self, p: &Dim, goal: i128, level: u32) -> Option<i128> {
        let quick = self.quick_low(p);
        if quick.is_some_and(|low| low >= goal) || level == 0 || self.fuel == 0 || p.size() > SEARCH_SIZE {
            return quick;
        }
        if let Some((depth, low)) = self.seen.get(p)
            && (*depth >= level || low.is_some_and(|low| low >= goal))
        {
            return *low;
        }
        if !self.scope.take_steps(p.size()) {
            self.is_cut = true;
            return quick;
        }
        // Larger polynomials cost more, because each law visits all terms.
        self.fuel = self.fuel.saturating_sub(p.size().checked_div(FUEL_SIZE).unwrap_or(0).saturating_add(1));
        // A nested search for the same polynomial would not terminate, so it gets the fast bound.
        self.seen.insert(p.clone(), (level, quick));
        let best = self.searched_low(p, quick, goal, level);
        self.seen.insert(p.clone(), (level, best));
        best
    }

    fn searched_low(&mut self, p: &Dim, quick: Option<i128>, goal: i128, level: u32) -> Option<i128> {
        let mut best = quick;
        let reached = |best: Option<i128>| best.is_some_and(|best| best >= goal);
        // `c·p + k` has the bounds of `p`, and rounding may improve those.
        if p.step() > 1
            && let Some((primitive, content, offset)) = p.primitive()
        {
            let (content, offset) = (i128::from(content), i128::from(offset));
            let wanted = goal.checked_sub(offset).and_then(|goal| ceil_quotient(goal, content)).unwrap_or(goal);
            let low = self.low(&primitive, wanted, level);
            return best.max(low.and_then(|low| low.checked_mul(content)?.checked_add(offset)));
        }
        if p.terms().iter().any(|term| term.monomial.degree() > 1) {
            best = best.max(self.shifted_low(p));
            if reached(best) {
                return best;
            }
        }
        let mut atoms = compound_atoms(p);
        atoms.sort_by_key(|atom| std::cmp::Reverse(atom.depth()));
        let atoms: Vec<Parted> = atoms.into_iter().map(Parted::new).collect();
        if let Some(low) = self.low_by_every_member(p, &atoms, goal, level) {
            return best.max(low);
        }
        for parted in &atoms {
            best = best.max(match &parted.atom {
                Atom::Symbol(_) => None,
                Atom::Floor(floor) => self.low_by_floor(p, parted, floor, goal, level),
                Atom::Max(members) => self.low_by_some_member(p, parted, members.as_slice(), goal, level),
            });
            if reached(best) {
                return best;
            }
        }
        best = best.max(self.low_by_relations(p, goal, level));
        if reached(best) || self.cases.len().max(self.relations.len()) >= CASES {
            return best;
        }
        for Parted { atom, .. } in &atoms {
            if let Atom::Max(members) = atom {
                best = best.max(self.low_by_cases(p, atom, members.as_slice(), goal, level));
                if reached(best) {
                    return best;
                }
            }
        }
        best
    }

    /// Bounds `p = A + B·max(mᵢ)` with `B ≤ 0` by the least of `A + B·mᵢ`. `None` if no maximum occurs in this form.
    fn low_by_every_member(&mut self, p: &Dim, atoms: &[Parted], goal: i128, level: u32) -> Option<Option<i128>> {
        for parted in atoms {
            let Atom::Max(members) = &parted.atom else { continue };
            let Some((rest, cofactor)) = parted.parts_of(p) else { continue };
            if !self.interval(cofactor).is_non_positive() {
                continue;
            }
            let mut least = Some(i128::MAX);
            for member in members.iter() {
                let branch = cofactor.times(member).and_then(|product| product.plus(rest));
                least = least.min(branch.and_then(|branch| self.low(&branch, goal, level.saturating_sub(1))));
                if least.is_none() {
                    break;
                }
            }
            return Some(least);
        }
        None
    }

    /// Bounds `p = A + B·max(mᵢ)` with `B ≥ 0` by every `A + B·mᵢ`.
    fn low_by_some_member(
        &mut self,
        p: &Dim,
        parted: &Parted,
        members: &[Dim],
        goal: i128,
        level: u32,
    ) -> Option<i128> {
        let (rest, cofactor) = parted.parts_of(p)?;
        if !self.interval(cofactor).is_non_negative() {
            return None;
        }
        let mut best = None;
        for member in members {
            if let Some(branch) = cofactor.times(member).and_then(|product| product.plus(rest)) {
                best = best.max(self.low(&branch, goal, level.saturating_sub(1)));
                if best >= Some(goal) {
                    break;
                }
            }
        }
        best
    }

    /// Bounds `p` by cases: the least bound over all `i`, each under the assumption that `mᵢ` is the largest.
    fn low_by_cases(&mut self, p: &Dim, atom: &Atom, members: &[Dim], goal: i128, level: u32) -> Option<i128> {
        let mut least = Some(i128::MAX);
        for member in members {
            let (cases, relations) = (self.cases.len(), self.relations.len());
            let (seen, narrowed) = (std::mem::take(&mut self.seen), self.narrowed.take());
            for other in members.iter().filter(|other| *other != member) {
                if let Some(slack) = member.minus(other) {
                    self.assume(slack);
                }
            }
            let branch = p.replace_atom(atom, member);
            least = least.min(branch.and_then(|branch| self.low(&branch, goal, level.saturating_sub(1))));
            self.cases.truncate(cases);
            self.relations.truncate(relations);
            self.seen = seen;
            self.narrowed.replace(narrowed);
            if least.is_none() {
                break;
            }
        }
        least
    }

    fn assume(&mut self, slack: Dim) {
        if let [first, rest @ ..] = &*slack.terms()
            && let Some(Atom::Symbol(symbol)) = first.monomial.as_atom()
            && rest.iter().all(|term| term.monomial.is_one())
        {
            self.cases.push((*symbol, Interval::of_affine_root(first.coefficient, slack.offset())));
        } else {
            self.relations.push(slack);
        }
    }

    /// Bounds `p = A + B·⌊a/b⌋` with `b > 0`: `b·p ≥ b·A + B·a` for `B ≤ 0`, and `b·p ≥ b·A + B·(a − b + 1)` for `B ≥ 0`.
    fn low_by_floor(&mut self, p: &Dim, parted: &Parted, floor: &Floor, goal: i128, level: u32) -> Option<i128> {
        let (rest, cofactor) = parted.parts_of(p)?;
        let (numerator, denominator) = (&floor.numerator, &floor.denominator);
        let sign = self.interval(cofactor);
        let exact = self.scope.exact_floor(&parted.atom).is_some();
        let product = if exact || sign.is_non_positive() {
            cofactor.times(numerator)?
        } else if sign.is_non_negative() {
            cofactor.times(&numerator.minus(denominator)?.plus(&Dim::constant(1))?)?
        } else {
            return None;
        };
        let level = level.saturating_sub(1);
        if let Some(divisor) = denominator.as_const() {
            let scaled = rest.scaled(divisor)?.plus(&product)?;
            return self.low_of_scaled(&scaled, divisor, goal, level);
        }
        // `b·(p − goal) > −b` suffices, because the values are integers.
        let rest = rest.minus(&Dim::constant(i64::try_from(goal).ok()?))?;
        let scaled = rest.times(denominator)?.plus(&product)?;
        let slack = scaled.plus(denominator)?.minus(&Dim::constant(1))?;
        self.low(&slack, 0, level).filter(|low| *low >= 0).map(|_| goal)
    }

    /// Returns a lower bound of `p`, given `scale · p ≥ scaled`.
    fn low_of_scaled(&mut self, scaled: &Dim, scale: i64, goal: i128, level: u32) -> Option<i128> {
        let scale = i128::from(scale);
        let wanted = goal.saturating_sub(1).saturating_mul(scale).saturating_add(1);
        let low = self.low(scaled, wanted, level)?;
        ceil_quotient(low, scale)
    }

    /// Returns a lower bound of a polynomial with products. Every atom is replaced by its bound plus a non-negative atom. Negative terms
    /// then cancel against terms that are at least as large.
    fn shifted_low(&self, p: &Dim) -> Option<i128> {
        if p.terms().len() > 24 || p.terms().iter().any(|term| term.monomial.degree() > 6) {
            return None;
        }
        let mut atoms: Vec<Atom> = Vec::new();
        for term in p.terms().iter() {
            for factor in term.monomial.factors() {
                if !atoms.contains(&factor.atom) {
                    atoms.push(factor.atom.clone());
                }
            }
        }
        if atoms.len() > 8 {
            return None;
        }
        let mut shifted = p.clone();
        let mut rooms: Vec<(Atom, Interval)> = Vec::with_capacity(atoms.len());
        for atom in atoms {
            let Interval { low, high } = self.atom_interval(&atom);
            let room = low.zip(high).and_then(|(low, high)| high.checked_sub(low));
            let room = Interval { low: Some(0), high: room };
            let own = atom.clone().dim()?;
            let fits = |bound: i128| i64::try_from(bound).ok().map(Dim::constant);
            let value = match (low.map(fits), high.map(fits)) {
                (Some(low), _) => own.plus(&low?)?,
                (None, Some(high)) => high?.minus(&own)?,
                (None, None) => {
                    rooms.push((atom, Interval::ANY));
                    continue;
                }
            };
            shifted = shifted.replace_atom(&atom, &value)?;
            rooms.push((atom, room));
        }
        let interval_of = |monomial: &Monomial| {
            monomial.factors().iter().fold(Interval::point(1), |product, factor| {
                let room = rooms.iter().find(|(atom, _)| *atom == factor.atom).map_or(Interval::ANY, |(_, room)| *room);
                product.times(room.power(factor.exponent))
            })
        };
        let mut terms: Vec<Summand> = shifted.terms().to_vec();
        absorb(&mut terms, &|monomial| interval_of(monomial).is_non_negative());
        terms.iter().try_fold(0i128, |sum, term| {
            sum.checked_add(interval_of(&term.monomial).scaled(i128::from(term.coefficient)).low?)
        })
    }
}

/// Applies `m·n ≥ m` where `m ≥ 0`, `n ≥ 0` and every atom of `n` occurs in `m`. If `m` is 0, both sides are 0. If not, no atom of `n` is
/// 0, so `n ≥ 1`. Only `n` as a whole must be non-negative: `k²` is for every `k`, but `k` is not.
fn absorb(terms: &mut [Summand], is_non_negative: &dyn Fn(&Monomial) -> bool) {
    for index in 0..terms.len() {
        let Some(negative) = terms.get(index).cloned() else { continue };
        if negative.coefficient >= 0 || negative.monomial.is_one() || !is_non_negative(&negative.monomial) {
            continue;
        }
        let mut debt = negative.coefficient;
        for other in terms.iter_mut().filter(|other| other.coefficient > 0) {
            let Some(extra) = other.monomial.over(&negative.monomial) else { continue };
            let divides = extra.factors().iter().all(|factor| negative.monomial.exponent_of(&factor.atom) > 0);
            if divides && is_non_negative(&extra) {
                let paid = other.coefficient.min(debt.checked_neg().unwrap_or(i64::MAX));
                other.coefficient = other.coefficient.saturating_sub(paid);
                debt = debt.saturating_add(paid);
            }
        }
        if let Some(term) = terms.get_mut(index) {
            term.coefficient = debt;
        }
    }
}

/// A floor or a maximum in a polynomial, and the decomposition of the polynomial by it, computed on demand.
struct Parted {
    atom: Atom,
    parts: OnceCell<Option<(Dim, Dim)>>,
}

impl Parted {
    fn new(atom: Atom) -> Parted {
        Parted { atom, parts: OnceCell::new() }
    }

    /// Returns `(A, B)` with `p = A + B·atom`, if `p` has no higher power of the atom.
    fn parts_of(&self, p: &Dim) -> Option<&(Dim, Dim)> {
        self.parts.get_or_init(|| linear_in(p, &self.atom)).as_ref()
    }
}

/// Returns the floors and maxima that are factors of a term.
fn compound_atoms(p: &Dim) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for factor in p.terms().iter().flat_map(|term| term.monomial.factors()) {
        if !matches!(factor.atom, Atom::Symbol(_)) && !atoms.contains(&factor.atom) {
            atoms.push(factor.atom.clone());
        }
    }
    atoms
}

/// Returns `(A, B)` with `p = A + B·atom`, if `p` has no higher power of the atom.
fn linear_in(p: &Dim, atom: &Atom) -> Option<(Dim, Dim)> {
    let (mut rest, mut cofactor) = (Dim::constant(0), Dim::constant(0));
    for (exponent, part) in p.collect(atom)? {
        match exponent {
            0 => rest = part,
            1 => cofactor = part,
            _ => return None,
        }
    }
    Some((rest, cofactor))
}
