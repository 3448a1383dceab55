//! Control flow: If, Loop, Scan.
//!
//! | operator | computes | versions |
//! | --- | --- | --- |
//! | If | the branch the condition chooses | 1 wants equal shapes from both branches, 11 equal element types only; later ones add types |
//! | Loop | a body until trip count or condition end it | 1, 11: tensors only; 13 adds sequences, 16 optionals; later ones add element types |
//! | Scan | a body over slices of tensors | 8: a batch on axis 0, sequences on axis 1, optional lengths; 9: any axis, no batch; 11: negative axes; later ones add element types |
//!
//! Inference of a body runs until nothing changes any more ([`iterate`]), so that what is recorded of the values inside
//! holds for every iteration. What leaves the body speaks only of symbols known outside: a symbol made inside may stand
//! for another number in each iteration. A loop whose few iterations are decided one after the other is followed through
//! them ([`follow`]), which tells exactly what is left after the last.
//!
//! What a condition says of sizes is used in the branch that it chooses, and tells how often a loop runs that counts ([`premise`]).
//!
//! Not evaluated: a loop whose condition operand is left out while its body's condition turns false (the standard ignores
//! it, runtimes stop), Scan-8 with sequences shorter than the longest (the rest of the outputs is undefined), an unknown
//! shape of a scan output when there is no iteration, and loops that run for too long.

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
