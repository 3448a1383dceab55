//! Folds again under suppositions, and keeps those under which more is done.
//!
//! First everything of one sort is supposed at once. Where that changes nothing, no part of it does, and one trial was enough. Where it does,
//! what is supposed is made weaker as long as as much is done: what is told in the end is what was tried last, with what came of it.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::supposition::{Candidates, Range, Size, Supposition};
use super::{Folded, folded_under};
use crate::dim::{Meter, Symbol};
use crate::ir::{Fact, Facts, Model, Type};
use crate::passes::{Assumption, Options, is_always_empty};
use crate::sort;

/// Trials end when they have taken this many times the work of folding. Work is counted, not timed, so that the same is told on every machine.
const MOST_TIMES: u64 = 7;

/// Something that could be known of the inputs, and what comes of it: the model was folded under it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Suggestion {
    /// The flags that say it.
    pub flags: String,
    /// The same for [`Options::assumptions`](crate::Options::assumptions).
    pub assumptions: Vec<Assumption>,
    /// The runs that the result is for, as a condition: with others it may be wrong.
    pub condition: String,
    /// Nodes that are left under it.
    pub nodes: usize,
    /// Results with a size that the inputs' sizes do not tell.
    pub open: usize,
    /// Whether it makes a size a number.
    pub(super) is_number: bool,
    /// The nodes that are not left, by operator and first result.
    pub(super) gone: BTreeSet<String>,
}

/// What is left of a model.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    pub nodes: usize,
    /// Results that are tensors, or of unknown type.
    pub results: usize,
    /// Of these, how many have a size that the inputs' sizes do not tell.
    pub open: usize,
    /// The nodes, by operator and first result.
    left: FxHashSet<String>,
}

/// A node by operator and first result, which is how nodes of two results of folding are told to be the same.
pub(super) fn key(model: &Model, node: &crate::ir::Node) -> String {
    let result = node.outputs().iter().flatten().next();
    format!("{} {}", node.operator(), result.map_or("", |&value| model.value(value).name.as_str()))
}

/// Nodes of a model, those of bodies included.
pub(super) fn nodes_of(model: &Model) -> usize {
    model.graphs().filter(|&graph| model.is_live(graph)).map(|graph| model.graph(graph).node_count()).sum()
}

impl Measure {
    fn of(model: &Model, facts: &Facts) -> Self {
        let mut inputs: FxHashSet<Symbol> = FxHashSet::default();
        for &value in model.graph(model.main()).inputs() {
            let dims = facts.get(value).and_then(Fact::shape).into_iter().flatten();
            inputs.extend(dims.flat_map(|dim| dim.symbols()));
        }
        let mut measure = Measure { nodes: 0, results: 0, open: 0, left: FxHashSet::default() };
        for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
            for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
                measure.nodes += 1;
                measure.left.insert(key(model, node));
                for &value in node.outputs().iter().flatten() {
                    let fact = facts.get(value);
                    if matches!(fact.and_then(|fact| fact.ty.as_ref()), None | Some(Type::Tensor(_))) {
                        measure.results += 1;
                        let dims = fact.and_then(Fact::shape);
                        let told = |dims: &[crate::dim::Dim]| {
                            dims.iter().all(|dim| dim.symbols().iter().all(|symbol| inputs.contains(symbol)))
                        };
                        measure.open += usize::from(!dims.is_some_and(told));
                    }
                }
            }
        }
        measure
    }

    fn is_better(&self, than: &Measure) -> bool {
        self.nodes < than.nodes || (self.nodes == than.nodes && self.open < than.open)
    }

    fn is_as_good(&self, as_: &Measure) -> bool {
        self.nodes <= as_.nodes && self.open <= as_.open
    }
}

/// Lower bounds are first tried this high: a question may hide behind another.
const LEAST_LOW: i64 = 16;
/// An upper bound that leaves less is none that anybody would give.
const LEAST_HIGH: i64 = 32;
/// An upper bound from here on hardly excludes inputs.
const WIDE: i64 = 4096;
/// How often a lower bound is halved.
const MOST_HALVES: usize = 5;

