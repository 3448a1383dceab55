//! Padding that the node behind it can do.
//!
//! Laws, for pads that are not negative:
//!
//! * `Pad(Pad(x, p), q) = Pad(x, p + q)`, both with one constant
//! * `Conv(Pad(x, p), W; q) = Conv(x, W; p + q)`, padded with 0 along the spatial axes
//! * `AveragePool(Pad(x, p)) = AveragePool(x; p)` that counts the padding, likewise
//! * `MaxPool(Pad(x, p)) = MaxPool(x; p)`, padded with a number that no element of `x` is below
//!
//! In the last two a pad is shorter than the window and taps lie side by side, so that every window has an element of `x`. No spatial axis of `x` is
//! empty: runtimes refuse to pool over an empty axis, padded or not. And the elements of `x` are known to be above −∞: a kernel
//! that pads starts from the lowest finite number, and gives that for a window of nothing but −∞. NaN aside.

use super::range::range;
use super::{Fusion, Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NamedAttribute, NewNode, Node, NodeId, ValueId};
use crate::ops::Number;
use crate::rewrite::build::Build;
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "pad-pad",
        law: "Pad(Pad(x, p), q) = Pad(x, p + q)",
        sentence: "Merges two Pads.",
        premises: &[
            ("same-number", "both pad with the same number"),
            ("constant-mode", "both pad with a number, and nothing of x"),
            ("pads-known", "all pads are known, and none is negative"),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: true,
        operators: &["Pad"],
        apply: pad_pad,
    },
    Rule {
        name: "pad-into-window",
        law: "Conv(Pad(x, p)) = Conv(x; pads = p), AveragePool(Pad(x, p)) = AveragePool(x; pads = p), \
            MaxPool(Pad(x, p)) = MaxPool(x; pads = p)",
        sentence: "Merges a Pad into a convolution or pool.",
        premises: &[
            ("spatial", "the Pad leaves the first two axes as they are"),
            ("fill", "the padding is 0; before a MaxPool it is a lower bound of x, and all elements of x are above −∞"),
            ("pads-known", "all pads are known, and none is negative"),
            ("short-pads", "before a pool every pad is shorter than the window"),
            ("plain-pool", "the taps of a pool lie side by side, and every window is whole"),
            ("fixed-pads", "the window's own pads are fixed"),
            ("counted", "an AveragePool that pads itself counts its own padding as well"),
            ("no-indices", "a MaxPool has no output Indices"),
            ("not-empty", "before a pool x has an element along each spatial axis"),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: false,
        operators: &["Conv", "AveragePool", "MaxPool"],
        apply: pad_into_window,
    },
];

/// A Pad that puts a constant around its operand.
struct Padding {
    input: ValueId,
    /// How much before and after each axis.
    pads: Vec<(i64, i64)>,
    fill: Number,
}

impl Padding {
    /// Reads a Pad. `None` for other modes, and for pads that are not known or negative.
    fn of(place: &Place<'_>, node: &Node) -> Option<Padding> {
        let reading = place.read(node);
        let (pads, fill) = (reading.pads()?, reading.pad_fill()?);
        let is_covered = reading.pads_with_a_number()? && pads.iter().all(|&(begin, end)| begin >= 0 && end >= 0);
        is_covered.then_some(Padding { input: node.input(0)?, pads, fill })
    }

    /// The number it pads with.
    fn number(&self, place: &Place<'_>) -> Option<f64> {
        match self.fill {
            Number::Absent => Some(0.0),
            Number::Attribute(number) => Some(number.into()),
            Number::Operand(value) => place.scalar(value),
        }
    }

    /// Whether every spatial axis of what is padded is proved to have an element.
    fn has_elements(&self, place: &Place<'_>) -> Option<bool> {
        let spatial = place.shape(self.input)?.get(2..)?;
        Some(spatial.iter().all(|dim| place.scope().ge(dim, &Dim::constant(1)).is_yes()))
    }

    /// The pads of the spatial axes, if the first two axes have none.
    fn spatial(&self) -> Option<&[(i64, i64)]> {
        match self.pads.as_slice() {
            [(0, 0), (0, 0), spatial @ ..] => Some(spatial),
            _ => None,
        }
    }
}

fn pad_pad(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (id, first) = place.producer(node.input(0)?, "Pad")?;
    let (inner, outer) = (Padding::of(place, first)?, Padding::of(place, node)?);
    let alike = match (inner.fill, outer.fill) {
        (Number::Operand(a), Number::Operand(b)) => a == b || place.tensor(a)?.same(place.tensor(b)?),
        // What is left out is the zero of whatever type.
        (_, Number::Operand(value)) | (Number::Operand(value), _) => is_zero(place.tensor(value)?),
        (a, b) => number_bits(a) == number_bits(b),
    };
    if !alike || inner.pads.len() != outer.pads.len() || !place.is_internal(node.input(0)?, &[place.id]) {
        return None;
    }
    let sum = |(a, b): (&(i64, i64), &(i64, i64))| Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?));
    let pads: Vec<(i64, i64)> = inner.pads.iter().zip(&outer.pads).map(sum).collect::<Option<_>>()?;
    // Each pad is a number as an operand or as an attribute.
    let bytes = pads.len().checked_mul(2 * size_of::<i64>())?;
    let bytes = if node.input(1).is_some() { bytes } else { 0 };
    let fill = node.input(2).or(first.input(2));
    let reads: Vec<ValueId> = fill.into_iter().chain([inner.input]).collect();
    let mut edit = place.fuse(vec![id, place.id], &reads, bytes)?;
    let mut pad = NewNode::like(node).reading(0, inner.input);
    if let Some(fill) = fill {
        pad = pad.reading(2, fill);
    }
    let name = node.input(1).map(|pads| place.fused_name(pads)).unwrap_or_default();
    let pad = Build::named(&mut edit, place.opset, name).padded(pad, &pads)?;
    Some(edit.inserting(pad.output(place.output(0)?)))
}

