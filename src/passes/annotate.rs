//! Writes the type of each value into the model.
//!
//! Graph outputs keep the dims that their contract keeps (`contract`). Every other dim is the first of these that exists. A dim that equals one of an
//! input or output gets its text:
//!
//! 0. the text of an earlier run of this program, if it is an expression in input symbols, no trial refutes it, and the proved size is longer;
//! 1. the proved size, if it is a number or an expression in input symbols;
//! 2. the size that follows from the file's claims, if it is such a number or expression;
//! 3. the proved size, in names of the author;
//! 4. the size that follows from claims, in names of the file;
//! 5. the claim itself, unless it is proved false;
//! 6. the proved size, with symbols that this program named.
//!
//! The types of the main graph's inputs are kept, except that dims without a claim get a name.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Scope};
use crate::ir::{
    DeclaredDim, DeclaredType, Definition, DimClaim, Extra, Fact, Facts, GraphId, Model, NodeId, TensorType, Type,
    ValueId,
};
use crate::ops::{EventKind, Opset, misreads_hidden_size};

use super::believed::Believed;
use super::claims::{Names, is_long, is_spelled_as_label, size_of};
use super::contract::{Contract, Standing};
use super::dead::{graphs_below, live_graphs};
use super::rows::{always_runs, collects_rows, has_unlike_branches};
use super::spelling::{Spelling, shorter};
use super::untouched;
use super::untouched::readers_of;

/// Writes the type of every node result and graph output of the main graph and its subgraphs. Corrects the declared types of subgraph inputs and
/// initializers. Returns a note for each type that partly rests on claims, and for each name that replaces a long expression.
/// The scope `more` has the sizes that earlier runs recorded. It only lets a shorter expression of the file be kept, because anyone may have written
/// it. No shape is added to values that `broken` nodes are computed from: nodes that are invalid, or that call an invalid function.
pub fn annotate(
    model: &mut Model,
    (proved, more): (&Facts, Option<&Scope>),
    believed: &Believed,
    (names, contract): (&Names, &Contract),
    broken: &[NodeId],
) -> Vec<(String, EventKind, String)> {
    let mut told = Vec::new();
    let spelling = names.spelling(proved.scope());
    let short_spelling = more.map(|more| names.spelling(more));
    name_inputs(model, names);
    let mut unstated = without_trips(model, proved);
    unstated.extend(of_unlike_branches(model, proved));
    unstated.extend(of_misread_size(model, proved));
    // A model with an invalid node may load in a runtime that does not know the shapes which make the node invalid.
    let held = untouched::computed_from(model, broken);
    // The nodes that a runtime inlines for a call may read the call's results.
    let calls = broken.iter().filter_map(|&id| model.node(id)).filter(|node| model.function_of(node).is_some());
    unstated.extend(calls.flat_map(|node| node.outputs().iter().flatten()));
    unstated.extend(&held);
    let nothing = Fact::default();
    let outputs: FxHashSet<ValueId> = model.graph(model.main()).outputs().iter().copied().collect();
    let is_stamped = model.is_stamped();
    let mut writer = Writer::new((proved.scope(), &spelling), names, is_stamped, false);
    let mut short_writer = more.zip(short_spelling.as_ref()).map(|scope| Writer::new(scope, names, is_stamped, true));
    for graph in live_graphs(model) {
        // Inputs and initializers get a type only if the file declares one.
        let given = model.graph(graph).inputs().iter().chain(model.graph(graph).initializers());
        let mut values: Vec<ValueId> = given.copied().filter(|&value| model.value(value).declared.is_some()).collect();
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            values.extend(node.outputs().iter().flatten());
        }
        values.extend(model.graph(graph).outputs());
        let counts = counts_of_axes(model, proved, graph);
        let mut seen = vec![false; model.value_count()];
        values.retain(|value| seen.get_mut(value.index()).is_some_and(|seen| !std::mem::replace(seen, true)));
        for value in values {
            let place = model.value(value);
            if place.definition() == Definition::Input(model.main()) {
                continue;
            }
            let is_given = outputs.contains(&value);
            let is_contested = believed.contested.contains(&value) && !is_given;
            let said = place.declared.as_ref().filter(|_| is_contested).map(without_shape);
            let declared = said.as_ref().or(place.declared.as_ref());
            // A corrected shape may also prevent loading, if the false shape hid the fault of the node.
            if held.contains(&value) && declared.is_some_and(|declared| declared.shape().is_some()) {
                continue;
            }
            let fact = proved.get(value).unwrap_or(&nothing);
            let claims = believed.facts.as_ref().filter(|_| !is_contested);
            let claim = claims.and_then(|facts| facts.get(value));
            writer.claims = false;
            if let Some(mut ty) = writer.merged(fact, claim, declared) {
                if let Some(short) = short_writer.as_mut() {
                    short.keep_shorter(&mut ty, (fact, claim), declared);
                }
                if let Some(declared) = declared.filter(|_| is_given) {
                    told.extend(writer.keep_declared(&mut ty, fact, (declared, contract), &place.name));
                }
                if counts.contains(&value) {
                    forget_length(&mut ty);
                }
                if unstated.contains(&value) {
                    keep_shape(&mut ty, declared);
                }
                if let (true, Definition::Node(node, _)) = (writer.claims, place.definition()) {
                    let reason =
                        format!("part of the shape of '{}' comes from the file, and is not proved", place.name);
                    told.push((model.describe(node), EventKind::Claimed, reason));
                }
                model.declare(value, ty);
            }
        }
    }
    told.extend(spelling.into_notes());
    told
}

