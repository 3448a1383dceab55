//! Elements selected by their values: the size of the result depends on the content.
//!
//! | operator | versions | difference |
//! | --- | --- | --- |
//! | NonZero | 9, 13 | types |
//! | Compress | 9, 11, 28 | 11: a negative `axis`; 28: bfloat16 |
//! | Unique | 11, 28 | 28: bfloat16 |
//!
//! NonZero returns the indices of the elements that are not zero, one row for each axis. Compress keeps the elements with a true condition,
//! of an axis or of the flattened data. Unique keeps one of each element, or of each slice of an axis, in ascending order or in the order
//! of first appearance. It also returns the positions of first appearance, the inverse mapping and the counts.
//!
//! Not evaluated: a condition that is true outside of the axis. Disputed and kept: NonZero of a scalar (the standard gives `[0, N]`, ONNX
//! Runtime `[1, N]`), Unique with NaNs or complex numbers, and slices of an empty tensor.

use super::cells::moved;
use super::gather::{gather_rows, gather_runs};
use super::maps;
use super::moves;
use super::order::sort_keys;
use super::{around, claim, dim_between, dim_up_to};
use crate::dim::Dim;
use crate::ir::{Attribute, Data, Fact};
use crate::ops::traits::{Failure, Movement, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, axis_in};
use crate::sort;
use crate::tensor::{Complex64, Complex128, DType, Indices, Number, Tensor, dispatch_numeric};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("NonZero", &[9, 13], infer_non_zero, eval_non_zero).with(Traits::NONE.counts(moves::places_counted)),
    Operator::new("Compress", &[9, 11, 28], infer_compress, eval_compress).with(
        // The number of selected elements is known at run time only.
        Traits { fails: Failure::Undeclared, ..Traits::movement(Movement::Selection) }
            .index_map(maps::compress)
            .some_types()
            .not_inferred(),
    ),
    Operator::new("Unique", &[11, 28], infer_unique, eval_unique),
];

fn infer_non_zero(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dims = match data.shape() {
        Some(shape) => {
            let size = cx.scope().product(shape);
            if shape.is_empty() {
                // If ONNX Runtime knows the shape, it infers another shape than it computes, and the run fails.
                return Err(Refusal::lax(
                    "'X' is a scalar, for which the standard defines no index, but ONNX Runtime returns one",
                ));
            }
            let rows = Dim::constant(shape.len() as i64);
            let columns = match filled_with_zero(cx) {
                Some(true) => Dim::constant(0),
                Some(false) => size,
                None => dim_up_to(cx, &size),
            };
            vec![rows, columns]
        }
        None => cx.fresh_shape(2),
    };
    Ok(vec![Fact::tensor(Some(DType::Int64), Some(dims))])
}

/// Returns `Some` if the operand is a ConstantOfShape, whose elements are all equal, and `true` if they are 0. Exporters write `arange` as
/// NonZero of ones.
fn filled_with_zero(cx: &InferCx<'_>) -> Option<bool> {
    let producer = cx.model.value(cx.node.input(0)?).producer()?;
    let producer = cx.model.node(producer).filter(|node| node.is("ConstantOfShape"))?;
    match producer.attribute("value") {
        None => Some(true),
        Some(Attribute::Tensor(value, _)) if value.len() == 1 => truths(value).ok()?.first().map(|truth| !truth),
        Some(_) => None,
    }
}

/// Returns, for each element, whether it differs from zero. NaN does, −0 does not.
fn truths(tensor: &Tensor) -> Result<Vec<bool>, Decline> {
    let unsupported = || Decline::unsupported(format!("the element type {} has no zero", tensor.dtype()));
    if let Some(ints) = tensor.bools() {
        return Ok(ints);
    }
    dispatch_numeric!(tensor.dtype(), T => {
        let elements = tensor.elements::<T>().ok_or_else(unsupported)?;
        Ok(elements.iter().map(|&element| element != <T as Number>::zero()).collect())
    }, else => match tensor.dtype() {
        DType::Complex64 => {
            let elements = tensor.elements::<Complex64>().ok_or_else(unsupported)?;
            Ok(elements.iter().map(|element| element.0 != [0.0; 2]).collect())
        }
        DType::Complex128 => {
            let elements = tensor.elements::<Complex128>().ok_or_else(unsupported)?;
            Ok(elements.iter().map(|element| element.0 != [0.0; 2]).collect())
        }
        _ => Err(unsupported()),
    })
}

