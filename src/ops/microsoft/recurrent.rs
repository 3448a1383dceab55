//! Attention with a recurrent state, its gates and normalizations, and hashed n-grams, which hybrid language models (Qwen 3.5,
//! Qwen 4, Jamba) use.
//!
//! | operator | result | states |
//! |---|---|---|
//! | LinearAttention | `[B, T, max(q_num_heads, kv_num_heads) · v]` | `[B, kv_num_heads, k, v]`, after an axis of `state_window` if that is positive |
//! | LinearAttentionGate | decay as `a`, beta as `b` | |
//! | GatedDeltaNet | `[T, heads, v]`, or `[B, T, heads, v]` | float `[B, heads, v, k]`, updates `[B, capacity · (heads + key heads · k + heads · v)]` |
//! | VarlenCausalConvWithState | as the input `[T, C]` | as the initial state, updates `[B, capacity, C]` |
//! | GatedRMSNorm, GatedAdd, EngramGate | as operand 0 | |
//! | NGramHashMapping, VarlenNGramHashMapping | the ids with a new axis of `(max_ngram_size − 1) · n_head_per_ngram` | ids `[B, max_ngram_size − 1]`, updates `[B, capacity, max_ngram_size − 1]` |

use super::{dim, heads, like, operator, or_fresh, part};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::traits::Traits;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("EngramGate", infer_engram_gate),
    operator("GatedAdd", super::infer_first),
    operator("GatedDeltaNet", infer_gated_delta_net).with(Traits::NONE.macs(|_| None)),
    operator("GatedRMSNorm", super::infer_first),
    operator("LinearAttention", infer_linear_attention).with(Traits::NONE.macs(|_| None)),
    operator("LinearAttentionGate", infer_gate),
    operator("NGramHashMapping", infer_ngrams),
    operator("VarlenCausalConvWithState", infer_packed_conv).with(Traits::NONE.macs(|_| None)),
    operator("VarlenNGramHashMapping", infer_packed_ngrams),
];

fn infer_linear_attention(cx: &mut InferCx<'_>) -> InferResult {
    const QUERY: usize = 0;
    const VALUE: usize = 2;
    const PAST: usize = 3;
    cx.require_rank(QUERY, "query", 3..=3)?;
    cx.require_rank(VALUE, "value", 3..=3)?;
    let (Some(q_heads), Some(kv_heads)) = (heads(cx, "q_num_heads")?, heads(cx, "kv_num_heads")?) else {
        return Err(Refusal::invalid("attribute 'q_num_heads' or 'kv_num_heads' is missing"));
    };
    let dtype = cx.dtype(QUERY);
    let (batch, length) = (or_fresh(cx, dim(cx, QUERY, 0)), or_fresh(cx, dim(cx, QUERY, 1)));
    let size = dim(cx, VALUE, 2).and_then(|all| part(cx, &all, kv_heads));
    let hidden = size.as_ref().map(|size| cx.scope().mul(size, &Dim::constant(q_heads.max(kv_heads))));
    let output = Fact::tensor(dtype, Some(vec![batch.clone(), length, or_fresh(cx, hidden)]));
    if cx.shape(PAST).is_some() {
        return Ok(vec![output, like(cx, PAST)]);
    }
    let key_size = dim(cx, QUERY, 2).and_then(|all| part(cx, &all, q_heads));
    let mut state = vec![batch, Dim::constant(kv_heads), or_fresh(cx, key_size), or_fresh(cx, size)];
    if let Some(window @ 1..) = cx.attr_int("state_window")? {
        state.insert(0, Dim::constant(window));
    }
    // For a narrow type, the state may have another type.
    let state_dtype = if cx.has_input(PAST) { cx.dtype(PAST) } else { dtype.filter(|dtype| *dtype == DType::Float) };
    Ok(vec![output, Fact::tensor(state_dtype, Some(state))])
}

fn infer_gate(cx: &mut InferCx<'_>) -> InferResult {
    let shape = cx.shape(3).or(cx.shape(0)).map(<[Dim]>::to_vec);
    Ok(vec![like(cx, 0), Fact::tensor(cx.dtype(0), shape)])
}

fn infer_engram_gate(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 0), like(cx, 0)])
}

/// Returns the number of stored state updates per sequence.
fn capacity(cx: &InferCx<'_>) -> Result<Dim, Refusal> {
    match cx.attr_int("state_update_capacity")?.unwrap_or(0) {
        capacity @ 0.. => Ok(Dim::constant(capacity)),
        negative => {
            Err(Refusal::invalid(format!("attribute 'state_update_capacity' is {negative}, which is not valid")))
        }
    }
}

