//! Operators of ONNX Runtime's domain `com.microsoft`, which its optimizers and exporters write. Only shapes and types are inferred;
//! nothing is evaluated.
//!
//! | operators | result | file |
//! |---|---|---|
//! | activations, normalizations, experts, copies | as an operand | here |
//! | attention, caches, padding | see there | [`attention`] |
//! | attention with a recurrent state, its gates, hashed n-grams | see there | [`recurrent`] |
//! | searches that run a decoder, containers of compiled parts | see there | [`generation`] |
//! | operators that move, select or pair elements | see there | [`movement`] |
//! | products with transposed, quantized or packed matrices, convolutions | see there | [`matrix`] |
//! | element-wise and other operators on quantized numbers | see there | [`quantized`] |
//!
//! Inferred facts are those on which the operators' documentation and ONNX Runtime's two inferences (in C++ and in Python) agree.
//! Facts from only one of them, such as an assumed shared cache, are unknown. The domain has one version: an operator may gain
//! operands over time, but does not change.

mod attention;
mod generation;
mod matrix;
mod movement;
mod quantized;
mod recurrent;

use super::broadcast::broadcast_shapes;
use super::traits::Traits;
use super::{InferCx, InferResult, Operator, Refusal, axis_in, pool};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::tensor::DType;

pub(super) const DOMAIN: &str = "com.microsoft";

/// Returns an operator of the domain.
const fn operator(name: &'static str, infer: super::Infer) -> Operator {
    Operator::infer_only(name, &[1], infer).in_domain(DOMAIN)
}

pub(super) use attention::OPERATORS as ATTENTION;
pub(super) use generation::OPERATORS as GENERATION;
pub(super) use matrix::OPERATORS as MATRIX;
pub(super) use movement::OPERATORS as MOVEMENT;
pub(super) use quantized::OPERATORS as QUANTIZED;
pub(super) use recurrent::OPERATORS as RECURRENT;

pub(super) const OPERATORS: &[Operator] = &[
    operator("AllReduce", infer_first),
    operator("AttnLSTM", infer_attention_lstm).with(Traits::NONE.macs(|_| None)),
    operator("BiasAdd", infer_first),
    operator("BiasDropout", infer_dropout).random(),
    operator("BiasGelu", infer_first),
    operator("BiasSoftmax", infer_first),
    operator("BiasSplitGelu", infer_bias_split_gelu),
    operator("BitmaskBiasDropout", infer_bitmask_dropout).random(),
    operator("BitmaskDropout", infer_bitmask_dropout).random(),
    operator("BranchwiseRMSNorm", infer_first),
    operator("ComplexMul", infer_complex_product),
    operator("ComplexMulConj", infer_complex_product),
    operator("DynamicTimeWarping", infer_dynamic_time_warping),
    operator("EmbedLayerNormalization", infer_embed_layer_normalization),
    operator("FastGelu", infer_first),
    operator("Gelu", infer_first),
    operator("GemmaRotaryEmbedding", infer_gemma_rotary_embedding),
    operator("GroupNorm", infer_first),
    operator("HyperConnectionPostMix", infer_first),
    operator("HyperConnectionPreMix", infer_hyper_connection_pre_mix),
    operator("Inverse", infer_first),
    operator("Irfft", infer_inverse_transform),
    operator("IsAllFinite", infer_all_finite),
    operator("LongformerAttention", infer_first).with(Traits::NONE.macs(|_| None)),
    operator("MRotaryEmbedding", infer_first),
    operator("MaxpoolWithMask", infer_masked_max_pool),
    operator("MoE", infer_first).with(Traits::NONE.macs(|_| None)),
    operator("NGramRepeatBlock", infer_ngram_repeat_block),
    operator("NegativeLogLikelihoodLossInternal", infer_loss),
    operator("QMoE", infer_first).with(Traits::NONE.macs(|_| None)),
    operator("QuickGelu", infer_first),
    operator("RelativePositionBias", infer_relative_position_bias),
    operator("Rfft", infer_transform),
    operator("RotaryEmbedding", infer_first),
    operator("SampleOp", infer_first),
    operator("ScaledSiLU", infer_first),
    operator("SkipGroupNorm", infer_skip_group_norm),
    operator("SkipLayerNormalization", infer_skip_layer_normalization).with(Traits::NONE.fused_with_next()),
    operator("SkipSimplifiedLayerNormalization", infer_skip_layer_normalization),
    operator("SoftmaxCrossEntropyLoss", infer_loss),
    operator("SoftmaxCrossEntropyLossInternal", infer_loss),
    operator("Trilu", infer_first),
    operator("UnfoldTensor", infer_unfold),
    // ONNX Runtime defines this one in the default domain.
    Operator::infer_only("SimplifiedLayerNormalization", &[1], infer_simplified_layer_normalization),
];