fn eval_non_zero(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let rank = data.rank();
    if rank == 0 {
        return Err(Decline::unsupported(
            "'X' is a scalar, for which the standard defines no index, but ONNX Runtime returns one",
        ));
    }
    cx.claim(DType::Bool, data.shape())?;
    let truths = truths(data)?;
    let number = truths.iter().filter(|&&truth| truth).count();
    cx.claim(DType::Int64, &[rank, number])?;
    let mut result = vec![0i64; rank.saturating_mul(number)];
    let (last, outer) = data.shape().split_last().map_or((0, [].as_slice()), |(&last, outer)| (last, outer));
    let mut rows = Indices::new(outer);
    let mut column = 0;
    for truths in truths.chunks(last.max(1)) {
        let row = rows.advance().unwrap_or_default();
        for (at, _) in truths.iter().enumerate().filter(|&(_, &truth)| truth) {
            for (axis, &index) in row.iter().chain([&at]).enumerate() {
                if let Some(place) = result.get_mut(axis * number + column) {
                    *place = index as i64;
                }
            }
            column += 1;
        }
    }
    Ok(vec![Data::Tensor(Tensor::from_vec(&[rank, number], result)?)])
}

fn infer_compress(cx: &mut InferCx<'_>) -> InferResult {
    let (data, condition) = (cx.required(0)?, cx.required(1)?);
    let dtype = data.dtype();
    let scope = cx.scope();
    if let Some(rank) = condition.rank().filter(|&rank| rank != 1) {
        return Err(Refusal::invalid(format!("the condition has rank {rank} instead of 1")));
    }
    let axis = cx.attr_int("axis")?;
    let axis = axis.zip(data.rank()).map(|(axis, rank)| axis_in(axis, rank)).transpose()?.or(axis.map(|_| 0));
    let places = condition.const_ints().map(|truths| {
        let places = truths.iter().enumerate().filter(|&(_, &truth)| truth != 0).map(|(at, _)| at as i64);
        places.collect::<Vec<_>>()
    });
    // In ONNX Runtime a true condition outside of the axis selects nothing.
    let within = |places: &[i64], whole: &Dim| match (places.last(), whole.as_const()) {
        (None, _) => Dim::constant(0),
        (Some(_), Some(whole)) => Dim::constant(places.iter().filter(|&&place| place < whole).count() as i64),
        (Some(&last), None) if scope.lt(&Dim::constant(last), whole).is_yes() => Dim::constant(places.len() as i64),
        (Some(_), None) => dim_up_to(cx, &scope.min(whole, &Dim::constant(places.len() as i64))),
    };
    let size = |whole: Option<Dim>| match (&places, whole, condition.shape().and_then(<[Dim]>::first)) {
        (Some(places), Some(whole), _) => within(places, &whole),
        (Some(places), None, _) => dim_up_to(cx, &Dim::constant(places.len() as i64)),
        (None, Some(whole), Some(length)) => dim_up_to(cx, &scope.min(&whole, length)),
        (None, Some(limit), None) => dim_up_to(cx, &limit),
        (None, None, Some(limit)) => dim_up_to(cx, limit),
        (None, None, None) => cx.fresh_dim(),
    };
    let dims = match (axis, data.shape()) {
        (None, shape) => Some(vec![size(shape.map(|shape| scope.product(shape)))]),
        (Some(_), None) => None,
        (Some(axis), Some(shape)) => {
            let mut dims = shape.to_vec();
            if let Some(dim) = dims.get_mut(axis) {
                *dim = size(Some(dim.clone()));
            }
            Some(dims)
        }
    };
    Ok(vec![Fact::tensor(dtype, dims)])
}

fn eval_compress(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let condition = cx.tensor(1)?.bools().ok_or_else(|| Decline::invalid("the condition is not of type bool"))?;
    let axis = cx.attr_int("axis")?.map(|axis| axis_in(axis, data.rank())).transpose()?;
    claim(cx, data.dtype(), data.shape())?;
    let result = moved(&[data], &|operands| match operands {
        [data] => compressed(data, &condition, axis),
        _ => Err(Decline::invalid("the data operand is not a single tensor")),
    })?;
    Ok(vec![Data::Tensor(result)])
}

