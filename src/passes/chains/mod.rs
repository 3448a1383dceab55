//! The size planner: everything that computes sizes is computed anew, in fewer nodes if possible.
//!
//! Exporters read every size where they happen to need it: Shape, Gather, Unsqueeze and Concat again and again, each from another
//! tensor. Here all that the rest of a graph needs of its sizes is planned together, and if the plan takes fewer nodes than there are,
//! it replaces them. The words, each with its file:
//!
//! * **Size node** (`survey`): a node that computes nothing but sizes, or numbers that follow from sizes.
//! * **Group** (`groups`): size nodes that share a symbol, an operand or a reader. Each group is planned as if there were no other.
//! * **Term** (`terms`): one element of a small tensor, known by what it is: an expression in the symbols, or an operation on terms. A
//!   **formula** computes a term by one operation from other terms (`observe` collects those of the graph's own nodes).
//! * **Row** (`row`): what a scalar or a vector holds: a type, and a term per element.
//! * **Demand** (`demand`, `demands`): an operand of another node that a size node computes, and the rows that would serve there. These are what
//!   it holds now, and what the operator's conventions allow instead (`conventions`: a Reshape's 0 and −1, for example; `rests`: a −1
//!   that another target says as well).
//! * **Step** (`step`): a node or a constant of the plan, with a claim of what row its result holds. A **plan** is a list of steps, and
//!   for every demand the step that its reader is to read.
//!
//! **What is asked.** For every demand a step that holds one of its rows, and that can be computed before the reader.
//!
//! **Candidates.** A row that the draft of the plan does not hold yet can be got in these ways, tried in this order (`listing`):
//! 1. *pick*: Gather entries of a vector that the draft holds;
//! 2. *read*: Shape of a tensor that has these sizes, and Gather where that is needed (`reading` says which tensor);
//! 3. *copy*: the node that computes the row now, on operands that hold the same as its own;
//! 4. *apply*: one operator on other rows, if every term has a formula with it, so that height and width cost one node (`operations`);
//! 5. *cast*: the same integers in 64 or in 32 bits;
//! 6. *other rank*: a scalar from a vector of one element, or the reverse;
//! 7. *concat*: the row cut into runs in at most two ways (`partition`), each got on its own;
//! 8. *patched*: numbers added to a vector that differs in numbers only: `[n, 32, h, w]` of `[n, 8, h, w]`;
//! 9. *among*: numbers put behind a vector that has all the rest, and the row picked from both: `[h/4, 4, w/4, 4]` of a shape.
//!
//! Rows of numbers are constants. What a plan could do but does not, for the sake of runtimes, is stated in `policy`.
//!
//! **Cost.** A plan costs its nodes; constants are free, a shared step is charged once and a step that no demand needs not at all.
//! During the search a candidate costs the nodes that it adds to the draft. Nodes that exist only because a size node measures their
//! result (`Survey::shape_only`) are charged to a plan that may keep them.
//!
//! **Search** (`search`, `trial`). Demands are met in the order of their readers. A row is got by the candidate that adds the fewest
//! nodes, the first of equals; a candidate's own rows are got in the same way. This is greedy from demand to demand and exhaustive within
//! one, but for the bound. It is made several times, and the first of the cheapest plans is taken: once without *apply*, so that
//! nothing changes its form without need, once with all candidates, once each with the shape of one of the most useful tensors
//! taken at the start, or of one whose whole shape is demanded, which serves later demands as well, once in each order with single
//! numbers side by side that one operator computes (`Demands::join`), so that each costs a Gather of the vector, and twice, without and
//! with the shape of the most useful tensor, with *patched*, *among* and operations that leave the first size of a row as it is, which
//! leave less to be shared. All of that is done for
//! two orders to compute in (`order`): that of the file, and one in which what is computed of sizes alone comes late, when
//! more tensors are there to be measured.
//!
//! **Bound.** The unit is the expansion: one look for the candidates of one row. For each demand a search may expand `SearchLimits::effort`
//! rows; candidates share that equally, and once it is used up, the first that works is taken. No row is looked for in order to get
//! itself, rows need rows to a depth of 48 at most, a demand is given up after 20 times its effort and 2,000 expansions, a search ends
//! after 200,000, and a trial is given up as soon as it costs as much as the best known. Clocks play no part.
//!
//! **Soundness.** Law: tensors with the same type, shape and, element for element, the same term are equal for every input. The search
//! need not be trusted: `verify` goes through the steps of a finished plan and derives each claim from those of the step's operands, by
//! the rule of its operator on rows. That rests on three things: what facts prove (the dims of a measured tensor, the elements of a size
//! node's results), the arithmetic of `dim`, and that a node gives equal results for equal operands. By induction each step holds what
//! it claims, and each reader gets a row that serves it. A plan that does not pass is dropped.
//!
//! **No cycle.** Every node has a position in an order to compute the graph in. Let a step's position be the latest of those of the
//! values it needs (0 if none). Edges of the graph lead to higher positions, edges into and between steps never to lower ones, and a
//! step is read only by readers at a higher position than its own, which `verify` checks. So a cycle could only be one of steps at one
//! position, but a step reads earlier steps only.
//!
//! **Same result everywhere.** Hash tables are only asked for keys, and never iterated. Candidates, demands, tensors and steps are lists in
//! the order of the graph, and of equals the first is taken.
//!
//! **It ends.** A plan is carried out only if it costs less than the size nodes that it replaces.

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

/// The pass's name, under which its edits are counted: each group of sizes with a new plan counts as one edit.
pub(super) const NAME: &str = "size-chain";

/// How many rows all searches for one group together may expand, and how many one search may for one demand. The number of
/// candidate plans grows exponentially with the number of demands.
const EFFORT: usize = 24_000;
const MAX_EFFORT: usize = 1_000;

/// How many nodes a search may plan beyond those of the best plan so far: some may turn out not to be needed.
const SLACK: usize = 2;

/// How many tensors are tried as the one whose shape is taken first.
const MAX_FIRST_SHAPES: usize = 4;

/// Replaces the nodes of each group of sizes where a plan takes fewer nodes. Returns how many nodes fewer.
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

/// The cheapest plan of all searches, the first of equals, and its cost; `None` if none costs less than `known`.
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

/// The searches that are made. Of equally cheap plans the first is taken, so the searches come first that keep more of what there is.
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
