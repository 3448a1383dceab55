//! Replaces normalizations in basic operators by the operator of the opset, if it has one.
//!
//! | law, with means over the last axes | since |
//! | --- | --- |
//! | `(x − mean(x))/√(mean((x − mean(x))²) + ε) · γ = LayerNormalization(x, γ; ε)` | 17 |
//! | `x/√(mean(x²) + ε) · γ = RMSNormalization(x, γ; ε)` | 23 |
//! | `(x − mean(x))/√(mean((x − mean(x))²) + ε) = InstanceNormalization(x, 1, 0; ε)` of `x[N, C, …]`, with means over all axes but two | 6 |
//!
//! Without a factor `γ`, the rule uses 1. The last law is for opsets without LayerNormalization, and for means without a `γ`: runtimes
//! recognize the form with `γ` as a LayerNormalization. If the means are not over all axes but two, a Reshape makes them so.
//!
//! The rules apply to binary32 only, the type in which the operators compute means. Another rule merges a following addition into the bias
//! of the LayerNormalization, as for any node with weights.

use super::kernels::as_attribute;
use super::pattern::Reader;
use super::{Fusion, Operand};
use crate::ir::{Attribute, Edit, NamedAttribute, ValueId};
use crate::rewrite::miss::{Miss, ensure, first_of, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "spelled-normalization",
    law: "(x − mean(x)) / √(mean((x − mean(x))²) + ε) · γ = LayerNormalization(x, γ; ε), x / √(mean(x²) + ε) \
            · γ = RMSNormalization(x, γ; ε)",
    sentence: "Replaces a decomposed normalization by LayerNormalization or RMSNormalization.",
    premises: &[
        ("last-axes", "all means are computed over the same trailing axes, with keepdims = 1"),
        ("scale-shape", "γ has the dims of these trailing axes"),
        ("positive-epsilon", "ε is a positive number"),
        ("binary32", "the element type is float, because the operators compute the means in float"),
        (
            "known",
            "the model's operator set contains the operator: LayerNormalization exists since operator set 17, and RMSNormalization since 23",
        ),
        ("one-reader", "the intermediate values of the formula have no other consumer"),
    ],
    exact: false,
    operators: &["Mul"],
    apply: normalization,
}];

/// A recognized normalization.
pub(super) struct Normalization {
    /// The operator that computes it, even if the opset does not have it.
    pub operator: &'static str,
    /// The normalized value.
    pub x: ValueId,
    axes: Vec<usize>,
    epsilon: f32,
}

