//! LinearClassifier and LinearRegressor: `X · coefficientsᵀ + intercepts`.
//!
//! | operator | computes | not evaluated |
//! | --- | --- | --- |
//! | LinearRegressor | one number for each of `targets` | transforms that the standard does not define, or of a single number |
//! | LinearClassifier | a score for each class, and the label of the best | one row of coefficients for two classes; nearly equal best scores |
//!
//! Coefficients are stored row by row, one row per target or class. Both operators have version 1.

use super::scores::{Transform, best};
use super::{DOMAIN, Observations, classes, counted, floats, labels, observations, singles};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const LINEAR_CLASSIFIER: Operator =
    Operator::new("LinearClassifier", &[1], infer_classifier, eval_classifier).in_domain(DOMAIN);
pub(super) const LINEAR_REGRESSOR: Operator =
    Operator::new("LinearRegressor", &[1], infer_regressor, eval_regressor).in_domain(DOMAIN);

fn infer_classifier(cx: &mut InferCx<'_>) -> InferResult {
    let (label, count) = classes(cx, "classlabels_ints")?;
    let rows = observations(cx);
    // One row of coefficients per class, or a single row for two classes.
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
        targets => return Err(Refusal::invalid(format!("attribute 'n_targets' (or 'targets') is {targets}"))),
    };
    let rows = observations(cx);
    Ok(vec![Fact::tensor(Some(DType::Float), Some(vec![rows, targets]))])
}

/// Returns a row of `count` products for each observation.
fn products(cx: &EvalCx<'_>, count: usize) -> Result<(usize, Vec<f64>), Decline> {
    let data = Observations::of(cx)?;
    let (coefficients, intercepts) = (floats(cx, "coefficients")?, floats(cx, "intercepts")?);
    if Some(coefficients.len()) != count.checked_mul(data.features) || ![0, count].contains(&intercepts.len()) {
        let (found, intercepts) = (coefficients.len(), intercepts.len());
        // ONNX Runtime ignores excess coefficients.
        return Err(Decline::unsupported(format!(
            "'coefficients' has {found} elements and 'intercepts' has {intercepts}, which does not fit {count} classes or targets"
        )));
    }
    cx.claim(DType::Complex128, &[data.rows, count])?;
    cx.budget().take_work((data.rows as u64).saturating_mul(coefficients.len() as u64))?;
    let mut results = Vec::new();
    for row in data.each() {
        for at in 0..count {
            let own = coefficients.get(at * data.features..).unwrap_or_default();
            let product: f64 = row.iter().zip(own).map(|(x, coefficient)| x * coefficient).sum();
            results.push(product + intercepts.get(at).copied().unwrap_or(0.0));
        }
    }
    Ok((data.rows, results))
}

fn eval_regressor(cx: &mut EvalCx<'_>) -> EvalResult {
    let targets = usize::try_from(cx.attr_int("targets")?.unwrap_or(1)).unwrap_or(0);
    if targets == 0 {
        return Err(Decline::invalid("attribute 'targets' is 0"));
    }
    let transform = Transform::of(cx)?;
    let (rows, mut results) = products(cx, targets)?;
    results.chunks_exact_mut(targets).try_for_each(|scores| transform.apply(scores))?;
    Ok(vec![singles(&[rows, targets], &results)?.into()])
}

fn eval_classifier(cx: &mut EvalCx<'_>) -> EvalResult {
    let (_, count) = classes(cx, "classlabels_ints")?;
    let transform = Transform::of(cx)?;
    if count < 2 || cx.attr_floats("intercepts")?.map_or(0, <[_]>::len) != count {
        return Err(Decline::unsupported(
            "there are fewer rows of 'coefficients' than classes, for which runtimes return different scores",
        ));
    }
    let (rows, mut scores) = products(cx, count)?;
    let chosen = scores.chunks_exact(count).map(best).collect::<Result<Vec<usize>, _>>()?;
    scores.chunks_exact_mut(count).try_for_each(|scores| transform.apply(scores))?;
    Ok(vec![labels(cx, "classlabels_ints", &chosen)?.into(), singles(&[rows, count], &scores)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attribute;
    use crate::ops::single::Single;

    fn node(op: &str, coefficients: &[f32], intercepts: &[f32]) -> Single {
        let node = Single::new(op, 21).in_domain(DOMAIN);
        node.with("coefficients", Attribute::Floats(coefficients.to_vec()))
            .with("intercepts", Attribute::Floats(intercepts.to_vec()))
    }

    #[test]
    fn regression() {
        let regressor = || node("LinearRegressor", &[1.0, 2.0, 3.0, 4.0], &[0.5, 0.0]).with("targets", 2);
        assert_eq!(regressor().values(&[2, 2], &[1i64, 0, 1, 1]).floats(), [1.5, 3.0, 3.5, 7.0]);
        assert_eq!(regressor().input(DType::Float, "N 2").infer(), ["float[N, 2]"]);
        assert_eq!(regressor().input(DType::Float, "2").infer(), ["float[1, 2]"]);
        assert!(regressor().values(&[1, 3], &[1f32; 3]).eval().is_err());
        assert!(regressor().with_str("post_transform", "PROBIT").values(&[1, 2], &[1f32; 2]).eval().is_err());
    }

    #[test]
    fn classification() {
        let classifier = || {
            node("LinearClassifier", &[1.0, 0.0, 0.0, 1.0], &[0.0, 0.5]).with("classlabels_ints", vec![7, 8]).output()
        };
        let found = classifier().values(&[2, 2], &[1f32, 0.0, 0.0, 1.0]).eval().unwrap();
        assert_eq!(found[0].to_i64s().unwrap(), [7, 8]);
        assert_eq!(found[1].to_f64s().unwrap(), [1.0, 0.5, 0.0, 1.5]);
        assert!(classifier().values(&[1, 2], &[1f32, 0.5]).eval().is_err());
        assert_eq!(classifier().input(DType::Float, "N 2").infer(), ["int64[N]", "float[N, 2]"]);
        let binary = || node("LinearClassifier", &[1.0, 1.0], &[0.0]).with("classlabels_ints", vec![7, 8]).output();
        assert!(binary().values(&[1, 2], &[1f32, 0.5]).eval().is_err());
        assert_eq!(binary().input(DType::Float, "N 2").infer(), ["int64[N]", "float[N, 2]"]);
    }
}
