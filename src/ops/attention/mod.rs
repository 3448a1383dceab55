//! Attention and related operators.
//!
//! | operator | versions | file |
//! | --- | --- | --- |
//! | Attention | 23; 24 adds `nonpad_kv_seqlen`; 25 adds windows | [`scaled`] (values), [`shapes`] |
//! | FlexAttention | preview 1 | [`flex`] |
//! | LinearAttention | 27 | [`linear`] |
//! | RotaryEmbedding | 23 | [`rotary`] |
//! | CausalConvWithState | 27 | [`causal_conv`] |

mod causal_conv;
mod flex;
mod heads;
mod layout;
mod linear;
mod mask;
mod rotary;
mod scaled;
mod shapes;

use super::Operator;
use super::traits::Traits;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Attention", &[23, 24, 25], shapes::infer, scaled::eval).with(Traits::NONE.macs(shapes::macs)),
    flex::FLEX_ATTENTION,
    linear::LINEAR_ATTENTION,
    rotary::ROTARY_EMBEDDING,
    causal_conv::CAUSAL_CONV_WITH_STATE,
];
