//! Shared by Loop and Scan: infers a body with loop-carried values, and stacks scan outputs.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Content, DeclaredDim, DeclaredType, DimClaim, Fact, Facts, GraphId, Model, Scalar, TensorType, Type};
use crate::ops::inferred::infers_numbers;
use crate::ops::join::{Join, Line, element_of, stem_of};
use crate::ops::{Decline, EvalCx, InferCx, Refusal, axis_in};
use crate::tensor::{DType, Tensor};

/// After this many rounds, a carried value that still changes loses its shape and content; one round later, its type.
const ROUNDS: usize = 6;

/// The parameters of a body's inference.
pub(super) struct Iteration {
    /// The body.
    pub(super) body: GraphId,
    /// The inputs before the carried values.
    pub(super) leading: Vec<Fact>,
    /// The carried values of the first iteration.
    pub(super) initial: Vec<Fact>,
    /// The inputs after the carried values.
    pub(super) trailing: Vec<Fact>,
    /// The first symbol that belongs to an iteration. It precedes all symbols of `leading`.
    pub(super) mark: Symbol,
    /// The iteration number.
    pub(super) number: Option<Dim>,
    /// The dims that are at least 0 during an iteration.
    pub(super) supposed: Vec<Dim>,
    /// `true` if the first carried value is a loop condition, which is true during every iteration.
    pub(super) conditional: bool,
}

/// The inferred facts of a body, for every iteration.
pub(super) struct Found {
    body: GraphId,
    /// The carried values at the start of any iteration, and after the last one.
    carried: Vec<Fact>,
    /// The outputs of the body in any iteration, the carried values first.
    outputs: Vec<Fact>,
    scope: Rc<Scope>,
    stem: String,
    mark: Symbol,
    /// The carried dims that are expressions in the iteration number.
    lines: FxHashMap<Dim, Line>,
    /// The number of iterations, for `lines`.
    trips: Option<Dim>,
    /// The dims outside the loop that stand for an iteration's dims.
    outside: FxHashMap<(Moment, Dim), Dim>,
}

/// The iteration from which a dim is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Moment {
    /// The last iteration that runs. Scan outputs have equal shapes in all iterations, so the last one represents
    /// them.
    Last,
    /// The iteration after the last one.
    Next,
}

/// Infers the body until the facts of the carried values hold at the start of every iteration. The last inference is
/// the most general one; its facts of values in the body are kept.
///
/// # Errors
/// The body's number of inputs or outputs does not match the operator.
pub(super) fn iterate(cx: &mut InferCx<'_>, run: &Iteration) -> Result<Found, Refusal> {
    let (scope, stem) = (Rc::clone(cx.walk.scope()), stem_of(cx));
    let given = run.leading.len() + run.initial.len() + run.trailing.len();
    let body = cx.model.graph(run.body);
    if body.inputs().len() != given {
        let wanted = body.inputs().len();
        return Err(Refusal::invalid(format!("the subgraph has {wanted} inputs, but the node passes {given}")));
    }
    if body.outputs().len() < run.initial.len() {
        return Err(Refusal::invalid("the subgraph has fewer outputs than there are loop-carried values"));
    }
    let mut join = Join::carried(&scope, &stem, run.number.as_ref(), run.mark);
    let mut carried = run.initial.clone();
    for (index, fact) in carried.iter_mut().enumerate() {
        *fact = as_taken(cx.model, run, index, fact);
    }
    let told = cx.walk.events.len();
    let mut round = 0;
    loop {
        if let Some(condition) = carried.first_mut().filter(|_| run.conditional) {
            hold_true(condition);
        }
        // Earlier rounds' events rest on facts that were dropped.
        cx.walk.events.truncate(told);
        let inputs = run.leading.iter().chain(&carried).chain(&run.trailing).cloned().collect();
        let mut outputs = scope.supposing(&run.supposed, || cx.infer_graph(run.body, inputs))?;
        join.next_round();
        let mut stable = true;
        let mut next = Vec::with_capacity(carried.len());
        for (index, (before, after)) in carried.iter().zip(&outputs).enumerate() {
            // A join keeps the form of a dim from before the iteration, so that the facts also hold without an
            // iteration.
            let (mut joined, fell) = scope.supposing(&run.supposed, || {
                if run.conditional && index == 0 {
                    join.step(&Fact { content: None, ..before.clone() }, &Fact { content: None, ..after.clone() })
                } else {
                    join.step(before, &as_taken(cx.model, run, index, after))
                }
            });
            if fell && round >= ROUNDS {
                joined = if round == ROUNDS { shapeless(&joined) } else { Fact::unknown() };
            }
            stable &= !fell;
            next.push(joined);
        }
        if stable {
            // Changing dims of a loop usually grow, and are expressions in the iteration number.
            if round > 0 && run.number.is_none() {
                let settled = settled(cx, run, &carried)?;
                cx.walk.events.truncate(told);
                let inputs = run.leading.iter().chain(&carried).chain(&run.trailing).cloned().collect();
                outputs = scope.supposing(&run.supposed, || cx.infer_graph(run.body, inputs))?;
                for (output, shape) in outputs.iter_mut().zip(settled) {
                    if let Some(shape) = shape {
                        *output = Fact::tensor(output.dtype(), Some(shape));
                    }
                }
            }
            let (lines, outside) = (join.into_lines(), FxHashMap::default());
            return Ok(Found {
                body: run.body,
                carried,
                outputs,
                scope,
                stem,
                mark: run.mark,
                lines,
                trips: None,
                outside,
            });
        }
        carried = next;
        round += 1;
    }
}

