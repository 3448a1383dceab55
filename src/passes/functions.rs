//! Functions a model brings along are folded like the main graph: where a call becomes the body, and in the body that stays.
//!
//! A body that stays is folded under what holds at every call of it: the types, sizes and contents of operands that all calls agree
//! on, and the attributes they all give the same value. Nodes that refer to any other attribute stand for something else in each
//! call, and are left alone.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::dead::graphs_below;
use super::library::{Calls, bindings, discard, function, inline, model_size, prune, size, unveil, veil};
use super::manager::{RunError, Settled, run_as_it_is, settle, skips};
use super::options::Options;
use super::simplify::{Fired, Rules};
use crate::dim::{Dim, Scope};
use crate::ir::{
    Attribute, Binding, Constant, Definition, Fact, Facts, FunctionId, GraphId, Model, NewNode, Node, NodeId,
    TensorType, Type, ValueId,
};
use crate::ops::{Budget, Walk};

/// Larger bodies than these, in turn, are not copied to several calls. The first is never in vain.
const LARGEST: [usize; 3] = [1, 8, usize::MAX];

/// How many times as many nodes a model may have in between, before what is decided is folded.
const MOST_GROWTH: usize = 4;

/// Runs the passes on a model with functions. Calls become bodies where that leaves fewer nodes, those in functions counted once.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(
    model: &mut Model,
    scope: &Rc<Scope>,
    options: &Options,
    model_bytes: usize,
    watch: &mut dyn FnMut(&'static str),
) -> Result<Settled, RunError> {
    prune(model);
    let original = model.clone();
    let most = model_size(model).saturating_mul(MOST_GROWTH);
    let mut best: Option<(usize, Model, Settled)> = None;
    let mut tried = None;
    for largest in LARGEST {
        let mut candidate = original.clone();
        let inlined = if skips(options, INLINE) { 0 } else { inline(&mut candidate, largest, most)? };
        if tried == Some(inlined) {
            continue;
        }
        tried = Some(inlined);
        let is_flat = candidate.functions().next().is_none();
        let mut outcome = run_as_it_is(&mut candidate, Rc::clone(scope), options, model_bytes, watch)?;
        *outcome.fired.entry(INLINE).or_default() += inlined;
        let nodes = model_size(&candidate);
        if best.as_ref().is_none_or(|&(fewest, ..)| nodes < fewest) {
            best = Some((nodes, candidate, outcome));
        }
        if is_flat {
            break;
        }
    }
    match best {
        // Names that must survive may cost more than the calls they save.
        Some((nodes, folded, outcome)) if nodes <= model_size(&original) => {
            *model = folded;
            Ok(outcome)
        }
        _ => run_as_it_is(model, Rc::clone(scope), options, model_bytes, watch),
    }
}

/// The pass that replaces calls, and the one that folds what stays, as `--skip` takes them.
pub(super) const INLINE: &str = "inline-function";
pub(super) const BODIES: &str = "fold-function";

/// Folds every function's body. Returns how many nodes that saves.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn fold_bodies(
    model: &mut Model,
    facts: &Facts,
    options: &Options,
    rules: &mut Rules,
    fired: &mut Fired,
) -> Result<usize, RunError> {
    let before = model_size(model);
    let calls = Calls::of(model);
    // What a function gives to itself, nobody follows.
    if calls.has_circles() || model.keeps_functions {
        return Ok(0);
    }
    let mut agreed = Agreed::default();
    agreed.note(model, model.main(), facts);
    // Those that call come before those that are called.
    for &id in calls.order.iter().rev() {
        let Some(body) = function(model, id).map(|function| function.body) else { continue };
        let sites = calls.sites.get(&id).map(Vec::as_slice).unwrap_or_default();
        let inside = fold_body(model, facts.scope(), options, rules, fired, (id, body), &agreed, sites)?;
        if let Some(inside) = inside {
            let body = function(model, id).map_or(body, |function| function.body);
            agreed.note(model, body, &inside);
        } else {
            agreed.note(model, body, &Facts::new(Rc::clone(facts.scope())));
        }
    }
    prune(model);
    Ok(before.saturating_sub(model_size(model)))
}

/// What all calls of each function give for its inputs, and for its attributes.
#[derive(Default)]
struct Agreed {
    inputs: FxHashMap<FunctionId, Vec<Option<Fact>>>,
    attributes: FxHashMap<FunctionId, FxHashMap<String, Binding>>,
}

impl Agreed {
    /// Takes in the calls in a graph and those inside it.
    fn note(&mut self, model: &Model, root: GraphId, facts: &Facts) {
        for graph in graphs_below(model, root) {
            for id in model.graph(graph).nodes() {
                let Some(node) = model.node(id) else { continue };
                let Some((callee, function)) = model.function_of(node) else { continue };
                let inputs = (0..model.graph(function.body).inputs().len()).map(|i| {
                    let value = node.input(i)?;
                    Some(facts.get(value).cloned().unwrap_or_default())
                });
                let inputs: Vec<Option<Fact>> = inputs.collect();
                let mut attributes = bindings(model, callee, id);
                attributes.retain(|_, binding| is_bound(binding));
                match self.inputs.get_mut(&callee) {
                    None => {
                        self.inputs.insert(callee, inputs);
                        self.attributes.insert(callee, attributes);
                    }
                    Some(known) => {
                        for (known, other) in known.iter_mut().zip(inputs) {
                            *known = match (known.take(), other) {
                                (Some(known), Some(other)) => Some(both(facts.scope(), &known, &other)),
                                _ => None,
                            };
                        }
                        if let Some(known) = self.attributes.get_mut(&callee) {
                            known.retain(|name, binding| {
                                attributes.get(name).is_some_and(|other| same_binding(binding, other))
                            });
                        }
                    }
                }
            }
        }
    }
}

