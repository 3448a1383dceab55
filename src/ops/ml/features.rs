use super::{DOMAIN, counted};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::DType;

pub(super) const ARRAY_FEATURE_EXTRACTOR: Operator =
    Operator::infer_only("ArrayFeatureExtractor", &[1], infer_extractor).in_domain(DOMAIN);
pub(super) const BINARIZER: Operator = Operator::infer_only("Binarizer", &[1], infer_same).in_domain(DOMAIN);
pub(super) const FEATURE_VECTORIZER: Operator =
    Operator::infer_only("FeatureVectorizer", &[1], infer_vectorizer).in_domain(DOMAIN);
pub(super) const IMPUTER: Operator = Operator::infer_only("Imputer", &[1], infer_same).in_domain(DOMAIN);
pub(super) const NORMALIZER: Operator = Operator::infer_only("Normalizer", &[1], infer_floats).in_domain(DOMAIN);
pub(super) const ONE_HOT_ENCODER: Operator =
    Operator::infer_only("OneHotEncoder", &[1], infer_one_hot).in_domain(DOMAIN);
pub(super) const SCALER: Operator = Operator::infer_only("Scaler", &[1], infer_floats).in_domain(DOMAIN);

fn infer_same(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    Ok(vec![Fact::tensor(data.dtype(), data.shape().map(<[Dim]>::to_vec))])
}

fn infer_floats(cx: &mut InferCx<'_>) -> InferResult {
    let shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    Ok(vec![Fact::tensor(Some(DType::Float), shape)])
}

fn infer_extractor(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.required(0)?.dtype();
    let count = cx.required(1)?.shape().map(|indices| cx.scope().product(indices));
    let Some(data) = cx.shape(0) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let mut shape = match data {
        [] => return Err(Refusal::invalid("a scalar has no features")),
        [_] => vec![Dim::constant(1)],
        [outer @ .., _] => outer.to_vec(),
    };
    shape.push(count.unwrap_or_else(|| cx.fresh_dim()));
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

fn infer_vectorizer(cx: &mut InferCx<'_>) -> InferResult {
    let widths = cx.attr_ints("inputdimensions")?.unwrap_or_default();
    let sum = widths.iter().try_fold(0i64, |sum, &width| sum.checked_add(width).filter(|_| width >= 0));
    if widths.len() > cx.input_count() || sum.is_none() {
        return Err(Refusal::invalid("'inputdimensions' does not go with the operands"));
    }
    let mut rows: Option<Dim> = None;
    for operand in 0..cx.input_count() {
        let found = match cx.shape(operand) {
            Some([_]) => Dim::constant(1),
            Some([rows, _]) => rows.clone(),
            Some(_) => return Err(Refusal::invalid("an operand is neither of rank 1 nor of rank 2")),
            None => continue,
        };
        rows = match rows {
            Some(rows) if rows.as_const().is_some() => Some(rows),
            _ => Some(found),
        };
    }
    let columns = sum.filter(|_| widths.len() == cx.input_count()).map(Dim::constant);
    let shape = [rows, columns].into_iter().map(|dim| dim.unwrap_or_else(|| cx.fresh_dim())).collect();
    Ok(vec![Fact::tensor(Some(DType::Float), Some(shape))])
}

/// How many categories there are.
fn categories(site: &Site<'_>) -> Result<usize, Refusal> {
    let (ints, strings) = (site.attr_ints("cats_int64s")?, site.attr_strings("cats_strings")?);
    match (ints.map_or(0, <[_]>::len), strings.map_or(0, <[_]>::len)) {
        (0, 0) => Err(Refusal::invalid("there are no categories")),
        (count, 0) | (0, count) => Ok(count),
        _ => Err(Refusal::invalid("there are both integer and string categories")),
    }
}

fn infer_one_hot(cx: &mut InferCx<'_>) -> InferResult {
    let count = counted(categories(cx)?);
    let shape = cx.required(0)?.shape().map(|shape| shape.iter().cloned().chain([count]).collect());
    Ok(vec![Fact::tensor(Some(DType::Float), shape)])
}
