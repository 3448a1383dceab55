//! Nodes with random operands for the tests of traits.

use super::*;

pub(super) const TYPES: [DType; 8] =
    [DType::Float, DType::Double, DType::Float16, DType::Int64, DType::Int32, DType::Uint8, DType::Uint32, DType::Bool];

/// A node with constant operands.
#[derive(Clone)]
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) opset: i64,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    pub(super) operands: Vec<Option<Tensor>>,
}

impl Sample {
    pub(super) fn new(operator: &Operator, operands: Vec<Tensor>) -> Sample {
        let attributes = match operator.name {
            "Cast" | "BitCast" => vec![("to", Attribute::Int(cast_to(operator.name, &operands)))],
            "BitShift" => vec![("direction", Attribute::String("LEFT".into()))],
            "Mod" if operands[0].dtype().is_float() => vec![("fmod", Attribute::Int(1))],
            _ => Vec::new(),
        };
        let operands = operands.into_iter().map(Some).collect();
        Sample { name: operator.name, opset: 28, attributes, operands }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Sample {
        self.attributes.push((name, value.into()));
        self
    }

    pub(super) fn build(&self) -> (Model, NodeId, ValueId) {
        self.build_without(&[])
    }

    /// Builds the node with these operands as inputs of the model: only their type and shape are known.
    fn build_without(&self, hidden: &[usize]) -> (Model, NodeId, ValueId) {
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
                if hidden.contains(&at) {
                    let dims = tensor.shape().iter().map(|&size| DimClaim::Value(size as i64));
                    model.value_mut(value).declared = Some(DeclaredType::tensor(tensor.dtype(), Some(dims.collect())));
                    model.add_input(main, value).unwrap();
                } else {
                    model.add_initializer(main, value, Constant::dense(tensor.clone())).unwrap();
                }
                value
            });
            node.inputs.push(value);
        }
        let output = model.add_value("y");
        model.add_output(main, output);
        let id = model.add_node(main, node.output(output)).unwrap();
        (model, id, output)
    }

    pub(super) fn data(&self) -> Result<Data, Decline> {
        let (model, ..) = self.build();
        let results = evaluate_graph(&model, model.main(), Vec::new(), &Budget::default(), SliceRule::default())?;
        Ok(results.into_iter().next().expect("there is one result"))
    }

    pub(super) fn eval(&self) -> Option<Tensor> {
        self.data().ok()?.tensor().cloned()
    }

    /// Runs `look` on the node's facts as a rule sees them, without evaluation.
    pub(super) fn viewed<T>(&self, look: impl FnOnce(&NodeFacts<'_>) -> T) -> T {
        let (model, id, _) = self.build();
        let mut walk = Walk::new(Rc::new(Scope::new()), SliceRule::default(), Budget::default());
        walk.evaluate = false;
        walk.infer_main(&model).unwrap();
        look(&NodeFacts::of(&model, &walk.facts, id, self.opset).unwrap())
    }

    /// Returns the dims of the result, if inference finds them without the contents of these operands.
    pub(super) fn sizes_without(&self, hidden: &[usize]) -> Option<Vec<i64>> {
        let (model, _, output) = self.build_without(hidden);
        let mut walk = Walk::new(Rc::new(Scope::new()), SliceRule::default(), Budget::default());
        walk.evaluate = false;
        walk.infer_main(&model).ok()?;
        walk.facts.get(output)?.shape()?.iter().map(Dim::as_const).collect()
    }

    pub(super) fn with_operand(&self, slot: usize, tensor: Tensor) -> Sample {
        let mut sample = self.clone();
        sample.operands[slot] = Some(tensor);
        sample
    }

    pub(super) fn operand(&self, slot: usize) -> &Tensor {
        self.operands[slot].as_ref().unwrap()
    }
}

pub(super) fn cast_to(name: &str, operands: &[Tensor]) -> i64 {
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

pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn small(&mut self) -> i64 {
        (self.next() % 7) as i64 - 3
    }
}

pub(super) const SPECIAL: [f64; 13] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 88.0, -88.0, 20.0, 6e4];

pub(super) fn of_numbers(dtype: DType, shape: &[usize], numbers: &[f64]) -> Tensor {
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

/// Returns random numbers, including special floats; includes zeros unless `apart`.
pub(super) fn random(numbers: &mut Numbers, dtype: DType, shape: &[usize], special: bool, apart: bool) -> Tensor {
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

/// Returns the elements at these positions of an axis.
pub(super) fn take(tensor: &Tensor, axis: usize, places: &[usize]) -> Tensor {
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

/// Compares type, shape and numbers; zeros of different sign differ, NaNs are equal.
pub(super) fn equal(a: &Tensor, b: &Tensor, variation: Variation) -> bool {
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

/// Returns the operands of a pointwise operator with the shape for each slot; `None` if it does not accept the type.
pub(super) fn operands(
    operator: &Operator,
    numbers: &mut Numbers,
    dtype: DType,
    shape: &dyn Fn(usize) -> Vec<usize>,
) -> Sample {
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

/// Returns `true` if this operand of a pointwise operator is indexed.
pub(super) fn has_places(operator: &Operator, slot: usize) -> bool {
    let operands = operator.traits.pointwise.unwrap().operands;
    slot == 0 || matches!(operands, Operands::Broadcast | Operands::Stretched)
}
