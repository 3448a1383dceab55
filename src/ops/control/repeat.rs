//! Loop: infers and evaluates its body.

use std::rc::Rc;
use std::sync::Arc;

use super::follow::{Followed, Start, follow};
use super::iterate::{Iteration, Meter, iterate, takes_optional};
use super::premise::{premises, trips};
use crate::dim::{Dim, Symbol};
use crate::ir::{Data, DeclaredDim, DeclaredType, DimClaim, Fact, GraphId, Scalar};
use crate::ops::join::stem_of;
use crate::ops::pieces::stack;
use crate::ops::traits::NodeFacts;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};
use crate::tensor::{DType, Tensor};

fn body_of(site: &Site<'_>) -> Result<GraphId, Refusal> {
    site.attr_graph("body")?.ok_or_else(|| Refusal::invalid("attribute 'body' is missing"))
}

/// Returns the declared rank of a body's input. Runtimes pass iteration number and condition as scalars, or as
/// vectors of one element if the body declares that.
fn declared_rank(site: &Site<'_>, body: GraphId, input: usize) -> Option<usize> {
    let value = site.model.graph(body).inputs().get(input);
    let declared = value.and_then(|&value| site.model.value(value).declared.as_ref());
    declared.and_then(DeclaredType::shape).map(|shape| shape.len())
}

fn declared_vector(site: &Site<'_>, body: GraphId, input: usize) -> bool {
    declared_rank(site, body, input) == Some(1)
}

/// Returns the operands to carry: all after trip count and condition, without omitted trailing ones.
fn carried<T>(operands: &[Option<T>]) -> &[Option<T>] {
    let end = operands.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    operands.get(2..end).unwrap_or_default()
}

/// Returns the trip count, which a condition may end earlier. Exporters write the largest integer for a loop without one.
pub(super) fn iterations(view: &NodeFacts<'_>) -> Option<Dim> {
    view.single(0).filter(|trips| trips.as_const().is_none_or(|trips| trips < i64::from(i32::MAX)))
}

