//! Facts that hold before the passes begin: the user's assumptions, and the bounds of sizes that every successful run needs.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::assume::{AssumeError, assume, possible};
use super::edits::EditCounter;
use super::options::Options;
use super::outcome::RunError;
use super::{claims, dead, follow_inputs, quantization, remembered};
use crate::dim::Scope;
use crate::ir::{Fact, Model, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::ops::{Budget, Event, EventKind, Walk, input_labels};
use crate::tensor::Tensor;

/// Applies the assumptions, and adds the relations between symbols that every successful run implies.
///
/// # Errors
/// The assumptions contradict the model, or, under `strict`, no run of the model can succeed.
pub(super) fn premises(model: &mut Model, scope: &Rc<Scope>, options: &Options) -> Result<Walk, RunError> {
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
    // With trusted claims, a false claim may make a node invalid, so the model is not rejected.
    if options.strict && !options.trust_declared_shapes {
        walk.infer_main(model)?;
        conforms(model, &walk, options)?;
    }
    Ok(walk)
}

/// Returns the bytes of all initializers, including external data.
pub(super) fn payload(model: &Model) -> usize {
    let values = model.graphs().flat_map(|graph| model.graph(graph).initializers());
    let bytes = values.filter_map(|&value| model.value(value).tensor()).map(Tensor::byte_len);
    bytes.fold(0, usize::saturating_add)
}

/// Returns the model without dead nodes, which no runtime computes; `None` if all nodes are valid.
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
/// A needed node of the main graph is invalid at all sizes.
fn works(model: &Model, walk: &Walk) -> Result<(), RunError> {
    match hopeless(model, walk) {
        Some((node, reason)) => Err(RunError::Impossible { node, reason }),
        None => Ok(()),
    }
}

/// Checks what a strict reader of the standard rejects: an invalid node, a false declared type, and a node that is invalid given the declarations or
/// the defaults of inputs. The standard's own shape inference trusts both, too.
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

/// Returns a needed node of the main graph that is invalid at all sizes, with the reason. Ignores nodes that read an empty tensor, for which runtimes
/// do not check the other shapes. Also ignores nodes that ONNX Runtime computes although they break a rule.
fn hopeless(model: &Model, walk: &Walk) -> Option<(String, String)> {
    let needed = needed(model, walk)?;
    let is_empty = |value: ValueId| {
        let dims = walk.facts.get(value).and_then(Fact::shape);
        dims.is_some_and(|dims| dims.iter().any(|dim| dim.as_const() == Some(0)))
    };
    // An empty operand of sizes or scales counts as absent, and excuses nothing.
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

/// Checks the assumptions against the needs of the graph.
///
/// # Errors
/// A symbol has no possible size, or a node of the main graph becomes invalid.
fn fits(original: &Model, model: &Model, walk: &mut Walk, options: &Options) -> Result<(), RunError> {
    walk.infer_main(model)?;
    possible(walk.scope(), &options.assumptions)?;
    let Some(needed) = needed(model, walk) else { return Ok(()) };
    let invalid = |event: &&Event| event.kind == EventKind::Invalid && needed.node(event.node).is_some();
    let mut before = Walk::new(Rc::new(Scope::metered(walk.scope().meter())), options.slice_rule, Budget::default());
    before.infer_main(original)?;
    let broken: FxHashSet<NodeId> = before.events.iter().filter(invalid).map(|event| event.node).collect();
    match walk.events.iter().filter(invalid).find(|event| !broken.contains(&event.node)) {
        Some(event) => {
            Err(AssumeError::Misfit { node: model.describe(event.node), reason: event.reason.clone() }.into())
        }
        None => Ok(()),
    }
}
