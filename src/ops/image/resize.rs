//! Resize and Upsample: a tensor at other sizes.
//!
//! | | |
//! |---|---|
//! | computes | each element from those of the data around its coordinate there: the nearest, or a weighted sum of 2 (linear) or 4 (cubic) on each axis, of more when antialiased |
//! | sizes | see [`sizes`](super::sizes) |
//! | Upsample | 1: height and width of a 4-D tensor; 7: scales as an attribute; 9: as an operand; 10: deprecated |
//! | Resize | 10: an Upsample that may scale down; 11: regions, coordinate modes, cubic; 13: all but the data optional; 18: axes, antialiasing, aspect ratios; 19: `half_pixel_symmetric` |
//! | not evaluated | where runtimes disagree: weighted sums of integers, of infinities and NaNs; coordinates that depend on whether an odd size is rounded; nearest elements that depend on the precision of coordinates; regions that runtimes ignore |

use super::resample::{Bump, Design, Filter, pick};
use super::sizes::{self, Extent};
use crate::ir::Data;
use crate::ops::lane::{Lane, in_lane, read};
use crate::ops::{Decline, EvalCx, EvalResult, Operator, Refusal, Site};
use crate::tensor::{DType, Indices, Number, Tensor, dispatch_numeric, product};

pub(super) const RESIZE: Operator = Operator::new("Resize", &[10, 11, 13, 18, 19], sizes::infer, eval);
pub(super) const UPSAMPLE: Operator = Operator::new("Upsample", &[1, 7, 9, 10], sizes::infer, eval);

/// Which element is nearest to a coordinate.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Nearest {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Before version 11: the next below where the data grows, the next above where it shrinks.
    ByScale,
}

/// How elements are made.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Interpolation {
    Nearest(Nearest),
    Weighted { bump: Bump, antialias: bool, exclude_outside: bool },
}

/// Which coordinate of the data belongs to a place of the result.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    HalfPixelForNearest,
    CropAndResize,
}

fn interpolation(site: &Site<'_>) -> Result<Interpolation, Refusal> {
    let mode = site.attr_str("mode")?.unwrap_or("nearest");
    let antialias = site.version >= 18 && site.node.is("Resize") && site.attr_flag("antialias", false)?;
    let modern = site.node.is("Resize") && site.version >= 11;
    let exclude_outside = modern && site.attr_flag("exclude_outside", false)?;
    match mode {
        "nearest" if !modern => Ok(Interpolation::Nearest(Nearest::ByScale)),
        "nearest" if antialias => Err(Refusal::unsupported("the nearest element is not antialiased")),
        "nearest" => Ok(Interpolation::Nearest(match site.attr_str("nearest_mode")? {
            None | Some("round_prefer_floor") => Nearest::PreferFloor,
            Some("round_prefer_ceil") => Nearest::PreferCeil,
            Some("floor") => Nearest::Floor,
            Some("ceil") => Nearest::Ceil,
            Some(other) => return Err(Refusal::invalid(format!("nearest_mode is '{other}'"))),
        })),
        "linear" => Ok(Interpolation::Weighted { bump: Bump::Linear, antialias, exclude_outside }),
        "cubic" if modern => {
            let a = f64::from(site.attr_float("cubic_coeff_a")?.unwrap_or(-0.75));
            Ok(Interpolation::Weighted { bump: Bump::Cubic(a), antialias, exclude_outside })
        }
        "bilinear" if site.version < 7 => Err(Refusal::unsupported("Upsample-1 does not say where elements lie")),
        other => Err(Refusal::invalid(format!("mode is '{other}'"))),
    }
}

fn coordinates(site: &Site<'_>) -> Result<Coordinates, Refusal> {
    if !site.node.is("Resize") || site.version < 11 {
        return Ok(Coordinates::Asymmetric);
    }
    Ok(match site.attr_str("coordinate_transformation_mode")? {
        None | Some("half_pixel") => Coordinates::HalfPixel,
        Some("half_pixel_symmetric") => Coordinates::HalfPixelSymmetric,
        Some("pytorch_half_pixel") => Coordinates::PytorchHalfPixel,
        Some("align_corners") => Coordinates::AlignCorners,
        Some("asymmetric") => Coordinates::Asymmetric,
        Some("tf_half_pixel_for_nn") => Coordinates::HalfPixelForNearest,
        Some("tf_crop_and_resize") => Coordinates::CropAndResize,
        Some(other) => return Err(Refusal::invalid(format!("coordinate_transformation_mode is '{other}'"))),
    })
}

/// Arithmetic in the precision coordinates are computed in.
trait Real: Lane + std::ops::Add<Output = Self> + std::ops::Sub<Output = Self> + std::ops::Div<Output = Self> {}

