use crate::ir::Attribute;
use crate::ops::Decline;
use crate::ops::bodies::Bodies;
use crate::ops::single::Single;
use crate::tensor::{DType, Element, Tensor};

fn axes(axes: &[i64]) -> Attribute {
    Attribute::Ints(axes.to_vec())
}

fn flag(flag: bool) -> Attribute {
    Attribute::Int(i64::from(flag))
}

/// Returns a reduction of a constant at operator set 20, with the axes as an operand.
fn reduce<T: Element>(op_type: &str, shape: &[usize], values: &[T], axes: &[i64]) -> Single {
    Single::new(op_type, 20).values(shape, values).values(&[axes.len()], axes)
}

#[test]
fn every_reduction_of_floats() {
    let x = [1f32, -2.0, 3.0, 4.0];
    for (op_type, expected) in [
        ("ReduceSum", [-1.0, 7.0]),
        ("ReduceMean", [-0.5, 3.5]),
        ("ReduceMax", [1.0, 4.0]),
        ("ReduceMin", [-2.0, 3.0]),
        ("ReduceProd", [-2.0, 12.0]),
        ("ReduceL1", [3.0, 7.0]),
        ("ReduceL2", [5f64.sqrt(), 5.0]),
        ("ReduceLogSumExp", [1.048_587_351_573_742, 4.313_261_687_518_223]),
        ("ReduceSumSquare", [5.0, 25.0]),
    ] {
        let found = reduce(op_type, &[2, 2], &x, &[1]).floats();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{op_type}: {found:?}");
    }
    assert_eq!(reduce("ReduceLogSum", &[2], &[0.25f64, 0.75], &[0]).floats(), [0.0]);
}

#[test]
fn nothing_reduces_to_the_neutral_element() {
    let nothing = |op_type| reduce::<f32>(op_type, &[2, 0], &[], &[1]).floats();
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(nothing("ReduceSum"), [0.0; 2]);
    assert_eq!(nothing("ReduceProd"), [1.0; 2]);
    assert_eq!(nothing("ReduceMax"), [low; 2]);
    assert_eq!(nothing("ReduceMin"), [high; 2]);
    assert_eq!(nothing("ReduceLogSum"), [low; 2]);
    assert_eq!(nothing("ReduceLogSumExp"), [low; 2]);
    assert!(reduce::<f32>("ReduceMean", &[2, 0], &[], &[1]).eval().is_err());
    assert_eq!(reduce::<i64>("ReduceMax", &[0], &[], &[0]).integers(), [i64::MIN]);
    assert_eq!(reduce::<u8>("ReduceMin", &[0], &[], &[0]).integers(), [255]);
    assert_eq!(Single::new("ReduceMax", 20).constant(Tensor::from_bools(&[0], &[]).unwrap()).integers(), [0]);
    assert!(reduce::<i32>("ReduceLogSum", &[0], &[], &[0]).eval().is_err());
}

#[test]
fn sums_of_exponentials_do_not_overflow() {
    let of = |x: &[f64]| reduce("ReduceLogSumExp", &[x.len()], x, &[0]).floats()[0];
    assert_eq!(of(&[1000.0, -1000.0]), 1000.0);
    assert!((of(&[-1000.0, -1000.0]) - (-1000.0 + 2f64.ln())).abs() < 1e-9);
    assert_eq!(of(&[f64::NEG_INFINITY; 20]), f64::NEG_INFINITY);
    assert_eq!(of(&[0.0, f64::INFINITY, f64::INFINITY]), f64::INFINITY);
    assert!(of(&[0.0, f64::NAN, 1.0]).is_nan());
    let many: Vec<f64> = (0..100).map(f64::from).collect();
    assert!((of(&many) - 99.458_675_145_387_08).abs() < 1e-12);
}

