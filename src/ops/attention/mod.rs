//! Attention and the operators that go with it.
//!
//! | operator | versions | file |
//! | --- | --- | --- |
//! | Attention | 23; 24 adds `nonpad_kv_seqlen`; 25 adds windows | [`scaled`] (values), [`shapes`] |
//! | RotaryEmbedding, CausalConvWithState, LinearAttention, FlexAttention | 23, 27, 27, preview 1; not evaluated | [`carried`] |

mod carried;
mod heads;
mod mask;
mod scaled;
mod shapes;

use super::Operator;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Attention", &[23, 24, 25], shapes::infer, scaled::eval),
    Operator::infer_only("RotaryEmbedding", &[23], carried::infer_rotary),
    Operator::infer_only("CausalConvWithState", &[27], carried::infer_causal_conv),
    Operator::infer_only("LinearAttention", &[27], carried::infer_linear),
    Operator::infer_only("FlexAttention", &[1], carried::infer_flex).in_domain("ai.onnx.preview"),
];
