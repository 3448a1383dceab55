//! Index maps of layouts, and of operators that read or write positions which an operand holds.

use std::rc::Rc;

use super::lookup::{Reduction, batch_dims, element_starts, gather_axis, reduction, scatter_axis, tuple_places};
use super::pieces::concat_within;
use super::{positions, sizes};
use crate::dim::{Dim, Scope};
use crate::index_map::{Copies, IndexMap, MOST_ENTRIES, Undecided};
use crate::ir::{Data, Fact};
use crate::ops::traits::{Moved, Movement, NodeFacts, Place};
use crate::ops::{Budget, Decline, EvalCx, EvalResult, InferCx, Walk, axis_in, operator_of};
use crate::tensor::{self, StridedView, Tensor};

/// A map, or why it is not known.
pub(in crate::ops) type MapResult = Result<Moved, Undecided>;

/// Equal elements in equal order: Reshape, Squeeze, Unsqueeze, Flatten, Identity.
pub(in crate::ops) fn layout(view: &NodeFacts<'_>, output: usize) -> MapResult {
    Ok(Moved::of_first(IndexMap::reshape(view.scope(), view.dims(0)?, view.result_dims(output)?)))
}

/// Evaluates an operator that moves elements of its first operand at constant strides. Inference checks the operands and determines the shapes of the
/// results, and the index map determines the elements.
pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let hook = operator_of(cx.model, cx.node).and_then(|operator| operator.traits.index_map);
    eval_by(cx, hook, None)
}

