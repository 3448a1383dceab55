//! Tests of traits about indices and axes: pointwise, moved, reduced or mixed results.

use super::*;

/// Checks that operands at some indices give the results there, and that operands without an axis act like broadcast
/// ones.
pub(super) fn pointwise(operator: &Operator) -> Result<usize, String> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut done = 0;
    for dtype in TYPES {
        let whole = operands(operator, &mut numbers, dtype, &|_| vec![5, 4]);
        let Some(result) = whole.eval() else { continue };
        let gives_flags = result.dtype() == DType::Bool;
        if operator.traits.gives_flags && !gives_flags
            || gives_flags && dtype != DType::Bool && !operator.traits.gives_flags
        {
            return Err(format!("{dtype}: results are of type {}", result.dtype()));
        }
        // The evaluator computes all elements equally; kernels are measured elsewhere.
        let tried = [&[3][..], &[3, 2, 0], &[0, 1, 2, 3], &[1, 1], &[]].map(|places| [(0, places), (1, places)]);
        for (axis, places) in tried.into_iter().flatten() {
            let mut part = whole.clone();
            for slot in (0..whole.operands.len()).filter(|&slot| has_places(operator, slot)) {
                part = part.with_operand(slot, take(whole.operand(slot), axis, places));
            }
            let found = part.eval().ok_or("a part is not evaluated")?;
            if !equal(&found, &take(&result, axis, places), Variation::None) {
                return Err(format!("{dtype}: the places {places:?} of axis {axis} differ"));
            }
        }
        let last = whole.operands.len() - 1;
        if last > 0 && has_places(operator, last) {
            let small = take(whole.operand(last), 0, &[0]);
            let spread = take(&small, 0, &[0; 5]);
            let (a, b) = (whole.with_operand(last, small).eval(), whole.with_operand(last, spread).eval());
            if !a.zip(b).is_some_and(|(a, b)| equal(&a, &b, Variation::None)) {
                return Err(format!("{dtype}: an operand that lacks an axis is not broadcast"));
            }
        }
        let inferred = whole.viewed(|view| view.result_shape().map(<[Dim]>::to_vec));
        if inferred != Some(vec![Dim::constant(5), Dim::constant(4)]) {
            return Err(format!("{dtype}: the shape is inferred as {inferred:?}"));
        }
        done += 1;
    }
    Ok(done)
}

/// Checks that no value makes the operator fail, or that its failures are not proved impossible.
pub(super) fn failing(operator: &Operator) -> Result<usize, String> {
    let mut numbers = Numbers(77);
    let mut done = 0;
    for dtype in TYPES {
        let sample = operands(operator, &mut numbers, dtype, &|_| vec![3]);
        if sample.eval().is_none() {
            continue;
        }
        for divisor in [-2.0, -1.0, 0.0, 1.0, 3.0] {
            let dividends = [f64::from(i32::MIN), if dtype == DType::Int64 { i64::MIN as f64 } else { 0.0 }, 0.0];
            let slot = sample.operands.len() - 1;
            if !has_places(operator, slot) || slot == 0 || operator.name == "Pow" || operator.name == "Where" {
                continue;
            }
            let first = of_numbers(dtype, &[3], &dividends);
            let tried = sample.with_operand(0, first).with_operand(slot, of_numbers(dtype, &[3], &[divisor; 3]));
            let proved = tried.viewed(|view| operator.traits.cannot_fail(view));
            if proved && tried.eval().is_none() {
                return Err(format!("{dtype}: fails with {divisor}"));
            }
        }
        done += 1;
    }
    Ok(done)
}

