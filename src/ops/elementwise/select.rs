//! Where, Clip, Identity, Dropout.
//!
//! | operator | versions that differ |
//! | --- | --- |
//! | Where | 9; 16 adds `bfloat16` |
//! | Clip | 1, 6: bounds are attributes (6: by default those of `float`); 11: operands; 12 adds integers |
//! | Identity | 14 adds sequences, 16 optionals; forwards any value |
//! | Dropout | 1, 6: trains unless `is_test`; 7, 10: inference mode only; 12: trains if `training_mode` is true |
//!
//! Clip is `min(max, max(min, x))`, so the upper bound wins if bounds cross. Not evaluated: NaN bounds, and infinities on a side
//! without a bound, which some runtimes clip to the largest finite number and others keep.
//!
//! Dropout in training mode is random, so the operator is not deterministic. In inference mode, inference alone determines the
//! result. The mask is then all true from version 12 on; before, it is unknown.

use super::kernel::{Lane, Reader, charge, choose, lanes, map_to, single, wrong_dtype};
use super::symbolic::Elements;
use super::{common_dtype, scalars, static_shapes, with_mapped, with_zipped};
use crate::dim::Dim;
use crate::ir::{Data, Fact, Scalar};
use crate::ops::broadcast::{Broadcast, broadcast_shapes};
use crate::ops::movement::maps::layout;
use crate::ops::traits::{Movement, NodeFacts, Traits, ValueRange};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{Bool, Complex128, DType, Element, Number, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Where", &[9, 16], infer_where, evaluate_where).with(Traits::broadcast(9).uniform(chosen_number)),
    Operator::new("Clip", &[1, 6, 11, 12, 13], infer_clip, evaluate_clip)
        .with(Traits::function().attributes(&["min", "max"]).integers_since(12).range(clip_range).ordered(1)),
    Operator::new(
        "Identity",
        &[1, 13, 14, 16, 19, 21, 23, 24, 25],
        |cx| Ok(vec![cx.required(0)?.clone()]),
        |cx| Ok(vec![cx.data(0).cloned().ok_or_else(|| Decline::invalid("operand 0 is missing"))?]),
    )
    .with(Traits::movement(Movement::Through).counts(|_, _, operand| operand(0)).index_map(layout)),
    Operator::infer_only("Dropout", &[1, 6, 7, 10, 12, 13, 22], infer_dropout)
        .random()
        .with(Traits::NONE.inferred_by_shapes()),
];

/// Returns the selected operand if all flags are equal.
fn chosen_number(_: &NodeFacts<'_>, operand: &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor> {
    let flag = operand(0)?.to_i64s()?;
    operand(if flag == [1] { 1 } else { 2 })
}

/// Returns the bounds, if they are numbers that do not cross. A missing bound is the type's last finite number.
fn clip_range(view: &NodeFacts<'_>, _: &dyn Fn(usize) -> Option<ValueRange>) -> Option<ValueRange> {
    let (low, high) = if view.opset < 6 {
        return None;
    } else if view.opset < 11 {
        (view.float("min", f32::MIN)?.into(), view.float("max", f32::MAX)?.into())
    } else {
        let last = match view.dtype(0)? {
            DType::Float => f32::MAX.into(),
            DType::Double => f64::MAX,
            DType::Float16 => 65504.0,
            _ => return None,
        };
        let bound = |slot: usize, absent: f64| match view.input(slot) {
            None => Some(absent),
            Some(_) => view.number(slot),
        };
        (bound(1, -last)?, bound(2, last)?)
    };
    // NaN bounds also fail this test.
    (low <= high).then_some(ValueRange::between(low, high))
}

fn infer_where(cx: &mut InferCx<'_>) -> InferResult {
    let operands = [cx.required(0)?, cx.required(1)?, cx.required(2)?];
    if let Some(dtype) = cx.dtype(0).filter(|&dtype| dtype != DType::Bool) {
        return Err(wrong_dtype(dtype).into());
    }
    let dtype = common_dtype(cx, 1..3)?;
    let shapes: Option<Vec<&[Dim]>> = operands.iter().map(|operand| operand.shape()).collect();
    let shape = shapes.map(|shapes| broadcast_shapes(cx.scope(), &shapes)).transpose()?;
    let result = Fact::tensor(dtype, shape);
    let (Some(dtype), Some(shapes)) = (dtype, static_shapes(operands)) else { return Ok(vec![result]) };
    let elements = Elements::new(cx.scope(), dtype);
    let way = Broadcast::new(shapes.each_ref().map(Vec::as_slice));
    Ok(vec![with_zipped(result, operands, way, |[condition, x, y]| elements.select(condition, x, y))])
}

