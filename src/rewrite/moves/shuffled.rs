//! Places of one axis that are turned by taking the axis apart, as a lookup.
//!
//! Where the sizes of the other axes are computed, the layouts before and behind the Transpose say all of them again. A lookup says nothing but
//! the places, and in ONNX Runtime takes half the time. Where all sizes are numbers the three nodes stay: runtimes other than that one know them
//! as a channel shuffle.

use super::{FEWEST_IN_ROW, MOST_BLOCKS};
use crate::dim::Dim;
use crate::ir::{Edit, NodeId, ValueId};
use crate::ops::traits::{LAYOUTS, traits_of};
use crate::rewrite::{Place, Rule};
use crate::tensor::Tensor;

pub(super) const RULE: Rule = Rule {
    name: "shuffled-axis",
    law: "Reshape(Transpose(Reshape(x))) = Gather(x, k), where one axis of x is taken apart, turned in itself, and put together",
    sentence: "Replaces a shuffle of channels between layouts with computed dims by a Gather.",
    premises: &[
        ("computed", "a layout is by computed sizes"),
        ("one-axis", "all axes except the shuffled one keep their places in x"),
        ("in-itself", "the Transpose permutes only the parts of that axis"),
        ("fixed-places", "the sizes of the axis and its parts are constants of at most 16,384"),
        ("rows", "each position holds 8 elements or more, unless their number is dynamic"),
        ("one-reader", "the values in between have no other consumer"),
        (
            "no-convolution",
            "no Conv with one group consumes the result, directly or through functions and grouped Convs, because OpenVINO would transpose its weights wrongly",
        ),
        ("no-strings", "x is not a string tensor, for which ONNX Runtime selects wrong elements"),
    ],
    exact: true,
    operators: LAYOUTS,
    apply: shuffled,
};

fn shuffled(place: &Place<'_>) -> Option<Edit> {
    let (turned, result) = (place.input(0)?, place.output(0)?);
    let (transpose_id, transpose) = place.producer(turned, "Transpose")?;
    let apart = transpose.input(0)?;
    let (layout_id, layout) = place.layout(apart)?;
    let x = layout.input(0)?;
    let is_computed = |size: Option<ValueId>| size.is_some_and(|size| place.constant(size).is_none());
    if !is_computed(layout.input(1)) && !is_computed(place.input(1)) {
        return None;
    }
    let read_once = |value: ValueId, reader: NodeId| place.model.is_read_only_by(value, &[reader]);
    if !read_once(turned, place.id) || !read_once(apart, transpose_id) || !place.may_be_looked_up(x) {
        return None;
    }
    if turns_weights(place, result) {
        return None;
    }
    let (dims, parts) = (place.shape(x)?, place.shape(apart)?);
    let perm = place.read(transpose).permutation(parts.len())?;
    if !place.same_dims(dims, place.shape(result)?) {
        return None;
    }
    let count = parts.len().checked_sub(dims.len())?.checked_add(1).filter(|&count| count > 1)?;
    let found = (0..dims.len()).find_map(|axis| Some((axis, places(place, dims, parts, &perm, (axis, count))?)));
    let (axis, places) = found?;
    let behind = place.scope().product(dims.get(axis.checked_add(1)?..)?);
    if behind.as_const().is_some_and(|row| row < FEWEST_IN_ROW as i64) {
        return None;
    }
    let mut edit = place.edit()?.removing(layout_id).removing(transpose_id);
    let gather = place.build(&mut edit, x).gather_at(x, Tensor::vector(places), axis);
    place.instead(edit, gather)
}

/// How many values are followed to a convolution.
const FOLLOWED: usize = 32;

/// Whether OpenVINO (2026.4) would turn the weights of a convolution in the place of the channels of a value. More than it follows is followed here:
/// it wants all readers to be such, and single numbers or one for each channel as other operands.
pub(super) fn turns_weights(place: &Place<'_>, value: ValueId) -> bool {
    let (mut values, mut at) = (vec![value], 0);
    while let Some(&value) = values.get(at) {
        for (id, slot) in place.model.users(value) {
            let Some(node) = place.model.node(id) else { continue };
            let is_grouped = || node.int("group", 1) != Some(1);
            if node.is("Conv") && slot == 0 && !is_grouped() || values.len() > FOLLOWED {
                return true;
            }
            if node.is("Conv") && slot == 0 || traits_of(place.model, node).pointwise.is_some() {
                values.extend(node.output(0).filter(|result| !values.contains(result)));
            }
        }
        at += 1;
    }
    false
}

/// Which place of the axis each of its places comes from, if it is the one that is taken apart, into `count` parts.
fn places(
    place: &Place<'_>,
    dims: &[Dim],
    parts: &[Dim],
    perm: &[usize],
    (axis, count): (usize, usize),
) -> Option<Vec<i64>> {
    let end = axis.checked_add(count)?;
    let (front, back) = (parts.get(..axis)?, parts.get(end..)?);
    if !place.same_dims(front, dims.get(..axis)?) || !place.same_dims(back, dims.get(axis.checked_add(1)?..)?) {
        return None;
    }
    if perm.iter().enumerate().any(|(at, &from)| at != from && !(axis..end).contains(&at)) {
        return None;
    }
    let most = i64::try_from(MOST_BLOCKS).ok()?;
    let sizes = parts.get(axis..end)?.iter().map(|dim| dim.as_const().filter(|size| (1..=most).contains(size)));
    let sizes = sizes.collect::<Option<Vec<i64>>>()?;
    // How far apart in x the places of each part are.
    let mut steps = vec![1i64; sizes.len()];
    let mut all = 1i64;
    for (step, size) in steps.iter_mut().zip(&sizes).rev() {
        *step = all;
        all = all.checked_mul(*size).filter(|all| *all <= most)?;
    }
    // Of an empty tensor the parts may be of more places than the axis has.
    if !dims.get(axis)?.is_const(all) {
        return None;
    }
    // Part after part in the order of the result, each place goes on into as many as the next part has.
    let mut places = vec![0i64];
    for &from in perm.get(axis..end)? {
        let part = from.checked_sub(axis)?;
        let (&size, &step) = (sizes.get(part)?, steps.get(part)?);
        places =
            places.iter().flat_map(|&at| (0..size).map(move |k| at.saturating_add(k.saturating_mul(step)))).collect();
    }
    Some(places)
}
