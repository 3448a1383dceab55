//! Which axes a reduction takes away.

use crate::ops::{Refusal, Site, axis_in};

/// The axes to reduce, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Axes {
    /// One flag for each axis: whether it is reduced.
    Known(Vec<bool>),
    /// One axis; nobody knows which.
    One,
    /// Nothing is known of them.
    Unknown,
}

/// Whether this version takes the axes as an operand: ReduceSum from 13 on, the others from 18 on.
pub(super) fn are_operand(site: &Site<'_>) -> bool {
    site.version >= if site.node.is("ReduceSum") { 13 } else { 18 }
}

/// What the axes operand says.
pub(super) enum Operand<'v> {
    /// It is left out.
    Absent,
    /// Its elements.
    Known(&'v [i64]),
    /// Only how many there are, if even that.
    Unknown(Option<usize>),
}

/// The axes that a node reduces in a tensor of this rank. No axes are all axes, unless `noop_with_empty_axes` makes them
/// none.
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
            // Several may be the same one: ONNX Runtime reduces it once.
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
