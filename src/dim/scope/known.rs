//! Facts about symbols: bounds, multiples, relations, and definitions by other symbols.

use super::super::bounds::Interval;
use super::super::expr::{Dim, Symbol};
use super::super::integer::greatest_common_divisor;
use super::super::monomial::{Atom, Floor};
use super::memo::Supposed;
use super::{Scope, Table};

/// The most sizes that are recorded to broadcast to one size. Each further one is compared with all of them; a mask makes one.
const MAX_COVERED: usize = 64;

impl Scope {
    /// Records that the symbol is a size: an existing tensor has this dim.
    pub fn set_size(&self, symbol: Symbol) {
        self.restrict(symbol, Some(0), None);
        if let Some(entry) = self.table.borrow_mut().symbols.get_mut(symbol.0 as usize)
            && !std::mem::replace(&mut entry.size, true)
        {
            self.learn(symbol);
        }
    }

    /// Records bounds of the symbol, both included.
    pub fn restrict(&self, symbol: Symbol, low: Option<i64>, high: Option<i64>) {
        let added = Interval { low: low.map(i128::from), high: high.map(i128::from) };
        let mut table = self.table.borrow_mut();
        if table.supposing.is_some_and(|symbols| (symbol.0 as usize) < symbols) {
            return;
        }
        let Some(entry) = table.symbols.get_mut(symbol.0 as usize) else {
            return;
        };
        let tightened = entry.interval.intersect(added).shrink_to_multiples(entry.multiple);
        if tightened == entry.interval {
            return;
        }
        entry.interval = tightened;
        self.learn(symbol);
        self.attempts.borrow_mut().redraw(table.relations.about_symbol(symbol));
        let written = table.rewrites.iter().find(|(left, _)| *left == symbol).map(|(_, right)| right.clone());
        drop(table);
        self.forget();
        if let Some(written) = written {
            self.assume_within(&written, tightened);
        } else if let Some(value) = tightened.single().and_then(|value| i64::try_from(value).ok()) {
            self.rewrite(symbol, Dim::constant(value));
        }
    }

    /// Records that the symbol is a multiple of `factor`; a factor of zero means that the symbol is 0.
    pub fn set_multiple(&self, symbol: Symbol, factor: i64) {
        if factor == 0 {
            return self.restrict(symbol, Some(0), Some(0));
        }
        let mut table = self.table.borrow_mut();
        if table.supposing.is_some_and(|symbols| (symbol.0 as usize) < symbols) {
            return;
        }
        let Some(entry) = table.symbols.get_mut(symbol.0 as usize) else {
            return;
        };
        let (old, new) = (entry.multiple.unsigned_abs(), factor.unsigned_abs());
        let common = greatest_common_divisor(old, new).max(1);
        // If the least common multiple overflows, only the older fact is kept.
        let Some(multiple) = new.checked_div(common).and_then(|part| i64::try_from(part.checked_mul(old)?).ok()) else {
            return;
        };
        if multiple == entry.multiple {
            return;
        }
        entry.multiple = multiple;
        self.learn(symbol);
        table.has_multiples = true;
        self.attempts.borrow_mut().redraw(table.relations.about_symbol(symbol));
        drop(table);
        self.forget();
        self.restrict(symbol, None, None);
    }

