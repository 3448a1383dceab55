//! Chains of size arithmetic, computed anew in as few nodes as they take.
//!
//! Exporters read every size where they happen to need it: Shape, Gather, Unsqueeze and Concat again and again, each from another
//! tensor. Here all values that are proved to hold nothing but sizes are taken together, what the rest of the graph asks of them
//! is planned from the tensors that have those sizes, and if the plan has fewer nodes than there are, it takes their place.
//!
//! Law: two integer tensors with the same element type, shape and, element for element, the same expression in the symbols are
//! equal. A plan reads a tensor only for nodes that come after it, so that no circle can arise.

mod carry;
mod plan;
mod survey;

use super::dead::live_graphs;
use crate::ir::{Broken, Facts, Model};
use plan::Plan;
use survey::Survey;

/// Plans the sizes of every graph anew where that takes fewer nodes. Returns how many nodes fewer.
///
/// # Errors
/// The model is inconsistent.
pub fn shorten(model: &mut Model, facts: &Facts) -> Result<usize, Broken> {
    let mut saved = 0;
    for graph in live_graphs(model) {
        let Some(survey) = Survey::of(model, facts, graph)? else { continue };
        // A size that an operator can be told by convention costs nothing, but one vector fewer may be shared.
        let conventions: [&'static [&'static str]; 4] = [&[], &["Reshape"], &["Expand"], &["Reshape", "Expand"]];
        let plans = conventions.into_iter().filter_map(|conventions| {
            let mut plan = Plan::new(&survey, model, facts, conventions);
            let asked = plan.all()?;
            Some((plan.cost(), plan.steps, asked))
        });
        let Some((cost, steps, asked)) = plans.min_by_key(|(cost, ..)| *cost) else { continue };
        let Some(fewer) = survey.chain.len().checked_sub(cost).filter(|fewer| *fewer > 0) else { continue };
        saved += fewer;
        carry::carry_out(model, graph, &survey, steps, &asked)?;
    }
    Ok(saved)
}
