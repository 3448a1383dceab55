//! Attention operators of `com.microsoft`.
//!
//! | operator | result | caches |
//! |---|---|---|
//! | Attention, QAttention, DecoderMaskedSelfAttention | `[B, S, v]` from the weights `[H, q + k + v]`, a third each by default, else `qkv_hidden_sizes` | `[2, B, heads, P + S, size]`, or the shape of `past` if the buffer is shared |
//! | MultiHeadAttention | `[B, S, v]` of queries `[B, S, h]` or packed `[B, S, heads, 3, size]` | `[B, heads, P + K, size]` |
//! | DecoderMaskedMultiHeadAttention | `[B, 1, v]` | as the inputs, if the buffer is shared |
//! | GroupQueryAttention | as the query, without packed keys and values | the length is the maximum of the past one and the total, which is an operand |
//! | SparseAttention, DynamicSparseAttention | as GroupQueryAttention | as the inputs |
//! | PagedAttention, SparsePagedAttention | `[T, heads·size]` | as the inputs |
//! | DecoderAttention | as the query `[S, B, heads · size]` | `[B, heads, L, size]`, whose length depends on operands |
//! | QOrderedAttention, QOrderedLongformerAttention | as the input | |
//! | PackedAttention, PackedMultiHeadAttention | `[T, v]` | |
//! | GatedRelativePositionBias | `[B, heads, S, S]` | |
//! | SparseAttentionIndexer, PackedSparseAttentionIndexer | the positions of the keys chosen for each query | as the inputs, if they do not grow |
//! | RemovePadding, RestorePadding | `[B, S, h]` to `[T, h]` and back | |

use super::{dim, heads, like, operator, or_fresh, part};
use crate::dim::Dim;
use crate::ir::{Attribute, Fact};
use crate::ops::traits::{NodeFacts, Traits, attention as attention_macs};
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("Attention", infer_attention).with(Traits::NONE.macs(|view| merged_macs(view, 4))),
    operator("DecoderAttention", infer_cached_decoder).with(Traits::NONE.macs(|_| None)),
    operator("DecoderMaskedMultiHeadAttention", infer_decoder).with(Traits::NONE.macs(|_| None)),
    operator("DecoderMaskedSelfAttention", infer_attention).with(Traits::NONE.macs(|view| merged_macs(view, 4))),
    operator("DynamicSparseAttention", infer_dynamic_sparse).with(Traits::NONE.macs(|_| None)),
    operator("GatedRelativePositionBias", infer_gated_bias).with(Traits::NONE.macs(|_| None)),
    operator("GroupQueryAttention", infer_group_query).with(Traits::NONE.macs(grouped_macs)),
    operator("MultiHeadAttention", infer_multi_head).with(Traits::NONE.macs(multi_head_macs)),
    operator("PackedAttention", infer_packed).with(Traits::NONE.macs(|_| None)),
    operator("PackedMultiHeadAttention", infer_packed_multi_head).with(Traits::NONE.macs(|_| None)),
    operator("PackedSparseAttentionIndexer", infer_packed_indexer).with(Traits::NONE.macs(|_| None)),
    operator("PagedAttention", infer_paged).with(Traits::NONE.macs(|_| None)),
    operator("QAttention", infer_qattention).with(Traits::NONE.macs(|view| merged_macs(view, 8))),
    operator("QOrderedAttention", infer_ordered).with(Traits::NONE.macs(|_| None)),
    operator("QOrderedLongformerAttention", super::infer_first).with(Traits::NONE.macs(|_| None)),
    operator("RemovePadding", infer_remove_padding),
    operator("RestorePadding", infer_restore_padding),
    operator("SparseAttention", infer_sparse).with(Traits::NONE.macs(|_| None)),
    operator("SparseAttentionIndexer", infer_indexer).with(Traits::NONE.macs(|_| None)),
    operator("SparsePagedAttention", infer_paged).with(Traits::NONE.macs(|_| None)),
];

