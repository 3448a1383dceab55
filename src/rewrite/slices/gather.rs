//! Gathers that are slices, and slices that are gathers.

use super::cuts::{Cut, cuts_of};
use crate::dim::{Dim, Scope};
use crate::ir::Edit;
use crate::rewrite::build::rebuilt;
use crate::rewrite::limits::LISTED;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::slicing::{Bound, Range};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "gather-of-concat",
        law: "Gather(Concat(p₀, …, pₙ), i) = Gather(pₖ, i − the sizes of p₀ … pₖ₋₁)",
        sentence: "Replaces a Gather from a Concat by a Gather from the operand that contains the selected elements.",
        premises: &[
            ("known-places", "the indices are constants, and so are the dims of the operands p₀, …, pₖ along the axis"),
            ("one-piece", "all selected elements lie in one operand pₖ"),
            ("no-size", "the data is not a vector, because the pass size-chain plans all shape arithmetic"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: gather_of_concat,
    },
    Rule {
        name: "slice-squeeze-to-gather",
        law: "Squeeze(x[i : i + 1 on a], a) = Gather(x, i; axis = a)",
        sentence: "Replaces a Slice of one element and a Squeeze by a Gather.",
        premises: &[
            ("one-element", "the Slice selects element i of axis a, and all elements of the other axes"),
            ("that-axis", "the Squeeze removes axis a, and no other axis"),
            ("one-reader", "the result of the Slice has no other consumer"),
            (
                "from-the-end",
                "if i is negative, the operator set is 11 or newer, because older versions of Gather have no negative indices",
            ),
            ("no-strings", "the data is not a string tensor, for which ONNX Runtime's Gather returns wrong elements"),
        ],
        exact: true,
        operators: &["Squeeze"],
        apply: slice_squeeze,
    },
    Rule {
        name: "gather-unsqueeze-to-gather",
        law: "Unsqueeze(Gather(x, i; axis = a), a) = Gather(x, [i]; axis = a)",
        sentence: "Replaces Gather and Unsqueeze of one element by a Gather with a vector of indices.",
        premises: &[
            ("single-index", "the index i is a constant scalar"),
            ("that-axis", "the Unsqueeze inserts axis a, and no other axis"),
            ("one-reader", "the result of the first Gather has no other consumer"),
            ("no-size", "the selected element is not a dim, because other consumers may need this dim as a scalar"),
        ],
        exact: true,
        operators: &["Unsqueeze"],
        apply: gather_unsqueeze,
    },
];

/// `Gather(Concat(p₀, …), i)` looks places up in one piece, where all of them lie in it; if they are all of its places in order, it is the piece.
fn gather_of_concat(place: &Place<'_>) -> Result<Edit, Miss> {
    let (data, indices) = (place.operand(0)?, place.operand(1)?);
    let (_, concat) = place.producer(data, "Concat").ok_or(Miss::ROOT)?;
    let dims = place.shape(data).ok_or(miss!("known-places").of(data))?;
    let axis = place.reading()?.axis(dims.len()).ok_or(Miss::ROOT)?;
    let tensor = place.constant(indices).ok_or(miss!("known-places").of(indices))?;
    let count = i64::try_from(tensor.len())
        .ok()
        .filter(|count| (1..=(LISTED as i64)).contains(count))
        .ok_or(miss!("known-places"))?;
    ensure(dims.len() >= 2, miss!("no-size"))?;
    ensure(place.read(concat).axis(dims.len()).ok_or(Miss::ROOT)? == axis, Miss::ROOT)?;
    let places = tensor.to_i64s().ok_or(Miss::COMPUTABLE)?;
    let (least, most) =
        (*places.iter().min().ok_or(miss!("known-places"))?, *places.iter().max().ok_or(miss!("known-places"))?);
    ensure(least >= 0, miss!("known-places"))?;
    let mut start = 0i64;
    for piece in concat.inputs() {
        let piece = (*piece).ok_or(Miss::ROOT)?;
        let size = place
            .shape(piece)
            .ok_or(miss!("known-places").of(piece))?
            .get(axis)
            .ok_or(miss!("known-places").of(piece))?
            .as_const()
            .ok_or(miss!("known-places").of(piece))?;
        let end = start.checked_add(size).ok_or(Miss::COMPUTABLE)?;
        if least >= end {
            start = end;
            continue;
        }
        ensure(most < end, miss!("one-piece"))?;
        let own: Vec<i64> =
            places.iter().map(|at| at.checked_sub(start)).collect::<Option<_>>().ok_or(miss!("known-places"))?;
        if tensor.rank() == 1 && count == size && own.iter().copied().eq(0..size) {
            return place.forward(piece);
        }
        let mut edit = place.begin()?;
        let own = Tensor::vector(own).reshape(tensor.shape()).or(Err(miss!("known-places")))?;
        let gather = place.build(&mut edit, piece).gather_at(piece, own, axis);
        return place.instead(edit, gather);
    }
    Err(miss!("one-piece"))
}

