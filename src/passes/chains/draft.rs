//! The plan under construction: its steps, their contents, and an undo log.
//!
//! A trial only appends to the draft, so truncation to the checkpoint before it undoes the trial. A detached part can be attached again while the
//! draft is in the state of the checkpoint.

use rustc_hash::FxHashMap;

use super::row::RowId;
use super::step::{Claim, Operand, PlannedStep, Step};
use crate::ir::ValueId;

/// A key of the memo.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    /// An operand that holds this row.
    Row(RowId),
    /// The whole shape of this tensor.
    Shape(ValueId),
    /// An operand that holds the content of this value.
    Value(ValueId),
}

/// An entry of the memo, and the entry that it replaced.
struct MemoChange {
    key: Key,
    operand: Operand,
    hidden: Option<Operand>,
}

/// The plan under construction.
#[derive(Default)]
pub(super) struct Draft {
    steps: Vec<PlannedStep>,
    /// The latest position in the graph among the values each step needs.
    ready: Vec<usize>,
    cost: usize,
    /// The memo of rows, by their numbers.
    rows: Vec<Option<Operand>>,
    /// The memo of everything else.
    memo: FxHashMap<Key, Operand>,
    /// The changes of the memo, in order.
    trail: Vec<MemoChange>,
}

/// A state of the draft.
#[derive(Clone, Copy)]
pub(super) struct Checkpoint {
    steps: usize,
    entries: usize,
    cost: usize,
}

/// The part of a draft after a checkpoint.
pub(super) struct Detached {
    steps: Vec<PlannedStep>,
    ready: Vec<usize>,
    entries: Vec<MemoChange>,
    cost: usize,
}

impl Detached {
    /// Returns the number of detached nodes.
    pub fn cost(&self) -> usize {
        self.cost
    }
}

impl Draft {
    /// Returns the number of nodes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    pub fn step(&self, operand: Operand) -> Option<&Step> {
        match operand {
            Operand::Step(at) => self.steps.get(at).map(|planned| &planned.step),
            Operand::Value(_) => None,
        }
    }

    /// Returns the position after which a step can be computed; `None` without such a step.
    pub fn ready(&self, step: usize) -> Option<usize> {
        self.ready.get(step).copied()
    }

    /// Adds a step that can be computed after the position `ready`.
    pub fn push(&mut self, step: Step, claim: Claim, ready: usize) -> Operand {
        self.cost += step.cost();
        self.steps.push(PlannedStep { step, claim });
        self.ready.push(ready);
        Operand::Step(self.steps.len() - 1)
    }

    pub fn get(&self, key: Key) -> Option<Operand> {
        match key {
            Key::Row(row) => self.rows.get(row.index()).copied().flatten(),
            Key::Shape(_) | Key::Value(_) => self.memo.get(&key).copied(),
        }
    }

    /// Sets an entry of the memo, or removes it. Returns the previous entry.
    fn set(&mut self, key: Key, operand: Option<Operand>) -> Option<Operand> {
        match (key, operand) {
            (Key::Row(row), _) => {
                if self.rows.len() <= row.index() {
                    self.rows.resize(row.index() + 1, None);
                }
                let entry = self.rows.get_mut(row.index())?;
                std::mem::replace(entry, operand)
            }
            (_, Some(operand)) => self.memo.insert(key, operand),
            (_, None) => self.memo.remove(&key),
        }
    }

    pub fn remember(&mut self, key: Key, operand: Operand) {
        let hidden = self.set(key, Some(operand));
        self.trail.push(MemoChange { key, operand, hidden });
    }

    /// Returns the rows in the memo, the latest first.
    pub fn rows(&self) -> impl Iterator<Item = (RowId, Operand)> {
        self.trail.iter().rev().filter_map(|entry| match entry.key {
            Key::Row(row) => Some((row, entry.operand)),
            Key::Shape(_) | Key::Value(_) => None,
        })
    }

    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { steps: self.steps.len(), entries: self.trail.len(), cost: self.cost }
    }

    /// Detaches everything after a checkpoint.
    pub fn cut(&mut self, at: Checkpoint) -> Detached {
        let entries = self.trail.split_off(at.entries);
        for entry in entries.iter().rev() {
            self.set(entry.key, entry.hidden);
        }
        let cost = self.cost - at.cost;
        self.cost = at.cost;
        Detached { steps: self.steps.split_off(at.steps), ready: self.ready.split_off(at.steps), entries, cost }
    }

    /// Removes everything after a checkpoint.
    pub fn undo(&mut self, at: Checkpoint) {
        while self.trail.len() > at.entries
            && let Some(entry) = self.trail.pop()
        {
            self.set(entry.key, entry.hidden);
        }
        self.cost = at.cost;
        self.steps.truncate(at.steps);
        self.ready.truncate(at.steps);
    }

    /// Attaches a part that was detached at the current state.
    pub fn attach(&mut self, detached: Detached) {
        self.steps.extend(detached.steps);
        self.ready.extend(detached.ready);
        self.cost += detached.cost;
        detached.entries.into_iter().for_each(|entry| self.remember(entry.key, entry.operand));
    }

    pub fn into_steps(self) -> Vec<PlannedStep> {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::chains::row::Row;
    use crate::passes::chains::row_table::RowTable;
    use crate::passes::chains::terms::TermTable;
    use crate::tensor::Tensor;
    use std::rc::Rc;

    #[test]
    fn a_cut_restores_the_draft_and_can_be_attached_again() {
        let (mut terms, mut table) = (TermTable::default(), RowTable::default());
        let [one, two] = [1, 2].map(|int| table.add(Row::sizes(std::iter::once(terms.int(int)).collect()), None));
        let claim = |row| Claim::Row(Rc::clone(&table.get(row).expect("a row").row));
        let mut draft = Draft::default();
        let constant = Step::Constant(Tensor::vector(vec![1i64]));
        let first = draft.push(constant.clone(), claim(one), 0);
        draft.remember(Key::Row(one), first);
        let checkpoint = draft.checkpoint();
        let second = draft.push(Step::Squeeze(first), claim(two), 3);
        draft.remember(Key::Row(two), second);
        draft.remember(Key::Row(one), second);
        assert_eq!((draft.cost(), draft.get(Key::Row(one))), (1, Some(second)));

        let detached = draft.cut(checkpoint);
        assert_eq!((draft.cost(), detached.cost()), (0, 1));
        assert_eq!(draft.get(Key::Row(one)), Some(first));
        assert_eq!(draft.get(Key::Row(two)), None);
        assert_eq!(draft.ready(1), None);

        draft.attach(detached);
        assert_eq!((draft.cost(), draft.ready(1)), (1, Some(3)));
        assert_eq!(draft.get(Key::Row(two)), Some(second));
        assert_eq!(draft.rows().next().map(|(row, _)| row), Some(one));

        draft.undo(checkpoint);
        assert_eq!((draft.cost(), draft.ready(1)), (0, None));
        assert_eq!((draft.get(Key::Row(one)), draft.get(Key::Row(two))), (Some(first), None));
    }
}
