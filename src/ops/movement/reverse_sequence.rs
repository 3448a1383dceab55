//! ReverseSequence: the first `sequence_lens[b]` steps of each batch entry in reverse order, the others unchanged.
//!
//! | version | difference |
//! | --- | --- |
//! | 10 | |
//! | 28 | bfloat16 |
//!
//! `time_axis` and `batch_axis` are 0 and 1, in either order (by default time is 0).
//!
//! Refused: a rank below 2, other axes, lengths outside `0 ..= steps`, another number of lengths than batch entries.

use super::cells::moved;
use super::gather::gather_runs;
use super::maps::{MapResult, constant_ints};
use super::{claim, count};
use crate::dim::Dim;
use crate::index_map::{IndexMap, Undecided};
use crate::ir::{Data, Fact};
use crate::ops::traits::{Failure, Moved, Movement, NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::Tensor;

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("ReverseSequence", &[10, 28], infer, eval)
    .with(Traits { fails: Failure::Undeclared, ..Traits::movement(Movement::Selection) }.index_map(map).some_types())];

/// Returns `true` if time is axis 0 and the batch axis 1, and `false` for the opposite.
fn time_first(site: &Site<'_>) -> Result<bool, Refusal> {
    match (site.attr_int("time_axis")?.unwrap_or(0), site.attr_int("batch_axis")?.unwrap_or(1)) {
        (0, 1) => Ok(true),
        (1, 0) => Ok(false),
        (time, batch) => Err(Refusal::invalid(format!(
            "'time_axis' is {time} and 'batch_axis' is {batch}, but must be 0 and 1, or 1 and 0"
        ))),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    time_first(cx)?;
    if let Some(rank) = data.rank().filter(|&rank| rank < 2) {
        return Err(Refusal::invalid(format!("the rank of the input is {rank}, which is less than 2")));
    }
    Ok(vec![Fact::tensor(data.dtype(), data.shape().map(<[Dim]>::to_vec))])
}

/// The lengths are constants from 0 on.
fn map(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (batch, time) = if time_first(&view.known_site()?)? { (1, 0) } else { (0, 1) };
    let lens = constant_ints(view, 1)?;
    if lens.iter().any(|&len| len < 0) {
        return Err(Undecided::OutOfRange);
    }
    Ok(Moved::of_first(IndexMap::reverse_sequence(view.scope(), view.dims(0)?, batch, time, &lens)?))
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let time_first = time_first(cx)?;
    claim(cx, data.dtype(), data.shape())?;
    let lengths = cx.ints(1)?;
    let result = moved(&[data], &|operands| match operands {
        [data] => reversed(data, &lengths, time_first),
        _ => Err(Decline::invalid("the data operand is not a single tensor")),
    })?;
    Ok(vec![Data::Tensor(result)])
}

fn reversed(data: &Tensor, lengths: &[i64], time_first: bool) -> Result<Tensor, Decline> {
    let shape = data.shape();
    let (&[first, second], rest) =
        shape.split_first_chunk::<2>().ok_or_else(|| Decline::invalid("the rank of the input is less than 2"))?;
    let (steps, batch) = if time_first { (first, second) } else { (second, first) };
    if lengths.len() != batch {
        return Err(Decline::invalid(format!(
            "'sequence_lens' has {} elements, but the batch size is {batch}",
            lengths.len()
        )));
    }
    let fits = |&length: &i64| usize::try_from(length).ok().filter(|&length| length <= steps);
    let lengths = lengths.iter().map(fits).collect::<Option<Vec<usize>>>();
    let lengths = lengths
        .ok_or_else(|| Decline::invalid(format!("an element of 'sequence_lens' is not between 0 and {steps}")))?;
    if data.is_empty() {
        return Ok(data.clone());
    }
    let mut rows = Vec::with_capacity(first.saturating_mul(second));
    for row in 0..first {
        for column in 0..second {
            let (step, entry) = if time_first { (row, column) } else { (column, row) };
            let length = lengths.get(entry).copied().unwrap_or(0);
            let source = if step < length { length - 1 - step } else { step };
            rows.push(if time_first { source * second + column } else { row * second + source });
        }
    }
    gather_runs(data, count(rest)?, &rows, shape)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

    #[test]
    fn sequences_turn_around() {
        let data = iota(&[3, 2]);
        let time = Case::new("ReverseSequence", 10).eval([data.clone(), ints(&[2, 3])]);
        assert_eq!(values::<f32>(&time), [2.0, 5.0, 0.0, 3.0, 4.0, 1.0]);
        let batch = || Case::new("ReverseSequence", 10).with("time_axis", 1).with("batch_axis", 0);
        assert_eq!(values::<f32>(&batch().eval([data.clone(), ints(&[2, 1, 0])])), [1.0, 0.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(batch().eval([iota(&[2, 2, 2]), ints(&[2, 1])]).shape(), [2, 2, 2]);
        for wrong in [ints(&[4, 1]), ints(&[-1, 1]), ints(&[1])] {
            Case::new("ReverseSequence", 10).fails([data.clone(), wrong]);
        }
        Case::new("ReverseSequence", 10).with("batch_axis", 0).fails([data, ints(&[1, 1, 1])]);
        Case::new("ReverseSequence", 10).fails([iota(&[3]), ints(&[])]);
    }
}
