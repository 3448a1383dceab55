//! What a run of the passes may and should do, what it gives, and how it fails.

use super::assume::{AssumeError, Assumption};
use super::edits::{Fired, LastEdit};
use super::profile::PassRun;
use crate::ir::{Broken, Facts};
use crate::ops::{EventKind, Refusal, SliceName};
use crate::slicing::Rule;

/// What a run may and should do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How disputed cases of slicing are read.
    pub slice_rule: Rule,
    /// Operators of the model that are strided slices of other dialects, beside those the program knows by name.
    pub slice_names: Vec<SliceName>,
    /// How much larger the constants may make the model, as a share of its size; 0.0 allows no growth.
    pub max_growth: f64,
    /// How many bytes of growth are too few to mind whatever the share.
    pub free_growth: usize,
    /// How often the passes run before a run ends without having settled.
    pub max_rounds: usize,
    /// Whether anything is removed; without, only types are inferred.
    pub fold: bool,
    /// Names of rewrite rules and passes to leave out.
    pub skip: Vec<String>,
    /// Whether only rewrites are used that keep results equal bit for bit.
    pub exact: bool,
    /// How many edits may be made, those of every pass counted: the first ones of the same run without a limit. With 0 the nodes,
    /// initializers and names stay as the file has them; shapes are inferred and written all the same.
    pub fuel: usize,
    /// Whether the model is verified after each pass that changed it, so that a defect is told of by the name of the pass.
    pub verify_each: bool,
    /// What the user knows about the inputs.
    pub assumptions: Vec<Assumption>,
    /// Whether declared shapes of results are premises like what is proved. They are often wrong.
    pub trust_declared_shapes: bool,
    /// Whether a model is an error of which no run can succeed, because each needs a node that cannot work. Otherwise such nodes are
    /// left as they are, and told of.
    pub strict: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            slice_rule: Rule::Agree,
            slice_names: Vec::new(),
            max_growth: 0.0,
            free_growth: 256 << 10,
            max_rounds: 32,
            fold: true,
            skip: Vec::new(),
            exact: false,
            fuel: usize::MAX,
            verify_each: false,
            assumptions: Vec::new(),
            trust_declared_shapes: false,
            strict: false,
        }
    }
}

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
    /// A rule or pass to be left out that does not exist.
    #[error("there is no rule named '{0}'; `explain` lists the names of those that fired")]
    NoRule(String),
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
