//! Splits and the slices they stand for.

use super::cuts::{Cut, cuts_of, part, same_cut};
use super::{can_precede, fewest_parts, siblings};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::rewrite::build::Build;
use crate::rewrite::{Place, Rule};
use crate::slicing::Range;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "slice-of-split-data",
        law: "x[r] = part i of Split(x) where r takes that part",
        sentence: "Replaces a Slice by an equal output of a Split.",
        premises: &[
            ("same-elements", "both are proved to take the same of every axis"),
            ("can-precede", "the other operands of the other node are constants, inputs, or operands of this node"),
            ("one-name", "at most one of the results is a graph output"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: slice_is_part,
    },
    Rule {
        name: "slices-to-split",
        law: "x[0 : a], x[a : b], …, x[z :] = Split(x)",
        sentence: "Replaces disjoint Slices of one value by a Split.",
        premises: &[
            ("known-places", "the size of the axis and all bounds are numbers"),
            ("one-axis", "each slice cuts only this axis, with step 1, and is not empty"),
            ("no-overlap", "no two overlap"),
            ("two-or-more", "at least two of them exist"),
            (
                "three-of-sizes",
                "three parts exist if the data are dims or other tracked integers, because runtimes track none through a Split",
            ),
            ("not-squeezed", "a slice of one element is not squeezed: that is a Gather"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: slices_to_split,
    },
    Rule {
        name: "split-to-slice",
        law: "part i of Split(x) = x[begin of i : end of i]",
        sentence: "Replaces a Split with a single used output by a Slice.",
        premises: &[
            ("one-read", "exactly one result is read"),
            ("known-places", "constants can express start and end"),
        ],
        exact: true,
        operators: &["Split"],
        apply: split_to_slice,
    },
];

/// A slice that takes what a Split of the same data has as a result is that result.
fn slice_is_part(place: &Place<'_>) -> Option<Edit> {
    let (data, output) = (place.input(0)?, place.output(0)?);
    let splits = siblings(place, data, &["Split"]);
    if splits.is_empty() {
        return None;
    }
    let cuts = cuts_of(place, place.id)?;
    let equal = |node: &Node, value: ValueId| {
        let (axis, cut) = part(place, node, value)?;
        let same = |(at, own): (usize, &Option<Cut>)| {
            same_cut(place.scope(), own.as_ref(), cut.as_ref().filter(|_| at == axis))
        };
        cuts.axes.iter().enumerate().all(same).then_some(value)
    };
    let found = splits.into_iter().find_map(|id| {
        let node = place.model.node(id).filter(|node| can_precede(place, node))?;
        let free = |value: &ValueId| !place.model.is_named(output) || !place.model.is_named(*value);
        node.outputs().iter().flatten().copied().filter(free).find_map(|value| equal(node, value))
    })?;
    place.forward(found)
}

/// A Split of which one result is read is a slice.
fn split_to_slice(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let data = node.input(0)?;
    let mut read = node.outputs().iter().flatten().copied().filter(|&value| !place.model.is_unused(value));
    let (Some(value), None) = (read.next(), read.next()) else { return None };
    let (axis, cut) = part(place, node, value)?;
    let mut edit = place.edit()?.removing(place.id);
    let slice = match cut {
        None => NewNode::new("Identity", [Some(data)]),
        Some(cut) => {
            let rank = place.shape(data)?.len();
            let ranges: Vec<Option<Range>> = (0..rank).map(|at| (at == axis).then(|| cut.range.clone())).collect();
            place.build(&mut edit, data).slice_of_ranges(data, &ranges)?
        }
    };
    Some(edit.inserting(slice.named(node.name.clone()).output(value)))
}

/// A piece of an axis that some slices of a value take.
struct Piece {
    start: i64,
    len: i64,
    slices: Vec<(NodeId, ValueId)>,
}

/// The one axis a slice cuts, and what it takes of it in numbers.
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

/// Whether all that becomes of a value is a Squeeze: with the slice before it that is one Gather.
fn is_squeezed(place: &Place<'_>, value: ValueId) -> bool {
    let users = place.model.users(value);
    let is_squeeze = |&(id, _): &(NodeId, usize)| place.model.node(id).is_some_and(|node| node.is("Squeeze"));
    place.has_one_reader(value) && users.iter().all(is_squeeze)
}

/// `x[0:a], x[a:b], … , x[z:]` along an axis are one Split, gaps being results nobody reads.
///
/// Premises: the dim and all bounds are numbers, and no two pieces overlap.
fn slices_to_split(place: &Place<'_>) -> Option<Edit> {
    let data = place.input(0)?;
    let (axis, ..) = only_cut(place, place.id)?;
    let dim = place.shape(data)?.get(axis)?.as_const()?;
    let mut slices = siblings(place, data, &["Slice"]);
    if slices.is_empty() {
        return None;
    }
    slices.push(place.id);
    slices.sort_unstable();
    let mut pieces: Vec<Piece> = Vec::new();
    for id in slices {
        let Some((_, start, len)) = only_cut(place, id).filter(|&(other, ..)| other == axis) else { continue };
        let value = place.model.node(id)?.output(0)?;
        if len == 1 && is_squeezed(place, value) {
            continue;
        }
        let entry = (id, value);
        match pieces.iter_mut().find(|piece| piece.start == start && piece.len == len) {
            Some(piece) => piece.slices.push(entry),
            None => pieces.push(Piece { start, len, slices: vec![entry] }),
        }
    }
    pieces.sort_by_key(|piece| piece.start);
    let overlap = |pair: &[Piece]| matches!(pair, [a, b] if a.start.checked_add(a.len).is_none_or(|end| end > b.start));
    if pieces.len() < fewest_parts(place, data) || pieces.windows(2).any(overlap) {
        return None;
    }
    let name = place.node()?.name.clone();
    let mut edit = place.edit()?;
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
        at = piece.start.checked_add(piece.len)?;
        sizes.push(piece.len);
        let mut slices = piece.slices.into_iter();
        let (id, value) = slices.next()?;
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
    let split = Build::named(&mut edit, place.opset, stem).split(data, axis, sizes)?;
    edit.insert.push(outputs.into_iter().fold(split.named(name), NewNode::output));
    Some(edit)
}
