use super::windows::output_dtype;
use super::{number, one_sided};
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};

pub(super) const MEL_WEIGHT_MATRIX: Operator = Operator::infer_only("MelWeightMatrix", &[17], infer);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = output_dtype(cx)?;
    let (bins, length) = (number(cx, 0), number(cx, 1));
    if [&bins, &length].into_iter().flatten().any(|number| number.as_const().is_some_and(|number| number < 0)) {
        return Err(Refusal::invalid("a number of bins is negative"));
    }
    let rows = length.map(|length| one_sided(cx, &length)).unwrap_or_else(|| cx.fresh_dim());
    let columns = bins.unwrap_or_else(|| cx.fresh_dim());
    Ok(vec![Fact::tensor(Some(dtype), Some(vec![rows, columns]))])
}
