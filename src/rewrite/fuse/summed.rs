//! Products of one operand that are added are one product with the sum of their weights.
//!
//! Law: `W·x + V·x = (W + V)·x`, and so for convolutions of one stride: a kernel is the same as a larger one with zeros around it, if
//! the padding grows with it. A BatchNormalization at inference is a convolution with one number for each channel. Networks that are
//! trained with several branches, and meant to run with one, have such sums: the smaller branches cost nothing any more.
//!
//! What is off by rounding is a unit in the last place of `W + V`, which is no more than the two products were off by.
//!
//! The operand itself is a summand like a normalization that does nothing, where each channel is convolved alone. Elsewhere it stays: runtimes
//! add it while they convolve.

use super::affine::{Affine, Channels, per_channel};
use super::magnitude::{may_add, may_sum};
use super::ordinary::is_ordinary;
use super::scaled::elements;
use super::weights::has_plain_factor;
use super::{Fusion, Operand, Place, Rule, has_arithmetic, rounded};
use crate::ir::{Edit, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::Budget;
use crate::tensor::{Number, Recipe, Tensor, dispatch_numeric, product};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "sum-of-products",
    law: "W·x + V·x = (W + V)·x",
    sentence: "Merges a sum of products of one operand into one product with the summed weights.",
    premises: &[
        (
            "alike",
            "both are the same operator with weights of one shape; or both are convolutions with one stride, and one window lies within the other; or one is a normalization or the operand itself, and the other a depthwise convolution with stride 1",
        ),
        ("one-operand", "both products have the same operand"),
        ("same-shape", "neither result is broadcast"),
        ("inference", "a BatchNormalization does not train"),
        ("known-bias", "biases are constant"),
        ("in-range", "the weights and their sums, times operands of ordinary size, are in the range of the type"),
        ("no-cancelling", "the sums of weights and of biases keep half of their digits"),
        ("own-weights", "the larger weights have no other consumer"),
        ("one-reader", "the two results have no other consumer"),
    ],
    exact: false,
    operators: &["Add", "Sub"],
    apply: summed,
}];

fn summed(place: &Place<'_>) -> Option<Edit> {
    let node = place.node().filter(|node| node.inputs().len() == 2)?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    if !place.opset.arithmetic_broadcasts() || a == b || !place.same_shape(a, b) {
        return None;
    }
    let second = if node.is("Sub") { -1.0 } else { 1.0 };
    sum(place, (a, 1.0), (b, second)).or_else(|| sum(place, (b, second), (a, 1.0)))?.edit(place)
}

/// The node that computes a value which only the node at hand reads.
fn producer<'p>(place: &Place<'p>, value: ValueId) -> Option<(NodeId, &'p Node)> {
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id).filter(|node| Some(node.graph()) == place.node().map(Node::graph))?;
    let plain = node.canonical_domain().is_empty() && node.outputs().iter().flatten().count() == 1;
    (plain && place.is_internal(value, &[place.id])).then_some((id, node))
}

