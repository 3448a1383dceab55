//! Finds the premise of a rule that fails at each remaining node.

use std::fmt;

use super::Folded;
use crate::dim::{Dim, Scope};
use crate::ir::{Fact, Model, Node};
use crate::passes::{Attempt, NoRule, attempts, is_in_force, rule};
use crate::rewrite::{About, GUARDS, Miss, Premise, Rule, SHARED};

/// The name of no rule, or of no remaining node.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoAttempt {
    /// No rule has the name.
    #[error(transparent)]
    Rule(#[from] NoRule),
    /// No remaining node has the name.
    #[error("the result has no node named '{0}': `explain MODEL {0}` lists the edits at that place")]
    Node(String),
}

/// The answer of one rule at every remaining node.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RuleExplanation {
    /// The rule.
    pub rule: &'static str,
    /// The number of edits of the rule during folding.
    pub edits: usize,
    /// `true` if the options let the rule edit the model.
    pub is_in_force: bool,
    /// The nodes with the pattern of the rule, in topological order.
    pub nodes: Vec<RuleAtNode>,
}

/// The answer of a rule at one node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RuleAtNode {
    /// The operator and the name of the node.
    pub node: String,
    /// The first premise that fails; `None` if the rule matches.
    pub failed: Option<FailedPremise>,
}

/// A premise that fails at a node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedPremise {
    /// The premise's name in the record of the rule, or among the premises of every rule.
    pub name: &'static str,
    /// Its statement.
    pub statement: &'static str,
    /// The operand or dim of the premise.
    pub about: Option<String>,
    /// The question that the prover could not answer: `n >= 7`.
    pub question: Option<String>,
}

/// Returns the answer of a rule at every remaining node, or at those of one name.
///
/// # Errors
/// No rule, or no remaining node, has the name.
pub(crate) fn explain_rule(folded: &Folded<'_>, name: &str, node: Option<&str>) -> Result<RuleExplanation, NoAttempt> {
    let rule = rule(name)?;
    let (model, facts) = (folded.model, &folded.outcome.facts);
    let is_named = |at: &Node, wanted: &str| {
        at.name == wanted || at.outputs().iter().flatten().any(|&value| model.value(value).name == wanted)
    };
    if let Some(wanted) = node {
        let mut nodes =
            model.graphs().filter(|&graph| model.is_live(graph)).flat_map(|graph| model.graph(graph).nodes());
        if !nodes.any(|id| model.node(id).is_some_and(|at| is_named(at, wanted))) {
            return Err(NoAttempt::Node(wanted.to_string()));
        }
    }
    let found = attempts(model, facts, &|other| other.name == rule.name);
    let is_wanted =
        |attempt: &&Attempt| node.is_none_or(|wanted| model.node(attempt.node).is_some_and(|at| is_named(at, wanted)));
    let told = |attempt: &Attempt| RuleAtNode {
        node: model.describe(attempt.node),
        failed: attempt.miss.map(|miss| FailedPremise {
            name: miss.premise,
            statement: statement(rule, &miss),
            about: about(model, facts.scope(), &|value| facts.get(value).and_then(Fact::shape), &miss),
            question: attempt.question.as_ref().map(|question| facts.scope().question(question)),
        }),
    };
    Ok(RuleExplanation {
        rule: rule.name,
        edits: folded.outcome.fired.get(rule.name).copied().unwrap_or(0),
        is_in_force: is_in_force(folded.options, rule),
        nodes: found.iter().filter(is_wanted).map(told).collect(),
    })
}

/// Returns the expressions that must be at least 0 so that the first failing premise of a rule holds at a remaining node.
pub(super) fn open_questions(folded: &Folded<'_>) -> Vec<Dim> {
    let found = attempts(folded.model, &folded.outcome.facts, &|rule| is_in_force(folded.options, rule));
    let mut slacks: Vec<Dim> = Vec::new();
    for slack in found.iter().filter_map(|attempt| attempt.question.as_ref()).flat_map(|question| question.slacks()) {
        if slack.as_const().is_none() && !slacks.contains(&slack) {
            slacks.push(slack);
        }
    }
    slacks
}

fn statement(rule: &Rule, miss: &Miss) -> &'static str {
    let guards = GUARDS.iter().map(|(premise, _)| premise);
    let mut all = rule.premises.iter().chain(SHARED).chain(guards);
    all.find(|(name, _): &&Premise| *name == miss.premise).map_or("", |(_, statement)| statement)
}

fn about<'f>(
    model: &Model,
    scope: &Scope,
    shape: &dyn Fn(crate::ir::ValueId) -> Option<&'f [Dim]>,
    miss: &Miss,
) -> Option<String> {
    match miss.about {
        About::Node => None,
        About::Value(value) => Some(format!("'{}'", model.value(value).name)),
        About::Dim(value, axis) => {
            let dim = shape(value).and_then(|dims| dims.get(usize::try_from(axis).ok()?));
            let size = dim.map(|dim| format!(" (size {})", scope.format(dim))).unwrap_or_default();
            Some(format!("axis {axis} of '{}'{size}", model.value(value).name))
        }
    }
}

impl fmt::Display for RuleExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edits = if self.edits == 1 { "1 edit".to_string() } else { format!("{} edits", self.edits) };
        let declines = self.nodes.iter().filter(|at| at.failed.is_some()).count();
        writeln!(f, "{}: {edits}; declines at {declines} of the remaining nodes", self.rule)?;
        for at in &self.nodes {
            let Some(failed) = &at.failed else {
                let why = if self.is_in_force { "the fold ended before" } else { "the options disable the rule" };
                writeln!(f, "  {}: matches, but {why}", at.node)?;
                continue;
            };
            let about = failed.about.as_ref().map(|about| format!(" at {about}")).unwrap_or_default();
            writeln!(f, "  {}: '{}' fails{about}: {}", at.node, failed.name, failed.statement)?;
            if let Some(question) = &failed.question {
                writeln!(f, "    not proved: {question}")?;
            }
        }
        Ok(())
    }
}
