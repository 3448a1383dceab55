//! Folds a saturating function of positions into the table that it indexes.
//!
//! Law: `f(x) = f(min(max(x, a), b))` if `f` is constant up to `a` and from `b` on. So a table whose rows are selected by `f` of a
//! difference of positions is indexed by the clipped difference itself: row `k` of the new table is row `f(k)` of the old one. Negative
//! indices count from the end of a table.
//!
//! That `f` is constant from a number on is proved, not sampled. Between two arguments the result of each operator is constant, because its
//! operands are, or it is monotone ([`Ordered`]); a monotone value with equal ends is constant.

use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use rustc_hash::FxHashMap;

use super::LATE_RULES as RULES;
use super::counting::counting;
use crate::dim::Dim;
use crate::ir::{Data, Edit, NodeId, ValueId};
use crate::ops::traits::{Operands, Ordered};
use crate::ops::{Environment, evaluate_node, operator};
use crate::rewrite::build::{Build, ClipBound};
use crate::rewrite::limits::{ADDED_FOR_LITTLE, NODES};
use crate::rewrite::place::Place;
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// The largest difference of positions: no tensor has as many elements along an axis.
const FARTHEST: i64 = 1 << 39;

/// The most that is added to positions in addition to sizes, and the most sizes: with sizes below 2³⁴ the positions are below [`FARTHEST`].
const MAX_OFFSET: u64 = 1 << 20;
const MAX_SHARE: u64 = 1 << 4;

/// The limit of intermediate integers, so that none wraps.
const MAX_INTEGER: i64 = 1 << 44;

/// The largest constant integer, except for those that are bounds.
const MAX_FACTOR: i64 = 1 << 18;

/// The largest power of two from which the function is tried to be constant. Each trial evaluates the nodes on this many positions.
const MAX_REACH: i64 = 1 << 11;

/// A position-wise function of one tensor.
struct Function {
    /// The tensor.
    argument: ValueId,
    result: ValueId,
    /// The nodes in between, operands first.
    nodes: Vec<NodeId>,
}

/// The behaviour of a value between two arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It is constant.
    Held,
    /// It is monotone.
    Ordered,
    /// It is unknown.
    Open,
}

pub(super) fn lookup(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (data, index) = (node.input(0).ok_or(Miss::ROOT)?, node.input(1).ok_or(Miss::ROOT)?);
    let clips =
        operator("", "Clip").ok_or(Miss::ROOT)?.traits.pointwise.ok_or(Miss::ROOT)?.takes(place.opset, DType::Int64);
    let table = place.constant(data).ok_or(miss!("known-rows").of(data))?;
    ensure(clips, miss!("clips-integers"))?;
    ensure(place.dtype(index).ok_or(miss!("of-one").of(index))? == DType::Int64, miss!("of-one").of(index))?;
    ensure(place.constant(index).is_none(), miss!("of-one").of(index))?;
    let function = function(place, index).ok_or(miss!("of-one"))?;
    let count = counting(place, function.argument).ok_or(miss!("of-one"))?;
    ensure(std::iter::once(&count.offset).chain(&count.steps).all(is_near), miss!("saturates"))?;
    let bounds = count.bounds(place.scope());
    let least = bounds.as_ref().and_then(|(low, _)| place.scope().lower_bound(low));
    let most = bounds.as_ref().and_then(|(_, high)| place.scope().upper_bound(high));
    let low = side(place, &function, least, -1).ok_or(miss!("saturates"))?;
    let high = side(place, &function, most, 1).ok_or(miss!("saturates"))?;
    let mut rows: Vec<i64> = Vec::new();
    for number in low..=high {
        rows.push(
            at(place, &function, number)
                .and_then(|values| values.get(&index)?.to_i64s()?.first().copied())
                .ok_or(miss!("saturates"))?,
        );
    }
    let (low, high, rows) = trimmed(low, high, &rows).ok_or(miss!("saturates"))?;
    let is_inside = least.is_some_and(|bound| bound >= low) && most.is_some_and(|bound| bound <= high);
    let clip = Some((low, high)).filter(|_| !is_inside);
    ensure(freed(place, &function) > usize::from(clip.is_some()), miss!("pays"))?;
    let environment = Environment::of(place.model);
    let operands = vec![Some(Data::Tensor(table.clone())), Some(Data::Tensor(Tensor::vector(rows)))];
    let results = evaluate_node(&environment, place.id, node, operands, place.budget, SliceRule::Agree, 0)
        .or(Err(miss!("known-rows")))?;
    let rows = results.first().and_then(Data::tensor).ok_or(miss!("known-rows"))?.clone();
    ensure(rows.byte_len() <= table.byte_len().saturating_add(ADDED_FOR_LITTLE), miss!("small"))?;
    look_up(place, function.argument, rows, clip)
}

