//! Applies the rewrite rules to every node, in topological order.

use std::cell::OnceCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::agenda::Agenda;
use super::dead::live_graphs;
use super::edits::EditCounter;
use super::untouched::Untouched;
use crate::consumers::Construct;
use crate::index_map::Memo;
use crate::ir::{Broken, Edit, Facts, Model, Node, NodeId};
use crate::ops::{Budget, Event, EventKind, Operator, Opset, newest_opset, operator, operator_of};
use crate::rewrite::{Idioms, LATE_RULES, Miss, Place, RULES, Rule, Taken, check};

/// Rules by their operators.
type ByOperator = FxHashMap<&'static str, Vec<&'static Rule>>;

/// Rules by the address of the entries of known operators.
type ByEntry = FxHashMap<usize, Vec<&'static Rule>>;

/// The enabled rules.
pub struct RuleSet {
    /// The rules of each stage: those that are always tried, then the late stages.
    stages: Vec<(ByOperator, ByEntry)>,
    /// The budget for computing new constants.
    budget: Budget,
    /// The index maps that rules have written.
    maps: Rc<Memo>,
    /// The constructs that no rule introduces, and that rules replace.
    avoided: Vec<Construct>,
}

impl RuleSet {
    /// Collects the rules whose name is wanted, with `exact` without those that only hold up to rounding. The constants of the model take `payload`
    /// bytes. The consumer lacks the `avoided` constructs.
    pub fn new(is_wanted: &dyn Fn(&str) -> bool, exact: bool, payload: usize, avoided: &[Construct]) -> Self {
        let wanted = |rule: &&Rule| (rule.exact || !exact) && is_wanted(rule.name);
        let collect = |families: &[&'static [Rule]]| {
            let mut by_operator = ByOperator::default();
            for rule in families.iter().flat_map(|family| family.iter()).filter(wanted) {
                for operator in rule.operators {
                    by_operator.entry(operator).or_default().push(rule);
                }
            }
            let entries =
                by_operator.iter().filter_map(|(name, rules)| Some((entry(operator("", name)?), rules.clone())));
            let by_entry = entries.collect();
            (by_operator, by_entry)
        };
        let stages = std::iter::once(RULES).chain(LATE_RULES.iter().copied()).map(collect).collect();
        RuleSet { stages, budget: Budget::for_rules(payload), maps: Rc::default(), avoided: avoided.to_vec() }
    }

    /// Returns the rules of a stage for a node's operator.
    fn at(&self, stage: usize, model: &Model, node: &Node) -> Option<&[&'static Rule]> {
        let (by_operator, by_entry) = self.stages.get(stage)?;
        let rules = match operator_of(model, node).filter(|operator| operator.domain.is_empty()) {
            Some(operator) => by_entry.get(&entry(operator)),
            None => match model.meaning(node) {
                ("", name) => by_operator.get(name),
                (domain, name) => by_operator.get(format!("{domain}.{name}").as_str()),
            },
        };
        rules.map(Vec::as_slice)
    }
}

/// Returns the address of an operator's entry.
fn entry(operator: &'static Operator) -> usize {
    std::ptr::from_ref(operator).addr()
}

/// Tries every rule of a stage once at every node of the main graph and its subgraphs, except settled nodes: those where every rule has declined and
/// its reads have not changed. Returns the attempts that a limit ended.
///
/// # Errors
/// A rule made the model inconsistent: a defect of the rule.
pub fn simplify(
    model: &mut Model,
    facts: &mut Facts,
    (rules, untouched, agenda): (&RuleSet, &Untouched, &mut Agenda),
    stage: usize,
    edits: &mut EditCounter,
) -> Result<Vec<Event>, Broken> {
    let mut cuts = Vec::new();
    let taken = Taken::with_maps(&rules.maps, facts.scope());
    let idioms = OnceCell::new();
    agenda.catch_up(model, facts);
    for graph in live_graphs(model) {
        if !model.is_live(graph) {
            continue;
        }
        let opset = Opset::of(model, graph);
        // No rule knows operators newer than this program.
        if newest_opset("").is_some_and(|newest| opset.version() > newest) {
            continue;
        }
        for id in model.topological(graph)? {
            if agenda.is_settled(stage, id) || untouched.contains(id) {
                continue;
            }
            at_node(model, facts, (rules, agenda, &mut cuts), stage, edits, (id, opset, &taken, &idioms))?;
        }
    }
    Ok(cuts)
}