fn evaluate_where(cx: &mut EvalCx<'_>) -> EvalResult {
    let (condition, x, y) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if x.dtype() != y.dtype() {
        return Err(Decline::invalid(format!("the operands' element types differ: {} and {}", x.dtype(), y.dtype())));
    }
    let way = Broadcast::new([condition.shape(), x.shape(), y.shape()]);
    let way = way.ok_or_else(|| Decline::invalid("the operands do not broadcast"))?;
    charge(cx, x.dtype(), way.shape(), 1)?;
    let conditions = Reader::<Bool>::of(condition)?;
    if let (Some(flags), Some(x), Some(y)) = (condition.bools(), x.strings(), y.strings()) {
        let mut strings = Vec::with_capacity(way.len());
        for [flag, of_x, of_y] in way.positions() {
            let string = if flags.get(flag) == Some(&true) { x.get(of_x) } else { y.get(of_y) };
            strings.push(string.cloned().unwrap_or_default());
        }
        return single(Tensor::from_strings(way.shape(), strings)?);
    }
    // Elements are only copied, so any type of their width works.
    macro_rules! chosen {
        ($type:ty) => {{
            let read = |tensor: &Tensor| Tensor::from_bytes(<$type>::DTYPE, tensor.shape(), tensor.bytes().clone());
            let (x, y) = (read(x)?, read(y)?);
            choose::<$type>(&way, &conditions, &Reader::of(&x)?, &Reader::of(&y)?)
        }};
    }
    let dtype = x.dtype();
    let values = match dtype.bits() {
        Some(8) => Tensor::from_vec(way.shape(), chosen!(u8)),
        Some(16) => Tensor::from_vec(way.shape(), chosen!(u16)),
        Some(32) => Tensor::from_vec(way.shape(), chosen!(u32)),
        Some(64) => Tensor::from_vec(way.shape(), chosen!(u64)),
        Some(128) => Tensor::from_vec(way.shape(), chosen!(Complex128)),
        _ => return Err(wrong_dtype(dtype)),
    }?;
    single(Tensor::from_bytes(dtype, way.shape(), values.bytes().clone())?)
}

/// Returns the bounds that old versions declare as attributes.
fn clip_attributes(site: &Site<'_>) -> Result<[Option<f32>; 2], Refusal> {
    Ok([site.attr_float("min")?, site.attr_float("max")?])
}

fn infer_clip(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    let result = Fact::tensor(operand.dtype(), operand.shape().map(<[_]>::to_vec));
    let Some(dtype) = operand.dtype() else { return Ok(vec![result]) };
    let bound = |i: usize| -> Option<Scalar> {
        let fact = cx.input(i)?;
        let single =
            scalars(fact).filter(|elements| elements.len() == 1).and_then(|elements| elements.into_iter().next());
        Some(single.unwrap_or(Scalar::Unknown))
    };
    let [low, high] = match cx.version {
        ..11 => clip_attributes(cx)?.map(|bound| bound.map(|bound| Scalar::Float(bound.into()))),
        _ => [bound(1), bound(2)],
    };
    let elements = Elements::new(cx.scope(), dtype);
    let clip = |element: &Scalar| {
        let raised = low.as_ref().map_or_else(|| element.clone(), |low| elements.max(element, low));
        high.as_ref().map_or_else(|| raised.clone(), |high| elements.min(&raised, high))
    };
    let is_nan = |bound: &Option<Scalar>| matches!(bound, Some(Scalar::Float(value)) if value.is_nan());
    if is_nan(&low) || is_nan(&high) {
        return Ok(vec![result]);
    }
    // Infinities are left to evaluation, which declines ambiguous ones.
    Ok(vec![with_mapped(result, operand, |element| match element {
        Scalar::Float(value) if value.is_infinite() => Scalar::Unknown,
        element => clip(element),
    })])
}