/// Gives each input dim of the main graph without a claim the name by which other dims refer to it.
fn name_inputs(model: &mut Model, names: &Names) {
    for (value, axis, name) in names.of_inputs() {
        let Some(mut declared) = model.value(*value).declared.clone() else { continue };
        if let DeclaredType::Tensor { shape: Some(dims), .. } = &mut declared
            && let Some(dim) = dims.get_mut(*axis).filter(|dim| dim.claim == DimClaim::Unknown)
        {
            dim.claim = DimClaim::Param(name.clone());
            model.declare(*value, declared);
        }
    }
}

/// Returns the values whose written shapes would change results: those in a Loop that collects rows and may run no iteration, and those outside that
/// such a Loop reads. Without rows, ONNX Runtime returns an empty result with the shape it inferred for a row. Unknown dims become 0, and an unknown
/// shape becomes rank 1. It infers more where more shapes are written.
fn without_trips(model: &Model, facts: &Facts) -> FxHashSet<ValueId> {
    let mut found = FxHashSet::default();
    for graph in live_graphs(model) {
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            if !collects_rows(model, node) || always_runs(facts, node) {
                continue;
            }
            for body in node.subgraphs() {
                found.extend(model.captures(body));
                for inner in graphs_below(model, body) {
                    let held = model.graph(inner);
                    found.extend(held.inputs().iter().chain(held.outputs()).chain(held.initializers()));
                    found.extend(
                        held.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten()),
                    );
                }
            }
        }
    }
    found
}

/// Returns the values in branches of an If whose results differ in shape. Before operator set 11 this is invalid, but ONNX Runtime only detects it
/// where it knows the shapes.
fn of_unlike_branches(model: &Model, facts: &Facts) -> FxHashSet<ValueId> {
    let mut found = FxHashSet::default();
    for graph in live_graphs(model).into_iter().filter(|&graph| Opset::of(model, graph).version() < 11) {
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            if !has_unlike_branches(model, facts, node) {
                continue;
            }
            for inner in node.subgraphs().flat_map(|branch| graphs_below(model, branch)) {
                let held = model.graph(inner);
                found.extend(held.outputs().iter().chain(held.initializers()));
                found.extend(
                    held.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten()),
                );
            }
        }
    }
    found
}

/// Returns the subgraph values that depend on results whose hidden size ONNX Runtime reads as 0. If it knows all other dims of a branch's result, it
/// allocates that result before the branch runs.
fn of_misread_size(model: &Model, facts: &Facts) -> FxHashSet<ValueId> {
    if !model.has_subgraphs() {
        return FxHashSet::default();
    }
    let is_misread = |id: &NodeId| model.node(*id).is_some_and(|node| misreads_hidden_size(facts, node));
    let nodes = live_graphs(model).into_iter().flat_map(|graph| model.graph(graph).nodes());
    let mut found: FxHashSet<NodeId> = nodes.filter(is_misread).collect();
    found.extend(readers_of(model, &found));
    let inner = found.into_iter().filter_map(|id| model.node(id)).filter(|node| node.graph() != model.main());
    inner.flat_map(|node| node.outputs().iter().flatten().copied()).collect()
}

