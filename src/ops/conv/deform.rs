//! DeformConv: a convolution whose taps are shifted by offsets from an operand, separately at each position.
//!
//! | | |
//! |---|---|
//! | computes | like Conv, but tap `t` of position `p` samples the image at `p·stride − begin + t·dilation + offset[n, g, t, :, p]`, with linear interpolation and zeros outside, times `mask[n, g, t, p]` |
//! | shapes | `X [N, C, D…]`, `W [M, C / group, k…]`, `offset [N, offset_group·taps·axes, o…]`, `B [M]`, `mask [N, offset_group·taps, o…]` |
//! | offset groups | group `c / (C / offset_group)` shifts channel `c` |
//! | versions | 19; 22 adds bfloat16 |
//! | rejects | offsets or a mask of another shape, NaN offsets |
#![allow(
    clippy::indexing_slicing,
    reason = "the layout checked the ranks, and blocks are cut from buffers made for the largest of them"
)]

use std::borrow::Cow;

use super::direct::{ConvLayout, per_channel, shape_of};
use super::geometry::Geometry;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read, same_dtype};
use crate::ops::linear::{Matrix, multiply_add, stays_finite};
use crate::ops::traits::{Traits, convolution};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::Tensor;
use crate::tensor::threads;

pub(super) const DEFORM_CONV: Operator =
    Operator::new("DeformConv", &[19, 22], infer, eval).with(Traits::NONE.macs(|view| convolution(view, 1)));

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = (0..5).find_map(|at| cx.dtype(at));
    let bias = cx.shape(3).and_then(|shape| shape.first()).cloned();
    let mut shape = shape_of(cx, 0, 1, bias)?;
    // If the image's shape is unknown, the offsets determine the dims.
    if let (Some(shape), Some(offset)) = (&mut shape, cx.shape(2))
        && shape.len() == offset.len()
    {
        let unknown = |axis: usize| cx.shape(0).is_none() && (axis == 0 || axis >= 2);
        let dims = shape.iter_mut().zip(offset).enumerate().filter(|(axis, _)| unknown(*axis));
        dims.for_each(|(_, (dim, known))| *dim = known.clone());
    }
    Ok(vec![Fact::tensor(dtype, shape)])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, w, offset) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let (bias, mask) = (cx.optional_tensor(3)?, cx.optional_tensor(4)?);
    let dtype = x.dtype();
    same_dtype(dtype, &[w, offset])?;
    let layout = ConvLayout::new(cx, x.shape(), w.shape())?;
    let channels = x.shape()[1];
    let groups = usize::try_from(cx.attr_int("offset_group")?.unwrap_or(1)).unwrap_or(0);
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(Decline::invalid(format!(
            "the number of channels ({channels}) is not a multiple of attribute 'offset_group' ({groups})"
        )));
    }
    let (taps, axes) = (layout.geometry.taps, layout.geometry.axes.len());
    let check = |operand: &Tensor, per_tap: usize| {
        let rows = groups.checked_mul(taps).and_then(|rows| rows.checked_mul(per_tap));
        let places = layout.geometry.axes.iter().map(|axis| axis.places);
        let expected = [Some(layout.geometry.batch), rows].into_iter().chain(places.map(Some));
        if operand.shape().iter().map(|&dim| Some(dim)).eq(expected) {
            same_dtype(dtype, &[operand])
        } else {
            Err(Decline::invalid(format!(
                "'offset' or 'mask' has shape {:?}, which does not fit the result",
                operand.shape()
            )))
        }
    };
    check(offset, axes)?;
    mask.map_or(Ok(()), |mask| check(mask, 1))?;
    if let Some(bias) = bias {
        same_dtype(dtype, &[bias])?;
        per_channel(bias, w.shape()[0])?;
    }
    cx.claim(dtype, &layout.shape)?;
    let corners = 1u64.checked_shl(axes as u32).unwrap_or(u64::MAX);
    let samples = [layout.geometry.batch, channels, taps, layout.geometry.places];
    let samples = samples.iter().fold(corners, |work, &factor| work.saturating_mul(factor as u64));
    cx.budget().take_work(layout.geometry.work().saturating_add(samples))?;
    let weights = layout.geometry.in_channels.saturating_mul(taps);
    stays_finite(weights, &[x, w])?;
    mask.map_or(Ok(()), |mask| stays_finite(weights, &[x, w, mask]))?;
    bias.map_or(Ok(()), |bias| stays_finite(1, &[bias]))?;
    in_lane!(dtype, T => {
        let sampler = Sampler {
            geometry: &layout.geometry,
            offset: read::<T>(offset)?,
            mask: mask.map(read::<T>).transpose()?,
            groups,
            channels: channels / groups,
        };
        if sampler.offset.iter().any(|offset| !offset.to_f64().is_finite()) {
            return Err(Decline::unsupported("an element of 'offset' is not finite"));
        }
        let bias = bias.map(read::<T>).transpose()?;
        let values = sampler.convolve(&read::<T>(x)?, &read::<T>(w)?, bias.as_deref(), &layout.shape);
        Ok(vec![T::write(dtype, &layout.shape, values)?.into()])
    })
}

