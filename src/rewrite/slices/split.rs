//! Replaces several Slices of one tensor by one Split.

use super::cuts::cuts_of;
use super::{fewest_parts, siblings};
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::rewrite::build::Build;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slices-to-split",
    law: "x[0 : a], x[a : b], …, x[z :] = Split(x)",
    sentence: "Replaces Slices of one tensor that do not overlap by one Split.",
    premises: &[
        ("known-places", "the dim of the axis, starts and ends are constants"),
        ("one-axis", "each Slice slices only this axis, with step 1, and selects at least one element"),
        ("no-overlap", "no two Slices overlap"),
        ("two-or-more", "x has at least two such Slices"),
        (
            "three-of-sizes",
            "if x holds dims, it has at least three such Slices, because runtimes do not infer the elements of Split outputs",
        ),
        ("not-squeezed", "no Slice of one element is followed by a Squeeze, because a Gather replaces both"),
    ],
    exact: true,
    operators: &["Slice"],
    apply: slices_to_split,
}];

/// A piece of an axis, and the Slices that select it.
struct Piece {
    start: i64,
    len: i64,
    slices: Vec<(NodeId, ValueId)>,
}

/// Returns the only axis that a Slice cuts, and its constant start and length.
fn only_cut(place: &Place<'_>, id: NodeId) -> Option<(usize, i64, i64)> {
    let cuts = cuts_of(place, id)?;
    let mut cut = cuts.cut();
    let (axis, only) = cut.next()?;
    if cut.next().is_some() || only.range.step != Some(1) {
        return None;
    }
    let (start, len) = only.exact.as_ref()?;
    let (start, len) = (start.as_const()?, len.as_const()?);
    (len > 0).then_some((axis, start, len))
}

/// Returns `true` if the only consumer of a value is a Squeeze: with the Slice before it, that is one Gather.
fn is_squeezed(place: &Place<'_>, value: ValueId) -> bool {
    let users = place.model.users(value);
    let is_squeeze = |&(id, _): &(NodeId, usize)| place.model.node(id).is_some_and(|node| node.is("Squeeze"));
    place.has_one_reader(value) && users.iter().all(is_squeeze)
}

/// Replaces `x[0:a], x[a:b], … , x[z:]` along an axis by one Split; gaps are unread results.
///
/// Premises: the dim and all bounds are numbers, and no two pieces overlap.
fn slices_to_split(place: &Place<'_>) -> Result<Edit, Miss> {
    let data = place.operand(0)?;
    let (axis, ..) = only_cut(place, place.id).ok_or(miss!("one-axis"))?;
    let dim = place
        .dims(data)?
        .get(axis)
        .ok_or(miss!("known-places").of(data))?
        .as_const()
        .ok_or(miss!("known-places").of(data))?;
    let mut slices = siblings(place, data, &["Slice"]);
    ensure(!slices.is_empty(), miss!("two-or-more").of(data))?;
    slices.push(place.id);
    slices.sort_unstable();
    let mut pieces: Vec<Piece> = Vec::new();
    for id in slices {
        let Some((_, start, len)) = only_cut(place, id).filter(|&(other, ..)| other == axis) else { continue };
        let value = place.model.node(id).ok_or(Miss::ROOT)?.output(0).ok_or(Miss::ROOT)?;
        if len == 1 && is_squeezed(place, value) {
            continue;
        }
        let entry = (id, value);
        match pieces.iter_mut().find(|piece| piece.start == start && piece.len == len) {
            Some(piece) => piece.slices.push(entry),
            None => pieces.push(Piece { start, len, slices: vec![entry] }),
        }
    }
    sort::by_key(&mut pieces, |piece| piece.start);
    let overlap = |pair: &[Piece]| matches!(pair, [a, b] if a.start.checked_add(a.len).is_none_or(|end| end > b.start));
    let fewest = fewest_parts(place, data);
    let few = if fewest > 2 { miss!("three-of-sizes") } else { miss!("two-or-more") };
    ensure(pieces.len() >= fewest, few.of(data))?;
    ensure(!pieces.windows(2).any(overlap), miss!("no-overlap"))?;
    let name = place.root()?.name.clone();
    let mut edit = place.begin()?;
    let (mut sizes, mut outputs) = (Vec::new(), Vec::new());
    let mut at = 0i64;
    let gap = |edit: &mut Edit, sizes: &mut Vec<i64>, outputs: &mut Vec<ValueId>, at: i64, to: i64| {
        if to > at {
            sizes.push(to - at);
            outputs.push(edit.new_value(data, "rest"));
        }
    };
    for piece in pieces {
        gap(&mut edit, &mut sizes, &mut outputs, at, piece.start);
        at = piece.start.checked_add(piece.len).ok_or(Miss::COMPUTABLE)?;
        sizes.push(piece.len);
        let mut slices = piece.slices.into_iter();
        let (id, value) = slices.next().ok_or(Miss::ROOT)?;
        outputs.push(value);
        edit.remove.push(id);
        for (id, equal) in slices {
            // Equal slices that are both outputs of the graph keep their nodes.
            if place.model.is_named(equal) {
                continue;
            }
            edit.replace.push((equal, value));
            edit.remove.push(id);
        }
    }
    gap(&mut edit, &mut sizes, &mut outputs, at, dim);
    let stem = format!("{}_split", place.model.value(data).name);
    let split = Build::named(&mut edit, place.opset, stem).split(data, axis, sizes).ok_or(Miss::EXPRESSIBLE)?;
    edit.insert.push(outputs.into_iter().fold(split.named(name), NewNode::output));
    Ok(edit)
}
