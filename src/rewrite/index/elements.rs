//! Elements that are looked up by rows.
//!
//! Law: where the index is the same along every axis but `a`, and the data have the index's size along those,
//! `GatherElements(x, Expand(i), a) = Gather(x, i, a)`. Exporters spread the index so for `torch.gather`, and lookups of rows are what other
//! rules know. Of no elements GatherElements looks nothing up, where Gather still fails: each of the other axes holds something.

use crate::dim::Dim;
use crate::ir::Edit;
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::build::Build;
use crate::rewrite::place::Place;

/// How far back an index is followed through what spreads it and lays it out.
const MAX_DEPTH: usize = 8;

pub(super) fn of_rows(place: &Place<'_>) -> Option<Edit> {
    let (data, index) = (place.input(0)?, place.input(1)?);
    let (from, to) = (place.shape(data)?, place.shape(index)?);
    let axis = place.this()?.axis(from.len())?;
    let scope = place.scope();
    let others = from.iter().zip(to).enumerate().filter(|(at, _)| *at != axis).map(|(_, dims)| dims);
    for (own, looked_up) in others {
        if !scope.eq(own, looked_up).is_yes() || !scope.ge(own, &Dim::constant(1)).is_yes() {
            return None;
        }
    }
    let size = to.get(axis)?;
    // Of what the index is spread from, or laid out from as many numbers, only one axis is not of size 1, and that is the axis of the lookup.
    let (mut along, mut value) = (axis, index);
    for _ in 0..MAX_DEPTH {
        let dims = place.shape(value)?;
        let moved = place.producer_with(value, |own| matches!(own.moves, Some(Movement::Spread | Movement::Layout)));
        let Some((_, node)) = moved.filter(|_| dims.len() > 1) else { break };
        let source = node.input(0)?;
        let own = place.shape(source)?;
        let Some(at) = single(own).filter(|&at| own.get(at).is_some_and(|dim| scope.eq(dim, size).is_yes())) else {
            break;
        };
        let is_spread = traits_of(place.model, node).moves == Some(Movement::Spread);
        // The axes of what is spread are the last ones of the result.
        if is_spread && at.checked_add(dims.len().checked_sub(own.len())?)? != along {
            return None;
        }
        (along, value) = (at, source);
    }
    if value == index {
        return None;
    }
    let mut edit = place.edit()?;
    let mut row = value;
    let dims = place.shape(value)?;
    if dims.len() > 1 {
        row = edit.new_value(value, "row");
        let reshape = place.build(&mut edit, row).reshape_to(scope, value, dims, std::slice::from_ref(size))?;
        edit.insert.push(reshape.output(row));
    }
    place.instead(edit, Build::gather(data, row, axis)).ok()
}

/// The only axis that is not of size 1.
fn single(dims: &[Dim]) -> Option<usize> {
    let mut wide = dims.iter().enumerate().filter(|(_, dim)| !dim.is_const(1)).map(|(at, _)| at);
    wide.next().filter(|_| wide.next().is_none())
}
