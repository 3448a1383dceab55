//! What ONNX Runtime loads in some operator sets and not in others.
//!
//! It has a kernel for each version of an operator, or, for element types without one, writes the node out as the standard defines it. The former
//! may be missing for a version that is newer than the kernel; the latter it does only where the definition is one for the very
//! operator set of the model. Measured on the CPU by loading a model of the one node in each operator set from 7 to 24, for each element
//! type:
//!
//! | operator | element type | operator sets |
//! | --- | --- | --- |
//! | Bernoulli, GlobalLpPool, MaxRoiPool, Multinomial, RandomNormal, RandomNormalLike, RandomUniform, RandomUniformLike, RoiAlign | all | up to 21 |
//! | LeakyRelu | double | 16 to 18 |
//! | PRelu | double, int32, int64, uint32 | 16 to 18 |
//! | Elu, HardSigmoid, HardSwish, Mish, Selu, Softplus, Softsign, ThresholdedRelu | double | 18 |
//! | MeanVarianceNormalization | float16 | all but 9, 10, 13, 18 |
//!
//! Everything else it loads in a newer operator set if it does in an older one.

//!
//! Elements of fewer than eight bits, and floats of eight, it moves by few operators only ([`has_kernel_for_narrow`]). Measured likewise, for
//! Concat, Expand, Flatten, Gather, Identity, Reshape, Slice, Split, Squeeze, Tile, Transpose and Unsqueeze:
//!
//! | elements | moved by |
//! | --- | --- |
//! | floats of eight bits | Identity from 19, Reshape and Transpose from 21 |
//! | integers of four bits | Transpose from 21 |
//! | integers of two bits | Transpose from 25 |
//! | floats of four bits | none |

use crate::tensor::DType;

/// Whether ONNX Runtime loads an operator of the default domain for operands of a type in an operator set, as far as that depends on the
/// operator set.
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

/// Whether ONNX Runtime has a kernel of an operator of the default domain that moves elements of a type, which matters for those that few
/// kernels take.
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
