//! The size planner: recomputes all sizes of a graph in fewer nodes, if possible.
//!
//! Exporters read a size wherever they need it, with Shape, Gather, Unsqueeze and Concat of a different tensor each time. The planner plans all sizes
//! that the rest of a graph needs together. If the plan takes fewer nodes than the graph has for them, it replaces those. The terms, each with its
//! file:
//!
//! * **Size node** (`survey`): a node that computes only sizes, or numbers that follow from sizes.
//! * **Group** (`groups`): size nodes that share a symbol, an operand or a reader. Each group is planned separately.
//! * **Term** (`terms`): one element of a small tensor, identified by its content: an expression in the symbols, or an operation on terms. A
//!   **formula** computes a term by one operation from other terms (`observe` collects those of the graph's own nodes).
//! * **Row** (`row`): the content of a scalar or a vector: a type, and a term per element.
//! * **Demand** (`demand`, `demands`): an operand of another node that a size node computes, and the rows that can replace it: its current content,
//!   and alternatives that the operator accepts (`conventions`: a Reshape's 0 and −1, for example; `rests`: a −1 that another target has, too).
//! * **Step** (`step`): a node or a constant of the plan, with a claim of the row in its result. A **plan** is a list of steps, and for every demand
//!   the step that its reader reads.
//!
//! **Problem.** Find a step for every demand that has one of its rows, and that can be computed before the reader.
//!
//! **Candidates.** A row that the draft of the plan lacks can be computed in these ways, tried in this order (`listing`):
//! 1. *pick*: Gather entries of a vector in the draft;
//! 2. *read*: Shape of a tensor with these sizes, and Gather where needed (`reading` selects the tensor);
//! 3. *copy*: the node that computes the row now, on equal operands;
//! 4. *apply*: one operator on other rows, if every term has a formula with it, so that height and width cost one node (`operations`);
//! 5. *cast*: the same integers in 64 or in 32 bits;
//! 6. *other rank*: a scalar from a vector of one element, or the reverse;
//! 7. *concat*: the row split into runs in at most two ways (`partition`), each computed separately;
//! 8. *patched*: numbers added to a vector that differs only in numbers: `[n, 32, h, w]` from `[n, 8, h, w]`;
//! 9. *among*: numbers appended to a vector with all other terms, and the row picked from both: `[h/4, 4, w/4, 4]` from a shape.
//!
//! Rows of numbers are constants. `policy` states what plans avoid for the sake of runtimes.
//!
//! **Cost.** A plan costs its nodes. Constants are free, a shared step counts once, and an unneeded step does not count. During the search, a
//! candidate costs the nodes that it adds to the draft. Nodes that exist only because a size node measures their result (`Survey::shape_only`) are
//! charged to a plan that may keep them.
//!
//! **Search** (`search`, `trial`). Demands are met in the order of their readers. A row is computed by the candidate that adds the fewest nodes, the
//! first of equals; so are the candidate's operands. The search is greedy across demands and exhaustive within one, except for the bound. It runs
//! several times, and the first of the cheapest plans is used:
//! * once without *apply*, so that no form changes without need, and once with all candidates;
//! * once each with the shape of a useful tensor as first step, or of one whose whole shape is demanded: it also serves later demands;
//! * once in each order with numbers that one operator computes joined to a vector (`Demands::join`), so that each costs a Gather of it;
//! * twice (without and with the shape of the most useful tensor) with *patched*, *among* and operations that keep the first size of a row: they
//!   leave less to share.
//!
//! All of this runs for two topological orders (`order`): file order, and one in which nodes that compute only from sizes are late, when more tensors
//! can be measured.
//!
//! **Bound.** The unit is the expansion: one listing of the candidates of one row. For each demand, a search may expand `SearchLimits::effort` rows.
//! Candidates share them equally; once they are used up, the first working candidate is used. No row is expanded to compute itself, and rows need
//! rows to a depth of at most 48. A demand is given up after 20 times its effort plus 2,000 expansions. A search ends after 200,000, and a trial as
//! soon as it costs as much as the best one. Clocks play no part.
//!
//! **Soundness.** Law: tensors with the same type and shape, and the same term for each element, are equal for every input. The search need not be
//! trusted: `verify` derives each claim of a finished plan from those of the step's operands, by the rule of its operator on rows. The derivation
//! rests on proved facts (the dims of a measured tensor, the elements of a size node's results) and the arithmetic of `dim`. It assumes that a node
//! gives equal results for equal operands. By induction each step has its claimed content, and each reader gets a row that meets its demand. A plan
//! that fails the check is dropped.
//!
//! **No cycle.** Every node has a position in a topological order. Let a step's position be the latest of the values it needs (0 if none). Edges of
//! the graph lead to higher positions, and edges into and between steps never to lower ones. A step is only read at higher positions than its own,
//! which `verify` checks. So a cycle could only contain steps at one position, but a step only reads earlier steps.
//!
//! **Determinism.** Hash tables are only used for lookups, and never iterated. Candidates, demands, tensors and steps are lists in the order of the
//! graph, and the first of equals is used.
//!
//! **Termination.** A plan is applied only if it costs less than the size nodes that it replaces.

mod candidate;
mod carry;
mod conventions;
mod demand;
mod demands;
mod draft;
mod groups;
mod listing;
mod observe;
mod operations;
mod order;
mod partition;
mod policy;
mod reading;
mod rests;
mod row;
mod row_table;
mod search;
mod step;
mod survey;
mod terms;
mod trial;
mod verify;

#[cfg(test)]
mod tests;