/// The behavior of a loop's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// Always true.
    Always,
    /// False initially.
    Never,
    /// True initially, and false after the first iteration.
    Once,
    /// Decided at run time.
    Unknown,
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let body = body_of(cx)?;
    let scope = Rc::clone(cx.walk.scope());
    let stem = stem_of(cx);
    // An omitted operand means no limit; an unknown operand means an unknown limit.
    let given = cx.input(0).and_then(Fact::ints).and_then(|limits| match limits.as_slice() {
        [limit] => Some(limit.clone()),
        _ => None,
    });
    let limit = given.as_ref().map(|limit| scope.max(limit, &Dim::constant(0)));
    let condition = match cx.input(1) {
        None => Some(true),
        Some(fact) => match fact.const_ints().as_deref() {
            Some([value]) => Some(*value != 0),
            _ => None,
        },
    };
    let one = || Some(vec![Dim::constant(1)]);
    let last = limit.as_ref().and_then(Dim::as_const).and_then(|limit| limit.checked_sub(1));
    let mark = scope.fresh(&stem);
    // Always a symbol, even for one iteration: growing dims are expressions in it.
    let number = scope.fresh_within(&stem, Some(0), last.filter(|&last| last > 0));
    let number_shape = if declared_vector(cx, body, 0) { one() } else { Some(Vec::new()) };
    let counter = Fact::tensor(Some(DType::Int64), number_shape).with_elements(vec![Scalar::Int(number.clone())]);
    if let Some(rank) = declared_rank(cx, body, 1) {
        cx.require_rank(1, "cond", rank..=rank)?;
    }
    let condition_shape = match (declared_rank(cx, body, 1), cx.input(1)) {
        (Some(1), _) => one(),
        (Some(0), _) | (_, None) => Some(Vec::new()),
        (_, Some(fact)) => fact.shape().map(<[Dim]>::to_vec),
    };
    let mut initial = vec![Fact::tensor(Some(DType::Bool), condition_shape)];
    initial.extend(carried(cx.inputs()).iter().map(|input| input.clone().unwrap_or_default()));
    let starts = initial.clone();

    cx.walk.trips.remove(&cx.site.id);
    cx.walk.surely.remove(&cx.site.id);
    let start = Start {
        body,
        leading: [&counter, initial.first().unwrap_or(&Fact::unknown())].map(|fact| fact.rank()),
        carried: initial.get(1..).unwrap_or_default(),
        limit: cx.input(0).map(|_| limit.clone()),
        condition,
        conditional: cx.input(1).is_some(),
    };
    let followed = follow(cx, &start)?;
    if let Some(Followed { trips: 1, results }) = followed {
        // The facts of values in the body hold for the only iteration.
        cx.walk.trips.insert(cx.site.id, 1);
        return Ok(results);
    }

    // During an iteration, its number is below the limit.
    let left = given.map(|limit| scope.sub(&limit, &scope.add(&number, &Dim::constant(1))));
    let run = Iteration {
        body,
        supposed: left.into_iter().collect(),
        leading: vec![counter],
        initial,
        trailing: Vec::new(),
        mark,
        number: Some(number.clone()),
        conditional: true,
    };
    let mut found = iterate(cx, &run)?;

    let condition = match (condition, found.output(0).and_then(Fact::const_ints).as_deref()) {
        (Some(false), _) => Condition::Never,
        (Some(true), Some([0])) if cx.input(1).is_some() => Condition::Once,
        (Some(true), Some([value])) if *value != 0 => Condition::Always,
        _ => Condition::Unknown,
    };
    let zero = Dim::constant(0);
    let counted = counted(cx, body, &number, mark, limit.as_ref());
    let trips = match (condition, &limit) {
        (Condition::Never, _) => zero.clone(),
        (_, Some(limit)) if limit.is_const(0) => zero.clone(),
        (Condition::Always, Some(limit)) => limit.clone(),
        (Condition::Once, Some(limit)) => scope.min(limit, &Dim::constant(1)),
        (Condition::Once, None) if cx.input(0).is_none() => Dim::constant(1),
        _ if let Some(trips) = counted => trips,
        (_, Some(limit)) => {
            let trips = scope.fresh_within(&stem, Some(0), scope.upper_bound(limit));
            scope.assume_le(&trips, limit);
            trips
        }
        (_, None) => scope.fresh_dim(&stem),
    };
    let decided = trips.as_const().and_then(|trips| usize::try_from(trips).ok());
    if let Some(decided) = followed.as_ref().map(|followed| followed.trips).or(decided) {
        cx.walk.trips.insert(cx.site.id, decided);
    }
    let at_least_once = followed.is_some() || scope.ge(&trips, &Dim::constant(1)).is_yes();
    if at_least_once {
        cx.walk.surely.insert(cx.site.id);
    }
    if let Some(Followed { results, .. }) = followed {
        return Ok(results);
    }
    found.set_trips(&trips);
    let mut results = Vec::with_capacity(cx.node.outputs().len());
    for (index, start) in starts.into_iter().enumerate().skip(1) {
        // Without an iteration, the initial values are the results.
        results.push(if trips.is_const(0) { start } else { found.last(index, at_least_once) });
    }
    for index in found.extra_outputs() {
        results.push(found.stacked((cx.model, &cx.walk.facts), index, 0, &trips, !at_least_once)?);
    }
    Ok(results)
}

