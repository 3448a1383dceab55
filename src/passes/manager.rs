//! Runs all steps over a model. [`run`] is the order of all steps, and [`STEPS`] that of folding, which is the middle part.
//!
//! Only the passes of `pipeline` edit nodes, initializers and values, and each edit is counted first. The other steps infer, check, or change
//! spellings. The conversion of the operator set precedes the first edit and counts none.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::constant_nodes::{initializers, spell_initializers};
use super::contract::Contract;
use super::driver::{Told, close, once, settle};
use super::edits::EditCounter;
use super::inline::{calls, functions};
use super::opaque::Hidden;
use super::options::Options;
use super::outcome::{NoOperator, NoRule, Outcome, RunError};
use super::pass::{NodeEvent, Pass, Run, Work};
use super::pipeline::{self, chosen};
use super::premises::{payload, premises};
use super::profile::{PassRun, Profile};
use super::records::records;
use super::{annotate, believed, claims, dead, opaque, opset, remembered};
use crate::clock::Instant;
use crate::consumers::Construct;
use crate::dim::{Dim, Scope};
use crate::ir::{Model, Node, NodeId, ValueId};
use crate::ops::{Budget, Walk, equal_sizes, operator, operators};
use crate::rewrite::meant;

/// Infers, folds and cleans up until nothing changes, then writes the known types of values.
///
/// # Errors
/// The model is inconsistent, the assumptions are impossible, or no run can succeed (if that is checked).
///
/// Calls `watch` with each new activity.
pub fn run(
    model: &mut Model,
    scope: Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Outcome, RunError> {
    check_names(options)?;
    check_constructs(model, options)?;
    let options = &keeping_all_without_outputs(model, options);
    let mut profile = Profile::new(options.measure_memory);
    prepare(model, options);
    let opset = convert(model, options, watch)?;
    check_operators(model, options)?;
    let hidden = Hidden::in_model(model);
    model.keeps_functions |= hidden.are_disputed();
    let settled = fold(model, &scope, options, model_bytes, &mut profile, watch)?;
    drop(scope);
    let begin = Instant::now();
    let mut outcome = settled.write_shapes(model, options)?;
    profile.note("write-shapes", begin, 0);
    outcome.notes.extend(hidden.show(model));
    Ok(Outcome { opset, passes: profile.into_passes(), ..outcome })
}

/// Checks that every name in the options is that of a rule or a pass.
///
/// # Errors
/// A name is unknown.
fn check_names(options: &Options) -> Result<(), NoRule> {
    options.skip.iter().chain(&options.only).try_for_each(|name| exists(name))
}

/// Checks that the operators to avoid exist, in the standard or in the model.
///
/// # Errors
/// The name of an operator is unknown.
fn check_constructs(model: &Model, options: &Options) -> Result<(), NoOperator> {
    for construct in &options.avoid {
        let Construct::Operator { domain, name } = construct else { continue };
        let nodes = || model.graphs().flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
        let is_there = |node: &Node| node.canonical_domain() == domain && node.op_type == *name;
        if operator(domain, name).is_none() && !nodes().any(is_there) {
            let names = operators().filter(|known| known.domain == domain.as_str()).map(|known| known.name);
            let similar = meant(name, names.collect::<Vec<_>>().into_iter()).into_iter().collect();
            return Err(NoOperator { name: construct.to_string(), similar });
        }
    }
    Ok(())
}

/// Checks that a rule or a pass has this name.
///
/// # Errors
/// The name is unknown.
fn exists(name: &str) -> Result<(), NoRule> {
    let names = || pipeline::names().chain(records().map(|record| record.name));
    match names().any(|known| known == name) {
        true => Ok(()),
        false => Err(NoRule::among(name, names())),
    }
}

/// Returns the options for a model. Without outputs every node is dead, but runtimes load no empty graph. So types are written and nothing is
/// removed.
fn keeping_all_without_outputs(model: &Model, options: &Options) -> Options {
    Options { fold: options.fold && !model.graph(model.main()).outputs().is_empty(), ..options.clone() }
}

/// Records the user's names for operators, and pins values with one name in and around a subgraph.
fn prepare(model: &mut Model, options: &Options) {
    for name in &options.slice_names {
        model.add_synonym(name.synonym());
    }
    model.pin_shadowing();
}

/// Converts the model to the operator set in the options. Returns the old and the new one if they differ.
///
/// # Errors
/// A node cannot be written in that operator set.
fn convert(
    model: &mut Model,
    options: &Options,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Option<(i64, i64)>, RunError> {
    let Some(to) = options.opset else { return Ok(None) };
    watch("converting the operator set");
    Ok(opset::convert(model, to, options)?.map(|from| (from, to)))
}

/// Checks, for a strict reader, that every node fits the definition of its operator.
///
/// # Errors
/// A node has a nonstandard attribute, operand or result.
fn check_operators(model: &Model, options: &Options) -> Result<(), RunError> {
    match opaque::nonstandard_node(model).filter(|_| options.strict) {
        Some((place, reason)) => Err(RunError::Contradiction { place, reason }),
        None => Ok(()),
    }
}

/// A model that no pass changes any more, before types are written into it.
struct Settled {
    walk: Walk,
    notes: Vec<NodeEvent>,
    rounds: usize,
    edits: EditCounter,
    ends: Vec<(&'static str, usize)>,
    /// The invalid nodes.
    broken: Vec<NodeId>,
    /// Expressions that are 0 in every run: differences between the element counts of views and their operands in the model as read.
    zeros: Vec<Dim>,
}

impl Settled {
    /// Writes the known types of values.
    fn write_shapes(mut self, model: &mut Model, options: &Options) -> Result<Outcome, RunError> {
        let remembered = remembered::with_remembered(model, self.walk.scope());
        let scope = remembered.as_ref().unwrap_or(self.walk.scope());
        self.zeros.extend(remembered::remembered_zeros(model, scope));
        let contract = Contract::of(model, &self.walk.facts, (scope, &self.zeros), &self.walk.replaced);
        let names = claims::Names::adopt(model, &self.walk.facts, &contract);
        let believed = believed::believed(model, payload(model), &self.walk, options, &self.broken)?;
        // Reads the metadata again, since `adopt` has added names to the scope.
        let remembered = remembered::with_remembered(model, self.walk.scope());
        let scope = remembered.as_ref().unwrap_or(self.walk.scope());
        let remembers = if options.stamp {
            remembered::to_remember(model, &self.walk.facts, (scope, &contract.zeros), options)?
        } else {
            String::new()
        };
        let facts = (&self.walk.facts, remembered.as_ref());
        self.notes.extend(annotate::annotate(model, facts, &believed, (&names, &contract), &self.broken));
        let (fired, last_edit, edits) = self.edits.into_parts();
        let (facts, passes) = (self.walk.facts, Vec::<PassRun>::new());
        let (notes, rounds, ends) = (self.notes, self.rounds, self.ends);
        Ok(Outcome { facts, notes, rounds, opset: None, fired, last_edit, edits, passes, ends, remembers })
    }
}

/// Folds a model. A model with functions may be folded several times to find how many calls to inline.
fn fold(
    model: &mut Model,
    scope: &Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    profile: &mut Profile,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Settled, RunError> {
    let edits = EditCounter::new(options.stop_after, options.stop_after < usize::MAX || options.verify_each)
        .metered(scope.meter())
        .recording(options.detailed);
    if !options.fold || model.keeps_functions || model.functions().next().is_none() {
        return fold_as_it_is(model, scope, options, model_bytes, edits, profile, watch);
    }
    let begin = Instant::now();
    let settled = functions::fold(model, edits, options, &mut |model, edits, is_rehearsal| {
        // Knowledge about symbols from a rehearsal must not affect the run whose result is kept.
        let scope = if is_rehearsal { &Rc::new(Scope::metered(scope.meter())) } else { scope };
        fold_as_it_is(model, scope, options, model_bytes, edits, profile, watch)
    })?;
    profile.note_around(calls::NAME, begin, 0.0, settled.edits.made_by(calls::NAME));
    Ok(settled)
}

/// The largest number of times that the passes run because the remaining nodes imply more about dims than the nodes before. A new bound may let
/// a pass remove another node, whose absence leads to another bound; without the limit, a chain of N such nodes takes N times as long.
const MOST_LESSONS: usize = 3;

/// The steps of folding, in order.
#[rustfmt::skip]
const STEPS: &[fn(&mut Folding<'_>) -> Result<(), RunError>] = &[
    open,           // merges equal nodes of the file
    learn,          // the user's assumptions, and sizes that every run needs
    compare_claims, // declared types that are proved false
    settle_all,     // `pipeline::PASSES`, round after round until none changes anything, then `pipeline::CLOSING`
    finish,         // `pipeline::FINISHING`: the bodies of functions, and imports
    spell,          // names and constants that a file can hold
    verify,         // the model is consistent
];

/// A model that is being folded.
struct Folding<'a> {
    model: &'a mut Model,
    options: &'a Options,
    watch: &'a mut dyn FnMut(&'static str),
    run: Run,
    walk: Walk,
    /// The number of bytes by which constants may enlarge the model.
    growth: usize,
    /// The initializers before the rounds.
    given: FxHashSet<ValueId>,
    notes: Vec<NodeEvent>,
    rounds: usize,
    broken: Vec<NodeId>,
    zeros: Vec<Dim>,
}

/// Folds a model without inlining calls.
fn fold_as_it_is(
    model: &mut Model,
    scope: &Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    edits: EditCounter,
    profile: &mut Profile,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Settled, RunError> {
    watch("inferring shapes");
    let mut folding = Folding {
        run: Run::new(options, edits, payload(model)),
        walk: Walk::new(Rc::clone(scope), options.slice_rule, Budget::default()),
        growth: options.free_growth.saturating_add((model_bytes as f64 * options.max_growth) as usize),
        given: FxHashSet::default(),
        notes: Vec::new(),
        rounds: 0,
        broken: Vec::new(),
        zeros: Vec::new(),
        model,
        options,
        watch,
    };
    for step in STEPS {
        step(&mut folding)?;
    }
    let Folding { walk, run, notes, rounds, broken, zeros, .. } = folding;
    profile.add_all(run.profile);
    Ok(Settled { walk, notes, rounds, edits: run.edits, ends: run.ends, broken, zeros })
}

impl Folding<'_> {
    /// Returns the main graph in the form that passes need.
    fn work(&mut self) -> Work<'_> {
        Work::new(self.model, &mut self.walk, &mut self.run, self.growth)
    }

    /// Runs each of the passes once.
    fn once(&mut self, passes: &[Pass]) -> Result<(), RunError> {
        let passes = chosen(passes, &self.run);
        if passes.is_empty() { Ok(()) } else { once(&mut self.work(), &passes) }
    }
}

fn open(folding: &mut Folding<'_>) -> Result<(), RunError> {
    folding.once(pipeline::OPENING)
}

fn learn(folding: &mut Folding<'_>) -> Result<(), RunError> {
    let begin = Instant::now();
    folding.walk = premises(folding.model, folding.walk.scope(), folding.options)?;
    folding.given = initializers(folding.model);
    folding.run.profile.note("premises", begin, 0);
    Ok(())
}

fn compare_claims(folding: &mut Folding<'_>) -> Result<(), RunError> {
    if !folding.options.trust_declared_shapes {
        folding.notes.extend(claims::contradictions(folding.model, &folding.walk.facts, true));
    }
    folding.zeros = equal_sizes(folding.model, &folding.walk.facts, &dead::live_nodes(folding.model));
    Ok(())
}

fn settle_all(folding: &mut Folding<'_>) -> Result<(), RunError> {
    let (passes, closing) = (chosen(pipeline::PASSES, &folding.run), chosen(pipeline::CLOSING, &folding.run));
    let Folding { model, walk, run, notes, watch, .. } = folding;
    let mut tell = |told| match told {
        Told::Doing(what) => watch(what),
        Told::Note(note) => notes.push(note),
    };
    for lesson in 1..=MOST_LESSONS {
        let mut work = Work::new(model, walk, run, folding.growth);
        folding.rounds += settle(&mut work, &pipeline::INFER, &passes, &mut tell)?;
        folding.broken = work.untouched.broken();
        if lesson == MOST_LESSONS || !remembered::learn_again(work.model, work.walk) {
            work.given.clone_from(&folding.given);
            close(&mut work, &pipeline::INFER, &closing, &mut tell)?;
            break;
        }
    }
    let mut calls: Vec<NodeId> = walk.failing_calls.iter().copied().collect();
    calls.sort_unstable();
    folding.broken.extend(calls);
    Ok(())
}

fn finish(folding: &mut Folding<'_>) -> Result<(), RunError> {
    folding.once(pipeline::FINISHING)
}

/// Spells the edited model as a file can hold it: replaces new initializers by Constant nodes where the format has none, names nameless nodes, and
/// changes names that a runtime may confuse. No computation changes, so this counts no edit.
fn spell(folding: &mut Folding<'_>) -> Result<(), RunError> {
    let Folding { model, options, given, .. } = folding;
    if !options.fold || options.stop_after == 0 {
        return Ok(());
    }
    if (1..4).contains(&model.ir_version) {
        // A newer version would turn the weights into defaults, which callers may override. Runtimes read those of older versions as constants.
        for graph in dead::live_graphs(model) {
            spell_initializers(model, graph, given)?;
        }
    }
    model.name_nodes();
    model.name_constants();
    if folding.run.edits.made() > 0 {
        model.separate_names();
    }
    Ok(())
}

fn verify(folding: &mut Folding<'_>) -> Result<(), RunError> {
    folding.model.verify()?;
    Ok(folding.model.verify_names()?)
}
