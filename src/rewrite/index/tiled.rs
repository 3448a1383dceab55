//! Constants that are spread along an axis which is merged with those behind it, and computed with.
//!
//! Law: of a `c` of `[p, n, q]` that is spread to `[p, b, n, q]` and laid out as `[p, b·n, q]`, place `j` of the long axis is place `j mod n`,
//! which is what a Tile repeats: `f(Reshape(Expand(c)), k) = Tile(f(c, k), b)` for an element-wise `f` and a `k` that is the same along the axis.
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
    sentence: "A constant that is spread, laid out in a row and computed with is computed with once, and tiled.",
    premises: &[
        ("constant", "what is spread is constant"),
        ("one-axis", "one axis is spread, whose size is open, and it is merged with those right behind it alone"),
        ("one-reader", "nothing else reads what is spread, or laid out"),
        ("by-element", "what reads it computes by element of it and of constants that are the same along the axis"),
        ("small", "the new constant takes at most 1 MiB more than the old one"),
    ],
    exact: false,
    operators: &["Reshape"],
    apply: tile,
};

/// How many bytes the new constant may have more than the old one.
const MAX_ADDED: usize = 1 << 20;

/// How many functions are computed once.
const MAX_FUNCTIONS: usize = 8;

fn tile(place: &Place<'_>) -> Option<Edit> {
    let (wide, laid_out) = (place.input(0)?, place.output(0)?);
    let (id, spread) = place.producer_with(wide, |traits| traits.moves == Some(Movement::Spread))?;
    let narrow = spread_from(place, spread).filter(|_| spread.is("Expand"))?;
    let constant = place.constant(narrow).filter(|tensor| !tensor.is_empty())?;
    if !place.opset.everything_broadcasts() || !place.has_one_reader(wide) {
        return None;
    }
    let (at, times) = spread_axis(place, constant, wide)?;
    let (axis, tiled) = row(place, constant, (at, times), wide, laid_out)?;
    let most = MAX_ADDED.saturating_add(constant.byte_len());
    let Computed { nodes, result, tensor } = computed(place, laid_out, tiled, axis, most)?;
    // How often it is repeated is told among the sizes that it is spread to.
    let sizes = spread.input(1)?;
    let told = place.fact(sizes)?.ints()?;
    let lead = place.shape(wide)?.len().checked_sub(told.len())?;
    let slot = at
        .checked_sub(lead)
        .filter(|&slot| told.get(slot).is_some_and(|size| place.scope().eq(size, times).is_yes()))?;
    let mut edit = place.edit()?.removing(id).removing(place.id);
    edit.remove.extend(&nodes);
    let count = edit.new_value(sizes, "times");
    let gather =
        place.build(&mut edit, count).gather_at(sizes, Tensor::vector(vec![i64::try_from(slot).ok()?]), 0usize);
    edit.insert.push(gather.output(count));
    let behind = tensor.rank().checked_sub(axis)?.checked_sub(1)?;
    let mut parts = vec![count];
    if axis > 0 {
        parts.insert(0, edit.constant(laid_out, "once", Tensor::vector(vec![1i64; axis])));
    }
    if behind > 0 {
        parts.push(edit.constant(laid_out, "once", Tensor::vector(vec![1i64; behind])));
    }
    let mut repeats = count;
    if parts.len() > 1 {
        repeats = edit.new_value(laid_out, "repeats");
        edit.insert.push(Build::concat(parts, 0usize).output(repeats));
    }
    let data = edit.constant(laid_out, "once", tensor);
    let name = place.model.node(*nodes.last()?)?.name.clone();
    Some(edit.inserting(NewNode::new("Tile", [Some(data), Some(repeats)]).named(name).output(result)))
}

/// The one axis that is spread, if how often is no number, and how often.
fn spread_axis<'a>(place: &Place<'a>, constant: &Tensor, wide: ValueId) -> Option<(usize, &'a Dim)> {
    let sizes = place.shape(wide)?;
    let lead = sizes.len().checked_sub(constant.rank())?;
    let own = |axis: usize| axis.checked_sub(lead).and_then(|axis| constant.shape().get(axis)).map_or(1, |size| *size);
    let is_kept = |axis: usize, size: &Dim| i64::try_from(own(axis)).is_ok_and(|own| size.is_const(own));
    let mut spread = sizes.iter().enumerate().filter(|(axis, size)| !is_kept(*axis, size));
    let (at, times) = spread.next().filter(|(at, times)| own(*at) == 1 && times.as_const().is_none())?;
    spread.next().is_none().then_some((at, times))
}

