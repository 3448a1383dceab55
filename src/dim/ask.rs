//! Questions about dims. An answer is definite only if it holds for every assignment.

use std::cell::OnceCell;

use super::Dim;
use super::answer::{Answer, Question, Relation};
use super::doubts::Doubts;
use super::integer::greatest_common_divisor;
use super::monomial::Summand;
use super::refute::Signs;
use super::scope::Scope;

/// Returns an answer to the caller.
#[cfg(not(feature = "seeded-faults"))]
fn told(answer: Answer) -> Answer {
    answer
}

#[cfg(feature = "seeded-faults")]
use belief::told;

/// Unproved answers, for faults that tests inject: see `ir::faults`.
#[cfg(feature = "seeded-faults")]
pub mod belief {
    use std::cell::Cell;

    use super::Answer;

    thread_local! {
        static BELIEVES: Cell<bool> = const { Cell::new(false) };
        static BELIEVED: Cell<usize> = const { Cell::new(0) };
    }

    /// Runs `act`. If `believes` is set, every unknown answer becomes a yes meanwhile. Also returns the number of such questions.
    pub fn believing<R>(believes: bool, act: impl FnOnce() -> R) -> (R, usize) {
        BELIEVES.set(believes);
        BELIEVED.set(0);
        let result = act();
        BELIEVES.set(false);
        (result, BELIEVED.get())
    }

    pub(super) fn told(answer: Answer) -> Answer {
        if answer != Answer::Unknown || !BELIEVES.get() {
            return answer;
        }
        BELIEVED.set(BELIEVED.get() + 1);
        Answer::Yes
    }
}

impl Scope {
    /// Compares `a ≤ b`.
    pub fn le(&self, a: &Dim, b: &Dim) -> Answer {
        self.answer(Relation::AtMost, a, b, self.at_most(a, b))
    }

    fn at_most(&self, a: &Dim, b: &Dim) -> Answer {
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return Answer::of(a <= b, || true);
        }
        self.whether_at_most(a, b, || self.finds_at_most(a, b))
    }

    fn finds_at_most(&self, a: &Dim, b: &Dim) -> Answer {
        let Some(slack) = self.try_sub(b, a) else { return Answer::Unknown };
        // For most questions that need a search, the answer is unknown.
        let signs = self.signs_of(&slack, |signs| signs.negative && (signs.zero || signs.positive));
        if self.is_proved(&slack, 0, |_| signs().negative) {
            return Answer::Yes;
        }
        let Some(excess) = slack.scaled(-1) else { return Answer::Unknown };
        if self.is_proved(&excess, 1, |_| signs().zero || signs().positive) { Answer::No } else { Answer::Unknown }
    }

    /// Compares `a < b`.
    pub fn lt(&self, a: &Dim, b: &Dim) -> Answer {
        let answer = match self.at_most(b, a) {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unknown => Answer::Unknown,
        };
        self.answer(Relation::Less, a, b, answer)
    }

    /// Compares `a ≥ b`.
    pub fn ge(&self, a: &Dim, b: &Dim) -> Answer {
        self.le(b, a)
    }

    /// Compares `a > b`.
    pub fn gt(&self, a: &Dim, b: &Dim) -> Answer {
        self.lt(b, a)
    }

    /// Compares `a = b`.
    pub fn eq(&self, a: &Dim, b: &Dim) -> Answer {
        if a == b {
            return Answer::Yes;
        }
        let find = || self.try_sub(a, b).map_or(Answer::Unknown, |difference| self.is_zero(&difference));
        // Subtracting two constants is faster than a lookup in the cache.
        let are_numbers = a.as_const().is_some() && b.as_const().is_some();
        let answer = if are_numbers { find() } else { self.whether_equal(a, b, find) };
        self.answer(Relation::Equal, a, b, answer)
    }

    /// Answers whether `a` divides `b`: `b = k·a` for some integer `k`. Every number divides 0, and 0 divides no other number.
    pub fn divides(&self, a: &Dim, b: &Dim) -> Answer {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a.is_const(0) {
            return self.is_zero(&b);
        }
        let answer = match self.try_modulo(&b, &a) {
            Some(rest) => self.is_zero(&rest),
            None => {
                // The divisor may be 0; a polynomial multiple of it is a multiple even then.
                let positive = if a.leading().coefficient < 0 { a.scaled(-1) } else { Some(a.clone()) };
                let rest = positive.and_then(|a| b.divide(&a)).map(|(_, rest)| rest);
                Answer::of(rest.is_some_and(|rest| rest.is_const(0)), || false)
            }
        };
        self.answer(Relation::Divides, &a, &b, answer)
    }

    /// Returns an answer to the caller. Records the question if the answer is unknown and doubts are recorded.
    fn answer(&self, relation: Relation, a: &Dim, b: &Dim, answer: Answer) -> Answer {
        if answer == Answer::Unknown && self.doubts.borrow().is_some() {
            self.open.replace(Some(Question { left: a.clone(), relation, right: b.clone() }));
        }
        told(answer)
    }

    /// Returns the tightest proved bounds, both included; `None` for an absent bound and for one outside of `i64`.
    pub fn bounds(&self, a: &Dim) -> (Option<i64>, Option<i64>) {
        (self.lower_bound(a), self.upper_bound(a))
    }

    /// Returns the lower one of the [`bounds`](Scope::bounds).
    pub fn lower_bound(&self, a: &Dim) -> Option<i64> {
        // A lower bound below `i64` is no information. For one above it, the last `i64` is still a bound.
        let low = self.proved_low(&self.resolve(a)).filter(|low| *low >= i64::MIN.into());
        low.map(|low| i64::try_from(low).unwrap_or(i64::MAX))
    }

    /// Returns the upper one of the [`bounds`](Scope::bounds).
    pub fn upper_bound(&self, a: &Dim) -> Option<i64> {
        let high = self.proved_high(&self.resolve(a)).filter(|high| *high <= i64::MAX.into());
        high.map(|high| i64::try_from(high).unwrap_or(i64::MIN))
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
        let signs = self.signs_of(a, Signs::is_mixed);
        let is_above = self.is_proved(a, 1, |_| signs().negative || signs().zero);
        if is_above || self.is_proved(&negated, 1, |_| signs().zero || signs().positive) {
            return Answer::No;
        }
        let Signs { negative, positive, .. } = signs();
        let is_zero =
            !negative && !positive && self.is_proved(a, 0, |_| false) && self.is_proved(&negated, 0, |_| false);
        if is_zero { Answer::Yes } else { Answer::Unknown }
    }

    /// Returns a function that computes the signs of `a` at the first call.
    fn signs_of<'s>(&'s self, a: &'s Dim, enough: impl Fn(Signs) -> bool + 's) -> impl Fn() -> Signs + 's {
        let found = OnceCell::new();
        move || *found.get_or_init(|| self.signs(a, &enough))
    }
}

