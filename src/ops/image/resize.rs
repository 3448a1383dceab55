//! Resize and Upsample: resamples a tensor to other sizes.
//!
//! | | |
//! |---|---|
//! | computes | each element from the data around its coordinate: the nearest element, or a weighted sum of 2 (linear) or 4 (cubic) per axis, of more with antialiasing |
//! | sizes | see [`sizes`] |
//! | Upsample | 1: height and width of a 4-D tensor; 7: scales as an attribute; 9: as an operand; 10: deprecated |
//! | Resize | 10: an Upsample that may scale down; 11: regions, coordinate modes, cubic; 13: all but the data optional; 18: axes, antialiasing, aspect ratios; 19: `half_pixel_symmetric` |
//! | disputed | `align_corners` with a scale that yields a fractional size: evaluated as in the conformance tests and reference implementation, with the fractional size; ONNX Runtime, which fails these tests, rounds the size first |
//! | not evaluated | where runtimes disagree: weighted sums of integers, infinities and NaN; region coordinates that depend on the rounding of a fractional size; nearest elements that depend on the precision of coordinates; regions that runtimes ignore |

use super::resample::{Bump, Design, Filter, pick};
use super::scales;
use super::sizes::{self, Extent};
use crate::index_map::Undecided;
use crate::ir::Data;
use crate::ops::lane::{Lane, in_lane, read};
use crate::ops::movement::maps::{MapResult, layout};
use crate::ops::traits::{NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, Operator, Refusal, Site};
use crate::sort;
use crate::tensor::{DType, Indices, Number, Tensor, dispatch_numeric};

pub(super) const RESIZE: Operator = Operator::new("Resize", &[10, 11, 13, 18, 19], sizes::infer, eval).with(RESIZING);
pub(super) const UPSAMPLE: Operator = Operator::new("Upsample", &[1, 7, 9, 10], sizes::infer, eval).with(RESIZING);

const RESIZING: Traits =
    Traits::NONE.index_map(map).uniform(scales::nearest_number).needs(scales::needs).inferred_by_contents(1);

/// Returns the identity map if each scale is 1: runtimes copy the data, and coordinates are integral.
fn map(view: &NodeFacts<'_>, output: usize) -> MapResult {
    let (site, data, result) = (view.known_site()?, view.dims(0)?, view.result_dims(output)?);
    let coordinates = coordinates(&site)?;
    let is_moving = matches!(coordinates, Coordinates::HalfPixelForNearest | Coordinates::CropAndResize);
    if is_moving || data.len() != result.len() {
        return Err(Undecided::NoMovement);
    }
    if let Some((a, b)) = data.iter().zip(result).find(|(a, b)| !view.equal(a, b)) {
        return Err(Undecided::Equal(a.clone(), b.clone()));
    }
    let is_by_sizes = sizes::Places::of(&site).sizes.is_some_and(|slot| site.has_input(slot));
    let scales = match sizes::attribute_scales(&site)? {
        Some(scales) => Some(scales.into_iter().map(f64::from).collect()),
        None => {
            let slot = sizes::Places::of(&site).scales.ok_or(Undecided::Operands)?;
            view.fact(slot).and_then(|scales| scales.constant_tensor()?.to_f64s())
        }
    };
    let is_one = scales.is_some_and(|scales: Vec<f64>| scales.iter().all(|&scale| scale == 1.0));
    if !(is_by_sizes && sizes::Policy::of(&site)? == sizes::Policy::Stretch || !is_by_sizes && is_one) {
        return Err(Undecided::NoMovement);
    }
    layout(view, output)
}

/// The rule that selects the element nearest to a coordinate.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Nearest {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Before version 11: rounds down if the data grows, up if it shrinks.
    ByScale,
}

/// The interpolation of elements.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Interpolation {
    Nearest(Nearest),
    Weighted { bump: Bump, antialias: bool, exclude_outside: bool },
}

