//! The search for a plan: meets each demand in the cheapest way.
//!
//! A row is computed by the candidate that adds the fewest nodes, the first of equals. A candidate is tried by applying it to the draft, with its
//! operands computed in the same way. Then the draft is cut back, and the best trial is attached again.

use std::rc::Rc;

use smallvec::SmallVec;

use super::demands::Demands;
use super::draft::{Detached, Draft, Key};
use super::row::RowId;
use super::step::{Claim, Operand, Plan, Step};
use super::survey::Survey;
use crate::ir::{Facts, Model, ValueId};

/// The largest depth of rows that need other rows.
const MAX_DEPTH: usize = 48;

/// The most expansions of one search.
const MAX_EXPANDED: usize = 200_000;

/// The most expansions for one demand are this multiple of its effort, plus [`MAX_BESIDE`]. A solution takes fewer; without one, the search would try
/// all ways.
const MAX_BY_EFFORT: usize = 20;
const MAX_BESIDE: usize = 2_000;

/// The options of a search.
#[derive(Clone, Copy, Default)]
pub(super) struct SearchLimits {
    /// `true` to read only tensors that exist without any size node, and to meet only their readers' demands.
    pub kept_only: bool,
    /// `true` to plan no operations except those of copied nodes.
    pub copies_only: bool,
    /// A tensor whose shape is the first step.
    pub first_shape: Option<ValueId>,
    /// The order in which numbers of the same operator are joined to vectors before anything else.
    pub joint: Option<Joint>,
    /// `true` to make rows of vectors by adding to numbers in them, or by picking from them with numbers appended.
    pub among: bool,
    /// The number of expansions for each demand before only the first working candidate is tried.
    pub effort: usize,
}

/// The order of joined numbers: that of their readers, or the reverse.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    Forward,
    Backward,
}

/// A running search.
pub(super) struct Search<'a> {
    pub(super) survey: &'a mut Survey,
    pub(super) model: &'a Model,
    pub(super) facts: &'a Facts,
    pub(super) demands: &'a Demands,
    pub(super) options: SearchLimits,
    pub(super) draft: Draft,
    /// The exclusive bound of the number of nodes in the draft.
    pub(super) limit: usize,
    /// The number of further expansions before only the first working candidate is tried.
    effort: usize,
    expanded: usize,
    /// The number of expansions at which the current demand is given up.
    last: usize,
    /// The rows under expansion, each needed by the one before.
    open: Vec<RowId>,
}

impl<'a> Search<'a> {
    /// Creates a search for a plan of fewer than `limit` nodes, including unneeded ones.
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

    /// Resets the effort for the next demand or vector.
    fn begin(&mut self) {
        self.effort = self.options.effort;
        self.last = (self.expanded + MAX_BY_EFFORT * self.effort + MAX_BESIDE).min(MAX_EXPANDED);
    }

    /// Computes the vectors of joined numbers. A plan need not use them.
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

    /// Returns the position after which an operand is available.
    pub(super) fn ready(&self, operand: Operand) -> usize {
        match operand {
            Operand::Step(step) => self.draft.ready(step).unwrap_or(usize::MAX),
            Operand::Value(value) => self.survey.position_of(self.model, value),
        }
    }

    /// Adds a step to the draft, unless it would have too many nodes.
    pub(super) fn push(&mut self, step: Step, claim: Claim) -> Option<Operand> {
        if step.cost() > 0 && self.draft.cost() + step.cost() >= self.limit {
            return None;
        }
        let measured = step.measured().map(|tensor| self.survey.position_of(self.model, tensor));
        let ready = step.operands().map(|operand| self.ready(operand)).chain(measured).max().unwrap_or(0);
        Some(self.draft.push(step, claim, ready))
    }

    /// Returns the operand of a key in the draft, if it is available before a position.
    pub(super) fn known(&self, key: Key, before: usize) -> Option<Operand> {
        self.draft.get(key).filter(|&known| self.ready(known) < before)
    }

    /// Returns an available row, or else computes the cheapest one.
    pub(super) fn cheapest(&mut self, rows: &[RowId], before: usize) -> Option<Operand> {
        if let Some(known) = rows.iter().find_map(|&row| self.known(Key::Row(row), before)) {
            return Some(known);
        }
        self.best(rows.iter().copied(), |search, row| search.row(row, before))
    }

    /// Returns an operand with a row that can be computed before a position.
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

    /// Returns the claim that a step has a row.
    pub(super) fn claim(&self, row: RowId) -> Option<Claim> {
        self.survey.numbered.get(row).map(|own| Claim::Row(Rc::clone(&own.row)))
    }

    /// Returns `true` if the effort is used up.
    pub(super) fn is_exhausted(&self) -> bool {
        self.effort == 0
    }

    /// Tries all attempts, and keeps the one on the draft that adds the fewest nodes, the first of equals. Each gets an equal share of the remaining
    /// effort. Without effort, the first working attempt is used.
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
                // No attempt is better than one node, since a row that adds none was found before.
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
