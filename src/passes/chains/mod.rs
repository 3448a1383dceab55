//! Chains of size arithmetic, computed anew in as few nodes as they take.
//!
//! Exporters read every size where they happen to need it: Shape, Gather, Unsqueeze and Concat again and again, each from another
//! tensor. Here all values that are proved to hold nothing but sizes are taken together, what the rest of the graph asks of them
//! is planned from the tensors that have those sizes, and if the plan has fewer nodes than there are, it takes their place.
//!
//! Law: two integer tensors with the same element type, shape and, element for element, the same expression in the symbols are
//! equal. A plan reads a tensor only for nodes that come after it, so that no circle can arise.

mod asked;
mod carry;
mod plan;
mod survey;
mod terms;

use super::dead::live_graphs;
use super::edits::EditCounter;
use crate::ir::{Broken, Facts, Model};
use plan::{Plan, Strategy};
use survey::Survey;

/// The pass's name, under which its edits are counted: each graph whose sizes are planned anew is one.
pub(super) const NAME: &str = "size-chain";

/// How much is tried in all, and for each that asks.
const FUEL: usize = 40_000;
const MOST_FUEL: usize = 1_000;

/// How many steps of a plan may turn out not to be needed. One that takes more nodes than what is known is given up on the way.
const UNNEEDED: usize = 2;

/// How many tensors are tried to be read first.
const MAX_SEEDS: usize = 4;

/// Plans the sizes of every graph anew where that takes fewer nodes. Returns how many nodes fewer.
///
/// # Errors
/// The model is inconsistent.
pub fn shorten(model: &mut Model, facts: &Facts, edits: &mut EditCounter) -> Result<usize, Broken> {
    let mut saved = 0;
    for graph in live_graphs(model) {
        if !edits.allows_more() {
            break;
        }
        let Some(mut survey) = Survey::of(model, facts, graph)? else { continue };
        // What is there only to be measured goes with what measures it.
        let there = survey.chain.len() + survey.measured;
        let mut best: Option<(usize, carry::Carried)> = None;
        for strategy in strategies(&survey) {
            let mut plan = Plan::new(&mut survey, model, facts, strategy);
            let fewest = best.as_ref().map_or(there, |(cost, ..)| *cost);
            let Some(answers) = plan.all(fewest.saturating_add(UNNEEDED)) else { continue };
            let extra = if strategy.kept_only { 0 } else { plan.measured() };
            let cost = plan.cost(&answers) + extra;
            if cost < fewest {
                best = Some((cost, carry::Carried { counterparts: plan.counterparts(), steps: plan.steps, answers }));
            }
        }
        let Some((cost, carried)) = best else { continue };
        edits.take(NAME, || format!("graph '{}'", model.graph(graph).name));
        saved += there - cost;
        carry::carry_out(model, graph, &survey, carried)?;
    }
    Ok(saved)
}

/// What is worth trying. A size that an operator can be told by convention costs nothing, but one vector fewer may be shared; and a
/// Shape that the first who asks does not need may serve those who ask later.
fn strategies(survey: &Survey) -> Vec<Strategy> {
    let mut found = Vec::new();
    for by_convention in [false, true] {
        found.push(Strategy { by_convention, plain: true, ..Strategy::default() });
        for whole in [false, true] {
            found.push(Strategy { whole, by_convention, ..Strategy::default() });
        }
    }
    let mut seeds: Vec<_> = survey.score.iter().map(|(&tensor, &score)| (std::cmp::Reverse(score), tensor)).collect();
    seeds.sort_unstable();
    for (_, tensor) in seeds.into_iter().take(MAX_SEEDS) {
        let position = survey.sources.values().flatten().find(|source| source.tensor == tensor);
        let Some(position) = position.map(|source| source.position) else { continue };
        found.push(Strategy { seed: Some((tensor, position)), ..Strategy::default() });
    }
    if survey.measured > 0 {
        let kept: Vec<Strategy> = found.iter().map(|&strategy| Strategy { kept_only: true, ..strategy }).collect();
        found.truncate(3);
        found.extend(kept);
    }
    let each = FUEL / found.len().max(1) / survey.asked.len().max(1);
    found.iter_mut().for_each(|strategy| strategy.fuel = each.min(MOST_FUEL));
    found
}
