//! StringConcat, StringSplit, StringNormalizer.
//!
//! | operator | computes | versions |
//! | --- | --- | --- |
//! | StringConcat | concatenates the strings of both operands element by element; the operands broadcast | 20 |
//! | StringSplit | the pieces of each string between delimiters, at most `maxsplit + 1` of them, padded with empty strings on a new last axis; and their number. Without a delimiter, splits at runs of white space | 20 |
//! | StringNormalizer | a list of strings without `stopwords`, in one case; one empty string if all are removed | 10 |
//!
//! Not evaluated, because runtimes disagree: splits of empty strings by a delimiter; white space other than spaces; trailing spaces
//! if `maxsplit` ends the search; the case of letters beyond ASCII.

use std::borrow::Cow;

use bytes::Bytes;

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::broadcast::{Broadcast, broadcast_shapes};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::{DType, Tensor};

pub(super) const STRING_CONCAT: Operator = Operator::new("StringConcat", &[20], infer_concat, eval_concat);
pub(super) const STRING_SPLIT: Operator = Operator::new("StringSplit", &[20], infer_split, eval_split);
pub(super) const STRING_NORMALIZER: Operator =
    Operator::new("StringNormalizer", &[10], infer_normalizer, eval_normalizer);

/// Returns the elements of string operand `i`.
pub(super) fn strings<'c>(cx: &'c EvalCx<'_>, i: usize) -> Result<&'c [Bytes], Decline> {
    cx.tensor(i)?.strings().ok_or_else(|| Decline::invalid(format!("operand {i} is not a string tensor")))
}

/// Returns a string as UTF-8 text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Decline> {
    std::str::from_utf8(bytes).map_err(|_| Decline::unsupported("an element of the operand is not valid UTF-8"))
}

fn infer_concat(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.required(0)?.shape(), cx.required(1)?.shape()) {
        (Some(a), Some(b)) => Some(broadcast_shapes(cx.scope(), &[a, b])?),
        _ => None,
    };
    Ok(vec![Fact::tensor(Some(DType::String), shape)])
}

fn eval_concat(cx: &mut EvalCx<'_>) -> EvalResult {
    let (a, b) = (strings(cx, 0)?, strings(cx, 1)?);
    let way = Broadcast::new([cx.tensor(0)?.shape(), cx.tensor(1)?.shape()]);
    let way = way.ok_or_else(|| Decline::invalid("the operands do not broadcast"))?;
    cx.claim(DType::String, way.shape())?;
    let positions = way.positions();
    let pairs = || positions.iter().filter_map(|&[of_a, of_b]| a.get(of_a).zip(b.get(of_b)));
    let bytes = pairs().fold(0usize, |sum, (a, b)| sum.saturating_add(a.len()).saturating_add(b.len()));
    cx.budget().take_bytes(bytes)?;
    let joined = pairs().map(|(a, b)| match (a.is_empty(), b.is_empty()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => [a.as_ref(), b.as_ref()].concat().into(),
    });
    Ok(vec![Tensor::from_strings(way.shape(), joined.collect())?.into()])
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

/// Splits a string at delimiters.
fn pieces<'s>(string: &'s str, delimiter: &str, splits: usize) -> Result<Vec<&'s str>, Decline> {
    if !delimiter.is_empty() {
        if string.is_empty() {
            return Err(Decline::unsupported("an element is the empty string, which runtimes split differently"));
        }
        return Ok(string.splitn(splits.saturating_add(1), delimiter).collect());
    }
    // Python also treats the file, group, record and unit separators as white space.
    if string.chars().any(|c| c != ' ' && (c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))) {
        return Err(Decline::unsupported(
            "an element contains white space other than the blank, at which runtimes split differently",
        ));
    }
    let mut pieces = Vec::new();
    let mut rest = string.trim_start_matches(' ');
    while !rest.is_empty() {
        if pieces.len() == splits {
            if rest.ends_with(' ') {
                return Err(Decline::unsupported(
                    "an element ends with blanks, and 'maxsplit' is set: runtimes return different pieces",
                ));
            }
            pieces.push(rest);
            break;
        }
        let (piece, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        pieces.push(piece);
        rest = behind.trim_start_matches(' ');
    }
    Ok(pieces)
}

