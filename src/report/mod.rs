//! What was done and why, as data, and how it is shown; and what can be done.

mod census;
mod diff;
mod drawing;
mod inspect;
#[cfg(feature = "json")]
mod json;
mod markup;
mod operators;
mod page;
mod picture;
mod rules;
mod table;
mod timings;

pub use census::{Census, Port};
pub(crate) use census::{Interface, author_names, input_names};
pub(crate) use diff::diff;
pub use drawing::{Drawing, DrawingForm, DrawnNode, NotDrawn};
pub use inspect::{
    DataFile, DynamicDim, Figure, FunctionInfo, Inspection, LargeTensor, MacCount, Parameters, PeakMemory,
    inspection_text,
};
pub(crate) use inspect::{Inspected, inspect};
pub use operators::operator_table;
pub use rules::{rule_table, rule_text};

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use crate::explain::{Cause, MovementMap, Suggestion};
use crate::onnx::MissingData;
use crate::ops::EventKind;
use crate::passes::{LastEdit, PassRun, peak_memory, record};

/// What a run did to a model. As text it is a short table of the operators before and after.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The model as it was.
    pub before: Census,
    /// The model as it is.
    pub after: Census,
    /// The inputs, and their types before and after.
    pub inputs: Vec<Port>,
    /// The outputs, likewise.
    pub outputs: Vec<Port>,
    /// Bytes of the file it came from.
    pub bytes_before: usize,
    /// Bytes of the file it went to, once it is written.
    pub bytes_after: Option<u64>,
    /// The operator set of the default domain that the model was written in, and the one that it is written in now, if it was converted.
    pub opset: Option<(i64, i64)>,
    /// Bytes of its tensors that lay in other files.
    pub external_bytes_before: u64,
    /// Bytes of its tensors that lie in files beside the one it went to, once it is written.
    pub external_bytes_after: Option<u64>,
    /// Every file that was written, and its size.
    pub files: Vec<(PathBuf, u64)>,
    /// The data files that the model refers to and that were not found: their tensors have no values.
    pub missing_data: Vec<MissingData>,
    /// How many rounds the passes took to settle.
    pub rounds: usize,
    /// What there is to tell about single nodes.
    pub notes: Vec<Note>,
    /// How often each rewrite rule fired, and how many edits each other pass made, by its name.
    pub fired: BTreeMap<&'static str, usize>,
    /// The edit that was made last; its place is told where the number of edits was limited.
    pub last_edit: Option<LastEdit>,
    /// Every edit with its place, in the order in which they were made, where [`Options::detailed`](crate::Options) asks for them.
    pub edits: Vec<LastEdit>,
    /// How many nodes are left that compute with nothing but sizes, which only a run decides.
    pub size_nodes: usize,
    /// The known shapes of inner values that the result does not state, where [`Shapes::Auto`](crate::Shapes) leaves some out.
    pub left_out: Option<LeftOut>,
    /// Labels of inputs that parse as expressions in other labels, each as a relation for [`Options::assume`](crate::Options::assume) that
    /// folding did not use: `"past + seq" == past + seq`.
    pub label_relations: Vec<String>,
    /// The model before and after in detail, where [`Options::detailed`](crate::Options) asks for it.
    pub detail: Option<Box<Detail>>,
    /// What each pass took, in the order in which they first ran. A model with functions may be folded several times; all of that is
    /// counted here, but in [`Report::fired`] only what became of the model.
    pub passes: Vec<PassRun>,
    /// Each run of a pass that made edits, and how many edits there were when it ended.
    pub pass_ends: Vec<(&'static str, usize)>,
    /// Seconds the passes took.
    pub seconds: f64,
}

/// Shapes that a result does not state by default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// How many.
    pub shapes: usize,
    /// Why, in a sentence.
    pub reason: String,
}

/// A model before and after in detail.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Detail {
    /// The model as it was.
    pub before: Drawing,
    /// The model as it is.
    pub after: Drawing,
    /// The model as it was, with the types that are inferred before anything is folded.
    pub inferred: Drawing,
    /// The index maps of the original's nodes that move elements: the first 1,000 that are known.
    pub maps_before: Vec<MovementMap>,
    /// The same for the nodes of the result.
    pub maps_after: Vec<MovementMap>,
    /// The composed index maps of the original's nodes at which the rule `movement` merged nodes.
    pub maps_merged: Vec<MovementMap>,
    /// The reason for each remaining node.
    pub causes: Vec<Cause>,
    /// Assumptions about the inputs that allow further folding, collected with [`Options::page`](crate::Options).
    pub suggestions: Vec<Suggestion>,
    /// The properties of the model before and after folding, likewise.
    pub inspected: Option<(Inspection, Inspection)>,
}

/// A rule or pass that made edits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleUse {
    /// Its name.
    pub name: &'static str,
    /// How many edits it made.
    pub edits: usize,
    /// What it does; empty for passes without a record.
    pub sentence: &'static str,
    /// The law it rests on; empty likewise.
    pub law: &'static str,
    /// Whether results stay equal bit for bit.
    pub exact: bool,
}

impl Report {
    /// The rules and passes that made edits.
    pub fn rules_used(&self) -> Vec<RuleUse> {
        let fired = self.fired.iter().filter(|(_, edits)| **edits > 0);
        let used = fired.map(|(name, edits)| match record(name) {
            Ok(record) => {
                RuleUse { name, edits: *edits, sentence: record.sentence, law: record.law, exact: record.exact }
            }
            Err(_) => RuleUse { name, edits: *edits, sentence: "", law: "", exact: true },
        });
        used.collect()
    }

    /// What there is to tell about the nodes that cannot work: the rule each breaks.
    pub fn invalid(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| note.kind == EventKind::Invalid)
    }

    /// The most memory the process has held, in bytes, where the system tells.
    pub fn most_memory() -> Option<u64> {
        peak_memory()
    }

    /// What each pass took, as a table: how often it ran, how many edits it made, milliseconds, and, if [`Options`](crate::Options) say
    /// that it is to be measured, by how many MiB it raised the most memory held.
    pub fn timings(&self) -> String {
        timings::table(&self.passes)
    }

    /// What each pass took, how often each rule fired, and what there is to tell about single nodes.
    pub fn explanation(&self) -> String {
        let mut text = self.timings();
        for (rule, count) in self.fired.iter().filter(|(_, count)| **count > 0) {
            let _ = writeln!(text, "{count:>7}  {rule}");
        }
        if let Some(edit @ LastEdit { place: Some(_), .. }) = &self.last_edit {
            let _ = writeln!(text, "last edit: {edit}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }
}

/// What there is to tell about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// What kind of thing it is.
    pub kind: EventKind,
    /// The reason, in a clause.
    pub reason: String,
}

impl From<(String, EventKind, String)> for Note {
    fn from((node, kind, reason): (String, EventKind, String)) -> Self {
        Note { node, kind, reason }
    }
}

impl Note {
    /// What kind of thing it is, in a word or two.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            EventKind::Invalid => "invalid",
            EventKind::Undetermined => "undetermined",
            EventKind::Disputed => "disputed",
            EventKind::Declined => "declined",
            EventKind::FalseClaim => "false claim",
            EventKind::Claimed => "claimed",
            EventKind::Declared => "declared",
            EventKind::NamedSize => "named",
            EventKind::Stopped => "stopped",
            EventKind::Limited => "limited",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.kind_name(), self.node, self.reason)
    }
}