/// Returns a result with the type and shape of operand `i`.
fn like(cx: &InferCx<'_>, i: usize) -> Fact {
    Fact::tensor(cx.dtype(i), cx.shape(i).map(<[Dim]>::to_vec))
}

/// Returns a dim of operand `i`, if known.
fn dim(cx: &InferCx<'_>, i: usize, axis: usize) -> Option<Dim> {
    cx.shape(i).and_then(|shape| shape.get(axis)).cloned()
}

/// Returns the dim, or a new symbol.
fn or_fresh(cx: &InferCx<'_>, dim: Option<Dim>) -> Dim {
    dim.unwrap_or_else(|| cx.fresh_dim())
}

/// Returns `1 / count` of a dim that is divisible in a model that runs.
fn part(cx: &InferCx<'_>, dim: &Dim, count: i64) -> Option<Dim> {
    if count < 1 || dim.as_const().is_some_and(|dim| dim % count != 0) {
        return None;
    }
    Some(cx.scope().floor_div(dim, &Dim::constant(count)))
}

fn infer_first(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 0)])
}

/// Returns a number of heads from an attribute, if given.
fn heads(cx: &InferCx<'_>, name: &str) -> Result<Option<i64>, Refusal> {
    match cx.attr_int(name)? {
        Some(heads) if heads < 1 => Err(Refusal::invalid(format!("attribute '{name}' is {heads}, which is not valid"))),
        heads => Ok(heads),
    }
}

/// Returns the shape that operands broadcast to, if all shapes are known.
fn broadcast(cx: &InferCx<'_>, operands: &[usize]) -> Result<Option<Vec<Dim>>, Refusal> {
    let shapes: Option<Vec<&[Dim]>> = operands.iter().map(|&at| cx.shape(at)).collect();
    shapes.map(|shapes| broadcast_shapes(cx.scope(), &shapes)).transpose()
}

/// Infers AttnLSTM, like LSTM.
fn infer_attention_lstm(cx: &mut InferCx<'_>) -> InferResult {
    const MEMORY: usize = 11;
    // With a memory, the input of the cell is wider than X, so weights do not determine X.
    let hidden = match cx.attr_int("hidden_size")? {
        Some(size @ 1..) => Dim::constant(size),
        Some(size) => return Err(Refusal::invalid(format!("attribute 'hidden_size' is {size}, which is not valid"))),
        None => or_fresh(cx, dim(cx, 2, 2)),
    };
    let directions = match cx.attr_str("direction")? {
        Some("bidirectional") => Dim::constant(2),
        _ => Dim::constant(1),
    };
    let batch = or_fresh(cx, dim(cx, 0, 1).or(dim(cx, MEMORY, 0)));
    let state = Fact::tensor(cx.dtype(0), Some(vec![directions.clone(), batch.clone(), hidden.clone()]));
    let all = vec![or_fresh(cx, dim(cx, 0, 0)), directions, batch, hidden];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(all)), state.clone(), state])
}

/// Infers the data and the boolean mask of kept elements.
fn infer_dropout(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 0), Fact::tensor(Some(DType::Bool), cx.shape(0).map(<[Dim]>::to_vec))])
}

