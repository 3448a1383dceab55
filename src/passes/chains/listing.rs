//! The candidates for a row, in the order they are tried in.

use super::candidate::Candidate;
use super::draft::Key;
use super::partition::{Kind, by_kind, by_reach};
use super::row::Row;
use super::search::Search;
use super::step::{Indices, Step};
use crate::tensor::DType;

impl Search<'_> {
    /// The candidates for a row, those first that are likely to be cheap. Once the effort is used up, those without further choices
    /// are enough if there are any.
    pub(super) fn candidates(&mut self, row: &Row, before: usize) -> Vec<Candidate> {
        let mut found = Vec::new();
        found.extend(self.pick(row, before));
        found.extend(self.reading(row, before).map(Candidate::Read));
        let first = self.survey.first.get(row).filter(|&&(_, position)| position < before);
        found.extend(first.map(|&(value, _)| Candidate::Copy(value)));
        if self.is_exhausted() && !found.is_empty() {
            return found;
        }
        if !self.options.copies_only {
            found.extend(self.operations(row).into_iter().map(Candidate::Apply));
        }
        if self.survey.opset.cast_by_number_and_tile_by_axis() {
            match row.dtype {
                DType::Int32 => found.push(Candidate::Cast(DType::Int64)),
                DType::Int64 => found.push(Candidate::Cast(DType::Int32)),
                _ => {}
            }
        }
        found.extend(row.other_rank().map(Candidate::OtherRank));
        found.extend(self.partitions(row, before).into_iter().map(Candidate::Concat));
        found
    }

    /// Entries of the latest vector that has all the terms of a row. A constant is not picked from.
    fn pick(&self, row: &Row, before: usize) -> Option<Candidate> {
        self.draft.rows().find_map(|(other, data)| {
            if other.dtype != row.dtype || !other.is_vector || self.ready(data) >= before {
                return None;
            }
            let indices = row.terms.iter().map(|term| other.terms.iter().position(|own| own == term));
            let indices: Indices = indices.collect::<Option<_>>()?;
            let is_constant = matches!(self.draft.step(data), Some(Step::Constant(_)));
            (!is_constant).then(|| Candidate::Pick { data, length: other.len(), indices })
        })
    }

    /// The ways to cut a row into shorter ones, by their lengths.
    fn partitions(&mut self, row: &Row, before: usize) -> Vec<Vec<usize>> {
        let kinds: Vec<Kind> = row.terms.iter().map(|&term| self.kind(term, row.dtype)).collect();
        let mut found = vec![by_reach(&kinds, |at| self.reach(row, at, before))];
        let alike = by_kind(&kinds);
        if !found.contains(&alike) {
            found.push(alike);
        }
        found.retain(|lengths| lengths.len() > 1);
        found
    }

    /// How many elements of a row from `at` on, but for all of it, can be had at once: at least two.
    fn reach(&self, row: &Row, at: usize, before: usize) -> Option<usize> {
        let rest = row.terms.get(at..)?;
        (2..=rest.len().min(row.len().saturating_sub(1))).rev().find(|&length| {
            let part = row.with_terms(rest.iter().take(length).copied().collect());
            self.known(&Key::Row(part.clone()), before).is_some()
                || self.pick(&part, before).is_some()
                || self.reading(&part, before).is_some_and(|reading| reading.is_run())
        })
    }
}
