//! Moves Slices and Concats of outer products into the constant factor: tables of angles are the outer product of positions and
//! frequencies.
//!
//! Laws, if `x` has size 1 along an axis (or lacks it) and the constant `c` has the whole axis: `f(x, c)[r] = f(x, c[r])` for an `r` that
//! slices this axis, and `Concat(f(x, c₀), …, f(x, cₖ)) = f(x, Concat(c₀, …, cₖ))`. So only constants are sliced and concatenated.

use super::RULES;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, traits_of};
use crate::rewrite::limits::LISTED;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::rewrite::slices::cuts::cut_elements;
use crate::tensor::{StridedView, Tensor, gather};

/// The most parts of a Concat. Each pair of parts is one block, so N parts on two axes take N² visits.
const MAX_PARTS: usize = 8;

/// A node `f(x, c)` or `f(c, x)`.
#[derive(Clone, Copy)]
struct Outer {
    id: NodeId,
    varying: ValueId,
    constant: ValueId,
    /// The slot of the constant.
    slot: usize,
}

/// Returns `true` if a node is a broadcasting binary function with the same bits at every position. Kernels compute such a function
/// exactly, at about the cost of a copy.
fn is_cheap(place: &Place<'_>, node: &Node) -> bool {
    let own = traits_of(place.model, node);
    let broadcasts = own.pointwise.is_some_and(|own| own.operands == Operands::Broadcast && own.meets(place.opset));
    broadcasts && own.kernels.are_exact() && node.inputs().len() == 2
}

/// Returns the cheap operator between a constant with all of these axes and an operand that repeats along them.
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

/// Returns the node with another constant.
fn again(node: &Node, outer: Outer, constant: ValueId) -> NewNode {
    NewNode::like(node).reading(outer.slot, constant)
}

pub(super) fn part(place: &Place<'_>) -> Result<Edit, Miss> {
    let value = place.operand(0)?;
    let cuts = cut_elements(place).ok_or(miss!("known-cut"))?;
    let axes: Vec<usize> = cuts.iter().map(|cut| cut.axis).collect();
    let found = outer(place, value, &axes).ok_or(miss!("repeats"))?;
    // Only if all consumers are Slices, the node is not computed more often than before.
    let only_cut = place.model.users(value).iter().all(|&(reader, slot)| {
        let node = place.model.node(reader).filter(|node| Some(node.graph()) == place.graph());
        slot == 0 && node.is_some_and(|node| node.is("Slice"))
    });
    ensure(only_cut && !place.model.is_named(value), miss!("only-parts"))?;
    let tensor = place.constant(found.constant).ok_or(miss!("repeats").of(found.constant))?.clone();
    let missing = place.dims(value)?.len().checked_sub(tensor.rank()).ok_or(Miss::COMPUTABLE)?;
    let mut view = StridedView::of(&tensor);
    for cut in cuts {
        let axis = cut.axis.checked_sub(missing).ok_or(Miss::COMPUTABLE)?;
        view = view
            .slice_axis(axis, cut.start, isize::try_from(cut.step).or(Err(Miss::COMPUTABLE))?, cut.len)
            .or(Err(Miss::COMPUTABLE))?;
    }
    let tensor = gather(&tensor, &view).or(Err(miss!("repeats")))?;
    let mut edit = place.begin()?;
    let constant = edit.constant(found.constant, "part", tensor);
    place.instead(edit, again(place.model.node(found.id).ok_or(Miss::ROOT)?, found, constant))
}

pub(super) fn join(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let rank = place.shape(node.output(0).ok_or(Miss::ROOT)?).ok_or(miss!("repeats"))?.len();
    let axis = place.read(node).axis(rank).ok_or(Miss::ROOT)?;
    let parts: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    ensure((2..=MAX_PARTS).contains(&parts.len()), Miss::ROOT)?;
    let mut first: Option<Outer> = None;
    let mut tensors: Vec<Tensor> = Vec::with_capacity(parts.len());
    for &part in &parts {
        let found = outer(place, part, &[axis]).ok_or(miss!("repeats"))?;
        let known = *first.get_or_insert(found);
        let (node, other) =
            (place.model.node(known.id).ok_or(Miss::ROOT)?, place.model.node(found.id).ok_or(Miss::ROOT)?);
        let alike = node.op_type == other.op_type
            && node.same_attributes(other)
            && known.varying == found.varying
            && known.slot == found.slot;
        let tensor = place.constant(found.constant).ok_or(miss!("repeats").of(found.constant))?;
        // All constants have one shape, so that the parts broadcast in the same way.
        let same = tensors.first().is_none_or(|first: &Tensor| first.shape() == tensor.shape());
        ensure(alike && same, miss!("alike"))?;
        ensure(place.model.is_read_only_by(part, &[place.id]), miss!("one-reader"))?;
        tensors.push(tensor.clone());
    }
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let own = axis
        .checked_sub(rank.checked_sub(tensors.first().ok_or(Miss::ROOT)?.rank()).ok_or(Miss::COMPUTABLE)?)
        .ok_or(Miss::COMPUTABLE)?;
    let joined = place.concatenated(&tensors, own).filter(|joined| joined.len() <= LISTED).ok_or(miss!("alike"))?;
    let found = first.ok_or(Miss::ROOT)?;
    let mut edit = place.begin()?;
    let constant = edit.constant(found.constant, "joined", joined);
    place.instead(edit, again(place.model.node(found.id).ok_or(Miss::ROOT)?, found, constant))
}
