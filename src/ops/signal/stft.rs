use super::{number, one_sided};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};

pub(super) const STFT: Operator = Operator::infer_only("STFT", &[17], infer);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype().or(cx.dtype(2));
    let signal = match cx.shape(0) {
        Some([batch, length, _]) => Some((batch, length)),
        Some(shape) => return Err(Refusal::invalid(format!("the signal has {} axes, not 3", shape.len()))),
        None => None,
    };
    let window = match cx.shape(2) {
        Some([length]) => Some(length.clone()),
        Some(_) => return Err(Refusal::invalid("the window is no vector")),
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
        return Err(Refusal::invalid("the step from frame to frame is not positive"));
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
        (true, Some(frame)) => Some(one_sided(cx, &frame)),
        (_, frame) => frame,
    };
    let batch = signal.map(|(batch, _)| batch.clone());
    let mut shape: Vec<Dim> =
        [batch, frames, bins].into_iter().map(|dim| dim.unwrap_or_else(|| cx.fresh_dim())).collect();
    if shape.iter().any(|dim| dim.as_const().is_some_and(|dim| dim < 0)) {
        return Err(Refusal::invalid("a frame is longer than the signal"));
    }
    shape.push(Dim::constant(2));
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}
