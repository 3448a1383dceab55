//! Slices of padded data.

use super::cuts::{Cut, cuts_of, range_of};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode};
use crate::rewrite::build::rebuilt;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::slicing::Range;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slice-of-pad",
    law: "Pad(x, p)[r] = Pad(x[r′], p′)",
    sentence: "Moves a Slice before a Pad, so that less is padded.",
    premises: &[
        (
            "apart",
            "on each axis, the Slice selects only elements of x, or removes a constant number of elements from each end",
        ),
        ("pads-known", "all pads are constants"),
        ("constant-margin", "if the Slice selects padded elements, the mode of the Pad is constant"),
        (
            "not-empty",
            "if the mode of the Pad copies elements of x, at least one element of x remains, because ONNX Runtime refuses to wrap an empty tensor",
        ),
        (
            "one-reader",
            "the Pad has no other consumer, or the Slice selects only elements of x, so that no Pad is needed",
        ),
    ],
    exact: true,
    operators: &["Slice"],
    apply: slice_of_pad,
}];

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
fn slice_of_pad(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let (id, node) = place.producer(middle, "Pad").ok_or(Miss::ROOT)?;
    let data = node.input(0).ok_or(Miss::ROOT)?;
    let dims = place.shape(data).ok_or(miss!("pads-known").of(data))?;
    let reading = place.read(node);
    let all = reading.pads().filter(|pads| pads.len() == dims.len()).ok_or(miss!("pads-known"))?;
    let is_constant = reading.pads_with_a_number().ok_or(miss!("constant-margin"))?;
    let cuts = cuts_of(place, place.id).ok_or(miss!("apart"))?;
    ensure(cuts.axes.len() == dims.len(), miss!("pads-known"))?;
    let scope = place.scope();
    let (mut ranges, mut pads) = (Vec::with_capacity(dims.len()), Vec::with_capacity(dims.len()));
    for ((dim, cut), &own) in dims.iter().zip(&cuts.axes).zip(&all) {
        let left = match cut {
            None => Left { range: None, pads: own },
            Some(cut) => match inside(scope, dim, cut, own) {
                Some(left) => left,
                None => across(scope, dim, cut, own).filter(|_| is_constant).ok_or(miss!("apart"))?,
            },
        };
        ranges.push(left.range);
        pads.push(left.pads);
    }
    let is_sliced = ranges.iter().any(Option::is_some);
    let is_padded = pads.iter().any(|&pads| pads != (0, 0));
    let name = place.root()?.name.clone();
    if !is_padded && !is_sliced {
        return place.forward(data);
    }
    let alone = place.has_one_reader(middle);
    let is_empty = |cut: &Cut| cut.exact.as_ref().is_none_or(|(_, len)| !scope.ge(len, &Dim::constant(1)).is_yes());
    ensure(
        !(is_padded && (!alone || !is_constant && cuts.axes.iter().flatten().any(is_empty))),
        miss!("one-reader").of(middle),
    )?;
    let mut edit = place.begin()?.removing(place.id);
    if alone {
        edit.remove.push(id);
    }
    let mut value = data;
    if is_sliced {
        value = if is_padded { edit.new_value(middle, "sliced") } else { output };
        let slice = place.build(&mut edit, data).slice_of_ranges(data, &ranges).ok_or(Miss::EXPRESSIBLE)?;
        edit.insert.push(rebuilt(place.root()?, slice).named(name).output(value));
    }
    if is_padded {
        let pad = place
            .build(&mut edit, value)
            .padded(NewNode::like(node).reading(0, value), &pads)
            .ok_or(Miss::EXPRESSIBLE)?;
        edit.insert.push(pad.output(output));
    }
    Ok(edit)
}
