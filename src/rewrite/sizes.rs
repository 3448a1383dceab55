//! Operands that say sizes: where they are decided, up to what the operator can be told by convention, they become constants,
//! and the chain that computed them dies.

use super::{Place, Rule};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Edit, NewNode, ValueId};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "reshape-to-constant",
        law: "Reshape(x, s) = Reshape(x, c), cᵢ = sᵢ if a number, 0 if dim i of x, −1 for one other",
        sentence: "A shape that constants can tell is not computed.",
        premises: &[
            (
                "sizes-known",
                "each size of the result is a number, the size of x along the same axis, or the only other one",
            ),
            ("rest-decided", "beside a −1 every other size is at least 1: what is left of nothing is not decided"),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Reshape"],
        apply: reshape,
    },
    Rule {
        name: "reshape-to-squeeze",
        law: "Reshape(x, dims of x without some 1s) = Squeeze(x), Reshape(x, dims of x and more 1s) = Unsqueeze(x)",
        sentence: "A reshape that only adds or drops axes of size 1 needs no sizes.",
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
        sentence: "A reshape to a matrix is a Flatten, which needs no sizes.",
        premises: &[
            ("two-axes", "the result has two axes"),
            (
                "products",
                "for some k the rows are the product of the sizes before axis k, and the columns that of the others",
            ),
            ("covered-type", "x is of floats, or the operator set is 9 or later, since which Flatten takes every type"),
            ("computed", "the operand is computed by a node, and not constant already"),
        ],
        exact: true,
        operators: &["Reshape"],
        apply: reshape_to_flatten,
    },
    Rule {
        name: "expand-to-constant",
        law: "Expand(x, s) = Expand(x, c), cᵢ = 1 where the result has the size of x, and sᵢ elsewhere",
        sentence: "Sizes of a broadcast that constants can tell are not computed.",
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
        sentence: "Repetitions that constants can tell are not computed.",
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
        sentence: "Bounds of a slice that constants can tell are not computed.",
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
        name: "resize-to-scales",
        law: "Resize(x, sizes = k · dims of x) = Resize(x, scales = k)",
        sentence: "Sizes that are whole multiples are told by scales.",
        premises: &[
            ("whole-multiples", "each size is that of x times a whole number from 1 to 64"),
            ("stretched", "the ratio may change, no axes are named, and the mode does not crop"),
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

/// An edit that makes operand `slot` a constant vector.
fn with_constant(
    place: &mut Place<'_>,
    rule: &'static str,
    slot: usize,
    like: ValueId,
    tensor: Tensor,
) -> Option<Edit> {
    let constant = place.new_value(like, "const");
    let mut edit = place.edit(rule)?;
    edit.constants.push((constant, tensor));
    edit.rewire.push((place.id, slot, Some(constant)));
    Some(edit)
}

fn equal(scope: &Scope, a: &Dim, b: &Dim) -> bool {
    scope.eq(a, b).is_yes()
}

fn at_least_one(scope: &Scope, dim: &Dim) -> bool {
    scope.ge(dim, &Dim::constant(1)).is_yes()
}

/// `Reshape(x, [e₀ … ])`: a constant `eᵢ` stays, `eᵢ = dim i of x` is written 0 ("as it was"), and one other may be written −1 ("the
/// rest") if the others are not 0, for then the rest is not determined.
fn reshape(place: &mut Place<'_>) -> Option<Edit> {
    let target = computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let from = place.shape(input)?.to_vec();
    let to = place.shape(output)?.to_vec();
    let scope = place.scope();
    let mut codes = Vec::with_capacity(to.len());
    let mut rest = None;
    for (i, dim) in to.iter().enumerate() {
        let same = from.get(i).is_some_and(|from| equal(scope, from, dim));
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
        let others = to.iter().enumerate().filter(|(i, _)| *i != rest);
        if !others.into_iter().all(|(_, dim)| at_least_one(scope, dim)) {
            return None;
        }
    }
    // The new node has no `allowzero`, so that 0 means what is written above.
    let name = place.node()?.name.clone();
    let constant = place.new_value(target, "const");
    let mut edit = place.edit("reshape-to-constant")?.removing(place.id);
    edit.constants.push((constant, Tensor::vector(codes)));
    Some(edit.inserting(NewNode::new("Reshape", [Some(input), Some(constant)]).named(name).output(output)))
}

/// Where the axes of size 1 stand in `long` that `short` lacks, when the shapes are otherwise equal.
pub(super) fn inserted_ones(scope: &Scope, short: &[Dim], long: &[Dim]) -> Option<Vec<i64>> {
    let mut axes = Vec::new();
    let mut matched = 0;
    for (axis, dim) in long.iter().enumerate() {
        if short.get(matched).is_some_and(|next| equal(scope, next, dim)) {
            matched += 1;
        } else if dim.is_const(1) {
            axes.push(i64::try_from(axis).ok()?);
        } else {
            return None;
        }
    }
    (matched == short.len()).then_some(axes)
}

/// A reshape that only adds or only drops axes of size 1 is an Unsqueeze or a Squeeze, whose operand is constant.
fn reshape_to_squeeze(place: &mut Place<'_>) -> Option<Edit> {
    computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    let scope = place.scope();
    let (operator, axes) = if from.len() < to.len() {
        ("Unsqueeze", inserted_ones(scope, from, to)?)
    } else if from.len() > to.len() {
        ("Squeeze", inserted_ones(scope, to, from)?)
    } else {
        return None;
    };
    let name = place.node()?.name.clone();
    let mut edit = place.edit("reshape-to-squeeze")?.removing(place.id);
    let node = if place.opset >= 13 {
        let constant = place.new_value(output, "axes");
        edit.constants.push((constant, Tensor::vector(axes)));
        NewNode::new(operator, [Some(input), Some(constant)])
    } else {
        NewNode::new(operator, [Some(input)]).with("axes", axes)
    };
    Some(edit.inserting(node.named(name).output(output)))
}

/// `Reshape(x, [Π dims before k, Π dims from k on])` is `Flatten(x, axis = k)`.
fn reshape_to_flatten(place: &mut Place<'_>) -> Option<Edit> {
    computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    let scope = place.scope();
    let [rows, columns] = to else { return None };
    // Before, Flatten takes floats only.
    if place.opset < 9 && !place.dtype(input)?.is_float() {
        return None;
    }
    let split = (0..=from.len()).find(|&k| {
        equal(scope, &scope.product(from.iter().take(k)), rows)
            && equal(scope, &scope.product(from.iter().skip(k)), columns)
    })?;
    let name = place.node()?.name.clone();
    let node =
        NewNode::new("Flatten", [Some(input)]).with("axis", i64::try_from(split).ok()?).named(name).output(output);
    Some(place.edit("reshape-to-flatten")?.removing(place.id).inserting(node))
}

/// `Expand(x, [e₀ … ])`: a constant stays, and 1 says "as it was" where the result has the size of `x`.
fn expand(place: &mut Place<'_>) -> Option<Edit> {
    let target = computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    let scope = place.scope();
    let added = to.len().checked_sub(from.len())?;
    let mut sizes = Vec::with_capacity(to.len());
    for (i, dim) in to.iter().enumerate() {
        let own = i.checked_sub(added).and_then(|i| from.get(i));
        match dim.as_const() {
            _ if own.is_some_and(|own| equal(scope, own, dim)) => sizes.push(1),
            Some(size) => sizes.push(size),
            None => return None,
        }
    }
    with_constant(place, "expand-to-constant", 1, target, Tensor::vector(sizes))
}

/// `Tile(x, [r₀ … ])` where the result has the size of `x`, or a constant multiple of it, along every axis.
fn tile(place: &mut Place<'_>) -> Option<Edit> {
    let repeats = computed(place, 1)?;
    let (input, output) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(input)?, place.shape(output)?);
    if place.opset < 6 || from.len() != to.len() {
        return None;
    }
    let known = place.fact(repeats).and_then(|fact| fact.ints()).filter(|known| known.len() == to.len());
    let mut counts = Vec::with_capacity(to.len());
    for (axis, (own, dim)) in from.iter().zip(to).enumerate() {
        let said = known.as_ref().and_then(|known| known.get(axis)?.as_const());
        let whole = own.as_const().zip(dim.as_const()).filter(|(own, dim)| *own > 0 && dim % own == 0);
        if let Some(count) = said {
            counts.push(count);
        } else if equal(place.scope(), own, dim) {
            counts.push(1);
        } else if let Some((own, dim)) = whole {
            counts.push(dim / own);
        } else {
            return None;
        }
    }
    with_constant(place, "tile-to-constant", 1, repeats, Tensor::vector(counts))
}

/// A bound of a slice that is proved to lie at or beyond the end of the axis, for a positive step, may be any number that does,
/// and one that is `dim − k` with `dim ≥ k > 0` is `−k`.
fn slice_bounds(place: &mut Place<'_>) -> Option<Edit> {
    if place.opset < 10 {
        return None;
    }
    let node = place.node()?;
    let input = node.input(0)?;
    let (starts, ends) = (node.input(1)?, node.input(2)?);
    let shape = place.shape(input)?.to_vec();
    let count = place.fact(starts)?.static_len()?;
    let axes = match place.input(3) {
        Some(axes) => place.const_ints(axes)?,
        None => (0..i64::try_from(count).ok()?).collect(),
    };
    let steps = match place.input(4) {
        Some(steps) => place.const_ints(steps)?,
        None => vec![1; count],
    };
    if axes.len() != count || steps.len() != count || steps.iter().any(|&step| step <= 0) {
        return None;
    }
    for (slot, value) in [(1, starts), (2, ends)] {
        if computed(place, slot).is_none() {
            continue;
        }
        let Some(bounds) = place.fact(value).and_then(|fact| fact.ints()).filter(|bounds| bounds.len() == count) else {
            continue;
        };
        let scope = place.scope();
        let constant = bounds.iter().zip(&axes).map(|(bound, &axis)| {
            let rank = i64::try_from(shape.len()).ok()?;
            let dim = shape.get(usize::try_from(if axis < 0 { axis.checked_add(rank)? } else { axis }).ok()?)?;
            if let Some(bound) = bound.as_const() {
                return Some(bound);
            }
            if scope.ge(bound, dim).is_yes() {
                return Some(i64::MAX);
            }
            let short = scope.sub(dim, bound).as_const().filter(|short| *short > 0)?;
            scope.ge(dim, &Dim::constant(short)).is_yes().then_some(-short)
        });
        let Some(constant) = constant.collect::<Option<Vec<i64>>>() else { continue };
        let tensor = match place.dtype(value)? {
            DType::Int64 => Tensor::vector(constant),
            DType::Int32 => {
                let narrow = |&bound: &i64| if bound == i64::MAX { Some(i32::MAX) } else { i32::try_from(bound).ok() };
                Tensor::vector(constant.iter().map(narrow).collect::<Option<Vec<i32>>>()?)
            }
            _ => return None,
        };
        return with_constant(place, "slice-bound-to-constant", slot, value, tensor);
    }
    None
}

/// `Resize(x, sizes)` to whole multiples `k · dim` is `Resize(x, scales = k)`: both readings of the ratio are exactly `k`.
fn resize(place: &mut Place<'_>) -> Option<Edit> {
    if place.opset < 11 {
        return None;
    }
    computed(place, 3)?;
    let node = place.node()?;
    let policy = node.attribute("keep_aspect_ratio_policy");
    let stretches = match policy {
        None => true,
        Some(Attribute::String(text)) => text.as_ref() == b"stretch",
        Some(_) => false,
    };
    let crops = matches!(node.attribute("coordinate_transformation_mode"),
        Some(Attribute::String(mode)) if mode.as_ref() == b"tf_crop_and_resize");
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
            (1..=64i64).find(|&k| equal(scope, &scope.mul(own, &Dim::constant(k)), dim)).map(|k| k as f32)
        })
        .collect();
    let factors = factors?;
    let scales = place.new_value(output, "scales");
    let mut edit = place.edit("resize-to-scales")?;
    edit.constants.push((scales, Tensor::vector(factors)));
    edit.rewire.push((place.id, 2, Some(scales)));
    edit.rewire.push((place.id, 3, None));
    Some(edit)
}
