//! Conv: cross-correlation with padding, strides, dilations and groups.
//!
//! | | |
//! |---|---|
//! | computes | `Y[n, m, p…] = B[m] + Σ X[n, c, p·stride − pad + t·dilation] · W[m, c, t…]` over the channels `c` of `m`'s group and the taps `t` |
//! | shapes | `X [N, C, D…]`, `W [M, C / group, k…]`, `B [M]`; positions as in [`window`](crate::ops::window) |
//! | versions | 1; 11 (wording); 22 adds bfloat16 |
//! | rejects | images without spatial axes, channels that do not match the groups, a `kernel_shape` other than the weights', kernels that do not fit, padding by both attributes |
#![allow(
    clippy::indexing_slicing,
    reason = "the layout checked the ranks, and blocks are cut from buffers made for the largest of them"
)]

use super::geometry::{Geometry, Operands, fitting, group};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Ring, in_lane, read, same_dtype};
use crate::ops::linear::{Matrix, multiply_add, stays_finite};
use crate::ops::traits::{NumbersOf, Traits, convolution};
use crate::ops::window::Window;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::{Tensor, threads};

pub(super) const CONV: Operator = Operator::new("Conv", &[1, 11, 22], infer, eval).with(
    Traits::NONE
        .fused_with_next()
        .bilinear()
        .macs(|view| convolution(view, 1))
        .needs(|view| fitting(view, 0, 1))
        .inferred_by_numbers(NumbersOf::Whole(2)),
);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0).or(cx.dtype(1)).or(cx.dtype(2));
    let bias = cx.shape(2).and_then(|shape| shape.first()).cloned();
    let shape = shape_of(cx, 0, 1, bias)?;
    check_bias(cx, shape.as_deref())?;
    Ok(vec![Fact::tensor(dtype, shape)])
}

/// Checks operand 2, the bias, against the channels of the result.
///
/// # Errors
/// The bias is not a vector of this length.
pub(super) fn check_bias(cx: &InferCx<'_>, result: Option<&[Dim]>) -> Result<(), Refusal> {
    match (cx.shape(2), result) {
        (Some([entries]), Some([_, channels, ..])) if cx.scope().eq(entries, channels).is_no() => {
            let (entries, channels) = (cx.scope().format(entries), cx.scope().format(channels));
            Err(Refusal::invalid(format!("the bias has {entries} elements, but there are {channels} output channels")))
        }
        (None | Some([_]), _) => Ok(()),
        (Some(bias), _) => Err(Refusal::invalid(format!("the bias has rank {} instead of 1", bias.len()))),
    }
}

/// Checks that only one attribute defines padding; pools accept both.
///
/// # Errors
/// Both `pads` and `auto_pad` define padding.
pub(super) fn check_padding(window: &Window) -> Result<(), Refusal> {
    match window.is_disputed() {
        true => Err(Refusal::invalid("both attributes 'pads' and 'auto_pad' define the padding")),
        false => Ok(()),
    }
}

