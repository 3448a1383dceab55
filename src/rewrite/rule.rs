//! A rule as data: its law, its premises and its function. `onnx-slice-fold rules` and `RULES.md` print the record, and tests compare the record
//! with fixtures.

use super::miss::{Miss, SHARED};
use super::place::Place;
use crate::ir::Edit;

/// A condition that makes a rewrite correct, or profitable, and that its code checks: a short name in kebab case, and the statement.
pub type Premise = (&'static str, &'static str);

/// A rewrite rule, or a pass that can be left out.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name in kebab case, as `--skip` and `--only` accept it.
    pub name: &'static str,
    /// The law as an equation.
    pub law: &'static str,
    /// The effect of the rule, in one sentence.
    pub sentence: &'static str,
    /// The preconditions. Each one can fail while the others hold.
    pub premises: &'static [Premise],
    /// `true` if the rule preserves every bit of the results. Other rules preserve them up to rounding, and `--exact` disables them.
    pub exact: bool,
    /// The operators of the nodes that the rule visits; those of other domains in the form of
    /// [`Node::operator`](crate::ir::Node::operator). Empty for a pass that visits all nodes.
    pub operators: &'static [&'static str],
    /// Applies the rule to a node with one of the operators.
    pub apply: fn(&Place<'_>) -> Result<Edit, Miss>,
}

impl Rule {
    /// Returns `true` if a miss names a premise of this rule, or one of every rule.
    pub fn has_premise(&self, miss: &Miss) -> bool {
        let mut all = self.premises.iter().chain(SHARED);
        miss.is_root() || all.any(|(name, _)| *name == miss.premise)
    }
}

/// The function of a pass: it edits the model as a whole, and declines at every node.
pub fn as_pass(_: &Place<'_>) -> Result<Edit, Miss> {
    Err(Miss::ROOT)
}

/// Returns the miss for a premise of one of these rules. The compiler evaluates the call, so a name that no rule has does not compile.
#[expect(clippy::panic, reason = "evaluated at compile time only")]
pub const fn named(mut rules: &[Rule], premise: &'static str) -> Miss {
    while let [rule, rest @ ..] = rules {
        let mut premises = rule.premises;
        while let [(name, _), others @ ..] = premises {
            if is_same(name.as_bytes(), premise.as_bytes()) {
                return Miss::new(premise);
            }
            premises = others;
        }
        rules = rest;
    }
    panic!("no rule of this list has a premise of this name")
}

const fn is_same(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    a.is_empty() && b.is_empty()
}

/// The miss for a premise of the rules in `RULES`, or in another list: `miss!("same-type")`, `miss!(LATE_RULES, "one-reader")`.
macro_rules! miss {
    ($premise:literal) => {
        $crate::rewrite::rule::miss!(RULES, $premise)
    };
    ($rules:path, $premise:literal) => {
        const { $crate::rewrite::rule::named($rules, $premise) }
    };
}
pub(crate) use miss;
