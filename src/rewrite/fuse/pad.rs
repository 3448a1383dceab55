//! Padding that the node behind it can do.
//!
//! Laws, for pads that are not negative:
//!
//! * `Pad(Pad(x, p), q) = Pad(x, p + q)`, both with one constant
//! * `Conv(Pad(x, p), W; q) = Conv(x, W; p + q)`, padded with 0 along the spatial axes
//! * `AveragePool(Pad(x, p)) = AveragePool(x; p)` that counts the padding, likewise
//! * `MaxPool(Pad(x, p)) = MaxPool(x; p)`, padded with what no element of `x` is below, if every window has an element of `x`
//!
//! In the last two a pad is shorter than the window, which runtimes ask for.

use super::clamp::range;
use super::{Fusion, Operand, Place, Rule, float_of, int_of, ints_of};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::axis_in;
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule { name: "pad-pad", operators: &["Pad"], exact: true, apply: pad_pad },
    Rule {
        name: "pad-into-window",
        operators: &["Conv", "AveragePool", "MaxPool"],
        exact: false,
        apply: pad_into_window,
    },
];

/// What a Pad puts around its operand.
enum Fill {
    /// The attribute, or nothing said: 0.
    Number(f32),
    /// The operand.
    Value(ValueId),
}

/// A Pad that puts a constant around its operand.
struct Padding {
    input: ValueId,
    /// How much at the beginning of each axis, then at the end of each.
    pads: Vec<i64>,
    fill: Fill,
}

impl Padding {
    /// Reads a Pad. `None` for other modes, and for pads that are not known or negative.
    fn of(place: &Place<'_>, node: &Node) -> Option<Padding> {
        let is_constant = match node.attribute("mode") {
            None => true,
            Some(Attribute::String(mode)) => mode.as_ref() == b"constant",
            Some(_) => false,
        };
        let input = node.input(0)?;
        let (pads, fill) = if place.opset >= 11 {
            let pads = place.const_ints(node.input(1)?)?;
            let pads = match node.input(3) {
                None => pads,
                Some(axes) => spread(place.shape(input)?.len(), &place.const_ints(axes)?, &pads)?,
            };
            (pads, node.input(2).map_or(Fill::Number(0.0), Fill::Value))
        } else {
            let name = if place.opset < 2 { "paddings" } else { "pads" };
            (ints_of(node, name)?, Fill::Number(float_of(node, "value", 0.0)?))
        };
        (is_constant && pads.iter().all(|&pad| pad >= 0)).then_some(Padding { input, pads, fill })
    }

    /// The number it pads with.
    fn number(&self, place: &Place<'_>) -> Option<f64> {
        match self.fill {
            Fill::Number(number) => Some(number.into()),
            Fill::Value(value) => place.scalar(value),
        }
    }

    /// The pads of the spatial axes, beginnings and ends, if the first two axes have none.
    fn spatial(&self) -> Option<(&[i64], &[i64])> {
        let (begins, ends) = self.pads.split_at_checked(self.pads.len() / 2)?;
        match (begins, ends) {
            ([0, 0, begins @ ..], [0, 0, ends @ ..]) => Some((begins, ends)),
            _ => None,
        }
    }
}

/// Pads of some axes as pads of all.
fn spread(rank: usize, axes: &[i64], pads: &[i64]) -> Option<Vec<i64>> {
    let mut all = vec![0; rank.checked_mul(2)?];
    let (begins, ends) = pads.split_at_checked(axes.len()).filter(|(_, ends)| ends.len() == axes.len())?;
    for ((&axis, &begin), &end) in axes.iter().zip(begins).zip(ends) {
        let axis = axis_in(axis, rank).ok()?;
        *all.get_mut(axis)? = begin;
        *all.get_mut(axis.checked_add(rank)?)? = end;
    }
    Some(all)
}

fn pad_pad(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (id, first) = place.producer(node.input(0)?, "Pad")?;
    let (inner, outer) = (Padding::of(place, first)?, Padding::of(place, node)?);
    let alike = match (&inner.fill, &outer.fill) {
        (Fill::Number(a), Fill::Number(b)) => a.to_bits() == b.to_bits(),
        (Fill::Value(a), Fill::Value(b)) => a == b || place.tensor(*a)?.same(place.tensor(*b)?),
        // What is left out is the zero of whatever type.
        (Fill::Number(_), Fill::Value(value)) | (Fill::Value(value), Fill::Number(_)) => is_zero(place.tensor(*value)?),
    };
    if !alike || inner.pads.len() != outer.pads.len() || !place.is_internal(node.input(0)?, &[place.id]) {
        return None;
    }
    let pads: Vec<i64> = inner.pads.iter().zip(&outer.pads).map(|(a, b)| a.checked_add(*b)).collect::<Option<_>>()?;
    let mut operands = vec![Operand::Value(inner.input)];
    let mut attributes = node.attributes.clone();
    if place.opset >= 11 {
        operands.push(Operand::Constant(Tensor::vector(pads), node.input(1)?));
        operands.push(node.input(2).or(first.input(2)).into());
    } else {
        let name = if place.opset < 2 { "paddings" } else { "pads" };
        replace(&mut attributes, name, pads.into());
    }
    let remove = vec![id, place.id];
    Fusion { rule: "pad-pad", remove, like: place.id, operator: "Pad", attributes, operands }.edit(place)
}

