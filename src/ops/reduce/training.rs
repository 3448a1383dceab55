//! Optimizer steps, and gradients.

use super::real::{reals, rounded};
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};
use crate::tensor::Tensor;

pub(super) const DOMAIN: &str = "ai.onnx.preview.training";

/// Returns the number of operand groups of an optimizer after learning rate and count, and the updated groups. Each group has one
/// operand per optimized tensor.
fn groups(site: &Site<'_>) -> (usize, &'static [usize]) {
    match site.node.op_type.as_str() {
        // Tensors, gradients, sums of squares.
        "Adagrad" => (3, &[0, 2]),
        // Tensors, gradients, averages, averages of squares.
        "Adam" => (4, &[0, 2, 3]),
        // Tensors, gradients, momenta.
        _ => (3, &[0, 2]),
    }
}

/// Returns the number of optimized tensors.
fn optimized(site: &Site<'_>, operands: usize) -> Result<usize, Refusal> {
    let groups = groups(site).0;
    let rest = operands.checked_sub(2).filter(|rest| rest.is_multiple_of(groups));
    let count = rest.ok_or_else(|| {
        Refusal::invalid(format!("the node has {operands} operands, instead of two and {groups} per optimized tensor"))
    })?;
    Ok(count / groups)
}

pub(super) fn infer_step(cx: &mut InferCx<'_>) -> InferResult {
    let count = optimized(cx, cx.inputs().len())?;
    let operands = groups(cx).1.iter().flat_map(|group| (0..count).map(move |i| 2 + group * count + i));
    // Updated tensors keep their type and shape.
    let results = operands.map(|i| Fact::tensor(cx.dtype(i), cx.shape(i).map(<[Dim]>::to_vec)));
    Ok(results.collect())
}

pub(super) fn eval_step(cx: &mut EvalCx<'_>) -> EvalResult {
    let count = optimized(cx, cx.inputs().len())?;
    let rate = match reals(cx, cx.tensor(0)?)?.as_slice() {
        [rate] => *rate,
        _ => return Err(Decline::invalid("'R' (the learning rate) is not a single number")),
    };
    let step = match cx.ints(1)?.as_slice() {
        [step] => *step,
        _ => return Err(Decline::invalid("'T' (the update count) is not a single number")),
    };
    let mut updated: Vec<Vec<Data>> = vec![Vec::new(); groups(cx).1.len()];
    for i in 0..count {
        for (column, result) in updated.iter_mut().zip(one_step(cx, count, i, rate, step)?) {
            column.push(Data::Tensor(result));
        }
    }
    Ok(updated.into_iter().flatten().collect())
}

/// Computes the step of one optimized tensor: its new value, and its updated state.
fn one_step(cx: &EvalCx<'_>, count: usize, i: usize, rate: f64, step: i64) -> Result<Vec<Tensor>, Decline> {
    let operand = |group: usize| cx.tensor(2 + group * count + i);
    let target = operand(0)?;
    let group = |group: usize| {
        let tensor = operand(group)?;
        if tensor.shape() != target.shape() || tensor.dtype() != target.dtype() {
            return Err(Decline::unsupported(
                "the operands that belong to one optimized tensor differ in type or shape",
            ));
        }
        reals(cx, tensor)
    };
    let float = |name: &str, default: f32| cx.attr_float(name).map(|value| f64::from(value.unwrap_or(default)));
    let required = |name: &str| {
        cx.attr_float(name)?.map(f64::from).ok_or_else(|| Decline::invalid(format!("attribute '{name}' is missing")))
    };
    let (mut x, mut gradient, mut kept) = (group(0)?, group(1)?, group(2)?);
    let regularize = |gradient: &mut [f64], x: &[f64], by: f64| {
        gradient.iter_mut().zip(x).for_each(|(gradient, x)| *gradient += by * x);
    };
    let mut last = None;
    match cx.node.op_type.as_str() {
        "Adagrad" => {
            regularize(&mut gradient, &x, float("norm_coefficient", 0.0)?);
            let rate = rate / (1.0 + step as f64 * float("decay_factor", 0.0)?);
            let epsilon = float("epsilon", 1e-6)?;
            for ((x, gradient), squares) in x.iter_mut().zip(&gradient).zip(&mut kept) {
                *squares += gradient * gradient;
                *x -= rate * gradient / (squares.sqrt() + epsilon);
            }
        }
        "Adam" => {
            regularize(&mut gradient, &x, float("norm_coefficient", 0.0)?);
            let (alpha, beta, epsilon) = (float("alpha", 0.9)?, float("beta", 0.999)?, float("epsilon", 1e-6)?);
            let power = |base: f64| libm::pow(base, step as f64);
            let rate = if step > 0 { rate * (1.0 - power(beta)).sqrt() / (1.0 - power(alpha)) } else { rate };
            let shrink = 1.0 - float("norm_coefficient_post", 0.0)?;
            let mut squares = group(3)?;
            for (((x, gradient), average), square) in x.iter_mut().zip(&gradient).zip(&mut kept).zip(&mut squares) {
                *average = alpha * *average + (1.0 - alpha) * gradient;
                *square = beta * *square + (1.0 - beta) * gradient * gradient;
                *x = shrink * (*x - rate * *average / (square.sqrt() + epsilon));
            }
            last = Some(squares);
        }
        _ => {
            let (norm, alpha, beta) = (required("norm_coefficient")?, required("alpha")?, required("beta")?);
            let nesterov = match cx.attr_str("mode")? {
                Some("nesterov") => true,
                Some("standard") => false,
                _ => return Err(Decline::invalid("attribute 'mode' is neither 'standard' nor 'nesterov'")),
            };
            regularize(&mut gradient, &x, norm);
            let beta = if step > 0 { beta } else { 1.0 };
            for ((x, gradient), momentum) in x.iter_mut().zip(&gradient).zip(&mut kept) {
                *momentum = alpha * *momentum + beta * gradient;
                *x -= rate * if nesterov { gradient + alpha * *momentum } else { *momentum };
            }
        }
    }
    let results = [Some(x), Some(kept), last];
    results.into_iter().flatten().map(|values| rounded(cx, target.dtype(), target.shape(), values)).collect()
}

pub(super) fn infer_gradient(cx: &mut InferCx<'_>) -> InferResult {
    let count = cx.attr_strings("xs")?.ok_or_else(|| Refusal::invalid("attribute 'xs' is missing"))?.len();
    // The gradient of a tensor has its type and shape.
    let of = |i: usize| Fact::tensor(cx.dtype(i), cx.shape(i).map(<[Dim]>::to_vec));
    Ok((0..count).map(of).collect())
}
