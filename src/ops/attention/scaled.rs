//! Evaluation of Attention, version 23 and later.
//!
//! With `s` the square root of the scale, for each head of Q; equal groups of these heads share a head of K and V:
//!
//! | step | `qk_matmul_output_mode` |
//! | --- | --- |
//! | `(s·Q)·(s·K)ᵀ` | 0 |
//! | `softcap · tanh(… / softcap)`, if `softcap` is not 0 | 1 |
//! | adds the mask, and −∞ for hidden keys ([`Bias`]) | 2 |
//! | softmax in `softmax_precision`; a query without visible keys gets zeros | 3 |
//! | `· V` | |
//!
//! Each step is rounded to the element type of Q, as in the standard's function body. Not evaluated: integer masks and masks of
//! one key, where runtimes disagree; operands without keys.

use super::heads::Heads;
use super::mask::{Bias, VisibleKeys};
use super::shapes::head_count;
use crate::ir::Data;
use crate::ops::lane::{Lane, in_lane, same_dtype};
use crate::ops::linear::{Matrix, multiply_add};
use crate::ops::{Decline, EvalCx, EvalResult};
use crate::tensor::{DType, nearest_bf16, nearest_f16, product};

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let dtype = cx.tensor(0)?.dtype();
    in_lane!(dtype, T => attend::<T>(cx, dtype))
}

/// Returns the function that rounds a number to a type.
fn rounding(dtype: DType) -> Result<fn(f64) -> f64, Decline> {
    Ok(match dtype {
        DType::Double => |value| value,
        DType::Float => |value| f64::from(value as f32),
        DType::Float16 => |value| nearest_f16(value).to_f64(),
        DType::Bfloat16 => |value| nearest_bf16(value).to_f64(),
        other => {
            return Err(Decline::invalid(format!("attribute 'softmax_precision' is {other}, which is not supported")));
        }
    })
}

/// Rounds results in the lane of a type to the type itself.
fn round<T: Lane>(dtype: DType, values: &mut [T]) -> Result<(), Decline> {
    if matches!(dtype, DType::Float16 | DType::Bfloat16) {
        let to = rounding(dtype)?;
        values.iter_mut().for_each(|value| *value = T::of(to(value.to_f64())));
    }
    Ok(())
}

/// The parameters that convert scores to weights.
struct Weighting {
    mode: i64,
    softcap: f64,
    /// Scores up to this count as hidden in runtimes that hide keys with the lowest number.
    lowest: f64,
    /// The precision of the softmax.
    fine: fn(f64) -> f64,
    /// The precision of all other steps.
    coarse: fn(f64) -> f64,
}

impl Weighting {
    fn of(cx: &EvalCx<'_>, dtype: DType) -> Result<Weighting, Decline> {
        let softcap = f64::from(cx.attr_float("softcap")?.unwrap_or(0.0));
        if softcap.is_nan() || softcap < 0.0 {
            return Err(Decline::unsupported(format!("'softcap' is {softcap}")));
        }
        let mode = cx.attr_int("qk_matmul_output_mode")?.unwrap_or(0);
        if !(0..=3).contains(&mode) {
            return Err(Decline::invalid(format!("'qk_matmul_output_mode' is {mode}, which is not valid")));
        }
        let coarse = rounding(dtype)?;
        Ok(Weighting {
            mode,
            softcap: coarse(softcap),
            lowest: match dtype {
                DType::Double => f64::MIN,
                DType::Float16 => -65504.0,
                _ => f64::from(f32::MIN),
            } / 2.0,
            fine: rounding(cx.attr_dtype("softmax_precision")?.unwrap_or(dtype))?,
            coarse,
        })
    }

    /// Computes `softcap · tanh(x / softcap)`.
    fn cap<T: Lane>(&self, scores: &mut [T]) {
        if self.softcap != 0.0 {
            for score in scores {
                let tanh = (self.coarse)(libm::tanh((self.coarse)(score.to_f64() / self.softcap)));
                *score = T::of((self.coarse)(tanh * self.softcap));
            }
        }
    }

    /// Computes the weights of the keys that one query sees.
    fn softmax<T: Lane>(&self, scores: &mut [T]) -> Result<(), Decline> {
        let exact: Vec<f64> = scores.iter().map(|score| (self.fine)(score.to_f64())).collect();
        let top = exact.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top <= self.lowest && !exact.iter().any(|score| score.is_nan()) {
            return Err(Decline::unsupported(
                "a key that is not masked has a score of −∞, or close to the lowest finite number",
            ));
        }
        let powers: Vec<f64> = exact.iter().map(|score| libm::exp(score - top)).collect();
        let sum: f64 = powers.iter().sum();
        for (score, power) in scores.iter_mut().zip(powers) {
            *score = T::of((self.coarse)((self.fine)(power / sum)));
        }
        Ok(())
    }
}

