//! Chains of data movement that one node can do.

use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NewNode, ValueId};
use crate::ops::traits::{BROADCASTING, LAYOUTS, Variation, traits_of};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "transpose-transpose", operators: &["Transpose"], exact: true, apply: transpose_transpose },
    Rule { name: "transpose-as-reshape", operators: &["Transpose"], exact: true, apply: transpose_as_reshape },
    Rule { name: "reshape-reshape", operators: LAYOUTS, exact: true, apply: reshape_reshape },
    Rule { name: "reshape-of-transpose", operators: &["Reshape", "Flatten"], exact: true, apply: reshape_of_transpose },
    Rule { name: "cast-cast", operators: &["Cast"], exact: true, apply: cast_cast },
    Rule { name: "concat-concat", operators: &["Concat"], exact: true, apply: concat_concat },
    Rule { name: "expand-into-broadcast", operators: BROADCASTING, exact: true, apply: expand_into_broadcast },
    Rule { name: "expand-into-function", operators: BROADCASTING, exact: false, apply: expand_into_function },
];

/// The axes of the operand in the order of those of the result.
pub(super) fn permutation(node: &crate::ir::Node, rank: usize) -> Option<Vec<usize>> {
    match node.attribute("perm") {
        None => Some((0..rank).rev().collect()),
        Some(Attribute::Ints(perm)) if perm.len() == rank => {
            perm.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect()
        }
        Some(_) => None,
    }
}

/// `Transpose(Transpose(x, p), q) = Transpose(x, p ∘ q)`: axis `i` of the result is axis `p[q[i]]` of `x`.
fn transpose_transpose(place: &mut Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (_, inner) = place.producer(middle, "Transpose")?;
    let input = inner.input(0)?;
    let rank = place.shape(input)?.len();
    let p = permutation(inner, rank)?;
    let q = permutation(place.node()?, rank)?;
    let both: Vec<i64> =
        q.iter().map(|&axis| p.get(axis).and_then(|&axis| i64::try_from(axis).ok())).collect::<Option<_>>()?;
    // Two readers of the inner result would keep it alive: then nothing is gained, but nothing is lost either.
    let node =
        NewNode::new("Transpose", [Some(input)]).with("perm", both).named(place.node()?.name.clone()).output(output);
    Some(place.edit("transpose-transpose")?.removing(place.id).inserting(node))
}

/// A transpose that only moves axes of size 1 keeps the elements in order; when it is next to a reshape, they are one reshape.
fn transpose_as_reshape(place: &mut Place<'_>) -> Option<Edit> {
    let (input, output) = (place.input(0)?, place.output(0)?);
    let shape = place.shape(input)?.to_vec();
    let perm = permutation(place.node()?, shape.len())?;
    let moved: Vec<usize> =
        perm.iter().copied().filter(|&axis| !shape.get(axis).is_some_and(|dim| dim.is_const(1))).collect();
    if !moved.is_sorted() || place.opset < 5 {
        return None;
    }
    let before = place.layout(input).is_some() && place.has_one_reader(input);
    let readers = place.model.users(output);
    let after = readers.len() == 1
        && !place.model.is_output(output)
        && readers.iter().all(|(user, slot)| {
            *slot == 0 && place.model.node(*user).is_some_and(|node| node.is("Reshape") || node.is("Flatten"))
        });
    if !before && !after {
        return None;
    }
    let target = place.shape(output)?.to_vec();
    reshape_to(place, "transpose-as-reshape", input, &shape, &target)
}

/// A Reshape of `input` to `target` in place of the node, if a constant operand can say it.
fn reshape_to(place: &mut Place<'_>, rule: &'static str, input: ValueId, from: &[Dim], target: &[Dim]) -> Option<Edit> {
    let output = place.output(0)?;
    let codes = reshape_codes(place.scope(), from, target)?;
    let name = place.node()?.name.clone();
    let constant = place.new_value(output, "shape");
    let mut edit = place.edit(rule)?.removing(place.id);
    edit.constants.push((constant, Tensor::vector(codes)));
    Some(edit.inserting(NewNode::new("Reshape", [Some(input), Some(constant)]).named(name).output(output)))
}

/// A movement of `source` to the shape of the node's result in its place. Where a Reshape cannot be told so, what lies above
/// `source` may be, for reshapes keep the elements in order.
pub(super) fn place_reshape(place: &mut Place<'_>, rule: &'static str, mut source: ValueId) -> Option<Edit> {
    const REACH: usize = 4;
    let output = place.output(0)?;
    for _ in 0..REACH {
        let named = place.model.is_output(output) || place.model.value(output).pinned;
        if place.same_shape(source, output) && !named {
            return place.forward(rule, source);
        }
        let dims = place.shape(source)?.to_vec();
        let mut edit = place.edit(rule)?.removing(place.id);
        if insert_reshape(place, &mut edit, source, &dims, output).is_some() {
            return Some(edit);
        }
        source = place.layout(source)?.1.input(0)?;
    }
    None
}

