//! Merges a scale and shift of channels into the weights of the node before them.
//!
//! Law, for a node `L(x) = W·x + b` and a function `A(y) = s·y + t` of each channel: `A(L(x)) = (s·W)·x + (s·b + t)`.
//!
//! A changed `W` is an initializer without other consumers. [`magnitude`](super::magnitude) limits its new numbers.

use super::affine::{AFFINE, Affine, Channels, per_channel, tensor_slots};
use super::magnitude::{has_room, keeps_digits, may_add, may_move, may_scale};
use super::normalized::is_of_normalized_rows;
use super::ordinary::is_ordinary;
use super::scaled::{Blocks, scaled};
use super::{Fusion, Operand, has_arithmetic, rounded};
use crate::ir::{Edit, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::miss::{Miss, ensure, first_of};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, Tensor};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "affine-after-weights",
    law: "s·(W·x + b) + t = (s·W)·x + (s·b + t)",
    sentence: "Merges a scale and a shift of channels into the weights and the bias of the preceding node.",
    premises: &[
        (
            "per-channel",
            "s and t are constant within each channel, and broadcasting s and t does not enlarge the result",
        ),
        ("inference", "a BatchNormalization is in inference mode"),
        ("known-bias", "if the rule changes the bias b, b is a constant"),
        (
            "takes-shift",
            "if t is not 0, the preceding node accepts a bias. A MatMul accepts a bias if a Gemm can replace the MatMul, and x is not the result of a layer normalization",
        ),
        (
            "in-range",
            "for x of moderate size (2⁻³² to 2³² in float), products with the new weights neither overflow nor underflow. If s could hide an overflow or underflow of products with the old weights, these products neither overflow nor underflow for such x",
        ),
        ("no-cancelling", "the sum s·b + t does not cancel: the result keeps at least half of the significant digits"),
        (
            "signs-of-zero",
            "at least one of three statements holds: (1) s is positive; (2) s is negative, and the bias is not 0; (3) every consumer of the result is an addition, or ignores the sign of a zero. In all other cases, the result could be −0 instead of 0, and a division by the result would return −∞ instead of ∞",
        ),
        ("own-weights", "the changed weights have no other consumer"),
        ("one-reader", "the result of the preceding node has no other consumer"),
    ],
    exact: false,
    operators: AFFINE,
    apply: after,
}];

/// A node with weights.
struct Linear {
    operator: &'static str,
    /// The slot of the operand `W`, and the blocks of `W` for the channels of the result.
    weight: usize,
    blocks: Blocks,
    /// The channels of the result.
    channels: Channels,
    /// The factor of `b`; `None` if the operator has no `b`.
    beta: Option<f64>,
    /// `true` if `W` has one number for each channel. Then it is small, and may have other consumers.
    is_vector: bool,
}

/// Returns the dims of a value; `None` for each dynamic one.
fn dims(place: &Place<'_>, value: ValueId) -> Option<Vec<Option<usize>>> {
    if let Some(tensor) = place.tensor(value) {
        return Some(tensor.shape().iter().copied().map(Some).collect());
    }
    let number = |dim: &crate::dim::Dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok());
    Some(place.shape(value)?.iter().map(number).collect())
}

/// Returns the number of groups of a convolution.
fn groups(node: &Node) -> Option<usize> {
    usize::try_from(node.int("group", 1)?).ok().filter(|&groups| groups > 0)
}

