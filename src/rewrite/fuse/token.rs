//! Merges constant rows before other rows with an added constant: the class token of a vision transformer, and its positions.
//!
//! Law: for a constant `c` of `k` rows that is only broadcast along other axes,
//! `Concat(Expand(c), x) + p = Pad(x; k rows of 0 in front) + p′`, where `p′` is `p` with `p + c` in its first `k` rows. A zero may have
//! another sign: `0 + −0 = 0`. The shape chain of the Expand is dead afterwards.

use crate::dim::Dim;
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops::concat;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, StridedView, Tensor, gather};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "rows-before-sum",
    law: "Concat(Expand(c), x) + p = Pad(x) + p′, p′ = p but for the rows of c, which are p + c",
    sentence: "Adds a constant to constant rows before a Concat instead of after it.",
    premises: &[
        ("constant-rows", "the first operand of the Concat is the constant c, broadcast to computed dims"),
        (
            "constant-addend",
            "p is a constant, or a Concat whose first operand is a constant with the same number of rows as c",
        ),
        ("one-reader", "the result of the Concat has no other consumer"),
        ("float", "the element type is float or double"),
    ],
    exact: false,
    operators: &["Add"],
    apply: rows_before_sum,
}];

/// Constant rows before another tensor.
struct Rows {
    rows: Tensor,
    rest: ValueId,
    axis: usize,
}

