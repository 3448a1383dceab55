use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};

pub(super) const ROI_ALIGN: Operator = Operator::infer_only("RoiAlign", &[10, 16, 22], infer);

/// `output_height` and `output_width`.
fn output_size(site: &Site<'_>) -> Result<[i64; 2], Refusal> {
    let size = |name: &str| match site.attr_int(name)?.unwrap_or(1) {
        size if size > 0 => Ok(size),
        size => Err(Refusal::invalid(format!("attribute '{name}' is {size}"))),
    };
    Ok([size("output_height")?, size("output_width")?])
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype().or(cx.dtype(1));
    let [height, width] = output_size(cx)?;
    for (operand, rank) in [(0, 4), (1, 2), (2, 1)] {
        if cx.rank(operand).is_some_and(|found| found != rank) {
            return Err(Refusal::invalid(format!("operand {operand} is not of rank {rank}")));
        }
    }
    let dim = |operand: usize, axis: usize| cx.shape(operand).and_then(|shape| shape.get(axis)).cloned();
    let count = [dim(1, 0), dim(2, 0)].into_iter().flatten();
    let count = count.reduce(|a, b| if a.as_const().is_none() && b.as_const().is_some() { b } else { a });
    let or_fresh = |dim: Option<Dim>| dim.unwrap_or_else(|| cx.fresh_dim());
    let shape = vec![or_fresh(count), or_fresh(dim(0, 1)), Dim::constant(height), Dim::constant(width)];
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}
