//! The list of passes, in their order.

use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::inline::{branches, carried, loops, unroll};
use super::outcome::RunError;
use super::pass::{Pass, Run, Work};
use super::{
    chains, common_subexpressions, constant_nodes, dead, fold, function_bodies, hoist, positions, quantization,
    shape_reads, simplify, value_numbering,
};
use crate::dim::{Dim, Symbol};
use crate::ir::{Fact, Facts, Model, NodeId, ValueId};
use crate::ops::EventKind;

/// Infers the facts about every value. It runs at the beginning of every round, and does not change the model.
pub const INFER: Pass =
    Pass { name: "infer-shapes", does: "States types, sizes and contents of values.", stage: 0, run: infer };

/// The passes that run once before inference. The pass of this name also runs in the rounds.
pub const OPENING: &[Pass] = &[Pass {
    name: common_subexpressions::NAME,
    does: "Merges nodes that compute the same value, and equal initializers.",
    stage: 0,
    run: merge_first,
}];

/// The passes over a root graph, in their order.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "fold-constants",
        does: "Replaces nodes with constant results by initializers.",
        stage: 0,
        run: fold_constants,
    },
    Pass {
        name: "fold-results",
        does: "Rewires consumers of a constant result to an initializer, if other results of its node are not constant.",
        stage: 0,
        run: fold_results,
    },
    Pass {
        name: "fold-containers",
        does: "Computes known sequences and optionals from initializers.",
        stage: 0,
        run: fold_containers,
    },
    Pass { name: "rewrite", does: "Tries the rewrite rules at every node.", stage: 0, run: |work| rewrite(work, 0) },
    Pass {
        name: common_subexpressions::NAME,
        does: "Merges nodes that compute the same value, and equal initializers.",
        stage: 0,
        run: merge,
    },
    Pass {
        name: value_numbering::NAME,
        does: "Merges values that are proved to hold the same integers.",
        stage: 0,
        run: number,
    },
    Pass {
        name: shape_reads::NAME,
        does: "Replaces a vector of sizes by one Shape of a tensor with these consecutive dims.",
        stage: 0,
        run: read_shapes,
    },
    Pass {
        name: branches::NAME,
        does: "Replaces an If with constant condition by the taken branch.",
        stage: 0,
        run: inline_branches,
    },
    Pass {
        name: carried::NAME,
        does: "Removes carried values of a Loop or Scan that never change or have no consumer.",
        stage: 0,
        run: uncarry,
    },
    Pass {
        name: loops::NAME,
        does: "Replaces a Loop or Scan with at most one iteration.",
        stage: 0,
        run: inline_loops,
    },
    Pass { name: unroll::NAME, does: "Unrolls a Loop or Scan with few iterations.", stage: 0, run: unroll_loops },
    Pass { name: dead::NAME, does: "Removes nodes and initializers without consumers.", stage: 0, run: remove_dead },
    Pass {
        name: "fold-postponed",
        does: "Retries constants that would have enlarged the model too much.",
        stage: 1,
        run: fold_postponed,
    },
    Pass {
        name: "rewrite-late",
        does: "Tries the rules that decompose patterns of other rules.",
        stage: 1,
        run: |work| rewrite(work, 1),
    },
    Pass {
        name: hoist::NAME,
        does: "Moves loop-invariant nodes out of the subgraph of a Loop or Scan.",
        stage: 1,
        run: hoist_nodes,
    },
    Pass {
        name: "rewrite-last",
        does: "Tries the rules that hide patterns of all other rules.",
        stage: 2,
        run: |work| rewrite(work, 2),
    },
    Pass {
        name: "rewrite-fronts",
        does: "Tries the rules that replace positions by slices of longer ranges, and merge several moves into one.",
        stage: 3,
        run: |work| rewrite(work, 3),
    },
    // Planning waits until all other passes have finished, so that no dead nodes are planned.
    Pass {
        name: chains::NAME,
        does: "Replaces all nodes that compute sizes, if that takes fewer nodes.",
        stage: 4,
        run: shorten_size_chains,
    },
    Pass {
        name: shape_reads::BEHIND,
        does: "Moves Shape after functions that runtimes fuse with their operand.",
        stage: 5,
        run: read_shapes_behind,
    },
];

