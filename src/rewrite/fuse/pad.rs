//! Merges a Pad into the node after it.
//!
//! Laws, for pads that are not negative:
//!
//! * `Conv(Pad(x, p), W; q) = Conv(x, W; p + q)`, padded with 0 along the spatial axes
//! * `AveragePool(Pad(x, p)) = AveragePool(x; p)` that counts the padding, likewise
//! * `MaxPool(Pad(x, p)) = MaxPool(x; p)`, padded with a number that no element of `x` is below
//!
//! For pools, each pad is shorter than the window and dilations are 1, so that every window contains an element of `x`. No spatial axis of
//! `x` is empty: runtimes refuse to pool over an empty axis, padded or not. The elements of `x` are proved to be above −∞: a kernel that
//! pads starts from the lowest finite number, and returns this number for a window of −∞ only. NaN is not considered.

use super::Fusion;
use super::range::range;
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::Number;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "pad-into-window",
    law: "Conv(Pad(x, p)) = Conv(x; pads = p), AveragePool(Pad(x, p)) = AveragePool(x; pads = p), \
            MaxPool(Pad(x, p)) = MaxPool(x; pads = p)",
    sentence: "Merges a Pad into a convolution or pool.",
    premises: &[
        ("spatial", "the Pad does not change the batch and channel axes"),
        (
            "fill",
            "before a Conv or AveragePool, the padding value is 0. Before a MaxPool, all elements of x are at least as large as the padding value, and above −∞",
        ),
        ("pads-known", "all pads are known, and none is negative"),
        ("short-pads", "before a pool, every pad is smaller than the size of the pooling window (kernel_shape)"),
        ("plain-pool", "all dilations of a pool are 1, and attribute ceil_mode of the pool is 0"),
        ("fixed-pads", "the Conv or pool defines its own padding by attribute pads, and not by auto_pad"),
        ("counted", "an AveragePool whose attribute pads is not 0 has count_include_pad = 1"),
        ("no-indices", "a MaxPool has no output Indices"),
        ("not-empty", "before a pool, every spatial dim of x is at least 1"),
        ("one-reader", "the result of the Pad has no other consumer"),
    ],
    exact: false,
    operators: &["Conv", "AveragePool", "MaxPool"],
    apply: pad_into_window,
}];

/// A Pad with a constant value.
struct Padding {
    input: ValueId,
    /// The pads before and after each axis.
    pads: Vec<(i64, i64)>,
    fill: Number,
}

impl Padding {
    /// Reads a Pad. `None` for other modes, and for unknown or negative pads.
    fn of(place: &Place<'_>, node: &Node) -> Option<Padding> {
        let reading = place.read(node);
        let (pads, fill) = (reading.pads()?, reading.pad_fill()?);
        let is_covered = reading.pads_with_a_number()? && pads.iter().all(|&(begin, end)| begin >= 0 && end >= 0);
        is_covered.then_some(Padding { input: node.input(0)?, pads, fill })
    }

    /// Returns the padding value.
    fn number(&self, place: &Place<'_>) -> Option<f64> {
        match self.fill {
            Number::Absent => Some(0.0),
            Number::Attribute(number) => Some(number.into()),
            Number::Operand(value) => place.scalar(value),
        }
    }

    /// Returns `true` if every spatial axis of the data is proved to be non-empty.
    fn has_elements(&self, place: &Place<'_>) -> Option<bool> {
        let spatial = place.shape(self.input)?.get(2..)?;
        Some(spatial.iter().all(|dim| place.scope().ge(dim, &Dim::constant(1)).is_yes()))
    }

    /// Returns the pads of the spatial axes, if the first two axes have none.
    fn spatial(&self) -> Option<&[(i64, i64)]> {
        match self.pads.as_slice() {
            [(0, 0), (0, 0), spatial @ ..] => Some(spatial),
            _ => None,
        }
    }
}

pub(super) fn is_zero(tensor: &Tensor) -> bool {
    tensor.strings().is_none() && tensor.bytes().iter().all(|&byte| byte == 0)
}

