//! Chains of data movement that one node can do.

use super::build::Build;
use super::{Place, Rule};
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
        premises: &[("same-axis", "both are along the same axis"), ("one-reader", "nothing else reads the inner one")],
        exact: true,
        operators: &["Concat"],
        apply: concat_concat,
    },
];

/// `Transpose(Transpose(x, p), q) = Transpose(x, p ∘ q)`: axis `i` of the result is axis `p[q[i]]` of `x`.
fn transpose_transpose(place: &Place<'_>) -> Option<Edit> {
    let (_, inner) = place.producer(place.input(0)?, "Transpose")?;
    let input = inner.input(0)?;
    let rank = place.shape(input)?.len();
    let p = place.read(inner).permutation(rank)?;
    let q = place.this()?.permutation(rank)?;
    let both: Vec<usize> = q.iter().map(|&axis| p.get(axis).copied()).collect::<Option<_>>()?;
    // Two readers of the inner result would keep it alive: then nothing is gained, but nothing is lost either.
    place.instead(place.edit()?, Build::transpose(input, both))
}

/// A transpose that only moves axes of size 1 keeps the elements in order; when it is next to a reshape, they are one reshape.
fn transpose_as_reshape(place: &Place<'_>) -> Option<Edit> {
    let (input, output) = (place.input(0)?, place.output(0)?);
    let shape = place.shape(input)?;
    let perm = place.this()?.permutation(shape.len())?;
    let moved: Vec<usize> =
        perm.iter().copied().filter(|&axis| !shape.get(axis).is_some_and(|dim| dim.is_const(1))).collect();
    if !moved.is_sorted() {
        return None;
    }
    let before = place.layout(input).is_some() && place.has_one_reader(input);
    let readers = place.model.users(output);
    let after = readers.len() == 1
        && !place.model.is_named(output)
        && readers.iter().all(|(user, slot)| {
            let user = place.model.node(*user);
            *slot == 0 && user.is_some_and(|node| traits_of(place.model, node).moves == Some(Movement::Layout))
        });
    if !before && !after {
        return None;
    }
    reshape(place, input)
}

/// A layout of `input` in the shape of the node's result in its place, if constants can say it.
fn reshape(place: &Place<'_>, input: ValueId) -> Option<Edit> {
    let output = place.output(0)?;
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    let mut edit = place.edit()?;
    let node = place.build(&mut edit, output).reshape_to(place.scope(), input, from, to)?;
    place.instead(edit, node)
}

/// Reshapes keep the elements in order, so of two in a row only the last counts.
fn reshape_reshape(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let input = place.layout(middle)?.1.input(0)?;
    // With another reader the inner one stays. Nothing is lost, and the readers no longer wait for each other to be simplified.
    if place.same_shape(input, output) && !place.model.is_named(output) {
        return place.forward(input);
    }
    reshape(place, input)
}

/// `Concat(…, Concat(a, b), …) = Concat(…, a, b, …)` along one axis.
fn concat_concat(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let rank = place.shape(node.output(0)?)?.len();
    let axis = place.read(node).axis(rank)?;
    let mut inputs = Vec::new();
    let mut merged = false;
    for &value in node.inputs() {
        let value = value?;
        match place.producer(value, "Concat") {
            Some((_, inner)) if place.has_one_reader(value) && place.read(inner).axis(rank) == Some(axis) => {
                inputs.extend(inner.inputs().iter().copied().collect::<Option<Vec<_>>>()?);
                merged = true;
            }
            _ => inputs.push(value),
        }
    }
    if !merged {
        return None;
    }
    place.instead(place.edit()?, Build::concat(inputs, axis))
}
