//! The shared slicing core.

/// How the cases are read in which ONNX Runtime, the operator's text and the reference implementation disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Only what ONNX Runtime and the text agree on is stated or folded.
    #[default]
    Agree,
    /// As ONNX Runtime computes it.
    OnnxRuntime,
    /// As the operator's text has it.
    Spec,
    /// As the reference implementation and numpy have it.
    Numpy,
}
