//! MatMul: the matrix product of numpy's `matmul`.
//!
//! | | |
//! |---|---|
//! | computes | `Y[…, i, j] = Σₖ A[…, i, k] · B[…, k, j]` with the leading axes broadcast |
//! | vectors | a 1-D `A` is one row, a 1-D `B` one column; the added axis is removed from the result |
//! | versions | 1; 9 adds the integers of 32 and 64 bits; 13 adds bfloat16 |
//! | integers | wrap |
//! | rejects | operands of rank 0, contracted dims that differ, leading axes that do not broadcast |

use crate::dim::{Dim, Scope};
use crate::ir::{Fact, Scalar};
use crate::ops::broadcast::{broadcast_shapes, broadcast_static};
use crate::ops::elementwise::symbolic::Elements;
use crate::ops::lane::{Ring, in_ring, read, same_dtype};
use crate::ops::linear::product::{Matrix, multiply_add, settled};
use crate::ops::traits::{Failure, NodeFacts, Repetition, Traits, broadcast_narrow, matrix_product};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::{DType, Indices, StridedView, Strides, product};

pub(super) const MATMUL: Operator = Operator::new("MatMul", &[1, 9, 13], infer, eval).with(
    Traits { fails: Failure::Never, ..Traits::NONE }
        .repeats(rows_and_columns)
        .fused_with_next()
        .bilinear()
        .needs_equal(summed)
        .macs(matrix_product)
        .inferred_by_shapes(),
);

/// Returns the columns of the first matrix and the rows of the second, which must be equal.
fn summed(view: &NodeFacts<'_>) -> Option<(Dim, Dim)> {
    let columns = view.shape(0)?.last()?;
    let ([.., rows, _] | [rows]) = view.shape(1)? else { return None };
    Some((columns.clone(), rows.clone()))
}

/// Infers the smaller shape: rows of `A` and columns of `B` may repeat, the contracted axis may not.
fn rows_and_columns(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    let view = &node.view;
    let (a, b) = (view.input(0)?, view.input(1)?);
    let ([.., wide_inner], [.., other_inner, _]) = (node.wide(a)?, node.wide(b)?) else { return None };
    let ([front @ .., rows, inner], [back @ .., depth, columns]) = (node.dims(a)?, node.dims(b)?) else { return None };
    let [lead @ .., all_rows, all_columns] = node.goal else { return None };
    if !view.equal(inner, wide_inner) || !view.equal(depth, other_inner) {
        return None;
    }
    let mut shape = broadcast_narrow(view.scope(), &[front, back], lead)?;
    for (own, goal) in [(rows, all_rows), (columns, all_columns)] {
        if !own.is_const(1) && !view.equal(own, goal) {
            return None;
        }
        shape.push(own.clone());
    }
    Some(shape)
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0).or(cx.dtype(1));
    let fact = Fact::tensor(dtype, shape_of(cx, 0, 1)?);
    Ok(vec![match product_elements(cx) {
        Some(elements) => fact.with_elements(elements),
        None => fact,
    }])
}

/// Infers the elements of the product of two small integer matrices or vectors, as expressions.
fn product_elements(cx: &InferCx<'_>) -> Option<Vec<Scalar>> {
    const MOST_PRODUCTS: usize = 4096;
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    let dtype = a.dtype().filter(|dtype| matches!(dtype, DType::Int64 | DType::Int32))?;
    // Products of constants are evaluated instead.
    if a.data().is_some() && b.data().is_some() {
        return None;
    }
    let (rows, depth) = match *a.static_shape()? {
        [depth] => (1, depth),
        [rows, depth] => (rows, depth),
        _ => return None,
    };
    let columns = match *b.static_shape()? {
        [height] if height == depth => 1,
        [height, columns] if height == depth => columns,
        _ => return None,
    };
    let work = rows.checked_mul(depth)?.checked_mul(columns)?;
    if depth == 0 || work > MOST_PRODUCTS {
        return None;
    }
    let (left, right) = (a.elements()?, b.elements()?);
    let arithmetic = Elements::new(cx.scope(), dtype);
    let element = |row: usize, column: usize| {
        let mut terms = (0..depth).map(|k| {
            let (a, b) = (left.get(row * depth + k)?, right.get(k * columns + column)?);
            let integers = matches!((a, b), (Scalar::Int(_), Scalar::Int(_)));
            integers.then(|| arithmetic.mul(a, b))
        });
        let first = terms.next()??;
        terms.try_fold(first, |sum, term| Some(arithmetic.add(&sum, &term?)))
    };
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    Some(places.map(|(row, column)| element(row, column).unwrap_or(Scalar::Unknown)).collect())
}

