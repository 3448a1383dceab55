//! ConvTranspose: the transpose of a convolution, as a map from images to images.
//!
//! | | |
//! |---|---|
//! | computes | `Y[n, m, p·stride − begin + t·dilation] += X[n, c, p] · W[c, m, t]` for all `c`, `p`, `t`; then `B[m]` is added |
//! | shapes | `X [N, C, D…]`, `W [C, M / group, k…]`, `B [M]` |
//! | size | `stride·(D − 1) + output_padding + extent − begin − end` |
//! | `output_shape` | is the size; `begin` and `end` follow, with the odd one at the beginning unless SAME_UPPER |
//! | SAME | the size is `D·stride`; `begin` and `end` follow in the same way |
//! | versions | 1: describes the opposite position of the odd padding, which no runtime implements; 11; 22 adds bfloat16 |
//! | rejects | sizes below 1; an `output_padding` or `output_shape` that exceeds one more stride |
//!
//! With SAME, the text and runtimes give different sizes in two cases: windows shorter than the stride, and `output_padding`, which
//! the standard's inference adds. The size is unknown then.

use super::direct::{check_bias, check_kernel, check_padding};
use super::geometry::{Geometry, Operands, group};
use crate::dim::{Dim, Scope};
use crate::ir::Fact;
use crate::ops::lane::{Ring, in_lane, read, same_dtype};
use crate::ops::linear::{Matrix, multiply_add, stays_finite};
use crate::ops::traits::{Traits, transposed_convolution};
use crate::ops::window::{AutoPad, AxisWindows, Window, read_numbers};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::threads;

pub(super) const CONV_TRANSPOSE: Operator = Operator::new("ConvTranspose", &[1, 11, 22], infer, eval)
    .with(Traits::NONE.fused_with_next().bilinear().macs(transposed_convolution));

struct Transpose {
    window: Window,
    output_padding: Vec<i64>,
    output_shape: Option<Vec<i64>>,
}

impl Transpose {
    fn read(site: &Site<'_>, axes: usize) -> Result<Self, Refusal> {
        Ok(Transpose {
            window: Window::read(site, axes)?,
            output_padding: read_numbers(site, "output_padding", axes, 0)?.unwrap_or_else(|| vec![0; axes]),
            output_shape: read_numbers(site, "output_shape", axes, 1)?,
        })
    }

    /// Infers the size of an axis of the result.
    fn size(&self, site: &Site<'_>, scope: &Scope, axis: usize, size: &Dim, kernel: &Dim) -> Option<Dim> {
        if let Some(shape) = &self.output_shape {
            return shape.get(axis).map(|&size| Dim::constant(size));
        }
        let [stride, dilation, extra] =
            [&self.window.strides, &self.window.dilations, &self.output_padding].map(|numbers| numbers.get(axis));
        let (stride, dilation) = (Dim::constant(*stride?), Dim::constant(*dilation?));
        if self.window.is_disputed() {
            return None;
        }
        let one = Dim::constant(1);
        let extent = scope.add(&scope.mul(&scope.sub(kernel, &one), &dilation), &one);
        let extent = scope.add(&extent, &Dim::constant(*extra?));
        match self.window.auto_pad {
            AutoPad::SameUpper | AutoPad::SameLower => {
                // By the text of version 1, the size does not change.
                let same = (stride.is_const(1) || site.version > 1) && *extra? == 0;
                (same && scope.ge(&extent, &stride).is_yes()).then(|| scope.mul(size, &stride))
            }
            auto_pad => {
                let &[begin, end] = self.window.pads.get(axis)?;
                let cut = if auto_pad == AutoPad::Valid { 0 } else { begin.checked_add(end)? };
                let moved = scope.add(&scope.mul(&scope.sub(size, &one), &stride), &extent);
                let full = scope.sub(&moved, &Dim::constant(cut));
                (!scope.le(&full, &Dim::constant(0)).is_yes()).then_some(full)
            }
        }
    }

