//! Decides how many calls of the model's functions are inlined.
//!
//! The number of remaining nodes decides. The model is folded with only single calls and tiny bodies inlined, with small bodies, and with all. The
//! result with the fewest nodes is used. The caller gives the function that folds a model.

use super::call_graph::{model_size, prune};
use super::calls::{self, inline};
use crate::ir::Model;
use crate::passes::dead;
use crate::passes::edits::EditCounter;
use crate::passes::options::Options;
use crate::passes::outcome::RunError;
use crate::passes::pass::skips;

/// The bounds for bodies that are copied to several calls, tried in this order. The first never wastes nodes.
const LARGEST: [usize; 3] = [1, 8, usize::MAX];

/// The factor by which the number of nodes may grow before the inlined model is folded.
const MOST_GROWTH: usize = 4;

/// Folds a model with at most the edits that the counter allows. The last operand is `true` for a rehearsal, of which only the resulting size
/// matters.
pub(in crate::passes) type FoldModel<'f, T> = dyn FnMut(&mut Model, EditCounter, bool) -> Result<T, RunError> + 'f;

/// A model that was folded with bodies of up to `largest` nodes inlined.
struct Rehearsed<T> {
    largest: usize,
    nodes: usize,
    model: Model,
    folded: T,
}

/// Folds a model with functions. Inlines calls if this leaves fewer nodes, those in functions counted once, unless the options exclude inlining.
///
/// With limited edits, rehearsals without a limit make the choice, so that it does not depend on the limit.
///
/// # Errors
/// As [`crate::passes::run`].
pub(in crate::passes) fn fold<T>(
    model: &mut Model,
    mut edits: EditCounter,
    options: &Options,
    fold: &mut FoldModel<'_, T>,
) -> Result<T, RunError> {
    let inlines = !skips(options, calls::NAME);
    if !edits.allows_more() {
        return fold(model, edits, false);
    }
    if !skips(options, dead::NAME) {
        prune(model, &mut edits);
    }
    let most = model_size(model).saturating_mul(MOST_GROWTH);
    if edits.is_limited() {
        let best = best(model, &EditCounter::unlimited(), inlines, most, &mut |model, edits| fold(model, edits, true))?;
        if let Some(Rehearsed { largest, .. }) = best.filter(|_| inlines) {
            inline(model, largest, most, &mut edits)?;
        }
        return fold(model, edits, false);
    }
    match best(model, &edits, inlines, most, &mut |model, edits| fold(model, edits, false))? {
        Some(best) => {
            *model = best.model;
            Ok(best.folded)
        }
        None => fold(model, edits, false),
    }
}

/// Returns the candidate with the fewest nodes; `None` if all have more nodes than the original. Names that must survive may cost more than the calls
/// they save.
fn best<T>(
    original: &Model,
    edits: &EditCounter,
    inlines: bool,
    most: usize,
    fold: &mut dyn FnMut(&mut Model, EditCounter) -> Result<T, RunError>,
) -> Result<Option<Rehearsed<T>>, RunError> {
    let mut best: Option<Rehearsed<T>> = None;
    let mut tried = None;
    for largest in LARGEST {
        let (mut model, mut edits) = (original.clone(), edits.clone());
        let inlined = if inlines { inline(&mut model, largest, most, &mut edits)? } else { 0 };
        if tried == Some(inlined) {
            continue;
        }
        tried = Some(inlined);
        let is_flat = model.functions().next().is_none();
        let folded = fold(&mut model, edits)?;
        let nodes = model_size(&model);
        if best.as_ref().is_none_or(|best| nodes < best.nodes) {
            best = Some(Rehearsed { largest, nodes, model, folded });
        }
        if is_flat {
            break;
        }
    }
    Ok(best.filter(|best| best.nodes <= model_size(original)))
}
