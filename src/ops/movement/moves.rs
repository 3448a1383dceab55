//! What movements say of the axes: where the elements along each come from, what becomes of positions and of operands that repeat,
//! and when a look-up cannot fail.

use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Fact, ValueId};
use crate::ops::axis_in;
use crate::ops::slice_cuts::{SliceCuts, slice_cuts};
use crate::ops::traits::{AxisSource, Counting, NodeFacts, Repetition, broadcast_narrow};
use crate::slicing::Bound;
use crate::tensor::Tensor;

use AxisSource::{Part, Repeated, Whole};

/// Where the elements along each axis come from.
type Sources = Option<Vec<Option<AxisSource>>>;

/// Nothing is said.
pub(super) fn untold(_: &NodeFacts<'_>) -> Sources {
    None
}

// ---- layouts ----

/// Axes that a Reshape or Flatten leaves as they are.
pub(super) fn surviving_axes(view: &NodeFacts<'_>) -> Sources {
    let (from, to) = (view.shape(0)?, view.result_shape()?);
    Some(surviving(view.scope(), from, to).into_iter().map(|own| own.map(Whole)).collect())
}

/// Axes of equal dims, and equal products of the dims before and behind them. A dim of 1 has no place of its own.
fn surviving(scope: &Scope, from: &[Dim], to: &[Dim]) -> Vec<Option<usize>> {
    let equal = |a: &Dim, b: &Dim| scope.eq(a, b).is_yes();
    let before = |dims: &[Dim], axis: usize| scope.product(dims.iter().take(axis));
    let behind = |dims: &[Dim], axis: usize| scope.product(dims.iter().skip(axis.saturating_add(1)));
    let survives = |axis: usize, dim: &Dim| {
        (0..from.len()).find(|&own| {
            !dim.is_const(1)
                && from.get(own).is_some_and(|own| equal(own, dim))
                && equal(&before(from, own), &before(to, axis))
                && equal(&behind(from, own), &behind(to, axis))
        })
    };
    to.iter().enumerate().map(|(axis, dim)| survives(axis, dim)).collect()
}

/// The axes that are not squeezed, in order.
pub(super) fn squeezed_axes(view: &NodeFacts<'_>) -> Sources {
    let rank = view.shape(0)?.len();
    let gone = view.axes(1, rank)?;
    Some((0..rank).filter(|axis| !gone.contains(axis)).map(|axis| Some(Whole(axis))).collect())
}

/// The operand's axes in order, and new ones of size 1.
pub(super) fn unsqueezed_axes(view: &NodeFacts<'_>) -> Sources {
    let rank = view.result_shape()?.len();
    let new = view.axes(1, rank)?;
    let mut own = 0..;
    Some((0..rank).map(|axis| if new.contains(&axis) { Some(Repeated) } else { own.next().map(Whole) }).collect())
}

pub(super) fn layout(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    node.layout()
}

// ---- spreading ----

/// An axis is the operand's, or repeats its one place.
pub(super) fn spread_axes(view: &NodeFacts<'_>) -> Sources {
    let (from, to) = (view.shape(0)?, view.result_shape()?);
    let added = to.len().checked_sub(from.len())?;
    let source = |(axis, goal): (usize, &Dim)| {
        let Some(own) = axis.checked_sub(added) else { return Some(Repeated) };
        match from.get(own)? {
            dim if view.equal(dim, goal) => Some(Whole(own)),
            dim if dim.is_const(1) => Some(Repeated),
            _ => None,
        }
    };
    Some(to.iter().enumerate().map(source).collect())
}

/// An axis is the operand's, or goes over it several times.
pub(super) fn tiled_axes(view: &NodeFacts<'_>) -> Sources {
    let from = view.shape(0)?;
    let sources = spread_axes(view)?.into_iter().enumerate();
    Some(sources.map(|(axis, source)| source.or(from.get(axis).map(|_| Part(axis)))).collect())
}

pub(super) fn spread_counts(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    operand(0)?.spread(view.scope(), shape)
}

/// Spreading what is spread: the sizes that are asked for remain.
pub(super) fn expanded_narrow(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    let narrow = node.smaller(node.view.input(0)?)?;
    if !node.others_stay() {
        return None;
    }
    let sizes = node.view.fact(1)?.ints()?;
    broadcast_narrow(node.view.scope(), &[narrow, &sizes], node.goal)
}

// ---- Transpose ----