/// Returns `true` if an offset or step contains so few sizes, and is so small without them, that no position exceeds [`FARTHEST`].
fn is_near(dim: &Dim) -> bool {
    let at = |size: i64| dim.evaluate(&|_| Some(size));
    let (Some(none), Some(one)) = (at(0), at(1)) else { return false };
    none.unsigned_abs() <= MAX_OFFSET && one.checked_sub(none).is_some_and(|share| share.unsigned_abs() <= MAX_SHARE)
}

/// Builds the lookup of the rows by the clipped argument.
fn look_up(place: &Place<'_>, argument: ValueId, rows: Tensor, clip: Option<(i64, i64)>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let mut edit = place.begin()?;
    let table = edit.constant(node.input(0).ok_or(Miss::ROOT)?, "rows", rows);
    let mut index = argument;
    if let Some((low, high)) = clip {
        index = edit.new_value(argument, "clipped");
        let bound = |number: i64, name: &str| ClipBound {
            number: number as f64,
            tensor: Tensor::scalar(number),
            name: format!("{}_{name}", place.model.value(argument).name),
        };
        let clip = crate::ir::NewNode::new("Clip", [Some(argument)]);
        let bounds = [Some(bound(low, "least")), Some(bound(high, "most"))];
        let clip = place.build(&mut edit, index).clip(clip, bounds).ok_or(Miss::EXPRESSIBLE)?;
        edit.insert.push(clip.output(index));
    }
    let axis = node.int("axis", 0).ok_or(Miss::ROOT)?;
    place.instead(edit, Build::gather(table, index, axis))
}

/// Returns the nodes that compute an integer tensor position by position from a counting one.
fn function(place: &Place<'_>, result: ValueId) -> Option<Function> {
    let mut nodes: Vec<NodeId> = Vec::new();
    let mut arguments: Vec<ValueId> = Vec::new();
    let mut waiting = vec![result];
    while let Some(value) = waiting.pop() {
        if place.constant(value).is_some() {
            continue;
        }
        let counts = value != result && counting(place, value).is_some_and(|count| !count.is_splat());
        if counts && !arguments.contains(&value) {
            arguments.push(value);
        }
        if counts {
            continue;
        }
        let id = plain_producer(place, value)?;
        if !nodes.contains(&id) {
            nodes.push(id);
            waiting.extend(place.model.node(id)?.inputs().iter().flatten());
        }
        if nodes.len() > NODES {
            return None;
        }
    }
    let &[argument] = arguments.as_slice() else { return None };
    if place.dtype(argument)? != DType::Int64 {
        return None;
    }
    // Sorts operands before their consumers.
    let mut known = vec![argument];
    let mut ordered = Vec::with_capacity(nodes.len());
    while ordered.len() < nodes.len() {
        let is_ready = |id: &&NodeId| {
            let node = place.model.node(**id);
            let inputs = node.map(|node| node.inputs().iter().flatten().copied().collect::<Vec<_>>());
            let ready = |input: &ValueId| known.contains(input) || place.constant(*input).is_some();
            !ordered.contains(*id) && inputs.is_some_and(|inputs| inputs.iter().all(ready))
        };
        let &next = nodes.iter().find(is_ready)?;
        known.push(place.model.node(next)?.output(0)?);
        ordered.push(next);
    }
    Some(Function { argument, result, nodes: ordered })
}

