//! Computes a node on operands before they are broadcast; the trait [`Repetition`] of its operator describes the result.

use super::counting::counting;
use super::uniform;
use crate::dim::Dim;
use crate::ir::{NodeId, ValueId};
use crate::ops::traits::{Counting, Movement, NodeFacts, Repetition};
use crate::rewrite::place::Place;

/// The shapes of values before they are broadcast.
pub(super) trait Shapes {
    /// Returns the dims of the smaller form of a value, if it has one. They align with the value's dims at the end.
    fn narrow(&self, value: ValueId) -> Option<&[Dim]>;
}

/// The form of a node on smaller operands.
pub(super) enum Form {
    /// The same operator with the same attributes.
    Same { shape: Vec<Dim>, whole: bool },
    /// Another layout of its first operand.
    Layout { shape: Vec<Dim>, whole: bool },
}

impl Form {
    /// Returns the shape of the result.
    pub fn shape(&self) -> &[Dim] {
        match self {
            Form::Same { shape, .. } | Form::Layout { shape, .. } => shape,
        }
    }

    /// Returns `true` if the result keeps its present shape.
    pub fn is_whole(&self) -> bool {
        matches!(self, Form::Same { whole: true, .. } | Form::Layout { whole: true, .. })
    }
}

/// Returns the node on the smaller forms of its operands, unless it distinguishes positions where they only repeat. With `exact`, the
/// result must stay equal bit for bit.
pub(super) fn on_narrow(place: &Place<'_>, id: NodeId, shapes: &dyn Shapes, exact: bool) -> Option<Form> {
    let positions = |value| counting(place, value).or_else(|| splat(place, value));
    let view = NodeFacts { positions: &positions, ..place.view(id)? };
    let [Some(_)] = *view.node.outputs() else { return None };
    let goal = view.result_shape()?;
    let shape = Repetition { view, narrow: &|value| shapes.narrow(value), goal }.shape(exact)?;
    let whole = shape.len() == goal.len() && shape.iter().zip(goal).all(|(a, b)| view.equal(a, b));
    Some(match view.traits().moves {
        Some(Movement::Layout) => Form::Layout { shape, whole },
        _ => Form::Same { shape, whole },
    })
}

/// Returns a uniform integer value as a counting tensor.
fn splat(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    let [number] = uniform(place, value)?.to_i64s()?[..] else { return None };
    Some(Counting::splat(place.shape(value)?.to_vec(), Dim::constant(number)))
}
