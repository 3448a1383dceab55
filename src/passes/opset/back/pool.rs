//! The last window of a pool that rounds its count up.

use crate::dim::Dim;
use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};

/// A window that would begin in the padding at the end is left out, which the texts of older versions do not say, although kernels do it.
///
/// None begins there if `stride + pad ≤ window`. Where the last one of a known size does, rounding down leaves out that one only:
/// `⌊(p - k) / s⌋ + 1` windows fit into `p` elements.
pub(in crate::passes::opset) fn windows(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.int("ceil_mode", 0)? == 0 {
        return Ok(());
    }
    let kernel = draft.ints("kernel_shape")?.ok_or("attribute 'kernel_shape' is missing; correct the model")?;
    let axes = kernel.len();
    let ones = || vec![1i64; axes];
    let strides = draft.ints("strides")?.unwrap_or_else(ones);
    let dilations = draft.ints("dilations")?.unwrap_or_else(ones);
    if !matches!(draft.text("auto_pad", "NOTSET")?.as_str(), "NOTSET") {
        return Ok(());
    }
    let pads = draft.ints("pads")?.unwrap_or_else(|| vec![0; axes.saturating_mul(2)]);
    let (mut drops, mut exceeds) = (false, false);
    for axis in 0..axes {
        let at = |numbers: &[i64], axis: usize| numbers.get(axis).copied().unwrap_or(0);
        let window = (at(&kernel, axis).saturating_sub(1)).saturating_mul(at(&dilations, axis)).saturating_add(1);
        let (stride, end) = (at(&strides, axis), at(&pads, axis.saturating_add(axes)));
        if stride < 1 {
            return Err(format!("its stride is {stride}; correct the model"));
        }
        let size = draft.shape(0).and_then(|dims| dims.get(axis.saturating_add(2))).and_then(Dim::as_const);
        let Some(size) = size else {
            if stride.saturating_add(end) <= window {
                exceeds = true;
                continue;
            }
            return Err(format!(
                "its last window may begin in the padding, where texts and kernels of older versions differ; {STATE_SHAPES}"
            ));
        };
        let padded = size.saturating_add(at(&pads, axis)).saturating_add(end);
        let room = padded.saturating_sub(window);
        let rest = room.rem_euclid(stride);
        let last = room.saturating_sub(rest).saturating_add(stride);
        if rest > 0 && last >= size.saturating_add(at(&pads, axis)) {
            drops = true;
        } else if rest > 0 {
            exceeds = true;
        }
    }
    match (drops, exceeds) {
        (false, _) => Ok(()),
        (true, false) => {
            draft.take("ceil_mode");
            Ok(())
        }
        (true, true) => {
            Err("along one axis its last window begins in the padding, and along another it does not".into())
        }
    }
}