#[test]
fn integers_are_exact_or_declined() {
    assert_eq!(reduce("ReduceMean", &[2], &[-7i32, 2], &[0]).integers(), [-2]);
    assert_eq!(reduce("ReduceSum", &[2], &[i32::MAX, -1], &[0]).integers(), [i64::from(i32::MAX) - 1]);
    assert_eq!(reduce("ReduceL2", &[2], &[3i64, 4], &[0]).integers(), [5]);
    assert_eq!(reduce("ReduceLogSum", &[2], &[5i32, 3], &[0]).integers(), [2]);
    assert_eq!(
        reduce("ReduceMax", &[2], &[u64::MAX, 1], &[0]).eval().unwrap()[0].elements::<u64>().unwrap()[0],
        u64::MAX
    );
    for (op_type, values) in [
        ("ReduceSum", [i32::MAX, 1]),
        ("ReduceProd", [i32::MAX, 2]),
        ("ReduceL1", [i32::MIN, 0]),
        ("ReduceSumSquare", [1 << 20, 0]),
        ("ReduceLogSum", [-1, 0]),
    ] {
        assert!(matches!(reduce(op_type, &[2], &values, &[0]).eval(), Err(Decline::Unsupported(_))), "{op_type}");
        let mut b = Bodies::new(20);
        b.constant(b.main(), "x", Tensor::vector(values.to_vec()));
        b.node(b.main(), op_type, "x", "y", &[]);
        assert_eq!(b.facts("y"), ["int32[1]"], "{op_type}");
    }
}

#[test]
fn extremes_of_nan_are_declined_and_of_bools_found() {
    assert!(reduce("ReduceMax", &[2], &[1f32, f32::NAN], &[0]).eval().is_err());
    let bools = Tensor::from_bools(&[2, 2], &[true, false, false, false]).unwrap();
    let max = Single::new("ReduceMax", 20).constant(bools.clone()).values(&[1], &[1i64]);
    assert_eq!(max.integers(), [1, 0]);
    assert_eq!(Single::new("ReduceMin", 20).constant(bools.clone()).integers(), [0]);
    assert!(Single::new("ReduceSum", 20).constant(bools).eval().is_err());
}

#[test]
fn shapes_of_reductions() {
    let infer = |opset, given: &[i64], keep| {
        Single::new("ReduceSum", opset)
            .input(DType::Float, "N 3 K")
            .with("axes", axes(given))
            .with("keepdims", flag(keep))
    };
    assert_eq!(infer(11, &[0, -1], true).infer(), ["float[1, 3, 1]"]);
    assert_eq!(infer(11, &[0, -1], false).infer(), ["float[3]"]);
    assert_eq!(infer(1, &[], true).infer(), ["float[1, 1, 1]"]);
    assert!(infer(11, &[3], true).infer()[0].starts_with("invalid"));
    // From version 13 on the attribute does not exist.
    assert_eq!(infer(13, &[0], false).infer(), ["?"]);
    let operand =
        |given: &[i64]| Single::new("ReduceMean", 18).input(DType::Float, "N 3 K").values(&[given.len()], given);
    assert_eq!(operand(&[1]).infer(), ["float[N, 1, K]"]);
    assert_eq!(operand(&[]).infer(), ["float[1, 1, 1]"]);
    assert_eq!(operand(&[]).with("noop_with_empty_axes", flag(true)).infer(), ["float[N, 3, K]"]);
    assert_eq!(
        operand(&[]).with("noop_with_empty_axes", flag(true)).with("keepdims", flag(false)).infer(),
        ["float[N, 3, K]"]
    );
}

#[test]
fn axes_of_run_time() {
    let infer = |shape: &str, axes: &str, keep| {
        let node = Single::new("ReduceMax", 18).input(DType::Float, shape).input(DType::Int64, axes);
        node.with("keepdims", flag(keep)).infer()
    };
    assert_eq!(infer("N 1 3", "2", true), ["float[?, 1, ?]"]);
    assert_eq!(infer("N 1 3", "1", false), ["float[?, ?]"]);
    assert_eq!(infer("N N N", "1", false), ["float[N, N]"]);
    assert_eq!(infer("N", "1", false), ["float[]"]);
    // Two equal axes remove one dim.
    assert_eq!(infer("N 1 3", "2", false), ["float"]);
    assert_eq!(infer("N 1 3", "3", false), ["float"]);
    assert_eq!(infer("N 1 3", "?", false), ["float"]);
    assert!(infer("", "1", false)[0].starts_with("invalid"));
    let unranked = Single::new("ReduceMax", 18).unranked(DType::Float).values(&[1], &[0i64]);
    assert_eq!(unranked.infer(), ["float"]);
}

