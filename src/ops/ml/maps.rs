use super::DOMAIN;
use crate::ir::{Fact, TensorType, Type};
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const CAST_MAP: Operator = Operator::infer_only("CastMap", &[1], infer_cast).in_domain(DOMAIN);
pub(super) const DICT_VECTORIZER: Operator =
    Operator::infer_only("DictVectorizer", &[1], infer_vectorizer).in_domain(DOMAIN);
pub(super) const ZIP_MAP: Operator = Operator::infer_only("ZipMap", &[1], infer_zip).in_domain(DOMAIN);

fn infer_cast(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.attr_str("cast_to")? {
        None | Some("TO_FLOAT") => DType::Float,
        Some("TO_STRING") => DType::String,
        Some("TO_INT64") => DType::Int64,
        Some(other) => return Err(Refusal::invalid(format!("cast_to is '{other}'"))),
    };
    Ok(vec![Fact::tensor(Some(dtype), None)])
}

fn infer_vectorizer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match &cx.required(0)?.ty {
        Some(Type::Map(_, Some(value))) => value.as_tensor().and_then(|value| value.dtype),
        _ => None,
    };
    Ok(vec![Fact::tensor(dtype, None)])
}

fn infer_zip(cx: &mut InferCx<'_>) -> InferResult {
    let (_, keys) = (cx.required(0)?, super::classes(cx, "classlabels_int64s")?.0);
    let value = Type::Tensor(TensorType::new(Some(DType::Float), None));
    let map = Type::Map(keys, Some(Box::new(value)));
    Ok(vec![Fact::of(Type::Sequence(Some(Box::new(map))))])
}