/// The unanswered questions.
impl Scope {
    /// Records the questions that the prover cannot answer from now on.
    pub fn note_doubts(&self) {
        self.doubts.replace(Some(Doubts::default()));
    }

    /// Records that `a ≥ goal` is not proved, if doubts are recorded.
    pub(super) fn doubt(&self, a: &Dim, goal: i64) {
        if let Some(doubts) = self.doubts.borrow_mut().as_mut() {
            doubts.note(a, goal);
        }
    }

    /// Returns the expressions that could not be proved to be at least 0 since recording began, the most frequent ones first.
    pub fn doubts(&self) -> Vec<(Dim, usize)> {
        let mut found = self.doubts.borrow().as_ref().map_or_else(Vec::new, Doubts::all);
        found.sort_by(|(a, times), (b, others)| {
            others.cmp(times).then_with(|| a.size().cmp(&b.size())).then_with(|| a.cmp(b))
        });
        found
    }

    /// Returns the last question that the prover could not answer since [`note_doubts`](Scope::note_doubts).
    pub fn open_question(&self) -> Option<Question> {
        self.open.borrow().clone()
    }

    /// Formats a question: `s <= 7`.
    pub fn question(&self, question: &Question) -> String {
        let (left, right) = (self.format_plainly(&question.left), self.format_plainly(&question.right));
        match question.relation {
            Relation::AtMost => format!("{left} <= {right}"),
            Relation::Less => format!("{left} < {right}"),
            Relation::Equal => format!("{left} == {right}"),
            Relation::Divides => format!("{left} divides {right}"),
        }
    }

    /// Formats `slack ≥ 0`, with negative terms on the other side: `a + b <= c`.
    pub fn inequality(&self, slack: &Dim) -> String {
        self.inequality_of(slack, &|side| self.format(side))
    }

    /// Formats the inequality without the search for the shortest form of both sides.
    pub fn plain_inequality(&self, slack: &Dim) -> String {
        self.inequality_of(slack, &|side| self.format_plainly(side))
    }

    fn inequality_of(&self, slack: &Dim, format: &dyn Fn(&Dim) -> String) -> String {
        let (above, below): (Vec<Summand>, Vec<Summand>) =
            slack.terms().iter().cloned().partition(|term| term.coefficient > 0);
        let sum = |terms: Vec<Summand>, sign: i64| Dim::from_terms(terms)?.scaled(sign);
        match (sum(above, 1), sum(below, -1)) {
            (Some(above), Some(below)) if below.as_const().is_some() => {
                format!("{} >= {}", format(&above), format(&below))
            }
            (Some(above), Some(below)) => format!("{} <= {}", format(&below), format(&above)),
            _ => format!("{} >= 0", format(slack)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::doubts::{comparisons, divisors};
    use super::*;

    #[test]
    fn only_unproved_questions_are_recorded() {
        let scope = Scope::new();
        let size = Dim::symbol(scope.named("s"));
        let seven = Dim::constant(7);
        assert!(scope.ge(&size, &seven) == Answer::Unknown && scope.doubts().is_empty());
        scope.note_doubts();
        assert!(scope.ge(&size, &seven) == Answer::Unknown);
        assert!(scope.ge(&size, &Dim::constant(0)).is_yes());
        let told: Vec<String> = scope.doubts().iter().map(|(slack, _)| scope.format(slack)).collect();
        assert_eq!(told, ["6 - s", "s - 7"]);
    }

    #[test]
    fn inequalities_have_no_negative_terms() {
        let scope = Scope::new();
        let told = |text: &str| scope.inequality(&scope.parse(text).unwrap());
        assert_eq!(told("130 - a - 2*b"), "a + 2*b <= 130");
        assert_eq!(told("a - b"), "b <= a");
        assert_eq!(told("a + b"), "a + b >= 0");
        assert_eq!(told("a - 7"), "a >= 7");
        assert_eq!(told("0 - a"), "a <= 0");
    }

    #[test]
    fn members_of_maxima_are_compared() {
        let scope = Scope::new();
        let found = comparisons(&scope.parse("3 + max(0, s - 7)").unwrap());
        assert_eq!(found.iter().map(|dim| scope.format(dim)).collect::<Vec<_>>().len(), 1);
    }

    #[test]
    fn divisors_are_found_at_any_depth() {
        let scope = Scope::new();
        let size = scope.parse("floor((s + t*floor(u/2))/3)").unwrap();
        let mut found: Vec<i64> = divisors(&size).into_iter().map(|(_, divisor)| divisor).collect();
        found.sort_unstable();
        assert_eq!(found, [2, 3]);
    }
}
