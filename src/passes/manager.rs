//! Runs the passes to a fixpoint.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::assume::{AssumeError, assume, possible};
use super::options::Options;
use super::records::{NoRule, record};
use super::simplify::{self, Fired, Rules};
use super::{annotate, chains, claims, common, contents, dead, fold, functions, inline, library, quantization};
use crate::dim::Scope;
use crate::ir::{Broken, Definition, Fact, Facts, Model, NodeId, ValueId};
use crate::ops::{Budget, Event, EventKind, Refusal, Walk, plain_names};

/// What a run found and did.
#[derive(Debug)]
pub struct Outcome {
    /// What is proved of the values that are left.
    pub facts: Facts,
    /// What there is to tell, by node description.
    pub notes: Vec<(String, EventKind, String)>,
    /// How many rounds it took.
    pub rounds: usize,
    /// How often each rewrite rule fired.
    pub fired: Fired,
}

/// A run that had to stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model was or became inconsistent.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Something the user assumes cannot be.
    #[error(transparent)]
    Assumption(#[from] AssumeError),
    /// A rule to be left out, or to be used alone, that does not exist.
    #[error("{0}")]
    NoRule(#[from] NoRule),
    /// The model cannot be walked.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Every run needs a node that can work at no size.
    #[error("no run of the model can succeed: {node}: {reason}")]
    Impossible {
        /// The node.
        node: String,
        /// Why it cannot work.
        reason: String,
    },
}

/// Infers, folds and cleans up until nothing changes, then writes what is known beside the values.
///
/// # Errors
/// The model is inconsistent; what is assumed cannot be; no run can succeed, if that is asked for.
///
/// `watch` is told what is being done whenever that changes.
pub fn run(
    model: &mut Model,
    scope: Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Outcome, RunError> {
    for name in options.skip.iter().chain(&options.only) {
        record(name)?;
    }
    // Nothing in a model without outputs is needed for one, and runtimes load no empty graph: it is only annotated.
    let annotated;
    let options = if model.graph(model.main()).outputs().is_empty() {
        annotated = Options { fold: false, ..options.clone() };
        &annotated
    } else {
        options
    };
    for name in &options.slice_names {
        model.add_synonym(name.synonym());
    }
    model.pin_shadowing();
    let disputed = library::veil_disputed(model);
    let result = if options.fold && disputed.is_empty() && model.functions().next().is_some() {
        functions::run(model, &scope, options, model_bytes, watch)
    } else {
        model.keeps_functions |= !disputed.is_empty();
        run_as_it_is(model, scope, options, model_bytes, watch)
    };
    let result = result.and_then(|settled| settled.stated(model, options));
    library::unveil(model, &disputed);
    let mut outcome = result?;
    for (node, _) in disputed.into_iter().filter(|(node, _)| model.node(*node).is_some()) {
        let reason = "the model has a function of this operator's name; which of both counts is up to the runtime";
        outcome.notes.push((model.describe(node), EventKind::Declined, reason.to_string()));
    }
    Ok(outcome)
}

/// A model that has settled, of which nothing is written beside the values yet.
pub(super) struct Settled {
    walk: Walk,
    notes: Vec<(String, EventKind, String)>,
    rounds: usize,
    pub(super) fired: Fired,
}

impl Settled {
    /// Writes what is known beside the values.
    fn stated(mut self, model: &mut Model, options: &Options) -> Result<Outcome, RunError> {
        let names = claims::Names::adopt(model, &self.walk.facts);
        let claimed = claimed(model, &self.walk, options)?;
        self.notes.extend(annotate::annotate(model, &self.walk.facts, claimed.as_ref(), &names));
        Ok(Outcome { facts: self.walk.facts, notes: self.notes, rounds: self.rounds, fired: self.fired })
    }
}

/// The same, without a choice of how.
pub(super) fn run_as_it_is(
    model: &mut Model,
    scope: Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Settled, RunError> {
    watch("inferring shapes");
    let original = if options.assumptions.is_empty() { None } else { Some(model.clone()) };
    let names = if options.assumptions.is_empty() { Vec::new() } else { plain_names(model, model.main()) };
    assume(model, &scope, &options.assumptions)?;
    let growth = options.free_growth.saturating_add((model_bytes as f64 * options.max_growth) as usize);
    let mut walk = Walk::new(Rc::clone(&scope), options.slice_rule, Budget::default());
    walk.unstated = quantization::kept(model, options)?;
    walk.trust_declared = options.trust_declared_shapes;
    walk.replaced = names;
    let mut notes = Vec::new();
    let mut rules = Rules::new(&|name| !skips(options, name), options.exact, options.stop_after);
    let mut fired = Fired::new();
    learn(model, &mut walk)?;
    if let Some(original) = original {
        fits(&original, model, &mut walk, options)?;
    }
    // A claim that is believed may be what does not fit.
    if options.strict && !options.trust_declared_shapes {
        walk.infer_main(model)?;
        works(model, &walk)?;
    }
    if !options.trust_declared_shapes {
        notes.extend(claims::contradictions(model, &walk.facts));
    }
    let rounds = settle(model, &mut walk, options, (&mut rules, &mut fired), growth, &mut |told| match told {
        Told::Doing(what) => watch(what),
        Told::Note(note) => notes.push(note),
    })?;
    if options.fold && !skips(options, functions::BODIES) && model.functions().next().is_some() {
        let saved = functions::fold_bodies(model, &walk.facts, options, &mut rules, &mut fired)?;
        *fired.entry(functions::BODIES).or_default() += saved;
    }
    if options.fold && model.ir_version < 4 && model.ir_version > 0 {
        // Before version 4 an initializer is the default of an input, in every graph.
        let graphs = dead::live_graphs(model);
        let mut initializers = graphs.iter().flat_map(|&graph| model.graph(graph).initializers());
        if initializers.any(|&value| model.value(value).is_constant()) {
            model.ir_version = 4;
        }
    }
    model.separate_names();
    model.verify()?;
    model.verify_names()?;
    Ok(Settled { walk, notes, rounds, fired })
}

/// What there is to tell meanwhile.
pub(super) enum Told {
    /// What is being done.
    Doing(&'static str),
    /// Of a node.
    Note((String, EventKind, String)),
}

/// Infers, folds and cleans up the main graph until nothing changes. Returns how many rounds that took. `growth` is how many bytes the
/// constants may make the model larger by.
pub(super) fn settle(
    model: &mut Model,
    walk: &mut Walk,
    options: &Options,
    (rules, fired): (&mut Rules, &mut Fired),
    growth: usize,
    tell: &mut dyn FnMut(Told),
) -> Result<usize, RunError> {
    let mut kept: FxHashSet<NodeId> = FxHashSet::default();
    let mut decided: FxHashSet<NodeId> = FxHashSet::default();
    let mut rounds = 0;
    loop {
        rounds += 1;
        if rounds > 1 {
            for value in newly_decided(model, &walk.facts, &mut decided) {
                walk.forget(value);
            }
        }
        walk.unstated = quantization::kept(model, options)?;
        walk.infer_main(model)?;
        if rounds == 1 {
            newly_decided(model, &walk.facts, &mut decided);
        }
        walk.events.iter().for_each(|event| rules.untouched.note(event));
        rules.untouched.hold(model, &mut walk.facts);
        for Event { node, kind, reason } in walk.events.drain(..) {
            tell(Told::Note((model.describe(node), kind, reason)));
        }
        if !options.fold || rounds > options.max_rounds {
            break;
        }
        tell(Told::Doing("folding"));
        let folded = fold::fold(model, &walk.facts, growth, &mut kept);
        for (node, bytes) in &folded.declined {
            let reason = format!("its constant result of {bytes} bytes would make the model larger than allowed");
            tell(Told::Note((model.describe(*node), EventKind::Declined, reason)));
        }
        let partly = fold::fold_partly(model, &walk.facts) + fold::fold_containers(model, &walk.facts)?;
        let simplified = simplify::simplify(model, &mut walk.facts, rules, 0, fired)?;
        let merged = match skips(options, "common-subexpression") {
            true => common::Merged::default(),
            false => common::merge(model, &walk.facts)?,
        };
        *fired.entry("common-subexpression").or_default() += merged.nodes;
        let numbered = if skips(options, "equal-content") { 0 } else { contents::number(model, &walk.facts)? };
        *fired.entry("equal-content").or_default() += numbered;
        let inlined = if skips(options, "decided-if") { 0 } else { inline::decided_branches(model, &walk.facts)? };
        *fired.entry("decided-if").or_default() += inlined;
        let unrolled = match skips(options, "decided-loop") {
            true => 0,
            false => inline::decided_loops(model, &walk.facts, &walk.trips)?,
        };
        *fired.entry("decided-loop").or_default() += unrolled;
        let removed = dead::remove(model);
        if folded.nodes == 0
            && partly == 0
            && !simplified
            && numbered == 0
            && inlined + unrolled == 0
            && merged == common::Merged::default()
            && removed == dead::Removed::default()
            && !late(model, &mut walk.facts, rules, fired)?
        {
            // Only when nothing else is left to do: what others would remove is not worth planning.
            let skipped = skips(options, "size-chain") || rules.fuel == 0;
            let saved = if skipped { 0 } else { chains::shorten(model, &walk.facts)? };
            *fired.entry("size-chain").or_default() += saved;
            if saved == 0 {
                break;
            }
            dead::remove(model);
        }
    }
    Ok(rounds)
}

/// The results without content of nodes of the main graph that edits gave nothing but constants to read: what was known of them was
/// known of the operands before. A node is told once.
fn newly_decided(model: &Model, facts: &Facts, decided: &mut FxHashSet<NodeId>) -> Vec<ValueId> {
    let is_known =
        |value: &Option<ValueId>| value.is_none_or(|value| facts.get(value).is_some_and(|fact| fact.data().is_some()));
    let mut found = Vec::new();
    for id in model.graph(model.main()).nodes() {
        let Some(node) = model.node(id).filter(|node| node.inputs().iter().all(is_known)) else { continue };
        if !node.outputs().iter().all(is_known) && decided.insert(id) {
            found.extend(node.outputs().iter().flatten());
        }
    }
    found
}

/// The model without the nodes that nothing reads, which no runtime computes; `None` if all nodes can work.
fn needed(model: &Model, walk: &Walk) -> Option<Model> {
    walk.events.iter().any(|event| event.kind == EventKind::Invalid).then(|| {
        let mut needed = model.clone();
        dead::remove(&mut needed);
        needed
    })
}

/// Checks that no node that every run computes fails in every run.
///
/// # Errors
/// A needed node of the main graph can work at no size. Nodes that read an empty tensor are let pass: runtimes do not look at the
/// rest of the shapes then.
fn works(model: &Model, walk: &Walk) -> Result<(), RunError> {
    let Some(needed) = needed(model, walk) else { return Ok(()) };
    let is_empty = |value: ValueId| {
        let dims = walk.facts.get(value).and_then(Fact::shape);
        dims.is_some_and(|dims| dims.iter().any(|dim| dim.as_const() == Some(0)))
    };
    let always = |event: &&Event| {
        let node = needed.node(event.node).filter(|node| node.graph() == model.main());
        event.kind == EventKind::Invalid
            && node.is_some_and(|node| !node.inputs().iter().flatten().copied().any(is_empty))
    };
    match walk.events.iter().find(always) {
        Some(event) => Err(RunError::Impossible { node: model.describe(event.node), reason: event.reason.clone() }),
        None => Ok(()),
    }
}

/// Checks what is assumed against what the graph needs.
///
/// # Errors
/// No size is left for a symbol, or a node of the main graph that could work cannot any more.
fn fits(original: &Model, model: &Model, walk: &mut Walk, options: &Options) -> Result<(), RunError> {
    walk.infer_main(model)?;
    possible(walk.scope(), &options.assumptions)?;
    let Some(needed) = needed(model, walk) else { return Ok(()) };
    let invalid = |event: &&Event| event.kind == EventKind::Invalid && needed.node(event.node).is_some();
    let mut before = Walk::new(Rc::new(Scope::new()), options.slice_rule, Budget::default());
    before.infer_main(original)?;
    let broken: FxHashSet<NodeId> = before.events.iter().filter(invalid).map(|event| event.node).collect();
    match walk.events.iter().filter(invalid).find(|event| !broken.contains(&event.node)) {
        Some(event) => {
            Err(AssumeError::Misfit { node: model.describe(event.node), reason: event.reason.clone() }.into())
        }
        None => Ok(()),
    }
}

/// Tries the rules that wait until no other has anything left to do, stage after stage until one changes something.
fn late(model: &mut Model, facts: &mut Facts, rules: &mut Rules, fired: &mut Fired) -> Result<bool, Broken> {
    for stage in 1..rules.stages() {
        if simplify::simplify(model, facts, rules, stage, fired)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Infers until what the nodes need of the sizes tells nothing new, and forgets what can now be said more simply.
fn learn(model: &Model, walk: &mut Walk) -> Result<(), RunError> {
    const ROUNDS: usize = 3;
    for _ in 0..ROUNDS {
        walk.infer_main(model)?;
        if !walk.learn(model) {
            break;
        }
        walk.events.clear();
        let is_input = |value| matches!(model.value(value).definition(), Definition::Input(_));
        walk.facts.retain(|value, fact| fact.data().is_some() || is_input(value));
    }
    Ok(())
}

/// Whether a rule or pass is left out.
pub(super) fn skips(options: &Options, rule: &str) -> bool {
    let is_named = |names: &[String]| names.iter().any(|name| name == rule);
    is_named(&options.skip) || (!options.only.is_empty() && !is_named(&options.only))
}

/// What follows when the file's claims are believed where nothing is proved; `None` when there is nothing to fill.
fn claimed(model: &Model, walk: &Walk, options: &Options) -> Result<Option<Facts>, RunError> {
    let complete = |fact: Option<&Fact>| {
        let dims = fact.and_then(Fact::shape);
        dims.is_some_and(|dims| !dims.iter().any(|dim| dim.symbols().into_iter().any(|s| walk.scope().is_fresh(s))))
    };
    let nodes = dead::live_graphs(model).into_iter().flat_map(|graph| model.graph(graph).nodes().collect::<Vec<_>>());
    let mut values = nodes.filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten().copied());
    if !values.any(|value| model.value(value).declared.is_some() && !complete(walk.facts.get(value))) {
        return Ok(None);
    }
    let mut believing = Walk::new(Rc::clone(walk.scope()), options.slice_rule, Budget::default());
    believing.unstated = quantization::kept(model, options)?;
    believing.trust_declared = true;
    believing.replaced.clone_from(&walk.replaced);
    believing.infer_main(model)?;
    Ok(Some(believing.facts))
}