/// One product for the sum of two, each with its sign; the second has the smaller weights.
fn sum(place: &Place<'_>, (host, host_sign): (ValueId, f64), (guest, guest_sign): (ValueId, f64)) -> Option<Fusion> {
    let (host, node) = producer(place, host)?;
    let x = node.input(0).filter(|&x| is_ordinary(place, x))?;
    let other =
        if guest == x { None } else { Some(producer(place, guest).filter(|(_, other)| other.input(0) == Some(x))?) };
    let operator = ["Conv", "Gemm", "MatMul"].into_iter().find(|operator| node.is(operator))?;
    if node.inputs().len() > 3 || operator == "Gemm" && !has_plain_factor(node, place.dtype(x)?) {
        return None;
    }
    let name = node.input(1)?;
    let own = place.model.value(name).is_constant() && place.is_internal(name, &[host]);
    let weight = place.tensor(name).filter(|weight| own && has_arithmetic(weight.dtype()))?;
    let channels = channels(place, node, operator, weight)?;
    let summand = match other {
        Some((_, other)) => Summand::of(place, (node, weight), other, channels)?,
        None => Summand::scaled(node, weight, vec![1.0; channels.count]).filter(|_| is_depthwise(weight))?,
    };
    let bias = match (bias(place, node, operator, channels)?, summand.bias) {
        (None, None) => Operand::Absent,
        (a, b) => {
            let at = |numbers: &Option<Vec<f64>>, channel: usize| {
                numbers.as_ref().map_or(Some(0.0), |numbers| numbers.get(channel).copied())
            };
            let both = |channel: usize| {
                let (a, b) = (host_sign * at(&a, channel)?, guest_sign * at(&b, channel)?);
                may_add(weight.dtype(), a, b).then_some(a + b)
            };
            let sums = (0..channels.count).map(both).collect::<Option<Vec<f64>>>()?;
            let like = node.input(2).or(other.and_then(|(_, other)| other.input(2))).unwrap_or(name);
            Operand::Constant(rounded(weight.dtype(), &[sums.len()], &sums)?, like)
        }
    };
    let remove: Vec<NodeId> = other.map(|(id, _)| id).into_iter().chain([host, place.id]).collect();
    // Asked before the weights are computed.
    if weight.byte_len() > place.allowance(&remove) {
        return None;
    }
    let weights =
        Sums { weight: weight.for_recipe(), sign: host_sign, guest: summand.guest, guest_sign, slots: summand.slots };
    let weights = weights.tensor(place.budget)?;
    let attributes: Vec<NamedAttribute> = node.attributes.clone();
    let operands = vec![Operand::Value(x), Operand::Constant(weights, name), bias];
    Some(Fusion { remove, like: host, operator, attributes, operands })
}

/// The channels of a product.
fn channels(place: &Place<'_>, node: &Node, operator: &str, weight: &Tensor) -> Option<Channels> {
    let shape = weight.shape();
    Some(match operator {
        "Conv" if shape.len() >= 3 => Channels { rank: shape.len(), axis: 1, count: *shape.first()? },
        "Gemm" if shape.len() == 2 => {
            let columns = usize::from(!node.flag("transB", false)?);
            Channels { rank: 2, axis: 1, count: *shape.get(columns)? }
        }
        "MatMul" if shape.len() == 2 => {
            let rank = place.shape(place.only_output()?)?.len();
            Channels { rank, axis: rank.checked_sub(1)?, count: *shape.get(1)? }
        }
        _ => return None,
    })
}

/// What a product adds for each channel, but for Gemm's factor: `Some(None)` for nothing.
fn bias(place: &Place<'_>, node: &Node, operator: &str, channels: Channels) -> Option<Option<Vec<f64>>> {
    let Some(value) = node.input(2) else { return Some(None) };
    let channels = if operator == "Gemm" { channels } else { Channels { rank: 1, axis: 0, ..channels } };
    place.model.value(value).is_constant().then_some(())?;
    per_channel(place, value, channels).map(Some)
}

/// The product with the smaller weights.
struct Summand {
    guest: Guest,
    /// Which element of the smaller kernel meets each element of the larger one.
    slots: Vec<Option<usize>>,
    bias: Option<Vec<f64>>,
}

/// The smaller weights.
enum Guest {
    /// A tensor, in rows of so many elements.
    Weights(Tensor, usize),
    /// A number for each channel of what is convolved, in a kernel of one element; what comes of it are as many channels, each of a
    /// group of this size.
    Diagonal(Vec<f64>, usize),
}

impl Summand {
    fn of(place: &Place<'_>, (host, weight): (&Node, &Tensor), node: &Node, channels: Channels) -> Option<Summand> {
        if node.is("BatchNormalization") {
            return Summand::normalization(place, (host, weight), node, channels);
        }
        if !node.is(&host.op_type) || node.inputs().len() > 3 {
            return None;
        }
        let own = place.tensor(node.input(1)?).filter(|own| own.dtype() == weight.dtype())?;
        let (slots, width) = if own.shape() == weight.shape() && node.same_attributes(host) {
            (vec![Some(0)], 1)
        } else {
            // Channels and groups are the same.
            let rows = own.shape().get(..2)? == weight.shape().get(..2)?;
            let groups = node.int("group", 1)? == host.int("group", 1)?;
            if !node.is("Conv") || !rows || !groups {
                return None;
            }
            let slots = slots(&Window::of(host, weight.shape())?, &Window::of(node, own.shape())?)?;
            (slots, product(own.shape().get(2..)?)?)
        };
        let bias = bias(place, node, &host.op_type, channels)?;
        Some(Summand { guest: Guest::Weights(own.for_recipe(), width), slots, bias })
    }

