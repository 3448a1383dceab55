//! Values that operators accept in place of sizes: the codes 0 and −1 of Reshape, a 1 of Expand, fewer bounds of Slice, and numbers that count from
//! the end.
//!
//! One function per operator returns rows of terms with which the node computes the same result for every size.

use super::survey::Survey;
use super::terms::{TermId, Terms};
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model, Node, NodeId, ValueId};
use crate::ops::size_operand::{
    expand_is_left_out, expand_keeps, reshape_copies, reshape_leaves_rest, slice_bound, slice_reaches_end,
};
use crate::ops::{NodeView, axis_in};
use crate::tensor::{DType, Tensor};

fn dims_of(facts: &Facts, value: Option<ValueId>) -> Option<&[Dim]> {
    facts.get(value?)?.shape()
}

/// Returns `true` if a Reshape reads 0 as a code, as it does −1.
pub(super) fn says_codes(node: &Node) -> bool {
    node.flag("allowzero", false) == Some(false)
}

/// Returns the rows for a Reshape target with 0 for kept dims, and −1 for one dim if the others are not 0.
pub(super) fn reshape_codes(survey: &mut Survey, facts: &Facts, node: &Node, value: ValueId) -> Vec<Terms> {
    let (Some(from), Some(to)) = (dims_of(facts, node.input(0)), dims_of(facts, node.output(0))) else {
        return Vec::new();
    };
    let Some(terms) = survey.row(value).map(|row| row.terms.clone()) else { return Vec::new() };
    if terms.len() != to.len() || !says_codes(node) {
        return Vec::new();
    }
    let scope = facts.scope();
    let (zero, rest) = (survey.terms.int(0), survey.terms.int(-1));
    let mut copied = terms.clone();
    for (axis, (term, dim)) in copied.iter_mut().zip(to).enumerate() {
        if reshape_copies(scope, from, axis, dim) && survey.terms.as_const(*term).is_none() {
            *term = zero;
        }
    }
    let mut found = Vec::new();
    if !reads_as_rest(survey, scope, to, &copied) {
        found.push(copied.clone());
    }
    for axis in 0..terms.len() {
        if terms.get(axis).is_none_or(|&term| survey.terms.as_const(term).is_some()) {
            continue;
        }
        let others = || terms.iter().zip(to).enumerate().filter(|(other, _)| *other != axis).map(|(_, other)| other);
        let says = |(&term, dim): (&TermId, &Dim)| {
            survey.terms.as_dim(term).is_some_and(|said| said.is_const(0) || scope.eq(said, dim).is_yes())
        };
        if !others().all(says) || !reshape_leaves_rest(scope, others().map(|(_, dim)| dim)) {
            continue;
        }
        for base in [&terms, &copied] {
            let mut open = base.clone();
            if let Some(term) = open.get_mut(axis) {
                *term = rest;
            }
            found.push(open);
        }
    }
    found
}

/// Returns `true` if ONNX Runtime may replace the only computed entry of a Reshape target by −1, although other dims may be 0. It makes a constant of
/// a Concat with one computed entry and numbers, but not with two computed entries.
fn reads_as_rest(survey: &Survey, scope: &Scope, to: &[Dim], terms: &Terms) -> bool {
    let constants: Vec<Option<i64>> = terms.iter().map(|&term| survey.terms.as_const(term)).collect();
    let mut computed = (0..terms.len()).filter(|&axis| constants.get(axis).is_some_and(Option::is_none));
    let (Some(only), None) = (computed.next(), computed.next()) else { return false };
    let others = to.iter().enumerate().filter(|(axis, _)| *axis != only).map(|(_, dim)| dim);
    !constants.contains(&Some(-1)) && !reshape_leaves_rest(scope, others)
}

/// Returns the row for an Expand target with 1 for kept dims.
pub(super) fn expand_ones(survey: &mut Survey, facts: &Facts, node: &Node, value: ValueId) -> Option<Terms> {
    let (from, to) = (dims_of(facts, node.input(0))?, dims_of(facts, node.output(0))?);
    let mut terms = survey.row(value)?.terms.clone();
    if terms.len() != to.len() || from.len() > to.len() || expand_is_left_out(to) {
        return None;
    }
    let one = survey.terms.int(1);
    for (axis, term) in terms.iter_mut().enumerate() {
        if expand_keeps(facts.scope(), from, to, axis) && survey.terms.as_const(*term).is_none() {
            *term = one;
        }
    }
    Some(terms)
}

/// The cut of a Slice along one axis.
struct SliceTerms {
    start: TermId,
    end: TermId,
    axis: i64,
    step: i64,
    /// The size of the axis.
    dim: Dim,
}

