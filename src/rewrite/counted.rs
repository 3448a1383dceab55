//! Loops that count up to a limit.
//!
//! Exporters of TensorFlow write `while i < n` with a condition that is computed before the Loop and in each iteration. A Loop is told how often
//! to run instead. A condition that is computed all the same is true in each iteration but the last, after which none comes, so it does not matter
//! whether a runtime still asks for it.
//!
//! The condition before the first iteration becomes the constant true. The standard allows an absent operand there, but not every consumer
//! reads that as true (`introduced`).

use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Attribute, Definition, Edit, GraphId, Model, NewNode, Node, NodeId, ValueId};
use crate::tensor::{Bool, DType, Tensor};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "counted-loop",
        law: "Loop(0 < n, i = 0) with condition i + 1 < n = Loop(n, true, i = 0)",
        sentence: "Replaces the condition of a Loop that compares a counter with a limit by the trip count of the Loop.",
        premises: &[
            ("counts", "a loop-carried integer i starts at 0 and increases by 1 in each iteration"),
            ("same-limit", "the initial condition and the condition of each iteration compare with the same limit n"),
            ("no-fewer", "if the Loop already has a trip count, this trip count is proved to be at most n"),
            ("one-number", "n is an int32 or int64 scalar"),
        ],
        exact: true,
        operators: &["Loop"],
        apply: counted,
    },
    Rule {
        name: "goes-on",
        law: "i + 1 < n = true in Loop(n, true, i = 0), in all iterations but the last",
        sentence: "Replaces the computed condition of a Loop by true, if the trip count ends the Loop at least as early as the condition would.",
        premises: &[
            ("counts", "a loop-carried integer i starts at 0 and increases by 1 in each iteration"),
            (
                "told",
                "the Loop has a trip count that is proved to be at most n, and the initial condition of the Loop is absent or the constant true",
            ),
            ("for-nothing-else", "the result of the comparison is used only as the condition output of the subgraph"),
        ],
        exact: true,
        operators: &["Less", "Greater"],
        apply: goes_on,
    },
];

/// What a Loop counts up to.
struct Count {
    /// What is counted, before the first iteration.
    start: ValueId,
    /// The limit, outside of the body.
    limit: ValueId,
}

fn counted(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let condition = node.input(1).ok_or(Miss::ROOT)?;
    let &Attribute::Graph(body) = node.attribute("body").ok_or(Miss::ROOT)? else { return Err(miss!("counts")) };
    let Count { start, limit } = count(place, node, body).ok_or(miss!("counts"))?;
    let (first, below) = compares(place.model, condition, place.graph().ok_or(Miss::ROOT)?).ok_or(miss!("counts"))?;
    let is_zero = |value: ValueId| place.constant(value).and_then(Tensor::to_i64s).is_some_and(|number| number == [0]);
    let dtype = place.dtype(limit).ok_or(miss!("counts").of(limit))?;
    ensure(first == start || is_zero(first), miss!("counts"))?;
    ensure(below == limit, miss!("same-limit"))?;
    ensure(matches!(dtype, DType::Int32 | DType::Int64), miss!("one-number"))?;
    ensure(place.dims(limit)?.is_empty(), miss!("one-number").of(limit))?;
    let mut edit = place.begin()?;
    match node.input(0) {
        Some(times) if is_at_most(place, times, limit) => {}
        Some(_) => return Err(miss!("no-fewer")),
        None if dtype == DType::Int64 => edit.rewire.push((place.id, 0, Some(limit))),
        None => {
            let times = edit.new_value(limit, "times");
            let cast = place.build(&mut edit, limit).cast(limit, DType::Int64).ok_or(Miss::EXPRESSIBLE)?;
            edit.insert.push(cast.output(times));
            edit.rewire.push((place.id, 0, Some(times)));
        }
    }
    let begins = edit.constant(condition, "true", Tensor::scalar(Bool(1)));
    edit.rewire.push((place.id, 1, Some(begins)));
    Ok(edit)
}

