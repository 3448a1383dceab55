//! FlexAttention (`ai.onnx.preview`): attention with subgraphs that modify scores and weights.
//!
//! | | |
//! |---|---|
//! | computes | for each head `Y = prob_mod(softmax(score_mod(Q·Kᵀ·scale)))·V`; an absent subgraph is the identity |
//! | shapes | `Q [B, Hq, L, D]`, `K [B, Hkv, S, D]`, `V [B, Hkv, S, Dv]`, `Y [B, Hq, L, Dv]`; subgraphs map `[B, Hq, L, S]` to itself |
//! | type | of scores and weights: `softmax_precision`, else double for double and float for all others |
//! | grouped heads | query head `h` reads head `h / (Hq / Hkv)` |
//! | versions | 1 |
//! | not evaluated | rows of −∞, whose softmax is NaN |

use super::layout::Layout;
use super::shapes::agreed;
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::lane::{Ring, same_dtype};
use crate::ops::linear::{Matrix, multiply_add};
use crate::ops::traits::{Traits, attention};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

pub(super) const FLEX_ATTENTION: Operator = Operator::new("FlexAttention", &[1], infer, eval)
    .in_domain("ai.onnx.preview")
    .with(Traits::NONE.macs(|view| attention(view, &view.elements(0)?, view.shape(1)?.get(2)?)));

