//! Replaces movements of a uniform tensor by one ConstantOfShape.
//!
//! Law: movements, slices, lookups and casts of a uniform tensor are uniform. Only the size of the result matters, and `ConstantOfShape`
//! gets it from existing shape operands.

use super::RULES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use smallvec::SmallVec;

use super::uniform;
use crate::ir::{Attribute, Edit, NewNode, NodeId, ValueId};
use crate::rewrite::build::Build;
use crate::rewrite::limits::DEPTH;
use crate::rewrite::place::Place;
use crate::tensor::Tensor;

/// The nodes from the current one up to the node that fills the tensor.
type Path = SmallVec<[NodeId; 8]>;

/// The source of the sizes.
enum Sizes {
    /// A computed shape operand.
    There(ValueId),
    /// These entries of a computed vector.
    Entries(ValueId, Vec<i64>),
    /// The shape of a tensor.
    Of(ValueId),
}

pub(super) fn fill(place: &Place<'_>) -> Result<Edit, Miss> {
    let output = place.result()?;
    // Most tensors are not filled, and this check is the fastest.
    let above = above(place).filter(|above| above.len() > 1).ok_or(Miss::ROOT)?;
    let number = uniform(place, output)
        .filter(|number| Some(number.dtype()) == place.dtype(output))
        .ok_or(miss!("one-number").of(output))?;
    ensure(place.opset.has("ConstantOfShape"), Miss::EXPRESSIBLE)?;
    ensure(!place.dims(output)?.iter().all(|dim| dim.as_const().is_some()), miss!("one-number").of(output))?;
    let sizes = sizes(place, *above.last().ok_or(Miss::ROOT)?).ok_or(miss!("sizes-there"))?;
    let added = if matches!(sizes, Sizes::There(_)) { 1 } else { 2 };
    ensure(added <= freed(place, &above), miss!("pays"))?;
    let mut edit = place.begin()?;
    let sizes = match sizes {
        Sizes::There(sizes) => sizes,
        Sizes::Entries(all, entries) => {
            let places = edit.constant(all, "places", Tensor::vector(entries));
            let sizes = edit.new_value(output, "sizes");
            edit.insert.push(Build::gather(all, places, 0usize).output(sizes));
            sizes
        }
        Sizes::Of(tensor) => {
            let sizes = edit.new_value(output, "sizes");
            edit.insert.push(Build::shape(tensor).output(sizes));
            sizes
        }
    };
    let value = Attribute::from(number.reshape(&[1]).or(Err(miss!("one-number")))?);
    place.instead(edit, NewNode::new("ConstantOfShape", [Some(sizes)]).with("value", value))
}

/// Returns the node and its producers up to the node that fills the tensor.
fn above(place: &Place<'_>) -> Option<Path> {
    let mut nodes = Path::from_slice(&[place.id]);
    let mut at = place.id;
    for _ in 0..DEPTH {
        let node = place.model.node(at).filter(|node| Some(node.graph()) == place.graph())?;
        if node.is("ConstantOfShape") {
            return Some(nodes);
        }
        at = place.model.value(node.input(0)?).producer()?;
        nodes.push(at);
    }
    None
}

fn sizes(place: &Place<'_>, filling: NodeId) -> Option<Sizes> {
    let node = place.node()?;
    let goal = place.shape(node.output(0)?)?;
    let scope = place.scope();
    let told = match node.op_type.as_str() {
        "Resize" => node.input(3),
        "Expand" => node.input(1),
        _ => None,
    };
    if let Some(told) = told
        && let Some(ints) = place.fact(told).and_then(|fact| fact.ints())
        && ints.len() == goal.len()
        && ints.iter().zip(goal).all(|(a, b)| scope.eq(a, b).is_yes())
    {
        return Some(Sizes::There(told));
    }
    if node.is("Gather") && matches!(place.shape(node.input(0)?)?, [_]) {
        return Some(Sizes::Of(node.input(1)?));
    }
    let all = place.model.node(filling)?.input(0)?;
    let ints = place.fact(all)?.ints()?;
    let entry = |dim| ints.iter().position(|own| scope.eq(own, dim).is_yes());
    let entries: Vec<i64> = goal.iter().map(|dim| i64::try_from(entry(dim)?).ok()).collect::<Option<_>>()?;
    if entries.len() == ints.len() && entries.iter().zip(0..).all(|(entry, at)| *entry == at) {
        return Some(Sizes::There(all));
    }
    Some(Sizes::Entries(all, entries))
}

/// Returns the number of nodes that are dead after the removal of the first.
fn freed(place: &Place<'_>, above: &[NodeId]) -> usize {
    let mut gone: Vec<NodeId> = Vec::new();
    for &id in above {
        let Some(output) = place.model.node(id).and_then(|node| node.output(0)) else { break };
        let unread = place.model.is_read_only_by(output, &gone);
        if id != place.id && !unread {
            break;
        }
        gone.push(id);
    }
    gone.len()
}
