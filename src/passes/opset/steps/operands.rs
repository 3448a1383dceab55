//! Turns attributes into operands, and converts operands.

use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};
use crate::tensor::{DType, Tensor};

/// Turns `axes` into operand 1. An empty list has the meaning of an absent one.
pub(in crate::passes::opset) fn axes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.ints("axes").is_ok_and(|axes| axes.is_some_and(|axes| axes.is_empty())) {
        draft.take("axes");
    }
    draft.ints_to_operand("axes", 1).map(drop)
}

/// Turns `min` and `max` into operands 1 and 2. Absent ones were the range of float32, for any type.
pub(in crate::passes::opset) fn clip(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let is_float = draft.dtype(0) == Some(DType::Float);
    for (slot, name, default) in [(1, "min", f32::MIN), (2, "max", f32::MAX)] {
        let bound = draft.float(name)?;
        draft.take(name);
        if bound.is_some() || !is_float {
            let bound = draft.number(name, f64::from(bound.unwrap_or(default)))?;
            draft.set_input(slot, bound);
        }
    }
    Ok(())
}

/// Turns `axis` into operand 2; an absent one was 1.
pub(in crate::passes::opset) fn dft(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let axis = draft.int("axis", 1)?;
    draft.take("axis");
    let axis = draft.constant("axis", Tensor::scalar(axis));
    draft.set_input(2, axis);
    Ok(())
}

/// Turns `pads` and `value` into operands 1 and 2.
pub(in crate::passes::opset) fn pad(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let value = draft.float("value")?;
    draft.take("value");
    if !draft.ints_to_operand("pads", 1)? {
        return Err("attribute 'pads' is missing; correct the model".to_string());
    }
    // An absent value is 0 in each version. A −0 is no 0.
    if let Some(value) = value.filter(|value| value.to_bits() != 0) {
        let value = draft.number("value", f64::from(value))?;
        draft.set_input(2, value);
    }
    Ok(())
}

/// Turns `shape` into operand 1.
pub(in crate::passes::opset) fn reshape(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("consumed_inputs");
    if draft.ints_to_operand("shape", 1)? {
        return Ok(());
    }
    Err("attribute 'shape' is missing; correct the model".to_string())
}

/// Turns `starts`, `ends` and `axes` into operands 1 to 3.
pub(in crate::passes::opset) fn slice(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    for (slot, name) in [(1, "starts"), (2, "ends")] {
        if !draft.ints_to_operand(name, slot)? {
            return Err(format!("attribute '{name}' is missing; correct the model"));
        }
    }
    if draft.ints("axes").is_ok_and(|axes| axes.is_some_and(|axes| axes.is_empty())) {
        draft.take("axes");
    }
    draft.ints_to_operand("axes", 3).map(drop)
}

/// Turns the sizes in operand 1, in the type of the data, into the attribute `split`.
pub(in crate::passes::opset) fn split_sizes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    // An absent axis is the first one in each version.
    if draft.input(1).is_none() {
        return Ok(());
    }
    let whole = |number: f64| (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as i64);
    let sizes = draft.const_numbers(1).and_then(|sizes| sizes.into_iter().map(whole).collect::<Option<Vec<_>>>());
    let sizes = sizes.ok_or("operand 1, the sizes, is not a constant of whole numbers; make it one")?;
    draft.truncate(1);
    draft.set("split", sizes);
    Ok(())
}

/// Turns `split` into operand 1.
pub(in crate::passes::opset) fn split(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.ints("split").is_ok_and(|sizes| sizes.is_some_and(|sizes| sizes.is_empty())) {
        draft.take("split");
    }
    draft.ints_to_operand("split", 1).map(drop)
}

/// Replaces the operands *tiles* and *axis* by the repeats of every axis.
pub(in crate::passes::opset) fn tile(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let one = |slot: usize| match draft.const_numbers(slot)?.as_slice() {
        [number] if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number as i64),
        _ => None,
    };
    let missing =
        "operands 1 and 2, how often and along which axis, are not constants of a whole number; make them some";
    let (times, axis) = (one(1).ok_or(missing)?, one(2).ok_or(missing)?);
    let rank = draft.rank(0)?;
    let mut repeats = vec![1; rank];
    let place = usize::try_from(axis).ok().and_then(|axis| repeats.get_mut(axis));
    *place.ok_or_else(|| format!("axis {axis} is none of the {rank} of the operand; correct the model"))? = times;
    draft.truncate(1);
    let repeats = draft.constant("repeats", Tensor::vector(repeats));
    draft.set_input(1, repeats);
    Ok(())
}

/// Turns `k` into operand 1, a vector of one element.
pub(in crate::passes::opset) fn top_k(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.attribute("k").is_none() {
        return Err("attribute 'k' is missing; correct the model".to_string());
    }
    let k = draft.int("k", 0)?;
    draft.take("k");
    let k = draft.constant("k", Tensor::vector(vec![k]));
    draft.set_input(1, k);
    Ok(())
}

/// Returns the sizes of operand `slot` if all of them are numbers.
pub(super) fn known_sizes(draft: &NodeDraft<'_>, slot: usize) -> Result<Vec<usize>, String> {
    let sizes = draft.fact(slot).and_then(crate::ir::Fact::static_shape);
    sizes.ok_or_else(|| format!("the shape of operand {slot} is unknown; {STATE_SHAPES}"))
}

/// Appends axes of size 1 to operand `slot` of this `rank`.
pub(super) fn widen(draft: &mut NodeDraft<'_>, slot: usize, rank: usize, behind: usize) {
    let Some(data) = draft.input(slot).filter(|_| behind > 0) else { return };
    let axes = (rank..rank.saturating_add(behind)).filter_map(|axis| i64::try_from(axis).ok()).collect();
    let node = draft.build("aligned").unsqueeze(data, axes);
    let wide = draft.before(node, "aligned");
    draft.set_input(slot, wide);
}
