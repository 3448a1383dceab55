//! The worklist: tracks the nodes that the rules need not visit again.
//!
//! A rule is a pure function of its reads: the model, the facts, and the knowledge of symbols. A node at which every rule declines is *settled* until
//! one of the parts read there changes. The model and the facts record reads and changes (`ir::Watch`); no rule lists them. More knowledge of a
//! symbol may decide any question, so it unsettles every node, unless the symbol is newer than the last question.
//!
//! Sweeps skip settled nodes and visit all others in topological order. The edits and their order are those of sweeps over all nodes.

use crate::ir::{Facts, Model, NodeId, Part};
use crate::rewrite::LATE_RULES;

/// The number of stages of rules.
const STAGES: usize = 1 + LATE_RULES.len();

/// The settled nodes, and the parts that they depend on.
#[derive(Default)]
pub struct Agenda {
    /// By stage and node: `true` if every rule of the stage has declined since the parts it read changed.
    settled: [Vec<bool>; STAGES],
    /// The head of each part's list of readers: an index into `readers`.
    first: Firsts,
    /// The stage and the node of each reader, and the index of the next reader of the same part.
    readers: Readers,
    /// The number of symbols when a rule last ran.
    symbols: usize,
    /// The amount of knowledge of symbols when changes were last recorded.
    learned: usize,
    /// The changed parts of the model since [`Agenda::take_changed`].
    changed: Vec<Part>,
    /// `true` if `changed` is complete.
    is_told: bool,
}

#[derive(Clone, Copy)]
struct Reader {
    /// The node, with the stage in the upper bits.
    who: u32,
    next: u32,
}

/// The number of bits for the stage of a reader.
const STAGE_BITS: u32 = 3;
const NODE_BITS: u32 = u32::BITS - STAGE_BITS;
const _: () = assert!(STAGES <= 1 << STAGE_BITS);

/// All readers, in chunks of equal length. There are dozens for each node, too many to move whenever the table grows.
#[derive(Default)]
struct Readers {
    pieces: Vec<Vec<Reader>>,
}

/// The number of readers in a chunk.
const PIECE: usize = 1 << 12;

impl Readers {
    fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    fn get(&self, place: u32) -> Option<Reader> {
        let place = place as usize;
        self.pieces.get(place / PIECE)?.get(place % PIECE).copied()
    }

    fn push(&mut self, reader: Reader) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(reader),
            None => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(reader);
                self.pieces.push(piece);
            }
        }
    }
}

/// A number for each part, by kind.
#[derive(Default)]
struct Firsts {
    nodes: Vec<u32>,
    values: Vec<u32>,
    facts: Vec<u32>,
    graphs: Vec<u32>,
}

impl Firsts {
    /// Returns the number of a part; `None` for [`Part::Everything`].
    fn of(&mut self, part: Part) -> Option<&mut u32> {
        Some(match part {
            Part::Node(node) => slot(&mut self.nodes, node.index(), NOBODY),
            Part::Value(value) => slot(&mut self.values, value.index(), NOBODY),
            Part::Fact(value) => slot(&mut self.facts, value.index(), NOBODY),
            Part::Graph(graph) => slot(&mut self.graphs, graph.index(), NOBODY),
            Part::Everything => return None,
        })
    }

    fn clear(&mut self) {
        for first in [&mut self.nodes, &mut self.values, &mut self.facts, &mut self.graphs] {
            first.fill(NOBODY);
        }
    }
}

/// The end of a list of readers.
const NOBODY: u32 = u32::MAX;

impl Agenda {
    /// Makes the model and the facts record changes from now on.
    pub fn begin(&mut self, model: &mut Model, facts: &mut Facts) {
        model.watch_mut().note_changes(true);
        facts.watch_mut().note_changes(true);
    }

    /// Stops the recording that [`Agenda::begin`] started.
    pub fn end(&mut self, model: &mut Model, facts: &mut Facts) {
        model.watch_mut().note_changes(false);
        facts.watch_mut().note_changes(false);
    }

    /// Returns `true` if every rule of the stage declines at a node.
    pub fn is_settled(&self, stage: usize, node: NodeId) -> bool {
        let settled = self.settled.get(stage).and_then(|settled| settled.get(node.index()));
        settled.copied().unwrap_or(false)
    }

