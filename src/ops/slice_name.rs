//! Aliases of strided slices, for exporters with custom operators.

use std::str::FromStr;

use super::operator;
use super::slice_dialect::{SliceDialect, is_of_dialect, operator_of_dialect};
use crate::ir::Synonym;

/// A custom operator that is a strided slice of some dialect: `DOMAIN::OP=DIALECT` on the command line, `OP=DIALECT` in the default
/// domain.
///
/// ```
/// use onnx_slice_fold::{Options, SliceDialect, SliceName};
///
/// let name: SliceName = "com.example::Crop=openvino".parse()?;
/// assert_eq!(name, SliceName::new("com.example", "Crop", SliceDialect::Openvino)?);
/// let options = Options::new().slice_names([name]);
/// // What the program knows already keeps its meaning.
/// assert!("Slice=tensorflow".parse::<SliceName>().is_err());
/// # Ok::<(), onnx_slice_fold::SliceNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceName {
    domain: String,
    op_type: String,
    dialect: SliceDialect,
}

/// An error for a name that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SliceNameError {
    /// The syntax is invalid.
    #[error("'{0}' is not DOMAIN::OP=DIALECT, or OP=DIALECT for the default domain")]
    Syntax(String),
    /// The dialect does not exist.
    #[error("unknown dialect '{0}'; the dialects are tensorflow, openvino and openvino-slice")]
    NoDialect(String),
    /// The name is that of an operator with another meaning.
    #[error("the program already defines the operator {0}")]
    Taken(String),
}

impl SliceName {
    /// Returns the operator, with its domain unless that is the default one: `com.example.Crop`.
    pub fn operator(&self) -> String {
        if self.domain.is_empty() { self.op_type.clone() } else { format!("{}.{}", self.domain, self.op_type) }
    }

    /// Returns the registration of an operator as a slice of a dialect. The default domain is `""` or `ai.onnx`.
    ///
    /// # Errors
    /// The name is empty, or that of an operator with another meaning.
    pub fn new(domain: &str, op_type: &str, dialect: SliceDialect) -> Result<SliceName, SliceNameError> {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        let name = SliceName { domain: domain.to_string(), op_type: op_type.to_string(), dialect };
        let say = || if domain.is_empty() { op_type.to_string() } else { format!("{domain}::{op_type}") };
        if op_type.is_empty() {
            return Err(SliceNameError::Syntax(say()));
        }
        if operator(domain, op_type).is_some() && !is_of_dialect(domain, op_type, dialect) {
            return Err(SliceNameError::Taken(say()));
        }
        Ok(name)
    }

    /// Returns the alias for the model.
    pub(crate) fn synonym(&self) -> Synonym {
        let (domain, op_type) = operator_of_dialect(self.dialect);
        Synonym {
            domain: self.domain.clone(),
            op_type: self.op_type.clone(),
            means: (domain.to_string(), op_type.to_string()),
        }
    }
}

impl FromStr for SliceName {
    type Err = SliceNameError;

    fn from_str(text: &str) -> Result<SliceName, SliceNameError> {
        let syntax = || SliceNameError::Syntax(text.to_string());
        let (name, dialect) = text.rsplit_once('=').ok_or_else(syntax)?;
        let (domain, op_type) = name.rsplit_once("::").unwrap_or(("", name));
        let known = SliceDialect::NAMES.into_iter().find(|(known, _)| *known == dialect);
        let (_, dialect) = known.ok_or_else(|| SliceNameError::NoDialect(dialect.to_string()))?;
        if op_type.is_empty() || op_type.contains([' ', '=', ':']) {
            return Err(syntax());
        }
        SliceName::new(domain, op_type, dialect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_checked() {
        let read = |text: &str| text.parse::<SliceName>();
        let new = SliceName::new;
        assert_eq!(read("a.b::C=tensorflow"), new("a.b", "C", SliceDialect::Tensorflow));
        assert_eq!(read("C=openvino-slice"), new("", "C", SliceDialect::OpenvinoSlice));
        assert_eq!(read("ai.onnx::C=openvino"), read("C=openvino"));
        // A name that already has this meaning may be registered again.
        assert!(read("StridedSlice=tensorflow").is_ok());
        assert!(read("ai.intel.openvino::Slice=openvino-slice").is_ok());
        for text in ["", "C", "=tensorflow", "a::=tensorflow", "C =tensorflow", "a:C=openvino"] {
            assert!(matches!(read(text), Err(SliceNameError::Syntax(_))), "{text}");
        }
        assert_eq!(read("C=onnx"), Err(SliceNameError::NoDialect("onnx".into())));
        for text in ["Slice=tensorflow", "Relu=openvino", "StridedSlice=openvino", "ai.intel.openvino::Slice=openvino"]
        {
            assert!(matches!(read(text), Err(SliceNameError::Taken(_))), "{text}");
        }
    }
}
