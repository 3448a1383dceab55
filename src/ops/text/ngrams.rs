//! TfIdfVectorizer: counts sequences of known items.
//!
//! | | |
//! |---|---|
//! | computes | the number of occurrences of each n-gram in the pool, with items `1`, `2`, … `max_skip_count + 1` apart; single items count once. `TF` returns counts, `IDF` weights of n-grams that occur, `TFIDF` weighted counts |
//! | pool | all n-grams of one item, then of two, and so on: those of `n` items begin at `ngram_counts[n − 1]`; n-gram `i` is counted at `ngram_indexes[i]` |
//! | shapes | `[C]` to `[max + 1]`, `[N, C]` to `[N, max + 1]`, where `max` is the largest index |
//! | versions | 9 |
//! | not evaluated | weights together with indexes other than 0, 1, 2, …: runtimes disagree on the assignment of weights |

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

pub(super) const TF_IDF_VECTORIZER: Operator = Operator::new("TfIdfVectorizer", &[9], infer, eval);

/// Returns the number of coordinates of a result: the largest index plus 1.
fn width(site: &Site<'_>) -> Result<i64, Refusal> {
    let indexes = site.attr_ints("ngram_indexes")?.unwrap_or_default();
    let most = indexes.iter().max().ok_or_else(|| Refusal::invalid("attribute 'ngram_indexes' is missing"))?;
    match most.checked_add(1) {
        Some(width) if indexes.iter().all(|&index| index >= 0) => Ok(width),
        _ => Err(Refusal::invalid("an element of attribute 'ngram_indexes' is out of range")),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let width = Dim::constant(width(cx)?);
    let shape = match cx.required(0)?.shape() {
        None => None,
        Some([] | [_]) => Some(vec![width]),
        Some([batch, _]) => Some(vec![batch.clone(), width]),
        Some(shape) => {
            return Err(Refusal::invalid(format!("the rank of the operand is {} instead of 1 or 2", shape.len())));
        }
    };
    Ok(vec![Fact::tensor(Some(DType::Float), shape)])
}

/// The transform of counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Count,
    Presence,
    Weighted,
}

/// The pool: the coordinate of each n-gram.
struct Pool<I> {
    /// By length: item sequences and their coordinates.
    grams: Vec<FxHashMap<Vec<I>, usize>>,
    shortest: usize,
    longest: usize,
    skips: usize,
}

impl<I: Clone + Eq + std::hash::Hash> Pool<I> {
    fn of(site: &Site<'_>, items: &[I]) -> Result<Pool<I>, Decline> {
        let required = |name: &str| -> Result<usize, Decline> {
            let value = site.attr_int(name)?.and_then(|value| usize::try_from(value).ok());
            value.ok_or_else(|| Decline::invalid(format!("attribute '{name}' is missing or negative")))
        };
        let (shortest, longest) = (required("min_gram_length")?, required("max_gram_length")?);
        let skips = required("max_skip_count")?;
        let starts = site.attr_ints("ngram_counts")?.unwrap_or_default();
        let indexes = site.attr_ints("ngram_indexes")?.unwrap_or_default();
        if shortest == 0 || longest < shortest || longest > starts.len() {
            return Err(Decline::invalid(format!(
                "'min_gram_length' is {shortest} and 'max_gram_length' is {longest}"
            )));
        }
        let broken = || Decline::invalid("attribute 'ngram_counts' does not fit the length of the pool");
        let bound = |at: usize| match starts.get(at) {
            Some(&start) => usize::try_from(start).ok().filter(|&start| start <= items.len()),
            None => Some(items.len()),
        };
        let mut number = 0;
        let mut grams = Vec::new();
        for length in 1..=starts.len() {
            let (start, end) = bound(length - 1).zip(bound(length)).ok_or_else(broken)?;
            let own = items.get(start..end).ok_or_else(broken)?;
            if own.len() % length != 0 {
                return Err(broken());
            }
            let mut places = FxHashMap::default();
            for gram in own.chunks_exact(length) {
                let index = indexes.get(number).and_then(|&index| usize::try_from(index).ok());
                // A repeated n-gram is counted at its last index.
                places.insert(
                    gram.to_vec(),
                    index.ok_or_else(|| {
                        Decline::invalid("attribute 'ngram_indexes' has no element for an n-gram of the pool")
                    })?,
                );
                number += 1;
            }
            grams.push(places);
        }
        Ok(Pool { grams, shortest, longest, skips })
    }

