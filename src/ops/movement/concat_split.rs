//! Tensors put together along an axis, and taken apart.
//!
//! | operator | versions | what changes |
//! | --- | --- | --- |
//! | Concat | 1, 4, 11, 13 | 1: `axis` is 1 by default; 4: `axis` is required; 11: it may be negative; 13: types |
//! | Split | 1, 2, 11, 13, 18 | 1: sizes also as an operand; 11: a negative `axis`; 13: sizes as an operand only; 18: `num_outputs` |
//!
//! Without sizes, Split makes equal parts; from version 18 on, the last of `num_outputs` parts is smaller when the dim does not divide
//! (each other one is the dim over the parts, rounded up).
//!
//! ONNX Runtime looks past operands without elements where the text wants all to agree beside the axis: it takes the other dims from
//! the first operand that has elements, or from the first of all. They are stated where all operands are proved to agree, where
//! one that is proved to have elements says them, and where the first operand has elements whenever another one has.
//!
//! Refused: operands of different rank, or that differ elsewhere than along the axis; sizes that are negative, do not add up to the
//! dim, or are fewer or more than the results; before version 18 a dim that does not divide; from then on sizes *and* a
//! number, or neither, and so many parts that the last would be less than empty.

use super::maps::{self, MapResult};
use super::moves;
use super::pieces::concat_within;
use super::{List, agree, whole};
use crate::dim::{Dim, Scope};
use crate::index_map::{IndexMap, Shape, Undecided};
use crate::ir::{Data, Fact};
use crate::ops::size_operand::at_least;
use crate::ops::traits::{Moved, Movement, NodeFacts, NumbersOf, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site, axis_in};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Concat", &[1, 4, 11, 13], infer_concat, eval_concat).with(
        Traits::movement(Movement::Join)
            .index_map(map_concat)
            .repeats(moves::joined_narrow)
            .inferred_by_numbers(NumbersOf::SameAxisOfEach)
            .passing_slices()
            .variadic(),
    ),
    Operator::new("Split", &[1, 2, 11, 13, 18], infer_split, maps::eval).with(
        Traits::movement(Movement::Selection)
            .index_map(map_split)
            .inferred_by_contents(1)
            .inferred_by_numbers(NumbersOf::Whole(1)),
    ),
];

fn concat_axis(site: &Site<'_>, rank: usize) -> Result<usize, Refusal> {
    let axis = match site.attr_int("axis")? {
        Some(axis) => axis,
        None if site.version < 4 => 1,
        None => return Err(Refusal::invalid("attribute 'axis' is missing")),
    };
    axis_in(axis, rank)
}

