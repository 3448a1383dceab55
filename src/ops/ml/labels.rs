use super::DOMAIN;
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::DType;

pub(super) const CATEGORY_MAPPER: Operator =
    Operator::infer_only("CategoryMapper", &[1], infer_swapped).in_domain(DOMAIN);
pub(super) const LABEL_ENCODER: Operator =
    Operator::infer_only("LabelEncoder", &[1, 2, 4], infer_encoder).in_domain(DOMAIN);

/// Strings become integers and integers strings.
fn swapped(dtype: DType) -> Result<DType, Refusal> {
    match dtype {
        DType::String => Ok(DType::Int64),
        DType::Int64 => Ok(DType::String),
        other => Err(Refusal::invalid(format!("elements of type {other} are not mapped"))),
    }
}

fn infer_swapped(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype().map(swapped).transpose()?;
    Ok(vec![Fact::tensor(dtype, data.shape().map(<[Dim]>::to_vec))])
}

/// The type of the values a LabelEncoder maps to.
fn value_dtype(site: &Site<'_>) -> Result<DType, Refusal> {
    if let Some(values) = site.attr_tensor("values_tensor")?.filter(|_| site.version >= 4) {
        return Ok(values.dtype());
    }
    if site.attr_strings("values_strings")?.is_some() {
        return Ok(DType::String);
    }
    if site.attr_ints("values_int64s")?.is_some() {
        return Ok(DType::Int64);
    }
    if site.attr_floats("values_floats")?.is_some() {
        return Ok(DType::Float);
    }
    Err(Refusal::invalid("there are no values to map to"))
}

fn infer_encoder(cx: &mut InferCx<'_>) -> InferResult {
    if cx.version < 2 {
        return infer_swapped(cx);
    }
    let shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    Ok(vec![Fact::tensor(Some(value_dtype(cx)?), shape)])
}
