//! Slices of concatenations, and concatenations of slices.

use std::ops::RangeInclusive;

use super::cuts::{Cut, READING, cuts_of, part, range_of, ranges_of, same_cut};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::rewrite::build::{Build, rebuilt};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::slicing::{self, Bound, Range};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "slice-of-concat",
        law: "Concat(p₀, …, pₙ)[r] = Concat(pᵢ, …, pⱼ)[r′]",
        sentence: "Moves a Slice of a Concat to the operands of the Concat that contain the selected elements.",
        premises: &[
            ("within", "for all sizes, the selected elements are proved to lie in the operands pᵢ, …, pⱼ"),
            (
                "saves",
                "only one operand remains, or no Slice is needed, or the Concat has no other consumer and gets fewer operands",
            ),
        ],
        exact: true,
        operators: &["Slice"],
        apply: slice_of_concat,
    },
    Rule {
        name: "concat-of-slices",
        law: "Concat(x[a : m], x[m : b]) = x[a : b]",
        sentence: "Merges adjacent Slices of one tensor that a Concat joins.",
        premises: &[
            ("adjacent", "each Slice is proved to start where the preceding Slice ends, along the axis of the Concat"),
            ("same-elsewhere", "the Slices select the same elements on every other axis"),
            ("one-source", "the operands are Slices of the same tensor x"),
            ("pays", "the rewrite removes at least one node"),
        ],
        exact: true,
        operators: &["Concat"],
        apply: concat_of_slices,
    },
];

/// The most pieces of a Concat that a Slice is looked for in. Without it, N slices of a Concat of N pieces take N² looks.
const MOST_PIECES: usize = 256;

/// Which pieces a cut of the concatenation lies in, and what it is of them. Piece `i` begins at `offsets[i]`; there is one offset
/// more than pieces.
fn pieces_of(scope: &Scope, cut: &Cut, offsets: &[Dim]) -> Option<(RangeInclusive<usize>, Option<Range>)> {
    let (start, len) = cut.exact.as_ref()?;
    let step = cut.range.step?;
    let count = offsets.len().checked_sub(1)?;
    let at = |i: usize| offsets.get(i);
    let fits = |first: usize, last: usize| {
        let (from, to) = (at(first)?, at(last.checked_add(1)?)?);
        let local = scope.sub(start, from);
        range_of(scope, &scope.sub(to, from), &local, step, len)
    };
    // The piece that the first element taken lies in: forward it is the first of the pieces, backward the last.
    let inside = |i: usize| at(i).is_some_and(|from| scope.le(from, start).is_yes());
    if step > 0 {
        let first = (0..count).rev().find(|&i| inside(i))?;
        return (first..count).find_map(|last| Some((first..=last, fits(first, last)?)));
    }
    let before = |i: usize| at(i + 1).is_some_and(|to| scope.lt(start, to).is_yes());
    let last = (0..count).find(|&i| before(i))?;
    (0..=last).rev().find_map(|first| Some((first..=last, fits(first, last)?)))
}

/// `Concat(p₀ … pₙ)[r]` is a slice of the pieces that `r` reaches, and where that is all of them, no slice.
///
/// Premises: the elements that `r` takes along the axis, as numbers for every value of the symbols, lie in those pieces.
fn slice_of_concat(place: &Place<'_>) -> Result<Edit, Miss> {
    let middle = place.operand(0)?;
    let (concat, node) = place.producer(middle, "Concat").ok_or(Miss::ROOT)?;
    let pieces: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    ensure(pieces.len() <= MOST_PIECES, miss!("within"))?;
    let cuts = cuts_of(place, place.id).ok_or(miss!("within"))?;
    let axis = place.read(node).axis(cuts.dims.len()).ok_or(Miss::ROOT)?;
    let cut = cuts.axes.get(axis).ok_or(miss!("within"))?.as_ref().ok_or(miss!("within"))?;
    let scope = place.scope();
    let mut offsets = vec![Dim::constant(0)];
    for &piece in &pieces {
        let end = scope.add(
            offsets.last().ok_or(Miss::ROOT)?,
            place.shape(piece).ok_or(miss!("within").of(piece))?.get(axis).ok_or(miss!("within").of(piece))?,
        );
        offsets.push(end);
    }
    let (reached, local) = pieces_of(scope, cut, &offsets).ok_or(miss!("within"))?;
    let reached = pieces.get(reached).ok_or(miss!("within"))?.to_vec();
    let mut ranges = ranges_of(&cuts.axes);
    *ranges.get_mut(axis).ok_or(miss!("within"))? = local;
    let is_whole = ranges.iter().all(Option::is_none);
    let mut edit = place.begin()?;
    if let [piece] = *reached.as_slice() {
        if is_whole {
            return place.forward(piece);
        }
        let slice = place.build(&mut edit, piece).slice_of_ranges(piece, &ranges).ok_or(Miss::EXPRESSIBLE)?;
        return place.instead(edit, slice);
    }
    // The shorter concatenation takes the place of the longer one, if nothing else reads that.
    let is_shorter = reached.len() < pieces.len() && place.has_one_reader(middle);
    let joined = rebuilt(node, Build::concat(reached, axis));
    if is_whole {
        return place.instead(edit, joined);
    }
    ensure(is_shorter, miss!("saves"))?;
    let shorter = edit.new_value(middle, "pieces");
    let slice = place.build(&mut edit, shorter).slice_of_ranges(shorter, &ranges).ok_or(Miss::EXPRESSIBLE)?;
    place.instead(edit.removing(concat).inserting(joined.output(shorter)), slice)
}

