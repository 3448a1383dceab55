//! LinearAttention: attention as a recurrence over a state of fixed size.
//!
//! | `update_rule` | one step; `S` is the state of a head, `[d_k, d_v]` |
//! |---|---|
//! | `linear` | `S ← S + k⊗v` |
//! | `gated` | `S ← exp(g)·S`, then as `linear` |
//! | `delta` | `S ← S + k⊗β·(v − Sᵀ·k)` |
//! | `gated_delta` (default) | `S ← exp(g)·S`, then as `delta` |
//!
//! | | |
//! |---|---|
//! | computes | after each step `o = scale·Sᵀ·q`; a `scale` of 0 is `1 / √d_k` |
//! | shapes | `query [B, T, Hq·d_k]`, `key [B, T, Hkv·d_k]`, `value [B, T, Hkv·d_v]`, states `[B, Hkv, d_k, d_v]`, `decay [B, T, Hkv]` or `[B, T, Hkv·d_k]`, `beta [B, T, Hkv]` or `[B, T, 1]` |
//! | grouped heads | query head `h` reads the state of head `h / (Hq / Hkv)` |
//! | types | the output state has the type of `past_state`, or else of `query` |
//! | versions | 27 |
//! | rejects | operands that the rule needs and that are missing, or that it does not use |

