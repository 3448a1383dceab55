//! MelWeightMatrix: the weights that turn linear frequencies into bands of the mel scale.
//!
//! | | |
//! |---|---|
//! | computes | triangles between neighbouring of `num_mel_bins + 2` bounds, which are spread evenly over `mel(f) = 2595·log₁₀(1 + f / 700)` from `lower_edge_hertz` on in steps of `1 / (num_mel_bins + 2)` of the range |
//! | shape | `[⌊dft_length / 2⌋ + 1, num_mel_bins]` |
//! | versions | 17 |
//! | refuses | bounds beyond the frequencies of the transform; not evaluated: bounds that rounding moves to another frequency, integer weights |

use super::windows::output_dtype;
use super::{length, number, one_sided, rounded, scalar};
use crate::ir::Fact;
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const MEL_WEIGHT_MATRIX: Operator =
    Operator::new("MelWeightMatrix", &[17], infer, eval).with(Traits::NONE.inferred_by_contents(0));

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = output_dtype(cx)?;
    let (bins, length) = (number(cx, 0), number(cx, 1));
    if [&bins, &length].into_iter().flatten().any(|number| number.as_const().is_some_and(|number| number < 0)) {
        return Err(Refusal::invalid("'num_mel_bins' or 'dft_length' is negative"));
    }
    let rows = length.map_or_else(|| cx.fresh_dim(), |length| one_sided(cx, &length));
    let columns = bins.unwrap_or_else(|| cx.fresh_dim());
    Ok(vec![Fact::tensor(Some(dtype), Some(vec![rows, columns]))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let dtype = output_dtype(cx)?;
    let (bins, size, rate) = (length(scalar(cx, 0)?)?, length(scalar(cx, 1)?)?, scalar(cx, 2)?);
    let edge = |i: usize| match cx.tensor(i)?.to_f64s().as_deref() {
        Some(&[edge]) if edge.is_finite() && edge >= 0.0 => Ok(edge),
        _ => Err(Decline::invalid(format!("operand {i} is not a finite, non-negative frequency"))),
    };
    let (low, high) = (edge(3)?, edge(4)?);
    if rate <= 0 || high < low {
        return Err(Decline::invalid("'lower_edge_hertz' is not below 'upper_edge_hertz'"));
    }
    let shape = [size / 2 + 1, bins];
    cx.claim(dtype, &shape)?;
    cx.claim(DType::Double, &shape)?;
    let count = bins.checked_add(2).ok_or_else(|| Decline::OverBudget("'num_mel_bins' is too large".into()))?;
    cx.claim(DType::Double, &[count])?;
    cx.budget().take_work(
        (count as u64).saturating_mul(64).saturating_add(crate::tensor::product(&shape).unwrap_or(0) as u64),
    )?;
    let mel = |frequency: f64| 2595.0 * libm::log10(1.0 + frequency / 700.0);
    let step = (mel(high) - mel(low)) / count as f64;
    let bound = |at: usize| {
        let frequency = 700.0 * (libm::exp10((mel(low) + step * at as f64) / 2595.0) - 1.0);
        let place = (size as f64 + 1.0) * frequency / rate as f64;
        // Runtimes compute in binary32; the next whole number must be further away than that is inexact.
        let distance = (place - place.round()).abs();
        if place != 0.0 && distance <= 1e-4 * place.abs().max(1e-3) {
            return Err(Decline::unsupported("rounding determines the first frequency of a mel band"));
        }
        let place = place.floor();
        if (0.0..shape[0] as f64).contains(&place) {
            Ok(place as usize)
        } else {
            Err(Decline::invalid("a mel band exceeds the frequencies of the transform"))
        }
    };
    let bounds = (0..count).map(bound).collect::<Result<Vec<usize>, _>>()?;
    let mut weights = vec![0.0; crate::tensor::product(&shape).unwrap_or(0)];
    for (band, bounds) in bounds.windows(3).enumerate() {
        let &[lower, center, upper] = bounds else { continue };
        let mut set = |row: usize, weight: f64| {
            if let Some(place) = weights.get_mut(row * bins + band) {
                *place = weight;
            }
        };
        if lower == center {
            set(center, 1.0);
        }
        for row in lower..=center {
            if lower < center {
                set(row, (row - lower) as f64 / (center - lower) as f64);
            }
        }
        for row in center..upper {
            set(row, (upper - row) as f64 / (upper - center) as f64);
        }
    }
    Ok(vec![rounded(dtype, &shape, &weights)?.into()])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn node(bins: i64, size: i64, rate: i64) -> Single {
        let node = Single::new("MelWeightMatrix", 17).values(&[], &[bins]).values(&[], &[size]).values(&[], &[rate]);
        node.values(&[], &[0f32]).values(&[], &[8192f32 / 2.0])
    }

    #[test]
    fn triangles_rise_to_one_and_fall() {
        assert_eq!(node(8, 16, 8192).infer(), ["float[9, 8]"]);
        let weights = node(8, 16, 8192).floats();
        let column = |band: usize| (0..9).map(|row| weights[row * 8 + band]).collect::<Vec<_>>();
        assert_eq!(column(0), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(column(7), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert!(weights.iter().all(|weight| (0.0..=1.0).contains(weight)));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(node(-1, 16, 8192).infer()[0].starts_with("invalid"));
        assert!(node(8, 16, 0).eval().is_err());
        assert!(node(8, 16, 64).eval().is_err());
        assert!(node(i64::MAX, 16, 8192).eval().is_err());
        assert!(node(8, i64::MAX, 8192).eval().is_err());
        let unknown = Single::new("MelWeightMatrix", 17).input(DType::Int64, "").values(&[], &[16i64]);
        assert_eq!(unknown.input(DType::Int64, "").infer(), ["float[9, ?]"]);
    }
}