/// Returns the square root of the scale, in the element type.
fn root_scale(cx: &EvalCx<'_>, dtype: DType, size: usize) -> Result<f64, Decline> {
    let scale = cx.attr_float("scale")?.map_or(1.0 / (size as f64).sqrt(), f64::from);
    if !scale.is_finite() || scale < 0.0 {
        return Err(Decline::unsupported(format!("'scale' is {scale}")));
    }
    let root = rounding(dtype)?(scale.sqrt());
    // The standard's function body rounds it to float for all element types; implementations of its text do not.
    if root != f64::from(root as f32) && dtype == DType::Double {
        return Err(Decline::unsupported("the square root of the scale is not a finite float"));
    }
    Ok(root)
}

fn window(cx: &EvalCx<'_>) -> Result<VisibleKeys, Decline> {
    let side = |name| match cx.attr_int(name)? {
        Some(size) if cx.version >= 25 && size < -1 => {
            Err(Decline::invalid(format!("'{name}' is {size}, which is not valid")))
        }
        Some(size) if cx.version >= 25 && size >= 0 => Ok(Some(size)),
        _ => Ok(None),
    };
    Ok(VisibleKeys {
        causal: cx.attr_flag("is_causal", false)?,
        left: side("left_window_size")?,
        right: side("right_window_size")?,
    })
}

/// Returns the maximum of two numbers; NaN if one is NaN.
fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

