//! Constants that are added before a normalization.
//!
//! The transformer optimizer of ONNX Runtime makes one kernel of a sum and the normalization of it, unless an addend is an initializer: it takes
//! the sum of words and positions for such, which has a kernel of its own. What exporters compute and is folded here (positions that are
//! interpolated or sliced) was none in the model, so it is written as a Constant node: the kernel is found as before. Runtimes make an
//! initializer of such a node when they load it.

use super::normalized::{is_normalized, normalized};
use crate::dim::Dim;
use crate::ir::ValueId;
use crate::rewrite::place::Place;

/// The most values that are looked at after a sum. Without it, each layer looks through all later ones.
pub(super) const MOST_BEHIND: usize = 24;

/// The constant that is added, at a sum that a normalization reads, in a shape that such a kernel takes: that of the other addend, or that of one
/// of its batch.
pub fn constant_addend(place: &Place<'_>) -> Option<ValueId> {
    let node = place.node().filter(|node| node.is("Add"))?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let (x, constant) = match (place.tensor(a), place.tensor(b)) {
        (None, Some(_)) => (a, b),
        (Some(_), None) => (b, a),
        _ => return None,
    };
    // What is looked up and summed is an embedding to that optimizer.
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

/// Whether a normalization reads a value.
pub(super) fn normalizes(place: &Place<'_>, value: ValueId) -> bool {
    let reads = |&(id, slot): &_| slot == 0 && place.model.node(id).is_some_and(|node| node.is("LayerNormalization"));
    place.model.users(value).iter().any(reads) || is_normalized(place, value)
}

/// Whether what a normalization of the value gives is normalized once more, as the embedding of CLIP is: from one kernel of that to the next,
/// its optimizer looks for no attention.
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
