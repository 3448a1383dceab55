//! Positions beside constants: tables of angles are the outer product of positions and frequencies.
//!
//! Laws, where `x` has size 1 along an axis (or lacks it) and `c` is constant and has all of it: `f(x, c)[r] = f(x, c[r])` for an `r`
//! that cuts this axis, and `Concat(f(x, c₀), …, f(x, cₖ)) = f(x, Concat(c₀, …, cₖ))`. What is cut and put together is constant.

use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, traits_of};
use crate::rewrite::Place;
use crate::rewrite::limits::LISTED;
use crate::rewrite::slices::cuts::cut_elements;
use crate::tensor::{StridedView, Tensor, gather};

/// The most parts of a Concat. Each pair of parts with each other is one block, so N parts on two axes take N² nodes to look at.
const MAX_PARTS: usize = 8;

/// A node `f(x, c)` or `f(c, x)`.
#[derive(Clone, Copy)]
struct Outer {
    id: NodeId,
    varying: ValueId,
    constant: ValueId,
    /// Which operand is the constant.
    slot: usize,
}

/// Whether a node is a function of two numbers that are broadcast against each other, of the same bits wherever they stand. Kernels
/// compute such a function without approximating, hardly dearer than a copy.
fn is_cheap(place: &Place<'_>, node: &Node) -> bool {
    let own = traits_of(place.model, node);
    let broadcasts = own.pointwise.is_some_and(|own| own.operands == Operands::Broadcast && own.meets(place.opset));
    broadcasts && own.kernels.are_exact() && node.inputs().len() == 2
}

/// The cheap operator between a constant that has all of these axes and something that repeats along them.
fn outer(place: &Place<'_>, value: ValueId, axes: &[usize]) -> Option<Outer> {
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id).filter(|node| is_cheap(place, node))?;
    let rank = place.shape(value)?.len();
    if Some(node.graph()) != place.graph() {
        return None;
    }
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (slot, varying, constant) = if place.constant(b).is_some() { (1, a, b) } else { (0, b, a) };
    let tensor = place.constant(constant).filter(|tensor| tensor.len() <= LISTED)?;
    let along = |axis: usize, shape: &[Dim]| {
        let missing = rank.checked_sub(shape.len())?;
        Some(axis.checked_sub(missing).and_then(|axis| shape.get(axis).cloned()))
    };
    let repeats = |&axis: &usize| along(axis, place.shape(varying)?)?.is_none_or(|dim| dim.is_const(1)).then_some(());
    let has_all = tensor.rank() == rank || axes.iter().all(|axis| *axis >= rank.saturating_sub(tensor.rank()));
    (has_all && place.constant(varying).is_none() && axes.iter().all(|axis| repeats(axis).is_some())).then_some(Outer {
        id,
        varying,
        constant,
        slot,
    })
}

/// The node again, with another constant.
fn again(node: &Node, outer: Outer, constant: ValueId) -> NewNode {
    NewNode::like(node).reading(outer.slot, constant)
}

pub(super) fn part(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let cuts = cut_elements(place)?;
    let axes: Vec<usize> = cuts.iter().map(|cut| cut.axis).collect();
    let found = outer(place, value, &axes)?;
    // Only if all that is wanted of the whole are parts the node is not computed once more than before.
    let only_cut = place.model.users(value).iter().all(|&(reader, slot)| {
        let node = place.model.node(reader).filter(|node| Some(node.graph()) == place.graph());
        slot == 0 && node.is_some_and(|node| node.is("Slice"))
    });
    if !only_cut || place.model.is_named(value) {
        return None;
    }
    let tensor = place.constant(found.constant)?.clone();
    let missing = place.shape(value)?.len().checked_sub(tensor.rank())?;
    let mut view = StridedView::of(&tensor);
    for cut in cuts {
        let axis = cut.axis.checked_sub(missing)?;
        view = view.slice_axis(axis, cut.start, isize::try_from(cut.step).ok()?, cut.len).ok()?;
    }
    let tensor = gather(&tensor, &view).ok()?;
    let mut edit = place.edit()?;
    let constant = edit.constant(found.constant, "part", tensor);
    place.instead(edit, again(place.model.node(found.id)?, found, constant))
}

pub(super) fn join(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let rank = place.shape(node.output(0)?)?.len();
    let axis = place.read(node).axis(rank)?;
    let parts: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>()?;
    if !(2..=MAX_PARTS).contains(&parts.len()) {
        return None;
    }
    let mut first: Option<Outer> = None;
    let mut tensors: Vec<Tensor> = Vec::with_capacity(parts.len());
    for &part in &parts {
        let found = outer(place, part, &[axis])?;
        let known = *first.get_or_insert(found);
        let (node, other) = (place.model.node(known.id)?, place.model.node(found.id)?);
        let alike = node.op_type == other.op_type
            && node.same_attributes(other)
            && known.varying == found.varying
            && known.slot == found.slot;
        let tensor = place.constant(found.constant)?;
        // What broadcasts in one part must in all: the constants are of one shape.
        let same = tensors.first().is_none_or(|first: &Tensor| first.shape() == tensor.shape());
        if !alike || !same || !place.model.is_read_only_by(part, &[place.id]) {
            return None;
        }
        tensors.push(tensor.clone());
    }
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let own = axis.checked_sub(rank.checked_sub(tensors.first()?.rank())?)?;
    let joined = place.concatenated(&tensors, own).filter(|joined| joined.len() <= LISTED)?;
    let found = first?;
    let mut edit = place.edit()?;
    let constant = edit.constant(found.constant, "joined", joined);
    place.instead(edit, again(place.model.node(found.id)?, found, constant))
}
