//! Tensors made from attributes.
//!
//! | operator | versions | difference |
//! | --- | --- | --- |
//! | Constant | 1, 9, 11, 12, 13, 19, 21, 23, 24, 25 | 11: `sparse_value`; 12: `value_int`, `value_floats`, …; the others add types |
//! | ConstantOfShape | 9, 20, 21, 23, 24, 25 | types |
//! | EyeLike | 9, 22 | types |
//!
//! Constant has exactly one of its attributes; `sparse_value` gives a dense tensor. ConstantOfShape fills a shape with the one element of
//! `value`, by default float 0. EyeLike has ones where column − row = `k`.
//!
//! Refused: no attribute or several, a `value` of ConstantOfShape with another number of elements than one, its shape of another type than
//! int64, negative sizes.

use super::cells::{elements_of, moved, overwrite};
use super::maps::MapResult;
use super::moves;
use super::{claim, count, of_rank, sizes};
use crate::dim::Dim;
use crate::index_map::{Fill, IndexMap, MOST_PIECES, Origin, Run, Undecided};
use crate::ir::{Attribute, Data, Fact, Scalar, SparseTensor};
use crate::ops::traits::{Moved, NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, StridedView, Tensor, dispatch_numeric, gather};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Constant", &[1, 9, 11, 12, 13, 19, 21, 23, 24, 25], infer_constant, eval_constant),
    Operator::new("ConstantOfShape", &[9, 20, 21, 23, 24, 25], infer_constant_of_shape, eval_constant_of_shape).with(
        Traits::NONE
            .index_map(map_constant_of_shape)
            .counts(moves::filled_counts)
            .uniform(moves::filled)
            .inferred_by_contents(0),
    ),
    Operator::new("EyeLike", &[9, 22], infer_eye_like, eval_eye_like)
        .with(Traits::NONE.index_map(map_eye_like).inferred_by_shapes()),
];

/// The value of a Constant.
enum Given<'a> {
    Dense(Tensor),
    Sparse(&'a SparseTensor),
}

fn given<'a>(site: &Site<'a>) -> Result<Given<'a>, Refusal> {
    let mut found = Vec::new();
    if let Some(tensor) = site.attr_tensor("value")? {
        found.push(Given::Dense(tensor.clone()));
    }
    if let Some(sparse) = site.attr_sparse("sparse_value")? {
        found.push(Given::Sparse(sparse));
    }
    if let Some(int) = site.attr_int("value_int")? {
        found.push(Given::Dense(Tensor::scalar(int)));
    }
    if let Some(ints) = site.attr_ints("value_ints")? {
        found.push(Given::Dense(Tensor::vector(ints.to_vec())));
    }
    if let Some(float) = site.attr_float("value_float")? {
        found.push(Given::Dense(Tensor::scalar(float)));
    }
    if let Some(floats) = site.attr_floats("value_floats")? {
        found.push(Given::Dense(Tensor::vector(floats.to_vec())));
    }
    if let Some(string) = site.attr_bytes("value_string")? {
        found.push(Given::Dense(Tensor::from_strings(&[], vec![string.to_vec().into()])?));
    }
    if let Some(strings) = site.attr_strings("value_strings")? {
        found.push(Given::Dense(Tensor::from_strings(&[strings.len()], strings.to_vec())?));
    }
    match (found.pop(), found.is_empty()) {
        (Some(given), true) => Ok(given),
        (None, _) => {
            Err(Refusal::invalid("the node has none of the attributes 'value', 'value_float', 'value_int', …"))
        }
        (Some(_), false) => {
            Err(Refusal::invalid("the node has more than one of the attributes 'value', 'value_float', 'value_int', …"))
        }
    }
}

fn infer_constant(cx: &mut InferCx<'_>) -> InferResult {
    let opaque = |name: &&str| matches!(cx.attribute(name), Some(Attribute::Opaque(_)));
    if ["value", "sparse_value"].iter().any(opaque) {
        return Err(Refusal::unsupported("the element type of the constant is unknown"));
    }
    Ok(vec![match given(cx)? {
        Given::Dense(tensor) => Fact::constant(tensor),
        Given::Sparse(sparse) => {
            let dims = sparse.shape.iter().map(|&dim| i64::try_from(dim).ok().map(Dim::constant));
            Fact::tensor(Some(sparse.values.dtype()), dims.collect())
        }
    }])
}

