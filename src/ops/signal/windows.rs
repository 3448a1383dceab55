//! HannWindow, HammingWindow, BlackmanWindow: weights that fall off towards both ends.
//!
//! | | |
//! |---|---|
//! | computes | `a − b·cos(2πj / n) + c·cos(4πj / n)` for `j` from 0 on; Hann: `a = b = 1/2`; Hamming: `a = 25/46`, `b = 21/46`; Blackman: `a = 0.42`, `b = 0.5`, `c = 0.08` |
//! | `periodic` | 1, the default: `n` is the size; 0: one less, so that the last element is as the first |
//! | versions | 17 |
//! | not evaluated | integer windows, whose elements depend on how sums near 0 and 1 round; a symmetric window of one element, which is 0 / 0 |

use std::f64::consts::PI;

use super::{length, number, rounded, scalar};
use crate::ir::Fact;
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::DType;

/// The length is an operand.
const BY_LENGTH: Traits = Traits::NONE.inferred_by_contents(0);

pub(super) const HANN_WINDOW: Operator =
    Operator::new("HannWindow", &[17], infer, |cx| eval(cx, [0.5, 0.5, 0.0])).with(BY_LENGTH);
pub(super) const HAMMING_WINDOW: Operator =
    Operator::new("HammingWindow", &[17], infer, |cx| eval(cx, [25.0 / 46.0, 21.0 / 46.0, 0.0])).with(BY_LENGTH);
pub(super) const BLACKMAN_WINDOW: Operator =
    Operator::new("BlackmanWindow", &[17], infer, |cx| eval(cx, [0.42, 0.5, 0.08])).with(BY_LENGTH);

/// The attribute `output_datatype`.
pub(super) fn output_dtype(site: &Site<'_>) -> Result<DType, Refusal> {
    Ok(site.attr_dtype("output_datatype")?.unwrap_or(DType::Float))
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = output_dtype(cx)?;
    cx.required(0)?;
    let size = number(cx, 0).unwrap_or_else(|| cx.fresh_dim());
    if size.as_const().is_some_and(|size| size < 0) {
        return Err(Refusal::invalid("'size' is negative"));
    }
    Ok(vec![Fact::tensor(Some(dtype), Some(vec![size]))])
}

fn eval(cx: &mut EvalCx<'_>, [a, b, c]: [f64; 3]) -> EvalResult {
    let (dtype, size) = (output_dtype(cx)?, length(scalar(cx, 0)?)?);
    let period = if cx.attr_flag("periodic", true)? { size } else { size.saturating_sub(1) };
    if size > 0 && period == 0 {
        return Err(Decline::unsupported(
            "'size' is 1 and 'periodic' is 0: a symmetric window of one element is undefined",
        ));
    }
    cx.claim(dtype, &[size])?;
    cx.claim(DType::Double, &[size])?;
    cx.budget().take_work((size as u64).saturating_mul(64))?;
    let weight = |at: usize| {
        let angle = 2.0 * PI * (at as f64 / period as f64);
        a - b * libm::cos(angle) + c * libm::cos(2.0 * angle)
    };
    let weights: Vec<f64> = (0..size).map(weight).collect();
    Ok(vec![rounded(dtype, &[size], &weights)?.into()])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn windows() {
        let node = |name: &str, size: i64| Single::new(name, 17).values(&[], &[size]);
        let close = |node: Single, expected: &[f64]| {
            let found = node.floats();
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-7), "{found:?}");
        };
        close(node("HannWindow", 4), &[0.0, 0.5, 1.0, 0.5]);
        close(node("HannWindow", 5).with("periodic", 0), &[0.0, 0.5, 1.0, 0.5, 0.0]);
        close(node("HammingWindow", 2), &[4.0 / 46.0, 1.0]);
        close(node("BlackmanWindow", 4), &[0.0, 0.34, 1.0, 0.34]);
        close(node("HannWindow", 0).with("periodic", 0), &[]);
        assert_eq!(
            node("HannWindow", 3).with("output_datatype", DType::Double).eval().unwrap()[0].dtype(),
            DType::Double
        );
        assert!(node("HannWindow", 1).with("periodic", 0).eval().is_err());
        assert!(node("HannWindow", -1).eval().is_err());
        assert!(node("HannWindow", 1 << 60).eval().is_err());
        assert_eq!(Single::new("HannWindow", 17).input(DType::Int64, "").infer(), ["float[?]"]);
    }
}
