//! Matrix products and convolutions of `com.microsoft`.
//!
//! | operator | result |
//! |---|---|
//! | FusedMatMul, FusedMatMulActivation, TransposeMatMul | as MatMul of operands transposed by `transA`, `transB` (the last two axes) and `transBatchA`, `transBatchB` (the first axis moves after the other leading ones) |
//! | MatMulInteger16, MatMulIntegerToFloat, DynamicQuantizeMatMul, GemmFastGelu | as MatMul; the type is int32, that of the scales, that of `A` |
//! | MatMulNBits, MatMulBnb4 | `[…, K]` to `[…, N]`; `N` is an attribute |
//! | FusedGemm, GemmFloat8, QGemm | as Gemm; an attribute or the zero point may define the type |
//! | FusedConv, QLinearConv | as Conv |
//! | MatMulNBitsMlp, MatMulNBitsQkv | `[…, K]` to `[…, N]`; to `[…, Nq]`, `[…, Nkv]` and `[…, Nkv]`; and the sum as the operand |
//! | MatMulBlockQuantizedFp4Weight, MatMulBlockQuantizedFp8Weight | `A […, K]`, `B [N, K]` (or bytes of two codes) to `[…, N]` |
//! | MatMulFpQ4 | as MatMul of `A` and a matrix whose shape is an operand |
//! | QOrderedMatMul | as MatMul of operands 0 and 2 |
//! | SparseToDenseMatMul | has the type of `B`; the shape of the sparse operand is unknown |
//! | ConvTransposeWithDynamicPads | as ConvTranspose with the pads of operand 2 |
//! | WordConvEmbedding | words of characters `[S, L]` to `[S, C]`, by a kernel `[C, 1, k, D]` |
//! | CausalConvWithState | as the operand, and a state `[N, C, (k − 1) · dilation]` or, with `channels_last`, `[N, (k − 1) · dilation, C…]`; the state of several spatial axes or positions is unknown |
//! | NhwcConv, NhwcFusedConv, QLinearConv with `channels_last` | `[N, D…, C]`; sources differ on the layout of the weights, so window positions are inferred only with `kernel_shape` |

use super::{dim, like, operator, or_fresh};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::conv::conv_shape;
use crate::ops::linear::{gemm_shape, matmul_shape, product_dims};
use crate::ops::traits::{NodeFacts, Traits, convolution, matrix_product, transposed_convolution, turned_product};
use crate::ops::window::{Window, read_numbers};
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("CausalConvWithState", infer_causal_conv).with(Traits::NONE.macs(|view| convolution(view, 1))),
    operator("ConvTransposeWithDynamicPads", infer_conv_transpose).with(Traits::NONE.macs(transposed_convolution)),
    operator("DynamicQuantizeMatMul", infer_matmul).with(Traits::NONE.macs(matrix_product)),
    operator("FusedConv", infer_fused_conv).with(Traits::NONE.macs(|view| convolution(view, 1))),
    operator("FusedGemm", infer_fused_gemm).with(Traits::NONE.macs(turned_product)),
    operator("FusedMatMul", infer_fused_matmul).with(Traits::NONE.macs(turned_product)),
    operator("FusedMatMulActivation", infer_fused_matmul).with(Traits::NONE.macs(turned_product)),
    operator("GemmFastGelu", infer_matmul).with(Traits::NONE.macs(matrix_product)),
    operator("GemmFloat8", infer_gemm_float8).with(Traits::NONE.macs(turned_product)),
    operator("MatMulBlockQuantizedFp4Weight", infer_block_weights).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulBlockQuantizedFp8Weight", infer_block_weights).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulBnb4", infer_packed_weights).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulFpQ4", infer_shaped_weights).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulInteger16", infer_matmul_integer16).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulIntegerToFloat", infer_matmul_integer_to_float).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulNBits", infer_packed_weights).with(Traits::NONE.macs(matrix_product)),
    operator("MatMulNBitsMlp", infer_packed_mlp).with(Traits::NONE.macs(mlp_macs)),
    operator("MatMulNBitsQkv", infer_packed_qkv).with(Traits::NONE.macs(qkv_macs)),
    operator("NhwcConv", infer_nhwc_conv).with(Traits::NONE.macs(|view| channels_last_macs(view, 1))),
    operator("NhwcFusedConv", infer_nhwc_conv).with(Traits::NONE.macs(|view| channels_last_macs(view, 1))),
    operator("QGemm", infer_qgemm).with(Traits::NONE.macs(turned_product)),
    operator("QLinearConv", infer_qlinear_conv).with(Traits::NONE.macs(quantized_conv_macs)),
    operator("QOrderedMatMul", infer_ordered_matmul).with(Traits::NONE.macs(matrix_product)),
    operator("SparseToDenseMatMul", infer_sparse_matmul).with(Traits::NONE.macs(|_| None)),
    operator("TransposeMatMul", infer_fused_matmul).with(Traits::NONE.macs(turned_product)),
    operator("WordConvEmbedding", infer_word_embedding).with(Traits::NONE.macs(|_| None)),
];

