//! CategoryMapper and LabelEncoder: map elements through a list.
//!
//! | operator | computes | versions |
//! | --- | --- | --- |
//! | CategoryMapper | maps strings to integers through two parallel lists, or back | 1 |
//! | LabelEncoder | the same, with integers as positions in `classes_strings`; from 2 on `keys…` to `values…` of any type | 1; 2; 4 adds tensors and more types, NaN matches NaN, the last of equal keys wins |
//!
//! Unlisted elements become a default. Not evaluated: keys listed with different values. Version 2 compares NaN and signed zeros by
//! their bits, runtimes do not, so these are not evaluated either.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::DOMAIN;
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor, dispatch_numeric};

pub(super) const CATEGORY_MAPPER: Operator =
    Operator::new("CategoryMapper", &[1], infer_mapper, eval_mapper).in_domain(DOMAIN);
pub(super) const LABEL_ENCODER: Operator =
    Operator::new("LabelEncoder", &[1, 2, 4], infer_encoder, eval_encoder).in_domain(DOMAIN);

/// Returns the result type: strings become integers, and integers strings.
fn swapped(dtype: DType) -> Result<DType, Refusal> {
    match dtype {
        DType::String => Ok(DType::Int64),
        DType::Int64 => Ok(DType::String),
        other => Err(Refusal::invalid(format!("'X' has type {other}, which is not supported"))),
    }
}

fn infer_swapped(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype().map(swapped).transpose()?;
    Ok(vec![Fact::tensor(dtype, data.shape().map(<[Dim]>::to_vec))])
}

fn infer_mapper(cx: &mut InferCx<'_>) -> InferResult {
    let (strings, ints) = (cx.attr_strings("cats_strings")?, cx.attr_ints("cats_int64s")?);
    are_parallel(strings.map(<[_]>::len), ints.map(<[_]>::len), ["cats_strings", "cats_int64s"])?;
    infer_swapped(cx)
}

fn infer_encoder(cx: &mut InferCx<'_>) -> InferResult {
    if cx.version < 2 {
        return infer_swapped(cx);
    }
    let shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    let (keys, values) = (listed(cx, "keys")?, listed(cx, "values")?);
    are_parallel(keys.as_ref().map(Tensor::len), values.as_ref().map(Tensor::len), ["keys", "values"])?;
    let values = values.ok_or_else(|| {
        Refusal::invalid("all of 'values_int64s', 'values_strings', 'values_floats' and 'values_tensor' are missing")
    })?;
    if let Some(default) = cx.attr_tensor("default_tensor")?.filter(|_| cx.version >= 4) {
        let (own, of_values) = (default.dtype(), values.dtype());
        if own != of_values || default.len() != 1 {
            let count = default.len();
            return Err(Refusal::invalid(format!(
                "attribute 'default_tensor' has {count} elements of type {own} instead of one element of type {of_values}"
            )));
        }
    }
    Ok(vec![Fact::tensor(Some(values.dtype()), shape)])
}

/// Checks that two lists, given by their lengths, are both present and equally long.
fn are_parallel(first: Option<usize>, second: Option<usize>, names: [&str; 2]) -> Result<(), Refusal> {
    let [left, right] = names;
    match (first, second) {
        (Some(first), Some(second)) if first == second => Ok(()),
        (Some(first), Some(second)) => Err(Refusal::invalid(format!(
            "attribute '{left}' has {first} elements, but '{right}' has {second}: the lengths must be equal"
        ))),
        _ => Err(Refusal::invalid(format!("one of the attributes '{left}' and '{right}' is missing"))),
    }
}

/// Returns the vector in attribute `<name>_strings`, `<name>_int64s`, `<name>_floats` or `<name>_tensor`.
fn listed(site: &Site<'_>, name: &str) -> Result<Option<Tensor>, Refusal> {
    if let Some(tensor) = site.attr_tensor(&format!("{name}_tensor"))?.filter(|_| site.version >= 4) {
        return Ok(Some(tensor.reshape(&[tensor.len()])?));
    }
    if let Some(strings) = site.attr_strings(&format!("{name}_strings"))? {
        return Ok(Some(Tensor::from_strings(&[strings.len()], strings.to_vec())?));
    }
    if let Some(ints) = site.attr_ints(&format!("{name}_int64s"))? {
        return Ok(Some(Tensor::vector(ints.to_vec())));
    }
    Ok(site.attr_floats(&format!("{name}_floats"))?.map(|floats| Tensor::vector(floats.to_vec())))
}

