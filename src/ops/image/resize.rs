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

/// Arithmetic that coordinates are computed with.
trait Real: Copy {
    fn of(value: f64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    fn minus(self, other: f64) -> f64 {
        self - other
    }
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn over(self, other: f64) -> f64 {
        self / other
    }
}

/// Arithmetic in binary32, as runtimes have it, that notes whether a result had to be rounded: then runtimes that compute in
/// another order come to another one.
#[derive(Clone, Copy)]
struct Single {
    value: f32,
    exact: bool,
}

impl Single {
    /// The result of an operation on two numbers, computed in binary64, where sums, differences and products of binary32
    /// numbers of moderate size are exact.
    fn result(self, other: Single, wide: f64, exact: bool) -> Single {
        let value = wide as f32;
        Single { value, exact: exact && self.exact && other.exact && f64::from(value) == wide }
    }
}

impl Real for Single {
    fn of(value: f64) -> Single {
        Single { value: value as f32, exact: f64::from(value as f32) == value }
    }
    fn plus(self, other: Single) -> Single {
        self.result(other, f64::from(self.value) + f64::from(other.value), true)
    }
    fn minus(self, other: Single) -> Single {
        self.result(other, f64::from(self.value) - f64::from(other.value), true)
    }
    fn times(self, other: Single) -> Single {
        // Nothing times anything is nothing.
        if self.exact && self.value == 0.0 && other.value.is_finite() {
            return self;
        }
        self.result(other, f64::from(self.value) * f64::from(other.value), true)
    }
    fn over(self, other: Single) -> Single {
        if self.exact && self.value == 0.0 && other.value != 0.0 {
            return self;
        }
        let quotient = f64::from(self.value) / f64::from(other.value);
        self.result(other, quotient, quotient * f64::from(other.value) == f64::from(self.value))
    }
}

impl Coordinates {
    /// The coordinate of a place of an axis.
    fn at<T: Real>(self, extent: &Extent, place: usize) -> T {
        let of = |count: usize| T::of(count as f64);
        let (x, input, output, one, half) = (of(place), of(extent.input), of(extent.output), of(1), T::of(0.5));
        let [scale, start, end] =
            [T::of(extent.scale[0]).over(T::of(extent.scale[1])), T::of(extent.region[0]), T::of(extent.region[1])];
        let (last, output_last) = (input.minus(one), output.minus(one));
        let single = extent.output <= 1;
        let half_pixel = || x.plus(half).over(scale).minus(half);
        match self {
            Coordinates::HalfPixel => half_pixel(),
            Coordinates::HalfPixelSymmetric => {
                let adjustment = output.over(scale.times(input));
                input.times(half).times(one.minus(adjustment)).plus(half_pixel())
            }
            Coordinates::PytorchHalfPixel if single => T::of(0.0),
            Coordinates::PytorchHalfPixel => half_pixel(),
            Coordinates::AlignCorners if single => T::of(0.0),
            Coordinates::AlignCorners => x.times(last).over(output_last),
            Coordinates::Asymmetric => x.over(scale),
            Coordinates::HalfPixelForNearest => x.plus(half).over(scale),
            Coordinates::CropAndResize if single => half.times(start.plus(end)).times(last),
            Coordinates::CropAndResize => {
                start.times(last).plus(x.times(end.minus(start)).times(last).over(output_last))
            }
        }
    }

    /// Whether coordinates depend on the size of the result before it was rounded.
    fn needs_exact_size(self, extent: &Extent) -> bool {
        match self {
            Coordinates::AlignCorners | Coordinates::CropAndResize => extent.output > 1,
            Coordinates::PytorchHalfPixel => extent.output == 1,
            _ => false,
        }
    }

    /// Whether runtimes take the coordinates of an axis that keeps its size to be its places.
    fn is_skipped(self, extent: &Extent) -> bool {
        let moves = match self {
            Coordinates::HalfPixelForNearest => true,
            Coordinates::CropAndResize => extent.region != [0.0, 1.0],
            _ => false,
        };
        moves && extent.input == extent.output
    }
}

/// Where a place of the result lies in the data.
struct Place {
    coordinate: f64,
    /// Whether the coordinate is computed without rounding, in whatever order and precision.
    exact: bool,
}

impl Place {
    fn new(coordinates: Coordinates, extent: &Extent, place: usize) -> Place {
        let (coordinate, single) = (coordinates.at::<f64>(extent, place), coordinates.at::<Single>(extent, place));
        Place { coordinate, exact: single.exact && f64::from(single.value) == coordinate }
    }

