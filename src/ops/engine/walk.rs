//! The walk: infers facts of all values of a graph, node by node in topological order.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::custom;
use super::declared::{claimed_size, declared_fact, initializer_fact, input_labels, label_size, with_default};
use super::event::{Event, EventKind};
use crate::dim::{Dim, Scope};
use crate::ir::{
    Content, Data, DeclaredType, Fact, Facts, Function, GraphId, Model, NamedAttribute, Node, NodeId, Scalar, ValueId,
};
use crate::ops::contents::state_contents;
use crate::ops::interpret::bindings_of;
use crate::ops::registry::{self, Imported, Operator};
use crate::ops::{Budget, InferCx, Refusal, Site, Status};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

mod evaluate;

/// The largest nesting depth of function calls and subgraphs during inference.
const MAX_DEPTH: usize = 100;

/// The number of visits to nested nodes that each node of the main graph may use alone. Further visits come from the
/// walk's shared limit: nested subgraphs multiply, and a file of a few hundred nodes could take hours.
const OWN_VISITS: usize = 1024;

/// A walk over graphs of a model, with its results.
pub struct Walk {
    pub(in crate::ops) scope: Rc<Scope>,
    /// The facts, by value.
    pub facts: Facts,
    /// The events, in the order of the walk.
    pub events: Vec<Event>,
    /// The budget of evaluation.
    pub budget: Budget,
    /// Nodes that fail for all operands.
    pub hopeless: FxHashSet<NodeId>,
    /// Nodes that violate the standard, but that ONNX Runtime accepts.
    pub lax: FxHashSet<NodeId>,
    /// Calls of functions in which a node fails.
    pub failing_calls: FxHashSet<NodeId>,
    /// The reading of disputed slices.
    pub slice_rule: SliceRule,
    /// `true` if nodes with constant operands are evaluated.
    pub evaluate: bool,
    /// Nodes whose constant results are not written, and `true` if other constants are computed from them.
    pub unstated: FxHashMap<NodeId, bool>,
    /// The results of such nodes from which other constants are computed.
    hidden: FxHashMap<ValueId, Data>,
    /// `true` if declared types complete inferred ones. Facts that follow from them are only claimed.
    pub trust_declared: bool,
    /// `true` if this also applies to the inputs of bodies.
    pub trust_body_inputs: bool,
    /// The decided numbers of iterations of loops and scans, as last inferred.
    pub trips: FxHashMap<NodeId, usize>,
    /// Loops and scans whose bodies provably run, as last inferred.
    pub surely: FxHashSet<NodeId>,
    /// The number of loops that are currently followed iteration by iteration.
    pub(in crate::ops) following: usize,
    /// The labels of the main graph's inputs, including replaced ones.
    labels: Vec<String>,
    /// Labels of inputs that assumed dims replaced; declared shapes inside the model may still contain them.
    pub replaced: Vec<String>,
    /// For each node of the main graph with subgraphs, a hash of its content and operands when it was last inferred.
    inferred: FxHashMap<NodeId, u64>,
    /// `true` if the function that is being inferred contains a failing call.
    fails: bool,
    depth: usize,
    /// The remaining visits of the walk, and those of the current node of the main graph, which are used first.
    visits: usize,
    own_visits: usize,
    bindings: Rc<[NamedAttribute]>,
    opsets: Imported,
}

impl Walk {
    /// Creates a walk without facts.
    pub fn new(scope: Rc<Scope>, slice_rule: SliceRule, budget: Budget) -> Self {
        Walk {
            facts: Facts::new(Rc::clone(&scope)),
            scope,
            events: Vec::new(),
            hopeless: FxHashSet::default(),
            lax: FxHashSet::default(),
            failing_calls: FxHashSet::default(),
            budget,
            slice_rule,
            evaluate: true,
            unstated: FxHashMap::default(),
            hidden: FxHashMap::default(),
            trust_declared: false,
            trust_body_inputs: false,
            trips: FxHashMap::default(),
            surely: FxHashSet::default(),
            following: 0,
            labels: Vec::new(),
            replaced: Vec::new(),
            inferred: FxHashMap::default(),
            fails: false,
            depth: 0,
            visits: 0,
            own_visits: 0,
            bindings: Rc::new([]),
            opsets: Imported::default(),
        }
    }

    /// Returns the scope of the symbols.
    pub fn scope(&self) -> &Rc<Scope> {
        &self.scope
    }

