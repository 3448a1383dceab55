//! What is normalized, and what a normalization gives, whether it is the operator or spelled out.

use super::normalization::{self, Normalization};
use super::pattern::Reader;
use crate::ir::{Node, NodeId, ValueId};
use crate::rewrite::place::Place;

/// The most nodes between a normalization and its consumer. A node further away belongs to another block.
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

/// Returns `true` if a layer normalization, the operator or spelled out, is the only reader of a value.
pub fn is_only_normalized(place: &Place<'_>, x: ValueId) -> bool {
    let readers = place.model.users(x);
    let is_inside = |nodes: &[NodeId]| readers.iter().all(|(id, _)| nodes.contains(id));
    let is_operand = |&(id, slot): &(NodeId, usize)| {
        slot == 0 && place.model.node(id).is_some_and(|node| node.is("LayerNormalization"))
    };
    match readers.as_slice() {
        [reader] if is_operand(reader) => true,
        _ => normalizations(place, x).any(|(operator, nodes)| operator == "LayerNormalization" && is_inside(&nodes)),
    }
}

/// Whether a normalization of this value is spelled out.
pub(super) fn is_normalized(place: &Place<'_>, x: ValueId) -> bool {
    normalizations(place, x).next().is_some()
}

/// The normalizations of a value written in basic operators: the equivalent operator of each, and its nodes.
fn normalizations<'a>(place: &'a Place<'_>, x: ValueId) -> impl Iterator<Item = (&'static str, Vec<NodeId>)> + 'a {
    let results = move |value: ValueId| {
        let nodes = place.model.users(value).into_iter().filter_map(|(id, _)| place.model.node(id));
        nodes.filter_map(|node| node.outputs().first().copied().flatten().map(|output| (node, output)))
    };
    let quotients = move |value: ValueId| {
        let is_quotient = results(value).filter(|(node, _)| node.is("Div") || node.is("Mul"));
        is_quotient.map(|(_, output)| output).collect::<Vec<_>>()
    };
    let centred = results(x).filter(|(node, _)| node.is("Sub")).flat_map(move |(_, centred)| quotients(centred));
    let found = centred.chain(quotients(x)).filter_map(|value| read(place, value));
    found.filter(move |(found, _)| found.x == x).map(|(found, nodes)| (found.operator, nodes))
}

/// What is normalized to this value, but for a scale and a shift.
pub(super) fn normalized(place: &Place<'_>, mut value: ValueId) -> Option<ValueId> {
    for _ in 0..MOST_BEHIND {
        if let Some((found, _)) = read(place, value) {
            return Some(found.x);
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

/// The normalization that ends at a value, and its nodes.
fn read(place: &Place<'_>, value: ValueId) -> Option<(Normalization, Vec<NodeId>)> {
    let mut reader = Reader { place, nodes: Vec::new(), dtype: place.dtype(value)? };
    let found = normalization::read(&mut reader, value).ok()?;
    Some((found, reader.nodes))
}
