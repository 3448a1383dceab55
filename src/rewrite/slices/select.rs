//! Selections of single elements along one axis.

use super::cuts::{cuts_of, part};
use super::{fewest_parts, siblings};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "selections-to-gather",
    law: "Concat(x[i₀ i₁ …], x[j₀ j₁ …]) = Gather(x, [i₀ i₁ … j₀ j₁ …])",
    sentence: "Replaces a Concat of Slices along its axis by a Gather.",
    premises: &[
        ("known-places", "the dim of the axis and the selected ranges are constants"),
        (
            "one-source",
            "all operands are slices of one value, or results of a Split of it, that take the other axes whole",
        ),
        ("one-reader", "the removed values have no other consumer"),
        ("out-of-order", "the places are not one range: that is a slice"),
        ("no-larger", "the indices take no more bytes than the removed nodes"),
        ("no-strings", "the data is not a string tensor, for which ONNX Runtime's Gather returns wrong elements"),
    ],
    exact: true,
    operators: &["Concat"],
    apply: selections,
}];

pub(in crate::rewrite) const LATE_RULES: &[Rule] = &[Rule {
    name: "gathers-to-split",
    law: "Gather(x, [i]), Gather(x, [j]), … = parts of Split(x)",
    sentence: "Replaces lookups of single elements along an axis by one Split.",
    premises: &[
        ("known-places", "the size of the axis is a number, and each index is one constant in a vector"),
        ("two-or-more", "at least two of them exist"),
        (
            "three-of-sizes",
            "three parts exist if the data are dims or other tracked integers, because runtimes track none through a Split",
        ),
        ("distinct", "no two take the same place: those become one first"),
        (
            "few-gaps",
            "the number of skipped positions is at most that of selected ones, because skipped ones are copied in vain",
        ),
    ],
    exact: true,
    operators: &["Gather"],
    apply: gathers,
}];

/// The most indices of a list that takes the place of several. Longer lists make the model larger than the nodes they replace: a node, its
/// result and its type take some hundred bytes.
const MOST_INDICES: usize = 1024;
const VALUE_BYTES: usize = 64;

/// `Concat(x[i₀ i₁ …], x[j₀ j₁ …]) = x[i₀ i₁ … j₀ j₁ …]` along the axis, for lists of indices; slices and the parts of a Split have
/// such lists. So an axis is rolled by one Gather.
///
/// Premises: the dim and all bounds are numbers, and nothing else reads what is put together.
fn selections(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let output = node.output(0).ok_or(Miss::ROOT)?;
    let rank = place.shape(output).ok_or(miss!("known-places").of(output))?.len();
    let axis = place.read(node).axis(rank).ok_or(Miss::ROOT)?;
    let mut remove: Vec<NodeId> = Vec::new();
    let mut indices: Vec<i32> = Vec::new();
    let mut data = None;
    for value in node.inputs() {
        let value = (*value).ok_or(Miss::ROOT)?;
        let id = place.model.value(value).producer().ok_or(Miss::ROOT)?;
        let source = place.model.node(id).ok_or(Miss::ROOT)?.input(0).ok_or(Miss::ROOT)?;
        ensure(*data.get_or_insert(source) == source, miss!("one-source"))?;
        indices.extend(selected(place, id, value, axis).ok_or(miss!("known-places"))?);
        remove.push(id);
    }
    remove.sort_unstable();
    remove.dedup();
    // All that goes is read here only. A Split whose parts are put together as they were is nothing at all, and not for this rule.
    let gone = remove.iter().filter_map(|&id| place.model.node(id)).flat_map(Node::outputs).flatten();
    let free = |value: &ValueId| place.model.is_read_only_by(*value, &[place.id]);
    let closed = gone.copied().collect::<Vec<_>>().iter().all(free);
    let data = data.filter(|&data| place.may_be_looked_up(data)).ok_or(miss!("no-strings"))?;
    let bytes = indices.len().checked_mul(size_of::<i32>()).ok_or(Miss::COMPUTABLE)?;
    let gone: Vec<NodeId> = remove.iter().copied().chain([place.id]).collect();
    let spared = place
        .allowance(&gone)
        .checked_add(VALUE_BYTES.checked_mul(node.inputs().len()).ok_or(Miss::COMPUTABLE)?)
        .ok_or(Miss::COMPUTABLE)?;
    let in_order = indices.iter().zip(indices.iter().skip(1)).all(|(a, b)| a.checked_add(1) == Some(*b));
    ensure(node.inputs().len() >= 2, Miss::ROOT)?;
    ensure(closed, miss!("one-reader"))?;
    ensure(!in_order, miss!("out-of-order"))?;
    ensure(indices.len() <= MOST_INDICES, miss!("known-places"))?;
    ensure(bytes <= spared, miss!("no-larger"))?;
    let mut edit = place.begin()?;
    edit.remove = remove;
    let gather = place.build(&mut edit, output).gather_at(data, Tensor::vector(indices), axis);
    place.instead(edit, gather)
}

