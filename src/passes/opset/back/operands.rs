//! Turns operands back into attributes, and replaces operands that older versions lack.

use super::integers;
use crate::dim::Dim;
use crate::ir::{Attribute, NamedAttribute, NewNode};
use crate::ops::axis_in;
use crate::passes::opset::draft::NodeDraft;
use crate::rewrite::Build;
use crate::tensor::{DType, Tensor};

/// Turns `axes`, operand 1, into an attribute. A reduction without axes reduces all of them, unless `noop_with_empty_axes` is set. Then it returns
/// its operand, which only holds for reductions with `f(x) = x` for one number.
pub(in crate::passes::opset) fn axes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let is_noop = draft.int("noop_with_empty_axes", 0)? != 0;
    draft.take("noop_with_empty_axes");
    let axes = match draft.input(1) {
        None => None,
        Some(_) => Some(draft.const_ints(1, "the axes")?),
    };
    draft.truncate(1);
    match axes {
        Some(axes) if !axes.is_empty() => draft.set("axes", axes),
        _ if is_noop && is_identity_of_one(&draft.node.op_type) => {
            draft.replace(NewNode::new("Identity", [draft.input(0)]));
        }
        _ if is_noop => {
            return Err(
                "it reduces no axes (noop_with_empty_axes), and runtimes differ on what it computes".to_string()
            );
        }
        _ if draft.node.op_type == "Unsqueeze" => draft.replace(NewNode::new("Identity", [draft.input(0)])),
        _ => {}
    }
    Ok(())
}

/// Returns `true` if a reduction of one number is the number.
fn is_identity_of_one(reduction: &str) -> bool {
    matches!(reduction, "ReduceMax" | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum")
}

/// Writes the sizes that `num_outputs` implies, unless the parts are equal: `⌈d / n⌉` each, and the remainder for the last one.
pub(in crate::passes::opset) fn split_count(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let count = draft.int("num_outputs", 0)?;
    let Some(_) = draft.take("num_outputs") else { return Ok(()) };
    if draft.input(1).is_some() || count < 1 {
        return Ok(());
    }
    let (scope, parts) = (draft.facts.scope(), Dim::constant(count));
    let axis = draft.int("axis", 0)?;
    let dim = draft.shape(0).and_then(|dims| dims.get(axis_in(axis, dims.len()).ok()?));
    if dim.is_some_and(|dim| scope.divides(&parts, dim).is_yes()) {
        return Ok(());
    }
    let equal = usize::try_from(count).unwrap_or(0).saturating_sub(1);
    let sizes = match dim.and_then(Dim::as_const) {
        Some(dim) => {
            let part = dim.checked_add(count - 1).map_or(0, |dim| dim / count);
            let last = part.checked_mul(count - 1).and_then(|before| dim.checked_sub(before)).filter(|last| *last >= 0);
            let last = last.ok_or_else(|| format!("a size of {dim} has no {count} parts; correct the model"))?;
            let mut sizes = vec![part; equal];
            sizes.push(last);
            draft.constant("sizes", Tensor::vector(sizes))
        }
        None if draft.target.axes_are_operands() => {
            let data = draft.operand(0)?;
            let shape = draft.before(Build::shape(data), "shape");
            let at = draft.constant("at", Tensor::vector(vec![axis]));
            let whole = draft.before(Build::gather(shape, at, 0i64), "whole");
            let more = draft.constant("more", Tensor::vector(vec![count - 1]));
            let up = draft.op("Add", &[whole, more], "up");
            let parts = draft.constant("parts", Tensor::vector(vec![count]));
            let part = draft.op("Div", &[up, parts], "part");
            let before = draft.op("Mul", &[part, more], "before");
            let last = draft.op("Sub", &[whole, before], "last");
            let sizes = Build::concat(std::iter::repeat_n(part, equal).chain([last]), 0i64);
            draft.before(sizes, "sizes")
        }
        None => return Err("its parts are not proved equal, and their sizes are computed".to_string()),
    };
    draft.set_input(1, sizes);
    Ok(())
}

/// Turns `split`, operand 1, into an attribute.
pub(in crate::passes::opset) fn split(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(1).is_none() {
        return Ok(());
    }
    let sizes = draft.const_ints(1, "the sizes")?;
    draft.truncate(1);
    draft.set("split", sizes);
    Ok(())
}

/// Extends the pads of the axes in operand 3 to all axes.
pub(in crate::passes::opset) fn pad_axes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(3).is_none() {
        return Ok(());
    }
    let rank = draft.rank(0)?;
    let places = places(&draft.const_ints(3, "the axes")?, rank)?;
    let named = places.iter().flatten().count();
    // The index of each pad in *pads*, or that of the zero appended to them.
    let from = places.iter().map(|place| place.unwrap_or(2 * named));
    let until = places.iter().map(|place| place.map_or(2 * named, |place| place + named));
    let order: Vec<usize> = from.chain(until).collect();
    let zero = draft.constant("zero", Tensor::vector(vec![0i64]));
    let pads = match draft.fact(1).and_then(crate::ir::Fact::const_ints) {
        Some(pads) => {
            let pads = order.iter().map(|&place| pads.get(place).copied().unwrap_or(0)).collect();
            draft.constant("pads", Tensor::vector::<i64>(pads))
        }
        None => in_order(draft, 1, zero, &order)?,
    };
    draft.truncate(3);
    draft.set_input(1, pads);
    Ok(())
}