/// Returns the number of sequences: the operand of their ends has one more element.
fn sequences(cx: &InferCx<'_>, ends: usize) -> Option<Dim> {
    dim(cx, ends, 0).map(|ends| cx.scope().sub(&ends, &Dim::constant(1)))
}

fn infer_gated_delta_net(cx: &mut InferCx<'_>) -> InferResult {
    const QUERY: usize = 0;
    const KEY: usize = 1;
    const VALUE: usize = 2;
    const ENDS: usize = 3;
    const STATE: usize = 6;
    let packed = !cx.has_input(VALUE);
    // The last two axes are the heads and their size, unless queries, keys and values are packed in the last axis.
    let tail = |at: usize, from_end: usize| {
        let shape = cx.shape(at).filter(|_| cx.has_input(at))?;
        shape.len().checked_sub(from_end).and_then(|axis| shape.get(axis)).cloned()
    };
    let value_heads = dim(cx, STATE, 1).or(tail(VALUE, 2));
    let value_size = dim(cx, STATE, 2).or(tail(VALUE, 1));
    let key_size = dim(cx, STATE, 3).or(if packed { None } else { tail(QUERY, 1) });
    let output = match (cx.shape(VALUE), cx.shape(QUERY), packed) {
        (Some(value), _, false) => Some(value.to_vec()),
        (_, Some([tokens @ .., _]), true) => {
            let ends = [or_fresh(cx, value_heads.clone()), or_fresh(cx, value_size.clone())];
            Some(tokens.iter().cloned().chain(ends).collect())
        }
        _ => None,
    };
    let batch = or_fresh(cx, dim(cx, STATE, 0).or(sequences(cx, ENDS)));
    let state = [value_heads.clone(), value_size.clone(), key_size.clone()].map(|size| or_fresh(cx, size));
    let state = [batch.clone()].into_iter().chain(state).collect();
    // In the packed axis, queries and keys each have half of the elements before the values.
    let keys = match packed {
        false => tail(KEY, 2).zip(key_size).map(|(heads, size)| cx.scope().mul(&heads, &size)),
        true => dim(cx, QUERY, cx.rank(QUERY).unwrap_or(0).saturating_sub(1))
            .zip(value_heads.as_ref().zip(value_size.as_ref()))
            .map(|(all, (heads, size))| cx.scope().sub(&all, &cx.scope().mul(heads, size)))
            .and_then(|both| part(cx, &both, 2)),
    };
    let update = match (keys, value_heads, value_size) {
        (Some(keys), Some(heads), Some(size)) => {
            let scope = cx.scope();
            let each = scope.sum([&heads, &keys, &scope.mul(&heads, &size)]);
            scope.mul(&capacity(cx)?, &each)
        }
        _ => cx.fresh_dim(),
    };
    let float = |shape: Vec<Dim>| Fact::tensor(Some(DType::Float), Some(shape));
    Ok(vec![Fact::tensor(cx.dtype(QUERY), output), float(state), float(vec![batch, update])])
}

fn infer_packed_conv(cx: &mut InferCx<'_>) -> InferResult {
    const ENDS: usize = 2;
    const STATE: usize = 4;
    cx.require_rank(0, "input", 2..=2)?;
    let batch = or_fresh(cx, dim(cx, STATE, 0).or(sequences(cx, ENDS)));
    let update = vec![batch, capacity(cx)?, or_fresh(cx, dim(cx, 0, 1))];
    Ok(vec![like(cx, 0), like(cx, STATE), Fact::tensor(cx.dtype(0), Some(update))])
}

/// Returns the number of earlier ids in an n-gram, and the number of hashes per id.
fn reach(cx: &InferCx<'_>) -> Result<[Dim; 2], Refusal> {
    let (Some(longest @ 1..), Some(hashes @ 0..)) = (cx.attr_int("max_ngram_size")?, cx.attr_int("n_head_per_ngram")?)
    else {
        return Err(Refusal::invalid("attribute 'max_ngram_size' or 'n_head_per_ngram' is missing or too small"));
    };
    let earlier = Dim::constant(longest.saturating_sub(1));
    let all = cx.scope().mul(&earlier, &Dim::constant(hashes));
    Ok([earlier, all])
}

fn infer_ngrams(cx: &mut InferCx<'_>) -> InferResult {
    cx.require_rank(0, "input_ids", 2..=2)?;
    let [earlier, hashes] = reach(cx)?;
    let (batch, length) = (or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 0, 1)));
    let ids = |shape: Vec<Dim>| Fact::tensor(cx.dtype(0), Some(shape));
    Ok(vec![ids(vec![batch.clone(), length, hashes]), ids(vec![batch, earlier])])
}