/// The indices along an axis of what a Slice or a part of a Split takes, if it takes all of the other axes.
fn selected(place: &Place<'_>, id: NodeId, value: ValueId, axis: usize) -> Option<Vec<i32>> {
    let node = place.model.node(id).filter(|node| Some(node.graph()) == place.graph())?;
    let size = place.shape(node.input(0)?)?.get(axis)?.as_const()?;
    let cut = if node.is("Slice") {
        let cuts = cuts_of(place, id)?;
        if cuts.cut().any(|(at, _)| at != axis) {
            return None;
        }
        cuts.axes.get(axis)?.clone()
    } else if node.is("Split") {
        let (along, cut) = part(place, node, value)?;
        if along != axis {
            return None;
        }
        cut
    } else {
        return None;
    };
    let (begin, length, step) = match cut {
        None => (0, size, 1),
        Some(cut) => {
            let (start, len) = cut.exact?;
            (start.as_const()?, len.as_const()?, cut.range.step?)
        }
    };
    let count = usize::try_from(length).ok().filter(|&count| count > 0 && count <= MOST_INDICES)?;
    let at = |i: usize| i32::try_from(begin.checked_add(step.checked_mul(i64::try_from(i).ok()?)?)?).ok();
    (0..count).map(at).collect()
}

/// `x[[i₀]], x[[i₁]], …` along an axis are one Split, gaps being results nobody reads.
///
/// Premises: the dim and all indices are numbers. There may not be more in gaps than is taken, for it is copied for nothing.
fn gathers(place: &Place<'_>) -> Result<Edit, Miss> {
    let data = place.operand(0)?;
    let (axis, _) = element(place, place.id).ok_or(miss!(LATE_RULES, "known-places"))?;
    let size = place
        .shape(data)
        .ok_or(miss!(LATE_RULES, "known-places").of(data))?
        .get(axis)
        .ok_or(miss!(LATE_RULES, "known-places").of(data))?
        .as_const()
        .ok_or(miss!(LATE_RULES, "known-places").of(data))?;
    let mut ids = siblings(place, data, &["Gather"]);
    ids.push(place.id);
    ids.sort_unstable();
    let mut parts = Vec::new();
    for id in ids {
        let Some((_, index)) = element(place, id).filter(|(along, _)| *along == axis) else { continue };
        parts.push((index, id, place.model.node(id).ok_or(Miss::ROOT)?.output(0).ok_or(Miss::ROOT)?));
    }
    // The first of them stands for all; equal ones become one before.
    let fewest = fewest_parts(place, data);
    let few = if fewest > 2 { miss!(LATE_RULES, "three-of-sizes") } else { miss!(LATE_RULES, "two-or-more") };
    ensure(parts.len() >= fewest, few.of(data))?;
    ensure(parts.first().ok_or(Miss::ROOT)?.1 == place.id, Miss::ROOT)?;
    parts.sort_unstable();
    let (mut sizes, mut outputs) = (Vec::new(), Vec::new());
    let (mut next, mut unread) = (0i64, 0i64);
    let mut edit = place.begin()?;
    let ends = parts.iter().map(|&(index, _, result)| (index, Some(result))).chain([(size, None)]);
    for (begin, result) in ends {
        let gap = begin.checked_sub(next).filter(|&gap| gap >= 0).ok_or(miss!(LATE_RULES, "distinct"))?;
        if gap > 0 {
            unread = unread.checked_add(gap).ok_or(Miss::COMPUTABLE)?;
            sizes.push(gap);
            outputs.push(edit.new_value(data, "rest"));
        }
        if let Some(result) = result {
            sizes.push(1);
            outputs.push(result);
        }
        next = begin.checked_add(1).ok_or(Miss::COMPUTABLE)?;
    }
    ensure(unread <= size.checked_sub(unread).ok_or(Miss::COMPUTABLE)?, miss!(LATE_RULES, "few-gaps"))?;
    edit.remove.extend(parts.iter().map(|&(_, id, _)| id));
    let split = place.build(&mut edit, data).split(data, axis, sizes).ok_or(Miss::EXPRESSIBLE)?;
    Ok(edit.inserting(outputs.into_iter().fold(split, NewNode::output)))
}

/// The axis and index of a Gather of one element that keeps the axis.
fn element(place: &Place<'_>, id: NodeId) -> Option<(usize, i64)> {
    let node = place.model.node(id)?;
    let dims = place.shape(node.input(0)?)?;
    let axis = place.read(node).axis(dims.len())?;
    let index = place.constant(node.input(1)?).filter(|index| index.shape() == [1])?.to_i64s()?;
    let size = dims.get(axis)?.as_const()?;
    let index = index.first().map(|&index| if index < 0 { index.saturating_add(size) } else { index })?;
    (0 <= index && index < size).then_some((axis, index))
}
