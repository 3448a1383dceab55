//! How many calls of the model's functions become bodies.
//!
//! That is decided by what is left: the model is folded with none but the only calls and tiny bodies inlined, with small bodies, and with
//! all, and the one with the fewest nodes is taken. How a model is folded is not known here: a function is given for it.

use super::call_graph::{model_size, prune};
use super::calls::{self, inline};
use crate::ir::Model;
use crate::passes::dead;
use crate::passes::edits::EditCounter;
use crate::passes::options::Options;
use crate::passes::outcome::RunError;
use crate::passes::pass::skips;

/// Larger bodies than these, in turn, are not copied to several calls. The first is never in vain.
const LARGEST: [usize; 3] = [1, 8, usize::MAX];

/// How many times as many nodes a model may have in between, before what is decided is folded.
const MOST_GROWTH: usize = 4;

/// Folds a model, and makes no more edits than the counter allows. The last operand tells whether it is a rehearsal, of which only the
/// size of what is left is of interest.
pub(in crate::passes) type FoldModel<'f, T> = dyn FnMut(&mut Model, EditCounter, bool) -> Result<T, RunError> + 'f;

/// A model that has been folded with calls of bodies up to `largest` inlined.
struct Rehearsed<T> {
    largest: usize,
    nodes: usize,
    model: Model,
    folded: T,
}

/// Folds a model with functions. Calls become bodies where that leaves fewer nodes, those in functions counted once, and unless the options
/// leave inlining out.
///
/// Where the edits are limited, the choice is made by rehearsals without a limit: so it does not depend on the limit.
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

/// The candidate that leaves the fewest nodes; none if none leaves fewer than there are. Names that must survive may cost more than the
/// calls they save.
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