fn infer_matmul(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0), matmul_shape(cx, 0, 1)?)])
}

fn infer_matmul_integer16(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(Some(DType::Int32), matmul_shape(cx, 0, 1)?)])
}

fn infer_matmul_integer_to_float(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(2).or(cx.dtype(3)), matmul_shape(cx, 0, 1)?)])
}

fn infer_fused_matmul(cx: &mut InferCx<'_>) -> InferResult {
    let turned = |at: usize, batch: &str, matrix: &str| -> Result<Option<Vec<Dim>>, Refusal> {
        let (batch, matrix) = (cx.attr_flag(batch, false)?, cx.attr_flag(matrix, false)?);
        let Some(shape) = cx.shape(at) else { return Ok(None) };
        let mut shape = shape.to_vec();
        if let ([leading @ .., _], true) = (shape.as_mut_slice(), batch)
            && leading.len() > 1
        {
            leading.rotate_left(1);
        }
        if let ([.., rows, columns], true) = (shape.as_mut_slice(), matrix) {
            std::mem::swap(rows, columns);
        }
        Ok(Some(shape))
    };
    let shape = match (turned(0, "transBatchA", "transA")?, turned(1, "transBatchB", "transB")?) {
        (Some(a), Some(b)) => Some(product_dims(cx, &a, &b)?),
        _ => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(1)), shape)])
}

fn infer_packed_weights(cx: &mut InferCx<'_>) -> InferResult {
    let [n, k] = ["N", "K"].map(|name| cx.attr_int(name));
    let (Some(n @ 0..), Some(k @ 0..)) = (n?, k?) else {
        return Err(Refusal::invalid("attribute 'N' or 'K' is missing or negative"));
    };
    // MatMulBnb4 may store its weights transposed.
    let (columns, summed) = if cx.attr_int("transB")?.unwrap_or(1) == 0 { (k, n) } else { (n, k) };
    Ok(vec![projected(cx, Some(Dim::constant(columns)), Some(Dim::constant(summed)))?])
}

/// Infers the product of operand 0, `[…, summed]`, with a matrix `[summed, columns]`.
fn projected(cx: &InferCx<'_>, columns: Option<Dim>, summed: Option<Dim>) -> Result<Fact, Refusal> {
    let shape = match (cx.shape(0), summed) {
        (None, _) => None,
        (Some([outer @ .., last]), summed) => {
            if let Some(summed) = summed.filter(|summed| cx.scope().eq(last, summed).is_no()) {
                let (last, summed) = (cx.scope().format(last), cx.scope().format(&summed));
                return Err(Refusal::invalid(format!(
                    "'A' has {last} columns, but the packed matrix has {summed} rows"
                )));
            }
            Some(outer.iter().cloned().chain([or_fresh(cx, columns)]).collect())
        }
        (Some([]), _) => return Err(Refusal::invalid("an operand of a matrix product has rank 0")),
    };
    Ok(Fact::tensor(cx.dtype(0), shape))
}

/// Returns a size that an attribute must define.
fn size_of(cx: &InferCx<'_>, name: &str) -> Result<Option<Dim>, Refusal> {
    match cx.attr_int(name)? {
        Some(size @ 0..) => Ok(Some(Dim::constant(size))),
        _ => Err(Refusal::invalid(format!("attribute '{name}' is missing or negative"))),
    }
}

fn infer_packed_mlp(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![projected(cx, size_of(cx, "N")?, size_of(cx, "K")?)?, like(cx, 0)])
}

fn infer_packed_qkv(cx: &mut InferCx<'_>) -> InferResult {
    let to = |name: &str| projected(cx, size_of(cx, name)?, size_of(cx, "K")?);
    Ok(vec![to("Nq")?, to("Nkv")?, to("Nkv")?, like(cx, 0)])
}

