//! Random operators: RandomNormal, RandomUniform, their `Like` variants, Bernoulli, Multinomial.
//!
//! | operators | type | shape |
//! | --- | --- | --- |
//! | RandomNormal, RandomUniform | `dtype`, by default `float` | `shape` |
//! | RandomNormalLike, RandomUniformLike, Bernoulli | `dtype`, by default the operand's | the operand's |
//! | Multinomial | `dtype`, by default `int32` | `[batch, sample_size]` |
//!
//! Version 22 adds `bfloat16`. No random operator is evaluated, not even with a `seed`: runtimes draw different numbers.

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::traits::Traits;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::infer_only("RandomNormal", &[1, 22], infer_from_shape).random().with(Traits::NONE.inferred_by_shapes()),
    Operator::infer_only("RandomUniform", &[1, 22], infer_from_shape).random().with(Traits::NONE.inferred_by_shapes()),
    Operator::infer_only("RandomNormalLike", &[1, 22], infer_like).random().with(Traits::NONE.inferred_by_shapes()),
    Operator::infer_only("RandomUniformLike", &[1, 22], infer_like).random().with(Traits::NONE.inferred_by_shapes()),
    Operator::infer_only("Bernoulli", &[15, 22], infer_like).random(),
    Operator::infer_only("Multinomial", &[7, 22], infer_multinomial).random(),
];

fn infer_from_shape(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.attr_dtype("dtype")?.unwrap_or(DType::Float);
    let shape = cx.attr_ints("shape")?.ok_or_else(|| Refusal::invalid("attribute 'shape' is missing"))?;
    if let Some(dim) = shape.iter().find(|&&dim| dim < 0) {
        return Err(Refusal::invalid(format!("attribute 'shape' has the dim {dim}")));
    }
    Ok(vec![Fact::tensor(Some(dtype), Some(shape.iter().map(|&dim| Dim::constant(dim)).collect()))])
}

fn infer_like(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    let dtype = cx.attr_dtype("dtype")?.or(operand.dtype());
    Ok(vec![Fact::tensor(dtype, operand.shape().map(<[_]>::to_vec))])
}

fn infer_multinomial(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    let dtype = cx.attr_dtype("dtype")?.unwrap_or(DType::Int32);
    let samples = cx.attr_int("sample_size")?.unwrap_or(1);
    if samples < 0 {
        return Err(Refusal::invalid(format!("attribute 'sample_size' is {samples}, which is not valid")));
    }
    let batch = match operand.shape() {
        Some([batch, _]) => batch.clone(),
        Some(shape) => {
            return Err(Refusal::invalid(format!("the rank of the operand is {} instead of 2", shape.len())));
        }
        None => cx.fresh_dim(),
    };
    Ok(vec![Fact::tensor(Some(dtype), Some(vec![batch, Dim::constant(samples)]))])
}