    /// Returns the windows over the result, one position per element of the image.
    fn axis(&self, version: i64, at: usize, places: usize, kernel: usize) -> Option<AxisWindows> {
        let stride = i128::from(*self.window.strides.get(at)?);
        let dilation = i128::from(*self.window.dilations.get(at)?);
        let extra = i128::from(*self.output_padding.get(at)?);
        let [begin, end] = self.window.pads.get(at)?.map(i128::from);
        if self.window.is_disputed() || kernel == 0 || places == 0 || extra >= stride.max(dilation) {
            return None;
        }
        let own = (places as i128 - 1) * stride + (kernel as i128 - 1) * dilation + 1;
        let upper = self.window.auto_pad == AutoPad::SameUpper;
        let shared = |total: i128| if upper { total / 2 } else { total - total / 2 };
        let given = self.output_shape.as_ref().map(|shape| shape.get(at).copied());
        let (size, begin) = match (given, self.window.auto_pad) {
            (Some(size), _) => {
                let size = i128::from(size?);
                let total = (own + extra - size).max(0);
                let disputed = version == 1 && total % 2 != 0;
                if disputed || size - own >= stride.max(dilation) {
                    return None;
                }
                (size, shared(total))
            }
            (None, AutoPad::SameUpper | AutoPad::SameLower) => {
                let size = places as i128 * stride;
                let total = own + extra - size;
                let disputed = extra != 0 || version == 1 && (stride != 1 || total % 2 != 0);
                if total < 0 || disputed {
                    return None;
                }
                (size, shared(total))
            }
            (None, AutoPad::Valid) => (own + extra, 0),
            (None, AutoPad::Explicit) => (own + extra - begin - end, begin),
        };
        if size < 1 {
            return None;
        }
        Some(AxisWindows {
            size: usize::try_from(size).ok()?,
            kernel,
            stride: usize::try_from(stride).ok()?,
            dilation: usize::try_from(dilation).ok()?,
            begin: usize::try_from(begin).ok()?,
            end: 0,
            places,
        })
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0).or(cx.dtype(1)).or(cx.dtype(2));
    let shape = shape_of(cx)?;
    check_bias(cx, shape.as_deref())?;
    Ok(vec![Fact::tensor(dtype, shape)])
}