fn infer_concat(cx: &mut InferCx<'_>) -> InferResult {
    let operands: Option<Vec<&Fact>> = cx.inputs().iter().map(Option::as_ref).collect();
    let operands = operands.filter(|operands| !operands.is_empty());
    let operands = operands.ok_or_else(|| Refusal::invalid("an operand is missing"))?;
    let dtype = operands.iter().find_map(|fact| fact.dtype());
    let shapes: Vec<&[Dim]> = operands.iter().filter_map(|fact| fact.shape()).collect();
    let Some(rank) = shapes.first().map(|shape| shape.len()) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    if let Some(other) = shapes.iter().find(|shape| shape.len() != rank) {
        return Err(Refusal::invalid(format!("the operands have different ranks: {rank} and {}", other.len())));
    }
    let axis = concat_axis(cx, rank)?;
    let mut dims = Vec::with_capacity(rank);
    for at in 0..rank {
        let along = shapes.iter().filter_map(|shape| shape.get(at));
        dims.push(if at != axis {
            let all = agree(cx.scope(), along)?.filter(|_| shapes.len() == operands.len());
            let is_certain = |dim: &Dim| shapes.iter().all(|shape| is_equal(cx.scope(), shape.get(at), dim));
            let filled = || shapes.iter().find(|shape| has_elements(cx.scope(), shape))?.get(at).cloned();
            let first = || shapes.first().filter(|first| covers(cx.scope(), first, &shapes))?.get(at).cloned();
            all.filter(is_certain)
                .or_else(filled)
                .or_else(|| first().filter(|_| shapes.len() == operands.len()))
                .unwrap_or_else(|| cx.fresh_dim())
        } else if along.clone().filter_map(Dim::as_const).try_fold(0i64, i64::checked_add).is_none() {
            return Err(Refusal::invalid("the sum of the dims along the axis overflows"));
        } else if shapes.len() == operands.len() {
            cx.scope().sum(along)
        } else {
            cx.fresh_dim()
        });
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

/// The operands agree in the dims of all axes but one, those without elements too: their dims count where a runtime reads them.
fn map_concat(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let slots: Vec<usize> = (0..view.node.inputs().len()).collect();
    let shapes = slots.iter().map(|&slot| Ok(view.dims(slot)?.into())).collect::<Result<Vec<Shape>, Undecided>>()?;
    let first = shapes.first().ok_or(Undecided::Rank)?;
    let axis = concat_axis(&view.known_site()?, first.len())?;
    for shape in &shapes {
        if shape.len() != first.len() {
            return Err(Undecided::Rank);
        }
        let differs = |(at, (a, b)): &(usize, (&Dim, &Dim))| *at != axis && !view.equal(a, b);
        if let Some((_, (a, b))) = first.iter().zip(shape).enumerate().find(differs) {
            return Err(Undecided::Equal(a.clone(), b.clone()));
        }
    }
    Ok(Moved { slots, map: IndexMap::concat(view.scope(), &shapes, axis)? })
}

fn is_equal(scope: &Scope, dim: Option<&Dim>, other: &Dim) -> bool {
    dim.is_some_and(|dim| scope.eq(dim, other).is_yes())
}

/// Whether a tensor of this shape is proved to have elements whenever one of another of the shapes has.
fn covers(scope: &Scope, first: &[Dim], shapes: &[&[Dim]]) -> bool {
    let one = Dim::constant(1);
    let mut others = shapes.iter().skip(1);
    others.all(|other| first.iter().zip(*other).all(|(a, b)| scope.ge(a, b).is_yes() || scope.ge(a, &one).is_yes()))
}

/// Whether a tensor of this shape is proved not to be empty.
fn has_elements(scope: &Scope, shape: &[Dim]) -> bool {
    shape.iter().all(|dim| scope.ge(dim, &Dim::constant(1)).is_yes())
}

fn eval_concat(cx: &mut EvalCx<'_>) -> EvalResult {
    let operands = (0..cx.input_count()).map(|at| cx.tensor(at)).collect::<Result<Vec<_>, _>>()?;
    let first = operands.first().ok_or_else(|| Decline::invalid("the node has no operands"))?;
    let axis = concat_axis(cx, first.rank())?;
    Ok(vec![Data::Tensor(concat_within(cx, &operands, axis)?)])
}

/// What tells Split the sizes of its parts.
enum Parts<T> {
    Sizes(Vec<T>),
    /// As many parts; whether the last may be smaller.
    Number(usize, bool),
    /// An operand nobody knows, of this many elements.
    Unknown(Option<usize>),
}

/// Split's number of parts when no sizes are given.
fn number_of_parts(site: &Site<'_>) -> Result<(usize, bool), Refusal> {
    let outputs = site.output_count();
    if site.version < 18 {
        return Ok((outputs, false));
    }
    match site.attr_int("num_outputs")? {
        None => Err(Refusal::invalid("both the operand 'split' and attribute 'num_outputs' are missing")),
        Some(number) if usize::try_from(number).ok() == Some(outputs) => Ok((outputs, true)),
        Some(number) => {
            Err(Refusal::invalid(format!("attribute 'num_outputs' is {number}, but the node has {outputs} outputs")))
        }
    }
}

/// Sizes and a number exclude each other.
fn check_exclusive(site: &Site<'_>) -> Result<(), Refusal> {
    match site.attr_int("num_outputs")? {
        Some(_) if site.version >= 18 => {
            Err(Refusal::invalid("both the operand 'split' and attribute 'num_outputs' are present"))
        }
        _ => Ok(()),
    }
}

fn infer_split(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let (dtype, outputs) = (data.dtype(), cx.output_count());
    let scope = cx.scope();
    let parts = match parts_inferred(cx, cx.input(1))? {
        Parts::Sizes(sizes) if sizes.len() != outputs => {
            return Err(Refusal::invalid(format!(
                "'split' has {} elements, but the node has {outputs} outputs",
                sizes.len()
            )));
        }
        Parts::Unknown(Some(sizes)) if sizes != outputs => {
            return Err(Refusal::invalid(format!("'split' has {sizes} elements, but the node has {outputs} outputs")));
        }
        parts => parts,
    };
    if let Parts::Sizes(sizes) = &parts {
        at_least(scope, sizes, 0)?;
    }
    let Some(shape) = data.shape() else { return Ok(vec![Fact::tensor(dtype, None); outputs]) };
    let axis = axis_in(cx.attr_int("axis")?.unwrap_or(0), shape.len())?;
    let Some(dim) = shape.get(axis) else { return Ok(Vec::new()) };
    let sizes = match parts {
        Parts::Sizes(sizes) => {
            if scope.eq(&scope.sum(&sizes), dim).is_no() {
                return Err(Refusal::invalid(format!(
                    "the sum of 'split' is not {}, the dim of the axis",
                    scope.format(dim)
                )));
            }
            with_rest(scope, dim, sizes)
        }
        Parts::Number(number, uneven) => equal_parts(scope, dim, number, uneven)?,
        Parts::Unknown(_) if outputs < 2 => (0..outputs).map(|_| super::dim_up_to(cx, dim)).collect(),
        Parts::Unknown(_) => {
            let mut sizes: Vec<Dim> = (1..outputs).map(|_| super::dim_up_to(cx, dim)).collect();
            let before = scope.sum(&sizes);
            scope.assume_le(&before, dim);
            sizes.push(scope.sub(dim, &before));
            sizes
        }
    };
    let part = |size: Dim| {
        let mut dims = shape.to_vec();
        dims.get_mut(axis).into_iter().for_each(|dim| *dim = size.clone());
        Fact::tensor(dtype, Some(dims))
    };
    Ok(sizes.into_iter().map(part).collect())
}

/// The sizes of the parts of a dim, where the last one is the rest if nothing else is known of it.
fn with_rest(scope: &Scope, dim: &Dim, mut sizes: Vec<Dim>) -> Vec<Dim> {
    if let Some((last, before)) = sizes.split_last_mut()
        && !before.is_empty()
        && last.as_symbol().is_some_and(|symbol| scope.is_fresh(symbol) && !dim.symbols().contains(&symbol))
    {
        *last = scope.sub(dim, &scope.sum(&*before));
    }
    sizes
}

/// The parts of a Split; the sizes are an attribute or an operand.
fn parts_inferred(site: &Site<'_>, sizes: Option<&Fact>) -> Result<Parts<Dim>, Refusal> {
    let list = if site.version >= 13 { List::Absent } else { List::attribute(site, "split")? };
    let by_number = || number_of_parts(site).map(|(number, uneven)| Parts::Number(number, uneven));
    let has_operand = site.has_input(1) && !(2..13).contains(&site.version);
    Ok(match list {
        List::Known(sizes) => Parts::Sizes(sizes.into_iter().map(Dim::constant).collect()),
        _ if !has_operand => by_number()?,
        _ => {
            check_exclusive(site)?;
            match (sizes.and_then(Fact::ints), sizes.and_then(Fact::constant_tensor)) {
                (Some(sizes), _) => Parts::Sizes(sizes),
                // Sizes of Split-1 are of the data's type.
                (None, Some(tensor)) => match whole(tensor) {
                    Some(sizes) => Parts::Sizes(sizes.into_iter().map(Dim::constant).collect()),
                    None => return Err(Refusal::invalid("the operand 'split' has no integer type")),
                },
                (None, None) => Parts::Unknown(sizes.and_then(Fact::static_len)),
            }
        }
    })
}

/// The sizes of a number of parts of a dim.
fn equal_parts(scope: &Scope, dim: &Dim, number: usize, uneven: bool) -> Result<Vec<Dim>, Refusal> {
    let parts = Dim::constant(i64::try_from(number).unwrap_or(i64::MAX));
    if let Some(size) = scope.exact_div(dim, &parts) {
        return Ok(vec![size; number]);
    }
    if !uneven {
        return match dim.as_const() {
            Some(dim) => Err(Refusal::invalid(format!(
                "the dim {dim} of the axis is not a multiple of the number of outputs ({number})"
            ))),
            None => Ok(vec![scope.floor_div(dim, &parts); number]),
        };
    }
    let size = scope.ceil_div(dim, &parts);
    let before = scope.mul(&size, &Dim::constant(i64::try_from(number.saturating_sub(1)).unwrap_or(i64::MAX)));
    let last = scope.sub(dim, &before);
    if last.as_const().is_some_and(|last| last < 0) {
        return Err(Refusal::invalid(format!(
            "the number of outputs ({number}) is too large for a dim of {}",
            scope.format(dim)
        )));
    }
    let mut sizes = vec![size; number.saturating_sub(1)];
    sizes.push(last);
    Ok(sizes)
}

fn map_split(view: &NodeFacts<'_>, output: usize) -> MapResult {
    let (scope, site, data) = (view.scope(), view.known_site()?, view.dims(0)?);
    let axis = axis_in(site.attr_int("axis")?.unwrap_or(0), data.len())?;
    let sizes = match parts_inferred(&site, view.fact(1))? {
        Parts::Sizes(sizes) if sizes.iter().all(|size| size.as_const().is_some()) => sizes,
        Parts::Number(number, uneven) => equal_parts(scope, data.get(axis).ok_or(Undecided::Rank)?, number, uneven)?,
        Parts::Sizes(_) | Parts::Unknown(_) => {
            let size = |at| Ok(view.result_dims(at)?.get(axis).ok_or(Undecided::Rank)?.clone());
            (0..view.node.outputs().len()).map(size).collect::<Result<Vec<Dim>, Undecided>>()?
        }
    };
    let (before, size) = (sizes.get(..output), sizes.get(output));
    let (before, size) = before.zip(size).ok_or(Undecided::Operands)?;
    Ok(Moved::of_first(IndexMap::range(scope, data, axis, scope.sum(before), 1, size.clone())?))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::ops::single::Single;
    use crate::tensor::{DType, Tensor};

    #[test]
    fn tensors_are_put_together() {
        let case = |axis: i64| Case::new("Concat", 13).with("axis", axis);
        let (a, b) = (tensor(&[2, 1], &[1i64, 2]), tensor(&[2, 2], &[3i64, 4, 5, 6]));
        assert!(case(1).eval([a.clone(), b.clone()]).same(&tensor(&[2, 3], &[1i64, 3, 4, 2, 5, 6])));
        assert!(case(-2).eval([b.clone(), b.clone()]).same(&tensor(&[4, 2], &[3i64, 4, 5, 6, 3, 4, 5, 6])));
        assert!(Case::new("Concat", 1).eval([a.clone(), a.clone()]).same(&tensor(&[2, 2], &[1i64, 1, 2, 2])));
        assert!(case(0).eval([strings(&[1], &["a"]), strings(&[2], &["", "c"])]).same(&strings(&[3], &["a", "", "c"])));
        assert_eq!(case(0).eval([iota(&[0, 2]), iota(&[0, 2])]).shape(), [0, 2]);
        case(0).fails([a.clone(), b.clone()]);
        case(0).fails([a.clone(), ints(&[1])]);
        case(0).fails([ints(&[1]), Tensor::vector(vec![1i32])]);
        Case::new("Concat", 4).fails([a.clone(), a]);
        let nibble = |byte: u8| Tensor::from_bytes(DType::Uint4, &[1], vec![byte].into()).unwrap();
        assert_eq!(case(0).eval([nibble(1), nibble(2), nibble(3)]).bytes().as_ref(), [0x21, 3]);
    }

    #[test]
    fn sizes_beyond_all_are_refused() {
        let join = |first, second| {
            let node = Single::new("Concat", 13).with("axis", 0i64);
            node.input(DType::Float, first).input(DType::Float, second).infer()
        };
        assert_eq!(join("9223372036854775806 1", "1 1"), ["float[9223372036854775807, 1]"]);
        assert!(join("9223372036854775807 1", "1 1")[0].starts_with("invalid"));
    }

    #[test]
    fn tensors_are_taken_apart() {
        let data = iota(&[2, 5]);
        let sizes = |parts: &[Tensor]| parts.iter().map(|part| part.shape()[1]).collect::<Vec<_>>();
        let parts = Case::new("Split", 18).with("axis", 1).with("num_outputs", 3).outputs(3).all([data.clone()]);
        assert_eq!(sizes(&parts), [2, 2, 1]);
        assert_eq!(values::<f32>(&parts[1]), [2.0, 3.0, 7.0, 8.0]);
        let parts = Case::new("Split", 13).with("axis", -1).outputs(2).all([data.clone(), ints(&[0, 5])]);
        assert_eq!(sizes(&parts), [0, 5]);
        let parts = Case::new("Split", 2).with("axis", 1).with("split", vec![4, 1]).outputs(2).all([data.clone()]);
        assert_eq!(sizes(&parts), [4, 1]);
        let float_sizes = Tensor::vector(vec![1f32, 4.0]);
        let parts = Case::new("Split", 1).with("axis", 1).outputs(2).all([data.clone(), float_sizes]);
        assert_eq!(sizes(&parts), [1, 4]);
        assert_eq!(Case::new("Split", 13).outputs(2).all([data.clone()])[1].shape(), [1, 5]);
        let five = iota(&[5]);
        Case::new("Split", 13).outputs(2).fails([five.clone()]);
        Case::new("Split", 18).outputs(2).fails([five.clone()]);
        Case::new("Split", 18).with("num_outputs", 4).outputs(4).fails([five.clone()]);
        Case::new("Split", 18).with("num_outputs", 2).outputs(2).fails([five.clone(), ints(&[2, 3])]);
        for wrong in [ints(&[2, 2]), ints(&[2, 2, 1]), ints(&[6, -1]), ints(&[i64::MAX, i64::MAX])] {
            Case::new("Split", 13).outputs(2).fails([five.clone(), wrong]);
        }
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let facts = vec![Some(vector(&scope, &["B", "?"])), Some(Fact::constant(ints(&[-1])))];
        let fact = Case::new("Concat", 13).with("axis", 0).infer(&scope, facts).remove(0);
        assert_eq!(elements(&scope, &fact), ["B", "?", "-1"]);
        let facts = vec![Some(shaped(&scope, &["B", "3"])), Some(shaped(&scope, &["C", "N"]))];
        let fact = Case::new("Concat", 13).with("axis", 0).infer(&scope, facts).remove(0);
        // At B = 0 and N = 5 the runtime takes the 5.
        assert_eq!(dims(&scope, &fact)[0], "B + C");
        assert_ne!(dims(&scope, &fact)[1], "3");
        for (first, second) in [(["B", "3"], ["C", "3"]), (["2", "3"], ["C", "N"]), (["B", "N"], ["2", "3"])] {
            let facts = vec![Some(shaped(&scope, &first)), Some(shaped(&scope, &second))];
            let fact = Case::new("Concat", 13).with("axis", 0).infer(&scope, facts).remove(0);
            assert_eq!(dims(&scope, &fact)[1], "3", "{first:?} {second:?}");
        }
        let case = Case::new("Split", 18).with("num_outputs", 2).outputs(2);
        let facts = case.infer(&scope, vec![Some(shaped(&scope, &["2*B", "3"]))]);
        assert_eq!(dims(&scope, &facts[1]), ["B", "3"]);
        let case = Case::new("Split", 13).outputs(2);
        let facts =
            case.infer(&scope, vec![Some(vector(&scope, &["A", "B", "C"])), Some(Fact::constant(ints(&[1, 2])))]);
        assert_eq!(elements(&scope, &facts[0]), ["A"]);
        assert_eq!(elements(&scope, &facts[1]), ["B", "C"]);
    }
}
