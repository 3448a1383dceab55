//! Constants that are spread along an axis which is merged with those behind it, and computed with.
//!
//! Law: of a `c` of `[p, n, q]` that is spread to `[p, b, n, q]` and laid out as `[p, b·n, q]`, place `j` of the long axis is place `j mod n`,
//! which is what a Tile repeats: `f(Reshape(Expand(c)), k) = Tile(f(c, k), b)` for an element-wise `f` and a `k` that is the same along the axis.
//! So it is where a Tile repeats `c` already, and where axes before and behind the long one are laid out otherwise in between.
//!
//! So exporters repeat the masks of windows over the batch, and add to them what is the same for all windows. Runtimes copy a constant that is
//! tiled as fast as they would compute it; without anything that is computed of it, they spread it faster.

use super::spread::spread_from;
use crate::dim::Dim;
use crate::ir::{Data, Edit, NewNode, NodeId, ValueId};
use crate::ops::traits::{Movement, Operands, traits_of};
use crate::ops::{Environment, evaluate_node};
use crate::rewrite::build::Build;
use crate::rewrite::{Place, Rule};
use crate::slicing::SliceRule;
use crate::tensor::Tensor;

pub(super) const TILED: Rule = Rule {
    name: "spread-to-tile",
    law: "f(Reshape(Expand([p, 1, n, q] → [p, b, n, q])), k) = Tile(f(c, k), b) for a constant c of [p, n, q]",
    sentence: "Computes with a repeated constant once, and tiles the result.",
    premises: &[
        ("constant", "the broadcast value is constant"),
        (
            "one-axis",
            "one axis with a dynamic dim is broadcast, and merged only with the axes right after it; or a Tile repeats one axis",
        ),
        ("one-reader", "the broadcast or rearranged value has no other consumer"),
        ("by-element", "the consumers are element-wise operators with constants that are equal along the axis"),
        ("small", "the new constant takes at most 1 MiB more than the old one"),
    ],
    exact: false,
    operators: &["Reshape", "Tile"],
    apply: tile,
};

/// How many bytes the new constant may have more than the old one.
const MAX_ADDED: usize = 1 << 20;

/// How many nodes are followed.
const MAX_NODES: usize = 8;

/// A constant that is repeated along an axis.
struct Repeated {
    /// What is there once, with the axes of the value.
    once: Tensor,
    axis: usize,
    value: ValueId,
    /// How often it is repeated, and which entry of these sizes says so.
    times: Dim,
    sizes: ValueId,
    slot: usize,
    nodes: Vec<NodeId>,
}

fn tile(place: &Place<'_>) -> Option<Edit> {
    if !place.opset.everything_broadcasts() {
        return None;
    }
    let repeated = if place.node()?.is("Tile") { tiled(place)? } else { spread(place)? };
    let Computed { nodes, result, once, axis } = computed(place, &repeated)?;
    let Repeated { sizes, slot, value, .. } = repeated;
    let mut edit = place.edit()?;
    edit.remove.extend(repeated.nodes.iter().chain(&nodes));
    let count = edit.new_value(sizes, "times");
    let slot = Tensor::vector(vec![i64::try_from(slot).ok()?]);
    let gather = place.build(&mut edit, count).gather_at(sizes, slot, 0usize);
    edit.insert.push(gather.output(count));
    let behind = once.rank().checked_sub(axis)?.checked_sub(1)?;
    let mut parts = vec![count];
    if axis > 0 {
        parts.insert(0, edit.constant(value, "once", Tensor::vector(vec![1i64; axis])));
    }
    if behind > 0 {
        parts.push(edit.constant(value, "once", Tensor::vector(vec![1i64; behind])));
    }
    let mut repeats = count;
    if parts.len() > 1 {
        repeats = edit.new_value(value, "repeats");
        edit.insert.push(Build::concat(parts, 0usize).output(repeats));
    }
    let data = edit.constant(value, "once", once);
    let name = place.model.node(*nodes.last()?)?.name.clone();
    Some(edit.inserting(NewNode::new("Tile", [Some(data), Some(repeats)]).named(name).output(result)))
}

/// What a Tile repeats along one axis.
fn tiled(place: &Place<'_>) -> Option<Repeated> {
    let (data, sizes, value) = (place.input(0)?, place.input(1)?, place.output(0)?);
    let once = place.constant(data).filter(|tensor| !tensor.is_empty())?.clone();
    let told = place.fact(sizes)?.ints()?;
    let mut open = told.iter().enumerate().filter(|(_, times)| !times.is_const(1));
    let (axis, times) = open.next().filter(|(_, times)| times.as_const().is_none())?;
    let fits = open.next().is_none() && told.len() == once.rank();
    let times = times.clone();
    fits.then_some(Repeated { once, axis, value, times, sizes, slot: axis, nodes: vec![place.id] })
}