/// Whether what an attribute is bound to is known, and is no graph.
fn is_bound(binding: &Binding) -> bool {
    match binding {
        Binding::Absent => true,
        Binding::Value(value) => !matches!(value, Attribute::Reference { .. }) && value.graphs().is_empty(),
    }
}

fn same_binding(a: &Binding, b: &Binding) -> bool {
    match (a, b) {
        (Binding::Absent, Binding::Absent) => true,
        (Binding::Value(a), Binding::Value(b)) => a.same(b),
        _ => false,
    }
}

/// What holds of two values.
fn both(scope: &Scope, a: &Fact, b: &Fact) -> Fact {
    let ty = match (&a.ty, &b.ty) {
        (Some(Type::Tensor(a)), Some(Type::Tensor(b))) => {
            let shape = match (&a.shape, &b.shape) {
                (Some(x), Some(y)) if x.len() == y.len() => {
                    let dim = |(x, y): (&Dim, &Dim)| if x == y { x.clone() } else { scope.fresh_dim("dim") };
                    Some(x.iter().zip(y).map(dim).collect())
                }
                _ => None,
            };
            Some(Type::Tensor(TensorType { dtype: a.dtype.filter(|_| a.dtype == b.dtype), shape }))
        }
        (a, b) if a == b => a.clone(),
        _ => None,
    };
    let content = match (a.data(), b.data()) {
        (Some(x), Some(y)) if x.same(y) => a.content.clone(),
        _ => None,
    };
    Fact { ty, content }
}

/// Folds a copy of a function's body, and makes it the body if it has fewer nodes. Returns what is known of the values in the body
/// that there is then, if anything.
#[allow(clippy::too_many_arguments)]
fn fold_body(
    model: &mut Model,
    scope: &Rc<Scope>,
    options: &Options,
    rules: &mut Rules,
    fired: &mut Fired,
    (id, body): (FunctionId, GraphId),
    agreed: &Agreed,
    sites: &[NodeId],
) -> Result<Option<Facts>, RunError> {
    let Some(inputs) = agreed.inputs.get(&id).filter(|_| !sites.is_empty()) else { return Ok(None) };
    // An operand that some call leaves out is in that call nothing at all.
    let mut given = model.graph(body).inputs().iter().zip(inputs);
    if given.any(|(&input, fact)| fact.is_none() && !model.is_unused(input)) || model.opset(body, "").is_none() {
        return Ok(None);
    }
    let bound = agreed.attributes.get(&id).cloned().unwrap_or_default();
    let copy = model.copy_body(body, &bound)?;
    if let Some(function) = model.function_mut(id) {
        function.body = copy;
    }
    // What refers to an attribute of the call stands for something else in each call.
    let refers =
        |_: &Model, node: &Node| node.attributes.iter().any(|held| matches!(held.value, Attribute::Reference { .. }));
    let graphs = graphs_below(model, copy);
    let veiled = veil(model, &graphs, &refers);
    let mut walk = Walk::new(Rc::clone(scope), options.slice_rule, Budget::default());
    for (&input, fact) in model.graph(copy).inputs().to_vec().iter().zip(inputs) {
        walk.facts.set(input, fact.clone().unwrap_or_default());
    }
    let main = model.set_main(copy);
    let settled = settle(model, &mut walk, options, (rules, fired), 0, &mut |_| {});
    model.set_main(main);
    settled?;
    unveil(model, &veiled);
    spell_out(model, copy)?;
    if size(model, copy) < size(model, body) {
        discard(model, body);
        return Ok(Some(walk.facts));
    }
    if let Some(function) = model.function_mut(id) {
        function.body = body;
    }
    discard(model, copy);
    Ok(None)
}

/// Functions have no initializers: makes Constants of those that are read.
fn spell_out(model: &mut Model, body: GraphId) -> Result<(), RunError> {
    let held: Vec<ValueId> = model.graph(body).initializers().to_vec();
    let constants: Vec<(ValueId, Box<Constant>)> = held
        .iter()
        .filter(|&&value| matches!(model.value(value).definition(), Definition::Initializer(_)))
        .filter_map(|&value| Some((value, model.value(value).constant.clone()?)))
        .collect();
    model.remove_initializers(&held.into_iter().collect::<FxHashSet<_>>());
    for (value, constant) in constants {
        let Some(tensor) = constant.tensor.filter(|_| !model.is_unused(value)) else { continue };
        let node = NewNode::new("Constant", []).with("value", tensor).output(value);
        model.add_node(body, node)?;
    }
    Ok(())
}