/// Returns the place of each of `rank` axes among the named axes.
pub(super) fn places(axes: &[i64], rank: usize) -> Result<Vec<Option<usize>>, String> {
    let mut places = vec![None; rank];
    for (at, &axis) in axes.iter().enumerate() {
        let place = axis_in(axis, rank).ok().and_then(|axis| places.get_mut(axis));
        let place = place.ok_or_else(|| format!("axis {axis} is none of {rank}; correct the model"))?;
        if place.replace(at).is_some() {
            return Err(format!("axis {axis} is listed twice; correct the model"));
        }
    }
    Ok(places)
}

/// Returns the elements of operand `slot`, followed by those of `more`, in another order.
pub(super) fn in_order(
    draft: &mut NodeDraft<'_>,
    slot: usize,
    more: crate::ir::ValueId,
    order: &[usize],
) -> Result<crate::ir::ValueId, String> {
    let all = Build::concat([draft.operand(slot)?, more], 0i64);
    let all = draft.before(all, "all");
    let order = order.iter().map(|&place| i64::try_from(place).unwrap_or(i64::MAX)).collect();
    let order = draft.constant("order", Tensor::vector::<i64>(order));
    Ok(draft.before(Build::gather(all, order, 0i64), "ordered"))
}

/// Turns `pads` and `value`, operands 1 and 2, into attributes.
pub(in crate::passes::opset) fn pad(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let pads = draft.const_ints(1, "the pads")?;
    if draft.input(2).is_some() {
        let value = single_float(draft, 2, "the value")?;
        draft.node.attributes.push(NamedAttribute::new("value", Attribute::Float(value)));
    }
    draft.truncate(1);
    draft.set("pads", pads);
    Ok(())
}

/// Turns `shape`, operand 1, into an attribute.
pub(in crate::passes::opset) fn reshape(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let shape = draft.const_ints(1, "the shape")?;
    draft.truncate(1);
    draft.set("shape", shape);
    Ok(())
}

/// Returns the only number in operand `slot`, if float32 represents it.
fn single_float(draft: &NodeDraft<'_>, slot: usize, what: &str) -> Result<f32, String> {
    let numbers = draft.const_numbers(slot);
    let number = numbers.as_deref().and_then(|numbers| match numbers {
        [number] => Some(*number),
        _ => None,
    });
    let number = number.ok_or_else(|| {
        format!("operand {slot}, {what}, is computed, and the older version has an attribute; make it a constant")
    })?;
    let narrow = number as f32;
    if f64::from(narrow) == number || number.is_nan() {
        return Ok(narrow);
    }
    Err(format!("operand {slot}, {what}, is {number}, which the FLOAT attribute of the older version does not hold"))
}

/// Turns `min` and `max`, operands 1 and 2, into attributes, whose defaults are the range of float32. Computed bounds and other types, which runtimes
/// do not support in that Clip, become Max and Min, which propagate NaN as Clip does.
pub(in crate::passes::opset) fn clip(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let bounds = [(1, "min"), (2, "max")];
    let is_float = draft.dtype(0) == Some(DType::Float);
    let fits = |slot: usize| draft.input(slot).is_none() || single_float(draft, slot, "a bound").is_ok();
    if !is_float || !bounds.iter().all(|&(slot, _)| fits(slot)) {
        return integers::clip_by(draft, "Max", "Min");
    }
    for (slot, name) in bounds {
        if draft.input(slot).is_some() {
            let bound = single_float(draft, slot, "a bound")?;
            draft.node.attributes.push(NamedAttribute::new(name, Attribute::Float(bound)));
        }
    }
    draft.truncate(1);
    Ok(())
}

