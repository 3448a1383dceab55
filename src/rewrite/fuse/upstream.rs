//! A factor goes up into constants that it meets on the way.
//!
//! Law: with a number `s` and `f` linear, `s·f(x) = f(s·x)`. Movements of elements are linear, a product of matrices is in
//! either of them, a convolution and its like in weights and bias together, `s·(x + c) = s·x + s·c`, and `s·(x·c) = x·(s·c)`.
//! So the scores of an attention need no factor of their own: the weights of the queries take it.
//!
//! Nothing but the next node reads what lies on the way, and nothing but its node the constants that change.

use super::scaled::{Blocks, scaled};
use super::{Place, Rule, has_arithmetic};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] =
    &[Rule { name: "factor-upstream", operators: &["Mul", "Div"], exact: false, apply: upstream }];

/// How many nodes are looked at.
const REACH: usize = 24;

/// A constant of so few bytes may have other readers.
const SMALL: usize = 16;

/// A constant operand that takes the factor, or its inverse.
#[derive(Clone, Copy)]
struct Change {
    node: NodeId,
    slot: usize,
    inverse: bool,
}

/// A value on the way up: which node reads it, and what has to change below it.
struct Step {
    value: ValueId,
    reader: NodeId,
    changes: Vec<Change>,
}

fn upstream(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let result = place.only_output()?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let (value, factor) = match (place.scalar(a), place.scalar(b)) {
        (None, Some(factor)) if node.is("Div") => (a, factor.recip()),
        (None, Some(factor)) => (a, factor),
        (Some(factor), None) if node.is("Mul") => (b, factor),
        _ => return None,
    };
    let usual = place.opset >= 7 && factor.is_normal() && factor.recip().is_normal();
    let fits = place.dtype(result).is_some_and(has_arithmetic) && place.same_shape(value, result);
    if !usual || !fits || !place.may_forward(value) {
        return None;
    }
    let changes = search(place, Step { value, reader: place.id, changes: Vec::new() })?;
    let mut tensors = Vec::with_capacity(changes.len());
    for change in changes {
        let constant = place.model.node(change.node)?.input(change.slot)?;
        let tensor = place.tensor(constant)?;
        let factor = if change.inverse { factor.recip() } else { factor };
        let tensor = scaled(place.budget, tensor, Blocks::whole(tensor.shape())?, &[factor])?;
        tensors.push((change, constant, tensor));
    }
    let mut edit = place.forward("factor-upstream", value)?;
    for (change, like, tensor) in tensors {
        let constant = place.fused_value(like);
        edit.constants.push((constant, tensor));
        edit.rewire.push((change.node, change.slot, Some(constant)));
    }
    Some(edit)
}

/// Looks for the constants that take the factor, from `first` up; of a product of matrices first through the one from the left.
fn search(place: &Place<'_>, first: Step) -> Option<Vec<Change>> {
    let mut open = vec![first];
    for _ in 0..REACH {
        let step = open.pop()?;
        let Some(ways) = above(place, &step) else { continue };
        for way in ways {
            match way {
                Way::Up(next) => open.push(next),
                Way::Done(changes) => return Some(changes),
            }
        }
    }
    None
}

enum Way {
    Up(Step),
    Done(Vec<Change>),
}

/// Where the factor can go from a value; the last way is to be tried first.
fn above(place: &Place<'_>, step: &Step) -> Option<Vec<Way>> {
    let &Step { value, reader, ref changes } = step;
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id).filter(|node| Some(node.graph()) == place.node().map(Node::graph))?;
    let reads = place.model.node(reader)?.inputs().iter().filter(|&&input| input == Some(value)).count();
    // What was known of the content would no longer hold.
    let open = place.fact(value).is_some_and(|fact| fact.content.is_none());
    let single = node.canonical_domain().is_empty() && node.outputs().len() == 1;
    if !open || !single || reads != 1 || !place.is_internal(value, &[reader]) {
        return None;
    }
    let with = |slots: &[usize], inverse: bool| {
        let added = slots.iter().map(|&slot| Change { node: id, slot, inverse });
        changes.iter().copied().chain(added).collect::<Vec<Change>>()
    };
    let up = |slot: usize, changes: Vec<Change>| Some(Way::Up(Step { value: node.input(slot)?, reader: id, changes }));
    let own = |slot: usize| own_constant(place, node, id, slot).is_some();
    let is_constant = |slot: usize| node.input(slot).is_some_and(|operand| place.tensor(operand).is_some());
    Some(match node.op_type.as_str() {
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "Slice" | "Expand" | "Neg" => {
            vec![up(0, changes.clone())?]
        }
        "MatMul" if own(1) => vec![Way::Done(with(&[1], false))],
        "MatMul" if own(0) => vec![Way::Done(with(&[0], false))],
        "MatMul" => {
            let ways = [1, 0].into_iter().filter(|&slot| !is_constant(slot));
            ways.filter_map(|slot| up(slot, changes.clone())).collect()
        }
        "Add" | "Sub" if place.opset >= 7 && own(1) => vec![up(0, with(&[1], false))?],
        "Add" | "Sub" if place.opset >= 7 && own(0) => vec![up(1, with(&[0], false))?],
        "Mul" if place.opset >= 7 && own(1) => vec![Way::Done(with(&[1], false))],
        "Mul" | "Div" if place.opset >= 7 && own(0) => vec![Way::Done(with(&[0], false))],
        "Div" if place.opset >= 7 && own(1) => vec![Way::Done(with(&[1], true))],
        "Conv" | "ConvTranspose" | "Gemm" | "LayerNormalization" | "InstanceNormalization"
            if own(1) && (node.input(2).is_none() || own(2)) =>
        {
            let slots: &[usize] = if node.input(2).is_some() { &[1, 2] } else { &[1] };
            vec![Way::Done(with(slots, false))]
        }
        _ => return None,
    })
}

/// A constant operand that may change: an initializer that only this operand is, or a small one.
fn own_constant<'p>(place: &'p Place<'_>, node: &Node, id: NodeId, slot: usize) -> Option<&'p Tensor> {
    let value = node.input(slot)?;
    let tensor = place.tensor(value).filter(|tensor| has_arithmetic(tensor.dtype()))?;
    let once = node.inputs().iter().filter(|&&input| input == Some(value)).count() == 1;
    let owned = place.model.value(value).is_constant() && once && place.is_internal(value, &[id]);
    (owned || tensor.byte_len() <= SMALL).then_some(tensor)
}
