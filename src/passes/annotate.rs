//! Writes what is known of each value's type beside it.
//!
//! What is proved comes first; where the proof leaves a size open, what the file claims of it stands, or what follows from
//! such claims; the types of graph inputs are never touched.

use crate::dim::{Dim, Scope};
use crate::ir::{
    DeclaredDim, DeclaredType, Definition, DimClaim, Extra, Fact, Facts, Model, TensorType, Type, ValueId,
};

use super::dead::live_graphs;

/// States the type of every node result and graph output of the main graph and its subgraphs.
pub fn annotate(model: &mut Model, proved: &Facts, claimed: Option<&Facts>) {
    let scope = proved.scope().clone();
    for graph in live_graphs(model) {
        let mut values: Vec<ValueId> = Vec::new();
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            values.extend(node.outputs().iter().flatten());
        }
        values.extend(model.graph(graph).outputs());
        for value in values {
            let place = model.value(value);
            if matches!(place.definition(), Definition::Input(_)) {
                continue;
            }
            let declared = place.declared.clone();
            let fact = proved.get(value).cloned().unwrap_or_default();
            let claim = claimed.and_then(|facts| facts.get(value));
            if let Some(ty) = merged(&scope, &fact, claim, declared.as_ref()) {
                model.declare(value, ty);
            }
        }
    }
}

/// The type to write, from what is proved, what follows from claims, and what the file declares.
fn merged(scope: &Scope, fact: &Fact, claim: Option<&Fact>, declared: Option<&DeclaredType>) -> Option<DeclaredType> {
    match fact.ty.as_ref().or_else(|| claim.and_then(|claim| claim.ty.as_ref())) {
        None => declared.cloned(),
        Some(Type::Tensor(tensor)) => {
            let claim = claim.and_then(|claim| claim.as_tensor());
            let (declared_dtype, declared_shape, extra) = match declared {
                Some(DeclaredType::Tensor { dtype, shape, extra }) => (*dtype, shape.as_ref(), extra.clone()),
                _ => (0, None, Extra::new()),
            };
            let dtype =
                tensor.dtype.or(claim.and_then(|claim| claim.dtype)).map_or(declared_dtype, |dtype| dtype.onnx());
            if dtype == 0 && declared.is_some() {
                return declared.cloned();
            }
            let shape = tensor.shape.as_ref().or_else(|| claim.and_then(|claim| claim.shape.as_ref()));
            let shape = match shape {
                None => declared_shape.cloned(),
                Some(dims) => {
                    let claimed =
                        claim.and_then(|claim| claim.shape.as_ref()).filter(|claim| claim.len() == dims.len());
                    let declared = declared_shape.filter(|declared| declared.len() == dims.len());
                    let dim = |(i, dim): (usize, &Dim)| {
                        let claim = claimed.and_then(|claim| claim.get(i));
                        let declared = declared.and_then(|declared| declared.get(i));
                        written(scope, dim, claim, declared)
                    };
                    Some(dims.iter().enumerate().map(dim).collect())
                }
            };
            if dtype == 0 {
                return None;
            }
            Some(DeclaredType::Tensor { dtype, shape, extra })
        }
        // What a file says of sequences, optionals and maps stays unless it says nothing.
        Some(ty) => declared.cloned().or_else(|| type_of(scope, ty)),
    }
}

fn written(scope: &Scope, proved: &Dim, claim: Option<&Dim>, declared: Option<&DeclaredDim>) -> DeclaredDim {
    let extra = declared.map_or_else(Extra::new, |declared| declared.extra.clone());
    let vague = |dim: &Dim| dim.symbols().into_iter().any(|symbol| scope.is_fresh(symbol));
    let said = declared.map(|declared| &declared.claim).filter(|claim| **claim != DimClaim::Unknown);
    let claim = match (said, claim) {
        _ if !vague(proved) => dim_claim(scope, proved),
        (Some(said), _) => said.clone(),
        (None, Some(claim)) if !vague(claim) => dim_claim(scope, claim),
        _ => dim_claim(scope, proved),
    };
    DeclaredDim { claim, extra }
}

fn dim_claim(scope: &Scope, dim: &Dim) -> DimClaim {
    match dim.as_const() {
        Some(size) if size >= 0 => DimClaim::Value(size),
        Some(_) => DimClaim::Unknown,
        None => DimClaim::Param(scope.format(dim)),
    }
}

fn type_of(scope: &Scope, ty: &Type) -> Option<DeclaredType> {
    let tensor = |tensor: &TensorType| {
        let dims = |dims: &Vec<Dim>| {
            dims.iter().map(|dim| DeclaredDim { claim: dim_claim(scope, dim), extra: Extra::new() }).collect()
        };
        Some((tensor.dtype?.onnx(), tensor.shape.as_ref().map(dims)))
    };
    let inner = |ty: &Option<Box<Type>>| ty.as_ref().and_then(|ty| type_of(scope, ty)).map(Box::new);
    let extra = Extra::new();
    Some(match ty {
        Type::Tensor(ty) => {
            let (dtype, shape) = tensor(ty)?;
            DeclaredType::Tensor { dtype, shape, extra }
        }
        Type::SparseTensor(ty) => {
            let (dtype, shape) = tensor(ty)?;
            DeclaredType::SparseTensor { dtype, shape, extra }
        }
        Type::Sequence(elem) => DeclaredType::Sequence { elem: Some(inner(elem)?), extra },
        Type::Optional(elem) => DeclaredType::Optional { elem: Some(inner(elem)?), extra },
        Type::Map(key, value) => DeclaredType::Map { key: key.onnx(), value: Some(inner(value)?), extra },
    })
}
