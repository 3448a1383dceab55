//! Trilu: the upper or lower triangle of matrices, zeros elsewhere.
//!
//! One version, 14. With `upper` (the default) an element is kept if column − row ≥ `k`, otherwise if column − row ≤ `k`.
//!
//! Refused: a rank below 2, a `k` that is not one element.
//!
//! An index map has pieces along one digit, and the border of a triangle depends on two. The map of a Trilu is of matrices of constant size,
//! flattened: each row has a piece of elements and one of zeros, so the limit of pieces is one of about 32 rows.

use super::cells::{Builder, moved};
use super::maps::{MapResult, constant_ints, numbers};
use super::{around, claim, count};
use crate::dim::Dim;
use crate::index_map::{Fill, IndexMap, MOST_ENTRIES, MOST_PIECES, Origin, Run, Undecided};
use crate::ir::{Data, Fact};
use crate::ops::traits::{Moved, NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::Tensor;

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("Trilu", &[14], infer, eval).with(Traits::NONE.index_map(map).inferred_by_shapes())];

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    cx.attr_flag("upper", true)?;
    if let Some(rank) = data.rank().filter(|&rank| rank < 2) {
        return Err(Refusal::invalid(format!("the rank of the input is {rank}, which is less than 2")));
    }
    if cx.input(1).and_then(Fact::static_len).is_some_and(|len| len != 1) {
        return Err(Refusal::invalid("the operand 'k' is not a single element"));
    }
    Ok(vec![Fact::tensor(data.dtype(), data.shape().map(<[Dim]>::to_vec))])
}

fn map(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (scope, site, data) = (view.scope(), view.known_site()?, view.dims(0)?);
    let upper = site.attr_flag("upper", true)?;
    let diagonal = if site.has_input(1) { constant_ints(view, 1)? } else { vec![0] };
    let (before, matrix) = data.split_at_checked(data.len().wrapping_sub(2)).ok_or(Undecided::Rank)?;
    let (&[diagonal], &[rows, columns]) = (diagonal.as_slice(), numbers(matrix)?.as_slice()) else {
        return Err(Undecided::Operands);
    };
    let zero = Fill::of_element(&zero_row(view.dtype(0).ok_or(Undecided::Operands)?, &[1])?);
    let zero = zero.ok_or(Undecided::Operands)?;
    if rows > MOST_ENTRIES {
        return Err(Undecided::TableLimit);
    }
    let mut runs: Vec<Run> = Vec::new();
    let mut start = 0i64;
    for row in 0..rows {
        let edge = edge(row, diagonal, upper, columns);
        for (len, is_kept) in [(edge, !upper), (columns.saturating_sub(edge), upper)] {
            match runs.last_mut() {
                Some(Run { len: own, from }) if matches!(from, Origin::Source { .. }) == is_kept => {
                    *own = own.saturating_add(len);
                }
                _ if len == 0 => {}
                _ => {
                    let from = if is_kept { Origin::Source { source: 0, start } } else { Origin::Fill(zero) };
                    runs.push(Run { len, from });
                }
            }
            start = start.saturating_add(len);
        }
        if runs.len() > MOST_PIECES {
            return Err(Undecided::PieceLimit);
        }
    }
    let around = (&scope.product(before), &Dim::constant(1));
    Ok(Moved::of_first(IndexMap::runs(scope, &[data.into()], data, around, &runs)?))
}

/// Returns the first column of the upper triangle in a row, or the first one after the lower triangle.
fn edge(row: i64, diagonal: i64, upper: bool, columns: i64) -> i64 {
    let on_diagonal = row.saturating_add(diagonal);
    let edge = if upper { on_diagonal } else { on_diagonal.saturating_add(1) };
    #[allow(clippy::disallowed_methods, reason = "where a diagonal leaves a row")]
    edge.clamp(0, columns)
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let upper = cx.attr_flag("upper", true)?;
    let diagonal = if cx.has_input(1) { cx.ints(1)? } else { vec![0] };
    let &[diagonal] = diagonal.as_slice() else {
        return Err(Decline::invalid("the operand 'k' is not a single element"));
    };
    if data.rank() < 2 {
        return Err(Decline::invalid(format!("the rank of the input is {}, which is less than 2", data.rank())));
    }
    claim(cx, data.dtype(), data.shape())?;
    if data.is_empty() {
        return Ok(vec![Data::Tensor(data.clone())]);
    }
    let zeros = zero_row(data.dtype(), data.shape())?;
    let result = moved(&[data, &zeros], &|operands| match operands {
        [data, zeros] => triangle(data, zeros, diagonal, upper),
        _ => Err(Decline::invalid("the data and the zero point must have the same data type")),
    })?;
    Ok(vec![Data::Tensor(result)])
}

