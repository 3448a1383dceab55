//! What the file declares of a value, as facts: types of inputs, and initializers.

use crate::dim::{Dim, Scope, is_identifier};
use crate::ir::{DeclaredType, DimClaim, Fact, GraphId, Model, TensorType, Type, ValueId};
use crate::tensor::{DType, Tensor};

/// The names that stand alone as a dimension of some graph input.
pub fn plain_names(model: &Model, graph: GraphId) -> Vec<String> {
    let declared = model.graph(graph).inputs().iter().filter_map(|&value| model.value(value).declared.as_ref());
    let dims = declared.filter_map(DeclaredType::shape).flatten();
    let names = dims.filter_map(|dim| dim.claim.name()).filter(|name| is_identifier(name));
    let mut names: Vec<String> = names.map(str::to_string).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The fact a declared type states when it is believed. A `dim_param` is read as an expression only if `is_symbol` says that
/// each name in it is a dimension of its own; any other text is one opaque symbol.
pub fn declared_fact(scope: &Scope, ty: &DeclaredType, is_symbol: &dyn Fn(String) -> bool) -> Fact {
    declared_type(scope, ty, is_symbol).map_or_else(Fact::unknown, Fact::of)
}

/// What holds of an input whether a caller gives it or leaves its default: of what the file declares, as much as the default fits.
pub(super) fn with_default(scope: &Scope, declared: Fact, default: &Tensor) -> Fact {
    let Some(tensor) = declared.as_tensor() else { return declared };
    let of_default = TensorType { dtype: Some(default.dtype()), shape: None };
    if tensor.dtype.is_some_and(|dtype| dtype != default.dtype()) {
        return Fact::unknown();
    }
    let Some(dims) = &tensor.shape else { return declared };
    if dims.len() != default.rank() {
        return Fact::of(Type::Tensor(of_default));
    }
    let agreed = dims.iter().zip(default.shape()).map(|(dim, &size)| match dim.as_const() {
        Some(claimed) if i64::try_from(size) != Ok(claimed) => scope.fresh_dim("dim"),
        _ => dim.clone(),
    });
    Fact::of(Type::Tensor(TensorType { shape: Some(agreed.collect()), ..of_default }))
}

fn declared_type(scope: &Scope, ty: &DeclaredType, is_symbol: &dyn Fn(String) -> bool) -> Option<Type> {
    let tensor = |dtype: i32, shape: &Option<Vec<crate::ir::DeclaredDim>>| TensorType {
        dtype: DType::from_onnx(dtype),
        shape: shape.as_ref().map(|dims| dims.iter().map(|dim| declared_dim(scope, &dim.claim, is_symbol)).collect()),
    };
    let inner =
        |ty: &Option<Box<DeclaredType>>| ty.as_ref().and_then(|ty| declared_type(scope, ty, is_symbol)).map(Box::new);
    Some(match ty {
        DeclaredType::Tensor { dtype, shape, .. } => Type::Tensor(tensor(*dtype, shape)),
        DeclaredType::SparseTensor { dtype, shape, .. } => Type::SparseTensor(tensor(*dtype, shape)),
        DeclaredType::Sequence { elem, .. } => Type::Sequence(inner(elem)),
        DeclaredType::Optional { elem, .. } => Type::Optional(inner(elem)),
        DeclaredType::Map { key, value, .. } => Type::Map(DType::from_onnx(*key)?, inner(value)),
        DeclaredType::Opaque(_) => return None,
    })
}

fn declared_dim(scope: &Scope, claim: &DimClaim, is_symbol: &dyn Fn(String) -> bool) -> Dim {
    match (claim, claim.name()) {
        (DimClaim::Value(size), _) => Dim::constant(*size),
        (_, None) => scope.fresh_dim("dim"),
        (_, Some(text)) => {
            let parsed = scope.parse_known(text, &|name| is_symbol(name.to_string()));
            parsed.filter(|_| !is_identifier(text)).unwrap_or_else(|| Dim::symbol(scope.named(text)))
        }
    }
}

pub(super) fn initializer_fact(scope: &Scope, model: &Model, value: ValueId) -> Fact {
    let place = model.value(value);
    if let Some(tensor) = place.constant_tensor() {
        return Fact::constant(tensor.clone());
    }
    // Content a caller or a training step may change: the type still holds.
    match place.tensor() {
        Some(tensor) => Fact { content: None, ..Fact::constant(tensor.clone()) },
        None => place.declared.as_ref().map_or_else(Fact::unknown, |ty| declared_fact(scope, ty, &|_| false)),
    }
}