    /// Runs `find` under the supposition that each of these expressions is at least 0. Of the assumptions that `find` adds, only bounds of
    /// symbols that it creates are kept: other ones may follow from the suppositions.
    pub fn supposing<R>(&self, not_negative: &[Dim], find: impl FnOnce() -> R) -> R {
        // Earlier conclusions are valid again afterwards; conclusions of `find` are not.
        let before = (self.found.take(), self.attempts.take(), self.parts.take());
        let mut table = self.table.borrow_mut();
        let (kept, symbols) = (table.relations.len(), table.symbols.len());
        if table.supposing.is_none() {
            table.given = kept;
        }
        for expression in not_negative {
            if table.relations.push(expression.clone()).is_none() {
                self.note_dropped();
            }
        }
        let outer = table.supposing.replace(symbols);
        let supposed = self.supposed_now(&table);
        drop(table);
        // The suppositions of an earlier call have the same conclusions, unless there are new facts.
        self.found.restore(self.recall_supposed(&supposed));
        let found = find();
        let mut table = self.table.borrow_mut();
        let is_same = self.supposed_now(&table) == supposed;
        table.relations.truncate(kept);
        table.supposing = outer;
        drop(table);
        if is_same {
            self.remember_supposed(supposed, self.found.take());
        }
        self.found.restore(before.0);
        self.attempts.replace(before.1);
        self.parts.replace(before.2);
        found
    }

    /// Returns the assumptions of the present results, in addition to the given relations.
    fn supposed_now(&self, table: &Table) -> Supposed {
        (table.relations.iter().skip(table.given).cloned().collect(), self.trusts())
    }

    /// Assumes `a ≤ b`.
    pub fn assume_le(&self, a: &Dim, b: &Dim) {
        if let Some(difference) = self.try_sub(b, a) {
            self.assume_non_negative(difference);
        }
    }

    /// Assumes `a = b`. If one symbol can be isolated, new results do not contain it.
    pub fn assume_eq(&self, a: &Dim, b: &Dim) {
        self.assume_eq_in(None, a, b);
    }

    /// Assumes `a = b`; `solved` is the symbol to isolate, if the caller chooses one.
    fn assume_eq_in(&self, solved: Option<Symbol>, a: &Dim, b: &Dim) {
        let primitive = self.try_sub(a, b).and_then(|difference| {
            let (primitive, content, offset) = difference.primitive()?;
            // Without an integer quotient, no assignment satisfies the equality.
            let exact = offset.checked_rem(content)? == 0;
            exact.then(|| primitive.plus(&Dim::constant(offset.checked_div(content)?)))?
        });
        let Some(difference) = primitive else { return };
        let Some(negated) = difference.scaled(-1) else { return };
        self.assume_non_negative(difference.clone());
        self.assume_non_negative(negated.clone());
        // Isolates the newest symbol that is a term with coefficient ±1, fresh symbols first.
        let terms = difference.terms();
        let isolated = terms.iter().filter_map(|term| match term.monomial.as_atom() {
            Some(Atom::Symbol(symbol)) if term.coefficient.unsigned_abs() == 1 => {
                let own = Dim::symbol(*symbol);
                let rest = if term.coefficient == 1 { own.plus(&negated)? } else { own.plus(&difference)? };
                (!rest.mentions(*symbol)).then_some((*symbol, rest))
            }
            _ => None,
        });
        let rank = |symbol: Symbol| (solved == Some(symbol), self.is_fresh(symbol), symbol);
        if let Some((symbol, value)) = isolated.max_by_key(|(symbol, _)| rank(*symbol)) {
            self.rewrite(symbol, value);
        }
    }

    /// Defines the symbol as `value`, which does not contain it. New results contain `value` instead.
    pub fn define(&self, symbol: Symbol, value: &Dim) {
        self.assume_eq_in(Some(symbol), &Dim::symbol(symbol), value);
    }

    /// Records that `small` broadcasts to `large`. Returns `false` if too many do.
    pub(in crate::dim) fn note_covered(&self, large: &Dim, small: Dim) -> bool {
        let mut table = self.table.borrow_mut();
        let is_supposing = table.supposing.is_some();
        let covered = table.covered.entry(large.clone()).or_default();
        let is_kept = covered.len() < MAX_COVERED && !is_supposing;
        if is_kept {
            covered.push(small);
        }
        is_kept
    }

    /// Returns `true` if the pair is recorded.
    pub(in crate::dim) fn is_noted_covered(&self, large: &Dim, small: &Dim) -> bool {
        self.with_table(|table| table.covered.get(large).is_some_and(|covered| covered.contains(small)))
    }

