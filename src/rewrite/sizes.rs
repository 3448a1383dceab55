//! Operands that say sizes: where they are decided, up to what the operator can be told by convention, they become constants,
//! and the chain that computed them dies.

use std::cmp::Ordering;

use super::build::Build;
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
        name: "reshape-to-squeeze",
        law: "Reshape(x, dims of x without some 1s) = Squeeze(x), Reshape(x, dims of x and more 1s) = Unsqueeze(x)",
        sentence: "Replaces a Reshape that only adds or drops axes of size 1 by Squeeze or Unsqueeze.",
        premises: &[
            ("only-ones", "one shape is the other with axes of size 1 added"),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Reshape"],
        apply: reshape_to_squeeze,
    },
    Rule {
        name: "reshape-to-flatten",
        law: "Reshape(x, [Π dims before k, Π dims from k on]) = Flatten(x; axis = k)",
        sentence: "Replaces a Reshape to a matrix by a Flatten.",
        premises: &[
            ("two-axes", "the result has two axes"),
            (
                "products",
                "for some k the rows are the product of the sizes before axis k, and the columns that of the others",
            ),
            (
                "covered-type",
                "x is a float tensor, or the operator set is 9 or newer, where Flatten supports all types",
            ),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Reshape"],
        apply: reshape_to_flatten,
    },
    Rule {
        name: "expand-to-constant",
        law: "Expand(x, s) = Expand(x, c), cᵢ = 1 where the result has the size of x, and sᵢ elsewhere",
        sentence: "Replaces a computed shape of an Expand by a constant.",
        premises: &[
            ("sizes-known", "each size of the result is that of x, or a number"),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Expand"],
        apply: expand,
    },
    Rule {
        name: "tile-to-constant",
        law: "Tile(x, r) = Tile(x, c) where cᵢ·dim i of x = rᵢ·dim i of x",
        sentence: "Replaces computed repeats of a Tile by a constant.",
        premises: &[
            (
                "counts-known",
                "along each axis the count is known, or the result has the size of x, or both sizes are numbers",
            ),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Tile"],
        apply: tile,
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
            ("one-reader", "the shape has no other consumer"),
        ],
        exact: true,
        operators: &["ReduceProd"],
        apply: size_of_all,
    },
    Rule {
        name: "resize-to-scales",
        law: "Resize(x, sizes = k · dims of x) = Resize(x, scales = k)",
        sentence: "Replaces computed sizes of a Resize by constant scales.",
        premises: &[
            ("whole-multiples", "each size is that of x times a whole number from 1 to 64"),
            ("not-rounded", "each size is at most 2²⁴: runtimes multiply scales in binary32"),
            ("stretched", "the ratio may change, no axes are named, and the mode does not crop"),
            (
                "kernel",
                "mode nearest, or axes that kernels interpolate: runtimes look at constant scales when they load a model, and at sizes \
                 only in a run that has elements",
            ),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Resize"],
        apply: resize,
    },
];

/// The operand that says sizes, unless it is an initializer already.
fn computed(place: &Place<'_>, slot: usize) -> Option<ValueId> {
    let value = place.input(slot)?;
    place.model.value(value).producer()?;
    place.constant(value).is_none().then_some(value)
}

/// Whether ONNX Runtime loads a Resize with constant scales, found by loading one of each mode for up to six axes. `is_kept` tells which
/// axes keep their sizes.
fn has_kernel(mode: &[u8], is_kept: &[bool]) -> bool {
    let is_image = matches!(is_kept, [_, _] | [true, true, _, _] | [true, _, _, true]);
    match mode {
        b"nearest" => true,
        b"cubic" => is_image,
        b"linear" => is_image || matches!(is_kept, [_, _, _] | [true, true, _, _, _]),
        _ => false,
    }
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

/// A reshape that only adds or only drops axes of size 1 is an Unsqueeze or a Squeeze, whose operand is constant.
fn reshape_to_squeeze(place: &Place<'_>) -> Option<Edit> {
    computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    let scope = place.scope();
    let mut edit = place.edit()?;
    let mut build = place.build(&mut edit, output);
    let node = match from.len().cmp(&to.len()) {
        Ordering::Less => build.unsqueeze(input, size_operand::inserted_ones(scope, from, to)?),
        Ordering::Greater => build.squeeze(input, size_operand::inserted_ones(scope, to, from)?),
        Ordering::Equal => return None,
    };
    place.instead(edit, node)
}

/// `Reshape(x, [Π dims before k, Π dims from k on])` is `Flatten(x, axis = k)`.
fn reshape_to_flatten(place: &Place<'_>) -> Option<Edit> {
    computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    let scope = place.scope();
    let [rows, columns] = to else { return None };
    if !place.opset.flatten_takes_every_type() && !place.dtype(input)?.is_float() {
        return None;
    }
    let equal = |a: &Dim, b: &Dim| scope.eq(a, b).is_yes();
    let split = (0..=from.len()).find(|&k| {
        equal(&scope.product(from.iter().take(k)), rows) && equal(&scope.product(from.iter().skip(k)), columns)
    })?;
    place.instead(place.edit()?, Build::flatten(input, split))
}

/// `Expand(x, e)` with a constant operand that says the dims of the result by convention.
fn expand(place: &Place<'_>) -> Option<Edit> {
    let target = computed(place, 1)?;
    let (from, to) = (place.shape(place.input(0)?)?, place.shape(place.output(0)?)?);
    let sizes = size_operand::expand_sizes(place.scope(), from, to)?;
    with_constant(place, 1, target, Tensor::vector(sizes))
}

/// `Tile(x, r)` where it is known how often each axis is repeated, or the dims tell it.
fn tile(place: &Place<'_>) -> Option<Edit> {
    let repeats = computed(place, 1)?;
    let (from, to) = (place.shape(place.input(0)?)?, place.shape(place.output(0)?)?);
    if !place.opset.cast_by_number_and_tile_by_axis() || from.len() != to.len() {
        return None;
    }
    let known = place.fact(repeats).and_then(|fact| fact.ints()).filter(|known| known.len() == to.len());
    let count = |(axis, (from, to)): (usize, (&Dim, &Dim))| {
        let said = known.as_ref().and_then(|known| known.get(axis)?.as_const());
        said.or_else(|| size_operand::tile_repeats(place.scope(), from, to))
    };
    let counts = from.iter().zip(to).enumerate().map(count).collect::<Option<Vec<i64>>>()?;
    with_constant(place, 1, repeats, Tensor::vector(counts))
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

/// `Resize(x, sizes)` to whole multiples `k · dim` is `Resize(x, scales = k)`: both readings of the ratio are exactly `k`.
fn resize(place: &Place<'_>) -> Option<Edit> {
    if !place.opset.resize_to_sizes() {
        return None;
    }
    computed(place, 3)?;
    let node = place.node()?;
    let stretches = node.text("keep_aspect_ratio_policy", b"stretch")? == b"stretch";
    let crops = node.text("coordinate_transformation_mode", b"half_pixel")? == b"tf_crop_and_resize";
    if !stretches || crops || node.attribute("axes").is_some() {
        return None;
    }
    let (input, output) = (node.input(0)?, node.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    if from.len() != to.len() {
        return None;
    }
    let scope = place.scope();
    let factors: Option<Vec<f32>> = from
        .iter()
        .zip(to)
        .map(|(own, dim)| {
            (1..=64i64).find(|&k| scope.eq(&scope.mul(own, &Dim::constant(k)), dim).is_yes()).map(|k| k as f32)
        })
        .collect();
    let factors = factors?;
    if !to.iter().all(|dim| scope.lies_within(dim, 0, 1 << 24)) {
        return None;
    }
    let is_kept: Vec<bool> = factors.iter().map(|&factor| factor == 1.0).collect();
    if !has_kernel(node.text("mode", b"nearest")?, &is_kept) {
        return None;
    }
    let mut edit = place.edit()?;
    let scales = edit.constant(output, "scales", Tensor::vector(factors));
    edit.rewire.push((place.id, 2, Some(scales)));
    edit.rewire.push((place.id, 3, None));
    Some(edit)
}
