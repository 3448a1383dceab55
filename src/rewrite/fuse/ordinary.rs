//! Checks if a value may be of ordinary size, by the constants that it has been multiplied with.
//!
//! The limits of [`magnitude`](super::magnitude) assume operands of ordinary size. An operand that was multiplied by `1e30`, or that `1e30`
//! was added to, is larger. A later factor may have hidden or reverted an overflow.

use super::affine::AFFINE;
use super::has_arithmetic;
use super::magnitude::is_ordinary_number;
use crate::ir::ValueId;
use crate::ops::traits::traits_of;
use crate::rewrite::limits::LISTED;
use crate::rewrite::place::Place;

/// The most nodes that are followed upwards for this check. Paths branch, and the rule runs at each node of a chain.
const MOST_NODES: usize = 12;

/// Returns `true` if no small constant beyond ordinary size contributes to a value through nodes that multiply, add, average or move. Such
/// nodes turn a large number into a large one.
pub(super) fn is_ordinary(place: &Place<'_>, value: ValueId) -> bool {
    let mut open = vec![value];
    for _ in 0..MOST_NODES {
        let Some(value) = open.pop() else { return true };
        let Some(node) = place.model.value(value).producer().and_then(|id| place.model.node(id)) else { continue };
        let (divides, traits) = (node.is("Div"), traits_of(place.model, node));
        let operands = match traits.moves_first() || traits.homogeneous || node.is("Relu") {
            true => 1,
            false if traits.bilinear || traits.moves.is_some() => usize::MAX,
            false if AFFINE.iter().any(|operator| node.is(operator)) => usize::MAX,
            false => 0,
        };
        for (slot, &operand) in node.inputs().iter().enumerate().take(operands) {
            let Some(operand) = operand else { continue };
            let Some(tensor) = place.tensor(operand) else {
                open.push(operand);
                continue;
            };
            if tensor.len() > LISTED || !has_arithmetic(tensor.dtype()) {
                continue;
            }
            let size = |number: f64| if divides && slot == 1 { number.recip() } else { number };
            if tensor.every_f64(|number| is_ordinary_number(tensor.dtype(), size(number))) == Some(false) {
                return false;
            }
        }
    }
    true
}