/// Returns the idioms that runtimes recognize and rules must not break. The first rule of a sweep that returns an edit causes their computation; most
/// sweeps have no edit.
pub(super) fn recognised(model: &Model, facts: &Facts, budget: &Budget) -> Idioms {
    let mut idioms = Idioms::default();
    let taken = Taken::default();
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        for id in model.graph(graph).nodes() {
            idioms.note(&Place { model, facts, id, opset, budget, taken: &taken, avoided: &[] });
        }
    }
    idioms
}

/// Returns the edit that a rule offers at a place.
pub(super) fn offered(rule: &Rule, place: &Place<'_>) -> Result<Edit, Miss> {
    #[cfg(feature = "seeded-faults")]
    {
        let believes = crate::ir::faults::believes(rule.name);
        let (edit, believed) = crate::dim::believing(believes, || (rule.apply)(place));
        if edit.is_ok() && believed > 0 {
            crate::ir::faults::note_belief();
        }
        edit
    }
    #[cfg(not(feature = "seeded-faults"))]
    {
        let answer = (rule.apply)(place);
        debug_assert!(
            answer.as_ref().err().is_none_or(|miss| rule.has_premise(miss)),
            "{}: a miss names {answer:?}, which is no premise of the rule",
            rule.name
        );
        answer
    }
}

/// Returns the event of an attempt that a limit ended.
fn cut_short(node: NodeId, rule: &str, limit: &str) -> Event {
    let reason = format!("the limit {limit} ended an attempt of the rule {rule}, which might apply");
    Event { node, kind: EventKind::Limited, reason }
}

fn at_node(
    model: &mut Model,
    facts: &mut Facts,
    (rules, agenda, cuts): (&RuleSet, &mut Agenda, &mut Vec<Event>),
    stage: usize,
    edits: &mut EditCounter,
    (id, opset, taken, idioms): (NodeId, Opset, &Taken, &OnceCell<Idioms>),
) -> Result<(), Broken> {
    // A rule may keep the node with other operands, to which another rule applies.
    for _ in 0..8 {
        let Some(node) = model.node(id).filter(|_| edits.allows_more()) else { break };
        let Some(candidates) = rules.at(stage, model, node) else {
            agenda.settle(stage, id);
            break;
        };
        let place = Place { model, facts, id, opset, budget: &rules.budget, taken, avoided: &rules.avoided };
        let is_permitted = |edit: &Edit| {
            let idioms = idioms.get_or_init(|| recognised(model, facts, &rules.budget));
            check(&place, edit, idioms).is_ok()
        };
        agenda.listen(model, facts);
        let mut is_refused = false;
        let found = candidates.iter().find_map(|rule| {
            place.scope().meter().count(10);
            let attempt = place.budget.begin();
            let (edit, mut cut) = place.scope().attempt(|| offered(rule, &place));
            let mut edit = edit.ok();
            if edit.is_some() {
                agenda.pause(model, facts);
                edit = edit.filter(is_permitted);
                is_refused |= edit.is_none();
                agenda.resume(model, facts);
            }
            if edit.is_none() {
                cut = place.budget.refund(id, attempt).or(cut);
                cuts.extend(cut.map(|limit| cut_short(id, rule.name, limit)));
            }
            Some((rule.name, edit?))
        });
        agenda.pause(model, facts);
        // The permission of an edit may depend on distant nodes, so a node with a refused edit is not settled.
        if found.is_none() && !is_refused {
            agenda.settle_by_reads(stage, id, model, facts);
        }
        let Some((_, edit)) = found.filter(|(name, _)| edits.take(name, || model.describe(id))) else { break };
        for &(old, new) in &edit.replace {
            // Both have the same content, so a fact about one holds for the other. A fact inside a subgraph may hold only where the subgraph runs.
            let together = !new.is_placeholder() && model.graph_of(old) == model.graph_of(new);
            if let Some(fact) = facts.get(old).filter(|_| together).cloned() {
                let _ = facts.meet(new, fact);
            }
        }
        #[cfg(feature = "seeded-faults")]
        let edit = {
            let mut edit = edit;
            crate::ir::faults::distort(&mut edit, &|value| facts.get(value).and_then(crate::ir::Fact::dtype));
            edit
        };
        model.apply(edit)?;
        agenda.catch_up(model, facts);
    }
    Ok(())
}
