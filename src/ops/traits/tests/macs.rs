//! Compares multiply-accumulates with sums of products of ones and with numbers computed by hand.

use super::*;
use crate::ops::single::Single;
use crate::ops::traits::macs::matrix_product;

fn ones(dtype: DType, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    match dtype {
        DType::Uint8 => Tensor::from_vec(shape, vec![1_u8; count]),
        DType::Int8 => Tensor::from_vec(shape, vec![1_i8; count]),
        _ => Tensor::from_vec(shape, vec![1_f32; count]),
    }
    .unwrap()
}

fn sample(name: &str, shapes: &[&[usize]]) -> Sample {
    let operands = shapes.iter().map(|shape| ones(DType::Float, shape)).collect();
    Sample::new(operator("", name).unwrap(), operands)
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(DType::Float, shape).unwrap()
}

/// Returns nodes without padding and bias whose operands are ones, so that each product adds 1 to the result.
fn sums_of_ones() -> Vec<Sample> {
    let text = |text: &'static str| Attribute::String(text.into());
    let integers = |name: &str, shapes: &[&[usize]]| {
        let operands = shapes.iter().map(|shape| ones(DType::Uint8, shape)).collect();
        Sample::new(operator("", name).unwrap(), operands)
    };
    let quantized = |name: &str, a: &[usize], b: &[usize]| {
        let (scale, point) = (Tensor::scalar(1_f32), Tensor::scalar(0_u8));
        let operand = |shape: &[usize]| [ones(DType::Uint8, shape), scale.clone(), point.clone()];
        let operands = operand(a).into_iter().chain(operand(b)).chain([scale.clone(), point.clone()]).collect();
        Sample::new(operator("", name).unwrap(), operands)
    };
    vec![
        sample("MatMul", &[&[2, 3], &[3, 4]]),
        sample("MatMul", &[&[5, 1, 2, 3], &[6, 3, 4]]),
        sample("MatMul", &[&[3], &[3, 4]]),
        sample("MatMul", &[&[3], &[3]]),
        sample("Gemm", &[&[2, 3], &[3, 4]]),
        sample("Gemm", &[&[3, 2], &[4, 3]]).with("transA", 1).with("transB", 1),
        sample("Einsum", &[&[2, 3, 4], &[2, 4, 5]]).with("equation", text("bij,bjk->bik")),
        sample("Einsum", &[&[2], &[3]]).with("equation", text("i,j->ij")),
        sample("Einsum", &[&[2, 3], &[2, 3]]).with("equation", text("ij,ij->")),
        sample("Einsum", &[&[5, 2, 3], &[5, 3, 4]]).with("equation", text("...ij,...jk->...ik")),
        sample("Conv", &[&[2, 4, 7, 8], &[6, 2, 3, 2]]).with("group", 2).with("strides", vec![2, 1]),
        sample("Conv", &[&[1, 3, 9], &[5, 3, 3]]).with("dilations", vec![2]),
        sample("ConvTranspose", &[&[2, 4, 3, 5], &[4, 3, 2, 2]]).with("group", 2).with("strides", vec![2, 3]),
        Sample::new(
            operator("", "DeformConv").unwrap(),
            vec![ones(DType::Float, &[1, 2, 5, 5]), ones(DType::Float, &[3, 2, 2, 2]), zeros(&[1, 8, 4, 4])],
        ),
        integers("MatMulInteger", &[&[2, 3], &[3, 4]]),
        integers("ConvInteger", &[&[1, 3, 5, 5], &[2, 3, 3, 3]]),
        quantized("QLinearMatMul", &[2, 3], &[3, 4]),
        quantized("QLinearConv", &[1, 3, 5, 5], &[2, 3, 3, 3]),
    ]
}

#[test]
fn sums_of_products_of_ones_are_counts() {
    for sample in sums_of_ones() {
        let result = sample.eval().unwrap_or_else(|| panic!("{} is not evaluated", sample.name));
        let sum: f64 = result.to_f64s().unwrap().iter().sum();
        let counted = sample.viewed(|view| (view.traits().macs.unwrap())(view).unwrap().as_const());
        assert_eq!(counted, Some(sum as i64), "{} {:?}", sample.name, sample.attributes);
    }
    let turned = sample("Gemm", &[&[3, 2], &[3, 4]]).with("transA", 1);
    assert_ne!(turned.viewed(matrix_product), turned.viewed(|view| (view.traits().macs.unwrap())(view)));
}