/// Matches the multiplication by `γ`.
fn normalization(place: &Place<'_>) -> Result<Edit, Miss> {
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place.dtype(result).filter(|&dtype| dtype == DType::Float).ok_or(miss!("binary32").of(result))?;
    let &[Some(a), Some(b)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let found = [(a, b), (b, a)].into_iter().map(|(value, scale)| {
        let mut reader = Reader { place, nodes: vec![place.id], dtype };
        let found = read(&mut reader, value)?;
        ensure(place.opset.has(found.operator), miss!("known"))?;
        ensure(scales(place, &found, scale) == Some(true), miss!("scale-shape").of(scale))?;
        Ok((found, scale, reader.nodes))
    });
    let (found, scale, remove) = first_of(found)?;
    // A constant of a higher rank than `x` would increase the rank of the result.
    prove(place.compare_shapes(found.x, result), miss!("last-axes").of(found.x))?;
    let attributes = vec![
        NamedAttribute::new(
            "axis",
            Attribute::Int(
                i64::try_from(found.axes.len()).or(Err(Miss::COMPUTABLE))?.checked_neg().ok_or(Miss::COMPUTABLE)?,
            ),
        ),
        NamedAttribute::new("epsilon", Attribute::Float(found.epsilon)),
    ];
    let (operator, operands) = (found.operator, vec![Operand::Value(found.x), Operand::Value(scale)]);
    Fusion { remove, like: place.id, operator, attributes, operands }.edit(place)
}

/// Returns `true` if `scale` has the type of `x` and the shape of the normalized axes.
fn scales(place: &Place<'_>, found: &Normalization, scale: ValueId) -> Option<bool> {
    let is_float = place.dtype(found.x)? == DType::Float && place.dtype(scale)? == DType::Float;
    Some(is_float && has_shape_of_axes(place, found, scale)?)
}

/// Returns `true` if `scale` has the shape of the normalized axes.
fn has_shape_of_axes(place: &Place<'_>, found: &Normalization, scale: ValueId) -> Option<bool> {
    let (x, scale_dims) = (place.shape(found.x)?, place.shape(scale)?);
    let mut dims = x.get(x.len().checked_sub(found.axes.len())?..)?.iter().zip(scale_dims);
    Some(scale_dims.len() == found.axes.len() && dims.all(|(a, b)| place.scope().eq(a, b).is_yes()))
}

/// Reads `data / √(mean(data²) + ε)`.
pub(super) fn read(reader: &mut Reader<'_, '_>, value: ValueId) -> Result<Normalization, Miss> {
    let place = reader.place;
    let (data, squared_root) = if let Some((_, node)) = place.producer(value, "Div") {
        reader.node(value, "Div").ok_or(Miss::ROOT)?;
        (node.input(0).ok_or(Miss::ROOT)?, root(reader, node.input(1).ok_or(Miss::ROOT)?).ok_or(Miss::ROOT)?)
    } else {
        let &[Some(a), Some(b)] = reader.node(value, "Mul").ok_or(Miss::ROOT)?.inputs() else { return Err(Miss::ROOT) };
        let read = reader.nodes.len();
        let found = [(a, b), (b, a)].into_iter().find_map(|(data, factor)| {
            reader.nodes.truncate(read);
            Some((data, inverse_root(reader, factor)?))
        });
        found.ok_or(Miss::ROOT)?
    };
    let (variance, epsilon) = reader.sum(squared_root).ok_or(Miss::ROOT)?;
    let (square, axes) = mean(reader, variance)?;
    ensure(reader.monomial(square, data).ok_or(Miss::ROOT)? == (1.0, 2), Miss::ROOT)?;
    let epsilon =
        as_attribute(epsilon, reader.dtype).filter(|&epsilon| epsilon > 0.0).ok_or(miss!("positive-epsilon"))?;
    let read = reader.nodes.len();
    if let Some(x) = centred(reader, data, &axes) {
        return Ok(Normalization { operator: "LayerNormalization", x, axes, epsilon });
    }
    reader.nodes.truncate(read);
    Ok(Normalization { operator: "RMSNormalization", x: data, axes, epsilon })
}

/// Reads `x − mean(x)` over these axes.
fn centred(reader: &mut Reader<'_, '_>, value: ValueId, axes: &[usize]) -> Option<ValueId> {
    let &[Some(x), Some(average)] = reader.node(value, "Sub")?.inputs() else { return None };
    (mean(reader, average).ok()? == (x, axes.to_vec())).then_some(x)
}

/// Reads `√x` and returns `x`.
fn root(reader: &mut Reader<'_, '_>, value: ValueId) -> Option<ValueId> {
    if reader.place.producer(value, "Sqrt").is_some() {
        return reader.node(value, "Sqrt")?.input(0);
    }
    power(reader, value, 0.5)
}

/// Reads `1/√x` and returns `x`.
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

/// Reads `x^exponent` and returns `x`.
fn power(reader: &mut Reader<'_, '_>, value: ValueId, exponent: f64) -> Option<ValueId> {
    let node = reader.node(value, "Pow")?;
    let fits = reader.place.scalar(node.input(1)?)? == exponent;
    node.input(0).filter(|_| fits)
}

/// Reads a mean over the last axes with `keepdims = 1`. Returns its data and the axes.
fn mean(reader: &mut Reader<'_, '_>, value: ValueId) -> Result<(ValueId, Vec<usize>), Miss> {
    let place = reader.place;
    let node = reader.node(value, "ReduceMean").ok_or(Miss::ROOT)?;
    let data = node.input(0).ok_or(Miss::ROOT)?;
    let rank = place.dims(data)?.len();
    let reading = place.read(node);
    let axes = reading.reduced_axes(rank).ok_or(miss!("last-axes"))?;
    let last: Vec<usize> = (rank.checked_sub(axes.len()).ok_or(Miss::COMPUTABLE)?..rank).collect();
    ensure(reading.keeps_dims().ok_or(miss!("last-axes"))? && !axes.is_empty() && axes == last, miss!("last-axes"))?;
    Ok((data, axes))
}