/// The passes that run once each after all others, which would undo their edits.
pub const CLOSING: &[Pass] = &[
    Pass {
        name: constant_nodes::ADDENDS,
        does: "Writes constants that are added before a normalization as Constant nodes.",
        stage: 0,
        run: spell_addends,
    },
    Pass {
        name: positions::NAME,
        does: "Computes the end of an embedding's positions with the nodes that optimizers match.",
        stage: 0,
        run: spell_positions,
    },
];

/// The passes that run once each at the end, over the whole model. Imports have the name of dead code elimination, which also runs in the rounds.
pub const FINISHING: &[Pass] = &[
    Pass {
        name: function_bodies::NAME,
        does: "Folds the bodies of functions under what all their calls agree on.",
        stage: 0,
        run: fold_functions,
    },
    Pass {
        name: dead::NAME,
        does: "Removes imports of operator sets that no node is in.",
        stage: 0,
        run: remove_imports,
    },
];

/// Returns the passes that are not disabled.
pub(super) fn chosen(passes: &[Pass], run: &Run) -> Vec<Pass> {
    passes.iter().filter(|pass| run.options.fold && !run.skips(pass.name)).copied().collect()
}

/// Returns every name for `--skip`, and for the counts of edits, apart from the rewrite rules.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let passes = PASSES.iter().chain(CLOSING).map(|pass| pass.name);
    passes.chain([super::inline::calls::NAME, function_bodies::NAME])
}

/// Infers facts, again for values about which edits reveal more.
fn infer(work: &mut Work<'_>) -> Result<(), RunError> {
    let unstated = quantization::kept(work.model, &work.run.options)?;
    if work.is_inferred {
        let mut again = newly_decided(work.model, &work.walk.facts, &mut work.decided);
        // Sizes that are known only at run time already have names.
        let is_fixed = |value: &ValueId| work.walk.facts.get(*value).is_some_and(|fact| fact.static_len().is_some());
        again.extend(work.untouched.let_go(work.model).iter().filter(|value| is_fixed(value)));
        // A constant that is no longer read at run time is an ordinary constant, and so are the values computed from it.
        let kept = &work.walk.unstated;
        let mut other: Vec<NodeId> = kept.keys().copied().filter(|id| unstated.get(id) != kept.get(id)).collect();
        other.sort_unstable();
        for &result in
            other.iter().filter_map(|&id| work.model.node(id)).flat_map(|node| node.outputs().iter().flatten())
        {
            let readers = work.model.users(result).into_iter().filter_map(|(id, _)| work.model.node(id));
            again.extend(readers.flat_map(|node| node.outputs().iter().flatten()).filter(|value| is_fixed(value)));
            again.push(result);
        }
        for value in again {
            work.walk.forget(value);
        }
    }
    work.walk.unstated = unstated;
    work.walk.infer_main(work.model)?;
    if !work.is_inferred {
        newly_decided(work.model, &work.walk.facts, &mut work.decided);
        work.is_inferred = true;
    }
    work.walk.events.iter().for_each(|event| work.untouched.note(event));
    work.untouched.hold(work.model, &mut work.walk.facts, &work.walk.hopeless);
    let events = std::mem::take(&mut work.walk.events);
    work.note_events(events);
    Ok(())
}

/// Returns the unknown results of main graph nodes that got only constant operands by edits: their facts are older than these operands. Returns the
/// results of a node once.
fn newly_decided(model: &Model, facts: &Facts, decided: &mut FxHashSet<NodeId>) -> Vec<ValueId> {
    // A constant that an edit has made has no fact yet.
    let is_stated = |value: ValueId| facts.get(value).is_some_and(|fact| fact.data().is_some());
    let is_known =
        |value: &Option<ValueId>| value.is_none_or(|value| is_stated(value) || model.value(value).is_constant());
    let mut found = Vec::new();
    for id in model.graph(model.main()).nodes() {
        let Some(node) = model.node(id).filter(|node| node.inputs().iter().all(is_known)) else { continue };
        if !node.outputs().iter().all(is_known) && decided.insert(id) {
            found.extend(node.outputs().iter().flatten());
        }
    }
    found
}

