//! Finds the operands and results of normalizations, as operators or in basic operators.

use super::normalization::{self, Normalization};
use super::pattern::Reader;
use crate::ir::{Node, NodeId, ValueId};
use crate::rewrite::place::Place;

/// The most nodes between a normalization and its consumer. A node further away belongs to another block.
const MOST_BEHIND: usize = 3;

/// Returns `true` if a value is the result of a layer normalization.
pub(in crate::rewrite) fn is_result(place: &Place<'_>, value: ValueId) -> bool {
    place.producer(value, "LayerNormalization").is_some() || normalized(place, value).is_some()
}

/// Returns `true` if the data of a product is a Reshape of the result of a layer normalization.
pub(super) fn is_of_normalized_rows(place: &Place<'_>, product: &Node) -> bool {
    let whole = product.input(0).and_then(|rows| place.producer(rows, "Reshape")?.1.input(0));
    whole.is_some_and(|whole| is_result(place, whole))
}

/// Returns `true` if a layer normalization, as operator or in basic operators, is the only consumer of a value.
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

/// Returns `true` if a normalization of this value in basic operators exists.
pub(super) fn is_normalized(place: &Place<'_>, x: ValueId) -> bool {
    normalizations(place, x).next().is_some()
}

/// Returns the normalizations of a value in basic operators: the equivalent operator of each, and its nodes.
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

/// Returns the operand of the normalization that gives this value, apart from a scale and a shift.
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

/// Returns the normalization that ends at a value, and its nodes.
fn read(place: &Place<'_>, value: ValueId) -> Option<(Normalization, Vec<NodeId>)> {
    let mut reader = Reader { place, nodes: Vec::new(), dtype: place.dtype(value)? };
    let found = normalization::read(&mut reader, value).ok()?;
    Some((found, reader.nodes))
}
