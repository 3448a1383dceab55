//! Products of tensors that only repeat along an axis, spelled as Einsum.
//!
//! Law: where an operand of an Einsum is the same along the axis of a letter, and another operand has the letter too, the letter says nothing of
//! the first, which can be without it. What an Einsum makes of a tensor that repeats along a letter of that tensor alone repeats along it as well.
//! Positions that XLNet spreads over the batch are multiplied with weights so, and then with queries of the batch.

use super::index::spread_from;
use super::{Place, Rule};
use crate::ir::{Attribute, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::Movement;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "repeats-in-einsum",
    law: "Einsum(x·b·, Expand(y)·b·) = Einsum(x·b·, y··), also through an Einsum of Expand(y) that hands b on",
    sentence: "Removes a broadcast along a letter that another operand of the Einsum has.",
    premises: &[
        (
            "spread",
            "an Expand or Tile repeats one position along some axes and keeps the others, with at most an Einsum in between",
        ),
        ("plain", "the equations name every axis of the operands and of the result, each once a term"),
        ("handed-on", "the Einsum between has the letter in the result, and in no other operand"),
        ("elsewhere", "another operand has the letter, with an axis that is proved to be as long"),
        ("one-reader", "the result of the Einsum in between has no other consumer"),
    ],
    exact: false,
    operators: &["Einsum"],
    apply: repeats,
}];

/// An equation without ellipses, whose terms name each letter once.
#[derive(Clone)]
struct Equation {
    terms: Vec<Vec<u8>>,
    result: Vec<u8>,
}

impl Equation {
    fn of(node: &Node) -> Option<Equation> {
        let text: Vec<u8> = node.text("equation", b"")?.iter().copied().filter(|letter| *letter != b' ').collect();
        let text = String::from_utf8(text).ok()?;
        let (operands, result) = text.split_once("->")?;
        let term = |text: &str| {
            let letters = text.as_bytes().to_vec();
            let once = |(at, letter): (usize, &u8)| {
                letter.is_ascii_alphabetic() && !letters.iter().take(at).any(|l| l == letter)
            };
            letters.iter().enumerate().all(once).then_some(letters.clone())
        };
        let terms: Vec<Vec<u8>> = operands.split(',').map(term).collect::<Option<_>>()?;
        (terms.len() == node.inputs().len()).then_some(Equation { terms, result: term(result)? })
    }

    fn without(&self, slot: usize, letters: &[u8]) -> Equation {
        let mut other = self.clone();
        if let Some(term) = other.terms.get_mut(slot) {
            term.retain(|letter| !letters.contains(letter));
        }
        other
    }

    fn attribute(&self) -> Attribute {
        let terms = self.terms.join(b",".as_slice());
        Attribute::String([terms.as_slice(), b"->", &self.result].concat().into())
    }
}

/// A tensor that something spreads: the axes along which it repeats, and what it repeats.
struct Spread {
    id: NodeId,
    axes: Vec<usize>,
    narrow: ValueId,
}

fn spread(place: &Place<'_>, wide: ValueId) -> Option<Spread> {
    let (id, node) = place.producer_with(wide, |traits| traits.moves == Some(Movement::Spread))?;
    let narrow = spread_from(place, node)?;
    let (from, to) = (place.shape(narrow)?, place.shape(wide)?);
    if from.len() != to.len() {
        return None;
    }
    let pair = |axis: usize| from.get(axis).zip(to.get(axis));
    let keeps = |&axis: &usize| pair(axis).is_some_and(|(from, to)| place.scope().eq(from, to).is_yes());
    let axes: Vec<usize> = (0..to.len()).filter(|axis| !keeps(axis)).collect();
    // Of an axis that is not known to be kept it must be known that it is one place.
    let are_places = axes.iter().all(|&axis| pair(axis).is_some_and(|(from, _)| from.is_const(1)));
    (are_places && !axes.is_empty()).then_some(Spread { id, axes, narrow })
}

fn repeats(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let equation = Equation::of(node)?;
    (0..node.inputs().len()).find_map(|slot| {
        let value = node.input(slot)?;
        directly(place, &equation, slot, value).or_else(|| through_another(place, &equation, slot, value))
    })
}

/// Whether another operand tells how long the axis of this letter is.
fn is_elsewhere(place: &Place<'_>, equation: &Equation, slot: usize, axis: usize) -> Option<u8> {
    let node = place.node()?;
    let &letter = equation.terms.get(slot)?.get(axis)?;
    let own = place.shape(node.input(slot)?)?.get(axis)?;
    let mut others = equation.terms.iter().enumerate().filter(|(other, _)| *other != slot);
    let found = others.any(|(other, term)| {
        let at = term.iter().position(|own| *own == letter);
        let dim = at.and_then(|at| place.shape(node.input(other)?)?.get(at));
        dim.is_some_and(|dim| place.scope().eq(dim, own).is_yes())
    });
    found.then_some(letter)
}

fn directly(place: &Place<'_>, equation: &Equation, slot: usize, value: ValueId) -> Option<Edit> {
    let Spread { id, axes, narrow } = spread(place, value)?;
    let letters = axes.iter().map(|&axis| is_elsewhere(place, equation, slot, axis)).collect::<Option<Vec<u8>>>()?;
    let mut edit = place.edit()?;
    if place.model.is_read_only_by(value, &[place.id]) {
        edit.remove.push(id);
    }
    let less = edit.new_value(narrow, "row");
    let squeeze = place
        .build(&mut edit, narrow)
        .squeeze(narrow, axes.iter().filter_map(|&axis| i64::try_from(axis).ok()).collect());
    edit.insert.push(squeeze.output(less));
    let node =
        NewNode::like(place.node()?).reading(slot, less).set("equation", equation.without(slot, &letters).attribute());
    place.instead(edit, node)
}

fn through_another(place: &Place<'_>, equation: &Equation, slot: usize, value: ValueId) -> Option<Edit> {
    let (inner_id, inner) = place.producer(value, "Einsum")?;
    if !place.model.is_read_only_by(value, &[place.id]) {
        return None;
    }
    let inside = Equation::of(inner)?;
    (0..inner.inputs().len()).find_map(|at| {
        let Spread { axes, narrow, .. } = spread(place, inner.input(at)?)?;
        let term = inside.terms.get(at)?;
        let inner_letters = axes.iter().map(|&axis| term.get(axis).copied()).collect::<Option<Vec<u8>>>()?;
        let mut others = inside.terms.iter().enumerate().filter(|(other, _)| *other != at);
        if others.any(|(_, term)| term.iter().any(|letter| inner_letters.contains(letter))) {
            return None;
        }
        let handed_on = |letter: &u8| inside.result.iter().position(|own| own == letter);
        let letters = inner_letters.iter().map(|letter| is_elsewhere(place, equation, slot, handed_on(letter)?));
        let letters = letters.collect::<Option<Vec<u8>>>()?;
        let mut edit = place.edit()?.removing(inner_id);
        let (less, product) = (edit.new_value(narrow, "row"), edit.new_value(value, "row"));
        let squeeze = place
            .build(&mut edit, narrow)
            .squeeze(narrow, axes.iter().filter_map(|&axis| i64::try_from(axis).ok()).collect());
        edit.insert.push(squeeze.output(less));
        let mut smaller = inside.without(at, &inner_letters);
        smaller.result.retain(|letter| !inner_letters.contains(letter));
        edit.insert.push(NewNode::like(inner).reading(at, less).set("equation", smaller.attribute()).output(product));
        let outer = NewNode::like(place.node()?).reading(slot, product);
        place.instead(edit, outer.set("equation", equation.without(slot, &letters).attribute()))
    })
}
