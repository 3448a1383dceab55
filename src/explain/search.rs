//! Folds again under suppositions, and keeps those with an effect.
//!
//! First, all suppositions of one sort are tried together. If they have no effect, no part of them has one, and one trial is enough. Otherwise, they
//! are weakened as long as the effect is kept. A suggestion is the last trial, with its measured result.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::supposition::{Candidates, Range, Size, Supposition};
use super::{Folded, folded_under};
use crate::dim::{Meter, Symbol};
use crate::ir::{Fact, Facts, Model, Type};
use crate::passes::{Assumption, Options, is_always_empty};
use crate::sort;

/// Trials end at this multiple of the work of folding. Work is counted, not timed, so that every machine gives the same answer.
const MOST_TIMES: u64 = 7;

/// A possible fact about the inputs, and the measured result of folding under it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Suggestion {
    /// The flags for the command line.
    pub flags: String,
    /// The assumptions for [`Options::assumptions`](crate::Options::assumptions).
    pub assumptions: Vec<Assumption>,
    /// The condition on runs. For other runs, the folded model may be wrong.
    pub condition: String,
    /// The number of remaining nodes.
    pub nodes: usize,
    /// The number of results with a size that the input sizes do not determine.
    pub open: usize,
    /// `true` if it fixes a size to a number.
    pub(super) is_number: bool,
    /// The removed nodes, by operator and first result.
    pub(super) gone: BTreeSet<String>,
}

/// The measure of a folded model.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    pub nodes: usize,
    /// The number of results that are tensors, or of unknown type.
    pub results: usize,
    /// The number of these with a size that the input sizes do not determine.
    pub open: usize,
    /// The nodes, by operator and first result.
    left: FxHashSet<String>,
}

/// Returns the operator and the first result of a node. They identify a node across two folds.
pub(super) fn key(model: &Model, node: &crate::ir::Node) -> String {
    let result = node.outputs().iter().flatten().next();
    format!("{} {}", node.operator(), result.map_or("", |&value| model.value(value).name.as_str()))
}

/// Returns the number of nodes of a model, including subgraphs.
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

/// The least value of the first lower bound that is tried: one question may hide another.
const LEAST_LOW: i64 = 16;
/// The least upper bound that a user would plausibly give.
const LEAST_HIGH: i64 = 32;
/// The least upper bound that hardly excludes inputs.
const WIDE: i64 = 4096;
/// The most halvings of a lower bound.
const MOST_HALVES: usize = 5;

/// Folds a model again a limited number of times.
pub(super) struct Search<'f> {
    folded: &'f Folded<'f>,
    base: Measure,
    most: usize,
    made: usize,
    /// The work of all trials.
    work: u64,
    /// `true` if a candidate was not tried because no trial remained.
    ended: bool,
    found: Vec<Suggestion>,
}

/// Suppositions with their measured result.
type Tried = (Vec<Supposition>, Measure);

impl<'f> Search<'f> {
    pub fn new(folded: &'f Folded<'f>, most: usize) -> Self {
        let base = Measure::of(folded.model, &folded.outcome.facts);
        Search { folded, base, most, made: 0, work: 0, ended: false, found: Vec::new() }
    }

    pub fn base(&self) -> &Measure {
        &self.base
    }

    /// Returns the number of trials, and `true` if candidates remain untried.
    pub fn trials(&self) -> (usize, bool) {
        (self.made, self.ended)
    }

    /// Returns the suggestions, the most effective ones first.
    pub fn into_suggestions(mut self) -> Vec<Suggestion> {
        // A number excludes more runs than a range. Drops numbers where a range does as much.
        let ranges: Vec<(usize, usize)> =
            self.found.iter().filter(|found| !found.is_number).map(|found| (found.nodes, found.open)).collect();
        self.found.retain(|found| {
            !found.is_number || ranges.iter().all(|(nodes, open)| *nodes > found.nodes || *open > found.open)
        });
        sort::by_key(&mut self.found, |found| (found.is_number, found.nodes, found.open, found.assumptions.len()));
        self.found
    }