fn evaluate_clip(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let dtype = x.dtype();
    charge(cx, dtype, x.shape(), 1)?;
    single(lanes!(dtype, T => {
        let [low, high] = if cx.version < 11 { attribute_bounds::<T>(cx, dtype)? } else { operand_bounds::<T>(cx, dtype)? };
        clipped(x, low, high)?
    }, else => return Err(wrong_dtype(dtype))))
}

fn attribute_bounds<T: Number>(site: &Site<'_>, dtype: DType) -> Result<[Option<T>; 2], Decline> {
    let [low, high] = clip_attributes(site)?;
    // Version 6 defaults to the range of `float`; for other types the default is undefined.
    let defaults = site.version >= 6 && dtype == DType::Float;
    let bound = |bound: Option<f32>, default: f32| {
        let bound = bound.or_else(|| defaults.then_some(default))?;
        T::from_f64(match dtype {
            DType::Float16 => half::f16::from_f32(bound).to_f64(),
            DType::Bfloat16 => half::bf16::from_f32(bound).to_f64(),
            _ => bound.into(),
        })
    };
    Ok([bound(low, f32::MIN), bound(high, f32::MAX)])
}

fn operand_bounds<T: Lane>(cx: &EvalCx<'_>, dtype: DType) -> Result<[Option<T>; 2], Decline> {
    let bound = |i: usize| -> Result<Option<T>, Decline> {
        let Some(tensor) = cx.optional_tensor(i)? else { return Ok(None) };
        if tensor.dtype() != dtype || tensor.len() != 1 {
            return Err(Decline::invalid("'min' or 'max' is not a single element of the type of the data"));
        }
        Ok(Reader::<T>::of(tensor)?.first())
    };
    Ok([bound(1)?, bound(2)?])
}

fn clipped<T: Lane>(x: &Tensor, low: Option<T>, high: Option<T>) -> Result<Tensor, Decline> {
    if [low, high].into_iter().flatten().any(|bound| bound.partial_cmp(&bound).is_none()) {
        return Err(Decline::unsupported("'min' or 'max' is NaN"));
    }
    let reader = Reader::<T>::of(x)?;
    let open = |bound: Option<T>, infinity: f64| bound.is_none() && reader.any(|x| x.to_f64() == infinity);
    if T::FLOAT && (open(low, f64::NEG_INFINITY) || open(high, f64::INFINITY)) {
        return Err(Decline::unsupported(
            "the data contains an infinity, and the bound ('min' or 'max') on that side is absent, for which runtimes return different values",
        ));
    }
    let raise = |x: T| low.filter(|&low| x < low).unwrap_or(x);
    let lower = |x: T| high.filter(|&high| x > high).unwrap_or(x);
    map_to::<T>(x.dtype(), x, |x| lower(raise(x)))
}

fn infer_dropout(cx: &mut InferCx<'_>) -> InferResult {
    if cx.version >= 12 {
        cx.require_rank(1, "ratio", 0..=0)?;
        cx.require_rank(2, "training_mode", 0..=0)?;
    }
    let operand = cx.required(0)?;
    let mask_type = if cx.version < 10 { operand.dtype() } else { Some(DType::Bool) };
    let mask = Fact::tensor(mask_type, operand.shape().map(<[_]>::to_vec));
    let changed = Fact::tensor(operand.dtype(), operand.shape().map(<[_]>::to_vec));
    if !passes(cx)? {
        return Ok(vec![changed, mask]);
    }
    let all_true = match mask.static_len() {
        Some(len) if cx.version >= 12 && len <= crate::ir::MAX_ELEMENTS => {
            mask.with_elements(vec![Scalar::Int(Dim::constant(1)); len])
        }
        _ => mask,
    };
    Ok(vec![operand.clone(), all_true])
}

/// Returns `true` if this Dropout is proved to forward its operand.
fn passes(cx: &InferCx<'_>) -> Result<bool, Refusal> {
    if cx.version < 7 {
        return cx.attr_flag("is_test", false);
    }
    if cx.version < 12 {
        return Ok(true);
    }
    let is_zero = |i: usize| {
        let tensor = cx.input(i).and_then(Fact::data).and_then(Data::tensor);
        tensor.and_then(Tensor::to_f64s).is_some_and(|values| values == [0.0])
    };
    Ok(!cx.has_input(2) || is_zero(2) || is_zero(1))
}