impl Linear {
    fn of(place: &Place<'_>, node: &Node, result: ValueId) -> Option<Linear> {
        if !node.canonical_domain().is_empty() || node.outputs().iter().flatten().count() != 1 {
            return None;
        }
        // Further operands are unknown, and a replacing operator may give them a meaning.
        let most = match node.op_type.as_str() {
            "MatMul" => 2,
            "BatchNormalization" => 5,
            _ => 3,
        };
        if node.inputs().len() > most {
            return None;
        }
        // The blocks of a weight with unknown dims do not matter, because it cannot be scaled.
        let whole = || Blocks::whole(&[]);
        let dense = |dims: &[Option<usize>]| dims.iter().copied().collect::<Option<Vec<usize>>>();
        let linear =
            |operator, blocks, channels, beta| Linear { operator, weight: 1, blocks, channels, beta, is_vector: false };
        Some(match node.op_type.as_str() {
            "Conv" => {
                let dims = dims(place, node.input(1)?)?;
                let channels = Channels { rank: dims.len(), axis: 1, count: (*dims.first()?)? };
                let blocks = dense(&dims).map_or_else(whole, |dims| Blocks::along(&dims, 0))?;
                linear("Conv", blocks, channels, Some(1.0))
            }
            "ConvTranspose" => {
                let dims = dims(place, node.input(1)?)?;
                let groups = groups(node)?;
                let count = (*dims.get(1)?)?.checked_mul(groups)?;
                let channels = Channels { rank: dims.len(), axis: 1, count };
                let blocks = dense(&dims).map_or_else(whole, |dims| Blocks::grouped(&dims, groups))?;
                linear("ConvTranspose", blocks, channels, Some(1.0))
            }
            "Gemm" if place.opset.arithmetic_broadcasts() => {
                let dims = dims(place, node.input(1)?)?;
                let columns = usize::from(node.int("transB", 0)? == 0);
                let channels = Channels { rank: 2, axis: 1, count: (*dims.get(columns)?)? };
                let blocks = dense(&dims).map_or_else(whole, |dims| Blocks::along(&dims, columns))?;
                linear("Gemm", blocks, channels, Some(node.float("beta", 1.0)?.into()))
            }
            "MatMul" => {
                let rank = place.shape(result)?.len();
                let axis = rank.checked_sub(1)?;
                if let Some(weight) = node.input(0).and_then(|weight| place.tensor(weight)) {
                    let blocks = Blocks::whole(weight.shape())?;
                    let channels = Channels { rank, axis, count: 1 };
                    return Some(Linear { weight: 0, ..linear("MatMul", blocks, channels, None) });
                }
                let dims = dense(&dims(place, node.input(1)?)?)?;
                let columns = dims.len().checked_sub(1).filter(|&columns| columns > 0)?;
                let blocks = Blocks::along(&dims, columns)?;
                linear("MatMul", blocks, Channels { rank, axis, count: *dims.get(columns)? }, None)
            }
            "RMSNormalization" => {
                let (rank, scale) = (place.shape(result)?.len(), place.tensor(node.input(1)?)?);
                let (&[count], axis) = (scale.shape(), rank.checked_sub(1)?) else { return None };
                let is_last = [-1, i64::try_from(axis).ok()?].contains(&node.int("axis", -1)?);
                let channels = Some(Channels { rank, axis, count }).filter(|_| is_last)?;
                Linear { is_vector: true, ..linear("RMSNormalization", Blocks::along(&[count], 0)?, channels, None) }
            }
            name @ ("BatchNormalization" | "InstanceNormalization" | "GroupNormalization" | "LayerNormalization") => {
                let (rank, scale) = (place.shape(result)?.len(), place.tensor(node.input(1)?)?);
                let last = rank.checked_sub(1).and_then(|last| i64::try_from(last).ok())?;
                let (operator, axis) = match name {
                    "BatchNormalization" => ("BatchNormalization", 1),
                    "InstanceNormalization" => ("InstanceNormalization", 1),
                    // Before opset 21 GroupNormalization has one scale for each group.
                    "GroupNormalization" if place.opset.scales_channels_of_groups() => ("GroupNormalization", 1),
                    "LayerNormalization" if [-1, last].contains(&node.int("axis", -1)?) => {
                        ("LayerNormalization", rank.checked_sub(1)?)
                    }
                    _ => return None,
                };
                let [count] = *scale.shape() else { return None };
                let channels = Channels { rank, axis, count };
                // The affine reading of the node excludes training mode.
                if name == "BatchNormalization" {
                    Affine::of(place, node, 0, channels)?;
                }
                let blocks = Blocks::along(&[count], 0)?;
                Linear { is_vector: true, ..linear(operator, blocks, channels, Some(1.0)) }
            }
            _ => return None,
        })
    }

    /// Returns the operand `W`, if it may change.
    fn own_weight<'p>(&self, place: &'p Place<'_>, node: &Node, id: NodeId) -> Option<(ValueId, &'p Tensor)> {
        let value = node.input(self.weight)?;
        let own = place.model.value(value).is_constant() && place.is_internal(value, &[id]);
        Some((value, place.tensor(value).filter(|_| own || self.is_vector)?))
    }

    /// Returns `true` if the other factors of the node leave room for these factors of its channels.
    fn may_scale(&self, place: &Place<'_>, node: &Node, dtype: DType, factors: &[f64]) -> bool {
        match self.operator {
            "Gemm" => has_plain_factor(node, dtype),
            "BatchNormalization" => Affine::of(place, node, 0, self.channels).is_some_and(|own| {
                let mut pairs = own.scale.iter().zip(factors);
                pairs.all(|(&own, &factor)| may_scale(dtype, own, factor) && has_room(dtype, own * factor))
            }),
            _ => true,
        }
    }

    /// Returns `β·b` for each channel; zeros if there is no `b`.
    fn bias(&self, place: &Place<'_>, node: &Node) -> Option<Vec<f64>> {
        let Channels { rank, axis, count } = self.channels;
        let Some(value) = node.input(2) else { return Some(vec![0.0; count]) };
        let channels =
            if self.operator == "Gemm" { Channels { rank, axis, count } } else { Channels { rank: 1, axis: 0, count } };
        let beta = self.beta?;
        Some(per_channel(place, value, channels)?.into_iter().map(|bias| beta * bias).collect())
    }
}

