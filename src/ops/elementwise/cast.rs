//! Cast and CastLike.
//!
//! | operator | versions that differ |
//! | --- | --- |
//! | Cast | 1: `to` is the type's name; 6: its number; later versions add types, 19 `saturate`, 24 `round_mode` |
//! | CastLike | 15; later versions as Cast. The target type is that of the second operand; its value is irrelevant |
//!
//! The module [`convert`](super::convert) defines the rules and the declined cases. Symbolic elements are kept if their value is
//! the same in the target type.

use super::convert::{Rounding, convert};
use super::kernel::{charge, charge_later, single};
use super::later::{always_converts, convert_later};
use super::symbolic::Elements;
use super::with_mapped;
use crate::dim::Dim;
use crate::ir::{Attribute, Fact};
use crate::ops::traits::{Counting, NodeFacts, Traits};
use crate::ops::{EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::smallfloat::RoundMode;
use crate::tensor::{DType, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Cast", &[1, 6, 9, 13, 19, 21, 23, 24, 25, 28], infer_cast, evaluate_cast).with(
        Traits::function()
            .attributes(&["to", "saturate", "round_mode"])
            .counts(widened)
            .uniform(cast_number)
            .ordered_by_sign(),
    ),
    Operator::new("CastLike", &[15, 19, 21, 23, 24, 25], infer_cast_like, evaluate_cast_like)
        .with(Traits::function().attributes(&["saturate", "round_mode"])),
];

/// Returns the operand's positions for a widening cast, which preserves all integers.
fn widened(view: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    let to = view.result()?.dtype()?;
    let keeps = to == DType::Int64 || view.dtype(0)? == to;
    keeps.then(|| operand(0)).flatten().map(|positions| Counting { shape: shape.to_vec(), ..positions })
}

/// Converts one number if both types represent it exactly. As a bool, nonzero numbers and NaN are true.
fn cast_number(view: &NodeFacts<'_>, operand: &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor> {
    let number = *operand(0)?.to_f64s()?.first()?;
    let to = view.result()?.dtype()?;
    if to == DType::Bool {
        return Tensor::from_bools(&[], &[number != 0.0]).ok();
    }
    let whole = number.fract() == 0.0 && (0.0..=127.0).contains(&number);
    match to {
        _ if !whole => None,
        DType::Float => Some(Tensor::scalar(number as f32)),
        DType::Double => Some(Tensor::scalar(number)),
        DType::Int64 => Some(Tensor::scalar(number as i64)),
        DType::Int32 => Some(Tensor::scalar(number as i32)),
        DType::Uint8 => Some(Tensor::scalar(number as u8)),
        _ => None,
    }
}

/// Returns the target type of Cast.
fn target(site: &Site<'_>) -> Result<DType, Refusal> {
    let named = match site.attribute("to") {
        Some(Attribute::String(_)) if site.version < 6 => {
            let name = site.attr_str("to")?.unwrap_or_default();
            let dtype = DType::from_name(&name.to_ascii_lowercase());
            Some(
                dtype
                    .ok_or_else(|| Refusal::invalid(format!("attribute 'to' is '{name}', which is not a data type")))?,
            )
        }
        _ => site.attr_dtype("to")?,
    };
    let dtype = named.ok_or_else(|| Refusal::invalid("attribute 'to' is missing"))?;
    if dtype.is_complex() { Err(Refusal::invalid(format!("a cast to {dtype} is not supported"))) } else { Ok(dtype) }
}

fn rounding(site: &Site<'_>) -> Result<Rounding, Refusal> {
    let mode = match site.attr_str("round_mode")? {
        None => RoundMode::Up,
        Some(name) => RoundMode::from_name(name)
            .ok_or_else(|| Refusal::invalid(format!("attribute 'round_mode' is '{name}', which is not valid")))?,
    };
    Ok(Rounding { saturate: site.attr_flag("saturate", true)?, mode })
}

fn infer_cast(cx: &mut InferCx<'_>) -> InferResult {
    rounding(cx)?;
    infer_to(cx, target(cx)?)
}

fn infer_to(cx: &InferCx<'_>, to: DType) -> InferResult {
    let operand = cx.required(0)?;
    let result = Fact::tensor(Some(to), operand.shape().map(<[_]>::to_vec));
    let Some(from) = operand.dtype() else { return Ok(vec![result]) };
    if from.is_complex() {
        return Err(Refusal::invalid(format!("a cast from {from} is not supported")));
    }
    let elements = Elements::new(cx.scope(), to);
    Ok(vec![with_mapped(result, operand, |element| elements.cast(element, from))])
}

fn evaluate_cast(cx: &mut EvalCx<'_>) -> EvalResult {
    evaluate_to(cx, target(cx)?)
}

fn evaluate_to(cx: &EvalCx<'_>, to: DType) -> EvalResult {
    let x = cx.tensor(0)?;
    let rounding = rounding(cx)?;
    if always_converts(x.dtype(), to) {
        let later = charge_later(cx, to, x.shape(), 2)?;
        return single(convert_later(later, x, to, rounding)?);
    }
    charge(cx, to, x.shape(), 2)?;
    single(convert(x, to, rounding)?)
}

fn infer_cast_like(cx: &mut InferCx<'_>) -> InferResult {
    let (operand, like) = (cx.required(0)?, cx.required(1)?);
    let rounding = rounding(cx)?;
    let Some(to) = like.dtype() else {
        return Ok(vec![Fact::tensor(None, operand.shape().map(<[_]>::to_vec))]);
    };
    // The second operand's value is irrelevant, so a constant first operand determines the result.
    let (Some(tensor), None) = (operand.constant_tensor(), like.data()) else { return infer_to(cx, to) };
    let bytes = to.byte_len(tensor.len()).unwrap_or(usize::MAX);
    let affordable = cx.walk.evaluate && cx.walk.budget.take_bytes(bytes).is_ok();
    match convert(tensor, to, rounding) {
        Ok(converted) if affordable => Ok(vec![Fact::constant(converted)]),
        _ => infer_to(cx, to),
    }
}

fn evaluate_cast_like(cx: &mut EvalCx<'_>) -> EvalResult {
    evaluate_to(cx, cx.tensor(1)?.dtype())
}
