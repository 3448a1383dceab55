//! Casts there and back around data movement.

use crate::ir::{Edit, NewNode, NodeId};
use crate::rewrite::{Place, Rule};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "cast-sandwich",
    law: "Cast(f(Cast(x, a)), b) = f(x) where x has type b, for f that move elements",
    sentence: "Removes a Cast and its inverse around data movement.",
    premises: &[
        ("same-type", "the last type is that of x"),
        ("lossless", "the intermediate type represents every value of x's type uniquely"),
        ("movements", "the nodes between the casts only move elements"),
        ("one-reader", "the values between them have no other consumer"),
        ("any-type", "the operator set is 8 or later, for Flatten 9, since which the movements take every type"),
        ("movable-type", "every runtime moves elements of x's type"),
    ],
    exact: true,
    operators: &["Cast"],
    apply: cast_sandwich,
}];

/// More movements in a row than this are not looked through.
const MOST_MOVEMENTS: usize = 16;

/// `Cast(f(Cast(x, a)), b) = f(x)` for an `f` that only moves elements, where `b` is the type of `x` and every value of it has an
/// `a` that stands for it exactly. Converters write that for operators that did not know the type.
fn cast_sandwich(place: &Place<'_>) -> Option<Edit> {
    // Before these versions some of the movements do not take every type.
    if !place.opset.everything_broadcasts() {
        return None;
    }
    let output = place.output(0)?;
    let mut value = place.input(0)?;
    let mut chain: Vec<(NodeId, NewNode)> = Vec::new();
    let first = loop {
        if let Some((_, cast)) = place.producer(value, "Cast") {
            break cast;
        }
        if chain.len() == MOST_MOVEMENTS || !place.has_one_reader(value) {
            return None;
        }
        let (id, node) = place.producer_with(value, |own| own.moves_first() && own.any_type)?;
        let takes_type = !node.is("Flatten") || place.opset.flatten_takes_every_type();
        if node.outputs().len() != 1 || !takes_type {
            return None;
        }
        chain.push((id, NewNode::like(node)));
        value = node.input(0)?;
    };
    let data = first.input(0)?;
    let (from, through, to) = (place.dtype(data)?, place.dtype(value)?, place.dtype(output)?);
    // Without a movement between them it is another rule's.
    if chain.is_empty() || from != to || !from.is_lossless_in(through) || !super::is_common(from) {
        return None;
    }
    let mut edit = place.edit()?.removing(place.id);
    let mut value = data;
    while let Some((id, node)) = chain.pop() {
        let node = node.reading(0, value);
        value = if chain.is_empty() { output } else { edit.new_value(output, "moved") };
        edit.remove.push(id);
        edit.insert.push(node.output(value));
    }
    Some(edit)
}