    /// Unsettles the nodes that recorded changes affect.
    pub fn catch_up(&mut self, model: &mut Model, facts: &mut Facts) {
        let scope = facts.scope();
        if scope.has_learned_since(self.learned, self.symbols) {
            self.unsettle_all();
        }
        self.learned = scope.learned();
        model.watch_mut().take_changed(|part| {
            self.unsettle(part);
            self.changed.push(part);
        });
        facts.watch_mut().take_changed(|part| self.unsettle(part));
        model.make_room_to_watch();
        facts.watch_mut().make_room(0, model.value_count(), 0);
    }

    /// Returns the changed parts since the last call; `None` if any part may have changed.
    pub fn take_changed(&mut self) -> Option<Vec<Part>> {
        let changed = std::mem::take(&mut self.changed);
        std::mem::replace(&mut self.is_told, true).then_some(changed).filter(|parts| !parts.contains(&Part::Everything))
    }

    /// Starts to record reads, to settle a node.
    pub fn listen(&self, model: &Model, facts: &Facts) {
        model.watch().take_read(|_| {});
        facts.watch().take_read(|_| {});
        self.resume(model, facts);
    }

    /// Stops recording reads.
    pub fn pause(&self, model: &Model, facts: &Facts) {
        model.watch().note_reads(false);
        facts.watch().note_reads(false);
    }

    /// Resumes recording reads.
    pub fn resume(&self, model: &Model, facts: &Facts) {
        model.watch().note_reads(true);
        facts.watch().note_reads(true);
    }

    /// Settles a node at which no rule applies.
    pub fn settle(&mut self, stage: usize, node: NodeId) {
        if let Some(settled) = self.settled.get_mut(stage) {
            *slot(settled, node.index(), false) = true;
        }
    }

    /// Settles a node until one of the parts changes that were read since [`Agenda::listen`].
    pub fn settle_by_reads(&mut self, stage: usize, node: NodeId, model: &Model, facts: &Facts) {
        self.symbols = facts.scope().symbol_count();
        let mut is_all = false;
        model.watch().take_read(|part| is_all |= !self.add_reader(part, stage, node));
        facts.watch().take_read(|part| is_all |= !self.add_reader(part, stage, node));
        if !is_all {
            self.settle(stage, node);
        }
    }

    /// Records a reader of a part. Returns `false` if the part or the reader cannot be recorded.
    fn add_reader(&mut self, part: Part, stage: usize, node: NodeId) -> bool {
        let (Ok(reader), Ok(stage), Ok(place)) =
            (u32::try_from(node.index()), u32::try_from(stage), u32::try_from(self.readers.len()))
        else {
            return false;
        };
        if place == NOBODY || reader >> NODE_BITS != 0 {
            return false;
        }
        let who = stage << NODE_BITS | reader;
        let Some(first) = self.first.of(part) else { return false };
        // The rules read one part many times at one node, and mostly without readers in between.
        if self.readers.get(*first).is_some_and(|known| known.who == who) {
            return true;
        }
        let next = std::mem::replace(first, place);
        self.readers.push(Reader { who, next });
        true
    }

    /// Unsettles every node whose rules read a changed part.
    fn unsettle(&mut self, part: Part) {
        let Some(first) = self.first.of(part) else { return self.unsettle_all() };
        let mut next = std::mem::replace(first, NOBODY);
        while let Some(reader) = self.readers.get(next) {
            let (stage, node) = (reader.who >> NODE_BITS, reader.who & (u32::MAX >> STAGE_BITS));
            let settled = self.settled.get_mut(stage as usize);
            if let Some(settled) = settled.and_then(|settled| settled.get_mut(node as usize)) {
                *settled = false;
            }
            next = reader.next;
        }
    }

    fn unsettle_all(&mut self) {
        self.settled.iter_mut().for_each(|settled| settled.fill(false));
        self.first.clear();
        self.readers.pieces.clear();
    }
}

