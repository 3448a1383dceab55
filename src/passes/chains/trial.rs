//! Applies candidates, with their operands, to the draft.

use std::rc::Rc;

use smallvec::SmallVec;

use super::candidate::Candidate;
use super::draft::Key;
use super::row::{Row, RowId};
use super::search::Search;
use super::step::{Claim, Operand, Step};
use crate::ir::ValueId;
use crate::tensor::DType;

impl Search<'_> {
    /// Applies a candidate to the draft.
    pub(super) fn carry_out(&mut self, row: RowId, candidate: Candidate, before: usize) -> Option<Operand> {
        match candidate {
            Candidate::Read(reading) => self.read(row, reading),
            Candidate::Copy(value) => self.copy(value, before),
            other => {
                // One node is reserved for the candidate itself.
                let limit = self.limit;
                self.limit = limit.checked_sub(1).filter(|&rest| self.draft.cost() < rest)?;
                let step = self.last_step(row, other, before);
                self.limit = limit;
                let claim = self.claim(row)?;
                self.push(step?, claim)
            }
        }
    }

    /// Computes the operands of a candidate, and returns the step that computes the row from them.
    fn last_step(&mut self, id: RowId, candidate: Candidate, before: usize) -> Option<Step> {
        let row = Rc::clone(&self.survey.numbered.get(id)?.row);
        Some(match candidate {
            Candidate::Read(_) | Candidate::Copy(_) => return None,
            Candidate::Pick { data, length: 1, indices } if indices.as_slice() == [0] && !row.is_vector => {
                Step::Squeeze(data)
            }
            Candidate::Pick { data, indices, .. } => Step::Gather { data, indices, is_vector: row.is_vector },
            Candidate::Apply(operation) => self.apply(&row, &operation, before)?,
            Candidate::Cast(from) => {
                let other = Row { dtype: from, ..(*row).clone() };
                let id = self.survey.number(&other);
                let operand = match from {
                    DType::Int64 => self.row(id, before)?,
                    // A plan computes in 32 bits only what the model computes in 32 bits.
                    _ => match self.known(Key::Row(id), before) {
                        Some(known) => known,
                        None => {
                            let &(value, position) = self.survey.first.get(&other)?;
                            self.copy(value, before).filter(|_| position < before)?
                        }
                    },
                };
                Step::Apply { operator: "Cast", operands: vec![operand], to: Some(row.dtype) }
            }
            Candidate::OtherRank(other) => {
                let operand = self.row(other, before)?;
                if row.is_vector { Step::Unsqueeze(operand) } else { Step::Squeeze(operand) }
            }
            Candidate::Concat(lengths) => {
                let mut pieces = Vec::with_capacity(lengths.len());
                let mut rest = row.terms.as_slice();
                for length in lengths {
                    let (piece, others) = rest.split_at_checked(length)?;
                    rest = others;
                    let piece = self.survey.number(&row.with_terms(SmallVec::from_slice(piece)));
                    pieces.push(self.row(piece, before)?);
                }
                Step::Concat(pieces)
            }
            Candidate::Patched { data, offsets } => {
                let offsets = self.row(offsets, before)?;
                Step::Apply { operator: "Add", operands: vec![data, offsets], to: None }
            }
            Candidate::Among { vector, numbers } => {
                let pieces = vec![self.row(vector, before)?, self.row(numbers, before)?];
                let (own, more) = (self.survey.numbered.get(vector)?, self.survey.numbered.get(numbers)?);
                let whole = row.with_terms(own.row.terms.iter().chain(&more.row.terms).copied().collect());
                let position = |term| whole.terms.iter().position(|own| own == term);
                let indices = row.terms.iter().map(position).collect::<Option<_>>()?;
                let id = self.survey.number(&whole);
                let data = match self.known(Key::Row(id), before) {
                    Some(known) => known,
                    None => {
                        let claim = self.claim(id)?;
                        let whole = self.push(Step::Concat(pieces), claim)?;
                        self.draft.remember(Key::Row(id), whole);
                        whole
                    }
                };
                Step::Gather { data, indices, is_vector: row.is_vector }
            }
        })
    }

    /// Returns an operand with the content of a value.
    pub(super) fn same_as(&mut self, value: ValueId, before: usize) -> Option<Operand> {
        if !self.survey.is_size(self.model, value) {
            return self.may_read(value).then_some(Operand::Value(value));
        }
        if let Some(known) = self.known(Key::Value(value), before) {
            return Some(known);
        }
        match self.survey.row(value).cloned() {
            Some(row) => {
                let row = self.survey.number(&row);
                self.row(row, before)
            }
            None => self.copy(value, before),
        }
    }

    /// Copies the node that computes a value, on equal operands.
    pub(super) fn copy(&mut self, value: ValueId, before: usize) -> Option<Operand> {
        if let Some(known) = self.known(Key::Value(value), before) {
            return Some(known);
        }
        if !self.survey.is_size(self.model, value) {
            return self.may_read(value).then_some(Operand::Value(value));
        }
        let id = self.model.value(value).producer()?;
        let node = self.model.node(id)?;
        let [Some(_)] = *node.outputs() else { return None };
        if node.is("Shape")
            && node.attributes.is_empty()
            && let [Some(tensor)] = *node.inputs()
        {
            return self.shape(tensor);
        }
        let mut operands = Vec::with_capacity(node.inputs().len());
        for input in node.inputs() {
            operands.push(match input {
                Some(input) => Some(self.same_as(*input, before)?),
                None => None,
            });
        }
        let copy = self.push(Step::Copy(id, operands), Claim::Value(value))?;
        self.draft.remember(Key::Value(value), copy);
        Some(copy)
    }
}
