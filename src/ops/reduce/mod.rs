//! Reductions, normalizations, losses, and optimizer steps.
//!
//! | operator | computes | versions |
//! | --- | --- | --- |
//! | ReduceSum, ReduceMean, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceSumSquare | one number for all elements along some axes | 11 adds negative axes, 13 `bfloat16`; from 18 on (ReduceSum: 13) the axes are an optional operand; 28: logarithms of floats only |
//! | ReduceMax, ReduceMin | the same | also 12 for 8-bit integers and 20 for bools |
//! | ArgMax, ArgMin | the index of the largest or smallest element | 11 adds negative axes, 12 `select_last_index`, 13 `bfloat16` |
//! | Softmax, LogSoftmax, Hardmax | exponentials divided by their sum, the logarithms of these, the maximum as one-hot | before 13 over all axes from `axis` (1) on, from 13 on only over `axis` (−1) |
//! | BatchNormalization | `(x - mean) / sqrt(var + epsilon) · scale + bias` for each channel | 1, 6: `is_test`; before 9: `spatial`; 14 adds `training_mode` and one output type for the statistics, 15 another one |
//! | InstanceNormalization, GroupNormalization, LayerNormalization, RMSNormalization | the same with statistics of the data | GroupNormalization scales groups in 18, channels from 21 on |
//! | LpNormalization, LRN, MeanVarianceNormalization | division by a norm, by adjacent channels, by the deviation | later versions add `bfloat16` |
//! | NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss | the loss of predicted classes | 12; 13 adds types, 22 more |
//! | ai.onnx.preview.training: Adagrad, Adam, Momentum, Gradient | an optimizer step; Gradient is only inferred | 1 |
//!
//! Floats are reduced in binary64 and rounded once. Not evaluated because runtimes disagree: maxima and minima of NaN, softmax of
//! infinities, means without elements, overflowing integer reductions. Training modes with saved statistics that the standard
//! leaves open are not evaluated either.

mod arg;
mod axes;
mod layout;
mod loss;
mod normalize;
mod real;
mod reductions;
mod shares;
mod softmax;
#[cfg(test)]
mod tests;
mod training;

use super::Operator;
use super::traits::{NumbersOf, OVERSHOOT, Traits, ValueRange};

const fn reduction(name: &'static str, versions: &'static [i64]) -> Operator {
    Operator::new(name, versions, reductions::infer, reductions::eval)
}

/// Returns the traits of a reduction whose axes are an operand or an attribute.
const fn over_axes(folds: Option<&'static str>) -> Traits {
    Traits::reduction(axes::reduced, folds).inferred_by_contents(1)
}

pub(super) const OPERATORS: &[Operator] = &[
    reduction("ReduceSum", &[1, 11, 13]).with(over_axes(Some("Add")).homogeneous()),
    reduction("ReduceMean", &[1, 11, 13, 18]).with(over_axes(None).homogeneous()),
    reduction("ReduceProd", &[1, 11, 13, 18]).with(over_axes(Some("Mul"))),
    reduction("ReduceMax", &[1, 11, 12, 13, 18, 20]).with(over_axes(Some("Max"))),
    reduction("ReduceMin", &[1, 11, 12, 13, 18, 20]).with(over_axes(Some("Min"))),
    reduction("ReduceL1", &[1, 11, 13, 18])
        .with(over_axes(None).range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY)))),
    reduction("ReduceL2", &[1, 11, 13, 18])
        .with(over_axes(None).range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY)))),
    reduction("ReduceLogSum", &[1, 11, 13, 18, 28]).with(over_axes(None)),
    reduction("ReduceLogSumExp", &[1, 11, 13, 18, 28]).with(over_axes(None)),
    reduction("ReduceSumSquare", &[1, 11, 13, 18])
        .with(over_axes(None).range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY)))),
    Operator::new("ArgMax", &[1, 11, 12, 13], arg::infer, arg::eval).with(Traits::reduction(axes::chosen, None)),
    Operator::new("ArgMin", &[1, 11, 12, 13], arg::infer, arg::eval).with(Traits::reduction(axes::chosen, None)),
    Operator::new("Softmax", &[1, 11, 13], softmax::infer, softmax::eval).with(
        Traits::mixing(axes::shared).ignoring_zero_sign().range(|_, _| Some(ValueRange::between(0.0, 1.0 + OVERSHOOT))),
    ),
    Operator::new("LogSoftmax", &[1, 11, 13], softmax::infer, softmax::eval)
        .with(Traits::mixing(axes::shared).ignoring_zero_sign()),
    Operator::new("Hardmax", &[1, 11, 13], softmax::infer, softmax::eval)
        .with(Traits::mixing(axes::shared).range(|_, _| Some(ValueRange::between(0.0, 1.0)))),
    Operator::new("BatchNormalization", &[1, 6, 7, 9, 14, 15], normalize::infer_batch, normalize::eval_batch)
        .with(Traits::NONE.fused_with_next().inferred_by_numbers(NumbersOf::SameAxisOfFirst)),
    Operator::new("InstanceNormalization", &[1, 6, 22], normalize::infer_instance, normalize::eval_instance)
        .with(Traits::mixing(axes::of_instances).fused_with_next()),
    Operator::new("GroupNormalization", &[18, 21], normalize::infer_group, normalize::eval_group)
        .with(Traits::mixing(axes::of_instances).fused_with_next().inferred_by_numbers(NumbersOf::Whole(1))),
    Operator::new("LayerNormalization", &[17], normalize::infer_layer, normalize::eval_layer)
        .with(Traits::mixing(axes::of_layers).fused_with_next()),
    Operator::new("RMSNormalization", &[23], normalize::infer_rms, normalize::eval_rms)
        .with(Traits::mixing(axes::of_layers).fused_with_next()),
    Operator::new("LpNormalization", &[1, 22], normalize::infer_same, shares::eval_lp)
        .with(Traits::mixing(axes::of_norms)),
    Operator::new("LRN", &[1, 13], normalize::infer_lrn, shares::eval_lrn).with(Traits::NONE.inferred_by_shapes()),
    Operator::new("MeanVarianceNormalization", &[9, 13], normalize::infer_same, shares::eval_mean_variance),
    Operator::new("NegativeLogLikelihoodLoss", &[12, 13, 22], loss::infer, loss::eval),
    Operator::new("SoftmaxCrossEntropyLoss", &[12, 13], loss::infer, loss::eval),
    Operator::new("Adagrad", &[1], training::infer_step, training::eval_step).in_domain(training::DOMAIN),
    Operator::new("Adam", &[1], training::infer_step, training::eval_step).in_domain(training::DOMAIN),
    Operator::new("Momentum", &[1], training::infer_step, training::eval_step).in_domain(training::DOMAIN),
    Operator::infer_only("Gradient", &[1], training::infer_gradient).in_domain(training::DOMAIN),
];
