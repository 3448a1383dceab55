//! Construction of sequences and access to their elements.

use std::rc::Rc;
use std::sync::Arc;

use super::lineage;
use crate::dim::Dim;
use crate::ir::{Data, Fact, Scalar, TensorType, Type};
use crate::ops::join::{Join, element_of, stem_of};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal};
use crate::tensor::{DType, Tensor};

/// Returns the type of operand `i`'s elements, if it is a sequence with a known element type.
///
/// # Errors
/// The operand is not a sequence.
pub(super) fn element_type(cx: &InferCx<'_>, i: usize) -> Result<Option<Type>, Refusal> {
    match &cx.required(i)?.ty {
        Some(Type::Sequence(element)) => Ok(element.as_deref().cloned()),
        Some(_) => Err(Refusal::invalid(format!("operand {i} is not a sequence"))),
        None => Ok(None),
    }
}

/// Returns the join of these types, as the element type of a sequence.
pub(super) fn common_type<'t>(cx: &InferCx<'_>, types: impl IntoIterator<Item = &'t Type>) -> Option<Type> {
    let mut join = Join::either(&Rc::clone(cx.walk.scope()), &stem_of(cx));
    let mut types = types.into_iter();
    let first = types.next()?.clone();
    types.try_fold(first, |common, ty| join.elements(&common, ty))
}

fn sequence_of(element: Option<Type>) -> Fact {
    Fact::of(Type::Sequence(element.map(Box::new)))
}

fn sequence_data(items: Vec<Data>) -> Data {
    Data::Sequence(Arc::new(items))
}

/// Returns the elements of operand `i`.
pub(super) fn sequence<'a>(cx: &'a EvalCx<'_>, i: usize) -> Result<&'a Arc<Vec<Data>>, Decline> {
    match cx.data(i) {
        Some(Data::Sequence(items)) => Ok(items),
        _ => Err(Decline::invalid(format!("operand {i} is not a sequence"))),
    }
}

/// Returns the position in operand `i`, if present.
fn position(cx: &EvalCx<'_>, i: usize) -> Result<Option<i64>, Decline> {
    match cx.optional_tensor(i)?.map(|tensor| tensor.to_i64s()) {
        None => Ok(None),
        Some(Some(values)) if values.len() == 1 => Ok(values.first().copied()),
        Some(_) => Err(Decline::invalid("the operand 'position' is not a single integer")),
    }
}

/// Copies the elements for modification. Charges the budget: each sequence of a chain has a separate list.
fn copied(cx: &EvalCx<'_>, items: &[Data]) -> Result<Vec<Data>, Decline> {
    cx.budget().take_bytes(items.len().saturating_add(1).saturating_mul(size_of::<Data>()))?;
    Ok(items.to_vec())
}

fn outside(position: i64, len: usize) -> String {
    format!("position {position} is out of range for {len} elements")
}

pub(super) fn infer_construct(cx: &mut InferCx<'_>) -> InferResult {
    if cx.inputs().is_empty() {
        return Err(Refusal::invalid("a sequence needs at least one operand"));
    }
    let dtypes: Vec<DType> = cx.inputs().iter().flatten().filter_map(Fact::dtype).collect();
    if dtypes.windows(2).any(|pair| matches!(pair, [a, b] if a != b)) {
        return Err(Refusal::invalid("the elements of a sequence have different types"));
    }
    let types: Option<Vec<&Type>> =
        cx.inputs().iter().map(|input| input.as_ref().and_then(|input| input.ty.as_ref())).collect();
    let mut element = types.and_then(|types| common_type(cx, types));
    if element.is_none()
        && let Some(&dtype) = dtypes.first()
    {
        element = Some(Type::Tensor(TensorType::new(Some(dtype), None)));
    }
    if let (Some(Type::Tensor(tensor)), Some(&dtype)) = (&mut element, dtypes.first()) {
        tensor.dtype = Some(dtype);
    }
    Ok(vec![sequence_of(element)])
}

pub(super) fn eval_construct(cx: &mut EvalCx<'_>) -> EvalResult {
    let items = (0..cx.inputs().len()).map(|i| cx.tensor(i).cloned()).collect::<Result<Vec<_>, _>>()?;
    if items.windows(2).any(|pair| matches!(pair, [a, b] if a.dtype() != b.dtype())) {
        return Err(Decline::invalid("the elements of a sequence have different types"));
    }
    Ok(vec![sequence_data(items.into_iter().map(Data::Tensor).collect())])
}

pub(super) fn infer_empty(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.attr_dtype("dtype")?.unwrap_or(DType::Float);
    let ty = Type::Sequence(Some(Box::new(Type::Tensor(TensorType::new(Some(dtype), None)))));
    Ok(vec![Fact { ty: Some(ty), ..Fact::constant(sequence_data(Vec::new())) }])
}

pub(super) fn eval_empty(_: &mut EvalCx<'_>) -> EvalResult {
    Ok(vec![sequence_data(Vec::new())])
}