use super::dead::live_graphs;
use super::edits::EditCounter;
use crate::ir::{Broken, Facts, Model, ValueId};
use crate::sort;
use demands::Demands;
pub(super) use demands::holder_in;
use search::{Joint, Search, SearchLimits};
use step::Plan;
use survey::Survey;
pub(super) use survey::is_inside_a_quantized_group;

/// The name of the pass, under which its edits are counted: each group with a new plan is one edit.
pub(super) const NAME: &str = "size-chain";

/// The most rows that all searches for one group may expand together; [`MAX_EFFORT`] is the most that one search may expand for one demand. The
/// number of candidate plans grows exponentially with the number of demands.
const EFFORT: usize = 24_000;
const MAX_EFFORT: usize = 1_000;

/// The number of nodes that a draft may have beyond the best plan: some may turn out to be unneeded.
const SLACK: usize = 2;

/// The most tensors that are tried as the first to be measured.
const MAX_FIRST_SHAPES: usize = 4;

/// Replaces the nodes of each group whose plan takes fewer nodes. Returns the number of nodes saved.
///
/// # Errors
/// The model is inconsistent.
pub fn shorten(model: &mut Model, facts: &Facts, edits: &mut EditCounter) -> Result<usize, Broken> {
    let mut saved = 0;
    for graph in live_graphs(model) {
        if !edits.allows_more() {
            break;
        }
        let Some(first) = Survey::of(model, facts, graph)? else { continue };
        let groups = first.groups(model, facts);
        let late = first.late(model)?;
        for group in groups {
            let mut best: Option<(Survey, Demands, Plan, usize)> = None;
            for whole in std::iter::once(&first).chain(&late) {
                let mut survey = whole.part(model, facts, &group);
                let Some(demands) = Demands::of(&mut survey, model, facts) else { continue };
                let fewest = best.as_ref().map_or(survey.cost(), |(.., fewest)| *fewest);
                if let Some((plan, cost)) = cheapest(&mut survey, &demands, model, facts, fewest) {
                    best = Some((survey, demands, plan, cost));
                }
            }
            let Some((survey, demands, plan, cost)) = best else { continue };
            if !edits.take(NAME, || format!("graph '{}'", model.graph(graph).name)) {
                break;
            }
            saved += survey.cost().saturating_sub(cost);
            carry::carry_out(model, &survey, &demands, plan)?;
        }
    }
    Ok(saved)
}

/// Returns the cheapest plan of all searches, the first of equals, and its cost; `None` if none costs less than `known`.
fn cheapest(
    survey: &mut Survey,
    demands: &Demands,
    model: &Model,
    facts: &Facts,
    known: usize,
) -> Option<(Plan, usize)> {
    let mut best: Option<(Plan, usize)> = None;
    for options in searches(survey, demands) {
        let fewest = best.as_ref().map_or(known, |(_, cost)| *cost);
        let search = Search::new((model, facts), survey, demands, options, fewest.saturating_add(SLACK));
        let Some(plan) = search.run() else { continue };
        let extra = if options.kept_only { 0 } else { survey.shape_only };
        let cost = plan.cost() + extra;
        if cost >= fewest {
            continue;
        }
        if let Err(mismatch) = verify::verify(&plan, demands, survey, model, facts) {
            debug_assert!(false, "{mismatch}");
            continue;
        }
        best = Some((plan, cost));
    }
    best
}

/// Returns the searches to run. The first of equally cheap plans is used, so searches that keep more of the graph come first.
fn searches(survey: &Survey, demands: &Demands) -> Vec<SearchLimits> {
    let mut by_score: Vec<_> =
        demands.score.iter().map(|(&tensor, &score)| (std::cmp::Reverse(score), tensor)).collect();
    sort::sort(&mut by_score);
    let by_score = by_score.into_iter().map(|(_, tensor)| tensor);
    let mut first_shapes: Vec<ValueId> = by_score.take(MAX_FIRST_SHAPES).collect();
    let whole = demands.whole.iter().take(MAX_FIRST_SHAPES).filter(|tensor| !first_shapes.contains(tensor));
    first_shapes.extend(whole.copied().collect::<Vec<_>>());
    let has_shape_only = survey.shape_only > 0;
    let mut found = Vec::new();
    for kept_only in std::iter::once(false).chain(has_shape_only.then_some(true)) {
        found.push(SearchLimits { kept_only, copies_only: true, ..SearchLimits::default() });
        found.push(SearchLimits { kept_only, ..SearchLimits::default() });
    }
    found.extend(first_shapes.iter().map(|&first_shape| SearchLimits {
        kept_only: has_shape_only,
        first_shape: Some(first_shape),
        ..SearchLimits::default()
    }));
    if !demands.joint.is_empty() {
        for kept_only in std::iter::once(false).chain(has_shape_only.then_some(true)) {
            for order in [Joint::Forward, Joint::Backward] {
                found.push(SearchLimits { kept_only, joint: Some(order), ..SearchLimits::default() });
            }
        }
    }
    let mut rows = demands.list.iter().flat_map(|demand| &demand.rows);
    if rows.any(|row| survey.terms.has_numbers(&row.terms)) {
        for first_shape in std::iter::once(None).chain(first_shapes.into_iter().take(1).map(Some)) {
            found.push(SearchLimits { kept_only: has_shape_only, among: true, first_shape, ..SearchLimits::default() });
        }
    }
    let effort = EFFORT / found.len().max(1) / demands.list.len().max(1);
    found.iter_mut().for_each(|options| options.effort = effort.min(MAX_EFFORT));
    found
}
