//! Replaces a GatherND whose first indices count the positions of leading axes by one with batch axes.
//!
//! Law: `GatherND(x, [p, i[p]])` over all positions `p` of the first axis of `x` looks up `i[p]` in row `p`, as a GatherND with `batch_dims = 1` does. Exporters
//! write `x[arange(batch), i]` in this form.

use super::RULES;
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops::traits::Counting;
use crate::rewrite::build::Build;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;

pub(super) fn of_batch(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (data, indices, output) = (place.operand(0)?, place.operand(1)?, place.result()?);
    ensure(node.int("batch_dims", 0) == Some(0), miss!("counted"))?;
    let (dims, shape) = (place.dims(data)?, place.dims(indices)?);
    let (_, tuples) = shape.split_last().ok_or(Miss::ROOT)?;
    let (_, concat) = place.producer(indices, "Concat").ok_or(miss!("counted").of(indices))?;
    ensure(place.read(concat).axis(shape.len()) == Some(tuples.len()), miss!("counted").of(indices))?;
    let count_of = |value: ValueId| Counting::of(place.model, place.facts, place.opset.version(), value);
    let is_batch = |(axis, column): (usize, &Option<ValueId>)| {
        let count = count_of((*column)?)?;
        let (size, dim) = (tuples.get(axis)?, dims.get(axis)?);
        let own = if size.is_const(1) { &[][..] } else { &[axis][..] };
        let counts = count.moving().as_slice() == own
            && own.iter().all(|&axis| count.steps.get(axis).is_some_and(|step| step.is_const(1)));
        let is_whole = count.shape.last()?.is_const(1) && place.scope().eq(size, dim).is_yes();
        Some(counts && is_whole && count.offset.is_const(0))
    };
    let batch = concat.inputs().iter().enumerate().take_while(|&column| is_batch(column) == Some(true)).count();
    ensure(batch > 0, miss!("counted").of(indices))?;
    let others: Vec<ValueId> = concat.inputs().iter().skip(batch).copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    // The rule `movement` handles a lookup with counted positions only.
    ensure(others.iter().any(|&value| count_of(value).is_none()), miss!("others").of(indices))?;
    let is_single = tuples.iter().take(batch).all(|size| size.is_const(1));
    let mut edit = place.begin()?;
    if let ([index], true) = (others.as_slice(), is_single) {
        ensure(place.dims(*index)?.last().is_some_and(|size| size.is_const(1)), miss!("others").of(*index))?;
        let value = edit.new_value(output, "rows");
        edit.insert.push(Build::gather(data, *index, batch).output(value));
        let (front, back) = dims.split_at_checked(batch).ok_or(Miss::ROOT)?;
        let looked_up = [front, place.dims(*index)?, back.get(1..).unwrap_or_default()].concat();
        let to = place.dims(output)?;
        let reshape = place.build(&mut edit, output).reshape_to(place.scope(), value, &looked_up, to);
        return place.instead(edit, reshape.ok_or(Miss::EXPRESSIBLE)?);
    }
    ensure(place.opset.version() >= 12, miss!("batch-axes"))?;
    let index = match others.as_slice() {
        [index] => *index,
        others => {
            let value = edit.new_value(indices, "rest");
            edit.insert.push(Build::concat(others.iter().copied(), tuples.len()).output(value));
            value
        }
    };
    let batch = i64::try_from(batch).map_err(|_| Miss::COMPUTABLE)?;
    place.instead(edit, NewNode::new("GatherND", [Some(data), Some(index)]).with("batch_dims", batch))
}