/// The same by this map. `constant` stands in place of all constants of the map, if there is one.
pub(super) fn eval_by(
    cx: &mut EvalCx<'_>,
    hook: Option<fn(&NodeFacts<'_>, usize) -> MapResult>,
    constant: Option<&Tensor>,
) -> EvalResult {
    let data = cx.tensor(0)?;
    let operator = operator_of(cx.model, cx.node).ok_or(Undecided::NoMovement)?;
    let mut walk = Walk::new(Rc::new(Scope::new()), cx.slice_rule, Budget::default());
    let inputs: Vec<_> = cx.inputs().iter().map(|data| data.clone().map(Fact::constant)).collect();
    let results = (operator.infer)(&mut InferCx { site: cx.site, inputs: inputs.clone(), walk: &mut walk })?;
    let place = Place { site: cx.site, inputs: &inputs, results: &results };
    let outside = || Decline::OverBudget("the result exceeds the address space".into());
    let moved = results.iter().enumerate().map(|(output, result)| {
        if operator.traits.moves == Some(Movement::Layout) {
            return Ok(Data::Tensor(data.reshape(&result.static_shape().ok_or_else(outside)?)?));
        }
        let moved = hook.ok_or(Undecided::NoMovement)?(&NodeFacts::at(&place, &walk.facts), output)?;
        let (shape, copies) = result.static_shape().zip(moved.map.copies()).ok_or_else(outside)?;
        if shape.contains(&0) {
            cx.claim(data.dtype(), &shape)?;
            return Ok(Data::Tensor(Tensor::zeros(data.dtype(), &shape)?));
        }
        let copied = match &copies {
            Copies::View(0, view) => cx.gathered(data, view)?,
            _ => copied(cx, &moved.slots, constant, &copies)?,
        };
        Ok(Data::Tensor(copied.reshape(&shape)?))
    });
    moved.collect()
}

/// Copies elements of these operands, which have the type of the first operand.
fn copied(cx: &EvalCx<'_>, slots: &[usize], constant: Option<&Tensor>, copies: &Copies) -> Result<Tensor, Decline> {
    match copies {
        Copies::View(source, view) => {
            let data = cx.tensor(slots.get(*source).copied().ok_or(Undecided::Operands)?)?;
            cx.claim(data.dtype(), view.shape())?;
            Ok(tensor::gather(data, view)?)
        }
        Copies::Fill(fill, len) => {
            let dtype = cx.tensor(0)?.dtype();
            let element = constant.cloned().or_else(|| fill.to_element(dtype)).ok_or(Undecided::Operands)?;
            cx.claim(dtype, &[*len])?;
            Ok(tensor::gather(&element, &StridedView::of(&element).broadcast_to(&[*len])?)?)
        }
        Copies::Rows(rows, parts) => {
            let row = |part: &Copies| {
                let part = copied(cx, slots, constant, part)?;
                Ok(part.reshape(&[*rows, part.len().checked_div(*rows).unwrap_or(0)])?)
            };
            let parts = parts.iter().map(row).collect::<Result<Vec<_>, Decline>>()?;
            concat_within(cx, &parts.iter().collect::<Vec<_>>(), 1)
        }
    }
}

/// The integers of a constant operand.
pub(super) fn constant_ints(view: &NodeFacts<'_>, slot: usize) -> Result<Vec<i64>, Undecided> {
    let fact = view.fact(slot).ok_or(Undecided::Operands)?;
    if let Some(tensor) = fact.constant_tensor() {
        let is_small = i64::try_from(tensor.len()).is_ok_and(|len| len <= MOST_ENTRIES);
        return if is_small { tensor.to_i64s().ok_or(Undecided::Operands) } else { Err(Undecided::TableLimit) };
    }
    fact.const_ints().ok_or(Undecided::Operands)
}

/// The numbers of these dims.
pub(super) fn numbers(dims: &[Dim]) -> Result<Vec<i64>, Undecided> {
    dims.iter().map(Dim::as_const).collect::<Option<_>>().ok_or(Undecided::Symbolic)
}

/// A Gather by constant indices, or by indices that are computed at run time: then these are the second source.
pub(super) fn gather(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (scope, data, shape) = (view.scope(), view.dims(0)?, view.dims(1)?);
    let axis = gather_axis(&view.known_site()?, data.len())?;
    match constant_ints(view, 1) {
        Ok(indices) => Ok(Moved::of_first(IndexMap::gather(scope, data, axis, &numbers(shape)?, &indices)?)),
        Err(_) => positions::gather(view).or_else(|_| {
            let map = IndexMap::gather_at_run_time(scope, data, axis, shape)?;
            Ok(Moved { slots: vec![0, 1], map })
        }),
    }
}

pub(super) fn gather_elements(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (data, shape) = (view.dims(0)?, numbers(view.dims(1)?)?);
    let axis = gather_axis(&view.known_site()?, data.len())?;
    let indices = constant_ints(view, 1)?;
    Ok(Moved::of_first(IndexMap::gather_elements(view.scope(), data, axis, &shape, &indices)?))
}

pub(super) fn gather_nd(view: &NodeFacts<'_>, _: usize) -> MapResult {
    gather_nd_by_constants(view).or_else(|_| positions::gather_nd(view))
}

fn gather_nd_by_constants(view: &NodeFacts<'_>) -> MapResult {
    let (data, shape) = (view.dims(0)?, numbers(view.dims(1)?)?);
    let batch = batch_dims(&view.known_site()?)?;
    let (last, tuples) = shape.split_last().ok_or(Undecided::Rank)?;
    let count = usize::try_from(*last).map_err(|_| Undecided::Rank)?;
    let indices = constant_ints(view, 1)?;
    Ok(Moved::of_first(IndexMap::gather_nd(view.scope(), data, batch, tuples, count, &indices)?))
}

/// The rows of the updates that replace rows of the data, if each row is written at most once.
fn written(rows: usize, starts: &[usize]) -> Result<Vec<Option<i64>>, Undecided> {
    let mut written = vec![None; rows];
    for (update, &start) in (0i64..).zip(starts) {
        if written.get_mut(start).ok_or(Undecided::OutOfRange)?.replace(update).is_some() {
            return Err(Undecided::Disputed);
        }
    }
    Ok(written)
}

/// The number of rows, within the limit of a table.
fn row_count(dims: &[i64]) -> Result<(Vec<usize>, usize), Undecided> {
    let count = dims.iter().try_fold(1i64, |count, &dim| count.checked_mul(dim));
    let count = count.filter(|&count| count <= MOST_ENTRIES).ok_or(Undecided::TableLimit)?;
    Ok((sizes(dims)?, usize::try_from(count).map_err(|_| Undecided::Overflow)?))
}

/// A Scatter that replaces elements. Its operands have equal shapes but for the data.
pub(super) fn scatter_elements(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (site, data, updates) = (view.known_site()?, view.dims(0)?, view.dims(2)?);
    if reduction(&site)? != Reduction::None {
        return Err(Undecided::NoMovement);
    }
    let axis = scatter_axis(&site, data.len())?;
    let (indices, values) = (numbers(view.dims(1)?)?, constant_ints(view, 1)?);
    agree(view, updates, &indices.iter().map(|&size| Dim::constant(size)).collect::<Vec<_>>())?;
    let (shape, count) = row_count(&numbers(data)?)?;
    let starts = element_starts(&shape, &sizes(&indices)?, axis, &values)?;
    let map = IndexMap::scatter(view.scope(), data, updates, &Dim::constant(1), &written(count, &starts)?)?;
    Ok(Moved { slots: vec![0, 2], map })
}

/// A ScatterND that replaces the elements of a block, or rows.
pub(super) fn scatter_nd(view: &NodeFacts<'_>, _: usize) -> MapResult {
    if reduction(&view.known_site()?)? != Reduction::None {
        return Err(Undecided::NoMovement);
    }
    positions::scatter_nd(view).or_else(|_| scatter_rows(view))
}

/// A ScatterND that replaces rows. The axes that the indices point into have constant sizes.
fn scatter_rows(view: &NodeFacts<'_>) -> MapResult {
    let (data, updates) = (view.dims(0)?, view.dims(2)?);
    let (indices, values) = (numbers(view.dims(1)?)?, constant_ints(view, 1)?);
    let (last, tuples) = indices.split_last().ok_or(Undecided::Rank)?;
    let depth = usize::try_from(*last).map_err(|_| Undecided::Rank)?;
    let (named, rest) = data.split_at_checked(depth).ok_or(Undecided::Rank)?;
    let expected: Vec<Dim> = tuples.iter().map(|&size| Dim::constant(size)).chain(rest.iter().cloned()).collect();
    agree(view, updates, &expected)?;
    let (shape, count) = row_count(&numbers(named)?)?;
    let starts = tuple_places(&shape, &sizes(&indices)?, 0, &values)?;
    let after = view.scope().product(rest);
    let map = IndexMap::scatter(view.scope(), data, updates, &after, &written(count, &starts)?)?;
    Ok(Moved { slots: vec![0, 2], map })
}

/// Checks that a shape is proved to be the expected one.
fn agree(view: &NodeFacts<'_>, dims: &[Dim], expected: &[Dim]) -> Result<(), Undecided> {
    if dims.len() != expected.len() {
        return Err(Undecided::Rank);
    }
    match dims.iter().zip(expected).find(|(a, b)| !view.equal(a, b)) {
        Some((a, b)) => Err(Undecided::Equal(a.clone(), b.clone())),
        None => Ok(()),
    }
}

/// Compress of an axis, or of all elements in order, by a constant condition that selects no position beyond the axis.
pub(super) fn compress(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (scope, data) = (view.scope(), view.dims(0)?);
    let condition: Vec<bool> = constant_ints(view, 1)?.iter().map(|&selected| selected != 0).collect();
    let axis = view.known_site()?.attr_int("axis")?.map(|axis| axis_in(axis, data.len())).transpose()?;
    let flat = [scope.product(data)];
    let source = if axis.is_some() { data } else { &flat };
    let axis = axis.unwrap_or(0);
    let size = source.get(axis).ok_or(Undecided::Rank)?;
    let most = condition.iter().rposition(|&selected| selected).map_or(0, |last| last.saturating_add(1));
    let most = Dim::constant(i64::try_from(most).map_err(|_| Undecided::Overflow)?);
    if !scope.le(&most, size).is_yes() {
        return Err(Undecided::AtMost(most, size.clone()));
    }
    let map = IndexMap::compress(scope, source, axis, &condition)?;
    Ok(Moved::of_first(IndexMap::reshape(scope, data, source).then(scope, &map)?))
}
