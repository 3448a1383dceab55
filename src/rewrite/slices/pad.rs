//! Slices of padded data.

use super::{Cut, cuts_of, place_of_axis, range_of, sliced};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Edit, NewNode, Node, ValueId};
use crate::rewrite::{Place, Rule};
use crate::slicing::Range;
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] =
    &[Rule { name: "slice-of-pad", operators: &["Slice"], exact: true, apply: slice_of_pad }];

/// What Pad adds before and after each axis, constant.
fn pads_of(place: &Place<'_>, node: &Node, rank: usize) -> Option<Vec<(i64, i64)>> {
    let ints = |name: &str| match node.attribute(name) {
        Some(Attribute::Ints(pads)) => Some(pads.clone()),
        _ => None,
    };
    let pads = match place.opset {
        ..2 => ints("paddings")?,
        2..11 => ints("pads")?,
        _ => place.const_ints(node.input(1)?)?,
    };
    let axes = match node.input(3) {
        Some(axes) => {
            let axes = place.const_ints(axes)?;
            axes.iter().map(|&axis| place_of_axis(axis, rank)).collect::<Option<Vec<_>>>()?
        }
        None => (0..rank).collect(),
    };
    let (begins, ends) = pads.split_at_checked(axes.len()).filter(|(_, ends)| ends.len() == axes.len())?;
    let mut all = vec![(0, 0); rank];
    for ((&begin, &end), &axis) in begins.iter().zip(ends).zip(&axes) {
        *all.get_mut(axis)? = (begin, end);
    }
    Some(all)
}

/// What a cut of a padded axis leaves: of the data, and of the pads.
struct Left {
    range: Option<Range>,
    pads: (i64, i64),
}

/// A part that lies inside of the data: `Pad(x, p, q)[r] = x[r - p]` along the axis, whatever is padded with.
fn inside(scope: &Scope, dim: &Dim, cut: &Cut, pads: (i64, i64)) -> Option<Left> {
    let (start, len) = cut.exact.as_ref()?;
    let start = scope.sub(start, &Dim::constant(pads.0));
    Some(Left { range: range_of(scope, dim, &start, cut.range.step?, len)?, pads: (0, 0) })
}

/// A part that reaches into the margins: `Pad(x, p, q)[a : dim - b]` has `p - a` and `q - b` of them, and where one of these is
/// negative, so much less of the data. `a` and `b` are the numbers of elements cut off.
///
/// Premises: the elements of a margin do not depend on the data; what is cut off the data on one side leaves the other alone.
fn across(scope: &Scope, dim: &Dim, cut: &Cut, pads: (i64, i64)) -> Option<Left> {
    let (start, len) = cut.exact.as_ref()?;
    let (before, after) = pads;
    if cut.range.step != Some(1) || before < 0 || after < 0 {
        return None;
    }
    let padded = scope.add(dim, &Dim::constant(before.checked_add(after)?));
    let front = start.as_const()?;
    let back = scope.sub(&scope.sub(&padded, start), len).as_const()?;
    if front < 0 || back < 0 {
        return None;
    }
    let (off_front, off_back) = (front.saturating_sub(before).max(0), back.saturating_sub(after).max(0));
    let kept = scope.sub(dim, &Dim::constant(off_front.checked_add(off_back)?));
    // Nothing must be left of the data if it is cut off beyond its other end.
    if !scope.ge(&kept, &Dim::constant(0)).is_yes() {
        return None;
    }
    let range = range_of(scope, dim, &Dim::constant(off_front), 1, &kept)?;
    let pads = ((before - front).max(0), (after - back).max(0));
    Some(Left { range, pads })
}

/// `Pad(x)[r]` is a slice of `x` where `r` lies inside of it, and otherwise a smaller Pad, of a slice of `x` if need be.
fn slice_of_pad(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (id, node) = place.producer(middle, "Pad")?;
    let data = node.input(0)?;
    let dims = place.shape(data)?;
    let all = pads_of(place, node, dims.len())?;
    let is_constant = match node.attribute("mode") {
        None => true,
        Some(Attribute::String(mode)) => mode.as_ref() == b"constant",
        Some(_) => return None,
    };
    let cuts = cuts_of(place, place.id)?;
    if cuts.axes.len() != dims.len() {
        return None;
    }
    let scope = place.scope();
    let (mut ranges, mut pads) = (Vec::with_capacity(dims.len()), Vec::with_capacity(dims.len()));
    for ((dim, cut), &own) in dims.iter().zip(&cuts.axes).zip(&all) {
        let left = match cut {
            None => Left { range: None, pads: own },
            Some(cut) => match inside(scope, dim, cut, own) {
                Some(left) => left,
                None => across(scope, dim, cut, own).filter(|_| is_constant)?,
            },
        };
        ranges.push(left.range);
        pads.push(left.pads);
    }
    let is_sliced = ranges.iter().any(Option::is_some);
    let is_padded = pads.iter().any(|&pads| pads != (0, 0));
    let again = NewNode::like(node);
    let name = place.node()?.name.clone();
    if !is_padded && !is_sliced {
        return place.forward(data);
    }
    let alone = place.has_one_reader(middle);
    if is_padded && !alone || place.opset < 2 {
        return None;
    }
    let mut edit = place.edit()?.removing(place.id);
    if alone {
        edit.remove.push(id);
    }
    let mut value = data;
    if is_sliced {
        value = if is_padded { edit.new_value(middle, "sliced") } else { output };
        let slice = sliced(place, &mut edit, data, &ranges)?;
        edit.insert.push(slice.named(name).output(value));
    }
    if is_padded {
        let pad = padded(place, &mut edit, again, value, &pads)?;
        edit.insert.push(pad.output(output));
    }
    Some(edit)
}

/// The Pad on other data and with these pads, one pair for every axis.
fn padded(
    place: &Place<'_>,
    edit: &mut Edit,
    mut node: NewNode,
    data: ValueId,
    pads: &[(i64, i64)],
) -> Option<NewNode> {
    *node.inputs.first_mut()? = Some(data);
    let pads = pads.iter().map(|pads| pads.0).chain(pads.iter().map(|pads| pads.1)).collect::<Vec<i64>>();
    if place.opset < 11 {
        node.attributes.retain(|attribute| attribute.name != "pads");
        return Some(node.with("pads", pads));
    }
    node.inputs.truncate(3);
    *node.inputs.get_mut(1)? = Some(edit.constant(data, "pads", Tensor::vector(pads)));
    Some(node)
}
