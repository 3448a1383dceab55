//! Margins added and cut off.
//!
//! | operator | versions | what changes |
//! | --- | --- | --- |
//! | Pad | 1, 2, 11, 13, 18, 19, 21, 23, 24, 25 | 1: attribute `paddings`; 2: it is `pads`; 11: pads and the fill are operands; 18: `axes`; 19: mode wrap; the others add types |
//! | CenterCropPad | 18 | |
//!
//! Pads are all begins, then all ends; negative ones cut off, and what the other modes than constant repeat is what is left after
//! cutting. CenterCropPad brings each axis to its size by cutting or filling on both sides, where an odd element is cut or filled at
//! the end.
//!
//! Refused: pads that are no vector or leave less than nothing, axes named twice, repeating from nothing. Disputed and left alone: mode
//! reflect over more than the data less one element, which numpy reflects again and ONNX Runtime refuses.

use super::cells::elements_of;
use super::maps::{self, MapResult, constant_ints, numbers};
use super::moves;
use super::{List, axes_in, distinct_axes, of_rank, sizes};
use crate::dim::{Dim, Scope};
use crate::index_map::{Fill, IndexMap, PadMode, Undecided};
use crate::ir::{Fact, Scalar};
use crate::ops::traits::{Moved, NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Number, Tensor, dispatch_numeric};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Pad", &[1, 2, 11, 13, 18, 19, 21, 23, 24, 25], infer_pad, eval_pad)
        .with(Traits::NONE.index_map(map_pad).uniform(moves::padded).inferred_by_contents(1).passing_slices()),
    Operator::new("CenterCropPad", &[18], infer_center, maps::eval).with(Traits::NONE.index_map(map_center)),
];

/// Checks attribute `mode`, and returns its value if it is not `constant`.
fn repeating(site: &Site<'_>) -> Result<Option<PadMode>, Refusal> {
    match site.attr_str("mode")? {
        None | Some("constant") => Ok(None),
        Some("reflect") => Ok(Some(PadMode::Reflect)),
        Some("edge") => Ok(Some(PadMode::Edge)),
        Some("wrap") if site.version >= 19 => Ok(Some(PadMode::Wrap)),
        Some(mode) => Err(Refusal::invalid(format!("attribute 'mode' is '{mode}', which is not defined"))),
    }
}

/// The attribute that holds the pads before they became an operand.
fn pads_attribute(version: i64) -> &'static str {
    if version < 2 { "paddings" } else { "pads" }
}

/// Begins and ends for each of `rank` axes from pads for some of them. Axes not named have `none`.
fn per_axis<T: Clone>(pads: &[T], axes: Option<&[usize]>, rank: usize, none: T) -> Result<Vec<(T, T)>, Refusal> {
    let number = axes.map_or(rank, <[usize]>::len);
    let (begins, ends) = pads.split_at_checked(number).filter(|(_, ends)| ends.len() == number).ok_or_else(|| {
        Refusal::invalid(format!("'pads' has {} elements, but must have two for each of the {number} axes", pads.len()))
    })?;
    let mut result = vec![(none.clone(), none); rank];
    for (at, (begin, end)) in begins.iter().zip(ends).enumerate() {
        let axis = axes.map_or(Some(at), |axes| axes.get(at).copied());
        if let Some(place) = axis.and_then(|axis| result.get_mut(axis)) {
            *place = (begin.clone(), end.clone());
        }
    }
    Ok(result)
}

/// The pads of the versions that have them as an attribute.
fn stated_pads<'a>(cx: &InferCx<'a>) -> Result<&'a [i64], Refusal> {
    let name = pads_attribute(cx.version);
    cx.attr_ints(name)?.ok_or_else(|| Refusal::invalid(format!("attribute '{name}' is missing")))
}

