//! The requested scales or sizes of Resize and Upsample, and the resulting sizes.
//!
//! | request | source | size of a resized axis |
//! | --- | --- | --- |
//! | scales | Upsample-1 `height_scale`, `width_scale`; Upsample-7 `scales`; an operand since | `⌊dim · scale⌋` |
//! | sizes, `stretch` | Resize-11 | the size |
//! | sizes, `not_larger`, `not_smaller` | Resize-18 | `round(dim · s)`, halves up, with `s` the minimum or maximum of all `size / dim` |
//!
//! The standard multiplies a scale by the extent of the region of interest; runtimes do not. If this makes a difference, sizes
//! from scales are unknown. They are also unknown if the binary32 rounding of runtimes matters ([`super::scale_law`]).

use super::scale_law::{ScaleLaw, scaled, scaled_exactly};
use crate::dim::{Dim, Law, Scope};
use crate::ir::{Fact, Scalar};
use crate::ops::{Decline, EvalCx, InferCx, InferResult, Refusal, Site, axis_in};
use crate::tensor::Tensor;

/// The operand slots.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub roi: Option<usize>,
    pub scales: Option<usize>,
    pub sizes: Option<usize>,
}

impl Places {
    pub(super) fn of(site: &Site<'_>) -> Places {
        if site.node.is("Resize") && site.version >= 11 {
            return Places { roi: Some(1), scales: Some(2), sizes: Some(3) };
        }
        let operand = site.version >= 9;
        Places { roi: None, scales: operand.then_some(1), sizes: None }
    }
}

/// Returns the scales that an old Upsample has as attributes, one per axis; `None` if they are an operand.
pub(super) fn attribute_scales(site: &Site<'_>) -> Result<Option<Vec<f32>>, Refusal> {
    let missing = |name: &str| Refusal::invalid(format!("attribute '{name}' is missing"));
    match site.version {
        ..7 => {
            let scale = |name: &str| site.attr_float(name)?.ok_or_else(|| missing(name));
            Ok(Some(vec![1.0, 1.0, scale("height_scale")?, scale("width_scale")?]))
        }
        7..9 => Ok(Some(site.attr_floats("scales")?.ok_or_else(|| missing("scales"))?.to_vec())),
        _ => Ok(None),
    }
}

/// The policy that fits sizes to the shape of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    Stretch,
    NotLarger,
    NotSmaller,
}

impl Policy {
    pub(super) fn of(site: &Site<'_>) -> Result<Policy, Refusal> {
        match site.attr_str("keep_aspect_ratio_policy")? {
            None | Some("stretch") => Ok(Policy::Stretch),
            Some("not_larger") => Ok(Policy::NotLarger),
            Some("not_smaller") => Ok(Policy::NotSmaller),
            Some(other) => Err(Refusal::invalid(format!(
                "attribute 'keep_aspect_ratio_policy' is '{other}', which is not defined"
            ))),
        }
    }

    /// Returns the common scale of all axes: the minimum or maximum of `size / dim`, as a fraction.
    pub(super) fn common(self, pairs: &[(i64, i64)]) -> Option<(i64, i64)> {
        // For positive b and d, a/b < c/d is a·d < c·b.
        let less = |a: (i64, i64), b: (i64, i64)| i128::from(a.0) * i128::from(b.1) < i128::from(b.0) * i128::from(a.1);
        if pairs.iter().any(|&(size, dim)| size < 0 || dim <= 0) {
            return None;
        }
        pairs.iter().copied().reduce(|best, pair| {
            let replaces = if self == Policy::NotLarger { less(pair, best) } else { less(best, pair) };
            if replaces { pair } else { best }
        })
    }
}

/// Returns `dim · size / of` rounded, halves up; `None` if binary32 arithmetic differs.
pub(super) fn fitted(dim: i64, (size, of): (i64, i64)) -> Option<i64> {
    let (dim_, size_, of_) = (i128::from(dim), i128::from(size), i128::from(of));
    let twice = dim_.checked_mul(size_)?.checked_mul(2)?.checked_add(of_)?;
    let exact = i64::try_from(twice.checked_div_euclid(of_.checked_mul(2)?)?).ok()?;
    let single = (size as f32 / of as f32 * dim as f32).round();
    (single as i64 == exact).then_some(exact)
}