    /// Infers the facts of all values of the main graph and its subgraphs. Existing facts are kept, and nodes whose
    /// results all have one are skipped: after an edit, [`Walk::forget`] the values that may have changed. A node
    /// whose subgraphs or operands changed is inferred again for its inner values.
    ///
    /// # Errors
    /// The graph has a cycle.
    pub fn infer_main(&mut self, model: &Model) -> Result<(), Refusal> {
        self.visits = 50_000usize.saturating_add(model.value_count().saturating_mul(64));
        self.own_visits = 0;
        let main = model.main();
        let mut labels = input_labels(model, main);
        labels.extend(self.replaced.iter().cloned());
        self.labels = labels;
        for &value in model.graph(main).inputs() {
            if self.facts.get(value).is_none() {
                let declared = model.value(value).declared.as_ref();
                let has_default = model.value(value).tensor().is_some();
                // The caller may omit this input and choose any dim for another input with the same label.
                let counts = |label: &str| !has_default || !is_shared(model, value, label);
                let size = |label: &str| counts(label).then(|| label_size(&self.scope, label));
                let fact = declared.map_or_else(Fact::unknown, |ty| declared_fact(&self.scope, ty, &size));
                let fact = match model.value(value).tensor() {
                    Some(default) => with_default(&self.scope, fact, default),
                    None => fact,
                };
                let fact = self.with_run_time_integers(fact, &model.value(value).name);
                for dim in fact.shape().into_iter().flatten() {
                    let is_computed = dim.as_const().is_none() && dim.as_symbol().is_none();
                    if is_computed && !self.scope.ge(dim, &Dim::constant(0)).is_yes() {
                        self.scope.assume_le(&Dim::constant(0), dim);
                    }
                }
                self.facts.set(value, fact);
            }
        }
        self.infer_nodes(model, main)
    }

    /// Adds a symbol for each element of a small integer input: it is unknown, but equal wherever it is read.
    fn with_run_time_integers(&self, fact: Fact, name: &str) -> Fact {
        const MOST: usize = 16;
        let integers = fact.dtype().is_some_and(|dtype| matches!(dtype, DType::Int64 | DType::Int32));
        match fact.static_len().filter(|&len| integers && len <= MOST) {
            None => fact,
            Some(len) => {
                let new = || match fact.dtype() {
                    Some(DType::Int32) => self.scope.fresh_integer(name, Some(i32::MIN.into()), Some(i32::MAX.into())),
                    _ => self.scope.fresh_value(name),
                };
                let elements = (0..len).map(|_| Scalar::Int(new())).collect();
                fact.with_elements(elements)
            }
        }
    }

    /// Removes the fact of a value, so that the next walk infers it again.
    pub fn forget(&mut self, value: ValueId) {
        self.facts.forget(value);
    }

    fn infer_nodes(&mut self, model: &Model, graph: GraphId) -> Result<(), Refusal> {
        for &value in model.graph(graph).initializers() {
            if self.facts.get(value).is_none() {
                let fact = initializer_fact(&self.scope, model, value);
                self.facts.set(value, fact);
            }
        }
        let order = model.topological(graph).map_err(|broken| Refusal::invalid(broken.to_string()))?;
        for id in order {
            let Some(node) = model.node(id) else { continue };
            let mut outputs = node.outputs().iter().flatten();
            if node.outputs().is_empty() || outputs.any(|&value| self.facts.get(value).is_none()) {
                self.infer_node(model, id, node);
                self.has_changed_inside(model, id, node);
            } else if self.has_changed_inside(model, id, node) {
                self.infer_again(model, id, node);
            }
        }
        Ok(())
    }

    /// Returns `true` if the content or the operands of a node of the main graph changed since its last inference.
    fn has_changed_inside(&mut self, model: &Model, id: NodeId, node: &Node) -> bool {
        if self.depth > 0 || node.subgraphs().next().is_none() {
            return false;
        }
        let now = hash_inside(model, node);
        self.inferred.insert(id, now).is_some_and(|before| before != now)
    }

    /// Infers a node again for its inner values. The facts of its results still hold and other facts refer to them,
    /// so they are kept unless the results are constant now.
    fn infer_again(&mut self, model: &Model, id: NodeId, node: &Node) {
        let outputs = || node.outputs().iter().flatten().copied();
        let before: Vec<(ValueId, Fact)> = outputs().filter_map(|v| Some((v, self.facts.get(v)?.clone()))).collect();
        self.infer_node(model, id, node);
        for (value, fact) in before {
            let again = self.facts.get(value).cloned().unwrap_or_default();
            let is_known = fact.data().is_none() && again.data().is_some();
            let (stays, other) = if is_known { (again, fact) } else { (fact, again) };
            self.facts.set(value, stays);
            // Both are proved; if they differ, other facts rest on the first.
            let _ = self.facts.meet(value, other);
        }
    }

