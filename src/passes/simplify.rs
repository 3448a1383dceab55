//! Drives the rewrite rules over every node, in an order to compute in.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::dead::live_graphs;
use super::untouched::Untouched;
use crate::ir::{Broken, Facts, Model, NodeId};
use crate::ops::{Budget, Opset, newest_opset};
use crate::rewrite::{Idioms, LATE_RULES, Place, RULES, Rule, Taken};

/// How often each rule fired.
pub type Fired = BTreeMap<&'static str, usize>;

/// Rules by the operators they look at.
type ByOperator = FxHashMap<&'static str, Vec<&'static Rule>>;

/// The rules in force.
pub struct Rules {
    /// Those to be tried whenever, then one stage after the other those that wait.
    stages: Vec<ByOperator>,
    /// How many more edits may be applied; for finding the edit at fault.
    pub fuel: usize,
    /// The nodes that no rule looks at.
    pub untouched: Untouched,
    /// What computing new constants may cost in all.
    budget: Budget,
}

impl Rules {
    /// Every rule whose name is wanted but, if `exact`, those that only hold up to rounding.
    pub fn new(is_wanted: &dyn Fn(&str) -> bool, exact: bool, fuel: usize) -> Self {
        let wanted = |rule: &&Rule| (rule.exact || !exact) && is_wanted(rule.name);
        let collect = |families: &[&'static [Rule]]| {
            let mut by_operator = ByOperator::default();
            for rule in families.iter().flat_map(|family| family.iter()).filter(wanted) {
                for operator in rule.operators {
                    by_operator.entry(operator).or_default().push(rule);
                }
            }
            by_operator
        };
        let stages = std::iter::once(RULES).chain(LATE_RULES.iter().copied()).map(collect).collect();
        Rules { stages, fuel, untouched: Untouched::default(), budget: Budget::default() }
    }

    /// How many stages there are.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// The rules of a stage that look at an operator.
    fn at(&self, stage: usize, operator: &str) -> Option<&[&'static Rule]> {
        self.stages.get(stage)?.get(operator).map(Vec::as_slice)
    }
}

/// Tries every rule of a stage at every node of the main graph and its subgraphs, once. Returns whether anything changed.
///
/// # Errors
/// A rule made the model inconsistent: a defect of the rule.
pub fn simplify(
    model: &mut Model,
    facts: &mut Facts,
    rules: &mut Rules,
    stage: usize,
    fired: &mut Fired,
) -> Result<bool, Broken> {
    let mut changed = false;
    let taken = Taken::default();
    let idioms = idioms(model, facts, rules)?;
    for graph in live_graphs(model) {
        if !model.is_live(graph) {
            continue;
        }
        let opset = Opset::of(model, graph);
        // What operators newer than this program do, no rule knows.
        if newest_opset("").is_some_and(|newest| opset.version() > newest) {
            continue;
        }
        for id in model.topological(graph)? {
            if rules.untouched.contains(id) {
                continue;
            }
            changed |= at_node(model, facts, rules, stage, fired, (id, opset, &taken, &idioms))?;
        }
    }
    Ok(changed)
}

/// What the runtime will recognise, and rules must not take apart.
fn idioms(model: &Model, facts: &Facts, rules: &Rules) -> Result<Idioms, Broken> {
    let mut idioms = Idioms::default();
    let taken = Taken::default();
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        for id in model.topological(graph)? {
            idioms.note(&Place { model, facts, id, opset, budget: &rules.budget, taken: &taken });
        }
    }
    Ok(idioms)
}

fn at_node(
    model: &mut Model,
    facts: &mut Facts,
    rules: &mut Rules,
    stage: usize,
    fired: &mut Fired,
    (id, opset, taken, idioms): (NodeId, Opset, &Taken, &Idioms),
) -> Result<bool, Broken> {
    let mut changed = false;
    // A rule may leave the node in place with other operands, and then another may apply.
    for _ in 0..8 {
        let Some(node) = model.node(id) else { break };
        let candidates = match model.meaning(node) {
            ("", name) => rules.at(stage, name),
            (domain, name) => rules.at(stage, &format!("{domain}.{name}")),
        };
        let Some(candidates) = candidates else { break };
        let place = Place { model, facts, id, opset, budget: &rules.budget, taken };
        let permitted = |rule: &Rule| {
            (rule.apply)(&place).filter(|edit| idioms.permits(edit) && model.leaves_no_reader_behind(edit))
        };
        let found = candidates.iter().find_map(|rule| Some((rule.name, permitted(rule)?)));
        let Some((name, edit)) = found.filter(|_| rules.fuel > 0) else { break };
        rules.fuel -= 1;
        *fired.entry(name).or_default() += 1;
        for &(old, new) in &edit.replace {
            // Both have the same content, so what is known of one holds for the other; but what is known inside a body may hold only
            // where the body runs.
            let together = !new.is_placeholder() && model.graph_of(old) == model.graph_of(new);
            if let Some(fact) = facts.get(old).filter(|_| together).cloned() {
                let _ = facts.meet(new, fact);
            }
        }
        model.apply(edit)?;
        changed = true;
    }
    Ok(changed)
}
