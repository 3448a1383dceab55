//! Recurrent networks: RNN, LSTM and GRU. [`cells`] evaluates them.
//!
//! | operand | `layout` 0 | `layout` 1 |
//! | --- | --- | --- |
//! | X | `[seq, batch, input]` | `[batch, seq, input]` |
//! | Y | `[seq, directions, batch, hidden]` | `[batch, seq, directions, hidden]` |
//! | Y_h, Y_c | `[directions, batch, hidden]` | `[batch, directions, hidden]` |
//!
//! | version | difference |
//! | --- | --- |
//! | 1 | `output_sequence` enables Y; its shape is the same |
//! | 14 | `layout` |
//! | 7, 22 | other defaults of single attributes, more element types; shapes are unaffected |

mod activation;
mod cells;

use super::traits::{Traits, recurrence};
use super::{InferCx, InferResult, Operator, Refusal};
use crate::dim::Dim;
use crate::ir::Fact;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("RNN", &[1, 7, 14, 22], infer, cells::eval_rnn).with(Traits::NONE.macs(recurrence)),
    Operator::new("GRU", &[1, 3, 7, 14, 22], infer, cells::eval_gru).with(Traits::NONE.macs(recurrence)),
    Operator::new("LSTM", &[1, 7, 14, 22], infer, cells::eval_lstm).with(Traits::NONE.macs(recurrence)),
];

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    states(cx, false)
}

/// Infers the states. The recurrence weights, operand 2, are `[directions, gates · hidden, hidden]`. With `turned`, the last two
/// axes of these and of the input weights are swapped.
pub(super) fn states(cx: &InferCx<'_>, turned: bool) -> InferResult {
    let dtype = cx.dtype(0);
    let directions = match cx.attr_str("direction")?.unwrap_or("forward") {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => return Err(Refusal::invalid(format!("attribute 'direction' is '{other}', which is not defined"))),
    };
    let batch_first = cx.version >= 14 && cx.attr_flag("layout", false)?;
    let (seq, batch) = match cx.shape(0) {
        None => (cx.fresh_dim(), cx.fresh_dim()),
        Some([seq, batch, _]) if !batch_first => (seq.clone(), batch.clone()),
        Some([batch, seq, _]) => (seq.clone(), batch.clone()),
        Some(shape) => return Err(Refusal::invalid(format!("'X' has rank {} instead of 3", shape.len()))),
    };
    let from_weights = cx.shape(2).and_then(|shape| shape.get(if turned { 1 } else { 2 })).cloned();
    let hidden = match cx.attr_int("hidden_size")? {
        Some(size) if size > 0 => Dim::constant(size),
        Some(size) => return Err(Refusal::invalid(format!("attribute 'hidden_size' is {size}, which is not valid"))),
        None => from_weights.unwrap_or_else(|| cx.fresh_dim()),
    };
    let directions = Dim::constant(directions);
    let features = cx.shape(0).and_then(<[Dim]>::last).cloned().unwrap_or_else(|| cx.fresh_dim());
    let gates = match cx.node.op_type.as_str() {
        "LSTM" | "DynamicQuantizeLSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    let rows = cx.scope().mul(&hidden, &Dim::constant(gates));
    let matrix = |columns: Dim| if turned { [columns, rows.clone()] } else { [rows.clone(), columns] };
    has_dims(cx, 1, &matrix(features))?;
    has_dims(cx, 2, &matrix(hidden.clone()))?;
    has_dims(cx, 3, &[cx.scope().mul(&rows, &Dim::constant(2))])?;
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

/// Checks that an operand of known shape may have these dims for each direction. Ignores the number of directions: the standard's
/// inference accepts any.
fn has_dims(cx: &InferCx<'_>, operand: usize, dims: &[Dim]) -> Result<(), Refusal> {
    let (Some(shape), scope) = (cx.shape(operand), cx.scope()) else { return Ok(()) };
    let each = shape.get(1..).unwrap_or_default();
    if each.len() == dims.len() && !each.iter().zip(dims).any(|(is, should)| scope.eq(is, should).is_no()) {
        return Ok(());
    }
    let list = |dims: &[Dim]| dims.iter().map(|dim| scope.format(dim)).collect::<Vec<_>>().join(", ");
    Err(Refusal::invalid(format!(
        "operand {operand} has dims [{}] per direction instead of [{}]",
        list(each),
        list(dims)
    )))
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn weights_of_other_sizes_are_refused() {
        let node = |op_type: &str, w: &str, r: &str, b: &str| {
            let node = Single::new(op_type, 14).with("hidden_size", 2).input(DType::Float, "S N 3");
            node.input(DType::Float, w).input(DType::Float, r).input(DType::Float, b).infer().remove(0)
        };
        for (op_type, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
            let rows = 2 * gates;
            let infer = |w: &str, r: &str, b: usize| {
                node(op_type, &w.replace('R', &rows.to_string()), &r.replace('R', &rows.to_string()), &format!("1 {b}"))
            };
            assert_eq!(infer("1 R 3", "1 R 2", 2 * rows), "float[S, 1, N, 2]");
            assert_eq!(infer("1 R F", "D R 2", 2 * rows), "float[S, 1, N, 2]");
            assert_eq!(infer("2 R 3", "1 R 2", 2 * rows), "float[S, 1, N, 2]");
            for (w, r, b) in [
                ("1 R 4", "1 R 2", 2 * rows),
                ("1 9 3", "1 R 2", 2 * rows),
                ("R 3", "1 R 2", 2 * rows),
                ("1 R 3", "1 R 3", 2 * rows),
                ("1 R 3", "1 R 2", rows),
            ] {
                assert!(infer(w, r, b).starts_with("invalid"), "{op_type}: {w}, {r}, {b}");
            }
        }
    }
}