/// Axis `i` is axis `perm[i]` of the operand; without `perm` the order is reversed.
pub(super) fn permuted_axes(view: &NodeFacts<'_>) -> Sources {
    let rank = view.shape(0)?.len();
    let perm: Vec<usize> = match view.node.attribute("perm") {
        None => (0..rank).rev().collect(),
        Some(Attribute::Ints(perm)) if perm.len() == rank => {
            perm.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect::<Option<_>>()?
        }
        Some(_) => return None,
    };
    Some(perm.into_iter().map(|axis| Some(Whole(axis))).collect())
}

/// What is told of each axis of the operand, in the order of the result's axes.
fn permuted<T: Clone>(view: &NodeFacts<'_>, told: &[T]) -> Option<Vec<T>> {
    let axes = permuted_axes(view)?.into_iter();
    axes.map(|source| match source {
        Some(Whole(axis)) => told.get(axis).cloned(),
        _ => None,
    })
    .collect()
}

pub(super) fn permuted_counts(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    let from = operand(0)?;
    let steps = permuted(view, &from.steps)?;
    (steps.len() == shape.len()).then_some(Counting { shape: shape.to_vec(), offset: from.offset, steps })
}

pub(super) fn permuted_narrow(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    permuted(&node.view, node.only_first()?.0)
}

// ---- Slice ----

/// An axis that is cut gives some of its places.
pub(in crate::ops) fn sliced_axes(view: &NodeFacts<'_>) -> Sources {
    let SliceCuts { axes, .. } = slice_cuts(view.model, view.facts, view.id)?;
    let source = |(axis, cut): (usize, &Option<_>)| Some(if cut.is_some() { Part(axis) } else { Whole(axis) });
    Some(axes.iter().enumerate().map(source).collect())
}

/// From `begin` on, every so many: the offset moves, and the steps grow.
pub(in crate::ops) fn sliced_counts(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    let mut from = operand(0)?;
    if from.is_splat() {
        return Some(Counting::splat(shape.to_vec(), from.offset));
    }
    let scope = view.scope();
    let cuts = slice_cuts(view.model, view.facts, view.id)?;
    for (step, cut) in from.steps.iter_mut().zip(&cuts.axes) {
        let Some(cut) = cut else { continue };
        let begin = match &cut.range.begin {
            Bound::At(begin) => begin.as_const().filter(|begin| *begin >= 0)?,
            Bound::Open => 0,
            Bound::Unknown => return None,
        };
        let stride = cut.range.step.filter(|stride| *stride > 0)?;
        from.offset = scope.add(&from.offset, &scope.mul(step, &Dim::constant(begin)));
        *step = scope.mul(step, &Dim::constant(stride));
    }
    Some(Counting { shape: shape.to_vec(), ..from })
}

/// An axis that is cut must be there in full.
pub(in crate::ops) fn sliced_narrow(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    let (narrow, wide) = node.only_first()?;
    let cuts = slice_cuts(node.view.model, node.view.facts, node.view.id)?;
    let mut shape = narrow.to_vec();
    for (axis, _) in cuts.axes.iter().enumerate().filter(|(_, cut)| cut.is_some()) {
        if !node.view.equal(narrow.get(axis)?, wide.get(axis)?) {
            return None;
        }
        *shape.get_mut(axis)? = node.goal.get(axis)?.clone();
    }
    Some(shape)
}

// ---- Gather and its kin ----

/// The axes around the one that is looked up are whole; the indices take its place.
pub(super) fn gathered_axes(view: &NodeFacts<'_>) -> Sources {
    let (rank, indices) = (view.shape(0)?.len(), view.shape(1)?.len());
    let axis = view.axis(0)?;
    let taken = match indices {
        0 => Vec::new(),
        1 => vec![Some(Part(axis))],
        // Which entry it is depends on several axes.
        _ => vec![None; indices],
    };
    let before = (0..axis).map(|axis| Some(Whole(axis)));
    Some(before.chain(taken).chain((axis.saturating_add(1)..rank).map(|axis| Some(Whole(axis)))).collect())
}

/// What is spread along axes that are not looked up stays so; indices that are spread look the same entry up again and again.
pub(super) fn gathered_narrow(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    let view = &node.view;
    let (data, indices) = (view.input(0)?, view.input(1)?);
    let axis = view.axis(0)?;
    if node.smaller(data).is_none() {
        // Entries are looked up one by one; each brings the data's other axes.
        if axis != 0 {
            return None;
        }
        let mut shape = node.dims(indices)?.to_vec();
        shape.extend_from_slice(node.wide(data)?.get(1..)?);
        return broadcast_narrow(view.scope(), &[&shape], node.goal);
    }
    let (narrow, wide) = node.only_first()?;
    if !view.equal(narrow.get(axis)?, wide.get(axis)?) {
        return None;
    }
    let mut shape = narrow.get(..axis)?.to_vec();
    shape.extend_from_slice(node.wide(indices)?);
    shape.extend_from_slice(narrow.get(axis.checked_add(1)?..)?);
    Some(shape)
}

