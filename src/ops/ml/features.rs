//! Feature preparation: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, OneHotEncoder, Scaler. All have
//! version 1.
//!
//! | operator | computes | not evaluated |
//! | --- | --- | --- |
//! | ArrayFeatureExtractor | gathers elements of the last axis at the given indices; a vector becomes one row | indices out of range |
//! | Binarizer | 1 if an element is above `threshold`, else 0 | NaN |
//! | FeatureVectorizer | the concatenated operands as floats, each truncated or zero-padded to its width of `inputdimensions` | |
//! | Imputer | replaces elements equal to `replaced_value…` by `imputed_value…`, one for all or one per feature | |
//! | Normalizer | each row divided by its maximum, by the sum of magnitudes (L1) or by the root of the sum of squares (L2), unless that is 0 | a maximum that is not the largest magnitude: runtimes disagree |
//! | OneHotEncoder | for each element a row with a 1 at its category; a row of zeros for unknown categories if `zeros` allows it | duplicate categories |
//! | Scaler | `(x − offset) · scale`, each one for all or one per feature | |

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::{DOMAIN, Observations, counted, numbers, singles};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Element, Number, Tensor, dispatch_numeric, product};

pub(super) const ARRAY_FEATURE_EXTRACTOR: Operator =
    Operator::new("ArrayFeatureExtractor", &[1], infer_extractor, eval_extractor).in_domain(DOMAIN);
pub(super) const BINARIZER: Operator = Operator::new("Binarizer", &[1], infer_same, eval_binarizer).in_domain(DOMAIN);
pub(super) const FEATURE_VECTORIZER: Operator =
    Operator::new("FeatureVectorizer", &[1], infer_vectorizer, eval_vectorizer).in_domain(DOMAIN);
pub(super) const IMPUTER: Operator = Operator::new("Imputer", &[1], infer_same, eval_imputer).in_domain(DOMAIN);
pub(super) const NORMALIZER: Operator =
    Operator::new("Normalizer", &[1], infer_floats, eval_normalizer).in_domain(DOMAIN);
pub(super) const ONE_HOT_ENCODER: Operator =
    Operator::new("OneHotEncoder", &[1], infer_one_hot, eval_one_hot).in_domain(DOMAIN);
pub(super) const SCALER: Operator = Operator::new("Scaler", &[1], infer_floats, eval_scaler).in_domain(DOMAIN);

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
        [] => return Err(Refusal::invalid("the operand 'X' is a scalar, and has no axis of features")),
        [_] => vec![Dim::constant(1)],
        [outer @ .., _] => outer.to_vec(),
    };
    shape.push(count.unwrap_or_else(|| cx.fresh_dim()));
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

/// Returns the elements of each row at these indices.
fn extracted<E: Clone>(elements: &[E], features: usize, indices: &[usize]) -> Vec<E> {
    let rows = elements.chunks_exact(features.max(1));
    rows.flat_map(|row| indices.iter().filter_map(|&index| row.get(index).cloned())).collect()
}

fn eval_extractor(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let (outer, features) = match data.shape() {
        [] => return Err(Decline::invalid("the operand 'X' is a scalar, and has no axis of features")),
        [features] => (&[1][..], *features),
        [outer @ .., features] => (outer, *features),
    };
    let indices = cx.ints(1)?.into_iter().map(|index| usize::try_from(index).ok().filter(|&index| index < features));
    let indices: Option<Vec<usize>> = indices.collect();
    let indices = indices.ok_or_else(|| Decline::invalid("an element of 'Y' is out of range"))?;
    let shape: Vec<usize> = outer.iter().copied().chain([indices.len()]).collect();
    cx.claim(data.dtype(), &shape)?;
    if let Some(strings) = data.strings() {
        return Ok(vec![Tensor::from_strings(&shape, extracted(strings, features, &indices))?.into()]);
    }
    dispatch_numeric!(data.dtype(), T => {
        let elements = data.elements::<T>().unwrap_or_default();
        Ok(vec![Tensor::from_vec(&shape, extracted(&elements, features, &indices))?.into()])
    }, else => Err(Decline::invalid(format!("the element type {} of 'X' is not supported", data.dtype()))))
}

