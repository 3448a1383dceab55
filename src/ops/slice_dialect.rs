//! The dialects of strided slices, and the operators of the table that are read by their rules.

/// The domain of TensorFlow's own operators.
pub(super) const TENSORFLOW: &str = "ai.onnx.converters.tensorflow";
/// The domain of OpenVINO's own operators.
pub(super) const OPENVINO: &str = "ai.intel.openvino";

/// The dialects of strided slices that nodes outside of the standard may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceDialect {
    /// TensorFlow StridedSlice: operands x, begin, end, strides; masks are INTs, a bit an entry.
    Tensorflow,
    /// OpenVINO StridedSlice-1: operands data, begin, end, optional strides; masks are INTS or STRINGs, an element an entry.
    Openvino,
    /// OpenVINO Slice-8: operands data, start, stop, step, optional axes.
    OpenvinoSlice,
}

impl SliceDialect {
    /// The dialects, as they are called on the command line.
    pub(super) const NAMES: [(&'static str, SliceDialect); 3] = [
        ("tensorflow", SliceDialect::Tensorflow),
        ("openvino", SliceDialect::Openvino),
        ("openvino-slice", SliceDialect::OpenvinoSlice),
    ];
}

/// Domain and name of the operator that is a dialect's own.
pub(super) fn operator_of_dialect(dialect: SliceDialect) -> (&'static str, &'static str) {
    match dialect {
        SliceDialect::Tensorflow => (TENSORFLOW, "StridedSlice"),
        SliceDialect::Openvino => (OPENVINO, "StridedSlice"),
        SliceDialect::OpenvinoSlice => (OPENVINO, "Slice"),
    }
}

/// Whether an operator of the table is read by a dialect's rules.
pub(super) fn is_of_dialect(domain: &str, name: &str, dialect: SliceDialect) -> bool {
    (domain, name) == operator_of_dialect(dialect)
        || (domain, name, dialect) == ("", "StridedSlice", SliceDialect::Tensorflow)
}