/// Folds again, a limited number of times.
pub(super) struct Search<'f> {
    folded: &'f Folded<'f>,
    base: Measure,
    most: usize,
    made: usize,
    /// How much work the trials were.
    work: u64,
    /// Whether something was not tried because no trial was left.
    ended: bool,
    found: Vec<Suggestion>,
}

/// Suppositions with what came of them.
type Tried = (Vec<Supposition>, Measure);

impl<'f> Search<'f> {
    pub fn new(folded: &'f Folded<'f>, most: usize) -> Self {
        let base = Measure::of(folded.model, &folded.outcome.facts);
        Search { folded, base, most, made: 0, work: 0, ended: false, found: Vec::new() }
    }

    pub fn base(&self) -> &Measure {
        &self.base
    }

    /// How many trials were made, and whether there was more to try.
    pub fn trials(&self) -> (usize, bool) {
        (self.made, self.ended)
    }

    /// What was found, what saves most first.
    pub fn into_suggestions(mut self) -> Vec<Suggestion> {
        // A number narrows more than a range, and is no suggestion where a range does as much.
        let ranges: Vec<(usize, usize)> =
            self.found.iter().filter(|found| !found.is_number).map(|found| (found.nodes, found.open)).collect();
        self.found.retain(|found| {
            !found.is_number || ranges.iter().all(|(nodes, open)| *nodes > found.nodes || *open > found.open)
        });
        sort::by_key(&mut self.found, |found| (found.is_number, found.nodes, found.open, found.assumptions.len()));
        self.found
    }

    /// Tries what could be known; of the sizes that are asked about by name more than of others.
    pub fn all(&mut self, candidates: &Candidates, names: &[String]) {
        let scope = self.folded.outcome.facts.scope();
        let asked: Vec<&Size> = names.iter().filter_map(|name| candidates.size(scope, name)).collect();
        let of = |sizes: &[&Size]| ranges(sizes.iter().copied());
        let mut sorts: Vec<Vec<Supposition>> = Vec::new();
        for size in &asked {
            sorts.push(of(&[size]));
            sorts.push(at_most(size, LEAST_HIGH).into_iter().collect());
            sorts.push(vec![fixed(size)]);
        }
        if asked.is_empty() {
            let labels = Some(&candidates.labels).filter(|labels| !labels.is_empty());
            sorts.extend(labels.map(|labels| vec![Supposition::Labels(labels.clone())]));
            // Hardly any input exceeds a bound that keeps the sizes within the types that they are computed in.
            sorts.push(candidates.sizes.iter().filter_map(|size| at_most(size, WIDE)).collect());
            sorts.push(of(&candidates.sizes.iter().collect::<Vec<_>>()));
            let relation = |text: &String| Supposition::Relation(text.clone());
            sorts.push(candidates.equalities.iter().map(relation).collect());
            sorts.push(candidates.relations.iter().take(1).map(relation).collect());
            let is_narrow = |size: &&Size| size.highs.range(LEAST_HIGH..WIDE).next().is_some();
            sorts
                .push(candidates.sizes.iter().filter(is_narrow).filter_map(|size| at_most(size, LEAST_HIGH)).collect());
            sorts.extend(candidates.sizes.iter().find(|size| size.place.1 == 0).map(|size| vec![fixed(size)]));
        }
        self.sorts(sorts, candidates);
        if asked.is_empty() {
            // What is left of the trials is for sizes that are numbers.
            let others = candidates.sizes.iter().filter(|size| size.place.1 > 0).take(2);
            self.sorts(others.map(|size| vec![fixed(size)]).collect(), candidates);
        }
    }

    /// Tries suppositions of several sorts, and then weaker ones of each that changes something.
    fn sorts(&mut self, sorts: Vec<Vec<Supposition>>, candidates: &Candidates) {
        for suppositions in sorts.into_iter().filter(|suppositions| !suppositions.is_empty()) {
            match self.measure(&suppositions) {
                Some(measure) => self.settle((suppositions, measure), candidates),
                // All of it at once may be impossible where one part alone is not.
                None if !self.ended && suppositions.len() > 1 => {
                    for supposition in by_questions(&suppositions, candidates).into_iter().take(2) {
                        let alone = vec![supposition];
                        if let Some(measure) = self.measure(&alone) {
                            self.settle((alone, measure), candidates);
                        }
                    }
                }
                None => {}
            }
        }
    }