    fn infer_node(&mut self, model: &Model, id: NodeId, node: &Node) {
        let known = |value: ValueId| self.facts.get(value).cloned().unwrap_or_default();
        let inputs: Vec<Option<Fact>> = node.inputs().iter().map(|input| input.map(known)).collect();
        if self.depth == 0 {
            self.own_visits = OWN_VISITS;
        }
        match self.own_visits.checked_sub(1) {
            Some(left) => self.own_visits = left,
            None => self.visits = self.visits.saturating_sub(1),
        }
        self.scope.meter().count(20);
        // Most nodes have an operand that is not constant; their operands are not needed again.
        let is_known = |(input, fact): (&Option<ValueId>, &Option<Fact>)| {
            let is_hidden = || input.is_some_and(|value| self.hidden.contains_key(&value));
            fact.as_ref().is_none_or(|fact| fact.data().is_some() || is_hidden())
        };
        let is_known = node.inputs().iter().zip(&inputs).all(is_known);
        let operands = if self.evaluate && is_known { inputs.clone() } else { Vec::new() };
        let scope = Rc::clone(&self.scope);
        let (stated, cut) = scope.attempt(|| self.state(model, id, node, inputs));
        if let Some(limit) = cut {
            self.tell(
                id,
                EventKind::Limited,
                format!("the limit {limit} ended a proof or dropped a relation, so less may be stated of its results"),
            );
        }
        let (mut facts, operator) = match stated {
            Ok((facts, operator)) => (facts, operator),
            Err(refusal) => {
                if matches!(refusal, Refusal::Lax(_)) {
                    self.lax.insert(id);
                }
                let kind = match refusal {
                    Refusal::Invalid(_) | Refusal::Lax(_) => EventKind::Invalid,
                    Refusal::Unsupported(_) => EventKind::Undetermined,
                };
                self.tell(id, kind, refusal.to_string());
                if kind == EventKind::Invalid {
                    self.note_hopeless(model, id, node);
                    return self.record(model, id, node, Vec::new());
                }
                (Vec::new(), registry::operator_of(model, node))
            }
        };
        facts.truncate(node.outputs().len());
        facts.resize(node.outputs().len(), Fact::unknown());
        let settled = |(fact, output): (&Fact, &Option<ValueId>)| output.is_none() || fact.data().is_some();
        for fact in &mut facts {
            settle(fact);
        }
        if self.evaluate && is_known && !facts.iter().zip(node.outputs()).all(settled) {
            self.evaluate_node(model, id, node, &operands, operator, &mut facts);
        }
        self.record(model, id, node, facts);
    }

    /// Records a node that inference rejects for unknown operands. Skips calls and nodes with subgraphs, whose inner
    /// values would get facts of other operands.
    fn note_hopeless(&mut self, model: &Model, id: NodeId, node: &Node) {
        if model.function_of(node).is_some() || node.subgraphs().next().is_some() {
            return;
        }
        let inputs = node.inputs().iter().map(|input| input.map(|_| Fact::unknown())).collect();
        let told = self.events.len();
        if matches!(self.state(model, id, node, inputs), Err(Refusal::Invalid(_) | Refusal::Lax(_))) {
            self.hopeless.insert(id);
        }
        self.events.truncate(told);
    }

    /// Infers the node's results.
    fn state(
        &mut self,
        model: &Model,
        id: NodeId,
        node: &Node,
        inputs: Vec<Option<Fact>>,
    ) -> Result<(Vec<Fact>, Option<&'static Operator>), Refusal> {
        if self.visits == 0 && self.own_visits == 0 {
            return Err(Refusal::unsupported(
                "the model has too many calls of functions and subgraphs to follow (limit visits)",
            ));
        }
        let bindings = Rc::clone(&self.bindings);
        if let Some((_, function)) = model.function_of(node) {
            let site = Site { model, id, node, version: 0, slice_rule: self.slice_rule, bindings: &bindings };
            return self.call(&site, function, inputs).0.map(|facts| (facts, None));
        }
        match registry::status_with(model, node, &mut self.opsets) {
            Status::Known(operator, version) => {
                let site = Site { model, id, node, version, slice_rule: self.slice_rule, bindings: &bindings };
                let (symbols, known) = (self.scope.symbol_count(), inputs.clone());
                let infer = |walk: &mut Walk, inputs| (operator.infer)(&mut InferCx { site, inputs, walk });
                let mut facts = infer(self, inputs)?;
                state_contents(site, &operator.traits, &self.facts, &known, &mut facts);
                if node.subgraphs().next().is_none() {
                    self.state_nominal(&facts, symbols, &known, |walk, inputs| infer(walk, inputs).ok());
                }
                Ok((facts, Some(operator)))
            }
            Status::Unknown => {
                let Some(custom) = model.custom(node) else { return Ok((Vec::new(), None)) };
                let site = Site { model, id, node, version: 0, slice_rule: self.slice_rule, bindings: &bindings };
                custom::infer(custom, &site, &inputs, &self.scope).map(|facts| (facts, None))
            }
            other => Err(Refusal::unsupported(registry::why_not_known(model, node, other))),
        }
    }

