//! Slices of one value along one axis that leave little out are the parts of a Split.
//!
//! Law: `Split(x, [n₀ n₁ …])` gives `x[0:n₀]`, `x[n₀:n₀+n₁]` and so on. What no slice takes is a part that nothing reads; there may
//! not be more of it than of the others, for it is copied for nothing.

use super::slices::taken;
use super::split::split;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NodeId, ValueId};
use crate::ops::axis_in;
use crate::slicing::Bound;

pub(super) const RULES: &[Rule] =
    &[Rule { name: "slices-to-split", operators: &["Slice", "Gather"], exact: true, apply: slices }];

/// How many readers of one value are looked at.
const MOST: usize = 64;

/// Elements of an axis that a node takes.
struct Part {
    node: NodeId,
    axis: usize,
    begin: i64,
    end: i64,
    result: ValueId,
}

fn slices(place: &mut Place<'_>) -> Option<Edit> {
    let own = part(place, place.id)?;
    let data = place.input(0)?;
    let size = place.shape(data)?.get(own.axis)?.as_const()?;
    let mut users = place.model.users(data);
    users.retain(|&(_, slot)| slot == 0);
    users.sort_unstable();
    if place.opset < 2 || !(2..=MOST).contains(&users.len()) {
        return None;
    }
    let alike = |&(id, _): &(NodeId, usize)| part(place, id).filter(|part| part.axis == own.axis);
    let mut parts: Vec<Part> = users.iter().filter_map(alike).collect();
    // The first of them stands for all.
    if parts.len() < 2 || parts.first()?.node != place.id {
        return None;
    }
    parts.sort_unstable_by_key(|part| part.begin);
    let (mut sizes, mut outputs) = (Vec::new(), Vec::new());
    let (mut next, mut unread) = (0i64, 0i64);
    let mut edit = place.edit("slices-to-split")?;
    let ends = parts.iter().map(|part| (part.begin, part.end, Some(part.result))).chain([(size, size, None)]);
    for (begin, end, result) in ends {
        let gap = begin.checked_sub(next).filter(|&gap| gap >= 0)?;
        if gap > 0 {
            unread = unread.checked_add(gap)?;
            sizes.push(gap);
            outputs.push(place.new_value(data, "rest"));
        }
        if let Some(result) = result {
            sizes.push(end.checked_sub(begin)?);
            outputs.push(result);
        }
        next = end;
    }
    edit.remove.extend(parts.iter().map(|part| part.node));
    if unread > size.checked_sub(unread)? {
        return None;
    }
    split(place, &mut edit, data, own.axis, &sizes, &outputs)?;
    Some(edit)
}

/// What a node takes of one axis, if that is a run of elements.
fn part(place: &Place<'_>, id: NodeId) -> Option<Part> {
    let node = place.model.node(id)?;
    let result = node.output(0)?;
    let dims = place.shape(node.input(0)?)?;
    if !node.canonical_domain().is_empty() || Some(node.graph()) != place.graph() {
        return None;
    }
    let (axis, begin, end) = if node.is("Slice") {
        let slice = taken(place, id)?;
        let mut ranges = slice.ranges.iter().enumerate().filter_map(|(axis, range)| Some((axis, range.as_ref()?)));
        let (axis, range) = ranges.next().filter(|_| ranges.next().is_none())?;
        let size = dims.get(axis)?.as_const()?;
        let at = |bound: &Bound, open: i64| match bound {
            Bound::Open => Some(open),
            Bound::At(at) => at.as_const().map(|at| if at < 0 { at.saturating_add(size) } else { at }.clamp(0, size)),
            Bound::Unknown => None,
        };
        (range.step == Some(1)).then_some((axis, at(&range.begin, 0)?, at(&range.end, size)?))?
    } else if node.is("Gather") {
        let axis = match node.attribute("axis") {
            None => 0,
            Some(Attribute::Int(axis)) => axis_in(*axis, dims.len()).ok()?,
            Some(_) => return None,
        };
        let index = place.constant(node.input(1)?).filter(|index| index.shape() == [1])?.to_i64s()?;
        let size = dims.get(axis)?.as_const()?;
        let index = index.first().map(|&index| if index < 0 { index.saturating_add(size) } else { index })?;
        (axis, index, index.checked_add(1)?)
    } else {
        return None;
    };
    let size = dims.get(axis)?.as_const()?;
    // What the part is known to have is what it takes.
    let length = Dim::constant(end.checked_sub(begin)?);
    let fits = 0 <= begin && begin < end && end <= size;
    let known = place.shape(result)?.get(axis).is_some_and(|dim| *dim == length);
    (fits && known).then_some(Part { node: id, axis, begin, end, result })
}
