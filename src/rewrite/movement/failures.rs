//! Failures of removed nodes, which the written nodes must have, too.
//!
//! Law: a lookup of `k` different constant positions of an axis fails for the sizes without the last of these positions. The result reads some of
//! the positions. If the written Gathers look up `k` different positions, these are the same positions, and fail for the same sizes.
//!
//! A Gather by computed indices fails for the same indices if the axis has the same size and all indices are read.

use std::collections::BTreeSet;

use super::tree::Tree;
use super::{MOST_INDICES, Programs};
use crate::dim::Dim;
use crate::index_map::{Movement, Operand, Program, Shape, Step, present};
use crate::ir::{Node, NodeId};
use crate::ops::columns_of;
use crate::ops::traits::{Counting, Failure, traits_of};
use crate::rewrite::place::Place;

/// The number of positions that the removed nodes look up on axes that may not have these positions. `usize::MAX` if the positions are not constants.
pub(super) fn positions_looked_up(place: &Place<'_>, tree: &Tree, removed: &[NodeId]) -> usize {
    let constant = removed.iter().filter(|&&id| !looks_up_leaf(place, tree, id));
    constant.map(|&id| open_positions(place, id)).fold(0, usize::saturating_add)
}

/// Returns `true` if a node is a Gather by a leaf of the tree.
fn looks_up_leaf(place: &Place<'_>, tree: &Tree, id: NodeId) -> bool {
    let indices = place.model.node(id).filter(|node| node.is("Gather")).and_then(|node| node.input(1));
    indices.is_some_and(|indices| tree.leaves.contains(&indices))
}

/// Returns `true` if for each removed Gather by a leaf of the tree that may fail, the programs have a Gather by this leaf on an axis of the same size.
pub(super) fn keeps_lookups(place: &Place<'_>, tree: &Tree, removed: &[NodeId], programs: &Programs) -> bool {
    let mut open = removed.iter().filter(|&&id| looks_up_leaf(place, tree, id)).filter_map(|&id| {
        let node = place.model.node(id)?;
        let Failure::Unless(has_all) = traits_of(place.model, node).fails else { return None };
        let never_fails = has_all(&place.view(id)?) && is_inside(place, id, node) == Some(true);
        (!never_fails).then_some(node)
    });
    let is_written = |node: &Node| -> Option<bool> {
        let (data, indices) = (place.shape(node.input(0)?)?, node.input(1)?);
        let size = data.get(place.read(node).axis(data.len())?)?;
        let mut programs = programs.iter();
        Some(programs.any(|program| {
            program.steps.iter().any(|step| match step {
                Step::Movement(Movement::Lookup { axis, positions }, operands) => {
                    let own = size_of(place, tree, &program.shapes, operands.first(), *axis);
                    tree.leaves.get(*positions) == Some(&indices)
                        && own.is_some_and(|own| place.scope().eq(&own, size).is_yes())
                }
                _ => false,
            })
        }))
    };
    open.all(|node| is_written(node) == Some(true))
}

fn open_positions(place: &Place<'_>, id: NodeId) -> usize {
    let Some(node) = place.model.node(id) else { return 0 };
    if squeezes_range(place, node) {
        return 1;
    }
    let is_lookup = matches!(traits_of(place.model, node).fails, Failure::Unless(_));
    if !is_lookup || is_inside(place, id, node) == Some(true) {
        return 0;
    }
    let indices = node.input(1).and_then(|indices| place.constant(indices)).filter(|_| node.is("Gather"));
    indices.and_then(|indices| indices.to_i64s()).map_or(usize::MAX, |indices| number_of_different(&indices))
}

fn number_of_different(indices: &[i64]) -> usize {
    indices.iter().collect::<BTreeSet<_>>().len()
}

/// Returns `true` if a node is a Squeeze of an axis whose only position a Slice selects from an axis of symbolic size.
fn squeezes_range(place: &Place<'_>, node: &Node) -> bool {
    let range = node.is("Squeeze").then(|| place.producer(node.input(0)?, "Slice")).flatten();
    let sizes = range.and_then(|(_, slice)| place.shape(slice.input(0)?));
    let axes = sizes.and_then(|_| place.read(node).ones()).unwrap_or_default();
    axes.iter().filter_map(|&axis| sizes?.get(axis)).any(|size| size.as_const().is_none())
}

