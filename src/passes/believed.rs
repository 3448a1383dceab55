//! Infers facts under the file's claims where nothing is proved: sizes to fill in, and contradictory claims.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::dead::live_graphs;
use super::options::Options;
use super::outcome::RunError;
use super::quantization;
use super::rows::{always_runs, collects_rows, read_for_rows};
use super::untouched::computed_from;
use crate::dim::Scope;
use crate::ir::{Fact, Facts, Model, NodeId, ValueId};
use crate::ops::{Budget, EventKind, Walk};

/// The consequences of the claims.
#[derive(Default)]
pub(super) struct Believed {
    /// The facts under the claims; `None` if no size is missing.
    pub(super) facts: Option<Facts>,
    /// Values whose claims must not be written. A valid node that is computed from them is invalid if all claims hold, so a claim is false or the
    /// node never runs. A runtime that knew fewer shapes may reject the model once shapes are written and constants are folded.
    pub(super) contested: FxHashSet<ValueId>,
}

/// Trusts the claims of a model whose initializers have `payload` bytes.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn believed(
    model: &Model,
    payload: usize,
    walk: &Walk,
    options: &Options,
    broken: &[NodeId],
) -> Result<Believed, RunError> {
    let mut believed = Believed::default();
    let graphs = live_graphs(model);
    let nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let is_open = |&value: &ValueId| model.value(value).declared.is_some() && !is_complete(walk, value);
    if nodes.flat_map(|node| node.outputs().iter().flatten()).any(is_open) {
        let mut believing = believing(model, payload, walk, Rc::clone(walk.scope()), options)?;
        believing.infer_main(model)?;
        believed.contested = contested(model, &believing, broken);
        believed.facts = Some(believing.facts);
    }
    let bodies = graphs.iter().filter(|&&graph| graph != model.main());
    let says_shape = |value: &ValueId| model.value(*value).declared.as_ref().is_some_and(|ty| ty.shape().is_some());
    let given = bodies.flat_map(|&body| model.graph(body).inputs()).filter(|&value| says_shape(value));
    if given.copied().any(|value| is_open(&value)) {
        // Runtimes trust the declared shapes of subgraph inputs. This walk copies the scope, so its names and bounds affect nothing else.
        let mut believing = believing(model, payload, walk, Rc::new(walk.scope().copied()), options)?;
        believing.trust_body_inputs = true;
        believing.infer_main(model)?;
        believed.contested.extend(contested(model, &believing, broken));
    }
    Ok(believed)
}

/// Returns `true` if the whole shape of a value is known in input sizes.
fn is_complete(walk: &Walk, value: ValueId) -> bool {
    let dims = walk.facts.get(value).and_then(Fact::shape);
    dims.is_some_and(|dims| !dims.iter().any(|dim| dim.has_symbol(|symbol| walk.scope().is_fresh(symbol))))
}

fn believing(
    model: &Model,
    payload: usize,
    walk: &Walk,
    scope: Rc<Scope>,
    options: &Options,
) -> Result<Walk, RunError> {
    let mut believing = Walk::new(scope, options.slice_rule, Budget::for_payload(payload));
    believing.unstated = quantization::kept(model, options)?;
    believing.trust_declared = true;
    believing.replaced.clone_from(&walk.replaced);
    Ok(believing)
}

/// Returns the results and ancestors of nodes that are invalid under the claims, although they are not `broken`. Omits values whose claims determine
/// the shape that ONNX Runtime gives to rows of no iteration.
fn contested(model: &Model, believing: &Walk, broken: &[NodeId]) -> FxHashSet<ValueId> {
    let failing = believing.events.iter().filter(|event| event.kind == EventKind::Invalid).map(|event| event.node);
    let mut failing: Vec<NodeId> = failing.filter(|node| !broken.contains(node)).collect();
    failing.sort_unstable();
    failing.dedup();
    let mut found = computed_from(model, &failing);
    found.extend(failing.iter().filter_map(|&id| model.node(id)).flat_map(|node| node.outputs().iter().flatten()));
    if !found.is_empty() {
        for graph in live_graphs(model) {
            let nodes = model.graph(graph).nodes().filter_map(|id| model.node(id));
            let loops = nodes.filter(|node| collects_rows(model, node) && !always_runs(&believing.facts, node));
            for value in loops.flat_map(|node| read_for_rows(model, node)) {
                found.remove(&value);
            }
        }
    }
    found
}