/// Returns the producer of a value, if it is pointwise, of the default domain and in this graph, and has ordinary element types only.
fn plain_producer(place: &Place<'_>, value: ValueId) -> Option<NodeId> {
    let is_plain = |dtype: DType| matches!(dtype, DType::Int64 | DType::Bool | DType::Float | DType::Double);
    let (id, node) = place.producer_with(value, |traits| {
        traits.pointwise.is_some_and(|own| matches!(own.operands, Operands::Broadcast | Operands::First))
    })?;
    let meets = place.view(id)?.traits().pointwise?.meets(place.opset);
    let plain = |input: &ValueId| match place.constant(*input) {
        Some(tensor) => tensor.len() == 1,
        None => place.dtype(*input).is_some_and(is_plain),
    };
    let all = node.inputs().iter().flatten().all(plain);
    (all && meets && node.outputs().len() == 1 && is_plain(place.dtype(value)?)).then_some(id)
}

/// Returns the number in this direction (1 up, −1 down) from which on the function is constant, or the bound of its argument.
fn side(place: &Place<'_>, function: &Function, bound: Option<i64>, direction: i64) -> Option<i64> {
    if let Some(bound) = bound.filter(|bound| (-4..=4).contains(bound)) {
        return Some(bound);
    }
    let mut reach = 1i64;
    while reach <= MAX_REACH {
        if is_held(place, function, reach.checked_mul(direction)?, FARTHEST.checked_mul(direction)?) {
            return reach.checked_mul(direction);
        }
        reach = reach.checked_mul(2)?;
    }
    bound.filter(|bound| (-MAX_REACH..=MAX_REACH).contains(bound))
}

/// Returns the values of a function at a number, as far as they can be computed.
fn at(place: &Place<'_>, function: &Function, number: i64) -> Option<FxHashMap<ValueId, Tensor>> {
    let environment = Environment::of(place.model);
    let mut values: FxHashMap<ValueId, Tensor> = FxHashMap::default();
    values.insert(function.argument, Tensor::scalar(number));
    for &id in &function.nodes {
        let node = place.model.node(id)?;
        let value_of = |input: ValueId| values.get(&input).or_else(|| place.constant(input)).cloned();
        let output = node.output(0)?;
        if node.is("Where") {
            // The operand that is not selected need not have a value.
            let chosen = value_of(node.input(0)?)
                .and_then(|flag| flag.to_i64s()?.first().copied())
                .and_then(|flag| value_of(node.input(if flag != 0 { 1 } else { 2 })?));
            if let Some(chosen) = chosen {
                values.insert(output, chosen);
            }
            continue;
        }
        let operands = node.inputs().iter().map(|input| match input {
            Some(input) => value_of(*input).map(|tensor| Some(Data::Tensor(tensor))),
            None => Some(None),
        });
        let Some(operands) = operands.collect::<Option<Vec<_>>>() else { continue };
        let results = evaluate_node(&environment, id, node, operands, place.budget, SliceRule::Agree, 0);
        let Some(tensor) = results.ok().and_then(|results| results.first().and_then(Data::tensor).cloned()) else {
            continue;
        };
        let is_small = tensor.dtype() != DType::Int64
            || tensor.to_i64s().is_some_and(|numbers| {
                numbers.iter().all(|number| number.checked_abs().is_some_and(|number| number < MAX_INTEGER))
            });
        let is_number = tensor.to_f64s().is_none_or(|numbers| numbers.iter().all(|number| !number.is_nan()));
        if is_small && is_number && tensor.len() == 1 {
            values.insert(output, tensor);
        }
    }
    Some(values)
}

/// Returns `true` if a function has one result for all arguments between two numbers of one sign.
fn is_held(place: &Place<'_>, function: &Function, from: i64, to: i64) -> bool {
    let (Some(first), Some(last)) = (at(place, function, from), at(place, function, to)) else { return false };
    let mut courses: FxHashMap<ValueId, Course> = FxHashMap::default();
    courses.insert(function.argument, Course::Ordered);
    for &id in &function.nodes {
        let Some(output) = place.model.node(id).and_then(|node| node.output(0)) else { return false };
        let course = course_of(place, id, &courses, (&first, &last)).unwrap_or(Course::Open);
        courses.insert(output, course);
    }
    courses.get(&function.result) == Some(&Course::Held)
}

/// The values of a function at two arguments.
type Ends<'e> = (&'e FxHashMap<ValueId, Tensor>, &'e FxHashMap<ValueId, Tensor>);

