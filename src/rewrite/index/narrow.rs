//! How a node is computed on operands that are spread from smaller ones; its operator says what comes of them
//! ([`Repetition`]).

use super::counting::counting;
use super::uniform;
use crate::dim::Dim;
use crate::ir::{NodeId, ValueId};
use crate::ops::traits::{Counting, Movement, NodeFacts, Repetition};
use crate::rewrite::place::Place;

/// Shapes of what values are spread from.
pub(super) trait Shapes {
    /// The dims of the smaller form of a value, if it has one. They line up with those of the value at the end.
    fn narrow(&self, value: ValueId) -> Option<&[Dim]>;
}

/// How a node is computed on smaller operands.
pub(super) enum Form {
    /// By the same operator with the same attributes.
    Same { shape: Vec<Dim>, whole: bool },
    /// By another layout of its first operand.
    Layout { shape: Vec<Dim>, whole: bool },
}

impl Form {
    /// The shape of the result.
    pub fn shape(&self) -> &[Dim] {
        match self {
            Form::Same { shape, .. } | Form::Layout { shape, .. } => shape,
        }
    }

    /// Whether that is the shape the result has now.
    pub fn is_whole(&self) -> bool {
        matches!(self, Form::Same { whole: true, .. } | Form::Layout { whole: true, .. })
    }
}

/// The node on the smaller forms of its operands, unless it tells apart places where they only repeat. If `exact`, only if the
/// result stays equal bit for bit.
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

/// A value that holds one integer everywhere, as positions.
fn splat(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    let [number] = uniform(place, value)?.to_i64s()?[..] else { return None };
    Some(Counting::splat(place.shape(value)?.to_vec(), Dim::constant(number)))
}