/// The axis that the one that is spread is merged into, and what stands along it once.
fn row(
    place: &Place<'_>,
    constant: &Tensor,
    (at, times): (usize, &Dim),
    wide: ValueId,
    laid_out: ValueId,
) -> Option<(usize, Tensor)> {
    let (from, to) = (place.shape(wide)?, place.shape(laid_out)?);
    let number = |dims: &[Dim]| {
        let size = |dim: &Dim| usize::try_from(dim.as_const()?).ok();
        dims.iter().try_fold(1usize, |product, dim| product.checked_mul(size(dim)?))
    };
    let axis = to.iter().position(|dim| dim.as_const().is_none())?;
    let (before, behind) = (to.get(..axis)?, to.get(axis.checked_add(1)?..)?);
    let others = number(before)?.checked_mul(number(behind)?)?;
    let once = constant.len().checked_div(others).filter(|once| once.checked_mul(others) == Some(constant.len()))?;
    let whole = place.scope().mul(times, &Dim::constant(i64::try_from(once).ok()?));
    let same_lead = number(from.get(..at)?)? == number(before)?;
    if !same_lead || !place.scope().eq(&whole, to.get(axis)?).is_yes() {
        return None;
    }
    let size = |(own, dim): (usize, &Dim)| if own == axis { Some(once) } else { usize::try_from(dim.as_const()?).ok() };
    let shape: Vec<usize> = to.iter().enumerate().map(size).collect::<Option<_>>()?;
    Some((axis, constant.reshape(&shape).ok()?))
}

/// What is computed of a constant, and by which nodes.
struct Computed {
    nodes: Vec<NodeId>,
    result: ValueId,
    tensor: Tensor,
}

/// Functions of a value and of constants, each the only reader of the one before, computed of what stands along the axis once.
fn computed(place: &Place<'_>, value: ValueId, once: Tensor, axis: usize, most: usize) -> Option<Computed> {
    let environment = Environment::of(place.model);
    let rank = once.rank();
    let behind = rank.checked_sub(axis)?.checked_sub(1)?;
    let mut all = Computed { nodes: Vec::new(), result: value, tensor: once };
    while all.nodes.len() < MAX_FUNCTIONS {
        let users = place.model.users(all.result);
        let Some(&(id, _)) = users.first().filter(|_| place.has_one_reader_node(all.result)) else { break };
        let Some(node) = place.model.node(id).filter(|node| Some(node.graph()) == place.graph()) else { break };
        let pointwise = traits_of(place.model, node).pointwise.filter(|_| node.canonical_domain().is_empty());
        let by_element = pointwise.is_some_and(|own| matches!(own.operands, Operands::Broadcast | Operands::First));
        let [Some(result)] = *node.outputs() else { break };
        // Along the axis, and the axes before it that the result does not have, others are of size 1.
        let is_same = |tensor: &&Tensor| {
            let shape = tensor.shape();
            let along = shape.len().checked_sub(behind).and_then(|at| shape.get(at.checked_sub(1)?));
            shape.len() <= rank && along.is_none_or(|&size| size == 1)
        };
        let operand = |input: &Option<ValueId>| match *input {
            None => Some(None),
            Some(input) if input == all.result => Some(Some(Data::Tensor(all.tensor.clone()))),
            Some(input) => Some(Some(Data::Tensor(place.constant(input).filter(is_same)?.clone()))),
        };
        let Some(operands) = node.inputs().iter().map(operand).collect::<Option<Vec<_>>>().filter(|_| by_element)
        else {
            break;
        };
        let results = evaluate_node(&environment, id, node, operands, place.budget, SliceRule::Agree, 0);
        let tensor = results.ok().and_then(|results| results.first().and_then(Data::tensor).cloned());
        let Some(tensor) = tensor.filter(|tensor| tensor.byte_len() <= most && tensor.rank() == rank) else { break };
        all.nodes.push(id);
        all.result = result;
        all.tensor = tensor;
    }
    (!all.nodes.is_empty()).then_some(all)
}