/// Returns the shapes that the outputs have in every iteration, if following the first iteration proves them.
///
/// Law: if the first iteration produces carried values of certain shapes, and an iteration with these shapes produces
/// the same shapes, then every iteration does. Scan outputs have equal shapes in all iterations, so the first one's.
fn settled(cx: &mut InferCx<'_>, run: &Iteration, carried: &[Fact]) -> Result<Vec<Option<Vec<Dim>>>, Refusal> {
    let is_outer = |dim: &Dim| !dim.symbols().into_iter().any(|symbol| symbol >= run.mark);
    let outer = |fact: &Fact| fact.shape().filter(|dims| dims.iter().all(is_outer)).map(<[Dim]>::to_vec);
    let inputs = |states: Vec<Fact>| run.leading.iter().cloned().chain(states).chain(run.trailing.clone()).collect();
    let scope = Rc::clone(cx.walk.scope());
    // Both inferences share one supposition: broadcast relations are only remembered within it.
    let (mut shapes, again) = scope.supposing(&run.supposed, || {
        let first = cx.infer_graph(run.body, inputs(run.initial.clone()))?;
        let shapes: Vec<Option<Vec<Dim>>> = first.iter().map(outer).collect();
        let states = carried.iter().zip(&shapes).zip(&first).map(|((carried, shape), first)| match shape {
            Some(shape) => Fact::tensor(first.dtype(), Some(shape.clone())),
            None => carried.clone(),
        });
        let again = cx.infer_graph(run.body, inputs(states.collect()))?;
        Ok::<_, Refusal>((shapes, again))
    })?;
    let is_again = |shape: &[Dim], fact: &Fact| {
        let same = |(a, b): (&Dim, &Dim)| a == b || scope.eq(a, b).is_yes();
        fact.shape().is_some_and(|dims| dims.len() == shape.len() && shape.iter().zip(dims).all(same))
    };
    let mut found = shapes.iter().zip(&again).take(carried.len());
    if !found.all(|(shape, fact)| shape.as_ref().is_none_or(|shape| is_again(shape, fact))) {
        shapes.iter_mut().take(carried.len()).for_each(|shape| *shape = None);
    }
    Ok(shapes)
}

/// Returns `true` if a body declares this input as an optional: a value that is not an optional is then wrapped in
/// one.
pub(super) fn takes_optional(model: &Model, body: GraphId, input: usize) -> bool {
    let value = model.graph(body).inputs().get(input);
    let declared = value.and_then(|&value| model.value(value).declared.as_ref());
    matches!(declared, Some(DeclaredType::Optional { .. }))
}

/// Converts the fact of a value to be carried to that of the body's input.
fn as_taken(model: &Model, run: &Iteration, index: usize, fact: &Fact) -> Fact {
    match &fact.ty {
        Some(ty) if !matches!(ty, Type::Optional(_)) && takes_optional(model, run.body, run.leading.len() + index) => {
            Fact::of(Type::Optional(Some(Box::new(ty.clone()))))
        }
        _ => fact.clone(),
    }
}

