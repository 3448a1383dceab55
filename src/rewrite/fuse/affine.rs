//! Reads nodes with constant operands as affine functions of each channel of a tensor.

use super::has_arithmetic;
use crate::ir::{Node, ValueId};
use crate::rewrite::place::Place;

/// The channels of a tensor: its dims along one axis.
#[derive(Clone, Copy)]
pub(super) struct Channels {
    /// The tensor's rank.
    pub rank: usize,
    /// The axis.
    pub axis: usize,
    /// The number of channels.
    pub count: usize,
}

/// Operators that are affine if their other operands are constants.
pub(super) const AFFINE: &[&str] = &["BatchNormalization", "Mul", "Div", "Add", "Sub"];

/// `y = scale[c]·x + shift[c]` for every element of channel `c`. All numbers are finite.
pub(super) struct Affine {
    pub scale: Vec<f64>,
    pub shift: Vec<f64>,
}

impl Affine {
    /// Returns `true` if every scale is 1.
    pub fn only_shifts(&self) -> bool {
        self.scale.iter().all(|&scale| scale == 1.0)
    }

    /// Returns `true` if every shift is 0.
    pub fn only_scales(&self) -> bool {
        self.shift.iter().all(|&shift| shift == 0.0)
    }

    /// Returns the affine function that `node` applies to its operand `slot`, a tensor with these channels. The node must be one of
    /// [`AFFINE`] (BatchNormalization at inference). Its constants must be uniform within each channel and must not broadcast the tensor to
    /// other dims.
    pub fn of(place: &Place<'_>, node: &Node, slot: usize, channels: Channels) -> Option<Affine> {
        let found = if node.is("BatchNormalization") {
            let own = slot == 0 && channels.axis == 1 && channels.rank >= 2;
            own.then(|| batch_normalization(place, node, channels.count)).flatten()?
        } else {
            arithmetic(place, node, slot, channels)?
        };
        found.scale.iter().chain(&found.shift).all(|number| number.is_finite()).then_some(found)
    }
}

/// Returns the slots of such a node that may hold the tensor.
pub(super) fn tensor_slots(node: &Node) -> &'static [usize] {
    match node.op_type.as_str() {
        "Add" | "Sub" | "Mul" => &[0, 1],
        _ => &[0],
    }
}

fn arithmetic(place: &Place<'_>, node: &Node, slot: usize, channels: Channels) -> Option<Affine> {
    // Before opset 7, operands are broadcast only where attributes request it.
    if !place.opset.arithmetic_broadcasts() || node.inputs().len() != 2 || !node.canonical_domain().is_empty() {
        return None;
    }
    let other = per_channel(place, node.input(1usize.checked_sub(slot)?)?, channels)?;
    let same = |number: f64| vec![number; channels.count];
    let negative = |numbers: Vec<f64>| numbers.into_iter().map(|number| -number).collect();
    Some(match (node.op_type.as_str(), slot) {
        ("Mul", _) => Affine { scale: other, shift: same(0.0) },
        ("Div", 0) => Affine { scale: other.into_iter().map(f64::recip).collect(), shift: same(0.0) },
        ("Add", _) => Affine { scale: same(1.0), shift: other },
        ("Sub", 0) => Affine { scale: same(1.0), shift: negative(other) },
        ("Sub", 1) => Affine { scale: same(-1.0), shift: other },
        _ => return None,
    })
}

/// Reads `BatchNormalization(x) = scale / √(variance + ε) · (x − mean) + bias`, unless the node trains.
fn batch_normalization(place: &Place<'_>, node: &Node, count: usize) -> Option<Affine> {
    if !place.read(node).normalizes_as_given()? {
        return None;
    }
    let channels = Channels { rank: 1, axis: 0, count };
    let parameter = |slot: usize| per_channel(place, node.input(slot)?, channels);
    let (scale, bias, mean, variance) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
    let epsilon = f64::from(node.float("epsilon", 1e-5)?);
    let factors = scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + epsilon).sqrt());
    let scale: Vec<f64> = factors.collect();
    let shift = bias.iter().zip(&mean).zip(&scale).map(|((bias, mean), scale)| bias - mean * scale).collect();
    Some(Affine { scale, shift })
}

/// Returns the number of a constant for each channel of a tensor to which it broadcasts. `None` if the constant varies within a channel or
/// has a dim that the tensor does not have.
pub(super) fn per_channel(place: &Place<'_>, value: ValueId, channels: Channels) -> Option<Vec<f64>> {
    let tensor = place.tensor(value).filter(|tensor| has_arithmetic(tensor.dtype()))?;
    let first = channels.rank.checked_sub(tensor.rank())?;
    let fits = |(axis, &dim): (usize, &usize)| dim == 1 || first + axis == channels.axis && dim == channels.count;
    if !tensor.shape().iter().enumerate().all(fits) {
        return None;
    }
    let numbers = tensor.to_f64s()?;
    match numbers.as_slice() {
        [number] => Some(vec![*number; channels.count]),
        _ => Some(numbers),
    }
}
