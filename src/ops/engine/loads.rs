//! The opset-dependent support of operators in ONNX Runtime.
//!
//! ONNX Runtime has a kernel for each version of an operator. For element types without a kernel it expands the node
//! by the standard's definition. A kernel may be missing for a newer version. The expansion works only if the
//! definition is for exactly the model's opset. Measured on the CPU by loading a model of one node in each opset from
//! 7 to 24, for each element type:
//!
//! | operator | element type | opsets |
//! | --- | --- | --- |
//! | Bernoulli, GlobalLpPool, MaxRoiPool, Multinomial, RandomNormal, RandomNormalLike, RandomUniform, RandomUniformLike, RoiAlign | all | up to 21 |
//! | LeakyRelu | double | 16 to 18 |
//! | PRelu | double, int32, int64, uint32 | 16 to 18 |
//! | Elu, HardSigmoid, HardSwish, Mish, Selu, Softplus, Softsign, ThresholdedRelu | double | 18 |
//! | MeanVarianceNormalization | float16 | all but 9, 10, 13, 18 |
//!
//! All other operators load in a newer opset if they load in an older one.
//!
//! Few operators move elements of fewer than eight bits, and floats of eight bits ([`has_kernel_for_narrow`]).
//! Measured in the same way for Concat, Expand, Flatten, Gather, Identity, Reshape, Slice, Split, Squeeze, Tile,
//! Transpose and Unsqueeze:
//!
//! | elements | moved by |
//! | --- | --- |
//! | floats of eight bits | Identity from 19, Reshape and Transpose from 21 |
//! | integers of four bits | Transpose from 21 |
//! | integers of two bits | Transpose from 25 |
//! | floats of four bits | none |

use crate::tensor::DType;

/// Returns `true` if ONNX Runtime loads an operator of the default domain with this element type, as far as that
/// depends on the opset.
pub fn is_loaded(operator: &str, dtype: Option<DType>, opset: i64) -> bool {
    let has_definition = match (operator, dtype) {
        (
            "Bernoulli" | "GlobalLpPool" | "MaxRoiPool" | "Multinomial" | "RandomNormal" | "RandomNormalLike"
            | "RandomUniform" | "RandomUniformLike" | "RoiAlign",
            _,
        ) => return opset < 22,
        ("MeanVarianceNormalization", Some(DType::Float16)) => return !matches!(opset, 9 | 10 | 13 | 18),
        ("LeakyRelu", Some(DType::Double)) => 16..=18,
        ("PRelu", Some(DType::Double | DType::Int32 | DType::Int64 | DType::Uint32)) => 16..=18,
        (
            "Elu" | "HardSigmoid" | "HardSwish" | "Mish" | "Selu" | "Softplus" | "Softsign" | "ThresholdedRelu",
            Some(DType::Double),
        ) => 18..=18,
        _ => return true,
    };
    has_definition.contains(&opset)
}

/// Returns `true` if ONNX Runtime has a kernel of the operator that moves elements of this type. Only narrow types
/// lack kernels.
pub fn has_kernel_for_narrow(operator: &str, dtype: DType, opset: i64) -> bool {
    use DType::*;
    match (operator, dtype) {
        ("Identity", Float8E4M3FN | Float8E4M3FNUZ | Float8E5M2 | Float8E5M2FNUZ) => opset >= 19,
        ("Reshape" | "Transpose", Float8E4M3FN | Float8E4M3FNUZ | Float8E5M2 | Float8E5M2FNUZ) => opset >= 21,
        ("Transpose", Int4 | Uint4) => opset >= 21,
        ("Transpose", Int2 | Uint2) => opset >= 25,
        _ => !dtype.is_small_float() && !dtype.is_packed(),
    }
}
