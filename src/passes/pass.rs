//! A pass as data, and the state that passes share.

use rustc_hash::FxHashSet;

use super::agenda::Agenda;
use super::common_subexpressions::Merging;
use super::constant_nodes::initializers;
use super::edits::EditCounter;
use super::fold::{Kept, bytes_held};
use super::options::Options;
use super::outcome::RunError;
use super::profile::Profile;
use super::records::is_listed;
use super::simplify::RuleSet;
use super::untouched::Untouched;
use crate::ir::{Facts, Model, NodeId, ValueId};
use crate::ops::{Event, EventKind, Walk};
use crate::rewrite::ASKED_FOR;

/// A pass over the main graph and its subgraphs.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The name, in kebab case, for reports and `--skip`.
    pub name: &'static str,
    /// A sentence that describes the pass.
    pub does: &'static str,
    /// The stage. Passes of stage 0 run in every round; those of a later stage only run if no pass of an earlier stage has changed anything in the
    /// round. Closing passes have no stage: they run once, after the rounds.
    pub stage: usize,
    /// Runs the pass once.
    pub(super) run: fn(&mut Work<'_>) -> Result<(), RunError>,
}

/// The root graph under edit, and the state of its passes.
pub(super) struct Work<'a> {
    /// The model; its main graph is the root that the passes edit.
    pub model: &'a mut Model,
    /// The facts about values, and the events of inference.
    pub walk: &'a mut Walk,
    /// The state that all root graphs of the model share.
    pub run: &'a mut Run,
    /// The number of bytes by which constants may enlarge the model.
    pub growth: usize,
    /// The bytes of the constants before folding.
    pub held: usize,
    /// Nodes that are not folded, because their results are too large.
    pub kept: Kept,
    /// The nodes among `kept` that no note reports yet, with the bytes of their results.
    pub declined: Vec<(NodeId, usize)>,
    /// Nodes with only constant operands that were inferred again for that reason.
    pub decided: FxHashSet<NodeId>,
    /// Nodes that no rule may edit.
    pub untouched: Untouched,
    /// The nodes at which every rule declines.
    pub agenda: Agenda,
    /// The table of nodes and initializers that were compared before.
    pub merging: Merging,
    /// The initializers before the passes.
    pub given: FxHashSet<ValueId>,
    /// `true` after the first inference of the graph.
    pub is_inferred: bool,
    /// The notes to report.
    pub notes: Vec<NodeEvent>,
    /// The events of inference that were reported.
    pub told: FxHashSet<(NodeId, EventKind, String)>,
}

/// A note about a node: its description, the kind, and the reason.
pub(super) type NodeEvent = (String, EventKind, String);

/// The state that all root graphs of a model share during the passes.
pub(super) struct Run {
    pub options: Options,
    pub rules: RuleSet,
    pub edits: EditCounter,
    /// The bytes of the model's constants at the beginning.
    pub payload: usize,
    pub profile: Profile,
    /// Each run of a pass with edits, and the number of edits at its end.
    pub ends: Vec<(&'static str, usize)>,
    /// The number of nodes that unrolling added.
    pub unrolled: usize,
}

/// Returns `true` if a rule or pass is disabled. Passes without a record, such as folding, also run if only some are enabled.
pub(super) fn skips(options: &Options, name: &str) -> bool {
    let is_named = |names: &[String]| names.iter().any(|named| named == name);
    let is_left_out = !options.rules || (!options.only.is_empty() && !is_named(&options.only));
    let is_unasked = options.opset.is_none() && ASKED_FOR.contains(&name) && !is_named(&options.only);
    is_named(&options.skip) || is_unasked || (is_left_out && is_listed(name))
}

impl Run {
    /// Creates a run of the passes under these options, with the limit of the counter, over a model whose constants take `payload` bytes.
    pub(super) fn new(options: &Options, edits: EditCounter, payload: usize) -> Self {
        let rules = RuleSet::new(&|name| !skips(options, name), options.exact, payload, &options.avoid);
        Run {
            options: options.clone(),
            rules,
            edits,
            payload,
            profile: Profile::new(options.measure_memory),
            ends: Vec::new(),
            unrolled: 0,
        }
    }

    /// Returns `true` if a rule or pass is disabled.
    pub(super) fn skips(&self, name: &str) -> bool {
        skips(&self.options, name)
    }
}

impl<'a> Work<'a> {
    /// Prepares the main graph for its first pass. Constants may enlarge it by `growth` bytes.
    pub(super) fn new(model: &'a mut Model, walk: &'a mut Walk, run: &'a mut Run, growth: usize) -> Self {
        let (decided, told) = (FxHashSet::default(), FxHashSet::default());
        let (held, kept) = (bytes_held(model), Kept::default());
        let (untouched, notes) = (Untouched::default(), Vec::new());
        let agenda = Agenda::default();
        let (merging, given) = (Merging::default(), initializers(model));
        Work {
            model,
            walk,
            run,
            growth,
            held,
            kept,
            declined: Vec::new(),
            decided,
            untouched,
            agenda,
            merging,
            given,
            is_inferred: false,
            notes,
            told,
        }
    }

    /// Notes each event of a remaining node once: inference may visit the nodes of a subgraph more than once.
    pub(super) fn note_events(&mut self, events: Vec<Event>) {
        for Event { node, kind, reason } in events {
            if self.model.node(node).is_some() && self.told.insert((node, kind, reason.clone())) {
                self.notes.push((self.model.describe(node), kind, reason));
            }
        }
    }

    /// Returns the model, the facts about its values, and the counter for edits.
    pub(super) fn parts(&mut self) -> (&mut Model, &Facts, &mut EditCounter) {
        (self.model, &self.walk.facts, &mut self.run.edits)
    }
}
