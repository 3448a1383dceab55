//! Replaces a Concat of broadcast columns by a Where: exporters stack the coordinates of a grid in this way.
//!
//! Law: if every `xᵢ` has size 1 along the axis, `Concat(x₀, …, xₖ)[p]` is `xᵢ[p]`, where `i` is the position along the axis. So the Concat
//! is a selection, and a selection broadcasts. Let `mᵢ` be true at the positions of `xᵢ`, and `xᵢ` be expanded from `yᵢ`. Then
//! `Concat(x₀, x₁) = Where(m₀, y₀, y₁)`, if the `yᵢ` and the masks together have the full size of every axis.

use super::LAST_RULES as RULES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use smallvec::SmallVec;

use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::limits::{DEPTH, LISTED};
use crate::rewrite::place::Place;
use crate::tensor::{DType, StridedView, Tensor, gather};

/// The most columns of a Concat. Each pair is compared, and each choice of axes with each column.
const MAX_COLUMNS: usize = 16;

/// The most Wheres that replace one Concat: three take as many nodes as they replace.
const MAX_CHOICES: usize = 3;

/// The source of a broadcast column: a value, and its layout with an axis of size 1 wherever the column repeats.
#[derive(Clone, Debug)]
struct ColumnSource {
    value: ValueId,
    /// For each axis of the column, the axis of the value; `None` if the column repeats or has size 1 there.
    axes: Vec<Option<usize>>,
    /// The size of each axis in this layout.
    dims: Vec<Dim>,
    /// The nodes between the value and the column, the column's producer first.
    passed: Vec<NodeId>,
    /// `true` if the column is larger than the value.
    spread: bool,
}

/// Several columns from one source, selected at these positions of the axis.
struct Choice {
    source: ColumnSource,
    places: SmallVec<[usize; 4]>,
}

pub(super) fn choose(place: &Place<'_>) -> Result<Edit, Miss> {
    use DType::{Double, Float, Int32, Int64, Uint8};
    let node = place.root()?;
    let output = node.output(0).ok_or(Miss::ROOT)?;
    // The types for which every runtime supports Where.
    let movable =
        matches!(place.dtype(output).ok_or(miss!("movable-type").of(output))?, Float | Double | Int32 | Int64 | Uint8);
    let columns: SmallVec<[ValueId; 4]> = node.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    ensure(place.opset.has("Where"), Miss::EXPRESSIBLE)?;
    ensure(movable, miss!("movable-type"))?;
    ensure((2..=MAX_COLUMNS).contains(&columns.len()), miss!("single-columns"))?;
    let result = place.dims(output)?.to_vec();
    let axis = place.read(node).axis(result.len()).ok_or(Miss::ROOT)?;
    // The operator requires columns of equal size; runtimes skip empty ones.
    let single = |column: &ValueId| {
        let agree = |(at, (own, goal)): (usize, (&Dim, &Dim))| {
            if at == axis { own.is_const(1) } else { place.scope().eq(own, goal).is_yes() }
        };
        let dims = place.shape(*column).filter(|dims| dims.len() == result.len());
        dims.is_some_and(|dims| dims.iter().zip(&result).enumerate().all(agree))
    };
    ensure(columns.iter().all(single), miss!("single-columns"))?;
    let stacked = columns.iter().map(|&column| source_of(place, column)).collect::<Vec<_>>();
    if let Ok(edit) = chosen(place, &stacked, &columns, axis, &result, None) {
        return Ok(edit);
    }
    let (sources, whole) = flattened(place, &columns, axis).ok_or(miss!("spread"))?;
    let last = whole.len().checked_sub(1).ok_or(Miss::COMPUTABLE)?;
    chosen(place, &sources, &columns, last, &whole, Some(&result))
}

/// Returns columns `[n, 1]` that are all flattened from one shape; these are concatenated before they are flattened.
fn flattened(place: &Place<'_>, columns: &[ValueId], axis: usize) -> Option<(Vec<ColumnSource>, Vec<Dim>)> {
    let mut shape: Option<Vec<Dim>> = None;
    let mut sources = Vec::with_capacity(columns.len());
    for &column in columns {
        let (id, node) = place.layout(column)?;
        let inner = node.input(0)?;
        let dims = place.shape(inner)?;
        let known = shape.get_or_insert_with(|| dims.to_vec());
        let same = place.same_dims(known, dims);
        // The axis of the columns must be the innermost, so that the elements of one position are adjacent.
        if !same || axis.checked_add(1)? != place.shape(column)?.len() {
            return None;
        }
        let mut source = source_of(place, inner);
        source.axes.push(None);
        source.dims.push(Dim::constant(1));
        source.passed.insert(0, id);
        sources.push(source);
    }
    let mut whole = shape?;
    whole.push(Dim::constant(i64::try_from(columns.len()).ok()?));
    Some((sources, whole))
}

