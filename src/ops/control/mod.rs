//! Control flow: If, Loop, Scan.
//!
//! | operator | computes | versions |
//! | --- | --- | --- |
//! | If | the branch selected by the condition | 1 requires equal shapes of both branches, 11 only equal element types; later ones add types |
//! | Loop | a body until trip count or condition end the loop | 1, 11: tensors only; 13 adds sequences, 16 optionals; later ones add element types |
//! | Scan | a body over slices of tensors | 8: a batch on axis 0, sequences on axis 1, optional lengths; 9: any axis, no batch; 11: negative axes; later ones add element types |
//!
//! A body is inferred until a fixed point ([`iterate`]), so that the facts of its values hold for every iteration.
//! Facts outside contain no symbols of the body: such a symbol may have another value in each iteration. A loop with
//! few decided iterations is followed through all of them ([`follow`]), which gives exact facts after the last one.
//!
//! Conditions on dims hold in the selected branch, and bound the number of iterations of a counting loop
//! ([`premise`]).
//!
//! Not evaluated:
//! * a loop without condition operand whose body's condition becomes false (the standard ignores it, runtimes stop);
//! * Scan-8 with sequences shorter than the longest (the rest of the outputs is undefined);
//! * scan outputs of unknown shape without an iteration;
//! * loops that exceed the budget.

mod branch;
mod follow;
mod iterate;
mod premise;
mod repeat;
mod scan;
#[cfg(test)]
mod tests;

use super::Operator;
use super::traits::Traits;
use crate::dim::Dim;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("If", &[1, 11, 13, 16, 19, 21, 23, 24, 25], branch::infer, branch::eval)
        .with(Traits::NONE.iterations(|_| Some(Dim::constant(1)))),
    Operator::new("Loop", &[1, 11, 13, 16, 19, 21, 23, 24, 25], repeat::infer, repeat::eval)
        .with(Traits::NONE.iterations(repeat::iterations)),
    Operator::new("Scan", &[8, 9, 11, 16, 19, 21, 23, 24, 25], scan::infer, scan::eval)
        .with(Traits::NONE.iterations(scan::iterations)),
];
