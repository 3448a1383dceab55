//! Normalization by mean and variance: of a batch, of an instance, of groups of channels, of layers.

use super::real::{by_blocks, fit_on_the_way, keep_digits, reals, rounded, squared, stay_above_zero, sum};
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site, axis_in};
use crate::tensor::{DType, StridedView, Tensor, gather, product};

/// Infers the type and shape of the first operand.
pub(super) fn infer_same(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    Ok(vec![Fact::tensor(data.dtype(), data.shape().map(<[Dim]>::to_vec))])
}

/// Like [`infer_same`], for an operator with groups of channels.
pub(super) fn infer_group(cx: &mut InferCx<'_>) -> InferResult {
    let groups = count_of(cx, "num_groups")?;
    let channels = cx.shape(0).and_then(|shape| shape.get(1)?.as_const());
    match channels.and_then(|channels| usize::try_from(channels).ok()) {
        Some(channels) if !channels.is_multiple_of(groups) => Err(Refusal::invalid(format!(
            "the number of channels ({channels}) is not a multiple of the number of groups ({groups})"
        ))),
        _ => infer_same(cx),
    }
}

/// Like [`infer_same`], for LRN.
pub(super) fn infer_lrn(cx: &mut InferCx<'_>) -> InferResult {
    count_of(cx, "size")?;
    infer_same(cx)
}

/// Returns an attribute that must be a positive number.
pub(super) fn count_of(site: &Site<'_>, name: &'static str) -> Result<usize, Refusal> {
    let count = site.attr_int(name)?.and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    count.ok_or_else(|| Refusal::invalid(format!("attribute '{name}' is not a positive number")))
}

/// Returns the shape of the data. The channels equal the scales in number, so a constant dim of the scales refines it.
fn shape_with_channels(cx: &InferCx<'_>) -> Result<Option<Vec<Dim>>, Refusal> {
    let mut shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    if let (Some([_, channels, ..]), Some([scales])) = (shape.as_deref_mut(), cx.shape(1)) {
        if cx.scope().eq(channels, scales).is_no() {
            let (channels, scales) = (cx.scope().format(channels), cx.scope().format(scales));
            return Err(Refusal::invalid(format!("the data has {channels} channels, but scale has {scales} elements")));
        }
        if channels.as_const().is_none() && scales.as_const().is_some() {
            *channels = scales.clone();
        }
    }
    Ok(shape)
}

/// Checks that a parameter broadcasts to the data.
fn stretches(cx: &InferCx<'_>, parameter: usize) -> Result<(), Refusal> {
    let (Some(data), Some(spread)) = (cx.shape(0), cx.shape(parameter)) else { return Ok(()) };
    let scope = cx.scope();
    let differs =
        |(dim, spread): (&Dim, &Dim)| scope.eq(spread, &Dim::constant(1)).is_no() && scope.eq(dim, spread).is_no();
    if spread.len() > data.len() || data.iter().rev().zip(spread.iter().rev()).any(differs) {
        return Err(Refusal::invalid(format!("operand {parameter} does not broadcast to the shape of the data")));
    }
    Ok(())
}

/// Returns the shape of the data; constant dims other than 1 of a parameter that broadcasts to it refine it.
fn shape_under(cx: &InferCx<'_>, parameter: usize) -> Result<Option<Vec<Dim>>, Refusal> {
    let mut shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    stretches(cx, parameter)?;
    for (dim, spread) in shape.iter_mut().flatten().rev().zip(cx.shape(parameter).into_iter().flatten().rev()) {
        if dim.as_const().is_none() && spread.as_const().is_some_and(|size| size > 1) {
            *dim = spread.clone();
        }
    }
    Ok(shape)
}

