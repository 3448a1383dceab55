//! Replaces the repetition of positions along an axis by a Gather, without the broadcast axis.
//!
//! Law: if a tensor `[p, n, q]` is expanded to `[p, n, g, q]` and reshaped to `[p, n·g, q]`, position `j` of the long axis is position
//! `⌊j/g⌋`; if it is expanded to `[p, g, n, q]`, it is position `j mod n`. Decoders repeat the heads of keys and values in this way, so
//! that several heads of queries share them.

use super::LAST_RULES as RULES;
use super::spread::spread_from;
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};
use crate::ops::traits::Movement;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::tensor::Tensor;

/// The most positions of the result along the axis.
const MOST_PLACES: i64 = 256;

/// The most values that are visited in search of a Transpose that runtimes would move.
const REACH: usize = 16;

pub(super) fn lookup(place: &Place<'_>) -> Result<Edit, Miss> {
    let (wide, output) = (place.operand(0)?, place.result()?);
    let (id, spread) = place.producer_with(wide, |traits| traits.moves == Some(Movement::Spread)).ok_or(Miss::ROOT)?;
    let narrow = spread_from(place, spread).ok_or(Miss::ROOT)?;
    ensure(place.has_one_reader(wide), miss!("one-reader").of(wide))?;
    ensure(place.dtype(output).ok_or(miss!("of-floats").of(output))?.is_float(), miss!("of-floats").of(output))?;
    let (before, times) = repeated(place, narrow, wide).ok_or(miss!("one-axis"))?;
    let laid_out = place.layout(narrow).and_then(|(_, layout)| layout.input(0));
    let (data, axis, indices) = laid_out
        .into_iter()
        .chain([narrow])
        .find_map(|data| places(place, data, &before, times))
        .ok_or(miss!("known-places"))?;
    let is_cached = place.producer(data, "Concat").is_some();
    ensure(!is_cached, miss!("no-cache"))?;
    ensure(!is_turned_again(place) || !is_turned(place, data), miss!("not-between-turns"))?;
    let mut edit = place.begin()?.removing(id);
    let gather = place.build(&mut edit, output).gather_at(data, Tensor::vector(indices), axis);
    place.instead(edit, gather)
}

/// Returns the number of elements before the one broadcast axis, and the number of repetitions.
fn repeated(place: &Place<'_>, narrow: ValueId, wide: ValueId) -> Option<(Dim, i64)> {
    let (from, to) = (place.shape(narrow)?, place.shape(wide)?);
    let added = to.len().checked_sub(from.len())?;
    let mut found = None;
    for (at, dim) in to.iter().enumerate() {
        let own = at.checked_sub(added).and_then(|at| from.get(at));
        if dim.is_const(1) || own.is_some_and(|own| place.scope().eq(own, dim).is_yes()) {
            continue;
        }
        if found.is_some() || own.is_some_and(|own| !own.is_const(1)) {
            return None;
        }
        found = Some((at, dim.as_const().filter(|&times| times > 1)?));
    }
    let (at, times) = found?;
    Some((place.scope().product(to.get(..at)?), times))
}

/// Returns the axis of the data that is longer in the result, and the position that each of its positions reads.
fn places(place: &Place<'_>, data: ValueId, before: &Dim, times: i64) -> Option<(ValueId, usize, Vec<i32>)> {
    let (from, to) = (place.shape(data)?, place.shape(place.output(0)?)?);
    let scope = place.scope();
    let longer = |(_, (own, dim)): &(usize, (&Dim, &Dim))| !scope.eq(own, dim).is_yes();
    let mut axes = from.iter().zip(to).enumerate().filter(longer);
    let (axis, (own, dim)) = axes.next().filter(|_| from.len() == to.len())?;
    let (count, total) = (own.as_const().filter(|&count| count > 1)?, dim.as_const()?);
    if axes.next().is_some() || total > MOST_PLACES || count.checked_mul(times) != Some(total) {
        return None;
    }
    let (front, rest) = from.split_at_checked(axis)?;
    let front = scope.product(front);
    let each_in_a_row = scope.eq(&scope.product([&front, rest.first()?]), before).is_yes();
    if !each_in_a_row && !scope.eq(&front, before).is_yes() {
        return None;
    }
    let at = |place: i64| if each_in_a_row { place.checked_div(times) } else { place.checked_rem(count) };
    let indices = (0..total).map(|place| i32::try_from(at(place)?).ok()).collect::<Option<_>>()?;
    Some((data, axis, indices))
}

/// Returns `true` if a Transpose reads the result.
fn is_turned_again(place: &Place<'_>) -> bool {
    let readers = place.output(0).map(|output| place.model.users(output)).unwrap_or_default();
    readers.iter().any(|&(id, _)| place.model.node(id).is_some_and(|node| node.is("Transpose")))
}

/// Returns `true` if a value is an element-wise function of the result of a Transpose. ONNX Runtime moves that Transpose through all such
/// functions, and through a Gather towards another Transpose, at the price of one for each other operand. A broadcast axis stops it.
fn is_turned(place: &Place<'_>, value: ValueId) -> bool {
    let mut values = vec![value];
    for at in 0..REACH {
        let Some(&value) = values.get(at) else { return false };
        if place.producer(value, "Transpose").is_some() {
            return true;
        }
        let computed = place.producer_with(value, |traits| traits.pointwise.is_some());
        values.extend(computed.into_iter().flat_map(|(_, node)| node.inputs().iter().flatten().copied()));
    }
    false
}
