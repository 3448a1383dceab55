//! Gemm: `Y = α·A'·B' + β·C`.
//!
//! | | |
//! |---|---|
//! | computes | `A'` is `A` or its transpose (`transA`), of shape `[M, K]`; `B'` likewise `[K, N]`; `C` broadcasts to `[M, N]` |
//! | versions | 1, 6: `C` broadcasts only if `broadcast` is set; 7: always; 9 adds integers of 32 and 64 bits; 11: `C` is optional; 13 adds bfloat16 |
//! | integers | wrap; `α` and `β` must be whole numbers |
//! | rejects | operands of another rank than 2, contracted dims that differ, a `C` that does not broadcast |

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::broadcast::Broadcast;
use crate::ops::lane::{Lane, Ring, read, same_dtype};
use crate::ops::linear::product::{Matrix, multiply_add, settled, stays_finite};
use crate::ops::traits::{Traits, turned_product};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

pub(super) const GEMM: Operator = Operator::new("Gemm", &[1, 6, 7, 9, 11, 13], infer, eval)
    .with(Traits::NONE.fused_with_next().bilinear().macs(turned_product).inferred_by_shapes());

/// The attributes.
struct Gemm {
    alpha: f32,
    beta: f32,
    transpose_a: bool,
    transpose_b: bool,
}

impl Gemm {
    fn read(site: &Site<'_>) -> Result<Gemm, Refusal> {
        Ok(Gemm {
            alpha: site.attr_float("alpha")?.unwrap_or(1.0),
            beta: site.attr_float("beta")?.unwrap_or(1.0),
            transpose_a: site.attr_flag("transA", false)?,
            transpose_b: site.attr_flag("transB", false)?,
        })
    }
}

/// Returns rows and columns of an operand after its transposition.
fn oriented<T: Clone>(shape: &[T], transpose: bool) -> Result<(T, T), Refusal> {
    match shape {
        [rows, columns] if transpose => Ok((columns.clone(), rows.clone())),
        [rows, columns] => Ok((rows.clone(), columns.clone())),
        _ => Err(Refusal::invalid(format!("an operand of Gemm has rank {} instead of 2", shape.len()))),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0).or(cx.dtype(1)).or(cx.dtype(2));
    let shape = shape_of(cx, [0, 1, 2])?;
    if cx.version >= 7
        && let Some(c) = cx.shape(2)
    {
        let scope = cx.scope();
        let differs = |(dim, c): (&Dim, &Dim)| scope.eq(c, &Dim::constant(1)).is_no() && scope.eq(dim, c).is_no();
        if c.len() > shape.len() || shape.iter().rev().zip(c.iter().rev()).any(differs) {
            return Err(Refusal::invalid("'C' does not broadcast to the shape of the product"));
        }
    }
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

/// Infers the shape `[M, N]` of `A'·B' + C` for these operands, with `A` and `B` transposed as the attributes
/// require.
///
/// # Errors
/// `A` and `B` are not both of rank 2, or the contracted dims differ.
pub(in crate::ops) fn shape_of(cx: &InferCx<'_>, [a, b, c]: [usize; 3]) -> Result<Vec<Dim>, Refusal> {
    let gemm = Gemm::read(cx)?;
    let a = cx.shape(a).map(|shape| oriented(shape, gemm.transpose_a)).transpose()?;
    let b = cx.shape(b).map(|shape| oriented(shape, gemm.transpose_b)).transpose()?;
    if let (Some((_, left)), Some((right, _))) = (&a, &b)
        && cx.scope().eq(left, right).is_no()
    {
        let (left, right) = (cx.scope().format(left), cx.scope().format(right));
        return Err(Refusal::invalid(format!("'A' has {left} columns, but 'B' has {right} rows")));
    }
    // If an operand has an unknown shape, `C` gives the dim unless it is broadcast.
    let from_c = |axis: usize| {
        let [.., rows, columns] = cx.shape(c)? else { return None };
        let dim = if axis == 0 { rows } else { columns };
        cx.scope().eq(dim, &Dim::constant(1)).is_no().then(|| dim.clone())
    };
    let rows = a.map(|(rows, _)| rows).or_else(|| from_c(0)).unwrap_or_else(|| cx.fresh_dim());
    let columns = b.map(|(_, columns)| columns).or_else(|| from_c(1)).unwrap_or_else(|| cx.fresh_dim());
    Ok(vec![rows, columns])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let gemm = Gemm::read(cx)?;
    let (a, b, c) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional_tensor(2)?);
    let dtype = a.dtype();
    same_dtype(dtype, &[b])?;
    let (m, k) = oriented(a.shape(), gemm.transpose_a)?;
    let (rows, n) = oriented(b.shape(), gemm.transpose_b)?;
    if rows != k {
        return Err(Decline::invalid(format!("'A' has {k} columns, but 'B' has {rows} rows")));
    }
    cx.claim(dtype, &[m, n])?;
    cx.budget().take_work([m, k.max(1), n].iter().fold(1, |work: u64, &dim| work.saturating_mul(dim as u64)))?;
    let scaled = Scaled { gemm: &gemm, a, b, c: stretched(cx, c, dtype, m, n)?, m, k, n };
    Ok(vec![
        match dtype {
            DType::Float | DType::Float16 | DType::Bfloat16 => scaled.real::<f32>()?,
            DType::Double => scaled.real::<f64>()?,
            DType::Int32 | DType::Uint32 => scaled.whole::<u32>(|value| value as u32)?,
            DType::Int64 | DType::Uint64 => scaled.whole::<u64>(|value| value as u64)?,
            other => return Err(Decline::unsupported(format!("the element type {other} is not supported"))),
        }
        .into(),
    ])
}