/// Returns nodes that are not pointwise, for the traits that they have.
pub(super) fn samples(name: &str) -> Vec<Sample> {
    let operator = operator("", name).unwrap();
    let mut numbers = Numbers(4711);
    let mut float = |shape: &[usize]| random(&mut numbers, DType::Float, shape, false, false);
    let ints = |values: &[i64]| Tensor::vector(values.to_vec());
    let columns = || Tensor::from_vec(&[2, 2], vec![0i64, 1, -1, 0]).unwrap();
    let bytes = |shape: &[usize]| of_numbers(DType::Uint8, shape, &vec![3.0; shape.iter().product()]);
    let of = |list: Vec<Tensor>| Sample::new(operator, list);
    let data = float(&[2, 3, 4]);
    match name {
        "Reshape" => vec![of(vec![data.clone(), ints(&[2, 12])]), of(vec![data, ints(&[2, 3, 2, 2])])],
        "Squeeze" => vec![of(vec![float(&[2, 1, 4, 1]), ints(&[1, -1])])],
        "Unsqueeze" => vec![of(vec![data, ints(&[0, 2])])],
        "Flatten" => vec![of(vec![data.clone()]).with("axis", 1i64), of(vec![data]).with("axis", 2i64)],
        "Expand" => vec![of(vec![float(&[2, 1, 4]), ints(&[5, 2, 3, 1])])],
        "Tile" => vec![of(vec![float(&[2, 1, 4]), ints(&[2, 3, 1])])],
        "Transpose" => vec![of(vec![data.clone()]).with("perm", vec![2i64, 0, 1]), of(vec![data])],
        "Gather" => vec![
            of(vec![data.clone(), ints(&[2, 0, -1])]).with("axis", 1i64),
            of(vec![data.clone(), Tensor::scalar(1i64)]).with("axis", 2i64),
            of(vec![data, Tensor::from_vec(&[2, 2], vec![0i64, 1, 1, 0]).unwrap()]),
        ],
        "GatherElements" => vec![of(vec![float(&[2, 2]), columns()])],
        "GatherND" => vec![of(vec![data, Tensor::from_vec(&[2, 2], vec![0i64, 1, -1, 2]).unwrap()])],
        "Slice" => vec![
            of(vec![data.clone(), ints(&[1]), ints(&[3]), ints(&[1])]),
            of(vec![data, ints(&[-1, 0]), ints(&[-9, 9]), ints(&[2, 0]), ints(&[-2, 1])]),
        ],
        "Concat" => {
            vec![of(vec![data.clone(), float(&[2, 1, 4])]).with("axis", 1i64), of(vec![data]).with("axis", 1i64)]
        }
        "Split" => vec![of(vec![data, ints(&[3])]).with("axis", 1i64)],
        "DepthToSpace" => vec![of(vec![float(&[1, 4, 2, 3])]).with("blocksize", 2i64)],
        "SpaceToDepth" => vec![of(vec![float(&[1, 2, 2, 4])]).with("blocksize", 2i64)],
        "Compress" => vec![of(vec![data, Tensor::from_bools(&[3], &[true, false, true]).unwrap()]).with("axis", 1i64)],
        "ReverseSequence" => vec![of(vec![data, ints(&[2, 1, 2])])],
        "Identity" => vec![of(vec![data])],
        "CumSum" | "CumProd" => vec![of(vec![data, Tensor::scalar(1i64)])],
        "Softmax" | "LogSoftmax" | "Hardmax" | "LpNormalization" => {
            vec![of(vec![data.clone()]), of(vec![data]).with("axis", 1i64)]
        }
        "InstanceNormalization" => vec![of(vec![data, float(&[3]), float(&[3])])],
        "GroupNormalization" => {
            vec![of(vec![float(&[3, 4, 2]), float(&[4]), float(&[4])]).with("num_groups", 2i64)]
        }
        "LayerNormalization" | "RMSNormalization" => {
            vec![of(vec![data.clone(), float(&[4])]), of(vec![data, float(&[3, 4])]).with("axis", 1i64)]
        }
        "ArgMax" | "ArgMin" => vec![of(vec![data.clone()]).with("axis", 1i64), of(vec![data]).with("keepdims", 0i64)],
        "MatMul" => vec![of(vec![data, float(&[4, 5])])],
        "Gemm" => vec![of(vec![float(&[2, 3]), float(&[3, 4]), float(&[4])])],
        "MatMulInteger" => vec![of(vec![bytes(&[2, 3]), bytes(&[3, 4])])],
        "QLinearMatMul" => {
            let (scale, zero) = (|| Tensor::scalar(1.0f32), || Tensor::scalar(0u8));
            let (a, b) = (bytes(&[2, 3]), bytes(&[3, 4]));
            vec![of(vec![a, scale(), zero(), b, scale(), zero(), scale(), zero()])]
        }
        "ConvTranspose" => vec![of(vec![float(&[1, 2, 5]), float(&[2, 3, 2])])],
        "Conv" => vec![of(vec![float(&[1, 2, 5]), float(&[3, 2, 2])])],
        "ConvInteger" => vec![of(vec![bytes(&[1, 2, 5]), bytes(&[3, 2, 2])])],
        "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => {
            let mut sample = of(vec![data]);
            sample.opset = 21;
            vec![sample]
        }
        "AveragePool" | "LpPool" | "MaxPool" => vec![of(vec![data]).with("kernel_shape", vec![2i64])],
        "LRN" => vec![of(vec![data]).with("size", 3i64)],
        "BatchNormalization" => vec![of(vec![data, float(&[3]), float(&[3]), float(&[3]), float(&[3])])],
        "Dropout" => vec![of(vec![data, Tensor::scalar(0.5f32), Tensor::from_bools(&[], &[true]).unwrap()])],
        "DynamicQuantizeLinear" => vec![of(vec![data])],
        "EyeLike" => vec![of(vec![float(&[2, 3])])],
        "Trilu" => vec![of(vec![data, Tensor::scalar(1i64)])],
        "RandomNormal" | "RandomUniform" => vec![of(Vec::new()).with("shape", vec![2i64, 3])],
        "RandomNormalLike" | "RandomUniformLike" => vec![of(vec![data])],
        "ScatterElements" => vec![of(vec![float(&[2, 2]), columns(), float(&[2, 2])])],
        "Scatter" => {
            let mut sample = of(vec![float(&[2, 2]), columns(), float(&[2, 2])]);
            sample.opset = 10;
            vec![sample]
        }
        "ScatterND" => vec![of(vec![float(&[2, 2]), columns(), float(&[2])])],
        "TopK" => vec![of(vec![data, ints(&[2])])],
        "OneHot" => vec![of(vec![ints(&[2, 0, 1]), Tensor::scalar(4i64), Tensor::vector(vec![0.0f32, 1.0])])],
        "HannWindow" | "HammingWindow" | "BlackmanWindow" => vec![of(vec![Tensor::scalar(6i64)])],
        "MelWeightMatrix" => {
            let whole = [4i64, 16, 8000].map(Tensor::scalar);
            vec![of(whole.into_iter().chain([0.0f32, 4000.0].map(Tensor::scalar)).collect())]
        }
        "Shape" | "Size" => vec![of(vec![data])],
        "SequenceConstruct" => vec![of(vec![data.clone(), data])],
        "SequenceEmpty" => vec![of(Vec::new())],
        "Optional" => vec![of(vec![data])],
        "Range" => vec![of(vec![Tensor::scalar(3i64), Tensor::scalar(20i64), Tensor::scalar(4i64)])],
        "ConstantOfShape" => vec![of(vec![ints(&[2, 3])]).with("value", Tensor::vector(vec![7i64]))],
        "NonZero" => vec![of(vec![ints(&[1, 1, 1, 1])])],
        "Pad" => vec![of(vec![data, ints(&[0, 1, 0, 0, 0, 2])])],
        "Resize" => {
            let mut sample = of(vec![float(&[1, 1, 2, 2])]);
            sample.operands.extend([None, Some(Tensor::vector(vec![1.0f32, 1.0, 2.0, 2.0]))]);
            vec![sample]
        }
        "Upsample" => {
            let mut sample = of(vec![float(&[1, 1, 2, 2]), Tensor::vector(vec![1.0f32, 1.0, 2.0, 2.0])]);
            sample.opset = 9;
            vec![sample]
        }
        name if name.starts_with("Reduce") => vec![
            of(vec![data.clone(), ints(&[1])]),
            of(vec![data.clone(), ints(&[0, -1])]).with("keepdims", 0i64),
            of(vec![data]),
        ],
        _ => Vec::new(),
    }
}

