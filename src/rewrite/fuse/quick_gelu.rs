//! Finds `x·sigmoid(1.702·x)`, the activation that distinguishes the layers of CLIP from those of other transformers.

use crate::ir::{Node, ValueId};
use crate::rewrite::place::Place;

/// The factor in the activation, and the tolerance for an exporter's rounding.
const FACTOR: f64 = 1.702;
const NEAR: f64 = 1e-3;

/// The most nodes that are visited after a value. Without it, each layer visits all later ones.
const MOST_BEHIND: usize = 48;

/// Returns `true` if a node is the Sigmoid of this activation.
pub(super) fn is_quick(place: &Place<'_>, node: &Node) -> bool {
    let scaled = || place.producer(node.input(0).filter(|_| node.is("Sigmoid"))?, "Mul");
    let factors = scaled().map(|(_, node)| node.inputs()).unwrap_or_default();
    factors.iter().flatten().filter_map(|&factor| place.scalar(factor)).any(|factor| (factor - FACTOR).abs() < NEAR)
}

/// Returns `true` if the activation is computed shortly after a value.
pub(super) fn leads_to_quick(place: &Place<'_>, value: ValueId) -> bool {
    let (mut open, mut next) = (vec![value], 0);
    while let Some(&value) = open.get(next).filter(|_| next < MOST_BEHIND) {
        next += 1;
        for (id, _) in place.model.users(value) {
            let Some(node) = place.model.node(id) else { continue };
            if is_quick(place, node) {
                return true;
            }
            if open.len() >= MOST_BEHIND {
                break;
            }
            open.extend(node.output(0).filter(|result| !open.contains(result)));
        }
    }
    false
}