/// Returns the type of scores and weights.
fn scores_dtype(site: &Site<'_>, dtype: Option<DType>) -> Result<Option<DType>, Refusal> {
    if site.attr_int("softmax_precision")?.unwrap_or(0) != 0 {
        return site.attr_dtype("softmax_precision");
    }
    Ok(dtype.map(|dtype| if dtype == DType::Double { DType::Double } else { DType::Float }))
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    if [0, 1, 2].iter().any(|&at| cx.rank(at).is_some_and(|rank| rank != 4)) {
        return Err(Refusal::invalid("the rank of an operand is not 4"));
    }
    let dtype = [0, 1, 2].iter().find_map(|&at| cx.dtype(at));
    if [0, 1, 2].iter().any(|&at| cx.dtype(at).is_some_and(|other| Some(other) != dtype)) {
        return Err(Refusal::invalid("the operands' element types differ"));
    }
    let dim = |at: usize, axis: usize| cx.shape(at).and_then(|shape| shape.get(axis)).cloned();
    let fresh = |dim: Option<Dim>| dim.unwrap_or_else(|| cx.fresh_dim());
    let batch = agreed(cx, &[&dim(0, 0), &dim(1, 0), &dim(2, 0)])?;
    let (heads, queries) = (fresh(dim(0, 1)), fresh(dim(0, 2)));
    let (keys, size) = (agreed(cx, &[&dim(1, 2), &dim(2, 2)])?, fresh(dim(2, 3)));
    let shared = agreed(cx, &[&dim(1, 1), &dim(2, 1)])?;
    agreed(cx, &[&dim(0, 3), &dim(1, 3)])?;
    if let (Some(heads), Some(shared)) = (heads.as_const(), shared.as_const())
        && heads.checked_rem(shared).is_none_or(|rest| rest != 0)
    {
        return Err(Refusal::invalid(format!(
            "the number of heads of 'Q' ({heads}) is not a multiple of the number of heads of 'K' and 'V' ({shared})"
        )));
    }
    let inner = scores_dtype(cx, dtype)?;
    for name in ["score_mod", "prob_mod"] {
        if let Some(graph) = cx.attr_graph(name)? {
            let shape = vec![batch.clone(), heads.clone(), queries.clone(), keys.clone()];
            cx.infer_graph(graph, vec![Fact::tensor(inner, Some(shape))])?;
        }
    }
    Ok(vec![Fact::tensor(dtype, Some(vec![batch, heads, queries, size]))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let [q, k, v] = [cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?];
    let dtype = q.dtype();
    same_dtype(dtype, &[k, v])?;
    let layouts = [q, k, v].map(|operand| Layout::of(operand.shape(), None));
    let [q_layout, k_layout, v_layout] = layouts;
    let (q_layout, k_layout, v_layout) = (q_layout?, k_layout?, v_layout?);
    let fits = k_layout.heads > 0
        && q_layout.heads.is_multiple_of(k_layout.heads)
        && [k_layout.batch, v_layout.batch] == [q_layout.batch; 2]
        && k_layout.size == q_layout.size
        && [v_layout.heads, v_layout.sequence] == [k_layout.heads, k_layout.sequence];
    if !fits {
        return Err(Decline::invalid("the dims of 'Q', 'K' and 'V' do not match"));
    }
    let scale = match cx.attr_float("scale")? {
        Some(scale) => f64::from(scale),
        None => 1.0 / (q_layout.size as f64).sqrt(),
    };
    let inner = scores_dtype(cx, Some(dtype))?.unwrap_or(DType::Float);
    let (queries, keys) = (q_layout.sequence, k_layout.sequence);
    let shape = [q_layout.batch, q_layout.heads, queries, keys];
    let result = [q_layout.batch, q_layout.heads, queries, v_layout.size];
    cx.claim(DType::Double, &shape)?;
    cx.claim(DType::Double, &result)?;
    let count = crate::tensor::product(&shape).unwrap_or(usize::MAX) as u64;
    let each = (q_layout.size as u64).saturating_add(v_layout.size as u64).saturating_add(16);
    cx.budget().take_work(count.saturating_mul(each))?;
    let [q, k, v] = [q, k, v].map(|operand| {
        operand.to_f64s().ok_or_else(|| Decline::unsupported(format!("the type of an operand is {}", operand.dtype())))
    });
    let (q, k, v) = (q?, k?, v?);
    // The error of a score is the rounding error of its terms; that of a weight is the same, relative to the weight.
    let largest = |values: &[f64]| {
        values.iter().fold(0.0f64, |most, x| if most.is_nan() || most > x.abs() { most } else { x.abs() })
    };
    let precise = if dtype == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
    let most = if dtype == DType::Double { f64::MAX } else { f64::from(f32::MAX) } / 4.0;
    let fits =
        largest(&q) * largest(&k) * q_layout.size as f64 * scale.abs() <= precise && largest(&v) * keys as f64 <= most;
    if !fits {
        return Err(Decline::unsupported(
            "two scores are so close that rounding determines which key has the larger weight",
        ));
    }
    let group = q_layout.heads / k_layout.heads;
    let source =
        |head: usize| head / q_layout.heads.max(1) * k_layout.heads + head % q_layout.heads.max(1) / group.max(1);
    let heads = q_layout.batch * q_layout.heads;

    let mut all = Vec::with_capacity(heads * queries * keys);
    for head in 0..heads {
        let q = q.get(head * q_layout.head()..).unwrap_or_default();
        let k = k.get(source(head) * k_layout.head()..).unwrap_or_default();
        all.extend(scores(queries, q_layout.size, keys, q, k).into_iter().map(|score| score * scale));
    }
    let mut all = modified(cx, "score_mod", real(inner, &shape, all)?)?;
    if keys > 0 {
        for row in all.chunks_exact_mut(keys) {
            if row.iter().all(|&x| x == f64::NEG_INFINITY) {
                return Err(Decline::unsupported("all scores of a query are −∞, for which Softmax is undefined"));
            }
            softmax(row);
        }
    }
    let all = modified(cx, "prob_mod", real(inner, &shape, all)?)?;
    let mut y = vec![0.0; heads * queries * v_layout.size];
    let part = queries * v_layout.size;
    for head in 0..heads {
        let weights = all.get(head * queries * keys..).unwrap_or_default();
        let values = v.get(source(head) * v_layout.head()..).unwrap_or_default();
        if let Some(y) = y.get_mut(head * part..(head + 1) * part) {
            mix(queries, keys, v_layout.size, weights, values, y);
        }
    }
    Ok(vec![real(dtype, &result, y)?.into()])
}

/// Builds a tensor of a floating-point type.
fn real(dtype: DType, shape: &[usize], values: Vec<f64>) -> Result<Tensor, Decline> {
    match dtype {
        DType::Double => f64::write(dtype, shape, values),
        _ => f32::write(dtype, shape, values.into_iter().map(|value| value as f32).collect()),
    }
}

/// Evaluates a subgraph on scores or weights, in binary64.
fn modified(cx: &EvalCx<'_>, name: &str, tensor: Tensor) -> Result<Vec<f64>, Decline> {
    let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
    let tensor = match cx.attr_graph(name)? {
        None => tensor,
        Some(graph) => match cx.evaluate_graph(graph, vec![Data::Tensor(tensor)])?.as_slice() {
            [Data::Tensor(result)] if result.dtype() == dtype && result.shape() == shape => result.clone(),
            _ => {
                return Err(Decline::invalid(format!(
                    "the output of subgraph '{name}' differs from the input of the subgraph in type or shape"
                )));
            }
        },
    };
    tensor.to_f64s().ok_or_else(|| Decline::invalid("the scores have no numeric type"))
}

/// Computes `Q·Kᵀ` of one head: one row per query, one column per key.
fn scores(queries: usize, size: usize, keys: usize, q: &[f64], k: &[f64]) -> Vec<f64> {
    let mut scores = vec![0.0; queries * keys];
    multiply_add(queries, size, keys, Matrix::dense(q, size), Matrix::transposed(k, size), &mut scores);
    scores
}

/// Adds `P·V` of one head to `y`.
fn mix(queries: usize, keys: usize, size: usize, p: &[f64], v: &[f64], y: &mut [f64]) {
    multiply_add(queries, keys, size, Matrix::dense(p, keys), Matrix::dense(v, size), y);
}

/// Computes the softmax of one row: `eˣ / Σ eˣ`, shifted by the maximum, which is not −∞.
fn softmax(row: &mut [f64]) {
    let most = row.iter().fold(f64::NEG_INFINITY, |most, &x| if x > most || x.is_nan() { x } else { most });
    row.iter_mut().for_each(|x| *x = libm::exp(*x - most));
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let node = Single::new("FlexAttention", 25).in_domain("ai.onnx.preview");
        let node = node.input(DType::Float16, "B 8 L 64").input(DType::Float16, "B 2 S 64");
        assert_eq!(node.input(DType::Float16, "B 2 S 32").infer(), ["float16[B, 8, L, 32]"]);
        for (k_type, k, v) in [
            (DType::Float, "B 2 S 64", "B 2 S 32"),
            (DType::Float16, "B 3 S 64", "B 3 S 32"),
            (DType::Float16, "B 2 S 64", "B 4 S 32"),
            (DType::Float16, "B 2 7 64", "B 2 8 32"),
            (DType::Float16, "B 2 S 32", "B 2 S 32"),
        ] {
            let node = Single::new("FlexAttention", 25).in_domain("ai.onnx.preview");
            let node = node.input(DType::Float16, "B 8 L 64").input(k_type, k).input(DType::Float16, v);
            assert!(node.infer()[0].starts_with("invalid"), "{k_type}, {k}, {v}");
        }
    }

    #[test]
    fn values_without_subgraphs() {
        let node = Single::new("FlexAttention", 25)
            .in_domain("ai.onnx.preview")
            .values(&[1, 2, 1, 1], &[1.0f64, 2.0])
            .values(&[1, 1, 2, 1], &[3.0f64.ln(), 0.0])
            .values(&[1, 1, 2, 1], &[4.0f64, 8.0]);
        let found = node.floats();
        assert!((found[0] - 5.0).abs() < 1e-12 && (found[1] - 4.4).abs() < 1e-12, "{found:?}");
    }
}
