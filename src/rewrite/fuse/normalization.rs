//! Normalizations spelled out in reductions and arithmetic, where the model's operator set has them.
//!
//! | law, with means over the last axes | since |
//! | --- | --- |
//! | `(x − mean(x))/√(mean((x − mean(x))²) + ε) · γ = LayerNormalization(x, γ; ε)` | 17 |
//! | `x/√(mean(x²) + ε) · γ = RMSNormalization(x, γ; ε)` | 23 |
//! | `(x − mean(x))/√(mean((x − mean(x))²) + ε) = InstanceNormalization(x, 1, 0; ε)` of `x[N, C, …]`, with means over all axes but two | 6 |
//!
//! Where there is no `γ` it is 1. The last law is for operator sets without a LayerNormalization, and for means that no `γ`
//! follows: what has one, runtimes know as the LayerNormalization it is. Where the axes are not all but two, a Reshape makes them so.
//!
//! Only of binary32, which is what the operators compute means in. An addition that follows becomes the bias of the
//! LayerNormalization as it would of any node with weights.

use super::kernels::as_attribute;
use super::pattern::Reader;
use super::{Fusion, Operand, Place, Rule, rounded};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NamedAttribute, NewNode, NodeId, ValueId};
use crate::ops::size_operand::reshape_codes;
use crate::tensor::{DType, Tensor, product};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "spelled-normalization",
        law: "(x − mean(x)) / √(mean((x − mean(x))²) + ε) · γ = LayerNormalization(x, γ; ε), x / √(mean(x²) + ε) \
            · γ = RMSNormalization(x, γ; ε)",
        sentence: "Replaces a decomposed normalization by its operator.",
        premises: &[
            ("last-axes", "all means are over the same last axes, and keep them"),
            ("scale-shape", "γ has the shape of these axes"),
            ("positive-epsilon", "ε is a positive number"),
            ("binary32", "the type is binary32, in which the operators compute means"),
            ("known", "the operator is in the model's operator set: LayerNormalization since 17, RMSNormalization 23"),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: false,
        operators: &["Mul"],
        apply: normalization,
    },
    Rule {
        name: "bare-normalization",
        law: "(x − mean(x)) / √(mean((x − mean(x))²) + ε) = LayerNormalization(x, 1; ε) = \
            InstanceNormalization(x, 1, 0; ε)",
        sentence: "Replaces a decomposed normalization without scale by its operator with a scale of 1.",
        premises: &[
            ("last-axes", "all means are over the same last axes, and keep them"),
            ("sizes-known", "the sizes of these axes are positive numbers"),
            ("positive-epsilon", "ε is a positive number"),
            ("binary32", "the type is binary32, in which the operators compute means"),
            ("no-scale", "no scale γ follows, even after a cast, because the rule spelled-normalization handles that"),
            ("no-larger", "the new constants take no more bytes than the removed ones"),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: false,
        operators: &["Div", "Mul"],
        apply: bare,
    },
];

/// What a normalization was read as.
pub(super) struct Normalization {
    /// The operator that computes it, whether the operator set has it or not.
    pub operator: &'static str,
    /// What is normalized.
    pub x: ValueId,
    axes: Vec<usize>,
    epsilon: f32,
}

/// Looks at the multiplication with `γ`.
fn normalization(place: &Place<'_>) -> Option<Edit> {
    let result = place.only_output()?;
    let dtype = place.dtype(result).filter(|&dtype| dtype == DType::Float)?;
    let &[Some(a), Some(b)] = place.node()?.inputs() else { return None };
    let (found, scale, remove) = [(a, b), (b, a)].into_iter().find_map(|(value, scale)| {
        let mut reader = Reader { place, nodes: vec![place.id], dtype };
        let found = read(&mut reader, value).filter(|found| place.opset.has(found.operator))?;
        let found = Some(found).filter(|found| scales(place, found, scale) == Some(true))?;
        Some((found, scale, reader.nodes))
    })?;
    // Constants of more axes than `x` would give the result more.
    if !place.same_shape(found.x, result) {
        return None;
    }
    let attributes = vec![
        NamedAttribute::new("axis", Attribute::Int(i64::try_from(found.axes.len()).ok()?.checked_neg()?)),
        NamedAttribute::new("epsilon", Attribute::Float(found.epsilon)),
    ];
    let (operator, operands) = (found.operator, vec![Operand::Value(found.x), Operand::Value(scale)]);
    Fusion { remove, like: place.id, operator, attributes, operands }.edit(place)
}

