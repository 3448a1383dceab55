//! Tensors whose elements are each one of a few numbers, whatever their size: a triangle of a filled tensor holds its number and 0.
//!
//! What is computed of such tensors element by element is one of the numbers that are computed of theirs. So a comparison may be decided
//! although what it compares is not one number everywhere.

use std::cell::Cell;

use super::uniform::uniform;
use crate::ir::{Data, NodeId, ValueId};
use crate::ops::traits::{Movement, NodeFacts, Operands};
use crate::ops::{Environment, evaluate_node};
use crate::rewrite::limits::{DEPTH, NODES};
use crate::rewrite::place::Place;
use crate::slicing::SliceRule;
use crate::tensor::Tensor;

/// The most different numbers of a tensor. One node is computed for each; beyond four the choice between them costs more than it saves.
const MAX_NUMBERS: usize = 4;

/// The flag that every element of a value is, if there is one.
pub(in crate::rewrite) fn flag(place: &Place<'_>, value: ValueId) -> Option<bool> {
    let numbers = numbers(place, value, DEPTH, &Cell::new(NODES))?;
    let [number] = numbers.as_slice() else { return None };
    number.bools()?.first().copied()
}

/// Numbers, each of rank 0 and of the value's type, one of which each element of a value is. They are different bit by bit.
fn numbers(place: &Place<'_>, value: ValueId, depth: usize, steps: &Cell<usize>) -> Option<Vec<Tensor>> {
    if let Some(number) = uniform(place, value) {
        return Some(vec![number.reshape(&[]).ok()?]);
    }
    let (depth, left) = (depth.checked_sub(1)?, steps.get().checked_sub(1)?);
    steps.set(left);
    let id = place.model.value(value).producer()?;
    let view = place.view(id)?;
    let operand = |slot: usize| numbers(place, view.input(slot)?, depth, steps);
    let traits = view.traits();
    if view.node.is("Trilu") {
        let mut found = operand(0)?;
        let zero = Tensor::zeros(place.dtype(value)?, &[]).ok()?;
        add(&mut found, zero)?;
        return Some(found);
    }
    if traits.moves == Some(Movement::Join) || traits.moves_first() {
        let joined = if traits.moves_first() { 1 } else { view.node.inputs().len() };
        let mut found = Vec::new();
        for slot in 0..joined {
            for number in operand(slot)? {
                add(&mut found, number)?;
            }
        }
        return Some(found);
    }
    computed(place, id, &view, &operand)
}

/// What is computed element by element of every choice of numbers.
fn computed(
    place: &Place<'_>,
    id: NodeId,
    view: &NodeFacts<'_>,
    operand: &dyn Fn(usize) -> Option<Vec<Tensor>>,
) -> Option<Vec<Tensor>> {
    let traits = view.traits();
    let pointwise = traits.pointwise.filter(|own| own.meets(place.opset))?;
    let has_places = matches!(pointwise.operands, Operands::First | Operands::Broadcast);
    if !has_places || !traits.kernels.are_exact() || view.node.outputs().len() != 1 {
        return None;
    }
    let mut choices: Vec<Vec<Option<Data>>> = vec![Vec::new()];
    for (slot, input) in view.node.inputs().iter().enumerate() {
        let numbers = match input {
            Some(_) => operand(slot)?.into_iter().map(|number| Some(Data::Tensor(number))).collect(),
            None => vec![None],
        };
        let with = |choice: &Vec<Option<Data>>| {
            let choice = choice.clone();
            numbers
                .iter()
                .map(move |number| choice.iter().cloned().chain([number.clone()]).collect())
                .collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(with).collect();
        if choices.len() > MAX_NUMBERS * MAX_NUMBERS {
            return None;
        }
    }
    let environment = Environment::of(place.model);
    let mut found = Vec::new();
    for choice in choices {
        let results = evaluate_node(&environment, id, view.node, choice, place.budget, SliceRule::Agree, 0).ok()?;
        add(&mut found, results.first()?.tensor()?.clone())?;
    }
    Some(found)
}

/// Adds a number that is not there yet, if there are not too many.
fn add(numbers: &mut Vec<Tensor>, number: Tensor) -> Option<()> {
    if !numbers.iter().any(|own| own.same(&number)) {
        numbers.push(number);
    }
    (numbers.len() <= MAX_NUMBERS).then_some(())
}
