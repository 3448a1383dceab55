//! Vectorizes an element-wise operator that is applied to every element along an axis.
//!
//! Law: for an element-wise `f`, `f(xᵢ, yᵢ)` is index `i` of `f(X, Y)`, where `X` and `Y` are the `xᵢ` and the `yᵢ` stacked along a new
//! axis. Where an exporter has unrolled a recurrence, one node computes all values that do not depend on the step before.
//!
//! Operands that are extracted from one value need no Concat. Parts of equal size are that value with the axis split in two, and elements
//! are that value itself. The results are parts of the value with both axes merged, so following operators can apply to the whole, too
//! ([`super::parts`]).

use super::miss::{Miss, ensure, first_of};
use super::parts::is_arithmetic;
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Variation, traits_of};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "function-of-steps",
    law: "f(xᵢ, yᵢ) = Split(f(X, Y))[i] for elements or equal parts xᵢ of X, and yᵢ of Y, or of a Concat",
    sentence: "Vectorizes a function that is applied to each element along an axis: applies the function once to the whole tensor.",
    premises: &[
        (
            "all-steps",
            "the elements or parts xᵢ cover the axis of X in order, and the function f reads each xᵢ exactly once",
        ),
        ("by-element", "f is element-wise, and the operands of f are floats, because integers may be dims"),
        (
            "other-operand",
            "the operands yᵢ are one of three: (1) the same value for all i; (2) the elements of one value Y; (3) separate values of the same shape",
        ),
        ("apart", "no f(xᵢ, yᵢ) depends on another f(xⱼ, yⱼ)"),
        ("known-sizes", "the size of each part along the axis is a constant"),
        (
            "bounded",
            "if all dims are constants, f(X, Y) has at most 2²⁴ elements. If a dim is dynamic, f(X, Y) has at most 64 times the number of elements of X",
        ),
        ("pays", "the rewrite removes more nodes than it adds"),
    ],
    exact: false,
    operators: &["Add", "Sub", "Mul", "Div", "Pow"],
    apply: function_of_steps,
}];

/// The most steps that are compared. Without it, a Concat of N results takes N² comparisons.
const MOST_STEPS: usize = 1024;

/// The most elements of all results together. Before the rewrite a runtime can free each result after its use. Without the limit, a run
/// takes N times the memory.
const MOST_ELEMENTS: i64 = 1 << 24;

/// The limit for dynamic dims: the largest ratio of the elements of all results to those of the sliced operand.
const MOST_TIMES: i64 = 64;

/// The most nodes that are followed upwards to prove that the steps do not depend on each other. Without it, each Concat follows the whole
/// model.
const MOST_FOLLOWED: usize = 4096;

/// The combined operands of all steps.
enum Whole {
    /// Equal parts of this value along the axis.
    Parts(ValueId),
    /// Elements of this value along an axis, with these axes of size 1 inserted.
    Elements { of: ValueId, axis: usize, ones: Vec<usize> },
    /// One value for all steps.
    Same(ValueId),
    /// A separate value for each step.
    Each,
}

/// One operand slot of all steps.
struct Operands {
    whole: Whole,
    values: Vec<ValueId>,
}

impl Operands {
    /// Returns the axes of the operand before which the axis of the steps can be inserted.
    fn axes(&self, rank: usize) -> Vec<usize> {
        match &self.whole {
            Whole::Elements { axis, ones, .. } => {
                let before = |at: usize| (0..at).filter(|own| !ones.contains(own)).count();
                (0..rank).filter(|&at| before(at) == *axis).collect()
            }
            _ => (0..rank).collect(),
        }
    }
}

fn function_of_steps(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let dtype = place.dtype(node.output(0).ok_or(Miss::ROOT)?).ok_or(miss!("by-element"))?;
    let versions = place.opset.arithmetic_broadcasts() && place.opset.has_split_and_pads();
    let may_vary = matches!(traits_of(place.model, node).variation(dtype), Variation::Values);
    ensure(versions, Miss::EXPRESSIBLE)?;
    ensure(dtype.is_float() && !may_vary && is_arithmetic(place, node), miss!("by-element"))?;
    first_of([0, 1].into_iter().map(|slot| steps(place, node, slot)))
}