/// Whether an index is one of an axis of this size, counted from either end.
fn is_inside(view: &NodeFacts<'_>, index: &Dim, dim: &Dim) -> bool {
    let scope = view.scope();
    let forward = view.at_least(index, 0) && scope.lt(index, dim).is_yes();
    forward || scope.lt(index, &Dim::constant(0)).is_yes() && scope.ge(index, &scope.neg(dim)).is_yes()
}

/// Whether every index of a Gather or GatherElements is inside of the axis. Of no index nothing is proved.
pub(super) fn indices_inside(view: &NodeFacts<'_>) -> bool {
    let known = || {
        let dim = view.shape(0)?.get(view.axis(0)?)?;
        if let Some(indices) = view.fact(1)?.ints() {
            return Some(!indices.is_empty() && indices.iter().all(|index| is_inside(view, index, dim)));
        }
        let (low, high) = (view.positions)(view.input(1)?)?.bounds(view.scope())?;
        Some(view.at_least(&low, 0) && view.scope().lt(&high, dim).is_yes())
    };
    known() == Some(true)
}

/// Whether every index of a GatherND is inside of its axis.
pub(super) fn tuples_inside(view: &NodeFacts<'_>) -> bool {
    let known = || {
        let batch = usize::try_from(view.int("batch_dims", 0)?).ok()?;
        let width = usize::try_from(view.shape(1)?.last()?.as_const()?).ok().filter(|width| *width > 0)?;
        let dims = view.shape(0)?.get(batch..)?.get(..width)?;
        let indices = view.fact(1)?.ints()?;
        Some(
            !indices.is_empty()
                && indices
                    .chunks(width)
                    .all(|tuple| tuple.iter().zip(dims).all(|(index, dim)| is_inside(view, index, dim))),
        )
    };
    known() == Some(true)
}

/// An index needs so many entries, be it fixed or the first or last of positions that are counted out (`laws/bounds.py`).
pub(super) fn gather_needs(view: &NodeFacts<'_>) -> Vec<(Dim, i64)> {
    looked_up(view).unwrap_or_default()
}

fn looked_up(view: &NodeFacts<'_>) -> Option<Vec<(Dim, i64)>> {
    if view.node.is("GatherND") {
        return tuples_looked_up(view);
    }
    looked_up_along(view, view.axis(0)?, view.input(1)?)
}

/// The same for GatherND, if a Concat of columns makes its indices.
fn tuples_looked_up(view: &NodeFacts<'_>) -> Option<Vec<(Dim, i64)>> {
    let rank = view.shape(1)?.len();
    let columns = view.model.node(view.model.value(view.input(1)?).producer()?).filter(|node| node.is("Concat"))?;
    let is_last = matches!(columns.attribute("axis"), Some(Attribute::Int(axis)) if axis_in(*axis, rank).ok() == rank.checked_sub(1));
    if view.int("batch_dims", 0)? != 0 || !is_last {
        return None;
    }
    let mut needs = Vec::new();
    for (axis, &column) in columns.inputs().iter().enumerate() {
        let is_one =
            column.and_then(|column| view.facts.get(column)?.shape()?.last()).is_some_and(|size| size.is_const(1));
        needs.extend(looked_up_along(view, axis, column.filter(|_| is_one)?).unwrap_or_default());
    }
    Some(needs)
}

fn looked_up_along(view: &NodeFacts<'_>, axis: usize, indices: ValueId) -> Option<Vec<(Dim, i64)>> {
    let data = view.shape(0)?;
    let dim = data.get(axis)?;
    // When another axis of the data is empty no entry is looked up, and runtimes differ in whether they check the index.
    let mut others = data.iter().filter(|other| *other != dim);
    if !others.all(|other| view.at_least(other, 1)) {
        return None;
    }
    if let Some(indices) = view.facts.get(indices)?.const_ints() {
        let least = indices.iter().map(|&index| if index < 0 { index.checked_neg() } else { index.checked_add(1) });
        let least = least.collect::<Option<Vec<i64>>>()?.into_iter().max()?;
        return Some(vec![(dim.clone(), least)]);
    }
    let (scope, counted) = (view.scope(), (view.positions)(indices)?);
    // The check above skips axes with the same dim as this one, and an empty axis of that kind is possible here.
    if data.iter().filter(|other| *other == dim).count() > 1 {
        return None;
    }
    let (low, high) = counted.bounds(scope)?;
    let (above, below) = (scope.sub(dim, &scope.add(&high, &Dim::constant(1))), scope.add(dim, &low));
    // With an empty axis of indices no entry is looked up, so the bound must hold without the lookup.
    let holds_without = |slack: &Dim| {
        counted.shape.iter().filter(|size| !view.at_least(size, 1)).all(|size| {
            let empty = |symbol| size.as_symbol().filter(|size| *size == symbol).map(|_| Dim::constant(0));
            size.as_symbol().is_some() && view.at_least(&scope.substitute(slack, &empty), 0)
        })
    };
    Some([above, below].into_iter().filter(holds_without).map(|slack| (slack, 0)).collect())
}

