//! The questions: three answers, and a definite one only if it holds for every assignment.

use super::Dim;
use super::integer::greatest_common_divisor;
use super::scope::Scope;

/// Whether something holds for every assignment within what is known, for none, or cannot be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// True for every assignment.
    Yes,
    /// False for every assignment.
    No,
    /// Neither is proved.
    Unknown,
}

impl Answer {
    /// Whether this is [`Answer::Yes`].
    pub fn is_yes(self) -> bool {
        self == Answer::Yes
    }

    /// Whether this is [`Answer::No`].
    pub fn is_no(self) -> bool {
        self == Answer::No
    }

    fn of(yes: bool, no: impl FnOnce() -> bool) -> Answer {
        if yes {
            Answer::Yes
        } else if no() {
            Answer::No
        } else {
            Answer::Unknown
        }
    }
}

impl Scope {
    /// Whether `a ≤ b`.
    pub fn le(&self, a: &Dim, b: &Dim) -> Answer {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return Answer::of(a <= b, || true);
        }
        let Some(slack) = self.try_sub(b, a) else { return Answer::Unknown };
        Answer::of(self.at_least(&slack, 0), || slack.scaled(-1).is_some_and(|excess| self.at_least(&excess, 1)))
    }

    /// Whether `a < b`.
    pub fn lt(&self, a: &Dim, b: &Dim) -> Answer {
        match self.le(b, a) {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unknown => Answer::Unknown,
        }
    }

    /// Whether `a ≥ b`.
    pub fn ge(&self, a: &Dim, b: &Dim) -> Answer {
        self.le(b, a)
    }

    /// Whether `a > b`.
    pub fn gt(&self, a: &Dim, b: &Dim) -> Answer {
        self.lt(b, a)
    }

    /// Whether `a = b`.
    pub fn eq(&self, a: &Dim, b: &Dim) -> Answer {
        if a == b {
            return Answer::Yes;
        }
        match self.try_sub(a, b) {
            Some(difference) => self.is_zero(&difference),
            None => Answer::Unknown,
        }
    }

    /// Whether `a` divides `b`: whether `b = k·a` for some integer `k`. Everything divides 0, and 0 nothing else.
    pub fn divides(&self, a: &Dim, b: &Dim) -> Answer {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a.is_const(0) {
            return self.is_zero(&b);
        }
        if let Some(rest) = self.try_modulo(&b, &a) {
            return self.is_zero(&rest);
        }
        // The divisor may be 0; a polynomial multiple of it is a multiple all the same.
        let positive = if a.leading().coefficient < 0 { a.scaled(-1) } else { Some(a) };
        match positive.and_then(|a| b.divide(&a)) {
            Some((_, rest)) if rest.is_const(0) => Answer::Yes,
            _ => Answer::Unknown,
        }
    }

    /// The tightest bounds that can be proved, both included; `None` where there is none, or none in `i64`.
    pub fn bounds(&self, a: &Dim) -> (Option<i64>, Option<i64>) {
        let proved = self.proved_interval(&self.resolve(a));
        // A bound beyond i64 on the near side is no news; on the far side the last i64 is still a bound.
        let low = proved.low.filter(|low| *low >= i64::MIN.into()).map(|low| i64::try_from(low).unwrap_or(i64::MAX));
        let high = proved.high.filter(|high| *high <= i64::MAX.into());
        (low, high.map(|high| i64::try_from(high).unwrap_or(i64::MIN)))
    }

    fn is_zero(&self, a: &Dim) -> Answer {
        if let Some(value) = a.as_const() {
            return Answer::of(value == 0, || true);
        }
        // All terms but the constant one are multiples of `step`.
        let terms = a.terms();
        let variable = terms.iter().filter(|term| !term.monomial.is_one());
        let step = variable.fold(0, |step, term| greatest_common_divisor(step, self.step_of(term)));
        if a.offset().unsigned_abs().checked_rem(step).is_some_and(|rest| rest != 0) {
            return Answer::No;
        }
        let Some(negated) = a.scaled(-1) else { return Answer::Unknown };
        if self.at_least(a, 1) || self.at_least(&negated, 1) {
            return Answer::No;
        }
        Answer::of(self.at_least(a, 0) && self.at_least(&negated, 0), || false)
    }
}
