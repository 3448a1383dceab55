//! Guards for narrow element types: types for which few kernels exist, and quantization to them.
//!
//! ONNX Runtime has no kernels for most operators that move floats of eight bits or fewer, or integers of fewer than eight bits: it
//! supports Reshape of float8, but not Unsqueeze. An edit adds such an operator only in place of the same operator.
//!
//! ONNX Runtime moves a QuantizeLinear from the result of a Slice, Transpose, Reshape, Squeeze, Unsqueeze or MaxPool to its operand, and a
//! DequantizeLinear from the operand to the result. For floats of eight bits or fewer and integers of two bits it has no such kernels, so
//! it refuses the model that it has produced. The author's own nodes are kept, but no edit puts such an operator next to such a
//! quantization.

use super::place::Place;
use crate::ir::{Edit, Node, Users, ValueId};
use crate::ops::traits::CARRYING_QUANTIZATION;
use crate::ops::{has_kernel_for_narrow, operator};
use crate::tensor::DType;

/// Returns `true` if the edit puts no operator that ONNX Runtime moves across quantization next to a quantization to a narrow type.
pub(super) fn passes_nothing_narrow(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let reader = |value: ValueId, is_one: &dyn Fn(&Node) -> bool| {
        let readers = if value.is_placeholder() { Users::new() } else { model.users(value) };
        readers.into_iter().any(|(id, slot)| slot == 0 && model.node(id).is_some_and(is_one))
    };
    let changed = edit.changed_operands(model).filter(|&(_, slot, _)| slot == 0).all(|(id, _, new)| {
        let Some((node, old)) = model.node(id).and_then(|node| Some((node, node.input(0)?))) else { return true };
        let (then, now) = (Maker::then(place, edit, new), Maker::now(place, old));
        let is_passed = CARRYING_QUANTIZATION.iter().any(|operator| node.is(operator));
        !(is_passed && then.dequantizes(place) && !now.dequantizes(place)
            || quantizes(place, node) && then.is_passed() && !now.is_passed())
    });
    changed
        && edit.insert.iter().filter(|node| is_default(&node.domain)).all(|node| {
            let Some(operand) = node.inputs.first().copied().flatten() else { return true };
            let maker = Maker::then(place, edit, operand);
            let is_passed = |node: &Node| CARRYING_QUANTIZATION.iter().any(|operator| node.is(operator));
            match node.op_type.as_str() {
                "QuantizeLinear" => {
                    let point = node.inputs.get(2).copied().flatten();
                    !is_narrow(place, point) || !maker.is_passed() || reader(operand, &|node| quantizes(place, node))
                }
                operator if CARRYING_QUANTIZATION.contains(&operator) => {
                    !maker.dequantizes(place) || reader(operand, &is_passed)
                }
                _ => true,
            }
        })
}

/// Returns `true` if each added operator that moves narrow elements has a kernel in ONNX Runtime, or replaces the same operator.
pub(super) fn moves_nothing_narrow(place: &Place<'_>, edit: &Edit) -> bool {
    let first = |node: &Node| node.input(0).and_then(|operand| place.dtype(operand));
    edit.insert.iter().filter(|node| ["", "ai.onnx"].contains(&node.domain.as_str())).all(|node| {
        if ["Cast", "CastLike", "DequantizeLinear", "QuantizeLinear", "Shape", "Size"].contains(&node.op_type.as_str())
        {
            return true;
        }
        let Some(dtype) = node.inputs.first().copied().flatten().and_then(|operand| dtype_then(place, edit, operand))
        else {
            return true;
        };
        let mut removed = edit.remove.iter().filter_map(|&id| place.model.node(id));
        has_kernel_for_narrow(&node.op_type, dtype, place.opset.version())
            || removed.any(|old| old.is(&node.op_type) && first(old) == Some(dtype))
    })
}

/// Returns the element type of a value after an edit. Inserted operators that move elements have the type of their first operand.
fn dtype_then(place: &Place<'_>, edit: &Edit, mut value: ValueId) -> Option<DType> {
    for _ in 0..=edit.insert.len() {
        if !value.is_placeholder() {
            return place.dtype(value);
        }
        let node = edit.insert.iter().find(|node| node.outputs.contains(&Some(value)))?;
        let traits = operator(&node.domain, &node.op_type)?.traits;
        if traits.moves.is_none() && !traits.carries_quantization {
            return None;
        }
        value = node.inputs.first().copied().flatten()?;
    }
    None
}

/// The operator that computes a value, and its first operand.
struct Maker<'m> {
    operator: &'m str,
    operand: Option<ValueId>,
}

impl<'m> Maker<'m> {
    const NONE: Maker<'static> = Maker { operator: "", operand: None };

    /// Returns the producer before the edit.
    fn now(place: &Place<'m>, value: ValueId) -> Self {
        let node = if value.is_placeholder() { None } else { place.model.value(value).producer() };
        let node = node.and_then(|id| place.model.node(id)).filter(|node| is_default(node.canonical_domain()));
        node.map_or(Maker::NONE, |node| Maker { operator: &node.op_type, operand: node.input(0) })
    }

    /// Returns the producer after the edit.
    fn then(place: &Place<'m>, edit: &'m Edit, value: ValueId) -> Self {
        match edit.insert.iter().find(|node| node.outputs.contains(&Some(value))) {
            Some(node) if is_default(&node.domain) => {
                Maker { operator: &node.op_type, operand: node.inputs.first().copied().flatten() }
            }
            Some(_) => Maker::NONE,
            None => Maker::now(place, value),
        }
    }

    fn is_passed(&self) -> bool {
        CARRYING_QUANTIZATION.contains(&self.operator)
    }

    /// Returns `true` for a DequantizeLinear of narrow elements.
    fn dequantizes(&self, place: &Place<'_>) -> bool {
        self.operator == "DequantizeLinear" && is_narrow(place, self.operand)
    }
}

/// Returns `true` for the default domain and for `com.microsoft`, which defines its own QuantizeLinear and DequantizeLinear.
fn is_default(domain: &str) -> bool {
    ["", "ai.onnx", "com.microsoft"].contains(&domain)
}

/// Returns `true` for a QuantizeLinear to narrow elements.
fn quantizes(place: &Place<'_>, node: &Node) -> bool {
    node.op_type == "QuantizeLinear" && is_default(node.canonical_domain()) && is_narrow(place, node.output(0))
}

fn is_narrow(place: &Place<'_>, value: Option<ValueId>) -> bool {
    let dtype = value.filter(|value| !value.is_placeholder()).and_then(|value| place.dtype(value));
    dtype.is_some_and(|dtype| dtype.is_small_float() || matches!(dtype, DType::Int2 | DType::Uint2))
}