fn eval_binarizer(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let threshold = f64::from(cx.attr_float("threshold")?.unwrap_or(0.0));
    cx.claim(data.dtype(), data.shape())?;
    if numbers(cx, data)?.iter().any(|value| value.is_nan()) {
        return Err(Decline::unsupported("'X' contains NaN, which runtimes compare with 'threshold' differently"));
    }
    dispatch_numeric!(data.dtype(), T => {
        let elements = data.elements::<T>().unwrap_or_default();
        let above = |&value: &T| if Number::to_f64(value) > threshold { <T as Number>::one() } else { <T as Number>::zero() };
        Ok(vec![Tensor::from_vec(data.shape(), elements.iter().map(above).collect())?.into()])
    }, else => Err(Decline::invalid(format!("'X' has type {}, which is not numeric", data.dtype()))))
}

fn infer_vectorizer(cx: &mut InferCx<'_>) -> InferResult {
    let widths = cx.attr_ints("inputdimensions")?.unwrap_or_default();
    let sum = widths.iter().try_fold(0i64, |sum, &width| sum.checked_add(width).filter(|_| width >= 0));
    if widths.len() > cx.input_count() || sum.is_none() {
        return Err(Refusal::invalid("attribute 'inputdimensions' does not fit the operands"));
    }
    let mut rows: Option<Dim> = None;
    for operand in 0..cx.input_count() {
        let found = match cx.shape(operand) {
            Some([_]) => Dim::constant(1),
            Some([rows, _]) => rows.clone(),
            Some(_) => return Err(Refusal::invalid("the rank of an operand is neither 1 nor 2")),
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

fn eval_vectorizer(cx: &mut EvalCx<'_>) -> EvalResult {
    let broken = || Decline::invalid("attribute 'inputdimensions' does not fit the operands");
    let widths = cx.attr_ints("inputdimensions")?.unwrap_or_default();
    let widths = widths.iter().map(|&width| usize::try_from(width).ok()).collect::<Option<Vec<usize>>>();
    let widths = widths.filter(|widths| widths.len() == cx.input_count()).ok_or_else(broken)?;
    let columns = widths.iter().try_fold(0usize, |sum, &width| sum.checked_add(width)).ok_or_else(broken)?;
    let mut rows = None;
    for operand in 0..cx.input_count() {
        let found = match *cx.tensor(operand)?.shape() {
            [_] => 1,
            [rows, _] => rows,
            _ => return Err(Decline::invalid("the rank of an operand is neither 1 nor 2")),
        };
        if rows.is_some_and(|rows| rows != found) {
            return Err(Decline::invalid("the operands have different numbers of rows"));
        }
        rows = Some(found);
    }
    let rows = rows.ok_or_else(|| Decline::invalid("the node has no operands"))?;
    let shape = [rows, columns];
    cx.claim(DType::Float, &shape)?;
    let mut result = vec![0f32; product(&shape).unwrap_or(0)];
    let mut offset = 0;
    for (operand, &width) in widths.iter().enumerate() {
        let tensor = cx.tensor(operand)?;
        let own = tensor.shape().last().copied().unwrap_or(0);
        let values = numbers(cx, tensor)?;
        if own > 0 && columns > 0 {
            for (to, from) in result.chunks_exact_mut(columns).zip(values.chunks_exact(own)) {
                let to = to.get_mut(offset..offset + width).unwrap_or_default();
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = from as f32);
            }
        }
        offset += width;
    }
    Ok(vec![Tensor::from_vec(&shape, result)?.into()])
}

/// An attribute that has one number for all features, or one per feature.
struct PerFeature<T>(Vec<T>);

impl<T: Copy> PerFeature<T> {
    fn new(values: Vec<T>, features: usize) -> Result<Self, Decline> {
        if values.len() == 1 || (values.len() == features && features > 0) {
            Ok(PerFeature(values))
        } else {
            Err(Decline::invalid(format!(
                "an attribute has {} elements, but 'X' has {features} features",
                values.len()
            )))
        }
    }

    /// Returns the number for an element.
    fn at(&self, element: usize) -> Option<T> {
        self.0.get(element % self.0.len().max(1)).copied()
    }
}

fn eval_imputer(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let features = *data
        .shape()
        .last()
        .ok_or_else(|| Decline::invalid("the operand 'X' is a scalar, and has no axis of features"))?;
    cx.claim(data.dtype(), data.shape())?;
    let beyond =
        || Decline::invalid("an element of 'imputed_value_floats' or 'imputed_value_int64s' has another type than 'X'");
    fn imputed<T: Element>(data: &Tensor, values: Vec<T>, features: usize, replaced: impl Fn(T) -> bool) -> EvalResult {
        let values = PerFeature::new(values, features)?;
        let elements = data.elements::<T>().unwrap_or_default();
        let imputed = |(at, &element): (usize, &T)| match values.at(at) {
            Some(value) if replaced(element) => value,
            _ => element,
        };
        Ok(vec![Tensor::from_vec(data.shape(), elements.iter().enumerate().map(imputed).collect())?.into()])
    }
    let single = cx.attr_float("replaced_value_float")?.unwrap_or(0.0);
    let whole = cx.attr_int("replaced_value_int64")?.unwrap_or(0);
    let floats = cx.attr_floats("imputed_value_floats")?.unwrap_or_default();
    let ints = cx.attr_ints("imputed_value_int64s")?.unwrap_or_default();
    match data.dtype() {
        DType::Float => {
            imputed::<f32>(data, floats.to_vec(), features, |x| x == single || (x.is_nan() && single.is_nan()))
        }
        DType::Double => {
            let wide = f64::from(single);
            let values = floats.iter().map(|&value| f64::from(value)).collect();
            imputed::<f64>(data, values, features, |x| x == wide || (x.is_nan() && wide.is_nan()))
        }
        DType::Int64 => imputed::<i64>(data, ints.to_vec(), features, |x| x == whole),
        DType::Int32 => {
            let values: Option<Vec<i32>> = ints.iter().map(|&value| i32::try_from(value).ok()).collect();
            imputed::<i32>(data, values.ok_or_else(beyond)?, features, |x| i64::from(x) == whole)
        }
        other => Err(Decline::invalid(format!("the element type {other} of 'X' is not supported"))),
    }
}

fn eval_normalizer(cx: &mut EvalCx<'_>) -> EvalResult {
    let mut data = Observations::of(cx)?;
    let norm = cx.attr_str("norm")?.unwrap_or("MAX");
    cx.claim(DType::Float, cx.tensor(0)?.shape())?;
    if data.values.iter().any(|value| !value.is_finite()) {
        return Err(Decline::unsupported(
            "a row of 'X' contains infinities or NaN, for which runtimes return different values",
        ));
    }
    for row in data.values.chunks_exact_mut(data.features.max(1)) {
        let magnitude = row.iter().fold(0f64, |most, x| most.max(x.abs()));
        let divisor = match norm {
            "MAX" => {
                let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if most != magnitude {
                    return Err(Decline::unsupported(
                        "attribute 'norm' is 'MAX' and 'X' contains negative elements: some runtimes divide by the maximum, and others by the maximal magnitude",
                    ));
                }
                most
            }
            "L1" => row.iter().map(|x| x.abs()).sum(),
            "L2" => row.iter().map(|x| x * x).sum::<f64>().sqrt(),
            other => return Err(Decline::invalid(format!("attribute 'norm' is '{other}', which is not defined"))),
        };
        if divisor != 0.0 {
            row.iter_mut().for_each(|x| *x /= divisor);
        }
    }
    Ok(vec![singles(cx.tensor(0)?.shape(), &data.values)?.into()])
}

/// Returns the number of categories.
fn categories(site: &Site<'_>) -> Result<usize, Refusal> {
    let (ints, strings) = (site.attr_ints("cats_int64s")?, site.attr_strings("cats_strings")?);
    match (ints.map_or(0, <[_]>::len), strings.map_or(0, <[_]>::len)) {
        (0, 0) => Err(Refusal::invalid("both 'cats_int64s' and 'cats_strings' are missing")),
        (count, 0) | (0, count) => Ok(count),
        _ => Err(Refusal::invalid("both 'cats_int64s' and 'cats_strings' are present")),
    }
}

fn infer_one_hot(cx: &mut InferCx<'_>) -> InferResult {
    let count = counted(categories(cx)?);
    let shape = cx.required(0)?.shape().map(|shape| shape.iter().cloned().chain([count]).collect());
    Ok(vec![Fact::tensor(Some(DType::Float), shape)])
}

/// Returns the category of each element.
fn positions<I: Eq + std::hash::Hash>(categories: &[I], elements: &[I]) -> Result<Vec<Option<usize>>, Decline> {
    let places: FxHashMap<&I, usize> = categories.iter().enumerate().map(|(at, category)| (category, at)).collect();
    if places.len() < categories.len() {
        return Err(Decline::unsupported("'cats_int64s' or 'cats_strings' contains a category twice"));
    }
    Ok(elements.iter().map(|element| places.get(element).copied()).collect())
}

fn eval_one_hot(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let count = categories(cx)?;
    let shape: Vec<usize> = data.shape().iter().copied().chain([count]).collect();
    cx.claim(DType::Float, &shape)?;
    cx.claim(DType::Complex128, data.shape())?;
    let found = match (data.strings(), cx.attr_strings("cats_strings")?.unwrap_or_default()) {
        (Some(strings), categories) if !categories.is_empty() => positions::<Bytes>(categories, strings)?,
        (None, []) => {
            let beyond = || Decline::unsupported("an element of 'X' is not an integer");
            let whole = |x: &f64| <i64 as Number>::from_f64(*x);
            let elements = match data.to_i64s() {
                Some(elements) => elements,
                None => numbers(cx, data)?.iter().map(whole).collect::<Option<Vec<i64>>>().ok_or_else(beyond)?,
            };
            positions(cx.attr_ints("cats_int64s")?.unwrap_or_default(), &elements)?
        }
        _ => return Err(Decline::invalid("the categories and 'X' have different types")),
    };
    if !cx.attr_flag("zeros", true)? && found.contains(&None) {
        return Err(Decline::invalid("an element of 'X' is not a category, and attribute 'zeros' is 0"));
    }
    let mut rows = vec![0f32; product(&shape).unwrap_or(0)];
    for (row, found) in rows.chunks_exact_mut(count).zip(found) {
        if let Some(place) = found.and_then(|at| row.get_mut(at)) {
            *place = 1.0;
        }
    }
    Ok(vec![Tensor::from_vec(&shape, rows)?.into()])
}

fn eval_scaler(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let features = *data
        .shape()
        .last()
        .ok_or_else(|| Decline::invalid("the operand 'X' is a scalar, and has no axis of features"))?;
    let (scale, offset) = (super::floats(cx, "scale")?, super::floats(cx, "offset")?);
    if scale.len() != offset.len() {
        return Err(Decline::invalid(format!(
            "'scale' has {} elements and 'offset' has {}, which does not fit 'X'",
            scale.len(),
            offset.len()
        )));
    }
    let scale = PerFeature::new(scale.into_owned(), features)?;
    let offset = PerFeature::new(offset.into_owned(), features)?;
    cx.claim(DType::Float, data.shape())?;
    let scaled = |(at, x): (usize, f64)| (x - offset.at(at).unwrap_or(0.0)) * scale.at(at).unwrap_or(1.0);
    let values: Vec<f64> = numbers(cx, data)?.into_iter().enumerate().map(scaled).collect();
    Ok(vec![singles(data.shape(), &values)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attribute;
    use crate::ops::single::Single;

    fn node(op: &str) -> Single {
        Single::new(op, 21).in_domain(DOMAIN)
    }

    fn floats(values: &[f32]) -> Attribute {
        Attribute::Floats(values.to_vec())
    }

    #[test]
    fn extraction() {
        let extract = |shape: &[usize], indices: &[i64]| {
            let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|at| at as f32).collect();
            node("ArrayFeatureExtractor").values(shape, &values).values(&[indices.len()], indices)
        };
        assert_eq!(extract(&[2, 5], &[1, 3]).floats(), [1.0, 3.0, 6.0, 8.0]);
        assert_eq!(extract(&[5], &[4]).eval().unwrap()[0].shape(), [1, 1]);
        assert!(extract(&[5], &[5]).eval().is_err());
        assert!(extract(&[5], &[-1]).eval().is_err());
        let infer = node("ArrayFeatureExtractor").input(DType::String, "N C");
        assert_eq!(infer.input(DType::Int64, "1 K").infer(), ["string[N, K]"]);
    }

    #[test]
    fn elements() {
        let binary = node("Binarizer").with_float("threshold", 1.5).values(&[3], &[1i32, 2, 3]);
        assert_eq!(binary.integers(), [0, 1, 1]);
        assert!(node("Binarizer").values(&[1], &[f32::NAN]).eval().is_err());
        let imputer = |replaced: f32| {
            let node = node("Imputer")
                .with("imputed_value_floats", floats(&[7.0]))
                .with_float("replaced_value_float", replaced);
            node.values(&[1, 3], &[0.0f32, f32::NAN, 2.0])
        };
        assert_eq!(imputer(f32::NAN).floats(), [0.0, 7.0, 2.0]);
        assert_eq!(imputer(2.0).floats()[2], 7.0);
        let ints = node("Imputer").with("imputed_value_int64s", vec![8, 9]).values(&[2, 2], &[0i64, 1, 2, 0]);
        assert_eq!(ints.integers(), [8, 1, 2, 9]);
        assert!(node("Imputer").with("imputed_value_int64s", vec![8, 9]).values(&[1, 3], &[0i64; 3]).eval().is_err());
        let scaler = node("Scaler").with("scale", floats(&[2.0, 3.0])).with("offset", floats(&[1.0, 1.0]));
        assert_eq!(scaler.values(&[1, 2], &[4i64, 5]).floats(), [6.0, 12.0]);
    }

    #[test]
    fn rows() {
        let normal = |norm: &'static str, row: &[f32]| node("Normalizer").with_str("norm", norm).values(&[1, 2], row);
        assert_eq!(normal("L2", &[3.0, -4.0]).floats(), [0.6f32, -0.8].map(f64::from));
        assert_eq!(normal("L1", &[1.0, -3.0]).floats(), [0.25, -0.75]);
        assert_eq!(normal("MAX", &[1.0, 4.0]).floats(), [0.25, 1.0]);
        assert_eq!(normal("L1", &[0.0, 0.0]).floats(), [0.0, 0.0]);
        assert!(normal("MAX", &[1.0, -4.0]).eval().is_err());
        let joined = node("FeatureVectorizer").with("inputdimensions", vec![1, 2]);
        assert_eq!(
            joined.values(&[2, 2], &[1i64, 2, 3, 4]).values(&[2, 1], &[5i64, 6]).floats(),
            [1.0, 5.0, 0.0, 3.0, 6.0, 0.0]
        );
        let infer = node("FeatureVectorizer").with("inputdimensions", vec![1, 2]);
        assert_eq!(infer.input(DType::Float, "N 1").input(DType::Float, "N 2").infer(), ["float[N, 3]"]);
    }

    #[test]
    fn categories_are_looked_up() {
        let encode = |zeros: i64| node("OneHotEncoder").with("cats_int64s", vec![1, -2]).with("zeros", zeros);
        assert_eq!(encode(1).values(&[3], &[1.9f32, -2.5, 0.0]).floats(), [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert!(encode(0).values(&[1], &[0i64]).eval().is_err());
        assert!(encode(1).values(&[1], &[f32::NAN]).eval().is_err());
        assert!(node("OneHotEncoder").with("cats_int64s", vec![1, 1]).values(&[1], &[1i64]).eval().is_err());
        assert_eq!(encode(1).input(DType::Int64, "N").infer(), ["float[N, 2]"]);
    }
}
