//! Which axes of the operand of a Reshape become which of its result.

use crate::dim::{Dim, Scope};

/// Axes `from` of the operand of a Reshape that become the axes `to` of its result.
pub(super) struct Group {
    pub from: std::ops::Range<usize>,
    pub to: std::ops::Range<usize>,
}

/// The smallest groups of axes that have as many elements on both sides, in order.
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
    // What is left over has size 1 and belongs to the last group.
    let one = |rest: &[Dim]| rest.iter().all(|dim| dim.is_const(1));
    if !one(from.get(i..)?) || !one(to.get(j..)?) {
        return None;
    }
    let last = groups.last_mut()?;
    last.from.end = from.len();
    last.to.end = to.len();
    Some(groups)
}
