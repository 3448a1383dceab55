//! A pass as data, and what it works on.

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

/// A pass over the main graph and the graphs inside it.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name, in kebab case, as reports give it and `--skip` takes it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub does: &'static str,
    /// When it runs. The passes of stage 0 run in every round; those of a later stage only in a round in which no pass of an earlier
    /// stage has changed anything. Closing passes have no stage: they run once, when the rounds are over.
    pub stage: usize,
    /// Runs it once.
    pub(super) run: fn(&mut Work<'_>) -> Result<(), RunError>,
}

/// The root graph that passes work on, and everything they need.
pub(super) struct Work<'a> {
    /// The model; its main graph is the root the passes work on.
    pub model: &'a mut Model,
    /// What is known of the values, and what inference has to tell.
    pub walk: &'a mut Walk,
    /// What all root graphs of the model have in common.
    pub run: &'a mut Run,
    /// How many bytes constants may make the model larger by.
    pub growth: usize,
    /// The bytes of the constants before anything was folded.
    pub held: usize,
    /// Nodes that are not folded, because their results are too large.
    pub kept: Kept,
    /// Those that were found since this was last told of, with the bytes of their results.
    pub declined: Vec<(NodeId, usize)>,
    /// Nodes that read nothing but constants and were inferred anew for that.
    pub decided: FxHashSet<NodeId>,
    /// Nodes that no rule looks at.
    pub untouched: Untouched,
    /// Which nodes no rule has anything to say about.
    pub agenda: Agenda,
    /// What the nodes and initializers compute that were compared before.
    pub merging: Merging,
    /// The initializers that there were before the passes.
    pub given: FxHashSet<ValueId>,
    /// Whether the graph was inferred before.
    pub is_inferred: bool,
    /// What there is to tell.
    pub notes: Vec<NodeEvent>,
    /// What inference has told.
    pub told: FxHashSet<(NodeId, EventKind, String)>,
}

/// Something to tell of a node: its description, what kind of thing, and the reason.
pub(super) type NodeEvent = (String, EventKind, String);

/// What all root graphs of a model have in common while the passes run.
pub(super) struct Run {
    pub options: Options,
    pub rules: RuleSet,
    pub edits: EditCounter,
    /// The bytes that the constants of the model took at the beginning.
    pub payload: usize,
    pub profile: Profile,
    /// Each run of a pass that made edits, and how many there were then.
    pub ends: Vec<(&'static str, usize)>,
    /// How many nodes more there are because loops were unrolled.
    pub unrolled: usize,
}

/// Whether a rule or pass is to be left out. Those that no rule list names, such as folding, go on where only some are to be used.
pub(super) fn skips(options: &Options, name: &str) -> bool {
    let is_named = |names: &[String]| names.iter().any(|named| named == name);
    let is_left_out = !options.rules || (!options.only.is_empty() && !is_named(&options.only));
    let is_unasked = options.opset.is_none() && ASKED_FOR.contains(&name) && !is_named(&options.only);
    is_named(&options.skip) || is_unasked || (is_left_out && is_listed(name))
}

impl Run {
    /// A run of the passes under these options, which may make as many edits as the counter allows, over a model whose constants take `payload`
    /// bytes.
    pub(super) fn new(options: &Options, edits: EditCounter, payload: usize) -> Self {
        let rules = RuleSet::new(&|name| !skips(options, name), options.exact, payload);
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

    /// Whether a rule or pass is to be left out.
    pub(super) fn skips(&self, name: &str) -> bool {
        skips(&self.options, name)
    }
}

impl<'a> Work<'a> {
    /// The main graph, to be worked on for the first time. Constants may make it larger by `growth` bytes.
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

    /// Notes each event of a remaining node once: inference may visit the nodes of a body more than once.
    pub(super) fn note_events(&mut self, events: Vec<Event>) {
        for Event { node, kind, reason } in events {
            if self.model.node(node).is_some() && self.told.insert((node, kind, reason.clone())) {
                self.notes.push((self.model.describe(node), kind, reason));
            }
        }
    }

    /// The model to change, what is known of its values, and the counter to ask before every edit.
    pub(super) fn parts(&mut self) -> (&mut Model, &Facts, &mut EditCounter) {
        (self.model, &self.walk.facts, &mut self.run.edits)
    }
}
