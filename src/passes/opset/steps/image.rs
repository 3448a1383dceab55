//! Converts Resize, its predecessor Upsample, and other operators that interpolate images.

use crate::ir::{Attribute, NamedAttribute, NewNode};
use crate::passes::opset::draft::NodeDraft;
use crate::tensor::Tensor;
use bytes::Bytes;

fn word(text: &'static str) -> Attribute {
    Attribute::String(Bytes::from_static(text.as_bytes()))
}

/// Writes `height_scale` and `width_scale` as the last of `scales`.
pub(in crate::passes::opset) fn upsample_scales(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let missing = |name: &str| format!("attribute '{name}' is missing; correct the model");
    let height = draft.float("height_scale")?.ok_or_else(|| missing("height_scale"))?;
    let width = draft.float("width_scale")?.ok_or_else(|| missing("width_scale"))?;
    draft.take("height_scale");
    draft.take("width_scale");
    if draft.text("mode", "nearest")? != "nearest" {
        return Err("Upsample-1 does not define the coordinates of its interpolation; replace it by a Resize with explicit coordinates".to_string());
    }
    draft.node.attributes.push(NamedAttribute::new("scales", Attribute::Floats(vec![1.0, 1.0, height, width])));
    Ok(())
}

/// Turns `scales` into operand 1.
pub(in crate::passes::opset) fn upsample_operand(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let scales = match draft.take("scales") {
        Some(Attribute::Floats(scales)) => draft.constant("scales", Tensor::vector(scales)),
        Some(held @ Attribute::Reference { .. }) => {
            // The attribute is required, so each call provides it.
            draft.before(NewNode::new("Constant", []).with("value_floats", held), "scales")
        }
        _ => return Err("attribute 'scales' is missing; correct the model".to_string()),
    };
    draft.set_input(1, scales);
    Ok(())
}

/// Replaces Upsample by Resize. Its scales are at least 1, so the nearest element is rounded down. The next step cannot infer that for a Resize with
/// computed scales.
pub(in crate::passes::opset) fn resize(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.target.resize_to_sizes() && draft.text("mode", "nearest")? == "nearest" {
        draft.set("nearest_mode", word("floor"));
    }
    draft.node.op_type = "Resize".into();
    Ok(())
}

/// Writes the implicit modes of Resize-10: coordinates are asymmetric, and the nearest element is rounded down if the data grows, up if it shrinks.
/// Scales become operand 2.
pub(in crate::passes::opset) fn resize_modes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.set("coordinate_transformation_mode", word("asymmetric"));
    if draft.text("mode", "nearest")? == "nearest" && draft.attribute("nearest_mode").is_none() {
        let scales = draft
            .const_numbers(1)
            .ok_or("its scales are computed, and they decide the direction of rounding; make them constants")?;
        let whole = |scale: &f64| (1.0 / scale).fract() == 0.0;
        let grows = scales.iter().any(|&scale| scale > 1.0);
        // With integer subsampling, coordinates are integers.
        let shrinks = scales.iter().any(|scale| *scale < 1.0 && !whole(scale));
        if grows && shrinks {
            return Err(
                "some axes grow and others shrink, for which the nearest elements differ; write it as two nodes"
                    .to_string(),
            );
        }
        draft.set("nearest_mode", word(if shrinks { "ceil" } else { "floor" }));
    }
    let scales = draft.input(1);
    draft.node.inputs.truncate(1);
    draft.node.inputs.push(None);
    draft.node.inputs.push(scales);
    // The next step decides if an operand may be absent or must be empty.
    if !draft.target.axes_are_operands() {
        let roi = draft.constant("roi", Tensor::vector(Vec::<f32>::new()));
        draft.set_input(1, roi);
    }
    Ok(())
}

/// Drops empty or ignored operands, which may be absent now.
pub(in crate::passes::opset) fn resize_operands(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let coordinates = draft.text("coordinate_transformation_mode", "half_pixel")?;
    if coordinates == "tf_half_pixel_for_nn" {
        return Err("no newer version has the coordinates tf_half_pixel_for_nn; choose others".to_string());
    }
    for slot in [1, 2] {
        let is_empty = draft.fact(slot).and_then(crate::ir::Fact::static_len) == Some(0);
        let is_ignored = slot == 1 && coordinates != "tf_crop_and_resize";
        let is_ignored = is_ignored || (slot == 2 && draft.input(3).is_some() && is_empty);
        if is_ignored && let Some(place) = draft.node.inputs.get_mut(slot) {
            *place = None;
        }
    }
    draft.truncate(4);
    Ok(())
}

/// Writes the implicit coordinates `output_half_pixel`.
pub(in crate::passes::opset) fn roi_coordinates(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.set("coordinate_transformation_mode", word("output_half_pixel"));
    Ok(())
}

/// Writes the shorter names of modes.
pub(in crate::passes::opset) fn grid_modes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    match draft.text("mode", "bilinear")?.as_str() {
        "bilinear" if draft.attribute("mode").is_some() => draft.set("mode", word("linear")),
        "bicubic" => draft.set("mode", word("cubic")),
        _ => {}
    }
    Ok(())
}