#[test]
fn no_axes_and_no_operation_still_compute() {
    let noop = |op_type| {
        Single::new(op_type, 18).values(&[2], &[-3f32, 4.0]).with("noop_with_empty_axes", flag(true)).floats()
    };
    assert_eq!(noop("ReduceSum"), [-3.0, 4.0]);
    assert_eq!(noop("ReduceSumSquare"), [9.0, 16.0]);
    assert_eq!(noop("ReduceL1"), [3.0, 4.0]);
}

#[test]
fn indices_of_extremes() {
    let arg = |op_type: &str, opset, values: &[i32]| Single::new(op_type, opset).values(&[2, 3], values);
    let x = [1, 3, 3, 5, 0, 5];
    assert_eq!(arg("ArgMax", 13, &x).with("axis", Attribute::Int(-1)).integers(), [1, 0]);
    let last = arg("ArgMax", 13, &x).with("axis", Attribute::Int(-1)).with("select_last_index", flag(true));
    assert_eq!(last.integers(), [2, 2]);
    assert_eq!(arg("ArgMin", 1, &x).integers(), [0, 1, 0]);
    let dropped = arg("ArgMin", 13, &x).with("keepdims", flag(false)).eval().unwrap();
    assert_eq!(dropped[0].shape(), [3]);
    assert!(Single::new("ArgMax", 13).values(&[2], &[1f32, f32::NAN]).eval().is_err());
    assert!(Single::new("ArgMax", 13).values::<f32>(&[0, 2], &[]).eval().is_err());
    assert_eq!(Single::new("ArgMax", 13).input(DType::Float, "N K").infer(), ["int64[1, K]"]);
    let dropped = Single::new("ArgMin", 13).input(DType::Float, "N K").with("axis", Attribute::Int(1));
    assert_eq!(dropped.with("keepdims", flag(false)).infer(), ["int64[N]"]);
}

