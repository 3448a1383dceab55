//! Data movement of a part of a constant.
//!
//! Law: `f(C[r]) = f(C)[r]` for a constant `C` and an `f` that moves elements and leaves the cut axis apart from others. Exporters take the sines
//! and cosines of the first positions apart and repeat them, layer by layer.

use super::cuts::cuts_of;
use crate::dim::Dim;
use crate::ir::{Data, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::ops::{Environment, evaluate_node};
use crate::rewrite::limits::ADDED;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::slicing::SliceRule;
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "function-of-part",
    law: "f(C[r]) = f(C)[r] for a constant C and an f that moves elements",
    sentence: "Applies data movement of a part of a constant to the constant.",
    premises: &[
        ("one-axis", "the slice cuts one axis at a computed index, and f does not mix this axis with others"),
        ("constant", "all other operands of f are constants"),
        ("one-reader", "the part has no other consumer, and f has at most two results"),
        (
            "no-embedding",
            "the addends are not selected rows, because runtimes fuse a sum of embeddings with its normalization",
        ),
        ("small", "the new constants take at most 256 KiB more than the removed ones"),
    ],
    exact: true,
    operators: &["Gather", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Tile", "Expand", "Split"],
    apply: of_part,
}];

/// The most bytes of a new constant. Without it, a Slice of a tensor that repeats a number stores a gigabyte.
const MAX_BYTES: usize = 64 << 20;

/// A part of a constant that is cut out of one axis.
struct Part<'a> {
    id: NodeId,
    slice: &'a Node,
    whole: &'a Tensor,
    /// The constant's value.
    data: ValueId,
    axis: usize,
}

fn part<'a>(place: &Place<'a>, value: ValueId) -> Option<Part<'a>> {
    let (id, slice) = place.producer(value, "Slice")?;
    let data = slice.input(0)?;
    let whole = place.constant(data).filter(|whole| whole.byte_len() <= MAX_BYTES)?;
    let cuts = cuts_of(place, id)?;
    let mut cut = cuts.cut();
    let (Some((axis, _)), None) = (cut.next(), cut.next()) else { return None };
    // The axis is named anew, so no other may be.
    let named = place.read(slice).slice_count()?;
    (named == 1 && place.opset.slice_has_operands() && place.has_one_reader(value)).then_some(Part {
        id,
        slice,
        whole,
        data,
        axis,
    })
}

fn of_part(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let slot = usize::from(node.is("Gather"));
    let value = node.input(slot).ok_or(Miss::ROOT)?;
    ensure(place.constant(value).is_none(), miss!("constant").of(value))?;
    let Part { id, slice, whole, data, axis } = part(place, value).ok_or(miss!("one-axis"))?;
    let outputs: Vec<ValueId> = node.outputs().iter().copied().collect::<Option<_>>().ok_or(miss!("constant"))?;
    let first = *outputs.first().filter(|_| outputs.len() <= 2).ok_or(miss!("constant"))?;
    let kept = kept_axis(place, node, value, first, axis).ok_or(miss!("one-axis"))?;
    let is_added = |&(reader, _): &(NodeId, usize)| place.model.node(reader).is_some_and(|reader| reader.is("Add"));
    ensure(!node.is("Gather") || !place.model.users(first).iter().any(is_added), miss!("no-embedding"))?;
    let mut others: Vec<ValueId> = Vec::new();
    let mut operands = Vec::with_capacity(node.inputs().len());
    for (at, input) in node.inputs().iter().enumerate() {
        operands.push(match input {
            None => None,
            Some(_) if at == slot => Some(Data::Tensor(whole.clone())),
            Some(other) => {
                others.push(*other);
                Some(Data::Tensor(place.constant(*other).ok_or(miss!("constant"))?.clone()))
            }
        });
    }
    let environment = Environment::of(place.model);
    let results = evaluate_node(&environment, place.id, node, operands, place.budget, SliceRule::Agree, 0)
        .or(Err(miss!("constant")))?;
    let results: Vec<&Tensor> = results.iter().map(Data::tensor).collect::<Option<_>>().ok_or(miss!("constant"))?;
    ensure(results.len() == outputs.len(), miss!("constant"))?;
    let is_freed = |value: ValueId, reader: NodeId| {
        place.model.value(value).is_constant() && place.model.is_read_only_by(value, &[reader])
    };
    let mut freed = if is_freed(data, id) { whole.byte_len() } else { 0 };
    for &other in others.iter().filter(|&&other| is_freed(other, place.id)) {
        freed = freed.saturating_add(place.constant(other).ok_or(miss!("constant").of(other))?.byte_len());
    }
    let added = results.iter().fold(0usize, |sum, result| sum.saturating_add(result.byte_len()));
    ensure(added <= freed.saturating_add(ADDED), miss!("small"))?;
    let bounds = place.dtype(slice.input(1).ok_or(Miss::ROOT)?);
    let size = i64::try_from(*whole.shape().get(axis).ok_or(miss!("constant"))?).or(Err(Miss::COMPUTABLE))?;
    let mut edit = place.begin()?.removing(id).removing(place.id);
    for (output, result) in outputs.into_iter().zip(results) {
        // The new table has the constant's full size along `kept` and the result's size on every other axis.
        let expected = place.shape(output).ok_or(Miss::ROOT)?.iter().enumerate();
        let expected = expected.map(|(at, dim)| if at == kept { Some(size) } else { dim.as_const() });
        let own = result.shape().iter().map(|&dim| i64::try_from(dim).ok());
        ensure(expected.eq(own), Miss::ROOT)?;
        let table = edit.constant(output, "table", result.clone());
        let axes = vec![i64::try_from(kept).or(Err(Miss::COMPUTABLE))?];
        let new = place
            .build(&mut edit, output)
            .slice_along(NewNode::like(slice).reading(0, table), axes, bounds)
            .ok_or(Miss::EXPRESSIBLE)?;
        edit.insert.push(new.output(output));
    }
    Ok(edit)
}

/// Where the node puts the axis of the operand that is cut, all of it and in order, if it leaves it apart from others.
fn kept_axis(place: &Place<'_>, node: &Node, value: ValueId, output: ValueId, axis: usize) -> Option<usize> {
    let (from, to) = (place.shape(value)?, place.shape(output)?);
    let dim = from.get(axis)?;
    let is_kept = |at: &usize| to.get(*at).is_some_and(|own| place.scope().eq(own, dim).is_yes());
    if node.is("Gather") {
        let rank = place.shape(node.input(0)?)?.len();
        return place.read(node).axis(rank)?.checked_add(axis).filter(is_kept);
    }
    if node.is("Transpose") {
        return place.read(node).permutation(from.len())?.iter().position(|&own| own == axis);
    }
    if node.is("Split") {
        return Some(axis).filter(|axis| place.read(node).axis(from.len()) != Some(*axis)).filter(is_kept);
    }
    match traits_of(place.model, node).moves? {
        // Axes that are spread are the last ones of the result.
        Movement::Spread => to.len().checked_sub(from.len())?.checked_add(axis).filter(is_kept),
        // As many elements lie before the axis as before.
        Movement::Layout => {
            let before = |dims: &[Dim]| {
                dims.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.as_const().filter(|dim| *dim > 0)?))
            };
            let lead = before(from.get(..axis)?)?;
            (0..to.len()).filter(is_kept).find(|&at| to.get(..at).and_then(before) == Some(lead))
        }
        _ => None,
    }
}