fn replace(attributes: &mut Vec<NamedAttribute>, name: &str, value: Attribute) {
    attributes.retain(|attribute| attribute.name != name);
    attributes.push(NamedAttribute::new(name, value));
}

/// A windowed operator with padded data.
struct Window<'a> {
    node: &'a Node,
    id: NodeId,
    padding: Padding,
    /// The sum of both pads.
    pads: Vec<(i64, i64)>,
    /// `true` if the windowed operator has pads already.
    pads_already: bool,
}

impl<'a> Window<'a> {
    fn of(place: &'a Place<'_>) -> Result<Window<'a>, Miss> {
        let node = place.root()?;
        let value = node.input(0).ok_or(Miss::ROOT)?;
        let (id, pad) = place.producer(value, "Pad").ok_or(Miss::ROOT)?;
        let padding = Padding::of(place, pad).ok_or(miss!("pads-known").of(value))?;
        let once = node.times_read(value) == 1;
        ensure(once && place.is_internal(value, &[place.id]), Miss::READ.of(value))?;
        let around = padding.spatial().ok_or(miss!("spatial").of(value))?;
        let own = node.ints("pads").ok_or(Miss::ROOT)?;
        let is_valid = match node.text("auto_pad", b"NOTSET").ok_or(Miss::ROOT)? {
            b"NOTSET" | b"" => false,
            b"VALID" => true,
            _ => return Err(miss!("fixed-pads")),
        };
        let pads_already = own.iter().any(|&pad| pad != 0);
        let (begins, ends) = own.split_at_checked(around.len()).unwrap_or((&[], &[]));
        let is_fixed = !is_valid && ends.len() == around.len() && own.iter().all(|&pad| pad >= 0);
        ensure(!pads_already || is_fixed, miss!("fixed-pads"))?;
        let own = begins.iter().zip(ends).chain(std::iter::repeat((&0, &0)));
        let sum = |(&(a, b), (c, d)): (&(i64, i64), (&i64, &i64))| Some((a.checked_add(*c)?, b.checked_add(*d)?));
        let pads = around.iter().zip(own).map(sum).collect::<Option<_>>().ok_or(Miss::COMPUTABLE)?;
        Ok(Window { node, id, padding, pads, pads_already })
    }

    /// Checks that every pad is shorter than the window, that dilations are 1, and that every window is complete.
    fn check_pool(&self) -> Result<(), Miss> {
        let kernel = self.node.ints("kernel_shape").ok_or(Miss::ROOT)?;
        let mut taps = self.pads.iter().zip(kernel);
        let shorter = self.pads.len() == kernel.len() && taps.all(|(&(begin, end), &taps)| begin < taps && end < taps);
        let dilations = self.node.ints("dilations").ok_or(Miss::ROOT)?;
        ensure(
            dilations.iter().all(|&dilation| dilation == 1) && self.node.flag("ceil_mode", false) == Some(false),
            miss!("plain-pool"),
        )?;
        ensure(shorter, miss!("short-pads"))
    }
}

fn pad_into_window(place: &Place<'_>) -> Result<Edit, Miss> {
    let window = Window::of(place)?;
    let number = window.padding.number(place).ok_or(miss!("fill"))?;
    let mut attributes = window.node.attributes.clone();
    if !window.node.is("Conv") {
        window.check_pool()?;
        ensure(window.padding.has_elements(place) == Some(true), miss!("not-empty").of(window.padding.input))?;
    }
    let operator = match window.node.op_type.as_str() {
        "Conv" if number == 0.0 => "Conv",
        "AveragePool" if number == 0.0 && place.opset.pools_count_padding() => {
            let counts = window.node.flag("count_include_pad", false).ok_or(Miss::ROOT)?;
            ensure(!window.pads_already || counts, miss!("counted"))?;
            replace(&mut attributes, "count_include_pad", 1.into());
            "AveragePool"
        }
        "MaxPool" => {
            place.only_output().ok_or(miss!("no-indices"))?;
            let range = range(place, window.padding.input).ok_or(miss!("fill"))?;
            ensure(range.low != f64::NEG_INFINITY && number <= range.low, miss!("fill"))?;
            "MaxPool"
        }
        _ => return Err(miss!("fill")),
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
