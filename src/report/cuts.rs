//! What each Slice takes of its axes, for a picture of it.

use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model};
use crate::ops::slice_cuts;

/// What every size that is open counts as in a picture.
pub const PICTURED: i64 = 64;

/// What a Slice takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SliceTaken {
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// What it takes from.
    pub data: String,
    /// Its axes.
    pub axes: Vec<AxisTaken>,
}

/// What a Slice takes of one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AxisTaken {
    /// The size of the axis.
    pub size: String,
    /// Where it begins and how many elements it takes, as expressions; nothing if it takes all, or nobody can tell.
    pub taken: Option<(String, String)>,
    /// Whether it is known what it takes.
    pub is_known: bool,
    /// Beginning, number of elements and size in numbers, with 64 for every size that is open.
    pub picture: Option<(i64, i64, i64)>,
    /// The step between elements, where it is known.
    pub step: Option<i64>,
}

/// What every Slice of the main graph takes, as far as it is known of which axes.
pub(crate) fn slices_taken(model: &Model, facts: &Facts) -> Vec<SliceTaken> {
    let scope = facts.scope();
    let graph = model.graph(model.main());
    let of = |id| {
        let node = model.node(id)?;
        let cuts = slice_cuts(model, facts, id)?;
        let axes = cuts.axes.iter().zip(&cuts.dims).map(|(cut, dim)| match cut {
            None => axis(scope, dim, Some((Dim::constant(0), dim.clone())), Some(1), false),
            Some(cut) => axis(scope, dim, cut.exact.clone(), cut.range.step, true),
        });
        let data = node.input(0).map_or_else(String::new, |value| model.value(value).name.to_string());
        Some(SliceTaken { node: model.describe(id), data, axes: axes.collect() })
    };
    graph.nodes().filter(|&id| model.node(id).is_some_and(|node| node.is("Slice"))).filter_map(of).collect()
}

/// Returns a dim with 64 for every size that is open.
pub(super) fn pictured(dim: &Dim) -> Option<i64> {
    dim.evaluate(&|_| Some(PICTURED))
}

/// Returns what a range takes of an axis; `None` if it is not known.
pub(super) fn axis(scope: &Scope, size: &Dim, taken: Option<(Dim, Dim)>, step: Option<i64>, is_cut: bool) -> AxisTaken {
    let picture = taken.as_ref().and_then(|(start, len)| Some((pictured(start)?, pictured(len)?, pictured(size)?)));
    let picture = picture.filter(|&(start, len, size)| {
        let span = len.checked_sub(1).and_then(|last| last.checked_mul(step.unwrap_or(1)));
        let last = span.and_then(|span| start.checked_add(span));
        size > 0
            && len >= 0
            && (len == 0 || (0..size).contains(&start) && last.is_some_and(|last| (0..size).contains(&last)))
    });
    let is_known = taken.is_some();
    let taken = taken.filter(|_| is_cut).map(|(start, len)| (scope.format(&start), scope.format(&len)));
    AxisTaken { size: scope.format(size), taken, is_known, picture, step }
}
