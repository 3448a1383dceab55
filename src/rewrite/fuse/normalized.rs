//! What is normalized, and what a normalization gives, whether it is the operator or spelled out.

use super::normalization;
use super::pattern::Reader;
use crate::ir::{Node, ValueId};
use crate::rewrite::Place;

/// How many nodes are looked at between a normalization and what it is the operand of.
const MOST_BEHIND: usize = 3;

/// Whether a value is what a layer normalization gives.
pub(in crate::rewrite) fn is_result(place: &Place<'_>, value: ValueId) -> bool {
    place.producer(value, "LayerNormalization").is_some() || normalized(place, value).is_some()
}

/// Whether a product is of the rows that a Reshape makes of what a layer normalization gives.
pub(super) fn is_of_normalized_rows(place: &Place<'_>, product: &Node) -> bool {
    let whole = product.input(0).and_then(|rows| place.producer(rows, "Reshape")?.1.input(0));
    whole.is_some_and(|whole| is_result(place, whole))
}

/// Whether a normalization of this value is spelled out.
pub(super) fn is_normalized(place: &Place<'_>, x: ValueId) -> bool {
    let results = |value: ValueId| {
        let nodes = place.model.users(value).into_iter().filter_map(|(id, _)| place.model.node(id));
        nodes.filter_map(|node| node.outputs().first().copied().flatten().map(|output| (node, output)))
    };
    let quotients = |value: ValueId| {
        let is_quotient = results(value).filter(|(node, _)| node.is("Div") || node.is("Mul"));
        is_quotient.map(|(_, output)| output).collect::<Vec<_>>()
    };
    let centred = results(x).filter(|(node, _)| node.is("Sub")).flat_map(|(_, centred)| quotients(centred));
    centred.chain(quotients(x)).any(|value| read(place, value) == Some(x))
}

/// What is normalized to this value, but for a scale and a shift.
pub(super) fn normalized(place: &Place<'_>, mut value: ValueId) -> Option<ValueId> {
    for _ in 0..MOST_BEHIND {
        if let Some(x) = read(place, value) {
            return Some(x);
        }
        let (_, node) = place.producer_of(value, &["Mul", "Add"])?;
        let &[Some(a), Some(b)] = node.inputs() else { return None };
        value = match (place.tensor(a), place.tensor(b)) {
            (None, Some(_)) => a,
            (Some(_), None) => b,
            _ => return None,
        };
    }
    None
}

/// The operand of the normalization that ends at a value.
fn read(place: &Place<'_>, value: ValueId) -> Option<ValueId> {
    let mut reader = Reader { place, nodes: Vec::new(), dtype: place.dtype(value)? };
    normalization::read(&mut reader, value).map(|found| found.x)
}
