//! The operators that may replace a formula, by element type.
//!
//! The standard defines an operator for more types than a runtime has kernels for. A formula of Add and Mul runs for all of them, so it
//! becomes one operator only if that loads as well. The table lists the types that ONNX Runtime loads on the CPU, measured with a model of
//! one node for each type:
//!
//! | operator | float | double | float16 | bfloat16 |
//! | --- | --- | --- | --- | --- |
//! | Gelu, HardSigmoid, HardSwish, InstanceNormalization, RotaryEmbedding | yes | no | yes | no |
//! | Mish | yes | no from 22 on | yes | no |
//! | Swish | in 24 alone | in 24 alone | in 24 alone | no |
//! | Attention | yes | yes | yes | no |
//! | LayerNormalization, RMSNormalization | yes | yes | yes | not all |
//!
//! For some operators the runtime has no kernel and inlines the standard's function instead. This costs nothing if the formula has as many
//! nodes. For Swish it has a function in opset 24 only, of four nodes (with a Cast of α), while it fuses the Sigmoid and the product into
//! QuickGelu. So the formula becomes Swish only if the user requests that opset.
//!
//! An attribute is a float32 for operands of any type: see [`as_attribute`].

use crate::ir::ValueId;
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// Returns `true` if an operator that replaces a formula has a kernel for operands of a type.
pub(super) fn has_kernel(operator: &str, dtype: DType) -> bool {
    match dtype {
        DType::Float | DType::Float16 => true,
        DType::Double => matches!(operator, "Attention" | "Swish" | "LayerNormalization" | "RMSNormalization"),
        _ => false,
    }
}

/// Returns `true` if Gemm is defined on the element type of a value.
pub(super) fn has_gemm(place: &Place<'_>, value: ValueId) -> bool {
    match place.dtype(value) {
        Some(DType::Float | DType::Double | DType::Float16) => true,
        Some(DType::Bfloat16) => place.opset.computes_in_bfloat16(),
        _ => false,
    }
}

/// Returns a constant of a formula over `dtype` as an attribute. `None` if the attribute would lose precision: a double that is not a
/// float32.
pub(super) fn as_attribute(number: f64, dtype: DType) -> Option<f32> {
    let attribute = number as f32;
    let holds = dtype != DType::Double || f64::from(attribute) == number;
    (attribute.is_finite() && holds).then_some(attribute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_as_precise_as_the_constant() {
        assert_eq!(as_attribute(1.702, DType::Float), Some(1.702));
        assert_eq!(as_attribute(1.702, DType::Double), None);
        assert_eq!(as_attribute(1.5, DType::Double), Some(1.5));
        assert_eq!(as_attribute(1e300, DType::Float), None);
    }

    #[test]
    fn operators_without_a_kernel_are_not_written() {
        assert!(!has_kernel("HardSwish", DType::Double) && !has_kernel("Gelu", DType::Double));
        assert!(has_kernel("Gelu", DType::Float) && !has_kernel("Gelu", DType::Bfloat16));
        assert!(has_kernel("Swish", DType::Double) && !has_kernel("Swish", DType::Bfloat16));
    }
}
