//! Recurrent networks: RNN, LSTM and GRU. Their values are in [`cells`].
//!
//! | operand | `layout` 0 | `layout` 1 |
//! | --- | --- | --- |
//! | X | `[seq, batch, input]` | `[batch, seq, input]` |
//! | Y | `[seq, directions, batch, hidden]` | `[batch, seq, directions, hidden]` |
//! | Y_h, Y_c | `[directions, batch, hidden]` | `[batch, directions, hidden]` |
//!
//! | version | difference |
//! | --- | --- |
//! | 1 | `output_sequence` says whether Y is wanted; its shape is the same |
//! | 14 | `layout` |
//! | 7, 22 | other defaults of single attributes, more element types: nothing that shapes depend on |

mod activation;
mod cells;

use super::{InferCx, InferResult, Operator, Refusal};
use crate::dim::Dim;
use crate::ir::Fact;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("RNN", &[1, 7, 14, 22], infer, cells::eval_rnn),
    Operator::new("GRU", &[1, 3, 7, 14, 22], infer, cells::eval_gru),
    Operator::new("LSTM", &[1, 7, 14, 22], infer, cells::eval_lstm),
];

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    // The recurrence weights are `[directions, gates · hidden, hidden]`.
    states(cx, 2)
}

/// The states, where the hidden size is that axis of the recurrence weights, operand 2.
pub(super) fn states(cx: &InferCx<'_>, hidden_axis: usize) -> InferResult {
    let dtype = cx.dtype(0);
    let directions = match cx.attr_str("direction")?.unwrap_or("forward") {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => return Err(Refusal::invalid(format!("direction '{other}' is none"))),
    };
    let batch_first = cx.version >= 14 && cx.attr_flag("layout", false)?;
    let (seq, batch) = match cx.shape(0) {
        None => (cx.fresh_dim(), cx.fresh_dim()),
        Some([seq, batch, _]) if !batch_first => (seq.clone(), batch.clone()),
        Some([batch, seq, _]) => (seq.clone(), batch.clone()),
        Some(shape) => return Err(Refusal::invalid(format!("X has rank {}, not 3", shape.len()))),
    };
    let from_weights = cx.shape(2).and_then(|shape| shape.get(hidden_axis)).cloned();
    let hidden = match cx.attr_int("hidden_size")? {
        Some(size) if size > 0 => Dim::constant(size),
        Some(size) => return Err(Refusal::invalid(format!("hidden_size is {size}"))),
        None => from_weights.unwrap_or_else(|| cx.fresh_dim()),
    };
    let directions = Dim::constant(directions);
    let (all, last) = if batch_first {
        (vec![batch.clone(), seq, directions.clone(), hidden.clone()], vec![batch, directions, hidden])
    } else {
        (vec![seq, directions.clone(), batch.clone(), hidden.clone()], vec![directions, batch, hidden])
    };
    let states = cx.output_count().saturating_sub(1);
    let mut facts = vec![Fact::tensor(dtype, Some(all))];
    facts.extend((0..states).map(|_| Fact::tensor(dtype, Some(last.clone()))));
    Ok(facts)
}