/// Returns a declared type without its shape.
fn without_shape(declared: &DeclaredType) -> DeclaredType {
    let mut bare = declared.clone();
    if let DeclaredType::Tensor { shape, .. } | DeclaredType::SparseTensor { shape, .. } = &mut bare {
        *shape = None;
    }
    bare
}

/// Keeps the declared shape, even a false one, also of elements of a sequence or optional. ONNX Runtime drops a shape that contradicts its inference,
/// and would trust the rest of a partly corrected one.
fn keep_shape(ty: &mut DeclaredType, declared: Option<&DeclaredType>) {
    if let DeclaredType::Sequence { elem: Some(elem), .. } | DeclaredType::Optional { elem: Some(elem), .. } = ty {
        let inner = match declared {
            Some(DeclaredType::Sequence { elem, .. } | DeclaredType::Optional { elem, .. }) => elem.as_deref(),
            _ => None,
        };
        return keep_shape(elem, inner);
    }
    let DeclaredType::Tensor { shape, .. } = ty else { return };
    *shape = declared.and_then(DeclaredType::shape).cloned();
}

/// Returns the vectors whose length must not be written as a name: operands of Resize and Upsample with an element for each axis (scales, sizes,
/// roi), and their ancestors. ONNX Runtime reads a symbolic length as 0 and rejects the model, even if it infers the length from an ancestor. It
/// makes no such check without a written length.
fn counts_of_axes(model: &Model, facts: &Facts, graph: GraphId) -> FxHashSet<ValueId> {
    let is_open = |value: ValueId| match facts.get(value).and_then(Fact::shape) {
        None => true,
        Some(dims) => matches!(dims, [row] if row.as_const().is_none()),
    };
    let nodes = model.graph(graph).nodes().filter_map(|id| model.node(id));
    let resizes = nodes.filter(|node| node.is("Resize") || node.is("Upsample"));
    let mut open: Vec<ValueId> = resizes.flat_map(|node| node.inputs().iter().skip(1).flatten().copied()).collect();
    let mut found = FxHashSet::default();
    while let Some(value) = open.pop() {
        if is_open(value) && found.insert(value) {
            let producer = model.value(value).producer().and_then(|id| model.node(id));
            open.extend(producer.into_iter().flat_map(|node| node.inputs().iter().flatten().copied()));
        }
    }
    found
}

/// Removes the shape of a vector unless its length is a number.
fn forget_length(ty: &mut DeclaredType) {
    if let DeclaredType::Tensor { shape, .. } = ty {
        shape.take_if(|dims| matches!(dims.as_slice(), [row] if !matches!(row.claim, DimClaim::Value(_))));
    }
}

/// Builds declared types.
struct Writer<'w> {
    scope: &'w Scope,
    /// `true` if this scope knows more than the scope of the facts.
    is_remembered: bool,
    /// `true` if an earlier run of this program wrote the claims.
    is_stamped: bool,
    names: &'w Names,
    spelling: &'w Spelling<'w>,
    /// `true` if a claim was used.
    claims: bool,
    /// The written text of sizes without a claim. Most models have few of them.
    known: FxHashMap<Dim, DimClaim>,
}

impl<'w> Writer<'w> {
    fn new(
        (scope, spelling): (&'w Scope, &'w Spelling<'w>),
        names: &'w Names,
        is_stamped: bool,
        is_remembered: bool,
    ) -> Writer<'w> {
        Writer { scope, is_remembered, is_stamped, names, spelling, claims: false, known: FxHashMap::default() }
    }

    /// Keeps each declared dim in input symbols that this writer would write, too.
    fn keep_shorter(
        &mut self,
        ty: &mut DeclaredType,
        (fact, claim): (&Fact, Option<&Fact>),
        declared: Option<&DeclaredType>,
    ) {
        let Some(said) = declared.and_then(DeclaredType::shape) else { return };
        let DeclaredType::Tensor { shape: Some(dims), .. } = ty else { return };
        if dims.len() != said.len() || dims.iter().zip(said).all(|(dim, said)| dim.claim == said.claim) {
            return;
        }
        let short = self.merged(fact, claim, declared);
        let Some(short) = short.as_ref().and_then(DeclaredType::shape).filter(|short| short.len() == said.len()) else {
            return;
        };
        for ((dim, short), said) in dims.iter_mut().zip(short).zip(said) {
            let is_exact = || size_of(self.scope, &said.claim).is_some_and(|size| self.names.is_exact(&size));
            if short.claim == said.claim && dim.claim != said.claim && is_exact() {
                dim.claim = said.claim.clone();
            }
        }
    }