/// Infers the shape of the product of operands `a` and `b`, if both shapes are known.
///
/// # Errors
/// The operands' shapes are incompatible.
pub(in crate::ops) fn shape_of(cx: &InferCx<'_>, a: usize, b: usize) -> Result<Option<Vec<Dim>>, Refusal> {
    match (cx.shape(a), cx.shape(b)) {
        (Some([]), _) | (_, Some([])) => Err(scalar()),
        (Some(a), Some(b)) => product_dims(cx, a, b).map(Some),
        _ => Ok(None),
    }
}

fn scalar() -> Refusal {
    Refusal::invalid("an operand of a matrix product has rank 0")
}

fn contraction(left: &str, right: &str) -> Refusal {
    Refusal::invalid(format!("'A' has {left} columns, but 'B' has {right} rows"))
}

/// The axes of an operand: leading ones, the kept one (none for vectors), and the contracted one.
struct Split<'d> {
    batch: &'d [Dim],
    kept: Option<&'d Dim>,
    summed: &'d Dim,
}

/// Infers the shape of the product of operands of these shapes.
///
/// # Errors
/// The operands' shapes are incompatible.
pub(in crate::ops) fn product_dims(cx: &InferCx<'_>, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, Refusal> {
    let a = match a {
        [batch @ .., kept, summed] => Split { batch, kept: Some(kept), summed },
        [summed] => Split { batch: &[], kept: None, summed },
        [] => return Err(scalar()),
    };
    let b = match b {
        [batch @ .., summed, kept] => Split { batch, kept: Some(kept), summed },
        [summed] => Split { batch: &[], kept: None, summed },
        [] => return Err(scalar()),
    };
    let scope: &Scope = cx.scope();
    if scope.eq(a.summed, b.summed).is_no() {
        return Err(contraction(&scope.format(a.summed), &scope.format(b.summed)));
    }
    let mut dims = broadcast_shapes(scope, &[a.batch, b.batch])?;
    dims.extend(a.kept.into_iter().chain(b.kept).cloned());
    Ok(dims)
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = a.dtype();
    same_dtype(dtype, &[b])?;
    let layout = MatMulLayout::new(a.shape(), b.shape())?;
    cx.claim(dtype, &layout.shape)?;
    cx.budget().take_work(layout.work())?;
    in_ring!(dtype, T => {
        let values = layout.multiply(&read::<T>(a)?, &read::<T>(b)?);
        Ok(vec![settled(layout.k, [a, b], T::write(dtype, &layout.shape, values)?)?.into()])
    })
}

/// The layout of a product of two operands of constant shape: one matrix product per index of the leading axes.
pub(super) struct MatMulLayout {
    /// The rows of `A`.
    pub m: usize,
    /// The terms of each sum.
    pub k: usize,
    /// The columns of `B`.
    pub n: usize,
    /// The broadcast leading axes.
    pub batch: Vec<usize>,
    /// The shape of the result.
    pub shape: Vec<usize>,
    a_strides: Strides,
    b_strides: Strides,
}