    /// Keeps what changes something, as weak as it can be made.
    fn settle(&mut self, tried: Tried, candidates: &Candidates) {
        if tried.1.is_better(&self.base) {
            let (suppositions, measure) = self.weakened(tried, candidates);
            self.keep(suppositions, measure);
        }
    }

    /// What is left if these suppositions hold; nothing if they cannot, or no trial is left.
    fn measure(&mut self, suppositions: &[Supposition]) -> Option<Measure> {
        let left = self.folded.work.saturating_mul(MOST_TIMES).saturating_sub(self.work);
        if self.made >= self.most || left == 0 {
            self.ended = true;
            return None;
        }
        let options = self.under(suppositions);
        // What cannot be supposed is told before anything is folded, and is no trial.
        let meter = Meter::limited(left);
        let tried = folded_under(self.folded.original, &options, self.folded.bytes, &meter);
        self.work = self.work.saturating_add(meter.done());
        if meter.is_over() {
            self.ended = true;
            return None;
        }
        let (model, outcome) = tried?;
        self.made += 1;
        // No run gives a result with elements.
        let (original, known) = (self.folded.model, &self.folded.outcome.facts);
        if is_always_empty(&model, &outcome.facts) && !is_always_empty(original, known) {
            return None;
        }
        Some(Measure::of(&model, &outcome.facts))
    }

    fn under(&self, suppositions: &[Supposition]) -> Options {
        self.folded.options.clone().assumptions(suppositions.iter().flat_map(Supposition::assumptions))
    }

    fn keep(&mut self, suppositions: Vec<Supposition>, measure: Measure) {
        let flags = suppositions.iter().map(Supposition::flag).collect::<Vec<_>>().join(" ");
        let condition = suppositions.iter().map(Supposition::condition).collect::<Vec<_>>().join(" and ");
        let gone = self.base.left.difference(&measure.left).cloned().collect();
        let assumptions = suppositions.iter().flat_map(Supposition::assumptions).collect();
        let (nodes, open) = (measure.nodes, measure.open);
        let is_number = suppositions.iter().any(|supposition| matches!(supposition, Supposition::Size(..)));
        if self.found.iter().all(|found| found.flags != flags) {
            self.found.push(Suggestion { flags, assumptions, condition, nodes, open, is_number, gone });
        }
    }

    /// The weakest suppositions found under which as much is done.
    fn weakened(&mut self, mut tried: Tried, candidates: &Candidates) -> Tried {
        self.weaken(&mut tried, |suppositions| changed(suppositions, |range| range.multiple = None));
        self.weaken(&mut tried, |suppositions| changed(suppositions, |range| range.low = None));
        // One size alone, those first of which most was asked.
        let alone = if tried.0.len() > 1 { by_questions(&tried.0, candidates) } else { Vec::new() };
        let is_one = alone.into_iter().take(2).any(|supposition| self.weaken(&mut tried, |_| Some(vec![supposition])));
        if !is_one && tried.0.len() > 2 {
            for at in (0..tried.0.len().min(4)).rev() {
                self.weaken(&mut tried, |suppositions| {
                    let mut fewer = suppositions.to_vec();
                    (suppositions.len() > 1 && at < suppositions.len()).then(|| fewer.remove(at)).map(|_| fewer)
                });
            }
        }
        self.lower(&mut tried);
        for step in 0..3 {
            self.weaken(&mut tried, |suppositions| {
                changed_of(suppositions, candidates, |range, size| {
                    // The weakest bound first, and then the next.
                    let higher = |high: i64| size.highs.range(high.saturating_add(1)..);
                    let above = |high: i64| if step == 0 { higher(high).next_back() } else { higher(high).next() };
                    let above = |high: i64| above(high).copied();
                    range.high = range.high.map(|high| above(high).unwrap_or(high));
                })
            });
        }
        for _ in 0..2 {
            self.weaken(&mut tried, |suppositions| {
                changed(suppositions, |range| {
                    range.multiple = range.multiple.map(|all| all / 2).filter(|part| *part > 1)
                })
            });
        }
        tried
    }