/// Returns the sizes of queries and values from merged weights or their bias.
fn merged(cx: &InferCx<'_>, weights: usize, bias: usize) -> Result<[Option<Dim>; 2], Refusal> {
    if let Some(sizes) = cx.attr_ints("qkv_hidden_sizes")?.filter(|sizes| !sizes.is_empty()) {
        return match *sizes {
            [query, _, value] if query >= 0 && value >= 0 => {
                Ok([Some(Dim::constant(query)), Some(Dim::constant(value))])
            }
            _ => Err(Refusal::invalid("attribute 'qkv_hidden_sizes' has not exactly three elements")),
        };
    }
    let third = dim(cx, weights, 1).or(dim(cx, bias, 0)).and_then(|all| part(cx, &all, 3));
    Ok([third.clone(), third])
}

fn infer_attention(cx: &mut InferCx<'_>) -> InferResult {
    attention(cx, cx.dtype(0).or(cx.dtype(1)), 4)
}

fn infer_qattention(cx: &mut InferCx<'_>) -> InferResult {
    attention(cx, [2, 3, 4].iter().find_map(|&at| cx.dtype(at)), 8)
}

fn attention(cx: &InferCx<'_>, dtype: Option<DType>, past: usize) -> InferResult {
    if cx.rank(0).is_some_and(|rank| rank != 3) {
        return Err(Refusal::invalid("the rank of the input is not 3"));
    }
    let [query, value] = merged(cx, 1, 2)?;
    let (batch, length) = (or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 0, 1)));
    let output = Fact::tensor(dtype, Some(vec![batch.clone(), length.clone(), or_fresh(cx, value)]));
    if cx.has_input(past) && cx.attr_flag("past_present_share_buffer", false)? {
        return Ok(vec![output, Fact::tensor(dtype, cx.shape(past).map(<[Dim]>::to_vec))]);
    }
    let count = heads(cx, "num_heads")?;
    let size = count.and_then(|count| part(cx, &query?, count)).or(dim(cx, past, 4));
    let total = match cx.has_input(past) {
        true => cx.scope().add(&or_fresh(cx, dim(cx, past, 3)), &length),
        false => length,
    };
    let count = or_fresh(cx, count.map(Dim::constant));
    Ok(vec![output, Fact::tensor(dtype, Some(vec![Dim::constant(2), batch, count, total, or_fresh(cx, size)]))])
}

/// Returns the multiply-accumulates of the merged projections `[H, q + k + v]` and of attention.
fn merged_macs(view: &NodeFacts<'_>, past: usize) -> Option<Dim> {
    let scope = view.scope();
    let ([batch, length, _], [_, columns]) = (view.shape(0)?, view.shape(1)?) else { return None };
    if view.int("past_present_share_buffer", 0)? != 0 {
        return None;
    }
    let total = match view.input(past) {
        None => length.clone(),
        Some(_) => scope.add(view.shape(past)?.get(3)?, length),
    };
    let query = match view.node.attribute("qkv_hidden_sizes") {
        None => scope.floor_div(columns, &Dim::constant(3)),
        Some(Attribute::Ints(sizes)) => Dim::constant(*sizes.first()?),
        Some(_) => return None,
    };
    let projected = scope.mul(&view.elements(0)?, columns);
    Some(scope.add(&projected, &attention_macs(view, &scope.product([batch, length, &query]), &total)?))
}

/// Returns the multiply-accumulates over the whole cache, whose length is a dim of the second result. The queries have as many elements as the result.
fn grouped_macs(view: &NodeFacts<'_>) -> Option<Dim> {
    let cache = view.facts.get(view.node.output(1)?)?.shape()?;
    attention_macs(view, &view.result_elements()?, cache.get(2)?)
}

