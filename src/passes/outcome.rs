//! The outcome of a run of the passes, and its errors.

use super::assume::AssumeError;
use super::edits::{Fired, LastEdit};
use super::profile::PassRun;
use crate::ir::{Broken, Facts};
use crate::ops::{EventKind, Refusal};

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The facts about the remaining values.
    pub facts: Facts,
    /// The notes, by node description.
    pub notes: Vec<(String, EventKind, String)>,
    /// The number of rounds.
    pub rounds: usize,
    /// The old and the new operator set, if the model was converted.
    pub opset: Option<(i64, i64)>,
    /// The number of edits of each rewrite rule and pass.
    pub fired: Fired,
    /// The last edit.
    pub last_edit: Option<LastEdit>,
    /// All edits in order, if they are recorded.
    pub edits: Vec<LastEdit>,
    /// The cost of the passes.
    pub passes: Vec<PassRun>,
    /// Each run of a pass with edits, and the number of edits at its end.
    pub ends: Vec<(&'static str, usize)>,
    /// Knowledge about sizes that the model no longer implies.
    pub remembers: String,
}

/// The reason why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model was or became inconsistent.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A pass made the model inconsistent: a defect of this program.
    #[error("pass '{pass}' made the model invalid{}: {broken}", last_edit.as_ref().map(|edit| format!(", the last edit was {edit}")).unwrap_or_default())]
    Defect {
        /// The pass.
        pass: &'static str,
        /// The last edit.
        last_edit: Option<LastEdit>,
        /// The inconsistency.
        broken: Broken,
    },
    /// An assumption is impossible.
    #[error(transparent)]
    Assumption(#[from] AssumeError),
    /// A rule or pass in `skip` or `only` does not exist.
    #[error(transparent)]
    NoRule(#[from] NoRule),
    /// A construct in `avoid` names an operator that does not exist.
    #[error(transparent)]
    NoOperator(#[from] NoOperator),
    /// The model cannot be walked.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The model cannot be written in the requested operator set.
    #[error(transparent)]
    Opset(#[from] OpsetError),
    /// Every run needs a node that is invalid at all sizes.
    #[error("every run of the model fails: {node}: {reason}")]
    Impossible {
        /// The node.
        node: String,
        /// The reason why it is invalid.
        reason: String,
    },
    /// The declared types of tensors are false, or no node can compute with them.
    #[error("the model is inconsistent: {place}: {reason}")]
    Contradiction {
        /// The node or tensor.
        place: String,
        /// The declaration, and its contradiction.
        reason: String,
    },
}

/// The reason why the model cannot be converted to another operator set.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpsetError {
    /// The operator set does not exist.
    #[error("unknown operator set {asked}; the supported ones are 1 to {newest}")]
    NoSuch {
        /// The requested version.
        asked: i64,
        /// The newest known version.
        newest: i64,
    },
    /// The model cannot be converted as a whole.
    #[error("cannot convert the model to operator set {to}: {reason}")]
    Model {
        /// The requested version.
        to: i64,
        /// The reason, and the remedy.
        reason: String,
    },
    /// A node cannot be written in the operator set.
    #[error("cannot convert {node} from operator set {from} to {to}: {reason}{}", others(*.more))]
    Node {
        /// The node.
        node: String,
        /// The version of the node.
        from: i64,
        /// The requested version.
        to: i64,
        /// The reason, and the remedy.
        reason: String,
        /// The number of other nodes that cannot be converted.
        more: usize,
    },
}

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => " (and one more node cannot be converted)".to_string(),
        more => format!(" (and {more} more nodes cannot be converted)"),
    }
}

/// A name without a rule or pass.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no rule or pass is named '{name}'{}; `onnx-slice-fold rules` lists all names", hint(similar))]
pub struct NoRule {
    /// The name.
    pub name: String,
    /// Names of rules and passes that the user may have meant, the most similar first.
    pub similar: Vec<&'static str>,
}

impl NoRule {
    /// Finds similar names: one with few other letters, or else those that contain the name.
    pub fn among(name: &str, names: impl Iterator<Item = &'static str>) -> Self {
        let names: Vec<&'static str> = names.collect();
        let small = name.to_lowercase();
        let similar = match crate::rewrite::meant(name, names.iter().copied()) {
            Some(nearest) => vec![nearest],
            None if small.is_empty() => Vec::new(),
            None => names.into_iter().filter(|other| other.contains(&small)).take(MOST_SIMILAR).collect(),
        };
        NoRule { name: name.to_string(), similar }
    }
}

/// A name without an operator.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "neither the standard nor the model has an operator '{name}'{}; `onnx-slice-fold ops` lists all names",
    hint(similar)
)]
pub struct NoOperator {
    /// The name, with its domain unless that is the default one.
    pub name: String,
    /// The name that the user may have meant.
    pub similar: Vec<&'static str>,
}

/// The largest number of names in a hint.
const MOST_SIMILAR: usize = 8;

fn hint(similar: &[&str]) -> String {
    match similar {
        [] => String::new(),
        names => {
            format!("; did you mean {}?", names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", "))
        }
    }
}