impl MatMulLayout {
    /// # Errors
    /// The operands' shapes are incompatible.
    pub fn new(a: &[usize], b: &[usize]) -> Result<MatMulLayout, Decline> {
        let (a_batch, m, k) = match *a {
            [ref batch @ .., m, k] => (batch, Some(m), k),
            [k] => (&[][..], None, k),
            [] => return Err(scalar().into()),
        };
        let (b_batch, rows, n) = match *b {
            [ref batch @ .., k, n] => (batch, k, Some(n)),
            [k] => (&[][..], k, None),
            [] => return Err(scalar().into()),
        };
        if rows != k {
            return Err(contraction(&k.to_string(), &rows.to_string()).into());
        }
        let batch = broadcast_static(&[a_batch, b_batch])
            .ok_or_else(|| Decline::invalid("the leading axes of the operands do not broadcast"))?;
        let strides = |own: &[usize]| -> Result<Strides, Decline> {
            let dense = crate::tensor::strides_of(own).unwrap_or_else(|| own.iter().map(|_| 0).collect());
            Ok(StridedView::new(own, &dense, 0)?.broadcast_to(&batch)?.strides().into())
        };
        let (a_strides, b_strides) = (strides(a_batch)?, strides(b_batch)?);
        let shape = batch.iter().copied().chain(m).chain(n).collect();
        Ok(MatMulLayout { m: m.unwrap_or(1), k, n: n.unwrap_or(1), batch, shape, a_strides, b_strides })
    }

    /// Returns the number of multiplications.
    pub fn work(&self) -> u64 {
        let count = product(&self.shape).and_then(|count| count.checked_mul(self.k.max(1)));
        count.map_or(u64::MAX, |count| count as u64)
    }

    /// Computes all products in order. The caller has charged memory and work.
    pub fn multiply<T: Ring>(&self, a: &[T], b: &[T]) -> Vec<T> {
        let mut c = vec![T::default(); product(&self.shape).unwrap_or(0)];
        self.each(&mut c, |at_a, at_b, c| {
            let a = a.get(at_a * self.m * self.k..).unwrap_or_default();
            let b = b.get(at_b * self.k * self.n..).unwrap_or_default();
            multiply_add(self.m, self.k, self.n, Matrix::dense(a, self.k), Matrix::dense(b, self.n), c);
        });
        c
    }

