//! Elements divided by a norm, by adjacent channels, or by a deviation.

use super::layout::Layout;
use super::normalize::count_of;
use super::real::{fit_on_the_way, keep_digits, reals, rounded, stay_above_zero};
use crate::ir::Data;
use crate::ops::{Decline, EvalCx, EvalResult, axis_in};
use crate::tensor::{DType, product};

/// Evaluates LpNormalization: `x / ‖x‖` along an axis, 0 if the norm is 0.
pub(super) fn eval_lp(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let axis = axis_in(cx.attr_int("axis")?.unwrap_or(-1), data.rank())?;
    let squared = match cx.attr_int("p")?.unwrap_or(2) {
        1 => false,
        2 => true,
        p => return Err(Decline::invalid(format!("attribute 'p' is {p} instead of 1 or 2"))),
    };
    let (layout, targets) = targets(cx, data.shape(), |at| at == axis)?;
    let mut values = reals(cx, data)?;
    let mut norms = vec![0.0; layout.results];
    for (x, &target) in values.iter().zip(&targets) {
        if let Some(norm) = norms.get_mut(target) {
            *norm += if squared { x * x } else { x.abs() };
        }
    }
    fit_on_the_way(data.dtype(), norms.iter().copied())?;
    stay_above_zero(data.dtype(), norms.iter().copied())?;
    if squared {
        norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
    }
    for (x, &target) in values.iter_mut().zip(&targets) {
        let norm = norms.get(target).copied().unwrap_or(0.0);
        *x = if norm == 0.0 { 0.0 } else { *x / norm };
    }
    Ok(vec![Data::Tensor(rounded(cx, data.dtype(), data.shape(), values)?)])
}

/// Returns for each element the index of its result in a reduction of some axes.
fn targets(cx: &EvalCx<'_>, shape: &[usize], reduced: impl Fn(usize) -> bool) -> Result<(Layout, Vec<usize>), Decline> {
    let flags: Vec<bool> = (0..shape.len()).map(reduced).collect();
    let layout = Layout::new(shape, &flags).ok_or_else(|| Decline::invalid("the number of elements is too large"))?;
    let count = product(shape).unwrap_or(0);
    cx.budget().take_bytes(count.saturating_mul(size_of::<usize>()))?;
    cx.budget().take_bytes(layout.results.saturating_mul(size_of::<[f64; 2]>()))?;
    let targets = layout.targets(count);
    Ok((layout, targets))
}

/// Evaluates LRN: `x / (bias + alpha / size · Σ x²)^beta` over `size` adjacent channels.
pub(super) fn eval_lrn(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let size = count_of(cx, "size")?;
    let float = |name: &str, default: f32| cx.attr_float(name).map(|value| f64::from(value.unwrap_or(default)));
    let (alpha, beta, bias) = (float("alpha", 1e-4)?, float("beta", 0.75)?, float("bias", 1.0)?);
    let [_, channels, rest @ ..] = data.shape() else {
        return Err(Decline::invalid("the data has no axis of channels"));
    };
    let (channels, inner) = (*channels, product(rest).unwrap_or(0));
    // If the number of neighbors is odd, there is one more after the channel.
    let (before, behind) = ((size - 1) / 2, size / 2);
    let work = data.len().saturating_mul(size.min(channels).saturating_add(32));
    cx.budget().take_work(u64::try_from(work).unwrap_or(u64::MAX))?;
    let values = reals(cx, data)?;
    cx.claim(DType::Double, data.shape())?;
    let mut results = values.clone();
    if let Some(item) = channels.checked_mul(inner).filter(|&item| item > 0) {
        for (results, values) in results.chunks_exact_mut(item).zip(values.chunks_exact(item)) {
            let mut sums = vec![0.0; inner];
            for (channel, row) in results.chunks_exact_mut(inner).enumerate() {
                let around =
                    channel.saturating_sub(before)..channel.saturating_add(behind).saturating_add(1).min(channels);
                sums.fill(0.0);
                for neighbour in
                    values.get(around.start * inner..around.end * inner).unwrap_or_default().chunks_exact(inner)
                {
                    sums.iter_mut().zip(neighbour).for_each(|(sum, x)| *sum += x * x);
                }
                fit_on_the_way(data.dtype(), sums.iter().copied())?;
                // Kernels update the window's sum by adding and subtracting squares.
                keep_digits(data.dtype(), sums.iter().map(|sum| alpha / size as f64 * sum / bias.abs().min(1.0)))?;
                for (x, sum) in row.iter_mut().zip(&sums) {
                    *x /= libm::pow(bias + alpha / size as f64 * sum, beta);
                }
            }
        }
    }
    Ok(vec![Data::Tensor(rounded(cx, data.dtype(), data.shape(), results)?)])
}

/// Evaluates MeanVarianceNormalization: `(x - E x) / (sqrt(E x² - (E x)²) + 1e-9)` along some axes.
pub(super) fn eval_mean_variance(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let axes = cx.attr_ints("axes")?.unwrap_or(&[0, 2, 3]);
    // ONNX Runtime runs nodes with axes out of range, including the defaults.
    let axes = axes.iter().map(|&axis| axis_in(axis, data.rank())).collect::<Result<Vec<_>, _>>();
    let axes = axes.map_err(|refusal| Decline::unsupported(refusal.to_string()))?;
    let (layout, targets) = targets(cx, data.shape(), |at| axes.is_empty() || axes.contains(&at))?;
    if layout.each == 0 && layout.results > 0 {
        return Err(Decline::unsupported("the mean of an empty tensor is undefined"));
    }
    let mut values = reals(cx, data)?;
    let count = layout.each as f64;
    let average = |of: &dyn Fn(usize, f64) -> f64, values: &[f64]| {
        let mut sums = vec![0.0; layout.results];
        for (&x, &target) in values.iter().zip(&targets) {
            if let Some(sum) = sums.get_mut(target) {
                *sum += of(target, x);
            }
        }
        sums.iter_mut().for_each(|sum| *sum /= count);
        sums
    };
    let at = |entries: &[f64], target: usize| entries.get(target).copied().unwrap_or(0.0);
    let means = average(&|_, x| x, &values);
    fit_on_the_way(data.dtype(), average(&|_, x| x * x, &values).into_iter().map(|square| square * count))?;
    let variances = average(&|target, x| (x - at(&means, target)).powi(2), &values);
    // If the mean is large, the standard subtracts two large numbers, and runtimes that round in between compute noise. Runtimes
    // without the 1e-9 divide by 0 for constant data.
    let noisy = means.iter().zip(&variances).any(|(mean, variance)| *variance < (1e-4 * mean * mean).max(1e-8));
    if noisy {
        return Err(Decline::unsupported(
            "the data is nearly constant, so that the rounding of the mean determines the standard deviation",
        ));
    }
    for (x, &target) in values.iter_mut().zip(&targets) {
        *x = (*x - at(&means, target)) / (at(&variances, target).sqrt() + 1e-9);
    }
    Ok(vec![Data::Tensor(rounded(cx, data.dtype(), data.shape(), values)?)])
}
