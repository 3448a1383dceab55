//! What was done and why, as data, and how it is shown; and what can be done.

mod operators;
mod table;
mod timings;

pub use operators::operator_table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::ir::{DeclaredType, DimClaim, Model};
use crate::ops::EventKind;
use crate::passes::{LastEdit, PassRun};

/// What a run did to a model.
#[derive(Clone, Debug)]
pub struct Report {
    /// The model as it was.
    pub before: Census,
    /// The model as it is.
    pub after: Census,
    /// Bytes of the file it came from.
    pub bytes_before: usize,
    /// Bytes of the file it went to, once it is written.
    pub bytes_after: Option<u64>,
    /// How many rounds the passes took to settle.
    pub rounds: usize,
    /// What there is to tell: the node, what kind of thing, and the reason.
    pub notes: Vec<(String, EventKind, String)>,
    /// How often each rewrite rule fired, and how many edits each other pass made.
    pub fired: BTreeMap<&'static str, usize>,
    /// The edit that was made last; its place is told where the number of edits was limited.
    pub last_edit: Option<LastEdit>,
    /// What each pass took, in the order in which they first ran. A model with functions may be folded several times; all of that is
    /// counted here, but in [`Report::fired`] only what became of the model.
    pub passes: Vec<PassRun>,
    /// Seconds the passes took.
    pub seconds: f64,
}

impl Report {
    /// The nodes that cannot work, each with the rule it breaks.
    pub fn invalid(&self) -> impl Iterator<Item = (&str, &str)> {
        let invalid = self.notes.iter().filter(|(_, kind, _)| *kind == EventKind::Invalid);
        invalid.map(|(node, _, reason)| (node.as_str(), reason.as_str()))
    }

    /// What each pass took, as a table: how often it ran, how many edits it made, and milliseconds.
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
        for (node, kind, reason) in &self.notes {
            let kind = match kind {
                EventKind::Invalid => "invalid",
                EventKind::Undetermined => "undetermined",
                EventKind::Declined => "declined",
                EventKind::FalseClaim => "false claim",
                EventKind::Claimed => "claimed",
            };
            let _ = writeln!(text, "{kind}: {node}: {reason}");
        }
        text
    }
}

/// What a model consists of, subgraphs included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Nodes by operator, those outside the default domain with it.
    pub operators: BTreeMap<String, usize>,
    /// Node results that are tensors or of unknown type.
    pub tensors: usize,
    /// Of these, how many have a shape of which every dimension is stated.
    pub shaped: usize,
    /// Initializers.
    pub initializers: usize,
}

impl Census {
    /// Counts a model.
    pub fn of(model: &Model) -> Self {
        let mut census = Census::default();
        for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
            census.initializers += model.graph(graph).initializers().len();
            for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
                *census.operators.entry(node.operator()).or_default() += 1;
                for &value in node.outputs().iter().flatten() {
                    let declared = model.value(value).declared.as_ref();
                    if !matches!(declared, None | Some(DeclaredType::Tensor { .. })) {
                        continue;
                    }
                    census.tensors += 1;
                    let shape = declared.and_then(DeclaredType::shape);
                    let whole = shape.is_some_and(|dims| dims.iter().all(|dim| dim.claim != DimClaim::Unknown));
                    census.shaped += usize::from(whole);
                }
            }
        }
        census
    }

    /// All nodes.
    pub fn nodes(&self) -> usize {
        self.operators.values().sum()
    }
}
