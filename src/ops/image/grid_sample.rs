//! GridSample: samples data at the points of a grid.
//!
//! | | |
//! |---|---|
//! | computes | `Y[n, c, p…]` is `X[n, c]` at point `grid[n, p…]`, whose coordinates, last axis first, run from −1 to 1 over the data |
//! | shapes | `X [N, C, D…]`, `grid [N, O…, axes]`, `Y [N, C, O…]` |
//! | `align_corners` | 1: −1 and 1 are the centres of the first and last element; 0: their outer edges |
//! | versions | 16: two axes, `bilinear` and `bicubic`; 20: any number of axes, `linear` and `cubic`; 22 adds bfloat16 |
//! | not evaluated | weighted sums of infinities and NaN; points that are not finite or far outside; nearest elements that depend on the precision of points; cubic sums across a border |

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::threads;
use crate::tensor::{DType, Tensor, product};

pub(super) const GRID_SAMPLE: Operator = Operator::new("GridSample", &[16, 20, 22], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype();
    let (data, grid) = (cx.shape(0), cx.required(1)?.shape());
    let rank = match (data, grid) {
        (Some(data), Some(grid)) if data.len() != grid.len() => {
            return Err(Refusal::invalid(format!("'grid' has rank {}, but 'X' has rank {}", grid.len(), data.len())));
        }
        (Some(shape), _) | (_, Some(shape)) => shape.len(),
        (None, None) => return Ok(vec![Fact::tensor(dtype, None)]),
    };
    if rank < 3 || (cx.version < 20 && rank != 4) {
        return Err(Refusal::invalid(format!("the rank of 'X' is {rank}, which is less than 3")));
    }
    if let Some(points) = grid.and_then(|grid| grid.last()).and_then(Dim::as_const)
        && usize::try_from(points).ok() != rank.checked_sub(2)
    {
        return Err(Refusal::invalid(format!(
            "the last dim of 'grid' is {points}, which does not fit 'X' of rank {rank}"
        )));
    }
    let at = |shape: Option<&[Dim]>, axis: usize| shape.and_then(|shape| shape.get(axis)).cloned();
    let batch = [at(data, 0), at(grid, 0)].into_iter().flatten();
    let batch = batch.reduce(|a, b| if a.as_const().is_none() && b.as_const().is_some() { b } else { a });
    let mut shape = vec![batch, at(data, 1)];
    shape.extend((1..rank - 1).map(|axis| at(grid, axis)));
    let shape = shape.into_iter().map(|dim| dim.unwrap_or_else(|| cx.fresh_dim())).collect();
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

/// The interpolation mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// The values outside of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

fn mode(site: &Site<'_>) -> Result<Mode, Refusal> {
    match site.attr_str("mode")? {
        None | Some("linear" | "bilinear") => Ok(Mode::Linear),
        Some("nearest") => Ok(Mode::Nearest),
        Some("cubic" | "bicubic") => Ok(Mode::Cubic),
        Some(other) => Err(Refusal::invalid(format!("attribute 'mode' is '{other}', which is not supported"))),
    }
}

fn padding(site: &Site<'_>) -> Result<Padding, Refusal> {
    match site.attr_str("padding_mode")? {
        None | Some("zeros") => Ok(Padding::Zeros),
        Some("border") => Ok(Padding::Border),
        Some("reflection") => Ok(Padding::Reflection),
        Some(other) => Err(Refusal::invalid(format!("attribute 'padding_mode' is '{other}', which is not defined"))),
    }
}

/// One axis of the data.
#[derive(Clone, Copy, Debug)]
struct Axis {
    dim: usize,
    align_corners: bool,
    padding: Padding,
}

impl Axis {
    /// Returns the coordinates of the outer edges, where reflection and clamping begin.
    fn edges(self) -> (f64, f64) {
        let last = self.dim as f64 - 1.0;
        if self.align_corners { (0.0, last) } else { (-0.5, last + 0.5) }
    }

    /// Converts a coordinate between −1 and 1 to element units.
    fn denormalized(self, x: f64) -> f64 {
        let dim = self.dim as f64;
        if self.align_corners { (x + 1.0) / 2.0 * (dim - 1.0) } else { ((x + 1.0) * dim - 1.0) / 2.0 }
    }

    /// Like `denormalized`, in binary32.
    fn denormalized_single(self, x: f32) -> f32 {
        let dim = self.dim as f32;
        if self.align_corners { (x + 1.0) / 2.0 * (dim - 1.0) } else { ((x + 1.0) * dim - 1.0) / 2.0 }
    }

    /// Maps a coordinate into the data according to the padding mode.
    fn brought_back(self, x: f64) -> f64 {
        let (low, high) = self.edges();
        if (low..=high).contains(&x) {
            return x;
        }
        match self.padding {
            Padding::Zeros => x,
            Padding::Border => x.clamp(0.0, self.dim as f64 - 1.0),
            Padding::Reflection => reflected(x, low, high),
        }
    }

    /// Returns the element at an integral coordinate; `None` is a zero.
    fn element(self, at: f64) -> Option<usize> {
        let last = self.dim as f64 - 1.0;
        let at = match self.padding {
            Padding::Zeros if (0.0..=last).contains(&at) => at,
            Padding::Zeros => return None,
            Padding::Border => at.clamp(0.0, last),
            Padding::Reflection => {
                let (low, high) = self.edges();
                // Rounding must not move a reflection across the edge.
                reflected(at, low, high).trunc().clamp(0.0, last)
            }
        };
        Some(at as usize)
    }
}

/// Reflects a coordinate at both edges until it lies between them.
fn reflected(x: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    let distance = if x < low {
        low - x
    } else if x > high {
        x - high
    } else {
        return x;
    };
    let turns = (distance / range).trunc();
    let rest = distance - turns * range;
    if (turns % 2.0 == 0.0) == (x < low) { low + rest } else { high - rest }
}

/// Returns the weights of the elements around a coordinate, the coordinate of the first element, and the number of elements.
fn weights(mode: Mode, x: f64) -> ([f64; 4], f64, usize) {
    const A: f64 = -0.75;
    let low = x.floor();
    let near = x - low;
    let far = 1.0 - near;
    let inner = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let outer = |x: f64| ((A * (x + 1.0) - 5.0 * A) * (x + 1.0) + 8.0 * A) * (x + 1.0) - 4.0 * A;
    match mode {
        Mode::Nearest => ([1.0, 0.0, 0.0, 0.0], x.round_ties_even(), 1),
        Mode::Linear => ([far, near, 0.0, 0.0], low, 2),
        Mode::Cubic => ([outer(near), inner(near), inner(far), outer(far)], low - 1.0, 4),
    }
}

/// The elements of a channel that contribute to one point, and their weights.
type Taps = Vec<(Option<usize>, f64)>;

fn taps(axes: &[Axis], mode: Mode, point: &[f64]) -> Taps {
    let mut taps: Taps = vec![(Some(0), 1.0)];
    for (axis, &x) in axes.iter().zip(point) {
        let (weights, first, count) = weights(mode, x);
        let along: Vec<(Option<usize>, f64)> =
            weights.iter().take(count).enumerate().map(|(at, &w)| (axis.element(first + at as f64), w)).collect();
        taps = taps
            .iter()
            .flat_map(|&(outer, weight)| {
                along
                    .iter()
                    .map(move |&(at, own)| (outer.zip(at).map(|(outer, at)| outer * axis.dim + at), weight * own))
            })
            .collect();
    }
    taps
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (data, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    let (mode, padding) = (mode(cx)?, padding(cx)?);
    let align_corners = cx.attr_flag("align_corners", false)?;
    let (batch, channels, dims) = match data.shape() {
        [batch, channels, dims @ ..] if !dims.is_empty() => (*batch, *channels, dims),
        shape => return Err(Decline::invalid(format!("'X' has shape {shape:?}, which has no spatial axis"))),
    };
    let out = match grid.shape() {
        [first, out @ .., last] if *first == batch && *last == dims.len() && out.len() == dims.len() => out,
        shape => {
            return Err(Decline::invalid(format!(
                "'grid' has shape {shape:?}, which does not fit 'X' of shape {:?}",
                data.shape()
            )));
        }
    };
    if dims.len() > 6 {
        return Err(Decline::unsupported("the rank of 'grid' is not supported"));
    }
    let shape: Vec<usize> = [batch, channels].into_iter().chain(out.iter().copied()).collect();
    cx.claim(data.dtype(), &shape)?;
    if shape.contains(&0) {
        return Ok(vec![Tensor::zeros(data.dtype(), &shape)?.into()]);
    }
    if dims.contains(&0) {
        return Err(Decline::invalid("the data is empty"));
    }
    let axes: Vec<Axis> = dims.iter().map(|&dim| Axis { dim, align_corners, padding }).collect();
    if padding == Padding::Reflection && align_corners && dims.contains(&1) {
        return Err(Decline::unsupported("a dim is 1, for which reflection is not defined"));
    }
    let points = points(cx, grid, &axes, mode)?;
    let per_point = match mode {
        Mode::Nearest => 1u64,
        Mode::Linear => 1 << dims.len(),
        Mode::Cubic => 1 << (2 * dims.len()),
    };
    let elements = product(&shape).unwrap_or(0) as u64;
    cx.budget().take_work(elements.saturating_mul(per_point))?;
    let layout = Layout { batch, channels, size: product(dims).unwrap_or(0), points: product(out).unwrap_or(0) };
    if mode == Mode::Nearest {
        let picked =
            threads::map(points.chunks_exact(axes.len()), |point| taps(&axes, mode, point).first().and_then(|t| t.0));
        return Ok(vec![nearest(data, &shape, &layout, &picked)?.into()]);
    }
    in_lane!(data.dtype(), T => {
        let values = read::<T>(data)?;
        // The error of weights is relative to the largest element.
        let most = if data.dtype() == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
        if !values.iter().all(|value| value.to_f64().abs() <= most) {
            return Err(Decline::unsupported("the data contains infinities or NaN, for which runtimes interpolate different values"));
        }
        let sums = layout.sums(&values, &axes, mode, &points);
        Ok(vec![<T as Ring>::write(data.dtype(), &shape, sums)?.into()])
    })
}

/// Returns the grid points in element units, first axis first, mapped into the data by the padding mode.
fn points(cx: &EvalCx<'_>, grid: &Tensor, axes: &[Axis], mode: Mode) -> Result<Vec<f64>, Decline> {
    cx.claim(DType::Complex128, grid.shape())?;
    let single = grid.dtype() != DType::Double;
    let floats = matches!(grid.dtype(), DType::Float | DType::Double | DType::Float16 | DType::Bfloat16);
    let given = grid
        .to_f64s()
        .filter(|_| floats)
        .ok_or_else(|| Decline::invalid("the operand 'grid' is not of a float type"))?;
    let mut points = Vec::with_capacity(given.len());
    for point in given.chunks_exact(axes.len()) {
        for (&axis, &x) in axes.iter().zip(point.iter().rev()) {
            let exact = axis.denormalized(x);
            if !exact.is_finite() || exact.abs() > 1e6 {
                return Err(Decline::unsupported("a coordinate of 'grid' is too far outside of the data"));
            }
            let whole = if mode == Mode::Nearest { exact.round_ties_even() } else { exact };
            // Runtimes compute in the precision of the grid; a nearest element is chosen only if the precision does not matter.
            if mode == Mode::Nearest && single && axis.denormalized_single(x as f32).round_ties_even() != whole as f32 {
                return Err(Decline::unsupported("rounding determines which element is the nearest one"));
            }
            let point = axis.brought_back(whole);
            if mode == Mode::Cubic && axis.padding == Padding::Border && point != whole {
                return Err(Decline::unsupported(
                    "a coordinate of 'grid' lies outside of the data. If 'mode' is 'cubic' and 'padding_mode' is 'border', runtimes clamp the coordinate differently",
                ));
            }
            points.push(point);
        }
    }
    Ok(points)
}

/// The dims of the data and of the result.
struct Layout {
    batch: usize,
    channels: usize,
    /// The number of elements per channel of the data.
    size: usize,
    /// The number of grid points per instance.
    points: usize,
}

impl Layout {
    fn sums<T: Lane>(&self, values: &[T], axes: &[Axis], mode: Mode, points: &[f64]) -> Vec<T> {
        let mut result = vec![T::default(); self.batch * self.channels * self.points];
        let blocks = result.chunks_exact_mut(self.channels * self.points);
        let instances =
            values.chunks_exact(self.channels * self.size).zip(points.chunks_exact(self.points * axes.len()));
        // Process the points in parts, so that their taps stay cached while looping over channels.
        const PART: usize = 1 << 12;
        for (to, (from, points)) in blocks.zip(instances) {
            for (part, points) in points.chunks(PART * axes.len()).enumerate() {
                let taps: Vec<Taps> = threads::map(points.chunks_exact(axes.len()), |point| taps(axes, mode, point));
                let channels = to.chunks_exact_mut(self.points).zip(from.chunks_exact(self.size));
                threads::for_each(channels, |(to, channel)| {
                    for (to, taps) in to.iter_mut().skip(part * PART).zip(&taps) {
                        let value = |&(at, weight): &(Option<usize>, f64)| Some(channel.get(at?)?.to_f64() * weight);
                        *to = T::of(taps.iter().filter_map(value).sum());
                    }
                });
            }
        }
        result
    }

    /// Returns the elements at these positions of each channel; zero for missing positions.
    fn copied<E: Clone>(&self, values: &[E], picked: &[Option<usize>], zero: E) -> Vec<E> {
        let mut result = Vec::with_capacity(self.batch * self.channels * self.points);
        let channels = values.chunks_exact(self.size).enumerate();
        for (number, channel) in channels {
            let instance = number / self.channels * self.points;
            let picked = picked.get(instance..).unwrap_or_default().iter().take(self.points);
            result.extend(picked.map(|&at| at.and_then(|at| channel.get(at)).cloned().unwrap_or_else(|| zero.clone())));
        }
        result
    }
}

fn nearest(data: &Tensor, shape: &[usize], layout: &Layout, picked: &[Option<usize>]) -> Result<Tensor, Decline> {
    if let Some(strings) = data.strings() {
        return Ok(Tensor::from_strings(shape, layout.copied(strings, picked, bytes::Bytes::new()))?);
    }
    fn cells<const WIDTH: usize>(data: &Tensor, layout: &Layout, picked: &[Option<usize>]) -> Vec<u8>
    where
        [u8; WIDTH]: bytemuck::Pod,
    {
        layout.copied(data.bytes().as_chunks::<WIDTH>().0, picked, [0; WIDTH]).into_flattened()
    }
    let bytes = match data.dtype().byte_len(1) {
        Some(1) => cells::<1>(data, layout, picked),
        Some(2) => cells::<2>(data, layout, picked),
        Some(4) => cells::<4>(data, layout, picked),
        Some(8) => cells::<8>(data, layout, picked),
        Some(16) => cells::<16>(data, layout, picked),
        _ => return Err(Decline::unsupported(format!("the element type {} is not supported", data.dtype()))),
    };
    Ok(Tensor::from_bytes(data.dtype(), shape, bytes.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn sample(mode: &'static str, padding: &'static str, align_corners: i64) -> Vec<f64> {
        let grid = [-1f32, -1.0, 0.5, 0.0, 0.0, 0.25, 1.5, 1.0];
        Single::new("GridSample", 20)
            .with_str("mode", mode)
            .with_str("padding_mode", padding)
            .with("align_corners", align_corners)
            .values(&[1, 1, 2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])
            .values(&[1, 2, 2, 2], &grid)
            .floats()
    }

    #[test]
    fn two_axes() {
        assert_eq!(sample("linear", "zeros", 0), [0.25, 4.25, 4.25, 0.0]);
        assert_eq!(sample("linear", "zeros", 1), [1.0, 4.0, 3.875, 3.0]);
        assert_eq!(sample("linear", "border", 0), [1.0, 4.25, 4.25, 6.0]);
        assert_eq!(sample("linear", "reflection", 0), [1.0, 4.25, 4.25, 5.75]);
        assert_eq!(sample("linear", "reflection", 1), [1.0, 4.0, 3.875, 5.5]);
        assert_eq!(sample("nearest", "zeros", 0), [1.0, 3.0, 5.0, 0.0]);
        assert_eq!(sample("nearest", "border", 0), [1.0, 3.0, 5.0, 6.0]);
        let close = |found: Vec<f64>, expected: [f64; 4]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        };
        close(sample("cubic", "zeros", 0), [0.0625, 5.680054, 4.917969, -0.346069]);
        close(sample("cubic", "reflection", 1), [1.0, 4.1875, 4.050781, 5.6875]);
    }

    #[test]
    fn other_types_and_ranks() {
        let line = Single::new("GridSample", 20).with_str("mode", "nearest").with("align_corners", 1);
        let words = Tensor::from_strings(&[1, 1, 2], vec!["a".into(), "b".into()]).unwrap();
        let found = line.constant(words).values(&[1, 3, 1], &[1f32, -1.0, 3.0]).eval().unwrap();
        assert_eq!(found[0].strings().unwrap(), ["b", "a", ""]);
        let infer = |data: &str, grid: &str| {
            Single::new("GridSample", 20).input(DType::Float, data).input(DType::Float, grid).infer().remove(0)
        };
        assert_eq!(infer("N C D H W", "2 d h w 3"), "float[2, C, d, h, w]");
        assert!(infer("N C H W", "N h w 3").starts_with("invalid"));
        assert!(infer("N C H W", "N h 2").starts_with("invalid"));
        let half = Single::new("GridSample", 20).unranked(DType::Float).input(DType::Float, "N h w 2");
        assert_eq!(half.infer(), ["float[N, ?, h, w]"]);
    }

    #[test]
    fn undefined_points() {
        let node = |mode, point: [f32; 2]| {
            Single::new("GridSample", 20)
                .with_str("mode", mode)
                .values(&[1, 1, 3, 3], &[1f32; 9])
                .values(&[1, 1, 1, 2], &point)
        };
        assert!(node("linear", [f32::NAN, 0.0]).eval().is_err());
        assert!(node("linear", [1e30, 0.0]).eval().is_err());
        assert!(node("cubic", [2.0, 0.0]).with_str("padding_mode", "border").eval().is_err());
        assert!(node("linear", [0.0, 0.0]).eval().is_ok());
    }
}
