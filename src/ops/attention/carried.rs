//! The shapes of operators that carry a state or turn what they are given.
//!
//! | operator | shapes |
//! | --- | --- |
//! | RotaryEmbedding 23 | as X |
//! | CausalConvWithState 27 | as the input; state `[batch, channels, kernel − 1]` |
//! | LinearAttention 27 | `[batch, length, q heads · v size]`; state `[batch, kv heads, k size, v size]` |
//! | FlexAttention (preview) 1 | Q's with the last dim of V |

use super::shapes::head_count;
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Refusal};

pub(super) fn infer_rotary(cx: &mut InferCx<'_>) -> InferResult {
    let x = cx.required(0)?;
    if let Some(rank @ (0..=2 | 5..)) = x.rank() {
        return Err(Refusal::invalid(format!("X has rank {rank}")));
    }
    Ok(vec![Fact::tensor(x.dtype(), x.shape().map(<[Dim]>::to_vec))])
}

pub(super) fn infer_causal_conv(cx: &mut InferCx<'_>) -> InferResult {
    let input = cx.required(0)?;
    let (dtype, shape) = (input.dtype(), input.shape().map(<[Dim]>::to_vec));
    let past = cx.shape(3).map(<[Dim]>::to_vec);
    let state = match (shape.as_deref(), cx.shape(1)) {
        (Some([batch, channels, _]), Some([.., kernel])) => {
            Some(vec![batch.clone(), channels.clone(), cx.scope().sub(kernel, &Dim::constant(1))])
        }
        (Some([batch, channels, _]), None) if past.is_none() => {
            Some(vec![batch.clone(), channels.clone(), cx.fresh_dim()])
        }
        _ => past,
    };
    Ok(vec![Fact::tensor(dtype, shape), Fact::tensor(dtype, state)])
}

pub(super) fn infer_linear(cx: &mut InferCx<'_>) -> InferResult {
    let (q_heads, kv_heads) = (head_count(cx, "q_num_heads")?, head_count(cx, "kv_num_heads")?);
    if q_heads % kv_heads != 0 {
        return Err(Refusal::invalid(format!("{q_heads} heads of Q do not share {kv_heads} of K and V evenly")));
    }
    let dtype = cx.dtype(0);
    let state_dtype = if cx.has_input(3) { cx.dtype(3) } else { dtype };
    let (batch, length) = match [0, 1, 2].into_iter().find_map(|i| cx.shape(i)) {
        Some([batch, length, _]) => (batch.clone(), length.clone()),
        Some(shape) => return Err(Refusal::invalid(format!("an operand has rank {}, not 3", shape.len()))),
        None => (cx.fresh_dim(), cx.fresh_dim()),
    };
    let last = |i: usize| cx.shape(i).and_then(|shape| shape.get(2));
    let per_head = |hidden: &Dim, heads: i64| cx.scope().floor_div(hidden, &Dim::constant(heads));
    let k_size = last(0).map(|hidden| per_head(hidden, q_heads)).or(last(1).map(|hidden| per_head(hidden, kv_heads)));
    let v_size = last(2).map(|hidden| per_head(hidden, kv_heads)).unwrap_or_else(|| cx.fresh_dim());
    let hidden = match last(2) {
        Some(hidden) => cx.scope().mul(hidden, &Dim::constant(q_heads / kv_heads)),
        None => cx.scope().mul(&v_size, &Dim::constant(q_heads)),
    };
    let k_size = k_size.unwrap_or_else(|| cx.fresh_dim());
    Ok(vec![
        Fact::tensor(dtype, Some(vec![batch.clone(), length, hidden])),
        Fact::tensor(state_dtype, Some(vec![batch, Dim::constant(kv_heads), k_size, v_size])),
    ])
}

pub(super) fn infer_flex(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.shape(0), cx.shape(2)) {
        (Some([batch, heads, length, _]), v) => {
            let size = match v {
                Some([_, _, _, size]) => size.clone(),
                _ => cx.fresh_dim(),
            };
            Some(vec![batch.clone(), heads.clone(), length.clone(), size])
        }
        (Some(shape), _) => return Err(Refusal::invalid(format!("Q has rank {}, not 4", shape.len()))),
        (None, _) => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}