fn goes_on(place: &Place<'_>) -> Result<Edit, Miss> {
    let (body, output) = (place.graph().ok_or(Miss::ROOT)?, place.result()?);
    let owner = place
        .model
        .node(place.model.graph(body).parent().ok_or(Miss::ROOT)?)
        .filter(|owner| owner.is("Loop"))
        .ok_or(Miss::ROOT)?;
    let graph = place.model.graph(body);
    let is_condition =
        graph.outputs().first() == Some(&output) && !graph.outputs().iter().skip(1).any(|&other| other == output);
    let is_true = |value: ValueId| place.constant(value).and_then(Tensor::to_f64s).is_some_and(|flag| flag == [1.0]);
    ensure(owner.input(1).is_none_or(is_true), miss!("told"))?;
    ensure(is_condition, miss!("for-nothing-else"))?;
    ensure(place.model.users(output).is_empty(), miss!("for-nothing-else"))?;
    let Count { limit, .. } = count(place, owner, body).ok_or(miss!("counts"))?;
    ensure(is_at_most(place, owner.input(0).ok_or(Miss::ROOT)?, limit), miss!("told"))?;
    let goes_on = NewNode::new("Identity", [graph.inputs().get(1).copied()]);
    place.instead(place.begin()?, goes_on)
}

/// What a Loop counts up to from 0, if its body gives `i + 1 < limit` as the condition.
fn count(place: &Place<'_>, owner: &Node, body: GraphId) -> Option<Count> {
    let model = place.model;
    let graph = model.graph(body);
    let (states, results) = (graph.inputs().get(2..)?, graph.outputs().get(1..)?);
    let (next, limit) = compares(model, *graph.outputs().first()?, body)?;
    let at = results.iter().position(|&result| result == next)?;
    let add = inside(model, next, body).filter(|add| add.is("Add"))?;
    let (&[Some(a), Some(b)], &state) = (add.inputs(), states.get(at)?) else { return None };
    let step = if a == state { b } else { a };
    if !(a == state || b == state) || place.constant(step)?.to_i64s()? != [1] {
        return None;
    }
    let start = owner.input(at.checked_add(2)?)?;
    if place.constant(start)?.to_i64s()? != [0] {
        return None;
    }
    let limit = match model.value(limit).definition() {
        Definition::Input(own) if own == body => {
            let at = states.iter().position(|&state| state == limit)?;
            let &result = results.get(at)?;
            let is_copy =
                inside(model, result, body).is_some_and(|node| node.is("Identity") && node.input(0) == Some(limit));
            (result == limit || is_copy).then(|| owner.input(at.checked_add(2)?))??
        }
        Definition::Node(id, _) if model.node(id).is_none_or(|node| node.graph() == body) => return None,
        Definition::Initializer(own) if own == body => return None,
        Definition::Nothing => return None,
        Definition::Input(_) | Definition::Node(..) | Definition::Initializer(_) => limit,
    };
    Some(Count { start, limit })
}

/// The operands `a` and `b` of `a < b`, computed in this graph.
fn compares(model: &Model, value: ValueId, graph: GraphId) -> Option<(ValueId, ValueId)> {
    let node = inside(model, value, graph)?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    match () {
        () if node.is("Less") => Some((a, b)),
        () if node.is("Greater") => Some((b, a)),
        () => None,
    }
}

/// The node of this graph that computes a value.
fn inside(model: &Model, value: ValueId, graph: GraphId) -> Option<&Node> {
    let id: NodeId = model.value(value).producer()?;
    model.node(id).filter(|node| node.graph() == graph)
}

/// Whether one integer is proved to be at most another.
fn is_at_most(place: &Place<'_>, a: ValueId, b: ValueId) -> bool {
    let number = |value: ValueId| {
        let numbers = place.fact(value)?.ints()?;
        let [number] = numbers.as_slice() else { return None };
        Some(number.clone())
    };
    number(a).zip(number(b)).is_some_and(|(a, b)| place.scope().le(&a, &b).is_yes())
}
