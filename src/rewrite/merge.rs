//! Chains of data movement that one node can do.

use super::build::Build;
use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Edit, ValueId};
use crate::ops::traits::{LAYOUTS, Movement, traits_of};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "transpose-transpose",
        law: "Transpose(Transpose(x, p), q) = Transpose(x, p ∘ q)",
        sentence: "Merges two Transposes.",
        premises: &[("rank-known", "how many axes x has is known")],
        exact: true,
        operators: &["Transpose"],
        apply: transpose_transpose,
    },
    Rule {
        name: "transpose-as-reshape",
        law: "Transpose(x, p) = Reshape(x, its dims) where p leaves the axes not of size 1 in order",
        sentence: "Merges a Transpose of axes of size 1 into an adjacent Reshape.",
        premises: &[
            ("in-order", "the Transpose keeps the order of the axes above size 1"),
            ("beside-reshape", "a Reshape precedes or follows, and the value between has no other consumer"),
            ("sizes-said", "a constant can express the shape"),
        ],
        exact: true,
        operators: &["Transpose"],
        apply: transpose_as_reshape,
    },
    Rule {
        name: "reshape-reshape",
        law: "Reshape(Reshape(x, s), t) = Reshape(x, t)",
        sentence: "Merges consecutive Reshapes.",
        premises: &[(
            "sizes-said",
            "a constant can express the shape relative to that of x (operator set 5 or newer), or only axes of size 1 differ",
        )],
        exact: true,
        operators: LAYOUTS,
        apply: reshape_reshape,
    },
    Rule {
        name: "concat-concat",
        law: "Concat(…, Concat(a, b), …) = Concat(…, a, b, …)",
        sentence: "Merges a Concat into a Concat along the same axis.",
        premises: &[
            ("same-axis", "both are along the same axis"),
            ("one-reader", "the inner node has no other consumer"),
        ],
        exact: true,
        operators: &["Concat"],
        apply: concat_concat,
    },
];

/// `Transpose(Transpose(x, p), q) = Transpose(x, p ∘ q)`: axis `i` of the result is axis `p[q[i]]` of `x`.
fn transpose_transpose(place: &Place<'_>) -> Result<Edit, Miss> {
    let (_, inner) = place.producer(place.operand(0)?, "Transpose").ok_or(Miss::ROOT)?;
    let input = inner.input(0).ok_or(Miss::ROOT)?;
    let rank = place.shape(input).ok_or(miss!("rank-known").of(input))?.len();
    let p = place.read(inner).permutation(rank).ok_or(Miss::ROOT)?;
    let q = place.reading()?.permutation(rank).ok_or(Miss::ROOT)?;
    let both: Vec<usize> =
        q.iter().map(|&axis| p.get(axis).copied()).collect::<Option<_>>().ok_or(miss!("rank-known"))?;
    // Two readers of the inner result would keep it alive: then nothing is gained, but nothing is lost either.
    place.instead(place.begin()?, Build::transpose(input, both))
}

/// A transpose that only moves axes of size 1 keeps the elements in order; when it is next to a reshape, they are one reshape.
fn transpose_as_reshape(place: &Place<'_>) -> Result<Edit, Miss> {
    let (input, output) = (place.operand(0)?, place.result()?);
    let shape = place.shape(input).ok_or(miss!("in-order").of(input))?;
    let perm = place.reading()?.permutation(shape.len()).ok_or(Miss::ROOT)?;
    let moved: Vec<usize> =
        perm.iter().copied().filter(|&axis| !shape.get(axis).is_some_and(|dim| dim.is_const(1))).collect();
    ensure(moved.is_sorted(), miss!("in-order"))?;
    let before = place.layout(input).is_some() && place.has_one_reader(input);
    let readers = place.model.users(output);
    let after = readers.len() == 1
        && !place.model.is_named(output)
        && readers.iter().all(|(user, slot)| {
            let user = place.model.node(*user);
            *slot == 0 && user.is_some_and(|node| traits_of(place.model, node).moves == Some(Movement::Layout))
        });
    ensure(before || after, miss!("beside-reshape"))?;
    reshape(place, input)
}

/// A layout of `input` in the shape of the node's result in its place, if constants can say it.
fn reshape(place: &Place<'_>, input: ValueId) -> Result<Edit, Miss> {
    let output = place.result()?;
    let (from, to) = (
        place.shape(input).ok_or(miss!("sizes-said").of(input))?,
        place.shape(output).ok_or(miss!("sizes-said").of(output))?,
    );
    let mut edit = place.begin()?;
    let node = place.build(&mut edit, output).reshape_to(place.scope(), input, from, to).ok_or(miss!("sizes-said"))?;
    place.instead(edit, node)
}

/// Reshapes keep the elements in order, so of two in a row only the last counts.
fn reshape_reshape(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let input = place.layout(middle).ok_or(Miss::ROOT)?.1.input(0).ok_or(Miss::ROOT)?;
    // With another reader the inner one stays. Nothing is lost, and the readers no longer wait for each other to be simplified.
    if place.same_shape(input, output) && !place.model.is_named(output) {
        return place.forward(input);
    }
    reshape(place, input)
}

/// `Concat(…, Concat(a, b), …) = Concat(…, a, b, …)` along one axis.
fn concat_concat(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let rank = place.shape(node.output(0).ok_or(Miss::ROOT)?).ok_or(miss!("same-axis"))?.len();
    let axis = place.read(node).axis(rank).ok_or(Miss::ROOT)?;
    let mut inputs = Vec::new();
    let mut merged = false;
    let mut miss = Miss::ROOT;
    for &value in node.inputs() {
        let value = value.ok_or(Miss::ROOT)?;
        match place.producer(value, "Concat") {
            Some((_, inner)) if place.has_one_reader(value) && place.read(inner).axis(rank) == Some(axis) => {
                inputs.extend(inner.inputs().iter().copied().collect::<Option<Vec<_>>>().ok_or(Miss::ROOT)?);
                merged = true;
            }
            Some((_, inner)) if place.read(inner).axis(rank) == Some(axis) => {
                miss = Miss::READ.of(value);
                inputs.push(value);
            }
            Some(_) => {
                miss = miss!("same-axis").of(value);
                inputs.push(value);
            }
            None => inputs.push(value),
        }
    }
    ensure(merged, miss)?;
    place.instead(place.begin()?, Build::concat(inputs, axis))
}
