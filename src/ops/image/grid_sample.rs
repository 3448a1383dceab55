use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};

pub(super) const GRID_SAMPLE: Operator = Operator::infer_only("GridSample", &[16, 20, 22], infer);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype();
    let (data, grid) = (cx.shape(0), cx.required(1)?.shape());
    let rank = match (data, grid) {
        (Some(data), Some(grid)) if data.len() != grid.len() => {
            return Err(Refusal::invalid(format!("a grid of rank {} for data of rank {}", grid.len(), data.len())));
        }
        (Some(shape), _) | (_, Some(shape)) => shape.len(),
        (None, None) => return Ok(vec![Fact::tensor(dtype, None)]),
    };
    if rank < 3 || (cx.version < 20 && rank != 4) {
        return Err(Refusal::invalid(format!("there is no grid over data of rank {rank}")));
    }
    if let Some(points) = grid.and_then(|grid| grid.last()).and_then(Dim::as_const)
        && usize::try_from(points).ok() != rank.checked_sub(2)
    {
        return Err(Refusal::invalid(format!("points of {points} coordinates in data of rank {rank}")));
    }
    let at = |shape: Option<&[Dim]>, axis: usize| shape.and_then(|shape| shape.get(axis)).cloned();
    let batch = [at(data, 0), at(grid, 0)].into_iter().flatten();
    let batch = batch.reduce(|a, b| if a.as_const().is_none() && b.as_const().is_some() { b } else { a });
    let mut shape = vec![batch, at(data, 1)];
    shape.extend((1..rank - 1).map(|axis| at(grid, axis)));
    let shape = shape.into_iter().map(|dim| dim.unwrap_or_else(|| cx.fresh_dim())).collect();
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}