    /// Halves the way down to the least lower bounds under which as much is done: all of them together.
    fn lower(&mut self, tried: &mut Tried) {
        let lows = |suppositions: &[Supposition]| {
            let low = |supposition: &Supposition| match supposition {
                Supposition::Range(_, range) => range.low,
                _ => None,
            };
            suppositions.iter().filter_map(low).max()
        };
        let mut least = 0;
        for _ in 0..MOST_HALVES {
            let Some(most) = lows(&tried.0).filter(|most| *most > least + 1) else { return };
            let middle = least + (most - least) / 2;
            let capped = |suppositions: &[Supposition]| {
                changed(suppositions, |range| range.low = range.low.map(|low| low.min(middle)))
            };
            if !self.weaken(tried, capped) {
                least = middle;
            }
        }
    }

    /// Tries weaker suppositions, and takes them if as much is done.
    fn weaken(&mut self, tried: &mut Tried, weaker: impl FnOnce(&[Supposition]) -> Option<Vec<Supposition>>) -> bool {
        let Some(suppositions) =
            weaker(&tried.0).filter(|suppositions| !suppositions.is_empty() && *suppositions != tried.0)
        else {
            return false;
        };
        match self.measure(&suppositions) {
            Some(measure) if measure.is_as_good(&tried.1) => {
                *tried = (suppositions, measure);
                true
            }
            _ => false,
        }
    }
}

/// Suppositions, those first about whose size most questions are open.
fn by_questions(suppositions: &[Supposition], candidates: &Candidates) -> Vec<Supposition> {
    let asked = |supposition: &Supposition| match supposition {
        Supposition::Range(name, _) => {
            let size = candidates.sizes.iter().find(|size| size.name == *name);
            size.map_or(0, |size| size.asked)
        }
        _ => 0,
    };
    let mut suppositions = suppositions.to_vec();
    sort::by_key(&mut suppositions, |supposition| std::cmp::Reverse(asked(supposition)));
    suppositions
}

/// All that could be known of sizes from below, and by division.
fn ranges<'s>(sizes: impl Iterator<Item = &'s Size>) -> Vec<Supposition> {
    let of = |size: &Size| {
        let multiple = Some(size.multiple).filter(|multiple| *multiple > 1);
        let range = Range { low: size.lows.last().map(|low| (*low).max(LEAST_LOW)), high: None, multiple };
        (!range.is_empty()).then(|| Supposition::Range(size.name.clone(), range))
    };
    sizes.filter_map(of).collect()
}

/// The smallest candidate for an upper bound of a size, from `least` on.
fn at_most(size: &Size, least: i64) -> Option<Supposition> {
    let high = Some(size.highs.range(least..).next().copied()?);
    Some(Supposition::Range(size.name.clone(), Range { low: None, high, multiple: None }))
}

/// A size that is a number: 1 for the first dim of an input, which usually counts samples, and a common one for others.
fn fixed(size: &Size) -> Supposition {
    let number = if size.place.1 == 0 { 1 } else { 64 };
    Supposition::Size(size.name.clone(), number)
}

/// Suppositions with ranges that are changed by what is known of their sizes.
fn changed_of(
    suppositions: &[Supposition],
    candidates: &Candidates,
    change: impl Fn(&mut Range, &Size),
) -> Option<Vec<Supposition>> {
    let other = suppositions.iter().map(|supposition| match supposition {
        Supposition::Range(name, range) => {
            let mut range = range.clone();
            if let Some(size) = candidates.sizes.iter().find(|size| size.name == *name) {
                change(&mut range, size);
            }
            Supposition::Range(name.clone(), range)
        }
        other => other.clone(),
    });
    Some(other.collect())
}

/// Suppositions with changed ranges; those of which nothing is left go. Nothing if nothing changed.
fn changed(suppositions: &[Supposition], change: impl Fn(&mut Range)) -> Option<Vec<Supposition>> {
    let other: Vec<Supposition> = suppositions
        .iter()
        .filter_map(|supposition| match supposition {
            Supposition::Range(name, range) => {
                let mut range = range.clone();
                change(&mut range);
                (!range.is_empty()).then(|| Supposition::Range(name.clone(), range))
            }
            other => Some(other.clone()),
        })
        .collect();
    (other != suppositions).then_some(other)
}
