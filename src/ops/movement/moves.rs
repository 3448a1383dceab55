//! What movements say of positions and of operands that repeat, and when a look-up cannot fail.

use crate::dim::Dim;
use crate::ir::{Attribute, Fact, ValueId};
use crate::ops::slice_cuts::slice_cuts;
use crate::ops::traits::{Counting, NodeFacts, Repetition, broadcast_narrow};
use crate::ops::{Refusal, Site, axis_in};
use crate::tensor::Tensor;

// ---- layouts ----

pub(super) fn layout(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    node.layout()
}

// ---- spreading ----

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

/// The permutation, which is one of `rank` axes.
pub(super) fn permutation(site: &Site<'_>, rank: usize) -> Result<Vec<usize>, Refusal> {
    let Some(perm) = site.attr_ints("perm")? else { return Ok((0..rank).rev().collect()) };
    if perm.len() != rank {
        return Err(Refusal::invalid(format!(
            "attribute 'perm' has {} elements, but the data has rank {rank}",
            perm.len()
        )));
    }
    let axes: Option<Vec<usize>> = perm.iter().map(|&axis| usize::try_from(axis).ok()).collect();
    axes.filter(|axes| (0..rank).all(|axis| axes.contains(&axis)))
        .ok_or_else(|| Refusal::invalid(format!("attribute 'perm' is {perm:?}, which is not a permutation")))
}

pub(super) fn permuted_narrow(node: &Repetition<'_>) -> Option<Vec<Dim>> {
    let (narrow, _) = node.only_first()?;
    let axes = permutation(&node.view.site()?, narrow.len()).ok()?;
    axes.into_iter().map(|axis| narrow.get(axis).cloned()).collect()
}

// ---- Slice ----

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
