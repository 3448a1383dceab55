//! What transformers are made of: attention in its forms, rotary embeddings, causal convolutions and gated activations.

mod causal_conv;
mod dot_product;
mod flex;
mod heads;
mod linear;
mod rotary;
mod swiglu;

use super::Operator;

pub(super) const OPERATORS: &[Operator] = &[
    dot_product::ATTENTION,
    flex::FLEX_ATTENTION,
    linear::LINEAR_ATTENTION,
    rotary::ROTARY_EMBEDDING,
    causal_conv::CAUSAL_CONV_WITH_STATE,
    swiglu::SWIGLU,
];