/// Returns the value for unlisted elements.
fn default(site: &Site<'_>, dtype: DType) -> Result<Tensor, Decline> {
    if let Some(tensor) = site.attr_tensor("default_tensor")?.filter(|_| site.version >= 4) {
        if tensor.dtype() != dtype || tensor.len() != 1 {
            return Err(Decline::invalid("attribute 'default_tensor' has not one element"));
        }
        return Ok(tensor.reshape(&[])?);
    }
    let whole = site.attr_int("default_int64")?.unwrap_or(-1);
    Ok(match dtype {
        DType::String => {
            let string = site.attr_bytes("default_string")?.unwrap_or(b"_Unused");
            Tensor::from_strings(&[], vec![Bytes::copy_from_slice(string)])?
        }
        DType::Int64 => Tensor::scalar(whole),
        DType::Float => Tensor::scalar(site.attr_float("default_float")?.unwrap_or(-0.0)),
        DType::Double => Tensor::scalar(-0f64),
        DType::Int32 => Tensor::scalar(-1i32),
        DType::Int16 => Tensor::scalar(-1i16),
        other => return Err(Decline::invalid(format!("{other} is not a supported type of labels"))),
    })
}

/// Converts the elements to keys that are equal if the elements match.
fn keys(tensor: &Tensor) -> Result<Vec<Key>, Decline> {
    if let Some(strings) = tensor.strings() {
        return Ok(strings.iter().cloned().map(Key::String).collect());
    }
    if let Some(ints) = tensor.to_i64s() {
        return Ok(ints.into_iter().map(Key::Int).collect());
    }
    let floats = tensor
        .to_f64s()
        .ok_or_else(|| Decline::invalid(format!("{} is not a supported type of keys", tensor.dtype())))?;
    // Adding 0 converts −0 to 0.
    let bits = |float: f64| if float.is_nan() { f64::NAN.to_bits() } else { (float + 0.0).to_bits() };
    Ok(floats.into_iter().map(|float| Key::Float(bits(float))).collect())
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    String(Bytes),
    Int(i64),
    Float(u64),
}

impl Key {
    /// Returns `true` if several bit patterns are equal to this key.
    fn is_ambiguous(&self) -> bool {
        matches!(self, Key::Float(bits) if f64::from_bits(*bits).is_nan() || f64::from_bits(*bits) == 0.0)
    }
}

/// Replaces each element of a tensor by the value listed for it.
fn mapped(cx: &EvalCx<'_>, list: &Tensor, values: &Tensor, default: &Tensor) -> EvalResult {
    let data = cx.tensor(0)?;
    if list.dtype() != data.dtype() || list.len() != values.len() || values.dtype() != default.dtype() {
        return Err(Decline::invalid(
            "the types of the 'keys_…' and 'values_…' attributes do not fit the types of 'X' and 'Y'",
        ));
    }
    let cells = data.len().saturating_add(list.len());
    cx.claim(values.dtype(), data.shape())?;
    cx.claim(DType::Complex128, &[cells.saturating_mul(2)])?;
    cx.budget().take_work(cells as u64)?;
    let value_keys = keys(values)?;
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    for (at, key) in keys(list)?.into_iter().enumerate() {
        if let Some(before) = places.insert(key, at)
            && value_keys.get(before) != value_keys.get(at)
        {
            return Err(Decline::unsupported("the 'keys_…' attribute contains a key twice, with different values"));
        }
    }
    let elements = keys(data)?;
    if cx.version == 2 && elements.iter().any(|element| element.is_ambiguous() && places.contains_key(element)) {
        return Err(Decline::unsupported(
            "'X' contains NaN or zeros of both signs, which version 2 of the operator does not compare uniquely with keys",
        ));
    }
    let found: Vec<Option<usize>> = elements.iter().map(|element| places.get(element).copied()).collect();
    fn chosen<E: Clone>(values: &[E], default: &[E], found: &[Option<usize>]) -> Vec<E> {
        found.iter().filter_map(|at| at.map_or(default.first(), |at| values.get(at)).cloned()).collect()
    }
    if let (Some(values), Some(default)) = (values.strings(), default.strings()) {
        return Ok(vec![Tensor::from_strings(data.shape(), chosen(values, default, &found))?.into()]);
    }
    dispatch_numeric!(values.dtype(), T => {
        let (values, default) = (values.elements::<T>().unwrap_or_default(), default.elements::<T>().unwrap_or_default());
        Ok(vec![Tensor::from_vec(data.shape(), chosen(&values, &default, &found))?.into()])
    }, else => Err(Decline::invalid(format!("{} is not a supported type of labels", values.dtype()))))
}

fn eval_mapper(cx: &mut EvalCx<'_>) -> EvalResult {
    let strings = cx.attr_strings("cats_strings")?.unwrap_or_default();
    let strings = Tensor::from_strings(&[strings.len()], strings.to_vec())?;
    let ints = Tensor::vector(cx.attr_ints("cats_int64s")?.unwrap_or_default().to_vec());
    map_either_way(cx, &strings, &ints)
}

/// Maps strings to integers, or integers to strings.
fn map_either_way(cx: &EvalCx<'_>, strings: &Tensor, ints: &Tensor) -> EvalResult {
    let dtype = swapped(cx.tensor(0)?.dtype())?;
    let default = default(cx, dtype)?;
    if dtype == DType::Int64 { mapped(cx, strings, ints, &default) } else { mapped(cx, ints, strings, &default) }
}

