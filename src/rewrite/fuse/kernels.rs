//! Which spelled-out idioms may become which operator for which element type.
//!
//! The standard defines an operator for more types than a runtime has kernels for. A formula of Add, Mul and the like runs for all
//! of them, so it may become one operator only where that loads as well. The table is what ONNX Runtime loads on the CPU,
//! found by loading a model of the one operator for every type:
//!
//! | operator | float | double | float16 | bfloat16 |
//! | --- | --- | --- | --- | --- |
//! | Gelu, HardSigmoid, HardSwish, InstanceNormalization, RotaryEmbedding | yes | no | yes | no |
//! | Mish | yes | no from 22 on | yes | no |
//! | Swish | in 24 alone | in 24 alone | in 24 alone | no |
//! | Attention | yes | yes | yes | no |
//! | LayerNormalization, RMSNormalization | yes | yes | yes | not all |
//!
//! Of some operators the runtime has no kernel, but makes their nodes of the standard's definition. That is no loss where the formula has
//! as many nodes. Of Swish it finds a definition in operator set 24 alone, and makes four nodes of it (a Cast of α among them), where the
//! Sigmoid and the product become one kernel of its own (QuickGelu): they become Swish only if somebody asked for that operator set.
//!
//! An attribute is a float32 whatever the type of the operands: see [`as_attribute`].

use crate::ir::ValueId;
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// Whether an operator that stands for a formula has a kernel for operands of a type in an operator set.
pub(super) fn has_kernel(operator: &str, dtype: DType) -> bool {
    match dtype {
        DType::Float | DType::Float16 => true,
        DType::Double => matches!(operator, "Attention" | "Swish" | "LayerNormalization" | "RMSNormalization"),
        _ => false,
    }
}

/// Whether Gemm is defined on these elements.
pub(super) fn has_gemm(place: &Place<'_>, value: ValueId) -> bool {
    match place.dtype(value) {
        Some(DType::Float | DType::Double | DType::Float16) => true,
        Some(DType::Bfloat16) => place.opset.computes_in_bfloat16(),
        _ => false,
    }
}

/// A constant of a formula over `dtype` as the attribute of an operator. `None` where the attribute would be less precise than
/// the constant: a double that is no float32.
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
    fn what_a_runtime_lacks_is_not_made() {
        assert!(!has_kernel("HardSwish", DType::Double) && !has_kernel("Gelu", DType::Double));
        assert!(has_kernel("Gelu", DType::Float) && !has_kernel("Gelu", DType::Bfloat16));
        assert!(has_kernel("Swish", DType::Double) && !has_kernel("Swish", DType::Bfloat16));
    }
}
