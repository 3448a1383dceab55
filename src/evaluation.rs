//! Evaluation of a whole model on given inputs, at a user's request.

use std::collections::BTreeMap;

use crate::ir::{Data, DeclaredType, DimClaim, Model, ValueId};
use crate::ops::{Budget, Decline, evaluate_graph};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// The most bytes of one result, and of all. Evaluation is an explicit request, so the limits are much higher than those of folding. A file
/// still cannot allocate all memory.
const NODE_BYTES: usize = gibibytes(4);
const TOTAL_BYTES: usize = gibibytes(16);
/// The most elementary operations of one node, and of all.
const NODE_WORK: u64 = 10_000_000_000_000;
const TOTAL_WORK: u64 = 100_000_000_000_000;

/// Returns the bytes, or the largest addressable number if that is less.
const fn gibibytes(count: u64) -> usize {
    let bytes = count << 30;
    if bytes > isize::MAX as u64 { isize::MAX as usize } else { bytes as usize }
}

/// The reason for which a model was not evaluated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvaluateError {
    #[error("the model has no input named '{name}'; its inputs are {known}")]
    NoInput { name: String, known: String },
    #[error("the value of input '{0}' is missing")]
    Missing(String),
    #[error("input '{name}' is {given}, but the model declares {declared}")]
    Misfit { name: String, given: String, declared: String },
    #[error("dimension '{dim}' is {first} in input '{earlier}' and {second} in input '{name}'")]
    Sizes { dim: String, first: usize, earlier: String, second: usize, name: String },
    #[error("the model cannot be evaluated: {0}")]
    Declined(#[from] Decline),
}

/// Computes every output of the main graph, in its order, from the inputs by name.
pub(crate) fn evaluate(
    model: &Model,
    rule: SliceRule,
    given: BTreeMap<String, Data>,
) -> Result<Vec<(String, Data)>, EvaluateError> {
    let (inputs, _) = bind(model, given)?;
    let budget = Budget::new(NODE_BYTES, TOTAL_BYTES, NODE_WORK, TOTAL_WORK);
    let results = evaluate_graph(model, model.main(), inputs, &budget, rule)?;
    let outputs = model.graph(model.main()).outputs();
    Ok(outputs.iter().map(|&value| model.value(value).name.to_string()).zip(results).collect())
}

/// Returns values by name as the inputs of the main graph in order, and the sizes of the names in declared shapes. Inputs with a default
/// may be omitted.
pub(crate) fn bind(
    model: &Model,
    mut given: BTreeMap<String, Data>,
) -> Result<(Vec<Data>, BTreeMap<String, usize>), EvaluateError> {
    let graph = model.graph(model.main());
    let mut inputs = Vec::with_capacity(graph.inputs().len());
    let mut sizes = BTreeMap::new();
    for &value in graph.inputs() {
        let name = &model.value(value).name;
        let default = || model.value(value).tensor().cloned().map(Data::Tensor);
        let data =
            given.remove(name.as_str()).or_else(default).ok_or_else(|| EvaluateError::Missing(name.to_string()))?;
        if let Data::Tensor(tensor) = &data {
            check(model, value, tensor, &mut sizes)?;
        }
        inputs.push(data);
    }
    if let Some(name) = given.into_keys().next() {
        let known: Vec<String> = graph.inputs().iter().map(|&value| format!("'{}'", model.value(value).name)).collect();
        return Err(EvaluateError::NoInput { name, known: known.join(", ") });
    }
    Ok((inputs, sizes.into_iter().map(|(name, (size, _))| (name, size)).collect()))
}

/// Checks a tensor against the declaration of its input, and that equal names have equal sizes.
fn check(
    model: &Model,
    value: ValueId,
    tensor: &Tensor,
    sizes: &mut BTreeMap<String, (usize, String)>,
) -> Result<(), EvaluateError> {
    let name = &model.value(value).name;
    let Some(DeclaredType::Tensor { dtype, shape, .. }) = &model.value(value).declared else { return Ok(()) };
    let misfit = |declared: String| EvaluateError::Misfit {
        name: name.to_string(),
        given: format!("{}{:?}", tensor.dtype().name(), tensor.shape()),
        declared,
    };
    if let Some(dtype) = DType::from_onnx(*dtype).filter(|&dtype| dtype != tensor.dtype()) {
        return Err(misfit(format!("elements of type {}", dtype.name())));
    }
    let Some(dims) = shape else { return Ok(()) };
    let claims = || {
        let shown = dims.iter().map(|dim| dim.claim.to_string());
        misfit(format!("the shape [{}]", shown.collect::<Vec<_>>().join(", ")))
    };
    if dims.len() != tensor.rank() {
        return Err(claims());
    }
    for (dim, &size) in dims.iter().zip(tensor.shape()) {
        if matches!(dim.claim, DimClaim::Value(value) if usize::try_from(value) != Ok(size)) {
            return Err(claims());
        }
        let Some(symbol) = dim.claim.name() else { continue };
        let (first, earlier) = sizes.entry(symbol.to_string()).or_insert_with(|| (size, name.to_string()));
        if *first != size {
            let (dim, first, earlier) = (symbol.to_string(), *first, earlier.clone());
            return Err(EvaluateError::Sizes { dim, first, earlier, second: size, name: name.to_string() });
        }
    }
    Ok(())
}