/// The map from positions of the result to coordinates of the data.
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
        "nearest" if antialias => Err(Refusal::unsupported(
            "attribute 'antialias' is 1, but attribute 'mode' is 'nearest', for which antialiasing is not defined",
        )),
        "nearest" => Ok(Interpolation::Nearest(match site.attr_str("nearest_mode")? {
            None | Some("round_prefer_floor") => Nearest::PreferFloor,
            Some("round_prefer_ceil") => Nearest::PreferCeil,
            Some("floor") => Nearest::Floor,
            Some("ceil") => Nearest::Ceil,
            Some(other) => {
                return Err(Refusal::invalid(format!("attribute 'nearest_mode' is '{other}', which is not defined")));
            }
        })),
        "linear" => Ok(Interpolation::Weighted { bump: Bump::Linear, antialias, exclude_outside }),
        "cubic" if modern => {
            let a = f64::from(site.attr_float("cubic_coeff_a")?.unwrap_or(-0.75));
            Ok(Interpolation::Weighted { bump: Bump::Cubic(a), antialias, exclude_outside })
        }
        "bilinear" if site.version < 7 => {
            Err(Refusal::unsupported("version 1 of Upsample does not define the coordinates of the interpolation"))
        }
        other => Err(Refusal::invalid(format!("attribute 'mode' is '{other}', which is not supported"))),
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
        Some(other) => {
            return Err(Refusal::invalid(format!(
                "attribute 'coordinate_transformation_mode' is '{other}', which is not supported"
            )));
        }
    })
}

/// Arithmetic for coordinates.
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

/// Arithmetic in binary32, as in runtimes, that records inexact results: those may differ in runtimes that use another order of
/// operations.
#[derive(Clone, Copy)]
struct Single {
    value: f32,
    exact: bool,
}

impl Single {
    /// Returns the result of an operation on two numbers, computed in binary64. There, sums, differences and products of binary32
    /// numbers of moderate magnitude are exact.
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
        // Zero times any finite number is zero.
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
    /// Returns the coordinate of a position on an axis.
    fn at<T: Real>(self, extent: &Extent, place: usize) -> T {
        let of = |count: usize| T::of(count as f64);
        let (x, input, output, one, half) = (of(place), of(extent.input), of(extent.output), of(1), T::of(0.5));
        let [scale, start, end] =
            [T::of(extent.scale[0]).over(T::of(extent.scale[1])), T::of(extent.region[0]), T::of(extent.region[1])];
        let (last, output_last) = (input.minus(one), output.minus(one));
        // The size according to the scale, which may be fractional.
        let wanted = if extent.is_exact() { output } else { scale.times(input) };
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
            Coordinates::AlignCorners => x.times(last).over(wanted.minus(one)),
            Coordinates::Asymmetric => x.over(scale),
            Coordinates::HalfPixelForNearest => x.plus(half).over(scale),
            Coordinates::CropAndResize if single => half.times(start.plus(end)).times(last),
            Coordinates::CropAndResize => {
                start.times(last).plus(x.times(end.minus(start)).times(last).over(output_last))
            }
        }
    }

    /// Returns `true` if coordinates depend on the size of the result before rounding. The conformance tests of `align_corners` use
    /// the fractional size; ONNX Runtime fails them.
    fn needs_exact_size(self, extent: &Extent) -> bool {
        match self {
            Coordinates::AlignCorners | Coordinates::CropAndResize => extent.output > 1,
            Coordinates::PytorchHalfPixel => extent.output == 1,
            _ => false,
        }
    }

    /// Returns `true` if runtimes copy an axis of unchanged size although the coordinates differ from its positions.
    fn is_skipped(self, extent: &Extent) -> bool {
        let moves = match self {
            Coordinates::HalfPixelForNearest => true,
            Coordinates::CropAndResize => extent.region != [0.0, 1.0],
            _ => false,
        };
        moves && extent.input == extent.output
    }
}

/// The coordinate of a position of the result.
struct Coordinate {
    coordinate: f64,
    /// `true` if the coordinate is exact in any order and precision.
    exact: bool,
}

impl Coordinate {
    fn new(coordinates: Coordinates, extent: &Extent, place: usize) -> Coordinate {
        let (coordinate, single) = (coordinates.at::<f64>(extent, place), coordinates.at::<Single>(extent, place));
        Coordinate { coordinate, exact: single.exact && f64::from(single.value) == coordinate }
    }

    /// Returns `true` if rounding determines on which side of a number the coordinate lies.
    fn is_about(&self, number: f64) -> bool {
        !self.exact && (self.coordinate - number).abs() <= 1e-5 * (1.0 + self.coordinate.abs())
    }
}

impl Nearest {
    /// Returns the element nearest to a position; `None` if rounding determines it.
    fn index(self, place: &Coordinate, extent: &Extent) -> Option<usize> {
        let x = place.coordinate;
        let (rounded, border) = match self {
            Nearest::PreferFloor => ((x - 0.5).ceil(), x.floor() + 0.5),
            Nearest::PreferCeil => ((x + 0.5).floor(), x.floor() + 0.5),
            Nearest::ByScale if extent.scale[0] < extent.scale[1] => (x.ceil(), x.round()),
            Nearest::Floor | Nearest::ByScale => (x.floor(), x.round()),
            Nearest::Ceil => (x.ceil(), x.round()),
        };
        let last = extent.input.saturating_sub(1) as f64;
        // Outside of the data there is only the border element.
        let matters = (0.0..=last).contains(&border);
        (!matters || !place.is_about(border)).then(|| rounded.clamp(0.0, last) as usize)
    }
}