    /// Whether rounding decides on which side of a number the coordinate lies.
    fn is_about(&self, number: f64) -> bool {
        !self.exact && (self.coordinate - number).abs() <= 1e-5 * (1.0 + self.coordinate.abs())
    }
}

impl Nearest {
    /// The element nearest to a place; `None` where rounding decides.
    fn index(self, place: &Place, extent: &Extent) -> Option<usize> {
        let x = place.coordinate;
        let (rounded, border) = match self {
            Nearest::PreferFloor => ((x - 0.5).ceil(), x.floor() + 0.5),
            Nearest::PreferCeil => ((x + 0.5).floor(), x.floor() + 0.5),
            Nearest::ByScale if extent.scale[0] < extent.scale[1] => (x.ceil(), x.round()),
            Nearest::Floor | Nearest::ByScale => (x.floor(), x.round()),
            Nearest::Ceil => (x.ceil(), x.round()),
        };
        let last = extent.input.saturating_sub(1) as f64;
        // Beyond the data there is but one element.
        let matters = (0.0..=last).contains(&border);
        (!matters || !place.is_about(border)).then(|| rounded.clamp(0.0, last) as usize)
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
    let unchanged = extents.iter().all(|extent| extent.input == extent.output);
    if unchanged && extents.iter().any(|extent| extent.scale[0] != extent.scale[1]) {
        return Err(Decline::unsupported("runtimes copy data whose sizes do not change"));
    }
    if extents.iter().any(|extent| coordinates.is_skipped(extent)) {
        return Err(Decline::unsupported("runtimes leave an axis alone that keeps its size"));
    }
    let mut places = Vec::with_capacity(extents.len());
    let mut beyond = Beyond(Vec::with_capacity(extents.len()));
    for extent in &extents {
        cx.claim(DType::Complex128, &[extent.output])?;
        let along: Vec<Place> = (0..extent.output).map(|place| Place::new(coordinates, extent, place)).collect();
        if along.iter().any(|place| !place.coordinate.is_finite()) {
            return Err(Decline::unsupported("a coordinate is not finite"));
        }
        let last = extent.input as f64 - 1.0;
        let outside = |place: &Place| match coordinates {
            Coordinates::CropAndResize if place.is_about(0.0) || place.is_about(last) => None,
            Coordinates::CropAndResize => Some(!(0.0..=last).contains(&place.coordinate)),
            _ => Some(false),
        };
        let outside: Option<Vec<bool>> = along.iter().map(outside).collect();
        beyond.0.push(outside.ok_or_else(|| Decline::unsupported("rounding decides what is beyond the data"))?);
        places.push(along);
    }
    let result = match interpolation {
        Interpolation::Nearest(nearest) => nearest_elements(cx, data, nearest, &extents, &places, &beyond)?,
        Interpolation::Weighted { bump, antialias, exclude_outside } => {
            let filters = extents.iter().zip(&places).map(|(extent, places)| {
                let coordinates: Vec<f64> = places.iter().map(|place| place.coordinate).collect();
                let [numerator, denominator] = extent.scale;
                let stretch = if antialias { (denominator / numerator).max(1.0) } else { 1.0 };
                Filter::new(cx, Design { bump, stretch, exclude_outside }, extent.input, &coordinates)
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
    places: &[Vec<Place>],
    beyond: &Beyond,
) -> Result<Tensor, Decline> {
    let mut result = data.clone();
    for (axis, (extent, places)) in extents.iter().zip(places).enumerate() {
        let indices: Option<Vec<usize>> = places.iter().map(|place| nearest.index(place, extent)).collect();
        let indices = indices.ok_or_else(|| Decline::unsupported("rounding decides which element is the nearest"))?;
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