/// A value as a part of another: a slice of it, or what a Split makes of it.
struct Part {
    node: NodeId,
    data: ValueId,
    axes: Vec<Option<Cut>>,
    dims: Vec<Dim>,
}

fn part_of(place: &Place<'_>, value: ValueId) -> Option<Part> {
    if let Some((node, slice)) = place.producer(value, "Slice") {
        let data = slice.input(0)?;
        let cuts = cuts_of(place, node)?;
        return Some(Part { node, data, axes: cuts.axes.clone(), dims: cuts.dims.clone() });
    }
    let (node, split) = place.producer(value, "Split")?;
    let data = split.input(0)?;
    let dims = place.shape(data)?.to_vec();
    let (axis, cut) = part(place, split, value)?;
    let mut axes = vec![None; dims.len()];
    *axes.get_mut(axis)? = cut;
    Some(Part { node, data, axes, dims })
}

/// Where two cuts of an axis follow one another, what they take together; `Some(None)` is all of the axis.
///
/// * `x[a:m]` and `x[m:b]` are `x[a:b]` if they have as many elements together; whatever `m` is, then, nothing is missing or
///   doubled: with `a ≤ m ≤ b` that is so, and otherwise only if all are empty.
/// * Elements `s + k·t` for `k < n` and then from `s + n·t` on are elements `s + k·t`.
fn joined(scope: &Scope, dim: &Dim, first: &Cut, second: &Cut) -> Option<Option<Cut>> {
    let step = first.range.step.filter(|&step| second.range.step == Some(step))?;
    let ((start, len), (next, more)) = (first.exact.as_ref()?, second.exact.as_ref()?);
    let both = scope.add(len, more);
    if step == 1 && first.range.end == second.range.begin && first.range.end != Bound::Unknown {
        let range = Range::new(first.range.begin.clone(), second.range.end.clone(), Some(1)).ok()?;
        let found = slicing::resolve_exactly(scope, dim, &range, READING);
        if let Some((selection, total)) = found.filter(|(_, total)| scope.eq(total, &both).is_yes()) {
            let whole = slicing::takes_all(scope, dim, &range, &total);
            return Some(Some(Cut { range, exact: Some((selection.start, total)) }).filter(|_| !whole));
        }
    }
    let expected = scope.add(start, &scope.mul(len, &Dim::constant(step)));
    if !scope.eq(&expected, next).is_yes() {
        return None;
    }
    // With what follows it may be a range of numbers again, or all of the axis.
    let unsaid = || Some(Range { step: Some(step), ..Range::UNKNOWN });
    let range = range_of(scope, dim, start, step, &both).unwrap_or_else(unsaid);
    Some(range.map(|range| Cut { range, exact: Some((start.clone(), both)) }))
}

/// What parts one after the other come to, as far as they follow one another.
struct Run {
    /// How many operands it takes the place of.
    operands: usize,
    data: ValueId,
    axes: Vec<Option<Cut>>,
    /// The nodes that computed the operands.
    nodes: Vec<NodeId>,
}

