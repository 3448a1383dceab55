//! Writes Resize and GridSample in older versions.

use super::operands::{in_order, places};
use crate::ir::{Attribute, NewNode};
use crate::passes::opset::draft::NodeDraft;
use crate::rewrite::Build;
use crate::tensor::Tensor;
use bytes::Bytes;

fn word(text: &'static str) -> Attribute {
    Attribute::String(Bytes::from_static(text.as_bytes()))
}

/// Writes the longer names of modes; only images are supported.
pub(in crate::passes::opset) fn grid_modes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.rank(0)? != 4 {
        return Err("it samples other tensors than images (of rank 4)".to_string());
    }
    match draft.text("mode", "linear")?.as_str() {
        "linear" => draft.set("mode", word("bilinear")),
        "cubic" => draft.set("mode", word("bicubic")),
        _ => {}
    }
    Ok(())
}

/// Removes coordinates `output_half_pixel`, which the older version has without a name.
pub(in crate::passes::opset) fn roi_coordinates(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let coordinates = draft.text("coordinate_transformation_mode", "half_pixel")?;
    if coordinates != "output_half_pixel" {
        return Err(format!("the older version has no coordinates '{coordinates}'"));
    }
    draft.take("coordinate_transformation_mode");
    Ok(())
}

/// Extends scales or sizes of named axes to all axes: the other axes have the scale 1, or keep their size.
pub(in crate::passes::opset) fn resize_axes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let Some(axes) = draft.ints("axes")? else { return Ok(()) };
    draft.take("axes");
    let rank = draft.rank(0)?;
    let places = places(&axes, rank)?;
    if places.iter().enumerate().all(|(axis, place)| *place == Some(axis)) {
        return Ok(());
    }
    if draft.text("coordinate_transformation_mode", "half_pixel")? == "tf_crop_and_resize" {
        return Err("it crops along some axes only".to_string());
    }
    let policy = draft.text("keep_aspect_ratio_policy", "stretch")?;
    if policy != "stretch" {
        return Err(format!("the older version has no attribute 'keep_aspect_ratio_policy' ({policy})"));
    }
    let named = places.iter().flatten().count();
    if draft.input(2).is_some() {
        let one = draft.constant("one", Tensor::vector(vec![1.0f32]));
        let order: Vec<usize> = places.iter().map(|place| place.unwrap_or(named)).collect();
        let scales = match draft.const_numbers(2) {
            Some(own) => {
                let scales =
                    places.iter().map(|place| place.and_then(|place| own.get(place)).map_or(1.0, |s| *s as f32));
                draft.constant("scales", Tensor::vector(scales.collect::<Vec<f32>>()))
            }
            None => in_order(draft, 2, one, &order)?,
        };
        draft.set_input(2, scales);
    }
    if draft.input(3).is_some() {
        let shape = draft.before(Build::shape(draft.operand(0)?), "shape");
        let order: Vec<usize> =
            places.iter().enumerate().map(|(axis, place)| place.unwrap_or(named.saturating_add(axis))).collect();
        let sizes = in_order(draft, 3, shape, &order)?;
        draft.set_input(3, sizes);
    }
    // Only tf_crop_and_resize reads a region of interest.
    if let Some(place) = draft.node.inputs.get_mut(1) {
        *place = None;
    }
    Ok(())
}

/// Writes absent operands as empty tensors.
pub(in crate::passes::opset) fn resize_operands(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    for slot in [1, 2] {
        if draft.input(slot).is_none() {
            let empty = draft.constant(if slot == 1 { "roi" } else { "scales" }, Tensor::vector(Vec::<f32>::new()));
            draft.set_input(slot, empty);
        }
    }
    Ok(())
}

/// Checks that Resize-10 is equivalent: it has scales and asymmetric coordinates, rounded down if the data grows. For integer scales, rounded
/// coordinates of pixel centers give the same element, `⌊i / s⌋`: `(i + ½) / s - ½` differs from it by less than ½.
pub(in crate::passes::opset) fn resize_modes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(3).is_some() {
        return Err("it has sizes, but the older version accepts only scales".to_string());
    }
    let scales = draft.const_numbers(2);
    let scales = scales.ok_or("its scales are computed, and decide how the older version finds the nearest element")?;
    let coordinates = draft.text("coordinate_transformation_mode", "half_pixel")?;
    let (mode, nearest) = (draft.text("mode", "nearest")?, draft.text("nearest_mode", "round_prefer_floor")?);
    let whole = scales.iter().all(|scale| *scale >= 1.0 && scale.fract() == 0.0);
    let grows = scales.iter().all(|scale| *scale >= 1.0);
    let is_same = match (mode.as_str(), coordinates.as_str(), nearest.as_str()) {
        ("nearest", "asymmetric", "floor") => grows,
        ("nearest", "half_pixel", "round_prefer_floor" | "round_prefer_ceil") => whole,
        ("linear", "asymmetric", _) => true,
        _ => false,
    };
    if !is_same {
        return Err(format!("mode '{mode}' of coordinates '{coordinates}' is none of the older version"));
    }
    for name in
        ["coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode"]
    {
        draft.take(name);
    }
    let scales = draft.operand(2)?;
    draft.truncate(1);
    draft.set_input(1, scales);
    Ok(())
}

/// Writes Resize as Upsample if nothing shrinks.
pub(in crate::passes::opset) fn upsample(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let scales = draft.const_numbers(1).ok_or("its scales are computed; make them constants")?;
    if scales.iter().any(|scale| *scale < 1.0) {
        return Err("it makes the data smaller".to_string());
    }
    let mut node = NewNode::new("Upsample", [draft.input(0), draft.input(1)]);
    node.attributes = std::mem::take(&mut draft.node.attributes);
    draft.replace(node);
    Ok(())
}

/// Turns `scales`, operand 1, into an attribute.
pub(in crate::passes::opset) fn upsample_scales(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let scales = draft.const_numbers(1).ok_or("its scales are computed; make them constants")?;
    draft.truncate(1);
    draft.set("scales", Attribute::Floats(scales.into_iter().map(|scale| scale as f32).collect()));
    Ok(())
}