fn fold_constants(work: &mut Work<'_>) -> Result<(), RunError> {
    let largest = work.run.options.max_constant;
    // Earlier growth by folding counts. Bytes that other passes removed do not allow more growth.
    let growth = work.growth.saturating_sub(fold::bytes_held(work.model).saturating_sub(work.held));
    let declined = fold::fold(work.model, &work.walk.facts, (growth, largest), &mut work.kept, &mut work.run.edits);
    work.declined.extend(declined);
    Ok(())
}

/// Retries results that were too large, since other passes may have made room for them, and reports the remaining ones.
fn fold_postponed(work: &mut Work<'_>) -> Result<(), RunError> {
    let largest = work.run.options.max_constant;
    if work.kept.reconsider() {
        work.declined.retain(|&(_, bytes)| bytes > largest);
        fold_constants(work)?;
    }
    for (node, bytes) in work.declined.drain(..) {
        let reason = match bytes > largest {
            true => format!("its constant result of {bytes} bytes is over the {largest} that a constant may have"),
            false => format!("its constant result of {bytes} bytes would make the model larger than allowed"),
        };
        if work.model.node(node).is_some() && work.told.insert((node, EventKind::Declined, reason.clone())) {
            work.notes.push((work.model.describe(node), EventKind::Declined, reason));
        }
    }
    Ok(())
}

fn fold_results(work: &mut Work<'_>) -> Result<(), RunError> {
    let (model, facts, edits) = work.parts();
    fold::fold_partly(model, facts, edits);
    Ok(())
}

fn fold_containers(work: &mut Work<'_>) -> Result<(), RunError> {
    let (model, facts, edits) = work.parts();
    Ok(fold::fold_containers(model, facts, edits)?)
}

fn rewrite(work: &mut Work<'_>, stage: usize) -> Result<(), RunError> {
    let Run { rules, edits, .. } = &mut *work.run;
    let rules = (&*rules, &work.untouched, &mut work.agenda);
    let cuts = simplify::simplify(work.model, &mut work.walk.facts, rules, stage, edits)?;
    work.note_events(cuts);
    Ok(())
}

/// Merges equal nodes of the file. A strict reader's message must name nodes of the file, so it merges nothing under `strict`.
fn merge_first(work: &mut Work<'_>) -> Result<(), RunError> {
    if work.run.options.strict {
        return Ok(());
    }
    Ok(common_subexpressions::merge_first(work.model, work.run.options.exact, &mut work.run.edits)?)
}

fn merge(work: &mut Work<'_>) -> Result<(), RunError> {
    work.agenda.catch_up(work.model, &mut work.walk.facts);
    let (merging, changed) = (&mut work.merging, work.agenda.take_changed());
    let exact = work.run.options.exact;
    Ok(merging.merge(work.model, &work.walk.facts, changed, exact, &mut work.run.edits)?)
}

fn number(work: &mut Work<'_>) -> Result<(), RunError> {
    Ok(value_numbering::number(work.model, &work.walk.facts, &work.untouched, &mut work.run.edits)?)
}

fn read_shapes(work: &mut Work<'_>) -> Result<(), RunError> {
    let (model, facts, edits) = work.parts();
    Ok(shape_reads::read_off(model, facts, edits)?)
}

fn read_shapes_behind(work: &mut Work<'_>) -> Result<(), RunError> {
    let known = (&work.walk.facts, &work.untouched);
    Ok(shape_reads::read_behind(work.model, known, &mut work.run.edits)?)
}

fn inline_branches(work: &mut Work<'_>) -> Result<(), RunError> {
    let exact = work.run.options.exact;
    Ok(branches::inline(work.model, &work.walk.facts, &work.untouched, exact, &mut work.run.edits)?)
}

fn uncarry(work: &mut Work<'_>) -> Result<(), RunError> {
    Ok(carried::uncarry(work.model, &work.walk.facts, &work.untouched, &mut work.run.edits)?)
}

fn inline_loops(work: &mut Work<'_>) -> Result<(), RunError> {
    let exact = work.run.options.exact;
    let edits = (&work.untouched, &mut work.run.edits);
    Ok(loops::inline(work.model, &work.walk.facts, &work.walk.trips, exact, edits)?)
}

/// The most nodes that unrolling adds if the consumer lacks loops.
const UNROLLED_TO_AVOID: usize = 4096;

