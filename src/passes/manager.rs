//! Runs everything over a model: what is assumed, the passes over the main graph and over functions, and what is written beside the values.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::assume::{AssumeError, assume, possible};
use super::constant_nodes::{initializers, spell_initializers};
use super::contract::Contract;
use super::driver::{Told, close, noted, settle};
use super::edits::EditCounter;
use super::inline::{calls, functions};
use super::opaque::Hidden;
use super::options::Options;
use super::outcome::{NoRule, Outcome, RunError};
use super::pass::{NodeEvent, Run, Work};
use super::pipeline::chosen;
use super::profile::{PassRun, Profile};
use super::records::records;
use super::{
    annotate, believed, claims, common_subexpressions, dead, follow_inputs, function_bodies, opaque, opset, pipeline,
    quantization, remembered,
};
use crate::clock::Instant;
use crate::dim::{Dim, Scope};
use crate::ir::{Fact, Model, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::ops::{Budget, Event, EventKind, Walk, equal_counts, input_labels};
use crate::tensor::Tensor;

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
        exists(name)?;
    }
    // In a model without outputs every node is dead, but runtimes load no empty graph. So types are written and nothing is removed.
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
    let converted = match options.opset {
        Some(to) => {
            watch("converting the operator set");
            opset::convert(model, to, options)?.map(|from| (from, to))
        }
        None => None,
    };
    if options.strict
        && let Some((place, reason)) = opaque::nonstandard_node(model)
    {
        return Err(RunError::Contradiction { place, reason });
    }
    let hidden = Hidden::in_model(model);
    let edits = EditCounter::new(options.stop_after, options.stop_after < usize::MAX || options.verify_each)
        .recording(options.detailed);
    let mut profile = Profile::new(options.measure_memory);
    let folded = if options.fold && !hidden.are_disputed() && model.functions().next().is_some() {
        fold_with_functions(model, &scope, options, model_bytes, edits, &mut profile, watch)
    } else {
        model.keeps_functions |= hidden.are_disputed();
        fold(model, scope, options, model_bytes, edits, &mut profile, watch)
    };
    let begin = Instant::now();
    let stated = folded.and_then(|settled| settled.stated(model, options));
    profile.note("write-shapes", begin, 0);
    let notes = hidden.show(model);
    let mut outcome = stated?;
    outcome.notes.extend(notes);
    outcome.opset = converted;
    outcome.passes = profile.into_passes();
    Ok(outcome)
}

/// Checks that a rule or a pass has this name.
///
/// # Errors
/// None has.
fn exists(name: &str) -> Result<(), NoRule> {
    let names = || pipeline::names().chain(records().map(|record| record.name));
    match names().any(|known| known == name) {
        true => Ok(()),
        false => Err(NoRule::among(name, names())),
    }
}