/// Returns the axes that scales and sizes apply to.
///
/// # Errors
/// An axis is out of range or repeated.
pub(super) fn resized_axes(site: &Site<'_>, rank: usize) -> Result<Vec<usize>, Refusal> {
    let given = if site.version >= 18 { site.attr_ints("axes")? } else { None };
    let Some(given) = given else { return Ok((0..rank).collect()) };
    let axes = given.iter().map(|&axis| axis_in(axis, rank)).collect::<Result<Vec<usize>, _>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != axes.len() {
        return Err(Refusal::unsupported("'axes' contains an axis twice"));
    }
    Ok(axes)
}

/// Returns `true` if some axes are negative: runtimes then omit them when they fit sizes to an aspect ratio.
fn ignores_policy(site: &Site<'_>) -> Result<bool, Refusal> {
    Ok(site.attr_ints("axes")?.is_some_and(|axes| axes.iter().any(|&axis| axis < 0)))
}

/// Returns `true` if the region of interest is used.
pub(super) fn crops(site: &Site<'_>) -> Result<bool, Refusal> {
    Ok(site.attr_str("coordinate_transformation_mode")? == Some("tf_crop_and_resize"))
}

/// The request, as far as it is known.
enum Asked {
    Scales(Vec<Scalar>),
    Sizes(Vec<Scalar>),
    /// The number of elements, if even that is known.
    Unknown(Option<usize>),
}

impl Asked {
    fn of(cx: &InferCx<'_>) -> Result<Asked, Refusal> {
        if let Some(scales) = attribute_scales(cx)? {
            return Ok(Asked::Scales(scales.into_iter().map(|scale| Scalar::Float(scale.into())).collect()));
        }
        let places = Places::of(cx);
        let given = |place: Option<usize>| place.and_then(|place| cx.input(place));
        let (scales, sizes) = (given(places.scales), given(places.sizes));
        let len = |fact: Option<&Fact>| fact.map_or(Some(0), Fact::static_len);
        let elements = |fact: Option<&Fact>, len: usize| {
            let known = fact.and_then(Fact::elements).filter(|known| known.len() == len);
            known.unwrap_or_else(|| vec![Scalar::Unknown; len])
        };
        Ok(match (len(scales), len(sizes)) {
            (Some(0), Some(0)) => return Err(Refusal::invalid("both 'scales' and 'sizes' are missing")),
            (Some(0), Some(count)) => Asked::Sizes(elements(sizes, count)),
            (Some(count), Some(0)) => Asked::Scales(elements(scales, count)),
            (Some(_), Some(_)) => return Err(Refusal::invalid("both 'scales' and 'sizes' are present")),
            (Some(0), None) | (None, Some(0)) => Asked::Unknown(None),
            (count, other) => Asked::Unknown(count.or(other)),
        })
    }

    fn len(&self) -> Option<usize> {
        match self {
            Asked::Scales(numbers) | Asked::Sizes(numbers) => Some(numbers.len()),
            Asked::Unknown(count) => *count,
        }
    }
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype();
    Ok(vec![Fact::tensor(dtype, shape(cx)?)])
}

