//! Cuts at constant bounds: Relu and Clip.
//!
//! Laws, with `cut(x, a, b) = min(max(x, a), b)`:
//!
//! * `cut(cut(x, a, b), c, d) = cut(x, max(a, c), min(b, d))` where the intervals meet
//! * `cut(x, a, b) = x` where `a ≤ x ≤ b`
//!
//! Of NaN both make NaN. The range of what is cut is that of kernels, which may reach beyond the function's: ONNX Runtime's Sigmoid
//! gives 1 + 2⁻²³. A cut keeps what is equal to a bound, so of bounds 0 and −0 the first cut's is the one that is seen.

use super::range::{Clamp, last_finite, range};
use super::{Place, Rule, rounded};
use crate::ir::{Edit, NewNode};
use crate::ops::traits::ValueRange;
use crate::rewrite::build::{Build, ClipBound};
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "needless-cut",
        law: "min(max(x, a), b) = x where a ≤ x ≤ b",
        sentence: "Removes a Clip whose bounds always hold.",
        premises: &[("within", "x as computed by kernels is proved to lie between the bounds for all inputs")],
        exact: true,
        operators: &["Relu", "Clip"],
        apply: needless,
    },
    Rule {
        name: "cut-of-cut",
        law: "min(max(min(max(x, a), b), c), d) = min(max(x, max(a, c)), min(b, d))",
        sentence: "Merges two Clips.",
        premises: &[
            ("meet", "the bounds are known, and the intervals meet"),
            ("finite", "both bounds of the result are finite"),
            ("one-reader", "the first cut has no other consumer"),
        ],
        exact: true,
        operators: &["Relu", "Clip"],
        apply: cut_of_cut,
    },
];

fn needless(place: &Place<'_>) -> Option<Edit> {
    let cut = Clamp::of(place, place.id)?;
    // Of NaN a cut makes NaN.
    let ValueRange { low, high, .. } = range(place, cut.input)?;
    if low < cut.low || high > cut.high {
        return None;
    }
    place.forward(cut.input)
}

fn cut_of_cut(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let outer = Clamp::of(place, place.id)?;
    let id = place.model.value(outer.input).producer()?;
    let inner = place.model.node(id).filter(|inner| inner.graph() == node.graph())?;
    let first = Clamp::of(place, id)?;
    let dtype = place.dtype(first.input)?;
    let last = last_finite(dtype)?;
    // Of equal bounds the first cut's: 0 and −0 are equal.
    let low = if outer.low > first.low { outer.low } else { first.low };
    let high = if outer.high < first.high { outer.high } else { first.high };
    // Without any finite bound on a side, as after two Relus, it is no Clip.
    if low > high || !low.is_finite() || !high.is_finite() || !place.is_internal(outer.input, &[place.id]) {
        return None;
    }
    let bound = |slot: usize, number: f64, last: f64| {
        if place.opset.pad_and_clip_have_operands() && number == last {
            return Some(None);
        }
        let like = node.input(slot).or(inner.input(slot)).or(place.output(0))?;
        Some(Some(ClipBound { number, tensor: exact(dtype, number)?, name: place.fused_name(like) }))
    };
    let bounds = [bound(1, low, -last)?, bound(2, high, last)?];
    let bytes = bounds.iter().flatten().fold(0, |sum: usize, bound| sum.saturating_add(bound.tensor.byte_len()));
    let mut edit = place.fuse(vec![id, place.id], &[first.input], bytes)?;
    // At least one of them is a Clip: a Relu has no finite upper bound.
    let clip = if node.is("Clip") { node } else { inner };
    let clip = NewNode { name: node.name.clone(), extra: node.extra.clone(), ..NewNode::like(clip) };
    let clip = Build::after(&mut edit, place.opset, first.input).clip(clip.reading(0, first.input), bounds)?;
    Some(edit.inserting(clip.output(place.output(0)?)))
}

/// A scalar, if it is a number of the type.
fn exact(dtype: DType, number: f64) -> Option<crate::tensor::Tensor> {
    rounded(dtype, &[], &[number]).filter(|tensor| tensor.to_f64s().is_some_and(|numbers| numbers == [number]))
}
