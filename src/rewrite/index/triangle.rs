//! Triangles that are masked once more.
//!
//! Law: `Trilu(x, k) · m = Trilu(x, k)` for `m` that is 1 at each place the triangle keeps, and 0 or 1 elsewhere: there it is 0 already.
//! Causal masks are spelled so: what lies above a diagonal, times whether the column counts more than the row.

use super::counting::{Counting, counting};
use crate::dim::Dim;
use crate::ir::Edit;
use crate::rewrite::place::Place;

pub(super) fn masked_again(place: &Place<'_>) -> Option<Edit> {
    let (a, b) = (place.input(0)?, place.input(1)?);
    let (triangle, mask) = if place.producer(a, "Trilu").is_some() { (a, b) } else { (b, a) };
    let (_, node) = place.producer(triangle, "Trilu")?;
    let shape = place.shape(triangle)?;
    if !place.same_shape(triangle, place.output(0)?) {
        return None;
    }
    let k = match node.input(1) {
        Some(k) => *place.const_ints(k)?.first()?,
        None => 0,
    };
    // Of the numbers j − i of a column j and a row i the triangle keeps those from k on, or up to k.
    let keeps_upper = node.int("upper", 1)? != 0;
    let (_, cast) = place.producer(mask, "Cast")?;
    let (_, comparison) = place.producer_of(cast.input(0)?, &["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])?;
    let side = |slot: usize| counting(place, comparison.input(slot)?)?.spread(place.scope(), shape);
    let is_less = comparison.op_type.starts_with("Less");
    let (larger, smaller) = if is_less { (side(1)?, side(0)?) } else { (side(0)?, side(1)?) };
    let slope = slope(place, &larger, &smaller)?;
    // The difference is least at the diagonal itself if it grows away from it.
    if slope.signum() != (if keeps_upper { 1 } else { -1 }) {
        return None;
    }
    let scope = place.scope();
    let least = scope.add(&scope.sub(&larger.offset, &smaller.offset), &Dim::constant(k.checked_mul(slope)?));
    let needed = Dim::constant(if comparison.op_type.ends_with("OrEqual") { 0 } else { 1 });
    scope.ge(&least, &needed).is_yes().then(|| place.forward(triangle).ok())?
}

/// How much the difference of two tensors grows with each column, if it grows as much with each row the other way and is the same along all
/// other axes.
fn slope(place: &Place<'_>, larger: &Counting, smaller: &Counting) -> Option<i64> {
    let steps = larger.steps.iter().zip(&smaller.steps).map(|(a, b)| place.scope().sub(a, b).as_const());
    let steps = steps.collect::<Option<Vec<i64>>>()?;
    let [front @ .., row, column] = steps.as_slice() else { return None };
    (front.iter().all(|step| *step == 0) && row.checked_neg() == Some(*column)).then_some(*column)
}
