use super::{DOMAIN, classes, observations};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator};
use crate::tensor::DType;

pub(super) const SVM_CLASSIFIER: Operator =
    Operator::infer_only("SVMClassifier", &[1], infer_classifier).in_domain(DOMAIN);
pub(super) const SVM_REGRESSOR: Operator =
    Operator::infer_only("SVMRegressor", &[1], infer_regressor).in_domain(DOMAIN);

fn infer_classifier(cx: &mut InferCx<'_>) -> InferResult {
    let (label, _) = classes(cx, "classlabels_ints")?;
    let rows = observations(cx);
    // Scores of pairs of classes, of classes, or of one pair written twice: the standard leaves it open.
    let scores = vec![rows.clone(), cx.fresh_dim()];
    Ok(vec![Fact::tensor(Some(label), Some(vec![rows])), Fact::tensor(Some(DType::Float), Some(scores))])
}

fn infer_regressor(cx: &mut InferCx<'_>) -> InferResult {
    let shape = vec![observations(cx), Dim::constant(1)];
    Ok(vec![Fact::tensor(Some(DType::Float), Some(shape))])
}
