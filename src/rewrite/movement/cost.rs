//! Comparison of programs with the nodes that they replace, at an equal number of nodes.

use super::Programs;
use super::tree::Tree;
use crate::dim::Dim;
use crate::index_map::{Movement, Program, Shape, Step};
use crate::ir::{Edit, Node, NodeId};
use crate::rewrite::place::Place;
use crate::sort;

/// The number of axes that a root without other nodes names, if a Slice may name fewer. A Split with one result that is read names all.
pub(super) fn named_axes(place: &Place<'_>, tree: &Tree) -> Option<usize> {
    let (&[root], [(result, _)]) = (tree.nodes.as_slice(), tree.results.as_slice()) else { return None };
    let node = place.model.node(root)?;
    match node.op_type.as_str() {
        "Slice" => place.read(node).slice_axes().map(|axes| axes.len()),
        "Split" => place.shape(*result).map(|dims| dims.len().saturating_add(1)),
        _ => None,
    }
}

/// Returns `true` if the only node that is written is a Slice of fewer axes than `named`.
pub(super) fn selects_fewer_axes(programs: &Programs, named: usize) -> bool {
    let [Program { steps, .. }] = programs.as_slice() else { return false };
    matches!(steps.as_slice(), [Step::Movement(Movement::Slice(ranges), _)] if ranges.iter().flatten().count() < named)
}

/// The number of written nodes that are not layouts.
pub(super) fn copying_nodes(programs: &Programs) -> usize {
    let copies = |step: &&Step| !matches!(step, Step::Movement(Movement::Reshape(_), _));
    programs.iter().flat_map(|program| &program.steps).filter(copies).count()
}

/// Returns `true` if an edit writes the operators of the removed nodes in any order.
pub(super) fn has_equal_operators(place: &Place<'_>, removed: &[NodeId], edit: &Edit) -> bool {
    let mut before: Vec<&str> = removed.iter().filter_map(|&id| Some(place.model.node(id)?.op_type.as_str())).collect();
    let mut after: Vec<&str> = edit.insert.iter().map(|node| node.op_type.as_str()).collect();
    sort::sort(&mut before);
    sort::sort(&mut after);
    before == after
}

/// Returns `true` if the programs copy fewer elements than the removed nodes for some sizes, and never more.
pub(super) fn copies_fewer_elements(place: &Place<'_>, removed: &[NodeId], programs: &Programs) -> bool {
    let scope = place.scope();
    let copied = removed.iter().filter(|&&id| !super::is_layout_node(place, id));
    let results = copied.flat_map(|&id| place.model.node(id).map(Node::outputs).unwrap_or_default().iter().flatten());
    let before = results.map(|&value| Some(scope.product(place.shape(value)?))).collect::<Option<Vec<Dim>>>();
    let steps = programs.iter().flat_map(|program| program.steps.iter().zip(&program.shapes));
    let copies = steps.filter(|(step, _)| !matches!(step, Step::Movement(Movement::Reshape(_), _)));
    // A Split has several results, of which only the first shape is known.
    let copied = |(step, shape): (&Step, &Shape)| matches!(step, Step::Movement(..)).then(|| scope.product(shape));
    let after = copies.map(copied).collect::<Option<Vec<Dim>>>();
    let (Some(before), Some(after)) = (before, after) else { return false };
    let (before, after) = (scope.sum(&before), scope.sum(&after));
    scope.le(&after, &before).is_yes() && !scope.le(&before, &after).is_yes()
}