    /// Restores the declared dims of an output that its contract keeps. Returns a note for each one whose proved size has another text, and for each
    /// one that some run refutes.
    fn keep_declared(
        &self,
        ty: &mut DeclaredType,
        fact: &Fact,
        (declared, contract): (&DeclaredType, &Contract),
        name: &str,
    ) -> Vec<(String, EventKind, String)> {
        let mut told = Vec::new();
        let DeclaredType::Tensor { shape: Some(dims), .. } = ty else { return told };
        let Some((said, proved)) = declared.shape().zip(fact.shape()) else { return told };
        if said.len() != dims.len() || proved.len() != dims.len() {
            return told;
        }
        for (axis, ((dim, said), proved)) in dims.iter_mut().zip(said).zip(proved).enumerate() {
            let proved = self.names.resolved(self.scope, proved);
            let standing = contract.standing(self.scope, &proved, &said.claim);
            if standing == Standing::Kept {
                *dim = said.clone();
            }
            let (claim, proof) = (said.claim.to_string(), self.scope.format(&proved));
            let is_told = self.names.is_exact(&proved) && claim != proof;
            let is_told_already =
                |claim: &DimClaim| size_of(self.scope, claim).is_some_and(|size| self.scope.eq(&proved, &size).is_no());
            let (kind, said) = match standing {
                Standing::Kept if is_told => (EventKind::Declared, "is kept; the proved size is"),
                Standing::False if is_told && !is_told_already(&said.claim) => {
                    (EventKind::FalseClaim, "is false in some runs; the result declares")
                }
                _ => continue,
            };
            told.push((
                format!("output '{name}'"),
                kind,
                format!("axis {axis} is declared {claim}, which {said} {proof}"),
            ));
        }
        told
    }

    /// Returns the type to write, from the proved type, the type that follows from claims, and the declared type.
    fn merged(&mut self, fact: &Fact, claim: Option<&Fact>, declared: Option<&DeclaredType>) -> Option<DeclaredType> {
        self.claims |= fact.ty.is_none() && (claim.is_some_and(|claim| claim.ty.is_some()) || declared.is_some());
        match fact.ty.as_ref().or_else(|| claim.and_then(|claim| claim.ty.as_ref())) {
            None => declared.cloned(),
            Some(Type::Tensor(tensor)) => {
                let claim = claim.and_then(|claim| claim.as_tensor());
                let (declared_dtype, declared_shape, extra) = match declared {
                    Some(DeclaredType::Tensor { dtype, shape, extra }) => (*dtype, shape.as_ref(), extra.clone()),
                    _ => (0, None, Extra::new()),
                };
                let dtype =
                    tensor.dtype.or(claim.and_then(|claim| claim.dtype)).map_or(declared_dtype, |dtype| dtype.onnx());
                if dtype == 0 && declared.is_some() {
                    return declared.cloned();
                }
                let shape = tensor.shape.as_ref().or_else(|| claim.and_then(|claim| claim.shape.as_ref()));
                self.claims |= tensor.shape.is_none() && (shape.is_some() || declared_shape.is_some());
                let shape = match shape {
                    None => declared_shape.cloned(),
                    Some(dims) => {
                        let claimed =
                            claim.and_then(|claim| claim.shape.as_ref()).filter(|claim| claim.len() == dims.len());
                        let declared = declared_shape.filter(|declared| !is_false(self.scope, dims, declared));
                        let mut dim = |(i, dim): (usize, &Dim)| {
                            let claim = claimed.and_then(|claim| claim.get(i));
                            let declared = declared.and_then(|declared| declared.get(i));
                            self.written(dim, claim, declared)
                        };
                        Some(dims.iter().enumerate().map(&mut dim).collect())
                    }
                };
                if dtype == 0 {
                    return None;
                }
                Some(DeclaredType::Tensor { dtype, shape, extra })
            }
            // Keeps the declared type of a sequence, optional or map; without one, writes the known type. Claims about its elements' sizes are
            // ignored, since exporters get them wrong.
            Some(ty) => declared.cloned().or_else(|| type_of(self.spelling, ty)),
        }
    }