/// Returns the number of iterations of a loop whose condition compares a counter with dims.
fn counted(cx: &InferCx<'_>, body: GraphId, number: &Dim, mark: Symbol, limit: Option<&Dim>) -> Option<Dim> {
    // Without a condition operand, runtimes disagree about the body's condition.
    let first = cx.node.input(1)?;
    let after = premises(cx, *cx.model.graph(body).outputs().first()?, true)?;
    let before = match cx.input(1)?.const_ints().as_deref() {
        Some([0]) => return None,
        Some(_) => None,
        None => Some(premises(cx, first, true)?),
    };
    let trips = trips(cx.scope(), &after, before.as_deref(), number, mark)?;
    match limit {
        None => cx.input(0).is_none().then_some(trips),
        Some(limit) if limit.is_const(i64::MAX) => Some(trips),
        Some(limit) => Some(cx.scope().min(limit, &trips)),
    }
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let body = body_of(cx)?;
    let single = |tensor: &Tensor, what: &str| match tensor.to_i64s().as_deref() {
        Some([value]) => Ok(*value),
        _ => Err(Decline::invalid(format!("the {what} is not a single element"))),
    };
    let limit = cx.optional_tensor(0)?.map(|tensor| single(tensor, "trip count")).transpose()?;
    let mut running = cx.optional_tensor(1)?.map(|tensor| single(tensor, "condition")).transpose()? != Some(0);
    let conditional = cx.data(1).is_some();
    let carried = carried(cx.inputs()).iter().cloned().collect::<Option<Vec<Data>>>();
    let mut carried =
        carried.ok_or_else(|| Decline::invalid("the initial value of a loop-carried value is missing"))?;
    let given = cx.model.graph(body).inputs().len();
    let made = cx.model.graph(body).outputs().len();
    if given != carried.len() + 2 || made <= carried.len() {
        return Err(Decline::invalid("the inputs or outputs of the subgraph do not match the node"));
    }
    let mut scans: Vec<Vec<Tensor>> = vec![Vec::new(); made - carried.len() - 1];
    let vector = [1];
    let shape_of = |input| if declared_vector(cx, body, input) { &vector[..] } else { &[] };
    let (number_shape, condition_shape) = (shape_of(0), shape_of(1));

    let mut meter = Meter::new(cx, body);
    let mut number = 0i64;
    while running && limit.is_none_or(|limit| number < limit) {
        meter.iteration(cx)?;
        let mut inputs = Vec::with_capacity(given);
        inputs.push(Data::Tensor(Tensor::from_vec(number_shape, vec![number])?));
        inputs.push(Data::Tensor(Tensor::from_bools(condition_shape, &[true])?));
        for (index, value) in carried.drain(..).enumerate() {
            let wrap = !matches!(value, Data::Optional(_)) && takes_optional(cx.model, body, index + 2);
            inputs.push(if wrap { Data::Optional(Some(Arc::new(value))) } else { value });
        }
        let mut outputs = cx.evaluate_graph(body, inputs)?.into_iter();
        let next = outputs.next();
        let next = next.as_ref().and_then(Data::tensor).and_then(Tensor::bools);
        running = match next.as_deref() {
            Some([next]) => *next,
            _ => return Err(Decline::invalid("the condition output of the subgraph is not a single bool")),
        };
        if !running && !conditional && limit.is_none_or(|limit| number + 1 < limit) {
            return Err(Decline::unsupported(
                "the subgraph returns a false condition, but operand 'cond' is missing: the standard ignores the condition, and runtimes end the loop",
            ));
        }
        carried.extend(outputs.by_ref().take(given - 2));
        for (scan, output) in scans.iter_mut().zip(outputs) {
            match output {
                Data::Tensor(tensor) => scan.push(tensor),
                _ => return Err(Decline::invalid("a scan output is not a tensor")),
            }
        }
        number += 1;
    }
    let first_scan = given - 1;
    for (output, scan) in (first_scan..).zip(&scans) {
        let empty = if scan.is_empty() { declared_empty(cx, body, output)? } else { None };
        carried.push(Data::Tensor(match empty {
            Some(tensor) => tensor,
            None => stack(cx, scan, 0)?,
        }));
    }
    Ok(carried)
}

/// Returns the empty scan output of a loop without iterations: runtimes use the type that the body declares.
fn declared_empty(site: &Site<'_>, body: GraphId, output: usize) -> Result<Option<Tensor>, Decline> {
    let value = site.model.graph(body).outputs().get(output);
    let declared = value.and_then(|&value| site.model.value(value).declared.as_ref());
    let Some((dtype, shape)) = declared.and_then(|ty| Some((ty.dtype()?, ty.shape()?))) else { return Ok(None) };
    let size = |dim: &DeclaredDim| match dim.claim {
        DimClaim::Value(size) => usize::try_from(size).ok(),
        _ => None,
    };
    let Some(mut shape) = shape.iter().map(size).collect::<Option<Vec<usize>>>() else { return Ok(None) };
    shape.insert(0, 0);
    Ok(Some(Tensor::zeros(dtype, &shape)?))
}