fn shape_of(cx: &InferCx<'_>) -> Result<Option<Vec<Dim>>, Refusal> {
    let groups = group(cx)?;
    let Some(operands) = Operands::known(cx, 0, 1)? else { return Ok(None) };
    let transpose = Transpose::read(cx, operands.kernel.len())?;
    check_padding(&transpose.window)?;
    let scope = cx.scope();
    if let (Some(c), Some(of_weights)) = (operands.x(1), operands.w(0))
        && scope.eq(c, of_weights).is_no()
    {
        let (c, of_weights) = (scope.format(c), scope.format(of_weights));
        return Err(Refusal::invalid(format!("'X' has {c} channels, but 'W' has {of_weights}")));
    }
    if let Some(c) = operands.w(0).or(operands.x(1)).and_then(Dim::as_const)
        && c % groups != 0
    {
        return Err(Refusal::invalid(format!(
            "the number of channels ({c}) is not a multiple of attribute 'group' ({groups})"
        )));
    }
    let channels = operands.w(1).map(|m| scope.mul(m, &Dim::constant(groups)));
    let bias = cx.shape(2).and_then(|shape| shape.first()).cloned();
    let mut dims = vec![
        operands.x(0).cloned().unwrap_or_else(|| cx.fresh_dim()),
        channels.or(bias).unwrap_or_else(|| cx.fresh_dim()),
    ];
    let unknown = Dim::constant(1);
    for (axis, kernel) in operands.kernel.iter().enumerate() {
        let size = match operands.x(axis + 2) {
            Some(size) => transpose.size(cx, scope, axis, size, kernel),
            None if transpose.output_shape.is_some() => transpose.size(cx, scope, axis, &unknown, kernel),
            None => None,
        };
        dims.push(size.unwrap_or_else(|| cx.fresh_dim()));
    }
    Ok(Some(dims))
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, w, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional_tensor(2)?);
    let dtype = x.dtype();
    same_dtype(dtype, &[w])?;
    let ([batch, channels, sizes @ ..], [in_channels, per_group, kernel @ ..]) = (x.shape(), w.shape()) else {
        return Err(Decline::invalid("the rank of 'X' or 'W' is less than 3"));
    };
    if sizes.is_empty() || sizes.len() != kernel.len() || channels != in_channels {
        return Err(Decline::invalid(format!(
            "'W' has shape {:?}, which does not fit 'X' of shape {:?}",
            w.shape(),
            x.shape()
        )));
    }
    check_kernel(cx, kernel)?;
    let groups = group(cx)?;
    let out_channels = usize::try_from(groups).ok().and_then(|groups| per_group.checked_mul(groups));
    let out_channels =
        out_channels.ok_or_else(|| Decline::OverBudget("the number of output channels is too large".into()))?;
    let transpose = Transpose::read(cx, sizes.len())?;
    let axes = sizes.iter().zip(kernel).enumerate().map(|(at, (&size, &kernel))| {
        let axis = transpose.axis(cx.version, at, size, kernel);
        axis.ok_or_else(|| {
            Decline::unsupported(format!("the kernel has size {kernel} and the axis has size {size}: the size of the result is negative, or differs between runtimes"))
        })
    });
    let geometry = Geometry::new(*batch, groups, *channels, out_channels, axes.collect::<Result<Vec<_>, _>>()?)?;
    let shape: Vec<usize> =
        [*batch, out_channels].into_iter().chain(geometry.axes.iter().map(|axis| axis.size)).collect();
    if let Some(bias) = bias {
        same_dtype(dtype, &[bias])?;
        super::direct::per_channel(bias, out_channels)?;
    }
    cx.claim(dtype, &shape)?;
    cx.budget().take_work(geometry.work())?;
    stays_finite(geometry.in_channels.saturating_mul(geometry.taps), &[x, w])?;
    bias.map_or(Ok(()), |bias| stays_finite(1, &[bias]))?;
    in_lane!(dtype, T => {
        let bias = bias.map(read::<T>).transpose()?;
        let values = scatter::<T>(&geometry, &read::<T>(x)?, &read::<T>(w)?, bias.as_deref());
        Ok(vec![T::write(dtype, &shape, values)?.into()])
    })
}