pub(super) fn infer_instance(cx: &mut InferCx<'_>) -> InferResult {
    let shape = shape_with_channels(cx)?;
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

/// Checks the parameters of BatchNormalization: vectors with one entry per channel.
fn parameters_fit(cx: &InferCx<'_>, data: Option<&[Dim]>) -> Result<(), Refusal> {
    let one = Dim::constant(1);
    let channels = match data {
        Some([_, channels, ..]) => Some(channels),
        Some([_]) => Some(&one),
        _ => None,
    };
    for (i, parameter) in (1..5).filter_map(|i| Some((i, cx.shape(i)?))) {
        let [entries] = parameter else {
            return Err(Refusal::invalid(format!("operand {i} has rank {} instead of 1", parameter.len())));
        };
        if let Some(channels) = channels.filter(|channels| cx.scope().eq(channels, entries).is_no()) {
            let (channels, entries) = (cx.scope().format(channels), cx.scope().format(entries));
            return Err(Refusal::invalid(format!(
                "operand {i} has {entries} elements, but the data has {channels} channels"
            )));
        }
    }
    Ok(())
}

pub(super) fn infer_batch(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let trained = cx.version < 14 || cx.attr_flag("training_mode", false)?;
    if !trained && cx.node.outputs().iter().skip(1).any(Option::is_some) {
        return Err(Refusal::invalid(
            "the node has outputs for the running mean and variance, but is not in training mode",
        ));
    }
    let by_channel = cx.version >= 9 || cx.attr_flag("spatial", true)?;
    let shape = if by_channel { shape_with_channels(cx)? } else { data.shape().map(<[Dim]>::to_vec) };
    if by_channel {
        parameters_fit(cx, shape.as_deref())?;
    }
    let result = Fact::tensor(data.dtype(), shape);
    // The output statistics have the shape of the input ones, one entry per channel (or feature).
    let shape = (1..5).find_map(|i| cx.shape(i)).map(<[Dim]>::to_vec);
    let dtype = if cx.version < 14 { data.dtype() } else { cx.dtype(3).or(cx.dtype(4)) };
    let statistics = Fact::tensor(dtype, shape);
    Ok(vec![result, statistics.clone(), statistics.clone(), statistics.clone(), statistics])
}

/// The channels of a tensor: `outer` times, for each of `channels`, `inner` contiguous elements.
struct Channels {
    outer: usize,
    channels: usize,
    inner: usize,
}

impl Channels {
    /// Returns channels on axis 1, or one channel for a vector. With `features`, each element of an instance is a channel.
    fn of(tensor: &Tensor, features: bool) -> Result<Channels, Decline> {
        let size = |dims: &[usize]| product(dims).unwrap_or(0);
        Ok(match tensor.shape() {
            [] => return Err(Decline::invalid("the data is a scalar, and has no axis of channels")),
            [outer] => Channels { outer: *outer, channels: 1, inner: 1 },
            [outer, rest @ ..] if features => Channels { outer: *outer, channels: size(rest), inner: 1 },
            [outer, channels, rest @ ..] => Channels { outer: *outer, channels: *channels, inner: size(rest) },
        })
    }

    /// Visits all elements of each channel, block by block.
    fn for_each(&self, values: &mut [f64], mut visit: impl FnMut(usize, &mut [f64])) {
        if self.inner == 0 || self.channels == 0 {
            return;
        }
        for (at, block) in values.chunks_exact_mut(self.inner).enumerate() {
            visit(at % self.channels, block);
        }
    }
}

/// Returns a parameter with one entry for each of `count` channels.
fn parameter(cx: &EvalCx<'_>, i: usize, count: usize) -> Result<Vec<f64>, Decline> {
    let values = reals(cx, cx.tensor(i)?)?;
    if values.len() != count {
        return Err(Decline::invalid(format!(
            "operand {i} has {} elements, but the data has {count} channels",
            values.len()
        )));
    }
    Ok(values)
}

fn epsilon(site: &Site<'_>) -> Result<f64, Refusal> {
    Ok(f64::from(site.attr_float("epsilon")?.unwrap_or(1e-5)))
}

pub(super) fn eval_batch(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let training = match cx.version {
        ..7 => !cx.attr_flag("is_test", false)?,
        7..14 => cx.node.outputs().iter().skip(1).any(Option::is_some),
        14.. => cx.attr_flag("training_mode", false)?,
    };
    if training && cx.version < 14 {
        return Err(Decline::unsupported("the outputs 'saved_mean' and 'saved_var' are not defined before version 14"));
    }
    let features = cx.version < 9 && !cx.attr_flag("spatial", true)?;
    let layout = Channels::of(data, features)?;
    let count = layout.channels;
    let (scale, bias) = (parameter(cx, 1, count)?, parameter(cx, 2, count)?);
    let (mut mean, mut variance) = (parameter(cx, 3, count)?, parameter(cx, 4, count)?);
    let epsilon = epsilon(cx)?;
    let mut values = reals(cx, data)?;
    let mut results = Vec::new();
    if training {
        let momentum = f64::from(cx.attr_float("momentum")?.unwrap_or(0.9));
        let population = layout.outer.checked_mul(layout.inner).filter(|&n| n > 0);
        let population =
            population.ok_or_else(|| Decline::unsupported("the mean of an empty tensor is undefined"))? as f64;
        let (mut means, mut variances) = (vec![0.0; count], vec![0.0; count]);
        let entry = |entries: &mut Vec<f64>, channel: usize, more: f64| {
            if let Some(entry) = entries.get_mut(channel) {
                *entry += more;
            }
        };
        layout.for_each(&mut values, |channel, block| {
            entry(&mut means, channel, block.iter().sum::<f64>() / population);
        });
        layout.for_each(&mut values, |channel, block| {
            let mean = means.get(channel).copied().unwrap_or(0.0);
            let squares = block.iter().map(|x| (x - mean) * (x - mean));
            entry(&mut variances, channel, squares.sum::<f64>() / population);
        });
        let running = |old: &[f64], new: &[f64]| -> Vec<f64> {
            old.iter().zip(new).map(|(old, new)| old * momentum + new * (1.0 - momentum)).collect()
        };
        let (dtype, shape) = (cx.tensor(3)?.dtype(), cx.tensor(3)?.shape());
        results.push(Data::Tensor(rounded(cx, dtype, shape, running(&mean, &means))?));
        results.push(Data::Tensor(rounded(cx, dtype, shape, running(&variance, &variances))?));
        (mean, variance) = (means, variances);
    }
    // Kernels multiply by a precomputed factor and add a precomputed shift.
    let (mut most, mut terms) = (0.0f64, 0.0f64);
    layout.for_each(&mut values, |channel, block| {
        let of = |entries: &[f64]| entries.get(channel).copied().unwrap_or(0.0);
        let factor = of(&scale) / (of(&variance) + epsilon).sqrt();
        let (mean, bias) = (of(&mean), of(&bias));
        let largest = block.iter().fold(mean.abs(), |largest, x| greater(largest, x.abs()));
        most = greater(most, greater(factor.abs(), bias.abs()));
        terms = greater(terms, largest * factor.abs());
        block.iter_mut().for_each(|x| *x = (*x - mean) * factor + bias);
    });
    fit_on_the_way(data.dtype(), [most])?;
    keep_digits(data.dtype(), [terms])?;
    results.insert(0, Data::Tensor(rounded(cx, data.dtype(), data.shape(), values)?));
    Ok(results)
}

/// Returns the maximum of two numbers; NaN if one is NaN.
fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

/// Returns the mean and the population variance.
#[inline(always)]
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = sum(values, |x| x) / count;
    (mean, sum(values, |x| (x - mean) * (x - mean)) / count)
}