    fn record(&mut self, model: &Model, id: NodeId, node: &Node, mut facts: Vec<Fact>) {
        facts.resize(node.outputs().len(), Fact::unknown());
        for (value, fact) in node.outputs().iter().zip(facts) {
            let Some(value) = *value else { continue };
            if self.depth == 0 && !self.trust_declared {
                fact.shape().into_iter().flatten().for_each(|dim| self.scope.note_axis(dim));
                // A Size counts existing elements.
                fact.ints()
                    .filter(|_| node.is("Size"))
                    .into_iter()
                    .flatten()
                    .for_each(|count| self.scope.note_axis(&count));
            }
            self.facts.set(value, fact);
            let Some(declared) = model.value(value).declared.as_ref().filter(|_| self.trust_declared) else { continue };
            let claim = self.claimed(declared);
            if let Err(contradiction) = self.facts.meet(value, claim) {
                let reason = format!("'{}': {contradiction}", model.value(value).name);
                self.tell(id, EventKind::FalseClaim, reason);
            }
        }
    }

    /// Returns the fact of a trusted declared type inside the model.
    fn claimed(&self, declared: &DeclaredType) -> Fact {
        declared_fact(&self.scope, declared, &|label| Some(claimed_size(&self.scope, label, &self.labels)))
    }

    fn tell(&mut self, node: NodeId, kind: EventKind, reason: String) {
        self.events.push(Event { node, kind, reason });
    }

    /// Returns the facts of values in a function's body for one call without attribute references. `None` if the
    /// visits are used up.
    pub fn inside_call(&mut self, model: &Model, id: NodeId, inputs: Vec<Option<Fact>>) -> Option<Facts> {
        let node = model.node(id)?;
        let (_, function) = model.function_of(node).filter(|_| self.visits > 0 || self.own_visits > 0)?;
        let bindings = Rc::clone(&self.bindings);
        let site = Site { model, id, node, version: 0, slice_rule: self.slice_rule, bindings: &bindings };
        Some(self.call(&site, function, inputs).1)
    }

    /// Infers a function's body for one call: returns the facts of the results and of inner values, for this call
    /// only.
    fn call(
        &mut self,
        caller: &Site<'_>,
        function: &Function,
        inputs: Vec<Option<Fact>>,
    ) -> (Result<Vec<Fact>, Refusal>, Facts) {
        let bindings: Rc<[NamedAttribute]> = bindings_of(function, caller).into();
        let outer_bindings = std::mem::replace(&mut self.bindings, bindings);
        let outer_facts = std::mem::replace(&mut self.facts, Facts::new(Rc::clone(&self.scope)));
        let told = self.events.len();
        let outer_fails = std::mem::replace(&mut self.fails, false);
        // Declared types of a function use its own names, and belong to no particular call.
        let trusted = std::mem::replace(&mut self.trust_declared, false);
        let given = inputs.into_iter().map(Option::unwrap_or_default).collect();
        let result = self.infer_body(caller.model, function.body, given);
        self.trust_declared = trusted;
        let fails = self.events.drain(told..).any(|event| event.kind == EventKind::Invalid) || self.fails;
        if fails {
            self.failing_calls.insert(caller.id);
        }
        self.fails = fails || outer_fails;
        let inside = std::mem::replace(&mut self.facts, outer_facts);
        self.bindings = outer_bindings;
        (result, inside)
    }