fn course_of(
    place: &Place<'_>,
    id: NodeId,
    courses: &FxHashMap<ValueId, Course>,
    (first, last): Ends<'_>,
) -> Option<Course> {
    let node = place.model.node(id)?;
    let output = node.output(0)?;
    let course = |value: ValueId| match courses.get(&value) {
        Some(course) => *course,
        None => Course::Held,
    };
    if node.is("Where") && course(node.input(0)?) == Course::Held {
        let flag = node.input(0)?;
        let flag = first.get(&flag).or_else(|| place.constant(flag))?.to_i64s()?.first().copied()?;
        return Some(course(node.input(if flag != 0 { 1 } else { 2 })?));
    }
    let moving: Vec<usize> = (0..node.inputs().len())
        .filter(|&slot| node.input(slot).is_some_and(|input| course(input) != Course::Held))
        .collect();
    let traits = place.view(id)?.traits();
    let ordered = match (&moving[..], traits.ordered, traits.monotone) {
        ([], ..) => return Some(Course::Held),
        (&[0], _, Some(_)) => true,
        (&[slot], Some(Ordered { operands, one_sign }), _) => {
            let operand = node.input(slot)?;
            let sign = |values: &FxHashMap<ValueId, Tensor>| {
                values
                    .get(&operand)?
                    .to_f64s()
                    .or_else(|| {
                        Some(values.get(&operand)?.to_i64s()?.into_iter().map(|number| number as f64).collect())
                    })?
                    .first()
                    .copied()
            };
            let same_sign = sign(first)? * sign(last)? >= 0.0;
            slot < operands && (!one_sign || same_sign) && others_are_small(place, id, slot)
        }
        _ => false,
    };
    let is_known = course(node.input(*moving.first()?)?) == Course::Ordered && ordered;
    let (low, high) = (first.get(&output)?, last.get(&output)?);
    Some(match is_known {
        true if low.same(high) => Course::Held,
        true => Course::Ordered,
        false => Course::Open,
    })
}

/// Returns `true` if the other constant integers of a node are too small to cause a wrap.
fn others_are_small(place: &Place<'_>, id: NodeId, slot: usize) -> bool {
    let Some(node) = place.model.node(id) else { return false };
    let mut others = node.inputs().iter().enumerate().filter(|(at, _)| *at != slot).filter_map(|(_, other)| *other);
    others.all(|other| match place.constant(other) {
        Some(tensor) if tensor.dtype() == DType::Int64 => tensor.to_i64s().is_some_and(|numbers| {
            numbers.iter().all(|number| number.checked_abs().is_some_and(|number| number <= MAX_FACTOR))
        }),
        _ => true,
    })
}

/// Removes arguments at both ends whose result equals that of the next one, but keeps 0. Returns the rows in the order of the indices: from
/// 0 on, then the negative ones.
fn trimmed(low: i64, high: i64, rows: &[i64]) -> Option<(i64, i64, Vec<i64>)> {
    let mut rows: Vec<i64> = rows.to_vec();
    let (mut low, mut high) = (low, high);
    while high > 0 && rows.len() > 1 && rows.last() == rows.get(rows.len().checked_sub(2)?) {
        rows.pop();
        high = high.checked_sub(1)?;
    }
    let equal = rows.windows(2).take_while(|pair| pair.first() == pair.get(1)).count();
    let spare = equal.min(usize::try_from(low.checked_neg()?).unwrap_or(0));
    rows.drain(..spare);
    low = low.checked_add(i64::try_from(spare).ok()?)?;
    // Arguments that do not occur get the row of the nearest one.
    while low > 0 {
        rows.insert(0, *rows.first()?);
        low = low.checked_sub(1)?;
    }
    while high < 0 {
        rows.push(*rows.last()?);
        high = high.checked_add(1)?;
    }
    let below = usize::try_from(low.checked_neg()?).ok()?;
    rows.rotate_left(below);
    (rows.len() > 1).then_some((low, high, rows))
}

/// Returns the number of nodes that are dead once the lookup is by the argument.
fn freed(place: &Place<'_>, function: &Function) -> usize {
    let mut gone = vec![place.id];
    for &id in function.nodes.iter().rev() {
        let Some(output) = place.model.node(id).and_then(|node| node.output(0)) else { continue };
        if place.model.is_read_only_by(output, &gone) {
            gone.push(id);
        }
    }
    gone.len().saturating_sub(1)
}
