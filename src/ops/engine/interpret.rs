//! Evaluates whole graphs: subgraphs, functions, and models with given inputs.

use rustc_hash::FxHashMap;

use super::custom;
use crate::ir::{CustomOperator, Data, Function, GraphId, Model, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::registry::Eval;
use crate::ops::{Budget, Decline, EvalCx, EvalResult, Site, Status, registry};
use crate::slicing::SliceRule;
use crate::tensor::Tensor;

/// The largest nesting depth of graphs and function calls during evaluation.
const MAX_DEPTH: usize = 32;

/// The values that a graph can read: its own and captured ones.
pub struct Environment<'a> {
    /// The model.
    pub model: &'a Model,
    /// Returns the values of captures.
    pub outer: &'a dyn Fn(ValueId) -> Option<Data>,
    /// In a function: the attributes of the call that the body refers to.
    pub bindings: &'a [NamedAttribute],
    /// `true` if results are only compared with another run. Sums whose order depends on the processor are then
    /// computed in the standard's order; otherwise they are not constant.
    pub compares: bool,
}

impl<'a> Environment<'a> {
    /// Creates the environment of a main graph: without captures and bindings.
    pub fn of(model: &'a Model) -> Self {
        Environment { model, outer: &|_| None, bindings: &[], compares: false }
    }
}

/// Evaluates the main graph or a function body; `inputs` contains one value per graph input.
///
/// # Errors
/// The first node, in order, that cannot be evaluated, with the reason.
pub fn evaluate_graph(
    model: &Model,
    graph: GraphId,
    inputs: Vec<Data>,
    budget: &Budget,
    rule: SliceRule,
) -> EvalResult {
    evaluate_nodes(&Environment::of(model), graph, (inputs, &mut |_, _| Ok(())), budget, rule, 0)
}

/// Receives each computed result of a graph, and may stop the run.
pub type Observer<'o> = &'o mut dyn FnMut(ValueId, &Data) -> Result<(), Decline>;

/// Evaluates a graph with an observer, for results that are only compared with those of another run.
///
/// # Errors
/// The errors of [`evaluate_graph`], and the observer's error.
pub fn evaluate_observed(
    model: &Model,
    graph: GraphId,
    (inputs, observe): (Vec<Data>, Observer<'_>),
    budget: &Budget,
    rule: SliceRule,
) -> EvalResult {
    let environment = Environment { compares: true, ..Environment::of(model) };
    evaluate_nodes(&environment, graph, (inputs, observe), budget, rule, 0)
}

/// Evaluates a node on its operands' values.
///
/// # Errors
/// The reason why the node cannot be evaluated.
pub fn evaluate_node(
    environment: &Environment<'_>,
    id: NodeId,
    node: &Node,
    inputs: Vec<Option<Data>>,
    budget: &Budget,
    rule: SliceRule,
    depth: usize,
) -> EvalResult {
    if depth > MAX_DEPTH {
        return Err(Decline::OverBudget(format!("evaluation is nested more than {MAX_DEPTH} deep")));
    }
    let model = environment.model;
    if let Some((_, function)) = model.function_of(node) {
        let caller = Site { model, id, node, version: 0, slice_rule: rule, bindings: environment.bindings };
        return call(environment, function, &caller, inputs, budget, depth);
    }
    let site = |version| Site { model, id, node, version, slice_rule: rule, bindings: environment.bindings };
    let (eval, version) = match evaluator(model, node)? {
        Evaluator::Operator(eval, version) => (eval, version),
        Evaluator::Custom(custom) => return custom::evaluate(custom, &site(0), &inputs),
    };
    // A deferred operand needs memory when a node reads the whole of it.
    let tensors = || inputs.iter().flatten().filter_map(Data::tensor);
    let unmade = |tensors: &[Tensor]| tensors.iter().fold(0usize, |sum, tensor| sum.saturating_add(tensor.unmade()));
    let deferred: Vec<Tensor> = tensors().filter(|tensor| tensor.unmade() > 0).cloned().collect();
    let before = unmade(&deferred);
    budget.may_make(before)?;
    let result = eval(&mut EvalCx { site: site(version), inputs, budget, environment, depth });
    budget.take_made(before.saturating_sub(unmade(&deferred)));
    result
}

/// The evaluator of a node that calls no function.
enum Evaluator<'m> {
    Operator(Eval, i64),
    Custom(&'m CustomOperator),
}

/// Returns the evaluator of a node.
///
/// # Errors
/// There is no evaluator, for any operands.
fn evaluator<'m>(model: &'m Model, node: &Node) -> Result<Evaluator<'m>, Decline> {
    let (operator, version) = match (registry::status(model, node), model.custom(node)) {
        (Status::Known(operator, version), _) => (operator, version),
        (Status::Unknown, Some(custom)) => return Ok(Evaluator::Custom(custom)),
        (other, _) => return Err(Decline::unsupported(registry::why_not_known(model, node, other))),
    };
    match operator.eval.filter(|_| operator.deterministic) {
        Some(eval) => Ok(Evaluator::Operator(eval, version)),
        None => Err(Decline::unsupported(format!("this program cannot evaluate {}", node.operator()))),
    }
}

