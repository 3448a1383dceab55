//! What an operator asks of the sizes it is told, and what else would tell it the same.

use super::survey::{Survey, Want};
use super::terms::{Lanes, TermId};
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model, Node, NodeId, ValueId};
use crate::ops::size_operand::{expand_keeps, reshape_copies, reshape_leaves_rest, slice_reaches_end};
use crate::ops::{NodeView, Opset, axis_in};
use crate::tensor::{DType, Tensor};

/// Someone who asks for sizes.
pub(super) struct Asked {
    pub reader: NodeId,
    pub slot: usize,
    /// What is read now.
    pub value: ValueId,
    /// The place of the reader in the order.
    pub place: usize,
    /// Whether the reader is needed whatever becomes of the chain.
    pub is_kept: bool,
    /// What would do; nothing if only the value itself does.
    pub wants: Vec<Want>,
}

/// Where a size is read.
pub(super) struct Place {
    pub reader: NodeId,
    pub slot: usize,
    pub value: ValueId,
    pub place: usize,
    pub is_kept: bool,
}

/// Notes that operand `slot` of a node is a value of the chain.
pub(super) fn ask(survey: &mut Survey, model: &Model, facts: &Facts, at: Place) {
    let Place { reader, slot, value, place, is_kept } = at;
    let mut wants: Vec<Want> = survey.want(value).cloned().into_iter().collect();
    if let Some(node) = model.node(reader).filter(|node| node.canonical_domain().is_empty()) {
        let others = match node.op_type.as_str() {
            "Reshape" if slot == 1 => codes(survey, facts, node, value),
            "Expand" if slot == 1 => ones(survey, facts, node, value).into_iter().collect(),
            "Slice" if slot == 1 || slot == 2 => match bounds(survey, model, facts, node, reader, slot) {
                Some(bounds) => {
                    wants.clear();
                    bounds
                }
                None => Vec::new(),
            },
            _ => Vec::new(),
        };
        for lanes in others {
            let want = Want { dtype: DType::Int64, is_vector: true, lanes };
            if !wants.contains(&want) {
                wants.push(want);
            }
        }
    }
    survey.asked.push(Asked { reader, slot, value, place, is_kept, wants });
}

fn dims_of(facts: &Facts, value: Option<ValueId>) -> Option<&[Dim]> {
    facts.get(value?)?.shape()
}

/// A target of Reshape may say 0 for a dim that is kept, and −1 for one if the others are not 0.
fn codes(survey: &mut Survey, facts: &Facts, node: &Node, value: ValueId) -> Vec<Lanes> {
    let zero_copies = node.flag("allowzero", false) == Some(false);
    let (Some(from), Some(to)) = (dims_of(facts, node.input(0)), dims_of(facts, node.output(0))) else {
        return Vec::new();
    };
    let Some(lanes) = survey.want(value).map(|want| want.lanes.clone()) else { return Vec::new() };
    if lanes.len() != to.len() || !zero_copies {
        return Vec::new();
    }
    let scope = facts.scope();
    let (zero, rest) = (survey.terms.int(0), survey.terms.int(-1));
    let mut copied = lanes.clone();
    for (axis, (lane, dim)) in copied.iter_mut().zip(to).enumerate() {
        if reshape_copies(scope, from, axis, dim) && survey.terms.as_const(*lane).is_none() {
            *lane = zero;
        }
    }
    let mut found = vec![copied.clone()];
    for axis in 0..lanes.len() {
        if lanes.get(axis).is_none_or(|&lane| survey.terms.as_const(lane).is_some()) {
            continue;
        }
        let others = || lanes.iter().zip(to).enumerate().filter(|(other, _)| *other != axis).map(|(_, other)| other);
        let says = |(&lane, dim): (&TermId, &Dim)| {
            survey.terms.as_dim(lane).is_some_and(|said| said.is_const(0) || scope.eq(said, dim).is_yes())
        };
        if !others().all(says) || !reshape_leaves_rest(scope, others().map(|(_, dim)| dim)) {
            continue;
        }
        for base in [&lanes, &copied] {
            let mut open = base.clone();
            if let Some(lane) = open.get_mut(axis) {
                *lane = rest;
            }
            found.push(open);
        }
    }
    found
}

