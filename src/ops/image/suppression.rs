use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const NON_MAX_SUPPRESSION: Operator = Operator::infer_only("NonMaxSuppression", &[10, 11], infer);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let (boxes, scores) = (cx.required(0)?.shape(), cx.required(1)?.shape());
    if [boxes, scores].into_iter().flatten().any(|shape| shape.len() != 3) {
        return Err(Refusal::invalid("boxes and scores are tensors of rank 3"));
    }
    let scope = cx.scope();
    let at = |shape: Option<&[Dim]>, axis: usize| shape.and_then(|shape| shape.get(axis)).cloned();
    let (batches, classes) = (at(boxes, 0).or_else(|| at(scores, 0)), at(scores, 1));
    let each = at(boxes, 1).or_else(|| at(scores, 2));
    // For each batch and class at most as many boxes as there are, and as are asked for.
    let limit = match cx.input(2) {
        None => Some(Dim::constant(0)),
        Some(limit) => match limit.ints().as_deref() {
            Some([limit]) => Some(scope.max(limit, &Dim::constant(0))),
            Some([]) => Some(Dim::constant(0)),
            _ => None,
        },
    };
    let each = match (each, limit) {
        (Some(each), Some(limit)) => Some(scope.min(&each, &limit)),
        (each, limit) => each.or(limit),
    };
    let most = match (batches, classes, each) {
        (_, _, Some(each)) if each.is_const(0) => Some(each),
        (Some(batches), Some(classes), Some(each)) => Some(scope.product([&batches, &classes, &each])),
        _ => None,
    };
    let count = match most {
        None => cx.fresh_dim(),
        Some(most) if most.is_const(0) => most,
        Some(most) => {
            let count = scope.fresh_within("selected", Some(0), scope.bounds(&most).1);
            scope.assume_le(&count, &most);
            count
        }
    };
    Ok(vec![Fact::tensor(Some(DType::Int64), Some(vec![count, Dim::constant(3)]))])
}
