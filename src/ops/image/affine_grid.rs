use crate::dim::Dim;
use crate::ir::{Fact, Scalar};
use crate::ops::{InferCx, InferResult, Operator, Refusal};

pub(super) const AFFINE_GRID: Operator = Operator::infer_only("AffineGrid", &[20], infer);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let theta = cx.required(0)?;
    let (dtype, theta) = (theta.dtype(), theta.shape());
    let size = cx.required(1)?;
    let from_size = size.static_len().map(|len| len.checked_sub(2).unwrap_or(0));
    let rows = theta.and_then(|theta| theta.get(1)).and_then(Dim::as_const).and_then(|rows| usize::try_from(rows).ok());
    let Some(axes) = from_size.or(rows) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    if !(2..=3).contains(&axes) || rows.is_some_and(|rows| rows != axes) {
        return Err(Refusal::invalid(format!("a matrix of {rows:?} rows for {axes} axes")));
    }
    if theta.is_some_and(|theta| theta.len() != 3) {
        return Err(Refusal::invalid("the matrices are no tensor of rank 3"));
    }
    let sizes = size.elements().filter(|sizes| sizes.len() == axes + 2);
    let sizes = sizes.unwrap_or_else(|| vec![Scalar::Unknown; axes + 2]);
    let asked = |at: usize| sizes.get(at).and_then(Scalar::as_int).cloned();
    let batch = theta.and_then(|theta| theta.first()).filter(|batch| batch.as_const().is_some()).cloned();
    let batch = batch.or_else(|| asked(0)).or_else(|| theta?.first().cloned());
    let mut shape = vec![batch.unwrap_or_else(|| cx.fresh_dim())];
    shape.extend((2..axes + 2).map(|at| asked(at).unwrap_or_else(|| cx.fresh_dim())));
    shape.push(Dim::constant(axes as i64));
    if shape.iter().any(|dim| dim.as_const().is_some_and(|dim| dim < 0)) {
        return Err(Refusal::invalid("a size is negative"));
    }
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}