    /// Calls `visit` with the indices of the matrices of `A` and `B`, and the slice of their product.
    pub fn each<T>(&self, c: &mut [T], mut visit: impl FnMut(usize, usize, &mut [T])) {
        if c.is_empty() {
            return;
        }
        let mut indices = Indices::new(&self.batch);
        for c in c.chunks_exact_mut(self.m * self.n) {
            let Some(index) = indices.advance() else { return };
            let at = |strides: &[isize]| -> usize {
                index.iter().zip(strides).map(|(&at, &stride)| at * stride.unsigned_abs()).sum()
            };
            visit(at(&self.a_strides), at(&self.b_strides), c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::bodies::Bodies;
    use crate::ops::single::Single;
    use crate::tensor::Tensor;

    #[test]
    fn shapes_of_products() {
        let infer = |a: &str, b: &str| Single::new("MatMul", 13).input(DType::Float, a).input(DType::Float, b).infer();
        assert_eq!(infer("M K", "K N"), ["float[M, N]"]);
        assert_eq!(infer("K", "K N"), ["float[N]"]);
        assert_eq!(infer("B M K", "K"), ["float[B, M]"]);
        assert_eq!(infer("4", "4"), ["float[]"]);
        assert_eq!(infer("B 1 2 3", "5 3 4"), ["float[B, 5, 2, 4]"]);
        assert_eq!(infer("0 2 3", "1 3 4"), ["float[0, 2, 4]"]);
        assert!(infer("2 3", "4 5")[0].starts_with("invalid"));
        assert!(infer("", "4 5")[0].starts_with("invalid"));
        assert_eq!(Single::new("MatMul", 13).unranked(DType::Double).input(DType::Double, "3").infer(), ["double"]);
    }

    #[test]
    fn products_of_every_kind_of_number() {
        let ints = Single::new("MatMul", 9).values(&[2, 2], &[1i32, -2, i32::MAX, 3]).values(&[2, 1], &[5i32, 7]);
        assert_eq!(ints.integers(), [-9, i64::from(i32::MAX.wrapping_mul(5).wrapping_add(21))]);
        let halves = Single::new("MatMul", 1)
            .values(&[1, 2], &[half::f16::from_f32(2048.0), half::f16::ONE])
            .values(&[2], &[half::f16::ONE, half::f16::ONE]);
        assert_eq!(halves.floats(), [2048.0]);
        let batch = Single::new("MatMul", 13)
            .values(&[2, 1, 2], &[1.0f64, 2.0, 3.0, 4.0])
            .values(&[2, 1, 2, 1], &[1.0f64, 10.0, 100.0, 1000.0]);
        assert_eq!(batch.floats(), [21.0, 43.0, 2100.0, 4300.0]);
        let empty = Single::new("MatMul", 13).values::<f32>(&[2, 0], &[]).values::<f32>(&[0, 2], &[]);
        assert_eq!(empty.floats(), [0.0; 4]);
        let huge = Single::new("MatMul", 13).values::<f32>(&[1 << 40, 0, 3], &[]).values::<f32>(&[3, 0], &[]);
        assert_eq!(huge.eval().unwrap()[0].shape(), [1 << 40, 0, 0]);
    }

    /// `-∞ + ∞` is NaN, but not if the processor adds an unrounded product of finite numbers.
    #[test]
    fn products_that_overflow_decline() {
        let of = |a: [f32; 2], b: [f32; 2]| Single::new("MatMul", 13).values(&[1, 2], &a).values(&[2, 1], &b);
        assert!(matches!(of([-1e30, 3e38], [1e19, 1e19]).eval(), Err(Decline::Unsupported(_))));
        assert_eq!(of([f32::NEG_INFINITY, 3.0], [1.0, 2.0]).floats(), [f64::NEG_INFINITY]);
        assert!(of([f32::INFINITY, f32::INFINITY], [1.0, -1.0]).floats()[0].is_nan());
        let gemm = Single::new("Gemm", 13).values(&[1, 2], &[-1e30f32, 3e38]).values(&[2, 1], &[1e19f32, 1e19]);
        assert!(gemm.eval().is_err());
    }

    #[test]
    fn mismatched_operands_decline() {
        let shapes = Single::new("MatMul", 13).values(&[2], &[1.0f32, 2.0]).values(&[3], &[1.0f32, 2.0, 3.0]);
        assert!(matches!(shapes.eval(), Err(Decline::Invalid(_))));
        let types = Single::new("MatMul", 13).values(&[1], &[1.0f32]).values(&[1], &[1.0f64]);
        assert!(matches!(types.eval(), Err(Decline::Invalid(_))));
    }

    #[test]
    fn sizes_go_through_products() {
        let mut b = Bodies::new(13);
        let main = b.main();
        b.input("x", DType::Float, "N S");
        b.node(main, "Shape", "x", "sizes", &[]);
        b.constant(main, "w", Tensor::from_vec(&[2, 2], vec![1i64, 2, 0, 1]).unwrap());
        b.constant(main, "u", Tensor::vector(vec![3i64, 4]));
        b.node(main, "MatMul", "sizes w", "turned", &[]);
        b.node(main, "MatMul", "w sizes", "mixed", &[]);
        b.node(main, "MatMul", "sizes u", "total", &[]);
        assert_eq!(
            b.facts("turned mixed total"),
            ["int64[2]={N,2*N + S}", "int64[2]={N + 2*S,S}", "int64[]={3*N + 4*S}"]
        );
    }
}