    /// Tries the candidates. With `names`, tries only suppositions about those sizes.
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
            // Hardly any input exceeds a bound that keeps sizes within the types they are computed in.
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
            // Spends the remaining trials on fixed sizes.
            let others = candidates.sizes.iter().filter(|size| size.place.1 > 0).take(2);
            self.sorts(others.map(|size| vec![fixed(size)]).collect(), candidates);
        }
    }

    /// Tries suppositions of several sorts, and weakens those with an effect.
    fn sorts(&mut self, sorts: Vec<Vec<Supposition>>, candidates: &Candidates) {
        for suppositions in sorts.into_iter().filter(|suppositions| !suppositions.is_empty()) {
            match self.measure(&suppositions) {
                Some(measure) => self.settle((suppositions, measure), candidates),
                // Suppositions may be impossible together, although one alone is possible.
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

    /// Keeps suppositions with an effect, weakened as far as possible.
    fn settle(&mut self, tried: Tried, candidates: &Candidates) {
        if tried.1.is_better(&self.base) {
            let (suppositions, measure) = self.weakened(tried, candidates);
            self.keep(suppositions, measure);
        }
    }

    /// Returns the measure under these suppositions; `None` if they are impossible or no trial remains.
    fn measure(&mut self, suppositions: &[Supposition]) -> Option<Measure> {
        let left = self.folded.work.saturating_mul(MOST_TIMES).saturating_sub(self.work);
        if self.made >= self.most || left == 0 {
            self.ended = true;
            return None;
        }
        let options = self.under(suppositions);
        // Impossible suppositions fail before folding, and are no trial.
        let meter = Meter::limited(left);
        let tried = folded_under(self.folded.original, &options, self.folded.bytes, &meter);
        self.work = self.work.saturating_add(meter.done());
        if meter.is_over() {
            self.ended = true;
            return None;
        }
        let (model, outcome) = tried?;
        self.made += 1;
        // Under these suppositions, every run returns empty results.
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

    /// Returns the weakest suppositions found with the same effect.
    fn weakened(&mut self, mut tried: Tried, candidates: &Candidates) -> Tried {
        self.weaken(&mut tried, |suppositions| changed(suppositions, |range| range.multiple = None));
        self.weaken(&mut tried, |suppositions| changed(suppositions, |range| range.low = None));
        // Tries one size alone, those with the most open questions first.
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
                    // Tries the weakest bound first, then the next one.
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

    /// Bisects for the least lower bounds with the same effect, all of them together.
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

    /// Tries weaker suppositions, and keeps them if they have the same effect.
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

/// Sorts suppositions by the number of open questions about their sizes, descending.
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

/// Returns the strongest lower bound and multiple of each size.
fn ranges<'s>(sizes: impl Iterator<Item = &'s Size>) -> Vec<Supposition> {
    let of = |size: &Size| {
        let multiple = Some(size.multiple).filter(|multiple| *multiple > 1);
        let range = Range { low: size.lows.last().map(|low| (*low).max(LEAST_LOW)), high: None, multiple };
        (!range.is_empty()).then(|| Supposition::Range(size.name.clone(), range))
    };
    sizes.filter_map(of).collect()
}

/// Returns the smallest candidate for an upper bound of a size, from `least` on.
fn at_most(size: &Size, least: i64) -> Option<Supposition> {
    let high = Some(size.highs.range(least..).next().copied()?);
    Some(Supposition::Range(size.name.clone(), Range { low: None, high, multiple: None }))
}

/// Fixes a size: to 1 for the first dim of an input, usually the batch, and to a common size for others.
fn fixed(size: &Size) -> Supposition {
    let number = if size.place.1 == 0 { 1 } else { 64 };
    Supposition::Size(size.name.clone(), number)
}

/// Changes the ranges of suppositions by the candidates for their sizes.
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

/// Changes the ranges of suppositions, and drops empty ones. Returns `None` if nothing changes.
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