/// Infers the shape of the convolution of operands `x` and `w`; `channels` is the result's channels, if known otherwise.
///
/// # Errors
/// The operands or attributes are incompatible.
pub(in crate::ops) fn shape_of(
    cx: &InferCx<'_>,
    x: usize,
    w: usize,
    channels: Option<Dim>,
) -> Result<Option<Vec<Dim>>, Refusal> {
    let groups = group(cx)?;
    let Some(operands) = Operands::known(cx, x, w)? else { return Ok(None) };
    let window = Window::read(cx, operands.kernel.len())?;
    check_padding(&window)?;
    let scope = cx.scope();
    if let (Some(c), Some(per_group)) = (operands.x(1), operands.w(1))
        && scope.eq(c, &scope.mul(per_group, &Dim::constant(groups))).is_no()
    {
        let (c, per_group) = (scope.format(c), scope.format(per_group));
        return Err(Refusal::invalid(format!(
            "'X' has {c} channels, but 'W' requires {groups} groups of {per_group} channels"
        )));
    }
    if let Some(m) = operands.w(0).and_then(Dim::as_const)
        && m % groups != 0
    {
        return Err(Refusal::invalid(format!(
            "the number of output channels ({m}) is not a multiple of attribute 'group' ({groups})"
        )));
    }
    let mut dims = vec![
        operands.x(0).cloned().unwrap_or_else(|| cx.fresh_dim()),
        operands.w(0).cloned().or(channels).unwrap_or_else(|| cx.fresh_dim()),
    ];
    for (axis, kernel) in operands.kernel.iter().enumerate() {
        let size = operands.x(axis + 2);
        if cx.node.is("DeformConv") {
            let places = size.and_then(|size| window.places_rounded(scope, axis, size, kernel));
            dims.push(places.unwrap_or_else(|| cx.fresh_dim()));
            continue;
        }
        if let Some(size) = size.filter(|size| window.never_fits(scope, axis, size, kernel)) {
            let (size, kernel) = (scope.format(size), scope.format(kernel));
            return Err(Refusal::invalid(format!(
                "the kernel of size {kernel} is larger than the padded axis of size {size}"
            )));
        }
        let places = size.and_then(|size| window.places(scope, axis, size, kernel));
        dims.push(places.unwrap_or_else(|| cx.fresh_dim()));
    }
    Ok(Some(dims))
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, w, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional_tensor(2)?);
    let dtype = x.dtype();
    same_dtype(dtype, &[w])?;
    let layout = ConvLayout::new(cx, x.shape(), w.shape())?;
    if let Some(bias) = bias {
        same_dtype(dtype, &[bias])?;
        per_channel(bias, w.shape()[0])?;
    }
    cx.claim(dtype, &layout.shape)?;
    cx.budget().take_work(layout.geometry.work())?;
    stays_finite(layout.geometry.in_channels.saturating_mul(layout.geometry.taps), &[x, w])?;
    bias.map_or(Ok(()), |bias| stays_finite(1, &[bias]))?;
    in_lane!(dtype, T => {
        let bias = bias.map(read::<T>).transpose()?;
        let values = layout.convolve(&read::<T>(x)?, &read::<T>(w)?, bias.as_deref());
        Ok(vec![T::write(dtype, &layout.shape, values)?.into()])
    })
}

/// The layout of a convolution of constant shapes.
pub(super) struct ConvLayout {
    pub geometry: Geometry,
    /// The shape of the result.
    pub shape: Vec<usize>,
}

impl ConvLayout {
    /// # Errors
    /// The operands are incompatible.
    pub fn new(cx: &EvalCx<'_>, x: &[usize], w: &[usize]) -> Result<ConvLayout, Decline> {
        let groups = group(cx)?;
        let ([batch, channels, sizes @ ..], [out_channels, per_group, kernel @ ..]) = (x, w) else {
            return Err(Decline::invalid("the rank of 'X' or 'W' is less than 3"));
        };
        if sizes.is_empty() || sizes.len() != kernel.len() {
            return Err(Decline::invalid(format!("'W' has shape {w:?}, which does not fit 'X' of shape {x:?}")));
        }
        check_kernel(cx, kernel)?;
        let axes = Window::read(cx, sizes.len())?.over(sizes, kernel)?;
        let geometry = Geometry::new(*batch, groups, *channels, *out_channels, axes)?;
        if geometry.in_channels != *per_group {
            return Err(Decline::invalid(format!(
                "'X' has {channels} channels, but 'W' requires {groups} groups of {per_group} channels"
            )));
        }
        let shape = [*batch, *out_channels].into_iter().chain(geometry.axes.iter().map(|axis| axis.places)).collect();
        Ok(ConvLayout { geometry, shape })
    }

