//! Casts there and back around data movement.

use crate::ir::{Edit, NewNode, NodeId};
use crate::rewrite::merge::is_lossless;
use crate::rewrite::{Place, Rule};

pub(in crate::rewrite) const RULES: &[Rule] =
    &[Rule { name: "cast-sandwich", operators: &["Cast"], exact: true, apply: cast_sandwich }];

/// More movements in a row than this are not looked through.
const MOST_MOVEMENTS: usize = 16;

/// `Cast(f(Cast(x, a)), b) = f(x)` for an `f` that only moves elements, where `b` is the type of `x` and every value of it has an
/// `a` that stands for it exactly. Converters write that for operators that did not know the type.
fn cast_sandwich(place: &mut Place<'_>) -> Option<Edit> {
    // Before these versions some of the movements do not take every type.
    if place.opset < 8 {
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
        if node.outputs().len() != 1 {
            return None;
        }
        chain.push((id, NewNode::like(node)));
        value = node.input(0)?;
    };
    let data = first.input(0)?;
    let (from, through, to) = (place.dtype(data)?, place.dtype(value)?, place.dtype(output)?);
    // Without a movement between them it is another rule's.
    if chain.is_empty() || from != to || !is_lossless(from, through) || !super::is_common(from) {
        return None;
    }
    let mut edit = place.edit("cast-sandwich")?.removing(place.id);
    let mut value = data;
    while let Some((id, mut node)) = chain.pop() {
        *node.inputs.first_mut()? = Some(value);
        value = if chain.is_empty() { output } else { place.new_value(output, "moved") };
        edit.remove.push(id);
        edit.insert.push(node.output(value));
    }
    Some(edit)
}