impl Real for f32 {}
impl Real for f64 {}

impl Coordinates {
    /// The coordinates of the places of an axis, in binary32 or binary64.
    fn along<T: Real>(self, extent: &Extent) -> Vec<f64> {
        let (input, output) = (T::of(extent.input as f64), T::of(extent.output as f64));
        let [scale, start, end] =
            [T::of(extent.scale[0]) / T::of(extent.scale[1]), T::of(extent.region[0]), T::of(extent.region[1])];
        let (one, half) = (T::of(1.0), T::of(0.5));
        let (last, output_last) = (input - one, output - one);
        let single = extent.output <= 1;
        let half_pixel = |x: T| (x + half) / scale - half;
        let coordinate = |x: T| match self {
            Coordinates::HalfPixel => half_pixel(x),
            Coordinates::HalfPixelSymmetric => {
                let adjustment = output / scale.times(input);
                (input / T::of(2.0)).times(one - adjustment) + half_pixel(x)
            }
            Coordinates::PytorchHalfPixel if single => T::of(0.0),
            Coordinates::PytorchHalfPixel => half_pixel(x),
            Coordinates::AlignCorners if single => T::of(0.0),
            Coordinates::AlignCorners => x.times(last) / output_last,
            Coordinates::Asymmetric => x / scale,
            Coordinates::HalfPixelForNearest => (x + half) / scale,
            Coordinates::CropAndResize if single => half.times(start + end).times(last),
            Coordinates::CropAndResize => start.times(last) + x.times(end - start).times(last) / output_last,
        };
        (0..extent.output).map(|x| coordinate(T::of(x as f64)).to_f64()).collect()
    }

    /// Whether coordinates depend on the size of the result before it was rounded.
    fn needs_exact_size(self, extent: &Extent) -> bool {
        let spread = matches!(self, Coordinates::AlignCorners | Coordinates::CropAndResize);
        spread && extent.output > 1
    }
}

impl Nearest {
    fn index(self, x: f64, extent: &Extent) -> usize {
        let rounded = match self {
            Nearest::PreferFloor => (x - 0.5).ceil(),
            Nearest::PreferCeil => (x + 0.5).floor(),
            Nearest::ByScale if extent.scale[0] < extent.scale[1] => x.ceil(),
            Nearest::Floor | Nearest::ByScale => x.floor(),
            Nearest::Ceil => x.ceil(),
        };
        rounded.clamp(0.0, extent.input.saturating_sub(1) as f64) as usize
    }
}

/// The places of each axis that lie beyond the data, which `tf_crop_and_resize` fills.
struct Beyond(Vec<Vec<bool>>);

impl Beyond {
    fn is_empty(&self) -> bool {
        self.0.iter().all(|axis| !axis.contains(&true))
    }

    /// Visits the number of every element of the result that lies beyond the data on some axis.
    fn for_each(&self, mut visit: impl FnMut(usize)) {
        let shape: Vec<usize> = self.0.iter().map(Vec::len).collect();
        let mut indices = Indices::new(&shape);
        let mut number = 0;
        while let Some(index) = indices.advance() {
            if index.iter().zip(&self.0).any(|(&at, axis)| axis.get(at).copied().unwrap_or(false)) {
                visit(number);
            }
            number += 1;
        }
    }
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let (interpolation, coordinates) = (interpolation(cx)?, coordinates(cx)?);
    let extents = sizes::extents(cx, data.shape())?;
    let shape: Vec<usize> = extents.iter().map(|extent| extent.output).collect();
    cx.claim(data.dtype(), &shape)?;
    if shape.contains(&0) {
        return Ok(vec![Tensor::zeros(data.dtype(), &shape)?.into()]);
    }
    if data.is_empty() {
        return Err(Decline::invalid("nothing cannot be resized to something"));
    }
    if extents.iter().any(|extent| coordinates.needs_exact_size(extent) && !extent.is_exact()) {
        return Err(Decline::unsupported("runtimes disagree on the coordinates of a size that was rounded"));
    }
    let mut places = Vec::with_capacity(extents.len());
    let mut beyond = Beyond(Vec::with_capacity(extents.len()));
    for extent in &extents {
        cx.claim(DType::Complex128, &[extent.output])?;
        let (single, double) = (coordinates.along::<f32>(extent), coordinates.along::<f64>(extent));
        if double.iter().any(|x| !x.is_finite()) {
            return Err(Decline::unsupported("a coordinate is not finite"));
        }
        let outside =
            |x: &f64| coordinates == Coordinates::CropAndResize && !(0.0..=extent.input as f64 - 1.0).contains(x);
        if single.iter().map(outside).ne(double.iter().map(outside)) {
            return Err(Decline::unsupported("rounding decides what is beyond the data"));
        }
        beyond.0.push(double.iter().map(outside).collect());
        places.push((single, double));
    }
    let result = match interpolation {
        Interpolation::Nearest(nearest) => nearest_elements(cx, data, nearest, &extents, &places, &beyond)?,
        Interpolation::Weighted { bump, antialias, exclude_outside } => {
            let filters = extents.iter().zip(&places).map(|(extent, (_, coordinates))| {
                let [numerator, denominator] = extent.scale;
                let stretch = if antialias { (denominator / numerator).max(1.0) } else { 1.0 };
                Filter::new(cx, Design { bump, stretch, exclude_outside }, extent.input, coordinates)
            });
            let filters = filters.collect::<Result<Vec<_>, _>>()?;
            in_lane!(data.dtype(), T => weighted_sums::<T>(cx, data, &filters, &shape, &beyond))?
        }
    };
    Ok(vec![Data::Tensor(result)])
}