fn rows_before_sum(place: &Place<'_>) -> Result<Edit, Miss> {
    let output = place.result()?;
    let &[Some(a), Some(b)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    ensure(
        matches!(place.dtype(output).ok_or(miss!("float").of(output))?, DType::Float | DType::Double),
        miss!("float").of(output),
    )?;
    ensure(place.opset.pad_and_clip_have_operands(), Miss::EXPRESSIBLE)?;
    let (slot, joined, Rows { rows, rest, axis }) = [(0, a), (1, b)]
        .into_iter()
        .find_map(|(slot, value)| Some((slot, value, in_front(place, value)?)))
        .ok_or(miss!("constant-rows"))?;
    ensure(place.model.is_read_only_by(joined, &[place.id]), miss!("one-reader").of(joined))?;
    let addend = if slot == 0 { b } else { a };
    let rank = place.dims(joined)?.len();
    // A single row would be broadcast to the other rows as well.
    let has_a_row_for_each = |addend: ValueId| {
        let (own, whole) = (place.shape(addend)?, place.shape(joined)?);
        Some(own.len() == rank && place.scope().eq(own.get(axis)?, whole.get(axis)?).is_yes())
    };
    prove(place.compare_shapes(joined, output), miss!("constant-addend").of(joined))?;
    ensure(has_a_row_for_each(addend) == Some(true), miss!("float"))?;
    let count = *rows.shape().get(axis).ok_or(Miss::ROOT)?;
    let mut edit = place.begin()?;
    // The addend of the rows is constant: the whole addend, or its part before the rest.
    let new = match place.constant(addend) {
        Some(all) => {
            let dim = *all.shape().get(axis).ok_or(Miss::ROOT)?;
            let part = |start, len| gather(all, &StridedView::of(all).slice_axis(axis, start, 1, len).ok()?).ok();
            let (first, behind) = (
                part(0, count).ok_or(miss!("float"))?,
                part(count, dim.checked_sub(count).ok_or(Miss::COMPUTABLE)?).ok_or(Miss::EXPRESSIBLE)?,
            );
            let sum = sum(&first, &rows).ok_or(miss!("constant-rows"))?;
            edit.constant(addend, "rows", concat(&[&sum, &behind], axis).or(Err(miss!("constant-addend")))?)
        }
        None => {
            let (id, node) = place.producer(addend, "Concat").ok_or(miss!("constant-addend").of(addend))?;
            let same_axis = place.read(node).axis(place.dims(addend)?.len()).ok_or(Miss::ROOT)? == axis;
            let first = place
                .constant(node.input(0).ok_or(Miss::ROOT)?)
                .filter(|first| first.shape().get(axis) == Some(&count))
                .ok_or(miss!("constant-addend"))?;
            ensure(same_axis, miss!("constant-addend"))?;
            ensure(place.model.is_read_only_by(addend, &[place.id]), miss!("one-reader").of(addend))?;
            let sum = sum(first, &rows).ok_or(miss!("constant-addend"))?;
            let sum = edit.constant(addend, "rows", sum);
            let again = edit.new_value(addend, "sum");
            edit.insert.push(NewNode::like(node).reading(0, sum).output(again));
            edit.remove.push(id);
            again
        }
    };
    let padded = edit.new_value(joined, "padded");
    let mut pads = vec![(0, 0); rank];
    pads.get_mut(axis).ok_or(Miss::ROOT)?.0 = i64::try_from(count).or(Err(Miss::COMPUTABLE))?;
    let pad =
        place.build(&mut edit, padded).padded(NewNode::new("Pad", [Some(rest)]), &pads).ok_or(Miss::EXPRESSIBLE)?;
    edit.insert.push(pad.output(padded));
    edit.remove.push(place.model.value(joined).producer().ok_or(Miss::ROOT)?);
    let node = NewNode::like(place.root()?).reading(slot, padded).reading(1 - slot, new);
    place.instead(edit, node)
}

/// Reads a Concat of constant rows, expanded to computed sizes, and a second operand.
fn in_front(place: &Place<'_>, value: ValueId) -> Option<Rows> {
    use crate::ops::traits::Movement;
    let (_, node) = place.producer(value, "Concat")?;
    let &[Some(first), Some(rest)] = node.inputs() else { return None };
    let axis = place.read(node).axis(place.shape(value)?.len())?;
    let (_, spread) = place.producer_with(first, |traits| traits.moves == Some(Movement::Spread))?;
    let rows = place.constant(spread.input(0)?)?;
    let wide = place.shape(first)?;
    let mut dims = vec![1; wide.len().checked_sub(rows.rank())?];
    dims.extend_from_slice(rows.shape());
    let rows = rows.reshape(&dims).ok()?;
    let count = i64::try_from(*dims.get(axis)?).ok()?;
    let is_own = |(own, wide): (&usize, &Dim)| *own == 1 || i64::try_from(*own).is_ok_and(|own| wide.is_const(own));
    let repeats = spread.is("Expand") || dims.iter().zip(wide).all(is_own);
    let fits = wide.get(axis)?.is_const(count) && repeats;
    let computed = spread.input(1).is_some_and(|sizes| place.constant(sizes).is_none());
    (fits && computed).then_some(Rows { rows, rest, axis })
}

/// Returns the broadcast sum of two tensors of one type.
fn sum(a: &Tensor, b: &Tensor) -> Option<Tensor> {
    let shape: Vec<usize> = a
        .shape()
        .iter()
        .zip(b.shape())
        .map(|(&a, &b)| if a == 1 { Some(b) } else { (b == 1 || a == b).then_some(a) })
        .collect::<Option<_>>()?;
    let spread = |tensor: &Tensor| gather(tensor, &StridedView::of(tensor).broadcast_to(&shape).ok()?).ok();
    let (a, b) = (spread(a)?, spread(b)?);
    if a.dtype() != b.dtype() || a.rank() != b.rank() {
        return None;
    }
    match a.dtype() {
        DType::Float => {
            let (a, b) = (a.elements::<f32>()?, b.elements::<f32>()?);
            Tensor::from_vec(&shape, a.iter().zip(b.iter()).map(|(a, b)| a + b).collect()).ok()
        }
        DType::Double => {
            let (a, b) = (a.elements::<f64>()?, b.elements::<f64>()?);
            Tensor::from_vec(&shape, a.iter().zip(b.iter()).map(|(a, b)| a + b).collect()).ok()
        }
        _ => None,
    }
}