/// Returns the multiply-accumulates for separate or packed operands; `None` if the cache may be a buffer of any length.
fn multi_head_macs(view: &NodeFacts<'_>) -> Option<Dim> {
    const PAST_KEY: usize = 6;
    const SHARED: usize = 8;
    if view.input(SHARED).is_some() {
        return None;
    }
    let scope = view.scope();
    let (queries, keys) = match (view.shape(0)?, view.input(1)) {
        ([_, length, _, _, _], _) => (scope.floor_div(&view.elements(0)?, &Dim::constant(3)), length),
        ([_, length, _], None) => (view.elements(0)?, length),
        (_, Some(_)) => match view.shape(1)? {
            [_, keys, _] | [_, keys, _, _, _] | [_, _, keys, _] => (view.elements(0)?, keys),
            _ => return None,
        },
        _ => return None,
    };
    let total = match view.input(PAST_KEY) {
        None => keys.clone(),
        Some(_) => scope.add(view.shape(PAST_KEY)?.get(2)?, keys),
    };
    attention_macs(view, &queries, &total)
}

fn infer_multi_head(cx: &mut InferCx<'_>) -> InferResult {
    const QUERY: usize = 0;
    const KEY: usize = 1;
    const VALUE: usize = 2;
    const PAST_KEY: usize = 6;
    const PAST_VALUE: usize = 7;
    const SHARED: usize = 8;
    let dtype = cx.dtype(QUERY);
    let Some(count) = heads(cx, "num_heads")? else {
        return Err(Refusal::invalid("attribute 'num_heads' is missing"));
    };
    let (batch, length) = (or_fresh(cx, dim(cx, QUERY, 0)), or_fresh(cx, dim(cx, QUERY, 1)));
    let joined = |size: Dim| cx.scope().mul(&size, &Dim::constant(count));
    let packed = cx.rank(QUERY) == Some(5);
    let size = match cx.shape(QUERY) {
        Some([_, _, hidden]) => part(cx, hidden, count),
        Some([_, _, _, _, size]) => Some(size.clone()),
        Some(_) => return Err(Refusal::invalid("the rank of the query is neither 3 nor 5")),
        None => dim(cx, PAST_KEY, 3),
    };
    let value_size = match cx.shape(VALUE) {
        Some([_, _, hidden]) => part(cx, hidden, count),
        Some([_, _, _, size]) => Some(size.clone()),
        Some(_) => return Err(Refusal::invalid("the rank of the value is neither 3 nor 4")),
        None if cx.has_input(VALUE) => dim(cx, PAST_VALUE, 3),
        None => size.clone(),
    };
    let hidden = match cx.shape(VALUE) {
        Some([_, _, hidden]) => Some(hidden.clone()),
        _ if !cx.has_input(VALUE) && cx.rank(QUERY) == Some(3) => dim(cx, QUERY, 2),
        _ => value_size.clone().map(joined),
    };
    let keys = match cx.shape(KEY) {
        _ if packed => Some(length.clone()),
        Some([_, keys, _] | [_, keys, _, _, _] | [_, _, keys, _]) => Some(keys.clone()),
        _ => None,
    };
    let total = match (keys, cx.has_input(PAST_KEY)) {
        // The cache may be a buffer of any length.
        _ if cx.has_input(SHARED) => None,
        (Some(keys), true) => dim(cx, PAST_KEY, 2).map(|past| cx.scope().add(&past, &keys)),
        (keys, false) => keys,
        (None, true) => None,
    };
    let total = or_fresh(cx, total);
    let cache = |size: Option<Dim>| {
        let shape = vec![batch.clone(), Dim::constant(count), total.clone(), or_fresh(cx, size)];
        Fact::tensor(dtype, Some(shape))
    };
    let output = vec![batch.clone(), length, or_fresh(cx, hidden)];
    Ok(vec![Fact::tensor(dtype, Some(output)), cache(size), cache(value_size)])
}