#[test]
fn every_product_declares_its_count() {
    let by_hand = ["Attention", "CausalConvWithState", "GRU", "LSTM", "LinearAttention", "RNN"];
    let samples = sums_of_ones();
    for own in operators().filter(|own| own.domain.is_empty()) {
        assert!(!own.traits.is_product() || own.traits.macs.is_some(), "{}", own.name);
        let is_tested = by_hand.contains(&own.name) || samples.iter().any(|sample| sample.name == own.name);
        assert_eq!(own.traits.macs.is_some(), is_tested, "{}", own.name);
    }
}

#[test]
fn counts_are_expressions_in_the_dims() {
    let float = |node: Single, shapes: &[&str]| shapes.iter().fold(node, |node, dims| node.input(DType::Float, dims));
    let plain = |name: &str, shapes: &[&str]| float(Single::new(name, 27), shapes);
    let ours = |name: &str, shapes: &[&str]| float(Single::new(name, 17).in_domain("com.microsoft"), shapes);
    let mut wrong = Vec::new();
    for (node, expected) in [
        (plain("MatMul", &["B S 8", "8 4"]), "32*B*S"),
        // 3·3 taps of 16 channels for each of 32·14·14 results.
        (plain("Conv", &["N 16 16 16", "32 16 3 3"]), "903168*N"),
        // Depthwise.
        (plain("Conv", &["N 16 16 16", "16 1 3 3"]).with("group", 16), "28224*N"),
        // 4 gates of 5 rows over 3 features and 5 states.
        (plain("LSTM", &["S N 3", "1 20 3", "1 20 5"]).with("hidden_size", 5), "160*S*N"),
        (plain("GRU", &["S N 3", "1 15 3", "1 15 5"]).with("hidden_size", 5), "120*S*N"),
        (plain("RNN", &["S N 3", "1 5 3", "1 5 5"]).with("hidden_size", 5), "40*S*N"),
        // 4 heads; keys of 8 and values of 6 entries.
        (plain("Attention", &["B 4 L 8", "B 4 S 8", "B 4 S 6"]), "56*B*L*S"),
        (
            plain("Attention", &["B L 32", "B S 32", "B S 24"]).with("q_num_heads", 4).with("kv_num_heads", 4),
            "56*B*L*S",
        ),
        (
            plain("Attention", &["B 4 L 8", "B 4 S 8", "B 4 S 8"])
                .absent()
                .input(DType::Float, "B 4 P 8")
                .input(DType::Float, "B 4 P 8"),
            "64*B*L*(S + P)",
        ),
        // 2 heads of queries and 1 of keys; the state is 4·6, and the rule is linear.
        (
            plain("LinearAttention", &["B T 8", "B T 4", "B T 6"])
                .with_str("update_rule", "linear")
                .with("q_num_heads", 2)
                .with("kv_num_heads", 1),
            "72*B*T",
        ),
        (plain("CausalConvWithState", &["B 4 L", "4 1 3"]), "12*B*L"),
        (ours("FusedMatMul", &["B K M", "B K N"]).with("transA", 1), "B*K*M*N"),
        (ours("MatMulNBits", &["B S 64"]).with("N", 32).with("K", 64), "2048*B*S"),
        (ours("FusedConv", &["N 3 8 8", "4 3 3 3"]), "3888*N"),
        (ours("NhwcConv", &["N 8 8 4", "6 3 3 4"]).with("kernel_shape", vec![3, 3]), "7776*N"),
        // Projections of 8 to 24, and 2 products of 8 entries for each query and key.
        (ours("Attention", &["B S 8", "8 24"]).with("num_heads", 2), "16*B*S*(S + 12)"),
        (ours("MultiHeadAttention", &["B L 8", "B S 8", "B S 8"]).with("num_heads", 2), "16*B*L*S"),
        (ours("MatMulNBitsQkv", &["B S 64"]).with("K", 64).with("Nq", 64).with("Nkv", 16), "6144*B*S"),
    ] {
        let found = node.macs().unwrap_or_default();
        if found != expected {
            wrong.push((found, expected));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    // Undecided numbers are `None`.
    assert_eq!(ours("PackedAttention", &["T 8", "8 24"]).with("num_heads", 2).macs(), None);
    assert_eq!(plain("Relu", &["N 4"]).macs(), None);
    let three = plain("Einsum", &["I J", "J K", "K L"]).with_str("equation", "ij,jk,kl->il");
    assert_eq!(three.macs(), None);
}