/// `C` with its broadcast to the result.
type Stretched<'a> = Option<(&'a Tensor, Broadcast<2>)>;

fn stretched<'a>(
    cx: &EvalCx<'_>,
    c: Option<&'a Tensor>,
    dtype: DType,
    m: usize,
    n: usize,
) -> Result<Stretched<'a>, Decline> {
    let Some(c) = c else {
        return if cx.version >= 11 { Ok(None) } else { Err(Decline::invalid("the operand 'C' is missing")) };
    };
    same_dtype(dtype, &[c])?;
    if cx.version < 7 && !cx.attr_flag("broadcast", false)? && c.shape() != [m, n] {
        return Err(Decline::invalid("'C' does not have the shape of A·B, and attribute 'broadcast' is not set"));
    }
    match Broadcast::new([&[m, n], c.shape()]) {
        Some(way) if way.shape() == [m, n] => Ok(Some((c, way))),
        _ => Err(Decline::invalid(format!("'C' has shape {:?}, which does not broadcast to [{m}, {n}]", c.shape()))),
    }
}

struct Scaled<'a> {
    gemm: &'a Gemm,
    a: &'a Tensor,
    b: &'a Tensor,
    c: Stretched<'a>,
    m: usize,
    k: usize,
    n: usize,
}

impl Scaled<'_> {
    fn product<T: Ring>(&self) -> Result<Vec<T>, Decline> {
        fn laid<T: Ring>(data: &[T], transpose: bool, rows: usize, columns: usize) -> Matrix<'_, T> {
            if transpose { Matrix::transposed(data, rows) } else { Matrix::dense(data, columns) }
        }
        let (a, b) = (read::<T>(self.a)?, read::<T>(self.b)?);
        let mut y = vec![T::default(); self.m * self.n];
        let a = laid(&a, self.gemm.transpose_a, self.m, self.k);
        let b = laid(&b, self.gemm.transpose_b, self.k, self.n);
        multiply_add(self.m, self.k, self.n, a, b, &mut y);
        Ok(y)
    }

    /// Computes `y = α·y + β·c` in place.
    fn scale<T: Ring>(&self, y: &mut [T], alpha: T, beta: T, c: Option<&[T]>) {
        if alpha != T::one() {
            y.iter_mut().for_each(|y| *y = y.times(alpha));
        }
        let (Some((_, way)), Some(c)) = (&self.c, c) else { return };
        way.runs(0..way.len(), |run, [_, from]| {
            let (Some(y), Some(c)) = (y.get_mut(run), c.get(from)) else { return };
            match c {
                [c] => y.iter_mut().for_each(|y| *y = y.plus(beta.times(*c))),
                c => y.iter_mut().zip(c).for_each(|(y, &c)| *y = y.plus(beta.times(c))),
            }
        });
    }

    fn real<T: Lane>(self) -> Result<Tensor, Decline> {
        let mut y = self.product::<T>()?;
        let c = self.c.as_ref().map(|(c, _)| read::<T>(c)).transpose()?;
        if self.gemm.beta == 0.0 && c.iter().flat_map(|c| c.iter()).any(|c| !c.to_f64().is_finite()) {
            return Err(Decline::unsupported("'beta' is 0 and 'C' contains infinities or NaN, which runtimes ignore"));
        }
        // Kernels apply a factor to the operands, to the product, or to both sums together.
        let [alpha, beta] = [self.gemm.alpha, self.gemm.beta].map(|factor| Tensor::scalar(factor.abs().max(1.0)));
        if self.gemm.alpha.abs() != 1.0 {
            stays_finite(self.k, &[self.a, self.b, &alpha])?;
        }
        if let Some((c, _)) = self.c.as_ref().filter(|_| ![0.0, 1.0].contains(&self.gemm.beta.abs())) {
            stays_finite(1, &[c, &beta])?;
        }
        let c = c.as_deref().filter(|_| self.gemm.beta != 0.0);
        self.scale(&mut y, T::of(self.gemm.alpha.into()), T::of(self.gemm.beta.into()), c);
        settled(self.k, [self.a, self.b], T::write(self.a.dtype(), &[self.m, self.n], y)?)
    }

    fn whole<T: Ring>(self, of: impl Fn(i64) -> T) -> Result<Tensor, Decline> {
        // Integers of this size are exact in binary32 and fit all types.
        let whole = |factor: f32| {
            let small = factor.fract() == 0.0 && factor.abs() < 16_777_216.0;
            if small {
                Ok(of(factor as i64))
            } else {
                Err(Decline::unsupported("'alpha' or 'beta' is not an integer, but the operands are integers"))
            }
        };
        let (alpha, beta) = (whole(self.gemm.alpha)?, whole(self.gemm.beta)?);
        let mut y = self.product::<T>()?;
        let c = self.c.as_ref().map(|(c, _)| read::<T>(c)).transpose()?;
        self.scale(&mut y, alpha, beta, c.as_deref());
        T::write(self.a.dtype(), &[self.m, self.n], y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    #[test]
    fn shapes() {
        let gemm = || Single::new("Gemm", 11);
        assert_eq!(gemm().input(DType::Float, "M K").input(DType::Float, "K N").infer(), ["float[M, N]"]);
        let turned = gemm().with("transA", 1).with("transB", 1);
        assert_eq!(turned.input(DType::Float, "3 M").input(DType::Float, "5 3").infer(), ["float[M, 5]"]);
        let from_c = gemm().unranked(DType::Float).input(DType::Float, "2 3").input(DType::Float, "7 1");
        assert_eq!(from_c.infer(), ["float[7, 3]"]);
        assert!(gemm().input(DType::Float, "1 2").input(DType::Float, "3 4").infer()[0].starts_with("invalid"));
        assert!(gemm().input(DType::Float, "1 2 3").input(DType::Float, "3 4").infer()[0].starts_with("invalid"));
        let with = |c: &str| {
            let node = gemm().input(DType::Float, "M 3").input(DType::Float, "3 5").input(DType::Float, c);
            node.infer().remove(0)
        };
        for c in ["", "1", "5", "K", "7 1", "1 5"] {
            assert_eq!(with(c), "float[M, 5]");
        }
        for c in ["4", "M 4", "1 1 1", "0"] {
            assert!(with(c).starts_with("invalid"), "{c}");
        }
    }

    #[test]
    fn values() {
        let gemm = |version| {
            Single::new("Gemm", version).values(&[1, 2], &[1.0f32, 2.0]).values(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])
        };
        assert_eq!(gemm(11).floats(), [7.0, 10.0]);
        assert_eq!(gemm(11).with("transB", 1).with_float("alpha", 0.5).floats(), [2.5, 5.5]);
        assert_eq!(gemm(7).values(&[], &[8.0f32]).with_float("beta", 0.5).floats(), [11.0, 14.0]);
        assert_eq!(gemm(13).values(&[2], &[1.0f32, -1.0]).floats(), [8.0, 9.0]);
        assert!(gemm(7).eval().is_err());
        assert!(gemm(6).values(&[], &[8.0f32]).eval().is_err());
        assert_eq!(gemm(6).values(&[], &[8.0f32]).with("broadcast", 1).floats(), [15.0, 18.0]);
        let ints = Single::new("Gemm", 9).values(&[1, 1], &[3i32]).values(&[1, 1], &[-4i32]).values(&[1], &[5i32]);
        assert_eq!(ints.with_float("alpha", -2.0).floats(), [29.0]);
    }
}