    fn normalization(
        place: &Place<'_>,
        (host, weight): (&Node, &Tensor),
        node: &Node,
        channels: Channels,
    ) -> Option<Summand> {
        let Affine { scale, shift } = Affine::of(place, node, 0, channels)?;
        Some(Summand { bias: Some(shift), ..Summand::scaled(host, weight, scale)? })
    }

    /// What is convolved, each channel with a factor.
    fn scaled(host: &Node, weight: &Tensor, scale: Vec<f64>) -> Option<Summand> {
        let window = host.is("Conv").then(|| Window::of(host, weight.shape())).flatten()?;
        let (&[count, columns, ..], groups) = (weight.shape(), usize::try_from(host.int("group", 1)?).ok()?) else {
            return None;
        };
        let keeps = window.axes.iter().all(|axis| axis.stride == 1) && columns.checked_mul(groups) == Some(count);
        let one =
            Window { axes: window.axes.iter().map(|_| Axis { size: 1, stride: 1, dilation: 1, pad: 0 }).collect() };
        let slots = slots(&window, &one).filter(|_| keeps)?;
        Some(Summand { guest: Guest::Diagonal(scale, columns), slots, bias: None })
    }
}

/// Whether each channel is convolved alone.
fn is_depthwise(weight: &Tensor) -> bool {
    weight.shape().get(1) == Some(&1)
}

/// The windows of a convolution along its spatial axes.
struct Window {
    axes: Vec<Axis>,
}

#[derive(Clone, Copy)]
struct Axis {
    size: i64,
    stride: i64,
    dilation: i64,
    /// Zeros before what is convolved.
    pad: i64,
}

impl Window {
    /// `None` where padding is not given as numbers.
    fn of(node: &Node, shape: &[usize]) -> Option<Window> {
        let sizes = shape.get(2..)?;
        let numbers = |name: &str, default: i64, len: usize| match node.ints(name)? {
            [] => Some(vec![default; len]),
            numbers => (numbers.len() == len).then(|| numbers.to_vec()),
        };
        let pads = numbers("pads", 0, sizes.len().checked_mul(2)?)?;
        let is_explicit = match node.text("auto_pad", b"NOTSET")? {
            b"NOTSET" | b"" => true,
            b"VALID" => pads.iter().all(|&pad| pad == 0),
            _ => false,
        };
        let (strides, dilations) = (numbers("strides", 1, sizes.len())?, numbers("dilations", 1, sizes.len())?);
        let each = sizes.iter().zip(strides).zip(dilations).zip(pads);
        let axis =
            |(((&size, stride), dilation), pad)| Some(Axis { size: i64::try_from(size).ok()?, stride, dilation, pad });
        is_explicit.then(|| each.map(axis).collect::<Option<_>>().map(|axes| Window { axes })).flatten()
    }
}

/// Which element of the smaller kernel meets each element of the larger one, in row-major order. `None` if some element of the
/// smaller meets none.
///
/// Element `j` of a window at `o` is at `o·stride − pad + dilation·j`; where both have the same number of windows, positions that are
/// equal for one `o` are so for all.
fn slots(host: &Window, guest: &Window) -> Option<Vec<Option<usize>>> {
    let mut slots = vec![Some(0usize)];
    for (host, guest) in host.axes.iter().zip(&guest.axes) {
        let apart = host.pad.checked_sub(guest.pad)?;
        let step = host.dilation;
        let alike = guest.size == 1 || step == guest.dilation;
        if host.stride != guest.stride || !alike || step <= 0 || apart < 0 || apart.checked_rem(step)? != 0 {
            return None;
        }
        let first = apart.checked_div(step)?;
        let last = first.checked_add(guest.size)?;
        if guest.size < 1 || last > host.size {
            return None;
        }
        let width = usize::try_from(guest.size).ok()?;
        let along = |at: i64| (first..last).contains(&at).then(|| usize::try_from(at - first).ok()).flatten();
        let longer =
            |slot: Option<usize>| (0..host.size).map(move |at| slot?.checked_mul(width)?.checked_add(along(at)?));
        slots = slots.into_iter().flat_map(longer).collect();
    }
    Some(slots)
}