use super::layout::{Layout, per_head, read_heads};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Ring, read, same_dtype};
use crate::ops::traits::{NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::Tensor;

pub(super) const LINEAR_ATTENTION: Operator =
    Operator::new("LinearAttention", &[27], infer, eval).with(Traits::NONE.macs(macs));

/// Reads the number of query heads and of key/value heads.
fn read_both(site: &Site<'_>) -> Result<[i64; 2], Refusal> {
    match (read_heads(site, "q_num_heads")?, read_heads(site, "kv_num_heads")?) {
        (Some(q), Some(kv)) if q % kv == 0 => Ok([q, kv]),
        (Some(q), Some(kv)) => {
            Err(Refusal::invalid(format!("'q_num_heads' is {q}, which is not a multiple of 'kv_num_heads' ({kv})")))
        }
        _ => Err(Refusal::invalid("attribute 'q_num_heads' or 'kv_num_heads' is missing")),
    }
}

/// Returns two flags of the rule: it has a gate; it is a delta rule.
fn read_rule(site: &Site<'_>) -> Result<[bool; 2], Refusal> {
    match site.attr_str("update_rule")?.unwrap_or("gated_delta") {
        "linear" => Ok([false, false]),
        "gated" => Ok([true, false]),
        "delta" => Ok([false, true]),
        "gated_delta" => Ok([true, true]),
        other => Err(Refusal::invalid(format!("attribute 'update_rule' is '{other}', which is not valid"))),
    }
}

/// Returns the multiply-accumulates. Each step adds `k⊗v` to the state of each key head and multiplies the state with each query;
/// a delta rule also multiplies it with the key. Each of these is `d_k·d_v` products.
fn macs(view: &NodeFacts<'_>) -> Option<Dim> {
    let site = view.site()?;
    let ([q_heads, kv_heads], [_, delta]) = (read_both(&site).ok()?, read_rule(&site).ok()?);
    let ([batch, steps, queries], [_, _, values]) = (view.shape(0)?, view.shape(2)?) else { return None };
    let scope = view.scope();
    let key_size = scope.floor_div(queries, &Dim::constant(q_heads));
    let value_size = scope.floor_div(values, &Dim::constant(kv_heads));
    let of_keys = kv_heads.checked_mul(if delta { 2 } else { 1 })?;
    let states = Dim::constant(q_heads.checked_add(of_keys)?);
    Some(scope.product([batch, steps, &key_size, &value_size, &states]))
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let [q_heads, kv_heads] = read_both(cx)?;
    let [gated, delta] = read_rule(cx)?;
    if cx.has_input(4) != gated || cx.has_input(5) != delta {
        return Err(Refusal::invalid(
            "attribute 'update_rule' requires an operand 'decay' or 'beta' that is missing, or excludes an operand that is present",
        ));
    }
    if [(3, 4), (4, 3), (5, 3)].iter().any(|&(at, rank)| cx.rank(at).is_some_and(|given| given != rank)) {
        return Err(Refusal::invalid("the rank of the state is not 4, or the rank of 'decay' or 'beta' is not 3"));
    }
    if [0, 1, 2].iter().any(|&at| cx.rank(at).is_some_and(|rank| rank != 3)) {
        return Err(Refusal::invalid("the rank of an operand is not 3"));
    }
    let dim = |at: usize, axis: usize| cx.shape(at).and_then(|shape| shape.get(axis)).cloned();
    let fresh = |dim: Option<Dim>| dim.unwrap_or_else(|| cx.fresh_dim());
    let part = |packed: Option<Dim>, heads: i64| packed.map(|packed| per_head(cx.scope(), &packed, heads)).transpose();
    let batch = fresh([0, 1, 2, 3].iter().find_map(|&at| dim(at, 0)));
    let steps = fresh([0, 1, 2].iter().find_map(|&at| dim(at, 1)));
    let size = match part(dim(0, 2), q_heads)? {
        Some(size) => Some(size),
        None => part(dim(1, 2), kv_heads)?,
    };
    let size = fresh(size.or(dim(3, 2)));
    let heads = Dim::constant(kv_heads);
    for (at, other) in [(4, cx.scope().mul(&heads, &size)), (5, Dim::constant(1))] {
        if let Some(width) = dim(at, 2)
            && [&heads, &other].iter().all(|expected| cx.scope().eq(&width, expected).is_no())
        {
            let width = cx.scope().format(&width);
            return Err(Refusal::invalid(format!(
                "operand {at} has {width} entries per step, which does not fit {kv_heads} key and value heads"
            )));
        }
    }
    let v_size = fresh(part(dim(2, 2), kv_heads)?.or(dim(3, 3)));
    let joined = match dim(2, 2) {
        Some(values) => cx.scope().mul(&values, &Dim::constant(q_heads / kv_heads)),
        None => cx.scope().mul(&v_size, &Dim::constant(q_heads)),
    };
    let dtype = [0, 1, 2].iter().find_map(|&at| cx.dtype(at));
    let state = if cx.has_input(3) { cx.dtype(3) } else { dtype };
    Ok(vec![
        Fact::tensor(dtype, Some(vec![batch.clone(), steps, joined])),
        Fact::tensor(state, Some(vec![batch, Dim::constant(kv_heads), size, v_size])),
    ])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let [q_heads, kv_heads] = read_both(cx)?;
    let [gated, delta] = read_rule(cx)?;
    let [q, k, v] = [cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?];
    let (past, decay, beta) = (cx.optional_tensor(3)?, cx.optional_tensor(4)?, cx.optional_tensor(5)?);
    if decay.is_some() != gated || beta.is_some() != delta {
        return Err(Decline::invalid(
            "attribute 'update_rule' requires an operand 'decay' or 'beta' that is missing, or excludes an operand that is present",
        ));
    }
    if [q, k, v].iter().any(|operand| operand.rank() != 3) {
        return Err(Decline::invalid("the rank of an operand is not 3"));
    }
    same_dtype(q.dtype(), &[k, v])?;
    let (q_layout, k_layout) = (Layout::of(q.shape(), Some(q_heads))?, Layout::of(k.shape(), Some(kv_heads))?);
    let v_layout = Layout::of(v.shape(), Some(kv_heads))?;
    let Layout { batch, sequence: steps, size, .. } = q_layout;
    let alike = |other: &Layout| other.batch == batch && other.sequence == steps;
    if !alike(&k_layout) || !alike(&v_layout) || k_layout.size != size {
        return Err(Decline::invalid("the dims of query, key and value do not match"));
    }
    let heads = k_layout.heads;
    let state_shape = [batch, heads, size, v_layout.size];
    if past.is_some_and(|past| past.shape() != state_shape) {
        return Err(Decline::invalid("the dims of the state and the operands do not match"));
    }
    let last = |operand: Option<&Tensor>, widths: [usize; 2]| match operand.map(Tensor::shape) {
        None => Ok(0),
        Some(&[b, t, width]) if b == batch && t == steps && widths.contains(&width) => Ok(width),
        Some(other) => Err(Decline::invalid(format!("an operand has shape {other:?} instead of rank 3"))),
    };
    let decay_width = last(decay, [heads, heads.saturating_mul(size)])?;
    let beta_width = last(beta, [heads, 1])?;
    let shape = [batch, steps, q_layout.heads.saturating_mul(v_layout.size)];
    let state_dtype = past.map_or(q.dtype(), Tensor::dtype);
    cx.claim(q.dtype(), &shape)?;
    cx.claim(crate::tensor::DType::Double, &state_shape)?;
    let cells = (size as u64).saturating_mul(v_layout.size as u64).saturating_mul(q_layout.heads as u64);
    cx.budget().take_work(cells.saturating_mul(4).saturating_mul((batch as u64).saturating_mul(steps as u64)))?;
    let scale = match cx.attr_float("scale")?.unwrap_or(0.0) {
        0.0 => 1.0 / (size as f64).sqrt() as f32,
        scale => scale,
    };
    let mut state = match past {
        Some(past) => read::<f32>(past)?.into_owned(),
        None => vec![0.0; crate::tensor::product(&state_shape).unwrap_or(0)],
    };
    let numbers =
        |operand: Option<&Tensor>| operand.map(|operand| read::<f32>(operand).map(|x| x.into_owned())).transpose();
    let operands = Operands {
        layouts: [q_layout, k_layout, v_layout],
        q: read::<f32>(q)?.into_owned(),
        k: read::<f32>(k)?.into_owned(),
        v: read::<f32>(v)?.into_owned(),
        decay: numbers(decay)?,
        decay_width,
        beta: numbers(beta)?,
        beta_width,
    };
    let y = operands.run(&mut state, scale);
    Ok(vec![f32::write(q.dtype(), &shape, y)?.into(), f32::write(state_dtype, &state_shape, state)?.into()])
}

struct Operands {
    layouts: [Layout; 3],
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    decay: Option<Vec<f32>>,
    /// The numbers per step: one per head, or one per element of its keys.
    decay_width: usize,
    beta: Option<Vec<f32>>,
    /// The numbers per step: one per head, or one for all heads.
    beta_width: usize,
}

impl Operands {
    fn run(&self, state: &mut [f32], scale: f32) -> Vec<f32> {
        let [q, k, v] = self.layouts;
        let (size, v_size) = (k.size, v.size);
        let group = (q.heads / k.heads.max(1)).max(1);
        let mut y = vec![0.0; q.batch * q.sequence * q.heads * v_size];
        if y.is_empty() && state.is_empty() {
            return y;
        }
        let part = |numbers: &'_ [f32], at: usize, len: usize| -> Vec<f32> {
            numbers.get(at * len..(at + 1) * len).unwrap_or_default().to_vec()
        };
        for step in 0..q.batch * q.sequence {
            for head in 0..k.heads {
                let cells = size * v_size;
                let at = (step / q.sequence * k.heads + head) * cells;
                let Some(state) = state.get_mut(at..at + cells) else { continue };
                let key = part(&self.k, step * k.heads + head, size);
                let mut value = part(&self.v, step * k.heads + head, v_size);
                self.forget(state, step, head);
                if let Some(beta) = &self.beta {
                    let beta = beta.get(step * self.beta_width + head % self.beta_width.max(1)).copied().unwrap_or(0.0);
                    let mut found = vec![0.0; v_size];
                    for (row, &key) in rows(state, v_size).zip(&key) {
                        found.iter_mut().zip(row.iter()).for_each(|(sum, &cell)| *sum += cell * key);
                    }
                    value.iter_mut().zip(found).for_each(|(value, found)| *value = beta * (*value - found));
                }
                for (row, &key) in rows(state, v_size).zip(&key) {
                    row.iter_mut().zip(&value).for_each(|(cell, &value)| *cell += key * value);
                }
                for head in head * group..(head + 1) * group {
                    let query = part(&self.q, step * q.heads + head, size);
                    let at = (step * q.heads + head) * v_size;
                    let Some(y) = y.get_mut(at..at + v_size) else { continue };
                    for (row, &query) in rows(state, v_size).zip(&query) {
                        y.iter_mut().zip(row.iter()).for_each(|(sum, &cell)| *sum += query * cell);
                    }
                    y.iter_mut().for_each(|y| *y *= scale);
                }
            }
        }
        y
    }

    /// Applies the gate of one step.
    fn forget(&self, state: &mut [f32], step: usize, head: usize) {
        let Some(decay) = &self.decay else { return };
        let [_, k, v] = self.layouts;
        let by_head = self.decay_width == k.heads;
        for (at, row) in rows(state, v.size).enumerate() {
            let own = if by_head { head } else { head * k.size + at };
            let factor = libm::expf(decay.get(step * self.decay_width + own).copied().unwrap_or(0.0));
            row.iter_mut().for_each(|cell| *cell *= factor);
        }
    }
}