fn shape(cx: &InferCx<'_>) -> Result<Option<Vec<Dim>>, Refusal> {
    let asked = Asked::of(cx)?;
    let policy = Policy::of(cx)?;
    let Some(data) = cx.shape(0) else {
        let all = cx.attribute("axes").is_none();
        let Some(rank) = asked.len().filter(|_| all) else { return Ok(None) };
        return Ok(Some(match asked {
            Asked::Sizes(sizes) if policy == Policy::Stretch => {
                sizes.iter().map(|size| stretched(cx, size)).collect::<Result<_, _>>()?
            }
            _ => cx.fresh_shape(rank),
        }));
    };
    let axes = resized_axes(cx, data.len())?;
    if let Some(count) = asked.len()
        && count != axes.len()
    {
        return Err(Refusal::invalid(format!(
            "'scales' or 'sizes' has {count} elements, but there are {} axes",
            axes.len()
        )));
    }
    let mut shape = data.to_vec();
    let mut set = |axis: usize, dim: Dim| {
        if let Some(place) = shape.get_mut(axis) {
            *place = dim;
        }
    };
    match asked {
        Asked::Scales(scales) => {
            let whole = if crops(cx)? { whole_axes(cx, axes.len()) } else { vec![true; axes.len()] };
            for ((&axis, scale), whole) in axes.iter().zip(&scales).zip(whole) {
                check_scale(scale)?;
                let dim = data.get(axis).filter(|_| whole);
                set(axis, dim.map_or_else(|| cx.fresh_dim(), |dim| scaled_dim(cx, dim, scale)));
            }
        }
        Asked::Sizes(sizes) if policy == Policy::Stretch => {
            for (&axis, size) in axes.iter().zip(&sizes) {
                set(axis, stretched(cx, size)?);
            }
        }
        Asked::Sizes(sizes) => {
            let numbers = axes.iter().zip(&sizes).map(|(&axis, size)| {
                let dim = data.get(axis).and_then(Dim::as_const)?;
                Some((size.as_const_int()?, dim))
            });
            let numbers: Option<Vec<(i64, i64)>> = numbers.collect();
            let common = numbers.as_deref().and_then(|pairs| policy.common(pairs));
            if ignores_policy(cx)? {
                axes.iter().for_each(|&axis| set(axis, cx.fresh_dim()));
                return Ok(Some(shape));
            }
            for (&axis, size) in axes.iter().zip(&sizes) {
                let dim = data.get(axis).and_then(Dim::as_const);
                let exact = dim.zip(common).and_then(|(dim, common)| fitted(dim, common)).map(Dim::constant);
                set(axis, exact.map_or_else(|| bounded(cx, policy, size, sizes.len()), Ok)?);
            }
        }
        Asked::Unknown(_) => axes.iter().for_each(|&axis| set(axis, cx.fresh_dim())),
    }
    Ok(Some(shape))
}

/// Returns the size for a requested one.
fn stretched(cx: &InferCx<'_>, size: &Scalar) -> Result<Dim, Refusal> {
    match size {
        Scalar::Int(size) if size.as_const().is_some_and(|size| size < 0) => {
            Err(Refusal::invalid("an element of 'sizes' is negative"))
        }
        Scalar::Int(size) => Ok(size.clone()),
        _ => Ok(cx.fresh_dim()),
    }
}

/// Returns a size fitted to data of unknown shape.
fn bounded(cx: &InferCx<'_>, policy: Policy, size: &Scalar, count: usize) -> Result<Dim, Refusal> {
    let size = stretched(cx, size)?;
    if count == 1 {
        return Ok(size);
    }
    let dim = cx.fresh_dim();
    match policy {
        Policy::NotLarger => cx.scope().assume_le(&dim, &size),
        _ => cx.scope().assume_le(&size, &dim),
    }
    Ok(dim)
}

/// Returns the axes whose region of interest is known to cover everything. The operand lists all starts, then all ends.
fn whole_axes(cx: &InferCx<'_>, axes: usize) -> Vec<bool> {
    let region = Places::of(cx).roi.and_then(|place| cx.input(place)).and_then(Fact::elements);
    let region = region.filter(|region| Some(region.len()) == axes.checked_mul(2)).unwrap_or_default();
    let (starts, ends) = region.split_at(region.len() / 2);
    let whole = |(start, end): (&Scalar, &Scalar)| *start == Scalar::Float(0.0) && *end == Scalar::Float(1.0);
    let mut found: Vec<bool> = starts.iter().zip(ends).map(whole).collect();
    found.resize(axes, false);
    found
}

fn check_scale(scale: &Scalar) -> Result<(), Refusal> {
    match scale {
        Scalar::Float(scale) if scale.is_nan() || *scale <= 0.0 => {
            Err(Refusal::invalid(format!("an element of 'scales' is {scale}")))
        }
        _ => Ok(()),
    }
}

/// Integers up to this are exact in binary32.
const EXACT: i64 = 1 << 24;

/// Returns a dim times a scale; a fresh dim if the exact product of the standard and the rounded one of runtimes may differ.
fn scaled_dim(cx: &InferCx<'_>, dim: &Dim, scale: &Scalar) -> Dim {
    match scale {
        Scalar::Float(scale) => scaled_by(cx.scope(), dim, *scale as f32),
        Scalar::Real { num, den } if *den <= 1 << 8 => {
            let scope = cx.scope();
            let product = scope.mul(dim, num);
            let size = quotient(scope, &product, *den);
            if scope.trusts() || scope.lies_within(&product, 0, EXACT) {
                return size;
            }
            let law = Law { name: "resized", parameter: *den, reach: EXACT };
            scope.assumed(law, vec![product], Some(scope.nominal(&size)), (Some(0), None))
        }
        _ => cx.fresh_dim(),
    }
}

