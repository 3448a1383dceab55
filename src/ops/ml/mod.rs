//! The operators of domain `ai.onnx.ml`: classical machine learning.
//!
//! | file | operators |
//! | --- | --- |
//! | [`features`] | ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, OneHotEncoder, Scaler |
//! | [`mod@labels`] | CategoryMapper, LabelEncoder |
//! | [`maps`] | CastMap, DictVectorizer, ZipMap |
//! | [`linear`] | LinearClassifier, LinearRegressor |
//! | [`svm`] | SVMClassifier, SVMRegressor |
//! | [`trees`], [`ensemble`] | TreeEnsembleClassifier, TreeEnsembleRegressor; TreeEnsemble |
//!
//! [`scores`] is shared by classifiers and regressors; [`forest`] traverses trees. The standard underspecifies many of these
//! operators, so only cases that it defines and runtimes agree on are evaluated.

mod ensemble;
mod features;
mod forest;
mod labels;
mod linear;
mod maps;
mod scores;
mod svm;
mod trees;

use std::borrow::Cow;

use super::{Decline, EvalCx, InferCx, Operator, Refusal, Site};
use crate::dim::Dim;
use crate::tensor::{DType, Tensor};

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
    ensemble::TREE_ENSEMBLE,
    trees::TREE_ENSEMBLE_CLASSIFIER,
    trees::TREE_ENSEMBLE_REGRESSOR,
];

/// Returns the number of observations in the first operand, of shape `[N, F]` or `[F]`.
fn observations(cx: &InferCx<'_>) -> Dim {
    match cx.shape(0) {
        Some([batch, _]) => batch.clone(),
        Some([_]) => Dim::constant(1),
        _ => cx.fresh_dim(),
    }
}

/// Returns the type and number of a classifier's classes. `ints` names the attribute of integer classes.
fn classes(site: &Site<'_>, ints: &str) -> Result<(DType, usize), Refusal> {
    let strings = site.attr_strings("classlabels_strings")?.unwrap_or_default();
    let ints = site.attr_ints(ints)?.unwrap_or_default();
    Ok(if strings.is_empty() { (DType::Int64, ints.len()) } else { (DType::String, strings.len()) })
}

/// Returns the labels of these classes. `ints` names the attribute of integer classes.
fn labels(site: &Site<'_>, ints: &str, chosen: &[usize]) -> Result<Tensor, Decline> {
    let shape = [chosen.len()];
    let missing = || Decline::invalid("the number of class labels is less than the number of classes");
    let strings = site.attr_strings("classlabels_strings")?.unwrap_or_default();
    if !strings.is_empty() {
        let labels = chosen.iter().map(|&class| strings.get(class).cloned().ok_or_else(missing));
        return Ok(Tensor::from_strings(&shape, labels.collect::<Result<_, _>>()?)?);
    }
    let ints = site.attr_ints(ints)?.unwrap_or_default();
    let labels = chosen.iter().map(|&class| ints.get(class).copied().ok_or_else(missing));
    Ok(Tensor::from_vec::<i64>(&shape, labels.collect::<Result<_, _>>()?)?)
}

/// Returns a number as a dim.
fn counted(count: usize) -> Dim {
    Dim::constant(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The first operand as rows of numbers.
struct Observations {
    rows: usize,
    features: usize,
    /// The values, row by row.
    values: Vec<f64>,
}

impl Observations {
    /// # Errors
    /// The operand is not a matrix or vector of numbers, or is too large.
    fn of(cx: &EvalCx<'_>) -> Result<Observations, Decline> {
        let data = cx.tensor(0)?;
        let (rows, features) = match *data.shape() {
            [rows, features] => (rows, features),
            [features] => (1, features),
            _ => return Err(Decline::invalid(format!("'X' has shape {:?} instead of rank 1 or 2", data.shape()))),
        };
        Ok(Observations { rows, features, values: numbers(cx, data)? })
    }

    fn each(&self) -> impl Iterator<Item = &[f64]> {
        // A row without features still counts as a row.
        (0..self.rows).map(|row| {
            let start = row * self.features;
            self.values.get(start..start + self.features).unwrap_or_default()
        })
    }
}

/// Returns the elements of a numeric tensor. Claims their memory.
fn numbers(cx: &EvalCx<'_>, tensor: &Tensor) -> Result<Vec<f64>, Decline> {
    cx.claim(DType::Double, tensor.shape())?;
    cx.budget().take_work(tensor.len() as u64)?;
    tensor.to_f64s().ok_or_else(|| Decline::invalid(format!("'X' has type {}, which is not numeric", tensor.dtype())))
}

/// Returns the numbers of FLOATS attribute `name`, or of the TENSOR attribute that replaces it.
fn floats<'s>(site: &Site<'s>, name: &str) -> Result<Cow<'s, [f64]>, Refusal> {
    if let Some(values) = site.attr_floats(name)? {
        return Ok(values.iter().map(|&value| f64::from(value)).collect());
    }
    match site.attr_tensor(&format!("{name}_as_tensor"))? {
        None => Ok(Cow::Borrowed(&[])),
        Some(tensor) => tensor
            .to_f64s()
            .map(Cow::Owned)
            .ok_or_else(|| Refusal::invalid(format!("attribute '{name}_as_tensor' has no numeric type"))),
    }
}

/// Builds a tensor of floats, each rounded once. The caller must have claimed its memory.
fn singles(shape: &[usize], values: &[f64]) -> Result<Tensor, Decline> {
    Ok(Tensor::from_vec(shape, values.iter().map(|&value| value as f32).collect())?)
}
