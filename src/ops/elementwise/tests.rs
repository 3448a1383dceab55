//! Tests of element-wise operators, one node at a time. Expected values are from ONNX Runtime, or else from the standard's text.

mod casts;
mod symbolic;

use half::{bf16, f16};

use super::symbolic::{Elements, Relation};
use crate::dim::{Answer, Dim, Scope};
use crate::ir::Scalar;
use crate::ops::Decline;
use crate::ops::broadcast::broadcast_dims;
use crate::ops::registry::operators;
use crate::ops::single::Single;
use crate::tensor::{Complex64, DType, F8E4M3Fn, F8E5M2, F8E8M0, Tensor};

fn pair<T: crate::tensor::Element>(op_type: &str, opset: i64, a: &[T], b: &[T]) -> Single {
    Single::new(op_type, opset).values(&[a.len()], a).values(&[b.len()], b)
}

fn one<T: crate::tensor::Element>(op_type: &str, opset: i64, x: &[T]) -> Single {
    Single::new(op_type, opset).values(&[x.len()], x)
}

/// Returns the bits, to distinguish signed zeros and to compare NaN.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }).collect()
}

#[track_caller]
fn declines(node: Single) {
    match node.eval() {
        Err(Decline::Unsupported(_) | Decline::Invalid(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_operator_is_in_the_table_once() {
    let mut names: Vec<_> = operators().map(|operator| (operator.domain, operator.name)).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for operator in operators() {
        assert!(operator.versions.is_sorted_by(|a, b| a < b), "{}", operator.name);
    }
}

#[test]
fn no_operand_makes_an_operator_panic() {
    let families = [
        super::activation::OPERATORS,
        super::arithmetic::OPERATORS,
        super::bits::OPERATORS,
        super::cast::OPERATORS,
        super::functions::OPERATORS,
        super::logic::OPERATORS,
        super::random::OPERATORS,
        super::select::OPERATORS,
    ];
    for operator in families.into_iter().flatten() {
        for &version in operator.versions.first().into_iter().chain(operator.versions.last()) {
            for &dtype in DType::ALL {
                for (count, shape) in [(0, &[][..]), (1, &[3]), (2, &[]), (2, &[0]), (3, &[2, 1]), (4, &[5])] {
                    let tensor = Tensor::zeros(dtype, shape).unwrap();
                    let node = || {
                        let node = Single::new(operator.name, version).with("to", DType::Int8).with("broadcast", 1);
                        (0..count).fold(node.with_str("direction", "LEFT"), |node, _| node.constant(tensor.clone()))
                    };
                    let _ = node().eval();
                    let inferred = node().infer();
                    if let (Ok(results), Some(inferred)) = (node().eval(), inferred.first()) {
                        // Evaluated results have the inferred type and shape.
                        let shape: Vec<String> = results[0].shape().iter().map(usize::to_string).collect();
                        assert_eq!(
                            *inferred,
                            format!("{}[{}]", results[0].dtype(), shape.join(", ")),
                            "{}",
                            operator.name
                        );
                    }
                }
            }
        }
    }
}

#[test]
#[allow(clippy::approx_constant, reason = "the table holds what was computed, not what it nearly is")]
fn functions_have_the_values_runtimes_compute() {
    type Case = (&'static str, i64, [f32; 5], [f32; 5]);
    let x = [-1.5, -0.25, 0.5, 0.75, 2.25];
    let unit = [-0.75, -0.25, 0.0, 0.5, 1.0];
    let positive = [0.25, 0.5, 1.0, 2.0, 10.0];
    let infinity = f32::INFINITY;
    let rows: &[Case] = &[
        ("Sqrt", 13, positive, [0.5, 0.7071068, 1.0, 1.4142135, 3.1622777]),
        ("Log", 13, positive, [-1.3862944, -0.6931472, 0.0, 0.6931472, 2.3025851]),
        ("Reciprocal", 13, x, [-0.6666667, -4.0, 2.0, 1.3333334, 0.4444444]),
        ("Exp", 13, x, [0.2231302, 0.7788008, 1.6487212, 2.117, 9.487736]),
        ("Erf", 13, x, [-0.9661052, -0.2763264, 0.5204999, 0.7111557, 0.9985373]),
        ("Tanh", 13, x, [-0.9051482, -0.2449187, 0.4621172, 0.635149, 0.9780262]),
        ("Sin", 22, x, [-0.997495, -0.247404, 0.4794255, 0.6816387, 0.7780732]),
        ("Cos", 22, x, [0.0707372, 0.9689124, 0.8775826, 0.7316889, -0.6281736]),
        ("Tan", 22, x, [-14.10142, -0.2553419, 0.5463025, 0.9315965, -1.2386277]),
        ("Asin", 22, unit, [-0.8480622, -0.2526803, 0.0, 0.5235988, 1.5707964]),
        ("Acos", 22, unit, [2.4188585, 1.8234768, 1.5707964, 1.0471976, 0.0]),
        ("Atan", 22, x, [-0.9827938, -0.2449787, 0.4636476, 0.6435011, 1.152572]),
        ("Sinh", 22, x, [-2.1292794, -0.2526123, 0.5210953, 0.8223167, 4.6911683]),
        ("Cosh", 22, x, [2.3524096, 1.0314131, 1.127626, 1.2946833, 4.7965674]),
        ("Asinh", 22, x, [-1.1947632, -0.2474665, 0.4812118, 0.6931472, 1.5501579]),
        ("Acosh", 22, [1.0, 1.25, 1.5, 2.0, 10.0], [0.0, 0.6931472, 0.9624237, 1.316958, 2.993223]),
        ("Atanh", 22, unit, [-0.972955, -0.2554128, 0.0, 0.5493061, infinity]),
        ("Floor", 13, x, [-2.0, -1.0, 0.0, 0.0, 2.0]),
        ("Ceil", 13, x, [-1.0, -0.0, 1.0, 1.0, 3.0]),
        ("Round", 22, x, [-2.0, -0.0, 0.0, 1.0, 2.0]),
        ("Relu", 14, x, [0.0, 0.0, 0.5, 0.75, 2.25]),
        ("LeakyRelu", 16, x, [-0.015, -0.0025, 0.5, 0.75, 2.25]),
        ("Elu", 22, x, [-0.7768698, -0.2211992, 0.5, 0.75, 2.25]),
        ("Selu", 22, x, [-1.3658143, -0.3888902, 0.5253505, 0.7880257, 2.3640773]),
        ("Celu", 12, x, [-0.7768698, -0.2211992, 0.5, 0.75, 2.25]),
        ("Sigmoid", 13, x, [0.1824256, 0.4378235, 0.6224593, 0.6791787, 0.9046506]),
        ("HardSigmoid", 22, x, [0.2, 0.45, 0.6, 0.65, 0.95]),
        ("HardSwish", 22, x, [-0.375, -0.1145833, 0.2916667, 0.46875, 1.96875]),
        ("Swish", 24, x, [-0.2736383, -0.1094559, 0.3112297, 0.509384, 2.0354636]),
        ("Softplus", 22, x, [0.2014133, 0.5759395, 0.974077, 1.136871, 2.3502066]),
        ("Softsign", 22, x, [-0.6, -0.2, 0.3333333, 0.4285714, 0.6923077]),
        ("ThresholdedRelu", 22, x, [0.0, 0.0, 0.0, 0.0, 2.25]),
        ("Gelu", 20, x, [-0.1002108, -0.1003234, 0.3457312, 0.5800295, 2.222495]),
        ("Mish", 22, x, [-0.2980997, -0.129927, 0.3752452, 0.6100184, 2.209457]),
        ("Shrink", 9, x, [-1.5, 0.0, 0.0, 0.75, 2.25]),
    ];
    for &(op_type, opset, x, expected) in rows {
        let check = |results: Vec<f64>, tolerance: f64| {
            for (result, expected) in results.iter().zip(expected.map(f64::from)) {
                let near = (result - expected).abs() <= tolerance * expected.abs().max(1e-3);
                assert!(near || *result == expected, "{op_type}: {result} is not {expected}");
            }
        };
        check(one(op_type, opset, &x).floats(), 1e-6);
        if opset < 24 && op_type != "Celu" {
            check(one(op_type, opset, &x.map(f64::from)).floats(), 1e-6);
            check(one(op_type, opset, &x.map(f16::from_f32)).floats(), 6e-4);
        }
    }
    let tanh = one("Gelu", 20, &x).with_str("approximate", "tanh").floats();
    assert!((tanh[0] + 0.1004284).abs() < 1e-6 && (tanh[3] - 0.5799606).abs() < 1e-6);
    declines(one("Gelu", 20, &x).with_str("approximate", "sigmoid"));
    declines(one("Celu", 12, &x).with_float("alpha", 0.0));
}

#[test]
fn special_values() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let x = [nan, infinity, -infinity, 0.0, -0.0];
    let rows: &[(&str, i64, [f64; 5])] = &[
        ("Neg", 13, [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -0.0, 0.0]),
        ("Abs", 13, [f64::NAN, f64::INFINITY, f64::INFINITY, 0.0, 0.0]),
        ("Sign", 13, [f64::NAN, 1.0, -1.0, 0.0, 0.0]),
        ("Relu", 14, [f64::NAN, f64::INFINITY, 0.0, 0.0, -0.0]),
        (
            "Softplus",
            22,
            [f64::NAN, f64::INFINITY, 0.0, f64::from(std::f32::consts::LN_2), f64::from(std::f32::consts::LN_2)],
        ),
        ("Softsign", 22, [f64::NAN, f64::NAN, f64::NAN, 0.0, -0.0]),
        ("Sigmoid", 13, [f64::NAN, 1.0, 0.0, 0.5, 0.5]),
        ("HardSigmoid", 22, [f64::NAN, 1.0, 0.0, 0.5, 0.5]),
        ("ThresholdedRelu", 22, [0.0, f64::INFINITY, 0.0, 0.0, 0.0]),
        ("Elu", 22, [f64::NAN, f64::INFINITY, -1.0, 0.0, -0.0]),
        ("Gelu", 20, [f64::NAN, f64::INFINITY, f64::NAN, 0.0, -0.0]),
        ("Sqrt", 13, [f64::NAN, f64::INFINITY, f64::NAN, 0.0, -0.0]),
        ("Reciprocal", 13, [f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY]),
    ];
    for (op_type, opset, expected) in rows {
        assert_eq!(bits(&one(op_type, *opset, &x).floats()), bits(expected), "{op_type}");
    }
    assert_eq!(one("IsNaN", 13, &x).integers(), [1, 0, 0, 0, 0]);
    assert_eq!(one("IsInf", 10, &x).integers(), [0, 1, 1, 0, 0]);
    assert_eq!(one("IsInf", 10, &x).with("detect_negative", 0).integers(), [0, 1, 0, 0, 0]);
    assert_eq!(one("IsInf", 20, &[F8E5M2(0x7c), F8E5M2(0xfc), F8E5M2(0x7f)]).integers(), [1, 1, 0]);
    assert_eq!(one("IsNaN", 20, &[F8E4M3Fn(0x7f), F8E4M3Fn(0x7e)]).integers(), [1, 0]);
    declines(one("Sign", 13, &[f16::NAN]));
}

#[test]
fn integers_wrap_and_truncate() {
    assert_eq!(pair("Add", 14, &[i8::MAX, -1], &[1, 1]).integers(), [-128, 0]);
    assert_eq!(pair("Sub", 14, &[0u8, 5], &[1, 3]).integers(), [255, 2]);
    assert_eq!(pair("Mul", 14, &[i64::MAX, 3], &[2, -3]).integers(), [-2, -9]);
    assert_eq!(pair("Div", 14, &[-7, 7, i32::MIN], &[2, -2, -2]).integers(), [-3, -3, 1 << 30]);
    assert_eq!(pair("Mod", 13, &[-5, 5, -5, i32::MIN], &[3, -3, -3, -2]).integers(), [1, -1, -2, 0]);
    assert_eq!(pair("Mod", 13, &[-5, 5, -5, i32::MIN], &[3, -3, -3, -2]).with("fmod", 1).integers(), [-2, 2, -2, 0]);
    assert_eq!(one("Neg", 13, &[i8::MIN, 3]).integers(), [-128, -3]);
    assert_eq!(one("Abs", 13, &[i8::MIN, -3]).integers(), [-128, 3]);
    for op_type in ["Div", "Mod"] {
        declines(pair(op_type, 14, &[1i64], &[0]));
        let empty = Single::new(op_type, 14).values::<i32>(&[0], &[]).values(&[1], &[0]);
        assert_eq!(empty.eval().unwrap()[0].shape(), [0]);
    }
    declines(
        pair("Add", 14, &[1i32], &[1])
            .constant(Tensor::scalar(1f32))
            .with("broadcast", 1)
            .absent()
            .output()
            .in_domain("x"),
    );
}

#[test]
fn floats_of_sixteen_bits_are_rounded_once() {
    let [a, b] = [2048.0, 1.0].map(f16::from_f32);
    assert_eq!(pair("Add", 14, &[a], &[b]).floats(), [2048.0]);
    // 2048 + 1 + 1 is 2050 without intermediate rounding.
    let sum = Single::new("Sum", 13).values(&[1], &[a]).values(&[1], &[b]).values(&[1], &[b]);
    assert_eq!(sum.floats(), [2050.0]);
    let [a, b] = [256.0, 1.0].map(bf16::from_f32);
    assert_eq!(Single::new("Mean", 13).values(&[1], &[a]).values(&[1], &[b]).floats(), [128.0]);
}

#[test]
fn remainders_of_floats() {
    let (a, b) = ([-5.5f32, 5.5, -0.0, 4.0, 3.0], [3.0f32, -3.0, 3.0, -2.0, f32::NEG_INFINITY]);
    declines(pair("Mod", 13, &[i64::MAX], &[3]).with("fmod", 1));
    assert_eq!(pair("Mod", 13, &[i64::MAX], &[4]).integers(), [3]);
    assert_eq!(bits(&pair("Mod", 13, &a, &b).with("fmod", 1).floats()), bits(&[-2.5, 2.5, -0.0, 0.0, 3.0]));
    let floored = pair("Mod", 28, &a, &b).floats();
    assert_eq!(bits(&floored), bits(&[0.5, -0.5, 0.0, -0.0, f64::NEG_INFINITY]));
    declines(pair("Mod", 13, &a, &b));
    declines(pair("Mod", 28, &a, &b).with("fmod", 1));
    assert_eq!(pair("Mod", 13, &[-7i64], &[3]).with("fmod", 1).integers(), [-1]);
    declines(pair("Mod", 13, &[i64::MAX], &[3]).with("fmod", 1));
}

#[test]
fn powers() {
    assert_eq!(pair("Pow", 15, &[2, 3, -1, 0, 7], &[3, 0, -5, 5, 1]).integers(), [8, 1, -1, 0, 7]);
    assert_eq!(pair("Pow", 15, &[3i64], &[33]).integers(), [5_559_060_566_555_523]);
    // ONNX Runtime computes these powers in doubles, which cannot represent them.
    declines(pair("Pow", 15, &[3i64], &[39]));
    declines(pair("Pow", 15, &[i64::MAX], &[1]));
    let rooted = Single::new("Pow", 15).values(&[2], &[2i32, 10]).values(&[], &[0.5f32]);
    assert_eq!(rooted.integers(), [1, 3]);
    for (base, exponent) in [(2, 31), (2, -1), (0, -1)] {
        declines(pair("Pow", 15, &[base], &[exponent]));
    }
    let mixed = Single::new("Pow", 12).values(&[3], &[2f32, 2.0, -8.0]).values(&[3], &[2i64, -1, 3]);
    assert_eq!(mixed.floats(), [4.0, 0.5, -512.0]);
}

#[test]
fn the_smaller_and_the_larger() {
    let (a, b) = ([f32::NAN, 1.0, -0.0, 0.0], [1.0, f32::NAN, 0.0, -0.0]);
    assert_eq!(bits(&pair("Max", 13, &a, &b).floats()), bits(&[f64::NAN, f64::NAN, -0.0, 0.0]));
    assert_eq!(bits(&pair("Min", 13, &a, &b).floats()), bits(&[f64::NAN, f64::NAN, -0.0, 0.0]));
    let three = Single::new("Max", 12).values(&[2, 1], &[1u64, 9]).values(&[3], &[0u64, 5, 12]).values(&[], &[2u64]);
    assert_eq!(three.integers(), [2, 5, 12, 9, 9, 12]);
    assert_eq!(Single::new("Mean", 13).values(&[2], &[1f32, 2.0]).values(&[2], &[2f32, 4.0]).floats(), [1.5, 3.0]);
    assert_eq!(Single::new("Min", 8).values(&[1], &[3f32]).floats(), [3.0]);
    declines(Single::new("Sum", 6).values(&[2], &[1f32, 2.0]).values(&[], &[2f32]));
}

#[test]
fn before_version_7_the_second_operand_broadcasts_by_attribute() {
    let a: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let add = |opset| Single::new("Add", opset).values(&[2, 3], &a);
    assert_eq!(
        add(6).values(&[2], &[10f32, 20.0]).with("broadcast", 1).with("axis", 0).floats(),
        [10., 11., 12., 23., 24., 25.]
    );
    assert_eq!(add(1).values(&[3], &[0f32, 10.0, 20.0]).with("broadcast", 1).floats(), [0., 11., 22., 3., 14., 25.]);
    assert_eq!(add(6).values(&[1, 1], &[1f32]).with("broadcast", 1).floats(), [1., 2., 3., 4., 5., 6.]);
    declines(add(6).values(&[3], &[0f32, 10.0, 20.0]));
    declines(add(6).values(&[4, 2, 3], &[0f32; 24]).with("broadcast", 1));
    let infer = |axis: i64, b: &str| {
        let node = Single::new("Greater", 6).input(DType::Float, "N 3 4").input(DType::Float, b);
        node.with("broadcast", 1).with("axis", axis).infer()
    };
    assert_eq!(infer(0, "5"), ["bool[5, 3, 4]"]);
    assert_eq!(infer(1, "3 M"), ["bool[N, 3, 4]"]);
    assert!(infer(2, "3 4")[0].starts_with("invalid"));
    let equal = Single::new("Mul", 6).input(DType::Float, "N 3").input(DType::Float, "2 ?");
    assert_eq!(equal.infer(), ["float[2, 3]"]);
}

#[test]
fn shapes_broadcast() {
    let infer =
        |a: &str, b: &str| Single::new("Add", 14).input(DType::Float, a).input(DType::Float, b).infer().remove(0);
    assert_eq!(infer("N 1 3", "4 1"), "float[N, 4, 3]");
    assert_eq!(infer("N", "N"), "float[N]");
    assert_eq!(infer("N", "7"), "float[7]");
    assert_eq!(infer("N", "0"), "float[0]");
    // If one dim is 1 and the other 0, the larger dim is not the result.
    let product = infer("N", "M");
    assert!(product.to_lowercase().contains("max") && product.to_lowercase().contains("min"), "{product}");
    assert!(infer("2", "3").starts_with("invalid"));
    assert!(infer("0", "3").starts_with("invalid"));
    // Repeated broadcasts of the same dims return the first result, in any order.
    let scope = Scope::new();
    let [n, m, k] = ["n", "m", "k"].map(|name| Dim::symbol(scope.named(name)));
    let meet = |a: &Dim, b: &Dim| broadcast_dims(&scope, a, b).unwrap();
    let met = meet(&n, &m);
    assert_eq!(meet(&met, &n), met);
    assert_eq!(meet(&m, &met), met);
    let all = meet(&met, &k);
    assert_eq!(meet(&n, &meet(&k, &m)), all);
    assert_eq!(meet(&all, &met), all);
    for [n, m, k, result] in
        [[4, 4, 4, 4], [1, 3, 1, 3], [3, 1, 3, 3], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1], [1, 1, 2, 2]]
    {
        let values = [("n", n), ("m", m), ("k", k)].map(|(name, value)| (scope.named(name), value));
        let binding = |symbol| values.iter().find(|value| value.0 == symbol).map(|value| value.1);
        assert_eq!(all.evaluate(&binding), Some(result));
    }
    let unranked = Single::new("Add", 14).unranked(DType::Float).input(DType::Float, "3");
    assert_eq!(unranked.infer(), ["float"]);
    let mixed = Single::new("Add", 14).input(DType::Float, "3").input(DType::Double, "3");
    assert!(mixed.infer()[0].starts_with("invalid"));
    let chosen =
        Single::new("Where", 16).input(DType::Bool, "N 1").input(DType::String, "1 3").input(DType::String, "1");
    assert_eq!(chosen.infer(), ["string[N, 3]"]);
    let slopes = Single::new("PRelu", 16).input(DType::Float, "N C 8 8").input(DType::Float, "16 1 1");
    assert_eq!(slopes.infer(), ["float[N, 16, 8, 8]"]);
    let more = Single::new("PRelu", 16).input(DType::Float, "1 B").input(DType::Float, "C 1");
    assert_eq!(more.infer(), ["float[C, B]"]);
    let more = Single::new("PRelu", 16).values(&[2], &[-1f32, 1.0]).values(&[2, 1], &[2f32, 3.0]);
    assert!(matches!(more.eval(), Err(Decline::Unsupported(_))));
}

#[test]
fn comparisons_and_logic() {
    let (a, b) = ([1f32, 2.0, f32::NAN, -0.0], [2f32, 2.0, f32::NAN, 0.0]);
    assert_eq!(pair("Equal", 13, &a, &b).integers(), [0, 1, 0, 1]);
    assert_eq!(pair("Less", 13, &a, &b).integers(), [1, 0, 0, 0]);
    assert_eq!(pair("Greater", 13, &b, &a).integers(), [1, 0, 0, 0]);
    assert_eq!(pair("LessOrEqual", 16, &a, &b).integers(), [1, 1, 0, 1]);
    assert_eq!(pair("GreaterOrEqual", 16, &a, &b).integers(), [0, 1, 0, 1]);
    assert_eq!(pair("Less", 13, &[u64::MAX], &[1]).integers(), [0]);
    let strings = |texts: [&'static str; 2]| Tensor::from_strings(&[2], texts.map(Into::into).to_vec()).unwrap();
    let equal = Single::new("Equal", 19).constant(strings(["a", "b"])).constant(strings(["a", "c"]));
    assert_eq!(equal.integers(), [1, 0]);
    let bools = |values: &[bool]| Tensor::from_bools(&[values.len()], values).unwrap();
    let logic = |op_type: &str| {
        let (a, b) = (bools(&[false, false, true, true]), bools(&[false, true, false, true]));
        Single::new(op_type, 7).constant(a).constant(b).integers()
    };
    assert_eq!(logic("And"), [0, 0, 0, 1]);
    assert_eq!(logic("Or"), [0, 1, 1, 1]);
    assert_eq!(logic("Xor"), [0, 1, 1, 0]);
    assert_eq!(logic("Equal"), [1, 0, 0, 1]);
    assert_eq!(Single::new("Not", 1).constant(bools(&[false, true])).integers(), [1, 0]);
}

#[test]
fn bits_and_shifts() {
    assert_eq!(pair("BitwiseAnd", 18, &[-2i16, 12], &[7, 10]).integers(), [6, 8]);
    assert_eq!(pair("BitwiseOr", 18, &[-2i16, 12], &[7, 10]).integers(), [-1, 14]);
    assert_eq!(pair("BitwiseXor", 18, &[-2i16, 12], &[7, 10]).integers(), [-7, 6]);
    assert_eq!(one("BitwiseNot", 18, &[0u32, 5]).integers(), [4_294_967_295, 4_294_967_290]);
    let shift = |direction: &'static str, x: &[u8], by: &[u8]| {
        pair("BitShift", 11, x, by).with_str("direction", direction).integers()
    };
    assert_eq!(shift("LEFT", &[1, 129, 3, 7], &[1, 1, 8, 200]), [2, 2, 0, 0]);
    assert_eq!(shift("RIGHT", &[1, 129, 3, 7], &[1, 1, 8, 200]), [0, 64, 0, 0]);
    let signed = |direction: &'static str| {
        pair("BitShift", 28, &[-8i8, -8, -8, 64, 64], &[1, 8, -1, 1, -1]).with_str("direction", direction).integers()
    };
    assert_eq!(signed("RIGHT"), [-4, -1, -1, 32, 0]);
    assert_eq!(signed("LEFT"), [-16, 0, 0, -128, 0]);
    declines(pair("BitShift", 28, &[1u8], &[1]).with_str("direction", "UP"));
    declines(pair("BitShift", 28, &[1f32], &[1.0]).with_str("direction", "LEFT"));
    assert_eq!(one("BitCast", 26, &[1f32]).with("to", DType::Int32).integers(), [0x3f80_0000]);
    let codes = Tensor::from_bytes(DType::Int4, &[3], vec![0xf1, 0x08].into()).unwrap();
    assert_eq!(Single::new("BitCast", 26).constant(codes).with("to", DType::Uint4).integers(), [1, 15, 8]);
    declines(one("BitCast", 26, &[2u8]).with("to", DType::Bool));
    declines(one("BitCast", 26, &[2u8]).with("to", DType::Int16));
}

#[test]
fn choosing() {
    let condition = Tensor::from_bools(&[2, 1], &[true, false]).unwrap();
    let chosen = Single::new("Where", 16).constant(condition).values(&[3], &[1i8, 2, 3]).values(&[], &[9i8]);
    assert_eq!(chosen.integers(), [1, 2, 3, 9, 9, 9]);
    let condition = Tensor::from_bools(&[2], &[false, true]).unwrap();
    let complex = |re: f32| Complex64([re, -re]);
    let chosen = Single::new("Where", 9)
        .constant(condition.clone())
        .values(&[1], &[complex(1.0)])
        .values(&[2], &[complex(2.0), complex(3.0)]);
    assert_eq!(chosen.eval().unwrap()[0].elements::<Complex64>().unwrap().as_ref(), [complex(2.0), complex(1.0)]);
    let texts = |texts: &[&'static str]| {
        Tensor::from_strings(&[texts.len()], texts.iter().map(|&text| text.into()).collect()).unwrap()
    };
    let chosen = Single::new("Where", 9).constant(condition).constant(texts(&["x"])).constant(texts(&["a", "b"]));
    assert_eq!(chosen.eval().unwrap()[0].strings().unwrap(), ["a", "x"]);
}

#[test]
fn clipping() {
    let x = [f32::NAN, -5.0, 0.5, 9.0];
    let clip = |low: Option<f32>, high: Option<f32>| {
        [low, high].into_iter().fold(one("Clip", 13, &x), |node, bound| match bound {
            Some(bound) => node.values(&[], &[bound]),
            None => node.absent(),
        })
    };
    assert_eq!(bits(&clip(Some(-1.0), Some(1.0)).floats()), bits(&[f64::NAN, -1.0, 0.5, 1.0]));
    assert_eq!(bits(&clip(None, Some(1.0)).floats()), bits(&[f64::NAN, -5.0, 0.5, 1.0]));
    assert_eq!(bits(&clip(Some(2.0), Some(1.0)).floats()), bits(&[f64::NAN, 1.0, 1.0, 1.0]));
    declines(clip(Some(f32::NAN), None));
    declines(Single::new("Clip", 13).values(&[1], &[f32::INFINITY]));
    assert_eq!(one("Clip", 12, &[1i64, 5]).values(&[], &[4i64]).values(&[], &[3i64]).integers(), [3, 3]);
    assert_eq!(one("Clip", 6, &[f32::INFINITY, -5.0]).with_float("min", 0.0).floats(), [f64::from(f32::MAX), 0.0]);
    declines(one("Clip", 6, &[f64::INFINITY]));
}

#[test]
fn dropout_passes_its_operand_unless_it_trains() {
    let x = || one("Dropout", 13, &[1f32, 2.0]);
    let infer = |node: Single| node.output().infer();
    assert_eq!(infer(x()), ["float[2]", "bool[2]"]);
    assert_eq!(infer(Single::new("Dropout", 7).input(DType::Double, "N 2")), ["double[N, 2]", "double[N, 2]"]);
    declines(x().values(&[], &[0.5f32]).constant(Tensor::from_bools(&[], &[true]).unwrap()));
}

#[test]
fn random_operators_have_types() {
    let normal = Single::new("RandomNormal", 22).with("shape", vec![2, 3]).with("dtype", DType::Bfloat16);
    assert_eq!(normal.infer(), ["bfloat16[2, 3]"]);
    assert!(Single::new("RandomUniform", 1).with("shape", vec![-1]).infer()[0].starts_with("invalid"));
    let like = Single::new("RandomUniformLike", 1).input(DType::Int32, "N").with("dtype", DType::Float);
    assert_eq!(like.infer(), ["float[N]"]);
    assert_eq!(Single::new("Bernoulli", 15).input(DType::Float, "N").infer(), ["float[N]"]);
    assert_eq!(
        Single::new("Multinomial", 7).input(DType::Float, "B 9").with("sample_size", 4).infer(),
        ["int32[B, 4]"]
    );
    declines(one("Bernoulli", 15, &[0f32]));
}
