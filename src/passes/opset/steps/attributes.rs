//! Removes, adds and renames attributes for newer versions.

use crate::dim::Dim;
use crate::ir::{Attribute, NamedAttribute, NewNode};
use crate::ops::axis_in;
use crate::passes::opset::draft::{NodeDraft, unreadable};
use crate::rewrite::Build;
use crate::tensor::{DType, Tensor};

/// Replaces the name of a type in `to`, in any case, by its number.
pub(in crate::passes::opset) fn type_by_number(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let name = match draft.attribute("to") {
        // Some exporters wrote numbers early.
        Some(Attribute::Int(_)) => return Ok(()),
        Some(Attribute::String(name)) => String::from_utf8_lossy(name).to_lowercase(),
        Some(other) => return Err(unreadable("to", other)),
        None => return Err("attribute 'to' is missing; correct the model".to_string()),
    };
    let to =
        DType::from_name(&name).ok_or_else(|| format!("'{name}' is the name of no element type; correct the model"))?;
    draft.set("to", to);
    Ok(())
}

/// Sets the `axis` of a Concat to its old default, 1.
pub(in crate::passes::opset) fn concat_axis(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.attribute("axis").is_none() {
        draft.set("axis", 1);
    }
    Ok(())
}

/// Removes `output_sequence`: a listed result exists.
pub(in crate::passes::opset) fn drop_output_sequence(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("output_sequence");
    Ok(())
}

/// Turns `p` into an INT.
pub(in crate::passes::opset) fn whole_p(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let Some(p) = draft.float("p")? else { return Ok(()) };
    if p.fract() != 0.0 || !(1.0..1e9).contains(&p) {
        return Err(format!("p is {p}, and newer versions accept only integers"));
    }
    draft.set("p", p as i64);
    Ok(())
}

/// Checks that elements are floats.
pub(in crate::passes::opset) fn no_integers(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    match draft.dtype(0) {
        Some(dtype) if !dtype.is_integer() => Ok(()),
        Some(dtype) => Err(format!("newer versions do not accept {}; cast the operand to a float", dtype.name())),
        // Types may be unknown inside functions; runtimes have no kernel for integers.
        None => Ok(()),
    }
}

/// Renames `paddings` to `pads`.
pub(in crate::passes::opset) fn pads(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    for held in &mut draft.node.attributes {
        if held.name == "paddings" {
            held.name = "pads".into();
        }
    }
    Ok(())
}

/// Renames Scatter to ScatterElements.
pub(in crate::passes::opset) fn scatter_elements(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.node.op_type = "ScatterElements".into();
    Ok(())
}

/// Writes the older defaults of alpha and gamma: the newer ones have more digits.
pub(in crate::passes::opset) fn selu(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("consumed_inputs");
    for (name, value) in [("alpha", 1.6732), ("gamma", 1.0507)] {
        if draft.attribute(name).is_none() {
            draft.node.attributes.push(NamedAttribute::new(name, Attribute::Float(value)));
        }
    }
    Ok(())
}

/// Writes a Split without sizes, which makes equal parts. With `num_outputs`, the last part may be smaller, and a dim smaller than the number of
/// parts, such as 0, is rejected. So `num_outputs` is only set if the dim is proved large enough; otherwise the sizes are computed.
pub(in crate::passes::opset) fn split_count(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(1).is_some() {
        return Ok(());
    }
    let count = i64::try_from(draft.node.outputs.len()).unwrap_or(i64::MAX);
    let parts = Dim::constant(count);
    let axis = draft.int("axis", 0)?;
    let dim = draft.shape(0).and_then(|dims| dims.get(axis_in(axis, dims.len()).ok()?));
    let is_enough = dim.is_some_and(|dim| draft.facts.scope().ge(dim, &parts).is_yes());
    if is_enough || count == 0 {
        draft.set("num_outputs", count);
        return Ok(());
    }
    let sizes = match dim.and_then(Dim::as_const) {
        // An indivisible dim is rejected as before.
        Some(dim) => draft.constant("sizes", Tensor::vector(vec![dim / count; draft.node.outputs.len()])),
        None => {
            let shape = Build::shape(draft.input(0).ok_or("operand 0 is missing")?).with("start", axis);
            let shape = if axis == -1 { shape } else { shape.with("end", axis.saturating_add(1)) };
            let whole = draft.before(shape, "whole");
            let parts = draft.constant("parts", Tensor::vector(vec![count]));
            let part = draft.before(NewNode::new("Div", [Some(whole), Some(parts)]), "part");
            draft.before(Build::concat(vec![part; draft.node.outputs.len()], 0i64), "sizes")
        }
    };
    draft.set_input(1, sizes);
    Ok(())
}