pub(super) fn infer_insert(cx: &mut InferCx<'_>) -> InferResult {
    let element = element_type(cx, 0)?;
    let item = cx.required(1)?;
    let (held, added) = (element.as_ref().and_then(Type::as_tensor), item.as_tensor());
    if let (Some(held), Some(added)) = (held.and_then(|held| held.dtype), added.and_then(|added| added.dtype))
        && held != added
    {
        return Err(Refusal::invalid(format!("a tensor of {added} is inserted into a sequence of {held}")));
    }
    let dtype = held.and_then(|held| held.dtype).or(item.dtype());
    let empty = matches!(cx.required(0)?.data(), Some(Data::Sequence(items)) if items.is_empty());
    let joined = match (&element, &item.ty) {
        (_, Some(added)) if empty => Some(added.clone()),
        (Some(held), Some(added)) => common_type(cx, [held, added]),
        _ => None,
    };
    let joined = match joined {
        Some(Type::Tensor(tensor)) => Type::Tensor(TensorType { dtype: tensor.dtype.or(dtype), ..tensor }),
        _ => Type::Tensor(TensorType::new(dtype, None)),
    };
    Ok(vec![sequence_of(Some(joined))])
}

pub(super) fn eval_insert(cx: &mut EvalCx<'_>) -> EvalResult {
    let items = sequence(cx, 0)?;
    let item = cx.tensor(1)?;
    if items.iter().any(|held| held.tensor().map(Tensor::dtype) != Some(item.dtype())) {
        return Err(Decline::invalid("the elements of a sequence have different types"));
    }
    let position = position(cx, 2)?;
    let at = position.map_or(Some(items.len()), |position| lineage::place(position, items.len(), true));
    let at = at.ok_or_else(|| Decline::invalid(outside(position.unwrap_or(0), items.len())))?;
    let mut items = copied(cx, items)?;
    items.insert(at, Data::Tensor(item.clone()));
    Ok(vec![sequence_data(items)])
}

pub(super) fn infer_erase(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![sequence_of(element_type(cx, 0)?)])
}

pub(super) fn eval_erase(cx: &mut EvalCx<'_>) -> EvalResult {
    let items = sequence(cx, 0)?;
    let position = position(cx, 1)?.unwrap_or(-1);
    let at = lineage::place(position, items.len(), false);
    let at = at.ok_or_else(|| Decline::invalid(outside(position, items.len())))?;
    let mut items = copied(cx, items)?;
    items.remove(at);
    Ok(vec![sequence_data(items)])
}

pub(super) fn infer_at(cx: &mut InferCx<'_>) -> InferResult {
    let element = element_type(cx, 0)?;
    if let (Some(value), Some(&[position])) = (cx.node.input(0), cx.const_ints(1).as_deref()) {
        if let Some(mut items) = lineage::items(cx, value) {
            let at = lineage::place(position, items.len(), false);
            let at = at.ok_or_else(|| Refusal::invalid(outside(position, items.len())))?;
            return Ok(vec![items.swap_remove(at)]);
        }
        if let Some(part) = lineage::split(cx, value).and_then(|split| split.part_at(cx.scope(), position)) {
            return Ok(vec![part]);
        }
    }
    let element = element.map(|element| element_of(cx.scope(), &stem_of(cx), &element));
    Ok(vec![element.map_or_else(Fact::unknown, Fact::of)])
}

pub(super) fn eval_at(cx: &mut EvalCx<'_>) -> EvalResult {
    let items = sequence(cx, 0)?;
    let position = position(cx, 1)?.ok_or_else(|| Decline::invalid("the operand 'position' is missing"))?;
    let at = lineage::place(position, items.len(), false);
    let item = at.and_then(|at| items.get(at));
    Ok(vec![item.ok_or_else(|| Decline::invalid(outside(position, items.len())))?.clone()])
}

pub(super) fn infer_length(cx: &mut InferCx<'_>) -> InferResult {
    element_type(cx, 0)?;
    let length = cx.node.input(0).and_then(|value| lineage::length(cx, value));
    let length = length.unwrap_or_else(|| cx.fresh_dim());
    Ok(vec![Fact::tensor(Some(DType::Int64), Some(Vec::new())).with_elements(vec![Scalar::Int(length)])])
}

pub(super) fn eval_length(cx: &mut EvalCx<'_>) -> EvalResult {
    let length = i64::try_from(sequence(cx, 0)?.len()).unwrap_or(i64::MAX);
    Ok(vec![Data::Tensor(Tensor::scalar(length))])
}

/// Returns the fact of an arbitrary element, for the subgraph of a SequenceMap or for a concatenation.
pub(super) fn any_element(cx: &InferCx<'_>, element: &Type) -> Fact {
    Fact::of(element_of(cx.scope(), &stem_of(cx), element))
}

/// Returns the sum of sizes.
pub(super) fn total(cx: &InferCx<'_>, sizes: &[Dim]) -> Dim {
    cx.scope().sum(sizes)
}