    pub(in crate::ops) fn infer_body(
        &mut self,
        model: &Model,
        graph: GraphId,
        inputs: Vec<Fact>,
    ) -> Result<Vec<Fact>, Refusal> {
        if self.depth >= MAX_DEPTH {
            return Err(Refusal::unsupported(format!("calls are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        forget_inside(&mut self.facts, model, graph);
        let mut given = inputs.into_iter();
        for &value in model.graph(graph).inputs() {
            self.facts.set(value, given.next().unwrap_or_default());
            if let Some(declared) = model.value(value).declared.as_ref()
                && self.trust_declared
                && self.trust_body_inputs
            {
                // If both differ, the passed fact is kept.
                let _ = self.facts.meet(value, self.claimed(declared));
            }
        }
        let walked = self.infer_nodes(model, graph);
        self.depth -= 1;
        walked?;
        let outputs = model.graph(graph).outputs().iter();
        Ok(outputs.map(|&value| self.facts.get(value).cloned().unwrap_or_default()).collect())
    }
}

/// Returns `true` if another input of the main graph has a dim with this label.
fn is_shared(model: &Model, input: ValueId, label: &str) -> bool {
    let others = model.graph(model.main()).inputs().iter().filter(|&&other| other != input);
    let shapes = others.filter_map(|&other| model.value(other).declared.as_ref()?.shape());
    shapes.flatten().any(|dim| dim.claim.name() == Some(label))
}

/// Hashes the operands of a node, and the nodes of its subgraphs with their operands and results.
fn hash_inside(model: &Model, node: &Node) -> u64 {
    let mut hasher = FxHasher::default();
    node.inputs().hash(&mut hasher);
    let mut open: Vec<GraphId> = node.subgraphs().collect();
    while let Some(graph) = open.pop() {
        model.graph(graph).outputs().hash(&mut hasher);
        for (id, node) in model.graph(graph).nodes().filter_map(|id| Some((id, model.node(id)?))) {
            (id, node.inputs(), node.outputs()).hash(&mut hasher);
            open.extend(node.subgraphs());
        }
    }
    hasher.finish()
}

/// Removes the facts of all node results in `graph` and its nested graphs.
fn forget_inside(facts: &mut Facts, model: &Model, graph: GraphId) {
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            for &value in node.outputs().iter().flatten() {
                facts.forget(value);
            }
            open.extend(node.subgraphs());
        }
    }
}

/// Makes the content constant if all elements are.
fn settle(fact: &mut Fact) {
    let (Some(Content::Elements(elements)), Some(shape), Some(dtype)) =
        (&fact.content, fact.static_shape(), fact.dtype())
    else {
        return;
    };
    if let Some(tensor) = tensor_of(dtype, &shape, elements) {
        fact.content = Some(Content::Constant(Data::Tensor(tensor)));
    }
}

fn tensor_of(dtype: DType, shape: &[usize], elements: &[Scalar]) -> Option<Tensor> {
    fn narrow<T: TryFrom<i64>>(elements: &[Scalar]) -> Option<Vec<T>> {
        elements.iter().map(|element| element.as_const_int().and_then(|int| T::try_from(int).ok())).collect()
    }
    fn real(element: &Scalar) -> Option<f64> {
        match element {
            Scalar::Float(value) => Some(*value),
            Scalar::Real { num, den } => num.as_const().map(|num| num as f64 / *den as f64),
            _ => None,
        }
    }
    match dtype {
        DType::Int64 => Tensor::from_vec(shape, narrow::<i64>(elements)?).ok(),
        DType::Int32 => Tensor::from_vec(shape, narrow::<i32>(elements)?).ok(),
        DType::Int16 => Tensor::from_vec(shape, narrow::<i16>(elements)?).ok(),
        DType::Int8 => Tensor::from_vec(shape, narrow::<i8>(elements)?).ok(),
        DType::Uint64 => Tensor::from_vec(shape, narrow::<u64>(elements)?).ok(),
        DType::Uint32 => Tensor::from_vec(shape, narrow::<u32>(elements)?).ok(),
        DType::Uint16 => Tensor::from_vec(shape, narrow::<u16>(elements)?).ok(),
        DType::Uint8 => Tensor::from_vec(shape, narrow::<u8>(elements)?).ok(),
        DType::Bool => {
            let flags = elements.iter().map(|element| match element.as_const_int() {
                Some(0) => Some(false),
                Some(1) => Some(true),
                _ => None,
            });
            Tensor::from_bools(shape, &flags.collect::<Option<Vec<_>>>()?).ok()
        }
        DType::Float => {
            let values = elements.iter().map(real).map(|value| value.map(|value| value as f32));
            Tensor::from_vec(shape, values.collect::<Option<Vec<_>>>()?).ok()
        }
        DType::Double => Tensor::from_vec(shape, elements.iter().map(real).collect::<Option<Vec<_>>>()?).ok(),
        _ => None,
    }
}