/// Infers DecoderAttention. The length of the caches depends on operands that enable them.
fn infer_cached_decoder(cx: &mut InferCx<'_>) -> InferResult {
    cx.require_rank(0, "query", 3..=3)?;
    let Some(count) = heads(cx, "num_heads")? else {
        return Err(Refusal::invalid("attribute 'num_heads' is missing"));
    };
    let size = dim(cx, 0, 2).and_then(|hidden| part(cx, &hidden, count));
    let (batch, size) = (or_fresh(cx, dim(cx, 0, 1)), or_fresh(cx, size));
    let cache =
        || Fact::tensor(cx.dtype(0), Some(vec![batch.clone(), Dim::constant(count), cx.fresh_dim(), size.clone()]));
    Ok(vec![like(cx, 0), cache(), cache()])
}

/// Infers QOrderedAttention, which has separate weights for queries, keys and values. By the documentation, the result has the size
/// of the values; ONNX Runtime uses the size of the input.
fn infer_ordered(cx: &mut InferCx<'_>) -> InferResult {
    cx.require_rank(0, "input", 3..=3)?;
    let values = dim(cx, 7, 1).or(dim(cx, 13, 0));
    let hidden = dim(cx, 0, 2).zip(values).filter(|(input, values)| cx.scope().eq(input, values).is_yes());
    let hidden = hidden.map(|(input, _)| input);
    let shape = vec![or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 0, 1)), or_fresh(cx, hidden)];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

fn infer_decoder(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0);
    let (batch, length) = (or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 0, 1)));
    let hidden = match cx.shape(2) {
        Some([_, _, hidden]) => Some(hidden.clone()),
        Some([_, heads, _, size]) => Some(cx.scope().mul(heads, size)),
        _ => None,
    };
    let shared = cx.attr_flag("past_present_share_buffer", false)?;
    let cache = |at: usize| match shared {
        true => Fact::tensor(dtype, cx.shape(at).map(<[Dim]>::to_vec)),
        false => Fact::tensor(dtype, Some(cx.fresh_shape(4))),
    };
    let output = Fact::tensor(dtype, Some(vec![batch, length, or_fresh(cx, hidden)]));
    Ok(vec![output, cache(5), cache(6)])
}

/// Returns the output of operators whose query may contain keys and values, and the size of a head.
fn grouped(cx: &InferCx<'_>) -> Result<(Fact, Option<Dim>), Refusal> {
    let (Some(count), Some(kv_count)) = (heads(cx, "num_heads")?, heads(cx, "kv_num_heads")?) else {
        return Err(Refusal::invalid("attribute 'num_heads' or 'kv_num_heads' is missing"));
    };
    let dtype = cx.dtype(0);
    let all =
        if cx.has_input(1) { Some(count) } else { kv_count.checked_mul(2).and_then(|both| both.checked_add(count)) };
    let all = all.ok_or_else(|| Refusal::invalid("attribute 'num_heads' is too large"))?;
    let Some(query) = cx.shape(0) else { return Ok((Fact::tensor(dtype, None), None)) };
    let Some((last, outer)) = query.split_last() else {
        return Err(Refusal::invalid("the query has rank 0"));
    };
    let size = part(cx, last, all);
    let hidden = match (&size, cx.has_input(1)) {
        (_, true) => last.clone(),
        (Some(size), false) => cx.scope().mul(size, &Dim::constant(count)),
        (None, false) => {
            return Err(Refusal::invalid("the hidden size of the query is not a multiple of the number of heads"));
        }
    };
    let shape = outer.iter().cloned().chain([hidden]).collect();
    Ok((Fact::tensor(dtype, Some(shape)), size))
}

