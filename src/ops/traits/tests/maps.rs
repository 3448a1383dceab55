//! Compares the index maps of all operators with inference and evaluation at random dims, including 0 and 1.

use super::*;
use crate::index_map::{Binding, Element};
use crate::ops::index_map_of;

/// A node with random operands.
pub(super) struct Trial {
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    pub(super) operands: Vec<Option<Tensor>>,
    outputs: usize,
    /// The operands whose elements are moved: inputs of the model. Other operands are constants.
    pub(super) data: Vec<usize>,
}

impl Trial {
    fn new(operands: Vec<Tensor>) -> Trial {
        Trial { attributes: Vec::new(), operands: operands.into_iter().map(Some).collect(), outputs: 1, data: vec![0] }
    }

    fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Trial {
        self.attributes.push((name, value.into()));
        self
    }

    /// Adds a list: as an attribute before version `since`, as the next operand from then on.
    fn list(mut self, version: i64, since: i64, name: &'static str, values: Vec<i64>) -> Trial {
        if version < since {
            return self.with(name, values);
        }
        self.operands.push(Some(Tensor::vector(values)));
        self
    }

    fn operand(mut self, tensor: Tensor) -> Trial {
        self.operands.push(Some(tensor));
        self
    }

    fn data(mut self, slots: &[usize]) -> Trial {
        self.data = slots.to_vec();
        self
    }

    /// Returns the model, its node and results. Dims of inputs for which `name` returns a name are symbolic.
    pub(super) fn model(
        &self,
        operator: &Operator,
        version: i64,
        name: &dyn Fn(usize, usize) -> Option<String>,
    ) -> (Model, NodeId, Vec<ValueId>) {
        let mut model = Model::new();
        let standard = if operator.domain.is_empty() { version } else { 21 };
        model.opsets.push(OpsetImport { domain: String::new(), version: standard, extra: Extra::new() });
        if !operator.domain.is_empty() {
            model.opsets.push(OpsetImport { domain: operator.domain.to_string(), version, extra: Extra::new() });
        }
        let main = model.main();
        let mut node = NewNode::new(operator.name, []);
        node.domain = operator.domain.into();
        for (name, value) in &self.attributes {
            node = node.with(name, value.clone());
        }
        for (slot, operand) in self.operands.iter().enumerate() {
            let value = operand.as_ref().map(|tensor| {
                let value = model.add_value(format!("x{slot}"));
                if self.data.contains(&slot) {
                    let dim = |(axis, &size): (usize, &usize)| match name(slot, axis) {
                        Some(name) => DimClaim::Param(name),
                        None => DimClaim::Value(size as i64),
                    };
                    let dims = tensor.shape().iter().enumerate().map(dim);
                    model.value_mut(value).declared = Some(DeclaredType::tensor(tensor.dtype(), Some(dims.collect())));
                    model.add_input(main, value).unwrap();
                } else {
                    model.add_initializer(main, value, Constant::dense(tensor.clone())).unwrap();
                }
                value
            });
            node.inputs.push(value);
        }
        let outputs: Vec<ValueId> = (0..self.outputs).map(|at| model.add_value(format!("y{at}"))).collect();
        for &output in &outputs {
            model.add_output(main, output);
            node = node.output(output);
        }
        let id = model.add_node(main, node).unwrap();
        (model, id, outputs)
    }

    pub(super) fn tensor(&self, slot: usize) -> &Tensor {
        self.operands[slot].as_ref().unwrap()
    }
}