fn eval_split(cx: &mut EvalCx<'_>) -> EvalResult {
    let (elements, shape) = (strings(cx, 0)?, cx.tensor(0)?.shape());
    let delimiter = cx.attr_str("delimiter")?.unwrap_or_default();
    // A negative number means no limit.
    let splits = cx.attr_int("maxsplit")?.and_then(|splits| usize::try_from(splits).ok()).unwrap_or(usize::MAX);
    let bytes = elements.iter().fold(0u64, |sum, string| sum.saturating_add(string.len() as u64));
    cx.budget().take_work(bytes)?;
    let split = elements.iter().map(|string| pieces(text(string)?, delimiter, splits));
    let split = split.collect::<Result<Vec<Vec<&str>>, Decline>>()?;
    let most = split.iter().map(Vec::len).max().unwrap_or(0);
    let wide: Vec<usize> = shape.iter().copied().chain([most]).collect();
    cx.claim(DType::String, &wide)?;
    cx.claim(DType::Int64, shape)?;
    let mut all = Vec::with_capacity(split.len().saturating_mul(most));
    for (string, pieces) in elements.iter().zip(&split) {
        all.extend(pieces.iter().map(|piece| string.slice_ref(piece.as_bytes())));
        all.extend(std::iter::repeat_n(Bytes::new(), most - pieces.len()));
    }
    let counts = split.iter().map(|pieces| pieces.len() as i64).collect();
    Ok(vec![Tensor::from_strings(&wide, all)?.into(), Tensor::from_vec::<i64>(shape, counts)?.into()])
}

fn infer_normalizer(cx: &mut InferCx<'_>) -> InferResult {
    let removes = cx.attr_strings("stopwords")?.is_some_and(|words| !words.is_empty());
    let one = Dim::constant(1);
    let count = |dim: &Dim| {
        let some = cx.scope().ge(dim, &one).is_yes();
        if !removes && some {
            return dim.clone();
        }
        // If all strings are removed, one empty string remains.
        let count = cx.scope().fresh_within("words", Some(1), cx.scope().upper_bound(dim).map(|most| most.max(1)));
        if some {
            cx.scope().assume_le(&count, dim);
        }
        count
    };
    let shape = match cx.required(0)?.shape() {
        None => None,
        Some([dim]) => Some(vec![count(dim)]),
        Some([batch, dim]) if !cx.scope().eq(batch, &one).is_no() => Some(vec![one.clone(), count(dim)]),
        Some(_) => return Err(Refusal::invalid("the shape of 'X' is neither [C] nor [1, C]")),
    };
    Ok(vec![Fact::tensor(Some(DType::String), shape)])
}

/// The conversion of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Keep,
    Lower,
    Upper,
}

impl Case {
    fn apply(self, string: &str) -> Result<Cow<'_, str>, Decline> {
        if self == Case::Keep {
            return Ok(Cow::Borrowed(string));
        }
        let cased = |c: char| !c.is_ascii() && (c.to_lowercase().ne([c]) || c.to_uppercase().ne([c]));
        if string.chars().any(cased) {
            return Err(Decline::unsupported(
                "an element contains letters beyond ASCII, whose case depends on the locale",
            ));
        }
        Ok(Cow::Owned(if self == Case::Lower { string.to_ascii_lowercase() } else { string.to_ascii_uppercase() }))
    }
}