// ---- Concat and Split ----

/// Every part must repeat along the other axes, or none.
pub(super) fn joined_narrow(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    let view = &node.view;
    let Some(Attribute::Int(_)) = view.node.attribute("axis") else { return None };
    let axis = view.axis(0)?;
    let mut shape: Option<Vec<Dim>> = None;
    for part in view.node.inputs() {
        let part = (*part)?;
        let (own, wide) = (node.dims(part)?, node.wide(part)?);
        if own.len() != wide.len() || !view.equal(own.get(axis)?, wide.get(axis)?) {
            return None;
        }
        let known = shape.get_or_insert_with(|| own.to_vec());
        let agree = |(at, (a, b)): (usize, (&Dim, &Dim))| at == axis || view.equal(a, b);
        if known.len() != own.len() || !known.iter().zip(own).enumerate().all(agree) {
            return None;
        }
    }
    let mut shape = shape?;
    *shape.get_mut(axis)? = node.goal.get(axis)?.clone();
    Some(shape)
}

/// Places of one axis, all of the others.
pub(super) fn split_axes(view: &NodeFacts<'_>) -> Sources {
    let axis = view.axis(0)?;
    Some((0..view.shape(0)?.len()).map(|own| Some(if own == axis { Part(own) } else { Whole(own) })).collect())
}

// ---- what fills and what counts ----

/// From the start on in steps.
pub(super) fn range_counts(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    _: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    Some(Counting { shape: shape.to_vec(), offset: view.single(0)?, steps: vec![view.single(2)?] })
}

/// The number that ConstantOfShape fills with.
pub(super) fn filled(view: &NodeFacts<'_>, _: &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor> {
    match view.node.attribute("value") {
        Some(Attribute::Tensor(tensor, _)) => tensor.uniform(),
        Some(_) => None,
        None => Some(Tensor::scalar(0.0f32)),
    }
}

pub(super) fn filled_counts(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    _: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    let Some(Attribute::Tensor(tensor, _)) = view.node.attribute("value") else { return None };
    let [number] = tensor.to_i64s()?[..] else { return None };
    Some(Counting::splat(shape.to_vec(), Dim::constant(number)))
}

/// The number around what is padded is the same; modes but that of a constant repeat what is there.
pub(super) fn padded(view: &NodeFacts<'_>, operand: &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor> {
    let number = operand(0)?;
    match view.node.attribute("mode") {
        None => {}
        Some(Attribute::String(mode)) if mode.as_ref() == b"constant" => {}
        Some(Attribute::String(_)) => return Some(number),
        Some(_) => return None,
    }
    let around = match (view.node.attribute("value"), view.input(2)) {
        (None, Some(_)) => operand(2)?,
        (None, None) => Tensor::zeros(number.dtype(), &[]).ok()?,
        _ => return None,
    };
    Some(number).filter(|number| number.same(&around))
}

/// The places of a vector without zeros, one after the other.
pub(super) fn places_counted(
    view: &NodeFacts<'_>,
    shape: &[Dim],
    operand: &dyn Fn(usize) -> Option<Counting>,
) -> Option<Counting> {
    let [_] = view.shape(0)? else { return None };
    let data = operand(0)?;
    let full = data.is_splat() && data.offset.as_const().is_some_and(|number| number != 0);
    let steps = vec![Dim::constant(0), Dim::constant(1)];
    full.then(|| Counting { shape: shape.to_vec(), offset: Dim::constant(0), steps })
}

/// The axis that running sums are told to go along.
pub(super) fn cumulated_axis(view: &NodeFacts<'_>) -> Option<Vec<usize>> {
    let [axis] = view.fact(1).and_then(Fact::const_ints)?[..] else { return None };
    Some(vec![axis_in(axis, view.shape(0)?.len()).ok()?])
}

/// Whether the axis is known, and there.
pub(super) fn has_cumulated_axis(view: &NodeFacts<'_>) -> bool {
    cumulated_axis(view).is_some()
}
