use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::broadcast::broadcast_shapes;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const STRING_CONCAT: Operator = Operator::infer_only("StringConcat", &[20], infer_concat);
pub(super) const STRING_SPLIT: Operator = Operator::infer_only("StringSplit", &[20], infer_split);
pub(super) const STRING_NORMALIZER: Operator = Operator::infer_only("StringNormalizer", &[10], infer_normalizer);

fn infer_concat(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.required(0)?.shape(), cx.required(1)?.shape()) {
        (Some(a), Some(b)) => Some(broadcast_shapes(cx.scope(), &[a, b])?),
        _ => None,
    };
    Ok(vec![Fact::tensor(Some(DType::String), shape)])
}

fn infer_split(cx: &mut InferCx<'_>) -> InferResult {
    let most = cx.attr_int("maxsplit")?.and_then(|splits| splits.max(-1).checked_add(1)).filter(|&most| most > 0);
    let shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    let pieces = shape.as_ref().map(|shape| {
        let mut pieces = shape.clone();
        pieces.push(cx.scope().fresh_within("pieces", Some(0), most));
        pieces
    });
    Ok(vec![Fact::tensor(Some(DType::String), pieces), Fact::tensor(Some(DType::Int64), shape)])
}

fn infer_normalizer(cx: &mut InferCx<'_>) -> InferResult {
    let removes = cx.attr_strings("stopwords")?.is_some_and(|words| !words.is_empty());
    let one = Dim::constant(1);
    let count = |dim: &Dim| {
        // Where nothing is left, one empty string is.
        if !removes && cx.scope().ge(dim, &one).is_yes() {
            return dim.clone();
        }
        let count = cx.scope().fresh_within("words", Some(1), cx.scope().bounds(dim).1.map(|most| most.max(1)));
        if cx.scope().ge(dim, &one).is_yes() {
            cx.scope().assume_le(&count, dim);
        }
        count
    };
    let shape = match cx.required(0)?.shape() {
        None => None,
        Some([dim]) => Some(vec![count(dim)]),
        Some([batch, dim]) if !cx.scope().eq(batch, &one).is_no() => Some(vec![one.clone(), count(dim)]),
        Some(_) => return Err(Refusal::invalid("the strings are neither of shape [C] nor of shape [1, C]")),
    };
    Ok(vec![Fact::tensor(Some(DType::String), shape)])
}
