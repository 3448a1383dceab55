//! Rewrites assignments to a block of positions, if the data or the written values are uniform.
//!
//! Laws: writing a block `u` into a uniform tensor `v` is `Pad(u, v)`. Writing the number `c` is `Where(m, c, x)` with a mask `m` of the
//! axes with constant positions. If the positions along one axis are those of a Slice `o : e`, the Where applies to that part of `x`, and a
//! Concat joins it with the rest. Exporters write `x[:, 1:3, :, ::2] = c` with an index for each element.

use super::uniform;
use crate::dim::Dim;
use crate::index_map::AxisRange;
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops::written_block;
use crate::rewrite::build::{Build, axes};
use crate::rewrite::limits::LISTED;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, Tensor};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "assignment-to-block",
    law: "ScatterND(x filled with v, places of a block, u) = Pad(u, v); ScatterND(x, places of a block, c) = Where(m, c, x), or \
        Concat(x[: o], Where(m, c, x[o : e]), x[e :]), for a number c",
    sentence: "Replaces a ScatterND of a block into a filled tensor by a Pad, and a ScatterND of one number by a Where with a mask.",
    premises: &[
        ("plain", "attribute reduction is none, so that written values replace old values"),
        (
            "one-number",
            "the data is one number everywhere, or the written values are one other than −0, of a type for which runtimes implement Pad and \
                Where",
        ),
        (
            "block",
            "the written positions are all combinations of positions along each axis; for a Pad, the positions along each axis are consecutive",
        ),
        (
            "known-places",
            "for a Pad the sizes of the margins are numbers; for a Where all positions along each axis are written, or positions that are \
                numbers, or along one axis those of a Slice between numbers",
        ),
        ("some-fixed", "for a Where, the positions along one axis are constants, and do not cover the axis"),
        ("computed", "for a Where, the positions are computed, and the nodes that compute them have no other consumer"),
    ],
    exact: true,
    operators: &["ScatterND"],
    apply: assigned,
}];

/// The end of an axis of any size.
const TO_THE_END: i64 = i64::MAX;

fn assigned(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (into, updates, output) = (place.operand(0)?, place.operand(2)?, place.result()?);
    ensure(node.text("reduction", b"none") == Some(b"none".as_slice()), miss!("plain"))?;
    let dtype = place.dtype(output).ok_or(Miss::ROOT)?;
    let is_movable = matches!(dtype, DType::Float | DType::Double | DType::Int32 | DType::Int64);
    let number = |value| uniform(place, value).filter(|number| is_movable && number.dtype() == dtype);
    let filled = number(into).filter(|_| place.constant(updates).is_none());
    let written = number(updates).filter(|number| !is_negative_zero(number));
    ensure(filled.is_some() || written.is_some(), miss!("one-number"))?;
    let block = place.view(place.id).and_then(|view| written_block(&view));
    let block = block.ok_or(miss!("block").of(place.operand(1)?))?;
    let padded = filled.map(|number| padded(place, number, &block));
    match (padded, written) {
        (Some(Err(_)) | None, Some(number)) => chosen(place, number, &block),
        (Some(padded), _) => padded,
        (None, None) => Err(miss!("one-number")),
    }
}

fn is_negative_zero(number: &Tensor) -> bool {
    number.to_f64s().is_some_and(|numbers| numbers.iter().any(|x| *x == 0.0 && x.is_sign_negative()))
}

/// Pads the written block with the number of the data.
fn padded(place: &Place<'_>, number: Tensor, block: &[AxisRange]) -> Result<Edit, Miss> {
    let (into, updates, output) = (place.operand(0)?, place.operand(2)?, place.result()?);
    ensure(place.opset.pad_and_clip_have_operands(), Miss::EXPRESSIBLE)?;
    let lens: Vec<Dim> = block.iter().map(|range| range.len.clone()).collect();
    ensure(block.iter().all(|range| range.step == 1) && place.same_dims(place.dims(updates)?, &lens), miss!("block"))?;
    let margins = block.iter().zip(place.dims(into)?);
    let margins: Option<Vec<_>> =
        margins.map(|(range, dim)| margins_of(place, &range.len, &range.start, dim)).collect();
    let margins = margins.ok_or(miss!("known-places").of(into))?;
    let mut edit = place.begin()?;
    let mut build = place.build(&mut edit, output);
    let pad = build.padded(NewNode::new("Pad", [Some(updates)]), &margins).ok_or(Miss::EXPRESSIBLE)?;
    let value = build.constant("value", number);
    place.instead(edit, pad.reading(2, value))
}

/// Returns the numbers of positions before and after `size` positions from `first` on, along an axis of size `dim`. Positions may count
/// from the end.
fn margins_of(place: &Place<'_>, size: &Dim, first: &Dim, dim: &Dim) -> Option<(i64, i64)> {
    let scope = place.scope();
    let at = first.as_const()?;
    let start = if at < 0 { scope.add(dim, first) } else { first.clone() };
    let (front, back) = (start.as_const()?, scope.sub(dim, &scope.add(&start, size)).as_const()?);
    let wraps = at < 0 && at.checked_add(size.as_const()?)? > 0;
    (front >= 0 && back >= 0 && !wraps).then_some((front, back))
}