fn eval_constant(cx: &mut EvalCx<'_>) -> EvalResult {
    let tensor = match given(cx)? {
        Given::Dense(tensor) => tensor,
        Given::Sparse(sparse) => {
            claim(cx, sparse.values.dtype(), &sparse.shape)?;
            dense(sparse)?
        }
    };
    Ok(vec![Data::Tensor(tensor)])
}

/// Returns a sparse tensor in dense form. Its memory must have been claimed.
fn dense(sparse: &SparseTensor) -> Result<Tensor, Decline> {
    let outside = || Decline::invalid("an index of the sparse tensor is out of range");
    let len = count(&sparse.shape)?;
    let indices = sparse.indices.to_i64s().ok_or_else(outside)?;
    let rank = sparse.shape.len();
    let linear = sparse.indices.rank() <= 1;
    let tuples = indices.chunks_exact(if linear { 1 } else { rank.max(1) });
    let flat = [len];
    let dims = if linear { flat.as_slice() } else { sparse.shape.as_slice() };
    let position = |tuple: &[i64]| {
        dims.iter().zip(tuple).try_fold(0usize, |sum, (&dim, &index)| {
            let index = usize::try_from(index).ok().filter(|&index| index < dim)?;
            sum.checked_mul(dim)?.checked_add(index)
        })
    };
    let starts = tuples.map(position).collect::<Option<Vec<usize>>>().ok_or_else(outside)?;
    if starts.len() != sparse.values.len() {
        return Err(Decline::invalid("the numbers of values and indices of the sparse tensor differ"));
    }
    let zeros = Tensor::zeros(sparse.values.dtype(), &sparse.shape)?;
    moved(&[&zeros, &sparse.values], &|operands| match operands {
        [zeros, values] => overwrite(zeros, values, &starts, 1),
        _ => Err(outside()),
    })
}

/// Returns the fill value of ConstantOfShape.
fn fill(site: &Site<'_>) -> Result<Tensor, Refusal> {
    match site.attr_tensor("value")? {
        None => Ok(Tensor::scalar(0f32)),
        Some(value) if value.len() == 1 => Ok(value.reshape(&[])?),
        Some(value) => Err(Refusal::invalid(format!("attribute 'value' has {} elements instead of 1", value.len()))),
    }
}

fn infer_constant_of_shape(cx: &mut InferCx<'_>) -> InferResult {
    let fill = fill(cx)?;
    let shape = cx.required(0)?;
    if let Some(other) = shape.dtype().filter(|&dtype| dtype != DType::Int64) {
        return Err(Refusal::invalid(format!("the shape operand has type {other} instead of int64")));
    }
    let rank = match shape.shape() {
        Some([length]) => length.as_const().and_then(|length| usize::try_from(length).ok()),
        Some(dims) => return Err(Refusal::invalid(format!("the shape operand has rank {} instead of 1", dims.len()))),
        None => None,
    };
    let elements = elements_of(shape);
    let Some(elements) = elements else { return Ok(vec![of_rank(cx, Some(fill.dtype()), rank)]) };
    let dims = elements.into_iter().map(|element| match element {
        Scalar::Int(dim) if dim.as_const().is_some_and(|dim| dim < 0) => {
            Err(Refusal::invalid("an element of the shape operand is negative"))
        }
        Scalar::Int(dim) => Ok(dim),
        _ => Ok(cx.fresh_dim()),
    });
    Ok(vec![Fact::tensor(Some(fill.dtype()), Some(dims.collect::<Result<_, _>>()?))])
}

fn map_constant_of_shape(view: &NodeFacts<'_>, output: usize) -> MapResult {
    let fill = Fill::of_element(&fill(&view.known_site()?)?).ok_or(Undecided::Operands)?;
    Ok(Moved { slots: Vec::new(), map: IndexMap::filled(view.scope(), view.result_dims(output)?, fill) })
}

fn eval_constant_of_shape(cx: &mut EvalCx<'_>) -> EvalResult {
    let fill = fill(cx)?;
    let shape = sizes(&cx.ints(0)?)?;
    cx.claim(fill.dtype(), &shape)?;
    Ok(vec![Data::Tensor(gather(&fill, &StridedView::of(&fill).broadcast_to(&shape)?)?)])
}

