//! Conversion between tensors and sequences of their parts.

use std::sync::Arc;

use super::elements::{any_element, element_type, sequence, total};
use super::lineage;
use super::parts::{Sizes, keeps_axis};
use crate::dim::Dim;
use crate::ir::{Data, Fact, MAX_ELEMENTS, Scalar, TensorType, Type};
use crate::ops::pieces::{concat_items, part, pick, stack};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, axis_in};
use crate::tensor::Tensor;

pub(super) fn infer_split(cx: &mut InferCx<'_>) -> InferResult {
    let tensor = cx.required(0)?;
    let axis = cx.attr_int("axis")?.unwrap_or(0);
    let keeps = keeps_axis(cx.attr_flag("keepdims", true)?, cx.input(1));
    let sizes = Sizes::of(cx.input(1));
    let nonpositive = |size: &Dim, least: i64| size.as_const().is_some_and(|size| size < least);
    match &sizes {
        Some(Sizes::Each(size)) if nonpositive(size, 1) => {
            return Err(Refusal::invalid("the operand 'split' is a scalar that is not positive"));
        }
        Some(Sizes::List(list)) if list.iter().any(|size| nonpositive(size, 0)) => {
            return Err(Refusal::invalid("an element of 'split' is negative"));
        }
        _ => {}
    }
    let shape = match tensor.shape() {
        None => None,
        Some(shape) => {
            let at = axis_in(axis, shape.len())?;
            let mut shape = shape.to_vec();
            match (keeps, shape.get_mut(at)) {
                (Some(true), Some(dim)) => *dim = part_size(cx, sizes.as_ref(), dim),
                _ => drop(shape.remove(at)),
            }
            keeps.map(|_| shape)
        }
    };
    let element = Type::Tensor(TensorType::new(tensor.dtype(), shape));
    Ok(vec![Fact::of(Type::Sequence(Some(Box::new(element))))])
}

/// Returns the common size of all parts, or a symbol for "some size".
fn part_size(cx: &InferCx<'_>, sizes: Option<&Sizes>, dim: &Dim) -> Dim {
    let scope = cx.scope();
    match sizes {
        Some(Sizes::Each(size)) => {
            if scope.divides(size, dim).is_yes() {
                size.clone()
            } else if scope.le(dim, size).is_yes() {
                dim.clone()
            } else {
                any_size(cx, scope.upper_bound(size))
            }
        }
        Some(Sizes::List(list)) => match list.split_first() {
            Some((first, rest)) if rest.iter().all(|size| scope.eq(first, size).is_yes()) => first.clone(),
            _ => any_size(cx, scope.upper_bound(dim)),
        },
        None => any_size(cx, scope.upper_bound(dim)),
    }
}

fn any_size(cx: &InferCx<'_>, most: Option<i64>) -> Dim {
    cx.scope().fresh_within(&crate::ops::join::stem_of(cx), Some(0), most)
}

pub(super) fn eval_split(cx: &mut EvalCx<'_>) -> EvalResult {
    let tensor = cx.tensor(0)?;
    let axis = axis_in(cx.attr_int("axis")?.unwrap_or(0), tensor.rank())?;
    let dim = tensor.shape().get(axis).copied().unwrap_or(0);
    let mut items = Vec::new();
    let Some(sizes) = cx.optional_tensor(1)? else {
        let keep = cx.attr_flag("keepdims", true)?;
        cx.budget().take_bytes(dim.saturating_mul(size_of::<Data>()))?;
        for index in 0..dim {
            let item = if keep { part(cx, tensor, axis, index, 1) } else { pick(cx, tensor, axis, index) };
            items.push(Data::Tensor(item?));
        }
        return Ok(vec![Data::Sequence(Arc::new(items))]);
    };
    let given = sizes.to_i64s().ok_or_else(|| Decline::invalid("the operand 'split' has no integer type"))?;
    let given = given.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
    let given = given.map_err(|_| Decline::invalid("an element of 'split' is negative"))?;
    let lens = match (sizes.rank(), given.as_slice()) {
        (0, [0]) => return Err(Decline::invalid("the operand 'split' is a scalar that is not positive")),
        (0, [size]) => {
            let count = dim.div_ceil(*size);
            cx.budget().take_bytes(count.saturating_mul(size_of::<Data>()))?;
            (0..count).map(|at| (*size).min(dim - at * size)).collect()
        }
        (1, _) => given,
        _ => return Err(Decline::invalid("the operand 'split' is neither a scalar nor a vector")),
    };
    if keeps_axis(cx.attr_flag("keepdims", true)?, Some(&Fact::constant(sizes.clone()))).is_none() {
        return Err(Decline::unsupported(
            "'split' is a scalar and 'keepdims' is 0: runtimes disagree whether the parts keep the axis",
        ));
    }
    if lens.iter().try_fold(0usize, |sum, &len| sum.checked_add(len)) != Some(dim) {
        return Err(Decline::invalid("the sum of 'split' is not the dim of the axis"));
    }
    let mut start = 0;
    for len in lens {
        items.push(Data::Tensor(part(cx, tensor, axis, start, len)?));
        start += len;
    }
    Ok(vec![Data::Sequence(Arc::new(items))])
}

