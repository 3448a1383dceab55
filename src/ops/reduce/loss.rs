//! NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

use super::real::{fit_on_the_way, reals, rounded};
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};
use crate::tensor::product;

/// The reduction of the losses of all samples.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduction {
    None,
    Sum,
    Mean,
}

fn reduction(site: &Site<'_>) -> Result<Reduction, Refusal> {
    match site.attr_str("reduction")? {
        Some("none") => Ok(Reduction::None),
        Some("sum") => Ok(Reduction::Sum),
        None | Some("mean") => Ok(Reduction::Mean),
        Some(other) => Err(Refusal::invalid(format!("attribute 'reduction' is '{other}', which is not defined"))),
    }
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let scores = cx.required(0)?;
    let labels = cx.required(1)?;
    if let (Some(scores), Some(labels)) = (scores.rank(), labels.rank())
        && scores != labels + 1
    {
        return Err(Refusal::invalid(format!(
            "the scores have rank {scores}, which does not fit labels of rank {labels}"
        )));
    }
    let shape = match reduction(cx)? {
        Reduction::Sum | Reduction::Mean => Some(Vec::new()),
        // One loss per label: ONNX Runtime also accepts fewer labels than instances.
        Reduction::None => match (labels.shape(), scores.rank()) {
            (Some(labels), _) => Some(labels.to_vec()),
            (None, Some(rank)) if rank > 1 => Some(cx.fresh_shape(rank - 1)),
            (None, _) => None,
        },
    };
    let mut results = vec![Fact::tensor(scores.dtype(), shape)];
    if cx.node.is("SoftmaxCrossEntropyLoss") {
        results.push(Fact::tensor(scores.dtype(), scores.shape().map(<[Dim]>::to_vec)));
    }
    Ok(results)
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let scores = cx.tensor(0)?;
    let labels = cx.tensor(1)?;
    let [batch, classes, rest @ ..] = scores.shape() else {
        return Err(Decline::invalid("the scores have no axis of classes"));
    };
    let (classes, inner) = (*classes, product(rest).unwrap_or(0));
    let shape: Vec<usize> = std::iter::once(batch).chain(rest).copied().collect();
    if labels.shape() != shape.as_slice() {
        return Err(Decline::invalid("the shape of the labels does not fit the shape of the scores"));
    }
    let targets = labels.to_i64s().ok_or_else(|| Decline::invalid("the labels have no integer type"))?;
    let ignored = cx.attr_int("ignore_index")?;
    let reduction = reduction(cx)?;
    let weights = cx.optional_tensor(2)?.map(|weights| reals(cx, weights)).transpose()?;
    if weights.as_ref().is_some_and(|weights| weights.len() != classes) {
        return Err(Decline::invalid("the number of weights differs from the number of classes"));
    }
    let cross_entropy = cx.node.is("SoftmaxCrossEntropyLoss");
    let mut logs = reals(cx, scores)?;
    if let Some(item) = classes.checked_mul(inner).filter(|&item| item > 0 && cross_entropy) {
        cx.budget().take_work(u64::try_from(logs.len()).unwrap_or(u64::MAX).saturating_mul(32))?;
        logs.chunks_exact_mut(item).for_each(|item| super::softmax::log_softmax_rows(item, inner));
        if logs.iter().any(|log| log.is_nan()) {
            return Err(Decline::unsupported("the result is NaN"));
        }
    }
    let mut losses = Vec::with_capacity(targets.len());
    let mut applied = 0.0;
    for (at, &target) in targets.iter().enumerate() {
        if Some(target) == ignored {
            losses.push(0.0);
            continue;
        }
        let class = usize::try_from(target).ok().filter(|&class| class < classes);
        let class = class.ok_or_else(|| Decline::invalid(format!("the label {target} is not a class")))?;
        // A label exists, so each instance has at least one element.
        let (item, place) = (at / inner, at % inner);
        let log = logs.get((item * classes + class) * inner + place).copied().unwrap_or(f64::NAN);
        let weight = weights.as_ref().and_then(|weights| weights.get(class)).copied().unwrap_or(1.0);
        applied += weight;
        fit_on_the_way(scores.dtype(), [applied, weight, log, log * weight])?;
        losses.push(-log * weight);
    }
    let dtype = scores.dtype();
    let loss = match reduction {
        Reduction::None => rounded(cx, dtype, &shape, losses)?,
        Reduction::Sum => rounded(cx, dtype, &[], vec![losses.iter().sum()])?,
        Reduction::Mean if applied == 0.0 => {
            return Err(Decline::unsupported("the mean of an empty tensor is undefined"));
        }
        Reduction::Mean => rounded(cx, dtype, &[], vec![losses.iter().sum::<f64>() / applied])?,
    };
    let mut results = vec![Data::Tensor(loss)];
    if cross_entropy {
        results.push(Data::Tensor(rounded(cx, dtype, scores.shape(), logs)?));
    }
    Ok(results)
}
