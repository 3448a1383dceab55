//! SVMClassifier and SVMRegressor: support vector machines.
//!
//! | operator | computes | not evaluated |
//! | --- | --- | --- |
//! | SVMRegressor | `Σ coefficients[j] · kernel(x, support_vectors[j]) + rho`; without support vectors `x · coefficients + rho`; with `one_class` the sign | sums near 0 with `one_class`, post transforms |
//! | SVMClassifier | labels and scores | always: the standard does not define the scores |
//!
//! | kernel | |
//! | --- | --- |
//! | LINEAR | `a · b` |
//! | POLY | `(gamma · a·b + coef0)^degree` |
//! | SIGMOID | `tanh(gamma · a·b + coef0)` |
//! | RBF | `exp(−gamma · |a − b|²)` |
//!
//! Both operators have version 1.

use super::scores::Transform;
use super::{DOMAIN, Observations, classes, floats, observations, singles};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Site};
use crate::tensor::DType;

pub(super) const SVM_CLASSIFIER: Operator =
    Operator::infer_only("SVMClassifier", &[1], infer_classifier).in_domain(DOMAIN);
pub(super) const SVM_REGRESSOR: Operator =
    Operator::new("SVMRegressor", &[1], infer_regressor, eval_regressor).in_domain(DOMAIN);

fn infer_classifier(cx: &mut InferCx<'_>) -> InferResult {
    let (label, _) = classes(cx, "classlabels_ints")?;
    let rows = observations(cx);
    // The standard leaves open if these are scores of class pairs, of classes, or of one pair written twice.
    let scores = vec![rows.clone(), cx.fresh_dim()];
    Ok(vec![Fact::tensor(Some(label), Some(vec![rows])), Fact::tensor(Some(DType::Float), Some(scores))])
}

fn infer_regressor(cx: &mut InferCx<'_>) -> InferResult {
    let shape = vec![observations(cx), Dim::constant(1)];
    Ok(vec![Fact::tensor(Some(DType::Float), Some(shape))])
}

/// The similarity of two vectors.
enum Kernel {
    Linear,
    Poly { gamma: f64, coef0: f64, degree: f64 },
    Sigmoid { gamma: f64, coef0: f64 },
    Rbf { gamma: f64 },
}

impl Kernel {
    fn of(site: &Site<'_>) -> Result<Kernel, Decline> {
        let parameters = floats(site, "kernel_params")?;
        let parameter = |at: usize| {
            parameters
                .get(at)
                .copied()
                .ok_or_else(|| Decline::invalid("attribute 'kernel_params' has not three elements"))
        };
        Ok(match site.attr_str("kernel_type")?.unwrap_or("LINEAR") {
            "LINEAR" => Kernel::Linear,
            "POLY" => Kernel::Poly { gamma: parameter(0)?, coef0: parameter(1)?, degree: parameter(2)? },
            "SIGMOID" => Kernel::Sigmoid { gamma: parameter(0)?, coef0: parameter(1)? },
            "RBF" => Kernel::Rbf { gamma: parameter(0)? },
            other => {
                return Err(Decline::invalid(format!("attribute 'kernel_type' is '{other}', which is not defined")));
            }
        })
    }

    fn apply(&self, a: &[f64], b: &[f64]) -> f64 {
        let product = || a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        match *self {
            Kernel::Linear => product(),
            Kernel::Poly { gamma, coef0, degree } => libm::pow(gamma * product() + coef0, degree),
            Kernel::Sigmoid { gamma, coef0 } => libm::tanh(gamma * product() + coef0),
            Kernel::Rbf { gamma } => libm::exp(-gamma * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()),
        }
    }
}

fn eval_regressor(cx: &mut EvalCx<'_>) -> EvalResult {
    if Transform::of(cx)? != Transform::None {
        return Err(Decline::unsupported(
            "attribute 'post_transform' applies to a single score, for which runtimes return different values",
        ));
    }
    let data = Observations::of(cx)?;
    let (coefficients, vectors, rho) =
        (floats(cx, "coefficients")?, floats(cx, "support_vectors")?, floats(cx, "rho")?);
    let count = usize::try_from(cx.attr_int("n_supports")?.unwrap_or(0)).unwrap_or(usize::MAX);
    // Without support vectors, the kernel is linear for any attribute.
    let kernel = if count == 0 { Kernel::Linear } else { Kernel::of(cx)? };
    let fits = match count {
        0 => coefficients.len() == data.features,
        _ => coefficients.len() == count && Some(vectors.len()) == count.checked_mul(data.features),
    };
    let &[rho] = rho.as_ref() else { return Err(Decline::invalid("attribute 'rho' has not one element")) };
    if !fits || data.features == 0 {
        return Err(Decline::invalid(
            "the lengths of 'coefficients' and 'support_vectors' do not fit the number of features of 'X'",
        ));
    }
    cx.claim(DType::Complex128, &[data.rows])?;
    cx.budget().take_work((data.rows as u64).saturating_mul(vectors.len().max(data.features) as u64))?;
    let one_class = cx.attr_flag("one_class", false)?;
    let score = |row: &[f64]| {
        let sum = match count {
            0 => kernel.apply(row, &coefficients),
            _ => {
                let near = vectors.chunks_exact(data.features).map(|vector| kernel.apply(row, vector));
                near.zip(coefficients.iter()).map(|(near, coefficient)| near * coefficient).sum()
            }
        } + rho;
        match (one_class, sum) {
            (false, sum) => Ok(sum),
            (true, sum) if sum.abs() > 1e-4 => Ok(sum.signum()),
            (true, _) => {
                Err(Decline::unsupported("the score is so close to 0 that rounding determines the sign of the score"))
            }
        }
    };
    let scores = data.each().map(score).collect::<Result<Vec<f64>, _>>()?;
    Ok(vec![singles(&[data.rows, 1], &scores)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attribute;
    use crate::ops::single::Single;

    fn node(kernel: &'static str) -> Single {
        let floats = |values: &[f32]| Attribute::Floats(values.to_vec());
        Single::new("SVMRegressor", 21)
            .in_domain(DOMAIN)
            .with("coefficients", floats(&[0.5, -1.0]))
            .with("support_vectors", floats(&[1.0, 0.0, 0.0, 1.0]))
            .with("rho", floats(&[0.25]))
            .with("n_supports", 2)
            .with_str("kernel_type", kernel)
            .with("kernel_params", floats(&[0.5, 1.0, 3.0]))
    }

    #[test]
    fn kernels() {
        let rows = [1f32, 2.0, 3.0, -4.0, 0.0, 0.5];
        for (kernel, expected) in [
            ("LINEAR", [-1.25, 5.75, -0.25]),
            ("POLY", [-6.0625, 9.0625, -1.203125]),
            ("SIGMOID", [-0.26145348, 1.50490145, -0.21748658]),
            ("RBF", [-0.05021181, 0.25002265, -0.36486613]),
        ] {
            let found = node(kernel).values(&[3, 2], &rows).floats();
            assert!(found.iter().zip(expected).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-6), "{kernel} {found:?}");
        }
        assert_eq!(node("LINEAR").with("one_class", 1).values(&[3, 2], &rows).floats(), [-1.0, 1.0, -1.0]);
        assert!(node("LINEAR").values(&[1, 3], &[1f32; 3]).eval().is_err());
        assert!(node("OTHER").values(&[1, 2], &[1f32; 2]).eval().is_err());
        assert_eq!(node("RBF").input(DType::Float, "N 2").infer(), ["float[N, 1]"]);
    }
}
