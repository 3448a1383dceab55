//! Finds constants that are added before a normalization.
//!
//! ONNX Runtime's transformer optimizer fuses a sum and its normalization (SkipLayerNormalization), unless an addend is an initializer: it
//! treats such a sum as an embedding, which has another kernel. Position embeddings that exporters interpolate or slice, and that are
//! folded here, were no initializers before. So the encoder writes them as Constant nodes, and the fusion still matches. Runtimes turn a
//! Constant node into an initializer when they load the model.

use super::normalized::{is_normalized, normalized};
use crate::dim::Dim;
use crate::ir::ValueId;
use crate::rewrite::place::Place;

/// The most values that are visited after a sum. Without it, each layer visits all later ones.
pub(super) const MOST_BEHIND: usize = 24;

/// Returns the constant addend of a sum that a normalization reads, if the fused kernel accepts its shape: that of the other addend, or
/// that of one batch of it.
pub fn constant_addend(place: &Place<'_>) -> Option<ValueId> {
    let node = place.node().filter(|node| node.is("Add"))?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let (x, constant) = match (place.tensor(a), place.tensor(b)) {
        (None, Some(_)) => (a, b),
        (Some(_), None) => (b, a),
        _ => return None,
    };
    // The optimizer treats a sum of lookups as an embedding.
    if place.producer(x, "Gather").is_some() {
        return None;
    }
    let ([batch, rows @ ..], own) = (place.shape(x)?, place.shape(constant)?) else { return None };
    let same = |a: &Dim, b: &Dim| place.scope().eq(a, b).is_yes();
    let (first, rest) =
        if own.len() == 3 { own.split_first().map(|(first, rest)| (Some(first), rest))? } else { (None, own) };
    let fits = rows.len() == 2 && rest.len() == 2 && rows.iter().zip(rest).all(|(a, b)| same(a, b));
    let spans = first.is_none_or(|first| first.is_const(1) || same(first, batch));
    let sum = place.only_output()?;
    (fits && spans && normalizes(place, sum) && !is_normalized_again(place, sum)).then_some(constant)
}

/// Returns `true` if a normalization reads a value.
pub(super) fn normalizes(place: &Place<'_>, value: ValueId) -> bool {
    let reads = |&(id, slot): &_| slot == 0 && place.model.node(id).is_some_and(|node| node.is("LayerNormalization"));
    place.model.users(value).iter().any(reads) || is_normalized(place, value)
}

/// Returns `true` if the result of the value's normalization is normalized a second time, as in the embedding of CLIP. The optimizer
/// searches no attention between two fused normalizations.
fn is_normalized_again(place: &Place<'_>, x: ValueId) -> bool {
    let (mut open, mut next) = (vec![x], 0);
    while let Some(&value) = open.get(next).filter(|_| next < MOST_BEHIND) {
        next += 1;
        let operator = || place.producer(value, "LayerNormalization").and_then(|(_, node)| node.input(0));
        if (operator() == Some(x) || normalized(place, value) == Some(x)) && normalizes(place, value) {
            return true;
        }
        for node in place.model.users(value).into_iter().filter_map(|(id, _)| place.model.node(id)) {
            if open.len() >= MOST_BEHIND {
                break;
            }
            open.extend(node.output(0).filter(|result| !open.contains(result)));
        }
    }
    false
}
