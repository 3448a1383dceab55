//! The search for a plan: demand by demand, the cheapest way to get a row that serves.
//!
//! A row is got by the candidate that adds the fewest nodes, the first of equals. A candidate is tried by carrying it out on the draft,
//! with what it needs got the same way; then the draft is cut back to where it was, and the best trial is attached again.

use std::rc::Rc;

use smallvec::SmallVec;

use super::demands::Demands;
use super::draft::{Detached, Draft, Key};
use super::row::RowId;
use super::step::{Claim, Operand, Plan, Step};
use super::survey::Survey;
use crate::ir::{Facts, Model, ValueId};

/// How deeply rows may need other rows.
const MAX_DEPTH: usize = 48;

/// How many rows may be expanded in one search.
const MAX_EXPANDED: usize = 200_000;

/// How many rows may be expanded for one demand: so many for each of its effort, and some beside. What works is found with fewer; where
/// nothing works, all ways there are would be tried.
const MAX_BY_EFFORT: usize = 20;
const MAX_BESIDE: usize = 2_000;

/// What distinguishes one search from another.
#[derive(Clone, Copy, Default)]
pub(super) struct SearchLimits {
    /// Only tensors are read that are there even if no size node is left, and only their readers' demands are met.
    pub kept_only: bool,
    /// No operation is planned but those that copied nodes do.
    pub copies_only: bool,
    /// A tensor whose shape is taken before anything else.
    pub first_shape: Option<ValueId>,
    /// Single numbers that the same operator computes are taken side by side before anything else.
    pub joint: Option<Joint>,
    /// Rows are made of vectors by adding to numbers in them, or picking from them with numbers behind.
    pub among: bool,
    /// How many rows may be expanded for each demand before only the first candidate that works is tried.
    pub effort: usize,
}

/// In which order numbers are taken that stand side by side: as their readers come, or the other way round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    Forward,
    Backward,
}

/// A search under way.
pub(super) struct Search<'a> {
    pub(super) survey: &'a mut Survey,
    pub(super) model: &'a Model,
    pub(super) facts: &'a Facts,
    pub(super) demands: &'a Demands,
    pub(super) options: SearchLimits,
    pub(super) draft: Draft,
    /// The draft must stay below this many nodes.
    pub(super) limit: usize,
    /// How many more rows may be expanded before only the first candidate that works is tried.
    effort: usize,
    expanded: usize,
    /// How many may be expanded before what is looked for is given up.
    last: usize,
    /// The rows that are being looked for, each needed by another of them, but for one.
    open: Vec<RowId>,
}

impl<'a> Search<'a> {
    /// A search for a plan of fewer than `limit` nodes, those counted that turn out not to be needed.
    pub fn new(
        (model, facts): (&'a Model, &'a Facts),
        survey: &'a mut Survey,
        demands: &'a Demands,
        options: SearchLimits,
        limit: usize,
    ) -> Self {
        Search {
            survey,
            model,
            facts,
            demands,
            options,
            draft: Draft::default(),
            limit,
            effort: 0,
            expanded: 0,
            last: MAX_BESIDE,
            open: Vec::new(),
        }
    }

    /// Meets the demands in the order of their positions.
    pub fn run(mut self) -> Option<Plan> {
        if let Some(tensor) = self.options.first_shape {
            self.shape(tensor)?;
        }
        if let Some(order) = self.options.joint {
            self.take_joint(order);
        }
        let mut answers = Vec::with_capacity(self.demands.list.len());
        for (at, demand) in self.demands.list.iter().enumerate() {
            if self.options.kept_only && !demand.is_kept {
                continue;
            }
            self.begin();
            let rows: SmallVec<[RowId; 8]> = demand.rows.iter().map(|row| self.survey.number(row)).collect();
            let operand = match rows.as_slice() {
                [] => self.same_as(demand.value, demand.position),
                rows => self.cheapest(rows, demand.position),
            };
            answers.push((at, operand?));
        }
        Some(Plan { steps: self.draft.into_steps(), answers })
    }

    /// Gives what is looked for next its effort.
    fn begin(&mut self) {
        self.effort = self.options.effort;
        self.last = (self.expanded + MAX_BY_EFFORT * self.effort + MAX_BESIDE).min(MAX_EXPANDED);
    }

    /// Gets the vectors of numbers side by side. A plan need not have them.
    fn take_joint(&mut self, order: Joint) {
        for (row, before) in &self.demands.joint {
            self.begin();
            let mut terms = row.terms.clone();
            if order == Joint::Backward {
                terms.reverse();
            }
            let row = self.survey.number(&row.with_terms(terms));
            let _ = self.row(row, *before);
        }
    }