fn scaled_by(scope: &Scope, dim: &Dim, scale: f32) -> Dim {
    let law = ScaleLaw::of(scale);
    let stated = |law: &ScaleLaw, dim: &Dim| {
        let (numerator, denominator) = law.fraction;
        quotient(scope, &scope.mul(dim, &Dim::constant(numerator)), denominator)
    };
    let (low, high) = scope.bounds(dim);
    let both = |dim: i64| [scaled(dim, scale), scaled_exactly(dim, scale)];
    let least = low.and_then(|low| both(low.max(0)).into_iter().min().flatten());
    let most = high.and_then(|high| both(high).into_iter().collect::<Option<Vec<i64>>>()?.into_iter().max());
    if let Some(law) = law.filter(|law| high.is_some_and(|high| high <= law.reach)) {
        return stated(&law, dim);
    }
    // Inexact products are larger than the assumed maximum of sizes.
    let exact = law.filter(|law| law.is_exact);
    match exact {
        Some(law) if scope.trusts() => return stated(&law, dim),
        _ => {}
    }
    let nominal = exact.map(|law| scope.nominal(&stated(&law, dim)));
    let law = Law { name: "resized", parameter: scale.to_bits().into(), reach: law.map_or(0, |law| law.reach) };
    let size = scope.assumed(law, vec![dim.clone()], nominal, (Some(least.unwrap_or(0)), most));
    // If the scale leaves room for rounding up, the rounded product is at most the dim.
    if scale <= 0.999 {
        scope.assume_le(&size, dim);
    }
    size
}

fn quotient(scope: &Scope, numerator: &Dim, denominator: i64) -> Dim {
    if denominator == 1 { numerator.clone() } else { scope.floor_div(numerator, &Dim::constant(denominator)) }
}

/// A resized axis of the data.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    /// The dim of the data.
    pub input: usize,
    /// The dim of the result.
    pub output: usize,
    /// The scale, as a quotient of two numbers. `output` is `input` times this, rounded.
    pub scale: [f64; 2],
    /// The start and end of the region of interest, as fractions of the axis.
    pub region: [f64; 2],
}

impl Extent {
    fn same(input: usize) -> Extent {
        Extent { input, output: input, scale: [1.0, 1.0], region: [0.0, 1.0] }
    }

    /// Returns `true` if `input` times the scale is the size of the result without rounding.
    pub(super) fn is_exact(&self) -> bool {
        let [numerator, denominator] = self.scale;
        let exact = self.input as f64 * numerator / denominator;
        (exact - self.output as f64).abs() <= 1e-6 * exact
    }

    fn is_whole(&self) -> bool {
        self.region == [0.0, 1.0]
    }
}

