//! What a run of the passes gives, and how it fails.

use super::assume::AssumeError;
use super::edits::{Fired, LastEdit};
use super::profile::PassRun;
use crate::ir::{Broken, Facts};
use crate::ops::{EventKind, Refusal};

/// What a run found and did.
#[derive(Debug)]
pub struct Outcome {
    /// What is proved of the values that are left.
    pub facts: Facts,
    /// What there is to tell, by node description.
    pub notes: Vec<(String, EventKind, String)>,
    /// How many rounds it took.
    pub rounds: usize,
    /// The operator set that the model was written in, and the one that it is, if it was converted.
    pub opset: Option<(i64, i64)>,
    /// How often each rewrite rule fired, and how many edits the other passes made.
    pub fired: Fired,
    /// The edit that was made last.
    pub last_edit: Option<LastEdit>,
    /// All edits in the order in which they were made, if they were to be recorded.
    pub edits: Vec<LastEdit>,
    /// What the passes took.
    pub passes: Vec<PassRun>,
    /// Each run of a pass that made edits, and how many edits there were when it ended.
    pub ends: Vec<(&'static str, usize)>,
    /// What was learned of the sizes and the model no longer tells.
    pub remembers: String,
}

/// A run that had to stop.
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
        /// The edit that was made last.
        last_edit: Option<LastEdit>,
        /// What is inconsistent.
        broken: Broken,
    },
    /// Something the user assumes cannot be.
    #[error(transparent)]
    Assumption(#[from] AssumeError),
    /// A rule or pass to be left out, or to be used alone, that does not exist.
    #[error(transparent)]
    NoRule(#[from] NoRule),
    /// The model cannot be walked.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The model cannot be written in the operator set that was asked for.
    #[error(transparent)]
    Opset(#[from] OpsetError),
    /// Every run needs a node that can work at no size.
    #[error("every run of the model fails: {node}: {reason}")]
    Impossible {
        /// The node.
        node: String,
        /// Why it cannot work.
        reason: String,
    },
    /// What the file declares of its tensors is false, or nothing can be computed of tensors like that.
    #[error("the model is inconsistent: {place}: {reason}")]
    Contradiction {
        /// The node or tensor.
        place: String,
        /// What is declared, and what it cannot be beside.
        reason: String,
    },
}

/// Why the model stays in its operator set.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpsetError {
    /// There is no such operator set.
    #[error("unknown operator set {asked}; the supported ones are 1 to {newest}")]
    NoSuch {
        /// The version asked for.
        asked: i64,
        /// The newest one known.
        newest: i64,
    },
    /// The model cannot be converted as a whole.
    #[error("cannot convert the model to operator set {to}: {reason}")]
    Model {
        /// The version asked for.
        to: i64,
        /// Why, and what to do.
        reason: String,
    },
    /// A node cannot be written in the operator set.
    #[error("cannot convert {node} from operator set {from} to {to}: {reason}{}", others(*.more))]
    Node {
        /// The node.
        node: String,
        /// The version it is written in.
        from: i64,
        /// The version asked for.
        to: i64,
        /// Why, and what to do.
        reason: String,
        /// How many more nodes cannot.
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
