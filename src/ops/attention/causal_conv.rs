//! CausalConvWithState: a depthwise causal convolution with a state of past elements.
//!
//! | | |
//! |---|---|
//! | computes | each channel with separate `k` taps: `y[p] = bias + Σ x[p − k + 1 + t]·w[t]`, then `y·σ(y)` if `activation` is `silu` or `swish` |
//! | past | `past_state`, or zeros, precedes the input; `present_state` is the last `k − 1` elements of both together |
//! | shapes | `input [B, C, L]`, `weight [C, 1, k]`, `bias [C]`, states `[B, C, k − 1]` |
//! | versions | 27 |

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Ring, read, same_dtype};
use crate::ops::traits::{Traits, convolution};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};

pub(super) const CAUSAL_CONV_WITH_STATE: Operator =
    Operator::new("CausalConvWithState", &[27], infer, eval).with(Traits::NONE.macs(|view| convolution(view, 1)));

/// Returns `true` if the attribute `activation` selects SiLU.
fn read_activation(site: &Site<'_>) -> Result<bool, Refusal> {
    match site.attr_str("activation")? {
        None | Some("none") => Ok(false),
        Some("silu" | "swish") => Ok(true),
        Some(other) => Err(Refusal::invalid(format!("attribute 'activation' is '{other}', which is not valid"))),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    read_activation(cx)?;
    if [0, 1, 3].iter().any(|&at| cx.rank(at).is_some_and(|rank| rank != 3)) {
        return Err(Refusal::invalid("the rank of an operand is not 3"));
    }
    let dim = |at: usize, axis: usize| cx.shape(at).and_then(|shape| shape.get(axis)).cloned();
    if dim(1, 2).is_some_and(|taps| taps.is_const(0)) {
        return Err(Refusal::invalid("the kernel of 'W' is empty"));
    }
    let fresh = |dim: Option<Dim>| dim.unwrap_or_else(|| cx.fresh_dim());
    let batch = fresh(dim(0, 0).or(dim(3, 0)));
    let channels = fresh(dim(0, 1).or(dim(1, 0)).or(dim(2, 0)).or(dim(3, 1)));
    let kept = dim(1, 2).map(|taps| cx.scope().sub(&taps, &Dim::constant(1))).or(dim(3, 2));
    let dtype = cx.dtype(0).or(cx.dtype(1));
    Ok(vec![
        Fact::tensor(dtype, Some(vec![batch.clone(), channels.clone(), fresh(dim(0, 2))])),
        Fact::tensor(dtype, Some(vec![batch, channels, fresh(kept)])),
    ])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, w) = (cx.tensor(0)?, cx.tensor(1)?);
    let (bias, past) = (cx.optional_tensor(2)?, cx.optional_tensor(3)?);
    let silu = read_activation(cx)?;
    let dtype = x.dtype();
    same_dtype(dtype, &[w])?;
    let (&[batch, channels, length], &[of_weights, 1, taps]) = (x.shape(), w.shape()) else {
        return Err(Decline::invalid(format!(
            "the weights have shape {:?}, which does not fit the input of shape {:?}",
            w.shape(),
            x.shape()
        )));
    };
    if taps == 0 {
        return Err(Decline::invalid("the kernel of 'W' is empty"));
    }
    let state = [batch, channels, taps - 1];
    for (operand, shape) in [(bias, &[channels][..]), (past, &state)] {
        if let Some(operand) = operand {
            same_dtype(dtype, &[operand])?;
            if operand.shape() != shape {
                return Err(Decline::invalid(format!(
                    "an operand has shape {:?} instead of {shape:?}",
                    operand.shape()
                )));
            }
        }
    }
    if of_weights != channels {
        return Err(Decline::invalid(format!("the weights have {of_weights} channels, but the input has {channels}")));
    }
    cx.claim(dtype, x.shape())?;
    cx.claim(dtype, &state)?;
    cx.budget().take_work((x.len() as u64).saturating_mul(taps as u64))?;
    let (x_values, w_values) = (read::<f32>(x)?, read::<f32>(w)?);
    let bias = bias.map(read::<f32>).transpose()?;
    let past = past.map(read::<f32>).transpose()?;
    let mut y = Vec::with_capacity(x_values.len());
    let rows = if channels == 0 { 0 } else { batch * channels };
    let mut present = Vec::new();
    for row in 0..rows {
        let own = x_values.get(row * length..(row + 1) * length).unwrap_or_default();
        let weights = w_values.get(row % channels * taps..).and_then(|w| w.get(..taps)).unwrap_or_default();
        let mut padded = match &past {
            Some(past) => past.get(row * (taps - 1)..(row + 1) * (taps - 1)).unwrap_or_default().to_vec(),
            None => vec![0.0; taps - 1],
        };
        padded.extend_from_slice(own);
        let bias = bias.as_ref().and_then(|bias| bias.get(row % channels)).copied().unwrap_or(0.0);
        y.extend(padded.windows(taps).map(|window| {
            let sum = window.iter().zip(weights).fold(bias, |sum, (x, w)| sum + x * w);
            if silu { sum / (1.0 + libm::expf(-sum)) } else { sum }
        }));
        present.extend_from_slice(padded.get(length..).unwrap_or_default());
    }
    Ok(vec![f32::write(dtype, x.shape(), y)?.into(), f32::write(dtype, &state, present)?.into()])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let node =
            Single::new("CausalConvWithState", 27).output().input(DType::Float, "B C L").input(DType::Float, "C 1 4");
        assert_eq!(node.infer(), ["float[B, C, L]", "float[B, C, 3]"]);
        let without = Single::new("CausalConvWithState", 27).input(DType::Float, "B C L").input(DType::Float, "C 1 0");
        assert!(without.infer()[0].starts_with("invalid"));
    }

    #[test]
    fn the_past_comes_first() {
        let node = || {
            let node = Single::new("CausalConvWithState", 27).output();
            node.values(&[1, 1, 2], &[1.0f32, 2.0]).values(&[1, 1, 4], &[1.0f32, 10.0, 100.0, 1000.0])
        };
        let results = |node: Single| {
            let results = node.eval().unwrap();
            (results[0].to_f64s().unwrap(), results[1].to_f64s().unwrap())
        };
        assert_eq!(results(node()), (vec![1000.0, 2100.0], vec![0.0, 1.0, 2.0]));
        let past = node().values(&[1], &[0.5f32]).values(&[1, 1, 3], &[3.0f32, 4.0, 5.0]);
        assert_eq!(results(past), (vec![1543.5, 2154.5], vec![5.0, 1.0, 2.0]));
        assert_eq!(results(node().with_str("activation", "silu")).0, [1000.0, 2100.0]);
        assert!(node().with_str("activation", "relu").eval().is_err());
    }
}
