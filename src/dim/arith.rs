//! Total arithmetic: every operation has a result, in canonical form and as short as the known facts allow.
//!
//! Each operation exists twice. `try_…` returns `None` if it has no result (overflow, a divisor that may be zero, an expression over
//! budget). The public variant returns a fresh integer then.

use super::expr::{Dim, MAX_TERMS, Symbol};
use super::monomial::{Atom, MAX_DEGREE, Monomial, Summand, combine};
use super::scope::Scope;

impl Scope {
    fn or_fresh(&self, result: Option<Dim>) -> Dim {
        result.unwrap_or_else(|| self.fresh_value("unk"))
    }

    /// `a + b`.
    pub fn add(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_add(a, b))
    }

    /// `a − b`.
    pub fn sub(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_sub(a, b))
    }

    /// `−a`.
    pub fn neg(&self, a: &Dim) -> Dim {
        self.or_fresh(self.try_neg(a))
    }

    /// `a · b`.
    pub fn mul(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_mul(a, b))
    }

    /// The sum of all terms. It is sorted once, so this is the fast way to add many.
    pub fn sum<'d>(&self, terms: impl IntoIterator<Item = &'d Dim>) -> Dim {
        self.or_fresh(self.try_sum(terms))
    }

    /// The product of all factors; 1 for none. It is 0 if a factor is 0, even if another one has no value.
    pub fn product<'d>(&self, factors: impl IntoIterator<Item = &'d Dim>) -> Dim {
        let mut product = Some(Dim::constant(1));
        for factor in factors {
            if factor.is_const(0) {
                return Dim::constant(0);
            }
            product = product.and_then(|product| self.try_mul(&product, factor));
        }
        self.or_fresh(product)
    }

    /// `⌊a / b⌋`, as Python's `//`.
    pub fn floor_div(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_floor_div(a, b))
    }

    /// `⌈a / b⌉`.
    pub fn ceil_div(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_ceil_div(a, b))
    }

    /// `a − b·⌊a / b⌋`, as Python's `%`: the result has the sign of `b`.
    pub fn modulo(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_modulo(a, b))
    }

    /// The quotient rounded towards zero, as C's `/`.
    pub fn trunc_div(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_trunc_div(a, b))
    }

    /// `a − b·trunc(a / b)`, as C's `%`: the result has the sign of `a`.
    pub fn rem(&self, a: &Dim, b: &Dim) -> Dim {
        let quotient = self.try_trunc_div(a, b);
        self.or_fresh(quotient.and_then(|quotient| self.try_sub(a, &self.try_mul(b, &quotient)?)))
    }

    /// Returns `a / b` if it is proved that `b` is not zero and divides `a` for every assignment.
    pub fn exact_div(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        let quotient = self.try_floor_div(a, b)?;
        let rest = self.try_sub(a, &self.try_mul(b, &quotient)?)?;
        (rest.is_const(0) || (self.at_least(&rest, 0) && self.at_least(&rest.scaled(-1)?, 0))).then_some(quotient)
    }

    /// Returns a `q` with `a = q·b` for every assignment: `a / b` if `b` is not zero, which need not be proved. If `b` is zero, so is `a`,
    /// and any `q` satisfies the equation. [`exact_div`](Scope::exact_div) is stronger.
    pub fn quotient(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        self.known_quotient(a, b, || self.finds_quotient(a, b))
    }

    fn finds_quotient(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let Some(quotient) = self.exact_div(a, b) {
            return Some(quotient);
        }
        let (mut a, mut b) = (self.resolve(a), self.resolve(b));
        if b.is_const(0) {
            return None;
        }
        if b.leading().coefficient < 0 {
            (a, b) = (a.scaled(-1)?, b.scaled(-1)?);
        }
        let (quotient, rest) = a.divide(&b)?;
        if rest.is_const(0) { self.settle(quotient) } else { None }
    }

    /// The smaller of the two.
    pub fn min(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_min(a, b))
    }

    /// The larger of the two.
    pub fn max(&self, a: &Dim, b: &Dim) -> Dim {
        self.or_fresh(self.try_max(a, b))
    }

    /// `|a|`.
    pub fn abs(&self, a: &Dim) -> Dim {
        self.or_fresh(self.try_abs(a))
    }

    /// Returns `a` in the form of present results, which is that of `a + 0`. An expression that is older than an equality may contain a
    /// symbol that newer results do not contain.
    pub fn current(&self, a: &Dim) -> Dim {
        if a.as_const().is_some() {
            return a.clone();
        }
        self.settle(self.resolve(a)).unwrap_or_else(|| a.clone())
    }

    pub(super) fn try_add(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return a.checked_add(b).map(Dim::constant);
        }
        self.settle(self.resolve(a).plus(&self.resolve(b))?)
    }

    pub(super) fn try_sub(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return a.checked_sub(b).map(Dim::constant);
        }
        self.settle(self.resolve(a).minus(&self.resolve(b))?)
    }

    pub(super) fn try_neg(&self, a: &Dim) -> Option<Dim> {
        self.settle(self.resolve(a).scaled(-1)?)
    }

    pub(super) fn try_mul(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return a.checked_mul(b).map(Dim::constant);
        }
        let (a, b) = (self.resolve(a), self.resolve(b));
        if let Some(product) = self.times_switch(&a, &b).or_else(|| self.times_switch(&b, &a)) {
            return Some(product);
        }
        self.settle(self.decide_maxima(a.times(&b)?)?)
    }

    /// Applies `f·max(0, d) = f·d` in every term, where `f ≥ 0` and `d ≥ f − 1`: if `f` is at least 1, `d` is at least 0; if `f` is 0, both sides
    /// are 0.
    fn decide_maxima(&self, product: Dim) -> Option<Dim> {
        if !product.terms().iter().any(|term| self.decided_maximum(term).is_some()) {
            return Some(product);
        }
        let (mut open, mut decided) = (product.terms().to_vec(), Vec::new());
        while let Some(term) = open.pop() {
            let Some((rest, difference)) = self.decided_maximum(&term) else {
                decided.push(term);
                continue;
            };
            // Nested maxima may expand without bound. The unexpanded product has the same value.
            match difference.times_term(&rest).filter(|_| decided.len().saturating_add(open.len()) < MAX_TERMS as usize)
            {
                Some(replaced) => open.extend_from_slice(&replaced.terms()),
                None => return Some(product),
            }
        }
        Dim::from_terms(decided)
    }

    /// Returns the other factors of a term and `d`, if [`decide_maxima`](Scope::decide_maxima) applies to its factor `max(0, d)`.
    fn decided_maximum(&self, term: &Summand) -> Option<(Summand, Dim)> {
        let factors = term.monomial.factors();
        factors.iter().find_map(|maximum| {
            let Atom::Max(members) = &maximum.atom else { return None };
            let [zero, difference] = members.as_slice() else { return None };
            let decides = |factor: &Dim| {
                let slack = difference.minus(factor).and_then(|slack| slack.plus(&Dim::constant(1)));
                self.at_least(factor, 0) && slack.is_some_and(|slack| self.at_least(&slack, 0))
            };
            let mut others =
                factors.iter().filter(|other| other.atom != maximum.atom).filter_map(|other| other.atom.clone().dim());
            if !zero.is_const(0) || !others.any(|other| decides(&other)) {
                return None;
            }
            let monomial = term.monomial.over(&Monomial::atom(maximum.atom.clone()))?;
            Some((Summand { monomial, coefficient: term.coefficient }, difference.clone()))
        })
    }

    /// Returns `p·f` for `f = c·z + d`, where `z = max(0, 1 − q)` is 1 for `q = 0` and 0 otherwise. In `p·z` only the value of `p` at
    /// `q = 0` matters. `None` if `f` has another form.
    fn times_switch(&self, p: &Dim, f: &Dim) -> Option<Dim> {
        // z is written 1 − q + max(0, q − 1).
        let terms = f.terms();
        let (maximum, difference) = terms.iter().find_map(|term| match term.monomial.as_atom() {
            Some(Atom::Max(members)) => match members.as_slice() {
                [zero, difference] if zero.is_const(0) => Some((term, difference)),
                _ => None,
            },
            _ => None,
        })?;
        let single = Summand { monomial: maximum.monomial.clone(), coefficient: 1 };
        let z = Dim::from_sorted(vec![single])?.minus(difference)?;
        let rest = f.plus_scaled(&z, maximum.coefficient.checked_neg()?)?.as_const()?;
        let q = difference.plus(&Dim::constant(1))?;
        let variable: Vec<Summand> = q.terms().iter().filter(|term| !term.monomial.is_one()).cloned().collect();
        let atoms: Vec<Atom> = variable.iter().filter_map(|term| term.monomial.as_atom().cloned()).collect();
        let [single, others @ ..] = variable.as_slice() else { return None };
        if atoms.len() != variable.len() || variable.iter().any(|term| term.coefficient < 1) {
            return None;
        }
        let value = if others.is_empty() && single.coefficient == 1 && self.at_least(&q, 0) {
            q.offset().checked_neg()?
        } else if q.offset() == 0
            && atoms.iter().all(|atom| atom.clone().dim().is_some_and(|dim| self.at_least(&dim, 0)))
        {
            0
        } else {
            return None;
        };
        let there = self.try_replace(p, &|atom| atoms.contains(atom).then(|| Dim::constant(value)))?;
        if there == *p {
            return None;
        }
        let counted = there.times(&z)?.scaled(maximum.coefficient)?;
        self.settle(counted.plus_scaled(p, rest)?)
    }

    pub(super) fn try_sum<'d>(&self, dims: impl IntoIterator<Item = &'d Dim>) -> Option<Dim> {
        let (mut terms, mut room) = (Vec::new(), 2 * MAX_TERMS as usize);
        for dim in dims {
            terms.extend_from_slice(&self.resolve(dim).terms());
            if terms.len() > room {
                combine(&mut terms)?;
                // Terms may still cancel, but the buffer is bounded.
                if terms.len() > 16 * MAX_TERMS as usize {
                    return None;
                }
                room = terms.len().saturating_mul(2).max(room);
            }
        }
        self.settle(Dim::from_terms(terms)?)
    }

    pub(super) fn try_ceil_div(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        // ⌈a/b⌉ = ⌊(a + b − 1)/b⌋ for integers and b > 0, and ⌈a/b⌉ = ⌈−a/−b⌉.
        if self.at_least(b, 1) {
            let raised = self.try_add(a, &self.try_sub(b, &Dim::constant(1))?)?;
            return self.try_floor_div(&raised, b);
        }
        let (a, b) = (self.try_neg(a)?, self.try_neg(b)?);
        if self.at_least(&b, 1) { self.try_ceil_div(&a, &b) } else { None }
    }

    pub(super) fn try_modulo(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        self.try_sub(a, &self.try_mul(b, &self.try_floor_div(a, b)?)?)
    }

    fn try_trunc_div(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        let zero = Dim::constant(0);
        let negated = self.try_neg(a)?;
        if !self.at_least(b, 1) {
            let positive = self.try_neg(b)?;
            return if self.at_least(&positive, 1) { self.try_trunc_div(&negated, &positive) } else { None };
        }
        if self.at_least(a, 0) {
            return self.try_floor_div(a, b);
        }
        if self.at_least(&negated, 0) {
            return self.try_neg(&self.try_floor_div(&negated, b)?);
        }
        // A number nearer to 0 than the divisor is truncated to 0.
        let most = self.try_sub(b, &Dim::constant(1))?;
        if self.at_least(&self.try_add(&most, a)?, 0) && self.at_least(&self.try_sub(&most, a)?, 0) {
            return Some(zero);
        }
        let above = self.try_floor_div(&self.try_max(a, &zero)?, b)?;
        let below = self.try_floor_div(&self.try_max(&negated, &zero)?, b)?;
        self.try_sub(&above, &below)
    }

    pub(super) fn try_max(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return Some(Dim::constant(a.max(b)));
        }
        self.try_max_of(vec![a.clone(), b.clone()])
    }

    pub(super) fn try_min(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return Some(Dim::constant(a.min(b)));
        }
        self.try_min_of(vec![a.clone(), b.clone()])
    }

    pub(super) fn try_max_of(&self, members: Vec<Dim>) -> Option<Dim> {
        self.settle(self.largest(members.iter().map(|member| self.resolve(member)).collect())?)
    }

    pub(super) fn try_min_of(&self, members: Vec<Dim>) -> Option<Dim> {
        let negated = members.iter().map(|member| self.try_neg(member)).collect::<Option<_>>()?;
        self.try_neg(&self.try_max_of(negated)?)
    }

    pub(super) fn try_abs(&self, a: &Dim) -> Option<Dim> {
        self.try_max(a, &self.try_neg(a)?)
    }

    /// Returns `a` in canonical form, with every symbol replaced for which `replace` has a value.
    pub fn substitute(&self, a: &Dim, replace: &dyn Fn(Symbol) -> Option<Dim>) -> Dim {
        self.or_fresh(self.try_substitute(a, replace))
    }

    pub(super) fn try_substitute(&self, a: &Dim, replace: &dyn Fn(Symbol) -> Option<Dim>) -> Option<Dim> {
        self.try_replace(a, &|atom| match atom {
            Atom::Symbol(symbol) => replace(*symbol),
            Atom::Floor(_) | Atom::Max(_) => None,
        })
    }

    /// Returns `a` in canonical form, with every atom replaced for which `replace` has a value, outermost first.
    fn try_replace(&self, a: &Dim, replace: &dyn Fn(&Atom) -> Option<Dim>) -> Option<Dim> {
        let mut sum = Vec::new();
        for term in a.terms().iter() {
            let mut product = Dim::constant(term.coefficient);
            for factor in term.monomial.factors() {
                let base = self.replace_inside(&factor.atom, replace)?;
                for _ in 0..factor.exponent {
                    product = self.try_mul(&product, &base)?;
                }
            }
            sum.push(product);
        }
        self.try_sum(&sum)
    }

    fn replace_inside(&self, atom: &Atom, replace: &dyn Fn(&Atom) -> Option<Dim>) -> Option<Dim> {
        if let Some(value) = replace(atom) {
            return Some(value);
        }
        match atom {
            Atom::Symbol(symbol) => Some(Dim::symbol(*symbol)),
            Atom::Floor(floor) => {
                let numerator = self.try_replace(&floor.numerator, replace)?;
                self.try_floor_div(&numerator, &self.try_replace(&floor.denominator, replace)?)
            }
            Atom::Max(members) => {
                let members: Option<_> = members.iter().map(|member| self.try_replace(member, replace)).collect();
                self.settle(self.largest(members?)?)
            }
        }
    }

    /// `m·⌊S/m⌋ = S` for a symbol known to be a multiple of `m`: keeps the coefficient of `⌊S/m⌋` in `0 .. m`.
    pub(super) fn settle(&self, a: Dim) -> Option<Dim> {
        if !self.with_table(|table| table.has_multiples()) {
            return Some(a);
        }
        let mut settled = a;
        // Each round turns the floors of one degree lower, at most, into symbols.
        for _ in 0..=MAX_DEGREE {
            let mut terms = Vec::with_capacity(settled.terms().len());
            let mut changed = false;
            for term in settled.terms().iter() {
                match self.split_multiple(term) {
                    Some((whole, rest)) => {
                        changed = true;
                        terms.extend(whole);
                        terms.extend(rest);
                    }
                    None => terms.push(term.clone()),
                }
            }
            if !changed {
                return Some(settled);
            }
            settled = Dim::from_terms(terms)?;
        }
        Some(settled)
    }

    /// The opposite of [`settle`](Scope::settle): `m·⌊S/m⌋` for every symbol `S` known to be a multiple of `m`.
    pub(super) fn expand(&self, a: &Dim) -> Option<Dim> {
        if !self.with_table(|table| table.has_multiples()) {
            return Some(a.clone());
        }
        let terms = a.terms();
        let expanded = terms.iter().map(|term| {
            let mut product = Summand { monomial: Monomial::One, coefficient: term.coefficient };
            for factor in term.monomial.factors() {
                let (atom, scale) = self.expand_atom(&factor.atom)?;
                for _ in 0..factor.exponent {
                    product = product.times(&Summand { monomial: Monomial::atom(atom.clone()), coefficient: scale })?;
                }
            }
            Some(product)
        });
        Dim::from_terms(expanded.collect::<Option<_>>()?)
    }

    /// Returns `(⌊S/m⌋, s)` with `atom = s·⌊S/m⌋` for a multiple `S` of `m`, or for its quotient by a divisor of `m`.
    fn expand_atom(&self, atom: &Atom) -> Option<(Atom, i64)> {
        let (symbol, divisor) = match atom {
            Atom::Symbol(symbol) => (*symbol, 1),
            _ => match self.exact_floor(atom) {
                Some(exact) => exact,
                None => return Some((atom.clone(), 1)),
            },
        };
        let multiple = self.with_table(|table| table.multiple(symbol));
        if multiple == divisor {
            return Some((atom.clone(), 1));
        }
        let floor = Atom::floor(Dim::symbol(symbol), Dim::constant(multiple));
        Some((floor, multiple.checked_div(divisor)?))
    }

    /// Applies `c·n·⌊S/m⌋ = (c div m)·n·S + (c mod m)·n·⌊S/m⌋`; `None` if that changes nothing.
    fn split_multiple(&self, term: &Summand) -> Option<(Option<Summand>, Option<Summand>)> {
        let (floor, symbol, divisor) = term.monomial.factors().iter().find_map(|factor| {
            let (symbol, divisor) = self.exact_floor(&factor.atom)?;
            (term.coefficient.checked_div_euclid(divisor)? != 0).then_some((&factor.atom, symbol, divisor))
        })?;
        let rest = term.monomial.over(&Monomial::atom(floor.clone()))?;
        let raised = rest.times(&Monomial::atom(Atom::Symbol(symbol)))?;
        let whole = Summand { monomial: raised, coefficient: term.coefficient.checked_div_euclid(divisor)? };
        let left = term.coefficient.checked_rem_euclid(divisor)?;
        let left = (left != 0).then(|| Summand { monomial: term.monomial.clone(), coefficient: left });
        Some((Some(whole), left))
    }
}
