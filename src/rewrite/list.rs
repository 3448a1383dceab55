//! All rules, in the order they are tried. The file is above the rules: no rule imports it.

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

/// The rules that wait until no other has anything left to do, in the order they are let loose: they take apart, or hide,
/// what those before them look for.
#[rustfmt::skip]
pub const LATE_RULES: &[&[&[Rule]]] = &[
    &[slices::elementwise::LATE_RULES, fuse::factor::RULES, fuse::token::RULES, fuse::table::RULES, index::number::RULES, index::LATE_RULES],
    &[split::RULES, stacked::RULES, lanes::RULES, fuse::parallel::RULES, slices::places::RULES, index::LAST_RULES, fuse::apart::RULES, fuse::mask::RULES,
      fuse::rows::RULES],
    &[index::FRONT_RULES, fuse::stream::RULES],
];

/// The rules that need a request of the user, by name or by `--opset`: the standard has the operators that they write, but not every consumer
/// of the operator set has kernels for them.
pub const ASKED_FOR: &[&str] = &["spelled-attention", "attention-heads", "attention-of-parts", "attention-groups"];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(LATE_RULES.iter().copied().flatten()).flat_map(|family| family.iter())
}
