//! Cuts at constant bounds: Relu and Clip.
//!
//! Laws, with `cut(x, a, b) = min(max(x, a), b)`:
//!
//! * `cut(cut(x, a, b), c, d) = cut(x, max(a, c), min(b, d))` where the intervals meet
//! * `cut(x, a, b) = x` where `a ≤ x ≤ b`
//!
//! What becomes of NaN and of the sign of zero is a runtime's own business, before and after.

use super::{Fusion, Operand, Place, Rule, float_of, is_unpadded, rounded};
use crate::ir::{Attribute, Edit, NamedAttribute, Node, ValueId};
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule { name: "needless-cut", operators: &["Relu", "Clip"], exact: true, apply: needless },
    Rule { name: "cut-of-cut", operators: &["Relu", "Clip"], exact: true, apply: cut_of_cut },
];

/// How many nodes up it is looked for what bounds a value.
const REACH: usize = 16;

/// A Relu or a Clip.
#[derive(Clone, Copy)]
struct Cut {
    input: ValueId,
    low: f64,
    high: f64,
}

impl Cut {
    fn of(place: &Place<'_>, node: &Node) -> Option<Cut> {
        let input = node.input(0)?;
        if node.is("Relu") {
            return Some(Cut { input, low: 0.0, high: f64::INFINITY });
        }
        if !node.is("Clip") || place.opset < 6 {
            return None;
        }
        let (low, high) = if place.opset < 11 {
            (float_of(node, "min", f32::MIN)?.into(), float_of(node, "max", f32::MAX)?.into())
        } else {
            // A bound that is left out is the type's last finite number.
            let last = last_finite(place.dtype(input)?)?;
            let bound = |slot: usize, absent: f64| match node.input(slot) {
                None => Some(absent),
                Some(value) => place.scalar(value),
            };
            (bound(1, -last)?, bound(2, last)?)
        };
        // False for NaN, too.
        (low <= high).then_some(Cut { input, low, high })
    }
}

/// The largest finite number of the types these rules know.
fn last_finite(dtype: DType) -> Option<f64> {
    match dtype {
        DType::Float => Some(f32::MAX.into()),
        DType::Double => Some(f64::MAX),
        DType::Float16 => Some(65504.0),
        _ => None,
    }
}

/// Between which numbers, both included, the elements of a floating point value lie, whatever the model's inputs are; NaN
/// aside.
pub(super) fn range(place: &Place<'_>, mut value: ValueId) -> Option<(f64, f64)> {
    last_finite(place.dtype(value)?)?;
    for _ in 0..REACH {
        let node = place.model.node(place.model.value(value).producer()?)?;
        if !node.canonical_domain().is_empty() {
            return None;
        }
        match node.op_type.as_str() {
            "Relu" | "Clip" => return Cut::of(place, node).map(|cut| (cut.low, cut.high)),
            "Sigmoid" | "HardSigmoid" => return Some((0.0, 1.0)),
            "Exp" | "Softmax" | "Softplus" | "Abs" | "ReduceL1" | "ReduceL2" | "ReduceSumSquare" => {
                return Some((0.0, f64::INFINITY));
            }
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "Identity" | "Slice" | "Split"
            | "Gather" | "Expand" | "Tile" | "GlobalMaxPool" => value = node.input(0)?,
            // Where nothing is padded, the first tap of every window lies on an element.
            "MaxPool" if is_unpadded(node)? => value = node.input(0)?,
            _ => return None,
        }
    }
    None
}

fn needless(place: &mut Place<'_>) -> Option<Edit> {
    let cut = Cut::of(place, place.node()?)?;
    let (low, high) = range(place, cut.input)?;
    if low < cut.low || high > cut.high || !place.may_forward(cut.input) {
        return None;
    }
    place.forward("needless-cut", cut.input)
}

fn cut_of_cut(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let outer = Cut::of(place, node)?;
    let id = place.model.value(outer.input).producer()?;
    let inner = place.model.node(id).filter(|inner| inner.graph() == node.graph())?;
    let first = Cut::of(place, inner)?;
    let dtype = place.dtype(first.input)?;
    let last = last_finite(dtype)?;
    let (low, high) = (outer.low.max(first.low), outer.high.min(first.high));
    // Without any finite bound on a side, as after two Relus, it is no Clip.
    if low > high || !low.is_finite() || !high.is_finite() || !place.is_internal(outer.input, &[place.id]) {
        return None;
    }
    let mut operands = vec![Operand::Value(first.input)];
    let mut attributes = Vec::new();
    for (slot, name, bound, absent) in [(1, "min", low, -last), (2, "max", high, last)] {
        if place.opset >= 11 {
            let like = node.input(slot).or(inner.input(slot)).or(place.output(0))?;
            let given = bound != absent;
            operands.push(if given { Operand::Constant(exact(dtype, bound)?, like) } else { Operand::Absent });
        } else {
            let narrow = bound as f32;
            if f64::from(narrow) != bound {
                return None;
            }
            attributes.push(NamedAttribute::new(name, Attribute::Float(narrow)));
        }
    }
    let remove = vec![id, place.id];
    Fusion { rule: "cut-of-cut", remove, like: place.id, operator: "Clip", attributes, operands }.edit(place)
}

/// A scalar, if it is a number of the type.
fn exact(dtype: DType, number: f64) -> Option<crate::tensor::Tensor> {
    rounded(dtype, &[], &[number]).filter(|tensor| tensor.to_f64s().is_some_and(|numbers| numbers == [number]))
}