/// Follows a value upwards through broadcasts, and through layouts that insert or drop axes of size 1.
fn source_of(place: &Place<'_>, value: ValueId) -> ColumnSource {
    let own = place.shape(value).unwrap_or_default();
    let mut source = ColumnSource {
        value,
        axes: (0..own.len()).map(Some).collect(),
        dims: own.to_vec(),
        passed: Vec::new(),
        spread: false,
    };
    for _ in 0..DEPTH {
        if place.constant(source.value).is_some() || step_back(place, &mut source).is_none() {
            break;
        }
    }
    source
}

fn step_back(place: &Place<'_>, source: &mut ColumnSource) -> Option<()> {
    let id = place.model.value(source.value).producer()?;
    let node = place.model.node(id).filter(|node| node.canonical_domain().is_empty())?;
    let input = node.input(0)?;
    if Some(node.graph()) != place.graph() {
        return None;
    }
    let (from, to) = (place.shape(input)?, place.shape(source.value)?);
    let moves = traits_of(place.model, node).moves?;
    let spreads = moves == Movement::Spread;
    let image = match moves {
        Movement::Spread => spread_from(place.scope(), from, to)?,
        Movement::Layout => laid_out_from(place.scope(), from, to)?,
        _ => return None,
    };
    let through = |axis: &Option<usize>| axis.and_then(|axis| image.get(axis).copied().flatten());
    let axes: Vec<Option<usize>> = source.axes.iter().map(through).collect();
    let one = Dim::constant(1);
    let dims: Option<Vec<Dim>> =
        axes.iter().map(|axis| axis.map_or(Some(one.clone()), |axis| from.get(axis).cloned())).collect();
    source.dims = dims?;
    source.axes = axes;
    source.value = input;
    source.passed.push(id);
    source.spread |= spreads;
    Some(())
}

/// Returns, for each axis of a broadcast, the axis of its elements. An axis of size 1 does not distinguish positions.
fn spread_from(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Vec<Option<usize>>> {
    let added = to.len().checked_sub(from.len())?;
    let mut image = vec![None; added];
    for (axis, (own, goal)) in from.iter().zip(to.get(added..)?).enumerate() {
        if !own.is_const(1) && !scope.eq(own, goal).is_yes() {
            return None;
        }
        image.push((!own.is_const(1)).then_some(axis));
    }
    Some(image)
}

/// The same for a layout that differs in axes of size 1 only.
fn laid_out_from(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Vec<Option<usize>>> {
    let mut rest = from.iter().enumerate().filter(|(_, dim)| !dim.is_const(1));
    let mut image = Vec::with_capacity(to.len());
    for dim in to {
        if dim.is_const(1) {
            image.push(None);
            continue;
        }
        let (axis, own) = rest.next()?;
        image.push(scope.eq(own, dim).is_yes().then_some(axis));
        image.last()?.as_ref()?;
    }
    rest.next().is_none().then_some(image)
}

/// Returns the selection with the shape `whole`, in the layout `result` if that differs.
fn chosen(
    place: &Place<'_>,
    sources: &[ColumnSource],
    columns: &[ValueId],
    axis: usize,
    whole: &[Dim],
    result: Option<&[Dim]>,
) -> Result<Edit, Miss> {
    ensure(sources.iter().any(|source| source.spread), miss!("spread"))?;
    let mut choices: Vec<Choice> = Vec::new();
    let mut numbers: Vec<(usize, Tensor)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        if let Some(tensor) = place.constant(source.value) {
            let dims: Option<Vec<usize>> =
                source.dims.iter().map(|dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok())).collect();
            numbers.push((at, tensor.reshape(&dims.ok_or(miss!("spread"))?).or(Err(miss!("spread")))?));
            continue;
        }
        let same = |known: &&mut Choice| known.source.value == source.value && known.source.axes == source.axes;
        match choices.iter_mut().find(same) {
            Some(known) => known.places.push(at),
            None => choices.push(Choice { source: source.clone(), places: SmallVec::from_slice(&[at]) }),
        }
    }
    let constant = constant_columns(place, &numbers, axis, columns.len());
    ensure(constant.is_some() || numbers.is_empty(), miss!("spread"))?;
    let selections = choices.len().checked_sub(usize::from(constant.is_none())).ok_or(Miss::COMPUTABLE)?;
    ensure((1..=MAX_CHOICES).contains(&selections), miss!("spread"))?;
    let fixed = constant.as_ref().map(|tensor| tensor.shape().to_vec()).unwrap_or_default();
    if !reaches(place.scope(), &choices, &fixed, axis, whole) {
        // One column is expanded as before; the others broadcast with it.
        ensure(result.is_none(), miss!("spread"))?;
        let choice = choices.first_mut().ok_or(miss!("spread"))?;
        let column = *columns.get(*choice.places.first().ok_or(Miss::ROOT)?).ok_or(miss!("spread"))?;
        let dims = place.dims(column)?.to_vec();
        let axes = (0..dims.len()).map(Some).collect();
        choice.source = ColumnSource { value: column, axes, dims, passed: Vec::new(), spread: false };
        ensure(reaches(place.scope(), &choices, &fixed, axis, whole), miss!("spread"))?;
    }
    let output = place.result()?;
    let mut edit = place.begin()?.removing(place.id);
    let rest = constant.map(|tensor| edit.constant(output, "columns", tensor));
    let last = if result.is_some() { edit.new_value(output, "grid") } else { output };
    let mut below = rest;
    while let Some(Choice { source, places }) = choices.pop() {
        let value = laid_out(place, &mut edit, &source).ok_or(miss!("spread"))?;
        let Some(other) = below else {
            below = Some(value);
            continue;
        };
        let mask = mask(&places, columns.len(), axis, whole).ok_or(miss!("spread"))?;
        let flags = edit.constant(output, "mask", mask);
        let selected = if choices.is_empty() { last } else { edit.new_value(output, "columns") };
        edit.insert.push(NewNode::new("Where", [Some(flags), Some(value), Some(other)]).output(selected));
        below = Some(selected);
    }
    if let Some(result) = result {
        let node =
            place.build(&mut edit, output).reshape_to(place.scope(), last, whole, result).ok_or(Miss::EXPRESSIBLE)?;
        edit.insert.push(node.output(output));
    }
    edit.insert.last_mut().ok_or(Miss::EXPRESSIBLE)?.name = place.root()?.name.clone();
    ensure(edit.insert.len() <= freed(place, sources), miss!("spread"))?;
    Ok(edit)
}