/// Returns the rows of a state.
fn rows(state: &mut [f32], width: usize) -> impl Iterator<Item = &mut [f32]> {
    state.chunks_exact_mut(width.max(1))
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn node(rule: &'static str) -> Single {
        let node = Single::new("LinearAttention", 27).output().with_str("update_rule", rule);
        node.with("q_num_heads", 2).with("kv_num_heads", 1).with_float("scale", 1.0)
    }

    #[test]
    fn shapes() {
        let node =
            node("linear").input(DType::Float, "B T 16").input(DType::Float, "B T 8").input(DType::Float, "B T V");
        assert_eq!(node.infer(), ["float[B, T, 2*V]", "float[B, 1, 8, V]"]);
    }

    #[test]
    fn operands_that_do_not_go_with_the_rule() {
        let fits = |rule, operands: [&str; 3]| {
            let mut node = node(rule).input(DType::Float, "B T 16").input(DType::Float, "B T 8");
            node = node.input(DType::Float, "B T V");
            for shape in operands {
                node = if shape.is_empty() { node.absent() } else { node.input(DType::Float, shape) };
            }
            !node.infer()[0].starts_with("invalid")
        };
        assert!(fits("linear", ["B 1 8 V", "", ""]));
        assert!(fits("gated", ["", "B T 8", ""]) && fits("gated", ["", "B T 1", ""]));
        assert!(fits("gated_delta", ["", "B T W", "B T 1"]));
        for (rule, operands) in [
            ("linear", ["B 8 V", "", ""]),
            ("linear", ["", "B T 8", ""]),
            ("linear", ["", "", "B T 1"]),
            ("gated", ["", "", ""]),
            ("gated", ["", "B T", ""]),
            ("gated", ["", "B T 7", ""]),
            ("gated_delta", ["", "B T 8", ""]),
            ("gated_delta", ["", "B T 8", "B T 2"]),
        ] {
            assert!(!fits(rule, operands), "{rule}: {operands:?}");
        }
    }

    #[test]
    fn every_rule() {
        // Two steps, one key head with one element.
        let operands = |rule| {
            node(rule)
                .values(&[1, 2, 2], &[1.0f32, 2.0, 1.0, 10.0])
                .values(&[1, 2, 1], &[1.0f32, 2.0])
                .values(&[1, 2, 1], &[3.0f32, 5.0])
        };
        let half = [0.5f32.ln(); 2];
        assert_eq!(operands("linear").floats(), [3.0, 6.0, 13.0, 130.0]);
        let close = |found: Vec<f64>, expected: [f64; 4]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        };
        close(operands("gated").absent().values(&[1, 2, 1], &half).floats(), [3.0, 6.0, 11.5, 115.0]);
        close(operands("delta").absent().absent().values(&[1, 2, 1], &[1.0f32; 2]).floats(), [3.0, 6.0, 1.0, 10.0]);
        let both = operands("gated_delta").values(&[1, 1, 1, 1], &[2.0f32]).values(&[1, 2, 1], &half);
        // S = 1, then 1 + (3 − 1) = 3, then 1.5 + 2·(5 − 3) = 5.5.
        close(both.values(&[1, 2, 1], &[1.0f32; 2]).floats(), [3.0, 6.0, 5.5, 55.0]);
        assert!(operands("gated").eval().is_err());
        assert!(operands("other").eval().is_err());
    }
}
