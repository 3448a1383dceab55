//! Outputs whose sizes depend on inputs that the user has changed.

use std::rc::Rc;

use super::contract::Contract;
use super::options::Options;
use super::outcome::RunError;
use super::remembered;
use crate::dim::{Dim, Scope};
use crate::ir::{DeclaredDim, DeclaredType, Fact, Model, ValueId};
use crate::ops::{Budget, Walk};

/// Opens the dims of outputs whose proved size differs between the original model and the model with the user's sizes, so that the proved
/// size is written. Labels that claim nothing are opened in the same way.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn follow_inputs(
    (original, model): (&Model, &mut Model),
    walk: &Walk,
    options: &Options,
) -> Result<(), RunError> {
    let declared = |model: &Model, value: ValueId| model.value(value).declared.clone();
    let inputs = original.graph(original.main()).inputs();
    if inputs.iter().all(|&input| declared(original, input) == declared(model, input)) {
        return Ok(());
    }
    let contract = Contract::of_labels(original);
    let is_free = |dim: &DeclaredDim| dim.claim.name().is_some_and(|label| contract.is_free(walk.scope(), label));
    let shape_of = |value: ValueId| declared(original, value)?.shape().cloned();
    let outputs = model.graph(model.main()).outputs().iter();
    let labelled: Vec<(ValueId, Vec<DeclaredDim>)> = outputs
        .filter_map(|&output| Some((output, shape_of(output)?)))
        .filter(|(_, dims)| dims.iter().any(is_free))
        .collect();
    if labelled.is_empty() {
        return Ok(());
    }
    let mut before = Walk::new(Rc::new(Scope::metered(walk.scope().meter())), options.slice_rule, Budget::default());
    remembered::learn(original, &mut before)?;
    for (output, dims) in labelled {
        let sizes = |walk: &Walk| -> Vec<Option<String>> {
            let shape = walk.facts.get(output).and_then(Fact::shape).unwrap_or_default();
            let is_decided = |dim: &Dim| !dim.has_symbol(|symbol| walk.scope().is_fresh(symbol));
            shape.iter().map(|dim| is_decided(dim).then(|| walk.scope().format(dim))).collect()
        };
        let (before, after) = (sizes(&before), sizes(walk));
        let Some(mut ty) = declared(model, output) else { continue };
        if let DeclaredType::Tensor { shape, .. } = &mut ty {
            let shape = shape.get_or_insert_with(|| vec![DeclaredDim::default(); dims.len()]);
            for (axis, (dim, own)) in shape.iter_mut().zip(dims).enumerate().filter(|(_, (_, own))| is_free(own)) {
                *dim = if before.get(axis) == after.get(axis) { own } else { DeclaredDim::default() };
            }
            model.declare(output, ty);
        }
    }
    Ok(())
}
