//! SwiGLU: a gate through Swish times a value.
//!
//! | | |
//! |---|---|
//! | computes | `Y = A·σ(α·A)·B`, element by element |
//! | shapes | all alike; there is no broadcasting |
//! | versions | 28 |

use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read, same_dtype};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};

pub(super) const SWIGLU: Operator = Operator::new("SwiGLU", &[28], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.shape(0), cx.shape(1)) {
        (Some(a), Some(b)) => {
            if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| cx.scope().eq(a, b).is_no()) {
                return Err(Refusal::invalid("the gate and the value have different shapes"));
            }
            let known = a.iter().zip(b).map(|(a, b)| if b.as_const().is_some() { b.clone() } else { a.clone() });
            Some(known.collect())
        }
        (a, b) => a.or(b).map(<[_]>::to_vec),
    };
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(1)), shape)])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    same_dtype(a.dtype(), &[b])?;
    if a.shape() != b.shape() {
        return Err(Decline::invalid("the gate and the value have different shapes"));
    }
    let alpha = f64::from(cx.attr_float("alpha")?.unwrap_or(1.0));
    cx.claim(a.dtype(), a.shape())?;
    cx.budget().take_work(a.len() as u64)?;
    in_lane!(a.dtype(), T => {
        let (gates, values) = (read::<T>(a)?, read::<T>(b)?);
        let swish = |gate: f64| gate / (1.0 + libm::exp(-alpha * gate));
        let y = gates.iter().zip(values.iter()).map(|(gate, value)| T::of(swish(gate.to_f64()) * value.to_f64()));
        Ok(vec![T::write(a.dtype(), a.shape(), y.collect())?.into()])
    })
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn values_and_shapes() {
        let node = Single::new("SwiGLU", 28).values(&[2], &[0.0f64, 2.0]).values(&[2], &[5.0f64, 3.0]);
        let found = node.with_float("alpha", 0.5).floats();
        assert!(found[0] == 0.0 && (found[1] - 6.0 / (1.0 + (-1.0f64).exp())).abs() < 1e-12);
        let shape = Single::new("SwiGLU", 28).input(DType::Float, "N 4").input(DType::Float, "N 4");
        assert_eq!(shape.infer(), ["float[N, 4]"]);
    }
}