/// Infers the data and the mask of kept elements, one bit each, in 32-bit words.
fn infer_bitmask_dropout(cx: &mut InferCx<'_>) -> InferResult {
    let words = cx.shape(0).map(|shape| {
        let scope = cx.scope();
        let elements = shape.iter().fold(Dim::constant(1), |product, dim| scope.mul(&product, dim));
        scope.floor_div(&scope.add(&elements, &Dim::constant(31)), &Dim::constant(32))
    });
    Ok(vec![like(cx, 0), Fact::tensor(Some(DType::Uint32), Some(vec![or_fresh(cx, words)]))])
}

/// Infers the broadcast of complex numbers `[…, 2]`.
fn infer_complex_product(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(1)), broadcast(cx, &[0, 1])?)])
}

/// Maps `[…, n]` to the one-sided spectrum `[…, n / 2 + 1, 2]`. The layout of multi-axis signals is not documented.
fn infer_transform(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match cx.shape(0) {
        Some([outer @ .., length]) if cx.attr_int("signal_ndim")?.unwrap_or(1) == 1 => {
            let half = cx.scope().floor_div(length, &Dim::constant(2));
            let half = cx.scope().add(&half, &Dim::constant(1));
            Some(outer.iter().cloned().chain([half, Dim::constant(2)]).collect())
        }
        Some(shape) => Some(cx.fresh_shape(shape.len().saturating_add(1))),
        None => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

/// Maps the one-sided spectrum `[…, n / 2 + 1, 2]` to `[…, n]` with an even `n`.
fn infer_inverse_transform(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match cx.shape(0) {
        Some([outer @ .., half, _]) if cx.attr_int("signal_ndim")?.unwrap_or(1) == 1 => {
            let half = cx.scope().sub(half, &Dim::constant(1));
            let length = cx.scope().mul(&half, &Dim::constant(2));
            Some(outer.iter().cloned().chain([length]).collect())
        }
        Some(shape) => Some(cx.fresh_shape(shape.len().saturating_sub(1))),
        None => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

fn infer_all_finite(_: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(Some(DType::Bool), Some(Vec::new()))])
}

/// Infers the shape like MaxPool; the mask has the operand's shape.
fn infer_masked_max_pool(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0), pool::shape_of(cx, false)?)])
}

fn infer_ngram_repeat_block(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 1)])
}

/// Infers queries and keys, both rotated.
fn infer_gemma_rotary_embedding(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 1), like(cx, 3)])
}

/// Infers the normalized sum, and the sum.
fn infer_skip_group_norm(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 0), like(cx, 0)])
}

/// Infers the normalized sum, its mean and inverse deviation over the last axis, and the sum.
fn infer_skip_layer_normalization(cx: &mut InferCx<'_>) -> InferResult {
    let statistics = cx.shape(0).and_then(|shape| {
        let (_, outer) = shape.split_last()?;
        Some(outer.iter().cloned().chain([Dim::constant(1)]).collect::<Vec<Dim>>())
    });
    let statistics = Fact::tensor(Some(DType::Float), statistics);
    Ok(vec![like(cx, 0), statistics.clone(), statistics, like(cx, 0)])
}

/// Infers the normalized operand, and its inverse deviation over the axes from `axis` on.
fn infer_simplified_layer_normalization(cx: &mut InferCx<'_>) -> InferResult {
    let axis = cx.attr_int("axis")?.unwrap_or(-1);
    let statistics = match cx.shape(0) {
        None => None,
        Some(shape) => {
            let axis = axis_in(axis, shape.len())?;
            let kept = |(at, dim): (usize, &Dim)| if at < axis { dim.clone() } else { Dim::constant(1) };
            Some(shape.iter().enumerate().map(kept).collect())
        }
    };
    let stash = match cx.attr_int("stash_type")? {
        None => Some(DType::Float),
        Some(_) => cx.attr_dtype("stash_type")?,
    };
    let dtype = cx.dtype(1).or(cx.dtype(0));
    let y = Fact::tensor(dtype, cx.shape(0).map(<[Dim]>::to_vec));
    Ok(vec![y, Fact::tensor(stash, statistics)])
}

/// Maps `X [N, S, D]` to `[N, S, D / 2]`.
fn infer_bias_split_gelu(cx: &mut InferCx<'_>) -> InferResult {
    let half = dim(cx, 1, 0).or(dim(cx, 0, 2)).and_then(|whole| part(cx, &whole, 2));
    let shape = vec![or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 0, 1)), or_fresh(cx, half)];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

