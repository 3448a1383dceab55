//! GlobalMaxPool, GlobalAveragePool, GlobalLpPool: reduce each channel to one number.
//!
//! | | |
//! |---|---|
//! | computes | `[N, C, D…]` to `[N, C, 1…]`: the maximum, the mean, `(Σ │x│ᵖ)^(1/p)` |
//! | versions | 1; GlobalLpPool 2: `p` is an INT; 22 adds bfloat16 |
//! | not evaluated | channels without elements; the maximum of NaN, on which runtimes differ |

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read};
use crate::ops::linear::stays_finite;
use crate::ops::pool::windowed::{norm, powers_stay_finite, read_norm};
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};

pub(super) const GLOBAL_MAX_POOL: Operator =
    Operator::new("GlobalMaxPool", &[1, 22], infer, eval_max).with(Traits::NONE.inferred_by_shapes());
pub(super) const GLOBAL_AVERAGE_POOL: Operator = Operator::new("GlobalAveragePool", &[1, 22], infer, eval_average)
    .with(Traits::NONE.homogeneous().inferred_by_shapes());
pub(super) const GLOBAL_LP_POOL: Operator =
    Operator::new("GlobalLpPool", &[1, 2, 22], infer, eval_lp).with(Traits::NONE.inferred_by_shapes());

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match cx.shape(0) {
        None => None,
        Some([n, c, spatial @ ..]) => {
            let ones = spatial.iter().map(|_| Dim::constant(1));
            Some([n, c].into_iter().cloned().chain(ones).collect())
        }
        Some(shape) => {
            return Err(Refusal::invalid(format!("the rank of 'X' is {}, which is less than 3", shape.len())));
        }
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

fn eval_max(cx: &mut EvalCx<'_>) -> EvalResult {
    each_channel(cx, |values| {
        let mut best = f64::NEG_INFINITY;
        for value in values {
            if value.is_nan() {
                return Err(Decline::unsupported("'X' contains NaN, for which runtimes return different maxima"));
            }
            best = best.max(value);
        }
        if best.is_finite() || best > 0.0 {
            Ok(best)
        } else {
            Err(Decline::unsupported("a maximum is −∞, for which runtimes return different values"))
        }
    })
}

fn eval_average(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    stays_finite(x.len(), &[x])?;
    each_channel(cx, |values| {
        let count = values.len() as f64;
        Ok(values.sum::<f64>() / count)
    })
}

fn eval_lp(cx: &mut EvalCx<'_>) -> EvalResult {
    let p = read_norm(cx)?;
    powers_stay_finite(cx.tensor(0)?, p)?;
    each_channel(cx, |values| Ok(norm(p, values)))
}

/// Reduces each channel to one number, from its elements in order.
fn each_channel(
    cx: &EvalCx<'_>,
    reduce: impl Fn(&mut dyn ExactSizeIterator<Item = f64>) -> Result<f64, Decline>,
) -> EvalResult {
    let x = cx.tensor(0)?;
    let [n, c, spatial @ ..] = x.shape() else {
        return Err(Decline::invalid(format!("the rank of 'X' is {}, which is less than 3", x.rank())));
    };
    let elements = crate::tensor::product(spatial).unwrap_or(0);
    if elements == 0 {
        return Err(Decline::unsupported("a spatial dim of 'X' is 0"));
    }
    let shape: Vec<usize> = [*n, *c].into_iter().chain(spatial.iter().map(|_| 1)).collect();
    cx.claim(x.dtype(), &shape)?;
    cx.budget().take_work(x.len() as u64)?;
    in_lane!(x.dtype(), T => {
        let values = read::<T>(x)?;
        let channels = values.chunks_exact(elements);
        let results = channels.map(|channel| reduce(&mut channel.iter().map(|x| x.to_f64())).map(T::of));
        Ok(vec![T::write(x.dtype(), &shape, results.collect::<Result<Vec<T>, Decline>>()?)?.into()])
    })
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let infer = |op_type: &str, shape: &str| Single::new(op_type, 1).input(DType::Float, shape).infer().remove(0);
        assert_eq!(infer("GlobalMaxPool", "N C H W"), "float[N, C, 1, 1]");
        assert_eq!(infer("GlobalLpPool", "N C"), "float[N, C]");
        assert!(infer("GlobalAveragePool", "N").starts_with("invalid"));
    }

    #[test]
    fn values() {
        let node = |op_type: &str, opset| Single::new(op_type, opset).values(&[1, 2, 2], &[3.0f32, -4.0, 1.0, 2.0]);
        assert_eq!(node("GlobalMaxPool", 1).floats(), [3.0, 2.0]);
        assert_eq!(node("GlobalAveragePool", 22).floats(), [-0.5, 1.5]);
        assert_eq!(node("GlobalLpPool", 2).floats()[0], 5.0);
        assert_eq!(node("GlobalLpPool", 1).with_float("p", 1.0).floats(), [7.0, 3.0]);
        assert!(Single::new("GlobalMaxPool", 1).values(&[1, 1, 1], &[f32::NAN]).eval().is_err());
        assert!(Single::new("GlobalMaxPool", 1).values::<f32>(&[1, 1, 0], &[]).eval().is_err());
    }
}