fn compressed(data: &Tensor, condition: &[bool], axis: Option<usize>) -> Result<Tensor, Decline> {
    let dim = axis.map_or(Some(data.len()), |axis| data.shape().get(axis).copied()).unwrap_or(0);
    let places: Vec<usize> = condition.iter().enumerate().filter(|&(_, &truth)| truth).map(|(at, _)| at).collect();
    if places.last().is_some_and(|&last| last >= dim) {
        return Err(Decline::unsupported(format!(
            "the condition selects a position that is out of range for a dim of {dim}"
        )));
    }
    picked(data, &places, axis)
}

/// Returns the slices of an axis, or the elements of the flattened data, at these positions.
fn picked(data: &Tensor, places: &[usize], axis: Option<usize>) -> Result<Tensor, Decline> {
    let Some(axis) = axis else { return gather_runs(data, 1, places, &[places.len()]) };
    let mut shape = data.shape().to_vec();
    shape.get_mut(axis).into_iter().for_each(|dim| *dim = places.len());
    gather_rows(data, axis, places, &shape)
}

fn infer_unique(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    let Some(shape) = data.shape() else {
        let flat = cx.attr_int("axis")?.is_none();
        let number = cx.fresh_dim();
        let values = if flat { Fact::tensor(dtype, Some(vec![number.clone()])) } else { Fact::tensor(dtype, None) };
        let vector = |dim: Dim| Fact::tensor(Some(DType::Int64), Some(vec![dim]));
        return Ok(vec![values, vector(number.clone()), vector(cx.fresh_dim()), vector(number)]);
    };
    let axis = cx.attr_int("axis")?.map(|axis| axis_in(axis, shape.len())).transpose()?;
    let whole = match axis.and_then(|axis| shape.get(axis)) {
        Some(dim) => dim.clone(),
        None => cx.scope().product(shape),
    };
    // Non-empty data has at least one unique element.
    let low = cx.scope().ge(&whole, &Dim::constant(1)).is_yes();
    let number = dim_between(cx, low.into(), &whole);
    let mut dims = shape.to_vec();
    match axis.and_then(|axis| dims.get_mut(axis)) {
        Some(dim) => *dim = number.clone(),
        None => dims = vec![number.clone()],
    }
    let vector = |dim: &Dim| Fact::tensor(Some(DType::Int64), Some(vec![dim.clone()]));
    Ok(vec![Fact::tensor(dtype, Some(dims)), vector(&number), vector(&whole), vector(&number)])
}