/// Checks that all nodes of a graph have an evaluator; does not check subgraphs and functions.
///
/// # Errors
/// The first node without an evaluator, with the reason.
pub fn may_be_evaluated(model: &Model, graph: GraphId) -> Result<(), Decline> {
    for id in model.graph(graph).nodes() {
        let Some(node) = model.node(id).filter(|node| model.function_of(node).is_none()) else { continue };
        evaluator(model, node).map_err(|decline| inside(model, id, decline))?;
    }
    Ok(())
}

pub(in crate::ops) fn evaluate_body(
    environment: &Environment<'_>,
    graph: GraphId,
    inputs: Vec<Data>,
    budget: &Budget,
    rule: SliceRule,
    depth: usize,
) -> EvalResult {
    evaluate_nodes(environment, graph, (inputs, &mut |_, _| Ok(())), budget, rule, depth)
}

fn evaluate_nodes(
    environment: &Environment<'_>,
    graph: GraphId,
    (inputs, observe): (Vec<Data>, Observer<'_>),
    budget: &Budget,
    rule: SliceRule,
    depth: usize,
) -> EvalResult {
    if depth > MAX_DEPTH {
        return Err(Decline::OverBudget(format!("evaluation is nested more than {MAX_DEPTH} deep")));
    }
    let model = environment.model;
    let mut values: FxHashMap<ValueId, Data> = FxHashMap::default();
    let mut given = inputs.into_iter();
    for &value in model.graph(graph).inputs() {
        let default = || model.value(value).tensor().cloned().map(Data::Tensor);
        if let Some(data) = given.next().or_else(default) {
            values.insert(value, data);
        }
    }
    for id in model.topological(graph).map_err(|broken| Decline::invalid(broken.to_string()))? {
        let Some(node) = model.node(id) else { continue };
        let results = {
            let look = |value: ValueId| look_up(environment, &values, value);
            let operands = node.inputs().iter().map(|input| input.map(look).map_or(Ok(None), |found| found.map(Some)));
            let operands = operands.collect::<Result<Vec<_>, _>>().map_err(|name| unknown(&name))?;
            let seen = |value: ValueId| look(value).ok();
            let inner = Environment { outer: &seen, ..*environment };
            evaluate_node(&inner, id, node, operands, budget, rule, depth)
                .map_err(|decline| inside(model, id, decline))?
        };
        for (value, data) in node.outputs().iter().zip(results) {
            if let Some(value) = value {
                observe(*value, &data)?;
                values.insert(*value, data);
            }
        }
    }
    let outputs = model.graph(graph).outputs().iter();
    outputs.map(|&value| look_up(environment, &values, value).map_err(|name| unknown(&name))).collect()
}

fn look_up(environment: &Environment<'_>, values: &FxHashMap<ValueId, Data>, value: ValueId) -> Result<Data, String> {
    let model = environment.model;
    values
        .get(&value)
        .cloned()
        .or_else(|| model.value(value).constant_tensor().cloned().map(Data::Tensor))
        .or_else(|| (environment.outer)(value))
        .ok_or_else(|| model.value(value).name.to_string())
}

fn unknown(name: &str) -> Decline {
    Decline::unsupported(format!("the elements of '{name}' are unknown"))
}

/// Adds the node to a decline.
fn inside(model: &Model, id: NodeId, decline: Decline) -> Decline {
    let place = model.describe(id);
    match decline {
        Decline::Invalid(reason) => Decline::Invalid(format!("{place}: {reason}")),
        Decline::Unsupported(reason) => Decline::Unsupported(format!("{place}: {reason}")),
        Decline::OverBudget(reason) => Decline::OverBudget(format!("{place}: {reason}")),
    }
}

/// Evaluates the body of a called function with the attributes of the call bound.
fn call(
    environment: &Environment<'_>,
    function: &Function,
    caller: &Site<'_>,
    inputs: Vec<Option<Data>>,
    budget: &Budget,
    depth: usize,
) -> EvalResult {
    let given = inputs.into_iter().collect::<Option<Vec<_>>>();
    let given = given.ok_or_else(|| Decline::unsupported("a call of a function omits an operand"))?;
    let bindings = bindings_of(function, caller);
    let inner = Environment { outer: &|_| None, bindings: &bindings, ..*environment };
    evaluate_body(&inner, function.body, given, budget, caller.slice_rule, depth + 1)
}

/// Returns the value of each attribute that a function declares, from the call or the default; omits attributes with
/// neither.
pub(in crate::ops) fn bindings_of(function: &Function, caller: &Site<'_>) -> Vec<NamedAttribute> {
    let required = function.attributes.iter().map(|name| (name.as_str(), None));
    let defaulted = function.defaults.iter().map(|default| (default.name.as_str(), Some(&default.value)));
    required
        .chain(defaulted)
        .filter_map(|(name, default)| {
            let value = caller.attribute(name).or(default)?;
            Some(NamedAttribute::new(name, value.clone()))
        })
        .collect()
}