/// Looks at the quotient, if no multiplication with `γ` follows.
fn bare(place: &Place<'_>) -> Option<Edit> {
    let result = place.only_output()?;
    let dtype = place.dtype(result).filter(|&dtype| dtype == DType::Float && place.opset.arithmetic_broadcasts())?;
    let mut reader = Reader { place, nodes: Vec::new(), dtype };
    let found = read(&mut reader, result)?;
    let remove = reader.nodes;
    let dims = place.shape(found.x)?;
    let lead = dims.len().checked_sub(found.axes.len())?;
    let size = |dim: &Dim| dim.as_const().and_then(|size| usize::try_from(size).ok()).filter(|&size| size > 0);
    let sizes: Vec<usize> = dims.get(lead..)?.iter().map(size).collect::<Option<_>>()?;
    let mut values = vec![result];
    values.extend(cast_results(place, result));
    let scaled = values.into_iter().any(|value| is_scaled(place, &found, value));
    if scaled || !place.same_shape(found.x, result) {
        return None;
    }
    let count = product(&sizes)?;
    if place.opset.has(found.operator) {
        let attributes = vec![
            NamedAttribute::new("axis", Attribute::Int(i64::try_from(found.axes.len()).ok()?.checked_neg()?)),
            NamedAttribute::new("epsilon", Attribute::Float(found.epsilon)),
        ];
        let ones = rounded(dtype, &sizes, &vec![1.0; affordable(place, &remove, count)?])?;
        let operands = vec![Operand::Value(found.x), Operand::Constant(ones, found.x)];
        return Fusion { remove, like: place.id, operator: found.operator, attributes, operands }.edit(place);
    }
    if found.operator != "LayerNormalization" {
        return None;
    }
    let channels = dims.get(1).and_then(size).filter(|_| lead == 2);
    let attributes = vec![NamedAttribute::new("epsilon", Attribute::Float(found.epsilon))];
    if let Some(channels) =
        channels.and_then(|channels| affordable(place, &remove, channels.checked_mul(2)?).map(|_| channels))
    {
        let parameters = [1.0, 0.0].map(|number| rounded(dtype, &[channels], &vec![number; channels]));
        let [ones, zeros] = parameters;
        let operands =
            vec![Operand::Value(found.x), Operand::Constant(ones?, found.x), Operand::Constant(zeros?, found.x)];
        let operator = "InstanceNormalization";
        return Fusion { remove, like: place.id, operator, attributes, operands }.edit(place);
    }
    reshaped(place, &found, remove, attributes, count)
}

/// How many numbers there are to be, unless the model would grow by them.
fn affordable(place: &Place<'_>, remove: &[NodeId], count: usize) -> Option<usize> {
    (count.checked_mul(DType::Float.byte_len(1)?)? <= place.allowance(remove)).then_some(count)
}

/// `x` as `[M, 1, n]`, normalized, and back. `M` may be 0, for `n` is not.
fn reshaped(
    place: &Place<'_>,
    found: &Normalization,
    mut remove: Vec<NodeId>,
    attributes: Vec<NamedAttribute>,
    count: usize,
) -> Option<Edit> {
    const NODES: usize = 3;
    remove.sort_unstable();
    remove.dedup();
    let result = place.only_output()?;
    let dims = place.shape(found.x)?.to_vec();
    let back = reshape_codes(place.scope(), &[], &dims)?;
    if !place.is_closed(&remove, &[found.x]) || remove.len() <= NODES {
        return None;
    }
    let name = place.node()?.name.clone();
    let mut edit = place.edit()?;
    edit.remove = remove;
    let rows = edit.constant(result, "rows", Tensor::vector(vec![-1, 1, i64::try_from(count).ok()?]));
    let scale = Some(edit.constant(result, "scale", Tensor::vector(vec![1.0f32])));
    let shift = Some(edit.constant(result, "shift", Tensor::vector(vec![0.0f32])));
    let (flat, normal) = (edit.new_value(result, "flat"), edit.new_value(result, "normal"));
    let flatten = place.build(&mut edit, result).reshape_by(found.x, rows)?;
    edit.insert.push(flatten.output(flat));
    let mut node = NewNode::new("InstanceNormalization", [Some(flat), scale, shift]).named(name).output(normal);
    node.attributes = attributes;
    edit.insert.push(node);
    let unflatten = place.build(&mut edit, result).reshape(normal, back);
    Some(edit.inserting(unflatten.output(result)))
}

/// What casts make of a value: exporters put some around a normalization, to the type that is there as well.
fn cast_results(place: &Place<'_>, value: ValueId) -> Vec<ValueId> {
    let readers = place.model.users(value).into_iter().filter_map(|(id, _)| place.model.node(id));
    readers.filter(|node| node.is("Cast")).filter_map(|node| node.output(0)).collect()
}

