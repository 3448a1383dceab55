use super::{DOMAIN, classes, counted, observations};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const LINEAR_CLASSIFIER: Operator =
    Operator::infer_only("LinearClassifier", &[1], infer_classifier).in_domain(DOMAIN);
pub(super) const LINEAR_REGRESSOR: Operator =
    Operator::infer_only("LinearRegressor", &[1], infer_regressor).in_domain(DOMAIN);

fn infer_classifier(cx: &mut InferCx<'_>) -> InferResult {
    let (label, count) = classes(cx, "classlabels_ints")?;
    let rows = observations(cx);
    // One row of coefficients for each class, or one row for both of two classes.
    let scores = match cx.attr_floats("intercepts")?.map_or(0, <[_]>::len) {
        1 if count == 2 => Dim::constant(2),
        0 | 1 => cx.fresh_dim(),
        scores => counted(scores),
    };
    Ok(vec![
        Fact::tensor(Some(label), Some(vec![rows.clone()])),
        Fact::tensor(Some(DType::Float), Some(vec![rows, scores])),
    ])
}

fn infer_regressor(cx: &mut InferCx<'_>) -> InferResult {
    let targets = match cx.attr_int("targets")?.unwrap_or(1) {
        targets if targets > 0 => Dim::constant(targets),
        targets => return Err(Refusal::invalid(format!("there are {targets} targets"))),
    };
    let rows = observations(cx);
    Ok(vec![Fact::tensor(Some(DType::Float), Some(vec![rows, targets]))])
}