fn infer_group_query(cx: &mut InferCx<'_>) -> InferResult {
    const PAST_KEY: usize = 3;
    const PAST_VALUE: usize = 4;
    const TOTAL: usize = 6;
    let (output, size) = grouped(cx)?;
    let total = match cx.ints(TOTAL).as_deref() {
        Some([total]) => Some(total.clone()),
        _ => None,
    };
    let windowed = cx.attr_flag("sliding_window_cache", false)?;
    let cache = |past: usize| {
        let length = match (dim(cx, past, 2), &total) {
            (Some(capacity), _) if windowed => Some(capacity),
            (Some(past), Some(total)) => Some(cx.scope().max(&past, total)),
            (None, Some(total)) if !cx.has_input(past) => Some(total.clone()),
            _ => None,
        };
        let known = |at: usize, other: Option<Dim>| or_fresh(cx, dim(cx, past, at).or(other));
        let count = cx.attr_int("kv_num_heads").ok().flatten().map(Dim::constant);
        // A quantized cache may pack several numbers into a byte.
        let size = size.clone().filter(|_| !cx.has_input(past));
        let shape = vec![known(0, dim(cx, 0, 0)), known(1, count), or_fresh(cx, length), known(3, size)];
        Fact::tensor(if cx.has_input(past) { cx.dtype(past) } else { cx.dtype(0) }, Some(shape))
    };
    Ok(vec![output, cache(PAST_KEY), cache(PAST_VALUE)])
}

fn infer_sparse(cx: &mut InferCx<'_>) -> InferResult {
    let (output, _) = grouped(cx)?;
    Ok(vec![output, like(cx, 3), like(cx, 4)])
}

fn infer_dynamic_sparse(cx: &mut InferCx<'_>) -> InferResult {
    let (output, _) = grouped(cx)?;
    let cache = |past: usize| match cx.has_input(past) {
        true => like(cx, past),
        false => Fact::tensor(cx.dtype(0), Some(cx.fresh_shape(4))),
    };
    Ok(vec![output, cache(3), cache(4)])
}

fn infer_paged(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0);
    let latent = cx.attr_str("kv_cache_layout")? == Some("LATENT");
    let output = if latent {
        let count = heads(cx, "num_heads")?;
        let size = match cx.attr_int("v_head_size")?.unwrap_or(0) {
            0 => count.and_then(|count| part(cx, cx.shape(0)?.get(1)?, count)),
            size => Some(Dim::constant(size)),
        };
        let hidden = size.zip(count).map(|(size, count)| cx.scope().mul(&size, &Dim::constant(count)));
        Fact::tensor(dtype, Some(vec![or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, hidden)]))
    } else {
        grouped(cx)?.0
    };
    let cache = |at: usize| if cx.has_input(at) { like(cx, at) } else { Fact::unknown() };
    Ok(vec![output, cache(3), cache(4)])
}

fn infer_packed(cx: &mut InferCx<'_>) -> InferResult {
    let [_, value] = merged(cx, 1, 2)?;
    let shape = vec![or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, value)];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

fn infer_packed_multi_head(cx: &mut InferCx<'_>) -> InferResult {
    let hidden = match (cx.shape(2), cx.shape(0)) {
        (Some([_, hidden]), _) => Some(hidden.clone()),
        (_, Some([_, heads, _, size])) => Some(cx.scope().mul(heads, size)),
        _ => None,
    };
    let shape = vec![or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, hidden)];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

fn infer_gated_bias(cx: &mut InferCx<'_>) -> InferResult {
    const TOKEN_OFFSET: usize = 6;
    let count = or_fresh(cx, heads(cx, "num_heads")?.map(Dim::constant));
    let from = if cx.has_input(TOKEN_OFFSET) { TOKEN_OFFSET } else { 0 };
    let (batch, length) = (or_fresh(cx, dim(cx, from, 0)), or_fresh(cx, dim(cx, from, 1)));
    Ok(vec![Fact::tensor(cx.dtype(0), Some(vec![batch, count, length.clone(), length]))])
}

/// Returns the number of positions that an indexer chooses for each query.
fn chosen(cx: &InferCx<'_>) -> Result<Option<Dim>, Refusal> {
    let budget = cx.attr_int("token_budget")?.unwrap_or(0);
    let ratio = cx.attr_int("compress_ratio")?.unwrap_or(0);
    let count = match cx.attr_str("policy_mode")? {
        Some("qsa") => budget.checked_add(ratio).and_then(|count| count.checked_sub(1)),
        _ => Some(cx.attr_int("index_topk")?.unwrap_or(0)),
    };
    Ok(count.filter(|&count| count > 0).map(Dim::constant))
}