/// Whether a node multiplies a value by what has the shape of the axes that are normalized.
fn is_scaled(place: &Place<'_>, found: &Normalization, value: ValueId) -> bool {
    place.model.users(value).into_iter().any(|(user, slot)| {
        let node = place.model.node(user).filter(|node| node.is("Mul"));
        let scale = node.and_then(|node| node.input(1usize.checked_sub(slot)?));
        scale.is_some_and(|scale| has_shape_of_axes(place, found, scale) == Some(true))
    })
}

/// Whether `scale` has the type of `x`, and the shape of the axes that are normalized.
fn scales(place: &Place<'_>, found: &Normalization, scale: ValueId) -> Option<bool> {
    let is_float = place.dtype(found.x)? == DType::Float && place.dtype(scale)? == DType::Float;
    Some(is_float && has_shape_of_axes(place, found, scale)?)
}

/// Whether `scale` has the shape of the axes that are normalized.
fn has_shape_of_axes(place: &Place<'_>, found: &Normalization, scale: ValueId) -> Option<bool> {
    let (x, scale_dims) = (place.shape(found.x)?, place.shape(scale)?);
    let mut dims = x.get(x.len().checked_sub(found.axes.len())?..)?.iter().zip(scale_dims);
    Some(scale_dims.len() == found.axes.len() && dims.all(|(a, b)| place.scope().eq(a, b).is_yes()))
}

/// Reads `data / √(mean(data²) + ε)`.
pub(super) fn read(reader: &mut Reader<'_, '_>, value: ValueId) -> Option<Normalization> {
    let place = reader.place;
    let (data, squared_root) = if let Some((_, node)) = place.producer(value, "Div") {
        reader.node(value, "Div")?;
        (node.input(0)?, root(reader, node.input(1)?)?)
    } else {
        let &[Some(a), Some(b)] = reader.node(value, "Mul")?.inputs() else { return None };
        let read = reader.nodes.len();
        let found = [(a, b), (b, a)].into_iter().find_map(|(data, factor)| {
            reader.nodes.truncate(read);
            Some((data, inverse_root(reader, factor)?))
        });
        found?
    };
    let (variance, epsilon) = reader.sum(squared_root)?;
    let (square, axes) = mean(reader, variance)?;
    if reader.monomial(square, data)? != (1.0, 2) {
        return None;
    }
    let epsilon = as_attribute(epsilon, reader.dtype).filter(|&epsilon| epsilon > 0.0)?;
    let read = reader.nodes.len();
    if let Some(x) = centred(reader, data, &axes) {
        return Some(Normalization { operator: "LayerNormalization", x, axes, epsilon });
    }
    reader.nodes.truncate(read);
    Some(Normalization { operator: "RMSNormalization", x: data, axes, epsilon })
}

/// Reads `x − mean(x)` over these axes.
fn centred(reader: &mut Reader<'_, '_>, value: ValueId, axes: &[usize]) -> Option<ValueId> {
    let &[Some(x), Some(average)] = reader.node(value, "Sub")?.inputs() else { return None };
    (mean(reader, average)? == (x, axes.to_vec())).then_some(x)
}

/// Reads `√x`: the `x`.
fn root(reader: &mut Reader<'_, '_>, value: ValueId) -> Option<ValueId> {
    if reader.place.producer(value, "Sqrt").is_some() {
        return reader.node(value, "Sqrt")?.input(0);
    }
    power(reader, value, 0.5)
}

/// Reads `1/√x`: the `x`.
fn inverse_root(reader: &mut Reader<'_, '_>, value: ValueId) -> Option<ValueId> {
    let place = reader.place;
    if place.producer(value, "Reciprocal").is_some() {
        let inner = reader.node(value, "Reciprocal")?.input(0)?;
        return root(reader, inner);
    }
    if place.producer(value, "Div").is_some() {
        let node = reader.node(value, "Div")?;
        let one = place.scalar(node.input(0)?)? == 1.0;
        return root(reader, node.input(1).filter(|_| one)?);
    }
    power(reader, value, -0.5)
}

/// Reads `x^exponent`: the `x`.
fn power(reader: &mut Reader<'_, '_>, value: ValueId, exponent: f64) -> Option<ValueId> {
    let node = reader.node(value, "Pow")?;
    let fits = reader.place.scalar(node.input(1)?)? == exponent;
    node.input(0).filter(|_| fits)
}

/// Reads a mean over the last axes that keeps them: what is averaged, and the axes.
fn mean(reader: &mut Reader<'_, '_>, value: ValueId) -> Option<(ValueId, Vec<usize>)> {
    let place = reader.place;
    let node = reader.node(value, "ReduceMean")?;
    let data = node.input(0)?;
    let rank = place.shape(data)?.len();
    let reading = place.read(node);
    let axes = reading.reduced_axes(rank)?;
    let last: Vec<usize> = (rank.checked_sub(axes.len())?..rank).collect();
    (reading.keeps_dims()? && !axes.is_empty() && axes == last).then_some((data, axes))
}