fn infer_pad(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    repeating(cx)?;
    let axes = if cx.version < 18 { List::Absent } else { List::operand(cx, 3) };
    let stated = if cx.version < 11 { Some(stated_pads(cx)?) } else { None };
    // ONNX Runtime takes a matrix of one row as long as it computes it, and does not load the model where it is constant.
    match cx.input(1).and_then(Fact::rank).filter(|_| stated.is_none()) {
        None | Some(1) => {}
        Some(2) => return Err(Refusal::lax("the operand 'pads' is not a vector")),
        Some(_) => return Err(Refusal::invalid("the operand 'pads' is not a vector")),
    }
    let Some(shape) = data.shape() else {
        let known = if let Some(pads) = stated { Some(pads.len()) } else { cx.input(1).and_then(Fact::static_len) };
        let rank = known.filter(|_| matches!(axes, List::Absent)).map(|pads| pads / 2);
        return Ok(vec![of_rank(cx, dtype, rank)]);
    };
    let rank = shape.len();
    let axes = match axes {
        List::Absent => None,
        List::Known(axes) => Some(distinct_axes(&axes, rank)?),
        List::Unknown(_) => return Ok(vec![of_rank(cx, dtype, Some(rank))]),
    };
    let zero = Scalar::Int(Dim::constant(0));
    let pads = if let Some(pads) = stated {
        pads.iter().map(|&pad| Scalar::Int(Dim::constant(pad))).collect()
    } else {
        let number = axes.as_ref().map_or(rank, Vec::len);
        elements_of(cx.required(1)?).unwrap_or_else(|| vec![Scalar::Unknown; number.saturating_mul(2)])
    };
    let pads = per_axis(&pads, axes.as_deref(), rank, zero)?;
    let scope = cx.scope();
    let mut dims = Vec::with_capacity(rank);
    for (dim, (begin, end)) in shape.iter().zip(&pads) {
        if let (Some(begin), Some(end)) = (begin.as_const_int(), end.as_const_int())
            && [begin, end, dim.as_const().unwrap_or(0)].map(i128::from).iter().sum::<i128>() > i64::MAX.into()
        {
            return Err(Refusal::invalid("the sum of a dim and the two pads of the axis overflows"));
        }
        let size = match (begin, end) {
            (Scalar::Int(begin), Scalar::Int(end)) => scope.add(dim, &scope.add(begin, end)),
            _ => cx.fresh_dim(),
        };
        if size.as_const().is_some_and(|size| size < 0) {
            return Err(Refusal::invalid(format!(
                "negative pads remove more elements than the dim {}",
                scope.format(dim)
            )));
        }
        dims.push(size);
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

/// The fill as an attribute, which has one type, gives it; or the zero of a type.
fn fill_of(dtype: DType, value: f32) -> Option<Tensor> {
    if value == 0.0 {
        // A type without a zero has nothing to fill with.
        return Tensor::zeros(dtype, &[]).ok().filter(|_| dtype != DType::Float8E8M0);
    }
    dispatch_numeric!(dtype, T => Some(Tensor::scalar(<T as Number>::from_f64(f64::from(value))?)), else => None)
}

fn map_pad(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let fill = constant_fill(view, &view.known_site()?).as_ref().and_then(Fill::of_element);
    map_filled(view, fill)
}

/// The map with a constant that the evaluation replaces: an index map has none for strings and complex numbers.
fn map_without_constant(view: &NodeFacts<'_>, _: usize) -> MapResult {
    map_filled(view, Fill::of_element(&Tensor::scalar(0.0f32)))
}

fn eval_pad(cx: &mut EvalCx<'_>) -> EvalResult {
    if repeating(&cx.site)?.is_some() {
        return maps::eval(cx);
    }
    let dtype = cx.tensor(0)?.dtype();
    let fill = match () {
        () if cx.site.version >= 11 && cx.site.has_input(2) => Some(cx.tensor(2)?.clone()),
        () if cx.site.version < 11 => fill_of(dtype, cx.site.attr_float("value")?.unwrap_or(0.0)),
        () => fill_of(dtype, 0.0),
    };
    let fill = fill.filter(|fill| fill.dtype() == dtype && fill.len() == 1).ok_or(Undecided::Operands)?.reshape(&[])?;
    maps::eval_by(cx, Some(map_without_constant), Some(&fill))
}

fn map_filled(view: &NodeFacts<'_>, fill: Option<Fill>) -> MapResult {
    let (scope, site, data) = (view.scope(), view.known_site()?, view.dims(0)?);
    let axes = if site.version >= 18 && site.has_input(3) {
        Some(distinct_axes(&constant_ints(view, 3)?, data.len())?)
    } else {
        None
    };
    let pads: Vec<Dim> = if site.version < 11 {
        site.attr_ints(pads_attribute(site.version))?.unwrap_or_default().iter().copied().map(Dim::constant).collect()
    } else {
        view.fact(1).and_then(Fact::ints).ok_or(Undecided::Operands)?
    };
    let mode = match repeating(&site)? {
        Some(mode) => mode,
        None => PadMode::Constant(fill.ok_or(Undecided::Operands)?),
    };
    let pads = per_axis(&pads, axes.as_deref(), data.len(), Dim::constant(0))?;
    Ok(Moved::of_first(map_of_pads(scope, data, &pads, mode)?))
}

/// Axis by axis: first the cut that negative pads make, then the margins.
fn map_of_pads(scope: &Scope, data: &[Dim], pads: &[(Dim, Dim)], mode: PadMode) -> Result<IndexMap, Undecided> {
    let zero = Dim::constant(0);
    let mut map = IndexMap::identity(scope, data);
    for (axis, (begin, end)) in pads.iter().enumerate() {
        let cut = [cut_by(scope, begin)?, cut_by(scope, end)?];
        if cut.iter().any(|cut| !cut.is_const(0)) {
            let size = data.get(axis).ok_or(Undecided::Rank)?;
            let both = scope.sum(&cut);
            if matches!(mode, PadMode::Constant(_)) && scope.gt(&both, size).is_yes() {
                // One pad removes all elements, and some of those that the other one adds.
                let range = IndexMap::range(scope, map.result(), axis, zero.clone(), 1, zero.clone())?;
                map = map.then(scope, &range)?;
                let whole = scope.sum([begin, size, end]);
                let padded = IndexMap::pad(scope, map.result(), axis, (&zero, &whole), mode)?;
                map = map.then(scope, &padded)?;
                continue;
            }
            if !scope.le(&both, size).is_yes() {
                return Err(Undecided::AtMost(both, size.clone()));
            }
            let [start, _] = cut;
            let range = IndexMap::range(scope, map.result(), axis, start, 1, scope.sub(size, &both))?;
            map = map.then(scope, &range)?;
        }
        let margin = |pad: &Dim| if scope.ge(pad, &zero).is_yes() { pad.clone() } else { zero.clone() };
        let margins = (margin(begin), margin(end));
        if mode == PadMode::Wrap
            && let Some(turns) = turns(scope, map.result(), axis, &margins)?
        {
            map = map.then(scope, &turns)?;
        } else if !(margins.0.is_const(0) && margins.1.is_const(0)) {
            let padded = IndexMap::pad(scope, map.result(), axis, (&margins.0, &margins.1), mode)?;
            map = map.then(scope, &padded)?;
        }
    }
    Ok(map)
}

/// The map of a Pad that repeats an axis of constant size more than once: a range of a Tile.
fn turns(scope: &Scope, shape: &[Dim], axis: usize, margins: &(Dim, Dim)) -> Result<Option<IndexMap>, Undecided> {
    let numbers = [&margins.0, shape.get(axis).ok_or(Undecided::Rank)?, &margins.1].map(Dim::as_const);
    let [Some(before), Some(size), Some(after)] = numbers else { return Ok(None) };
    if size < 1 || before.max(after) <= size {
        return Ok(None);
    }
    let whole = |pad: i64| Dim::constant(pad.div_euclid(size).saturating_add(1));
    let mut repeats = vec![Dim::constant(1); shape.len()];
    *repeats.get_mut(axis).ok_or(Undecided::Rank)? = scope.sum([&whole(before), &Dim::constant(1), &whole(after)]);
    let tile = IndexMap::tile(scope, shape, &repeats)?;
    let (start, size) = (scope.mul(&whole(before), &Dim::constant(size)), Dim::constant(size));
    let len = scope.sum([&margins.0, &size, &margins.1]);
    let range = IndexMap::range(scope, tile.result(), axis, scope.sub(&start, &margins.0), 1, len)?;
    tile.then(scope, &range).map(Some)
}

/// The number of elements that a pad cuts off; the sign of the pad must be known.
fn cut_by(scope: &Scope, pad: &Dim) -> Result<Dim, Undecided> {
    let zero = Dim::constant(0);
    if scope.ge(pad, &zero).is_yes() {
        Ok(zero)
    } else if scope.le(pad, &zero).is_yes() {
        Ok(scope.neg(pad))
    } else {
        Err(Undecided::AtMost(zero, pad.clone()))
    }
}

/// The constant of a Pad in mode constant.
fn constant_fill(view: &NodeFacts<'_>, site: &Site<'_>) -> Option<Tensor> {
    if site.version >= 11 && site.has_input(2) {
        let fill = view.fact(2)?.constant_tensor()?;
        return Some(fill.clone()).filter(|fill| view.dtype(0) == Some(fill.dtype()));
    }
    let value = if site.version < 11 { site.attr_float("value").ok()?.unwrap_or(0.0) } else { 0.0 };
    fill_of(view.dtype(0)?, value)
}

/// The axes CenterCropPad's sizes are of.
fn center_axes(site: &Site<'_>, rank: usize) -> Result<Vec<usize>, Refusal> {
    match site.attr_ints("axes")? {
        Some(axes) => distinct_axes(axes, rank),
        None => axes_in(&(0..rank as i64).collect::<Vec<_>>(), rank),
    }
}

fn infer_center(cx: &mut InferCx<'_>) -> InferResult {
    let (data, target) = (cx.required(0)?, cx.required(1)?);
    let dtype = data.dtype();
    let Some(shape) = data.shape() else {
        // ONNX Runtime takes a single size for every axis, as the body of the function does.
        let rank = target.static_len().filter(|&sizes| sizes > 1 && cx.attribute("axes").is_none());
        return Ok(vec![of_rank(cx, dtype, rank)]);
    };
    let axes = center_axes(cx, shape.len())?;
    let elements = elements_of(target).unwrap_or_else(|| vec![Scalar::Unknown; axes.len()]);
    if elements.len() != axes.len() {
        let reason = format!("'pads' has {} elements, but 'axes' has {}", elements.len(), axes.len());
        return Err(if elements.len() == 1 { Refusal::lax(reason) } else { Refusal::invalid(reason) });
    }
    let mut dims = shape.to_vec();
    for (&axis, element) in axes.iter().zip(elements) {
        let Some(dim) = dims.get_mut(axis) else { continue };
        *dim = match element {
            Scalar::Int(size) if size.as_const().is_some_and(|size| size < 0) => {
                return Err(Refusal::lax("an element of 'shape' is negative"));
            }
            // Of a size below 0 the text says nothing, and ONNX Runtime makes it 0.
            Scalar::Int(size) => cx.scope().max(&Dim::constant(0), &size),
            _ => cx.fresh_dim(),
        };
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

/// The pads that bring dims to these sizes around the middle.
fn center_pads(from: &[usize], to: &[usize]) -> Result<Vec<(i64, i64)>, Decline> {
    let pads = from.iter().zip(to).map(|(&from, &to)| {
        let difference = i64::try_from(to).ok()?.checked_sub(i64::try_from(from).ok()?)?;
        Some((difference / 2, difference - difference / 2))
    });
    pads.collect::<Option<_>>().ok_or_else(|| Decline::OverBudget("the result exceeds the address space".into()))
}

/// The sizes are constants before and after.
fn map_center(view: &NodeFacts<'_>, output: usize) -> MapResult {
    let (scope, data) = (view.scope(), view.dims(0)?);
    let static_sizes = |dims: &[Dim]| -> Result<Vec<usize>, Undecided> { Ok(sizes(&numbers(dims)?)?) };
    let pads = center_pads(&static_sizes(data)?, &static_sizes(view.result_dims(output)?)?)?;
    let pads: Vec<_> = pads.into_iter().map(|(begin, end)| (Dim::constant(begin), Dim::constant(end))).collect();
    let zero = fill_of(view.dtype(0).ok_or(Undecided::Operands)?, 0.0).as_ref().and_then(Fill::of_element);
    let mode = PadMode::Constant(zero.ok_or(Undecided::Operands)?);
    Ok(Moved::of_first(map_of_pads(scope, data, &pads, mode)?))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;
    use crate::ops::Decline;
    use crate::ops::single::Single;

    fn pad(mode: &'static str, data: &[f32], begin: i64, end: i64) -> Result<Vec<f32>, Decline> {
        let data = tensor(&[data.len()], data);
        let padded = Case::new("Pad", 21).text("mode", mode).try_all(&[Some(data), Some(ints(&[begin, end]))])?;
        Ok(values(&padded[0]))
    }

    #[test]
    fn sizes_beyond_all_are_refused() {
        let padded = |end: i64| {
            let node = Single::new("Pad", 13).input(DType::Float, "n");
            node.values(&[2], &[i64::MAX, end]).infer().remove(0)
        };
        assert!(padded(1).starts_with("invalid"));
        assert_eq!(padded(-i64::MAX), "float[n]");
    }

    #[test]
    fn margins_of_every_mode() {
        let five = [1f32, 2.0, 3.0, 4.0, 5.0];
        let three = [1f32, 2.0, 3.0];
        assert_eq!(pad("constant", &three, 1, 2).unwrap(), [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
        assert_eq!(pad("edge", &three, 1, 2).unwrap(), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0]);
        assert_eq!(pad("reflect", &three, 2, 1).unwrap(), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
        let around = [2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0];
        assert_eq!(pad("wrap", &three, 5, 4).unwrap(), around);
        // What is cut off is not there to be repeated.
        assert_eq!(pad("reflect", &five, -2, 2).unwrap(), [3.0, 4.0, 5.0, 4.0, 3.0]);
        assert_eq!(pad("wrap", &five, -2, 4).unwrap(), [3.0, 4.0, 5.0, 3.0, 4.0, 5.0, 3.0]);
        assert_eq!(pad("edge", &five, 2, -3).unwrap(), [1.0, 1.0, 1.0, 2.0]);
        assert!(pad("constant", &three, -2, -1).unwrap().is_empty());
        assert_eq!(pad("constant", &three, -4, 4).unwrap(), [0.0; 3]);
        assert_eq!(pad("constant", &three, 4, -4).unwrap(), [0.0; 3]);
        assert_eq!(pad("constant", &three, -5, 3).unwrap(), [0.0]);
        assert_eq!(pad("constant", &[], 1, 1).unwrap(), [0.0; 2]);
        assert!(matches!(pad("constant", &three, -2, -2), Err(Decline::Invalid(_))));
        assert!(pad("edge", &[], 1, 0).is_err());
        assert!(matches!(pad("reflect", &three, 3, 0), Err(Decline::Unsupported(_))));
        assert!(matches!(pad("constant", &three, i64::MAX, i64::MAX), Err(Decline::Invalid(_))));
        assert!(pad("constant", &three, i64::MIN, 0).is_err());
        assert!(pad("constant", &three, 1 << 50, 0).is_err());
        assert!(pad("circular", &three, 1, 0).is_err());
    }

    #[test]
    fn versions_of_pad() {
        let data = iota(&[2, 2]);
        let expected = tensor(&[2, 3], &[9f32, 0.0, 1.0, 9.0, 2.0, 3.0]);
        let old = |name| Case::new("Pad", if name == "pads" { 2 } else { 1 }).with(name, vec![0, 1, 0, 0]);
        let value = crate::ir::Attribute::Float(9.0);
        assert!(old("paddings").with("value", value.clone()).eval([data.clone()]).same(&expected));
        assert!(old("pads").with("value", value).eval([data.clone()]).same(&expected));
        let nine = Tensor::scalar(9f32);
        assert!(Case::new("Pad", 11).eval([data.clone(), ints(&[0, 1, 0, 0]), nine.clone()]).same(&expected));
        let axes = Case::new("Pad", 18).eval([data.clone(), ints(&[1, 0]), nine, ints(&[-1])]);
        assert!(axes.same(&expected));
        let words = Case::new("Pad", 13).eval([strings(&[1], &["a"]), ints(&[1, 0])]);
        assert!(words.same(&strings(&[2], &["", "a"])));
        let nibbles = Tensor::from_bytes(DType::Int4, &[3], vec![0x21, 0x03].into()).unwrap();
        assert_eq!(Case::new("Pad", 21).eval([nibbles, ints(&[1, 1])]).bytes().as_ref(), [0x10, 0x32, 0]);
        Case::new("Pad", 13).fails([data.clone(), ints(&[1, 0])]);
        let twice = [Some(data), Some(ints(&[1, 1, 0, 0])), None, Some(ints(&[0, -2]))];
        assert!(Case::new("Pad", 18).try_all(&twice).is_err());
    }

    #[test]
    fn pads_are_a_vector() {
        let pads = |shape: &[usize]| {
            let node = Single::new("Pad", 18).input(DType::Float, "N M");
            node.values(shape, &[0i64, 1, 0, 1]).infer().remove(0)
        };
        assert_eq!(pads(&[4]), "float[N, M + 2]");
        assert!(pads(&[1, 4]).starts_with("invalid"));
        assert!(pads(&[1, 1, 4]).starts_with("invalid"));
    }

    #[test]
    fn centers() {
        let five = tensor(&[5], &[1f32, 2.0, 3.0, 4.0, 5.0]);
        let center = |size: i64| values::<f32>(&Case::new("CenterCropPad", 18).eval([five.clone(), ints(&[size])]));
        assert_eq!(center(2), [2.0, 3.0]);
        assert_eq!(center(8), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0]);
        assert!(center(0).is_empty());
        let axes = Case::new("CenterCropPad", 18).with("axes", vec![-1, 0]);
        assert_eq!(axes.eval([iota(&[4, 3, 5]), ints(&[2, 6])]).shape(), [6, 3, 2]);
        axes.fails([iota(&[4, 3, 5]), ints(&[2])]);
    }

    #[test]
    fn a_single_size_tells_no_rank() {
        let scope = Rc::new(Scope::new());
        let rank = |sizes: &[i64]| {
            let facts = vec![Some(Fact::tensor(Some(DType::Float), None)), Some(Fact::constant(ints(sizes)))];
            Case::new("CenterCropPad", 18).infer(&scope, facts)[0].shape().map(<[Dim]>::len)
        };
        assert_eq!(rank(&[4]), None);
        assert_eq!(rank(&[4, 4]), Some(2));
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let pads = Fact::constant(ints(&[0, 1, 0, 2]));
        let facts = vec![Some(shaped(&scope, &["B", "S"])), Some(pads)];
        assert_eq!(dims(&scope, &Case::new("Pad", 13).infer(&scope, facts)[0]), ["B", "S + 3"]);
        let facts = vec![Some(shaped(&scope, &["B", "S"])), Some(vector(&scope, &["0", "N", "?", "1"]))];
        let fact = Case::new("Pad", 13).infer(&scope, facts).remove(0);
        assert_eq!(dims(&scope, &fact)[1], "S + N + 1");
        let facts = vec![Some(vector(&scope, &["B", "C"])), Some(Fact::constant(ints(&[1, -1])))];
        assert_eq!(elements(&scope, &Case::new("Pad", 13).infer(&scope, facts)[0]), ["0", "B"]);
    }
}
