//! Values that are stretched long before it shows.
//!
//! Law: arithmetic element by element of a stretched operand is the arithmetic of the operand, stretched. So a value need not
//! be stretched when everything down to where another operand of the full size joins can do without. The nodes between
//! are made anew, for what is proved of their results no longer holds.

use super::count::Count;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "expand-later", operators: &["Expand"], exact: true, apply: expand },
    Rule { name: "decided-mask", operators: &["And"], exact: true, apply: mask },
];

/// How many nodes are made anew at most.
const REACH: usize = 8;

/// Operators on one or more operands that are broadcast against each other.
const POINTWISE: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "And",
    "Or",
    "Xor",
    "Not",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "Where",
    "Max",
    "Min",
    "Cast",
    "Neg",
    "Abs",
    "Relu",
    "Sigmoid",
    "Exp",
    "Sqrt",
];

/// `Expand(x)`, where what reads it stretches `x` as well.
fn expand(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (source, output) = (node.input(0)?, node.output(0)?);
    let mut edit = place.edit("expand-later")?.removing(place.id);
    narrow(place, &mut edit, output, source)?;
    Some(edit)
}

/// `true ∧ m = m`, stretched to the shape of both.
fn mask(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let output = node.output(0)?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let other = [(a, b), (b, a)].into_iter().find_map(|(decided, other)| is_true(place, decided).then_some(other))?;
    if place.same_shape(other, output) {
        let named = place.model.is_output(output) || place.model.value(output).pinned;
        return if named { None } else { place.forward("decided-mask", other) };
    }
    let mut edit = place.edit("decided-mask")?.removing(place.id);
    narrow(place, &mut edit, output, other)?;
    Some(edit)
}

/// Whether a comparison of integers that count holds everywhere.
fn is_true(place: &Place<'_>, value: ValueId) -> bool {
    if let Some(tensor) = place.constant(value) {
        return tensor.uniform().and_then(|one| one.to_i64s()).is_some_and(|one| one == [1]);
    }
    let holds = || {
        let node = place.model.value(value).producer().and_then(|id| place.model.node(id))?;
        let &[Some(a), Some(b)] = node.inputs() else { return None };
        let (large, small, least) = match node.op_type.as_str() {
            "GreaterOrEqual" => (a, b, 0),
            "Greater" => (a, b, 1),
            "LessOrEqual" => (b, a, 0),
            "Less" => (b, a, 1),
            _ => return None,
        };
        node.canonical_domain().is_empty().then_some(())?;
        let dims = place.shape(value)?;
        Some(Count::of(place, large)?.minus(Count::of(place, small)?, place, dims)?.is_at_least(place, least))
    };
    holds() == Some(true)
}

/// Lets everything that reads `wide` read `slim`, which is stretched to it, as long as results keep their shapes.
fn narrow(place: &mut Place<'_>, edit: &mut Edit, wide: ValueId, slim: ValueId) -> Option<()> {
    if place.opset < 8 || place.dtype(slim)? != place.dtype(wide)? {
        return None;
    }
    // Values to be replaced, with what replaces them and its dims. Those that nodes made anew replace are still to be read.
    let mut replaced: Vec<(ValueId, ValueId, Vec<Dim>)> = vec![(wide, slim, place.shape(slim)?.to_vec())];
    let mut anew: Vec<NodeId> = Vec::new();
    let mut rewired: Vec<(NodeId, usize)> = Vec::new();
    let mut at = 0;
    while let Some((old, ..)) = replaced.get(at).cloned() {
        at = at.checked_add(1)?;
        if place.model.is_output(old) || place.model.value(old).pinned {
            return None;
        }
        for (id, slot) in place.model.users(old) {
            let node = place.model.node(id)?;
            let pointwise = node.canonical_domain().is_empty() && POINTWISE.contains(&node.op_type.as_str());
            if !pointwise || Some(node.graph()) != place.graph() || node.outputs().len() != 1 {
                return None;
            }
            rewired.push((id, slot));
            if anew.contains(&id) {
                continue;
            }
            let output = node.output(0)?;
            let dims = broadcast(place, node, output, &replaced)?;
            let whole = place.shape(output)?;
            let keeps =
                dims.len() == whole.len() && dims.iter().zip(whole).all(|(a, b)| place.scope().eq(a, b).is_yes());
            if !keeps {
                anew.push(id);
                let value = place.new_value(output, "slim");
                replaced.push((output, value, dims));
            }
            if anew.len() > REACH || rewired.len() > REACH.checked_mul(2)? {
                return None;
            }
        }
    }
    // A node that was found to keep its shape may have come to lose it as more of its operands did.
    let kept = rewired.iter().filter(|(id, _)| !anew.contains(id));
    let still = kept.clone().all(|(id, _)| {
        let check = || {
            let node = place.model.node(*id)?;
            let (dims, whole) = (broadcast(place, node, node.output(0)?, &replaced)?, place.shape(node.output(0)?)?);
            Some(dims.len() == whole.len() && dims.iter().zip(whole).all(|(a, b)| place.scope().eq(a, b).is_yes()))
        };
        check() == Some(true)
    });
    if rewired.is_empty() || !still {
        return None;
    }
    let replacement = |value: ValueId| replaced.iter().find(|(old, ..)| *old == value).map(|(_, new, _)| *new);
    for &(id, slot) in &rewired {
        if !anew.contains(&id) {
            let value = place.model.node(id)?.input(slot)?;
            edit.rewire.push((id, slot, replacement(value)));
        }
    }
    for id in anew {
        let node = place.model.node(id)?;
        let inputs = node.inputs().iter().map(|input| input.map(|value| replacement(value).unwrap_or(value))).collect();
        let copy = NewNode {
            name: node.name.clone(),
            op_type: node.op_type.clone(),
            attributes: node.attributes.clone(),
            inputs,
            extra: node.extra.clone(),
            ..NewNode::default()
        };
        edit.insert.push(copy.output(replacement(node.output(0)?)?));
        edit.remove.push(id);
    }
    Some(())
}

/// The dims of a node's result when some of its operands are replaced. Where no operand is known to have the size that the
/// result has, and not all have size 1, nobody knows.
fn broadcast(
    place: &Place<'_>,
    node: &Node,
    output: ValueId,
    replaced: &[(ValueId, ValueId, Vec<Dim>)],
) -> Option<Vec<Dim>> {
    let whole = place.shape(output)?;
    let mut shapes: Vec<&[Dim]> = Vec::new();
    for value in node.inputs() {
        let value = (*value)?;
        let dims = replaced.iter().find(|(old, ..)| *old == value).map(|(_, _, dims)| dims.as_slice());
        shapes.push(dims.or_else(|| place.shape(value))?);
    }
    let rank = shapes.iter().map(|dims| dims.len()).max()?;
    let mut dims = Vec::with_capacity(rank);
    for back in (1..=rank).rev() {
        let own = shapes.iter().filter_map(|dims| dims.len().checked_sub(back).and_then(|at| dims.get(at)));
        let size = whole.len().checked_sub(back).and_then(|at| whole.get(at))?;
        if own.clone().all(|dim| dim.is_const(1)) {
            dims.push(Dim::constant(1));
        } else if own.clone().any(|dim| place.scope().eq(dim, size).is_yes()) {
            dims.push(size.clone());
        } else {
            return None;
        }
    }
    Some(dims)
}