/// A source of random choices.
pub(super) struct Random(pub(super) Numbers);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.0.next() % limit.max(1) as u64) as usize
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    fn size(&mut self) -> usize {
        self.of(&[0, 1, 1, 2, 3, 4, 5])
    }

    fn shape(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| self.size()).collect()
    }

    fn ints(&mut self, count: usize, low: i64, high: i64) -> Vec<i64> {
        (0..count).map(|_| self.between(low, high)).collect()
    }

    /// Returns positions on an axis, counted from either end; positions on an empty axis make the node fail.
    fn positions(&mut self, count: usize, size: usize) -> Vec<i64> {
        let size = (size as i64).max(1);
        self.ints(count, -size, size - 1)
    }

    fn shuffled(&mut self, count: usize) -> Vec<i64> {
        let mut order: Vec<i64> = (0..count as i64).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// Returns distinct numbers other than 0.
fn distinct_data(slot: usize, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f64> = (0..count).map(|at| (1000 * slot + at + 1) as f64).collect();
    of_numbers(DType::Float, shape, &numbers)
}

fn ints(shape: &[usize], values: Vec<i64>) -> Tensor {
    Tensor::from_vec(shape, values).unwrap()
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

fn text(value: &'static str) -> Attribute {
    Attribute::String(value.into())
}

/// Returns a random node of an operator in a version; `None` for an unsupported operator.
pub(super) fn trial(operator: &Operator, version: i64, random: &mut Random) -> Option<Trial> {
    let rank = random.between(1, 4) as usize;
    let shape = random.shape(rank);
    let data = || distinct_data(0, &shape);
    let axis = random.below(rank);
    let signed = |axis: usize, random: &mut Random, since: i64| {
        let from_end = version >= since && random.yes();
        axis as i64 - if from_end { rank as i64 } else { 0 }
    };
    Some(match (operator.domain, operator.name) {
        ("", "Identity") => Trial::new(vec![data()]),
        ("", "Reshape") => {
            let mut target: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
            target.rotate_left(axis);
            match random.below(4) {
                0 => target = vec![-1],
                1 => target.insert(axis, 1),
                2 if rank > 1 => {
                    target = shape.iter().map(|&size| size as i64).collect();
                    let last = target.pop().unwrap();
                    *target.last_mut().unwrap() *= last;
                }
                _ => {}
            }
            Trial::new(vec![data()]).list(version, 5, "shape", target)
        }
        ("", "Squeeze") => {
            let mut shape = shape.clone();
            shape.insert(axis, 1);
            Trial::new(vec![distinct_data(0, &shape)]).list(version, 13, "axes", vec![axis as i64])
        }
        ("", "Unsqueeze") => Trial::new(vec![data()]).list(version, 13, "axes", vec![axis as i64]),
        ("", "Flatten") => {
            let axis = signed(axis, random, 11);
            Trial::new(vec![data()]).with("axis", axis)
        }
        ("", "Transpose") if random.below(4) == 0 => Trial::new(vec![data()]),
        ("", "Transpose") => Trial::new(vec![data()]).with("perm", random.shuffled(rank)),
        ("", "DepthToSpace") => {
            let (shape, block) = (random.shape(4), random.of(&[1, 2, 3]));
            let data = distinct_data(0, &[shape[0], shape[1] * block * block, shape[2], shape[3]]);
            let trial = Trial::new(vec![data]).with("blocksize", block as i64);
            if version >= 11 { trial.with("mode", text(random.of(&["DCR", "CRD"]))) } else { trial }
        }
        ("", "SpaceToDepth") => {
            let (shape, block) = (random.shape(4), random.of(&[1, 2, 3]));
            let data = distinct_data(0, &[shape[0], shape[1], shape[2] * block, shape[3] * block]);
            let trial = Trial::new(vec![data]).with("blocksize", block as i64);
            if version >= 28 { trial.with("mode", text(random.of(&["DCR", "CRD"]))) } else { trial }
        }
        ("", "Expand") => {
            let target: Vec<i64> = shape.iter().map(|&size| if size == 1 { 3 } else { 1.max(size as i64) }).collect();
            let target = if random.yes() { [vec![2], target].concat() } else { target };
            Trial::new(vec![data(), Tensor::vector(target)])
        }
        ("", "Tile") if version < 6 => {
            let repeats = random.between(0, 3) as f32;
            Trial::new(vec![data(), Tensor::scalar(repeats), Tensor::scalar(axis as f32)])
        }
        ("", "Tile") => Trial::new(vec![data(), Tensor::vector(random.ints(rank, 0, 3))]),
        ("", "Gather") => {
            let rank_of_indices = random.below(3);
            let indices: Vec<usize> = (0..rank_of_indices).map(|_| random.below(4)).collect();
            let values = random.positions(count(&indices), shape[axis]);
            let axis = signed(axis, random, 1);
            let trial = Trial::new(vec![data(), ints(&indices, values)]).with("axis", axis);
            if random.below(3) == 0 { trial.data(&[0, 1]) } else { trial }
        }
        ("", "GatherElements") => {
            let indices: Vec<usize> = shape.iter().map(|&size| random.below(size + 1)).collect();
            let values = random.positions(count(&indices), shape[axis]);
            let axis = signed(axis, random, 11);
            Trial::new(vec![data(), ints(&indices, values)]).with("axis", axis)
        }
        ("", "GatherND") => {
            let batch = if version >= 12 && rank > 1 { random.below(2) } else { 0 };
            let width = random.between(1, (rank - batch) as i64) as usize;
            let mut indices = shape[..batch].to_vec();
            indices.push(random.below(4));
            let mut values = Vec::new();
            for _ in 0..count(&indices) {
                (0..width).for_each(|at| values.extend(random.positions(1, shape[batch + at])));
            }
            indices.push(width);
            let trial = Trial::new(vec![data(), ints(&indices, values)]);
            if batch > 0 { trial.with("batch_dims", batch as i64) } else { trial }
        }
        ("", "Scatter" | "ScatterElements") => {
            let mut indices: Vec<usize> = shape.iter().map(|&size| random.below(size + 1)).collect();
            indices[axis] = indices[axis].min(2);
            // Usually each position is written once: the positions along the axis are distinct, and equal for all
            // slices.
            let after = count(&indices[axis + 1..]);
            let order = random.shuffled(shape[axis]);
            let position = |at: usize| order.get(at / after.max(1) % indices[axis].max(1)).copied().unwrap_or(0);
            let values = (0..count(&indices)).map(position).collect();
            let updates = distinct_data(2, &indices);
            let trial =
                Trial::new(vec![data(), ints(&indices, values), updates]).with("axis", axis as i64).data(&[0, 2]);
            if version >= 16 && random.below(5) == 0 { trial.with("reduction", text("add")) } else { trial }
        }
        ("", "ScatterND") => {
            let width = random.between(1, rank as i64) as usize;
            let rows = count(&shape[..width]);
            let written = random.below(rows + 1).min(4);
            let mut values = Vec::new();
            for row in random.shuffled(rows).into_iter().take(written) {
                let mut rest = row as usize;
                let mut tuple = vec![0; width];
                for at in (0..width).rev() {
                    tuple[at] = (rest % shape[at]) as i64;
                    rest /= shape[at];
                }
                values.extend(tuple);
            }
            let updates = distinct_data(2, &[&[written], &shape[width..]].concat());
            Trial::new(vec![data(), ints(&[written, width], values), updates]).data(&[0, 2])
        }
        ("", "Compress") => {
            let along = random.yes();
            let len = if along { shape[axis] } else { count(&shape) };
            let condition: Vec<bool> = (0..random.below(len + 1)).map(|_| random.yes()).collect();
            let trial = Trial::new(vec![data(), Tensor::from_bools(&[condition.len()], &condition).unwrap()]);
            if along { trial.with("axis", signed(axis, random, 11)) } else { trial }
        }
        ("", "ReverseSequence") => {
            let rank = random.of(&[2, 3]);
            let shape = random.shape(rank);
            let batch = random.below(2);
            let lens = random.ints(shape[batch], 0, shape[1 - batch] as i64);
            let trial = Trial::new(vec![distinct_data(0, &shape), Tensor::vector(lens)]);
            trial.with("batch_axis", batch as i64).with("time_axis", 1 - batch as i64)
        }
        ("", "Trilu") => {
            let rank = random.of(&[2, 3]);
            let shape = random.shape(rank);
            let trial = Trial::new(vec![distinct_data(0, &shape)]).with("upper", random.between(0, 1));
            if random.yes() { trial.operand(Tensor::scalar(random.between(-3, 3))) } else { trial }
        }
        ("", "EyeLike") => {
            let size = random.size();
            let shape = if random.yes() { vec![size, size] } else { random.shape(2) };
            Trial::new(vec![distinct_data(0, &shape)]).with("k", random.of(&[0, 0, -1, 2]))
        }
        ("", "ConstantOfShape") => {
            let target = random.ints(rank, 0, 3);
            Trial::new(vec![Tensor::vector(target)]).with("value", Tensor::vector(vec![7.5f32])).data(&[])
        }
        ("", "Concat") => {
            let parts = random.between(1, 3) as usize;
            let axis = if version < 4 { 1.min(rank - 1) } else { axis };
            let part = |slot: usize, random: &mut Random| {
                let mut shape = shape.clone();
                shape[axis] = random.size();
                distinct_data(slot, &shape)
            };
            let operands = (0..parts).map(|slot| part(slot, random)).collect();
            let slots: Vec<usize> = (0..parts).collect();
            Trial::new(operands).with("axis", axis as i64).data(&slots)
        }
        ("", "Split") => {
            let parts = random.of(&[1, 2, 3]);
            let sizes = random.ints(parts, 0, 3);
            let mut shape = shape.clone();
            shape[axis] = sizes.iter().sum::<i64>() as usize;
            let outputs = sizes.len();
            let even = version >= 18 && random.yes();
            let trial = Trial::new(vec![distinct_data(0, &shape)]).with("axis", axis as i64);
            let trial =
                if even { trial.with("num_outputs", outputs as i64) } else { trial.list(version, 13, "split", sizes) };
            Trial { outputs, ..trial }
        }
        ("", "Pad") => {
            let modes = if version < 19 { ["constant", "reflect", "edge"].as_slice() } else { &PAD_MODES };
            let trial = Trial::new(vec![data()]).with("mode", text(random.of(modes)));
            if version < 11 {
                let name = if version < 2 { "paddings" } else { "pads" };
                let pads = random.ints(2 * rank, -1, 2);
                let trial = trial.with(name, pads);
                return Some(if random.yes() { trial.with("value", Attribute::Float(2.5)) } else { trial });
            }
            let axes = version >= 18 && random.yes();
            let pads = random.ints(if axes { 2 } else { 2 * rank }, -1, 2);
            let mut trial = trial.operand(Tensor::vector(pads));
            trial.operands.push(random.yes().then(|| Tensor::scalar(2.5f32)));
            if axes { trial.operand(Tensor::vector(vec![signed(axis, random, 18)])) } else { trial }
        }
        ("", "CenterCropPad") => {
            let axes = vec![signed(axis, random, 18)];
            Trial::new(vec![data(), Tensor::vector(random.ints(1, 0, 7))]).with("axes", axes)
        }
        ("", "Slice") => {
            let (start, end) = (random.between(-6, 6), random.of(&[i64::MIN + 1, -2, -1, 0, 1, 3, i64::MAX]));
            let axis = signed(axis, random, 10);
            if version < 10 {
                let trial = Trial::new(vec![data()]).with("starts", vec![start]).with("ends", vec![end]);
                return Some(trial.with("axes", vec![axis]));
            }
            let step = random.of(&[-2, -1, 1, 1, 2]);
            Trial::new(
                vec![data()].into_iter().chain([start, end, axis, step].map(|x| Tensor::vector(vec![x]))).collect(),
            )
        }
        (_, "StridedSlice") if operator.domain.contains("openvino") => {
            let entries = random.between(1, rank as i64) as usize;
            let mut mask = || -> Vec<i64> { random.ints(entries, 0, 1) };
            let masks = [mask(), mask(), mask(), mask()];
            let none = vec![0; entries];
            let [begin_mask, end_mask, new, shrink] = masks;
            let (begin, end) = (random.ints(entries, -3, 3), random.ints(entries, -3, 5));
            let strides = (0..entries).map(|_| random.of(&[-1, 1, 1, 2])).collect();
            Trial::new(vec![data(), Tensor::vector(begin), Tensor::vector(end), Tensor::vector(strides)])
                .with("begin_mask", begin_mask)
                .with("end_mask", end_mask)
                .with("new_axis_mask", if random.yes() { new } else { none.clone() })
                .with("shrink_axis_mask", if random.yes() { shrink } else { none.clone() })
                .with("ellipsis_mask", none)
        }
        (_, "StridedSlice") => {
            let entries = random.between(1, rank as i64) as usize;
            let (begin, end) = (random.ints(entries, -3, 3), random.ints(entries, -3, 5));
            let strides = (0..entries).map(|_| random.of(&[-1, 1, 1, 2])).collect();
            let mut trial =
                Trial::new(vec![data(), Tensor::vector(begin), Tensor::vector(end), Tensor::vector(strides)]);
            for name in ["begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask"] {
                let mask = random.between(0, (1 << entries) - 1);
                trial = trial.with(name, if random.yes() { mask } else { 0 });
            }
            trial
        }
        (_, "Slice") => {
            let (start, stop) = (random.between(-6, 6), random.between(-6, 6));
            let step = random.of(&[-2, -1, 1, 1, 2]);
            let axis = signed(axis, random, 1);
            Trial::new(
                vec![data()].into_iter().chain([start, stop, step, axis].map(|x| Tensor::vector(vec![x]))).collect(),
            )
        }
        ("", "Resize") => {
            let coordinates = text(random.of(&["half_pixel", "asymmetric", "align_corners"]));
            let scales: Vec<f32> = (0..rank).map(|_| random.of(&[1.0, 1.0, 1.0, 1.0, 2.0])).collect();
            if version < 11 {
                return Some(Trial::new(vec![data(), Tensor::vector(scales)]));
            }
            let mut trial = Trial::new(vec![data()]).with("coordinate_transformation_mode", coordinates);
            if random.yes() {
                trial.operands.extend([None, Some(Tensor::vector(scales))]);
            } else {
                let sizes = shape.iter().map(|&size| size as i64).collect();
                trial.operands.extend([None, None, Some(Tensor::vector(sizes))]);
            }
            trial
        }
        ("", "Upsample") if version < 7 => {
            let data = distinct_data(0, &random.shape(4));
            let height = random.of(&[1.0, 1.0, 2.0]);
            Trial::new(vec![data])
                .with("height_scale", Attribute::Float(height))
                .with("width_scale", Attribute::Float(1.0))
        }
        ("", "Upsample") => {
            let scales: Vec<f32> = (0..rank).map(|_| random.of(&[1.0, 1.0, 1.0, 1.0, 2.0])).collect();
            if version < 9 {
                return Some(Trial::new(vec![data()]).with("scales", Attribute::Floats(scales)));
            }
            Trial::new(vec![data(), Tensor::vector(scales)])
        }
        _ => return None,
    })
}

const PAD_MODES: [&str; 4] = ["constant", "reflect", "edge", "wrap"];

/// Compares the maps of a node's results with its results; returns the number of known maps.
fn compare(operator: &Operator, version: i64, trial: &Trial, symbolic: bool) -> Result<Option<usize>, String> {
    // Dims of equal name are equal: dims along the axis of Concat get distinct names.
    let joined = trial.attributes.iter().find_map(|(name, value)| match value {
        Attribute::Int(axis) if *name == "axis" && operator.name == "Concat" => usize::try_from(*axis).ok(),
        _ => None,
    });
    let name_of = |slot: usize, axis: usize| {
        let from_end = trial.tensor(slot).rank() - axis;
        let is_named = symbolic && (operator.name != "Gather" || slot == 0);
        is_named.then(|| if joined == Some(axis) { format!("p{slot}") } else { format!("d{from_end}") })
    };
    let (model, ..) = trial.model(operator, version, &|_, _| None);
    let given = trial.data.iter().map(|&slot| Data::Tensor(trial.tensor(slot).clone())).collect();
    let Ok(results) = evaluate_graph(&model, model.main(), given, &Budget::default(), SliceRule::Agree) else {
        return Ok(None);
    };
    let (model, id, outputs) = trial.model(operator, version, &name_of);
    let scope = Rc::new(Scope::new());
    let mut walk = Walk::new(Rc::clone(&scope), SliceRule::Agree, Budget::default());
    walk.evaluate = false;
    walk.infer_main(&model).unwrap();
    let opset = model.opset(model.main(), "").unwrap();
    let sizes: Vec<(crate::dim::Symbol, i64)> = trial
        .data
        .iter()
        .flat_map(|&slot| (0..trial.tensor(slot).rank()).map(move |axis| (slot, axis)))
        .filter_map(|(slot, axis)| Some((scope.named(&name_of(slot, axis)?), trial.tensor(slot).shape()[axis] as i64)))
        .collect();
    let size_of = |symbol| sizes.iter().find(|(own, _)| *own == symbol).map(|(_, size)| *size);
    let mut known = 0;
    for (output, result) in results.iter().enumerate() {
        let result = result.tensor().unwrap();
        let view = NodeFacts::of(&model, &walk.facts, id, opset).unwrap();
        // The general function returns the same map as the table's hook, in the shape of the facts.
        if index_map_of(&model, &walk.facts, id, output, opset).is_err() {
            continue;
        }
        let Ok(moved) = operator.traits.index_map.unwrap()(&view, output) else { continue };
        let shape: Option<Vec<i64>> = moved.map.result().iter().map(|dim| dim.evaluate(&size_of)).collect();
        let expected: Vec<i64> = result.shape().iter().map(|&size| size as i64).collect();
        if shape.as_ref() != Some(&expected) {
            return Err(format!("the result of the map is {shape:?} instead of {expected:?}"));
        }
        let numbers = |source: usize| trial.tensor(moved.slots[source]).to_f64s().unwrap();
        let sources: Vec<Vec<f64>> = (0..moved.slots.len()).map(numbers).collect();
        let positions = |source: usize, position: i64| Some(sources[source][position as usize] as i64);
        let elements = moved.map.evaluate(&Binding { sizes: &size_of, positions: &positions });
        let elements = elements.ok_or_else(|| format!("no elements of {:?}", moved.map))?;
        let number = |element: &Element| match *element {
            Element::Source { source, position } => sources[source][position as usize],
            Element::Fill(fill) => fill.to_element(result.dtype()).unwrap().to_f64s().unwrap()[0],
        };
        let found: Vec<f64> = elements.iter().map(number).collect();
        let expected = result.to_f64s().unwrap();
        if found != expected {
            return Err(format!("output {output} of {outputs:?}: {found:?} instead of {expected:?}"));
        }
        known += 1;
    }
    Ok(Some(known))
}

/// Compares the maps of an operator version with evaluation on random nodes.
fn compared(operator: &Operator, version: i64) -> Result<(), String> {
    const NODES: usize = 120;
    let seed = operator.name.bytes().fold(version as u64 + 1, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut random = Random(Numbers(seed));
    let (mut run, mut known) = (0, 0);
    for number in 0..NODES {
        let Some(trial) = trial(operator, version, &mut random) else { return Err("no random nodes".into()) };
        let symbolic = number % 3 == 2;
        let describe = |reason: String| {
            let shapes: Vec<_> = trial.operands.iter().flatten().map(|own| own.shape().to_vec()).collect();
            let lists: Vec<_> = trial.operands.iter().flatten().skip(1).filter_map(Tensor::to_i64s).collect();
            format!("{reason}\n  of {shapes:?}, {lists:?}, {:?}, symbolic {symbolic}", trial.attributes)
        };
        let Some(found) = compare(operator, version, &trial, symbolic).map_err(describe)? else { continue };
        if !symbolic {
            run += 1;
            known += usize::from(found == trial.outputs);
        }
    }
    // Some nodes have no map by design: those of disputed modes, or that compute elements.
    if run < 15 || known * 2 < run { Err(format!("{known} of {run} nodes have maps")) } else { Ok(()) }
}

#[test]
fn index_maps_give_the_elements_that_evaluation_gives() {
    let mut wrong = Vec::new();
    for operator in operators().filter(|operator| operator.traits.index_map.is_some()) {
        for &version in operator.versions {
            if let Err(reason) = compared(operator, version) {
                wrong.push(format!("{} {} {version}: {reason}", operator.domain, operator.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wrong_index_maps_are_found() {
    let layout = operator("", "Identity").unwrap().traits.index_map;
    for name in ["Transpose", "Slice", "Tile", "Gather", "Concat", "Pad", "ScatterND", "DepthToSpace"] {
        let mut wrong = *operator("", name).unwrap();
        wrong.traits.index_map = layout;
        assert!(compared(&wrong, *wrong.versions.last().unwrap()).is_err(), "{name}");
    }
}
