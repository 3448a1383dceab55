//! Every declared trait of every operator is compared with what the operator infers and evaluates, on random operands. Each check is
//! then shown to fail on a trait that is wrong.

use std::rc::Rc;

use super::*;
use crate::dim::Scope;
use crate::ir::{Attribute, Constant, Data, Extra, Model, NewNode, NodeId, OpsetImport, ValueId};
use crate::ops::{Budget, Decline, Operator, Walk, evaluate_graph, operator, operators};
use crate::slicing::SliceRule;

const TYPES: [DType; 8] =
    [DType::Float, DType::Double, DType::Float16, DType::Int64, DType::Int32, DType::Uint8, DType::Uint32, DType::Bool];

type Check = fn(&Operator) -> Result<usize, String>;

/// A node with constant operands.
#[derive(Clone)]
struct Sample {
    name: &'static str,
    opset: i64,
    attributes: Vec<(&'static str, Attribute)>,
    operands: Vec<Option<Tensor>>,
}

impl Sample {
    fn new(operator: &Operator, operands: Vec<Tensor>) -> Sample {
        let attributes = match operator.name {
            "Cast" | "BitCast" => vec![("to", Attribute::Int(cast_to(operator.name, &operands)))],
            "BitShift" => vec![("direction", Attribute::String("LEFT".into()))],
            "Mod" if operands[0].dtype().is_float() => vec![("fmod", Attribute::Int(1))],
            _ => Vec::new(),
        };
        let operands = operands.into_iter().map(Some).collect();
        Sample { name: operator.name, opset: 28, attributes, operands }
    }

    fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Sample {
        self.attributes.push((name, value.into()));
        self
    }

    fn build(&self) -> (Model, NodeId, ValueId) {
        let mut model = Model::new();
        model.opsets.push(OpsetImport { domain: String::new(), version: self.opset, extra: Extra::new() });
        let main = model.main();
        let mut node = NewNode::new(self.name, []);
        for (name, value) in &self.attributes {
            node = node.with(name, value.clone());
        }
        for (at, operand) in self.operands.iter().enumerate() {
            let value = operand.as_ref().map(|tensor| {
                let value = model.add_value(format!("x{at}"));
                model.add_initializer(main, value, Constant::dense(tensor.clone())).unwrap();
                value
            });
            node.inputs.push(value);
        }
        let output = model.add_value("y");
        model.add_output(main, output);
        let id = model.add_node(main, node.output(output)).unwrap();
        (model, id, output)
    }

    fn data(&self) -> Result<Data, Decline> {
        let (model, ..) = self.build();
        let results = evaluate_graph(&model, model.main(), Vec::new(), &Budget::default(), SliceRule::default())?;
        Ok(results.into_iter().next().expect("there is one result"))
    }

    fn eval(&self) -> Option<Tensor> {
        self.data().ok()?.tensor().cloned()
    }