/// Maps `input_ids [B, S]` and `word_embedding [V, D]` to `[B, S, D]`, a mask index `[B]`, and the sum of the embeddings.
fn infer_embed_layer_normalization(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = [2, 3, 5].iter().find_map(|&at| cx.dtype(at));
    Ok(embedded(cx, dtype))
}

/// Infers the results of an EmbedLayerNormalization of this type.
fn embedded(cx: &InferCx<'_>, dtype: Option<DType>) -> Vec<Fact> {
    let batch = or_fresh(cx, dim(cx, 0, 0).or(dim(cx, 1, 0)));
    let size = [(2, 1), (3, 1), (5, 0), (6, 0)].iter().find_map(|&(at, axis)| dim(cx, at, axis));
    let shape = vec![batch.clone(), or_fresh(cx, dim(cx, 0, 1).or(dim(cx, 1, 1))), or_fresh(cx, size)];
    let sum = Fact::tensor(dtype, Some(shape));
    vec![sum.clone(), Fact::tensor(Some(DType::Int32), Some(vec![batch])), sum]
}

/// Maps `(…, C, H)`, or `(…, C·H)` with the number of branches as an attribute, to `(…, H)`.
fn infer_hyper_connection_pre_mix(cx: &mut InferCx<'_>) -> InferResult {
    let branches = cx.attr_int("num_branches")?.unwrap_or(0);
    let shape = match (cx.shape(0), branches) {
        (None, _) => None,
        (Some([outer @ .., _, size]), 0) => Some(outer.iter().chain([size]).cloned().collect()),
        (Some([outer @ .., packed]), 1..) => {
            let size = or_fresh(cx, part(cx, packed, branches));
            Some(outer.iter().cloned().chain([size]).collect())
        }
        _ => {
            return Err(Refusal::invalid(
                "the rank of the operand with the residual streams is too low, or the number of branches is negative",
            ));
        }
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

/// Maps `bias_table [buckets, heads]` to `[1, heads, query_length, key_length]`; the lengths are operands.
fn infer_relative_position_bias(cx: &mut InferCx<'_>) -> InferResult {
    let length = |at: usize| match cx.ints(at).as_deref() {
        Some([length]) => length.clone(),
        _ => cx.fresh_dim(),
    };
    let shape = vec![Dim::constant(1), or_fresh(cx, dim(cx, 0, 1)), length(1), length(2)];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

/// Infers windows of `size` along `dim`, `step` apart: their number replaces the axis, their elements are a new last axis.
fn infer_unfold(cx: &mut InferCx<'_>) -> InferResult {
    let step = cx.attr_int("step")?.unwrap_or(1);
    let size = cx.attr_int("size")?.ok_or_else(|| Refusal::invalid("attribute 'size' is missing"))?;
    if step < 1 || size < 0 {
        return Err(Refusal::invalid(format!(
            "attribute 'size' is {size} and attribute 'step' is {step}: 'size' must not be negative, and 'step' must be positive"
        )));
    }
    let shape = match cx.shape(0) {
        None => None,
        Some(shape) => {
            let axis = axis_in(cx.attr_int("dim")?.unwrap_or(-1), shape.len())?;
            let mut dims = shape.to_vec();
            if let Some(dim) = dims.get_mut(axis) {
                let free = cx.scope().sub(dim, &Dim::constant(size));
                let steps = cx.scope().floor_div(&free, &Dim::constant(step));
                *dim = cx.scope().add(&steps, &Dim::constant(1));
            }
            dims.push(Dim::constant(size));
            Some(dims)
        }
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

/// Infers a path `[2, O]` through a matrix `[M, N]` or `[1, M, N]`, with `max(M, N) ≤ O < M + N`.
fn infer_dynamic_time_warping(cx: &mut InferCx<'_>) -> InferResult {
    if cx.rank(0).is_some_and(|rank| rank != 2 && rank != 3) {
        return Err(Refusal::invalid("the rank of the operand is neither 2 nor 3"));
    }
    let length = match cx.shape(0) {
        Some([.., rows, columns]) => {
            let (low, _) = cx.scope().bounds(&cx.scope().max(rows, columns));
            let (_, high) = cx.scope().bounds(&cx.scope().add(rows, columns));
            let high = high.and_then(|high| high.checked_sub(1));
            cx.scope().fresh_within("path", Some(low.unwrap_or(0).max(0)), high.map(|high| high.max(low.unwrap_or(0))))
        }
        _ => cx.fresh_dim(),
    };
    Ok(vec![Fact::tensor(Some(DType::Int32), Some(vec![Dim::constant(2), length]))])
}

/// Infers the loss, a scalar if it is reduced, and for cross entropy also the log probabilities.
fn infer_loss(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.attr_int("output_type")? {
        None => cx.dtype(0),
        Some(_) => cx.attr_dtype("output_type")?,
    };
    let shape = match cx.attr_str("reduction")?.unwrap_or("mean") {
        "none" => cx.shape(1).map(<[Dim]>::to_vec),
        _ => Some(Vec::new()),
    };
    Ok(vec![Fact::tensor(dtype, shape), Fact::tensor(dtype, cx.shape(0).map(<[Dim]>::to_vec))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain(DOMAIN)
    }

    #[test]
    fn names_are_in_no_table_twice() {
        let mut names: Vec<(&str, &str)> =
            crate::ops::operators().map(|operator| (operator.domain, operator.name)).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// Returns the operators of ONNX Runtime with their number of results; `scripts/onnxruntime_operators.py` prints the list.
    fn schemas() -> impl Iterator<Item = (&'static str, usize)> {
        include_str!("schemas.txt").lines().map(|line| {
            let (name, results) = line.split_once(' ').unwrap();
            (name, results.parse().unwrap())
        })
    }

    #[test]
    fn every_operator_of_the_runtime_is_known() {
        let unknown: Vec<&str> =
            schemas().map(|(name, _)| name).filter(|name| crate::ops::operator(DOMAIN, name).is_none()).collect();
        assert!(unknown.is_empty(), "these have no entry: {unknown:?}");
        assert!(schemas().count() >= 136);
    }

    /// For any operands in a file, inference returns a fact or a refusal per result.
    #[test]
    fn any_operands_are_inferred() {
        let shapes =
            ["", "0", "N", "3 N", "2 N 4", "N 8 1 3", "2 3 4 5 N", "9223372036854775807 N 9223372036854775807"];
        for (name, results) in schemas() {
            for (turn, operands) in [0, 1, 2, 3, 5, 9, 17].into_iter().enumerate() {
                for dtype in [DType::Float, DType::Int64, DType::Uint8, DType::String] {
                    let mut node =
                        node(name).with("num_heads", 3).with("axis", -1).with("state_update_capacity", i64::MAX);
                    for heads in
                        ["kv_num_heads", "q_num_heads", "N", "K", "Nq", "Nkv", "max_ngram_size", "n_head_per_ngram"]
                    {
                        node = node.with(heads, if turn == 6 { i64::MAX } else { 2 });
                    }
                    for operand in 0..operands {
                        node = match shapes.get((operand * 5 + turn) % 11) {
                            Some(shape) => node.input(dtype, shape),
                            None if operand % 2 == 0 => node.absent(),
                            None => node.unranked(dtype),
                        };
                    }
                    for _ in 1..results {
                        node = node.output();
                    }
                    let facts = node.infer();
                    assert!(facts.len() == results || facts[0].starts_with("invalid"), "{name}: {facts:?}");
                }
            }
        }
    }

    #[test]
    fn results_like_operands() {
        assert_eq!(node("FastGelu").input(DType::Float16, "B S 64").infer(), ["float16[B, S, 64]"]);
        let skip = node("SkipLayerNormalization").output().output().output();
        let skip = skip.input(DType::Float16, "B S 64").input(DType::Float16, "B S 64");
        assert_eq!(skip.infer(), ["float16[B, S, 64]", "float[B, S, 1]", "float[B, S, 1]", "float16[B, S, 64]"]);
        let masked = node("MaxpoolWithMask").input(DType::Float, "N C 9 W").input(DType::Int32, "N C 9 W");
        assert_eq!(masked.with("kernel_shape", vec![2, 2]).infer(), ["float[N, C, 8, W - 1]"]);
        let simplified = Single::new("SimplifiedLayerNormalization", 17).output().input(DType::Float, "B S 64");
        assert_eq!(simplified.input(DType::Float, "64").infer(), ["float[B, S, 64]", "float[B, S, 1]"]);
    }

    #[test]
    fn masks_and_spectra() {
        let dropout = |name: &str| node(name).output().input(DType::Float16, "B 10").input(DType::Float16, "10");
        assert_eq!(dropout("BiasDropout").infer(), ["float16[B, 10]", "bool[B, 10]"]);
        let bits = node("BitmaskDropout").output().input(DType::Float, "3 11");
        assert_eq!(bits.infer(), ["float[3, 11]", "uint32[2]"]);
        let product = node("ComplexMul").input(DType::Float, "B 1 2").input(DType::Float, "4 2");
        assert_eq!(product.infer(), ["float[B, 4, 2]"]);
        assert_eq!(node("Rfft").input(DType::Float, "B 10").infer(), ["float[B, 6, 2]"]);
        assert_eq!(node("Irfft").with("signal_ndim", 1).input(DType::Float, "B 6 2").infer(), ["float[B, 10]"]);
        assert_eq!(node("Rfft").with("signal_ndim", 2).input(DType::Float, "B 10").infer(), ["float[?, ?, ?]"]);
        assert_eq!(node("IsAllFinite").input(DType::Float, "B").infer(), ["bool[]"]);
        let lstm = node("AttnLSTM").output().output().with("hidden_size", 7).with_str("direction", "bidirectional");
        let lstm = lstm.input(DType::Float, "T B 3").input(DType::Float, "2 28 3").input(DType::Float, "2 28 7");
        assert_eq!(lstm.infer(), ["float[T, 2, B, 7]", "float[2, B, 7]", "float[2, B, 7]"]);
    }

    #[test]
    fn embeddings_and_biases() {
        let embed = node("EmbedLayerNormalization").output().output().input(DType::Int32, "B S").absent();
        let embed = embed.input(DType::Float, "V 64").input(DType::Float, "P 64");
        assert_eq!(embed.infer(), ["float[B, S, 64]", "int32[B]", "float[B, S, 64]"]);
        let bias =
            node("RelativePositionBias").input(DType::Float, "32 H").values(&[], &[5i64]).input(DType::Int64, "");
        assert_eq!(bias.infer(), ["float[1, H, 5, ?]"]);
        let split = node("BiasSplitGelu").input(DType::Float, "B S D").input(DType::Float, "2560");
        assert_eq!(split.infer(), ["float[B, S, 1280]"]);
    }

    #[test]
    fn windows_paths_and_branches() {
        let unfold = node("UnfoldTensor").with("dim", 1).with("size", 4).with("step", 2);
        assert_eq!(unfold.input(DType::Float, "B 10 64").infer(), ["float[B, 4, 64, 4]"]);
        assert!(
            node("UnfoldTensor").with("size", 4).with("step", 0).input(DType::Float, "B").infer()[0]
                .starts_with("invalid")
        );
        assert_eq!(node("DynamicTimeWarping").input(DType::Float, "3 5").infer(), ["int32[2, ?]"]);
        let mix = node("HyperConnectionPreMix").with("num_branches", 4);
        assert_eq!(mix.input(DType::Float, "B S 256").infer(), ["float[B, S, 64]"]);
        let loss = node("SoftmaxCrossEntropyLossInternal").output().with_str("reduction", "none");
        assert_eq!(loss.input(DType::Float, "N C").input(DType::Int64, "N").infer(), ["float[N]", "float[N, C]"]);
        let loss = node("SoftmaxCrossEntropyLoss").input(DType::Float, "B S 1024").input(DType::Int32, "B S");
        assert_eq!(loss.infer(), ["float[]"]);
    }
}