pub(super) fn eval_instance(cx: &mut EvalCx<'_>) -> EvalResult {
    let channels = cx.tensor(0)?.shape().get(1).copied();
    let channels = channels.ok_or_else(|| Decline::invalid("the data has no axis of channels"))?;
    by_groups(cx, channels)
}

pub(super) fn eval_group(cx: &mut EvalCx<'_>) -> EvalResult {
    let groups = count_of(cx, "num_groups")?;
    stash_of(cx.attr_int("stash_type")?.unwrap_or(1), cx.tensor(0)?.dtype())?;
    by_groups(cx, groups)
}

/// Normalizes each group of channels of each instance. Scale and bias have one entry per channel; in GroupNormalization-18, per
/// group.
fn by_groups(cx: &EvalCx<'_>, groups: usize) -> EvalResult {
    let data = cx.tensor(0)?;
    let [_, channels, rest @ ..] = data.shape() else {
        return Err(Decline::invalid("the data has no axis of channels"));
    };
    let (channels, inner) = (*channels, product(rest).unwrap_or(0));
    if groups > 0 && !channels.is_multiple_of(groups) {
        return Err(Decline::invalid(format!(
            "the number of channels ({channels}) is not a multiple of the number of groups ({groups})"
        )));
    }
    let each = channels.checked_div(groups).unwrap_or(0);
    let grouped = cx.node.is("GroupNormalization") && cx.version < 21;
    let count = if grouped { groups } else { channels };
    let (scale, bias) = (parameter(cx, 1, count)?, parameter(cx, 2, count)?);
    let epsilon = epsilon(cx)?;
    let size = each.saturating_mul(inner);
    let (result, _) = by_blocks(
        cx,
        data,
        data.dtype(),
        size,
        #[inline(always)]
        |at, group| {
            let (mean, variance) = moments(group);
            fit_on_the_way(data.dtype(), [squared(group)])?;
            let deviation = (variance + epsilon).sqrt();
            let largest = group.iter().fold(mean.abs(), |largest, x| greater(largest, x.abs()));
            for (channel, block) in (at % groups * each..).zip(group.chunks_exact_mut(inner)) {
                let entry = if grouped { channel / each } else { channel };
                let (scale, bias) = (scale.get(entry).copied(), bias.get(entry).copied());
                let (scale, bias) = (scale.unwrap_or(1.0), bias.unwrap_or(0.0));
                // Kernels multiply by a precomputed factor and add a precomputed shift.
                let factor = (scale / deviation).abs();
                fit_on_the_way(data.dtype(), [factor, bias])?;
                keep_digits(data.dtype(), [largest * factor])?;
                block.iter_mut().for_each(|x| *x = (*x - mean) / deviation * scale + bias);
            }
            Ok(())
        },
    )?;
    Ok(vec![Data::Tensor(result)])
}