/// Returns `true` if all indices of a lookup are in range, without a bound of a size that follows from the lookup itself.
fn is_inside(place: &Place<'_>, id: NodeId, node: &Node) -> Option<bool> {
    let scope = place.scope();
    let sizes = place.shape(node.input(0)?)?;
    let is_below = |size: &Dim, count: &Counting| {
        // The bounds hold where there are positions.
        let shape = count.shape.iter().map(|size| present(scope, size)).collect();
        let (low, high) = Counting { shape, ..count.clone() }.bounds(scope)?;
        Some(low.as_const()? >= 0 && scope.sub(size, &high).as_const()? >= 1)
    };
    if let Some(axis) = place.read(node).axis(sizes.len()).filter(|_| !node.is("GatherND")) {
        let size = sizes.get(axis)?;
        let count = || Counting::of(place.model, place.facts, place.opset.version(), node.input(1)?);
        let has_all = || match traits_of(place.model, node).fails {
            Failure::Unless(has_all) => place.view(id).is_some_and(|view| has_all(&view)),
            _ => true,
        };
        let is_known = size.as_const().is_some() && (place.constant(node.input(1)?).is_some() || has_all());
        return Some(is_known || is_below(size, &count()?)?);
    }
    let batch = usize::try_from(node.int("batch_dims", 0)?).ok()?;
    let width = usize::try_from(place.shape(node.input(1)?)?.last()?.as_const()?).ok()?;
    let named = sizes.get(batch..batch.checked_add(width)?)?;
    if named.iter().all(|size| size.as_const().is_some()) {
        return Some(true);
    }
    let columns = columns_of(&place.view(id)?, 1)?;
    Some(
        named
            .iter()
            .zip(&columns)
            .all(|(size, (count, _))| size.as_const().is_some() || is_below(size, count) == Some(true)),
    )
}

/// The size of an axis of an operand of a step.
fn size_of(place: &Place<'_>, tree: &Tree, shapes: &[Shape], operand: Option<&Operand>, axis: usize) -> Option<Dim> {
    match operand? {
        Operand::Source(source) => tree.shape(place, *tree.leaves.get(*source)?)?.get(axis).cloned(),
        Operand::Step(at) => shapes.get(*at)?.get(axis).cloned(),
        Operand::Part(..) => None,
    }
}

/// The number of different positions that the programs look up on axes of symbolic size.
pub(super) fn positions_written(place: &Place<'_>, tree: &Tree, programs: &Programs) -> usize {
    let of_program = |program: &Program| {
        let looked_up = program.steps.iter().filter_map(|step| match step {
            Step::Movement(Movement::Gather { axis, indices, .. }, operands) => {
                let size = size_of(place, tree, &program.shapes, operands.first(), *axis)?;
                size.as_const().is_none().then(|| number_of_different(indices))
            }
            _ => None,
        });
        looked_up.fold(0, usize::saturating_add)
    };
    programs.iter().map(of_program).fold(0, usize::saturating_add)
}

/// Replaces each Slice of constant positions of one axis, counted from its start or from its end, by a Gather, which fails if the axis does not have
/// these positions.
pub(super) fn look_up(place: &Place<'_>, tree: &Tree, program: &mut Program) {
    let Program { steps, shapes, .. } = program;
    for step in steps {
        let Step::Movement(Movement::Slice(ranges), operands) = step else { continue };
        let mut named = ranges.iter().enumerate().filter_map(|(axis, range)| Some((axis, range.as_ref()?)));
        let (Some((axis, range)), None) = (named.next(), named.next()) else { continue };
        let from_end = || {
            let size = size_of(place, tree, shapes, operands.first(), axis)?;
            place.scope().sub(&range.start, &size).as_const()
        };
        let (Some(start), Some(len)) = (range.start.as_const().or_else(from_end), range.len.as_const()) else {
            continue;
        };
        let at = |k: i64| start.checked_add(range.step.checked_mul(k)?);
        let is_short = usize::try_from(len).is_ok_and(|len| len <= MOST_INDICES);
        let Some(indices) = is_short.then(|| (0..len).map(at).collect::<Option<Vec<i64>>>()).flatten() else {
            continue;
        };
        if let Step::Movement(movement, _) = step {
            *movement = Movement::Gather { axis, shape: vec![len], indices };
        }
    }
}