/// Turns `starts`, `ends` and `axes`, operands 1 to 3, into attributes. Steps other than 1 are not supported.
pub(in crate::passes::opset) fn slice(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (starts, ends) = (draft.const_ints(1, "the starts")?, draft.const_ints(2, "the ends")?);
    if draft.input(4).is_some() && draft.const_ints(4, "the steps")?.iter().any(|step| *step != 1) {
        return Err("it has steps other than 1".to_string());
    }
    if draft.input(3).is_some() {
        let axes = draft.const_ints(3, "the axes")?;
        let axes = if axes.iter().any(|axis| *axis < 0) { from_start(&axes, draft.rank(0)?)? } else { axes };
        draft.set("axes", axes);
    }
    draft.truncate(1);
    draft.set("starts", starts);
    draft.set("ends", ends);
    Ok(())
}

/// Counts the axes operand from the front, since negative axes are not supported.
pub(in crate::passes::opset) fn slice_axes(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(3).is_none() {
        return Ok(());
    }
    let axes = draft.const_ints(3, "the axes")?;
    if axes.iter().any(|axis| *axis < 0) {
        let axes = from_start(&axes, draft.rank(0)?)?;
        // Bounds and axes have the same type.
        let tensor = match draft.dtype(3) {
            Some(DType::Int32) => Tensor::vector(axes.iter().map(|&axis| axis as i32).collect::<Vec<i32>>()),
            _ => Tensor::vector(axes),
        };
        let axes = draft.constant("axes", tensor);
        draft.set_input(3, axes);
    }
    Ok(())
}

fn from_start(axes: &[i64], rank: usize) -> Result<Vec<i64>, String> {
    let axis = |&axis: &i64| axis_in(axis, rank).ok().and_then(|axis| i64::try_from(axis).ok());
    let axes = axes.iter().map(axis).collect::<Option<Vec<i64>>>();
    axes.ok_or_else(|| format!("it names an axis that is none of {rank}; correct the model"))
}

/// Turns `k`, operand 1, into an attribute.
pub(in crate::passes::opset) fn top_k(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let k = match draft.const_ints(1, "k")?.as_slice() {
        [k] => *k,
        _ => return Err("operand 1, k, is not one number; correct the model".to_string()),
    };
    draft.truncate(1);
    draft.set("k", k);
    Ok(())
}

/// Turns `axis`, operand 2 with default -2, into an attribute with default 1.
pub(in crate::passes::opset) fn dft(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let axis = match draft.input(2) {
        None => -2,
        Some(_) => match draft.const_ints(2, "the axis")?.as_slice() {
            [axis] => *axis,
            _ => return Err("operand 2, the axis, is not one number; correct the model".to_string()),
        },
    };
    let axis = if axis < 0 { from_start(&[axis], draft.rank(0)?)?.first().copied().unwrap_or(axis) } else { axis };
    draft.truncate(2);
    draft.set("axis", axis);
    Ok(())
}

/// Turns the ratio into an attribute. Outside of training, nothing is dropped.
pub(in crate::passes::opset) fn dropout(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let trains = match draft.input(2) {
        None => false,
        Some(_) => draft.const_ints(2, "training_mode")?.iter().any(|flag| *flag != 0),
    };
    if trains {
        return Err("it is in training mode (training_mode), which the older version cannot express".to_string());
    }
    if draft.is_read(1) {
        return Err("the mask has a consumer, and the older version does not define its contents".to_string());
    }
    if draft.input(1).is_some()
        && let Ok(ratio) = single_float(draft, 1, "the ratio")
    {
        draft.node.attributes.push(NamedAttribute::new("ratio", Attribute::Float(ratio)));
    }
    draft.node.attributes.retain(|held| held.name != "seed");
    draft.truncate(1);
    draft.node.outputs.truncate(1);
    Ok(())
}

/// Adds a zero as `C` of a Gemm without one.
pub(in crate::passes::opset) fn gemm(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(2).is_none() {
        let dtype = draft.known_dtype(0)?;
        let zero = Tensor::zeros(dtype, &[1]).map_err(|error| error.to_string())?;
        let zero = draft.constant("zero", zero);
        draft.set_input(2, zero);
    }
    Ok(())
}

/// Checks that no index counts from the end.
pub(in crate::passes::opset) fn indices(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let indices = draft.fact(1);
    let counts_back = indices.is_none_or(|fact| match (fact.constant_tensor(), fact.ints()) {
        (Some(tensor), _) => tensor.to_i64s().is_none_or(|indices| indices.iter().any(|index| *index < 0)),
        (None, Some(indices)) => indices.iter().any(|index| !draft.facts.scope().ge(index, &Dim::constant(0)).is_yes()),
        (None, None) => true,
    });
    if counts_back {
        return Err(
            "the older version counts no indices from the end; make them constants that are not negative".into()
        );
    }
    Ok(())
}
