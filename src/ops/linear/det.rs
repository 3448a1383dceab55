//! Det: the determinants of the matrices along the last two axes.
//!
//! | | |
//! |---|---|
//! | computes | `[*, M, M]` to `[*]` |
//! | versions | 11; 22 adds bfloat16 |
//! | accuracy | elimination with partial pivoting in binary64, rounded once |
//! | rejects | matrices that are not square; evaluation: more than 12 rows |
#![allow(clippy::indexing_slicing, reason = "a matrix of n rows has n columns")]

use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read};
use crate::ops::linear::product::stays_finite;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};

pub(super) const DET: Operator = Operator::new("Det", &[11, 22], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0);
    let Some(shape) = cx.shape(0) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let [batch @ .., rows, columns] = shape else {
        return Err(Refusal::invalid(format!("the rank of 'X' is {}, which is less than 2", shape.len())));
    };
    if cx.scope().eq(rows, columns).is_no() {
        return Err(Refusal::invalid("the matrix is not square"));
    }
    Ok(vec![Fact::tensor(dtype, Some(batch.to_vec()))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let (batch, n) = match x.shape() {
        [batch @ .., rows, columns] if rows == columns => (batch, *rows),
        _ => {
            return Err(Decline::invalid(format!(
                "'X' has shape {:?}, which is not that of square matrices",
                x.shape()
            )));
        }
    };
    cx.claim(x.dtype(), batch)?;
    cx.budget().take_work((x.len() as u64).saturating_mul(n as u64))?;
    if n > MOST_ROWS {
        return Err(Decline::unsupported(format!(
            "a matrix has more than {MOST_ROWS} rows, so its determinant may overflow"
        )));
    }
    // The determinant is a sum of n! products of one element per row; elimination computes no larger number.
    stays_finite((1..=n).product(), &vec![x; n])?;
    in_lane!(x.dtype(), T => {
        if batch.contains(&0) {
            return Ok(vec![<T as Ring>::write(x.dtype(), batch, Vec::new())?.into()]);
        }
        let values = read::<T>(x)?;
        // There is at least one matrix, so its size does not exceed that of the tensor.
        let mut matrix = vec![0.0; n * n];
        // The determinant of a matrix without rows is the empty product.
        let mut results = vec![T::of(1.0); crate::tensor::product(batch).unwrap_or(0)];
        for (result, values) in results.iter_mut().zip(values.chunks_exact((n * n).max(1))) {
            matrix.iter_mut().zip(values).for_each(|(to, &from)| *to = from.to_f64());
            *result = T::of(determinant(&mut matrix, n));
        }
        Ok(vec![<T as Ring>::write(x.dtype(), batch, results)?.into()])
    })
}

/// The most rows of a matrix that is evaluated: the factorial of a larger number does not fit into a `usize` of 32 bits.
const MOST_ROWS: usize = 12;

/// Gaussian elimination in place: returns the product of the pivots, negated for each exchange of rows.
fn determinant(matrix: &mut [f64], n: usize) -> f64 {
    let mut determinant = 1.0;
    for column in 0..n {
        let magnitude = |row: &usize| matrix[row * n + column].abs();
        // Any pivot is fine next to a NaN: the result is NaN in any case.
        let pivot = (column..n).max_by(|a, b| magnitude(a).total_cmp(&magnitude(b))).unwrap_or(column);
        if pivot != column {
            (column..n).for_each(|at| matrix.swap(pivot * n + at, column * n + at));
            determinant = -determinant;
        }
        let (upper, lower) = matrix.split_at_mut((column + 1) * n);
        let pivots = &upper[column * n..];
        determinant *= pivots[column];
        if pivots[column] == 0.0 {
            return determinant;
        }
        for row in lower.chunks_exact_mut(n) {
            let factor = row[column] / pivots[column];
            row[column..].iter_mut().zip(&pivots[column..]).for_each(|(x, &pivot)| *x -= factor * pivot);
        }
    }
    determinant
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn determinants() {
        let det = |shape: &[usize], values: &[f32]| Single::new("Det", 11).values(shape, values).floats();
        assert_eq!(det(&[2, 2], &[0.0, 1.0, 2.0, 3.0]), [-2.0]);
        assert_eq!(det(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 2.0, 4.0]), [-2.0, 0.0]);
        assert_eq!(det(&[3, 3], &[2.0, 0.0, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0, 1.0]), [0.0]);
        assert_eq!(det(&[1, 0, 0], &[]), [1.0]);
        assert!(Single::new("Det", 11).values(&[1, 2], &[1.0f32, 2.0]).eval().is_err());
        let diagonal = |n: usize| (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0f32 } else { 0.0 }).collect::<Vec<_>>();
        assert_eq!(det(&[12, 12], &diagonal(12)), [1.0]);
        assert!(Single::new("Det", 11).values(&[13, 13], &diagonal(13)).eval().is_err());
        assert_eq!(Single::new("Det", 22).input(DType::Bfloat16, "B 3 3").infer(), ["bfloat16[B]"]);
        assert!(Single::new("Det", 22).input(DType::Float, "B 2 3").infer()[0].starts_with("invalid"));
    }
}