/// The sums of two weights, computed when they are read if they are large.
struct Sums {
    weight: Tensor,
    sign: f64,
    guest: Guest,
    guest_sign: f64,
    /// As in [`Summand`].
    slots: Vec<Option<usize>>,
}

impl Sums {
    /// Elements that are looked at at a time.
    const PIECE: usize = 64 << 10;

    /// `None` if the sums are too large, in number or in magnitude.
    fn tensor(self, budget: &Budget) -> Option<Tensor> {
        let (dtype, shape) = (self.weight.dtype(), self.weight.shape().to_vec());
        budget.take_bytes(self.weight.byte_len()).ok()?;
        budget.take_work((self.weight.len() as u64).saturating_mul(2)).ok()?;
        dispatch_numeric!(dtype, T => self.fit::<T>()?, else => return None);
        if Tensor::may_be_deferred(dtype, &shape) {
            return Tensor::deferred(dtype, &shape, Box::new(self)).ok();
        }
        let mut bytes = vec![0; self.weight.byte_len()];
        self.fill(0, &mut bytes);
        Tensor::from_bytes(dtype, &shape, bytes.into()).ok()
    }

    /// Whether all numbers are in range.
    fn fit<T: Number>(&self) -> Option<()> {
        let (mut largest, mut cancels) = (0.0f64, false);
        for first in (0..self.weight.len()).step_by(Self::PIECE) {
            self.each::<T>(first, Self::PIECE.min(self.weight.len() - first), |host, guest, sum| {
                let sum = sum.map_or(f64::INFINITY, |sum: T| sum.to_f64());
                let size = |number: f64| if number.is_nan() { f64::INFINITY } else { number.abs() };
                largest = [host, guest, sum].into_iter().map(size).fold(largest, f64::max);
                cancels |= !may_add(T::DTYPE, self.sign * host, self.guest_sign * guest);
            })?;
        }
        (!cancels && may_sum(T::DTYPE, largest)).then_some(())
    }

    /// Calls `each` with both numbers and the sum of elements from number `first` on.
    fn each<T: Number>(&self, first: usize, len: usize, mut each: impl FnMut(f64, f64, Option<T>)) -> Option<()> {
        let kernel = self.slots.len().max(1);
        let host = elements::<T>(&self.weight, first, len)?;
        let rows = first / kernel..first.checked_add(len)?.div_ceil(kernel);
        let guest = self.guest.rows::<T>(rows.clone())?;
        let width = guest.len().checked_div(rows.len())?;
        for (at, host) in host.into_iter().enumerate() {
            let (row, column) = ((first + at) / kernel, (first + at) % kernel);
            let guest = match self.slots.get(column).copied().flatten() {
                Some(slot) => *guest.get((row - rows.start).checked_mul(width)?.checked_add(slot)?)?,
                None => 0.0,
            };
            let host = host.to_f64();
            each(host, guest, T::from_f64(self.sign * host + self.guest_sign * guest));
        }
        Some(())
    }
}

impl Guest {
    /// The elements of rows, a kernel each.
    fn rows<T: Number>(&self, rows: std::ops::Range<usize>) -> Option<Vec<f64>> {
        match self {
            Guest::Weights(weight, width) => {
                let numbers = elements::<T>(weight, rows.start.checked_mul(*width)?, rows.len().checked_mul(*width)?)?;
                Some(numbers.into_iter().map(Number::to_f64).collect())
            }
            Guest::Diagonal(scale, columns) => rows
                .map(|row| {
                    let (channel, column) = (row.checked_div(*columns)?, row.checked_rem(*columns)?);
                    let is_own = channel.checked_rem(*columns)? == column;
                    if is_own { scale.get(channel).copied() } else { Some(0.0) }
                })
                .collect(),
        }
    }

