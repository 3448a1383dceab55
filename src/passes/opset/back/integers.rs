//! Writes Clip, Max and Min of integers as comparisons, where the older version only supports floats.

use crate::ir::{NewNode, ValueId};
use crate::passes::opset::draft::NodeDraft;
use crate::tensor::DType;

/// Returns the type in which runtimes compare elements of an integer type.
fn compared_in(dtype: DType) -> Option<DType> {
    match dtype {
        DType::Int32 | DType::Int64 => Some(dtype),
        DType::Int8 | DType::Int16 | DType::Uint8 | DType::Uint16 => Some(DType::Int32),
        DType::Uint32 => Some(DType::Int64),
        _ => None,
    }
}

/// Selects the greater or the lesser of two integers: `a < b ? b : a`, `b < a ? b : a`.
fn select(draft: &mut NodeDraft<'_>, a: ValueId, b: ValueId, greater: bool) -> ValueId {
    let (low, high) = if greater { (a, b) } else { (b, a) };
    let less = draft.op("Less", &[low, high], "less");
    draft.op("Where", &[less, b, a], "selected")
}

/// Casts operand `slot` to the type of the comparison.
fn compared(draft: &mut NodeDraft<'_>, slot: usize, dtype: DType, within: DType) -> Result<ValueId, String> {
    let value = draft.operand(slot)?;
    let cast = NewNode::new("Cast", [Some(value)]).with("to", within);
    Ok(if dtype == within { value } else { draft.before(cast, "wide") })
}

/// Returns the type of operand 0 and the type of the comparison; `None` if operand 0 has no integers.
fn integers(draft: &NodeDraft<'_>) -> Result<Option<(DType, DType)>, String> {
    let dtype = draft.known_dtype(0)?;
    if !dtype.is_integer() {
        return Ok(None);
    }
    let within = compared_in(dtype).filter(|_| draft.target.has("Where"));
    let within = within.ok_or_else(|| format!("it does not take {}", dtype.name()))?;
    Ok(Some((dtype, within)))
}

/// Makes `value`, cast to the type of operand 0, the result of the node.
fn finish(draft: &mut NodeDraft<'_>, value: ValueId, dtype: DType, within: DType) {
    draft.replace(match dtype == within {
        true => NewNode::new("Identity", [Some(value)]),
        false => NewNode::new("Cast", [Some(value)]).with("to", dtype),
    });
}

/// Writes Clip of integers: first at least `min`, then at most `max`.
pub(in crate::passes::opset) fn clip(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let Some((dtype, within)) = integers(draft)? else { return Ok(()) };
    let mut value = compared(draft, 0, dtype, within)?;
    for (slot, greater) in [(1, true), (2, false)] {
        if draft.input(slot).is_some() {
            let bound = compared(draft, slot, dtype, within)?;
            value = select(draft, value, bound, greater);
        }
    }
    finish(draft, value, dtype, within);
    Ok(())
}

fn fold(draft: &mut NodeDraft<'_>, greater: bool) -> Result<(), String> {
    let Some((dtype, within)) = integers(draft)? else { return Ok(()) };
    let mut value = compared(draft, 0, dtype, within)?;
    for slot in 1..draft.node.inputs.len() {
        let other = compared(draft, slot, dtype, within)?;
        value = select(draft, value, other, greater);
    }
    finish(draft, value, dtype, within);
    Ok(())
}

/// Writes Max of integers.
pub(in crate::passes::opset) fn max(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    fold(draft, true)
}

/// Writes Min of integers.
pub(in crate::passes::opset) fn min(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    fold(draft, false)
}

/// Writes Relu of integers as Max with 0.
pub(in crate::passes::opset) fn relu(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let dtype = draft.known_dtype(0)?;
    if dtype.is_integer() {
        let zero = crate::tensor::Tensor::zeros(dtype, &[]).map_err(|error| error.to_string())?;
        let zero = draft.constant("zero", zero);
        draft.replace(NewNode::new("Max", [draft.input(0), Some(zero)]));
    }
    Ok(())
}

/// Writes a Clip as two broadcasting operators: at least operand 1, then at most operand 2.
pub(super) fn clip_by(draft: &mut NodeDraft<'_>, max: &'static str, min: &'static str) -> Result<(), String> {
    if !draft.target.everything_broadcasts() {
        return Err("its bounds are computed".to_string());
    }
    let data = draft.operand(0)?;
    let mut node = NewNode::new("Identity", [Some(data)]);
    if let Some(low) = draft.input(1) {
        node = NewNode::new(max, [Some(data), Some(low)]);
    }
    if let Some(high) = draft.input(2) {
        let value = if draft.input(1).is_some() { draft.before(node, "raised") } else { data };
        node = NewNode::new(min, [Some(value), Some(high)]);
    }
    draft.replace(node);
    Ok(())
}

/// Writes ReduceMax or ReduceMin of booleans as one of 0 and 1.
pub(in crate::passes::opset) fn reduce_bools(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.known_dtype(0)? != DType::Bool {
        return Ok(());
    }
    let data = NewNode::new("Cast", [draft.input(0)]).with("to", DType::Uint8);
    let data = draft.before(data, "numbers");
    draft.set_input(0, data);
    draft.behind(0, "numbers", |numbers| NewNode::new("Cast", [Some(numbers)]).with("to", DType::Bool));
    Ok(())
}