/// All results of a Split in their order are its data, whatever the sizes are.
fn whole_split(place: &Place<'_>, values: &[ValueId], axis: usize) -> Option<Run> {
    let (node, split) = place.producer(*values.first()?, "Split")?;
    let data = split.input(0)?;
    let rank = place.shape(data)?.len();
    let outputs = split.outputs().iter().copied().collect::<Option<Vec<_>>>()?;
    let all = values.starts_with(&outputs) && place.read(split).axis(rank) == Some(axis);
    all.then(|| Run { operands: outputs.len(), data, axes: vec![None; rank], nodes: vec![node] })
}

fn run_from(place: &Place<'_>, values: &[ValueId], axis: usize) -> Option<Run> {
    let (&first, rest) = values.split_first()?;
    if let Some(run) = whole_split(place, values, axis) {
        return Some(run);
    }
    let Part { node, data, mut axes, dims } = part_of(place, first)?;
    let mut nodes = vec![node];
    let mut operands = 1;
    for &value in rest {
        let Some(next) = part_of(place, value).filter(|next| next.data == data) else { break };
        let others = axes.iter().zip(&next.axes).enumerate().filter(|(at, _)| *at != axis);
        let scope = place.scope();
        if !others.into_iter().all(|(_, (a, b))| same_cut(scope, a.as_ref(), b.as_ref())) {
            break;
        }
        let (Some(Some(own)), Some(Some(cut)), Some(dim)) = (axes.get(axis), next.axes.get(axis), dims.get(axis))
        else {
            break;
        };
        let Some(both) = joined(scope, dim, own, cut) else { break };
        *axes.get_mut(axis)? = both;
        nodes.push(next.node);
        operands += 1;
        // Nothing follows all of it.
        if axes.get(axis).is_some_and(Option::is_none) {
            break;
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    (operands > 1).then_some(Run { operands, data, axes, nodes })
}

/// `Concat(…, x[a:m], x[m:b], …) = Concat(…, x[a:b], …)`, and parts that are all of `x` are `x`.
fn concat_of_slices(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let output = node.output(0).ok_or(Miss::ROOT)?;
    let name = node.name.clone();
    let values: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    ensure(values.len() <= MOST_PIECES, miss!("adjacent"))?;
    let axis =
        place.read(node).axis(place.shape(output).ok_or(miss!("adjacent").of(output))?.len()).ok_or(Miss::ROOT)?;
    let mut runs = (0..values.len()).filter_map(|at| Some((at, run_from(place, values.get(at..)?, axis)?))).peekable();
    ensure(runs.peek().is_some(), miss!("adjacent"))?;
    let (at, run) = runs.find(|(at, run)| pays(place, &values, *at, run)).ok_or(miss!("pays"))?;
    let is_whole = run.axes.iter().all(Option::is_none);
    let alone = run.operands == values.len();
    if alone && is_whole {
        return place.forward(run.data);
    }
    let mut edit = place.begin()?;
    let part = if is_whole {
        run.data
    } else {
        let slice = place
            .build(&mut edit, run.data)
            .slice_of_ranges(run.data, &ranges_of(&run.axes))
            .ok_or(Miss::EXPRESSIBLE)?;
        let part = if alone { output } else { edit.new_value(output, "part") };
        edit.insert.push(if alone { slice.named(name.as_str()).output(part) } else { slice.output(part) });
        part
    };
    if alone {
        return Ok(edit.removing(place.id));
    }
    let mut operands = values;
    operands.splice(at..at.checked_add(run.operands).ok_or(Miss::COMPUTABLE)?, [part]);
    place.instead(edit, Build::concat(operands, axis))
}

/// Whether putting one part in the place of a run leaves no more nodes: a slice may be added where a node goes away.
fn pays(place: &Place<'_>, values: &[ValueId], at: usize, run: &Run) -> bool {
    let is_whole = run.axes.iter().all(Option::is_none);
    if is_whole || run.operands == values.len() {
        return true;
    }
    let gone = run.nodes.iter().any(|&id| {
        let outputs = place.model.node(id).map(Node::outputs).unwrap_or_default();
        let is_here = |value: ValueId| values.iter().skip(at).take(run.operands).any(|&here| here == value);
        let only_read_here = |&value: &ValueId| {
            place.model.is_unused(value) || (is_here(value) && place.model.is_read_only_by(value, &[place.id]))
        };
        outputs.iter().flatten().all(|value| only_read_here(value) && !place.model.value(*value).pinned)
    });
    let twice = |value: &ValueId| values.iter().filter(|other| *other == value).count() > 1;
    gone && !values.iter().any(twice)
}