fn eval_normalizer(cx: &mut EvalCx<'_>) -> EvalResult {
    let (elements, shape) = (strings(cx, 0)?, cx.tensor(0)?.shape());
    if !matches!(shape, [_] | [1, _]) {
        return Err(Decline::invalid(format!("the strings have shape {shape:?} instead of rank 1")));
    }
    let case = match cx.attr_str("case_change_action")? {
        None | Some("NONE") => Case::Keep,
        Some("LOWER") => Case::Lower,
        Some("UPPER") => Case::Upper,
        Some(other) => return Err(Decline::invalid(format!("'case_change_action' is '{other}', which is not valid"))),
    };
    let folded = if cx.attr_flag("is_case_sensitive", false)? { Case::Keep } else { Case::Lower };
    let stopwords = cx.attr_strings("stopwords")?.unwrap_or_default();
    let stopwords = stopwords.iter().map(|word| folded.apply(text(word)?)).collect::<Result<Vec<_>, Decline>>()?;
    let bytes = elements.iter().fold(0usize, |sum, string| sum.saturating_add(string.len()));
    cx.claim(DType::String, &[elements.len().max(1)])?;
    cx.budget().take_bytes(bytes)?;
    cx.budget()
        .take_work((bytes as u64).saturating_add(elements.len() as u64).saturating_mul(stopwords.len() as u64 + 1))?;
    let mut kept: Vec<Bytes> = Vec::with_capacity(elements.len().max(1));
    for element in elements {
        let string = text(element)?;
        if stopwords.is_empty() || !stopwords.contains(&folded.apply(string)?) {
            kept.push(match case.apply(string)? {
                Cow::Borrowed(_) => element.clone(),
                Cow::Owned(changed) => changed.into(),
            });
        }
    }
    if kept.is_empty() {
        kept.push(Bytes::new());
    }
    let count = kept.len();
    let shape: &[usize] = if shape.len() == 1 { &[count] } else { &[1, count] };
    Ok(vec![Tensor::from_strings(shape, kept)?.into()])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use crate::ir::Attribute;
    use crate::ops::single::Single;
    use crate::tensor::{DType, Tensor};

    fn strings(shape: &[usize], strings: &[&'static str]) -> Tensor {
        Tensor::from_strings(shape, strings.iter().copied().map(Bytes::from).collect()).unwrap()
    }

    fn node(op: &str, tensor: Tensor) -> Single {
        Single::new(op, 20).constant(tensor)
    }

    fn words(words: &[&'static str]) -> Attribute {
        Attribute::Strings(words.iter().copied().map(Bytes::from).collect())
    }

    #[test]
    fn concat() {
        let joined = node("StringConcat", strings(&[2, 1], &["a", ""])).constant(strings(&[2], &["x", "é"]));
        assert!(joined.eval().unwrap()[0].same(&strings(&[2, 2], &["ax", "aé", "x", "é"])));
        let node = Single::new("StringConcat", 20).input(DType::String, "A 1").input(DType::String, "3");
        assert_eq!(node.infer(), ["string[A, 3]"]);
        assert!(self::node("StringConcat", strings(&[2], &["", ""])).values(&[2], &[1f32, 2.0]).eval().is_err());
    }

    #[test]
    fn split() {
        let split = |shape: &[usize], elements: &[&'static str]| node("StringSplit", strings(shape, elements)).output();
        let found = split(&[2], &["a,b,,c", "d"]).with_str("delimiter", ",").eval().unwrap();
        assert!(found[0].same(&strings(&[2, 4], &["a", "b", "", "c", "d", "", "", ""])));
        assert_eq!(found[1].to_i64s().unwrap(), [4, 1]);
        let found = split(&[1], &["  a  b c"]).with("maxsplit", 1).eval().unwrap();
        assert!(found[0].same(&strings(&[1, 2], &["a", "b c"])));
        let found = split(&[2, 0], &[]).eval().unwrap();
        assert_eq!((found[0].shape(), found[1].shape()), (&[2usize, 0, 0][..], &[2usize, 0][..]));
        let found = split(&[], &["   "]).eval().unwrap();
        assert_eq!((found[0].shape(), found[1].to_i64s().unwrap()), (&[0usize][..], vec![0]));
        assert!(split(&[1], &["a\tb"]).eval().is_err());
        assert!(split(&[1], &["a "]).with("maxsplit", 0).eval().is_err());
        assert!(split(&[1], &[""]).with_str("delimiter", "-").eval().is_err());
        assert_eq!(
            Single::new("StringSplit", 20).output().input(DType::String, "A").infer(),
            ["string[A, ?]", "int64[A]"]
        );
    }

    #[test]
    fn normalizer() {
        let list = || node("StringNormalizer", strings(&[3], &["Mon", "tue", "WED"]));
        let stop = |stopwords: &[&'static str]| list().with("stopwords", words(stopwords));
        let same = |node: Single, expected: &[&'static str]| {
            assert!(node.eval().unwrap()[0].same(&strings(&[expected.len()], expected)));
        };
        same(list(), &["Mon", "tue", "WED"]);
        same(list().with_str("case_change_action", "UPPER"), &["MON", "TUE", "WED"]);
        same(stop(&["mon"]).with_str("case_change_action", "LOWER"), &["tue", "wed"]);
        same(stop(&["mon", "tue"]).with("is_case_sensitive", 1), &["Mon", "WED"]);
        same(stop(&["mon", "tue", "wed"]), &[""]);
        assert!(
            node("StringNormalizer", strings(&[1], &["É"])).with_str("case_change_action", "LOWER").eval().is_err()
        );
        assert!(node("StringNormalizer", strings(&[2, 1], &["a", "b"])).eval().is_err());
        let infer = |shape: &str| Single::new("StringNormalizer", 10).input(DType::String, shape);
        assert_eq!(infer("1 5").infer(), ["string[1, 5]"]);
        assert_eq!(infer("1 C").infer(), ["string[1, ?]"]);
        assert_eq!(infer("5").with("stopwords", words(&["a"])).infer(), ["string[?]"]);
        assert!(infer("2 5").infer()[0].starts_with("invalid"));
    }
}