/// Returns `true` if the selected sources together have the full size of every axis.
fn reaches(scope: &Scope, choices: &[Choice], fixed: &[usize], axis: usize, whole: &[Dim]) -> bool {
    let reached = |at: usize, goal: &Dim| {
        let fixed = fixed.get(at).is_some_and(|&dim| i64::try_from(dim).is_ok_and(|dim| goal.is_const(dim)));
        let own = |choice: &Choice| choice.source.dims.get(at).is_some_and(|dim| scope.eq(dim, goal).is_yes());
        fixed || goal.is_const(1) || choices.iter().any(own)
    };
    whole.iter().enumerate().all(|(at, goal)| at == axis || reached(at, goal))
}

/// Returns the constant columns, concatenated, with 0 for the other columns, and no larger than necessary along the other axes.
fn constant_columns(place: &Place<'_>, numbers: &[(usize, Tensor)], axis: usize, count: usize) -> Option<Tensor> {
    let (_, first) = numbers.first()?;
    let mut shape = first.shape().to_vec();
    for (_, tensor) in numbers {
        for (size, &own) in shape.iter_mut().zip(tensor.shape()) {
            *size = if *size == 1 { own } else { *size };
        }
    }
    let total = shape.iter().try_fold(count, |product, &dim| product.checked_mul(dim))?;
    if total == 0 || total > LISTED {
        return None;
    }
    let mut columns = vec![Tensor::zeros(first.dtype(), &shape).ok()?; count];
    for (at, tensor) in numbers {
        *columns.get_mut(*at)? = gather(tensor, &StridedView::of(tensor).broadcast_to(&shape).ok()?).ok()?;
    }
    place.concatenated(&columns.iter().collect::<Vec<_>>(), axis)
}

/// Returns a mask that is true at these positions of an axis. It has no axes before that one, unless the first axis has size 1, which no
/// operand need have.
fn mask(places: &[usize], count: usize, axis: usize, whole: &[Dim]) -> Option<Tensor> {
    let flags: Vec<bool> = (0..count).map(|at| places.contains(&at)).collect();
    let before = if whole.first()?.is_const(1) { axis } else { 0 };
    let mut shape = vec![1; whole.len().checked_sub(axis)?.checked_add(before)?];
    *shape.get_mut(before)? = count;
    Tensor::from_bools(&shape, &flags).ok()
}

/// Returns the source in the layout that broadcasts to the columns, without leading axes of size 1.
fn laid_out(place: &Place<'_>, edit: &mut Edit, source: &ColumnSource) -> Option<ValueId> {
    let ones = source.dims.iter().take_while(|dim| dim.is_const(1)).count();
    let target = source.dims.get(ones..)?;
    let from = place.shape(source.value)?;
    let same = |goal: &[Dim]| goal.len() == from.len() && goal.iter().zip(from).all(|(a, b)| a == b);
    if same(target) || same(&source.dims) {
        return Some(source.value);
    }
    let value = edit.new_value(source.value, "column");
    let node = place.build(edit, value).reshape_to(place.scope(), source.value, from, target)?;
    edit.insert.push(node.output(value));
    Some(value)
}

/// Returns the number of nodes that are dead after the removal of the Concat.
fn freed(place: &Place<'_>, sources: &[ColumnSource]) -> usize {
    let mut gone = vec![place.id];
    for id in sources.iter().flat_map(|source| &source.passed) {
        let Some(output) = place.model.node(*id).and_then(|node| node.output(0)) else { continue };
        let unread = place.model.is_read_only_by(output, &gone);
        if unread && !gone.contains(id) {
            gone.push(*id);
        }
    }
    gone.len()
}