/// Returns `b` as an operand: one value for each channel. It is absent if all are 0 and the operator does not require it.
fn bias_operand(place: &Place<'_>, linear: &Linear, bias: &[f64], dtype: DType, like: ValueId) -> Option<Operand> {
    let optional = match linear.operator {
        "Gemm" => place.opset.gemm_without_bias(),
        "Conv" | "ConvTranspose" | "LayerNormalization" => true,
        _ => false,
    };
    if !bias.iter().all(|&bias| keeps_digits(dtype, bias)) {
        return None;
    }
    if optional && bias.iter().all(|&bias| bias == 0.0) {
        return Some(Operand::Absent);
    }
    Some(Operand::Constant(rounded(dtype, &[bias.len()], bias)?, like))
}

/// Returns `true` if the attribute *alpha* of a matrix product is within the bounds of factors that pass computed values.
pub(super) fn has_plain_factor(node: &Node, dtype: DType) -> bool {
    node.float("alpha", 1.0).is_some_and(|alpha| may_move(dtype, alpha.into()))
}

/// Returns the attributes of a node whose bias has been multiplied by `beta`.
fn without_beta(node: &Node) -> Vec<NamedAttribute> {
    node.attributes.iter().filter(|attribute| attribute.name != "beta").cloned().collect()
}

/// Matches `A` of `A(L(x))`.
fn after(place: &Place<'_>) -> Result<Edit, Miss> {
    let slots = tensor_slots(place.root()?);
    first_of(slots.iter().map(|&slot| after_at(place, slot)))?.edit(place)
}

fn after_at(place: &Place<'_>, slot: usize) -> Result<Fusion, Miss> {
    let node = place.root()?;
    place.only_output().ok_or(Miss::ROOT)?;
    let between = node.input(slot).ok_or(Miss::ROOT)?;
    let id = place.model.value(between).producer().ok_or(Miss::ROOT)?;
    let inner = place.model.node(id).filter(|inner| inner.graph() == node.graph()).ok_or(Miss::ROOT)?;
    let linear = Linear::of(place, inner, between).ok_or(Miss::ROOT)?;
    let trains = node.is("BatchNormalization") && place.read(node).normalizes_as_given() != Some(true);
    ensure(!trains, miss!("inference"))?;
    let affine = Affine::of(place, node, slot, linear.channels).ok_or(miss!("per-channel"))?;
    ensure(place.is_internal(between, &[place.id]), Miss::READ.of(between))?;
    let weight = inner.input(linear.weight).ok_or(Miss::ROOT)?;
    let dtype = place.tensor(weight).map(Tensor::dtype).or_else(|| place.dtype(weight)).ok_or(Miss::ROOT)?;
    ensure(has_arithmetic(dtype), Miss::ROOT)?;
    let mut operands: Vec<Operand> = inner.inputs().iter().map(|&value| value.into()).collect();
    let (mut operator, mut attributes) = (linear.operator, inner.attributes.clone());
    let like = inner.input(2).or(shift_of(node, slot)).ok_or(Miss::ROOT)?;
    let scaling = !affine.only_shifts();
    ensure(
        !((node.is("Mul") || node.is("Div")) && !keeps_zero_signs(place, inner, &linear, &affine.scale)),
        miss!("signs-of-zero"),
    )?;
    // A scale of 1 and a shift of 0 change no constant; only the node is removed.
    if linear.beta.is_some() && (scaling && inner.input(2).is_some() || !affine.only_scales()) {
        let old = linear.bias(place, inner).ok_or(miss!("known-bias"))?;
        let terms = old.iter().zip(&affine.scale).zip(&affine.shift);
        let new = terms.map(|((&bias, &scale), &shift)| {
            let fits = may_scale(dtype, bias, scale) && may_add(dtype, bias * scale, shift);
            fits.then_some(bias * scale + shift)
        });
        let bias = match given(place, node, slot, &linear, dtype).filter(|_| !scaling && inner.input(2).is_none()) {
            Some(shift) => Operand::Value(shift),
            None => bias_operand(
                place,
                &linear,
                &new.collect::<Option<Vec<_>>>().ok_or(miss!("no-cancelling"))?,
                dtype,
                like,
            )
            .ok_or(miss!("known-bias"))?,
        };
        set(&mut operands, 2, bias);
        attributes = without_beta(inner);
    } else if !affine.only_scales() {
        // A matrix product that receives a bias becomes a Gemm.
        let is_flat = linear.weight == 1 && linear.channels.rank == 2 && place.dims(weight)?.len() == 2;
        let knows = dtype != DType::Bfloat16 || place.opset.computes_in_bfloat16();
        let is_free = knows && !is_of_normalized_rows(place, inner);
        ensure(is_flat && place.opset.arithmetic_broadcasts() && is_free, miss!("takes-shift"))?;
        operator = "Gemm";
        operands.push(match given(place, node, slot, &linear, dtype).filter(|_| !scaling) {
            Some(shift) => Operand::Value(shift),
            None => {
                Operand::Constant(rounded(dtype, &[affine.shift.len()], &affine.shift).ok_or(Miss::COMPUTABLE)?, like)
            }
        });
    }
    let remove = vec![id, place.id];
    ensure(
        is_ordinary(place, inner.input(1usize.checked_sub(linear.weight).ok_or(Miss::COMPUTABLE)?).ok_or(Miss::ROOT)?),
        miss!("in-range"),
    )?;
    if scaling {
        let (value, tensor) = linear.own_weight(place, inner, id).ok_or(miss!("own-weights"))?;
        let is_one = linear.is_vector && tensor.every_f64(|scale| scale == 1.0).ok_or(Miss::COMPUTABLE)?;
        if let Some(scale) = given(place, node, slot, &linear, dtype).filter(|_| is_one && node.is("Mul")) {
            set(&mut operands, linear.weight, Operand::Value(scale));
            return Ok(Fusion { remove, like: id, operator, attributes, operands });
        }
        ensure(linear.may_scale(place, inner, dtype, &affine.scale), miss!("in-range"))?;
        affordable(place, &remove, &operands, tensor).ok_or(Miss::LARGER)?;
        let tensor = scaled(place.budget, tensor, linear.blocks, &affine.scale).ok_or(miss!("in-range"))?;
        set(&mut operands, linear.weight, Operand::Constant(tensor, value));
    }
    Ok(Fusion { remove, like: id, operator, attributes, operands })
}