fn unroll_loops(work: &mut Work<'_>) -> Result<(), RunError> {
    let options = &work.run.options;
    let is_avoided = options.avoid.iter().any(|construct| ["Loop", "Scan"].iter().any(|it| construct.is_operator(it)));
    let most = options.unroll.max(if is_avoided { UNROLLED_TO_AVOID } else { 0 });
    let extra = most.saturating_sub(work.run.unrolled);
    let edits = (&work.untouched, &mut work.run.edits);
    let extra = (extra, work.run.options.exact);
    work.run.unrolled += unroll::inline(work.model, &work.walk.facts, &work.walk.trips, extra, edits)?;
    Ok(())
}

fn hoist_nodes(work: &mut Work<'_>) -> Result<(), RunError> {
    let exact = work.run.options.exact;
    Ok(hoist::hoist(work.model, &work.walk.facts, &work.walk.surely, exact, (&work.untouched, &mut work.run.edits))?)
}

fn remove_dead(work: &mut Work<'_>) -> Result<(), RunError> {
    dead::remove(work.model, &mut work.run.edits);
    Ok(())
}

fn fold_functions(work: &mut Work<'_>) -> Result<(), RunError> {
    let passes = chosen(PASSES, work.run);
    function_bodies::fold_bodies(work.model, &work.walk.facts, work.run, &INFER, &passes)
}

fn remove_imports(work: &mut Work<'_>) -> Result<(), RunError> {
    dead::remove_imports(work.model, &mut work.run.edits);
    Ok(())
}

fn spell_addends(work: &mut Work<'_>) -> Result<(), RunError> {
    let (facts, given) = (&work.walk.facts, &work.given);
    Ok(constant_nodes::spell_addends(work.model, facts, given, &mut work.run.edits)?)
}

fn spell_positions(work: &mut Work<'_>) -> Result<(), RunError> {
    let known = (&work.walk.facts, &work.untouched);
    Ok(positions::spell_out(work.model, known, &mut work.run.edits)?)
}

/// Plans the sizes, and removes nodes that the plan does not need.
fn shorten_size_chains(work: &mut Work<'_>) -> Result<(), RunError> {
    let (model, facts, edits) = work.parts();
    if chains::shorten(model, facts, edits)? > 0 {
        dead::remove(model, edits);
        infer_assumed_again(work);
    }
    Ok(())
}

/// Forgets the facts of the main graph that name an integer which may have wrapped or been rounded, if they have no other run-time symbol. The new
/// size nodes may compute the same size without it.
fn infer_assumed_again(work: &mut Work<'_>) {
    let scope = Rc::clone(work.walk.facts.scope());
    let is_assumed = |symbol: &Symbol| scope.nominal(&Dim::symbol(*symbol)) != Dim::symbol(*symbol);
    let names_assumed = |value: ValueId| {
        let dims = work.walk.facts.get(value).and_then(Fact::shape).unwrap_or_default();
        let symbols: BTreeSet<Symbol> = dims.iter().flat_map(Dim::symbols).collect();
        symbols.iter().any(is_assumed) && symbols.iter().all(|symbol| !scope.is_fresh(*symbol) || is_assumed(symbol))
    };
    let results: Vec<ValueId> = work
        .model
        .graph(work.model.main())
        .nodes()
        .filter_map(|id| work.model.node(id))
        .flat_map(|node| node.outputs().iter().flatten().copied())
        .filter(|&value| names_assumed(value))
        .collect();
    for value in results {
        work.walk.forget(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_of_the_rules_has_a_pass() {
        let rewrites: Vec<usize> =
            PASSES.iter().filter(|pass| pass.name.starts_with("rewrite")).map(|pass| pass.stage).collect();
        assert_eq!(rewrites, (0..=crate::rewrite::LATE_RULES.len()).collect::<Vec<_>>());
    }

    #[test]
    fn every_record_is_of_a_pass() {
        for record in crate::passes::RECORDS {
            assert!(names().any(|name| name == record.name), "no pass is named {}", record.name);
        }
    }

    #[test]
    fn names_are_given_once_and_stages_ascend() {
        let mut names: Vec<&str> = names().chain(crate::rewrite::rules().map(|rule| rule.name)).collect();
        names.sort_unstable();
        assert!(PASSES.windows(2).all(|pair| pair[0].stage <= pair[1].stage));
        assert!(PASSES.iter().chain(CLOSING).all(|pass| names.iter().filter(|name| **name == pass.name).count() == 1));
    }
}
