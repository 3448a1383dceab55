//! Expands normalizations by mean and variance into the nodes that runtimes recognize.

use crate::dim::Dim;
use crate::ir::{NewNode, ValueId};
use crate::ops::axis_in;
use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};
use crate::rewrite::Build;
use crate::tensor::{DType, Tensor};

/// Returns operand 0 in the type of `stash_type`, and that type. A double is not rounded to a narrower type.
fn stashed(draft: &mut NodeDraft<'_>, default: Option<DType>) -> Result<(ValueId, DType), String> {
    let (x, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let default = default.unwrap_or(dtype);
    let named = draft.int("stash_type", i64::from(default.onnx()))?;
    let stash = i32::try_from(named).ok().and_then(DType::from_onnx).filter(|stash| stash.is_float());
    let stash = stash.ok_or_else(|| format!("stash_type is {named}; correct the model"))?;
    if stash == dtype || dtype == DType::Double {
        return Ok((x, dtype));
    }
    Ok((draft.before(NewNode::new("Cast", [Some(x)]).with("to", stash), "stash"), stash))
}

fn reduce(
    draft: &mut NodeDraft<'_>,
    operator: &'static str,
    data: ValueId,
    axes: &[i64],
    suffix: &'static str,
) -> ValueId {
    let node = draft.build(suffix).reduce(operator, data, axes.to_vec());
    draft.before(node, suffix)
}

/// Returns `x - mean(x)` and `√(mean((x - mean(x))²) + ε)`; the mean becomes result `mean_result`.
fn centered(
    draft: &mut NodeDraft<'_>,
    x: ValueId,
    dtype: DType,
    axes: &[i64],
    mean_result: Option<usize>,
) -> Result<(ValueId, ValueId), String> {
    let epsilon = f64::from(draft.float("epsilon")?.unwrap_or(1e-5));
    let epsilon = draft.number_of(dtype, "epsilon", epsilon)?;
    let two = draft.number_of(dtype, "two", 2.0)?;
    let mean = draft.build("mean").reduce("ReduceMean", x, axes.to_vec());
    let mean = match mean_result {
        Some(slot) => draft.give(slot, mean, "mean"),
        None => draft.before(mean, "mean"),
    };
    let centered = draft.op("Sub", &[x, mean], "centered");
    let squares = draft.op("Pow", &[centered, two], "squares");
    let variance = reduce(draft, "ReduceMean", squares, axes, "variance");
    let raised = draft.op("Add", &[variance, epsilon], "raised");
    Ok((centered, draft.op("Sqrt", &[raised], "deviation")))
}

/// Writes the result: `value` in the element type of operand 0, times `scale`, plus `bias`.
fn scaled(
    draft: &mut NodeDraft<'_>,
    value: NewNode,
    stash: DType,
    scale: ValueId,
    bias: Option<ValueId>,
) -> Result<(), String> {
    let dtype = draft.known_dtype(0)?;
    let mut value = draft.before(value, "normalized");
    if stash != dtype {
        value = draft.before(NewNode::new("Cast", [Some(value)]).with("to", dtype), "narrow");
    }
    let product = NewNode::new("Mul", [Some(value), Some(scale)]);
    let node = match bias {
        None => product,
        Some(bias) => {
            let product = draft.before(product, "scaled");
            NewNode::new("Add", [Some(product), Some(bias)])
        }
    };
    draft.replace(node);
    Ok(())
}

/// Returns the axes from `axis` on, counted from the start: runtimes disagree on negative axes of an empty tensor. The last axis needs no known rank.
fn axes_from(draft: &NodeDraft<'_>) -> Result<Vec<i64>, String> {
    let axis = draft.int("axis", -1)?;
    if axis == -1 && draft.shape(0).is_none() {
        return Ok(vec![-1]);
    }
    let rank = draft.rank(0)?;
    let first = axis_in(axis, rank).map_err(|_| format!("axis {axis} is none of {rank}; correct the model"))?;
    Ok((first..rank).filter_map(|axis| i64::try_from(axis).ok()).collect())
}

/// Expands LayerNormalization, its mean and the reciprocal of its deviation.
pub(in crate::passes::opset) fn layer(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (scale, bias) = (draft.operand(1)?, draft.input(2));
    let axes = axes_from(draft)?;
    let (x, stash) = stashed(draft, Some(DType::Float))?;
    let (centered, deviation) = centered(draft, x, stash, &axes, Some(1))?;
    if draft.is_read(2) {
        draft.give(2, NewNode::new("Reciprocal", [Some(deviation)]), "inverse");
    }
    draft.node.outputs.truncate(1);
    scaled(draft, NewNode::new("Div", [Some(centered), Some(deviation)]), stash, scale, bias)
}

/// Expands RMSNormalization.
pub(in crate::passes::opset) fn root_mean_square(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let scale = draft.operand(1)?;
    let axes = axes_from(draft)?;
    let (x, stash) = stashed(draft, Some(DType::Float))?;
    let epsilon = f64::from(draft.float("epsilon")?.unwrap_or(1e-5));
    let epsilon = draft.number_of(stash, "epsilon", epsilon)?;
    let two = draft.number_of(stash, "two", 2.0)?;
    let squares = draft.op("Pow", &[x, two], "squares");
    let mean = reduce(draft, "ReduceMean", squares, &axes, "mean");
    let raised = draft.op("Add", &[mean, epsilon], "raised");
    let root = draft.op("Sqrt", &[raised], "root");
    scaled(draft, NewNode::new("Div", [Some(x), Some(root)]), stash, scale, None)
}

/// Expands MeanVarianceNormalization.
pub(in crate::passes::opset) fn mean_variance(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (x, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let axes = draft.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let (two, little) = (draft.number_of(dtype, "two", 2.0)?, draft.number_of(dtype, "little", 1e-9)?);
    let mean = reduce(draft, "ReduceMean", x, &axes, "mean");
    let square = draft.op("Pow", &[mean, two], "square");
    let squares = draft.op("Pow", &[x, two], "squares");
    let squares = reduce(draft, "ReduceMean", squares, &axes, "squares");
    let variance = draft.op("Sub", &[squares, square], "variance");
    let deviation = draft.op("Sqrt", &[variance], "deviation");
    let raised = draft.op("Add", &[deviation, little], "raised");
    let centered = draft.op("Sub", &[x, mean], "centered");
    draft.replace(NewNode::new("Div", [Some(centered), Some(raised)]));
    Ok(())
}

/// Expands GroupNormalization: splits the channels into groups, `[n, c, …]` into `[n, g, c / g, …]`, and joins them again. Scale and bias have one
/// number per channel, or per group before version 21.
pub(in crate::passes::opset) fn group(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let dims = draft.known_shape(0)?;
    let groups = draft.int("num_groups", 0)?;
    let channels = dims.get(1).and_then(Dim::as_const);
    let channels = channels.ok_or_else(|| format!("the number of channels of operand 0 is unknown; {STATE_SHAPES}"))?;
    let each = channels.checked_rem(groups).filter(|rest| *rest == 0).and_then(|_| channels.checked_div(groups));
    let each = each.filter(|each| *each > 0 && groups > 0);
    let each = each.ok_or_else(|| format!("{channels} channels are not {groups} equal groups; correct the model"))?;
    let (scale, bias) = (draft.operand(1)?, draft.operand(2)?);
    // Only version 21 has `stash_type`; version 18 computes in the type of the data.
    let counts = draft.shape(1).and_then(|dims| dims.first()?.as_const());
    let per_group = match counts {
        Some(count) if count == channels && count == groups => true,
        Some(count) if count == channels => false,
        Some(count) if count == groups => true,
        _ => return Err(format!("the number of elements of operand 1 is unknown; {STATE_SHAPES}")),
    };
    let default = if per_group && channels != groups { None } else { Some(DType::Float) };
    let (x, stash) = stashed(draft, default)?;
    let rank = dims.len();
    let shape = draft.before(Build::shape(x), "shape");
    let apart = if dims.iter().skip(2).all(|dim| dim.as_const().is_some_and(|size| size > 0)) {
        let sizes = dims.iter().skip(2).filter_map(Dim::as_const);
        let codes = [0, groups, each].into_iter().chain(sizes).collect();
        let node = draft.build("apart").reshape(x, codes);
        draft.before(node, "apart")
    } else {
        let mut part = |from: i64, to: i64, suffix: &'static str| {
            let slice = draft.build(suffix).slice(shape, vec![from], vec![to], vec![0], vec![1]);
            slice.map(|slice| draft.before(slice, suffix)).ok_or("there is no Slice")
        };
        let (batch, space) = (part(0, 1, "batch")?, part(2, i64::MAX, "space")?);
        let counts = draft.constant("counts", Tensor::vector(vec![groups, each]));
        let sizes = draft.before(Build::concat([batch, counts, space], 0i64), "sizes");
        draft.before(NewNode::new("Reshape", [Some(x), Some(sizes)]).with("allowzero", 1), "apart")
    };
    let axes: Vec<i64> = (2..=rank).filter_map(|axis| i64::try_from(axis).ok()).collect();
    let (centered, deviation) = centered(draft, apart, stash, &axes, None)?;
    let normalized = draft.op("Div", &[centered, deviation], "normalized");
    let joined = NewNode::new("Reshape", [Some(normalized), Some(shape)]).with("allowzero", 1);
    // One number for each channel, along axis 1.
    let mut column = |value: ValueId, suffix: &'static str| {
        let mut value = value;
        if per_group && each > 1 {
            let node = draft.build(suffix).unsqueeze(value, vec![1]);
            value = draft.before(node, suffix);
            let node = draft.build(suffix).expand(value, vec![groups, each]).ok_or("there is no Expand")?;
            value = draft.before(node, suffix);
        }
        let mut codes = vec![1; rank.saturating_sub(1)];
        codes.first_mut().into_iter().for_each(|first| *first = channels);
        let node = draft.build(suffix).reshape(value, codes);
        Ok::<_, String>(draft.before(node, suffix))
    };
    let (scale, bias) = (column(scale, "scale")?, column(bias, "bias")?);
    scaled(draft, joined, stash, scale, Some(bias))
}
