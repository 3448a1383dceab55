//! Sequences that are turned around whole.
//!
//! Law: `ReverseSequence(x, v)`, where all of `v` is the length `n` of the time axis, looks up the places `n − 1, …, 0` along it. A Slice with
//! the step −1 would do so at any length, but not every consumer reads that (`introduced`).

use super::RULES;
use super::counting::counting;
use crate::ir::Edit;
use crate::rewrite::limits::LISTED;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::tensor::Tensor;

pub(super) fn reverse(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (data, output) = (node.input(0).ok_or(Miss::ROOT)?, node.output(0).ok_or(Miss::ROOT)?);
    let axis = node.int("time_axis", 0).filter(|axis| [0, 1].contains(axis)).ok_or(miss!("whole-length"))?;
    let dim = place
        .shape(data)
        .ok_or(miss!("whole-length").of(data))?
        .get(usize::try_from(axis).or(Err(Miss::COMPUTABLE))?)
        .ok_or(miss!("whole-length").of(data))?;
    let lengths = counting(place, node.input(1).ok_or(Miss::ROOT)?).ok_or(miss!("whole-length"))?;
    ensure(lengths.is_splat(), miss!("whole-length"))?;
    prove(place.scope().eq(&lengths.offset, dim), miss!("whole-length"))?;
    let length = dim.as_const().filter(|length| (1..=(LISTED as i64)).contains(length)).ok_or(miss!("known-length"))?;
    let places = Tensor::vector((0..length).rev().collect());
    let mut edit = place.begin()?;
    let gather = place.build(&mut edit, output).gather_at(data, places, axis);
    place.instead(edit, gather)
}