    /// Looks at the node as a rule does, nothing being evaluated.
    fn viewed<T>(&self, look: impl FnOnce(&NodeFacts<'_>) -> T) -> T {
        let (model, id, _) = self.build();
        let mut walk = Walk::new(Rc::new(Scope::new()), SliceRule::default(), Budget::default());
        walk.evaluate = false;
        walk.infer_main(&model).unwrap();
        look(&NodeFacts::of(&model, &walk.facts, id, self.opset).unwrap())
    }

    fn with_operand(&self, slot: usize, tensor: Tensor) -> Sample {
        let mut sample = self.clone();
        sample.operands[slot] = Some(tensor);
        sample
    }

    fn operand(&self, slot: usize) -> &Tensor {
        self.operands[slot].as_ref().unwrap()
    }
}

fn cast_to(name: &str, operands: &[Tensor]) -> i64 {
    let from = operands[0].dtype();
    let to = match (name, from) {
        ("BitCast", DType::Float) => DType::Int32,
        ("BitCast", DType::Int64) => DType::Double,
        ("BitCast", DType::Double) => DType::Int64,
        ("BitCast", from) => from,
        (_, DType::Float) => DType::Float16,
        (_, from) if from.is_float() => DType::Float,
        _ => DType::Int64,
    };
    to.onnx().into()
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn small(&mut self) -> i64 {
        (self.next() % 7) as i64 - 3
    }
}

const SPECIAL: [f64; 13] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 88.0, -88.0, 20.0, 6e4];

fn of_numbers(dtype: DType, shape: &[usize], numbers: &[f64]) -> Tensor {
    let ints = || numbers.iter().map(|&number| number as i64);
    match dtype {
        DType::Float => Tensor::from_vec(shape, numbers.iter().map(|&x| x as f32).collect()),
        DType::Double => Tensor::from_vec(shape, numbers.to_vec()),
        DType::Float16 => Tensor::from_vec(shape, numbers.iter().map(|&x| half::f16::from_f64(x)).collect()),
        DType::Int64 => Tensor::from_vec(shape, ints().collect()),
        DType::Int32 => Tensor::from_vec(shape, ints().map(|x| x as i32).collect()),
        DType::Uint8 => Tensor::from_vec(shape, ints().map(|x| x.unsigned_abs() as u8).collect()),
        DType::Uint32 => Tensor::from_vec(shape, ints().map(|x| x.unsigned_abs() as u32).collect()),
        DType::Bool => Tensor::from_bools(shape, &ints().map(|x| x % 2 != 0).collect::<Vec<_>>()),
        other => panic!("no numbers of type {other}"),
    }
    .unwrap()
}

/// Numbers of which some are special for floats; zeros among them unless `apart`.
fn random(numbers: &mut Numbers, dtype: DType, shape: &[usize], special: bool, apart: bool) -> Tensor {
    let count = shape.iter().product();
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        let whole = numbers.small() as f64;
        let number = match dtype.is_float() {
            true if special && numbers.next().is_multiple_of(4) => SPECIAL[numbers.next() as usize % SPECIAL.len()],
            true => whole + (numbers.next() % 1000) as f64 / 1000.0,
            false => whole,
        };
        list.push(if apart && number == 0.0 { 2.0 } else { number });
    }
    of_numbers(dtype, shape, &list)
}

/// Elements at these places of an axis.
fn take(tensor: &Tensor, axis: usize, places: &[usize]) -> Tensor {
    let (shape, width) = (tensor.shape(), tensor.dtype().bits().unwrap() / 8);
    let inner = shape[axis + 1..].iter().product::<usize>() * width;
    let outer: usize = shape[..axis].iter().product();
    let mut bytes = Vec::new();
    for block in 0..outer {
        for place in places {
            let start = (block * shape[axis] + place) * inner;
            bytes.extend_from_slice(&tensor.bytes()[start..start + inner]);
        }
    }
    let mut shape = shape.to_vec();
    shape[axis] = places.len();
    Tensor::from_bytes(tensor.dtype(), &shape, bytes.into()).unwrap()
}

/// Equal in type, shape and numbers, zeros of either sign being two and NaN one.
fn equal(a: &Tensor, b: &Tensor, variation: Variation) -> bool {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    let (Some(x), Some(y)) = (a.to_f64s(), b.to_f64s()) else { return a.same(b) };
    let same = |(x, y): (&f64, &f64)| {
        x.to_bits() == y.to_bits()
            || x.is_nan() && y.is_nan()
            || variation != Variation::None && (x - y).abs() <= 1e-2 * x.abs().max(1e-3)
    };
    x.iter().zip(&y).all(same)
}

/// The operands of a pointwise operator, each of the shape told for its slot; `None` where it does not take the type.
fn operands(operator: &Operator, numbers: &mut Numbers, dtype: DType, shape: &dyn Fn(usize) -> Vec<usize>) -> Sample {
    let special = !matches!(operator.name, "Cast" | "CastLike" | "Pow" | "Mod" | "BitCast");
    let mut next =
        |slot: usize, dtype: DType| random(numbers, dtype, &shape(slot), special, slot == 1 && !dtype.is_float());
    let number = |dtype: DType, number: f64| of_numbers(dtype, &[], &[number]);
    let list = match operator.name {
        "Where" => vec![next(0, DType::Bool), next(1, dtype), next(2, dtype)],
        "Clip" => vec![next(0, dtype), number(dtype, 0.0), number(dtype, 2.0)],
        "CastLike" => vec![next(0, dtype), number(DType::Double, 0.0)],
        "QuantizeLinear" => vec![next(0, dtype), number(dtype, 1.0), number(DType::Uint8, 1.0)],
        "DequantizeLinear" => vec![next(0, dtype), number(DType::Float, 1.0), number(dtype, 1.0)],
        _ if operator.traits.variadic => vec![next(0, dtype), next(1, dtype), next(2, dtype)],
        _ if operator.traits.is_function() => vec![next(0, dtype)],
        _ => vec![next(0, dtype), next(1, dtype)],
    };
    Sample::new(operator, list)
}