/// The positions on each axis that lie outside of the data, which `tf_crop_and_resize` fills.
struct Beyond {
    /// The shape of the result.
    shape: Vec<usize>,
    /// For each axis, the flags of outside positions; empty for an axis without any.
    axes: Vec<Vec<bool>>,
}

impl Beyond {
    fn is_empty(&self) -> bool {
        self.axes.iter().all(|axis| !axis.contains(&true))
    }

    /// Visits the index of each result element that lies outside of the data on some axis.
    fn for_each(&self, mut visit: impl FnMut(usize)) {
        let mut indices = Indices::new(&self.shape);
        let mut number = 0;
        while let Some(index) = indices.advance() {
            if index.iter().zip(&self.axes).any(|(&at, axis)| axis.get(at).copied().unwrap_or(false)) {
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
        return Err(Decline::invalid("an empty axis cannot be resized to a non-empty one"));
    }
    if extents.iter().any(|extent| coordinates.needs_exact_size(extent) && !extent.is_exact()) {
        return Err(Decline::unsupported(
            "a dim of the result is rounded, and runtimes compute coordinates from the rounded or the exact size",
        ));
    }
    // Kernels compute coordinates in binary32 and convert them to indices.
    const FAR: f64 = 64.0;
    let is_far = |extent: &Extent| !extent.region.iter().all(|end| end.abs() <= FAR);
    if matches!(coordinates, Coordinates::CropAndResize) && extents.iter().any(is_far) {
        return Err(Decline::unsupported("'roi' lies far outside of the data"));
    }
    let unchanged = extents.iter().all(|extent| extent.input == extent.output);
    if unchanged && extents.iter().any(|extent| extent.scale[0] != extent.scale[1]) {
        return Err(Decline::unsupported("no dim changes: runtimes copy the data, although the standard interpolates"));
    }
    if extents.iter().any(|extent| coordinates.is_skipped(extent)) {
        return Err(Decline::unsupported(
            "a dim does not change: runtimes copy this axis, although the standard interpolates",
        ));
    }
    let mut places = Vec::with_capacity(extents.len());
    let mut beyond = Beyond { shape: shape.clone(), axes: Vec::with_capacity(extents.len()) };
    for extent in &extents {
        // For any coordinate mode, this axis is copied.
        if extent.input == extent.output && extent.scale[0] == extent.scale[1] {
            beyond.axes.push(Vec::new());
            places.push(None);
            continue;
        }
        cx.claim(DType::Complex128, &[extent.output])?;
        let along: Vec<Coordinate> =
            (0..extent.output).map(|place| Coordinate::new(coordinates, extent, place)).collect();
        if along.iter().any(|place| !place.coordinate.is_finite()) {
            return Err(Decline::unsupported("the coordinate of an element is not finite"));
        }
        let last = extent.input as f64 - 1.0;
        let outside = |place: &Coordinate| match coordinates {
            Coordinates::CropAndResize if place.is_about(0.0) || place.is_about(last) => None,
            Coordinates::CropAndResize => Some(!(0.0..=last).contains(&place.coordinate)),
            _ => Some(false),
        };
        let outside: Option<Vec<bool>> = along.iter().map(outside).collect();
        beyond
            .axes
            .push(outside.ok_or_else(|| {
                Decline::unsupported("rounding determines which coordinates lie outside of the data")
            })?);
        places.push(Some(along));
    }
    let result = match interpolation {
        Interpolation::Nearest(nearest) => nearest_elements(cx, data, nearest, &extents, &places, &beyond)?,
        Interpolation::Weighted { bump, antialias, exclude_outside } => {
            let filters = extents.iter().zip(&places).map(|(extent, places)| {
                let Some(places) = places else { return Ok(None) };
                let coordinates: Vec<f64> = places.iter().map(|place| place.coordinate).collect();
                let [numerator, denominator] = extent.scale;
                let stretch = if antialias { (denominator / numerator).max(1.0) } else { 1.0 };
                Filter::new(cx, Design { bump, stretch, exclude_outside }, extent.input, &coordinates).map(Some)
            });
            let filters = filters.collect::<Result<Vec<_>, Decline>>()?;
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
    places: &[Option<Vec<Coordinate>>],
    beyond: &Beyond,
) -> Result<Tensor, Decline> {
    let mut result = data.clone();
    for (axis, (extent, places)) in extents.iter().zip(places).enumerate() {
        let Some(places) = places else { continue };
        let indices: Option<Vec<usize>> = places.iter().map(|place| nearest.index(place, extent)).collect();
        let indices =
            indices.ok_or_else(|| Decline::unsupported("rounding determines which element is the nearest one"))?;
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
        let fill = fill.ok_or_else(|| Decline::unsupported("'extrapolation_value' is out of range of the element type"))?;
        let mut elements = result.elements::<T>().map(|elements| elements.into_owned()).unwrap_or_default();
        fill_beyond(&mut elements, beyond, fill);
        Ok(Tensor::from_vec(result.shape(), elements)?)
    }, else => Err(Decline::unsupported(format!("extrapolation is not supported for the element type {}", data.dtype()))))
}

fn weighted_sums<T: Lane>(
    cx: &EvalCx<'_>,
    data: &Tensor,
    filters: &[Option<Filter>],
    shape: &[usize],
    beyond: &Beyond,
) -> Result<Tensor, Decline> {
    let mut values = read::<T>(data)?;
    // Weights of both signs yield intermediate results that exceed all elements, and kernels process axes in different orders. The
    // error of weights is relative to the largest element.
    let most = if T::DTYPE == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
    if !values.iter().all(|value| value.to_f64().abs() <= most) {
        return Err(Decline::unsupported(
            "the data contains infinities or NaN, for which runtimes interpolate different values",
        ));
    }
    let mut current = data.shape().to_vec();
    // Process shrinking axes first to reduce the work on the others. The order depends only on the sizes.
    let mut order: Vec<usize> = (0..filters.len()).collect();
    let growth = |axis: usize| {
        let dims = data.shape().get(axis).zip(shape.get(axis));
        dims.map_or(1.0, |(&input, &output)| output as f64 / input as f64)
    };
    sort::by(&mut order, |&a, &b| growth(a).total_cmp(&growth(b)));
    for axis in order {
        let (Some(Some(filter)), Some(&output)) = (filters.get(axis), shape.get(axis)) else { continue };
        if current.get(axis).is_none_or(|&dim| filter.is_identity(dim)) {
            continue;
        }
        let before = current.clone();
        if let Some(place) = current.get_mut(axis) {
            *place = output;
        }
        cx.claim(T::DTYPE, &current)?;
        values = filter.apply(cx, &values, &before, axis)?.into();
    }
    let mut values = values.into_owned();
    if !beyond.is_empty() {
        fill_beyond(&mut values, beyond, T::of(cx.attr_float("extrapolation_value")?.unwrap_or(0.0).into()));
    }
    T::write(data.dtype(), shape, values)
}

fn fill_beyond<T: Copy>(values: &mut [T], beyond: &Beyond, fill: T) {
    beyond.for_each(|number| {
        if let Some(value) = values.get_mut(number) {
            *value = fill;
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::{DType, Tensor};

    fn row() -> Single {
        Single::new("Resize", 19).values(&[1, 4], &[1f32, 2.0, 3.0, 4.0]).absent()
    }

    fn by_scale(scale: f32) -> Single {
        row().values(&[2], &[1.0, scale])
    }

    fn to_size(size: i64) -> Single {
        row().absent().values(&[2], &[1, size])
    }

    fn close(node: Single, expected: &[f64]) {
        let found = node.floats();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
    }

    #[test]
    fn weighted_sums() {
        let linear = |node: Single| node.with_str("mode", "linear");
        let cubic = |node: Single| node.with_str("mode", "cubic");
        close(linear(by_scale(2.0)), &[1.0, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4.0]);
        close(cubic(by_scale(0.75)), &[1.126158, 2.5, 3.873843]);
        let narrow = cubic(by_scale(0.75)).with("exclude_outside", 1).with_float("cubic_coeff_a", -0.5);
        close(narrow, &[1.102844, 2.5, 3.897156]);
        close(linear(by_scale(0.5)).with("antialias", 1), &[1.625, 3.375]);
        close(cubic(by_scale(0.5)).with("antialias", 1), &[1.490234, 3.509766]);
        let corners = |node: Single| linear(node).with_str("coordinate_transformation_mode", "align_corners");
        close(corners(to_size(3)), &[1.0, 2.5, 4.0]);
        // 0.6 · 4 is 2.4: by the text, the second of two elements lies at 1 · 3 / 1.4; ONNX Runtime uses the last one.
        assert!(corners(by_scale(0.6)).eval().is_err());
        let huge = Single::new("Resize", 19).values(&[2], &[f32::MAX, 1.0]).absent().absent().values(&[1], &[3i64]);
        assert!(cubic(huge).eval().is_err());
        let symmetric = linear(by_scale(0.6)).with_str("coordinate_transformation_mode", "half_pixel_symmetric");
        close(symmetric, &[1.666667, 3.333333]);
    }

    #[test]
    fn regions() {
        let crop = |size: i64| {
            let data =
                Single::new("Resize", 19).values(&[1, 4], &[1f32, 2.0, 3.0, 4.0]).values(&[4], &[0f32, 0.25, 1.0, 1.5]);
            let node = data.absent().values(&[2], &[1, size]).with_float("extrapolation_value", 9.0);
            node.with_str("coordinate_transformation_mode", "tf_crop_and_resize")
        };
        close(crop(3).with_str("mode", "linear"), &[1.75, 3.625, 9.0]);
        close(crop(3).with_str("nearest_mode", "floor"), &[1.0, 3.0, 9.0]);
        // Runtimes do not crop if no size changes.
        assert!(crop(4).eval().is_err());
    }

    #[test]
    fn nearest_elements() {
        close(by_scale(2.0), &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
        let shifted =
            |mode| to_size(8).with_str("coordinate_transformation_mode", "asymmetric").with_str("nearest_mode", mode);
        close(shifted("floor"), &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
        close(shifted("ceil"), &[1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0]);
        close(shifted("round_prefer_floor"), &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
        close(shifted("round_prefer_ceil"), &[1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0]);
        // (6 + 0.5) · 3 / 13 − 0.5 is 1, but 13 / 3 is rounded.
        let about = Single::new("Resize", 19).values(&[3], &[1f32, 2.0, 3.0]).absent().absent().values(&[1], &[13i64]);
        assert!(about.with_str("nearest_mode", "floor").eval().is_err());
        let words = Tensor::from_strings(&[2], vec!["a".into(), "b".into()]).unwrap();
        let node = Single::new("Resize", 19).constant(words).absent().values(&[1], &[2f32]);
        assert_eq!(node.eval().unwrap()[0].strings().unwrap(), ["a", "a", "b", "b"]);
        let narrow = Single::new("Resize", 10).values(&[1, 4], &[1i64, 2, 3, 4]).values(&[2], &[1f32, 0.6]);
        assert_eq!(narrow.integers(), [1, 3]);
        let wide = Single::new("Upsample", 7).with("scales", crate::ir::Attribute::Floats(vec![1.0, 2.0]));
        assert_eq!(wide.values(&[1, 2], &[1i32, 2]).integers(), [1, 1, 2, 2]);
    }

    #[test]
    fn disputed_or_invalid_resizes_are_declined() {
        let linear = |node: Single| node.with_str("mode", "linear").eval();
        let node = |values: &[f32]| Single::new("Resize", 19).values(&[2], values).absent();
        assert!(linear(node(&[1.0, f32::INFINITY]).values(&[1], &[2f32])).is_err());
        assert!(linear(Single::new("Resize", 19).values(&[2], &[1i64, 2]).absent().values(&[1], &[2f32])).is_err());
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e30] {
            assert!(node(&[1.0, 2.0]).values(&[1], &[scale]).eval().is_err(), "{scale}");
        }
        let tiny = |scale: f32| node(&[1.0, 2.0]).values(&[1], &[scale]).with("antialias", 1);
        assert_eq!(linear(tiny(1e-30)).unwrap()[0].shape(), [0]);
        assert!(node(&[1.0, 2.0]).absent().values(&[1], &[-1i64]).eval().is_err());
        assert!(node(&[1.0, 2.0]).absent().values(&[1], &[i64::MAX]).eval().is_err());
        assert!(node(&[1.0, 2.0]).absent().values(&[2], &[1i64, 1]).eval().is_err());
        assert!(node(&[1.0, 2.0]).eval().is_err());
        let empty = Single::new("Resize", 19).values::<f32>(&[0], &[]).absent().absent();
        assert!(empty.values(&[1], &[1i64]).eval().is_err());
        let wide = node(&[1.0, 2.0]).absent().values(&[1], &[1i64]).with("antialias", 1);
        assert!(linear(wide).is_ok());
        assert_eq!(Single::new("Resize", 19).input(DType::Float, "2").infer()[0].split(':').next(), Some("invalid"));
    }
}