    /// The position after which an operand is there.
    pub(super) fn ready(&self, operand: Operand) -> usize {
        match operand {
            Operand::Step(step) => self.draft.ready(step).unwrap_or(usize::MAX),
            Operand::Value(value) => self.survey.position_of(self.model, value),
        }
    }

    /// Adds a step to the draft, unless that is too many nodes.
    pub(super) fn push(&mut self, step: Step, claim: Claim) -> Option<Operand> {
        if step.cost() > 0 && self.draft.cost() + step.cost() >= self.limit {
            return None;
        }
        let measured = step.measured().map(|tensor| self.survey.position_of(self.model, tensor));
        let ready = step.operands().map(|operand| self.ready(operand)).chain(measured).max().unwrap_or(0);
        Some(self.draft.push(step, claim, ready))
    }

    /// What the draft has under a key, if it is there before a position.
    pub(super) fn known(&self, key: Key, before: usize) -> Option<Operand> {
        self.draft.get(key).filter(|&known| self.ready(known) < before)
    }

    /// A row that is there, or else the cheapest of them to get.
    pub(super) fn cheapest(&mut self, rows: &[RowId], before: usize) -> Option<Operand> {
        if let Some(known) = rows.iter().find_map(|&row| self.known(Key::Row(row), before)) {
            return Some(known);
        }
        self.best(rows.iter().copied(), |search, row| search.row(row, before))
    }

    /// Something that holds a row and can be computed before a position.
    pub(super) fn row(&mut self, row: RowId, before: usize) -> Option<Operand> {
        let key = Key::Row(row);
        if let Some(known) = self.known(key, before) {
            return Some(known);
        }
        let own = self.survey.numbered.get(row)?;
        if let Some(tensor) = &own.constant {
            let (tensor, claim) = (tensor.clone(), Claim::Row(Rc::clone(&own.row)));
            let constant = self.push(Step::Constant(tensor), claim)?;
            self.draft.remember(key, constant);
            return Some(constant);
        }
        if self.open.len() >= MAX_DEPTH || self.open.contains(&row) || self.expanded >= self.last {
            return None;
        }
        self.expanded += 1;
        self.effort = self.effort.saturating_sub(1);
        self.facts.scope().meter().count(15);
        self.open.push(row);
        let candidates = self.candidates(row, before);
        let found = self.best(candidates.into_iter(), |search, candidate| search.carry_out(row, candidate, before));
        self.open.pop();
        let found = found?;
        if self.known(key, before).is_none() {
            self.draft.remember(key, found);
        }
        Some(found)
    }

    /// The claim that a step holds a row.
    pub(super) fn claim(&self, row: RowId) -> Option<Claim> {
        self.survey.numbered.get(row).map(|own| Claim::Row(Rc::clone(&own.row)))
    }

    /// The effort left, for whoever lists candidates.
    pub(super) fn is_exhausted(&self) -> bool {
        self.effort == 0
    }

    /// Tries all, and keeps on the draft what adds the fewest nodes, the first of equals. Each is given an equal share of the effort
    /// that is left; once there is none, the first that works is taken.
    fn best<T>(
        &mut self,
        attempts: impl ExactSizeIterator<Item = T>,
        attempt: impl Fn(&mut Self, T) -> Option<Operand>,
    ) -> Option<Operand> {
        let checkpoint = self.draft.checkpoint();
        let (outer, base) = (self.limit, self.draft.cost());
        let mut best: Option<(Detached, Operand)> = None;
        let mut left = attempts.len();
        for one in attempts {
            if let Some((trial, _)) = &best {
                // Nothing is better than one node, for what adds none was looked up before.
                if trial.cost() <= 1 || self.effort == 0 {
                    break;
                }
                self.limit = outer.min(base + trial.cost());
            }
            let effort = self.effort;
            let share = effort.div_ceil(left.max(1));
            self.effort = share;
            left -= 1;
            let found = attempt(self, one);
            self.effort = effort.saturating_sub(share.saturating_sub(self.effort));
            let added = self.draft.cost() - base;
            match found.filter(|_| best.as_ref().is_none_or(|(best, _)| added < best.cost())) {
                Some(operand) => best = Some((self.draft.cut(checkpoint), operand)),
                None => self.draft.undo(checkpoint),
            }
        }
        self.limit = outer;
        let (trial, operand) = best?;
        self.draft.attach(trial);
        Some(operand)
    }
}
