//! Selections of single elements along one axis.

use super::{fewest_parts, siblings};
use crate::ir::{Edit, NewNode, NodeId};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;

pub(in crate::rewrite) const LATE_RULES: &[Rule] = &[Rule {
    name: "gathers-to-split",
    law: "Gather(x, [i]), Gather(x, [j]), … = parts of Split(x)",
    sentence: "Replaces several Gathers of single positions of one axis by one Split.",
    premises: &[
        (
            "known-places",
            "the dim of the axis is a constant, and the indices of each Gather are a constant vector with one element",
        ),
        ("two-or-more", "x has at least two such Gathers"),
        (
            "three-of-sizes",
            "if x holds dims, it has at least three such Gathers, because runtimes do not infer the elements of Split outputs",
        ),
        ("distinct", "the Gathers select different positions"),
        (
            "few-gaps",
            "at most as many positions of the axis are skipped as selected, because a Split also copies skipped positions",
        ),
    ],
    exact: true,
    operators: &["Gather"],
    apply: gathers,
}];

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
    sort::sort(&mut parts);
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
