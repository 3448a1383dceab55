use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::DType;

pub(super) const TF_IDF_VECTORIZER: Operator = Operator::infer_only("TfIdfVectorizer", &[9], infer);

/// How many coordinates a result has: one more than the largest index.
fn width(site: &Site<'_>) -> Result<i64, Refusal> {
    let indexes = site.attr_ints("ngram_indexes")?.unwrap_or_default();
    let most = indexes.iter().max().ok_or_else(|| Refusal::invalid("there are no 'ngram_indexes'"))?;
    match most.checked_add(1) {
        Some(width) if indexes.iter().all(|&index| index >= 0) => Ok(width),
        _ => Err(Refusal::invalid("an index of 'ngram_indexes' is out of range")),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let width = Dim::constant(width(cx)?);
    let shape = match cx.required(0)?.shape() {
        None => None,
        Some([] | [_]) => Some(vec![width]),
        Some([batch, _]) => Some(vec![batch.clone(), width]),
        Some(shape) => return Err(Refusal::invalid(format!("the operand is of rank {}", shape.len()))),
    };
    Ok(vec![Fact::tensor(Some(DType::Float), shape)])
}