/// Computes for each image, group and output channel the product of weights and image: a matrix with one row per tap. Adds it to
/// the channel at the taps' positions.
fn scatter<T: Ring>(geometry: &Geometry, x: &[T], w: &[T], bias: Option<&[T]>) -> Vec<T> {
    let &Geometry { batch, groups, in_channels, out_channels, elements, places, taps, .. } = geometry;
    let channels = batch * groups * out_channels;
    let mut y = vec![T::default(); channels * elements];
    if y.is_empty() {
        return y;
    }
    // Process some taps at a time, a few megabytes.
    const PART: usize = 1 << 20;
    #[allow(clippy::disallowed_methods, reason = "the size of a block")]
    let rows = (PART / places.max(1)).clamp(1, taps.max(1));
    threads::for_each(y.chunks_exact_mut(elements).enumerate(), |(at, channel)| {
        let (image_group, m) = (at / out_channels, at % out_channels);
        let image = x.get(image_group * in_channels * places..).unwrap_or_default();
        // Column `t` of row `c` is `w[group, c, m, t]`; the product needs its transpose.
        let weights = w.get(image_group % groups * in_channels * out_channels * taps + m * taps..).unwrap_or_default();
        let mut matrix = vec![T::default(); rows * places];
        for first in (0..taps).step_by(rows) {
            let matrix = matrix.get_mut(..rows.min(taps - first) * places).unwrap_or_default();
            let weights =
                Matrix { data: weights.get(first..).unwrap_or_default(), row: 1, column: out_channels * taps };
            matrix.fill(T::default());
            multiply_add(rows.min(taps - first), in_channels, places, weights, Matrix::dense(image, places), matrix);
            geometry.fold(first, matrix, channel);
        }
        if let Some(&bias) = bias.and_then(|bias| bias.get(at % (groups * out_channels))) {
            channel.iter_mut().for_each(|y| *y = y.plus(bias));
        }
    });
    y
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn infer(x: &str, w: &str, with: impl Fn(Single) -> Single) -> String {
        with(Single::new("ConvTranspose", 11).input(DType::Float, x).input(DType::Float, w)).infer().remove(0)
    }

    #[test]
    fn shapes() {
        assert_eq!(infer("N 3 7 H", "3 4 3 3", |node| node), "float[N, 4, 9, H + 2]");
        assert_eq!(
            infer("1 4 H", "4 3 3", |node| node.with("group", 2).with("strides", vec![2])),
            "float[1, 6, 2*H + 1]"
        );
        let padded =
            |node: Single| node.with("strides", vec![3]).with("output_padding", vec![1]).with("pads", vec![1, 2]);
        assert_eq!(infer("1 1 5", "1 1 3", padded), "float[1, 1, 13]");
        assert_eq!(infer("1 1 H", "1 1 3", |node| node.with("output_shape", vec![9])), "float[1, 1, 9]");
        let same = |node: Single| node.with("strides", vec![2]).with_str("auto_pad", "SAME_UPPER");
        assert_eq!(infer("1 1 H", "1 1 3", same), "float[1, 1, 2*H]");
        let short = |node: Single| node.with("strides", vec![3]).with_str("auto_pad", "SAME_UPPER");
        assert_eq!(infer("1 1 H", "1 1 2", short), "float[1, 1, ?]");
        assert!(infer("1 2 3", "3 1 2", |node| node).starts_with("invalid"));
        let twice = |node: Single| node.with("pads", vec![0, 1]).with_str("auto_pad", "SAME_UPPER");
        assert!(infer("1 1 H", "1 1 2", twice).starts_with("invalid"));
        let group = |node: Single| node.with("group", 2).input(DType::Float, "3");
        assert!(infer("1 4 H", "4 3 2", group).starts_with("invalid"));
    }

    #[test]
    fn values() {
        let node = |taps: usize| {
            Single::new("ConvTranspose", 11)
                .values(&[1, 1, 3], &[1.0f32, 2.0, 3.0])
                .values(&[1, 1, taps], &vec![1.0f32; taps])
        };
        let twice = |taps: usize| node(taps).with("strides", vec![2]);
        assert_eq!(node(2).floats(), [1.0, 3.0, 5.0, 3.0]);
        assert_eq!(node(1).with("pads", vec![1, 1]).floats(), [2.0]);
        assert_eq!(twice(3).with("output_padding", vec![1]).floats(), [1.0, 1.0, 3.0, 2.0, 5.0, 3.0, 3.0, 0.0]);
        assert_eq!(twice(3).with("output_shape", vec![6]).floats(), [1.0, 3.0, 2.0, 5.0, 3.0, 3.0]);
        let upper = twice(3).with("output_shape", vec![6]).with_str("auto_pad", "SAME_UPPER");
        assert_eq!(upper.floats(), [1.0, 1.0, 3.0, 2.0, 5.0, 3.0]);
        assert_eq!(twice(3).with_str("auto_pad", "SAME_LOWER").floats(), [1.0, 3.0, 2.0, 5.0, 3.0, 3.0]);
        assert_eq!(twice(3).with("output_shape", vec![8]).floats(), [1.0, 1.0, 3.0, 2.0, 5.0, 3.0, 3.0, 0.0]);
        assert!(twice(3).with("output_shape", vec![9]).eval().is_err());
        assert!(node(1).with("pads", vec![2, 2]).eval().is_err());
        let groups = Single::new("ConvTranspose", 11)
            .values(&[1, 2, 1], &[1.0f32, 10.0])
            .values(&[2, 1, 2], &[1.0f32, 2.0, 3.0, 4.0])
            .values(&[2], &[0.5f32, 0.0])
            .with("group", 2);
        assert_eq!(groups.floats(), [1.5, 2.5, 30.0, 40.0]);
    }
}