/// A number that is no operand, bit for bit.
fn number_bits(number: Number) -> Option<u32> {
    match number {
        Number::Absent => Some(0.0f32.to_bits()),
        Number::Attribute(number) => Some(number.to_bits()),
        Number::Operand(_) => None,
    }
}

pub(super) fn is_zero(tensor: &Tensor) -> bool {
    tensor.strings().is_none() && tensor.bytes().iter().all(|&byte| byte == 0)
}

fn replace(attributes: &mut Vec<NamedAttribute>, name: &str, value: Attribute) {
    attributes.retain(|attribute| attribute.name != name);
    attributes.push(NamedAttribute::new(name, value));
}

/// A window that gets padded input.
struct Window<'a> {
    node: &'a Node,
    id: NodeId,
    padding: Padding,
    /// The pads of both together.
    pads: Vec<(i64, i64)>,
    /// Whether the window pads of its own.
    pads_already: bool,
}

impl<'a> Window<'a> {
    fn of(place: &'a Place<'_>) -> Option<Window<'a>> {
        let node = place.node()?;
        let value = node.input(0)?;
        let (id, pad) = place.producer(value, "Pad")?;
        let padding = Padding::of(place, pad)?;
        let once = node.times_read(value) == 1;
        if !once || !place.is_internal(value, &[place.id]) {
            return None;
        }
        let around = padding.spatial()?;
        let own = node.ints("pads")?;
        let is_valid = match node.text("auto_pad", b"NOTSET")? {
            b"NOTSET" | b"" => false,
            b"VALID" => true,
            _ => return None,
        };
        let pads_already = own.iter().any(|&pad| pad != 0);
        let (begins, ends) = own.split_at_checked(around.len()).unwrap_or((&[], &[]));
        if pads_already && (is_valid || ends.len() != around.len() || own.iter().any(|&pad| pad < 0)) {
            return None;
        }
        let own = begins.iter().zip(ends).chain(std::iter::repeat((&0, &0)));
        let sum = |(&(a, b), (c, d)): (&(i64, i64), (&i64, &i64))| Some((a.checked_add(*c)?, b.checked_add(*d)?));
        let pads = around.iter().zip(own).map(sum).collect::<Option<_>>()?;
        Some(Window { node, id, padding, pads, pads_already })
    }

    /// Whether every pad is shorter than the window, whose taps lie side by side, and every window is whole.
    fn is_plain_pool(&self) -> Option<bool> {
        let kernel = self.node.ints("kernel_shape")?;
        let mut taps = self.pads.iter().zip(kernel);
        let shorter = self.pads.len() == kernel.len() && taps.all(|(&(begin, end), &taps)| begin < taps && end < taps);
        let dense = self.node.ints("dilations")?.iter().all(|&dilation| dilation == 1);
        Some(dense && !self.node.flag("ceil_mode", false)? && shorter)
    }
}

fn pad_into_window(place: &Place<'_>) -> Option<Edit> {
    let window = Window::of(place)?;
    let number = window.padding.number(place)?;
    let mut attributes = window.node.attributes.clone();
    let operator = match window.node.op_type.as_str() {
        "Conv" if number == 0.0 => "Conv",
        "AveragePool"
            if number == 0.0
                && place.opset.pools_count_padding()
                && window.is_plain_pool()?
                && window.padding.has_elements(place)? =>
        {
            let counts = window.node.flag("count_include_pad", false)?;
            if window.pads_already && !counts {
                return None;
            }
            replace(&mut attributes, "count_include_pad", 1.into());
            "AveragePool"
        }
        "MaxPool" if window.is_plain_pool()? && window.padding.has_elements(place)? => {
            place.only_output()?;
            let range = range(place, window.padding.input)?;
            if range.low == f64::NEG_INFINITY || number > range.low {
                return None;
            }
            "MaxPool"
        }
        _ => return None,
    };
    let (begins, ends): (Vec<i64>, Vec<i64>) = window.pads.iter().copied().unzip();
    let pads = [begins, ends].concat();
    attributes.retain(|attribute| attribute.name != "auto_pad");
    replace(&mut attributes, "pads", pads.into());
    let (input, remove) = (window.padding.input, vec![window.id, place.id]);
    let operands = std::iter::once(Some(input)).chain(window.node.inputs().iter().copied().skip(1)).map(Into::into);
    let operands = operands.collect();
    Fusion { remove, like: place.id, operator, attributes, operands }.edit(place)
}
