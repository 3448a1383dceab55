//! Writes attributes that older versions lack or name differently.

use super::super::draft::unreadable;
use crate::ir::{Attribute, NewNode};
use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};
use crate::tensor::{DType, Tensor};

/// Writes the numbers of a Constant (`value_ints`, `value_float`, …) as its tensor `value`.
pub(in crate::passes::opset) fn constant_value(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let numbers = |values: &[i64]| Tensor::vector(values.to_vec());
    let held = draft.node.attributes.iter().find(|held| held.name.starts_with("value_"));
    let Some((name, value)) = held.map(|held| (held.name.to_string(), held.value.clone())) else { return Ok(()) };
    let tensor = match &value {
        Attribute::Int(value) => Tensor::scalar(*value),
        Attribute::Ints(values) => numbers(values),
        Attribute::Float(value) => Tensor::scalar(*value),
        Attribute::Floats(values) => Tensor::vector(values.clone()),
        Attribute::String(value) => {
            Tensor::from_strings(&[], vec![value.clone()]).map_err(|error| error.to_string())?
        }
        Attribute::Strings(values) => {
            Tensor::from_strings(&[values.len()], values.clone()).map_err(|error| error.to_string())?
        }
        other => return Err(unreadable(&name, other)),
    };
    draft.take(&name);
    draft.set("value", tensor);
    Ok(())
}

/// Normalizes by the given mean and variance, which the older version does if it lists one result.
pub(in crate::passes::opset) fn batch_inference(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.int("training_mode", 0)? != 0 {
        return Err("it is as in training (training_mode), where the older version has other results".to_string());
    }
    draft.take("training_mode");
    draft.node.outputs.truncate(1);
    Ok(())
}

/// Sets `is_test`: mean and variance are operands, and nothing is dropped.
pub(in crate::passes::opset) fn is_test(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.node.outputs.iter().skip(1).flatten().next().is_some() {
        return Err("it has results of training".to_string());
    }
    draft.set("is_test", 1);
    Ok(())
}

/// Drops an unread mask. A mask with readers had the type of the data.
pub(in crate::passes::opset) fn no_mask(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.is_read(1) {
        return Err("something reads the mask, which is of another type in the older version".to_string());
    }
    draft.node.outputs.truncate(1);
    Ok(())
}

/// Replaces `output_dtype` of a QuantizeLinear by a zero point of that type.
pub(in crate::passes::opset) fn quantized_type(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let named = draft.int("output_dtype", 0)?;
    if named == 0 {
        return Ok(());
    }
    draft.take("output_dtype");
    if draft.input(2).is_some() {
        return Ok(());
    }
    let dtype = i32::try_from(named).ok().and_then(DType::from_onnx);
    let dtype = dtype.ok_or_else(|| format!("output_dtype is {named}; correct the model"))?;
    let shape = draft.fact(1).and_then(crate::ir::Fact::static_shape);
    let shape = shape.ok_or_else(|| format!("the shape of the scale is unknown; {STATE_SHAPES}"))?;
    let zeros = Tensor::zeros(dtype, &shape).map_err(|error| error.to_string())?;
    let zeros = draft.constant("zero_point", zeros);
    draft.set_input(2, zeros);
    Ok(())
}

/// Removes `output_dtype` of a DequantizeLinear if it is the type of the scale.
pub(in crate::passes::opset) fn dequantized_type(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let named = draft.int("output_dtype", 0)?;
    let is_implied = draft.dtype(1).is_some_and(|dtype| i64::from(dtype.onnx()) == named);
    if named != 0 && is_implied {
        draft.take("output_dtype");
    }
    Ok(())
}

/// Checks that all operands have one shape, since they do not broadcast.
pub(in crate::passes::opset) fn one_shape(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let first = draft.shape(0);
    let scope = draft.facts.scope();
    let is_equal = |slot: usize| match (first, draft.shape(slot)) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| scope.eq(a, b).is_yes()),
        _ => false,
    };
    if (1..draft.node.inputs.len()).all(is_equal) {
        return Ok(());
    }
    Err("its operands are not proved to have one shape, and the older version does not broadcast".to_string())
}

/// Sets `broadcast` if the shapes differ. The second operand then broadcasts to the first, whose last dims it must have.
pub(in crate::passes::opset) fn broadcast(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if one_shape(draft).is_ok() {
        return Ok(());
    }
    let (long, short) = (draft.known_shape(0)?, draft.known_shape(1)?);
    let scope = draft.facts.scope();
    let is_last = short.len() <= long.len()
        && short.iter().rev().zip(long.iter().rev()).all(|(short, long)| scope.eq(short, long).is_yes());
    if !is_last {
        return Err(
            "its operands broadcast both ways, or along axes of size 1, which the older version does not do".into()
        );
    }
    draft.set("broadcast", 1);
    Ok(())
}

/// Sets `broadcast` of a Gemm, so that `C` broadcasts to the product.
pub(in crate::passes::opset) fn gemm_broadcast(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.set("broadcast", 1);
    Ok(())
}

/// Renames `pads` to `paddings`.
pub(in crate::passes::opset) fn paddings(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    for held in &mut draft.node.attributes {
        if held.name == "pads" {
            held.name = "paddings".into();
        }
    }
    Ok(())
}

/// Writes alpha and gamma, because their older defaults have fewer digits.
pub(in crate::passes::opset) fn selu(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    for (name, value) in [("alpha", 1.673_263_2), ("gamma", 1.050_701)] {
        if draft.attribute(name).is_none() {
            draft.set(name, Attribute::Float(value));
        }
    }
    Ok(())
}

/// Writes `to` as the name of the type.
pub(in crate::passes::opset) fn type_by_name(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let number = draft.int("to", 0)?;
    let dtype = i32::try_from(number).ok().and_then(DType::from_onnx);
    let dtype = dtype.ok_or_else(|| format!("attribute 'to' is {number}; correct the model"))?;
    draft.set("to", Attribute::String(dtype.name().to_uppercase().into()));
    Ok(())
}

/// Replaces a CastLike by a Cast to the type of operand 1.
pub(in crate::passes::opset) fn cast_like(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let dtype = draft.known_dtype(1)?;
    draft.replace(NewNode::new("Cast", [draft.input(0)]).with("to", dtype));
    Ok(())
}

/// Renames ScatterElements to Scatter.
pub(in crate::passes::opset) fn scatter(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.node.op_type = "Scatter".into();
    Ok(())
}