    /// Computes the convolution. The caller must have claimed memory and work.
    pub fn convolve<T: Ring>(&self, x: &[T], w: &[T], bias: Option<&[T]>) -> Vec<T> {
        let Geometry { groups, in_channels, out_channels, elements, places, taps, .. } = self.geometry;
        let mut y = vec![T::default(); crate::tensor::product(&self.shape).unwrap_or(0)];
        if y.is_empty() {
            return y;
        }
        if let Some(bias) = bias {
            let channels = y.chunks_exact_mut(places).zip(bias.iter().cycle());
            channels.for_each(|(channel, &bias)| channel.fill(bias));
        }
        let terms = in_channels * taps;
        if terms == 0 || elements == 0 {
            return y;
        }
        // Unfold a part of the matrix at a time, small enough to be cached until it is packed.
        const PART: usize = 1 << 18;
        #[allow(clippy::disallowed_methods, reason = "the size of a block")]
        let width = (PART / terms).clamp(8, 1 << 16).min(places);
        let starts: Vec<usize> = (0..places).step_by(width).collect();
        for (at, y) in y.chunks_exact_mut(out_channels * places).enumerate() {
            let image = x.get(at * in_channels * elements..).unwrap_or_default();
            let weights = w.get(at % groups * out_channels * terms..).unwrap_or_default();
            let weights = Matrix::dense(weights, terms);
            if self.geometry.is_pointwise() {
                multiply_add(out_channels, terms, places, weights, Matrix::dense(image, places), y);
                continue;
            }
            // Each thread computes separate parts, starting from the bias, which are contiguous in the result.
            let made = |matrix: &mut Vec<T>, start: usize| {
                let range = start..places.min(start + width);
                let columns = range.len();
                matrix.resize(terms * columns, T::default());
                self.geometry.unfold(image, range.clone(), matrix);
                let mut part = Vec::with_capacity(out_channels * columns);
                y.chunks_exact(places).for_each(|row| part.extend_from_slice(&row[range.clone()]));
                multiply_add(out_channels, terms, columns, weights, Matrix::dense(matrix, columns), &mut part);
                part
            };
            let mut parts: Vec<Vec<T>> = vec![Vec::new(); starts.len()];
            let each = parts.iter_mut().zip(&starts);
            threads::for_each_with(each, Vec::new, |matrix, (part, &start)| *part = made(matrix, start));
            threads::for_each_row(y, places, |(channel, row)| {
                for (to, part) in row.chunks_mut(width).zip(&parts) {
                    to.copy_from_slice(&part[channel * to.len()..][..to.len()]);
                }
            });
        }
        y
    }
}

/// Checks that the attribute `kernel_shape`, if given, equals the weights' shape.
pub(super) fn check_kernel(cx: &EvalCx<'_>, kernel: &[usize]) -> Result<(), Decline> {
    let given = cx.attr_ints("kernel_shape")?.filter(|given| !given.is_empty());
    let same =
        |given: &[i64]| given.iter().map(|&dim| usize::try_from(dim).ok()).eq(kernel.iter().map(|&dim| Some(dim)));
    match given {
        Some(given) if !same(given) => {
            Err(Decline::invalid("attribute 'kernel_shape' differs from the spatial dims of 'W'"))
        }
        _ => Ok(()),
    }
}