#[test]
fn softmax_flattens_before_version_13() {
    let x = [0f32, 0.0, 0.0, 0.0];
    assert_eq!(Single::new("Softmax", 11).values(&[1, 2, 2], &x).floats(), [0.25; 4]);
    assert_eq!(Single::new("Softmax", 13).values(&[1, 2, 2], &x).floats(), [0.5; 4]);
    let hard = |opset| Single::new("Hardmax", opset).values(&[1, 2, 2], &[1f32, 3.0, 3.0, 2.0]).floats();
    assert_eq!(hard(11), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(hard(13), [0.0, 1.0, 1.0, 0.0]);
    let logs = Single::new("LogSoftmax", 13).values(&[2], &[0f64, 1000.0]).floats();
    assert_eq!(logs, [-1000.0, 0.0]);
    let middle = Single::new("Softmax", 13).with("axis", Attribute::Int(0)).values(&[2, 2], &[0f64, 9.0, 0.0, 9.0]);
    assert_eq!(middle.floats(), [0.5; 4]);
    for x in [[f32::INFINITY, 0.0], [f32::NAN, 0.0], [f32::NEG_INFINITY; 2]] {
        assert!(Single::new("Softmax", 13).values(&[2], &x).floats().iter().all(|x| x.is_nan()));
        assert!(Single::new("LogSoftmax", 13).values(&[2], &x).floats().iter().all(|x| x.is_nan()));
        assert!(Single::new("LogSoftmax", 13).values(&[2], &x.map(f64::from)).eval().is_err());
    }
    assert_eq!(Single::new("Softmax", 13).input(DType::Float16, "N 4").infer(), ["float16[N, 4]"]);
    for (op_type, opset) in [("Softmax", 11), ("LogSoftmax", 13), ("Hardmax", 13)] {
        assert!(Single::new(op_type, opset).input(DType::Float, "").infer()[0].starts_with("invalid"));
    }
}

#[test]
fn batches_are_normalized() {
    let parameters = |node: Single, mean: f32, variance: f32| {
        node.values(&[2], &[2f32, 1.0]).values(&[2], &[0f32, 5.0]).values(&[2], &[mean; 2]).values(&[2], &[variance; 2])
    };
    let x = [1f32, 3.0, 5.0, 7.0];
    let node = Single::new("BatchNormalization", 15).with_float("epsilon", 0.0).values(&[2, 2], &x);
    assert_eq!(parameters(node, 1.0, 4.0).floats(), [0.0, 6.0, 4.0, 8.0]);
    let node = Single::new("BatchNormalization", 15).with_float("epsilon", 0.0).values(&[2, 2], &x);
    let node = node.with("training_mode", flag(true)).with_float("momentum", 0.5).output().output();
    let results = parameters(node, 1.0, 2.0).eval().unwrap();
    assert_eq!(results[0].to_f64s().unwrap(), [-2.0, 4.0, 2.0, 6.0]);
    assert_eq!(results[1].to_f64s().unwrap(), [2.0, 3.0]);
    assert_eq!(results[2].to_f64s().unwrap(), [3.0, 3.0]);
    // By default, this version trains.
    let node = Single::new("BatchNormalization", 6).values(&[2, 2], &x);
    assert!(matches!(parameters(node, 1.0, 2.0).eval(), Err(Decline::Unsupported(_))));
    let node = Single::new("BatchNormalization", 15).input(DType::Float16, "N C H W").input(DType::Float16, "C");
    let node = node.input(DType::Float16, "C").input(DType::Float, "C").input(DType::Float, "C").output().output();
    let node = node.with("training_mode", flag(true));
    assert_eq!(node.infer(), ["float16[N, C, H, W]", "float[C]", "float[C]"]);
    let instance = |channels| {
        let node = Single::new("InstanceNormalization", 22).input(DType::Float, channels);
        node.input(DType::Float, "8").input(DType::Float, "8").infer().swap_remove(0)
    };
    assert_eq!(instance("N C ?"), "float[N, 8, ?]");
    assert!(instance("N 4 ?").starts_with("invalid"));
}

#[test]
fn features_are_normalized_before_version_9() {
    let node = Single::new("BatchNormalization", 7).with_float("epsilon", 0.0).with("spatial", flag(false));
    let node = node.values(&[1, 1, 2], &[1f32, 2.0]).values(&[1, 2], &[1f32, 10.0]).values(&[1, 2], &[0f32; 2]);
    assert_eq!(node.values(&[1, 2], &[0f32; 2]).values(&[1, 2], &[1f32; 2]).floats(), [1.0, 20.0]);
}

#[test]
fn groups_are_scaled_by_group_and_later_by_channel() {
    let x = [-1f32, 1.0, -1.0, 1.0];
    let node = |opset, scale: &[f32]| {
        let node =
            Single::new("GroupNormalization", opset).with_float("epsilon", 0.0).with("num_groups", Attribute::Int(2));
        node.values(&[1, 4, 1], &x).values(&[scale.len()], scale).values(&[scale.len()], &vec![0f32; scale.len()])
    };
    assert_eq!(node(18, &[1.0, 2.0]).floats(), [-1.0, 1.0, -2.0, 2.0]);
    assert_eq!(node(21, &[1.0, 2.0, 3.0, 4.0]).floats(), [-1.0, 2.0, -3.0, 4.0]);
    assert!(node(21, &[1.0, 2.0]).eval().is_err());
    assert!(node(18, &[1.0, 2.0, 3.0, 4.0]).eval().is_err());
}

#[test]
fn layers_are_normalized() {
    let node = Single::new("LayerNormalization", 17).with_float("epsilon", 0.0).output().output();
    let node = node.values(&[2, 2], &[1f32, 3.0, 2.0, 6.0]).values(&[2], &[1f32, 10.0]).values(&[2, 1], &[0f32, 5.0]);
    let results = node.eval().unwrap();
    assert_eq!(results[0].to_f64s().unwrap(), [-1.0, 10.0, 4.0, 15.0]);
    assert_eq!((results[1].shape(), results[1].to_f64s().unwrap()), (&[2, 1][..], vec![2.0, 4.0]));
    assert_eq!(results[2].to_f64s().unwrap(), [1.0, 0.5]);
    let node = Single::new("LayerNormalization", 17).with("axis", Attribute::Int(1)).output().output();
    let node = node.input(DType::Float16, "N S 8").input(DType::Float16, "S 8");
    assert_eq!(node.infer(), ["float16[N, S, 8]", "float[N, 1, 1]", "float[N, 1, 1]"]);
    let rms = Single::new("RMSNormalization", 23).with_float("epsilon", 0.0).values(&[2], &[3f32, 3.0]);
    assert_eq!(rms.values(&[1], &[2f32]).floats(), [2.0, 2.0]);
    let node = Single::new("LayerNormalization", 17).input(DType::Float, "N ? ?").input(DType::Float, "1 8");
    assert_eq!(node.infer(), ["float[N, ?, 8]"]);
    let rms = Single::new("RMSNormalization", 23).input(DType::Float16, "N 8").input(DType::Float, "8");
    assert_eq!(rms.infer(), ["float[N, 8]"]);
}

#[test]
fn parameters_that_do_not_fit() {
    let batch = |data: &'static str, variance: &'static str| {
        let node = Single::new("BatchNormalization", 15).input(DType::Float, data).input(DType::Float, "3");
        let node = node.input(DType::Float, "3").input(DType::Float, "3").input(DType::Float, variance);
        node.infer().remove(0)
    };
    assert_eq!(batch("N C H", "3"), "float[N, 3, H]");
    for (data, variance) in [("N 3 H", "4"), ("N C", "4"), ("N 3", "1 3"), ("N", "3")] {
        assert!(batch(data, variance).starts_with("invalid"), "{data}, {variance}");
    }
    let layer = |scale: &'static str, bias: &'static str| {
        let node = Single::new("LayerNormalization", 17).input(DType::Float, "N 3 4").input(DType::Float, scale);
        node.input(DType::Float, bias).infer().remove(0)
    };
    for scale in ["4", "1", "", "3 1", "N 1 4", "K 4"] {
        assert_eq!(layer(scale, "4"), "float[N, 3, 4]");
    }
    for other in ["3", "12", "0", "2 4", "1 N 3 4"] {
        assert!(layer(other, "4").starts_with("invalid"), "{other}");
        assert!(layer("4", other).starts_with("invalid"), "{other}");
        let rms = Single::new("RMSNormalization", 23).input(DType::Float, "N 3 4").input(DType::Float, other);
        assert!(rms.infer()[0].starts_with("invalid"), "{other}");
    }
}

#[test]
fn norms_and_neighbours() {
    let lp =
        |p| Single::new("LpNormalization", 22).with("p", Attribute::Int(p)).values(&[2, 2], &[3f32, 4.0, 0.0, 0.0]);
    assert!(lp(2).floats().iter().zip([0.6, 0.8, 0.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-7));
    assert!(lp(1).floats().iter().zip([3.0 / 7.0, 4.0 / 7.0, 0.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-7));
    assert!(lp(3).eval().is_err());
    // For size 2, the second neighbor follows the channel.
    let lrn = Single::new("LRN", 13).with("size", Attribute::Int(2)).with_float("alpha", 2.0).with_float("beta", 1.0);
    assert_eq!(lrn.values(&[1, 2, 1], &[1f64, 3.0]).floats(), [1.0 / 11.0, 0.3]);
    let mvn = |x: &[f32]| Single::new("MeanVarianceNormalization", 13).values(&[1, 1, 1, x.len()], x);
    assert!(mvn(&[1.0, 3.0]).floats().iter().zip([-1.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-6));
    assert!(mvn(&[3.3; 4]).eval().is_err() && mvn(&[0.0; 3]).eval().is_err());
    let row = || Single::new("MeanVarianceNormalization", 13).values(&[1, 2], &[1f32, 3.0]);
    assert_eq!(row().infer(), ["float[1, 2]"]);
    assert!(matches!(row().eval(), Err(Decline::Unsupported(_))));
}

#[test]
fn losses() {
    let scores = [-1f32, -2.0, -3.0, -4.0];
    let loss = |reduction: &'static str, labels: &[i64]| {
        let node = Single::new("NegativeLogLikelihoodLoss", 13).with_str("reduction", reduction);
        node.with("ignore_index", Attribute::Int(9)).values(&[2, 2], &scores).values(&[2], labels)
    };
    assert_eq!(loss("none", &[1, 0]).floats(), [2.0, 3.0]);
    assert_eq!(loss("sum", &[1, 9]).floats(), [2.0]);
    assert_eq!(loss("mean", &[1, 9]).floats(), [2.0]);
    assert_eq!(loss("mean", &[1, 0]).values(&[2], &[3f32, 1.0]).floats(), [11.0 / 4.0]);
    assert!(matches!(loss("none", &[1, 2]).eval(), Err(Decline::Invalid(_))));
    assert!(loss("mean", &[9, 9]).eval().is_err());
    let node = Single::new("SoftmaxCrossEntropyLoss", 13).output().values(&[1, 2], &[0f64, 0.0]).values(&[1], &[1i32]);
    let results = node.eval().unwrap();
    let half = 0.5f64.ln();
    assert_eq!(results[0].to_f64s().unwrap(), [-half]);
    assert_eq!(results[1].to_f64s().unwrap(), [half, half]);
    let node = Single::new("SoftmaxCrossEntropyLoss", 13).with_str("reduction", "none").output();
    let node = node.input(DType::Float, "N C 5").input(DType::Int64, "M K");
    assert_eq!(node.infer(), ["float[M, K]", "float[N, C, 5]"]);
}

#[test]
fn optimizers() {
    let step = |op_type: &str| {
        let node = Single::new(op_type, 1).in_domain("ai.onnx.preview.training").output();
        node.values(&[], &[0.5f32]).values(&[], &[0i64])
    };
    let adagrad = step("Adagrad").values(&[1], &[1f32]).values(&[1], &[3f32]).values(&[1], &[16f32]).eval().unwrap();
    assert!((adagrad[0].to_f64s().unwrap()[0] - 0.7).abs() < 1e-6);
    assert_eq!(adagrad[1].to_f64s().unwrap(), [25.0]);
    let momentum = step("Momentum").with_str("mode", "nesterov").with_float("alpha", 0.5).with_float("beta", 0.25);
    let momentum = momentum.with_float("norm_coefficient", 0.0);
    let momentum = momentum.values(&[1], &[1f32]).values(&[1], &[2f32]).values(&[1], &[4f32]).eval().unwrap();
    assert_eq!(momentum[1].to_f64s().unwrap(), [4.0]);
    assert_eq!(momentum[0].to_f64s().unwrap(), [-1.0]);
    let adam = step("Adam").output().input(DType::Float, "N").input(DType::Float, "N").input(DType::Float, "N");
    assert_eq!(adam.input(DType::Float, "N").infer(), ["float[N]", "float[N]", "float[N]"]);
}

#[test]
fn small_tensors_are_reduced_as_expressions() {
    let facts = |op_type: &str, dtype: DType, keep: bool| {
        let mut b = Bodies::new(11);
        let main = b.main();
        b.input("x", DType::Float, "N M 3");
        b.node(main, "Shape", "x", "sizes", &[]);
        b.node(main, "Cast", "sizes", "cast", &[("to", Attribute::from(dtype))]);
        b.node(main, op_type, "cast", "y", &[("axes", axes(&[0])), ("keepdims", flag(keep))]);
        b.facts("y").swap_remove(0)
    };
    assert_eq!(facts("ReduceProd", DType::Int64, false), "int64[]={3*N*M}");
    assert_eq!(facts("ReduceProd", DType::Int64, true), "int64[1]={3*N*M}");
    assert_eq!(facts("ReduceSum", DType::Int32, true), "int32[1]={N + M + 3}");
    assert_eq!(facts("ReduceMax", DType::Int64, false), "int64[]={max(3, M, N)}");
    assert_eq!(facts("ReduceMin", DType::Float, false), "float[]={min(3, M, N)/1}");
    // Too large to be exact.
    assert_eq!(facts("ReduceProd", DType::Float, false), "float[]");
    assert_eq!(facts("ReduceMean", DType::Int64, false), "int64[]");
}

#[test]
fn a_sum_of_one_integer_of_64_bits_may_be_rounded() {
    let is_known = |op_type: &str, dtype: DType| {
        let mut b = Bodies::new(11);
        let main = b.main();
        b.input("k", dtype, "1");
        b.node(main, op_type, "k", "y", &[("axes", axes(&[0])), ("keepdims", flag(false))]);
        b.facts("y").swap_remove(0).contains('=')
    };
    for op_type in ["ReduceSum", "ReduceMean", "ReduceProd"] {
        assert!(!is_known(op_type, DType::Int64), "{op_type}");
        assert!(is_known(op_type, DType::Int32), "{op_type}");
    }
    assert!(is_known("ReduceMax", DType::Int64) && is_known("ReduceMin", DType::Int64));
}

/// `k + N − k` is N, but not in binary64 if k exceeds 2⁵³.
#[test]
fn a_sum_whose_parts_may_be_rounded_is_unknown() {
    let sum = |k: i64| {
        let mut b = Bodies::new(12);
        let main = b.main();
        b.input("x", DType::Float, "N");
        b.node(main, "Shape", "x", "size", &[]);
        b.constant(main, "k", Tensor::from_vec(&[1], vec![k]).unwrap());
        b.constant(main, "less", Tensor::from_vec(&[1], vec![-k]).unwrap());
        b.node(main, "Concat", "k size less", "all", &[("axis", Attribute::from(0i64))]);
        b.node(main, "ReduceSum", "all", "y", &[("axes", axes(&[0])), ("keepdims", flag(false))]);
        b.facts("y").swap_remove(0)
    };
    assert_eq!(sum(1 << 51), "int64[]={N}");
    assert_eq!(sum(1 << 52), "int64[]");
}

/// Binary32 kernels compute no deviation if squares overflow.
#[test]
fn intermediate_overflow_is_declined() {
    let x = [1e30f32, 2.0, -1.0, 0.5];
    let scaled = |name: &str, opset| Single::new(name, opset).values(&[1, 4], &x).values(&[4], &[1f32; 4]);
    assert!(scaled("LayerNormalization", 17).output().output().eval().is_err());
    assert!(scaled("RMSNormalization", 23).eval().is_err());
    assert!(Single::new("LpNormalization", 1).values(&[1, 4], &x).eval().is_err());
    assert!(Single::new("LpNormalization", 1).values(&[1, 2], &[1e-40f32, 0.0]).eval().is_err());
    assert!(Single::new("LpNormalization", 1).values(&[1, 4], &x.map(f64::from)).eval().is_ok());
    let image = |name: &str, opset| Single::new(name, opset).values(&[1, 1, 2, 2], &x);
    assert!(image("MeanVarianceNormalization", 13).eval().is_err());
    assert!(image("LRN", 13).with("size", 1).eval().is_err());
    assert!(image("InstanceNormalization", 6).values(&[1], &[1f32]).values(&[1], &[0f32]).eval().is_err());
    let batch = |mean: f32, variance: f32| {
        let node = Single::new("BatchNormalization", 15).values(&[1, 1, 2], &[1f32, 2.0]);
        [1f32, 0.0, mean, variance]
            .iter()
            .fold(node, |node, &entry| node.values(&[1], &[entry]))
            .with_float("epsilon", 0.0)
    };
    assert!(batch(1e30, 1e-30).eval().is_err() && batch(0.0, 0.0).eval().is_err() && batch(1.0, 4.0).eval().is_ok());
    let loss = Single::new("NegativeLogLikelihoodLoss", 13).values(&[2, 1], &[-1f32, -2.0]).values(&[2], &[0i64, 0]);
    assert!(loss.values(&[1], &[3e38f32]).eval().is_err());
}
