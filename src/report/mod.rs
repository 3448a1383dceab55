//! The report of a run as data, and its renderers.

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

use crate::consumers::Construct;
use crate::explain::{Cause, MovementMap, Suggestion};
use crate::onnx::MissingData;
use crate::ops::EventKind;
use crate::passes::{LastEdit, PassRun, peak_memory, record};

/// The changes that a run made to a model. As text it is a short table of the operators before and after.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The model before folding.
    pub before: Census,
    /// The model after folding.
    pub after: Census,
    /// The inputs, and their types before and after.
    pub inputs: Vec<Port>,
    /// The outputs, and their types before and after.
    pub outputs: Vec<Port>,
    /// The bytes of the original file.
    pub bytes_before: usize,
    /// The bytes of the result file, once it is written.
    pub bytes_after: Option<u64>,
    /// The original and the new operator set of the default domain, if the model was converted.
    pub opset: Option<(i64, i64)>,
    /// The bytes of the original's tensors in other files.
    pub external_bytes_before: u64,
    /// The bytes of the result's tensors in data files, once it is written.
    pub external_bytes_after: Option<u64>,
    /// The written files with their sizes.
    pub files: Vec<(PathBuf, u64)>,
    /// The data files that were not found: their tensors have no values.
    pub missing_data: Vec<MissingData>,
    /// The number of rounds until the passes reached a fixed point.
    pub rounds: usize,
    /// The notes on single nodes.
    pub notes: Vec<Note>,
    /// The number of edits by each rewrite rule and by each other pass, by its name.
    pub fired: BTreeMap<&'static str, usize>,
    /// The last edit; it includes the place if the number of edits is limited.
    pub last_edit: Option<LastEdit>,
    /// All edits with their places, in order, if enabled by [`Options::detailed`](crate::Options).
    pub edits: Vec<LastEdit>,
    /// The remaining nodes with constructs that the consumer lacks, if [`Options::avoid`](crate::Options) names some.
    pub avoided: Vec<Avoided>,
    /// The number of remaining nodes that only compute sizes unknown before a run.
    pub size_nodes: usize,
    /// The known shapes of inner values that the result omits, if [`Shapes::Auto`](crate::Shapes) omits some.
    pub left_out: Option<LeftOut>,
    /// Labels of inputs that parse as expressions in other labels, each as a relation for [`Options::assume`](crate::Options::assume)
    /// that folding did not use: `"past + seq" == past + seq`.
    pub label_relations: Vec<String>,
    /// The model before and after in detail, if enabled by [`Options::detailed`](crate::Options).
    pub detail: Option<Box<Detail>>,
    /// The cost of each pass, in the order of their first runs. A model with functions may be folded several times; this counts all
    /// runs, and [`Report::fired`] only the edits in the result.
    pub passes: Vec<PassRun>,
    /// Each run of a pass that made edits, with the number of edits at its end.
    pub pass_ends: Vec<(&'static str, usize)>,
    /// The seconds that the passes took.
    pub seconds: f64,
}

/// A remaining node with a construct that the consumer lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Avoided {
    /// The construct.
    pub construct: Construct,
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// The reason why it is kept, as a clause; empty if no reason is known.
    pub reason: String,
}

impl Avoided {
    /// Creates an entry.
    pub(crate) fn new(construct: Construct, node: String, reason: String) -> Self {
        Avoided { construct, node, reason }
    }
}

/// The shapes that a result omits by default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The number of shapes.
    pub shapes: usize,
    /// The reason, as a sentence.
    pub reason: String,
}

/// A model before and after in detail.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Detail {
    /// The model before folding.
    pub before: Drawing,
    /// The model after folding.
    pub after: Drawing,
    /// The original model with inferred types, before folding.
    pub inferred: Drawing,
    /// The index maps of the original's data movement nodes: the first 1,000 known ones.
    pub maps_before: Vec<MovementMap>,
    /// The same for nodes of the result.
    pub maps_after: Vec<MovementMap>,
    /// The composed index maps of the original's nodes that the rule `movement` merged.
    pub maps_merged: Vec<MovementMap>,
    /// The reason for each remaining node.
    pub causes: Vec<Cause>,
    /// Assumptions about the inputs that allow further folding, collected with [`Options::page`](crate::Options).
    pub suggestions: Vec<Suggestion>,
    /// The properties of the model before and after folding, collected with [`Options::page`](crate::Options).
    pub inspected: Option<(Inspection, Inspection)>,
}

/// A rule or pass that made edits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleUse {
    /// Its name.
    pub name: &'static str,
    /// The number of its edits.
    pub edits: usize,
    /// Its description; empty for passes without a record.
    pub sentence: &'static str,
    /// Its law; empty for passes without a record.
    pub law: &'static str,
    /// `true` if results are equal bit for bit.
    pub exact: bool,
}

impl Report {
    /// Returns the rules and passes that made edits.
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

    /// Returns the notes on invalid nodes: the rule each violates.
    pub fn invalid(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| note.kind == EventKind::Invalid)
    }

    /// Returns the peak memory of the process in bytes, if the system reports it.
    pub fn most_memory() -> Option<u64> {
        peak_memory()
    }

    /// Returns the cost of each pass as a table: runs, edits, milliseconds, and the increase of peak memory in MiB, if
    /// [`Options`](crate::Options) enable its measurement.
    pub fn timings(&self) -> String {
        timings::table(&self.passes)
    }

    /// Returns the cost of each pass, the edits of each rule, and the notes on single nodes.
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

/// A note on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// The kind of the note.
    pub kind: EventKind,
    /// The reason, as a clause.
    pub reason: String,
}

impl From<(String, EventKind, String)> for Note {
    fn from((node, kind, reason): (String, EventKind, String)) -> Self {
        Note { node, kind, reason }
    }
}

impl Note {
    /// Returns the kind of the note in one or two words.
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
