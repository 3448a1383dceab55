//! Groups the axes of a Reshape: which axes of the data form which axes of the result.

use crate::dim::{Dim, Scope};

/// Axes `from` of the data of a Reshape that form the axes `to` of its result.
pub(super) struct Group {
    pub from: std::ops::Range<usize>,
    pub to: std::ops::Range<usize>,
}

/// Returns the smallest groups of axes with equal numbers of elements on both sides, in order.
pub(super) fn groups(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Vec<Group>> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        let (own, goal) = (from.get(i)?, to.get(j)?);
        let reach = |start: &Dim, goal: &Dim, rest: &[Dim]| {
            let mut whole = start.clone();
            rest.iter().position(|dim| {
                whole = scope.mul(&whole, dim);
                scope.eq(&whole, goal).is_yes()
            })
        };
        let (mut reads, mut writes) = (1, 1);
        if !scope.eq(own, goal).is_yes() {
            if let Some(more) = reach(goal, own, to.get(j + 1..)?) {
                writes += more + 1;
            } else {
                reads += reach(own, goal, from.get(i + 1..)?)? + 1;
            }
        }
        groups.push(Group { from: i..i + reads, to: j..j + writes });
        (i, j) = (i + reads, j + writes);
    }
    // The remaining axes have size 1 and belong to the last group.
    let one = |rest: &[Dim]| rest.iter().all(|dim| dim.is_const(1));
    if !one(from.get(i..)?) || !one(to.get(j..)?) {
        return None;
    }
    let last = groups.last_mut()?;
    last.from.end = from.len();
    last.to.end = to.len();
    Some(groups)
}