fn is_zero(tensor: &Tensor) -> bool {
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
    /// The pads of both together, beginnings and ends.
    begins: Vec<i64>,
    ends: Vec<i64>,
    /// Whether the window pads of its own.
    pads_already: bool,
}

impl<'a> Window<'a> {
    fn of(place: &'a Place<'_>) -> Option<Window<'a>> {
        let node = place.node()?;
        let value = node.input(0)?;
        let (id, pad) = place.producer(value, "Pad")?;
        let padding = Padding::of(place, pad)?;
        let once = node.inputs().iter().filter(|&&input| input == Some(value)).count() == 1;
        if !once || !place.is_internal(value, &[place.id]) {
            return None;
        }
        let (begins, ends) = padding.spatial()?;
        let own = ints_of(node, "pads")?;
        let is_valid = match node.attribute("auto_pad") {
            None => false,
            Some(Attribute::String(mode)) => match mode.as_ref() {
                b"NOTSET" | b"" => false,
                b"VALID" => true,
                _ => return None,
            },
            Some(_) => return None,
        };
        let pads_already = own.iter().any(|&pad| pad != 0);
        if pads_already && (is_valid || own.len() != begins.len().checked_mul(2)? || own.iter().any(|&pad| pad < 0)) {
            return None;
        }
        let own = if pads_already { own } else { vec![0; begins.len().checked_mul(2)?] };
        let (own_begins, own_ends) = own.split_at_checked(begins.len())?;
        let sum = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a.checked_add(*b)).collect::<Option<Vec<_>>>();
        let (begins, ends) = (sum(begins, own_begins)?, sum(ends, own_ends)?);
        Some(Window { node, id, padding, begins, ends, pads_already })
    }

    /// Whether every pad is shorter than the window, whose taps lie side by side, and every window is whole.
    fn is_plain_pool(&self) -> Option<bool> {
        let kernel = ints_of(self.node, "kernel_shape")?;
        let shorter =
            |pads: &[i64]| pads.len() == kernel.len() && pads.iter().zip(&kernel).all(|(pad, taps)| pad < taps);
        let dense = ints_of(self.node, "dilations")?.iter().all(|&dilation| dilation == 1);
        Some(dense && int_of(self.node, "ceil_mode", 0)? == 0 && shorter(&self.begins) && shorter(&self.ends))
    }
}

fn pad_into_window(place: &mut Place<'_>) -> Option<Edit> {
    let window = Window::of(place)?;
    let number = window.padding.number(place)?;
    let mut attributes = window.node.attributes.clone();
    let operator = match window.node.op_type.as_str() {
        "Conv" if number == 0.0 => "Conv",
        "AveragePool" if number == 0.0 && place.opset >= 7 && window.is_plain_pool()? => {
            let counts = int_of(window.node, "count_include_pad", 0)? != 0;
            if window.pads_already && !counts {
                return None;
            }
            replace(&mut attributes, "count_include_pad", 1.into());
            "AveragePool"
        }
        "MaxPool" if window.is_plain_pool()? => {
            place.only_output()?;
            let input = window.padding.input;
            let never_wins =
                number == f64::NEG_INFINITY || range(place, input).is_some_and(|range| number <= range.low);
            let spatial = place.shape(input)?.get(2..)?;
            let any = spatial.iter().all(|dim| place.scope().ge(dim, &Dim::constant(1)).is_yes());
            if !never_wins || !any {
                return None;
            }
            "MaxPool"
        }
        _ => return None,
    };
    let pads: Vec<i64> = window.begins.iter().chain(&window.ends).copied().collect();
    attributes.retain(|attribute| attribute.name != "auto_pad");
    replace(&mut attributes, "pads", pads.into());
    let (input, remove) = (window.padding.input, vec![window.id, place.id]);
    let operands = std::iter::once(Some(input)).chain(window.node.inputs().iter().copied().skip(1)).map(Into::into);
    let operands = operands.collect();
    Fusion { rule: "pad-into-window", remove, like: place.id, operator, attributes, operands }.edit(place)
}
