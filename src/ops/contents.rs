//! Known elements of data movement results, derived from the operands' elements by the operator's index map.
//!
//! Element `i` of a result is element `map(i)` of an operand, or a constant. Operators infer types and shapes; only this module
//! tracks individual elements of partially known operands.

use std::cell::Cell;

use crate::index_map::{Binding, Element};
use crate::ir::{Fact, Facts, MAX_ELEMENTS, Scalar};
use crate::ops::Site;
use crate::ops::traits::{Movement, NodeFacts, Place, Traits};

/// The maximum number of positions to try for elements at unknown positions.
const MOST_TRIED: usize = 4_096;

/// Returns the elements of a small tensor of constant shape, including unknown ones; `None` for other tensors.
pub(in crate::ops) fn elements_of(fact: &Fact) -> Option<Vec<Scalar>> {
    let len = fact.static_len().filter(|&len| len <= MAX_ELEMENTS)?;
    let elements = fact.elements().unwrap_or_else(|| vec![Scalar::Unknown; len]);
    (elements.len() == len).then_some(elements)
}

/// Adds the elements of results to the inferred facts. If all operands are constant, evaluation computes the results exactly.
pub(super) fn state_contents(
    site: Site<'_>,
    traits: &'static Traits,
    facts: &Facts,
    inputs: &[Option<Fact>],
    results: &mut [Fact],
) {
    if traits.index_map.is_none() || inputs.iter().flatten().all(|fact| fact.content.is_none()) {
        return;
    }
    let stated = |output: usize, results: &[Fact]| {
        let result = results.get(output).filter(|result| result.content.is_none())?;
        contents(&Place { site, inputs, results }, traits, facts, (output, result))
    };
    for output in 0..results.len() {
        let elements = stated(output, results);
        if let (Some(elements), Some(result)) = (elements, results.get_mut(output)) {
            *result = std::mem::take(result).with_elements(elements);
        }
    }
}

fn contents(
    place: &Place<'_>,
    traits: &'static Traits,
    facts: &Facts,
    (output, result): (usize, &Fact),
) -> Option<Vec<Scalar>> {
    let inputs = place.inputs;
    if traits.moves == Some(Movement::Layout) {
        return inputs.first()?.as_ref()?.elements();
    }
    result.static_len().filter(|&len| len <= MAX_ELEMENTS)?;
    let is_moved = |fact: &Fact| fact.content.is_some() && fact.dtype() == result.dtype();
    if inputs.iter().flatten().all(|fact| fact.data().is_some()) || !inputs.iter().flatten().any(is_moved) {
        return None;
    }
    let source = |slot: usize| elements_of(inputs.get(slot)?.as_ref()?);
    // A Concat of vectors needs no map, and has no limit of operands.
    if traits.moves == Some(Movement::Join) && result.rank() == Some(1) {
        return Some((0..inputs.len()).map(source).collect::<Option<Vec<_>>>()?.concat());
    }
    let view = NodeFacts::at(place, facts);
    let moved = traits.index_map?(&view, output).ok()?;
    let sources = moved.slots.iter().map(|&slot| source(slot)).collect::<Option<Vec<_>>>()?;
    let element = |element: Element| match element {
        Element::Source { source, position } => sources.get(source)?.get(usize::try_from(position).ok()?).cloned(),
        Element::Fill(fill) => Fact::constant(fill.to_element(result.dtype()?)?).elements()?.pop(),
    };
    let position = |source: usize, position: i64| {
        sources.get(source)?.get(usize::try_from(position).ok()?).and_then(Scalar::as_const_int)
    };
    let sizes = |_| None;
    if let Some(elements) = moved.map.evaluate(&Binding { sizes: &sizes, positions: &position }) {
        return elements.into_iter().map(element).collect();
    }
    // An element at an unknown position is known if all possible positions have equal elements.
    let mut tried = 0usize;
    let any_of = |at: usize| {
        let mut found: Option<Scalar> = None;
        for guess in 0.. {
            tried = tried.saturating_add(1);
            let unknown = Cell::new(None);
            let positions = |source: usize, at: i64| {
                let own = position(source, at);
                let is_guessed =
                    own.is_none() && unknown.replace(Some((source, at))).is_none_or(|first| first == (source, at));
                own.or(is_guessed.then_some(guess))
            };
            let binding = Binding { sizes: &sizes, positions: &positions };
            let selected = moved.map.evaluate_at(&binding, i64::try_from(at).ok()?);
            match selected.and_then(element).filter(|_| tried < MOST_TRIED) {
                Some(selected) if unknown.get().is_none() => return Some(selected),
                Some(selected) if *found.get_or_insert_with(|| selected.clone()) == selected => {}
                Some(_) => return None,
                // The guess is after the last position.
                None if tried < MOST_TRIED => return found,
                None => return None,
            }
        }
        None
    };
    Some((0..result.static_len()?).map(any_of).map(|element| element.unwrap_or(Scalar::Unknown)).collect())
}