/// Which operands of a pointwise operator have places.
fn has_places(operator: &Operator, slot: usize) -> bool {
    let operands = operator.traits.pointwise.unwrap().operands;
    slot == 0 || matches!(operands, Operands::Broadcast | Operands::Stretched)
}

/// Operands at some places give results at those places; operands that lack an axis give what they give when they are spread.
fn pointwise(operator: &Operator) -> Result<usize, String> {
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
        // The program computes every element the same way; what kernels do is measured elsewhere.
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

/// No values make it fail, or what fails is not proved not to.
fn failing(operator: &Operator) -> Result<usize, String> {
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

/// Nodes that are not pointwise, for the traits they have.
fn samples(name: &str) -> Vec<Sample> {
    let operator = operator("", name).unwrap();
    let mut numbers = Numbers(4711);
    let mut float = |shape: &[usize]| random(&mut numbers, DType::Float, shape, false, false);
    let ints = |values: &[i64]| Tensor::vector(values.to_vec());
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
        "GatherElements" => vec![of(vec![float(&[2, 2]), Tensor::from_vec(&[2, 2], vec![0i64, 1, -1, 0]).unwrap()])],
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
        "GlobalAveragePool" => vec![of(vec![data])],
        "AveragePool" => vec![of(vec![data]).with("kernel_shape", vec![2i64])],
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

fn distinct(sample: &Sample) -> Sample {
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

/// Results are elements of the operands, from the axes that are told.
fn moving(operator: &Operator) -> Result<usize, String> {
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
        if let Some(sources) = sample.viewed(|view| operator.traits.axes.unwrap()(view)) {
            if sources.len() != result.rank() {
                return Err(format!("{} axes of {}", sources.len(), result.rank()));
            }
            for (axis, source) in sources.iter().enumerate() {
                source_holds(&sample, &result, axis, *source)?;
            }
        }
        done += 1;
    }
    Ok(done)
}

fn source_holds(sample: &Sample, result: &Tensor, axis: usize, source: Option<AxisSource>) -> Result<(), String> {
    let data = sample.operand(0);
    let own = match source {
        None => return Ok(()),
        Some(AxisSource::Repeated) => {
            let same = |place: usize| take(result, axis, &[place]).same(&take(result, axis, &[0]));
            let alike = (0..result.shape()[axis]).all(same);
            return alike.then_some(()).ok_or_else(|| format!("axis {axis} does not repeat"));
        }
        Some(AxisSource::Whole(own) | AxisSource::Part(own)) => own,
    };
    for place in 0..result.shape()[axis] {
        let found = take(result, axis, &[place]).to_f64s().unwrap();
        let from = |at: usize| {
            let there = take(data, own, &[at]).to_f64s().unwrap();
            found.iter().all(|x| there.contains(x))
        };
        let fits = match source {
            Some(AxisSource::Whole(_)) => data.shape()[own] == result.shape()[axis] && from(place),
            _ => (0..data.shape()[own]).any(from),
        };
        if !fits {
            return Err(format!("place {place} of axis {axis} is not of axis {own}"));
        }
    }
    Ok(())
}

/// Each result follows from the elements along the reduced axes alone, and folds them together.
fn reducing(operator: &Operator) -> Result<usize, String> {
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
            let by = super::super::operator("", name).ok_or("what folds is not there")?;
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

/// Along the other axes places are treated alike, each for itself.
fn mixing(operator: &Operator) -> Result<usize, String> {
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

/// Numbers that functions are tried at, in order.
fn grid() -> Vec<f64> {
    let mut grid: Vec<f64> = (-400..=400).map(|at| f64::from(at) / 16.0).collect();
    grid.extend([-6e4, -1e3, -100.0, -1e-3, -1e-6, 1e-6, 1e-3, 100.0, 1e3, 6e4, f64::INFINITY, f64::NEG_INFINITY]);
    grid.sort_by(f64::total_cmp);
    grid
}

/// Results at extreme operands lie in the range, and are NaN only where that is told.
fn ranged(operator: &Operator) -> Result<usize, String> {
    let mut done = 0;
    let mut numbers = grid();
    numbers.push(f64::NAN);
    for dtype in [DType::Float, DType::Double, DType::Float16] {
        let data = of_numbers(dtype, &[1, numbers.len()], &numbers);
        let mut tried = vec![data];
        let halves: Vec<usize> = (0..numbers.len()).collect();
        tried.extend(halves.chunks(3).map(|places| take(&tried[0], 1, places)).collect::<Vec<_>>());
        for data in tried {
            let mut sample = Sample::new(operator, vec![data]);
            if operator.name == "Clip" {
                sample.operands.extend([-1.0, 2.0].map(|bound| Some(of_numbers(dtype, &[], &[bound]))));
            }
            let Some(result) = sample.eval() else { continue };
            let range = sample.viewed(|view| operator.traits.range.unwrap()(view, &|_| None)).ok_or("no range")?;
            for number in result.to_f64s().unwrap() {
                let inside = if number.is_nan() { range.nan } else { range.low <= number && number <= range.high };
                if !inside {
                    return Err(format!("{dtype}: {number} is outside of {range:?}"));
                }
            }
            done += 1;
        }
    }
    Ok(done)
}

fn monotone(operator: &Operator) -> Result<usize, String> {
    let mut done = 0;
    let rises = operator.traits.monotone == Some(Direction::Rising);
    for dtype in [DType::Float, DType::Double, DType::Int64] {
        let grid: Vec<f64> = grid().into_iter().filter(|x| dtype.is_float() || x.abs() < 1e3).collect();
        let Some(result) = Sample::new(operator, vec![of_numbers(dtype, &[grid.len()], &grid)]).eval() else {
            continue;
        };
        let results: Vec<f64> = result.to_f64s().unwrap().into_iter().filter(|x| !x.is_nan()).collect();
        let ordered = |pair: &[f64]| {
            let slack = 1e-6 * pair[0].abs().min(1e9);
            if rises { pair[0] <= pair[1] + slack } else { pair[0] + slack >= pair[1] }
        };
        if results.len() < 2 || !results.windows(2).all(ordered) || results.first() == results.last() {
            return Err(format!("{dtype}: results are not in order"));
        }
        done += 1;
    }
    Ok(done)
}

fn twice(operator: &Operator) -> Result<usize, String> {
    let (mut numbers, mut done) = (Numbers(5), 0);
    for dtype in TYPES {
        let sample = operands(operator, &mut numbers, dtype, &|_| vec![40]);
        let Some(once) = sample.eval() else { continue };
        let again = sample.with_operand(0, once.clone()).eval().ok_or("not evaluated again")?;
        let wanted = if operator.traits.twice == Some(Twice::Once) { &once } else { sample.operand(0) };
        if !equal(&again, wanted, Variation::None) {
            return Err(format!("{dtype}: applied twice it is something else"));
        }
        done += 1;
    }
    Ok(done)
}

fn neutral(operator: &Operator) -> Result<usize, String> {
    let neutral = operator.traits.neutral.unwrap();
    let (mut numbers, mut done) = (Numbers(6), 0);
    for dtype in TYPES {
        let data = random(&mut numbers, dtype, &[40], true, false);
        let mut candidates: Vec<Tensor> =
            [0.0, -0.0, 1.0, -1.0, 2.0].iter().map(|&number| of_numbers(dtype, &[], &[number])).collect();
        candidates.extend((dtype == DType::Uint8).then(|| Tensor::scalar(255u8)));
        for one in candidates.iter().filter(|one| (neutral.is)(dtype, one)) {
            let orders = if neutral.commutes { 2 } else { 1 };
            for list in [vec![data.clone(), one.clone()], vec![one.clone(), data.clone()]].into_iter().take(orders) {
                let Some(result) = Sample::new(operator, list).eval() else { continue };
                if !equal(&result, &data, Variation::None) {
                    return Err(format!("{dtype}: {one:?} changes what is beside it"));
                }
                done += 1;
            }
        }
    }
    Ok(done)
}

fn blind_to_zero_sign(operator: &Operator) -> Result<usize, String> {
    let mut done = 0;
    for dtype in [DType::Float, DType::Double, DType::Float16] {
        let of = |zero: f64, slot: usize| {
            let data = of_numbers(dtype, &[3], &[zero, 1.0, zero]);
            let other = of_numbers(dtype, &[3], &[0.0, 1.0, -1.0]);
            let pair = operator.traits.pointwise.is_some_and(|own| own.operands == Operands::Broadcast);
            let list = if !pair {
                vec![data]
            } else if slot == 0 {
                vec![data, other]
            } else {
                vec![other, data]
            };
            Sample::new(operator, list).eval()
        };
        for slot in 0..2 {
            let (Some(plus), Some(minus)) = (of(0.0, slot), of(-0.0, slot)) else { continue };
            if !equal(&plus, &minus, Variation::None) {
                return Err(format!("{dtype}: {minus:?} of the negative zero"));
            }
            done += 1;
        }
    }
    Ok(done)
}

fn homogeneous(operator: &Operator) -> Result<usize, String> {
    let mut done = 0;
    let mut list = samples(operator.name);
    if operator.traits.is_function() {
        list.push(operands(operator, &mut Numbers(8), DType::Int64, &|_| vec![20]));
    }
    for sample in list {
        let times = |tensor: &Tensor| {
            let numbers: Vec<f64> = tensor.to_f64s().unwrap().iter().map(|x| x * -2.0).collect();
            of_numbers(tensor.dtype(), tensor.shape(), &numbers)
        };
        let joins = operator.traits.moves == Some(Movement::Join);
        let mut scaled = sample.clone();
        for slot in 0..if joins { sample.operands.len() } else { 1 } {
            scaled.operands[slot] = Some(times(sample.operand(slot)));
        }
        let (Some(before), Some(after)) = (sample.eval(), scaled.eval()) else { continue };
        if !equal(&times(&before), &after, Variation::Rounding) {
            return Err("a factor of the operand is none of the result".into());
        }
        done += 1;
    }
    Ok(done)
}

fn variadic(operator: &Operator) -> Result<usize, String> {
    let data = random(&mut Numbers(9), DType::Float, &[2, 3], true, false);
    let result = Sample::new(operator, vec![data.clone()]).with("axis", 0i64).eval().ok_or("not evaluated")?;
    if equal(&result, &data, Variation::None) { Ok(1) } else { Err("one operand alone is changed".into()) }
}

fn of_shape(operator: &Operator) -> Result<usize, String> {
    let of = |seed| Sample::new(operator, vec![random(&mut Numbers(seed), DType::Float, &[2, 3], false, false)]).eval();
    match (of(1), of(2)) {
        (Some(a), Some(b)) if a.same(&b) => Ok(1),
        _ => Err("content makes a difference".into()),
    }
}

fn container(operator: &Operator) -> Result<usize, String> {
    for sample in samples(operator.name) {
        match sample.data().map_err(|decline| decline.to_string())? {
            Data::Sequence(_) | Data::Optional(_) => {}
            _ => return Err("the result is no container".into()),
        }
    }
    Ok(samples(operator.name).len())
}

/// What is counted of the operands' positions is what is evaluated.
fn counting(operator: &Operator) -> Result<usize, String> {
    let mut list = samples(operator.name);
    if operator.traits.pointwise.is_some() {
        for dtype in [DType::Int64, DType::Bool] {
            for shape in [&[2, 3][..], &[3]] {
                list.push(operands(operator, &mut Numbers(3), dtype, &|slot| {
                    if slot == 0 { vec![2, 3] } else { shape.to_vec() }
                }));
            }
        }
    }
    let mut done = 0;
    for mut sample in list {
        // Positions: an offset and steps; the same everywhere where they are flags or a place of the second.
        for slot in 0..if matches!(operator.name, "Range" | "ConstantOfShape" | "NonZero") {
            0
        } else {
            2.min(sample.operands.len())
        } {
            let Some(held) = sample.operands[slot].clone() else { continue };
            if slot == 1 && operator.traits.pointwise.is_none() {
                continue;
            }
            let flags = held.dtype() == DType::Bool;
            let count = held.len();
            let list: Vec<f64> = (0..count)
                .map(|at| {
                    if flags { 1.0 } else { (4 * usize::from(slot == 0) + 1 + 2 * at * usize::from(slot == 0)) as f64 }
                })
                .collect();
            sample.operands[slot] =
                Some(of_numbers(if flags { DType::Bool } else { DType::Int64 }, held.shape(), &list));
        }
        let Some(result) = sample.eval() else { continue };
        let shape: Vec<Dim> = result.shape().iter().map(|&dim| Dim::constant(dim as i64)).collect();
        let found = sample.viewed(|view| {
            let operand = |slot: usize| {
                let fact = view.fact(slot)?;
                let elements: Vec<Dim> = fact.constant_tensor()?.to_i64s()?.into_iter().map(Dim::constant).collect();
                in_steps(view.scope(), fact.shape()?, &elements)
            };
            operator.traits.counts.unwrap()(view, &shape, &operand)
        });
        let Some(found) = found else { continue };
        let numbers = result.to_i64s().unwrap();
        for (index, number) in numbers.iter().enumerate() {
            let (mut rest, mut expected) = (index, found.offset.as_const().unwrap());
            for (axis, step) in found.steps.iter().enumerate().rev() {
                expected += step.as_const().unwrap() * (rest % result.shape()[axis]) as i64;
                rest /= result.shape()[axis];
            }
            if expected != *number {
                return Err(format!("{expected} is counted where {number} is"));
            }
        }
        done += 1;
    }
    Ok(done)
}

/// One number everywhere gives that number everywhere.
fn uniform(operator: &Operator) -> Result<usize, String> {
    let mut list = samples(operator.name);
    if operator.traits.pointwise.is_some() {
        list.extend(TYPES.map(|dtype| operands(operator, &mut Numbers(3), dtype, &|_| vec![2, 3])));
    }
    let mut done = 0;
    for number in [0.0, 1.0, 3.0] {
        for mut sample in list.clone() {
            let all = if operator.traits.pointwise.is_some() {
                sample.operands.len()
            } else {
                usize::from(operator.name != "ConstantOfShape")
            };
            for slot in 0..all {
                let held = sample.operand(slot).clone();
                sample.operands[slot] =
                    Some(of_numbers(held.dtype(), held.shape(), &vec![number + slot as f64; held.len()]));
            }
            let Some(result) = sample.eval() else { continue };
            let found = sample.viewed(|view| {
                operator.traits.uniform.unwrap()(view, &|slot| view.fact(slot)?.constant_tensor()?.uniform())
            });
            let Some(found) = found else { continue };
            if !result.uniform().is_some_and(|own| own.same(&found)) {
                return Err(format!("{found:?} is not what {result:?} holds"));
            }
            done += 1;
        }
    }
    Ok(done)
}

/// On an operand that repeats along an axis the result is that on the smaller one, repeated.
fn repeating(operator: &Operator) -> Result<usize, String> {
    let mut list = samples(operator.name);
    if let Some(own) = operator.traits.pointwise {
        let shape =
            |slot: usize| if slot == 0 || own.operands == Operands::Broadcast { vec![2, 3] } else { Vec::new() };
        list.extend(
            [DType::Float, DType::Int64, DType::Uint8, DType::Bool]
                .map(|dtype| operands(operator, &mut Numbers(13), dtype, &shape)),
        );
    }
    let mut done = 0;
    for sample in list {
        let data = sample.operand(0);
        for axis in 0..data.rank() {
            let small = take(data, axis, &[0]);
            let wide = sample.with_operand(0, take(&small, axis, &vec![0; data.shape()[axis]]));
            let Some(result) = wide.eval() else { continue };
            let dims: Vec<Dim> = small.shape().iter().map(|&dim| Dim::constant(dim as i64)).collect();
            let goal: Vec<Dim> = result.shape().iter().map(|&dim| Dim::constant(dim as i64)).collect();
            let shape = wide.viewed(|view| {
                let first = view.input(0);
                let narrow = |value| (Some(value) == first).then_some(dims.as_slice());
                Repetition { view: *view, narrow: &narrow, goal: &goal }.shape_by(&operator.traits, false)
            });
            let Some(shape) = shape else { continue };
            let shape: Vec<usize> = shape.iter().map(|dim| dim.as_const().unwrap() as usize).collect();
            let mut narrow = if operator.traits.moves == Some(Movement::Layout) {
                small.reshape(&shape).unwrap()
            } else {
                sample.with_operand(0, small).eval().ok_or("the smaller one is not evaluated")?
            };
            if narrow.shape() != shape {
                return Err(format!("{:?} is not {shape:?}", narrow.shape()));
            }
            let lead = result.rank() - narrow.rank();
            narrow = narrow.reshape(&[&vec![1; lead][..], narrow.shape()].concat()).unwrap();
            for (at, &dim) in result.shape().iter().enumerate() {
                if narrow.shape()[at] != dim {
                    narrow = take(&narrow, at, &vec![0; dim]);
                }
            }
            if !equal(&narrow, &result, Variation::Rounding) {
                return Err(format!("along axis {axis} the result does not repeat"));
            }
            done += 1;
        }
    }
    Ok(done)
}

/// Each trait, how it is checked, and the operators that are not evaluated alone.
const CHECKS: &[(&str, fn(&Traits) -> bool, Check)] = &[
    ("pointwise", |own| own.pointwise.is_some(), pointwise),
    ("fails", |own| own.pointwise.is_some(), failing),
    ("moves", |own| own.moves.is_some(), moving),
    ("reduces", |own| own.reduces.is_some(), reducing),
    ("mixes", |own| own.mixes.is_some(), mixing),
    ("range", |own| own.range.is_some(), ranged),
    ("monotone", |own| own.monotone.is_some(), monotone),
    ("twice", |own| own.twice.is_some(), twice),
    ("neutral", |own| own.neutral.is_some(), neutral),
    ("ignores_zero_sign", |own| own.ignores_zero_sign, blind_to_zero_sign),
    ("homogeneous", |own| own.homogeneous, homogeneous),
    ("variadic", |own| own.variadic, variadic),
    ("of_shape", |own| own.of_shape, of_shape),
    ("makes_container", |own| own.makes_container, container),
    ("counts", |own| own.counts.is_some(), counting),
    ("uniform", |own| own.uniform.is_some(), uniform),
    (
        "repeats",
        |own| {
            own.repeats.is_some()
                || own.mixes.is_some()
                || own.pointwise.is_some_and(|own| own.operands != Operands::Stretched)
        },
        repeating,
    ),
];

fn check(name: &str) -> &'static (&'static str, fn(&Traits) -> bool, Check) {
    CHECKS.iter().find(|(own, ..)| *own == name).unwrap()
}

#[test]
fn every_declared_trait_holds() {
    let mut wrong = Vec::new();
    for operator in operators().filter(|operator| operator.domain.is_empty() && operator.name != "StridedSlice") {
        for (name, has, check) in CHECKS {
            if !has(&operator.traits) {
                continue;
            }
            match check(operator) {
                Ok(0) => wrong.push(format!("{} {name}: nothing was checked", operator.name)),
                Ok(_) => {}
                Err(reason) => wrong.push(format!("{} {name}: {reason}", operator.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A trait that is wrong is found out.
#[test]
fn wrong_traits_are_found() {
    let flipped: &[(&str, &str, fn(Traits) -> Traits)] = &[
        ("pointwise", "Softmax", |own| Traits { pointwise: Traits::function().pointwise, ..own }),
        ("pointwise", "CumSum", |own| Traits { pointwise: Traits::broadcast(1).pointwise, ..own }),
        ("fails", "Div", |own| Traits { fails: Failure::Never, ..own }),
        ("fails", "Mod", |own| own.fails_unless(|_| true)),
        ("moves", "Transpose", |own| Traits { moves: Some(Movement::Layout), ..own }),
        ("moves", "Slice", |own| Traits { moves: Some(Movement::Through), ..own }),
        ("moves", "Slice", |own| Traits { axes: operator("", "Identity").unwrap().traits.axes, ..own }),
        ("moves", "Transpose", |own| Traits { axes: operator("", "Identity").unwrap().traits.axes, ..own }),
        ("moves", "Tile", |own| Traits { axes: operator("", "Identity").unwrap().traits.axes, ..own }),
        ("reduces", "ReduceSum", |own| Traits {
            reduces: Some(Reduction { axes: |_| Some((vec![0], true)), folds: None }),
            ..own
        }),
        ("reduces", "ReduceSum", |own| Traits {
            reduces: own.reduces.map(|own| Reduction { folds: Some("Mul"), ..own }),
            ..own
        }),
        ("reduces", "ReduceMean", |own| Traits {
            reduces: own.reduces.map(|own| Reduction { folds: Some("Add"), ..own }),
            ..own
        }),
        ("mixes", "Softmax", |own| Traits { mixes: Some(|_| Some(vec![0])), ..own }),
        ("mixes", "InstanceNormalization", |own| Traits { mixes: Some(|_| Some(vec![1])), ..own }),
        ("range", "Exp", |own| own.range(|_, _| Some(ValueRange::between(0.0, 1.0)))),
        ("range", "Abs", |own| {
            own.range(|_, _| Some(ValueRange { nan: false, ..ValueRange::between(0.0, f64::INFINITY) }))
        }),
        ("range", "Tanh", |own| own.range(|_, _| Some(ValueRange::between(0.0, 1.0)))),
        ("monotone", "Exp", |own| own.falling()),
        ("monotone", "Cos", |own| own.rising()),
        ("twice", "Exp", |own| own.twice(Twice::Once)),
        ("twice", "Abs", |own| own.twice(Twice::Nothing)),
        ("neutral", "Sub", |own| own.neutral(own.neutral.unwrap().is, true)),
        ("neutral", "Add", |own| own.neutral(|_, one| one.to_f64s() == Some(vec![0.0]), true)),
        ("neutral", "Mul", |own| own.neutral(|_, one| one.to_f64s() == Some(vec![2.0]), true)),
        ("ignores_zero_sign", "Reciprocal", |own| own),
        ("ignores_zero_sign", "Tanh", |own| own),
        ("homogeneous", "Abs", |own| own),
        ("homogeneous", "ReduceL1", |own| own),
        ("of_shape", "ReduceSum", |own| own),
        ("variadic", "SequenceConstruct", |own| own),
        ("makes_container", "Identity", |own| own),
        ("counts", "Neg", |own| own.counts(|_, _, operand| operand(0))),
        ("counts", "Transpose", |own| own.counts(laid_out)),
        ("uniform", "Where", |own| own.uniform(|_, operand| operand(1))),
        ("uniform", "Pad", |own| own.uniform(|_, operand| operand(0))),
        ("repeats", "Slice", |own| own.repeats(|node| Some(node.only_first()?.0.to_vec()))),
        ("repeats", "Transpose", |own| own.repeats(|node| Some(node.only_first()?.0.to_vec()))),
        ("repeats", "Softmax", |own| Traits { mixes: Some(|_| Some(vec![0])), ..own }),
        ("repeats", "CumSum", |own| Traits { mixes: Some(|_| Some(Vec::new())), ..own }),
    ];
    let mut missed = Vec::new();
    for (name, op_type, flip) in flipped {
        let mut wrong = *operator("", op_type).unwrap();
        wrong.traits = flip(wrong.traits);
        let (.., check) = check(name);
        if matches!(check(&wrong), Ok(1..)) {
            missed.push(format!("{name} of {op_type}"));
        }
    }
    assert!(missed.is_empty(), "wrong and not found: {missed:?}");
}

/// What a node needs of a size is what it refuses one less of.
#[test]
fn sizes_that_are_refused_are_too_small() {
    let data = |size: usize| random(&mut Numbers(2), DType::Float, &[size, 2], false, false);
    let of = |name: &str, list: Vec<Tensor>| Sample::new(operator("", name).unwrap(), list);
    let gather = |size| of("Gather", vec![data(size), Tensor::vector(vec![3i64, -2])]).eval();
    assert!(gather(3).is_none() && gather(4).is_some());
    let rest =
        |size: usize| of("Reshape", vec![data(size), Tensor::vector(vec![size as i64, -1])]).with("allowzero", 0i64);
    assert!(rest(1).eval().is_some());
    let quotient = |size: i64| of("Div", vec![Tensor::scalar(6i64), Tensor::scalar(size)]).eval();
    assert!(quotient(0).is_none() && quotient(1).is_some());
    for (name, at) in [("Gather", 1), ("Reshape", 1), ("Resize", 2), ("Div", 1), ("Mod", 1), ("Upsample", 1)] {
        assert!(operator("", name).unwrap().traits.needs.is_some(), "{name} needs nothing of operand {at}");
    }
}

/// The lists of names follow from the table.
#[test]
fn names_are_those_of_the_table() {
    let broadcasting: Vec<&str> = operators()
        .filter(|own| {
            own.domain.is_empty() && own.traits.pointwise.is_some_and(|own| own.operands == Operands::Broadcast)
        })
        .map(|own| own.name)
        .collect();
    assert_eq!(BROADCASTING, broadcasting);
    assert!(BROADCASTING.len() > 20 && LAYOUTS == ["Reshape", "Squeeze", "Unsqueeze", "Flatten"]);
}
