//! RoiAlign: pools regions of an image to one size.
//!
//! | | |
//! |---|---|
//! | computes | each element from samples spread evenly over its bin of the region, each interpolated from four elements: their mean, or the largest of all weighted elements |
//! | shapes | `X [N, C, H, W]`, `rois [R, 4]` as `x1, y1, x2, y2`, `batch_indices [R]`, `Y [R, C, output_height, output_width]` |
//! | versions | 10: a region smaller than an element counts as one; 16: only with `output_half_pixel`; `half_pixel` (the default) shifts regions by half an element; 22 adds bfloat16 |
//! | arithmetic | positions in the operands' precision and in the order of runtimes, because they are truncated |
//! | rejects | indices of missing images |

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read, same_dtype};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::Tensor;

pub(super) const ROI_ALIGN: Operator = Operator::new("RoiAlign", &[10, 16, 22], infer, eval);

/// Returns `output_height` and `output_width`.
fn output_size(site: &Site<'_>) -> Result<[i64; 2], Refusal> {
    let size = |name: &str| match site.attr_int(name)?.unwrap_or(1) {
        size if size > 0 => Ok(size),
        size => Err(Refusal::invalid(format!("attribute '{name}' is {size}, which is not valid"))),
    };
    Ok([size("output_height")?, size("output_width")?])
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype().or(cx.dtype(1));
    let [height, width] = output_size(cx)?;
    for (operand, rank) in [(0, 4), (1, 2), (2, 1)] {
        if cx.rank(operand).is_some_and(|found| found != rank) {
            return Err(Refusal::invalid(format!("the rank of operand {operand} is not {rank}")));
        }
    }
    let dim = |operand: usize, axis: usize| cx.shape(operand).and_then(|shape| shape.get(axis)).cloned();
    let count = [dim(1, 0), dim(2, 0)].into_iter().flatten();
    let count = count.reduce(|a, b| if a.as_const().is_none() && b.as_const().is_some() { b } else { a });
    let or_fresh = |dim: Option<Dim>| dim.unwrap_or_else(|| cx.fresh_dim());
    let shape = vec![or_fresh(count), or_fresh(dim(0, 1)), Dim::constant(height), Dim::constant(width)];
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

/// The attributes.
struct Pooling {
    half_pixel: bool,
    largest: bool,
    sampling_ratio: i64,
    spatial_scale: f32,
}

impl Pooling {
    fn of(site: &Site<'_>) -> Result<Pooling, Refusal> {
        let half_pixel = match site.attr_str("coordinate_transformation_mode")? {
            _ if site.version < 16 => false,
            None | Some("half_pixel") => true,
            Some("output_half_pixel") => false,
            Some(other) => {
                return Err(Refusal::invalid(format!(
                    "attribute 'coordinate_transformation_mode' is '{other}', which is not supported"
                )));
            }
        };
        let largest = match site.attr_str("mode")? {
            None | Some("avg") => false,
            Some("max") => true,
            Some(other) => {
                return Err(Refusal::invalid(format!("attribute 'mode' is '{other}', which is not supported")));
            }
        };
        Ok(Pooling {
            half_pixel,
            largest,
            sampling_ratio: site.attr_int("sampling_ratio")?.unwrap_or(0),
            spatial_scale: site.attr_float("spatial_scale")?.unwrap_or(1.0),
        })
    }
}

/// A region along one axis.
struct Span {
    start: f64,
    /// The length of a bin.
    bin: f64,
    /// The number of samples per bin.
    samples: usize,
}

/// Rounds to the precision of the operands.
type Round = fn(f64) -> f64;

impl Span {
    fn new(pooling: &Pooling, round: Round, start: f64, end: f64, output: usize) -> Result<Span, Decline> {
        // Rounding a product or difference of two binary32 numbers to binary64 first yields the same binary32 number.
        let scale = f64::from(pooling.spatial_scale);
        let offset = if pooling.half_pixel { 0.5 } else { 0.0 };
        let edge = |x: f64| round(round(x * scale) - offset);
        let start = edge(start);
        let length = round(edge(end) - start);
        let length = if pooling.half_pixel { length } else { length.max(1.0) };
        let bin = round(length / output as f64);
        if !start.is_finite() || !bin.is_finite() {
            return Err(Decline::unsupported("'rois' contains a coordinate that is not finite"));
        }
        let samples = if pooling.sampling_ratio > 0 { pooling.sampling_ratio as f64 } else { bin.ceil() };
        if samples > 1e6 {
            return Err(Decline::OverBudget("a region of 'rois' needs too many samples".into()));
        }
        Ok(Span { start, bin, samples: samples.max(0.0) as usize })
    }

    /// Returns the position of sample `sample` of element `at`.
    fn position(&self, round: Round, at: usize, sample: usize) -> f64 {
        let whole = round(self.start + round(at as f64 * self.bin));
        let part = round(round((sample as f64 + 0.5) * self.bin) / self.samples as f64);
        round(whole + part)
    }
}

/// Returns the two elements around a position and the weight of the second; `None` outside of the image.
fn neighbours(position: f64, dim: usize) -> Option<(usize, usize, f64)> {
    if dim == 0 || position < -1.0 || position > dim as f64 {
        return None;
    }
    let position = position.max(0.0);
    let low = position as usize;
    if low >= dim - 1 { Some((dim - 1, dim - 1, 0.0)) } else { Some((low, low + 1, position - low as f64)) }
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (image, regions) = (cx.tensor(0)?, cx.tensor(1)?);
    let indices = cx.ints(2)?;
    let pooling = Pooling::of(cx)?;
    let dtype = image.dtype();
    same_dtype(dtype, &[regions])?;
    let [batch, channels, height, width] = *image.shape() else {
        return Err(Decline::invalid(format!("'X' has shape {:?} instead of rank 4", image.shape())));
    };
    if regions.shape() != [indices.len(), 4] || cx.tensor(2)?.rank() != 1 {
        return Err(Decline::invalid(format!(
            "'rois' has shape {:?}, which does not fit 'batch_indices' of length {}",
            regions.shape(),
            indices.len()
        )));
    }
    let [rows, columns] = output_size(cx)?.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let shape = [indices.len(), channels, rows, columns];
    cx.claim(dtype, &shape)?;
    if shape.contains(&0) {
        return Ok(vec![Tensor::zeros(dtype, &shape)?.into()]);
    }
    if image.is_empty() {
        return Err(Decline::invalid("a spatial dim of 'X' is 0"));
    }
    in_lane!(dtype, T => {
        let round: Round = |x| T::of(x).to_f64();
        let (values, regions) = (read::<T>(image)?, read::<T>(regions)?);
        if values.iter().any(|value| !value.to_f64().is_finite()) {
            return Err(Decline::unsupported("'X' contains infinities or NaN, for which runtimes return different values"));
        }
        let mut result = Vec::with_capacity(crate::tensor::product(&shape).unwrap_or(0));
        let size = height * width;
        for (region, &index) in regions.chunks_exact(4).zip(&indices) {
            let index = usize::try_from(index).ok().filter(|&index| index < batch);
            let index = index.ok_or_else(|| Decline::invalid("an element of 'batch_indices' is out of range"))?;
            let edge = |at: usize| region.get(at).map_or(0.0, |edge| edge.to_f64());
            let across = Span::new(&pooling, round, edge(0), edge(2), columns)?;
            let down = Span::new(&pooling, round, edge(1), edge(3), rows)?;
            let samples = across.samples.saturating_mul(down.samples);
            let work = [rows, columns, samples].iter().fold(4u64, |work, &n| work.saturating_mul(n as u64));
            cx.budget().take_work(work.saturating_mul(channels as u64 + 1))?;
            let start = index * channels * size;
            let planes = values.get(start..start + channels * size).unwrap_or_default();
            for plane in (0..channels).map(|channel| planes.get(channel * size..).unwrap_or_default()) {
                for row in 0..rows {
                    for column in 0..columns {
                        let mut pooled = Pooled::new(pooling.largest);
                        for y in (0..down.samples).map(|sample| down.position(round, row, sample)) {
                            for x in (0..across.samples).map(|sample| across.position(round, column, sample)) {
                                pooled.add(&corners(plane, (y, height), (x, width)));
                            }
                        }
                        result.push(T::of(pooled.value(samples)));
                    }
                }
            }
        }
        Ok(vec![<T as Ring>::write(dtype, &shape, result)?.into()])
    })
}

/// Returns the weighted elements around a position in a plane; zeros outside of it.
fn corners<T: Lane>(plane: &[T], (y, height): (f64, usize), (x, width): (f64, usize)) -> [f64; 4] {
    let Some(((top, bottom, down), (left, right, across))) = neighbours(y, height).zip(neighbours(x, width)) else {
        return [0.0; 4];
    };
    let at = |row: usize, column: usize| plane.get(row * width + column).map_or(0.0, |value| value.to_f64());
    let (up, back) = (1.0 - down, 1.0 - across);
    [
        up * back * at(top, left),
        up * across * at(top, right),
        down * back * at(bottom, left),
        down * across * at(bottom, right),
    ]
}

/// The pooled value of the samples so far.
struct Pooled {
    largest: bool,
    value: Option<f64>,
}

impl Pooled {
    fn new(largest: bool) -> Pooled {
        Pooled { largest, value: None }
    }

    fn add(&mut self, corners: &[f64; 4]) {
        let own =
            if self.largest { corners.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { corners.iter().sum() };
        self.value = Some(match self.value {
            None => own,
            Some(value) if self.largest => value.max(own),
            Some(value) => value + own,
        });
    }

    fn value(&self, samples: usize) -> f64 {
        let value = self.value.unwrap_or(0.0);
        if self.largest { value } else { value / samples.max(1) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn node(opset: i64, region: [f32; 4], index: i64) -> Single {
        let image: Vec<f32> = (1..17).map(|at| at as f32).collect();
        Single::new("RoiAlign", opset).values(&[1, 1, 4, 4], &image).values(&[1, 4], &region).values(&[1], &[index])
    }

    #[test]
    fn regions() {
        let square = |opset| node(opset, [0.0, 0.0, 2.0, 2.0], 0).with("output_height", 2).with("output_width", 2);
        assert_eq!(square(16).with("sampling_ratio", 1).floats(), [1.0, 2.0, 5.0, 6.0]);
        assert_eq!(square(10).floats(), [3.5, 4.5, 7.5, 8.5]);
        let largest = node(16, [0.0, 0.0, 3.0, 3.0], 0).with("output_width", 2).with("sampling_ratio", 2);
        assert_eq!(largest.with_str("mode", "max").floats(), [6.75, 7.21875]);
    }

    #[test]
    fn hostile_regions() {
        assert!(node(16, [0.0; 4], 1).eval().is_err());
        assert!(node(16, [0.0; 4], -1).eval().is_err());
        assert!(node(16, [0.0, 0.0, f32::NAN, 1.0], 0).eval().is_err());
        assert!(node(16, [0.0, 0.0, 1e30, 1e30], 0).eval().is_err());
        assert!(node(16, [0.0; 4], 0).with("sampling_ratio", i64::MAX).eval().is_err());
        assert!(node(16, [0.0; 4], 0).with("output_height", i64::MAX).eval().is_err());
        assert!(node(16, [0.0; 4], 0).with("output_height", 0).infer()[0].starts_with("invalid"));
    }

    #[test]
    fn shapes() {
        let node = Single::new("RoiAlign", 16).with("output_height", 7).input(DType::Float, "N C H W");
        assert_eq!(node.input(DType::Float, "R 4").input(DType::Int64, "5").infer(), ["float[5, C, 7, 1]"]);
    }
}
