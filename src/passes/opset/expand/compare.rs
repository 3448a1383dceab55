//! Expands comparisons, and Bernoulli as a comparison of random numbers.

use crate::ir::{Attribute, NewNode};
use crate::passes::opset::draft::NodeDraft;
use crate::tensor::DType;

fn or_equal(draft: &mut NodeDraft<'_>, strict: &'static str) -> Result<(), String> {
    let (a, b) = (draft.operand(0)?, draft.operand(1)?);
    let differs = draft.op(strict, &[a, b], "differs");
    let equals = draft.op("Equal", &[a, b], "equals");
    draft.replace(NewNode::new("Or", [Some(differs), Some(equals)]));
    Ok(())
}

/// Expands GreaterOrEqual: `a > b` or `a = b`.
pub(in crate::passes::opset) fn greater_or_equal(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    or_equal(draft, "Greater")
}

/// Expands LessOrEqual: `a < b` or `a = b`.
pub(in crate::passes::opset) fn less_or_equal(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    or_equal(draft, "Less")
}

/// Returns 1 where a uniform random number is less than the probability.
pub(in crate::passes::opset) fn bernoulli(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (x, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let to = match draft.int("dtype", 0)? {
        0 => i64::from(dtype.onnx()),
        to => to,
    };
    let mut random = NewNode::new("RandomUniformLike", [Some(x)]).with("dtype", dtype);
    if let Some(seed) = draft.float("seed")? {
        random = random.with("seed", Attribute::Float(seed));
    }
    let random = draft.before(random, "random");
    let less = draft.op("Less", &[random, x], "less");
    draft.replace(if to == i64::from(DType::Bool.onnx()) {
        NewNode::new("Identity", [Some(less)])
    } else {
        NewNode::new("Cast", [Some(less)]).with("to", to)
    });
    Ok(())
}
