//! Element-wise and other operators of `com.microsoft` on quantized numbers.
//!
//! | operator | result |
//! |---|---|
//! | QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax | as the operand |
//! | QLinearAdd, QLinearMul, QLinearWhere, MulInteger | the operands broadcast |
//! | QLinearReduceMean, ReduceSumInteger | the operand with `axes` reduced; 32-bit integers in place of 8 bits |
//! | QOrderedGelu, QOrderedLayerNormalization | as the operand |
//! | QuantizeWithOrder, DequantizeWithOrder | as the operand; int8, or the type in `to` |
//! | QuantizeBFP, DequantizeBFP | `X` of rank r to blocks `[?]` as bytes, its shape `[r]` and strides `[r]`, and back |
//! | QLinearConcat | the concatenation along `axis`; each operand is followed by its scale and zero point |
//! | QLinearAveragePool, NhwcMaxPool | as AveragePool, MaxPool; channels are last with `channels_last`, and always |
//! | DynamicQuantizeLSTM | as LSTM; the recurrence weights are `[directions, hidden, 4 · hidden]` |
//! | QEmbedLayerNormalization | as EmbedLayerNormalization, with the type of the scales, without the sum |
//! | QLinearGlobalAveragePool | spatial axes of 1, after the channels or, with `channels_last`, before them |
//! | QuantizeLinear, DequantizeLinear | as the operand; the type of the zero point, of the scale |
//! | GatherBlockQuantized | as Gather along `gather_axis`; uint8 packs `8 / bits` numbers along the last axis |

use super::{broadcast, dim, embedded, like, operator, or_fresh};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::traits::{Traits, recurrence};
use crate::ops::{InferCx, InferResult, Operator, Refusal, axis_in, pool, recurrent};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("DequantizeBFP", infer_dequantize_blocks),
    operator("DequantizeLinear", infer_dequantize_linear),
    operator("DequantizeWithOrder", infer_dequantize_ordered),
    operator("DynamicQuantizeLSTM", infer_lstm).with(Traits::NONE.macs(recurrence)),
    operator("GatherBlockQuantized", infer_gather_block_quantized),
    operator("MulInteger", infer_integer_product),
    operator("NhwcMaxPool", infer_nhwc_max_pool),
    operator("QEmbedLayerNormalization", infer_embed_layer_normalization),
    operator("QLinearAdd", infer_binary),
    operator("QLinearAveragePool", infer_average_pool),
    operator("QLinearConcat", infer_concat),
    operator("QLinearGlobalAveragePool", infer_global_average_pool),
    operator("QLinearLeakyRelu", infer_unary),
    operator("QLinearMul", infer_binary),
    operator("QLinearReduceMean", infer_reduce_mean),
    operator("QLinearSigmoid", infer_unary),
    operator("QLinearSoftmax", infer_unary),
    operator("QLinearWhere", infer_where),
    operator("QOrderedGelu", infer_unary),
    operator("QOrderedLayerNormalization", infer_unary),
    operator("QuantizeBFP", infer_quantize_blocks),
    operator("QuantizeLinear", infer_quantize_linear),
    operator("QuantizeWithOrder", infer_quantize_ordered),
    operator("ReduceSumInteger", infer_reduce_sum),
];

fn infer_unary(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![like(cx, 0)])
}

fn infer_dequantize_linear(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(1), cx.shape(0).map(<[Dim]>::to_vec))])
}

fn infer_quantize_linear(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = if cx.has_input(2) { cx.dtype(2) } else { Some(DType::Uint8) };
    Ok(vec![Fact::tensor(dtype, cx.shape(0).map(<[Dim]>::to_vec))])
}

fn infer_binary(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(3)), broadcast(cx, &[0, 3])?)])
}

fn infer_integer_product(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(Some(DType::Int32), broadcast(cx, &[0, 2])?)])
}

/// Infers the shape of operand 0 with the axes of attribute `axes` reduced.
fn reduced(cx: &InferCx<'_>) -> Result<Option<Vec<Dim>>, Refusal> {
    let Some(shape) = cx.shape(0) else { return Ok(None) };
    let keep = cx.attr_flag("keepdims", true)?;
    let axes = cx.attr_ints("axes")?.unwrap_or_default();
    let axes: Vec<usize> = axes.iter().map(|&axis| axis_in(axis, shape.len())).collect::<Result<_, _>>()?;
    let is_reduced = |at: usize| axes.is_empty() || axes.contains(&at);
    let dims = shape.iter().enumerate().filter(|(at, _)| keep || !is_reduced(*at));
    Ok(Some(dims.map(|(at, dim)| if is_reduced(at) { Dim::constant(1) } else { dim.clone() }).collect()))
}

