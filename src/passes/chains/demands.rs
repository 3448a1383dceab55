//! Demands: the operands of other nodes that size nodes compute, and the rows that can replace them.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::conventions::{expand_ones, reshape_codes, slice_bounds, slice_numbers};
use super::demand::Demand;
use super::rests::shared_rests;
use super::row::Row;
use super::survey::{MAX_LEN, Survey};
use super::terms::Terms;
use crate::dim::Dim;
use crate::ir::{Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::sort;
use crate::tensor::{DType, Tensor};

/// All demands on a group of size nodes.
#[derive(Default)]
pub(super) struct Demands {
    /// The demands, sorted by position.
    pub list: Vec<Demand>,
    /// Operands of readers that become constants if the demands are met.
    pub constants: Vec<(NodeId, usize, Tensor)>,
    /// The number of demanded sizes of each tensor.
    pub score: BTreeMap<ValueId, usize>,
    /// The tensors whose whole shapes are demanded.
    pub whole: Vec<ValueId>,
    /// Numbers that the same operator computes, as one vector with the position of its first reader.
    pub joint: Vec<(Row, usize)>,
}

impl Demands {
    /// Collects the demands on the size nodes; `None` if a reader has no position.
    pub fn of(survey: &mut Survey, model: &Model, facts: &Facts) -> Option<Demands> {
        let mut demands = Demands::default();
        let mut sizes: FxHashSet<Dim> = FxHashSet::default();
        for id in survey.order.clone() {
            let Some(node) = model.node(id) else { continue };
            for &value in node.outputs().iter().flatten() {
                for (reader, slot) in model.users(value) {
                    if survey.size_nodes.contains(&reader) {
                        continue;
                    }
                    let outer = holder_in(model, survey.graph, reader);
                    let position = survey.position(outer)?;
                    let is_kept = survey.kept.contains(&outer);
                    let rows = demands.rows(survey, model, facts, (reader, slot, value));
                    demands.list.push(Demand { reader, slot, value, position, is_kept, rows });
                    let terms = survey.elements(value).cloned().unwrap_or_default();
                    for dim in terms.iter().filter_map(|&term| survey.terms.as_dim(term)) {
                        if sizes.insert(dim.clone()) {
                            for source in survey.sources.get(dim).into_iter().flatten() {
                                *demands.score.entry(source.tensor).or_default() += 1;
                            }
                        }
                    }
                }
            }
        }
        sort::by_key(&mut demands.list, |demand| (demand.position, demand.slot, demand.value));
        for (at, row) in shared_rests(survey, model, facts, &demands.list) {
            if let Some(demand) = demands.list.get_mut(at) {
                // Of rows with equal cost, the first is used: this row serves two demands.
                demand.rows.insert(0, row);
            }
        }
        demands.find_whole(survey);
        demands.join(survey, facts);
        Some(demands)
    }

    /// Finds the earliest tensor whose shape is each demanded vector.
    fn find_whole(&mut self, survey: &Survey) {
        for row in self.list.iter().flat_map(|demand| &demand.rows).filter(|row| row.is_vector && row.len() > 1) {
            let dims: Option<Vec<&Dim>> = row.terms.iter().map(|&term| survey.terms.as_dim(term)).collect();
            let Some(dims) = dims else { continue };
            let sources = dims.iter().find_map(|dim| survey.sources.get(*dim)).into_iter().flatten();
            let is_whole =
                |tensor: &ValueId| survey.shapes.get(tensor).is_some_and(|shape| shape.iter().eq(dims.iter().copied()));
            let found = sources.map(|source| source.tensor).find(is_whole);
            self.whole.extend(found.filter(|tensor| !self.whole.contains(tensor)));
        }
    }

    /// Joins numbers that the same operator computes into vectors.
    fn join(&mut self, survey: &mut Survey, facts: &Facts) {
        let mut groups: Vec<((DType, &'static str), Terms, usize)> = Vec::new();
        for demand in &self.list {
            let Some(row) = demand.rows.first().filter(|row| row.len() == 1) else { continue };
            let Some(&term) = row.terms.first().filter(|&&term| !survey.terms.is_number(term)) else { continue };
            let formulas = survey.terms.formulas(term, row.dtype, survey.opset, facts.scope());
            let Some(operator) = formulas.first().map(|formula| formula.operator) else { continue };
            let key = (row.dtype, operator);
            match groups.iter_mut().find(|(other, ..)| *other == key) {
                // Vectors longer than shapes take more than quadratic time and memory.
                Some((_, terms, _)) if terms.len() >= MAX_LEN || terms.contains(&term) => {}
                Some((_, terms, position)) => {
                    terms.push(term);
                    *position = demand.position.min(*position);
                }
                None => groups.push((key, std::iter::once(term).collect(), demand.position)),
            }
        }
        let several = groups.into_iter().filter(|(_, terms, _)| terms.len() > 1);
        let joint = several.map(|((dtype, _), terms, position)| (Row { dtype, is_vector: true, terms }, position));
        self.joint.extend(joint);
    }

    /// Returns the rows that can replace operand `slot` of a reader, which is `value` now.
    fn rows(&mut self, survey: &mut Survey, model: &Model, facts: &Facts, at: (NodeId, usize, ValueId)) -> Vec<Row> {
        let (reader, slot, value) = at;
        let mut rows: Vec<Row> = survey.row(value).cloned().into_iter().collect();
        let Some(node) = model.node(reader).filter(|node| node.canonical_domain().is_empty()) else { return rows };
        let others: Vec<Terms> = match node.op_type.as_str() {
            "Reshape" if slot == 1 => reshape_codes(survey, facts, node, value),
            "Expand" if slot == 1 => expand_ones(survey, facts, node, value).into_iter().collect(),
            "Slice" if slot == 1 || slot == 2 => match slice_bounds(survey, model, facts, node, reader, slot) {
                Some(bounds) => {
                    // The other operands change, too, so the exact row no longer fits.
                    rows.clear();
                    for (slot, tensor) in bounds.constants {
                        if !self.constants.iter().any(|(id, other, _)| *id == reader && *other == slot) {
                            self.constants.push((reader, slot, tensor));
                        }
                    }
                    vec![bounds.terms]
                }
                None => slice_numbers(survey, model, facts, node, slot).into_iter().collect(),
            },
            _ => Vec::new(),
        };
        for row in others.into_iter().map(Row::sizes) {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }
}

/// Returns the node of `graph` that is the reader, or contains it in a subgraph.
pub(in crate::passes) fn holder_in(model: &Model, graph: GraphId, reader: NodeId) -> NodeId {
    let mut holder = reader;
    while let Some(outer) =
        model.node(holder).map(Node::graph).filter(|&at| at != graph).and_then(|at| model.graph(at).parent())
    {
        holder = outer;
    }
    holder
}