    fn depth(&self) -> usize {
        match self {
            Guest::Weights(weight, _) => weight.depth(),
            Guest::Diagonal(..) => 0,
        }
    }
}

impl Recipe for Sums {
    fn depth(&self) -> usize {
        self.weight.depth().max(self.guest.depth()).saturating_add(1)
    }

    fn fill(&self, first: usize, out: &mut [u8]) {
        fn typed<T: Number>(sums: &Sums, first: usize, out: &mut [u8]) -> Option<()> {
            let mut all: Vec<T> = Vec::with_capacity(out.len() / size_of::<T>());
            // Every sum has been looked at, and none was missing.
            sums.each::<T>(first, out.len() / size_of::<T>(), |_, _, sum| all.extend(sum))?;
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut all);
            if cfg!(target_endian = "big") {
                bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
            }
            out.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(())
        }
        let _ = dispatch_numeric!(self.weight.dtype(), T => typed::<T>(self, first, out), else => None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    fn weight(dtype: DType, shape: &[usize], seed: usize) -> Tensor {
        let number = |n: usize| ((n + seed).wrapping_mul(2_654_435_761) % 1000) as f64 / 100.0 - 5.0;
        let values: Vec<f64> = (0..product(shape).unwrap()).map(number).collect();
        rounded(dtype, shape, &values).unwrap()
    }

    fn axis(size: i64, dilation: i64, pad: i64) -> Axis {
        Axis { size, stride: 1, dilation, pad }
    }

    #[test]
    fn a_window_lies_within_another() {
        let slots = |host: Axis, guest: Axis| slots(&Window { axes: vec![host] }, &Window { axes: vec![guest] });
        assert_eq!(slots(axis(3, 1, 1), axis(1, 1, 0)), Some(vec![None, Some(0), None]));
        assert_eq!(slots(axis(3, 2, 2), axis(2, 2, 0)), Some(vec![None, Some(0), Some(1)]));
        assert_eq!(slots(axis(3, 2, 2), axis(1, 9, 1)), None, "it lies between two elements");
        assert_eq!(slots(axis(3, 1, 0), axis(1, 1, 1)), None, "it lies before the other");
        assert_eq!(slots(axis(3, 1, 2), axis(2, 1, 0)), None, "it ends behind the other");
        assert_eq!(slots(axis(3, 1, 1), axis(2, 2, 1)), None, "its steps are longer");
        let both = |axes: [Axis; 2]| Window { axes: axes.to_vec() };
        let host = both([axis(2, 1, 0), axis(2, 1, 1)]);
        let expected = vec![None, Some(0), None, Some(1)];
        assert_eq!(super::slots(&host, &both([axis(2, 1, 0), axis(1, 1, 0)])), Some(expected));
    }

    #[test]
    fn what_is_computed_later_is_the_same() {
        let shape = [70, 1, 3, 1700];
        for dtype in [DType::Float, DType::Double, DType::Float16, DType::Bfloat16] {
            let (host, small) = (weight(dtype, &shape, 0), weight(dtype, &[70, 1, 1, 1700], 7));
            let slots: Vec<Option<usize>> =
                (0..5100).map(|at: usize| at.checked_sub(1700).filter(|at| *at < 1700)).collect();
            let diagonal: Vec<f64> = (0..70).map(f64::from).collect();
            let centre: Vec<Option<usize>> = (0..5100).map(|at| (at == 2550).then_some(0)).collect();
            for (guest, slots) in [(Guest::Weights(small, 1700), slots), (Guest::Diagonal(diagonal, 1), centre)] {
                let sums = Sums { weight: host.clone(), sign: -1.0, guest, guest_sign: 1.0, slots };
                let mut now = vec![0; host.byte_len()];
                sums.fill(0, &mut now);
                let later = sums.tensor(&Budget::default()).unwrap();
                assert_eq!(later.is_deferred(), Tensor::may_be_deferred(dtype, &shape));
                let mut part = vec![0; 4096];
                later.read(8 * 5001, &mut part);
                assert!(part == now[8 * 5001..][..4096] && later.bytes().as_ref() == now);
            }
        }
    }
}