impl SliceTerms {
    fn cuts_nothing(&self, survey: &Survey, scope: &Scope) -> bool {
        let reaches = survey.terms.as_dim(self.end).is_some_and(|end| slice_reaches_end(scope, &self.dim, end));
        self.step == 1 && survey.terms.as_const(self.start) == Some(0) && reaches
    }
}

/// Bounds for one operand of a Slice, if other operands become constants.
pub(super) struct Bounds {
    pub terms: Terms,
    /// The constants, by slot.
    pub constants: Vec<(usize, Tensor)>,
}

/// Returns the bounds of a Slice in 64 bits and without axes that are kept whole. The bounds may lie anywhere beyond the end.
pub(super) fn slice_bounds(
    survey: &mut Survey,
    model: &Model,
    facts: &Facts,
    node: &Node,
    reader: NodeId,
    slot: usize,
) -> Option<Bounds> {
    // A Slice in a subgraph may read constants of another graph.
    if !survey.opset.slice_has_operands() || survey.position(reader).is_none() {
        return None;
    }
    let cuts = cuts(survey, model, facts, node)?;
    let narrow = facts.get(node.input(slot)?)?.dtype() != Some(DType::Int64);
    let scope = facts.scope();
    let kept: Vec<&SliceTerms> = cuts.iter().filter(|cut| !cut.cuts_nothing(survey, scope)).collect();
    if kept.is_empty() || (kept.len() == cuts.len() && !narrow) {
        return None;
    }
    let starts: Terms = kept.iter().map(|cut| cut.start).collect();
    let ends: Terms = kept.iter().map(|cut| cut.end).collect();
    let vector = |ints: Vec<i64>| Tensor::vector(ints);
    let known = |terms: &Terms| terms.iter().map(|&term| survey.terms.as_const(term)).collect::<Option<Vec<i64>>>();
    let mut constants = vec![(3, vector(kept.iter().map(|cut| cut.axis).collect()))];
    if node.input(4).is_some() {
        constants.push((4, vector(kept.iter().map(|cut| cut.step).collect())));
    }
    for (slot, terms) in [(1, &starts), (2, &ends)] {
        // A computed bound is a separate demand.
        if survey.elements(node.input(slot)?).is_none() || facts.get(node.input(slot)?)?.data().is_some() {
            constants.push((slot, vector(known(terms)?)));
        }
    }
    Some(Bounds { terms: if slot == 1 { starts } else { ends }, constants })
}

/// Returns the bounds of a Slice, with a number for each one that a distance from the end, or the end itself, expresses.
pub(super) fn slice_numbers(
    survey: &mut Survey,
    model: &Model,
    facts: &Facts,
    node: &Node,
    slot: usize,
) -> Option<Terms> {
    if facts.get(node.input(slot)?)?.dtype() != Some(DType::Int64) {
        return None;
    }
    let cuts = cuts(survey, model, facts, node).filter(|cuts| cuts.iter().all(|cut| cut.step > 0))?;
    let numbers = cuts.iter().map(|cut| {
        let term = if slot == 1 { cut.start } else { cut.end };
        let number = slice_bound(facts.scope(), &cut.dim, survey.terms.as_dim(term)?);
        Some(number.map_or(term, |number| survey.terms.int(number)))
    });
    numbers.collect()
}

/// Returns the cut of a Slice on each axis, if axes and steps are known and the bounds are sizes.
fn cuts(survey: &mut Survey, model: &Model, facts: &Facts, node: &Node) -> Option<Vec<SliceTerms>> {
    let shape = dims_of(facts, node.input(0))?;
    let mut bound = |slot: usize| -> Option<Terms> {
        let value = node.input(slot)?;
        let fact = facts.get(value)?;
        match fact.const_ints() {
            Some(ints) => Some(ints.into_iter().map(|int| survey.terms.int(int)).collect()),
            None => survey.row(value).filter(|_| survey.is_size(model, value)).map(|row| row.terms.clone()),
        }
    };
    let (starts, ends) = (bound(1)?, bound(2)?);
    let count = starts.len();
    let reading = NodeView { node, facts, opset: survey.opset };
    let (axes, steps) = (reading.slice_axes()?, reading.slice_steps()?);
    if [ends.len(), axes.len(), steps.len()] != [count; 3] {
        return None;
    }
    let mut cuts = Vec::with_capacity(count);
    for (((&start, &end), &axis), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let dim = shape.get(axis_in(axis, shape.len()).ok()?)?.clone();
        cuts.push(SliceTerms { start, end, axis, step, dim });
    }
    Some(cuts)
}