fn infer_reduce_mean(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(4)), reduced(cx)?)])
}

fn infer_reduce_sum(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.dtype(0) {
        Some(DType::Int8) => Some(DType::Int32),
        Some(DType::Uint8) => Some(DType::Uint32),
        _ => None,
    };
    Ok(vec![Fact::tensor(dtype, reduced(cx)?)])
}

fn infer_quantize_ordered(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(Some(DType::Int8), cx.shape(0).map(<[Dim]>::to_vec))])
}

fn infer_dequantize_ordered(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.attr_dtype("to")?, cx.shape(0).map(<[Dim]>::to_vec))])
}

/// Infers blocks as bytes, and the shape and strides of the operand.
fn infer_quantize_blocks(cx: &mut InferCx<'_>) -> InferResult {
    let rank = cx.rank(0).and_then(|rank| i64::try_from(rank).ok()).map(Dim::constant);
    let sizes = Fact::tensor(Some(DType::Int64), Some(vec![or_fresh(cx, rank)]));
    Ok(vec![Fact::tensor(Some(DType::Uint8), Some(vec![cx.fresh_dim()])), sizes.clone(), sizes])
}

fn infer_dequantize_blocks(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = match cx.attr_int("dtype")? {
        None => Some(DType::Float),
        Some(_) => cx.attr_dtype("dtype")?,
    };
    let count = dim(cx, 1, 0).and_then(|count| usize::try_from(count.as_const()?).ok()).filter(|&rank| rank <= 64);
    let shape = count.map(|rank| (0..rank).map(|axis| super::movement::size_at(cx, 1, axis)).collect());
    Ok(vec![Fact::tensor(dtype, shape)])
}

fn infer_where(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(1).or(cx.dtype(4)), broadcast(cx, &[0, 1, 4])?)])
}

fn infer_concat(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(1);
    let operands: Vec<Option<&[Dim]>> = (2..cx.input_count()).step_by(3).map(|at| cx.shape(at)).collect();
    let Some(rank) = operands.iter().flatten().map(|shape| shape.len()).next() else {
        return Ok(vec![Fact::tensor(dtype, None)]);
    };
    if operands.iter().flatten().any(|shape| shape.len() != rank) {
        return Err(Refusal::invalid("the operands of the concatenation have different ranks"));
    }
    let axis = cx.attr_int("axis")?.ok_or_else(|| Refusal::invalid("attribute 'axis' is missing"))?;
    let axis = axis_in(axis, rank)?;
    let mut dims = Vec::with_capacity(rank);
    for at in 0..rank {
        let known: Vec<&Dim> = operands.iter().flatten().filter_map(|shape| shape.get(at)).collect();
        dims.push(match known.as_slice() {
            all if at == axis && all.len() == operands.len() => cx.scope().sum(all.iter().copied()),
            _ if at == axis => cx.fresh_dim(),
            all => {
                let dim = all.iter().find(|dim| dim.as_const().is_some()).or(all.first());
                dim.map_or_else(|| cx.fresh_dim(), |dim| (*dim).clone())
            }
        });
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

fn infer_global_average_pool(cx: &mut InferCx<'_>) -> InferResult {
    let last = cx.attr_flag("channels_last", false)?;
    let shape = cx.shape(0).map(|shape| {
        let kept = |at: usize| at == 0 || if last { at + 1 == shape.len() } else { at == 1 };
        let dims = shape.iter().enumerate();
        dims.map(|(at, dim)| if kept(at) { dim.clone() } else { Dim::constant(1) }).collect()
    });
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(4)), shape)])
}

fn infer_average_pool(cx: &mut InferCx<'_>) -> InferResult {
    let last = cx.attr_flag("channels_last", false)?;
    Ok(vec![Fact::tensor(cx.dtype(0).or(cx.dtype(4)), pool::shape_of(cx, last)?)])
}

fn infer_nhwc_max_pool(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0), pool::shape_of(cx, true)?)])
}

fn infer_lstm(cx: &mut InferCx<'_>) -> InferResult {
    recurrent::states(cx, true)
}

fn infer_embed_layer_normalization(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = [8, 9, 11, 12].iter().find_map(|&at| cx.dtype(at));
    let mut facts = embedded(cx, dtype);
    facts.truncate(2);
    Ok(facts)
}