/// Samples images at the offsets.
struct Sampler<'a, T: Clone> {
    geometry: &'a Geometry,
    offset: Cow<'a, [T]>,
    mask: Option<Cow<'a, [T]>>,
    /// The number of offset groups.
    groups: usize,
    /// The number of channels per offset group.
    channels: usize,
}

impl<T: Lane> Sampler<'_, T> {
    fn convolve(&self, x: &[T], w: &[T], bias: Option<&[T]>, shape: &[usize]) -> Vec<T> {
        let &Geometry { groups, in_channels, out_channels, elements, places, taps, .. } = self.geometry;
        let mut y = vec![T::default(); crate::tensor::product(shape).unwrap_or(0)];
        let terms = in_channels * taps;
        if y.is_empty() || terms == 0 {
            return y;
        }
        const PART: usize = 1 << 20;
        #[allow(clippy::disallowed_methods, reason = "the size of a block")]
        let width = (PART / terms).clamp(8, 1 << 16).min(places);
        let mut matrix = vec![T::default(); terms * width];
        for (at, y) in y.chunks_exact_mut(out_channels * places).enumerate() {
            let (image, group) = (at / groups, at % groups);
            let weights = w.get(group * out_channels * terms..).unwrap_or_default();
            for start in (0..places).step_by(width) {
                let columns = width.min(places - start);
                let matrix = &mut matrix[..terms * columns];
                threads::for_each_row(matrix, columns, |(row, to)| {
                    let (channel, tap) = (group * in_channels + row / taps, row % taps);
                    let elements = x.get((image * groups * in_channels + channel) * elements..).unwrap_or_default();
                    self.row(elements, image, channel, tap, start, to);
                });
                let mut part = vec![T::default(); out_channels * columns];
                let weights = Matrix::dense(weights, terms);
                multiply_add(out_channels, terms, columns, weights, Matrix::dense(matrix, columns), &mut part);
                for (m, part) in part.chunks_exact(columns).enumerate() {
                    let bias = bias.and_then(|bias| bias.get(group * out_channels + m)).copied().unwrap_or_default();
                    let to = y.get_mut(m * places + start..).unwrap_or_default();
                    to.iter_mut().zip(part).for_each(|(y, &sum)| *y = bias.plus(sum));
                }
            }
        }
        y
    }

    /// Samples a channel for tap `tap` at the positions from `start` on.
    fn row(&self, elements: &[T], image: usize, channel: usize, tap: usize, start: usize, to: &mut [T]) {
        let Geometry { axes, places, taps, .. } = self.geometry;
        let row = (image * self.groups + channel / self.channels) * taps + tap;
        let tap_index = self.geometry.tap_index(tap);
        let mut position = vec![0.0; axes.len()];
        for (at, to) in to.iter_mut().enumerate() {
            let mut place = start + at;
            for (axis, (position, (window, &tap))) in
                position.iter_mut().zip(axes.iter().zip(&tap_index)).enumerate().rev()
            {
                let own = (place % window.places) as f64 * window.stride as f64 + tap as f64 * window.dilation as f64;
                place /= window.places;
                let offset = self.offset.get((row * axes.len() + axis) * places + start + at);
                *position = own - window.begin as f64 + offset.map_or(0.0, |offset| offset.to_f64());
            }
            let mask =
                self.mask.as_ref().map_or(1.0, |mask| mask.get(row * places + start + at).map_or(0.0, |m| m.to_f64()));
            *to = T::of(self.sample(elements, &position) * mask);
        }
    }

    /// Interpolates the image: each of the `2ⁿ` neighbors is weighted by its proximity.
    fn sample(&self, elements: &[T], position: &[f64]) -> f64 {
        let axes = &self.geometry.axes;
        (0..1usize << axes.len().min(usize::BITS as usize - 1))
            .filter_map(|corner| {
                let (mut at, mut weight) = (0, 1.0);
                for (axis, (window, &position)) in axes.iter().zip(position).enumerate() {
                    let (low, upper) = (position.floor(), corner >> axis & 1);
                    let near = position - low;
                    weight *= if upper == 1 { near } else { 1.0 - near };
                    let index = low + upper as f64;
                    if weight == 0.0 || index < 0.0 || index >= window.size as f64 {
                        return None;
                    }
                    at = at * window.size + index as usize;
                }
                Some(elements.get(at)?.to_f64() * weight)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let node = Single::new("DeformConv", 19).input(DType::Float, "N 4 9 9").input(DType::Float, "8 4 3 3");
        assert_eq!(node.input(DType::Float, "N 18 7 7").infer(), ["float[N, 8, 7, 7]"]);
        // ONNX Runtime runs a kernel that does not fit: with these strides it has one position.
        let short = Single::new("DeformConv", 19).input(DType::Float, "1 1 2 H").input(DType::Float, "1 1 3 3");
        let short = short.with("strides", vec![2, 2]).input(DType::Float, "1 18 A B");
        assert_eq!(short.infer(), ["float[1, 1, ?, max(0, floor((H - 3)/2)) + min(2, H) - 1]"]);
        let unknown = Single::new("DeformConv", 19).unranked(DType::Float).input(DType::Float, "8 4 3 3");
        assert_eq!(unknown.input(DType::Float, "N 18 H 7").infer(), ["float[N, 8, H, 7]"]);
    }

    #[test]
    fn positions_are_interpolated_with_zeros_outside() {
        let node = |dy: f32, dx: f32| {
            let offset = [dy, dy, dy, dy, dx, dx, dx, dx];
            Single::new("DeformConv", 19)
                .values(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0])
                .values(&[1, 1, 1, 1], &[2.0f32])
                .values(&[1, 2, 2, 2], &offset)
        };
        assert_eq!(node(0.0, 0.0).floats(), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(node(0.5, 0.0).floats(), [4.0, 6.0, 3.0, 4.0]);
        assert_eq!(node(0.0, -0.5).floats(), [1.0, 3.0, 3.0, 7.0]);
        assert_eq!(node(-1.0, 0.0).floats(), [0.0, 0.0, 2.0, 4.0]);
        assert_eq!(node(9e9, -9e9).floats(), [0.0; 4]);
        assert!(node(f32::NAN, 0.0).eval().is_err());
        let masked = node(0.0, 0.0).values(&[1], &[1.0f32]).values(&[1, 1, 2, 2], &[0.0f32, 1.0, 2.0, 3.0]);
        assert_eq!(masked.floats(), [1.0, 5.0, 13.0, 25.0]);
    }
}
