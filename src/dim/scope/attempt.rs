//! Limits the proofs of one attempt.

use super::Scope;

/// The most steps of proofs in one attempt, which is a rule at one node, or inference of one node. A step looks at a polynomial of at most 64
/// terms. Without the limit, one node with thousands of operands of nested maxima takes minutes.
const MOST_STEPS: u32 = 1 << 14;

/// The terms of a polynomial that is looked at in one step.
const TERMS_OF_STEP: u32 = 64;

/// The name of the limit, as reports give it.
pub const PROOF_STEPS: &str = "proof-steps";

/// The name of the limit on the relations about one symbol.
const SYMBOL_RELATIONS: &str = "symbol-relations";

/// The steps left for the present attempt. A question outside of attempts is limited by the prover's fuel only.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::dim) struct Steps {
    left: Option<u32>,
    is_cut: bool,
    /// `true` if a relation was not kept.
    has_dropped: bool,
}

impl Scope {
    /// Runs an attempt whose proofs may take a limited number of steps together, whatever was spent before. Returns what it returns, and
    /// the name of the limit that has ended a proof or dropped a relation. An attempt inside another one spends nothing of the outer one's steps.
    pub fn attempt<R>(&self, attempt: impl FnOnce() -> R) -> (R, Option<&'static str>) {
        let outer = self.steps.replace(Steps { left: Some(MOST_STEPS), ..Steps::default() });
        let result = attempt();
        let spent = self.steps.replace(outer);
        let dropped = spent.has_dropped.then_some(SYMBOL_RELATIONS);
        (result, spent.is_cut.then_some(PROOF_STEPS).or(dropped))
    }

    /// Notes that a relation is not kept because a symbol has too many.
    pub(in crate::dim) fn note_dropped(&self) {
        self.steps.set(Steps { has_dropped: true, ..self.steps.get() });
    }

    /// Takes the steps of a look at a polynomial of this size. Returns `false` if there are none left.
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

    /// Returns `true` if the limit has ended a proof of the present attempt, or the run is over: an answer may lack what more steps would prove.
    pub(crate) fn is_cut(&self) -> bool {
        self.steps.get().is_cut || self.meter.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::{Dim, Meter};

    #[test]
    fn an_attempt_spends_its_own_steps_only() {
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