fn infer_gather_block_quantized(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(2);
    let (Some(data), Some(indices), Some(packed)) = (cx.shape(0), cx.shape(1), cx.dtype(0)) else {
        let rank = cx.rank(0).zip(cx.rank(1)).and_then(|(data, indices)| (data + indices).checked_sub(1));
        return Ok(vec![Fact::tensor(dtype, rank.map(|rank| cx.fresh_shape(rank)))]);
    };
    let axis = axis_in(cx.attr_int("gather_axis")?.unwrap_or(0), data.len())?;
    let bits = cx.attr_int("bits")?.unwrap_or(4);
    let numbers = match (packed, bits) {
        (DType::Uint8, 2 | 4 | 8) => 8 / bits,
        (DType::Uint8, _) => return Err(Refusal::invalid(format!("attribute 'bits' is {bits}, which is not valid"))),
        _ => 1,
    };
    let mut data = data.to_vec();
    if let Some(last) = data.last_mut() {
        *last = cx.scope().mul(last, &Dim::constant(numbers));
    }
    let shape = data.iter().take(axis).chain(indices).chain(data.iter().skip(axis + 1)).cloned().collect();
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain("com.microsoft")
    }

    #[test]
    fn element_wise() {
        let scale = |node: Single| node.input(DType::Float, "").input(DType::Uint8, "");
        let add = scale(node("QLinearAdd").input(DType::Uint8, "N 1 8")).input(DType::Uint8, "3 8");
        assert_eq!(add.infer(), ["uint8[N, 3, 8]"]);
        let join = scale(node("QLinearConcat")).input(DType::Uint8, "N 3");
        let join = scale(join).input(DType::Uint8, "N C").with("axis", 1);
        assert_eq!(scale(join).infer(), ["uint8[N, C + 3]"]);
        let pool = node("QLinearGlobalAveragePool").input(DType::Int8, "N 8 8 C");
        assert_eq!(pool.with("channels_last", 1).infer(), ["int8[N, 1, 1, C]"]);
        let back = node("DequantizeLinear").input(DType::Uint16, "N 4").input(DType::Float16, "");
        assert_eq!(back.infer(), ["float16[N, 4]"]);
    }

    #[test]
    fn quantized_forms_of_other_operators() {
        let scale = |node: Single| node.input(DType::Float, "").input(DType::Uint8, "");
        let pool = |shape: &str| {
            let node = scale(scale(node("QLinearAveragePool").input(DType::Uint8, shape)));
            node.with("kernel_shape", vec![3, 2]).with("strides", vec![2, 1])
        };
        assert_eq!(pool("N C 9 W").infer(), ["uint8[N, C, 4, W - 1]"]);
        assert_eq!(pool("N 9 W C").with("channels_last", 1).infer(), ["uint8[N, 4, W - 1, C]"]);
        assert!(pool("N").infer()[0].starts_with("invalid"));
        let largest = node("NhwcMaxPool").input(DType::Int8, "N 9 W C").with("kernel_shape", vec![3, 2]);
        assert_eq!(largest.with("dilations", vec![2, 1]).infer(), ["int8[N, 5, W - 1, C]"]);
        let lstm = || {
            let node = node("DynamicQuantizeLSTM").output().output().input(DType::Float, "S B 3");
            node.input(DType::Int8, "2 3 16").input(DType::Int8, "2 4 16").with_str("direction", "bidirectional")
        };
        assert_eq!(lstm().infer(), ["float[S, 2, B, 4]", "float[2, B, 4]", "float[2, B, 4]"]);
        assert_eq!(lstm().with("hidden_size", 4).infer(), lstm().infer());
        let embed = node("QEmbedLayerNormalization").output().input(DType::Int32, "B S").absent();
        let embed = embed.input(DType::Uint8, "V 8").input(DType::Uint8, "P 8").absent().input(DType::Uint8, "8");
        let embed = embed.input(DType::Uint8, "8").absent().input(DType::Float, "");
        assert_eq!(embed.infer(), ["float[B, S, 8]", "int32[B]"]);
    }

    #[test]
    fn packed_numbers_are_gathered_apart() {
        let gather = |dtype: DType| {
            let node = node("GatherBlockQuantized").input(dtype, "V 64").input(DType::Int64, "B S");
            node.input(DType::Float16, "V 4")
        };
        assert_eq!(gather(DType::Uint8).infer(), ["float16[B, S, 128]"]);
        assert_eq!(gather(DType::Uint8).with("bits", 8).infer(), ["float16[B, S, 64]"]);
        assert_eq!(gather(DType::Int4).infer(), ["float16[B, S, 64]"]);
        assert_eq!(gather(DType::Int4).with("gather_axis", 1).infer(), ["float16[V, B, S]"]);
    }
}