/// Returns the extents of all axes of the data.
///
/// # Errors
/// The operands are invalid, or runtimes compute different sizes.
pub(super) fn extents(cx: &EvalCx<'_>, shape: &[usize]) -> Result<Vec<Extent>, Decline> {
    let axes = resized_axes(cx, shape.len())?;
    let places = Places::of(cx);
    let crops = crops(cx)?;
    let mut extents: Vec<Extent> = shape.iter().map(|&dim| Extent::same(dim)).collect();
    let mut resize = |axis: usize, output: Option<i64>, scale: [f64; 2]| {
        let output = output.and_then(|output| usize::try_from(output).ok());
        match (extents.get_mut(axis), output) {
            (Some(extent), Some(output)) => {
                (extent.output, extent.scale) = (output, scale);
                Ok(())
            }
            _ => {
                Err(Decline::unsupported("a dim of the result is out of range, or depends on the rounding of a scale"))
            }
        }
    };
    let given = |place: Option<usize>| -> Result<Option<&Tensor>, Decline> {
        let operand = place.map(|place| cx.optional_tensor(place)).transpose()?.flatten();
        Ok(operand.filter(|operand| !operand.is_empty()))
    };
    let wrong_count = || Decline::invalid("'scales' or 'sizes' has not one element per axis");
    let scales = match (attribute_scales(cx)?, given(places.scales)?) {
        (Some(scales), _) => Some(scales),
        (None, operand) => match operand.map(Tensor::elements::<f32>) {
            Some(scales) => {
                Some(scales.ok_or_else(|| Decline::invalid("the operand 'scales' is not of type float"))?.into_owned())
            }
            None => None,
        },
    };
    let sizes = given(places.sizes)?
        .map(|sizes| sizes.to_i64s().ok_or_else(|| Decline::invalid("the operand 'sizes' is empty")));
    let dim = |axis: usize| shape.get(axis).and_then(|&dim| i64::try_from(dim).ok()).ok_or_else(wrong_count);
    match (&scales, sizes.transpose()?) {
        (Some(scales), None) if scales.len() == axes.len() => {
            for (&axis, &scale) in axes.iter().zip(scales) {
                check_scale(&Scalar::Float(scale.into()))?;
                let dim = dim(axis)?;
                let agreed = scaled(dim, scale).filter(|size| scaled_exactly(dim, scale) == Some(*size));
                resize(axis, agreed, [scale.into(), 1.0])?;
            }
        }
        (None, Some(sizes)) if sizes.len() == axes.len() => match Policy::of(cx)? {
            Policy::Stretch => {
                for (&axis, &size) in axes.iter().zip(&sizes) {
                    resize(axis, Some(size), [size as f64, dim(axis)? as f64])?;
                }
            }
            _ if ignores_policy(cx)? => {
                return Err(Decline::unsupported("'axes' contains a negative axis, which runtimes ignore"));
            }
            policy => {
                let pairs = axes.iter().zip(&sizes).map(|(&axis, &size)| Ok((size, dim(axis)?)));
                let common = policy.common(&pairs.collect::<Result<Vec<_>, Decline>>()?);
                let common =
                    common.ok_or_else(|| Decline::invalid("the data is empty, and has no aspect ratio to keep"))?;
                for &axis in &axes {
                    resize(axis, fitted(dim(axis)?, common), [common.0 as f64, common.1 as f64])?;
                }
            }
        },
        (Some(_), Some(_)) | (None, None) => {
            return Err(Decline::invalid("exactly one of 'scales' and 'sizes' must be present"));
        }
        _ => return Err(wrong_count()),
    }
    if crops {
        let region = given(places.roi)?.and_then(Tensor::to_f64s).filter(|region| region.len() == axes.len() * 2);
        let region = region.ok_or_else(|| Decline::invalid("the operand 'roi' is missing"))?;
        let (starts, ends) = region.split_at(axes.len());
        for (&axis, (&start, &end)) in axes.iter().zip(starts.iter().zip(ends)) {
            if let Some(extent) = extents.get_mut(axis) {
                extent.region = [start, end];
            }
        }
        // Runtimes ignore the region if the sizes come from scales, or if no size changes.
        let unchanged = extents.iter().all(|extent| extent.input == extent.output);
        if (scales.is_some() || unchanged) && !extents.iter().all(Extent::is_whole) {
            return Err(Decline::unsupported(
                "'roi' does not cover the whole data, and runtimes ignore 'roi' if 'scales' is present or no dim changes",
            ));
        }
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn resize(opset: i64, shape: &str) -> Single {
        Single::new("Resize", opset).input(DType::Float, shape)
    }

    #[test]
    fn scales() {
        let scaled = |shape: &str, scale: f32| resize(13, shape).absent().values(&[2], &[1.0, scale]).infer().remove(0);
        assert_eq!(scaled("N H", 2.0), "float[N, 2*H]");
        assert_eq!(scaled("N H", 1.5), "float[N, floor(3*H/2)]");
        assert_eq!(scaled("N 7", 0.5), "float[N, 3]");
        // 10 · 0.7 is 6 in the standard's text, and 7 in binary32.
        assert_eq!(scaled("4 10", 0.7), "float[4, ?]");
        assert_eq!(scaled("4 9", 0.7), "float[4, 6]");
        assert_eq!(scaled("4 13", 0.7), "float[4, 9]");
        assert_eq!(scaled("N H", 0.6), "float[N, ?]");
        assert_eq!(scaled("N H", 2.3), "float[N, ?]");
        assert!(scaled("N H", 0.0).starts_with("invalid"));
        let unknown = resize(13, "N H").absent().input(DType::Float, "2");
        assert_eq!(unknown.infer(), ["float[?, ?]"]);
        let old = Single::new("Upsample", 1).with_float("height_scale", 2.0).with_float("width_scale", 3.0);
        assert_eq!(old.input(DType::Float, "N C H W").infer(), ["float[N, C, 2*H, 3*W]"]);
        assert_eq!(
            Single::new("Upsample", 9).input(DType::Float, "N H").values(&[2], &[1f32, 4.0]).infer(),
            ["float[N, 4*H]"]
        );
        let crop = resize(13, "N H").values(&[4], &[0f32, 0.5, 1.0, 1.0]).values(&[2], &[1f32, 2.0]);
        assert_eq!(crop.with_str("coordinate_transformation_mode", "tf_crop_and_resize").infer(), ["float[N, ?]"]);
    }

    #[test]
    fn dims_within_the_reach_of_a_scale_are_fractions_of_it() {
        let size = |scale: f32, high: Option<i64>| {
            let scope = Scope::new();
            let n = scope.named("n");
            scope.restrict(n, None, high);
            let size = scaled_by(&scope, &Dim::symbol(n), scale);
            let is_proved = !scope.is_fresh(*size.symbols().iter().next().unwrap());
            (scope.format(&scope.nominal(&size)), is_proved)
        };
        let floor = "floor(17*n/10)".to_string();
        assert_eq!(size(1.7, Some(786_436)), (floor.clone(), true));
        assert!(!size(1.7, Some(786_437)).1 && size(1.7, Some(786_437)).0 != floor && size(1.7, None).0 != floor);
        assert_eq!(size(2.0, None), ("2*n".to_string(), false));
        assert_eq!(size(0.5, Some(1 << 24)), ("floor(n/2)".to_string(), true));
        assert_eq!(size(1.5, None), ("floor(3*n/2)".to_string(), false));
    }

    #[test]
    fn sizes() {
        let sized = |shape: &str, sizes: &[i64]| resize(18, shape).absent().absent().values(&[sizes.len()], sizes);
        assert_eq!(sized("N H", &[4, 5]).infer(), ["float[4, 5]"]);
        assert_eq!(sized("N H W", &[5]).with("axes", vec![-1]).infer(), ["float[N, H, 5]"]);
        assert!(sized("N H", &[5]).infer()[0].starts_with("invalid"));
        assert!(sized("N H", &[1, -5]).infer()[0].starts_with("invalid"));
        let unranked = Single::new("Resize", 18).unranked(DType::Float).absent().absent().values(&[2], &[3i64, 4]);
        assert_eq!(unranked.infer(), ["float[3, 4]"]);
        let fitted = |policy| sized("2 4", &[7, 8]).with_str("keep_aspect_ratio_policy", policy);
        assert_eq!(fitted("not_larger").infer(), ["float[4, 8]"]);
        assert_eq!(fitted("not_smaller").infer(), ["float[7, 14]"]);
        assert_eq!(fitted("not_smaller").with("axes", vec![0, -1]).infer(), ["float[?, ?]"]);
        let both = resize(13, "N H").absent().values(&[2], &[1f32, 2.0]).values(&[2], &[1i64, 2]);
        assert!(both.infer()[0].starts_with("invalid"));
        // Resize-11 passes empty scales instead of omitting them.
        let empty = resize(11, "N H").values::<f32>(&[0], &[]).values::<f32>(&[0], &[]).values(&[2], &[1i64, 2]);
        assert_eq!(empty.infer(), ["float[1, 2]"]);
    }

    #[test]
    fn fractions_and_fits() {
        assert_eq!((fitted(3, (7, 2)), fitted(0, (7, 2)), fitted(i64::MAX, (i64::MAX, 1))), (Some(11), Some(0), None));
        assert_eq!(Policy::NotLarger.common(&[(1, 2), (1, 3)]), Some((1, 3)));
        assert_eq!(Policy::NotSmaller.common(&[(1, 2), (1, 3)]), Some((1, 2)));
        assert_eq!(Policy::NotSmaller.common(&[(1, 0)]), None);
        assert_eq!((scaled(10, 0.7), scaled(1, f32::INFINITY), scaled(i64::MAX, 2.0)), (Some(7), None, None));
    }
}