/// Sets a condition to true, its value during an iteration.
fn hold_true(condition: &mut Fact) {
    if condition.static_len() == Some(1) && condition.dtype() == Some(DType::Bool) {
        condition.content = Some(Content::Elements([Scalar::Int(Dim::constant(1))].into()));
    }
}

/// Returns only the kind and element type of a fact.
fn shapeless(fact: &Fact) -> Fact {
    let bare = |tensor: &TensorType| TensorType::new(tensor.dtype, None);
    Fact::of(match &fact.ty {
        Some(Type::Tensor(tensor)) => Type::Tensor(bare(tensor)),
        Some(Type::SparseTensor(tensor)) => Type::SparseTensor(bare(tensor)),
        Some(Type::Sequence(Some(inner))) => {
            Type::Sequence(inner.as_tensor().map(|tensor| Box::new(Type::Tensor(bare(tensor)))))
        }
        Some(Type::Sequence(None)) => Type::Sequence(None),
        Some(Type::Optional(_)) => Type::Optional(None),
        Some(Type::Map(key, _)) => Type::Map(*key, None),
        None => return Fact::unknown(),
    })
}

impl Found {
    /// Returns the range of the outputs after the carried values.
    pub(super) fn extra_outputs(&self) -> std::ops::Range<usize> {
        self.carried.len()..self.outputs.len()
    }

    /// Returns the body's output `index` in any iteration.
    pub(super) fn output(&self, index: usize) -> Option<&Fact> {
        self.outputs.get(index)
    }

    /// Sets the number of iterations.
    pub(super) fn set_trips(&mut self, trips: &Dim) {
        self.trips = Some(trips.clone());
    }

    /// Returns carried value `index` after the last iteration, if there is one.
    pub(super) fn last(&mut self, index: usize, at_least_once: bool) -> Fact {
        let carried = self.carried.get(index).cloned().unwrap_or_default();
        let Some(output) = self.outputs.get(index).filter(|_| at_least_once).cloned() else {
            let wrapped = matches!(carried.ty, Some(Type::Optional(_)));
            let bare = self.outputs.get(index).is_some_and(|output| !matches!(output.ty, Some(Type::Optional(_))));
            // An iteration leaves the optional's content; without an iteration, the optional remains.
            return if wrapped && bare { Fact::unknown() } else { self.exported(&carried, &carried) };
        };
        self.exported(&output, &carried)
    }

    /// Returns carried value `index` after `trips` iterations, given its initial fact.
    ///
    /// Law: `a + min(1, n)·(b − a)` is `a` if `n` is 0 and `b` otherwise.
    pub(super) fn after(&mut self, index: usize, start: &Fact, trips: &Dim) -> Fact {
        let any = self.last(index, false);
        let output = self.outputs.get(index).and_then(Fact::shape).map(<[Dim]>::to_vec);
        let (Some(from), Some(to), Some(dims)) = (start.shape(), output, any.shape()) else { return any };
        if from.len() != dims.len() || to.len() != dims.len() || from == dims {
            return any;
        }
        let scope = Rc::clone(&self.scope);
        let once = scope.min(trips, &Dim::constant(1));
        let size = |((from, to), dim): ((&Dim, &Dim), &Dim)| match from == dim || self.is_inner(to) {
            true => dim.clone(),
            false => scope.add(from, &scope.mul(&once, &scope.sub(to, from))),
        };
        let shape = from.iter().zip(&to).zip(dims).map(size).collect();
        Fact::tensor(any.dtype(), Some(shape))
    }

