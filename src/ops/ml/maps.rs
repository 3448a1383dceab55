//! CastMap, DictVectorizer, ZipMap: conversion between tensors and maps. All have version 1. None is evaluated, because a graph
//! cannot contain constant maps.
//!
//! | operator | from | to |
//! | --- | --- | --- |
//! | CastMap | a map of integers to strings or floats | a tensor of type `cast_to` |
//! | DictVectorizer | a map | a tensor of the values, in the order of a vocabulary |
//! | ZipMap | a row of scores for each observation | a sequence of maps from classes to scores, which are scalars |
//!
//! The shapes of CastMap and DictVectorizer are not inferred: by the standard they are vectors, runtimes return rows.

use super::DOMAIN;
use crate::ir::{Fact, TensorType, Type};
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(super) const CAST_MAP: Operator = Operator::infer_only("CastMap", &[1], infer_cast).in_domain(DOMAIN);
pub(super) const DICT_VECTORIZER: Operator =
    Operator::infer_only("DictVectorizer", &[1], infer_vectorizer).in_domain(DOMAIN);
pub(super) const ZIP_MAP: Operator = Operator::infer_only("ZipMap", &[1], infer_zip).in_domain(DOMAIN);

fn infer_cast(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.attr_str("cast_to")? {
        None | Some("TO_FLOAT") => DType::Float,
        Some("TO_STRING") => DType::String,
        Some("TO_INT64") => DType::Int64,
        Some(other) => return Err(Refusal::invalid(format!("attribute 'cast_to' is '{other}', which is not defined"))),
    };
    Ok(vec![Fact::tensor(Some(dtype), None)])
}

fn infer_vectorizer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match &cx.required(0)?.ty {
        Some(Type::Map(_, Some(value))) => value.as_tensor().and_then(|value| value.dtype),
        _ => None,
    };
    Ok(vec![Fact::tensor(dtype, None)])
}

fn infer_zip(cx: &mut InferCx<'_>) -> InferResult {
    let (_, keys) = (cx.required(0)?, super::classes(cx, "classlabels_int64s")?.0);
    let value = Type::Tensor(TensorType::new(Some(DType::Float), Some(Vec::new())));
    let map = Type::Map(keys, Some(Box::new(value)));
    Ok(vec![Fact::of(Type::Sequence(Some(Box::new(map))))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    #[test]
    fn types() {
        let cast = |to: &'static str| Single::new("CastMap", 21).in_domain(DOMAIN).with_str("cast_to", to);
        assert_eq!(cast("TO_INT64").unranked(DType::Float).infer(), ["int64"]);
        assert_eq!(cast("TO_STRING").unranked(DType::Float).infer(), ["string"]);
        assert!(cast("TO_BOOL").unranked(DType::Float).infer()[0].starts_with("invalid"));
    }
}