/// Returns a mutable element of a table, which grows up to its index.
fn slot<T: Copy>(table: &mut Vec<T>, place: usize, fill: T) -> &mut T {
    if place >= table.len() {
        table.resize(place + 1, fill);
    }
    #[allow(clippy::indexing_slicing, reason = "the table has just been made long enough")]
    &mut table[place]
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::rc::Rc;

    use super::*;
    use crate::dim::Scope;
    use crate::ir::text;
    use crate::ops::{Budget, Walk};
    use crate::passes::driver::settle;
    use crate::passes::edits::EditCounter;
    use crate::passes::options::Options;
    use crate::passes::pass::{Run, Work};
    use crate::passes::{pipeline, simplify};

    fn models(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                models(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "onnxtxt") {
                found.push(entry);
            }
        }
    }

    /// Settles a model, runs every rule at every node once more, and returns the last edit of that.
    fn left_over(model: &mut Model, options: &Options) -> Option<String> {
        let mut walk = Walk::new(Rc::new(Scope::new()), options.slice_rule, Budget::default());
        let mut run = Run::new(options, EditCounter::new(usize::MAX, true), 0);
        let mut work = Work::new(model, &mut walk, &mut run, usize::MAX);
        settle(&mut work, &pipeline::INFER, pipeline::PASSES, &mut |_| {}).unwrap();
        let settled = work.run.edits.made();
        for stage in 0..STAGES {
            let rules = (&work.run.rules, &work.untouched, &mut Agenda::default());
            simplify::simplify(work.model, &mut work.walk.facts, rules, stage, &mut work.run.edits).unwrap();
        }
        (work.run.edits.made() > settled).then(|| work.run.edits.last().unwrap().to_string())
    }

    #[test]
    fn skipped_rules_would_decline() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let mut paths = Vec::new();
        models(&tests.join("rules"), &mut paths);
        models(&tests.join("families"), &mut paths);
        assert!(paths.len() > 500, "{} models", paths.len());
        for path in paths {
            let Ok(mut model) = text::parse(&std::fs::read_to_string(&path).unwrap()) else { continue };
            assert_eq!(left_over(&mut model, &Options::default()), None, "{}", path.display());
        }
    }

    #[test]
    fn a_node_is_visited_again_when_its_reads_have_changed() {
        let source = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] x) => (y, z) { a = Abs (x) y = Neg (a) z = Relu (x) }";
        let mut model: Model = text::parse(source).unwrap();
        let mut facts = Facts::new(Rc::new(Scope::new()));
        let nodes: Vec<NodeId> = model.graph(model.main()).nodes().collect();
        let [abs, neg, relu] = nodes[..] else { panic!("three nodes") };
        let mut agenda = Agenda::default();
        agenda.begin(&mut model, &mut facts);
        // The first reads its consumer, the second itself, the last itself and everything.
        for (node, looks_at) in [(abs, neg), (neg, neg), (relu, relu)] {
            agenda.listen(&model, &facts);
            let _ = model.node(looks_at);
            if node == relu {
                model.note_all_read();
            }
            agenda.pause(&model, &facts);
            agenda.settle_by_reads(0, node, &model, &facts);
        }
        assert_eq!(nodes.iter().map(|&node| agenda.is_settled(0, node)).collect::<Vec<_>>(), [true, true, false]);
        let x = model.graph(model.main()).inputs()[0];
        model.set_input(relu, 0, Some(x));
        agenda.catch_up(&mut model, &mut facts);
        assert!(agenda.is_settled(0, abs) && agenda.is_settled(0, neg));
        model.set_input(neg, 0, Some(x));
        agenda.catch_up(&mut model, &mut facts);
        assert!(!agenda.is_settled(0, abs) && !agenda.is_settled(0, neg));
        // Knowledge of a symbol that existed at the last question may decide anything.
        let symbol = facts.scope().named("n");
        for learn in [false, true] {
            agenda.listen(&model, &facts);
            agenda.pause(&model, &facts);
            agenda.settle_by_reads(0, neg, &model, &facts);
            if learn {
                facts.scope().restrict(symbol, Some(2), None);
            }
            agenda.catch_up(&mut model, &mut facts);
            assert_eq!(agenda.is_settled(0, neg), !learn);
        }
    }
}