/// Returns the edit, if the operand in this slot belongs to the first step.
fn steps(place: &Place<'_>, node: &Node, slot: usize) -> Result<Edit, Miss> {
    let other = 1usize.checked_sub(slot).ok_or(Miss::COMPUTABLE)?;
    let (first, second) = (node.input(slot).ok_or(Miss::ROOT)?, node.input(other).ok_or(Miss::ROOT)?);
    let (own, fixed) = parts(place, first)
        .map(|(own, axis)| (own, Some(axis)))
        .or_else(|| {
            let own = elements(place, first)?;
            Some((own, None))
        })
        .ok_or(if is_taken_out(place, first) { miss!("all-steps").of(first) } else { Miss::ROOT })?;
    let count = own.values.len();
    // The other operand of the steps.
    let same = Operands { whole: Whole::Same(second), values: vec![second; count] };
    let with = |beside: &Operands| {
        let pairs = own.values.iter().zip(&beside.values);
        pairs.map(|(&a, &b)| step(place, node, slot, a, Some(b))).collect::<Option<Vec<NodeId>>>()
    };
    if let Some(nodes) = with(&same) {
        return build(place, slot, &nodes, [&own, &same], fixed);
    }
    let parts = parts(place, second).map(|(beside, axis)| (beside, Some(axis)));
    if let Some((beside, axis)) = parts.or_else(|| Some((elements(place, second)?, None))) {
        let fits = beside.values.len() == count && (fixed.is_none() || axis.is_none() || fixed == axis);
        if let Some(nodes) = with(&beside).filter(|_| fits) {
            return build(place, slot, &nodes, [&own, &beside], fixed.or(axis));
        }
    }
    let nodes = own
        .values
        .iter()
        .map(|&value| step(place, node, slot, value, None))
        .collect::<Option<Vec<_>>>()
        .ok_or(miss!("all-steps"))?;
    let operand = |&id: &NodeId| place.model.node(id)?.input(other);
    let values: Vec<ValueId> = nodes.iter().map(operand).collect::<Option<_>>().ok_or(miss!("all-steps"))?;
    let alike = values.iter().all(|&value| place.same_shape(value, second));
    let beside = Operands { whole: Whole::Each, values };
    ensure(alike, miss!("other-operand").of(second))?;
    ensure(are_apart(place, &beside.values, &nodes), miss!("apart"))?;
    build(place, slot, &nodes, [&own, &beside], fixed)
}

/// Returns `true` if a value is a part or an element of another value.
fn is_taken_out(place: &Place<'_>, value: ValueId) -> bool {
    let element = place.producer(value, "Unsqueeze").and_then(|(_, node)| node.input(0)).unwrap_or(value);
    place.producer(value, "Split").is_some() || place.producer(element, "Gather").is_some()
}

/// Returns all parts of a Split of which this is the first, if they have equal size, and the axis.
fn parts(place: &Place<'_>, first: ValueId) -> Option<(Operands, usize)> {
    let (_, split) = place.producer(first, "Split")?;
    let whole = split.input(0)?;
    let axis = place.read(split).axis(place.shape(whole)?.len())?;
    let values: Vec<ValueId> = split.outputs().iter().copied().collect::<Option<_>>()?;
    let size = |&value: &ValueId| place.shape(value)?.get(axis)?.as_const().filter(|&size| size > 0);
    let one = size(&first)?;
    let fits = values.first() == Some(&first) && values.iter().all(|value| size(value) == Some(one));
    (fits && (2..=MOST_STEPS).contains(&values.len()))
        .then_some((Operands { whole: Whole::Parts(whole), values }, axis))
}

/// Returns all elements along an axis of which this is the first, with the same inserted axes.
fn elements(place: &Place<'_>, first: ValueId) -> Option<Operands> {
    let unsqueeze = place.producer(first, "Unsqueeze").map(|(_, node)| node);
    let ones = match unsqueeze {
        Some(node) => place.read(node).ones()?,
        None => Vec::new(),
    };
    let element = match unsqueeze {
        Some(node) => node.input(0)?,
        None => first,
    };
    let (_, gather) = place.producer(element, "Gather")?;
    let of = gather.input(0)?;
    let dims = place.shape(of)?;
    let axis = place.read(gather).axis(dims.len())?;
    let count = usize::try_from(dims.get(axis)?.as_const()?).ok().filter(|count| (2..=MOST_STEPS).contains(count))?;
    let mut values = vec![None; count];
    for (id, slot) in place.model.users(of) {
        let Some(node) = place.model.node(id).filter(|node| node.is("Gather") && slot == 0) else { continue };
        let same = Some(node.graph()) == place.graph() && place.read(node).axis(dims.len()) == Some(axis);
        let Some((element, at)) = node.output(0).zip(index(place, node, count)).filter(|_| same) else { continue };
        let value = match unsqueeze {
            None => Some(element),
            Some(_) => place.model.users(element).into_iter().find_map(|(id, slot)| {
                let node = place.model.node(id).filter(|node| node.is("Unsqueeze") && slot == 0)?;
                (place.read(node).ones()? == ones).then(|| node.output(0)).flatten()
            }),
        };
        let known = values.get_mut(at)?;
        *known = known.or(value);
    }
    let values: Vec<ValueId> = values.into_iter().collect::<Option<_>>()?;
    (values.first() == Some(&first)).then_some(Operands { whole: Whole::Elements { of, axis, ones }, values })
}

