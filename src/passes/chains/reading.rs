//! Reads sizes from the shapes of tensors.

use std::rc::Rc;

use super::candidate::{Reading, is_run};
use super::draft::Key;
use super::row::RowId;
use super::row_table::Source;
use super::search::Search;
use super::step::{Indices, Operand, Step};
use crate::dim::Dim;
use crate::ir::ValueId;
use crate::tensor::DType;

/// Returns the axes of a shape with these sizes: consecutive axes if possible, or the first axis of each size.
fn axes_of(shape: &[Dim], sizes: &[&Dim]) -> Option<Indices> {
    let is_here = |run: &[Dim]| run.iter().zip(sizes).all(|(own, size)| own == *size);
    // `windows` rejects length 0.
    match shape.windows(sizes.len().max(1)).position(is_here) {
        Some(start) => Some((start..start + sizes.len()).collect()),
        None => sizes.iter().map(|size| shape.iter().position(|own| own == *size)).collect(),
    }
}

impl Search<'_> {
    /// Returns `true` if a tensor that no size node computes may be read.
    pub(super) fn may_read(&self, tensor: ValueId) -> bool {
        !self.options.kept_only || self.survey.is_kept(self.model, tensor)
    }

    /// Returns the tensor from which a row is read in the fewest nodes, before a position. Ties prefer a tensor whose shape is in the draft, then one
    /// with more demanded sizes, then the earliest.
    pub(super) fn reading(&mut self, row: RowId, before: usize) -> Option<Reading> {
        let sources = self.sources(row)?;
        let is_vector = self.survey.numbered.get(row)?.row.is_vector;
        let mut best = None;
        for source in sources.iter().filter(|source| source.position < before) {
            let tensor = source.tensor;
            if !self.may_read(tensor) {
                continue;
            }
            let is_taken = self.draft.get(Key::Shape(tensor)).is_some();
            let nodes = self.nodes_to_read(source, is_vector, is_taken);
            let score = self.demands.score.get(&tensor).copied().unwrap_or(0);
            let rank = (std::cmp::Reverse(nodes), is_taken, score, std::cmp::Reverse(source.position));
            if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                best = Some((rank, source));
            }
        }
        best.map(|(_, source)| Reading { tensor: source.tensor, axes: source.axes.clone() })
    }

    /// Returns all tensors from which a row can be read, at any position and under any options.
    fn sources(&mut self, row: RowId) -> Option<Rc<[Source]>> {
        let own = self.survey.numbered.get(row)?;
        if let Some(sources) = &own.sources {
            return Some(Rc::clone(sources));
        }
        let sizes = match own.row.dtype {
            DType::Int64 => own.row.terms.iter().map(|&term| self.survey.terms.as_dim(term)).collect(),
            _ => None::<Vec<&Dim>>,
        };
        let sizes = sizes.unwrap_or_default();
        let symbolic = sizes.iter().find(|size| size.as_const().is_none());
        let with_size = symbolic.and_then(|size| self.survey.sources.get(*size)).into_iter().flatten();
        let readable = with_size.filter_map(|source| {
            let shape = self.survey.shapes.get(&source.tensor)?;
            let (tensor, position, axes) = (source.tensor, source.position, axes_of(shape, &sizes)?);
            Some(Source { tensor, position, axes, rank: shape.len() })
        });
        let sources: Rc<[Source]> = readable.collect();
        self.survey.numbered.get_mut(row)?.sources = Some(Rc::clone(&sources));
        Some(sources)
    }

    /// Returns the number of nodes to read axes. A whole shape is one node, or none if the draft has it. A part of it is one more, or one in total
    /// where Shape has `start` and `end`.
    fn nodes_to_read(&self, source: &Source, is_vector: bool, is_taken: bool) -> usize {
        let is_run = is_vector && is_run(&source.axes);
        let is_whole = is_run && source.axes.len() == source.rank;
        let nodes = usize::from(!is_taken) + usize::from(!is_whole);
        if is_run && self.survey.opset.shape_of_a_run() { nodes.min(1) } else { nodes }
    }

    /// Reads a row.
    pub(super) fn read(&mut self, row: RowId, reading: Reading) -> Option<Operand> {
        let Reading { tensor, .. } = reading;
        let rank = self.survey.shapes.get(&tensor)?.len();
        let (is_vector, claim) = (self.survey.numbered.get(row)?.row.is_vector, self.claim(row)?);
        let is_run = is_vector && reading.is_run();
        let first = *reading.axes.first()?;
        if is_run && reading.axes.len() == rank {
            return self.shape(tensor);
        }
        if is_run && self.survey.opset.shape_of_a_run() && self.draft.get(Key::Shape(tensor)).is_none() {
            return self.push(Step::Shape(tensor, Some((first, first + reading.axes.len()))), claim);
        }
        let shape = self.shape(tensor)?;
        if rank == 1 && !is_vector {
            return self.push(Step::Squeeze(shape), claim);
        }
        self.push(Step::Gather { data: shape, indices: reading.axes, is_vector }, claim)
    }

    /// Returns the whole shape of a tensor.
    pub(super) fn shape(&mut self, tensor: ValueId) -> Option<Operand> {
        if let Some(known) = self.draft.get(Key::Shape(tensor)) {
            return Some(known);
        }
        if !self.may_read(tensor) {
            return None;
        }
        let row = self.survey.number_of_shape(tensor)?;
        let claim = self.claim(row)?;
        let operand = self.push(Step::Shape(tensor, None), claim)?;
        self.draft.remember(Key::Shape(tensor), operand);
        let has_axes = self.survey.numbered.get(row).is_some_and(|own| own.row.len() > 0);
        if has_axes && self.draft.get(Key::Row(row)).is_none() {
            self.draft.remember(Key::Row(row), operand);
        }
        Some(operand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Scope;

    #[test]
    fn axes_in_a_row_are_preferred_to_the_first_of_each_size() {
        let scope = Scope::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| Dim::symbol(scope.named(name)));
        let shape = [b.clone(), c.clone(), a.clone(), b.clone()];
        let axes = |sizes: &[&Dim]| axes_of(&shape, sizes).map(|axes| axes.to_vec());
        assert_eq!(axes(&[&a, &b]), Some(vec![2, 3]));
        assert_eq!(axes(&[&b, &a]), Some(vec![0, 2]));
        assert_eq!(axes(&[&b, &b]), Some(vec![0, 0]));
        assert_eq!(axes(&[&a, &Dim::constant(2)]), None);
    }
}