fn infer_block_weights(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![projected(cx, dim(cx, 1, 0).or(dim(cx, 5, 0)), None)?])
}

fn infer_shaped_weights(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.shape(0), cx.ints(2)) {
        (Some(a), Some(b)) if !b.is_empty() => Some(product_dims(cx, a, &b)?),
        _ => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

fn infer_ordered_matmul(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0), matmul_shape(cx, 0, 2)?)])
}

fn infer_sparse_matmul(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(1), None)])
}

fn infer_word_embedding(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match cx.shape(0) {
        Some([words, _]) => Some(vec![words.clone(), or_fresh(cx, dim(cx, 1, 0).or(dim(cx, 2, 0)))]),
        // The documentation does not define more axes, and the runtime drops the middle ones.
        _ => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(1), shape)])
}

/// Infers `stride · (D − 1) + output_padding + extent − begin − end` on each axis, if the pads are known.
fn infer_conv_transpose(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0).or(cx.dtype(1));
    let Some([batch, _, sizes @ ..]) = cx.shape(0) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let (axes, scope) = (sizes.len(), cx.scope());
    let numbers = |name: &str, otherwise: i64, least: i64| -> Result<Vec<i64>, Refusal> {
        Ok(read_numbers(cx, name, axes, least)?.unwrap_or_else(|| vec![otherwise; axes]))
    };
    let [strides, dilations, extra] =
        [numbers("strides", 1, 1)?, numbers("dilations", 1, 1)?, numbers("output_padding", 0, 0)?];
    let pads = match cx.has_input(2) {
        true => cx.ints(2).filter(|pads| pads.len() == axes.saturating_mul(2)),
        false => Some(vec![Dim::constant(0); axes.saturating_mul(2)]),
    };
    let pads = pads.filter(|_| matches!(cx.attr_str("auto_pad"), Ok(None | Some("NOTSET"))));
    let size = |(axis, size): (usize, &Dim)| {
        let pads = pads.as_ref()?;
        let pads = scope.add(pads.get(axis)?, pads.get(axis.checked_add(axes)?)?);
        let [stride, dilation, extra] =
            [strides.get(axis)?, dilations.get(axis)?, extra.get(axis)?].map(|number| Dim::constant(*number));
        let kernel = dim(cx, 1, axis.checked_add(2)?)?;
        let one = Dim::constant(1);
        let extent = scope.add(&scope.mul(&scope.sub(&kernel, &one), &dilation), &one);
        let moved = scope.mul(&scope.sub(size, &one), &stride);
        Some(scope.sub(&scope.sum([&moved, &extra, &extent]), &pads))
    };
    let channels = dim(cx, 1, 1).map(|each| {
        let group = cx.attr_int("group").ok().flatten().unwrap_or(1);
        scope.mul(&each, &Dim::constant(group))
    });
    let spatial = sizes.iter().enumerate().map(|at| or_fresh(cx, size(at)));
    let shape = [batch.clone(), or_fresh(cx, channels)].into_iter().chain(spatial).collect();
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

fn infer_fused_gemm(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(1)), Some(gemm_shape(cx, [0, 1, 2])?))])
}

fn infer_gemm_float8(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.attr_int("dtype")? {
        None => Some(DType::Float),
        Some(_) => cx.attr_dtype("dtype")?,
    };
    Ok(vec![Fact::tensor(dtype, Some(gemm_shape(cx, [0, 1, 2])?))])
}

fn infer_qgemm(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = if cx.has_input(8) { cx.dtype(8) } else { Some(DType::Float) };
    Ok(vec![Fact::tensor(dtype, Some(gemm_shape(cx, [0, 3, 6])?))])
}

fn infer_fused_conv(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(0).or(cx.dtype(1));
    Ok(vec![Fact::tensor(dtype, conv_shape(cx, 0, 1, dim(cx, 2, 0))?)])
}