fn infer_packed_ngrams(cx: &mut InferCx<'_>) -> InferResult {
    const ENDS: usize = 3;
    const PAST: usize = 4;
    cx.require_rank(0, "input_ids", 1..=1)?;
    let [earlier, hashes] = reach(cx)?;
    let batch = or_fresh(cx, sequences(cx, ENDS).or(dim(cx, PAST, 0)));
    let ids = |shape: Vec<Dim>| Fact::tensor(cx.dtype(0), Some(shape));
    let segments = Fact::tensor(Some(DType::Int32), Some(vec![batch.clone(), earlier.clone()]));
    Ok(vec![
        ids(vec![or_fresh(cx, dim(cx, 0, 0)), hashes]),
        ids(vec![batch.clone(), earlier.clone()]),
        segments,
        ids(vec![batch, capacity(cx)?, earlier]),
    ])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType::{Float, Float16, Int32, Int64};

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain("com.microsoft")
    }

    #[test]
    fn linear_attention() {
        let open = |q: i64, kv: i64| node("LinearAttention").output().with("q_num_heads", q).with("kv_num_heads", kv);
        let of = |node: Single| node.input(Float, "B T 32").input(Float, "B T 16").input(Float, "B T 24");
        assert_eq!(of(open(4, 2)).infer(), ["float[B, T, 48]", "float[B, 2, 8, 12]"]);
        // More value heads than query heads.
        assert_eq!(of(open(2, 4)).infer(), ["float[B, T, 24]", "float[B, 4, 16, 6]"]);
        let window = of(open(4, 2)).with("state_window", 3);
        assert_eq!(window.infer()[1], "float[3, B, 2, 8, 12]");
        let past = open(4, 2).input(Float16, "B T 32").input(Float16, "B T 16").input(Float16, "B T 24");
        assert_eq!(past.input(Float, "B 2 8 12").infer(), ["float16[B, T, 48]", "float[B, 2, 8, 12]"]);
        assert!(of(open(0, 2)).infer()[0].starts_with("invalid"));
        assert!(open(2, 2).input(Float, "B 2 T 8").infer()[0].starts_with("invalid"));
    }

    #[test]
    fn gates_and_norms() {
        let gate = node("LinearAttentionGate").output().input(Float16, "B T 4").input(Float, "4").input(Float, "4");
        assert_eq!(gate.input(Float16, "B T 4").infer(), ["float16[B, T, 4]", "float16[B, T, 4]"]);
        let norm = node("GatedRMSNorm").input(Float16, "B T 64").input(Float16, "16").input(Float16, "B T 64");
        assert_eq!(norm.infer(), ["float16[B, T, 64]"]);
    }

    #[test]
    fn packed_sequences() {
        let net = || node("GatedDeltaNet").output().output();
        let apart = net().input(Float16, "T 2 8").input(Float16, "T 2 8").input(Float16, "T 4 6").input(Int32, "E");
        let apart = apart.with("state_update_capacity", 3);
        assert_eq!(apart.infer(), ["float16[T, 4, 6]", "float[E - 1, 4, 6, 8]", "float[E - 1, 132]"]);
        let packed = net().input(Float, "B S 56").absent().absent().absent().absent().absent().input(Float, "B 4 6 8");
        let packed = packed.with("state_update_capacity", 1);
        assert_eq!(packed.infer(), ["float[B, S, 4, 6]", "float[B, 4, 6, 8]", "float[B, 44]"]);
        let conv = node("VarlenCausalConvWithState").output().output().input(Float, "T C").input(Float, "C 1 4");
        let conv = conv.input(Int32, "E").absent().input(Float, "B C 3").with("state_update_capacity", 2);
        assert_eq!(conv.infer(), ["float[T, C]", "float[B, C, 3]", "float[B, 2, C]"]);
    }

    #[test]
    fn hashed_ngrams() {
        let hashes = |name: &str| node(name).output().with("max_ngram_size", 3).with("n_head_per_ngram", 4);
        let plain = hashes("NGramHashMapping").input(Int64, "B S");
        assert_eq!(plain.infer(), ["int64[B, S, 8]", "int64[B, 2]"]);
        let packed = hashes("VarlenNGramHashMapping").output().output().with("state_update_capacity", 2);
        let packed = packed.input(Int64, "T").input(Int64, "3").input(Int64, "8").input(Int32, "E");
        assert_eq!(packed.infer(), ["int64[T, 8]", "int64[E - 1, 2]", "int32[E - 1, 2]", "int64[E - 1, 2, 2]"]);
    }
}