pub(super) fn distinct(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    let joins = sample.name == "Concat";
    for slot in 0..if joins { sample.operands.len() } else { 1 } {
        let shape = sample.operand(slot).shape().to_vec();
        let count = shape.iter().product::<usize>();
        let list: Vec<f64> = (0..count).map(|at| (100 * slot + at) as f64).collect();
        sample.operands[slot] = Some(of_numbers(DType::Float, &shape, &list));
    }
    sample
}

/// Checks that results are elements of the operands.
pub(super) fn moving(operator: &Operator) -> Result<usize, String> {
    let movement = operator.traits.moves.unwrap();
    let mut done = 0;
    for sample in samples(operator.name).iter().map(distinct) {
        let result = sample.eval().ok_or("not evaluated")?;
        let (from, to) = (sample.operand(0).to_f64s().unwrap(), result.to_f64s().unwrap());
        let fits = match movement {
            Movement::Through => result.same(sample.operand(0)),
            Movement::Layout => from == to,
            Movement::Spread => {
                let shape = result.shape();
                shape != sample.operand(0).shape()
                    && to.iter().all(|x| from.contains(x))
                    && from.iter().all(|x| to.contains(x))
            }
            Movement::Selection => to.iter().all(|x| from.contains(x)),
            Movement::Join => {
                sample.operands.iter().flatten().all(|own| own.to_f64s().unwrap().iter().all(|x| to.contains(x)))
            }
        };
        if !fits {
            return Err(format!("{movement:?} gives {to:?}"));
        }
        done += 1;
    }
    Ok(done)
}

