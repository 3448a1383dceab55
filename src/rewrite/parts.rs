//! Several slices of one value along one axis.
//!
//! Laws:
//!
//! * `Split(x, [n₀ n₁ …])` gives `x[0:n₀]`, `x[n₀:n₀+n₁]` and so on. What no slice takes is a part that nothing reads; there may not
//!   be more of it than of the others, for it is copied for nothing
//! * `Concat(x[i₀ i₁ …], x[j₀ j₁ …]) = x[i₀ i₁ … j₀ j₁ …]` along the axis, for lists of indices. So an axis is rolled

use super::slices::taken;
use super::split::split;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NewNode, NodeId, ValueId};
use crate::ops::axis_in;
use crate::slicing::{Bound, resolve};
use crate::tensor::Tensor;

pub(super) const SELECTIONS: &[Rule] =
    &[Rule { name: "selections-to-gather", operators: &["Concat"], exact: true, apply: selections }];

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

/// How many indices a list may have, and how many bytes a value takes in a file that is no longer there: its name and type.
const MOST_INDICES: usize = 1024;
const VALUE_BYTES: usize = 64;

/// A Concat of slices of one value along one axis.
fn selections(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let output = node.output(0)?;
    let rank = place.shape(output)?.len();
    let axis = match node.attribute("axis") {
        Some(Attribute::Int(axis)) => axis_in(*axis, rank).ok()?,
        None if place.opset < 4 => 1,
        _ => return None,
    };
    let mut remove: Vec<NodeId> = Vec::new();
    let mut indices: Vec<i32> = Vec::new();
    let mut data = None;
    for value in node.inputs() {
        let value = (*value)?;
        let id = place.model.value(value).producer()?;
        let source = place.model.node(id)?.input(0)?;
        if *data.get_or_insert(source) != source || !place.model.is_read_only_by(value, &[place.id]) {
            return None;
        }
        if place.model.value(value).pinned {
            return None;
        }
        indices.extend(selected(place, id, axis)?);
        remove.push(id);
    }
    remove.sort_unstable();
    remove.dedup();
    let (data, bytes) = (data?, indices.len().checked_mul(size_of::<i32>())?);
    let spared = place.allowance(&remove).checked_add(VALUE_BYTES.checked_mul(remove.len())?)?;
    if remove.len() < 2 || indices.len() > MOST_INDICES || bytes > spared {
        return None;
    }
    let name = node.name.clone();
    let constant = place.new_value(output, "indices");
    let mut edit = place.edit("selections-to-gather")?.removing(place.id);
    edit.remove.extend(remove);
    edit.constants.push((constant, Tensor::vector(indices)));
    let gather = NewNode::new("Gather", [Some(data), Some(constant)]).with("axis", i64::try_from(axis).ok()?);
    Some(edit.inserting(gather.named(name).output(output)))
}

/// The indices along an axis of what a Slice takes, if it takes all of the others.
fn selected(place: &Place<'_>, id: NodeId, axis: usize) -> Option<Vec<i32>> {
    let node = place.model.node(id)?;
    if !node.is("Slice") || Some(node.graph()) != place.graph() {
        return None;
    }
    let slice = taken(place, id)?;
    let size = slice.dims.get(axis)?.as_const()?;
    if slice.ranges.iter().enumerate().any(|(at, range)| at != axis && range.is_some()) {
        return None;
    }
    let (mut begin, mut length, mut step) = (0i64, size, 1i64);
    if let Some(range) = slice.ranges.get(axis)? {
        let resolved = resolve(place.scope(), slice.dims.get(axis)?, range, slice.reading).ok()?;
        let selection = resolved.selection.filter(|_| resolved.disputed.is_none())?;
        (begin, length, step) = (selection.start.as_const()?, resolved.len.as_const()?, range.step?);
    }
    let count = usize::try_from(length).ok().filter(|&count| count > 0 && count <= MOST_INDICES)?;
    let at = |i: usize| i32::try_from(begin.checked_add(step.checked_mul(i64::try_from(i).ok()?)?)?).ok();
    (0..count).map(at).collect()
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