    /// Stacks output `index` of all iterations along a new axis of this length. Negative axes count from the end of
    /// the result.
    ///
    /// `may_be_none` means that there may be no iteration. Runtimes then use 0 for every dim that is not constant. A
    /// dim that is constant only by inference becomes 0 or the constant, depending on the runtime's inference. So
    /// such a dim is stated only if written shapes and constants determine it.
    ///
    /// # Errors
    /// There is no such axis.
    pub(super) fn stacked(
        &mut self,
        (model, facts): (&Model, &Facts),
        index: usize,
        axis: i64,
        length: &Dim,
        may_be_none: bool,
    ) -> Result<Fact, Refusal> {
        let Some(mut tensor) = self.outputs.get(index).and_then(Fact::as_tensor).cloned() else {
            return Ok(Fact::unknown());
        };
        let mut inferred: Vec<bool> = Vec::new();
        if length.is_const(0) {
            let said = self.declared_shape(model, index);
            if let Some((said, given)) = said.as_deref().zip(tensor.shape.as_deref()) {
                if said.len() != given.len() || said.iter().zip(given).any(|(a, b)| self.scope.eq(a, b).is_no()) {
                    return Err(Refusal::invalid(
                        "the declared shape of the scan outputs differs from the inferred one, and there are no iterations",
                    ));
                }
                let is_open = |(said, given): (&Dim, &Dim)| said.as_const().is_none() && given.as_const().is_some();
                inferred = said.iter().zip(given).map(is_open).collect();
            }
            tensor.shape = said;
        }
        let Some(element) = tensor.shape else { return Ok(Fact::tensor(tensor.dtype, None)) };
        let axis = axis_in(axis, element.len() + 1)?;
        let mut shape: Vec<Dim> = element.iter().map(|dim| self.outside(dim, None)).collect();
        if may_be_none
            && !length.is_const(0)
            && !element.is_empty()
            && !model.graph(self.body).outputs().get(index).is_some_and(|&row| infers_numbers(model, facts, row))
        {
            // The rank is undecided, too: without an iteration runtimes return a vector, which is correct for scalars
            // only.
            let Some(said) = self.declared_shape(model, index) else { return Ok(Fact::tensor(tensor.dtype, None)) };
            let is_declared = |at: usize| said.get(at).and_then(Dim::as_const).is_some();
            let is_open = |(at, dim): (usize, &Dim)| dim.as_const().is_some_and(|size| size > 0) && !is_declared(at);
            inferred = shape.iter().enumerate().map(is_open).collect();
            for (dim, _) in shape.iter_mut().zip(&inferred).filter(|(_, is_open)| **is_open) {
                *dim = self.scope.fresh_within(&self.stem, Some(0), dim.as_const());
            }
        }
        if may_be_none {
            let any = self.scope.min(length, &Dim::constant(1));
            let is_inferred = |at: usize| inferred.get(at).copied().unwrap_or(false);
            for (_, dim) in (0..).zip(&mut shape).filter(|(at, dim)| dim.as_const().is_none() && !is_inferred(*at)) {
                *dim = self.scope.mul(dim, &any);
            }
        }
        shape.insert(axis, length.clone());
        Ok(empty_is_constant(Fact::tensor(tensor.dtype, Some(shape))))
    }

    /// Returns the declared shape of an output of the body, which runtimes use if there is no iteration.
    fn declared_shape(&self, model: &Model, index: usize) -> Option<Vec<Dim>> {
        let value = *model.graph(self.body).outputs().get(index)?;
        let shape = model.value(value).declared.as_ref()?.shape()?;
        let size = |dim: &DeclaredDim| match dim.claim {
            DimClaim::Value(size) => Dim::constant(size),
            _ => self.scope.fresh_dim(&self.stem),
        };
        Some(shape.iter().map(size).collect())
    }

    fn is_inner(&self, dim: &Dim) -> bool {
        dim.as_const().is_none() && dim.symbols().into_iter().any(|symbol| symbol >= self.mark)
    }

    /// Converts a dim of the last iteration to one outside the loop. `next` is the same dim in the next iteration.
    fn outside(&mut self, last: &Dim, next: Option<&Dim>) -> Dim {
        if !self.is_inner(last) {
            return last.clone();
        }
        let key = match next {
            Some(next) if !self.is_inner(next) => return next.clone(),
            Some(next) if let (Some(line), Some(trips)) = (self.lines.get(next), &self.trips) => {
                return line.after(&self.scope, trips);
            }
            Some(next) => (Moment::Next, next.clone()),
            None => (Moment::Last, last.clone()),
        };
        if let Some(known) = self.outside.get(&key) {
            return known.clone();
        }
        let (low, high) = self.scope.bounds(&key.1);
        let new = match self.scope.is_of_sizes(&key.1) {
            true => self.scope.fresh_within(&self.stem, low, high),
            false => self.scope.fresh_integer(&self.stem, low, high),
        };
        self.outside.insert(key, new.clone());
        new
    }