/// Checks that each result depends only on the elements along the reduced axes, and is their fold.
pub(super) fn reducing(operator: &Operator) -> Result<usize, String> {
    let reduction = operator.traits.reduces.unwrap();
    let mut done = 0;
    for sample in samples(operator.name) {
        let Some(result) = sample.eval() else { continue };
        let (axes, keeps) = sample.viewed(reduction.axes).ok_or("the axes are not told")?;
        let data = sample.operand(0).clone();
        let shape: Vec<usize> = data
            .shape()
            .iter()
            .enumerate()
            .filter(|(axis, _)| keeps || !axes.contains(axis))
            .map(|(axis, &dim)| if axes.contains(&axis) { 1 } else { dim })
            .collect();
        if result.shape() != shape {
            return Err(format!("{:?} is not {shape:?}", result.shape()));
        }
        let whole = result
            .reshape(
                &data
                    .shape()
                    .iter()
                    .enumerate()
                    .map(|(axis, &dim)| if axes.contains(&axis) { 1 } else { dim })
                    .collect::<Vec<_>>(),
            )
            .unwrap();
        for axis in (0..data.rank()).filter(|axis| !axes.contains(axis)) {
            let last = data.shape()[axis] - 1;
            let found = sample.with_operand(0, take(&data, axis, &[last])).eval().ok_or("a part is not evaluated")?;
            let expected = take(&whole, axis, &[last]).reshape(found.shape()).map_err(|error| error.to_string())?;
            if !equal(&found, &expected, Variation::None) {
                return Err(format!("results depend on other places of axis {axis}"));
            }
        }
        if let (Some(name), [axis]) = (reduction.folds, axes.as_slice()) {
            let by = crate::ops::operator("", name).ok_or("what folds is not there")?;
            let mut folded = take(&data, *axis, &[0]);
            for place in 1..data.shape()[*axis] {
                folded = Sample::new(by, vec![folded, take(&data, *axis, &[place])]).eval().ok_or("not folded")?;
            }
            if !equal(&folded.reshape(result.shape()).unwrap(), &result, Variation::Rounding) {
                return Err(format!("{name} from element to element gives something else"));
            }
        }
        done += 1;
    }
    Ok(done)
}

/// Checks that slices along the other axes are mapped equally and independently.
pub(super) fn mixing(operator: &Operator) -> Result<usize, String> {
    let mut done = 0;
    for sample in samples(operator.name) {
        let result = sample.eval().ok_or("not evaluated")?;
        let axes = sample.viewed(operator.traits.mixes.unwrap()).ok_or("the axes are not told")?;
        let data = sample.operand(0).clone();
        if result.shape() != data.shape() {
            return Err("the shape differs".into());
        }
        for axis in (0..data.rank()).filter(|axis| !axes.contains(axis)) {
            let places: Vec<usize> = (1..data.shape()[axis]).rev().collect();
            let found = sample.with_operand(0, take(&data, axis, &places)).eval().ok_or("a part is not evaluated")?;
            if !equal(&found, &take(&result, axis, &places), Variation::Rounding) {
                return Err(format!("axis {axis} is mixed, too"));
            }
            done += 1;
        }
    }
    Ok(done)
}
