//! Limits the proofs of one attempt.

use super::Scope;

/// The most proof steps in one attempt: a rule at one node, or inference of one node. A step visits a polynomial of at most 64 terms.
/// Without the limit, one node with thousands of operands of nested maxima takes minutes.
const MOST_STEPS: u32 = 1 << 14;

/// The most terms of a polynomial that one step visits.
const TERMS_OF_STEP: u32 = 64;

/// The name of the limit in reports.
pub const PROOF_STEPS: &str = "proof-steps";

/// The name of the limit on the relations about one symbol.
const SYMBOL_RELATIONS: &str = "symbol-relations";

/// The remaining steps of the present attempt. Outside of attempts, only the prover's fuel limits a question.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::dim) struct Steps {
    left: Option<u32>,
    is_cut: bool,
    /// `true` if a relation was not kept.
    has_dropped: bool,
}

impl Scope {
    /// Runs an attempt whose proofs have a common limit of steps, regardless of earlier attempts. Returns its result, and the name of the
    /// limit that has ended a proof or dropped a relation. A nested attempt uses none of the outer one's steps.
    pub fn attempt<R>(&self, attempt: impl FnOnce() -> R) -> (R, Option<&'static str>) {
        let outer = self.steps.replace(Steps { left: Some(MOST_STEPS), ..Steps::default() });
        let result = attempt();
        let spent = self.steps.replace(outer);
        let dropped = spent.has_dropped.then_some(SYMBOL_RELATIONS);
        (result, spent.is_cut.then_some(PROOF_STEPS).or(dropped))
    }

    /// Records that a relation is dropped because a symbol has too many.
    pub(in crate::dim) fn note_dropped(&self) {
        self.steps.set(Steps { has_dropped: true, ..self.steps.get() });
    }

    /// Takes the steps for visiting a polynomial of this size. Returns `false` if none are left.
    pub(in crate::dim) fn take_steps(&self, size: u32) -> bool {
        let steps = 1 + size / TERMS_OF_STEP;
        self.meter.count(u64::from(size).saturating_add(10));
        let mut now = self.steps.get();
        if let Some(left) = now.left {
            now.left = Some(left.saturating_sub(steps));
            now.is_cut |= left < steps;
            self.steps.set(now);
        }
        !now.is_cut && !self.meter.is_over()
    }

    /// Returns `true` if the limit has ended a proof of the present attempt, or the run is over: more steps might prove more.
    pub(crate) fn is_cut(&self) -> bool {
        self.steps.get().is_cut || self.meter.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::{Dim, Meter};

    #[test]
    fn a_nested_attempt_has_separate_steps() {
        let scope = Scope::new();
        let spend = |steps: u32| (0..steps).all(|_| scope.take_steps(1));
        assert!(spend(MOST_STEPS + 1), "no attempt, no limit");
        let (inner, cut) = scope.attempt(|| {
            assert!(spend(MOST_STEPS - 1));
            let (_, inner) = scope.attempt(|| assert!(!spend(MOST_STEPS + 1)));
            assert!(spend(1) && !scope.is_cut());
            inner
        });
        assert_eq!((inner, cut), (Some(PROOF_STEPS), None));
        assert!(!scope.is_cut());
        let n = Dim::symbol(scope.named("n"));
        let relate = |at: u32| scope.assume_le(&scope.fresh_dim(&format!("s{at}")), &n);
        assert_eq!(scope.attempt(|| (0..1024).for_each(relate)).1, None);
        assert_eq!([scope.attempt(|| relate(1024)).1, scope.attempt(|| ()).1], [Some(SYMBOL_RELATIONS), None]);
        let over = Scope::metered(&Meter::limited(5));
        assert!(!over.take_steps(1) && over.is_cut());
    }
}