/// Returns the index of a Gather that extracts one index of an axis of this size and drops the axis.
fn index(place: &Place<'_>, gather: &Node, count: usize) -> Option<usize> {
    let tensor = place.constant(gather.input(1)?).filter(|tensor| tensor.rank() == 0)?;
    let &[at] = tensor.to_i64s()?.as_slice() else { return None };
    let count = i64::try_from(count).ok()?;
    let at = if at < 0 { at.checked_add(count)? } else { at };
    usize::try_from(at).ok().filter(|_| at < count)
}

/// Returns the consumer of `value` that repeats `node`, which reads its own operand in `slot`. `beside` is the required other operand, if
/// any.
fn step(place: &Place<'_>, node: &Node, slot: usize, value: ValueId, beside: Option<ValueId>) -> Option<NodeId> {
    let other = 1usize.checked_sub(slot)?;
    let mut found = place.model.users(value).into_iter().filter_map(|(id, at)| {
        let own = place.model.node(id)?;
        let alike = own.op_type == node.op_type
            && own.canonical_domain().is_empty()
            && own.graph() == node.graph()
            && own.same_attributes(node)
            && own.inputs().len() == 2;
        let fits = beside.is_none() || own.input(other) == beside;
        (alike && fits && at == slot && own.times_read(value) == 1).then_some(id)
    });
    let id = found.next()?;
    found.next().is_none().then_some(id)
}

/// Returns `true` if no value depends on the result of any of the nodes.
fn are_apart(place: &Place<'_>, values: &[ValueId], nodes: &[NodeId]) -> bool {
    let steps: BTreeSet<NodeId> = nodes.iter().copied().collect();
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<ValueId> = values.to_vec();
    while let Some(value) = waiting.pop() {
        let Some(id) = place.model.value(value).producer() else { continue };
        if steps.contains(&id) || seen.len() >= MOST_FOLLOWED {
            return false;
        }
        let Some(node) = place.model.node(id).filter(|_| seen.insert(id)) else { continue };
        // Values that a subgraph captures are not among the inputs of the node.
        if node.subgraphs().next().is_some() {
            return false;
        }
        waiting.extend(node.inputs().iter().flatten());
    }
    true
}

fn build(
    place: &Place<'_>,
    slot: usize,
    nodes: &[NodeId],
    operands: [&Operands; 2],
    axis: Option<usize>,
) -> Result<Edit, Miss> {
    let results: Option<Vec<ValueId>> = nodes.iter().map(|&id| place.model.node(id)?.output(0)).collect();
    let results = results.ok_or(Miss::ROOT)?;
    let &first = results.first().ok_or(Miss::ROOT)?;
    let dims = place.dims(first)?;
    let rank = dims.len();
    let steps = i64::try_from(nodes.len()).or(Err(Miss::COMPUTABLE))?;
    let axis = axis
        .into_iter()
        .chain((0..rank).rev())
        .find(|axis| operands.iter().all(|operand| operand.axes(rank).contains(axis)))
        .ok_or(miss!("other-operand"))?;
    let size = dims.get(axis).and_then(Dim::as_const).filter(|&size| size > 0);
    let size = size.ok_or(miss!("known-sizes").dim(first, axis))?;
    let wholes = operands.iter().filter(|operand| matches!(operand.whole, Whole::Parts(_) | Whole::Elements { .. }));
    let taken: Vec<&[Dim]> = wholes.filter_map(|operand| place.shape(*operand.values.first()?)).collect();
    ensure(is_bounded(place.scope(), steps, dims, &taken), miss!("bounded").of(first))?;
    let mut edit = place.begin()?;
    let mut added = 3usize;
    let mut inputs = [first; 2];
    for (operand, at) in operands.iter().zip([slot, usize::from(slot == 0)]) {
        let (value, cost) = stacked(place, &mut edit, operand, rank, axis).ok_or(miss!("other-operand"))?;
        *inputs.get_mut(at).ok_or(Miss::ROOT)? = value;
        added = added.saturating_add(cost);
    }
    ensure(added < nodes.len(), miss!("pays"))?;
    let with = |sizes: &[i64]| {
        let mut to = dims.to_vec();
        to.splice(axis..axis.checked_add(1)?, sizes.iter().map(|&size| Dim::constant(size)));
        Some(to)
    };
    let count = steps.checked_mul(size).ok_or(Miss::COMPUTABLE)?;
    let (apart, together) = with(&[steps, size]).zip(with(&[count])).ok_or(Miss::COMPUTABLE)?;
    let all = edit.new_value(first, "steps");
    let whole = edit.new_value(first, "whole");
    let [left, right] = inputs;
    edit.insert.push(NewNode::like(place.root()?).reading(0, left).reading(1, right).output(all));
    let reshape = place.build(&mut edit, whole).reshape_to(place.scope(), all, &apart, &together);
    edit.insert.push(reshape.ok_or(miss!("known-sizes").of(first))?.output(whole));
    let split = place.build(&mut edit, whole).split(whole, axis, vec![size; nodes.len()]).ok_or(Miss::EXPRESSIBLE)?;
    edit.insert.push(NewNode { outputs: results.into_iter().map(Some).collect(), ..split });
    edit.remove.extend(nodes);
    Ok(edit)
}

