//! Attempts of rules at the remaining nodes, without an edit.

use super::dead::live_graphs;
use super::pass::skips;
use super::simplify::{offered, recognised};
use super::{NoRule, Options};
use crate::dim::Question;
use crate::ir::{Facts, Model, NodeId};
use crate::ops::{Budget, Opset, newest_opset};
use crate::rewrite::{Miss, Place, Rule, Taken, check, rules};

/// The answer of a rule at a node.
pub struct Attempt {
    /// The node.
    pub node: NodeId,
    /// The reason why it declines, or why the edit check refuses its edit; `None` if the rule matches.
    pub miss: Option<Miss>,
    /// The question that the prover could not answer, if the premise depends on it.
    pub question: Option<Question>,
}

/// Returns the rule of a name.
///
/// # Errors
/// No rule has the name. Passes do not look at single nodes.
pub fn rule(name: &str) -> Result<&'static Rule, NoRule> {
    rules().find(|rule| rule.name == name).ok_or_else(|| NoRule::among(name, rules().map(|rule| rule.name)))
}

/// Returns `true` if the options let a rule edit the model.
pub fn is_in_force(options: &Options, rule: &Rule) -> bool {
    (rule.exact || !options.exact) && !skips(options, rule.name)
}

/// Tries rules at every node of their operators, except nodes that lack the pattern of the rule.
pub fn attempts(model: &Model, facts: &Facts, is_wanted: &dyn Fn(&Rule) -> bool) -> Vec<Attempt> {
    let (budget, taken) = (Budget::default(), Taken::default());
    let idioms = recognised(model, facts, &budget);
    let wanted: Vec<&'static Rule> = rules().filter(|rule| is_wanted(rule)).collect();
    let mut found = Vec::new();
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        if newest_opset("").is_some_and(|newest| opset.version() > newest) {
            continue;
        }
        let order = model.topological(graph).unwrap_or_default();
        for (id, node) in order.into_iter().filter_map(|id| Some((id, model.node(id)?))) {
            let name = match model.meaning(node) {
                ("", name) => name.to_string(),
                (domain, name) => format!("{domain}.{name}"),
            };
            for &rule in wanted.iter().filter(|rule| rule.operators.contains(&name.as_str())) {
                // Each attempt has a separate budget, so that rules at other nodes spend nothing of it.
                let budget = Budget::default();
                let place = Place { model, facts, id, opset, budget: &budget, taken: &taken, avoided: &[] };
                let result = offered(rule, &place).and_then(|edit| check(&place, &edit, &idioms));
                let miss = result.err();
                if miss.is_none_or(|miss| !miss.is_root()) {
                    let is_open = miss.is_some_and(|miss| miss.is_open);
                    let question = if is_open { facts.scope().open_question() } else { None };
                    found.push(Attempt { node: id, miss, question });
                }
            }
        }
    }
    found
}