fn nearest_elements(
    cx: &EvalCx<'_>,
    data: &Tensor,
    nearest: Nearest,
    extents: &[Extent],
    places: &[(Vec<f64>, Vec<f64>)],
    beyond: &Beyond,
) -> Result<Tensor, Decline> {
    let mut result = data.clone();
    for (axis, (extent, (single, double))) in extents.iter().zip(places).enumerate() {
        let indices: Vec<usize> = double.iter().map(|&x| nearest.index(x, extent)).collect();
        if single.iter().map(|&x| nearest.index(x, extent)).ne(indices.iter().copied()) {
            return Err(Decline::unsupported("rounding decides which element is the nearest"));
        }
        if indices.len() != extent.input || indices.iter().enumerate().any(|(own, &index)| own != index) {
            result = pick(cx, &result, axis, &indices)?;
        }
    }
    if beyond.is_empty() {
        return Ok(result);
    }
    let value = f64::from(cx.attr_float("extrapolation_value")?.unwrap_or(0.0));
    dispatch_numeric!(data.dtype(), T => {
        let fill = <T as Number>::from_f64(value);
        let fill = fill.ok_or_else(|| Decline::unsupported("the extrapolation value does not fit"))?;
        let mut elements = result.elements::<T>().map(|elements| elements.into_owned()).unwrap_or_default();
        fill_beyond(&mut elements, beyond, fill);
        Ok(Tensor::from_vec(result.shape(), elements)?)
    }, else => Err(Decline::unsupported(format!("{} is not extrapolated", data.dtype()))))
}

fn weighted_sums<T: Lane>(
    cx: &EvalCx<'_>,
    data: &Tensor,
    filters: &[Filter],
    shape: &[usize],
    beyond: &Beyond,
) -> Result<Tensor, Decline> {
    let mut values = read::<T>(data)?;
    if values.iter().any(|value| !value.to_f64().is_finite()) {
        return Err(Decline::unsupported("runtimes disagree on sums of what is not finite"));
    }
    let mut current = data.shape().to_vec();
    // Axes that shrink go first, so that the others have less to do. The order is that of the sizes alone.
    let mut order: Vec<usize> = (0..filters.len()).collect();
    let growth = |axis: usize| {
        let dims = data.shape().get(axis).zip(shape.get(axis));
        dims.map_or(1.0, |(&input, &output)| output as f64 / input as f64)
    };
    order.sort_by(|&a, &b| growth(a).total_cmp(&growth(b)));
    for axis in order {
        let (Some(filter), Some(&output)) = (filters.get(axis), shape.get(axis)) else { continue };
        let Some(dim) = current.get(axis).copied().filter(|&dim| !filter.is_identity(dim)) else { continue };
        let before = current.clone();
        if let Some(place) = current.get_mut(axis) {
            *place = output;
        }
        debug_assert!(dim > 0);
        cx.claim(T::DTYPE, &current)?;
        values = filter.apply(cx, &values, &before, axis)?.into();
    }
    let mut values = values.into_owned();
    if !beyond.is_empty() {
        fill_beyond(&mut values, beyond, T::of(cx.attr_float("extrapolation_value")?.unwrap_or(0.0).into()));
    }
    debug_assert_eq!(product(shape), Some(values.len()));
    T::write(data.dtype(), shape, values)
}

fn fill_beyond<T: Copy>(values: &mut [T], beyond: &Beyond, fill: T) {
    beyond.for_each(|number| {
        if let Some(value) = values.get_mut(number) {
            *value = fill;
        }
    });
}
