use super::{DOMAIN, classes, counted, observations};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const TREE_ENSEMBLE: Operator =
    Operator::infer_only("TreeEnsemble", &[5], infer_regressor).in_domain(DOMAIN);
pub(super) const TREE_ENSEMBLE_CLASSIFIER: Operator =
    Operator::infer_only("TreeEnsembleClassifier", &[1, 3, 5], infer_classifier).in_domain(DOMAIN);
pub(super) const TREE_ENSEMBLE_REGRESSOR: Operator =
    Operator::infer_only("TreeEnsembleRegressor", &[1, 3, 5], infer_regressor).in_domain(DOMAIN);

fn infer_classifier(cx: &mut InferCx<'_>) -> InferResult {
    let (label, count) = classes(cx, "classlabels_int64s")?;
    let rows = observations(cx);
    // One class stands for it and its opposite; runtimes write one score or two.
    let scores = if count >= 2 { counted(count) } else { cx.fresh_dim() };
    Ok(vec![
        Fact::tensor(Some(label), Some(vec![rows.clone()])),
        Fact::tensor(Some(DType::Float), Some(vec![rows, scores])),
    ])
}

fn infer_regressor(cx: &mut InferCx<'_>) -> InferResult {
    let targets = match cx.attr_int("n_targets")? {
        None => cx.fresh_dim(),
        Some(targets) if targets > 0 => Dim::constant(targets),
        Some(targets) => return Err(Refusal::invalid(format!("there are {targets} targets"))),
    };
    let dtype = if cx.node.op_type == "TreeEnsemble" { cx.required(0)?.dtype() } else { Some(DType::Float) };
    let rows = observations(cx);
    Ok(vec![Fact::tensor(dtype, Some(vec![rows, targets]))])
}