    fn written(&mut self, proved: &Dim, claim: Option<&Dim>, declared: Option<&DeclaredDim>) -> DeclaredDim {
        if claim.is_some() || declared.is_some() {
            return self.written_anew(proved, claim, declared);
        }
        if let Some(claim) = self.known.get(proved) {
            return DeclaredDim { claim: claim.clone(), extra: Extra::new() };
        }
        let written = self.written_anew(proved, None, None);
        self.known.insert(proved.clone(), written.claim.clone());
        written
    }

    fn written_anew(&mut self, proved: &Dim, claim: Option<&Dim>, declared: Option<&DeclaredDim>) -> DeclaredDim {
        let scope = self.scope;
        let extra = declared.map_or_else(Extra::new, |declared| declared.extra.clone());
        let possible = |claim: &&DimClaim| match claim {
            DimClaim::Unknown => false,
            claim => size_of(scope, claim).is_none_or(|size| !scope.eq(proved, &size).is_no()),
        };
        let said = declared.map(|declared| &declared.claim).filter(possible);
        let resolved = self.names.resolved(scope, proved);
        let proved = &if self.is_remembered { shorter(scope, &resolved) } else { resolved };
        let follows = claim.filter(|claim| !self.names.is_vague(scope, claim) && !scope.eq(proved, claim).is_no());
        let spelled = |dim: &Dim| self.spelling.claim(dim);
        let named = |dim: &Dim| match self.names.of(dim) {
            Some(name) => DimClaim::Param(name.to_string()),
            None => spelled(dim),
        };
        // A run with more nodes may have found a shorter expression.
        let tells_more = |said: &DimClaim| size_of(scope, said).is_some_and(|size| self.names.is_exact(&size));
        let is_shorter = |said: &DimClaim| {
            is_long(scope, proved)
                || said.to_string().len() < scope.format(proved).len()
                    && size_of(scope, said).is_some_and(|size| !scope.differs_somewhere(proved, &size))
        };
        let is_kept = self.is_stamped && said.is_some_and(|said| tells_more(said) && is_shorter(said));
        let (claim, is_claimed) = match (follows, said) {
            (_, Some(said)) if is_kept => (said.clone(), true),
            (_, Some(said)) if is_spelled_as_label(scope, said, proved) => (said.clone(), false),
            _ if self.names.is_exact(proved) => (named(proved), false),
            (Some(follows), _) if self.names.is_exact(follows) => (named(follows), true),
            _ if !self.names.lacks(scope, proved) => (named(proved), false),
            (Some(follows), _) => (spelled(follows), true),
            (None, Some(said)) => (said.clone(), true),
            (None, None) => (spelled(proved), false),
        };
        self.claims |= is_claimed;
        DeclaredDim { claim, extra }
    }
}

/// Returns `true` if a dim of a claim is proved false. Then the whole claim is ignored: ONNX Runtime drops a shape that contradicts its inference,
/// and would trust a partly corrected one.
fn is_false(scope: &Scope, proved: &[Dim], declared: &[DeclaredDim]) -> bool {
    let differs = |(dim, declared): (&Dim, &DeclaredDim)| {
        size_of(scope, &declared.claim).is_some_and(|size| scope.eq(dim, &size).is_no())
    };
    proved.len() != declared.len() || proved.iter().zip(declared).any(differs)
}

fn type_of(spelling: &Spelling, ty: &Type) -> Option<DeclaredType> {
    let tensor = |tensor: &TensorType| {
        let dims = |dims: &Vec<Dim>| {
            dims.iter().map(|dim| DeclaredDim { claim: spelling.claim(dim), extra: Extra::new() }).collect()
        };
        Some((tensor.dtype?.onnx(), tensor.shape.as_ref().map(dims)))
    };
    let inner = |ty: &Option<Box<Type>>| ty.as_ref().and_then(|ty| type_of(spelling, ty)).map(Box::new);
    let extra = Extra::new();
    Some(match ty {
        Type::Tensor(ty) => {
            let (dtype, shape) = tensor(ty)?;
            DeclaredType::Tensor { dtype, shape, extra }
        }
        Type::SparseTensor(ty) => {
            let (dtype, shape) = tensor(ty)?;
            DeclaredType::SparseTensor { dtype, shape, extra }
        }
        Type::Sequence(elem) => DeclaredType::Sequence { elem: Some(inner(elem)?), extra },
        Type::Optional(elem) => DeclaredType::Optional { elem: Some(inner(elem)?), extra },
        Type::Map(key, value) => DeclaredType::Map { key: key.onnx(), value: Some(inner(value)?), extra },
    })
}
