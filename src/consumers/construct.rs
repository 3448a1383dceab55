//! Constructs that a consumer lacks.

use std::fmt;
use std::str::FromStr;

use crate::dim::Dim;
use crate::ir::{Fact, Facts, Model, Node, Type, ValueId};
use crate::tensor::DType;

/// A construct that a consumer of the result does not support, or computes slowly.
///
/// Its text form is the argument of the flag `--avoid`:
///
/// | text | nodes |
/// | --- | --- |
/// | `Loop`, `com.microsoft::Gelu` | nodes of this operator |
/// | `negative-steps` | Slices with a step that is negative, or not proved to be positive |
/// | `sequences` | nodes with an operand or a result that is a sequence or an optional |
/// | `rank>5` | nodes with a result of more axes, or of unknown rank |
/// | `dynamic` | nodes with a result for which a dim is no number |
/// | `int64` | nodes with a result of this element type |
///
/// ```
/// use onnx_slice_fold::{Construct, Options};
///
/// let options = Options::new().avoid(["negative-steps".parse::<Construct>()?, Construct::RankAbove(5)]);
/// assert_eq!(options.avoid[1].to_string(), "rank>5");
/// assert!("negative steps".parse::<Construct>().is_err());
/// # Ok::<(), onnx_slice_fold::ConstructError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Construct {
    /// Nodes of an operator.
    Operator {
        /// The domain; empty for the default one.
        domain: String,
        /// The name of the operator.
        name: String,
    },
    /// Slices with negative steps.
    NegativeSteps,
    /// Sequences and optionals.
    Sequences,
    /// Tensors with more than this number of axes.
    RankAbove(usize),
    /// Dims that are known only at run time.
    Dynamic,
    /// Tensors of an element type.
    ElementType(DType),
}

/// A text that names no construct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' names no construct; write an operator (Loop, com.microsoft::Gelu), an element type (int64), negative-steps, sequences, dynamic or rank>N"
)]
pub struct ConstructError(String);

impl FromStr for Construct {
    type Err = ConstructError;

    fn from_str(text: &str) -> Result<Self, ConstructError> {
        let error = || ConstructError(text.to_string());
        Ok(match text {
            "negative-steps" => Construct::NegativeSteps,
            "sequences" => Construct::Sequences,
            "dynamic" => Construct::Dynamic,
            _ => {
                if let Some(rank) = text.strip_prefix("rank>") {
                    return rank.parse().map(Construct::RankAbove).map_err(|_| error());
                }
                if let Some(dtype) = DType::from_name(text) {
                    return Ok(Construct::ElementType(dtype));
                }
                let (domain, name) = text.rsplit_once("::").unwrap_or(("", text));
                let domain = if domain == "ai.onnx" { "" } else { domain };
                let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                // Operators of the default domain begin with a capital letter.
                let is_name = name.chars().all(is_letter)
                    && name.starts_with(|letter: char| {
                        letter.is_ascii_uppercase() || !domain.is_empty() && is_letter(letter)
                    });
                if !is_name {
                    return Err(error());
                }
                Construct::Operator { domain: domain.to_string(), name: name.to_string() }
            }
        })
    }
}

impl fmt::Display for Construct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Construct::Operator { domain, name } if domain.is_empty() => write!(f, "{name}"),
            Construct::Operator { domain, name } => write!(f, "{domain}::{name}"),
            Construct::NegativeSteps => write!(f, "negative-steps"),
            Construct::Sequences => write!(f, "sequences"),
            Construct::RankAbove(rank) => write!(f, "rank>{rank}"),
            Construct::Dynamic => write!(f, "dynamic"),
            Construct::ElementType(dtype) => write!(f, "{dtype}"),
        }
    }
}

impl Construct {
    /// Returns `true` if the construct is an operator of the default domain with this name.
    pub(crate) fn is_operator(&self, operator: &str) -> bool {
        matches!(self, Construct::Operator { domain, name } if domain.is_empty() && name == operator)
    }

    /// Returns `true` if a node has the construct. The steps of a Slice need the slicing core, so the answer for them comes from `steps_backward`.
    pub(crate) fn is_in(&self, model: &Model, facts: &Facts, node: &Node, steps_backward: impl Fn() -> bool) -> bool {
        let results = || node.outputs().iter().flatten().copied();
        let fact = |value: ValueId| facts.get(value);
        let is_tensor =
            |value: &ValueId| matches!(fact(*value).and_then(|fact| fact.ty.as_ref()), Some(Type::Tensor(_)) | None);
        let is_read = |value: &ValueId| !model.is_unused(*value);
        let tensors = || results().filter(is_tensor).filter(is_read).map(|value| fact(value).and_then(Fact::shape));
        match self {
            Construct::Operator { domain, name } => node.canonical_domain() == domain && node.op_type == *name,
            Construct::NegativeSteps => steps_backward(),
            Construct::Sequences => {
                let is_container = |value: ValueId| {
                    matches!(fact(value).and_then(|fact| fact.ty.as_ref()), Some(Type::Sequence(_) | Type::Optional(_)))
                };
                results().chain(node.inputs().iter().flatten().copied()).any(is_container)
            }
            Construct::RankAbove(rank) => tensors().any(|dims| dims.is_none_or(|dims| dims.len() > *rank)),
            Construct::Dynamic => {
                let is_number = |dim: &Dim| dim.as_const().is_some();
                tensors().any(|dims| dims.is_none_or(|dims| !dims.iter().all(is_number)))
            }
            Construct::ElementType(dtype) => results().any(|value| fact(value).and_then(Fact::dtype) == Some(*dtype)),
        }
    }
}