/// The index of the one element that a cut takes, where it takes one; where it takes none, Gather must find none at the index.
///
/// `x[i:i + 1]` is element `i`, or nothing where there is no such element, for `i >= 0` and `i < -1`; so is `x[-1:]`.
fn index_of(scope: &Scope, dim: &Dim, cut: &Cut) -> Option<i64> {
    let Range { begin: Bound::At(begin), end, step: Some(step) } = &cut.range else { return None };
    let index = begin.as_const()?;
    if let Some((start, len)) = &cut.exact
        && len.is_const(1)
        && dim.as_const().is_some()
    {
        return start.as_const();
    }
    let ends_behind = match end {
        Bound::Open => index == -1,
        Bound::At(end) if index == -1 => end.is_const(i64::MAX) || scope.ge(end, dim).is_yes(),
        Bound::At(end) => end.as_const().is_some_and(|end| index.checked_add(1) == Some(end)),
        Bound::Unknown => false,
    };
    // No axis is so long that the sum above is one of its positions.
    let is_position = index.checked_add(1).is_some_and(|end| end < i64::from(i32::MAX));
    let one = *step > 0 && ends_behind && is_position && scope.ge(dim, &Dim::constant(0)).is_yes();
    one.then_some(index)
}

/// `Squeeze(x[i:i + 1]) = Gather(x, i)`. Where there is no element `i`, both fail.
fn slice_squeeze(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let (slice, node) = place.producer(middle, "Slice").ok_or(Miss::ROOT)?;
    let data = node.input(0).ok_or(Miss::ROOT)?;
    ensure(place.has_one_reader(middle), miss!("one-reader").of(middle))?;
    ensure(place.may_be_looked_up(data), miss!("no-strings").of(data))?;
    let cuts = cuts_of(place, slice).ok_or(miss!("one-element"))?;
    let mut cut = cuts.cut();
    let (Some((axis, only)), None) = (cut.next(), cut.next()) else { return Err(miss!("one-element")) };
    ensure(place.reading()?.ones().ok_or(miss!("that-axis"))? == [axis], miss!("that-axis"))?;
    let index =
        index_of(place.scope(), cuts.dims.get(axis).ok_or(miss!("one-element"))?, only).ok_or(miss!("one-element"))?;
    ensure(index >= 0 || place.opset.counts_from_the_end(), miss!("from-the-end"))?;
    let mut edit = place.begin()?.removing(slice);
    let node = place.build(&mut edit, output).gather_at(data, Tensor::scalar(index), axis);
    place.instead(edit, node)
}

/// `Unsqueeze(Gather(x, i, axis = a), [a]) = Gather(x, [i], axis = a)` for a single constant index.
fn gather_unsqueeze(place: &Place<'_>) -> Result<Edit, Miss> {
    let is_size = place.fact(place.result()?).is_some_and(|fact| fact.elements().is_some());
    ensure(!is_size, miss!("no-size"))?;
    vector_of_index(place)
}

fn vector_of_index(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let (gather, node) = place.producer(middle, "Gather").ok_or(Miss::ROOT)?;
    let (data, index) = (node.input(0).ok_or(Miss::ROOT)?, node.input(1).ok_or(Miss::ROOT)?);
    let rank = place.shape(data).ok_or(miss!("single-index").of(data))?.len();
    let axis = place.read(node).axis(rank).ok_or(Miss::ROOT)?;
    let tensor = place.constant(index).ok_or(miss!("single-index").of(index))?;
    let vector = tensor.reshape(&[1]).ok().filter(|_| tensor.rank() == 0).ok_or(miss!("single-index"))?;
    ensure(place.has_one_reader(middle), miss!("one-reader").of(middle))?;
    ensure(place.reading()?.ones().ok_or(miss!("that-axis"))? == [axis], miss!("that-axis"))?;
    let mut edit = place.begin()?.removing(gather);
    let again = place.build(&mut edit, output).gather_at(data, vector, axis);
    place.instead(edit, rebuilt(node, again))
}
