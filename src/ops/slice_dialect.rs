//! The dialects of strided slices, and the operators that each dialect covers.

/// The domain of TensorFlow's operators.
pub(super) const TENSORFLOW: &str = "ai.onnx.converters.tensorflow";
/// The domain of OpenVINO's operators.
pub(super) const OPENVINO: &str = "ai.intel.openvino";

/// The dialects of strided slices outside of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceDialect {
    /// TensorFlow StridedSlice: operands x, begin, end, strides; masks are INTs, one bit per entry.
    Tensorflow,
    /// OpenVINO StridedSlice-1: operands data, begin, end, optional strides; masks are INTS or STRINGs, one element per entry.
    Openvino,
    /// OpenVINO Slice-8: operands data, start, stop, step, optional axes.
    OpenvinoSlice,
}

impl SliceDialect {
    /// The dialects with their names on the command line.
    pub(super) const NAMES: [(&'static str, SliceDialect); 3] = [
        ("tensorflow", SliceDialect::Tensorflow),
        ("openvino", SliceDialect::Openvino),
        ("openvino-slice", SliceDialect::OpenvinoSlice),
    ];
}

/// Returns domain and name of the native operator of a dialect.
pub(super) fn operator_of_dialect(dialect: SliceDialect) -> (&'static str, &'static str) {
    match dialect {
        SliceDialect::Tensorflow => (TENSORFLOW, "StridedSlice"),
        SliceDialect::Openvino => (OPENVINO, "StridedSlice"),
        SliceDialect::OpenvinoSlice => (OPENVINO, "Slice"),
    }
}

/// Returns `true` if an operator of the table follows a dialect's rules.
pub(super) fn is_of_dialect(domain: &str, name: &str, dialect: SliceDialect) -> bool {
    (domain, name) == operator_of_dialect(dialect)
        || (domain, name, dialect) == ("", "StridedSlice", SliceDialect::Tensorflow)
}