/// Returns `true` if the stacked results with these dims stay within the limits of memory; `taken` lists the dims of the sliced operands.
fn is_bounded(scope: &Scope, steps: i64, result: &[Dim], taken: &[&[Dim]]) -> bool {
    let all = result.iter().try_fold(steps, |all, dim| Some(all.saturating_mul(dim.as_const()?)));
    if let Some(all) = all {
        return all <= MOST_ELEMENTS;
    }
    let times = |operand: &[Dim]| {
        let mut own = operand.iter().rev();
        result.iter().rev().try_fold(1i64, |times, dim| match own.next() {
            Some(own) if scope.eq(own, dim).is_yes() => Some(times),
            Some(own) if !own.is_const(1) => None,
            _ => Some(times.saturating_mul(dim.as_const()?)),
        })
    };
    taken.iter().any(|operand| times(operand).is_some_and(|times| times <= MOST_TIMES))
}

/// Returns the stacked operand, with the axis of the steps before this axis, and the number of nodes that stacking takes.
fn stacked(
    place: &Place<'_>,
    edit: &mut Edit,
    operand: &Operands,
    rank: usize,
    axis: usize,
) -> Option<(ValueId, usize)> {
    let &first = operand.values.first()?;
    let dims = place.shape(first)?;
    let apart = |edit: &mut Edit, whole: ValueId, like: ValueId| {
        let size = dims.get(axis)?.as_const().filter(|_| dims.len() == rank)?;
        let steps = i64::try_from(operand.values.len()).ok()?;
        let with = |sizes: &[i64]| {
            let mut to = dims.to_vec();
            to.splice(axis..axis.checked_add(1)?, sizes.iter().map(|&size| Dim::constant(size)));
            Some(to)
        };
        let (from, to) = (with(&[steps.checked_mul(size)?])?, with(&[steps, size])?);
        let value = edit.new_value(like, "steps");
        let reshape = place.build(edit, value).reshape_to(place.scope(), whole, &from, &to)?;
        edit.insert.push(reshape.output(value));
        Some(value)
    };
    match &operand.whole {
        Whole::Parts(whole) => Some((apart(edit, *whole, *whole)?, 1)),
        Whole::Each => {
            let whole = edit.new_value(first, "whole");
            let concat = crate::rewrite::build::Build::concat(operand.values.iter().copied(), axis);
            edit.insert.push(concat.output(whole));
            Some((apart(edit, whole, first)?, 2))
        }
        Whole::Elements { of, ones, .. } => {
            if dims.len() != rank {
                return None;
            }
            if ones.is_empty() {
                return Some((*of, 0));
            }
            let put = |&one: &usize| i64::try_from(if one < axis { one } else { one.checked_add(1)? }).ok();
            let ones: Vec<i64> = ones.iter().map(put).collect::<Option<_>>()?;
            let value = edit.new_value(*of, "steps");
            let node = place.build(edit, value).unsqueeze(*of, ones);
            edit.insert.push(node.output(value));
            Some((value, 1))
        }
        Whole::Same(same) => {
            let missing = rank.checked_sub(dims.len())?;
            let Some(at) = axis.checked_sub(missing).filter(|&at| at > 0) else { return Some((*same, 0)) };
            let value = edit.new_value(*same, "steps");
            let node = place.build(edit, value).unsqueeze(*same, vec![i64::try_from(at).ok()?]);
            edit.insert.push(node.output(value));
            Some((value, usize::from(place.constant(*same).is_none())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_stacked_results_is_bounded() {
        let scope = Scope::new();
        let dims = |text: &str| -> Vec<Dim> { text.split(' ').map(|dim| scope.parse(dim).unwrap()).collect() };
        let fits = |steps, result: &str, taken: &str| is_bounded(&scope, steps, &dims(result), &[&dims(taken)]);
        assert!(fits(1024, "1 256 16", "1 256 1") && !fits(1024, "1 2048 16", "1 2048 1"));
        assert!(fits(1024, "n 2048 16", "n 2048 1") && !fits(8, "n 128", "n 1"));
        assert!(!fits(8, "n m", "n 1"), "an axis that is open may be any size");
        assert!(!fits(8, "n 4", "4") && !fits(8, "n 4", "m 4"));
    }
}
