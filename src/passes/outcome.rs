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
    /// How often each rewrite rule fired, and how many edits the other passes made.
    pub fired: Fired,
    /// The edit that was made last.
    pub last_edit: Option<LastEdit>,
    /// What the passes took.
    pub passes: Vec<PassRun>,
}

/// A run that had to stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model was or became inconsistent.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A pass made the model inconsistent: a defect of this program.
    #[error("pass '{pass}' broke the model{}: {broken}", last_edit.as_ref().map(|edit| format!(", the last edit is {edit}")).unwrap_or_default())]
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
    /// Every run needs a node that can work at no size.
    #[error("no run of the model can succeed: {node}: {reason}")]
    Impossible {
        /// The node.
        node: String,
        /// Why it cannot work.
        reason: String,
    },
}

/// A name that no rule or pass has.
#[derive(Clone, Debug, thiserror::Error)]
#[error("there is no rule named '{name}'{}; `rules` lists them all", meant(*nearest))]
pub struct NoRule {
    /// The name.
    pub name: String,
    /// The one that it was most likely meant to be.
    pub nearest: Option<&'static str>,
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean '{name}'?"))
}
