use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator};
use crate::tensor::DType;

pub(super) const REGEX_FULL_MATCH: Operator = Operator::infer_only("RegexFullMatch", &[20], infer);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    Ok(vec![Fact::tensor(Some(DType::Bool), shape)])
}