    fn assume_within(&self, a: &Dim, interval: Interval) {
        for (bound, sign) in [(interval.low, 1), (interval.high, -1)] {
            let bound = bound.and_then(|bound| i64::try_from(bound).ok());
            if let Some(slack) = bound.and_then(|bound| a.minus(&Dim::constant(bound))?.scaled(sign)) {
                self.assume_non_negative(slack);
            }
        }
    }

    fn assume_non_negative(&self, expression: Dim) {
        // c·p + k ≥ 0  ⇔  p ≥ −⌊k/c⌋.
        let primitive = expression.primitive().and_then(|(primitive, content, offset)| {
            primitive.plus(&Dim::constant(offset.checked_div_euclid(content)?))
        });
        let Some(expression) = primitive else { return };
        // c·s + d ≥ 0 bounds s, and c·⌊n/m⌋ + d ≥ 0 bounds n.
        if let [first, rest @ ..] = &*expression.terms()
            && rest.iter().all(|term| term.monomial.is_one())
        {
            let interval = Interval::of_affine_root(first.coefficient, expression.offset());
            let [low, high] = [interval.low, interval.high].map(|bound| bound.and_then(|b| i64::try_from(b).ok()));
            match first.monomial.as_atom() {
                Some(Atom::Symbol(symbol)) => return self.restrict(*symbol, low, high),
                Some(Atom::Floor(floor)) => {
                    if let Some(bound) = of_numerator(floor, low, high) {
                        return self.assume_non_negative(bound);
                    }
                }
                _ => {}
            }
        }
        let mut table = self.table.borrow_mut();
        let pushed = table.relations.push(expression.clone());
        if pushed.is_none() {
            self.note_dropped();
        }
        if pushed == Some(true) {
            if table.supposing.is_none() {
                expression.symbols().into_iter().for_each(|symbol| self.learn(symbol));
            }
            drop(table);
            // Intervals depend on the bounds of symbols only.
            self.forget_searches();
        }
    }

    /// Replaces `symbol` by `value` in new results. `value` does not contain `symbol`.
    fn rewrite(&self, symbol: Symbol, value: Dim) {
        {
            let table = self.table.borrow();
            // The definition of a symbol may follow from a supposition.
            if table.supposing.is_some() {
                return;
            }
            if table.rewrites.iter().any(|(left, _)| *left == symbol || value.mentions(*left)) {
                return;
            }
        }
        let interval = self.table.borrow().interval(symbol);
        self.assume_within(&value, interval);
        let old = std::mem::take(&mut self.table.borrow_mut().rewrites);
        let mut updated = Vec::with_capacity(old.len().saturating_add(1));
        for (left, right) in old {
            let single = |other| (other == symbol).then(|| value.clone());
            // A definition that cannot be updated is dropped: results are longer, and still correct.
            let right = if right.mentions(symbol) { self.try_substitute(&right, &single) } else { Some(right) };
            updated.extend(right.filter(|right| !right.mentions(left) && !right.mentions(symbol)).map(|r| (left, r)));
        }
        updated.push((symbol, value));
        self.learn(symbol);
        self.table.borrow_mut().rewrites = updated;
        self.forget();
    }
}

/// Returns an expression of the numerator that is at least 0 if `low ≤ ⌊n/m⌋` or `⌊n/m⌋ ≤ high`, for a constant `m > 0`: `n − low·m`, or
/// `high·m + m − 1 − n`.
fn of_numerator(floor: &Floor, low: Option<i64>, high: Option<i64>) -> Option<Dim> {
    let divisor = floor.denominator.as_const().filter(|divisor| *divisor > 0)?;
    match (low, high) {
        (Some(low), _) => floor.numerator.minus(&Dim::constant(low.checked_mul(divisor)?)),
        (_, Some(high)) => {
            let most = high.checked_mul(divisor)?.checked_add(divisor.checked_sub(1)?)?;
            Dim::constant(most).minus(&floor.numerator)
        }
        _ => None,
    }
}
