//! The operators of domain `ai.onnx.ml`: classical machine learning.
//!
//! | file | operators |
//! | --- | --- |
//! | [`features`] | ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, OneHotEncoder, Scaler |
//! | [`labels`] | CategoryMapper, LabelEncoder |
//! | [`maps`] | CastMap, DictVectorizer, ZipMap |
//! | [`linear`] | LinearClassifier, LinearRegressor |
//! | [`svm`] | SVMClassifier, SVMRegressor |
//! | [`trees`] | TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor |

mod features;
mod labels;
mod linear;
mod maps;
mod svm;
mod trees;

use super::{InferCx, Operator, Refusal, Site};
use crate::dim::Dim;
use crate::tensor::DType;

const DOMAIN: &str = "ai.onnx.ml";

pub(super) const OPERATORS: &[Operator] = &[
    features::ARRAY_FEATURE_EXTRACTOR,
    features::BINARIZER,
    features::FEATURE_VECTORIZER,
    features::IMPUTER,
    features::NORMALIZER,
    features::ONE_HOT_ENCODER,
    features::SCALER,
    labels::CATEGORY_MAPPER,
    labels::LABEL_ENCODER,
    linear::LINEAR_CLASSIFIER,
    linear::LINEAR_REGRESSOR,
    maps::CAST_MAP,
    maps::DICT_VECTORIZER,
    maps::ZIP_MAP,
    svm::SVM_CLASSIFIER,
    svm::SVM_REGRESSOR,
    trees::TREE_ENSEMBLE,
    trees::TREE_ENSEMBLE_CLASSIFIER,
    trees::TREE_ENSEMBLE_REGRESSOR,
];

/// How many observations the first operand, of shape `[N, F]` or `[F]`, has.
fn observations(cx: &InferCx<'_>) -> Dim {
    match cx.shape(0) {
        Some([batch, _]) => batch.clone(),
        Some([_]) => Dim::constant(1),
        _ => cx.fresh_dim(),
    }
}

/// The type of the classes a classifier tells apart, and how many there are. `ints` is the attribute of integer classes.
fn classes(site: &Site<'_>, ints: &str) -> Result<(DType, usize), Refusal> {
    let strings = site.attr_strings("classlabels_strings")?.unwrap_or_default();
    let ints = site.attr_ints(ints)?.unwrap_or_default();
    Ok(if strings.is_empty() { (DType::Int64, ints.len()) } else { (DType::String, strings.len()) })
}

/// A number of things as a dim.
fn counted(count: usize) -> Dim {
    Dim::constant(i64::try_from(count).unwrap_or(i64::MAX))
}
