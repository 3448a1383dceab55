//! Tests of traits about numbers: ranges, order, neutral elements, affine forms, equal elements.

use std::collections::BTreeSet;

use super::*;

/// Returns the arguments at which functions are tested, in order.
pub(super) fn grid() -> Vec<f64> {
    let mut grid: Vec<f64> = (-400..=400).map(|at| f64::from(at) / 16.0).collect();
    grid.extend([-6e4, -1e3, -100.0, -1e-3, -1e-6, 1e-6, 1e-3, 100.0, 1e3, 6e4, f64::INFINITY, f64::NEG_INFINITY]);
    grid.sort_by(f64::total_cmp);
    grid
}

/// Checks that results for extreme operands are in the range, and NaN only if declared.
pub(super) fn ranged(operator: &Operator) -> Result<usize, String> {
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

pub(super) fn monotone(operator: &Operator) -> Result<usize, String> {
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

/// Checks that results are monotone in each operand while the others are fixed.
pub(super) fn ordered(operator: &Operator) -> Result<usize, String> {
    let Ordered { operands, one_sign } = operator.traits.ordered.unwrap();
    let mut done = 0;
    for dtype in [DType::Float, DType::Double, DType::Int64] {
        let grid = || grid().into_iter().filter(|x| dtype.is_float() || x.abs() < 1e3);
        let grids: Vec<Vec<f64>> = match one_sign {
            true => vec![grid().filter(|x| *x >= 0.0).collect(), grid().filter(|x| *x <= 0.0).collect()],
            false => vec![grid().collect()],
        };
        for (grid, slot, held) in grids
            .iter()
            .flat_map(|grid| (0..operands).flat_map(move |slot| [-3.0, 2.0, 7.0].map(|held| (grid, slot, held))))
        {
            let moving = of_numbers(dtype, &[grid.len()], grid);
            let mut list = vec![moving.clone()];
            if operands > 1 || operator.traits.is_broadcasting(28) {
                list = vec![of_numbers(dtype, &[], &[held]); 2];
                list[slot] = moving;
            }
            let Some(result) = Sample::new(operator, list).eval() else { continue };
            let results: Vec<f64> = match result.to_f64s() {
                Some(results) => results,
                None => result.to_i64s().unwrap().into_iter().map(|number| number as f64).collect(),
            };
            let results: Vec<f64> = results.into_iter().filter(|x| !x.is_nan()).collect();
            let slack = |x: f64| 1e-6 * x.abs().min(1e9);
            let rises = results.windows(2).all(|pair| pair[0] <= pair[1] + slack(pair[0]));
            let falls = results.windows(2).all(|pair| pair[0] + slack(pair[0]) >= pair[1]);
            if !rises && !falls {
                return Err(format!("{dtype}: results are not ordered in operand {slot} beside {held}"));
            }
            done += 1;
        }
    }
    Ok(done)
}

pub(super) fn neutral(operator: &Operator) -> Result<usize, String> {
    let neutral = operator.traits.neutral.unwrap();
    let (mut numbers, mut done) = (Numbers(6), 0);
    for dtype in TYPES {
        let data = random(&mut numbers, dtype, &[40], true, false);
        let mut candidates: Vec<Tensor> =
            [0.0, -0.0, 1.0, -1.0, 2.0].iter().map(|&number| of_numbers(dtype, &[], &[number])).collect();
        candidates.extend((dtype == DType::Uint8).then(|| Tensor::scalar(255u8)));
        for one in candidates.iter().filter(|one| (neutral.is)(dtype, one)) {
            let orders = if operator.traits.commutes == Commutes::Always { 2 } else { 1 };
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

pub(super) fn commuting(operator: &Operator) -> Result<usize, String> {
    let (mut numbers, mut done) = (Numbers(7), 0);
    for dtype in TYPES.into_iter().filter(|&dtype| operator.traits.commutes_for(Some(dtype), i64::MAX)) {
        let special = [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, -0.0, 0.0];
        let random = |numbers: &mut Numbers| random(numbers, dtype, &[7], true, false);
        let pairs = [
            [random(&mut numbers), random(&mut numbers)],
            [of_numbers(dtype, &[7], &special), random(&mut numbers)],
            [of_numbers(dtype, &[7, 1], &special), of_numbers(dtype, &[7], &special)],
        ];
        for [a, b] in pairs {
            let Some(result) = Sample::new(operator, vec![a.clone(), b.clone()]).eval() else { continue };
            let swapped = Sample::new(operator, vec![b, a]).eval().ok_or("not evaluated the other way round")?;
            if !equal(&result, &swapped, Variation::None) {
                return Err(format!("{dtype}: operands that change places change the result"));
            }
            done += 1;
        }
    }
    Ok(done)
}

/// Returns the results for zeros and for negative zeros, in an operand that also contains 1. A second operand
/// contains 0, 1 and −1 at the same indices.
fn of_both_zeros(operator: &Operator, dtype: DType, slot: usize) -> Option<(Tensor, Tensor)> {
    let pair = operator.traits.pointwise.is_some_and(|own| own.operands == Operands::Broadcast);
    let of = |zero: f64| {
        let data = of_numbers(dtype, &[3], &[zero, 1.0, zero]);
        let other = of_numbers(dtype, &[3], &[0.0, 1.0, -1.0]);
        let list = match slot {
            _ if !pair => vec![data],
            0 => vec![data, other],
            _ => vec![other, data],
        };
        Sample::new(operator, list).eval()
    };
    Some((of(0.0)?, of(-0.0)?))
}

const FLOATS: [DType; 3] = [DType::Float, DType::Double, DType::Float16];

pub(super) fn blind_to_zero_sign(operator: &Operator) -> Result<usize, String> {
    let mut done = 0;
    for (dtype, slot) in FLOATS.into_iter().flat_map(|dtype| [(dtype, 0), (dtype, 1)]) {
        let Some((plus, minus)) = of_both_zeros(operator, dtype, slot) else { continue };
        if !equal(&plus, &minus, Variation::None) {
            return Err(format!("{dtype}: {minus:?} of the negative zero"));
        }
        done += 1;
    }
    Ok(done)
}

/// Checks that the sign of a zero changes values for some type in the declared operand, and in no other.
pub(super) fn showing_zero_sign(operator: &Operator) -> Result<usize, String> {
    let (mut done, mut shown) = (0, BTreeSet::new());
    for (dtype, slot) in FLOATS.into_iter().flat_map(|dtype| [(dtype, 0), (dtype, 1)]) {
        let Some((plus, minus)) = of_both_zeros(operator, dtype, slot) else { continue };
        let (Some(x), Some(y)) = (plus.to_f64s(), minus.to_f64s()) else { continue };
        let is_pair = operator.traits.pointwise.is_some_and(|own| own.operands == Operands::Broadcast);
        if x.iter().zip(&y).any(|(x, y)| x != y && !(x.is_nan() && y.is_nan())) {
            shown.insert(if is_pair { slot } else { 0 });
        }
        done += 1;
    }
    let declared: BTreeSet<usize> = operator.traits.shows_zero_sign.into_iter().collect();
    if done > 0 && shown != declared { Err(format!("shown by {shown:?}, declared {declared:?}")) } else { Ok(done) }
}

pub(super) fn homogeneous(operator: &Operator) -> Result<usize, String> {
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

/// Checks that the result is additive in each of the first two operands.
pub(super) fn bilinear(operator: &Operator) -> Result<usize, String> {
    let mut numbers = Numbers(31);
    let mut whole = |shape: &[usize]| {
        let list: Vec<f64> = (0..shape.iter().product()).map(|_| numbers.small() as f64).collect();
        of_numbers(DType::Float, shape, &list)
    };
    let add = |a: &Tensor, b: &Tensor| {
        Sample::new(crate::ops::operator("", "Add").unwrap(), vec![a.clone(), b.clone()]).eval().ok_or("not added")
    };
    let mut list = samples(operator.name);
    if operator.traits.pointwise.is_some() {
        list.push(Sample::new(operator, vec![whole(&[2, 3]), whole(&[2, 3])]));
    }
    for sample in &mut list {
        sample.operands.truncate(2);
        for slot in 0..2 {
            let shape = sample.operand(slot).shape().to_vec();
            *sample = sample.with_operand(slot, whole(&shape));
        }
        for slot in 0..2 {
            let other = whole(sample.operand(slot).shape());
            let both = sample.with_operand(slot, add(sample.operand(slot), &other)?);
            let of = |sample: &Sample| sample.eval().ok_or("not evaluated");
            let apart = add(&of(sample)?, &of(&sample.with_operand(slot, other))?)?;
            if !equal(&of(&both)?, &apart, Variation::Rounding) {
                return Err(format!("a sum as operand {slot} gives no sum"));
            }
        }
    }
    Ok(list.len())
}

/// Checks that dequantization after the operator equals dequantization before it.
pub(super) fn carrying(operator: &Operator) -> Result<usize, String> {
    let dequantized = |tensor: Tensor| {
        let list = vec![tensor, Tensor::scalar(0.5f32), Tensor::scalar(3u8)];
        Sample::new(crate::ops::operator("", "DequantizeLinear").unwrap(), list).eval()
    };
    let list = samples(operator.name);
    for sample in &list {
        let count = sample.operand(0).len();
        let bytes: Vec<f64> = (0..count).map(|at| ((at * 37 + 11) % 256) as f64).collect();
        let quantized = of_numbers(DType::Uint8, sample.operand(0).shape(), &bytes);
        let early = sample.with_operand(0, dequantized(quantized.clone()).ok_or("not dequantized")?).eval();
        let late = sample.with_operand(0, quantized).eval().and_then(dequantized);
        if !early.zip(late).is_some_and(|(early, late)| early.same(&late)) {
            return Err("what is dequantized behind it is something else".into());
        }
    }
    Ok(list.len())
}

pub(super) fn variadic(operator: &Operator) -> Result<usize, String> {
    let data = random(&mut Numbers(9), DType::Float, &[2, 3], true, false);
    let result = Sample::new(operator, vec![data.clone()]).with("axis", 0i64).eval().ok_or("not evaluated")?;
    if equal(&result, &data, Variation::None) { Ok(1) } else { Err("one operand alone is changed".into()) }
}

pub(super) fn of_shape(operator: &Operator) -> Result<usize, String> {
    let of = |seed| Sample::new(operator, vec![random(&mut Numbers(seed), DType::Float, &[2, 3], false, false)]).eval();
    match (of(1), of(2)) {
        (Some(a), Some(b)) if a.same(&b) => Ok(1),
        _ => Err("content makes a difference".into()),
    }
}

pub(super) fn container(operator: &Operator) -> Result<usize, String> {
    for sample in samples(operator.name) {
        match sample.data().map_err(|decline| decline.to_string())? {
            Data::Sequence(_) | Data::Optional(_) => {}
            _ => return Err("the result is no container".into()),
        }
    }
    Ok(samples(operator.name).len())
}

/// Checks that the affine form equals the evaluated result.
pub(super) fn counting(operator: &Operator) -> Result<usize, String> {
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
        // Affine operands; with equal elements for boolean results, or for the second operand.
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

/// Checks that operands with equal elements give the declared value everywhere.
pub(super) fn uniform(operator: &Operator) -> Result<usize, String> {
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

/// Checks that the result for an operand that repeats along an axis is the result for the smaller one, repeated.
pub(super) fn repeating(operator: &Operator) -> Result<usize, String> {
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