fn infer_eye_like(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.attr_dtype("dtype")? {
        None => cx.required(0)?.dtype(),
        given => given,
    };
    match cx.shape(0) {
        Some(shape) if shape.len() != 2 => Err(Refusal::invalid("the rank of the input is not 2")),
        Some(shape) => Ok(vec![Fact::tensor(dtype, Some(shape.to_vec()))]),
        None => Ok(vec![of_rank(cx, dtype, Some(2))]),
    }
}

/// Squares of any size with their main diagonal, and other matrices of constant sizes, where each element on the diagonal is a piece.
fn map_eye_like(view: &NodeFacts<'_>, output: usize) -> MapResult {
    let (scope, site, dims) = (view.scope(), view.known_site()?, view.result_dims(output)?);
    let diagonal = site.attr_int("k")?.unwrap_or(0);
    let dtype = match site.attr_dtype("dtype")? {
        Some(dtype) => dtype,
        None => view.dtype(0).ok_or(Undecided::Operands)?,
    };
    let fills = Tensor::zeros(dtype, &[1]).ok().as_ref().and_then(Fill::of_element);
    let fills = fills.zip(one(dtype).as_ref().and_then(Fill::of_element));
    let ((zero, one), [rows, columns]) = (fills.ok_or(Undecided::Operands)?, dims) else { return Err(Undecided::Rank) };
    let of_none = |map| Ok(Moved { slots: Vec::new(), map });
    if diagonal == 0 && view.equal(rows, columns) && rows.as_const().is_none() {
        return of_none(IndexMap::eye(scope, rows, zero, one)?);
    }
    let (Some(rows), Some(columns)) = (rows.as_const(), columns.as_const()) else { return Err(Undecided::Symbolic) };
    let total = rows.checked_mul(columns).ok_or(Undecided::Overflow)?;
    let mut runs: Vec<Run> = Vec::new();
    let mut next = 0i64;
    let first_row = 0i64.saturating_sub(diagonal).max(0);
    for row in first_row..rows {
        let column = row.saturating_add(diagonal);
        if column >= columns {
            break;
        }
        if runs.len() > MOST_PIECES {
            return Err(Undecided::PieceLimit);
        }
        let at = row.checked_mul(columns).and_then(|at| at.checked_add(column)).ok_or(Undecided::Overflow)?;
        runs.push(Run { len: at.saturating_sub(next), from: Origin::Fill(zero) });
        runs.push(Run { len: 1, from: Origin::Fill(one) });
        next = at.saturating_add(1);
    }
    runs.push(Run { len: total.saturating_sub(next), from: Origin::Fill(zero) });
    runs.retain(|run| run.len > 0);
    let single = Dim::constant(1);
    of_none(IndexMap::runs(scope, &[], dims, (&single, &single), &runs)?)
}

fn eval_eye_like(cx: &mut EvalCx<'_>) -> EvalResult {
    let like = cx.tensor(0)?;
    let dtype = cx.attr_dtype("dtype")?.unwrap_or(like.dtype());
    let diagonal = cx.attr_int("k")?.unwrap_or(0);
    let &[rows, columns] = like.shape() else { return Err(Decline::invalid("the rank of the input is not 2")) };
    cx.claim(dtype, like.shape())?;
    // A matrix without columns has no diagonal, however many rows it has.
    let rows = if columns == 0 { 0 } else { rows };
    let ones = (0..rows).filter_map(|row| {
        let column = i64::try_from(row).ok()?.checked_add(diagonal)?;
        let column = usize::try_from(column).ok().filter(|&column| column < columns)?;
        row.checked_mul(columns)?.checked_add(column)
    });
    let starts: Vec<usize> = ones.collect();
    let zeros = Tensor::zeros(dtype, like.shape())?;
    let one = one(dtype).ok_or_else(|| Decline::unsupported(format!("EyeLike does not support {dtype}")))?;
    let ones = gather(&one, &StridedView::of(&one).broadcast_to(&[starts.len()])?)?;
    Ok(vec![Data::Tensor(overwrite(&zeros, &ones, &starts, 1)?)])
}

