//! Makes operands that hold sizes constant, where the proved dims determine them. The special codes of an operator (0 and −1 of a Reshape)
//! represent symbolic dims. The shape chain that computed the operand is dead afterwards.

use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops::{axis_in, size_operand};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "reshape-to-constant",
        law: "Reshape(x, s) = Reshape(x, c) where each cᵢ is the number sᵢ, or 0 if sᵢ is dim i of x, or −1 for at most one other sᵢ",
        sentence: "Replaces the computed shape operand of a Reshape by a constant.",
        premises: &[
            (
                "sizes-known",
                "each dim of the result is a number or equal to the dim of x on the same axis, except at most one, which becomes −1",
            ),
            (
                "rest-decided",
                "if the constant contains −1, all other dims of the result are proved to be at least 1, because the −1 is not determined for 0 elements",
            ),
            ("computed", "the shape operand is computed by nodes, and not already a constant"),
        ],
        exact: true,
        operators: &["Reshape"],
        apply: reshape,
    },
    Rule {
        name: "slice-bound-to-constant",
        law: "x[a:b] = x[a:∞] where b ≥ dim, x[dim − k : b] = x[−k : b] where dim ≥ k > 0",
        sentence: "Replaces computed starts and ends of a Slice by constants.",
        premises: &[
            ("forward", "axes and steps are constants, and every step is positive"),
            (
                "bounds-known",
                "each start or end is a constant, or proved to be at least the dim, or the dim minus a constant k with dim ≥ k > 0",
            ),
            ("computed", "starts or ends are computed by nodes, and not already constants"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: slice_bounds,
    },
    Rule {
        name: "product-to-size",
        law: "ReduceProd(Shape(x)) = Size(x)",
        sentence: "Replaces a ReduceProd of all dims of a tensor by the operator Size.",
        premises: &[
            ("all-sizes", "the Shape returns all dims of x, and the ReduceProd reduces them to one number"),
            ("one-reader", "the result of the Shape has no other consumer"),
        ],
        exact: true,
        operators: &["ReduceProd"],
        apply: size_of_all,
    },
];

/// Returns the operand that holds sizes, unless it is already a constant.
fn computed(place: &Place<'_>, slot: usize) -> Result<ValueId, Miss> {
    let value = place.operand(slot)?;
    place.model.value(value).producer().ok_or(miss!("computed").of(value))?;
    ensure(place.constant(value).is_none(), miss!("computed").of(value))?;
    Ok(value)
}

/// Returns the edit that makes operand `slot` a constant vector.
fn with_constant(place: &Place<'_>, slot: usize, like: ValueId, tensor: Tensor) -> Result<Edit, Miss> {
    let mut edit = place.begin()?;
    let constant = edit.constant(like, "const", tensor);
    edit.rewire.push((place.id, slot, Some(constant)));
    Ok(edit)
}

/// `ReduceProd(Shape(x)) = Size(x)`, all of the shape reduced to a scalar.
fn size_of_all(place: &Place<'_>) -> Result<Edit, Miss> {
    let (sizes, output) = (place.operand(0)?, place.result()?);
    let (shape, measuring) = place.producer(sizes, "Shape").ok_or(Miss::ROOT)?;
    let tensor = measuring.input(0).ok_or(Miss::ROOT)?;
    let is_whole = place.dims(sizes)?.first().ok_or(Miss::ROOT)?.as_const().ok_or(miss!("all-sizes").of(sizes))?
        == i64::try_from(place.dims(tensor)?.len()).or(Err(Miss::COMPUTABLE))?;
    // For one axis, every reduction is a full one. An empty list of axes reduces all or none of them.
    let (axes, keeps_dims) = place
        .view(place.id)
        .ok_or(Miss::ROOT)?
        .traits()
        .reduces
        .and_then(|own| (own.axes)(&place.view(place.id)?))
        .ok_or(miss!("all-sizes"))?;
    let drops = !keeps_dims && place.root()?.int("keepdims", 1).ok_or(Miss::ROOT)? == 0;
    let all = axes == [0] && place.dims(output)?.is_empty() && drops;
    ensure(is_whole && all, miss!("all-sizes"))?;
    ensure(place.model.is_read_only_by(sizes, &[place.id]), miss!("one-reader").of(sizes))?;
    place.instead(place.begin()?.removing(shape), NewNode::new("Size", [Some(tensor)]))
}

/// Makes the shape operand of a Reshape constant, with the codes 0 and −1 for symbolic dims.
fn reshape(place: &Place<'_>) -> Result<Edit, Miss> {
    let target = computed(place, 1)?;
    let (input, output) = (place.operand(0)?, place.result()?);
    let from = place.dims(input)?;
    let to = place.dims(output)?;
    // At most one dim may be inferred from the number of elements.
    let is_open = |(axis, dim): &(usize, &Dim)| {
        let is_copied = from.get(*axis).is_some_and(|own| place.scope().eq(own, dim).is_yes());
        dim.as_const().is_none() && !is_copied
    };
    let open = to.iter().enumerate().filter(is_open).count();
    let miss = if open > 1 { miss!("sizes-known") } else { miss!("rest-decided") };
    let codes = size_operand::reshape_codes(place.scope(), from, to).ok_or(miss.of(output))?;
    // A code of 0 copies a dim, so `allowzero` is dropped. All other attributes are kept.
    let mut edit = place.begin()?;
    let constant = edit.constant(target, "const", Tensor::vector(codes));
    place.instead(edit, NewNode::like(place.root()?).without("allowzero").reading(1, constant))
}

/// Replaces the computed bounds of a Slice with positive steps by constants that select the same range.
fn slice_bounds(place: &Place<'_>) -> Result<Edit, Miss> {
    ensure(place.opset.slice_has_operands(), Miss::EXPRESSIBLE)?;
    let this = place.reading()?;
    let shape = place.dims(this.node.input(0).ok_or(Miss::ROOT)?)?;
    let steps = this.slice_steps().ok_or(miss!("forward"))?;
    let axes = this.slice_axes().ok_or(miss!("bounds-known"))?;
    let dims = axes
        .iter()
        .map(|&axis| shape.get(axis_in(axis, shape.len()).ok()?))
        .collect::<Option<Vec<_>>>()
        .ok_or(miss!("bounds-known"))?;
    ensure(!steps.iter().any(|&step| step <= 0), miss!("forward"))?;
    let mut bounds = [1, 2].into_iter().filter(|&slot| computed(place, slot).is_ok()).peekable();
    ensure(bounds.peek().is_some(), miss!("computed"))?;
    let found = bounds.find_map(|slot| {
        let value = place.input(slot)?;
        let bounds = place.fact(value)?.ints().filter(|bounds| bounds.len() == dims.len())?;
        let number = |(bound, dim): (&Dim, &&Dim)| size_operand::slice_bound(place.scope(), dim, bound);
        let numbers = bounds.iter().zip(&dims).map(number).collect::<Option<Vec<i64>>>()?;
        let tensor = match place.dtype(value)? {
            DType::Int64 => Tensor::vector(numbers),
            DType::Int32 => {
                let narrow = |&bound: &i64| if bound == i64::MAX { Some(i32::MAX) } else { i32::try_from(bound).ok() };
                Tensor::vector(numbers.iter().map(narrow).collect::<Option<Vec<i32>>>()?)
            }
            _ => return None,
        };
        Some((slot, value, tensor))
    });
    let (slot, value, tensor) = found.ok_or(miss!("bounds-known"))?;
    with_constant(place, slot, value, tensor)
}
