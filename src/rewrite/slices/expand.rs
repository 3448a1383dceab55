//! Slices of broadcast data.

use super::cuts::{cuts_of, ranges_of};
use crate::dim::Dim;
use crate::ir::Edit;
use crate::rewrite::build::rebuilt;
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::slicing::Range;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slice-of-expand",
    law: "Expand(x)[r] = Expand(x[r′])",
    sentence: "Moves a Slice before an Expand, so that less is broadcast.",
    premises: &[
        ("own-or-broadcast", "of each axis it is proved whether x has its size or size 1"),
        ("sizes-known", "the new sizes are positive numbers, or those of x"),
        ("one-reader", "the broadcast value has no other consumer, unless the Slice or the Expand disappears"),
    ],
    exact: true,
    operators: &["Slice"],
    apply: |place| slice_of_expand(place).ok_or(miss!("own-or-broadcast")),
}];

/// `Expand(x)[r]`: along an axis that `x` has to itself it is `Expand(x[r])`; along one that is broadcast all elements are the
/// same one, and it is an Expand to as many as `r` takes.
///
/// Premises: of every axis that is cut it is proved which of the two it is; the new sizes can be said by constants.
fn slice_of_expand(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (id, node) = place.producer(middle, "Expand")?;
    let data = node.input(0)?;
    let cuts = cuts_of(place, place.id)?;
    let (from, result) = (place.shape(data)?, place.shape(output)?);
    let added = cuts.dims.len().checked_sub(from.len())?;
    let scope = place.scope();
    let equal = |a: &Dim, b: &Dim| scope.eq(a, b).is_yes();
    let cut_ranges = ranges_of(&cuts.axes);
    let mut ranges: Vec<Option<Range>> = vec![None; from.len()];
    let mut sizes = Vec::with_capacity(result.len());
    let mut is_broadcast = false;
    for (axis, (dim, size)) in cuts.dims.iter().zip(result).enumerate() {
        let own = axis.checked_sub(added);
        let own_dim = own.and_then(|own| from.get(own));
        let range = cut_ranges.get(axis)?;
        let keeps = match (own, own_dim) {
            (Some(own), Some(own_dim)) if equal(own_dim, dim) => {
                *ranges.get_mut(own)? = range.clone();
                true
            }
            // Nothing is cut: it has its size already, whatever that is of.
            (_, Some(own_dim)) if range.is_none() && equal(own_dim, size) => true,
            (_, Some(own_dim)) if own_dim.is_const(1) => size.is_const(1),
            (None, None) => false,
            _ => return None,
        };
        is_broadcast |= !keeps;
        // Not every runtime broadcasts 1 to 0.
        sizes.push(if keeps { 1 } else { size.as_const().filter(|&size| size > 0)? });
    }
    let is_sliced = ranges.iter().any(Option::is_some);
    if !is_broadcast && !is_sliced {
        return place.forward(data).ok();
    }
    let alone = place.has_one_reader(middle);
    if is_broadcast && is_sliced && !alone {
        return None;
    }
    let name = place.node()?.name.clone();
    let mut edit = place.edit()?.removing(place.id);
    if alone {
        edit.remove.push(id);
    }
    let mut value = data;
    if is_sliced {
        value = if is_broadcast { edit.new_value(middle, "sliced") } else { output };
        let slice = place.build(&mut edit, data).slice_of_ranges(data, &ranges)?;
        edit.insert.push(rebuilt(place.node()?, slice).named(name.as_str()).output(value));
    }
    if is_broadcast {
        let expand = place.build(&mut edit, output).expand(value, sizes)?;
        edit.insert.push(rebuilt(node, expand).named(name).output(output));
    }
    Some(edit)
}