    /// Counts the n-grams of a row.
    fn count(&self, row: &[I], counts: &mut [u64]) {
        let mut gram = Vec::new();
        for length in self.shortest..=self.longest {
            let Some(places) = length.checked_sub(1).and_then(|at| self.grams.get(at)).filter(|p| !p.is_empty()) else {
                continue;
            };
            let distances = if length == 1 { 1 } else { self.skips.saturating_add(1).min(row.len()) };
            for distance in 1..=distances {
                for start in 0..row.len() {
                    gram.clear();
                    gram.extend(row.iter().skip(start).step_by(distance).take(length).cloned());
                    if gram.len() < length {
                        break;
                    }
                    if let Some(count) = places.get(&gram).and_then(|&place| counts.get_mut(place)) {
                        *count += 1;
                    }
                }
            }
        }
    }

    /// Returns the number of comparisons for a row.
    fn work(&self, row: usize) -> u64 {
        let distances = (self.skips as u64).saturating_add(1).min(row as u64 + 1);
        let lengths = (self.longest as u64).saturating_mul(self.longest as u64);
        (row as u64).saturating_mul(distances).saturating_mul(lengths)
    }
}

fn counted<I: Clone + Eq + std::hash::Hash>(
    cx: &EvalCx<'_>,
    pool: &[I],
    items: &[I],
    row: usize,
    width: usize,
) -> Result<Vec<u64>, Decline> {
    let pool = Pool::of(cx, pool)?;
    let rows = items.len().checked_div(row).unwrap_or(0);
    cx.budget().take_work(pool.work(row).saturating_mul(rows as u64))?;
    let mut counts = vec![0; rows.saturating_mul(width)];
    if row > 0 {
        for (items, counts) in items.chunks_exact(row).zip(counts.chunks_exact_mut(width)) {
            pool.count(items, counts);
        }
    }
    Ok(counts)
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let width = usize::try_from(width(cx)?).unwrap_or(usize::MAX);
    let mode = match cx.attr_str("mode")? {
        Some("TF") => Mode::Count,
        Some("IDF") => Mode::Presence,
        Some("TFIDF") => Mode::Weighted,
        other => {
            return Err(Decline::invalid(format!(
                "attribute 'mode' is '{}', which is not valid",
                other.unwrap_or_default()
            )));
        }
    };
    let (row, shape) = match data.shape() {
        [] => (1, vec![width]),
        &[row] => (row, vec![width]),
        &[batch, row] => (row, vec![batch, width]),
        shape => return Err(Decline::invalid(format!("the rank of the operand is {} instead of 1 or 2", shape.len()))),
    };
    let weights = cx.attr_floats("weights")?.filter(|_| mode != Mode::Count).unwrap_or_default();
    let indexes = cx.attr_ints("ngram_indexes")?.unwrap_or_default();
    let in_order = indexes.iter().enumerate().all(|(at, &index)| usize::try_from(index).ok() == Some(at));
    if !weights.is_empty() && (!in_order || weights.len() != width) {
        return Err(Decline::unsupported(
            "attribute 'ngram_indexes' is not 0, 1, 2, …, or attribute 'weights' has another length: runtimes assign the weights differently",
        ));
    }
    cx.claim(DType::Float, &shape)?;
    cx.claim(DType::Uint64, &shape)?;
    let integers = cx.attr_ints("pool_int64s")?.unwrap_or_default();
    let words = cx.attr_strings("pool_strings")?.unwrap_or_default();
    let mut counts = match (data.strings(), integers.is_empty(), words.is_empty()) {
        (Some(items), true, false) => counted::<Bytes>(cx, words, items, row, width)?,
        (None, false, true) if matches!(data.dtype(), DType::Int32 | DType::Int64) => {
            let items = data.to_i64s().unwrap_or_default();
            counted(cx, integers, &items, row, width)?
        }
        _ => {
            return Err(Decline::invalid(
                "the types of the pool ('pool_int64s' or 'pool_strings') and of the operand differ",
            ));
        }
    };
    // A row without items has no n-grams.
    counts.resize(crate::tensor::product(&shape).unwrap_or(0), 0);
    let weight = |at: usize| weights.get(at % width).copied().unwrap_or(1.0);
    let value = |(at, &count): (usize, &u64)| match mode {
        Mode::Count => count as f32,
        Mode::Presence if count > 0 => weight(at),
        Mode::Presence => 0.0,
        Mode::Weighted => weight(at) * count as f32,
    };
    let values: Vec<f32> = counts.iter().enumerate().map(value).collect();
    Ok(vec![Tensor::from_vec(&shape, values)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attribute;
    use crate::ops::single::Single;

    fn node(mode: &'static str, lengths: [i64; 2], skips: i64) -> Single {
        Single::new("TfIdfVectorizer", 9)
            .with_str("mode", mode)
            .with("min_gram_length", lengths[0])
            .with("max_gram_length", lengths[1])
            .with("max_skip_count", skips)
            .with("ngram_counts", vec![0, 4])
            .with("ngram_indexes", vec![0, 1, 2, 3, 4, 5, 6])
            .with("pool_int64s", vec![2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
    }

    #[test]
    fn counts() {
        let row = [1i64, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8];
        let count = |node: Single| node.values(&[12], &row).floats();
        assert_eq!(count(node("TF", [2, 2], 0)), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(count(node("TF", [2, 2], 5)), [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 1.0]);
        assert_eq!(count(node("TF", [1, 2], 5)), [0.0, 3.0, 1.0, 0.0, 1.0, 3.0, 1.0]);
        let weights = || Attribute::Floats(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(count(node("IDF", [1, 2], 5).with("weights", weights())), [0.0, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0]);
        assert_eq!(count(node("TFIDF", [1, 2], 5).with("weights", weights())), [0.0, 6.0, 3.0, 0.0, 5.0, 18.0, 7.0]);
        let rows = node("TF", [1, 1], 0).values(&[2, 2], &[2i32, 2, 5, 9]).eval().unwrap();
        assert_eq!(rows[0].shape(), [2, 7]);
        assert_eq!(rows[0].to_f64s().unwrap()[..3], [2.0, 0.0, 0.0]);
        assert_eq!(node("TF", [1, 1], 0).values::<i64>(&[0], &[]).floats(), [0.0; 7]);
    }

    #[test]
    fn shapes() {
        assert_eq!(node("TF", [1, 1], 0).input(DType::Int64, "N C").infer(), ["float[N, 7]"]);
        assert_eq!(node("TF", [1, 1], 0).input(DType::Int64, "C").infer(), ["float[7]"]);
        assert!(node("TF", [1, 1], 0).input(DType::Int64, "A B C").infer()[0].starts_with("invalid"));
    }

    #[test]
    fn pools_that_do_not_fit() {
        let broken = |node: Single| node.values(&[1], &[2i64]).eval().is_err();
        assert!(broken(node("TF", [0, 1], 0)));
        assert!(broken(node("TF", [1, 3], 0)));
        assert!(broken(node("TF", [1, 1], -1)));
        assert!(!broken(node("TF", [1, 1], i64::MAX)));
        assert!(Single::new("TfIdfVectorizer", 9).values(&[1], &[2i64]).eval().is_err());
    }
}