fn eval_encoder(cx: &mut EvalCx<'_>) -> EvalResult {
    if cx.version < 2 {
        let strings = cx.attr_strings("classes_strings")?.unwrap_or_default();
        let ints = Tensor::vector((0..strings.len() as i64).collect());
        return map_either_way(cx, &Tensor::from_strings(&[strings.len()], strings.to_vec())?, &ints);
    }
    let (list, values) = (listed(cx, "keys")?, listed(cx, "values")?);
    let (list, values) =
        list.zip(values).ok_or_else(|| Decline::invalid("the 'keys_…' or 'values_…' attribute is missing"))?;
    let default = default(cx, values.dtype())?;
    mapped(cx, &list, &values, &default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attribute;
    use crate::ops::single::Single;

    fn node(op: &str, version: i64) -> Single {
        Single::new(op, 21).in_domain_at(DOMAIN, version)
    }

    fn strings(strings: &[&'static str]) -> Tensor {
        Tensor::from_strings(&[strings.len()], strings.iter().copied().map(Bytes::from).collect()).unwrap()
    }

    fn words(words: &[&'static str]) -> Attribute {
        Attribute::Strings(words.iter().copied().map(Bytes::from).collect())
    }

    #[test]
    fn both_ways() {
        let mapper =
            || node("CategoryMapper", 1).with("cats_strings", words(&["a", "b"])).with("cats_int64s", vec![5, 6]);
        assert_eq!(mapper().constant(strings(&["b", "z"])).integers(), [6, -1]);
        assert!(mapper().values(&[2], &[5i64, 0]).eval().unwrap()[0].same(&strings(&["a", "_Unused"])));
        let encoder = || node("LabelEncoder", 1).with("classes_strings", words(&["a", "b"])).with("default_int64", 9);
        assert_eq!(encoder().constant(strings(&["b", "z"])).integers(), [1, 9]);
        assert!(encoder().values(&[2], &[0i64, 2]).eval().unwrap()[0].same(&strings(&["a", "_Unused"])));
        assert_eq!(mapper().input(DType::String, "N").infer(), ["int64[N]"]);
        assert!(mapper().input(DType::Float, "N").infer()[0].starts_with("invalid"));
    }

    #[test]
    fn any_type_to_any() {
        let encoder = |version: i64| {
            node("LabelEncoder", version)
                .with("keys_floats", Attribute::Floats(vec![f32::NAN, 0.0, 1.0]))
                .with("values_int64s", vec![1, 2, 3])
        };
        assert_eq!(encoder(4).values(&[4], &[f32::NAN, -0.0, 1.0, 7.0]).integers(), [1, 2, 3, -1]);
        assert_eq!(encoder(2).values(&[2], &[1f32, 7.0]).integers(), [3, -1]);
        assert!(encoder(2).values(&[1], &[f32::NAN]).eval().is_err());
        assert!(encoder(4).values(&[1], &[1f64]).eval().is_err());
        let tensors = node("LabelEncoder", 4)
            .with("keys_tensor", Tensor::vector(vec![1i16]))
            .with("values_tensor", Tensor::vector(vec![1.5f64]))
            .with("default_tensor", Tensor::vector(vec![2.5f64]));
        assert_eq!(tensors.values(&[2], &[1i16, 2]).floats(), [1.5, 2.5]);
        let twice =
            |values: Vec<i64>| node("LabelEncoder", 4).with("keys_int64s", vec![1, 1]).with("values_int64s", values);
        assert!(twice(vec![1, 2]).values(&[1], &[1i64]).eval().is_err());
        assert_eq!(twice(vec![2, 2]).values(&[1], &[1i64]).integers(), [2]);
        assert_eq!(twice(vec![2, 2]).input(DType::Int64, "A B").infer(), ["int64[A, B]"]);
    }

    #[test]
    fn mismatched_lists() {
        let is_refused = |node: Single| node.input(DType::Int64, "N").infer()[0].starts_with("invalid");
        let mapper = |names: &[&'static str]| node("CategoryMapper", 1).with("cats_strings", words(names));
        assert!(!is_refused(mapper(&["a", "b"]).with("cats_int64s", vec![5, 6])));
        assert!(is_refused(mapper(&["a"]).with("cats_int64s", vec![5, 6])));
        assert!(is_refused(mapper(&["a"])) && is_refused(node("CategoryMapper", 1)));
        let encoder = |values: Vec<i64>| {
            node("LabelEncoder", 4)
                .with("keys_tensor", Tensor::vector(vec![1i64, 2]))
                .with("values_tensor", Tensor::vector(values))
        };
        let default = |value: Tensor| encoder(vec![3, 4]).with("default_tensor", value);
        assert!(!is_refused(encoder(vec![3, 4])) && is_refused(encoder(vec![3])));
        assert!(!is_refused(default(Tensor::vector(vec![0i64]))));
        assert!(is_refused(default(Tensor::vector(vec![0i32]))));
        assert!(is_refused(default(Tensor::vector(vec![0i64, 1]))));
    }
}