/// Returns as many zeros as a row has elements; none if there are no rows.
fn zero_row(dtype: crate::tensor::DType, shape: &[usize]) -> Result<Tensor, Decline> {
    let columns = if shape.contains(&0) { 0 } else { shape.last().copied().unwrap_or(0) };
    Ok(Tensor::zeros(dtype, &[columns])?)
}

fn triangle(data: &Tensor, zeros: &Tensor, diagonal: i64, upper: bool) -> Result<Tensor, Decline> {
    let shape = data.shape();
    let fails = || Decline::invalid("the rank of the input is less than 2");
    let (matrices, rows, columns) = around(shape, shape.len().checked_sub(2).ok_or_else(fails)?)?;
    let mut builder = Builder::new(data, count(shape)?)?;
    if data.is_empty() {
        return builder.finish(shape);
    }
    let wide = i64::try_from(columns).unwrap_or(i64::MAX);
    for row in 0..matrices.saturating_mul(rows) {
        let start = row.saturating_mul(columns);
        let own = i64::try_from(row % rows).unwrap_or(i64::MAX);
        let edge = usize::try_from(edge(own, diagonal, upper, wide)).unwrap_or(0);
        if upper {
            builder.append(zeros, 0, edge)?;
            builder.append(data, start + edge, columns - edge)?;
        } else {
            builder.append(data, start, edge)?;
            builder.append(zeros, 0, columns - edge)?;
        }
    }
    builder.finish(shape)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;
    use crate::tensor::DType;

    #[test]
    fn triangles() {
        let data = tensor(&[2, 3], &[1i64, 2, 3, 4, 5, 6]);
        let run = |upper: i64, k: i64| {
            values::<i64>(&Case::new("Trilu", 14).with("upper", upper).eval([data.clone(), Tensor::scalar(k)]))
        };
        assert_eq!(run(1, 0), [1, 2, 3, 0, 5, 6]);
        assert_eq!(run(1, 2), [0, 0, 3, 0, 0, 0]);
        assert_eq!(run(1, -1), [1, 2, 3, 4, 5, 6]);
        assert_eq!(run(0, 0), [1, 0, 0, 4, 5, 0]);
        assert_eq!(run(0, 1), [1, 2, 0, 4, 5, 6]);
        assert_eq!(run(0, -1), [0, 0, 0, 4, 0, 0]);
        for (upper, kept) in [(1, 6), (0, 0)] {
            assert_eq!(run(upper, i64::MIN).iter().filter(|&&value| value != 0).count(), kept);
            assert_eq!(run(upper, i64::MAX).iter().filter(|&&value| value != 0).count(), 6 - kept);
        }
        let batch = Case::new("Trilu", 14).eval([iota(&[2, 2, 2])]);
        assert_eq!(values::<f32>(&batch), [0.0, 1.0, 0.0, 3.0, 4.0, 5.0, 0.0, 7.0]);
        assert_eq!(Case::new("Trilu", 14).eval([iota(&[0, 3, 3])]).shape(), [0, 3, 3]);
        Case::new("Trilu", 14).fails([iota(&[3])]);
        let truth = Tensor::from_bools(&[2, 2], &[true; 4]).unwrap();
        assert_eq!(Case::new("Trilu", 14).eval([truth]).bools().unwrap(), [true, true, false, true]);
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let square = Fact::tensor(Some(DType::Int64), Some(vec![Dim::constant(2), Dim::constant(2)]));
        let square = square.with_elements(vector(&scope, &["A", "B", "C", "D"]).elements().unwrap());
        let fact = Case::new("Trilu", 14).infer(&scope, vec![Some(square)]).remove(0);
        assert_eq!(elements(&scope, &fact), ["A", "B", "0", "D"]);
    }
}
