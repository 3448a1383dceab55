//! Chains of data movement that one node can do.

use super::build::Build;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops::traits::{BROADCASTING, LAYOUTS, Movement, Variation, traits_of};
use crate::tensor::DType;

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
        name: "reshape-of-transpose",
        law: "Reshape(Transpose(Reshape(x))) = Transpose(x) where axes are taken apart, moved side by side, and \
            put together",
        sentence: "Merges regrouped axes around a Transpose.",
        premises: &[
            (
                "put-together",
                "each axis of the result consists of axes that were adjacent and in order before the Transpose",
            ),
            ("axes-of-x", "these are the axes of x"),
        ],
        exact: true,
        operators: &["Reshape", "Flatten"],
        apply: reshape_of_transpose,
    },
    Rule {
        name: "cast-cast",
        law: "Cast(Cast(x, a), b) = Cast(x, b)",
        sentence: "Merges two Casts whose intermediate type is lossless.",
        premises: &[
            ("lossless", "type a represents every value of x's type uniquely"),
            ("same-kind", "the Cast does not convert floats to integers, which is implementation-defined out of range"),
        ],
        exact: true,
        operators: &["Cast"],
        apply: cast_cast,
    },
    Rule {
        name: "least-of-cast",
        law: "Cast(ReduceMin(x)) = ReduceMin(Cast(x)), likewise ReduceMax",
        sentence: "Moves reductions and products of a Cast before the Cast.",
        premises: &[
            ("in-order", "the Cast converts integers to floats, which preserves the order"),
            ("there", "something else casts x to that type"),
            ("not-empty", "x is not empty, because the minimum of an empty tensor depends on the type"),
            ("one-reader", "the integer has no other consumer"),
            (
                "not-inverted",
                "the float has no Reciprocal as consumer, because OpenVINO computes the product with the reciprocal of a minimum wrongly",
            ),
        ],
        exact: true,
        operators: &["Cast"],
        apply: least_of_cast,
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
    Rule {
        name: "expand-into-broadcast",
        law: "f(Expand(x), y) = f(x, y)",
        sentence: "Removes an Expand before an operator that broadcasts.",
        premises: &[
            ("others-reach", "every size of the result is that of x or of another operand"),
            ("same-rank", "x or another operand has the rank of the result"),
            ("same-bits", "kernels compute the same, bit for bit, where an operand is a single number"),
        ],
        exact: true,
        operators: BROADCASTING,
        apply: expand_into_broadcast,
    },
    Rule {
        name: "expand-into-function",
        law: "f(Expand(x), y) = f(x, y), up to rounding",
        sentence: "Removes an Expand before functions that end in an operator that broadcasts.",
        premises: &[
            ("others-reach", "every size of the result is that of x or of another operand"),
            ("same-rank", "x or another operand has the rank of the result"),
            (
                "rounds",
                "kernels at most round otherwise where an operand is a single number: powers of floats, not of integers",
            ),
        ],
        exact: false,
        operators: BROADCASTING,
        apply: expand_into_function,
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

/// Axes that are split, moved side by side in their order, and merged again: `Reshape(Transpose(Reshape(x)))` is a Transpose of `x`,
/// whose axes are the merged ones.
fn reshape_of_transpose(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (_, transpose) = place.producer(middle, "Transpose")?;
    let split = transpose.input(0)?;
    let (_, reshape) = place.producer_of(split, &["Reshape", "Unsqueeze"])?;
    let input = reshape.input(0)?;
    let (from, dims, target) = (place.shape(input)?, place.shape(split)?, place.shape(output)?);
    let perm = place.read(transpose).permutation(dims.len())?;
    let scope = place.scope();
    if from.len() != target.len() {
        return None;
    }
    // The axes of the transposed tensor that each axis of the result merges.
    let mut groups: Vec<&[usize]> = Vec::with_capacity(target.len());
    let mut rest = perm.as_slice();
    for dim in target {
        let merged = |count: usize| {
            let axes = rest.get(..count)?;
            let sizes = axes.iter().map(|&axis| dims.get(axis)).collect::<Option<Vec<_>>>()?;
            scope.eq(&scope.product(sizes), dim).is_yes().then_some(axes)
        };
        let group = (1..=rest.len()).find_map(merged)?;
        let in_order = group.windows(2).all(|pair| pair.first().zip(pair.last()).is_some_and(|(a, b)| a + 1 == *b));
        if !in_order {
            return None;
        }
        rest = rest.get(group.len()..)?;
        groups.push(group);
    }
    if !rest.is_empty() {
        return None;
    }
    // The merged axes in the order they have before the Transpose are those of the input.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&group| groups.get(group).and_then(|axes| axes.first()));
    for (own, &group) in from.iter().zip(&order) {
        if !scope.eq(own, target.get(group)?).is_yes() {
            return None;
        }
    }
    let both: Vec<usize> =
        (0..groups.len()).map(|group| order.iter().position(|&other| other == group)).collect::<Option<_>>()?;
    place.instead(place.edit()?, Build::transpose(input, both))
}

/// `Cast(Cast(x, a), b) = Cast(x, b)` when every value of `x`'s type has an `a` that stands for it exactly.
fn cast_cast(place: &Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (_, inner) = place.producer(middle, "Cast")?;
    let input = inner.input(0)?;
    let (from, through, to) = (place.dtype(input)?, place.dtype(middle)?, place.dtype(output)?);
    let exact = from.is_lossless_in(through);
    // Integers of 64 bits are rounded on their way to a float, and a float out of an integer's range is anybody's guess.
    if !exact || !to.is_float() && !to.is_integer() && to != DType::Bool || (from.is_float() && !to.is_float()) {
        return None;
    }
    if from == to {
        return place.forward(input);
    }
    // How the outer one rounds and saturates is its own.
    let node = NewNode::like(place.node()?).reading(0, input);
    place.instead(place.edit()?, node)
}

/// Casts of integers to floats round, but never turn an order round.
fn least_of_cast(place: &Place<'_>) -> Option<Edit> {
    let (least, output) = (place.input(0)?, place.output(0)?);
    let (id, reduce) = place.producer_of(least, &["ReduceMin", "ReduceMax"])?;
    let x = reduce.input(0)?;
    let to = place.dtype(output).filter(|to| matches!(to, DType::Float | DType::Double))?;
    let holds_something = place.shape(x)?.iter().all(|dim| place.scope().ge(dim, &Dim::constant(1)).is_yes());
    let is_inverted = || {
        place.model.users(output).iter().any(|&(id, _)| place.model.node(id).is_some_and(|node| node.is("Reciprocal")))
    };
    if !place.dtype(x)?.is_integer() || !place.has_one_reader(least) || !holds_something || is_inverted() {
        return None;
    }
    let cast = place.model.users(x).into_iter().find_map(|(id, _)| {
        let node = place.model.node(id).filter(|node| node.is("Cast") && Some(node.graph()) == place.graph())?;
        node.output(0).filter(|&cast| place.dtype(cast) == Some(to))
    })?;
    place.instead(place.edit()?.removing(id), NewNode::like(reduce).reading(0, cast))
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

/// Kernels that look at whether an operand is a single number give the same bits.
fn expand_into_broadcast(place: &Place<'_>) -> Option<Edit> {
    broadcast_itself(place, Variation::None)
}

/// They may round otherwise: Pow of a single exponent multiplies where it can.
fn expand_into_function(place: &Place<'_>) -> Option<Edit> {
    broadcast_itself(place, Variation::Rounding)
}

/// `f(Expand(x), y) = f(x, y)` when broadcasting `x` against the other operands gives the same result shape.
fn broadcast_itself(place: &Place<'_>, variation: Variation) -> Option<Edit> {
    let node = place.node()?;
    let traits = traits_of(place.model, node);
    let dtypes = node.inputs().iter().map(|input| Some(traits.variation_by_scalar(place.dtype((*input)?)?)));
    let most = dtypes.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let broadcasts = place.opset.everything_broadcasts() && traits.is_broadcasting(place.opset.version());
    if !broadcasts || most != variation {
        return None;
    }
    let output = node.output(0)?;
    let inputs: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>()?;
    let result = place.shape(output)?.to_vec();
    for (slot, &value) in inputs.iter().enumerate() {
        let Some((_, inner)) = place.producer(value, "Expand") else { continue };
        let Some(source) = inner.input(0) else { continue };
        let shape = |i: usize, value: ValueId| if i == slot { place.shape(source) } else { place.shape(value) };
        let Some(shapes) = inputs.iter().enumerate().map(|(i, &value)| shape(i, value)).collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        let scope = place.scope();
        // Each axis of the result must have an operand that has its size for certain, and no operand may be larger: one that
        // is not known to have the size or 1 had it before, so it still fits. Leading axes of size 1 need an operand that has them.
        let has_rank = shapes.iter().any(|shape| shape.len() == result.len());
        let fits = has_rank
            && result.iter().rev().enumerate().all(|(back, dim)| {
                let mut own = shapes.iter().map(|shape| shape.len().checked_sub(back + 1).and_then(|i| shape.get(i)));
                dim.is_const(1) || own.any(|own| own.is_some_and(|own| scope.eq(own, dim).is_yes()))
            });
        if fits {
            let mut edit = place.edit()?;
            edit.rewire.push((place.id, slot, Some(source)));
            return Some(edit);
        }
    }
    None
}