/// A target of Expand may say 1 for a dim that is kept.
fn ones(survey: &mut Survey, facts: &Facts, node: &Node, value: ValueId) -> Option<Lanes> {
    let (from, to) = (dims_of(facts, node.input(0))?, dims_of(facts, node.output(0))?);
    let mut lanes = survey.want(value)?.lanes.clone();
    if lanes.len() != to.len() || from.len() > to.len() {
        return None;
    }
    let one = survey.terms.int(1);
    for (axis, lane) in lanes.iter_mut().enumerate() {
        if expand_keeps(facts.scope(), from, to, axis) && survey.terms.as_const(*lane).is_none() {
            *lane = one;
        }
    }
    Some(lanes)
}

/// What a Slice cuts along one axis.
struct Cut {
    start: TermId,
    end: TermId,
    axis: i64,
    step: i64,
    /// The size of the axis.
    dim: Dim,
}

impl Cut {
    fn cuts_nothing(&self, survey: &Survey, scope: &Scope) -> bool {
        let reaches = survey.terms.as_dim(self.end).is_some_and(|end| slice_reaches_end(scope, &self.dim, end));
        self.step == 1 && survey.terms.as_const(self.start) == Some(0) && reaches
    }
}

/// The bounds of a Slice may be of 64 bits if all its operands are, need not name axes that are kept whole, and may lie anywhere
/// beyond the end.
fn bounds(
    survey: &mut Survey,
    model: &Model,
    facts: &Facts,
    node: &Node,
    reader: NodeId,
    slot: usize,
) -> Option<Vec<Lanes>> {
    // A Slice in a subgraph may read constants that are not this graph's.
    if !Opset::new(survey.opset).slice_has_operands() || survey.position(reader).is_none() {
        return None;
    }
    let cuts = cuts(survey, model, facts, node)?;
    let narrow = facts.get(node.input(slot)?)?.dtype() != Some(DType::Int64);
    let scope = facts.scope();
    let kept: Vec<&Cut> = cuts.iter().filter(|cut| !cut.cuts_nothing(survey, scope)).collect();
    if kept.is_empty() || (kept.len() == cuts.len() && !narrow) {
        return None;
    }
    let starts: Lanes = kept.iter().map(|cut| cut.start).collect();
    let ends: Lanes = kept.iter().map(|cut| cut.end).collect();
    let vector = |ints: Vec<i64>| Tensor::vector(ints);
    let known = |lanes: &Lanes| lanes.iter().map(|&lane| survey.terms.as_const(lane)).collect::<Option<Vec<i64>>>();
    let mut constants = vec![(3, vector(kept.iter().map(|cut| cut.axis).collect()))];
    if node.input(4).is_some() {
        constants.push((4, vector(kept.iter().map(|cut| cut.step).collect())));
    }
    for (slot, lanes) in [(1, &starts), (2, &ends)] {
        // Whoever is computed is asked for by itself.
        if survey.elements(node.input(slot)?).is_none() || facts.get(node.input(slot)?)?.data().is_some() {
            constants.push((slot, vector(known(lanes)?)));
        }
    }
    for (slot, tensor) in constants {
        if !survey.constants.iter().any(|(id, other, _)| *id == reader && *other == slot) {
            survey.constants.push((reader, slot, tensor));
        }
    }
    Some(vec![if slot == 1 { starts } else { ends }])
}

/// What a Slice cuts, axis by axis, where the axes and steps are known and the bounds are sizes.
fn cuts(survey: &mut Survey, model: &Model, facts: &Facts, node: &Node) -> Option<Vec<Cut>> {
    let shape = dims_of(facts, node.input(0))?;
    let mut bound = |slot: usize| -> Option<Lanes> {
        let value = node.input(slot)?;
        let fact = facts.get(value)?;
        match fact.const_ints() {
            Some(ints) => Some(ints.into_iter().map(|int| survey.terms.int(int)).collect()),
            None => {
                let of_chain = model.value(value).producer().is_some_and(|producer| survey.chain.contains(&producer));
                survey.want(value).filter(|_| of_chain).map(|want| want.lanes.clone())
            }
        }
    };
    let (starts, ends) = (bound(1)?, bound(2)?);
    let count = starts.len();
    let reading = NodeView { node, facts, opset: Opset::new(survey.opset) };
    let (axes, steps) = (reading.slice_axes()?, reading.slice_steps()?);
    if [ends.len(), axes.len(), steps.len()] != [count; 3] {
        return None;
    }
    let mut cuts = Vec::with_capacity(count);
    for (((&start, &end), &axis), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let dim = shape.get(axis_in(axis, shape.len()).ok()?)?.clone();
        cuts.push(Cut { start, end, axis, step, dim });
    }
    Some(cuts)
}
