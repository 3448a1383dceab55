//! Folds the bodies of the remaining functions like the main graph.
//!
//! A body is folded under the facts that hold at every call: the types, sizes and contents of operands on which all calls agree, and the attributes
//! with the same value in all calls. Nodes that refer to any other attribute differ between calls, and are kept unchanged.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::constant_nodes::spell_initializers;
use super::dead::{self, graphs_below};
use super::driver::settle;
use super::edits::EditCounter;
use super::inline::call_graph::{Calls, discard, prune, size};
use super::inline::calls::bindings;
use super::opaque::{make_opaque, make_plain};
use super::outcome::RunError;
use super::pass::{Pass, Run, Work};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Binding, Fact, Facts, FunctionId, GraphId, Model, Node, TensorType, Type};
use crate::ops::{Budget, Walk};

/// The name of the pass, under which its edits are counted.
pub(super) const NAME: &str = "fold-function";

/// Folds every function's body with these passes. `facts` are those of the main graph's values.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn fold_bodies(
    model: &mut Model,
    facts: &Facts,
    run: &mut Run,
    infer: &Pass,
    passes: &[Pass],
) -> Result<(), RunError> {
    if model.functions().next().is_none() {
        return Ok(());
    }
    let calls = Calls::of(model);
    // The operands of recursive calls are not analyzed.
    if calls.has_circles() || model.keeps_functions {
        return Ok(());
    }
    let mut agreed = Agreed::default();
    agreed.note(model, model.main(), facts);
    // Callers come before callees.
    for &id in calls.order.iter().rev() {
        let Some(body) = model.function(id).map(|function| function.body) else { continue };
        let is_called = calls.sites.get(&id).is_some_and(|sites| !sites.is_empty());
        let call = agreed.call(id).filter(|call| is_called && fits(model, body, call));
        let inside = match call {
            Some(call) => fold_body(model, facts.scope(), run, (infer, passes), (id, body), &call)?,
            None => None,
        };
        let body = model.function(id).map_or(body, |function| function.body);
        agreed.note(model, body, &inside.unwrap_or_else(|| Facts::new(Rc::clone(facts.scope()))));
    }
    if !run.skips(dead::NAME) {
        prune(model, &mut run.edits);
    }
    Ok(())
}

/// The inputs and attributes of each function on which all calls agree.
#[derive(Default)]
struct Agreed {
    inputs: FxHashMap<FunctionId, Vec<Option<Fact>>>,
    attributes: FxHashMap<FunctionId, FxHashMap<String, Binding>>,
}

/// The inputs and attributes of one function on which all calls agree.
#[derive(Clone)]
struct Call {
    inputs: Vec<Option<Fact>>,
    attributes: FxHashMap<String, Binding>,
}

impl Agreed {
    /// Returns the inputs and attributes on which all noted calls of a function agree.
    fn call(&self, id: FunctionId) -> Option<Call> {
        let inputs = self.inputs.get(&id)?.clone();
        Some(Call { inputs, attributes: self.attributes.get(&id).cloned().unwrap_or_default() })
    }

    /// Adds the calls in a graph and its subgraphs.
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

/// Returns `true` if the value of an attribute is known, and is no graph.
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

/// Returns the facts that hold for both values.
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

/// Returns `true` if a body can be folded under the facts of its calls. An operand that some call omits does not exist in that call, so nothing may
/// read it.
fn fits(model: &Model, body: GraphId, call: &Call) -> bool {
    let mut given = model.graph(body).inputs().iter().zip(&call.inputs);
    model.opset(body, "").is_some() && given.all(|(&input, fact)| fact.is_some() || model.is_unused(input))
}

/// Folds a function's body, and keeps the result if it has fewer nodes. Returns the facts about the values in the new body.
///
/// With limited edits, an unlimited fold of a copy of the model makes this decision, so that it does not depend on the limit.
fn fold_body(
    model: &mut Model,
    scope: &Rc<Scope>,
    run: &mut Run,
    passes: (&Pass, &[Pass]),
    (id, body): (FunctionId, GraphId),
    call: &Call,
) -> Result<Option<Facts>, RunError> {
    let edits = run.edits.clone();
    if edits.is_limited() {
        let mut rehearsal = Run::new(&run.options, EditCounter::unlimited(), run.payload);
        let mut model = model.clone();
        let (copy, _) = fold_copy(&mut model, scope, &mut rehearsal, passes, (id, body), call)?;
        if size(&model, copy) >= size(&model, body) {
            return Ok(None);
        }
    }
    if !run.edits.take(NAME, || function_name(model, id)) {
        return Ok(None);
    }
    let (copy, facts) = fold_copy(model, scope, run, passes, (id, body), call)?;
    if size(model, copy) < size(model, body) || edits.is_limited() {
        discard(model, body);
        return Ok(Some(facts));
    }
    if let Some(function) = model.function_mut(id) {
        function.body = body;
    }
    discard(model, copy);
    run.edits = edits;
    Ok(None)
}

/// Describes a function.
fn function_name(model: &Model, id: FunctionId) -> String {
    model.function(id).map(|function| format!("function '{}'", function.name)).unwrap_or_default()
}

/// Replaces a function's body by a copy, and folds the copy. Returns the copy and the facts about its values.
fn fold_copy(
    model: &mut Model,
    scope: &Rc<Scope>,
    run: &mut Run,
    (infer, passes): (&Pass, &[Pass]),
    (id, body): (FunctionId, GraphId),
    call: &Call,
) -> Result<(GraphId, Facts), RunError> {
    let copy = model.copy_body(body, &call.attributes)?;
    if let Some(function) = model.function_mut(id) {
        function.body = copy;
    }
    // A node that refers to an attribute of the call differs between calls.
    let refers =
        |_: &Model, node: &Node| node.attributes.iter().any(|held| matches!(held.value, Attribute::Reference { .. }));
    let graphs = graphs_below(model, copy);
    let opaque = make_opaque(model, &graphs, &refers);
    let mut walk = Walk::new(Rc::clone(scope), run.options.slice_rule, Budget::default());
    for (&input, fact) in model.graph(copy).inputs().to_vec().iter().zip(&call.inputs) {
        walk.facts.set(input, fact.clone().unwrap_or_default());
    }
    let main = model.set_main(copy);
    let settled = settle(&mut Work::new(model, &mut walk, run, 0), infer, passes, &mut |_| {});
    model.set_main(main);
    settled?;
    let graphs = graphs_below(model, copy);
    make_plain(model, &graphs, &opaque);
    spell_initializers(model, copy, &FxHashSet::default())?;
    Ok((copy, walk.facts))
}
