//! The last window of a pool with `ceil_mode`.

use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};

/// Checks or changes `ceil_mode`: kernels omit a window that begins in the padding at the end, but the texts of older versions count it.
///
/// No window begins there if `stride + pad ≤ window`. If only the last window of a known size does, rounding down omits just that one:
/// `⌊(p - k) / s⌋ + 1` windows fit into `p` elements. If windows of another axis exceed the padding, its end padding grows until they fit. Results do
/// not depend on the padding unless it is counted.
pub(in crate::passes::opset) fn windows(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.int("ceil_mode", 0)? == 0 || draft.text("auto_pad", "NOTSET")? != "NOTSET" {
        return Ok(());
    }
    let kernel = draft.ints("kernel_shape")?.ok_or("attribute 'kernel_shape' is missing; correct the model")?;
    let axes = kernel.len();
    let strides = draft.ints("strides")?.unwrap_or_else(|| vec![1; axes]);
    let dilations = draft.ints("dilations")?.unwrap_or_else(|| vec![1; axes]);
    let mut pads = draft.ints("pads")?.unwrap_or_else(|| vec![0; axes.saturating_mul(2)]);
    if strides.len() != axes || dilations.len() != axes || pads.len() != axes.saturating_mul(2) {
        return Err(format!("its attributes are not of {axes} axes; correct the model"));
    }
    let (begins, ends) = pads.split_at_mut(axes);
    let (mut drops, mut exceeds, mut is_open) = (false, false, false);
    let sizes = (2usize..).map(|axis| draft.shape(0)?.get(axis)?.as_const());
    for ((((kernel, dilation), stride), (begin, end)), size) in
        kernel.iter().zip(&dilations).zip(&strides).zip(begins.iter().zip(ends)).zip(sizes)
    {
        if *stride < 1 {
            return Err(format!("its stride is {stride}; correct the model"));
        }
        let window = kernel.saturating_sub(1).saturating_mul(*dilation).saturating_add(1);
        let Some(size) = size else {
            is_open = true;
            if stride.saturating_add(*end) <= window {
                continue;
            }
            return Err(format!(
                "its last window may begin in the padding, where texts and kernels of older versions differ; {STATE_SHAPES}"
            ));
        };
        let filled = size.saturating_add(*begin);
        let room = filled.saturating_add(*end).saturating_sub(window);
        let rest = room.rem_euclid(*stride);
        let more = stride.saturating_sub(rest);
        if rest > 0 && room.saturating_add(more) >= filled {
            drops = true;
        } else if rest > 0 {
            exceeds = true;
            *end = end.saturating_add(more);
        }
    }
    if !drops {
        return Ok(());
    }
    if is_open || (exceeds && draft.int("count_include_pad", 0)? != 0) {
        return Err("along one axis its last window begins in the padding, and along another it may not".to_string());
    }
    draft.take("ceil_mode");
    if exceeds {
        draft.set("pads", pads);
    }
    Ok(())
}