/// What an Expand repeats along one axis, if that is merged with axes behind it.
fn spread(place: &Place<'_>) -> Option<Repeated> {
    let (wide, value) = (place.input(0)?, place.output(0)?);
    let (id, spread) = place.producer_with(wide, |traits| traits.moves == Some(Movement::Spread))?;
    let narrow = spread_from(place, spread).filter(|_| spread.is("Expand"))?;
    let constant = place.constant(narrow).filter(|tensor| !tensor.is_empty())?;
    let from = place.shape(wide)?;
    let lead = from.len().checked_sub(constant.rank())?;
    let own = |axis: usize| axis.checked_sub(lead).and_then(|axis| constant.shape().get(axis)).map_or(1, |size| *size);
    let is_kept = |axis: usize, size: &Dim| i64::try_from(own(axis)).is_ok_and(|own| size.is_const(own));
    let mut open = from.iter().enumerate().filter(|(axis, size)| !is_kept(*axis, size));
    let (at, times) = open.next().filter(|(at, times)| own(*at) == 1 && times.as_const().is_none())?;
    if open.next().is_some() || !place.has_one_reader(wide) {
        return None;
    }
    let before = from.get(..at)?.iter().try_fold(1usize, |product, size| product.checked_mul(number(size)?))?;
    let (axis, once) = laid_out(place, constant, before, times, value)?;
    // How often it is repeated is told among the sizes that it is spread to.
    let sizes = spread.input(1)?;
    let told = place.fact(sizes)?.ints()?;
    let slot = at.checked_sub(from.len().checked_sub(told.len())?)?;
    let is_told = place.scope().eq(told.get(slot)?, times).is_yes();
    let times = times.clone();
    is_told.then_some(Repeated { once, axis, value, times, sizes, slot, nodes: vec![id, place.id] })
}

fn number(dim: &Dim) -> Option<usize> {
    usize::try_from(dim.as_const()?).ok()
}

/// The axis along which a constant is repeated once all is laid out as this value, if as many elements lie before it, and the constant so.
fn laid_out(place: &Place<'_>, once: &Tensor, before: usize, times: &Dim, value: ValueId) -> Option<(usize, Tensor)> {
    let to = place.shape(value)?;
    let product = |dims: &[Dim]| dims.iter().try_fold(1usize, |product, dim| product.checked_mul(number(dim)?));
    let axis = to.iter().position(|dim| dim.as_const().is_none())?;
    let others = before.checked_mul(product(to.get(axis.checked_add(1)?..)?)?)?;
    let along = once.len().checked_div(others).filter(|along| along.checked_mul(others) == Some(once.len()))?;
    let whole = place.scope().mul(times, &Dim::constant(i64::try_from(along).ok()?));
    if product(to.get(..axis)?)? != before || !place.scope().eq(&whole, to.get(axis)?).is_yes() {
        return None;
    }
    let size = |(own, dim): (usize, &Dim)| if own == axis { Some(along) } else { number(dim) };
    let shape: Vec<usize> = to.iter().enumerate().map(size).collect::<Option<_>>()?;
    Some((axis, once.reshape(&shape).ok()?))
}

/// What is computed of a constant, and by which nodes.
#[derive(Clone)]
struct Computed {
    nodes: Vec<NodeId>,
    result: ValueId,
    once: Tensor,
    axis: usize,
}

/// Functions of a value and of constants, each the only reader of the one before, computed of what stands along the axis once; layouts may
/// lie in between.
fn computed(place: &Place<'_>, repeated: &Repeated) -> Option<Computed> {
    let Repeated { once, axis, value, times, .. } = repeated;
    let most = MAX_ADDED.saturating_add(once.byte_len());
    let mut all = Computed { nodes: Vec::new(), result: *value, once: once.clone(), axis: *axis };
    let mut last = None;
    while all.nodes.len() < MAX_NODES && place.has_one_reader_node(all.result) {
        let Some(&(id, slot)) = place.model.users(all.result).first() else { break };
        let Some(node) = place.model.node(id).filter(|node| Some(node.graph()) == place.graph()) else { break };
        let [Some(result)] = *node.outputs() else { break };
        if traits_of(place.model, node).moves == Some(Movement::Layout) && slot == 0 {
            let before = all.once.shape().iter().take(all.axis).product();
            let Some((axis, once)) = laid_out(place, &all.once, before, times, result) else { break };
            all = Computed { nodes: all.nodes, result, once, axis };
            all.nodes.push(id);
            continue;
        }
        let Some(once) = function(place, id, &all).filter(|once| once.byte_len() <= most) else { break };
        all.once = once;
        all.result = result;
        all.nodes.push(id);
        last = Some(all.clone());
    }
    last
}

/// What a node computes by element of a value, given what is there once, and of constants that are the same along the axis.
fn function(place: &Place<'_>, id: NodeId, all: &Computed) -> Option<Tensor> {
    let node = place.model.node(id).filter(|node| node.canonical_domain().is_empty())?;
    let rank = all.once.rank();
    let from_behind = rank.checked_sub(all.axis)?;
    let own = traits_of(place.model, node).pointwise?;
    matches!(own.operands, Operands::Broadcast | Operands::First).then_some(())?;
    let is_same = |tensor: &&Tensor| {
        let along = tensor.rank().checked_sub(from_behind).and_then(|axis| tensor.shape().get(axis));
        tensor.rank() <= rank && along.is_none_or(|&size| size == 1)
    };
    let operand = |input: &Option<ValueId>| match *input {
        None => Some(None),
        Some(input) if input == all.result => Some(Some(Data::Tensor(all.once.clone()))),
        Some(input) => Some(Some(Data::Tensor(place.constant(input).filter(is_same)?.clone()))),
    };
    let operands = node.inputs().iter().map(operand).collect::<Option<Vec<_>>>()?;
    let environment = Environment::of(place.model);
    let results = evaluate_node(&environment, id, node, operands, place.budget, SliceRule::Agree, 0).ok()?;
    results.first().and_then(Data::tensor).filter(|tensor| tensor.rank() == rank).cloned()
}
