//! Floor division in canonical form.
//!
//! For a constant divisor `b`, every coefficient of the numerator is reduced to `0 .. b`, the common divisor of all of them and `b` is
//! cancelled, and nested floors are merged. A floor of one term whose coefficient is more than half of `b` is replaced by one with a
//! smaller coefficient, so that a ceiling has one form. For a symbolic divisor, the numerator is the remainder of polynomial division.

use super::expr::Dim;
use super::integer::{floor_quotient, greatest_common_divisor};
use super::monomial::{Atom, Monomial, Summand};
use super::scope::Scope;

/// The most combinations of members of maxima inside a floor that are enumerated.
const MAX_CHOICES: usize = 8;

impl Scope {
    pub(super) fn try_floor_div(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return i64::try_from(floor_quotient(a.into(), b.into())?).ok().map(Dim::constant);
        }
        let (a, b) = (self.resolve(a), self.resolve(b));
        // ⌊a/b⌋ = ⌊−a/−b⌋: the divisor is always positive.
        let (a, b) = if self.at_least(&b, 1) {
            (a, b)
        } else {
            let positive = self.try_neg(&b)?;
            (self.at_least(&positive, 1)).then_some((self.try_neg(&a)?, positive))?
        };
        self.settle(self.floor(a, &b)?)
    }

    /// `⌊a/b⌋` for `b ≥ 1`.
    fn floor(&self, a: Dim, b: &Dim) -> Option<Dim> {
        match b.as_const() {
            Some(1) => Some(a),
            Some(divisor) => self.floor_by_const(a, divisor),
            None => self.floor_by_dim(a, b),
        }
    }

    fn floor_by_const(&self, a: Dim, divisor: i64) -> Option<Dim> {
        if let Some(a) = a.as_const() {
            return a.checked_div_euclid(divisor).map(Dim::constant);
        }
        if let Some(pushed) = self.push_into_maximum(&a, divisor) {
            return Some(pushed);
        }
        let (mut a, mut b) = (a, divisor);
        let mut whole: Vec<Summand> = Vec::new();
        loop {
            let mut kept = Vec::with_capacity(a.terms().len());
            for term in a.terms().iter() {
                let (out, left) = self.split_by_divisor(term, b)?;
                whole.extend(out);
                kept.extend(left);
            }
            a = Dim::from_sorted(kept)?;
            // An offset below the common step of all other terms never carries.
            let step = a
                .terms()
                .iter()
                .filter(|term| !term.monomial.is_one())
                .fold(b.unsigned_abs(), |gcd, term| greatest_common_divisor(gcd, self.step_of(term)));
            let step = i64::try_from(step).ok()?;
            a = a.minus(&Dim::constant(a.offset().checked_rem_euclid(step)?))?;
            let common = i64::try_from(greatest_common_divisor(b.unsigned_abs(), a.content())).ok()?;
            if a.as_const().is_some() {
                // The remainder is in `0 .. b`.
                return Dim::from_terms(whole);
            }
            (a, b) = (a.over_const(common)?, b.checked_div(common)?);
            if b == 1 {
                whole.extend_from_slice(&a.terms());
                return Dim::from_terms(whole);
            }
            if let Some(pushed) = self.push_into_maximum(&a, b) {
                return pushed.plus(&Dim::from_terms(whole)?);
            }
            match self.merge_exact(&a, b).or_else(|| merge_nested(&a, b)) {
                Some((merged, product)) => (a, b) = (self.settle(merged)?, product),
                None => break,
            }
        }
        let quotient = match self.constant_quotient(&a, b) {
            Some(quotient) => Dim::constant(quotient),
            None => match self.turned_ceiling(&a, b) {
                Some(turned) => turned,
                None => self.shared(Atom::floor(a, Dim::constant(b))).dim()?,
            },
        };
        quotient.plus(&Dim::from_terms(whole)?)
    }

    /// Applies `⌊a/b⌋ = −⌊(b − 1 − a)/b⌋` to `a = c·x + k` with `c` more than half of `b`. The new coefficient of `x` is `b − c`, so that a
    /// ceiling has one form: `⌊(x + 3)/4⌋` for `x − ⌊3·x/4⌋`.
    fn turned_ceiling(&self, a: &Dim, b: i64) -> Option<Dim> {
        let terms = a.terms();
        let mut open = terms.iter().filter(|term| !term.monomial.is_one());
        let (single, None) = (open.next()?, open.next()) else { return None };
        if single.coefficient.checked_mul(2)? <= b {
            return None;
        }
        let opposite = a.scaled(-1)?.plus(&Dim::constant(b.checked_sub(1)?))?;
        self.floor_by_const(opposite, b)?.scaled(-1)
    }

    /// Returns `⌊a/b⌋`, if the bounds of `a` allow one value only.
    fn constant_quotient(&self, a: &Dim, b: i64) -> Option<i64> {
        let quick = self.quick_interval(a);
        let low = quick.low.or_else(|| self.proved_low(a))?;
        let high = quick.high.or_else(|| self.proved_high(a))?;
        let low = floor_quotient(low, b.into())?;
        (low == floor_quotient(high, b.into())?).then(|| i64::try_from(low).ok())?
    }

    /// Returns `(out, left)` with `⌊(… + term)/b⌋ = out + ⌊(… + left)/b⌋`. For a multiple `S` of `m`, every `b / gcd(b, m)`-th part moves
    /// out: `c·S = q·p·S + r·S`, and `p·S/b` is an integer multiple of `⌊S/m⌋`.
    fn split_by_divisor(&self, term: &Summand, b: i64) -> Option<(Option<Summand>, Option<Summand>)> {
        let whole = |coefficient: i64, monomial: &Monomial| {
            (coefficient != 0).then(|| Summand { monomial: monomial.clone(), coefficient })
        };
        let known =
            if self.with_table(|table| table.has_multiples()) { self.multiple_in(&term.monomial, b) } else { None };
        let Some((symbol, multiple, common)) = known else {
            let (out, left) = (term.coefficient.checked_div_euclid(b)?, term.coefficient.checked_rem_euclid(b)?);
            return Some((whole(out, &term.monomial), whole(left, &term.monomial)));
        };
        let period = b.checked_div(common)?;
        let (out, left) = (term.coefficient.checked_div_euclid(period)?, term.coefficient.checked_rem_euclid(period)?);
        let floor = Atom::floor(Dim::symbol(symbol), Dim::constant(multiple));
        let rest = term.monomial.over(&Monomial::atom(Atom::Symbol(symbol)))?;
        let monomial = rest.times(&Monomial::atom(floor))?;
        let out = out.checked_mul(multiple.checked_div(common)?)?;
        Some((whole(out, &monomial), whole(left, &term.monomial)))
    }

    /// Returns a symbol of the monomial whose known divisor has a common divisor with `b`: `(symbol, multiple, common divisor)`.
    fn multiple_in(&self, monomial: &Monomial, b: i64) -> Option<(super::Symbol, i64, i64)> {
        monomial.factors().iter().find_map(|factor| {
            let Atom::Symbol(symbol) = factor.atom else { return None };
            let multiple = self.with_table(|table| table.multiple(symbol));
            let common = greatest_common_divisor(multiple.unsigned_abs(), b.unsigned_abs());
            (common > 1).then_some((symbol, multiple, i64::try_from(common).ok()?))
        })
    }

    /// Returns a number that divides every value of the term.
    pub(super) fn step_of(&self, term: &Summand) -> u64 {
        let own = term.coefficient.unsigned_abs();
        term.monomial.factors().iter().fold(own, |step, factor| match factor.atom {
            Atom::Symbol(symbol) => {
                let multiple = self.with_table(|table| table.multiple(symbol)).unsigned_abs();
                let power = multiple.checked_pow(factor.exponent);
                power.and_then(|power| step.checked_mul(power)).unwrap_or(step)
            }
            _ => step,
        })
    }

    /// Applies `⌊(n·⌊S/m⌋ + y)/b⌋ = ⌊(n·S + m·y)/(m·b)⌋` to a symbol `S` that is a multiple of `m`, for any `n`.
    fn merge_exact(&self, a: &Dim, b: i64) -> Option<(Dim, i64)> {
        if !self.with_table(|table| table.has_multiples()) {
            return None;
        }
        let terms = a.terms();
        let mut factors = terms.iter().flat_map(|term| term.monomial.factors());
        let (atom, symbol, multiple) = factors.find_map(|factor| {
            let (symbol, multiple) = self.exact_floor(&factor.atom)?;
            Some((&factor.atom, symbol, multiple))
        })?;
        let merged = terms.iter().map(|term| match term.monomial.over(&Monomial::atom(atom.clone())) {
            Some(rest) => {
                let monomial = rest.times(&Monomial::atom(Atom::Symbol(symbol)))?;
                Some(Summand { monomial, coefficient: term.coefficient })
            }
            None => term.scaled(multiple),
        });
        Some((Dim::from_terms(merged.collect::<Option<_>>()?)?, b.checked_mul(multiple)?))
    }

    /// Returns `(S, m)` for the atom `⌊S/m⌋`, if the symbol `S` is known to be a multiple of `m`.
    pub(super) fn exact_floor(&self, atom: &Atom) -> Option<(super::Symbol, i64)> {
        let Atom::Floor(floor) = atom else { return None };
        let (symbol, divisor) = (floor.numerator.as_symbol()?, floor.denominator.as_const()?);
        let multiple = self.with_table(|table| table.multiple(symbol));
        (multiple.checked_rem(divisor)? == 0).then_some((symbol, divisor))
    }

    /// Applies `⌊(a + c·max(mᵢ))/b⌋ = max ⌊(a + c·mᵢ)/b⌋` for `c > 0`, and the minimum for `c < 0`: rounding is monotone. `None` if there
    /// is no maximum, or if it has too many combinations.
    fn push_into_maximum(&self, a: &Dim, b: i64) -> Option<Dim> {
        let terms = a.terms();
        let (mut choices, mut maxima) = (1usize, Vec::new());
        for term in terms.iter() {
            match term.monomial.as_atom() {
                Some(Atom::Max(members)) => {
                    choices = choices.saturating_mul(members.as_slice().len());
                    maxima.push((term, members.as_slice()));
                }
                _ if term.monomial.factors().iter().any(|factor| matches!(factor.atom, Atom::Max(_))) => return None,
                _ => {}
            }
        }
        if choices > MAX_CHOICES {
            return None;
        }
        let (coefficient, options) = match self.clamp_of_clamp(a, &maxima) {
            Some(clamp) => clamp,
            None => {
                // Subtracted maxima are enumerated first.
                let (term, members) = maxima.into_iter().min_by_key(|(term, _)| term.coefficient >= 0)?;
                let rest = a.minus(&Dim::from_sorted(vec![term.clone()])?)?;
                let options = members.iter().map(|member| rest.plus_scaled(member, term.coefficient));
                (term.coefficient, options.collect::<Option<Vec<_>>>()?)
            }
        };
        let mut quotients = Vec::with_capacity(options.len());
        for option in options {
            let quotient = self.settle(self.floor(self.settle(option)?, &Dim::constant(b))?)?;
            quotients.push(if coefficient > 0 { quotient } else { self.try_neg(&quotient)? });
        }
        let largest = self.largest(quotients)?;
        if coefficient > 0 { Some(largest) } else { self.try_neg(&largest) }
    }

    /// Applies `max(0, g) = max(0, max(0, f) − (f − g))` for `f ≥ g`. If the same sum contains `max(0, f)` with the opposite sign, as in
    /// the length of a Slice, one maximum remains instead of two. Returns `c` and the options of `rest + c·max(0, g)`.
    fn clamp_of_clamp(&self, a: &Dim, maxima: &[(&Summand, &[Dim])]) -> Option<(i64, Vec<Dim>)> {
        let excess = |members: &[Dim]| match members {
            [zero, excess] if zero.is_const(0) => Some(excess.clone()),
            _ => None,
        };
        let pairs = maxima.iter().flat_map(|inner| maxima.iter().map(move |outer| (inner, outer)));
        pairs.into_iter().find_map(|((inner, g), (outer, f))| {
            let opposite = (inner.coefficient < 0) != (outer.coefficient < 0);
            if !opposite || outer.coefficient.unsigned_abs() < inner.coefficient.unsigned_abs() {
                return None;
            }
            let difference = excess(f)?.minus(&excess(g)?)?;
            if !self.at_least(&difference, 0) {
                return None;
            }
            let coefficient = inner.coefficient;
            let rest = a.minus(&Dim::from_sorted(vec![(*inner).clone()])?)?;
            let clamped = outer.monomial.clone().dim()?.minus(&difference)?;
            Some((coefficient, vec![rest.clone(), rest.plus_scaled(&clamped, coefficient)?]))
        })
    }

    /// Returns `⌊a/b⌋` for a symbolic `b ≥ 1`.
    fn floor_by_dim(&self, a: Dim, b: &Dim) -> Option<Dim> {
        let (quotient, remainder) = match a.divide(b) {
            Some(parts) => parts,
            None => (Dim::constant(0), a),
        };
        if remainder.is_const(0) {
            return Some(quotient);
        }
        let (remainder, divisor) = self.cancel_common(self.settle(remainder)?, b.clone())?;
        if divisor.as_const().is_some() {
            return self.floor(remainder, &divisor)?.plus(&quotient);
        }
        let floor = if self.at_least(&remainder, 0) && self.at_least(&divisor.minus(&remainder)?, 1) {
            Dim::constant(0)
        } else if self.at_least(&remainder.scaled(-1)?, 1) && self.at_least(&divisor.plus(&remainder)?, 0) {
            Dim::constant(-1)
        } else {
            self.shared(Atom::floor(remainder, divisor)).dim()?
        };
        floor.plus(&quotient)
    }

    /// Applies `⌊g·x/(g·y)⌋ = ⌊x/y⌋` for `g ≠ 0`, which holds for `g·y ≥ 1`. The new divisor is positive again.
    fn cancel_common(&self, a: Dim, b: Dim) -> Option<(Dim, Dim)> {
        let monomial = a.common_monomial().common(&b.common_monomial());
        let (mut a, mut b) = if monomial.is_one() {
            (a, b)
        } else {
            let (x, y) = (a.over_monomial(&monomial)?, b.over_monomial(&monomial)?);
            if self.at_least(&y, 1) {
                (x, y)
            } else if self.at_least(&y.scaled(-1)?, 1) {
                (x.scaled(-1)?, y.scaled(-1)?)
            } else {
                (a, b)
            }
        };
        // ⌊(g·x + c)/(g·y)⌋ = ⌊(x + ⌊c/g⌋)/y⌋ for a constant g > 0.
        let offset = a.offset();
        let variable = a.minus(&Dim::constant(offset))?;
        let common = i64::try_from(greatest_common_divisor(variable.content(), b.content())).ok()?;
        if common > 1 {
            a = variable.over_const(common)?.plus(&Dim::constant(offset.checked_div_euclid(common)?))?;
            b = b.over_const(common)?;
        }
        Some((a, b))
    }
}

/// Applies `⌊(⌊x/c⌋ + y)/b⌋ = ⌊(x + c·y)/(c·b)⌋` for constants `b, c > 0` and an integer `y`.
fn merge_nested(a: &Dim, b: i64) -> Option<(Dim, i64)> {
    a.terms().iter().filter(|term| term.coefficient == 1).find_map(|term| {
        let Some(Atom::Floor(inner)) = term.monomial.as_atom() else { return None };
        let divisor = inner.denominator.as_const()?;
        let rest = a.minus(&Dim::from_sorted(vec![term.clone()])?)?;
        Some((rest.scaled(divisor)?.plus(&inner.numerator)?, b.checked_mul(divisor)?))
    })
}
