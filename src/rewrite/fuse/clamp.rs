//! Cuts at constant bounds: Relu and Clip.
//!
//! Laws, with `cut(x, a, b) = min(max(x, a), b)`:
//!
//! * `cut(cut(x, a, b), c, d) = cut(x, max(a, c), min(b, d))` where the intervals meet
//! * `cut(x, a, b) = x` where `a ≤ x ≤ b`
//!
//! Of NaN both make NaN. The range of what is cut is that of kernels, which may reach beyond the function's: ONNX Runtime's Sigmoid
//! gives 1 + 2⁻²³. What becomes of the sign of zero is a runtime's own business, before and after.

use super::{Fusion, Operand, Place, Rule, rounded};
use crate::ir::{Attribute, Edit, NamedAttribute, NodeId, ValueId};
use crate::ops::traits::Range;
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
    /// The bounds are those that its operator says its results lie between, whatever it is given.
    fn of(place: &Place<'_>, id: NodeId) -> Option<Cut> {
        let view = place.view(id).filter(|view| view.node.is("Relu") || view.node.is("Clip"))?;
        let Range { low, high, .. } = view.traits().range?(&view, &|_| None)?;
        Some(Cut { input: view.input(0)?, low, high })
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

/// Between which numbers the elements of a floating point value lie, whatever the model's inputs are.
pub(super) fn range(place: &Place<'_>, value: ValueId) -> Option<Range> {
    range_above(place, value, REACH)
}

fn range_above(place: &Place<'_>, value: ValueId, reach: usize) -> Option<Range> {
    last_finite(place.dtype(value)?)?;
    let reach = reach.checked_sub(1)?;
    let view = place.view(place.model.value(value).producer()?)?;
    let operand = |slot: usize| range_above(place, view.input(slot)?, reach);
    let traits = view.traits();
    match traits.range {
        Some(range) => range(&view, &operand),
        None if traits.moves_first() => operand(0),
        None => None,
    }
}

fn needless(place: &mut Place<'_>) -> Option<Edit> {
    let cut = Cut::of(place, place.id)?;
    // Of NaN a cut makes NaN.
    let Range { low, high, .. } = range(place, cut.input)?;
    if low < cut.low || high > cut.high || !place.may_forward(cut.input) {
        return None;
    }
    place.forward("needless-cut", cut.input)
}

fn cut_of_cut(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let outer = Cut::of(place, place.id)?;
    let id = place.model.value(outer.input).producer()?;
    let inner = place.model.node(id).filter(|inner| inner.graph() == node.graph())?;
    let first = Cut::of(place, id)?;
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
