//! Size planning.

mod candidate;
mod carry;
mod conventions;
mod demands;
mod draft;
mod listing;
mod observe;
mod operations;
mod partition;
mod policy;
mod reading;
mod row;
mod search;
mod step;
mod survey;
mod terms;
mod trial;
mod verify;

use super::dead::live_graphs;
use crate::ir::{Broken, Facts, Model};
use demands::Demands;
use search::{Options, Search};
use step::Plan;
use survey::Survey;

/// How many rows all searches of a graph together may expand, and how many one search may for one demand.
const EFFORT: usize = 20_000;
const MAX_EFFORT: usize = 1_000;

/// How many nodes a search may plan beyond those of the best plan so far: some may turn out not to be needed.
const SLACK: usize = 2;

/// How many tensors are tried as the one whose shape is taken first.
const MAX_FIRST_SHAPES: usize = 4;

/// Plans the sizes of every graph anew where that takes fewer nodes. Returns how many nodes fewer.
///
/// # Errors
/// The model is inconsistent.
pub fn shorten(model: &mut Model, facts: &Facts) -> Result<usize, Broken> {
    let mut saved = 0;
    for graph in live_graphs(model) {
        let Some(mut survey) = Survey::of(model, facts, graph)? else { continue };
        let Some(demands) = Demands::of(&mut survey, model, facts)? else { continue };
        let Some((plan, cost)) = cheapest(&mut survey, &demands, model, facts) else { continue };
        saved += survey.cost().saturating_sub(cost);
        carry::carry_out(model, &survey, &demands, plan)?;
    }
    Ok(saved)
}

/// The cheapest plan of all searches, the first of equals, and its cost; `None` if none costs less than what is there.
fn cheapest(survey: &mut Survey, demands: &Demands, model: &Model, facts: &Facts) -> Option<(Plan, usize)> {
    let mut best: Option<(Plan, usize)> = None;
    for options in searches(survey, demands) {
        let fewest = best.as_ref().map_or(survey.cost(), |(_, cost)| *cost);
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

/// The searches that are made.
fn searches(survey: &Survey, demands: &Demands) -> Vec<Options> {
    let mut by_score: Vec<_> =
        demands.score.iter().map(|(&tensor, &score)| (std::cmp::Reverse(score), tensor)).collect();
    by_score.sort_unstable();
    let first_shapes = by_score.into_iter().take(MAX_FIRST_SHAPES).map(|(_, tensor)| Some(tensor));
    let kept_only = survey.shape_only > 0;
    let mut found = Vec::new();
    if kept_only {
        found.push(Options::default());
    }
    for first_shape in std::iter::once(None).chain(first_shapes) {
        found.push(Options { kept_only, first_shape, effort: 0 });
    }
    let effort = EFFORT / found.len().max(1) / demands.list.len().max(1);
    found.iter_mut().for_each(|options| options.effort = effort.min(MAX_EFFORT));
    found
}