/// Checks that the bias or another vector has one number per channel.
pub(super) fn per_channel(tensor: &Tensor, channels: usize) -> Result<(), Decline> {
    if tensor.shape() == [channels] {
        Ok(())
    } else {
        Err(Decline::invalid("the bias, scale or zero point does not have one element per output channel"))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn conv(x: &str, w: &str) -> Single {
        Single::new("Conv", 11).input(DType::Float, x).input(DType::Float, w)
    }

    #[test]
    fn shapes() {
        assert_eq!(
            conv("N 3 224 224", "64 3 7 7").with("strides", vec![2, 2]).with("pads", vec![3, 3, 3, 3]).infer(),
            ["float[N, 64, 112, 112]"]
        );
        // Begin, begin, end, end.
        assert_eq!(conv("1 1 10 10", "1 1 3 3").with("pads", vec![0, 1, 2, 3]).infer(), ["float[1, 1, 10, 12]"]);
        assert_eq!(
            conv("1 1 7", "1 1 3").with("strides", vec![2]).with_str("auto_pad", "SAME_LOWER").infer(),
            ["float[1, 1, 4]"]
        );
        assert_eq!(conv("1 2 7", "4 1 K").with("group", 2).infer(), ["float[1, 4, 8 - K]"]);
        assert_eq!(conv("1 1 H", "1 1 3").with("dilations", vec![2]).infer(), ["float[1, 1, H - 4]"]);
        assert_eq!(conv("1 1 7", "1 1 9").with_str("auto_pad", "SAME_UPPER").infer(), ["float[1, 1, 7]"]);
        assert_eq!(conv("1 1 7", "1 1 9").with("pads", vec![1, 1]).infer(), ["float[1, 1, 1]"]);
        let unknown = Single::new("Conv", 11).unranked(DType::Float).input(DType::Float, "8 3 5 5");
        assert_eq!(unknown.infer(), ["float[?, 8, ?, ?]"]);
        let nothing = Single::new("Conv", 11).unranked(DType::Float).unranked(DType::Float);
        assert_eq!(nothing.infer(), ["float"]);
    }

    #[test]
    fn nodes_that_break_the_rules() {
        for node in [
            conv("1 1 7", "1 1 3").with("strides", vec![0]),
            conv("1 1 7", "1 1 3").with("dilations", vec![0]),
            conv("1 1 7", "1 1 3").with("pads", vec![-1, 0]),
            conv("1 1 7", "1 1 3").with("pads", vec![1]),
            conv("1 1 7", "1 1 3").with("kernel_shape", vec![2]),
            conv("1 1 7", "1 1 3").with("group", 0),
            conv("1 3 7", "1 1 3").with("group", 2),
            conv("1 2 7", "1 1 3").with("group", 2),
            conv("1 1", "1 1"),
            conv("1 1 7", "1 1 3 3"),
            conv("1 1 7", "1 1 3").with_str("auto_pad", "SOME"),
            conv("1 1 7", "1 1 3").with_str("auto_pad", "VALID").with("pads", vec![1, 1]),
            conv("N 1 7", "1 1 9").with("pads", vec![1, 0]),
            conv("N 1 7", "1 1 4").with("dilations", vec![3]).with("strides", vec![4]),
            conv("N 1 7 H", "1 1 8 1").with_str("auto_pad", "VALID"),
            conv("N 1 7", "2 1 3").input(DType::Float, "3"),
            conv("N 1 7", "2 1 3").input(DType::Float, "1 2"),
        ] {
            assert!(node.infer()[0].starts_with("invalid"));
        }
    }

    #[test]
    fn same_padding_below_zero_declines() {
        let conv = |taps: usize| {
            Single::new("Conv", 11).values(&[1, 1, 4], &[1.0f32; 4]).values(&[1, 1, taps], &vec![1.0f32; taps])
        };
        for auto_pad in ["SAME_UPPER", "SAME_LOWER"] {
            assert!(conv(1).with("strides", vec![4]).with_str("auto_pad", auto_pad).eval().is_err());
            assert_eq!(conv(4).with("strides", vec![4]).with_str("auto_pad", auto_pad).floats(), [4.0]);
        }
    }

    #[test]
    fn values() {
        let ramp = |count: usize| (0..count).map(|at| at as f32).collect::<Vec<_>>();
        let conv = |x: &[usize], w: &[usize]| {
            let count = |shape: &[usize]| shape.iter().product();
            Single::new("Conv", 11).values(x, &ramp(count(x))).values(w, &vec![1.0f32; count(w)])
        };
        assert_eq!(conv(&[1, 1, 5], &[1, 1, 2]).floats(), [1.0, 3.0, 5.0, 7.0]);
        assert_eq!(
            conv(&[1, 1, 5], &[1, 1, 3]).with("pads", vec![1, 1]).with("strides", vec![2]).floats(),
            [1.0, 6.0, 7.0]
        );
        assert_eq!(conv(&[1, 1, 5], &[1, 1, 2]).with("dilations", vec![3]).floats(), [3.0, 5.0]);
        assert_eq!(
            conv(&[1, 2, 2], &[2, 1, 1]).with("group", 2).values(&[2], &[10.0f32, 20.0]).floats(),
            [10.0, 11.0, 22.0, 23.0]
        );
        assert_eq!(conv(&[1, 1, 2, 2], &[1, 1, 2, 2]).with("pads", vec![1, 0, 0, 1]).floats(), [1.0, 1.0, 6.0, 4.0]);
        assert_eq!(conv(&[1, 1, 3], &[1, 1, 2]).with_str("auto_pad", "SAME_LOWER").floats(), [0.0, 1.0, 3.0]);
        assert_eq!(conv(&[0, 1, 3], &[1, 1, 2]).eval().unwrap()[0].shape(), [0, 1, 2]);
        assert!(conv(&[1, 1, 2], &[1, 1, 3]).eval().is_err());
    }
}
