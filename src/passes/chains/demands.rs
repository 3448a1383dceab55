//! Demands: the operands of other nodes that size nodes compute, and the rows that would serve in their place.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::conventions::{expand_ones, reshape_codes, slice_bounds};
use super::row::Row;
use super::survey::Survey;
use super::terms::Terms;
use crate::dim::Dim;
use crate::ir::{Broken, Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::tensor::Tensor;

/// An operand of a node that computes no size, which a size node computes.
pub(super) struct Demand {
    pub reader: NodeId,
    pub slot: usize,
    /// What is read now.
    pub value: ValueId,
    /// The position of the reader, or of the node whose subgraph has the reader.
    pub position: usize,
    /// Whether that node is needed even if no size node is left.
    pub is_kept: bool,
    /// The rows that serve, the exact one first; if there are none, only what holds the same as `value` does.
    pub rows: Vec<Row>,
}

/// All demands of a graph.
#[derive(Default)]
pub(super) struct Demands {
    /// In the order of their positions.
    pub list: Vec<Demand>,
    /// Operands of readers that become constants when the demands are met.
    pub constants: Vec<(NodeId, usize, Tensor)>,
    /// For each tensor that has sizes which are demanded, how many.
    pub score: BTreeMap<ValueId, usize>,
}

impl Demands {
    /// The demands of a graph; `None` if a reader has no position.
    ///
    /// # Errors
    /// The model is inconsistent.
    pub fn of(survey: &mut Survey, model: &Model, facts: &Facts) -> Result<Option<Demands>, Broken> {
        let mut demands = Demands::default();
        let mut sizes: FxHashSet<Dim> = FxHashSet::default();
        for id in model.topological(survey.graph)? {
            let Some(node) = model.node(id).filter(|_| survey.size_nodes.contains(&id)) else { continue };
            for &value in node.outputs().iter().flatten() {
                for (reader, slot) in model.users(value) {
                    if survey.size_nodes.contains(&reader) {
                        continue;
                    }
                    let outer = holder_in(model, survey.graph, reader);
                    let Some(position) = survey.position(outer) else { return Ok(None) };
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
        demands.list.sort_by_key(|demand| (demand.position, demand.slot, demand.value));
        Ok(Some(demands))
    }

    /// The rows that serve as operand `slot` of a reader, which is `value` now.
    fn rows(&mut self, survey: &mut Survey, model: &Model, facts: &Facts, at: (NodeId, usize, ValueId)) -> Vec<Row> {
        let (reader, slot, value) = at;
        let mut rows: Vec<Row> = survey.row(value).cloned().into_iter().collect();
        let Some(node) = model.node(reader).filter(|node| node.canonical_domain().is_empty()) else { return rows };
        let others: Vec<Terms> = match node.op_type.as_str() {
            "Reshape" if slot == 1 => reshape_codes(survey, facts, node, value),
            "Expand" if slot == 1 => expand_ones(survey, facts, node, value).into_iter().collect(),
            "Slice" if slot == 1 || slot == 2 => match slice_bounds(survey, model, facts, node, reader, slot) {
                Some(bounds) => {
                    // The other operands change as well, so that the exact row no longer fits.
                    rows.clear();
                    for (slot, tensor) in bounds.constants {
                        if !self.constants.iter().any(|(id, other, _)| *id == reader && *other == slot) {
                            self.constants.push((reader, slot, tensor));
                        }
                    }
                    vec![bounds.terms]
                }
                None => Vec::new(),
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

/// The node of `graph` that is the reader, or whose subgraph has it.
pub(super) fn holder_in(model: &Model, graph: GraphId, reader: NodeId) -> NodeId {
    let mut holder = reader;
    while let Some(outer) =
        model.node(holder).map(Node::graph).filter(|&at| at != graph).and_then(|at| model.graph(at).parent())
    {
        holder = outer;
    }
    holder
}
