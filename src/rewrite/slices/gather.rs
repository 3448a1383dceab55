//! Gathers that are slices, and slices that are gathers.

use super::cuts::{Cut, cuts_of, range_of};
use crate::dim::{Dim, Scope};
use crate::ir::Edit;
use crate::rewrite::build::rebuilt;
use crate::rewrite::{Place, Rule};
use crate::slicing::{Bound, Range};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "gather-to-slice",
        law: "Gather(x, [s, s + t, s + 2·t, …]) = x[s : … : t]",
        sentence: "Replaces a Gather with evenly spaced indices by a Slice.",
        premises: &[
            ("progression", "the indices are known, and a fixed step apart"),
            ("inside", "every index is proved to be in range, because otherwise a Gather fails and a slice is shorter"),
            ("vector", "the indices have one axis"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: gather_to_slice,
    },
    Rule {
        name: "gather-of-concat",
        law: "Gather(Concat(p₀, …, pₙ), i) = Gather(pₖ, i − the sizes of p₀ … pₖ₋₁)",
        sentence: "Moves a Gather from one operand of a Concat to that operand.",
        premises: &[
            (
                "known-places",
                "the indices are constant, and the sizes of the pieces are numbers up to the one that holds them",
            ),
            ("one-piece", "all places lie in one piece"),
            ("no-size", "the data is not a vector, because the pass size-chain plans vectors of dims"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: gather_of_concat,
    },
    Rule {
        name: "slice-squeeze-to-gather",
        law: "Squeeze(x[i : i + 1 on a], a) = Gather(x, i; axis = a)",
        sentence: "Replaces Slice and Squeeze of one element by a Gather.",
        premises: &[
            ("one-element", "the slice selects element i of one axis if it exists, and all of the other axes"),
            ("that-axis", "the Squeeze removes that axis, and no other"),
            ("one-reader", "the values in between have no other consumer"),
            ("from-the-end", "an index that counts from the end has operator set 11, in which Gather knows it"),
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
            ("single-index", "the index is one constant number without axes"),
            ("that-axis", "the Unsqueeze restores the axis of the Gather, and no other"),
            ("one-reader", "the values in between have no other consumer"),
            (
                "no-size",
                "the element is not a dim, which other consumers may need as a scalar; a later stage handles dims",
            ),
        ],
        exact: true,
        operators: &["Unsqueeze"],
        apply: gather_unsqueeze,
    },
];

pub(in crate::rewrite) const LATE_RULES: &[Rule] = &[Rule {
    name: "size-unsqueeze-to-gather",
    law: "Unsqueeze(Gather(x, i; axis = a), a) = Gather(x, [i]; axis = a)",
    sentence: "Replaces a scalar lookup of a dim and Unsqueeze by a lookup with a vector.",
    premises: &[
        ("single-index", "the index is one constant number without axes"),
        ("that-axis", "the Unsqueeze restores the axis of the Gather, and no other"),
        ("one-reader", "the values in between have no other consumer"),
    ],
    exact: true,
    operators: &["Unsqueeze"],
    apply: size_unsqueeze,
}];

/// More constant indices than this are not looked at one by one.
const MOST_INDICES: i64 = 4096;

/// Indices as `start + k·step` for `k < len`, counted from the front.
///
/// Premise: all of them are known, and so is the dim. That the axis must be long enough for the Gather to run would do for a proof,
/// but the slice would run where the Gather fails.
fn progression(scope: &Scope, dim: &Dim, indices: &[Dim]) -> Option<(Dim, i64, Dim)> {
    dim.as_const()?;
    let zero = Dim::constant(0);
    let count = |index: &Dim| {
        if scope.ge(index, &zero).is_yes() {
            return Some(index.clone());
        }
        scope.lt(index, &zero).is_yes().then(|| scope.add(index, dim))
    };
    let (first, second) = (count(indices.first()?)?, count(indices.get(1)?)?);
    let step = scope.sub(&second, &first).as_const().filter(|&step| step != 0)?;
    let mut expected = first.clone();
    for index in indices {
        if !scope.eq(&count(index)?, &expected).is_yes() {
            return None;
        }
        expected = scope.add(&expected, &Dim::constant(step));
    }
    Some((first, step, Dim::constant(i64::try_from(indices.len()).ok()?)))
}

/// `Gather(x, [s, s + t, s + 2t, …]) = x[s : … : t]`, and `Gather(x, Range(a, b, t)) = x[a:b:t]`.
///
/// Premise: every index lies in the axis. Outside of it Gather fails, and a slice takes less.
fn gather_to_slice(place: &Place<'_>) -> Option<Edit> {
    let (data, indices) = (place.input(0)?, place.input(1)?);
    let dims = place.shape(data)?;
    let axis = place.this()?.axis(dims.len())?;
    let dim = dims.get(axis)?;
    let [count] = place.shape(indices)? else { return None };
    if count.as_const().is_some_and(|count| count > MOST_INDICES) {
        return None;
    }
    let scope = place.scope();
    let (start, step, len) = match place.fact(indices).and_then(|fact| fact.ints()) {
        Some(indices) => progression(scope, dim, &indices)?,
        None => {
            let (_, range) = place.producer(indices, "Range")?;
            let scalar = |i: usize| place.fact(range.input(i)?)?.ints()?.into_iter().next();
            (scalar(0)?, scalar(2)?.as_const().filter(|&step| step != 0)?, count.clone())
        }
    };
    let ranges: Vec<Option<Range>> = {
        let range = range_of(scope, dim, &start, step, &len)?;
        (0..dims.len()).map(|at| range.clone().filter(|_| at == axis)).collect()
    };
    if ranges.iter().all(Option::is_none) {
        return place.forward(data);
    }
    let mut edit = place.edit()?;
    let slice = place.build(&mut edit, data).slice_of_ranges(data, &ranges)?;
    place.instead(edit, slice)
}

/// `Gather(Concat(p₀, …), i)` looks places up in one piece, where all of them lie in it; if they are all of its places in order, it is the piece.
fn gather_of_concat(place: &Place<'_>) -> Option<Edit> {
    let (data, indices) = (place.input(0)?, place.input(1)?);
    let (_, concat) = place.producer(data, "Concat")?;
    let dims = place.shape(data)?;
    let axis = place.this()?.axis(dims.len())?;
    let tensor = place.constant(indices)?;
    let count = i64::try_from(tensor.len()).ok().filter(|count| (1..=MOST_INDICES).contains(count))?;
    if dims.len() < 2 || place.read(concat).axis(dims.len())? != axis {
        return None;
    }
    let places = tensor.to_i64s()?;
    let (least, most) = (*places.iter().min()?, *places.iter().max()?);
    if least < 0 {
        return None;
    }
    let mut start = 0i64;
    for piece in concat.inputs() {
        let piece = (*piece)?;
        let size = place.shape(piece)?.get(axis)?.as_const()?;
        let end = start.checked_add(size)?;
        if least >= end {
            start = end;
            continue;
        }
        if most >= end {
            return None;
        }
        let own: Vec<i64> = places.iter().map(|at| at.checked_sub(start)).collect::<Option<_>>()?;
        if tensor.rank() == 1 && count == size && own.iter().copied().eq(0..size) {
            return place.forward(piece);
        }
        let mut edit = place.edit()?;
        let own = Tensor::vector(own).reshape(tensor.shape()).ok()?;
        let gather = place.build(&mut edit, piece).gather_at(piece, own, axis);
        return place.instead(edit, gather);
    }
    None
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
fn slice_squeeze(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (slice, node) = place.producer(middle, "Slice")?;
    let data = node.input(0)?;
    if !place.has_one_reader(middle) || !place.may_be_looked_up(data) {
        return None;
    }
    let cuts = cuts_of(place, slice)?;
    let mut cut = cuts.cut();
    let (Some((axis, only)), None) = (cut.next(), cut.next()) else { return None };
    if place.this()?.ones()? != [axis] {
        return None;
    }
    let index = index_of(place.scope(), cuts.dims.get(axis)?, only)?;
    if index < 0 && !place.opset.counts_from_the_end() {
        return None;
    }
    let mut edit = place.edit()?.removing(slice);
    let node = place.build(&mut edit, output).gather_at(data, Tensor::scalar(index), axis);
    place.instead(edit, node)
}

/// `Unsqueeze(Gather(x, i, axis = a), [a]) = Gather(x, [i], axis = a)` for a single constant index.
fn gather_unsqueeze(place: &Place<'_>) -> Option<Edit> {
    let is_size = place.fact(place.output(0)?).is_some_and(|fact| fact.elements().is_some());
    if is_size { None } else { vector_of_index(place) }
}

/// The same for sizes that are read off a shape. They are numbered by what they are first: the scalar may be needed elsewhere.
fn size_unsqueeze(place: &Place<'_>) -> Option<Edit> {
    vector_of_index(place)
}

fn vector_of_index(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (gather, node) = place.producer(middle, "Gather")?;
    let (data, index) = (node.input(0)?, node.input(1)?);
    let rank = place.shape(data)?.len();
    let axis = place.read(node).axis(rank)?;
    let tensor = place.constant(index)?;
    let vector = tensor.reshape(&[1]).ok().filter(|_| tensor.rank() == 0)?;
    if !place.has_one_reader(middle) || place.this()?.ones()? != [axis] {
        return None;
    }
    let mut edit = place.edit()?.removing(gather);
    let again = place.build(&mut edit, output).gather_at(data, vector, axis);
    place.instead(edit, rebuilt(node, again))
}