fn infer_indexer(cx: &mut InferCx<'_>) -> InferResult {
    let count = or_fresh(cx, chosen(cx)?);
    let (batch, length) = (or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 0, 1)));
    let dtype = cx.dtype(0);
    // The growth of the caches depends on their fill level.
    let keys = vec![batch.clone(), cx.fresh_dim(), or_fresh(cx, dim(cx, 2, 0))];
    let places = Fact::tensor(Some(DType::Int32), Some(vec![batch.clone(), length, count]));
    let buffer = vec![Dim::constant(2), batch, cx.fresh_dim(), or_fresh(cx, dim(cx, 13, 3))];
    Ok(vec![places, Fact::tensor(dtype, Some(keys)), Fact::tensor(dtype, Some(buffer))])
}

fn infer_packed_indexer(cx: &mut InferCx<'_>) -> InferResult {
    let count = or_fresh(cx, chosen(cx)?);
    let tokens = or_fresh(cx, dim(cx, 0, 0));
    Ok(vec![
        Fact::tensor(Some(DType::Int32), Some(vec![tokens.clone(), count])),
        Fact::tensor(Some(DType::Int32), Some(vec![tokens])),
        like(cx, 12),
        like(cx, 13),
        if cx.has_input(14) { like(cx, 14) } else { Fact::unknown() },
        like(cx, 15),
    ])
}

fn infer_remove_padding(cx: &mut InferCx<'_>) -> InferResult {
    let (batch, length) = (or_fresh(cx, dim(cx, 0, 0).or(dim(cx, 1, 0))), or_fresh(cx, dim(cx, 0, 1)));
    let (_, most) = cx.scope().bounds(&cx.scope().mul(&batch, &length));
    let tokens = cx.scope().fresh_within("token_count", Some(0), most.map(|most| most.max(0)));
    let integers = |shape: Vec<Dim>| Fact::tensor(Some(DType::Int32), Some(shape));
    let one = Dim::constant(1);
    Ok(vec![
        Fact::tensor(cx.dtype(0), Some(vec![tokens, or_fresh(cx, dim(cx, 0, 2))])),
        integers(vec![batch.clone(), length]),
        integers(vec![cx.scope().add(&batch, &one)]),
        integers(vec![one]),
    ])
}