/// A model that no pass changes any more, before types are written into it.
struct Settled {
    walk: Walk,
    notes: Vec<NodeEvent>,
    rounds: usize,
    edits: EditCounter,
    ends: Vec<(&'static str, usize)>,
    /// The nodes that cannot work.
    broken: Vec<NodeId>,
    /// Expressions that are 0 in every run: differences between the element counts of views and their operands in the model as read.
    zeros: Vec<Dim>,
}

impl Settled {
    /// Writes what is known beside the values.
    fn stated(mut self, model: &mut Model, options: &Options) -> Result<Outcome, RunError> {
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

/// Folds a model with functions, several times if need be to tell how many calls to inline.
fn fold_with_functions(
    model: &mut Model,
    scope: &Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    edits: EditCounter,
    profile: &mut Profile,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Settled, RunError> {
    let begin = Instant::now();
    let settled = functions::fold(model, edits, options, &mut |model, edits, is_rehearsal| {
        // What a rehearsal learns of symbols must not be known in the run whose result is kept.
        let scope = if is_rehearsal { Rc::new(Scope::new()) } else { Rc::clone(scope) };
        fold(model, scope, options, model_bytes, edits, profile, watch)
    })?;
    profile.note_around(calls::NAME, begin, 0.0, settled.edits.made_by(calls::NAME));
    Ok(settled)
}

/// The largest number of times that the passes run because the remaining nodes imply more about dims than the nodes before.
const MOST_LESSONS: usize = 3;

/// Folds a model, without inlining calls. Only passes edit the model, and each edit is counted first; afterwards only spellings change
/// ([`spell`]).
fn fold(
    model: &mut Model,
    scope: Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    edits: EditCounter,
    profile: &mut Profile,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Settled, RunError> {
    watch("inferring shapes");
    let mut notes = Vec::new();
    let mut run = Run::new(options, edits);
    merge_first(model, &mut run)?;
    let begin = Instant::now();
    let mut walk = premises(model, &scope, options)?;
    if !options.trust_declared_shapes {
        notes.extend(claims::contradictions(model, &walk.facts, true));
    }
    let zeros = equal_counts(model, &walk.facts, &dead::live_nodes(model));
    run.profile.note("premises", begin, 0);
    let (passes, closing) = (chosen(pipeline::PASSES, &run), chosen(pipeline::CLOSING, &run));
    let growth = options.free_growth.saturating_add((model_bytes as f64 * options.max_growth) as usize);
    let mut tell = |told| match told {
        Told::Doing(what) => watch(what),
        Told::Note(note) => notes.push(note),
    };
    let given = initializers(model);
    let (mut rounds, mut broken) = (0, Vec::new());
    for lesson in 1..=MOST_LESSONS {
        let mut work = Work::new(model, &mut walk, &mut run, growth);
        rounds += settle(&mut work, &pipeline::INFER, &passes, &mut tell)?;
        broken = work.untouched.broken();
        if lesson == MOST_LESSONS || !remembered::learn_again(work.model, work.walk) {
            work.given.clone_from(&given);
            close(&mut work, &pipeline::INFER, &closing, &mut tell)?;
            break;
        }
    }
    let mut calls: Vec<NodeId> = walk.failing_calls.iter().copied().collect();
    calls.sort_unstable();
    broken.extend(calls);
    if options.fold && !run.skips(function_bodies::NAME) && model.functions().next().is_some() {
        function_bodies::fold_bodies(model, &walk.facts, &mut run, &pipeline::INFER, &passes)?;
    }
    if options.fold && !run.skips(dead::NAME) {
        dead::remove_imports(model, &mut run.edits);
    }
    if options.fold && options.stop_after > 0 {
        spell(model, &given, run.edits.made() > 0)?;
    }
    model.verify()?;
    model.verify_names()?;
    profile.add_all(run.profile);
    Ok(Settled { walk, notes, rounds, edits: run.edits, ends: run.ends, broken, zeros })
}

/// Merges what is equal in the file as it is. A strict reader's message names the node that the file has, so nothing is merged for one.
fn merge_first(model: &mut Model, run: &mut Run) -> Result<(), RunError> {
    if !run.options.fold || run.options.strict || run.skips(common_subexpressions::NAME) {
        return Ok(());
    }
    let begun = (Instant::now(), run.edits.made());
    let merged = common_subexpressions::merge_first(model, run.options.exact, &mut run.edits);
    noted(model, run, common_subexpressions::NAME, begun, merged.map_err(RunError::from))
}

/// Spells the edited model as a file can hold it: replaces new initializers (those not in `given`) by Constant nodes where the format has none,
/// names the nodes that have no name, and changes names that a runtime may confuse. No computation changes, so this counts no edit.
fn spell(model: &mut Model, given: &FxHashSet<ValueId>, has_edits: bool) -> Result<(), RunError> {
    if (1..4).contains(&model.ir_version) {
        // A newer version would make defaults of the weights, which callers may override: runtimes take those of older versions as constants.
        for graph in dead::live_graphs(model) {
            spell_initializers(model, graph, given)?;
        }
    }
    model.name_nodes();
    model.name_constants();
    if has_edits {
        model.separate_names();
    }
    Ok(())
}

/// Makes the assumptions, and learns of the symbols what every run that gives a result needs of them.
///
/// # Errors
/// What is assumed cannot be; no run can succeed, if that is asked for.
fn premises(model: &mut Model, scope: &Rc<Scope>, options: &Options) -> Result<Walk, RunError> {
    let original = if options.assumptions.is_empty() { None } else { Some(model.clone()) };
    let names = if options.assumptions.is_empty() { Vec::new() } else { input_labels(model, model.main()) };
    assume(model, scope, &options.assumptions, options.trust_input_names)?;
    let mut walk = Walk::new(Rc::clone(scope), options.slice_rule, Budget::for_payload(payload(model)));
    walk.unstated = quantization::kept(model, options)?;
    walk.trust_declared = options.trust_declared_shapes;
    walk.replaced = names;
    remembered::learn(model, &mut walk)?;
    if let Some(original) = original {
        follow_inputs::follow_inputs((&original, model), &walk, options)?;
        fits(&original, model, &mut walk, options)?;
    }
    // With trusted claims a node may seem unable to work only because a claim is false, so the model is not refused.
    if options.strict && !options.trust_declared_shapes {
        walk.infer_main(model)?;
        conforms(model, &walk, options)?;
    }
    Ok(walk)
}

/// The bytes of all initializers, those in other files included.
fn payload(model: &Model) -> usize {
    let values = model.graphs().flat_map(|graph| model.graph(graph).initializers());
    let bytes = values.filter_map(|&value| model.value(value).tensor()).map(Tensor::byte_len);
    bytes.fold(0, usize::saturating_add)
}

/// The model without the nodes that nothing reads, which no runtime computes; `None` if all nodes can work.
fn needed(model: &Model, walk: &Walk) -> Option<Model> {
    walk.events.iter().any(|event| event.kind == EventKind::Invalid).then(|| {
        let mut needed = model.clone();
        dead::remove(&mut needed, &mut EditCounter::unlimited());
        needed
    })
}

/// Checks that no node that every run computes fails in every run.
///
/// # Errors
/// A needed node of the main graph can work at no size.
fn works(model: &Model, walk: &Walk) -> Result<(), RunError> {
    match hopeless(model, walk) {
        Some((node, reason)) => Err(RunError::Impossible { node, reason }),
        None => Ok(()),
    }
}

/// What a strict reader of the standard refuses: a node that cannot work, a type that is declared and false, and a node that cannot work
/// on what is declared, or on the defaults of inputs. The standard's own shape inference takes both as given, too.
///
/// # Errors
/// The first of these.
fn conforms(model: &Model, walk: &Walk, options: &Options) -> Result<(), RunError> {
    works(model, walk)?;
    let contradiction = |(place, reason)| RunError::Contradiction { place, reason };
    if let Some(input) = claims::unlike_their_defaults(model).next() {
        return Err(contradiction(input));
    }
    let mut believing = Walk::new(Rc::clone(walk.scope()), options.slice_rule, Budget::for_payload(payload(model)));
    believing.unstated.clone_from(&walk.unstated);
    believing.trust_declared = true;
    believing.replaced.clone_from(&walk.replaced);
    for &input in model.graph(model.main()).inputs() {
        if let Some(default) = model.value(input).tensor() {
            believing.facts.set(input, Fact::constant(default.clone()));
        }
    }
    believing.infer_main(model)?;
    for facts in [&walk.facts, &believing.facts] {
        if let Some((place, _, reason)) = claims::contradictions(model, facts, false).into_iter().next() {
            return Err(contradiction((place, reason)));
        }
    }
    hopeless(model, &believing).map_or(Ok(()), |found| Err(contradiction(found)))
}

/// A needed node of the main graph that can work at no size, and why. Nodes that read an empty tensor are let pass: runtimes do not look at
/// the rest of the shapes then; and so are those that ONNX Runtime computes although they break a rule.
fn hopeless(model: &Model, walk: &Walk) -> Option<(String, String)> {
    let needed = needed(model, walk)?;
    let is_empty = |value: ValueId| {
        let dims = walk.facts.get(value).and_then(Fact::shape);
        dims.is_some_and(|dims| dims.iter().any(|dim| dim.as_const() == Some(0)))
    };
    // An empty operand of sizes or scales is one that is absent, and excuses nothing.
    let reads_empty = |node: &Node| {
        let inference = traits_of(model, node).shape_inference;
        let data = inference.map_or(usize::MAX, |inference| inference.contents_from);
        node.inputs().iter().take(data).flatten().copied().any(is_empty)
    };
    let always = |event: &&Event| {
        let node = needed.node(event.node).filter(|node| node.graph() == model.main());
        event.kind == EventKind::Invalid
            && !walk.lax.contains(&event.node)
            && node.is_some_and(|node| !reads_empty(node))
    };
    let event = walk.events.iter().find(always)?;
    Some((model.describe(event.node), event.reason.clone()))
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
