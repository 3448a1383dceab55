//! Follows a loop iteration by iteration, with the facts of each iteration, while the next iteration is decided.

use super::iterate::takes_optional;
use crate::dim::Dim;
use crate::ir::{Fact, GraphId, Scalar};
use crate::ops::{InferCx, Refusal};
use crate::tensor::Tensor;

/// The largest number of iterations of a loop that is followed.
const MOST_TRIPS: usize = 4;

/// The largest nesting depth of followed loops.
const MOST_NESTED: usize = 2;

/// The state of a loop before its first iteration.
pub(super) struct Start<'a> {
    pub(super) body: GraphId,
    /// The ranks of iteration number and condition as inputs of the body: 0, or 1 for a vector of one element.
    pub(super) leading: [Option<usize>; 2],
    /// The initial values.
    pub(super) carried: &'a [Fact],
    /// The trip limit: `None` if there is no limit, `Some(None)` if it is unknown.
    pub(super) limit: Option<Option<Dim>>,
    /// The condition, if it is constant.
    pub(super) condition: Option<bool>,
    /// `true` if there is a condition operand; without it, runtimes disagree about the body's condition.
    pub(super) conditional: bool,
}

/// A loop whose iterations were all followed.
pub(super) struct Followed {
    /// The number of iterations, at least one.
    pub(super) trips: usize,
    /// The facts of the node's results.
    pub(super) results: Vec<Fact>,
}

/// Follows a loop to its end. `None` for no iteration, more than [`MOST_TRIPS`], or an undecided next iteration. The
/// facts of values in the body are those of the last iteration.
///
/// # Errors
/// The body nests too deeply.
pub(super) fn follow(cx: &mut InferCx<'_>, start: &Start<'_>) -> Result<Option<Followed>, Refusal> {
    let body = cx.model.graph(start.body);
    let given = start.carried.len() + 2;
    if body.inputs().len() != given || body.outputs().len() + 1 < given || cx.walk.following >= MOST_NESTED {
        return Ok(None);
    }
    if (2..given).any(|input| takes_optional(cx.model, start.body, input)) {
        return Ok(None);
    }
    // Without a condition, a larger limit already decides that following would fail.
    let limit = start.limit.as_ref().and_then(Option::as_ref).and_then(Dim::as_const);
    if limit.is_some_and(|limit| usize::try_from(limit).is_ok_and(|limit| limit > MOST_TRIPS)) && !start.conditional {
        return Ok(None);
    }
    cx.walk.following += 1;
    let followed = iterations(cx, start);
    cx.walk.following -= 1;
    followed
}

fn iterations(cx: &mut InferCx<'_>, start: &Start<'_>) -> Result<Option<Followed>, Refusal> {
    let told = cx.walk.events.len();
    let mut carried = start.carried.to_vec();
    let mut left: Vec<Vec<Fact>> = Vec::new();
    let mut condition = start.condition;
    let mut trips = 0;
    let [Some(number_rank @ 0..=1), Some(condition_rank @ 0..=1)] = start.leading else { return Ok(None) };
    let shape = |rank| if rank == 0 { &[] } else { &[1usize][..] };
    while another(cx, start, trips, condition) == Some(true) {
        if trips == MOST_TRIPS {
            return Ok(None);
        }
        cx.walk.events.truncate(told);
        let number = i64::try_from(trips).unwrap_or(i64::MAX);
        let mut inputs = vec![
            Fact::constant(Tensor::from_vec(shape(number_rank), vec![number])?),
            Fact::constant(Tensor::from_bools(shape(condition_rank), &[true])?),
        ];
        inputs.append(&mut carried);
        let mut outputs = cx.infer_graph(start.body, inputs)?.into_iter();
        condition = match outputs.next().as_ref().and_then(Fact::const_ints).as_deref() {
            Some([value]) => Some(*value != 0),
            _ => None,
        };
        carried.extend(outputs.by_ref().take(start.carried.len()));
        left.resize(outputs.len(), Vec::new());
        for (column, fact) in left.iter_mut().zip(outputs) {
            column.push(fact);
        }
        trips += 1;
    }
    if trips == 0 || another(cx, start, trips, condition) != Some(false) {
        return Ok(None);
    }
    carried.extend(left.iter().map(|column| stacked(cx, column)));
    Ok(Some(Followed { trips, results: carried }))
}

/// Returns whether another iteration follows `trips` iterations, if that is decided.
fn another(cx: &InferCx<'_>, start: &Start<'_>, trips: usize, condition: Option<bool>) -> Option<bool> {
    if condition == Some(false) && start.conditional {
        return Some(false);
    }
    let below = match &start.limit {
        None => true,
        Some(limit) => {
            let done = Dim::constant(i64::try_from(trips).ok()?);
            let below = cx.scope().lt(&done, limit.as_ref()?);
            if below.is_no() {
                return Some(false);
            }
            below.is_yes()
        }
    };
    (below && condition == Some(true)).then_some(true)
}

/// Concatenates scan outputs along a new first axis. All have the same shape, or the loop fails.
fn stacked(cx: &InferCx<'_>, column: &[Fact]) -> Fact {
    let Some(first) = column.first() else { return Fact::unknown() };
    let scope = cx.scope();
    let is_vague = |dim: &Dim| dim.symbols().into_iter().any(|symbol| scope.is_fresh(symbol));
    let Some(shape) = column.iter().map(Fact::shape).find(Option::is_some).flatten() else {
        return Fact::tensor(first.dtype(), None);
    };
    let clearest = |axis: usize, dim: &Dim| {
        let mut dims = column.iter().filter_map(|fact| fact.shape()?.get(axis));
        dims.find(|dim| !is_vague(dim)).unwrap_or(dim).clone()
    };
    let length = Dim::constant(i64::try_from(column.len()).unwrap_or(i64::MAX));
    let dims = std::iter::once(length).chain(shape.iter().enumerate().map(|(axis, dim)| clearest(axis, dim)));
    let fact = Fact::tensor(first.dtype(), Some(dims.collect()));
    match column.iter().map(Fact::elements).collect::<Option<Vec<Vec<Scalar>>>>() {
        Some(elements) => fact.with_elements(elements.concat()),
        None => fact,
    }
}
