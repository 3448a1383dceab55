//! AffineGrid: transforms the points of a regular grid by affine maps.
//!
//! | | |
//! |---|---|
//! | computes | `grid[n, p…] = theta[n] · [x, y, (z,) 1]`, where the coordinates, last axis first, run from −1 to 1 over `size` |
//! | shapes | `theta [N, 2, 3]` and `size [N, C, H, W]` to `[N, H, W, 2]`; `[N, 3, 4]` and `[N, C, D, H, W]` to `[N, D, H, W, 3]` |
//! | `align_corners` | 1: −1 and 1 are the centres of the first and last point; 0: their outer edges |
//! | not evaluated | a single point with `align_corners`: runtimes disagree on its coordinate |

use crate::dim::Dim;
use crate::ir::{Fact, Scalar};
use crate::ops::lane::{Lane, Ring, in_lane, read};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::Indices;

pub(super) const AFFINE_GRID: Operator = Operator::new("AffineGrid", &[20], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let theta = cx.required(0)?;
    let (dtype, theta) = (theta.dtype(), theta.shape());
    let size = cx.required(1)?;
    let from_size = size.static_len().map(|len| len.saturating_sub(2));
    let rows = theta.and_then(|theta| theta.get(1)).and_then(Dim::as_const).and_then(|rows| usize::try_from(rows).ok());
    let Some(axes) = from_size.or(rows) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    if !(2..=3).contains(&axes) || rows.is_some_and(|rows| rows != axes) {
        return Err(Refusal::invalid(format!(
            "'theta' has {} rows, but 'size' has {axes} spatial dims",
            rows.unwrap_or(axes)
        )));
    }
    if theta.is_some_and(|theta| theta.len() != 3) {
        return Err(Refusal::invalid("the rank of 'theta' is not 3"));
    }
    let sizes = size.elements().filter(|sizes| sizes.len() == axes + 2);
    let sizes = sizes.unwrap_or_else(|| vec![Scalar::Unknown; axes + 2]);
    let asked = |at: usize| sizes.get(at).and_then(Scalar::as_int).cloned();
    let batch = theta.and_then(|theta| theta.first()).filter(|batch| batch.as_const().is_some()).cloned();
    let batch = batch.or_else(|| asked(0)).or_else(|| theta?.first().cloned());
    let mut shape = vec![batch.unwrap_or_else(|| cx.fresh_dim())];
    shape.extend((2..axes + 2).map(|at| asked(at).unwrap_or_else(|| cx.fresh_dim())));
    shape.push(Dim::constant(axes as i64));
    if shape.iter().any(|dim| dim.as_const().is_some_and(|dim| dim < 0)) {
        return Err(Refusal::invalid("an element of 'size' is negative"));
    }
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let theta = cx.tensor(0)?;
    let align_corners = cx.attr_flag("align_corners", false)?;
    let size: Option<Vec<usize>> = cx.ints(1)?.into_iter().map(|size| usize::try_from(size).ok()).collect();
    let size = size.ok_or_else(|| Decline::invalid("an element of 'size' is negative"))?;
    let (batch, dims) = match size.as_slice() {
        [batch, _, dims @ ..] if (2..=3).contains(&dims.len()) => (*batch, dims),
        _ => return Err(Decline::invalid(format!("the operand 'size' is {size:?}, which is not the shape of a grid"))),
    };
    let axes = dims.len();
    if theta.shape() != [batch, axes, axes + 1] {
        return Err(Decline::invalid(format!(
            "'theta' has shape {:?}, which does not fit 'size' ({size:?})",
            theta.shape()
        )));
    }
    if align_corners && dims.contains(&1) {
        return Err(Decline::unsupported("a size is 1, for which runtimes compute different coordinates"));
    }
    let shape: Vec<usize> = [batch].into_iter().chain(dims.iter().copied()).chain([axes]).collect();
    cx.claim(theta.dtype(), &shape)?;
    let points = crate::tensor::product(&shape).unwrap_or(0);
    cx.budget().take_work((points as u64).saturating_mul(axes as u64 + 1))?;
    // Coordinates are evenly spaced along each axis.
    let coordinate = |at: usize, dim: usize| {
        let (at, dim) = (at as f64, dim as f64);
        if align_corners { 2.0 * at / (dim - 1.0) - 1.0 } else { (2.0 * at + 1.0) / dim - 1.0 }
    };
    in_lane!(theta.dtype(), T => {
        let theta_values = read::<T>(theta)?;
        let mut grid = Vec::with_capacity(points);
        for matrix in theta_values.chunks_exact(axes * (axes + 1)) {
            let mut indices = Indices::new(dims);
            while let Some(index) = indices.advance() {
                for row in matrix.chunks_exact(axes + 1) {
                    let places = index.iter().zip(dims).rev().map(|(&at, &dim)| coordinate(at, dim)).chain([1.0]);
                    let moved = row.iter().zip(places).map(|(factor, place)| factor.to_f64() * place);
                    grid.push(T::of(moved.sum()));
                }
            }
        }
        Ok(vec![<T as Ring>::write(theta.dtype(), &shape, grid)?.into()])
    })
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn grids() {
        let grid = |align_corners: i64, size: &[i64]| {
            let node = Single::new("AffineGrid", 20).with("align_corners", align_corners);
            node.values(&[1, 2, 3], &[1f32, 0.0, 0.5, 0.0, 2.0, 0.0]).values(&[size.len()], size)
        };
        let corners = grid(1, &[1, 1, 2, 3]).floats();
        assert_eq!(corners, [-0.5, -2.0, 0.5, -2.0, 1.5, -2.0, -0.5, 2.0, 0.5, 2.0, 1.5, 2.0]);
        assert_eq!(grid(0, &[1, 1, 1, 2]).floats(), [0.0, 0.0, 1.0, 0.0]);
        assert!(grid(1, &[1, 1, 1, 2]).eval().is_err());
        assert!(grid(0, &[2, 1, 1, 2]).eval().is_err());
        assert!(grid(0, &[1, 1, i64::MAX, i64::MAX]).eval().is_err());
        assert!(grid(0, &[1, 1, -1, 2]).eval().is_err());
        assert!(grid(0, &[1, 1, 1, 2, 3]).eval().is_err());
    }

    #[test]
    fn shapes() {
        let node = |theta: &str| Single::new("AffineGrid", 20).input(DType::Float, theta);
        assert_eq!(node("N 3 4").input(DType::Int64, "5").infer(), ["float[?, ?, ?, ?, 3]"]);
        assert_eq!(node("N 2 3").values(&[4], &[7i64, 1, 4, 5]).infer(), ["float[7, 4, 5, 2]"]);
        assert_eq!(node("N 2 3").input(DType::Int64, "K").infer(), ["float[N, ?, ?, 2]"]);
        assert!(node("N 3 4").values(&[4], &[7i64, 1, 4, 5]).infer()[0].starts_with("invalid"));
    }
}
