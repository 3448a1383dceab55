//! What is done to a part of a constant, done to the constant.
//!
//! Law: where `f` moves elements and keeps the axis that is cut, `f(C[r]) = f(C)[r]`, with the axis where `f` puts it. For a constant `C` that is
//! a part of another constant: exporters take the sines and cosines of the first positions apart and repeat them, layer by layer. A product
//! with rows of a constant is those rows of a product: `C[r]·W + b = (C·W + b)[r]`, as for positions relative to each other.

use super::cuts::cuts_of;
use crate::dim::Dim;
use crate::ir::{Data, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::ops::{Environment, evaluate_node};
use crate::rewrite::{Place, Rule};
use crate::slicing::SliceRule;
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
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
    },
    Rule {
        name: "product-of-part",
        law: "C[r] · W + b = (C · W + b)[r] for constants C, W and b",
        sentence: "Folds a product with selected rows of a constant into the constant.",
        premises: &[
            ("rows", "the slice cuts one axis at a computed index, and this axis is not reduced"),
            ("constant", "all other operands are constants, and the addend is the same for all rows"),
            ("one-reader", "the part has no other consumer"),
            ("small", "the new constants take at most 256 KiB more than the removed ones"),
        ],
        exact: false,
        operators: &["MatMul", "Gemm"],
        apply: of_part,
    },
];

/// How many bytes the constants may take more than those that go.
const MAX_ADDED: usize = 256 << 10;

/// How many bytes a constant may have.
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

fn of_part(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let slot = usize::from(node.is("Gather"));
    let value = node.input(slot)?;
    if place.constant(value).is_some() {
        return None;
    }
    let Part { id, slice, whole, data, axis } = part(place, value)?;
    let outputs: Vec<ValueId> = node.outputs().iter().copied().collect::<Option<_>>()?;
    let first = *outputs.first().filter(|_| outputs.len() <= 2)?;
    let kept = kept_axis(place, node, value, first, axis)?;
    let is_added = |&(reader, _): &(NodeId, usize)| place.model.node(reader).is_some_and(|reader| reader.is("Add"));
    if node.is("Gather") && place.model.users(first).iter().any(is_added) {
        return None;
    }
    let mut others: Vec<ValueId> = Vec::new();
    let mut operands = Vec::with_capacity(node.inputs().len());
    for (at, input) in node.inputs().iter().enumerate() {
        operands.push(match input {
            None => None,
            Some(_) if at == slot => Some(Data::Tensor(whole.clone())),
            Some(other) => {
                others.push(*other);
                Some(Data::Tensor(place.constant(*other)?.clone()))
            }
        });
    }
    let environment = Environment::of(place.model);
    let results = evaluate_node(&environment, place.id, node, operands, place.budget, SliceRule::Agree, 0).ok()?;
    let results: Vec<&Tensor> = results.iter().map(Data::tensor).collect::<Option<_>>()?;
    if results.len() != outputs.len() {
        return None;
    }
    let is_freed = |value: ValueId, reader: NodeId| {
        place.model.value(value).is_constant() && place.model.is_read_only_by(value, &[reader])
    };
    let mut freed = if is_freed(data, id) { whole.byte_len() } else { 0 };
    for &other in others.iter().filter(|&&other| is_freed(other, place.id)) {
        freed = freed.saturating_add(place.constant(other)?.byte_len());
    }
    let added = results.iter().fold(0usize, |sum, result| sum.saturating_add(result.byte_len()));
    if added > freed.saturating_add(MAX_ADDED) {
        return None;
    }
    let bounds = place.dtype(slice.input(1)?);
    let size = i64::try_from(*whole.shape().get(axis)?).ok()?;
    let mut edit = place.edit()?.removing(id).removing(place.id);
    for (output, result) in outputs.into_iter().zip(results) {
        // Along the axis all of the constant takes the place of the part, and nothing else is another.
        let expected = place.shape(output)?.iter().enumerate();
        let expected = expected.map(|(at, dim)| if at == kept { Some(size) } else { dim.as_const() });
        let own = result.shape().iter().map(|&dim| i64::try_from(dim).ok());
        if !expected.eq(own) {
            return None;
        }
        let table = edit.constant(output, "table", result.clone());
        let axes = vec![i64::try_from(kept).ok()?];
        let new = place.build(&mut edit, output).slice_along(NewNode::like(slice).reading(0, table), axes, bounds)?;
        edit.insert.push(new.output(output));
    }
    Some(edit)
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
    if node.is("MatMul") || node.is("Gemm") {
        // The last axis is summed over, and what is added to a row must not depend on which it is.
        let same =
            |slot: usize| node.input(slot).is_none_or(|added| place.shape(added).is_some_and(|dims| dims.len() <= 1));
        let is_row = axis.checked_add(1)? < from.len() && place.shape(node.input(1)?)?.len() == 2;
        let plain = !node.flag("transA", false)? && same(2);
        return Some(axis).filter(|_| is_row && plain).filter(is_kept);
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
