//! Composed index maps: the map of a node over the values that the movement nodes above it read.

use super::{MovementMap, described, map_over_values};
use crate::index_map::{IndexMap, Shape};
use crate::ir::{Fact, Facts, Model, NodeId, ValueId};

/// The most nodes of a tree.
const MOST_NODES: usize = 16;

/// Returns the composed map of each main graph node at one of these places, if a movement node computes one of its operands.
pub(crate) fn merged_maps(model: &Model, facts: &Facts, places: &[&str]) -> Vec<MovementMap> {
    let nodes = model.graph(model.main()).nodes().filter(|&id| places.contains(&model.describe(id).as_str()));
    nodes.filter_map(|id| merged_map(model, facts, id)).collect()
}

fn merged_map(model: &Model, facts: &Facts, id: NodeId) -> Option<MovementMap> {
    let value = model.node(id)?.output(0)?;
    let (mut map, mut leaves) = map_over_values(model, facts, value).ok()?;
    let mut above = Vec::new();
    // Leaves before this one have no movement node as producer, or do not compose.
    let mut next = 0;
    while let Some(&leaf) = leaves.get(next).filter(|_| above.len() < MOST_NODES) {
        let id = model.value(leaf).producer();
        match id.zip(composed(model, facts, (&map, &leaves), leaf)) {
            Some((id, larger)) => {
                (map, leaves) = larger;
                if !above.contains(&id) {
                    above.push(id);
                }
                next = 0;
            }
            None => next += 1,
        }
    }
    let found = described(model, facts, (id, value), &map, &leaves).ok()?;
    let above: Vec<String> = above.into_iter().map(|id| model.describe(id)).collect();
    (!above.is_empty()).then_some(MovementMap { above, ..found })
}

/// Returns the map with a leaf replaced by the operands of its producer.
fn composed(
    model: &Model,
    facts: &Facts,
    (map, leaves): (&IndexMap, &[ValueId]),
    leaf: ValueId,
) -> Option<(IndexMap, Vec<ValueId>)> {
    let scope = facts.scope();
    let (inner, operands) = map_over_values(model, facts, leaf).ok()?;
    let shape = |value: ValueId| facts.get(value).and_then(Fact::shape);
    let (mut parts, mut sources) = (Vec::new(), Vec::new());
    for &other in leaves {
        let is_leaf = other == leaf;
        parts.push(if is_leaf { inner.clone() } else { IndexMap::identity(scope, shape(other)?) });
        sources.extend_from_slice(if is_leaf { &operands } else { std::slice::from_ref(&other) });
    }
    let map = map.applied_to(scope, &parts.iter().collect::<Vec<_>>()).ok()?;
    let mut distinct: Vec<ValueId> = Vec::new();
    for &source in &sources {
        if !distinct.contains(&source) {
            distinct.push(source);
        }
    }
    let to: Vec<usize> =
        sources.iter().map(|source| distinct.iter().position(|other| other == source)).collect::<Option<_>>()?;
    let shapes: Vec<Shape> = distinct.iter().map(|&value| shape(value).map(Shape::from)).collect::<Option<_>>()?;
    Some((map.with_sources(scope, &shapes, &to).ok()?, distinct))
}