/// Adds to an edit a node that gives `source`, of these dims, the shape of `output`, and computes `output`.
pub(super) fn insert_reshape(
    place: &mut Place<'_>,
    edit: &mut Edit,
    source: ValueId,
    dims: &[Dim],
    output: ValueId,
) -> Option<()> {
    let target = place.shape(output)?.to_vec();
    insert_reshape_to(place, edit, (source, dims), (output, &target))?;
    edit.insert.last_mut()?.name.clone_from(&place.node()?.name);
    Some(())
}

/// Adds to an edit a node without a name that computes `output`, of the dims `target`, from `source`, of the dims `dims`.
pub(super) fn insert_reshape_to(
    place: &mut Place<'_>,
    edit: &mut Edit,
    (source, dims): (ValueId, &[Dim]),
    (output, target): (ValueId, &[Dim]),
) -> Option<()> {
    if place.opset >= 5
        && let Some(codes) = reshape_codes(place.scope(), dims, target)
    {
        let constant = place.new_value(output, "shape");
        edit.constants.push((constant, Tensor::vector(codes)));
        edit.insert.push(NewNode::new("Reshape", [Some(source), Some(constant)]).output(output));
        return Some(());
    }
    let (operator, short, long) =
        if dims.len() < target.len() { ("Unsqueeze", dims, target) } else { ("Squeeze", target, dims) };
    let axes = super::sizes::inserted_ones(place.scope(), short, long).filter(|axes| !axes.is_empty())?;
    let node = if place.opset >= 13 {
        let constant = place.new_value(output, "axes");
        edit.constants.push((constant, Tensor::vector(axes)));
        NewNode::new(operator, [Some(source), Some(constant)])
    } else {
        NewNode::new(operator, [Some(source)]).with("axes", axes)
    };
    edit.insert.push(node.output(output));
    Some(())
}

/// The numbers that make a Reshape without `allowzero` of a value with the dims `from` one with the dims `target`.
pub(super) fn reshape_codes(scope: &crate::dim::Scope, from: &[Dim], target: &[Dim]) -> Option<Vec<i64>> {
    let mut rest = None;
    let mut codes = Vec::with_capacity(target.len());
    for (i, dim) in target.iter().enumerate() {
        let same = from.get(i).is_some_and(|from| scope.eq(from, dim).is_yes());
        match dim.as_const() {
            Some(size) if size != 0 => codes.push(size),
            _ if same => codes.push(0),
            _ if rest.is_none() => {
                rest = Some(i);
                codes.push(-1);
            }
            _ => return None,
        }
    }
    if let Some(rest) = rest {
        let mut others = target.iter().enumerate().filter(|(i, _)| *i != rest);
        if !others.all(|(_, dim)| scope.ge(dim, &Dim::constant(1)).is_yes()) {
            return None;
        }
    }
    Some(codes)
}

/// Reshapes keep the elements in order, so of two in a row only the last counts.
fn reshape_reshape(place: &mut Place<'_>) -> Option<Edit> {
    if place.opset < 5 {
        return None;
    }
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let input = place.layout(middle)?.1.input(0)?;
    // With another reader the inner one stays. Nothing is lost, and the readers no longer wait for each other to be simplified.
    if place.same_shape(input, output) && !place.model.is_output(output) && !place.model.value(output).pinned {
        return place.forward("reshape-reshape", input);
    }
    let from = place.shape(input)?.to_vec();
    let target = place.shape(output)?.to_vec();
    reshape_to(place, "reshape-reshape", input, &from, &target)
}

/// Axes that are split, moved side by side in their order, and merged again: `Reshape(Transpose(Reshape(x)))` is a Transpose of `x`,
/// whose axes are the merged ones.
fn reshape_of_transpose(place: &mut Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (_, transpose) = place.producer(middle, "Transpose")?;
    let split = transpose.input(0)?;
    let (_, reshape) = ["Reshape", "Unsqueeze"].iter().find_map(|operator| place.producer(split, operator))?;
    let input = reshape.input(0)?;
    let (from, dims, target) = (place.shape(input)?, place.shape(split)?, place.shape(output)?);
    let perm = permutation(transpose, dims.len())?;
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
    let both: Vec<i64> = (0..groups.len())
        .map(|group| order.iter().position(|&other| other == group).and_then(|axis| i64::try_from(axis).ok()))
        .collect::<Option<_>>()?;
    let name = place.node()?.name.clone();
    let node = NewNode::new("Transpose", [Some(input)]).with("perm", both).named(name).output(output);
    Some(place.edit("reshape-of-transpose")?.removing(place.id).inserting(node))
}

