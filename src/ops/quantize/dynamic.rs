//! DynamicQuantizeLinear: quantizes to uint8 by the range of the data.
//!
//! | | |
//! |---|---|
//! | computes | with `low = min(0, min x)`, `high = max(0, max x)`: `y_scale = (high − low) / 255`, `y_zero_point = round(−low / y_scale)`, `y = saturate(round(x / y_scale) + y_zero_point)`, all in binary32 |
//! | versions | 11 |
//! | not evaluated | constant-zero data, for which implementations choose different scales; NaN and infinities |

use crate::ir::Fact;
use crate::ops::lane::read;
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{DType, Tensor};

pub(super) const DYNAMIC_QUANTIZE_LINEAR: Operator =
    Operator::new("DynamicQuantizeLinear", &[11], infer, eval).with(Traits::NONE.inferred_by_shapes());

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![
        Fact::tensor(Some(DType::Uint8), cx.shape(0).map(<[_]>::to_vec)),
        Fact::tensor(Some(DType::Float), Some(Vec::new())),
        Fact::tensor(Some(DType::Uint8), Some(Vec::new())),
    ])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    cx.claim(DType::Uint8, x.shape())?;
    cx.budget().take_work(x.len() as u64)?;
    let values = match x.dtype() {
        DType::Float => read::<f32>(x)?,
        other => return Err(Decline::invalid(format!("the type of an operand is {other}"))),
    };
    if values.iter().any(|x| !x.is_finite()) {
        return Err(Decline::unsupported("'x' contains NaN or an infinity"));
    }
    let low = values.iter().fold(0.0f32, |low, &x| low.min(x));
    let high = values.iter().fold(0.0f32, |high, &x| high.max(x));
    let scale = (high - low) / 255.0;
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Decline::unsupported(
            "the range of 'x' is 0 or too large, for which implementations compute different scales",
        ));
    }
    let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even();
    let code = |&x: &f32| ((x / scale).round_ties_even() + zero).clamp(0.0, 255.0) as u8;
    let codes: Vec<u8> = values.iter().map(code).collect();
    Ok(vec![
        Tensor::from_vec(x.shape(), codes)?.into(),
        Tensor::scalar(scale).into(),
        Tensor::scalar(zero as u8).into(),
    ])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn the_range_includes_zero() {
        let node = |x: &[f32]| Single::new("DynamicQuantizeLinear", 11).values(&[x.len()], x).output().output();
        let results = node(&[1.0, 2.0, -3.3]).eval().unwrap();
        assert_eq!(results[0].to_i64s().unwrap(), [207, 255, 0]);
        assert_eq!(results[1].to_f64s().unwrap(), [f64::from(5.3f32 / 255.0)]);
        assert_eq!(results[2].to_i64s().unwrap(), [159]);
        assert!(node(&[0.0, 0.0]).eval().is_err());
        assert!(node(&[1.0, f32::NAN]).eval().is_err());
        let shapes = Single::new("DynamicQuantizeLinear", 11).input(DType::Float, "N 2").output().output();
        assert_eq!(shapes.infer(), ["uint8[N, 2]", "float[]", "uint8[]"]);
    }
}
