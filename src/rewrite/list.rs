//! All rules, in the order in which the driver tries them. No rule imports this file.

use super::rule::Rule;
use super::{
    axes, batches, containers, dequantized, fuse, identity, index, inserted, lanes, lift, movement, neutral, sizes,
    slices, split, stacked, strided_slice,
};

/// Every rule, in the order they are tried at a node.
#[rustfmt::skip]
pub const RULES: &[&[Rule]] = &[
    identity::RULES,
    neutral::RULES,
    containers::RULES,
    index::RULES,
    sizes::RULES,
    slices::apart::RULES,
    slices::split::RULES,
    slices::elementwise::RULES,
    movement::RULES,
    movement::weights::RULES,
    axes::RULES,
    inserted::RULES,
    dequantized::RULES,
    lift::RULES,
    batches::RULES,
    strided_slice::RULES,
    fuse::activation::RULES,
    fuse::normalization::RULES,
    fuse::divided::RULES,
    fuse::scaled_attention::RULES,
    fuse::rotary::RULES,
    fuse::heads::RULES,
    fuse::zero_term::RULES,
    fuse::gemm::RULES,
    fuse::pad::RULES,
    fuse::weights::RULES,
];

/// The rules that run when no other rule applies any more, in phases. They split or hide patterns that earlier phases match.
#[rustfmt::skip]
pub const LATE_RULES: &[&[&[Rule]]] = &[
    &[slices::elementwise::LATE_RULES, fuse::factor::RULES, fuse::token::RULES, fuse::table::RULES, index::number::RULES, index::LATE_RULES],
    &[split::RULES, stacked::RULES, lanes::RULES, fuse::parallel::RULES, slices::places::RULES, index::LAST_RULES, fuse::apart::RULES, fuse::mask::RULES,
      fuse::rows::RULES],
    &[index::FRONT_RULES, fuse::stream::RULES],
];

/// The rules that run only on request, by name or with `--opset`. Their operators are in the standard, but not every consumer of the opset
/// has kernels for them.
pub const ASKED_FOR: &[&str] = &["spelled-attention", "attention-heads", "attention-of-parts", "attention-groups"];

/// Returns every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(LATE_RULES.iter().copied().flatten()).flat_map(|family| family.iter())
}