    /// Converts a fact of the last iteration's result to one outside the loop. `next` is the fact of the same value
    /// in the next iteration.
    fn exported(&mut self, last: &Fact, next: &Fact) -> Fact {
        let ty = last.ty.as_ref().map(|ty| self.exported_type(ty, next.ty.as_ref()));
        let content = match &last.content {
            Some(Content::Elements(elements)) => {
                let others = next.elements().filter(|others| others.len() == elements.len()).unwrap_or_default();
                let mut exported = Vec::with_capacity(elements.len());
                for (index, element) in elements.iter().enumerate() {
                    exported.push(match element {
                        Scalar::Int(number) => {
                            Scalar::Int(self.outside(number, others.get(index).and_then(Scalar::as_int)))
                        }
                        Scalar::Real { num, .. } if self.is_inner(num) => Scalar::Unknown,
                        element => element.clone(),
                    });
                }
                Some(Content::Elements(exported.into()))
            }
            content => content.clone(),
        };
        Fact { ty, content }
    }

    fn exported_type(&mut self, last: &Type, next: Option<&Type>) -> Type {
        match (last, next) {
            (Type::Tensor(tensor), _) => Type::Tensor(self.exported_tensor(tensor, next)),
            (Type::SparseTensor(tensor), _) => Type::SparseTensor(self.exported_tensor(tensor, next)),
            (Type::Optional(Some(inner)), Some(Type::Optional(next))) => {
                Type::Optional(Some(Box::new(self.exported_type(inner, next.as_deref()))))
            }
            (Type::Optional(Some(inner)), _) => Type::Optional(Some(Box::new(self.exported_type(inner, None)))),
            // Dims in element types belong to no particular element; a dim of an iteration gets a new symbol.
            (Type::Sequence(Some(inner)), _) => {
                Type::Sequence(Some(Box::new(element_of(&self.scope, &self.stem, inner))))
            }
            (ty, _) => ty.clone(),
        }
    }

    fn exported_tensor(&mut self, last: &TensorType, next: Option<&Type>) -> TensorType {
        let shape = last.shape.as_ref().map(|dims| {
            let others = next.and_then(Type::as_tensor).and_then(|next| next.shape.as_ref());
            let others = others.filter(|others| others.len() == dims.len());
            let other = |axis: usize| others.and_then(|others| others.get(axis));
            dims.iter().enumerate().map(|(axis, dim)| self.outside(dim, other(axis))).collect()
        });
        TensorType::new(last.dtype, shape)
    }
}

/// Makes a tensor without elements a constant if its shape is constant.
fn empty_is_constant(fact: Fact) -> Fact {
    match (fact.dtype(), fact.static_shape()) {
        (Some(dtype), Some(shape)) if shape.contains(&0) => Tensor::zeros(dtype, &shape).map_or(fact, Fact::constant),
        _ => fact,
    }
}

/// The cost of interpreting an iteration, in elementary operations per node of the body.
const NODE_WORK: u64 = 50_000;

/// Charges iterations to the budget, so that evaluation of an endless loop ends.
pub(super) struct Meter {
    each: u64,
    left: u64,
}

impl Meter {
    /// Creates the meter of a node with this body.
    pub(super) fn new(cx: &EvalCx<'_>, body: GraphId) -> Meter {
        let nodes = u64::try_from(cx.model.graph(body).node_count()).unwrap_or(u64::MAX);
        Meter { each: nodes.saturating_add(1).saturating_mul(NODE_WORK), left: cx.budget().node_work }
    }

    /// Charges one more iteration.
    ///
    /// # Errors
    /// The node or the whole run exceeds its budget.
    pub(super) fn iteration(&mut self, cx: &EvalCx<'_>) -> Result<(), Decline> {
        let over = || Decline::OverBudget("the iterations exceed the limit of work for a node".into());
        self.left = self.left.checked_sub(self.each).ok_or_else(over)?;
        cx.budget().take_work(self.each)
    }
}
