//! Attributes that go, come, or are called otherwise.

use crate::ir::{Attribute, NamedAttribute};
use crate::passes::opset::draft::{NodeDraft, unreadable};
use crate::tensor::DType;

/// `to` names a type by its name, in whatever case.
pub(in crate::passes::opset) fn type_by_number(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let name = match draft.attribute("to") {
        // Some writers were early.
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

/// A Concat names its axis: 1 where it did not.
pub(in crate::passes::opset) fn concat_axis(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.attribute("axis").is_none() {
        draft.set("axis", 1);
    }
    Ok(())
}

/// A result is there if it is listed.
pub(in crate::passes::opset) fn drop_output_sequence(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("output_sequence");
    Ok(())
}

/// `p` is an INT.
pub(in crate::passes::opset) fn whole_p(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let Some(p) = draft.float("p")? else { return Ok(()) };
    if p.fract() != 0.0 || !(1.0..1e9).contains(&p) {
        return Err(format!("p is {p}, and only whole numbers are left; no newer version has such a norm"));
    }
    draft.set("p", p as i64);
    Ok(())
}

/// Elements are floats.
pub(in crate::passes::opset) fn no_integers(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    match draft.dtype(0) {
        Some(dtype) if !dtype.is_integer() => Ok(()),
        Some(dtype) => Err(format!("it takes no {} any more; cast the operand to a float", dtype.name())),
        // Inside functions types may be open; runtimes have no kernel for integers.
        None => Ok(()),
    }
}

/// `paddings` is called `pads`.
pub(in crate::passes::opset) fn pads(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    for held in &mut draft.node.attributes {
        if held.name == "paddings" {
            held.name = "pads".to_string();
        }
    }
    Ok(())
}

/// Scatter is called ScatterElements.
pub(in crate::passes::opset) fn scatter_elements(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.node.op_type = "ScatterElements".to_string();
    Ok(())
}

/// The defaults of alpha and gamma are written out: they have more digits now.
pub(in crate::passes::opset) fn selu(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("consumed_inputs");
    for (name, value) in [("alpha", 1.6732), ("gamma", 1.0507)] {
        if draft.attribute(name).is_none() {
            draft.node.attributes.push(NamedAttribute::new(name, Attribute::Float(value)));
        }
    }
    Ok(())
}

/// A Split without sizes says how many parts there are.
pub(in crate::passes::opset) fn split_count(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(1).is_none() {
        let count = i64::try_from(draft.node.outputs.len()).unwrap_or(i64::MAX);
        draft.set("num_outputs", count);
    }
    Ok(())
}
