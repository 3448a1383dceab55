use super::number;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::DType;

pub(super) const HANN_WINDOW: Operator = Operator::infer_only("HannWindow", &[17], infer);
pub(super) const HAMMING_WINDOW: Operator = Operator::infer_only("HammingWindow", &[17], infer);
pub(super) const BLACKMAN_WINDOW: Operator = Operator::infer_only("BlackmanWindow", &[17], infer);

/// The attribute `output_datatype`.
pub(super) fn output_dtype(site: &Site<'_>) -> Result<DType, Refusal> {
    Ok(site.attr_dtype("output_datatype")?.unwrap_or(DType::Float))
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = output_dtype(cx)?;
    cx.required(0)?;
    let size = number(cx, 0).unwrap_or_else(|| cx.fresh_dim());
    if size.as_const().is_some_and(|size| size < 0) {
        return Err(Refusal::invalid("the window has a negative length"));
    }
    Ok(vec![Fact::tensor(Some(dtype), Some(vec![size]))])
}