fn infer_causal_conv(cx: &mut InferCx<'_>) -> InferResult {
    let output = like(cx, 0);
    let (axes, window) = (cx.attr_int("ndim")?.unwrap_or(1), cx.attr_int("state_window")?.unwrap_or(0));
    let last = cx.attr_flag("channels_last", false)?;
    let dilation = cx.attr_int("dilation")?.unwrap_or(1);
    if dilation < 1 {
        return Err(Refusal::invalid(format!("attribute 'dilation' is {dilation}, which is not valid")));
    }
    let taps = dim(cx, 1, 2).map(|taps| cx.scope().sub(&taps, &Dim::constant(1)));
    let length = taps.map(|taps| cx.scope().mul(&taps, &Dim::constant(dilation)));
    let state = match cx.shape(0) {
        Some(shape) if (axes, window) == (1, 0) => {
            let at = if last { 1 } else { 2 };
            let mut state = shape.to_vec();
            let place =
                state.get_mut(at).ok_or_else(|| Refusal::invalid("the data of the convolution has no spatial axis"))?;
            *place = or_fresh(cx, length);
            Some(state)
        }
        _ => None,
    };
    let dtype = output.dtype();
    Ok(vec![output, Fact::tensor(dtype, state)])
}

fn infer_qlinear_conv(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(7);
    if cx.attr_flag("channels_last", false)? {
        return Ok(vec![Fact::tensor(dtype, channels_last(cx, dim(cx, 3, 0).or(dim(cx, 8, 0)))?)]);
    }
    Ok(vec![Fact::tensor(dtype, conv_shape(cx, 0, 3, dim(cx, 8, 0))?)])
}

fn infer_nhwc_conv(cx: &mut InferCx<'_>) -> InferResult {
    let shape = channels_last(cx, dim(cx, 1, 0).or(dim(cx, 2, 0)))?;
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(1)), shape)])
}

/// Infers the shape of a convolution of an image `[N, D…, C]` with this many output channels.
fn channels_last(cx: &InferCx<'_>, channels: Option<Dim>) -> Result<Option<Vec<Dim>>, Refusal> {
    let Some(shape) = cx.shape(0) else { return Ok(None) };
    let [batch, sizes @ .., _] = shape else {
        return Err(Refusal::invalid("the data of the convolution has no spatial axis"));
    };
    let window = Window::read(cx, sizes.len())?;
    let kernel = read_numbers(cx, "kernel_shape", sizes.len(), 1)?;
    let places = |(axis, size): (usize, &Dim)| {
        let kernel = Dim::constant(*kernel.as_ref()?.get(axis)?);
        window.places(cx.scope(), axis, size, &kernel)
    };
    let spatial = sizes.iter().enumerate().map(|at| or_fresh(cx, places(at)));
    Ok(Some([batch.clone()].into_iter().chain(spatial).chain([or_fresh(cx, channels)]).collect()))
}

/// Returns the multiply-accumulates of a convolution to `[N, D…, M]`: the weights have `M` filters, on any axis.
fn channels_last_macs(view: &NodeFacts<'_>, weights: usize) -> Option<Dim> {
    let [places @ .., _] = view.result_shape()? else { return None };
    Some(view.scope().mul(&view.scope().product(places), &view.elements(weights)?))
}

fn quantized_conv_macs(view: &NodeFacts<'_>) -> Option<Dim> {
    match view.int("channels_last", 0)? {
        0 => convolution(view, 3),
        _ => channels_last_macs(view, 3),
    }
}

/// Returns the multiply-accumulates of the two projections of a gated layer.
fn mlp_macs(view: &NodeFacts<'_>) -> Option<Dim> {
    Some(view.scope().mul(&matrix_product(view)?, &Dim::constant(2)))
}