fn eval_unique(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let axis = cx.attr_int("axis")?.map(|axis| axis_in(axis, data.rank())).transpose()?;
    let ascending = cx.attr_flag("sorted", true)?;
    if axis.is_some() && data.is_empty() {
        return Err(Decline::unsupported("the input is empty"));
    }
    let (outer, dim, inner) = match axis {
        Some(axis) => around(data.shape(), axis)?,
        None => (1, data.len(), 1),
    };
    claim(cx, data.dtype(), data.shape())?;
    cx.claim(DType::Uint64, data.shape())?;
    cx.claim(DType::Int64, &[dim, 8])?;
    cx.budget().take_work((data.len() as u64).saturating_mul(u64::from(dim.max(1).ilog2()) + 1).saturating_mul(2))?;
    // Slice by slice, so that a slice's keys are adjacent.
    let keys = sort_keys(data)?;
    let row = outer.saturating_mul(inner);
    let mut rows = Vec::with_capacity(keys.len());
    for slice in 0..dim {
        for block in 0..outer {
            let start = (block * dim + slice) * inner;
            rows.extend_from_slice(keys.get(start..start + inner).unwrap_or_default());
        }
    }
    let key = |slice: usize| rows.get(slice * row..slice * row + row).unwrap_or_default();
    let order: Vec<usize> = if row == 1 {
        let mut pairs: Vec<(u64, usize)> = rows.iter().copied().zip(0..).collect();
        pairs.sort_unstable();
        pairs.into_iter().map(|(_, slice)| slice).collect()
    } else {
        let mut order: Vec<usize> = (0..dim).collect();
        sort::by(&mut order, |&a, &b| key(a).cmp(key(b)));
        order
    };
    // The first of each group of equal slices, and the group of every slice.
    let mut firsts: Vec<usize> = Vec::new();
    let mut groups = vec![0usize; dim];
    for &slice in &order {
        if firsts.last().is_none_or(|&first| key(first) != key(slice)) {
            firsts.push(slice);
        }
        if let Some(group) = groups.get_mut(slice) {
            *group = firsts.len().saturating_sub(1);
        }
    }
    if !ascending {
        let mut appearance: Vec<usize> = (0..firsts.len()).collect();
        sort::by_key(&mut appearance, |&group| firsts.get(group));
        let mut renamed = vec![0usize; firsts.len()];
        for (new, &old) in appearance.iter().enumerate() {
            if let Some(place) = renamed.get_mut(old) {
                *place = new;
            }
        }
        firsts.sort_unstable();
        groups.iter_mut().for_each(|group| *group = renamed.get(*group).copied().unwrap_or(0));
    }
    let mut counts = vec![0i64; firsts.len()];
    for &group in &groups {
        if let Some(count) = counts.get_mut(group) {
            *count += 1;
        }
    }
    let values = moved(&[data], &|operands| match operands {
        [data] => picked(data, &firsts, axis),
        _ => Err(Decline::invalid("the data operand is not a single tensor")),
    })?;
    let vector = |list: Vec<usize>| Tensor::vector(list.into_iter().map(|at| at as i64).collect::<Vec<i64>>());
    Ok([values, vector(firsts), vector(groups), Tensor::vector(counts)].map(Data::Tensor).into())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;
    use crate::ir::{Model, NewNode, OpsetImport};
    use crate::ops::{Budget, Walk};
    use crate::slicing::SliceRule;

    #[test]
    fn places_of_what_is_not_zero() {
        let case = Case::new("NonZero", 13);
        let found = case.eval([tensor(&[2, 2], &[1f32, -0.0, f32::NAN, 0.5])]);
        assert!(found.same(&tensor(&[2, 3], &[0i64, 1, 1, 0, 0, 1])));
        assert_eq!(case.eval([iota(&[1, 1])]).shape(), [2, 0]);
        assert_eq!(case.eval([iota(&[0, 3])]).shape(), [2, 0]);
        assert_eq!(values::<i64>(&case.eval([Tensor::from_bools(&[3], &[true, false, true]).unwrap()])), [0, 2]);
        assert!(matches!(case.fails([iota(&[])]), Decline::Unsupported(_)));
        case.fails([strings(&[1], &["a"])]);
    }

    #[test]
    fn conditions_keep() {
        let data = tensor(&[2, 3], &[1i64, 2, 3, 4, 5, 6]);
        let truth = |values: &[bool]| Tensor::from_bools(&[values.len()], values).unwrap();
        let case = |axis: i64| Case::new("Compress", 11).with("axis", axis);
        let kept = case(1).eval([data.clone(), truth(&[false, true, true])]);
        assert!(kept.same(&tensor(&[2, 2], &[2i64, 3, 5, 6])));
        assert!(case(-2).eval([data.clone(), truth(&[false, true])]).same(&tensor(&[1, 3], &[4i64, 5, 6])));
        let flat = Case::new("Compress", 9).eval([data.clone(), truth(&[true, false, false, false, true])]);
        assert!(flat.same(&ints(&[1, 5])));
        assert_eq!(case(1).eval([data.clone(), truth(&[])]).shape(), [2, 0]);
        assert_eq!(case(1).eval([data.clone(), truth(&[true, true, true, false])]).shape(), [2, 3]);
        case(1).fails([data.clone(), truth(&[false, false, false, true])]);
        case(1).fails([data, ints(&[1])]);
    }

    #[test]
    fn one_of_each() {
        let data = Tensor::vector(vec![2f32, 1.0, 1.0, 3.0, 4.0, 3.0]);
        let all =
            |sorted: i64, data: &Tensor| Case::new("Unique", 11).with("sorted", sorted).outputs(4).all([data.clone()]);
        let first = all(0, &data);
        assert_eq!(values::<f32>(&first[0]), [2.0, 1.0, 3.0, 4.0]);
        assert_eq!(values::<i64>(&first[1]), [0, 1, 3, 4]);
        assert_eq!(values::<i64>(&first[2]), [0, 1, 1, 2, 3, 2]);
        assert_eq!(values::<i64>(&first[3]), [1, 2, 2, 1]);
        let sorted = all(1, &data);
        assert_eq!(values::<f32>(&sorted[0]), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values::<i64>(&sorted[1]), [1, 0, 3, 4]);
        assert_eq!(values::<i64>(&sorted[2]), [1, 0, 0, 2, 3, 2]);
        let words = all(1, &strings(&[3], &["b", "a", "b"]));
        assert!(words[0].same(&strings(&[2], &["a", "b"])));
        assert!(all(1, &iota(&[0])).iter().all(|result| result.shape() == [0]));
        assert_eq!(all(1, &iota(&[]))[0].shape(), [1]);
        Case::new("Unique", 11).fails([Tensor::vector(vec![f32::NAN])]);
        Case::new("Unique", 11).with("axis", 0).fails([iota(&[0, 2])]);
    }

    #[test]
    fn one_of_each_slice() {
        let rows = tensor(&[3, 3], &[2f32, 3.0, 4.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let all = Case::new("Unique", 11).with("axis", 0).outputs(4).all([rows.clone()]);
        assert!(all[0].same(&tensor(&[2, 3], &[1f32, 0.0, 0.0, 2.0, 3.0, 4.0])));
        assert_eq!(values::<i64>(&all[1]), [1, 0]);
        assert_eq!(values::<i64>(&all[2]), [1, 0, 0]);
        assert_eq!(values::<i64>(&all[3]), [2, 1]);
        let columns = Case::new("Unique", 11).with("axis", -1).with("sorted", 0).outputs(4).all([rows]);
        assert_eq!(columns[0].shape(), [3, 3]);
        assert_eq!(values::<i64>(&columns[1]), [0, 1, 2]);
    }

    #[test]
    fn a_filled_operand_settles_how_many_are_not_zero() {
        let mut model = Model::new();
        model.opsets = vec![OpsetImport { domain: String::new(), version: 17, extra: Default::default() }];
        let main = model.main();
        let [shape, filled, found] = ["shape", "filled", "found"].map(|name| model.add_value(name));
        model.add_input(main, shape).unwrap();
        let fill = NewNode::new("ConstantOfShape", [Some(shape)]).with("value", ints(&[1])).output(filled);
        model.add_node(main, fill).unwrap();
        model.add_node(main, NewNode::new("NonZero", [Some(filled)]).output(found)).unwrap();
        let scope = Rc::new(Scope::new());
        let mut walk = Walk::new(Rc::clone(&scope), SliceRule::Agree, Budget::default());
        walk.facts.set(shape, vector(&scope, &["S", "2"]));
        walk.infer_main(&model).unwrap();
        assert_eq!(dims(&scope, walk.facts.get(found).unwrap()), ["2", "2*S"]);
    }

    #[test]
    fn sizes_are_bounded() {
        let scope = Rc::new(Scope::new());
        let fact = Case::new("NonZero", 13).infer(&scope, vec![Some(shaped(&scope, &["B", "3"]))]).remove(0);
        let shape = fact.shape().unwrap();
        assert!(shape[0].is_const(2));
        assert!(scope.le(&shape[1], &scope.parse("3*B").unwrap()).is_yes());
        let one = Case::new("Unique", 11).infer(&scope, vec![Some(shaped(&scope, &["1"]))]).remove(0);
        assert_eq!(dims(&scope, &one), ["1"]);
        let condition = Fact::constant(Tensor::from_bools(&[2], &[false, true]).unwrap());
        let facts = vec![Some(vector(&scope, &["A", "B"])), Some(condition)];
        assert_eq!(elements(&scope, &Case::new("Compress", 11).infer(&scope, facts)[0]), ["B"]);
    }

    #[test]
    fn a_condition_may_be_longer_than_the_axis() {
        let scope = Rc::new(Scope::new());
        let sizes = |dim: &str| {
            let condition = Fact::constant(Tensor::from_bools(&[3], &[true, false, true]).unwrap());
            let facts = vec![Some(shaped(&scope, &[dim])), Some(condition)];
            Case::new("Compress", 11).with("axis", 0).infer(&scope, facts)[0].shape().unwrap()[0].clone()
        };
        assert!(sizes("4").is_const(2));
        assert!(sizes("1").is_const(1));
        assert!(sizes("0").is_const(0));
        let open = sizes("S");
        assert!(open.as_const().is_none() && scope.le(&open, &Dim::constant(2)).is_yes());
    }
}