fn infer_restore_padding(cx: &mut InferCx<'_>) -> InferResult {
    let shape = [(1, 0), (1, 1), (0, 1)].map(|(at, axis)| or_fresh(cx, dim(cx, at, axis)));
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape.to_vec()))])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType::{Float, Float16, Int32};

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain("com.microsoft").with("num_heads", 4)
    }

    #[test]
    fn merged_weights() {
        let plain = || node("Attention").output().input(Float, "B S 64").input(Float, "64 192").input(Float, "192");
        assert_eq!(plain().infer(), ["float[B, S, 64]", "float[2, B, 4, S, 16]"]);
        assert_eq!(plain().absent().input(Float, "2 B 4 P 16").infer()[1], "float[2, B, 4, S + P, 16]");
        let shared = plain().absent().input(Float, "2 B 4 M 16").with("past_present_share_buffer", 1);
        assert_eq!(shared.infer()[1], "float[2, B, 4, M, 16]");
        assert_eq!(plain().with("qkv_hidden_sizes", vec![64, 64, 32]).infer()[0], "float[B, S, 32]");
        let packed = node("PackedAttention").input(Float, "T 64").input(Float, "64 192");
        assert_eq!(packed.infer(), ["float[T, 64]"]);
    }

    #[test]
    fn decoders() {
        let cached = node("DecoderAttention").output().output().input(Float, "S B 64").input(Float, "K B 64");
        assert_eq!(cached.infer(), ["float[S, B, 64]", "float[B, 4, ?, 16]", "float[B, 4, ?, 16]"]);
        let masked = node("DecoderMaskedSelfAttention").output().input(Float, "B 1 64").input(Float, "64 192");
        let masked = masked.input(Float, "192").absent().input(Float, "2 B 4 P 16");
        assert_eq!(masked.infer(), ["float[B, 1, 64]", "float[2, B, 4, P + 1, 16]"]);
    }

    #[test]
    fn several_heads() {
        let all = || node("MultiHeadAttention").output().output();
        let plain = || all().input(Float, "B S 64").input(Float, "B K 64").input(Float, "B K 32");
        assert_eq!(plain().infer(), ["float[B, S, 32]", "float[B, 4, K, 16]", "float[B, 4, K, 8]"]);
        let past = plain().absent().absent().absent().input(Float, "B 4 P 16").input(Float, "B 4 P 8");
        assert_eq!(past.infer()[1..], ["float[B, 4, K + P, 16]", "float[B, 4, K + P, 8]"]);
        assert_eq!(all().input(Float, "B S 4 3 16").infer()[..2], ["float[B, S, 64]", "float[B, 4, S, 16]"]);
        assert_eq!(
            all().input(Float, "B S 64").input(Float, "B K 4 2 16").infer()[..2],
            ["float[B, S, 64]", "float[B, 4, K, 16]"]
        );
        let cross = all().input(Float, "B S 64").input(Float, "B 4 K 16").input(Float, "B 4 K 16");
        assert_eq!(cross.infer()[0], "float[B, S, 64]");
    }

    #[test]
    fn grouped_heads() {
        let node = || node("GroupQueryAttention").output().output().with("kv_num_heads", 2);
        let plain = || node().input(Float16, "B S 64").input(Float16, "B S 32").input(Float16, "B S 32");
        let caches = |node: Single, shape: &str| node.input(Float16, shape).input(Float16, shape).input(Int32, "B");
        let open = caches(plain(), "B 2 P 16").input(Int32, "");
        assert_eq!(open.infer(), ["float16[B, S, 64]", "float16[B, 2, ?, 16]", "float16[B, 2, ?, 16]"]);
        let known = caches(plain(), "B 2 5 16").values(&[], &[7i32]);
        assert_eq!(known.infer()[1], "float16[B, 2, 7, 16]");
        let first = plain().absent().absent().input(Int32, "B").values(&[], &[7i32]);
        assert_eq!(first.infer()[1], "float16[B, 2, 7, 16]");
        let packed = caches(node().input(Float16, "B S 128").absent().absent(), "B 2 P 16").input(Int32, "");
        assert_eq!(packed.infer()[0], "float16[B, S, 64]");
    }

    #[test]
    fn padding_and_biases() {
        let remove = Single::new("RemovePadding", 17).in_domain("com.microsoft").output().output().output();
        let remove = remove.input(Float, "B S 64").input(Int32, "B");
        assert_eq!(remove.infer(), ["float[?, 64]", "int32[B, S]", "int32[B + 1]", "int32[1]"]);
        let restore = Single::new("RestorePadding", 17).in_domain("com.microsoft");
        assert_eq!(restore.input(Float, "T 64").input(Int32, "B S").infer(), ["float[B, S, 64]"]);
        let bias = node("GatedRelativePositionBias").input(Float, "B S 64");
        assert_eq!(bias.infer(), ["float[B, 4, S, S]"]);
    }

    #[test]
    fn heads_are_counted() {
        let none = Single::new("MultiHeadAttention", 17).in_domain("com.microsoft").input(Float, "B S 64");
        assert!(none.infer()[0].starts_with("invalid"));
        let zero = Single::new("MultiHeadAttention", 17).in_domain("com.microsoft").input(Float, "B S 64");
        assert!(zero.with("num_heads", 0).infer()[0].starts_with("invalid"));
    }
}