/// Returns the precision of the first stage, which normalizes: `stash_type`. Results are rounded from doubles, so it does not
/// affect them.
///
/// # Errors
/// The first stage's type is narrower than binary32 or than the data's: runtimes ignore such types.
fn stash_of(number: i64, data: DType) -> Result<DType, Decline> {
    match i32::try_from(number).ok().and_then(DType::from_onnx) {
        Some(DType::Float) if data == DType::Double => {
            Err(Decline::unsupported("the standard computes the means in float, but ONNX Runtime in double"))
        }
        Some(dtype @ (DType::Float | DType::Double)) => Ok(dtype),
        _ => Err(Decline::unsupported(format!("attribute 'stash_type' is {number}, which is not supported"))),
    }
}

/// Returns `axis` of LayerNormalization and RMSNormalization.
fn first_axis(site: &Site<'_>, rank: usize) -> Result<usize, Refusal> {
    axis_in(site.attr_int("axis")?.unwrap_or(-1), rank)
}

pub(super) fn infer_layer(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    // ONNX Runtime's own operator before version 17 accepts different types; its result has the type of the scale.
    if data.dtype().zip(cx.dtype(1)).is_some_and(|(data, scale)| data != scale) {
        return Err(Refusal::unsupported("the types of the data and 'scale' differ"));
    }
    let stash = cx.attr_int("stash_type")?.unwrap_or(1);
    let stash = i32::try_from(stash).ok().and_then(DType::from_onnx);
    let saved = match data.shape() {
        None => None,
        Some(shape) => {
            let axis = first_axis(cx, shape.len())?;
            let one = Dim::constant(1);
            Some(shape.iter().enumerate().map(|(at, dim)| if at < axis { dim } else { &one }).cloned().collect())
        }
    };
    stretches(cx, 2)?;
    let saved = Fact::tensor(stash, saved);
    let result = Fact::tensor(data.dtype(), shape_under(cx, 1)?);
    Ok(vec![result, saved.clone(), saved])
}

pub(super) fn infer_rms(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    if let Some(rank) = data.rank() {
        first_axis(cx, rank)?;
    }
    Ok(vec![Fact::tensor(cx.dtype(1), shape_under(cx, 1)?)])
}

/// Returns a parameter broadcast to the data: an entry per element, or for the first elements, repeated after them.
fn spread(cx: &EvalCx<'_>, i: usize, shape: &[usize]) -> Result<Vec<f64>, Decline> {
    let tensor = cx.tensor(i)?;
    // Leading axes of dim 1 repeat the whole parameter.
    let ones = tensor.shape().iter().take_while(|&&dim| dim == 1).count();
    if shape.ends_with(tensor.shape().get(ones..).unwrap_or_default()) && tensor.rank() <= shape.len() {
        return reals(cx, tensor);
    }
    let view = StridedView::of(tensor).broadcast_to(shape)?;
    cx.claim(tensor.dtype(), shape)?;
    reals(cx, &gather(tensor, &view)?)
}