/// Whether every value of the first type has one of the second that stands for it exactly, and for nothing else.
pub(super) fn is_lossless(from: DType, through: DType) -> bool {
    use DType::*;
    // By rows: what stands for every value of the first type.
    matches!(
        (from, through),
        (Bool, Uint8 | Int8 | Int16 | Int32 | Int64 | Uint16 | Uint32 | Uint64 | Float | Double | Float16)
            | (Int8, Int16 | Int32 | Int64 | Float | Double)
            | (Uint8, Int16 | Int32 | Int64 | Uint16 | Uint32 | Uint64 | Float | Double)
            | (Int16, Int32 | Int64 | Float | Double)
            | (Uint16, Int32 | Int64 | Uint32 | Uint64 | Float | Double)
            | (Int32, Int64 | Double)
            | (Uint32, Int64 | Uint64 | Double)
            | (Float16 | Bfloat16, Float | Double)
            | (Float, Double)
    )
}

/// `Cast(Cast(x, a), b) = Cast(x, b)` when every value of `x`'s type has an `a` that stands for it exactly.
fn cast_cast(place: &mut Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (_, inner) = place.producer(middle, "Cast")?;
    let input = inner.input(0)?;
    let (from, through, to) = (place.dtype(input)?, place.dtype(middle)?, place.dtype(output)?);
    let exact = is_lossless(from, through);
    // Integers of 64 bits are rounded on their way to a float, and a float out of an integer's range is anybody's guess.
    if !exact || !to.is_float() && !to.is_integer() && to != DType::Bool || (from.is_float() && !to.is_float()) {
        return None;
    }
    let name = place.node()?.name.clone();
    if from == to {
        return if place.model.is_output(output) { None } else { place.forward("cast-cast", input) };
    }
    let saturate = place.node()?.attribute("saturate").cloned();
    let mut node = NewNode::new("Cast", [Some(input)]).with("to", to).named(name).output(output);
    if let Some(saturate) = saturate {
        node = node.with("saturate", saturate);
    }
    Some(place.edit("cast-cast")?.removing(place.id).inserting(node))
}

/// `Concat(…, Concat(a, b), …) = Concat(…, a, b, …)` along one axis.
fn concat_concat(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let output = node.output(0)?;
    let rank = i64::try_from(place.shape(output)?.len()).ok()?;
    let axis_of = |node: &crate::ir::Node| match node.attribute("axis") {
        Some(Attribute::Int(axis)) => Some(if *axis < 0 { axis.checked_add(rank)? } else { *axis }),
        None if place.opset < 4 => Some(1),
        _ => None,
    };
    let axis = axis_of(node)?;
    let mut inputs = Vec::new();
    let mut merged = false;
    for &value in node.inputs() {
        let value = value?;
        match place.producer(value, "Concat") {
            Some((_, inner)) if place.has_one_reader(value) && axis_of(inner) == Some(axis) => {
                inputs.extend(inner.inputs().iter().copied());
                merged = true;
            }
            _ => inputs.push(Some(value)),
        }
    }
    if !merged {
        return None;
    }
    let node = NewNode::new("Concat", inputs).with("axis", axis).named(node.name.clone()).output(output);
    Some(place.edit("concat-concat")?.removing(place.id).inserting(node))
}

/// Kernels that look at whether an operand is a single number give the same bits.
fn expand_into_broadcast(place: &mut Place<'_>) -> Option<Edit> {
    broadcast_itself(place, "expand-into-broadcast", Variation::None)
}

/// They may round otherwise: Pow of a single exponent multiplies where it can.
fn expand_into_function(place: &mut Place<'_>) -> Option<Edit> {
    broadcast_itself(place, "expand-into-function", Variation::Rounding)
}

/// `f(Expand(x), y) = f(x, y)` when broadcasting `x` against the other operands gives the same result shape.
fn broadcast_itself(place: &mut Place<'_>, rule: &'static str, variation: Variation) -> Option<Edit> {
    let node = place.node()?;
    let traits = traits_of(place.model, node);
    let dtypes = node.inputs().iter().map(|input| Some(traits.variation_by_scalar(place.dtype((*input)?)?)));
    let most = dtypes.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    if place.opset < 8 || !traits.is_broadcasting(place.opset) || most != variation {
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
            let mut edit = place.edit(rule)?;
            edit.rewire.push((place.id, slot, Some(source)));
            return Some(edit);
        }
    }
    None
}
