//! Transforms of scores, and selection of the best class.

use crate::ops::{Decline, Refusal, Site};
use crate::sort;

/// The attribute `post_transform`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transform {
    None,
    Logistic,
    Softmax,
    /// SOFTMAX_ZERO and PROBIT, which the standard does not define.
    Other,
}

impl Transform {
    pub(super) fn of(site: &Site<'_>) -> Result<Transform, Refusal> {
        match site.attr_str("post_transform")? {
            None | Some("NONE") => Ok(Transform::None),
            Some("LOGISTIC") => Ok(Transform::Logistic),
            Some("SOFTMAX") => Ok(Transform::Softmax),
            Some("SOFTMAX_ZERO" | "PROBIT") => Ok(Transform::Other),
            Some(other) => {
                Err(Refusal::invalid(format!("attribute 'post_transform' is '{other}', which is not defined")))
            }
        }
    }

    /// Returns the transform with this number.
    pub(super) fn numbered(number: i64) -> Result<Transform, Refusal> {
        match number {
            0 => Ok(Transform::None),
            1 => Ok(Transform::Softmax),
            2 => Ok(Transform::Logistic),
            3 | 4 => Ok(Transform::Other),
            other => Err(Refusal::invalid(format!("attribute 'post_transform' is {other}, which is not defined"))),
        }
    }

    /// Transforms the scores of one observation.
    ///
    /// # Errors
    /// Runtimes disagree: some do not transform a single score.
    pub(super) fn apply(self, scores: &mut [f64]) -> Result<(), Decline> {
        match self {
            Transform::None => return Ok(()),
            Transform::Other => {
                return Err(Decline::unsupported(
                    "attribute 'post_transform' is 'SOFTMAX_ZERO' or 'PROBIT', which the standard does not define",
                ));
            }
            _ if scores.len() < 2 => {
                return Err(Decline::unsupported(
                    "attribute 'post_transform' applies to a single score, for which runtimes return different values",
                ));
            }
            _ if scores.iter().any(|score| !score.is_finite()) => {
                return Err(Decline::unsupported("a score is NaN or an infinity"));
            }
            Transform::Logistic => scores.iter_mut().for_each(|score| *score = 1.0 / (1.0 + libm::exp(-*score))),
            Transform::Softmax => {
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                scores.iter_mut().for_each(|score| *score = libm::exp(*score - most));
                let sum: f64 = scores.iter().sum();
                scores.iter_mut().for_each(|score| *score /= sum);
            }
        }
        Ok(())
    }
}

/// Returns the class with the best score.
///
/// # Errors
/// Rounding determines the better one of two scores.
pub(super) fn best(scores: &[f64]) -> Result<usize, Decline> {
    let close = || Decline::unsupported("two scores are so close that rounding determines the best class");
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |class: usize| scores.get(class).copied().unwrap_or(f64::NAN);
    sort::by(&mut order, |&a, &b| score(b).total_cmp(&score(a)));
    let &first = order.first().ok_or_else(|| Decline::invalid("the list of classes is empty"))?;
    let most = score(first);
    let margin = 1e-4 * most.abs().max(1e-3);
    if most.is_nan() || order.get(1).is_some_and(|&second| most - score(second) <= margin) {
        return Err(close());
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms() {
        let transformed = |transform: Transform| {
            let mut scores = [0.0, 0.0, f64::ln(2.0)];
            transform.apply(&mut scores).map(|()| scores)
        };
        assert_eq!(transformed(Transform::None).unwrap()[0], 0.0);
        assert_eq!(transformed(Transform::Logistic).unwrap()[0], 0.5);
        let shares = transformed(Transform::Softmax).unwrap();
        assert!((shares[0] - 0.25).abs() < 1e-15 && (shares[2] - 0.5).abs() < 1e-15);
        assert!(transformed(Transform::Other).is_err());
        assert!(Transform::Softmax.apply(&mut [1.0]).is_err());
        assert!(Transform::Logistic.apply(&mut [1.0, f64::NAN]).is_err());
    }

    #[test]
    fn the_best_is_clearly_better() {
        assert_eq!(best(&[1.0, 3.0, 2.0]), Ok(1));
        assert_eq!(best(&[-1.0]), Ok(0));
        assert!(best(&[]).is_err());
        assert!(best(&[1.0, 1.0]).is_err());
        assert!(best(&[1.0, f64::NAN]).is_err());
    }
}
