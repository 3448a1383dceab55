//! Operands that say sizes: where they are decided, up to what the operator can be told by convention, they become constants,
//! and the chain that computed them dies.

use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops::{axis_in, size_operand};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "reshape-to-constant",
        law: "Reshape(x, s) = Reshape(x, c), cᵢ = sᵢ if a number, 0 if dim i of x, −1 for one other",
        sentence: "Replaces a computed shape of a Reshape by a constant.",
        premises: &[
            (
                "sizes-known",
                "each size of the result is a number, the size of x along the same axis, or the only other one",
            ),
            (
                "rest-decided",
                "with a −1 in the shape, every other dim is at least 1: 0 elements do not determine the dim of the −1",
            ),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Reshape"],
        apply: reshape,
    },
    Rule {
        name: "slice-bound-to-constant",
        law: "x[a:b] = x[a:∞] where b ≥ dim, x[dim − k : b] = x[−k : b] where dim ≥ k > 0",
        sentence: "Replaces computed bounds of a Slice by constants.",
        premises: &[
            ("forward", "axes and steps are known, and every step is positive"),
            (
                "bounds-known",
                "each is a number, proved to be at the end or beyond, or the size less a number that it is not below",
            ),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: slice_bounds,
    },
    Rule {
        name: "product-to-size",
        law: "ReduceProd(Shape(x)) = Size(x)",
        sentence: "Replaces the product of all dims of a tensor by Size.",
        premises: &[
            ("all-sizes", "the shape has every axis, and all of it is reduced to one number"),
            ("one-reader", "nothing else reads the shape"),
        ],
        exact: true,
        operators: &["ReduceProd"],
        apply: size_of_all,
    },
];

/// The operand that says sizes, unless it is an initializer already.
fn computed(place: &Place<'_>, slot: usize) -> Option<ValueId> {
    let value = place.input(slot)?;
    place.model.value(value).producer()?;
    place.constant(value).is_none().then_some(value)
}

/// An edit that makes operand `slot` a constant vector.
fn with_constant(place: &Place<'_>, slot: usize, like: ValueId, tensor: Tensor) -> Option<Edit> {
    let mut edit = place.edit()?;
    let constant = edit.constant(like, "const", tensor);
    edit.rewire.push((place.id, slot, Some(constant)));
    Some(edit)
}

/// `ReduceProd(Shape(x)) = Size(x)`, all of the shape reduced to a scalar.
fn size_of_all(place: &Place<'_>) -> Option<Edit> {
    let (sizes, output) = (place.input(0)?, place.output(0)?);
    let (shape, measuring) = place.producer(sizes, "Shape")?;
    let tensor = measuring.input(0)?;
    let is_whole = place.shape(sizes)?.first()?.as_const()? == i64::try_from(place.shape(tensor)?.len()).ok()?;
    // Over one axis there is nothing else to reduce; an empty list of axes means all or none.
    let (axes, keeps_dims) =
        place.view(place.id)?.traits().reduces.and_then(|own| (own.axes)(&place.view(place.id)?))?;
    let drops = !keeps_dims && place.node()?.int("keepdims", 1)? == 0;
    let all = axes == [0] && place.shape(output)?.is_empty() && drops;
    if !is_whole || !all || !place.model.is_read_only_by(sizes, &[place.id]) {
        return None;
    }
    place.instead(place.edit()?.removing(shape), NewNode::new("Size", [Some(tensor)]))
}

/// `Reshape(x, e)` with a constant operand that says the dims of the result by convention.
fn reshape(place: &Place<'_>) -> Option<Edit> {
    let target = computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let codes = size_operand::reshape_codes(place.scope(), place.shape(input)?, place.shape(output)?)?;
    // In the convention 0 copies a dim, so there is no `allowzero`; all else that is said of the node stays.
    let mut edit = place.edit()?;
    let constant = edit.constant(target, "const", Tensor::vector(codes));
    place.instead(edit, NewNode::like(place.node()?).without("allowzero").reading(1, constant))
}

/// The bounds of a Slice with positive steps, as numbers that lie where the bounds do.
fn slice_bounds(place: &Place<'_>) -> Option<Edit> {
    if !place.opset.slice_has_operands() {
        return None;
    }
    let this = place.this()?;
    let shape = place.shape(this.node.input(0)?)?;
    let steps = this.slice_steps()?;
    let axes = this.slice_axes()?;
    let dims = axes.iter().map(|&axis| shape.get(axis_in(axis, shape.len()).ok()?)).collect::<Option<Vec<_>>>()?;
    if steps.iter().any(|&step| step <= 0) {
        return None;
    }
    [1, 2].into_iter().find_map(|slot| {
        let value = computed(place, slot)?;
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
        with_constant(place, slot, value, tensor)
    })
}