pub(super) fn infer_concat(cx: &mut InferCx<'_>) -> InferResult {
    let element = element_type(cx, 0)?;
    let axis = cx.attr_int("axis")?.ok_or_else(|| Refusal::invalid("attribute 'axis' is missing"))?;
    let stacked = cx.attr_flag("new_axis", false)?;
    let value = cx.node.input(0);
    if let Some(whole) = value.and_then(|value| lineage::split(cx, value)?.whole(axis, stacked)) {
        return Ok(vec![whole]);
    }
    let items = value.and_then(|value| lineage::items(cx, value)).filter(|items| !items.is_empty());
    // The elements agree in all dims but the joined one, so the facts of each hold for the result.
    let known = match items.as_deref() {
        Some(items) => items.iter().filter_map(Fact::as_tensor).max_by_key(|item| item.shape.is_some()).cloned(),
        None => element.and_then(|element| any_element(cx, &element).as_tensor().cloned()),
    };
    let Some(known) = known else { return Ok(vec![Fact::unknown()]) };
    let Some(mut shape) = known.shape else { return Ok(vec![Fact::tensor(known.dtype, None)]) };
    if let Some(items) = items.as_deref() {
        let joined = if stacked { None } else { Some(axis_in(axis, shape.len())?) };
        prefer_numbers(cx, &mut shape, items, joined);
    }
    if stacked {
        let at = axis_in(axis, shape.len() + 1)?;
        let count = value.and_then(|value| lineage::length(cx, value)).unwrap_or_else(|| cx.fresh_dim());
        shape.insert(at, count);
        return Ok(vec![one_after_another(Fact::tensor(known.dtype, Some(shape)), at, items.as_deref())]);
    }
    let at = axis_in(axis, shape.len())?;
    let sizes = items.as_deref().and_then(|items| {
        items.iter().map(|item| item.shape().and_then(|shape| shape.get(at)).cloned()).collect::<Option<Vec<Dim>>>()
    });
    if let Some(dim) = shape.get_mut(at) {
        *dim = match sizes {
            Some(sizes) => total(cx, &sizes),
            None => joined_size(cx, at),
        };
    }
    Ok(vec![one_after_another(Fact::tensor(known.dtype, Some(shape)), at, items.as_deref())])
}

/// Adds elements to the result, if it concatenates those of the items: along the first axis.
fn one_after_another(result: Fact, axis: usize, items: Option<&[Fact]>) -> Fact {
    let joined = items.filter(|_| axis == 0).and_then(|items| {
        let unknown = |item: &Fact| Some(vec![Scalar::Unknown; item.static_len().filter(|&len| len <= MAX_ELEMENTS)?]);
        let parts = items.iter().map(|item| item.elements().or_else(|| unknown(item)));
        Some(parts.collect::<Option<Vec<Vec<Scalar>>>>()?.concat())
    });
    match joined {
        Some(elements) => result.with_elements(elements),
        None => result,
    }
}

/// Replaces dims by the constants of any element. If elements have different constants on an axis other than the joined one, its
/// size is unknown: runtimes still join empty tensors.
fn prefer_numbers(cx: &InferCx<'_>, shape: &mut [Dim], items: &[Fact], joined: Option<usize>) {
    let shapes = || items.iter().filter_map(Fact::shape).filter(|other| other.len() == shape.len());
    let agreed: Vec<Option<Option<i64>>> = (0..shape.len())
        .map(|axis| {
            let mut numbers = shapes().filter_map(|other| other.get(axis)?.as_const());
            let Some(first) = numbers.next() else { return Some(None) };
            numbers.all(|number| number == first).then_some(Some(first))
        })
        .collect();
    for (axis, (dim, agreed)) in shape.iter_mut().zip(agreed).enumerate() {
        match agreed {
            _ if joined == Some(axis) => {}
            Some(Some(number)) => *dim = Dim::constant(number),
            Some(None) => {}
            None => *dim = cx.fresh_dim(),
        }
    }
}

/// Infers the size of the joined axis if the elements are not known individually: their number times their common size, if any.
fn joined_size(cx: &InferCx<'_>, at: usize) -> Dim {
    let value = cx.node.input(0);
    let count = value.and_then(|value| lineage::length(cx, value));
    let element = match cx.input(0).and_then(|fact| fact.ty.as_ref()) {
        Some(Type::Sequence(Some(element))) => element.as_tensor().and_then(|element| element.shape.clone()),
        _ => None,
    };
    let dim = element.and_then(|shape| shape.get(at).cloned());
    let shared = |dim: &Dim| !dim.symbols().into_iter().any(|symbol| cx.scope().is_fresh(symbol));
    match (count, dim.filter(shared)) {
        (Some(count), Some(dim)) => cx.scope().mul(&count, &dim),
        _ => cx.fresh_dim(),
    }
}

pub(super) fn eval_concat(cx: &mut EvalCx<'_>) -> EvalResult {
    let items = sequence(cx, 0)?;
    let tensors = items.iter().map(|item| item.tensor().cloned()).collect::<Option<Vec<Tensor>>>();
    let tensors = tensors.ok_or_else(|| Decline::invalid("an element of the sequence is not a tensor"))?;
    let axis = cx.attr_int("axis")?.ok_or_else(|| Decline::invalid("attribute 'axis' is missing"))?;
    let joined = if cx.attr_flag("new_axis", false)? {
        stack(cx, &tensors, axis)?
    } else {
        let rank = tensors.first().map_or(0, Tensor::rank);
        concat_items(cx, &tensors, axis_in(axis, rank)?)?
    };
    Ok(vec![Data::Tensor(joined)])
}
