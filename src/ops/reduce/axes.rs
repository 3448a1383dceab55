//! The axes that a reduction removes.

use crate::ir::Fact;
use crate::ops::traits::NodeFacts;
use crate::ops::{Refusal, Site, axis_in};

/// The axes to reduce, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Axes {
    /// One flag per axis: `true` if it is reduced.
    Known(Vec<bool>),
    /// One unknown axis.
    One,
    /// Unknown axes.
    Unknown,
}

/// Returns `true` if this version has the axes as an operand: ReduceSum from 13 on, the others from 18 on.
pub(super) fn are_operand(site: &Site<'_>) -> bool {
    site.version >= if site.node.is("ReduceSum") { 13 } else { 18 }
}

/// The contents of the axes operand.
pub(super) enum Operand<'v> {
    /// The operand is absent.
    Absent,
    /// The known axes.
    Known(&'v [i64]),
    /// Unknown axes: their number, if known.
    Unknown(Option<usize>),
}

/// Resolves the axes that a node reduces in a tensor of this rank. An empty list selects all axes, or none with
/// `noop_with_empty_axes`.
///
/// # Errors
/// An axis is out of range.
pub(super) fn resolve(site: &Site<'_>, operand: &Operand<'_>, rank: usize) -> Result<Axes, Refusal> {
    let attribute;
    let (axes, noop) = if are_operand(site) {
        let noop = site.attr_flag("noop_with_empty_axes", false)?;
        match operand {
            Operand::Absent => (&[][..], noop),
            Operand::Known(axes) => (*axes, noop),
            Operand::Unknown(Some(0)) => (&[][..], noop),
            Operand::Unknown(Some(1)) if rank == 1 => return Ok(Axes::Known(vec![true])),
            Operand::Unknown(Some(1)) => return Ok(Axes::One),
            // Several unknown axes may be equal: ONNX Runtime reduces duplicates once.
            Operand::Unknown(_) => return Ok(Axes::Unknown),
        }
    } else {
        attribute = site.attr_ints("axes")?.unwrap_or_default();
        (attribute, false)
    };
    if axes.is_empty() {
        return Ok(Axes::Known(vec![!noop; rank]));
    }
    let mut reduced = vec![false; rank];
    for &axis in axes {
        if let Some(flag) = reduced.get_mut(axis_in(axis, rank)?) {
            *flag = true;
        }
    }
    Ok(Axes::Known(reduced))
}

/// Returns `true` if one of these axes is negative. For empty tensors, ONNX Runtime ignores such an axis and keeps it.
pub(super) fn from_the_end(site: &Site<'_>, operand: &Operand<'_>) -> Result<bool, Refusal> {
    let axes = match operand {
        Operand::Known(axes) if are_operand(site) => axes,
        _ if are_operand(site) => return Ok(false),
        _ => site.attr_ints("axes")?.unwrap_or_default(),
    };
    Ok(axes.iter().any(|&axis| axis < 0))
}

/// Returns the axes that a numeric reduction removes, and `true` if it keeps them with dim 1.
pub(super) fn reduced(view: &NodeFacts<'_>) -> Option<(Vec<usize>, bool)> {
    let site = view.site()?;
    let known = view.fact(1).map(Fact::const_ints);
    let operand = match (view.input(1), &known) {
        (None, _) => Operand::Absent,
        (Some(_), Some(Some(axes))) => Operand::Known(axes),
        _ => return None,
    };
    let Axes::Known(flags) = resolve(&site, &operand, view.shape(0)?.len()).ok()? else { return None };
    let axes = flags.iter().enumerate().filter_map(|(axis, reduced)| reduced.then_some(axis)).collect();
    Some((axes, site.attr_flag("keepdims", true).ok()?))
}

/// Returns the axis that ArgMax and ArgMin search, and `true` if they keep it.
pub(super) fn chosen(view: &NodeFacts<'_>) -> Option<(Vec<usize>, bool)> {
    let site = view.site()?;
    Some((vec![view.axis(0)?], site.attr_flag("keepdims", true).ok()?))
}

/// Returns the normalized axes of Softmax and related operators. Before version 13, these are all axes from `axis` on.
pub(super) fn shared(view: &NodeFacts<'_>) -> Option<Vec<usize>> {
    if view.site()?.version >= 13 {
        return Some(vec![view.axis(-1)?]);
    }
    Some((view.axis(1)?..view.shape(0)?.len()).collect())
}

/// Returns all axes but the first: each instance has a separate mean.
pub(super) fn of_instances(view: &NodeFacts<'_>) -> Option<Vec<usize>> {
    Some((1..view.shape(0)?.len()).collect())
}

/// Returns the axes of a layer, if the scale has no other axes.
pub(super) fn of_layers(view: &NodeFacts<'_>) -> Option<Vec<usize>> {
    let (rank, axis) = (view.shape(0)?.len(), view.axis(-1)?);
    let most = rank.checked_sub(axis)?;
    let mut scales = (1..view.node.inputs().len()).filter(|&slot| view.input(slot).is_some());
    let fits = scales.all(|slot| view.shape(slot).is_some_and(|dims| dims.len() <= most));
    fits.then(|| (axis..rank).collect())
}

/// Returns the axis of the norm.
pub(super) fn of_norms(view: &NodeFacts<'_>) -> Option<Vec<usize>> {
    Some(vec![view.axis(-1)?])
}
