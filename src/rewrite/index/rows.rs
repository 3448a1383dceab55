//! What is done to rows that are looked up in a constant is done to the constant.
//!
//! Laws, for a constant `x` and a lookup along axis `a`: `Transpose(Gather(x, i), p) = Gather(Transpose(x, q), i)` where `p` leaves the axes of
//! `i` side by side and in order, and `Gather(x, i)[r] = Gather(x[r], i)` where `r` cuts other axes than those of `i`.

use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::rewrite::Place;
use crate::rewrite::build::Build;
use crate::rewrite::slices::cuts::cut_elements;
use crate::tensor::{StridedView, Tensor, gather, gather_later};

/// Rows that lie far apart are slow to look up, which shows in tables of more bytes.
const MAX_BYTES: usize = 1 << 20;

/// A lookup in a constant that the rows have no other consumer of.
struct Lookup<'a> {
    id: NodeId,
    node: &'a Node,
    table: &'a Tensor,
    axis: usize,
    /// How many axes the indices have.
    indices: usize,
}

fn lookup<'a>(place: &Place<'a>) -> Option<Lookup<'a>> {
    let value = place.input(0)?;
    let (id, node) = place.producer(value, "Gather")?;
    let data = node.input(0)?;
    let table = place.constant(data).filter(|table| table.byte_len() <= MAX_BYTES)?;
    let axis = place.read(node).axis(table.rank())?;
    let indices = place.shape(node.input(1)?)?.len();
    let stored_once = place.model.is_read_only_by(data, &[id]) && place.model.value(data).is_constant();
    (stored_once && place.model.is_read_only_by(value, &[place.id])).then_some(Lookup {
        id,
        node,
        table,
        axis,
        indices,
    })
}

pub(super) fn turned(place: &Place<'_>) -> Option<Edit> {
    let Lookup { id, node, table, axis, indices } = lookup(place)?;
    let rank = table.rank().checked_add(indices)?.checked_sub(1)?;
    let perm = place.this()?.permutation(rank)?;
    // Where the axes of the indices go, they stand as the axis that they are looked up along.
    let own = axis..axis.checked_add(indices)?;
    let first = match indices {
        0 => return None,
        _ => perm.iter().position(|&from| from == own.start)?,
    };
    let together =
        own.clone().enumerate().all(|(at, from)| first.checked_add(at).and_then(|to| perm.get(to)) == Some(&from));
    if !together {
        return None;
    }
    let table_axis = |from: usize| if from < own.start { from } else { from.saturating_sub(indices).saturating_add(1) };
    let order: Vec<usize> = perm
        .iter()
        .filter_map(|&from| match own.contains(&from) {
            true => (from == own.start).then_some(axis),
            false => Some(table_axis(from)),
        })
        .collect();
    let turned = gather_later(table, &StridedView::of(table).permute(&order).ok()?).ok()?;
    again(place, id, node, turned, order.iter().position(|&from| from == axis)?)
}

pub(super) fn cut(place: &Place<'_>) -> Option<Edit> {
    let Lookup { id, node, table, axis, indices } = lookup(place)?;
    let mut view = StridedView::of(table);
    for cut in cut_elements(place)? {
        let table_axis = match cut.axis {
            at if at < axis => at,
            at if at < axis.checked_add(indices)? => return None,
            at => at.checked_add(1)?.checked_sub(indices)?,
        };
        view = view.slice_axis(table_axis, cut.start, isize::try_from(cut.step).ok()?, cut.len).ok()?;
    }
    let part = gather(table, &view).ok()?;
    again(place, id, node, part, axis)
}

/// The same lookup in another table.
fn again(place: &Place<'_>, id: NodeId, node: &Node, table: Tensor, axis: usize) -> Option<Edit> {
    let (data, indices): (ValueId, ValueId) = (node.input(0)?, node.input(1)?);
    let mut edit = place.edit()?.removing(id);
    let table = edit.constant(data, "rows", table);
    place.instead(edit, Build::gather(table, indices, axis))
}
