//! STFT: the Fourier transforms of the frames of a signal.
//!
//! | | |
//! |---|---|
//! | computes | for frame `f` the transform of `signal[f·step + j]·window[j]` over its `j` |
//! | operands | `signal [B, L, 1]`, also written `[B, L]` as torch exports it, or, complex, `[B, L, 2]`; `frame_step`; `window [F]` (ones); `frame_length` `F` (the window's length, or the signal's) |
//! | shapes | `[B, ⌊(L − F) / step⌋ + 1, F, 2]`, `⌊F / 2⌋ + 1` frequencies when `onesided`, the default |
//! | refuses | a window that is not as long as a frame, one-sided transforms of complex signals, a frame longer than the signal |

use super::fourier::{Complex, FourierTables};
use super::{length, number, one_sided, reals, rounded, scalar};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::same_dtype;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::threads;
use crate::tensor::{DType, product};

pub(super) const STFT: Operator = Operator::new("STFT", &[17], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype().or(cx.dtype(2));
    let signal = match cx.shape(0) {
        Some([batch, length] | [batch, length, _]) => Some((batch, length)),
        Some(shape) => {
            return Err(Refusal::invalid(format!("the rank of the signal is {} instead of 2 or 3", shape.len())));
        }
        None => None,
    };
    let window = match cx.shape(2) {
        Some([length]) => Some(length.clone()),
        Some(_) => return Err(Refusal::invalid("the window is not a vector")),
        None => None,
    };
    let given = if cx.has_input(3) { number(cx, 3) } else { None };
    let frame = match (cx.has_input(2), cx.has_input(3)) {
        (false, false) => signal.map(|(_, length)| length.clone()),
        _ => window.filter(|window| window.as_const().is_some() || given.is_none()).or(given),
    };
    let scope = cx.scope();
    let step = number(cx, 1);
    if step.as_ref().and_then(Dim::as_const).is_some_and(|step| step <= 0) {
        return Err(Refusal::invalid("'frame_step' is not positive"));
    }
    let frames = match (signal, &frame, step) {
        (Some((_, length)), Some(frame), Some(step)) if scope.ge(&step, &Dim::constant(1)).is_yes() => {
            let room = scope.sub(length, frame);
            Some(scope.add(&scope.floor_div(&room, &step), &Dim::constant(1)))
        }
        // A signal as long as the frame makes one frame, whatever the step.
        (Some((_, length)), Some(frame), _) if scope.eq(length, frame).is_yes() => Some(Dim::constant(1)),
        _ => None,
    };
    let bins = match (cx.attr_flag("onesided", true)?, frame) {
        // The standard's own inference takes 0 for the default, which is 1.
        (true, _) if cx.attribute("onesided").is_none() => None,
        (true, Some(frame)) => Some(one_sided(cx, &frame)),
        (_, frame) => frame,
    };
    let batch = signal.map(|(batch, _)| batch.clone());
    let mut shape: Vec<Dim> =
        [batch, frames, bins].into_iter().map(|dim| dim.unwrap_or_else(|| cx.fresh_dim())).collect();
    if shape.iter().any(|dim| dim.as_const().is_some_and(|dim| dim < 0)) {
        return Err(Refusal::invalid("'frame_length' is larger than the signal"));
    }
    shape.push(Dim::constant(2));
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (signal, window) = (cx.tensor(0)?, cx.optional_tensor(2)?);
    let (batch, total, parts) = match *signal.shape() {
        [batch, total] => (batch, total, 1),
        [batch, total, parts @ 1..=2] => (batch, total, parts),
        _ => {
            return Err(Decline::invalid(format!("the signal has shape {:?}, which is not supported", signal.shape())));
        }
    };
    let one_sided = cx.attr_flag("onesided", true)?;
    if one_sided && parts == 2 {
        return Err(Decline::invalid("'onesided' is 1, but the signal is complex"));
    }
    let step = length(scalar(cx, 1)?)?;
    let own = window.map_or(total, crate::tensor::Tensor::len);
    let frame = if cx.has_input(3) { length(scalar(cx, 3)?)? } else { own };
    if let Some(window) = window {
        same_dtype(signal.dtype(), &[window])?;
        if window.shape() != [frame] {
            return Err(Decline::invalid(format!(
                "the window has shape {:?}, but 'frame_length' is {frame}",
                window.shape()
            )));
        }
    }
    let room = total.checked_sub(frame).filter(|_| frame > 0);
    let frames = room.and_then(|room| room.checked_div(step)).and_then(|frames| frames.checked_add(1));
    let frames = frames.ok_or_else(|| {
        Decline::invalid(format!(
            "'frame_length' {frame} and 'frame_step' {step} do not fit a signal of length {total}"
        ))
    })?;
    let bins = if one_sided { frame / 2 + 1 } else { frame };
    let shape = [batch, frames, bins, 2];
    cx.claim(signal.dtype(), &shape)?;
    cx.claim(DType::Double, &shape)?;
    cx.claim(DType::Complex128, &[FourierTables::memory(frame)])?;
    let transforms = (batch as u64).saturating_mul(frames as u64).saturating_add(2);
    cx.budget().take_work(transforms.saturating_mul(FourierTables::work(frame)))?;
    let values = reals(cx, signal)?;
    let weights = window.map(|window| reals(cx, window)).transpose()?;
    let weight = |at: usize| weights.as_ref().map_or(1.0, |weights| weights.get(at).copied().unwrap_or(0.0));
    let mut results = vec![0.0; product(&shape).unwrap_or(0)];
    let tables = FourierTables::new(frame);
    threads::for_each(results.chunks_exact_mut(bins * 2).enumerate(), |(number, to)| {
        let start = number / frames * total + number % frames * step;
        let part = |at: usize, part: usize| values.get((start + at) * parts + part).copied().unwrap_or(0.0);
        let mut line: Vec<Complex> = (0..frame)
            .map(|at| [part(at, 0) * weight(at), if parts == 2 { part(at, 1) * weight(at) } else { 0.0 }])
            .collect();
        tables.forward(&mut line);
        to.as_chunks_mut::<2>().0.iter_mut().zip(&line).for_each(|(to, value)| *to = *value);
    });
    Ok(vec![rounded(signal.dtype(), &shape, &results)?.into()])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let stft = |shape: &str, step: i64| Single::new("STFT", 17).input(DType::Float, shape).values(&[], &[step]);
        assert_eq!(stft("B 128 1", 8).absent().values(&[], &[16i64]).infer(), ["float[B, 15, ?, 2]"]);
        assert_eq!(stft("B 128 1", 8).values(&[16], &[1f32; 16]).with("onesided", 0).infer(), ["float[B, 15, 16, 2]"]);
        assert_eq!(
            stft("B L 1", 8).values(&[16], &[1f32; 16]).with("onesided", 1).infer(),
            ["float[B, floor(L/8) - 1, 9, 2]"]
        );
        assert_eq!(stft("B L 1", 8).with("onesided", 1).infer(), ["float[B, 1, floor(L/2) + 1, 2]"]);
        assert_eq!(stft("B 9 1", 8).absent().input(DType::Int64, "").infer(), ["float[B, ?, ?, 2]"]);
        assert!(stft("B 9 1", 0).infer()[0].starts_with("invalid"));
        assert_eq!(
            stft("B L", 8).values(&[16], &[1f32; 16]).with("onesided", 1).infer(),
            ["float[B, floor(L/8) - 1, 9, 2]"]
        );
        assert!(stft("9", 1).infer()[0].starts_with("invalid"));
        assert!(stft("B 9 1 1", 1).infer()[0].starts_with("invalid"));
    }

    #[test]
    fn values() {
        let stft = |parts: usize, step: i64| {
            let values: Vec<f32> = (0..5 * parts).map(|at| at as f32).collect();
            Single::new("STFT", 17).values(&[1, 5, parts], &values).values(&[], &[step])
        };
        assert_eq!(stft(1, 2).values(&[2], &[1f32, 2.0]).floats(), [2.0, 0.0, -2.0, 0.0, 8.0, 0.0, -4.0, 0.0]);
        let plain = Single::new("STFT", 17).values(&[1, 5], &[0f32, 1.0, 2.0, 3.0, 4.0]).values(&[], &[2]);
        assert_eq!(plain.values(&[2], &[1f32, 2.0]).floats(), [2.0, 0.0, -2.0, 0.0, 8.0, 0.0, -4.0, 0.0]);
        let frame = stft(2, 4).absent().values(&[], &[1i64]).with("onesided", 0);
        assert_eq!(frame.floats(), [0.0, 1.0, 8.0, 9.0]);
        assert!(stft(2, 4).eval().is_err());
        assert!(stft(1, 0).eval().is_err());
        assert!(stft(1, 1).absent().values(&[], &[6i64]).eval().is_err());
        assert!(stft(1, 1).values(&[2], &[1f32, 2.0]).values(&[], &[3i64]).eval().is_err());
    }
}