/// Selects the written number by a mask.
fn chosen(place: &Place<'_>, number: Tensor, block: &[AxisRange]) -> Result<Edit, Miss> {
    let (into, indices, updates) = (place.operand(0)?, place.operand(1)?, place.operand(2)?);
    ensure(place.opset.has("Where"), Miss::EXPRESSIBLE)?;
    let is_computed = place.constant(indices).is_none() && place.model.is_read_only_by(indices, &[place.id]);
    ensure(is_computed, miss!("computed").of(indices))?;
    let block = Block::of(place, into, block).ok_or(miss!("known-places").of(indices))?;
    ensure(block.fixed.iter().any(Option::is_some), miss!("some-fixed").of(indices))?;
    let mut edit = place.begin()?;
    let number = edit.constant(updates, "number", number);
    let mask = edit.constant(indices, "mask", block.mask().ok_or(Miss::LARGER)?);
    let choose = |data: ValueId| NewNode::new("Where", [Some(mask), Some(number), Some(data)]);
    let Some((axis, start, end)) = block.part else { return place.instead(edit, choose(into)) };
    let mut pieces = Vec::new();
    for (from, to) in [(0, start), (start, end), (end, TO_THE_END)].into_iter().filter(|(from, to)| from != to) {
        let piece = edit.new_value(into, if from == start { "part" } else { "rest" });
        let slice = place.build(&mut edit, into).slice(into, vec![from], vec![to], axes([axis]), vec![1]);
        edit.insert.push(slice.ok_or(Miss::EXPRESSIBLE)?.output(piece));
        if from == start {
            let written = edit.new_value(place.result()?, "part");
            edit.insert.push(choose(piece).output(written));
            pieces.push(written);
        } else {
            pieces.push(piece);
        }
    }
    place.instead(edit, Build::concat(pieces, axis))
}

/// The block of positions that a Where writes.
struct Block {
    /// The flags of the written positions, for each axis with constant positions that are not the whole axis.
    fixed: Vec<Option<Vec<bool>>>,
    /// The axis with the positions of a Slice, and its bounds.
    part: Option<(usize, i64, i64)>,
}

impl Block {
    fn of(place: &Place<'_>, into: ValueId, ranges: &[AxisRange]) -> Option<Block> {
        let mut block = Block { fixed: Vec::new(), part: None };
        for (axis, (AxisRange { start, step, len: size }, dim)) in ranges.iter().zip(place.shape(into)?).enumerate() {
            let (start, step) = (start.as_const().filter(|start| *start >= 0)?, *step);
            let is_whole = start == 0 && step == 1 && place.scope().eq(size, dim).is_yes();
            block.fixed.push(match (size.as_const(), dim.as_const()) {
                _ if is_whole => None,
                (Some(size), Some(dim)) => Some(flags(start, step, size, dim)?),
                _ => {
                    let end = (step == 1 && block.part.is_none()).then(|| end_of_slice(place, dim, start, size))??;
                    block.part = Some((axis, start, end));
                    None
                }
            });
        }
        Some(block)
    }

    /// Returns the mask of the axes with constant positions; other axes have size 1.
    fn mask(&self) -> Option<Tensor> {
        let first = self.fixed.iter().position(Option::is_some)?;
        let (mut shape, mut flags) = (Vec::new(), vec![true]);
        for fixed in self.fixed.get(first..)? {
            let own = fixed.as_deref().unwrap_or(&[true]);
            shape.push(own.len());
            if flags.len().checked_mul(own.len())? > LISTED {
                return None;
            }
            flags = flags.iter().flat_map(|&flag| own.iter().map(move |&own| flag && own)).collect();
        }
        Tensor::from_bools(&shape, &flags).ok()
    }
}

/// Flags the positions `start + step·k`, for `k` below `size`, among `dim` positions.
fn flags(start: i64, step: i64, size: i64, dim: i64) -> Option<Vec<bool>> {
    let most = i64::try_from(LISTED).ok()?;
    let mut flags = vec![false; usize::try_from(dim).ok().filter(|dim| *dim <= LISTED)?];
    for k in 0..size.min(most) {
        let at = usize::try_from(start.checked_add(step.checked_mul(k)?)?).ok()?;
        *flags.get_mut(at)? = true;
    }
    Some(flags)
}

/// Returns the end of a Slice from `start` on that has `size` elements of an axis of any size.
fn end_of_slice(place: &Place<'_>, dim: &Dim, start: i64, size: &Dim) -> Option<i64> {
    let scope = place.scope();
    // An empty Slice has no part between the rest.
    let end = start.checked_add(scope.upper_bound(size)?).filter(|end| *end > start)?;
    let up_to = |bound: i64| scope.min(dim, &Dim::constant(bound));
    scope.eq(&scope.sub(&up_to(end), &up_to(start)), size).is_yes().then_some(end)
}