fn attend<T: Lane>(cx: &EvalCx<'_>, dtype: DType) -> EvalResult {
    let (query, key, value) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    same_dtype(dtype, &[key, value])?;
    if query.rank() != key.rank() || query.rank() != value.rank() {
        return Err(Decline::invalid("'Q', 'K' and 'V' have different ranks"));
    }
    let apart = query.rank() == 4;
    let said = ["q_num_heads", "kv_num_heads"].iter().any(|name| cx.attribute(name).is_some());
    if apart && said && cx.version >= 25 {
        return Err(Decline::invalid(
            "an attribute gives the number of heads, but the operands already have an axis of heads",
        ));
    }
    let heads = |name: &'static str| {
        move || {
            usize::try_from(head_count(cx, name)?).map_err(|_| Decline::invalid(format!("'{name}' is out of range")))
        }
    };
    let mut q = Heads::<T>::of(cx, query, heads("q_num_heads"))?;
    let mut k = Heads::<T>::of(cx, key, heads("kv_num_heads"))?;
    let mut v = Heads::<T>::of(cx, value, heads("kv_num_heads"))?;
    let mut past = None;
    match (cx.optional_tensor(4)?, cx.optional_tensor(5)?) {
        (None, None) => {}
        (Some(keys), Some(values)) if keys.rank() == 4 && values.rank() == 4 => {
            same_dtype(dtype, &[keys, values])?;
            let none = || Err(Decline::invalid("'past_key' and 'past_value' must have rank 4"));
            let (keys, values) = (Heads::<T>::of(cx, keys, none)?, Heads::<T>::of(cx, values, none)?);
            past = Some(keys.length);
            (k, v) = (k.after(cx, keys)?, v.after(cx, values)?);
        }
        _ => return Err(Decline::invalid("'past_key' and 'past_value' must both be present and have rank 4")),
    }
    let fits = q.batch == k.batch
        && k.batch == v.batch
        && k.heads == v.heads
        && k.length == v.length
        && q.size == k.size
        && q.heads.checked_rem(k.heads) == Some(0);
    if !fits {
        return Err(Decline::invalid("the dims of 'Q', 'K' and 'V' do not match"));
    }
    // Without keys the result is 0, like the products in the standard's function body. Without a head size there is no scale.
    if q.size == 0 {
        return Err(Decline::unsupported(
            "the head size of 'Q' and 'K' is 0, for which the default scale is undefined",
        ));
    }

    let scores = [q.batch, q.heads, q.length, k.length];
    let terms = q.size.saturating_add(v.size).saturating_add(32);
    let work = product(&scores).and_then(|count| count.checked_mul(terms));
    cx.budget().take_work(work.map_or(u64::MAX, |work| work as u64))?;
    let flat = [q.batch, q.length, q.heads.saturating_mul(v.size)];
    let split = [q.batch, q.heads, q.length, v.size];
    let shape: &[usize] = if apart { &split } else { &flat };
    cx.claim(dtype, shape)?;
    cx.claim(DType::Double, &scores)?;

    let (rule, bias) = (Weighting::of(cx, dtype)?, Bias::<T>::new(cx, dtype, scores, window(cx)?, past)?);
    let present = (T::write(dtype, &k.shape(), k.values.clone())?, T::write(dtype, &v.shape(), v.values.clone())?);
    // Kernels scale the product, the text scales its operands: neither may overflow.
    let largest = |values: &[T]| values.iter().fold(0.0f64, |most, value| greater(most, value.to_f64().abs()));
    let (most_q, most_k, most_v) = (largest(&q.values), largest(&k.values), largest(&v.values));
    let most = if dtype == DType::Double { f64::MAX } else { f64::from(f32::MAX) } / 4.0;
    let terms = [most_q * most_k * q.size as f64, most_v * k.length as f64];
    if !terms.into_iter().all(|term| term <= most) {
        return Err(Decline::unsupported("intermediate results overflow in the kernels of runtimes"));
    }
    let root = root_scale(cx, dtype, q.size)?;
    // The error of a score is the rounding error of its terms; that of a weight is the same, relative to the weight.
    let precise = if dtype == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
    if most_q * most_k * q.size as f64 * root * root > precise {
        return Err(Decline::unsupported(
            "two scores are so close that rounding determines which key has the larger weight",
        ));
    }
    let scale = T::of(root);
    for values in [&mut q.values, &mut k.values] {
        values.iter_mut().for_each(|value| *value = value.times(scale));
        round(dtype, values)?;
    }

    let mut result = vec![T::default(); product(shape).unwrap_or(0)];
    let mut shown = Vec::new();
    let keeps = cx.has_output(3);
    let mut added = vec![T::default(); k.length];
    let shared = q.heads / k.heads.max(1);
    for at in 0..if q.length == 0 { 0 } else { q.batch * q.heads } {
        let (batch, head) = (at / q.heads, at % q.heads);
        let of = batch * k.heads + head / shared;
        let mut scores = vec![T::default(); q.length * k.length];
        let keys = Matrix::transposed(k.head(of), k.size);
        multiply_add(q.length, q.size, k.length, Matrix::dense(q.head(at), q.size), keys, &mut scores);
        round(dtype, &mut scores)?;
        let mut keep = |mode, scores: &[T]| {
            if keeps && rule.mode == mode {
                shown.extend_from_slice(scores);
            }
        };
        keep(0, &scores);
        rule.cap(&mut scores);
        keep(1, &scores);
        let mut blind = Vec::new();
        for (query, row) in scores.chunks_exact_mut(k.length.max(1)).enumerate() {
            blind.push(!bias.row(batch, head, query, &mut added));
            row.iter_mut().zip(&added).for_each(|(score, &bias)| *score = score.plus(bias));
        }
        round(dtype, &mut scores)?;
        keep(2, &scores);
        for (row, &blind) in scores.chunks_exact_mut(k.length.max(1)).zip(&blind) {
            if blind {
                row.fill(T::default());
            } else {
                rule.softmax(row)?;
            }
        }
        keep(3, &scores);
        let mut sums = vec![T::default(); q.length * v.size];
        let (weights, values) = (Matrix::dense(&scores, k.length), Matrix::dense(v.head(of), v.size));
        multiply_add(q.length, k.length, v.size, weights, values, &mut sums);
        for (query, sums) in sums.chunks_exact(v.size.max(1)).enumerate() {
            let row = if apart { at * q.length + query } else { (batch * q.length + query) * q.heads + head };
            if let Some(to) = result.get_mut(row * v.size..(row + 1) * v.size) {
                to.copy_from_slice(sums);
            }
        }
    }
    if rule.mode == 2 && shown.iter().any(|score: &T| score.to_f64() <= rule.lowest) {
        return Err(Decline::unsupported("the node outputs masked scores, for which runtimes return different values"));
    }
    let mut outputs: Vec<Data> = vec![T::write(dtype, shape, result)?.into(), present.0.into(), present.1.into()];
    if keeps {
        outputs.push(T::write(dtype, &scores, shown)?.into());
    }
    Ok(outputs)
}
