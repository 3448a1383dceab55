//! Facts from the file's declarations: types of inputs, and initializers.
//!
//! The label of a dim (`dim_param`) is an opaque name. Exporters write `past_sequence_length + 1` on the mask of a
//! step with any number of tokens, and runtimes do not compare labels. So equal labels of inputs denote equal dims,
//! but `n + 1` is unrelated to `n`. Labels that parse as [relations](label_relations) between inputs hold only if the
//! user trusts them.

use crate::dim::{Dim, Scope, is_word};
use crate::ir::{DeclaredType, DimClaim, Fact, GraphId, Model, TensorType, Type, ValueId};
use crate::sort;
use crate::tensor::{DType, Tensor};

/// Returns the distinct labels of the dims of a graph's inputs.
pub fn input_labels(model: &Model, graph: GraphId) -> Vec<String> {
    let declared = model.graph(graph).inputs().iter().filter_map(|&value| model.value(value).declared.as_ref());
    let dims = declared.filter_map(DeclaredType::shape).flatten();
    let mut names: Vec<String> = dims.filter_map(|dim| dim.claim.name()).map(str::to_string).collect();
    sort::sort(&mut names);
    names.dedup();
    names
}

/// Returns the labels in `names` that are expressions in other words of `names`: `past + seq` with `past` and `seq`.
pub fn label_relations(names: &[String]) -> Vec<&str> {
    let is_known = |name: &str| is_word(name) && names.iter().any(|known| known == name);
    let is_relation = |text: &&str| !is_word(text) && Scope::new().parse_known(text, &is_known).is_some();
    names.iter().map(String::as_str).filter(is_relation).collect()
}

/// Returns the dim that a label of an input denotes.
pub fn label_size(scope: &Scope, label: &str) -> Dim {
    scope.current(&Dim::symbol(scope.named(label)))
}

/// Returns the dim that a trusted label inside the model denotes: the dim of inputs with this label, an expression in
/// labels of inputs, or an opaque symbol.
pub fn claimed_size(scope: &Scope, label: &str, inputs: &[String]) -> Dim {
    let is_known = |name: &str| inputs.iter().any(|known| known == name);
    let parsed = if scope.lookup(label).is_some() { None } else { scope.parse_known(label, &is_known) };
    parsed.unwrap_or_else(|| label_size(scope, label))
}

/// Returns the fact of a trusted declared type. `size` returns the dim of a label, or `None` to ignore the label.
pub fn declared_fact(scope: &Scope, ty: &DeclaredType, size: &dyn Fn(&str) -> Option<Dim>) -> Fact {
    declared_type(scope, ty, size).map_or_else(Fact::unknown, Fact::of)
}

/// Returns the fact of an input with a default, which a caller may override: the part of the declared fact that the
/// default satisfies.
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

fn declared_type(scope: &Scope, ty: &DeclaredType, size: &dyn Fn(&str) -> Option<Dim>) -> Option<Type> {
    let tensor = |dtype: i32, shape: &Option<Vec<crate::ir::DeclaredDim>>| TensorType {
        dtype: DType::from_onnx(dtype),
        shape: shape.as_ref().map(|dims| dims.iter().map(|dim| declared_dim(scope, &dim.claim, size)).collect()),
    };
    let inner =
        |ty: &Option<Box<DeclaredType>>| ty.as_ref().and_then(|ty| declared_type(scope, ty, size)).map(Box::new);
    Some(match ty {
        DeclaredType::Tensor { dtype, shape, .. } => Type::Tensor(tensor(*dtype, shape)),
        DeclaredType::SparseTensor { dtype, shape, .. } => Type::SparseTensor(tensor(*dtype, shape)),
        DeclaredType::Sequence { elem, .. } => Type::Sequence(inner(elem)),
        DeclaredType::Optional { elem, .. } => Type::Optional(inner(elem)),
        DeclaredType::Map { key, value, .. } => Type::Map(DType::from_onnx(*key)?, inner(value)),
        DeclaredType::Opaque(_) => return None,
    })
}

fn declared_dim(scope: &Scope, claim: &DimClaim, size: &dyn Fn(&str) -> Option<Dim>) -> Dim {
    match claim {
        DimClaim::Value(size) => Dim::constant(*size),
        _ => claim.name().and_then(size).unwrap_or_else(|| scope.fresh_dim("dim")),
    }
}

pub(super) fn initializer_fact(scope: &Scope, model: &Model, value: ValueId) -> Fact {
    let place = model.value(value);
    if let Some(tensor) = place.constant_tensor() {
        return Fact::constant(tensor.clone());
    }
    // A caller or a training step may change the content, but not the type.
    match place.tensor() {
        Some(tensor) => Fact { content: None, ..Fact::constant(tensor.clone()) },
        None => place.declared.as_ref().map_or_else(Fact::unknown, |ty| declared_fact(scope, ty, &|_| None)),
    }
}
