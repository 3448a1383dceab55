//! MaxRoiPool: computes the maxima of grid cells over regions of interest.
//!
//! | | |
//! |---|---|
//! | computes | for each region `[n, x₁, y₁, x₂, y₂]` a grid of `pooled_shape` cells, and for each cell and channel of image `n` the maximum, 0 for an empty cell |
//! | region | corners are scaled by `spatial_scale` and rounded, halves away from zero; both ends are inclusive, and the length is at least 1 |
//! | cell `i` | from `⌊i·length / cells⌋` up to `⌈(i + 1)·length / cells⌉`, clipped to the image |
//! | shapes | `X [N, C, H, W]`, `rois [R, 5]`, `Y [R, C, h, w]` |
//! | versions | 1; 22 adds bfloat16 |
//! | rejects | regions of missing images or with NaN corners |

use std::ops::Range;

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read, same_dtype};
use crate::ops::window::read_numbers;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::Tensor;

pub(super) const MAX_ROI_POOL: Operator = Operator::new("MaxRoiPool", &[1, 22], infer, eval);

fn read_cells(site: &Site<'_>) -> Result<[i64; 2], Refusal> {
    let cells = read_numbers(site, "pooled_shape", 2, 1)?;
    match cells.as_deref() {
        Some(&[rows, columns]) => Ok([rows, columns]),
        _ => Err(Refusal::invalid("attribute 'pooled_shape' is missing")),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let [rows, columns] = read_cells(cx)?;
    let rank = |at: usize, rank: usize| match cx.rank(at) {
        Some(other) if other != rank => {
            Err(Refusal::invalid(format!("operand {at} has rank {other} instead of {rank}")))
        }
        _ => Ok(()),
    };
    rank(0, 4)?;
    rank(1, 2)?;
    let dim = |at: usize, axis: usize| cx.shape(at).and_then(|shape| shape.get(axis)).cloned();
    let shape = vec![
        dim(1, 0).unwrap_or_else(|| cx.fresh_dim()),
        dim(0, 1).unwrap_or_else(|| cx.fresh_dim()),
        Dim::constant(rows),
        Dim::constant(columns),
    ];
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(1)), Some(shape))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, rois) = (cx.tensor(0)?, cx.tensor(1)?);
    same_dtype(x.dtype(), &[rois])?;
    let cells = read_cells(cx)?.map(|cells| usize::try_from(cells).unwrap_or(usize::MAX));
    let (&[images, channels, height, width], &[count, 5]) = (x.shape(), rois.shape()) else {
        return Err(Decline::invalid("the rank of 'X' or 'rois' is wrong"));
    };
    let scale = cx.attr_float("spatial_scale")?.unwrap_or(1.0);
    let shape = [count, channels, cells[0], cells[1]];
    cx.claim(x.dtype(), &shape)?;
    // Adjacent cells overlap by less than one row and column.
    let pixels =
        (count as u64).saturating_mul(channels as u64).saturating_mul(4 * (height as u64).saturating_mul(width as u64));
    cx.budget().take_work(pixels.saturating_add(crate::tensor::product(&shape).unwrap_or(usize::MAX) as u64))?;
    let dtype = x.dtype();
    if shape.contains(&0) {
        return Ok(vec![Tensor::zeros(dtype, &shape)?.into()]);
    }
    in_lane!(dtype, T => {
        let (x, rois) = (read::<T>(x)?, read::<T>(rois)?);
        let mut y = Vec::with_capacity(crate::tensor::product(&shape).unwrap_or(0));
        for roi in rois.chunks_exact(5) {
            let corner = |at: usize| roi.get(at).map_or(f64::NAN, |x| x.to_f64());
            let image = corner(0);
            if !(0.0..images as f64).contains(&image) || roi.iter().any(|x| !x.to_f64().is_finite()) {
                return Err(Decline::invalid("the batch index of a region in 'rois' is out of range"));
            }
            let image = image as usize;
            let [x1, y1, x2, y2] = [1, 2, 3, 4].map(|at| (corner(at) as f32 * scale).round());
            let rows = grid(y1, y2, cells[0], height);
            let columns = grid(x1, x2, cells[1], width);
            for channel in 0..channels {
                let start = (image * channels + channel) * height * width;
                let pixels = x.get(start..).unwrap_or_default();
                for rows in &rows {
                    for columns in &columns {
                        y.push(maximum(pixels, width, rows.clone(), columns.clone())?);
                    }
                }
            }
        }
        Ok(vec![T::write(dtype, &shape, y)?.into()])
    })
}

/// Returns the cells of a region along one axis.
fn grid(first: f32, last: f32, cells: usize, size: usize) -> Vec<Range<usize>> {
    let length = (last - first + 1.0).max(1.0) / cells as f32;
    let clip = |at: f32| (at + first).clamp(0.0, size as f32) as usize;
    (0..cells).map(|cell| clip((cell as f32 * length).floor())..clip(((cell + 1) as f32 * length).ceil())).collect()
}

fn maximum<T: Lane>(pixels: &[T], width: usize, rows: Range<usize>, columns: Range<usize>) -> Result<T, Decline> {
    let cell =
        rows.flat_map(|row| pixels.get(row * width..).and_then(|row| row.get(columns.clone())).unwrap_or_default());
    let mut best: Option<T> = None;
    for &value in cell {
        if !value.to_f64().is_finite() {
            return Err(Decline::unsupported(
                "'X' contains infinities or NaN, for which runtimes return different maxima",
            ));
        }
        if best.is_none_or(|best| value > best) {
            best = Some(value);
        }
    }
    Ok(best.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let node = Single::new("MaxRoiPool", 1).input(DType::Float, "N C H W").input(DType::Float, "R 5");
        assert_eq!(node.with("pooled_shape", vec![2, 3]).infer(), ["float[R, C, 2, 3]"]);
    }

    #[test]
    fn regions_inside_across_and_reversed() {
        let pixels: Vec<f32> = (0..36).map(|at| at as f32).collect();
        let node = |rois: &[f32]| {
            let node = Single::new("MaxRoiPool", 1).values(&[1, 1, 6, 6], &pixels);
            node.values(&[rois.len() / 5, 5], rois).with("pooled_shape", vec![2, 2])
        };
        assert_eq!(node(&[0.0, 1.0, 1.0, 4.0, 4.0]).floats(), [14.0, 16.0, 26.0, 28.0]);
        assert_eq!(node(&[0.0, -3.0, 0.0, 2.0, 9.0]).floats(), [0.0, 26.0, 0.0, 32.0]);
        assert_eq!(node(&[0.0, 4.0, 4.0, 2.0, 2.0]).floats(), [28.0; 4]);
        assert_eq!(node(&[0.0, 0.5, 1.5, 2.5, 2.5]).floats(), [14.0, 15.0, 20.0, 21.0]);
        assert!(node(&[1.0, 1.0, 1.0, 4.0, 4.0]).eval().is_err());
        assert!(node(&[0.0, f32::NAN, 1.0, 4.0, 4.0]).eval().is_err());
    }
}