/// Returns the blocks that LayerNormalization and RMSNormalization normalize: the number of elements per block, and the shape of
/// one number per block.
fn blocks(cx: &EvalCx<'_>, data: &Tensor) -> Result<(usize, Vec<usize>), Decline> {
    let axis = first_axis(cx, data.rank())?;
    let size = product(data.shape().get(axis..).unwrap_or_default()).unwrap_or(0);
    let saved = data.shape().iter().enumerate().map(|(at, &dim)| if at < axis { dim } else { 1 }).collect();
    Ok((size, saved))
}

pub(super) fn eval_layer(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let (size, saved_shape) = blocks(cx, data)?;
    let stash = stash_of(cx.attr_int("stash_type")?.unwrap_or(1), data.dtype())?;
    let epsilon = epsilon(cx)?;
    if size == 0 && product(&saved_shape) != Some(0) {
        return Err(Decline::unsupported("the mean of an empty tensor is undefined"));
    }
    let scale = for_blocks(cx, size, spread(cx, 1, data.shape())?)?;
    let bias = if cx.data(2).is_some() { spread(cx, 2, data.shape())? } else { vec![0.0] };
    let bias = for_blocks(cx, size, bias)?;
    let (result, moments) = by_blocks(
        cx,
        data,
        data.dtype(),
        size,
        #[inline(always)]
        |at, block| {
            let (mean, variance) = moments(block);
            fit_on_the_way(stash, [squared(block)])?;
            let inverse = (variance + epsilon).sqrt().recip();
            let parameters = of_block(&scale, at, size).iter().zip(of_block(&bias, at, size));
            let mut largest = 0.0f64;
            for (x, (scale, bias)) in block.iter_mut().zip(parameters) {
                let scaled = (*x - mean) * inverse * scale;
                let size = if scaled.is_nan() { f64::INFINITY } else { scaled.abs().max(bias.abs()) };
                largest = largest.max(size);
                *x = scaled + bias;
            }
            fit_on_the_way(stash, [largest])?;
            Ok((mean, inverse))
        },
    )?;
    let (means, inverses) = moments.into_iter().unzip();
    Ok(vec![
        Data::Tensor(result),
        Data::Tensor(rounded(cx, stash, &saved_shape, means)?),
        Data::Tensor(rounded(cx, stash, &saved_shape, inverses)?),
    ])
}

/// Returns a parameter with entries for at least one block; shorter parameters are repeated.
fn for_blocks(cx: &EvalCx<'_>, size: usize, parameter: Vec<f64>) -> Result<Vec<f64>, Decline> {
    if parameter.len() >= size || parameter.is_empty() {
        return Ok(parameter);
    }
    cx.claim(DType::Double, &[size])?;
    Ok(parameter.iter().copied().cycle().take(size).collect())
}

/// Returns the entries of such a parameter, which covers a whole number of blocks, for one block.
#[inline(always)]
fn of_block(parameter: &[f64], at: usize, size: usize) -> &[f64] {
    let blocks = parameter.len().checked_div(size).unwrap_or(0).max(1);
    parameter.get(at % blocks * size..).unwrap_or_default()
}

pub(super) fn eval_rms(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let (size, _) = blocks(cx, data)?;
    let stash = stash_of(cx.attr_int("stash_type")?.unwrap_or(1), data.dtype())?;
    let epsilon = epsilon(cx)?;
    let scale = for_blocks(cx, size, spread(cx, 1, data.shape())?)?;
    let (result, _) = by_blocks(
        cx,
        data,
        cx.tensor(1)?.dtype(),
        size,
        #[inline(always)]
        |at, block| {
            let squares = squared(block);
            fit_on_the_way(stash, [squares])?;
            let squares = squares / block.len() as f64;
            stay_above_zero(stash, [squares + epsilon])?;
            let root = (squares + epsilon).sqrt();
            block.iter_mut().zip(of_block(&scale, at, size)).for_each(|(x, scale)| *x = *x / root * scale);
            Ok(())
        },
    )?;
    Ok(vec![Data::Tensor(result)])
}