/// Returns `true` if results that are 0 keep their sign when these factors, without a shift, move into the weights. The factors multiply a
/// sum, which is +0 for a zero operand. With a bias other than 0, the sum is 0 only if terms cancel; this case is accepted. Consumers that
/// add to the result, or ignore the sign, do not reveal the difference.
fn keeps_zero_signs(place: &Place<'_>, node: &Node, linear: &Linear, factors: &[f64]) -> bool {
    // A normalization without a bias ends with a product.
    if factors.iter().all(|&factor| factor > 0.0) || linear.is_vector && node.input(2).is_none() {
        return true;
    }
    let is_blind = |&(id, slot): &(NodeId, usize)| {
        let reader = place.model.node(id);
        reader.is_some_and(|reader| {
            // −0 − 0 is −0, and 0 − ±0 is 0.
            let adds = reader.is("Add") || reader.is("Sub") && slot == 1;
            adds || traits_of(place.model, reader).ignores_zero_sign
        })
    };
    if place.only_output().is_some_and(|result| place.model.users(result).iter().all(is_blind)) {
        return true;
    }
    let biases = linear.bias(place, node).unwrap_or_default();
    biases.len() == factors.len()
        && factors.iter().zip(&biases).all(|(&factor, &bias)| factor > 0.0 || factor < 0.0 && bias != 0.0)
}

/// Returns the stored vector with one number for each channel that an Add or a Mul applies. It can serve as bias or scale unchanged, even
/// with other consumers.
fn given(place: &Place<'_>, node: &Node, slot: usize, linear: &Linear, dtype: DType) -> Option<ValueId> {
    let other = node.input(1usize.checked_sub(slot)?).filter(|_| node.is("Add") || node.is("Mul"))?;
    let tensor = place.model.value(other).constant_tensor()?;
    (tensor.dtype() == dtype && tensor.shape() == [linear.channels.count]).then_some(other)
}

/// Returns the constant that such a node adds, or its only constant. A new bias is named after it.
fn shift_of(node: &Node, slot: usize) -> Option<ValueId> {
    node.input(if node.inputs().len() > 2 { 2 } else { 1usize.checked_sub(slot)? })
}

/// Returns `Some` if these operands and a weight as large as `weight` do not make the model larger. Called before the weight is computed.
fn affordable(place: &Place<'_>, remove: &[NodeId], operands: &[Operand], weight: &Tensor) -> Option<()> {
    let added = super::constant_bytes(operands).checked_add(weight.byte_len())?;
    (added <= place.allowance(remove)).then_some(())
}

fn set(operands: &mut Vec<Operand>, slot: usize, operand: Operand) {
    while operands.len() <= slot {
        operands.push(Operand::Absent);
    }
    if let Some(place) = operands.get_mut(slot) {
        *place = operand;
    }
}