/// Returns the multiply-accumulates of the projections to queries, keys and values.
fn qkv_macs(view: &NodeFacts<'_>) -> Option<Dim> {
    let columns = view.int("Nq", 0)?.checked_add(view.int("Nkv", 0)?.checked_mul(2)?)?;
    Some(view.scope().mul(&view.elements(0)?, &Dim::constant(columns)))
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain("com.microsoft")
    }

    #[test]
    fn products_of_turned_matrices() {
        let fused = |a: &str, b: &str| node("FusedMatMul").input(DType::Float, a).input(DType::Float, b);
        assert_eq!(fused("B K M", "B N K").with("transA", 1).with("transB", 1).infer(), ["float[B, M, N]"]);
        assert_eq!(fused("M B K", "B K N").with("transBatchA", 1).infer(), ["float[B, M, N]"]);
        assert_eq!(fused("K", "K N").with("transA", 1).infer(), ["float[N]"]);
        assert!(fused("2 3", "4 5").with("transB", 1).infer()[0].starts_with("invalid"));
    }

    #[test]
    fn packed_and_quantized_matrices() {
        let packed = |a: &str| node("MatMulNBits").input(DType::Float16, a).with("N", 32).with("K", 64);
        assert_eq!(packed("B S 64").infer(), ["float16[B, S, 32]"]);
        assert!(packed("B S 63").infer()[0].starts_with("invalid"));
        let scaled = node("MatMulIntegerToFloat").input(DType::Uint8, "M K").input(DType::Int8, "K N");
        assert_eq!(scaled.input(DType::Float16, "").infer(), ["float16[M, N]"]);
        let gemm = node("GemmFloat8").input(DType::Float8E4M3FN, "M 8").input(DType::Float8E4M3FN, "N 8");
        assert_eq!(gemm.with("transB", 1).with("dtype", DType::Bfloat16).infer(), ["bfloat16[M, N]"]);
    }

    #[test]
    fn several_projections() {
        let sizes = |node: Single| node.with("K", 64).with("N", 96).with("Nq", 64).with("Nkv", 16);
        let mlp = sizes(node("MatMulNBitsMlp").output()).input(DType::Float16, "B S 64");
        assert_eq!(mlp.infer(), ["float16[B, S, 96]", "float16[B, S, 64]"]);
        let qkv = sizes(node("MatMulNBitsQkv").output().output().output()).input(DType::Float16, "B S 64");
        assert_eq!(qkv.infer(), ["float16[B, S, 64]", "float16[B, S, 16]", "float16[B, S, 16]", "float16[B, S, 64]"]);
        assert!(sizes(node("MatMulNBitsMlp")).input(DType::Float16, "B 63").infer()[0].starts_with("invalid"));
        let blocks = node("MatMulBlockQuantizedFp8Weight").input(DType::Float16, "B S 64");
        assert_eq!(blocks.input(DType::Float8E4M3FN, "32 64").infer(), ["float16[B, S, 32]"]);
        let shaped = node("MatMulFpQ4").input(DType::Float, "M 64").input(DType::Uint8, "P");
        assert_eq!(shaped.values(&[2], &[64i64, 32]).infer(), ["float[M, 32]"]);
        let words = node("WordConvEmbedding").input(DType::Int32, "S L").input(DType::Float, "7 1 3 5");
        assert_eq!(words.infer(), ["float[S, 7]"]);
    }

    #[test]
    fn transposed_convolutions_with_pads_as_operand() {
        let open = || {
            let node = node("ConvTransposeWithDynamicPads").with("strides", vec![2, 2]).with("group", 2);
            node.input(DType::Float, "N 4 H 5").input(DType::Float, "4 3 3 3")
        };
        assert_eq!(open().values(&[4], &[1i64, 1, 0, 1]).infer(), ["float[N, 6, 2*H, 9]"]);
        assert_eq!(open().infer(), ["float[N, 6, 2*H + 1, 11]"]);
        assert_eq!(open().input(DType::Int64, "4").infer(), ["float[N, 6, ?, ?]"]);
        assert_eq!(open().with_str("auto_pad", "SAME_UPPER").infer(), ["float[N, 6, ?, ?]"]);
    }

    #[test]
    fn convolutions() {
        let fused = node("FusedConv").input(DType::Float, "N 3 8 8").input(DType::Float, "4 3 3 3");
        assert_eq!(fused.infer(), ["float[N, 4, 6, 6]"]);
        let causal = |x: &str| {
            let node = node("CausalConvWithState").output().input(DType::Float, x).input(DType::Float, "4 1 3");
            node.with("dilation", 2)
        };
        assert_eq!(causal("N 4 L").infer(), ["float[N, 4, L]", "float[N, 4, 4]"]);
        assert_eq!(causal("N L 2 2").with("channels_last", 1).infer(), ["float[N, L, 2, 2]", "float[N, 4, 2, 2]"]);
        assert!(causal("N").infer()[0].starts_with("invalid"));
        assert_eq!(causal("N 4 H W").with("ndim", 2).infer(), ["float[N, 4, H, W]", "float"]);
        let last = || node("NhwcConv").input(DType::Float16, "N 8 8 4").input(DType::Float16, "6 3 3 4");
        assert_eq!(last().infer(), ["float16[N, ?, ?, 6]"]);
        assert_eq!(last().with("kernel_shape", vec![3, 3]).infer(), ["float16[N, 6, 6, 6]"]);
    }
}