/// Returns the number 1, or `true`.
fn one(dtype: DType) -> Option<Tensor> {
    use crate::tensor::{Bool, Number};
    dispatch_numeric!(dtype, T => Some(Tensor::scalar(<T as Number>::one())), else => {
        (dtype == DType::Bool).then(|| Tensor::scalar(Bool::from(true)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use bytes::Bytes;

    #[test]
    fn constants_keep_the_type_of_their_attribute() {
        let given = tensor(&[2], &[crate::tensor::F8E5M2(1), crate::tensor::F8E5M2(2)]);
        assert!(Case::new("Constant", 19).with("value", given.clone()).eval([]).same(&given));
        assert!(Case::new("Constant", 12).with("value_int", 7).eval([]).same(&Tensor::scalar(7i64)));
        assert!(Case::new("Constant", 12).with("value_ints", vec![7, 8]).eval([]).same(&ints(&[7, 8])));
        let floats = Case::new("Constant", 12).with("value_floats", Attribute::Floats(vec![0.5]));
        assert!(floats.eval([]).same(&Tensor::vector(vec![0.5f32])));
        let float = Case::new("Constant", 12).with("value_float", Attribute::Float(0.5));
        assert!(float.eval([]).same(&Tensor::scalar(0.5f32)));
        let string = Case::new("Constant", 12).with("value_string", Attribute::String(Bytes::from_static(b"\xff")));
        assert_eq!(string.eval([]).strings().unwrap(), [Bytes::from_static(b"\xff")]);
        let several = Case::new("Constant", 12).with("value_strings", Attribute::Strings(vec![Bytes::new(); 2]));
        assert_eq!(several.eval([]).shape(), [2]);
        assert!(matches!(Case::new("Constant", 12).fails([]), Decline::Invalid(_)));
        let two = Case::new("Constant", 12).with("value_int", 7).with("value_ints", vec![7]);
        assert!(matches!(two.fails([]), Decline::Invalid(_)));
    }

    #[test]
    fn sparse_constants_are_dense() {
        let sparse = |indices| SparseTensor {
            values: Tensor::vector(vec![5f32, 6.0]),
            indices,
            shape: vec![2, 3],
            extra: Default::default(),
        };
        let case = |indices| {
            Case::new("Constant", 11).with("sparse_value", Attribute::SparseTensor(Box::new(sparse(indices))))
        };
        let expected = tensor(&[2, 3], &[0f32, 5.0, 0.0, 0.0, 0.0, 6.0]);
        assert!(case(ints(&[1, 5])).eval([]).same(&expected));
        assert!(case(tensor(&[2, 2], &[0i64, 1, 1, 2])).eval([]).same(&expected));
        for wrong in [ints(&[1, 6]), ints(&[-1, 0]), ints(&[1]), tensor(&[2, 2], &[0i64, 3, 1, 2])] {
            case(wrong).fails([]);
        }
    }

    #[test]
    fn shapes_are_filled() {
        let case = Case::new("ConstantOfShape", 9);
        assert!(case.eval([ints(&[])]).same(&Tensor::scalar(0f32)));
        assert!(case.eval([ints(&[2, 0])]).same(&tensor::<f32>(&[2, 0], &[])));
        let ones = Case::new("ConstantOfShape", 9).with("value", ints(&[1]));
        assert!(ones.eval([ints(&[2, 1])]).same(&tensor(&[2, 1], &[1i64, 1])));
        let word = Case::new("ConstantOfShape", 9).with("value", strings(&[1], &["a"]));
        assert!(word.eval([ints(&[2])]).same(&strings(&[2], &["a", "a"])));
        assert!(matches!(case.fails([ints(&[-1])]), Decline::Invalid(_)));
        assert!(matches!(case.fails([ints(&[i64::MAX, 1 << 20])]), Decline::OverBudget(_)));
        Case::new("ConstantOfShape", 9).with("value", ints(&[1, 2])).fails([ints(&[2])]);
    }

    #[test]
    fn the_diagonal_of_eye_like() {
        let like = iota(&[2, 3]);
        let eye =
            |k: i64| Case::new("EyeLike", 9).with("k", k).with("dtype", DType::Int32).eval(std::slice::from_ref(&like));
        assert_eq!(values::<i32>(&eye(0)), [1, 0, 0, 0, 1, 0]);
        assert_eq!(values::<i32>(&eye(2)), [0, 0, 1, 0, 0, 0]);
        assert_eq!(values::<i32>(&eye(-1)), [0, 0, 0, 1, 0, 0]);
        assert_eq!(values::<i32>(&eye(i64::MAX)), [0; 6]);
        assert_eq!(values::<i32>(&eye(i64::MIN)), [0; 6]);
        assert_eq!(values::<f32>(&Case::new("EyeLike", 9).eval([iota(&[1, 1])])), [1.0]);
        Case::new("EyeLike", 9).fails([iota(&[2])]);
    }
}
