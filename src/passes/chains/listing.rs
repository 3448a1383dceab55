//! Lists the candidates for a row, in the order of trials.

use std::rc::Rc;

use super::candidate::Candidate;
use super::draft::Key;
use super::partition::{Kind, by_kind, by_reach};
use super::row::{Row, RowId};
use super::search::Search;
use super::step::{Indices, Step};
use super::terms::{TermId, Terms};
use crate::tensor::DType;

impl Search<'_> {
    /// Returns the candidates for a row, the probably cheap ones first. Once the effort is used up, candidates without further choices are enough.
    pub(super) fn candidates(&mut self, id: RowId, before: usize) -> Vec<Candidate> {
        let mut found = Vec::new();
        let Some(row) = self.survey.numbered.get(id).map(|own| Rc::clone(&own.row)) else { return found };
        found.extend(self.pick(id, before));
        found.extend(self.reading(id, before).map(Candidate::Read));
        let first = self.survey.first.get(&*row).filter(|&&(_, position)| position < before);
        found.extend(first.map(|&(value, _)| Candidate::Copy(value)));
        if self.is_exhausted() && !found.is_empty() {
            return found;
        }
        if !self.options.copies_only {
            let operations = self.operations(id);
            let operations = operations.iter().filter(|operation| self.options.among || !operation.skips_first);
            found.extend(operations.map(|operation| Candidate::Apply(Rc::clone(operation))));
        }
        if self.survey.opset.cast_by_number_and_tile_by_axis() {
            match row.dtype {
                DType::Int32 => found.push(Candidate::Cast(DType::Int64)),
                DType::Int64 => found.push(Candidate::Cast(DType::Int32)),
                _ => {}
            }
        }
        found.extend(row.other_rank().map(|other| Candidate::OtherRank(self.survey.number(&other))));
        found.extend(self.partitions(id, before).into_iter().map(Candidate::Concat));
        if self.options.among {
            found.extend(self.patched(&row, before));
            found.extend(self.among(id, before));
        }
        found
    }

    /// Returns a vector of the draft that differs from a row only in numbers: `[n, 8, h, w] + [0, 24, 0, 0]` is `[n, 32, h, w]`.
    fn patched(&mut self, row: &Row, before: usize) -> Option<Candidate> {
        if row.dtype != DType::Int64 || !row.is_vector {
            return None;
        }
        let table = &self.survey.terms;
        let difference = |(&term, &own): (&TermId, &TermId)| match (table.as_const(term), table.as_const(own)) {
            (Some(number), Some(own)) => number.checked_sub(own),
            _ => (term == own).then_some(0),
        };
        let (data, offsets) = self.draft.rows().find_map(|(other, data)| {
            let other = &self.survey.numbered.get(other)?.row;
            let is_alike = other.is_vector && other.dtype == row.dtype && other.len() == row.len();
            if !is_alike || self.ready(data) >= before || matches!(self.draft.step(data), Some(Step::Constant(_))) {
                return None;
            }
            let offsets = row.terms.iter().zip(&other.terms).map(difference);
            Some((data, offsets.collect::<Option<Vec<i64>>>()?))
        })?;
        let offsets = offsets.into_iter().map(|offset| self.survey.terms.int(offset)).collect();
        Some(Candidate::Patched { data, offsets: self.survey.number(&row.with_terms(offsets)) })
    }

    /// Returns a vector with all terms of a row except numbers between them. With the numbers appended to the vector, one Gather picks the row.
    fn among(&mut self, id: RowId, before: usize) -> Option<Candidate> {
        let row = Rc::clone(&self.survey.numbered.get(id)?.row);
        if !self.survey.terms.has_numbers_between(&row.terms) {
            return None;
        }
        let (numbers, others): (Terms, Terms) =
            row.terms.iter().copied().partition(|&term| self.survey.terms.is_number(term));
        let rest = self.survey.number(&row.with_terms(others));
        let vector = match self.pick(rest, before) {
            Some(Candidate::Pick { data, .. }) => self.draft.rows().find(|&(_, operand)| operand == data)?.0,
            _ => {
                let tensor = self.reading(rest, before)?.tensor;
                self.survey.number_of_shape(tensor)?
            }
        };
        let numbers = self.survey.number(&row.with_terms(numbers));
        Some(Candidate::Among { vector, numbers })
    }

    /// Returns entries of the latest vector that has all terms of a row, except from a constant.
    fn pick(&self, row: RowId, before: usize) -> Option<Candidate> {
        let own = self.survey.numbered.get(row)?;
        let (row, mask) = (&own.row, own.mask);
        self.draft.rows().find_map(|(other, data)| {
            let other = self.survey.numbered.get(other).filter(|other| mask & !other.mask == 0)?;
            let other = &other.row;
            if other.dtype != row.dtype || !other.is_vector || self.ready(data) >= before {
                return None;
            }
            let indices = row.terms.iter().map(|term| other.terms.iter().position(|own| own == term));
            let indices: Indices = indices.collect::<Option<_>>()?;
            let is_constant = matches!(self.draft.step(data), Some(Step::Constant(_)));
            (!is_constant).then(|| Candidate::Pick { data, length: other.len(), indices })
        })
    }

    /// Returns the kinds of a row's elements.
    fn kinds(&mut self, row: RowId) -> Option<Rc<[Kind]>> {
        let own = self.survey.numbered.get(row)?;
        if let Some(kinds) = &own.kinds {
            return Some(Rc::clone(kinds));
        }
        let own = Rc::clone(&own.row);
        let kinds: Rc<[Kind]> = own.terms.iter().map(|&term| self.kind(term, own.dtype)).collect();
        self.survey.numbered.get_mut(row)?.kinds = Some(Rc::clone(&kinds));
        Some(kinds)
    }

    /// Returns the ways to split a row into shorter ones, by their lengths.
    fn partitions(&mut self, row: RowId, before: usize) -> Vec<Vec<usize>> {
        let Some(kinds) = self.kinds(row) else { return Vec::new() };
        let mut found = vec![by_reach(&kinds, |at| self.reach(row, at, before))];
        let alike = by_kind(&kinds);
        if !found.contains(&alike) {
            found.push(alike);
        }
        found.retain(|lengths| lengths.len() > 1);
        found
    }

    /// Returns the number of elements of a row from `at` on that one operand provides: at least two, but not the whole row.
    fn reach(&mut self, row: RowId, at: usize, before: usize) -> Option<usize> {
        let row = Rc::clone(&self.survey.numbered.get(row)?.row);
        let rest = row.terms.get(at..)?;
        (2..=rest.len().min(row.len().saturating_sub(1))).rev().find(|&length| {
            let part = self.survey.number(&row.with_terms(rest.iter().take(length).copied().collect()));
            self.known(Key::Row(part), before).is_some()
                || self.pick(part, before).is_some()
                || self.reading(part, before).is_some_and(|reading| reading.is_run())
        })
    }
}
