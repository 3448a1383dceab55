//! What the file says of shapes beyond its inputs: where it is wrong, and the names it gives.
//!
//! A declared type of anything but an input is a claim. None is a premise unless the user says so; but what an author calls a size
//! that is proved only as an expression in symbols nobody named is the name to write it by, wherever it occurs.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Scope, Symbol, is_identifier};
use crate::ir::{DeclaredDim, DeclaredType, Definition, DimClaim, Facts, Model, ValueId};
use crate::ops::EventKind;

use super::dead::live_graphs;

/// What has a declared type that is no premise, the main graph's outputs first: what an author names by hand are these.
fn claimed_values(model: &Model) -> Vec<ValueId> {
    let mut values = model.graph(model.main()).outputs().to_vec();
    for graph in live_graphs(model) {
        values.extend(model.graph(graph).outputs());
        values.extend(model.graph(graph).inputs());
        values.extend(model.graph(graph).initializers());
        let nodes = model.graph(graph).nodes().filter_map(|id| model.node(id));
        values.extend(nodes.flat_map(|node| node.outputs().iter().flatten().copied().collect::<Vec<_>>()));
    }
    let mut seen = FxHashSet::default();
    values.retain(|&value| {
        let place = model.value(value);
        place.declared.is_some() && place.definition() != Definition::Input(model.main()) && seen.insert(value)
    });
    values
}

/// What a single claim says of a size, where that is a number or an expression in symbols of the inputs.
pub(super) fn size_of(scope: &Scope, claim: &DimClaim) -> Option<Dim> {
    let is_known = |name: &str| scope.lookup(name).is_some();
    match (claim, claim.name()) {
        (DimClaim::Value(size), _) => Some(Dim::constant(*size)),
        (_, Some(name)) => scope.lookup(name).map(Dim::symbol).or_else(|| scope.parse_known(name, &is_known)),
        (_, None) => None,
    }
}

/// The shape in text, as written out.
fn shown(dims: impl Iterator<Item = String>) -> String {
    format!("[{}]", dims.collect::<Vec<_>>().join(","))
}

/// Every claim that cannot be true beside what is proved: the node, and both in words.
pub fn contradictions(model: &Model, proved: &Facts) -> Vec<(String, EventKind, String)> {
    let scope = proved.scope();
    let mut found = Vec::new();
    for value in claimed_values(model) {
        let place = model.value(value);
        let Some(declared) = place.declared.as_ref() else { continue };
        let Some(tensor) = proved.get(value).and_then(|fact| fact.as_tensor()) else { continue };
        let mut wrong = false;
        if let (Some(claimed), Some(dtype)) = (declared.dtype(), tensor.dtype) {
            wrong |= claimed != dtype;
        }
        if let (Some(claimed), Some(dims)) = (declared.shape(), &tensor.shape) {
            let differs = |(claim, dim): (&DeclaredDim, &Dim)| {
                size_of(scope, &claim.claim).is_some_and(|size| scope.eq(&size, dim).is_no())
            };
            wrong |= claimed.len() != dims.len() || claimed.iter().zip(dims).any(differs);
        }
        if wrong {
            let of_claim = |claim: &DimClaim| match claim {
                DimClaim::Unknown => "?".to_string(),
                DimClaim::Value(size) => size.to_string(),
                DimClaim::Param(name) => name.clone(),
            };
            let claimed =
                declared.shape().map_or("?".to_string(), |dims| shown(dims.iter().map(|dim| of_claim(&dim.claim))));
            let stated =
                tensor.shape.as_ref().map_or("?".to_string(), |dims| shown(dims.iter().map(|dim| scope.format(dim))));
            let claimed_type = declared.dtype().map_or("?", |dtype| dtype.name());
            let stated_type = tensor.dtype.map_or("?", |dtype| dtype.name());
            let name = &place.name;
            let reason =
                format!("'{name}' is declared {claimed_type}{claimed}; proved, and written, is {stated_type}{stated}");
            let whose = match place.definition() {
                Definition::Node(node, _) => model.describe(node),
                Definition::Initializer(_) => format!("initializer '{name}'"),
                _ => format!("input '{name}' of a body"),
            };
            found.push((whose, EventKind::FalseClaim, reason));
        }
    }
    found
}

/// The symbols of the inputs, and what an author calls sizes that have no expression in those.
#[derive(Debug, Default)]
pub struct Names {
    inputs: FxHashSet<Symbol>,
    of: FxHashMap<Dim, String>,
    symbols: FxHashSet<Symbol>,
}

impl Names {
    /// Gathers the names. A symbol nobody named that an author names alone takes the name over; an expression with such symbols
    /// in it becomes a symbol of that name, by which one of those symbols is written from now on. Both are then shown wherever
    /// they occur. A name that cannot stand in an expression is shown where its size stands alone.
    ///
    /// A name is given once: of two sizes that are not known to be equal the first has it.
    pub fn adopt(model: &Model, proved: &Facts) -> Names {
        let scope = proved.scope();
        let mut names = Names::default();
        for &input in model.graph(model.main()).inputs() {
            let dims = proved.get(input).and_then(|fact| fact.shape()).unwrap_or_default();
            names.inputs.extend(dims.iter().flat_map(Dim::symbols).filter(|&symbol| !scope.is_fresh(symbol)));
        }
        let mut given: FxHashSet<&str> = FxHashSet::default();
        for value in claimed_values(model) {
            let declared = model.value(value).declared.as_ref().and_then(DeclaredType::shape);
            let Some((claims, dims)) = declared.zip(proved.get(value).and_then(|fact| fact.shape())) else { continue };
            if claims.len() != dims.len() {
                continue;
            }
            for (claim, dim) in claims.iter().zip(dims) {
                let Some(name) = claim.claim.name() else { continue };
                // A name of a symbol of the inputs is a claim that both are equal, and no name for this one; so is an expression.
                let taken = given.contains(name) || scope.lookup(name).is_some() || is_expression(name);
                let dim = names.resolved(scope, dim);
                if taken || !names.lacks(scope, &dim) {
                    continue;
                }
                given.insert(name);
                match dim.as_symbol() {
                    _ if !is_identifier(name) => {
                        names.of.insert(dim, name.to_string());
                    }
                    Some(symbol) => {
                        scope.rename(symbol, name);
                        names.symbols.insert(symbol);
                    }
                    // No size is negative; but of a body that does not run nobody knows what its sizes would be.
                    None if is_computed(model, value) || scope.ge(&dim, &Dim::constant(0)).is_yes() => {
                        scope.assume_eq(&Dim::symbol(scope.named(name)), &dim);
                    }
                    None => {}
                }
            }
        }
        names
    }

    /// The size in names, as far as there are any.
    pub fn resolved(&self, scope: &Scope, dim: &Dim) -> Dim {
        if dim.as_const().is_some() { dim.clone() } else { scope.sum([dim]) }
    }

    /// The name of a size, if an author gave it one that cannot stand in an expression.
    pub fn of(&self, dim: &Dim) -> Option<&str> {
        self.of.get(dim).map(String::as_str)
    }

    /// Whether a size has no name and no expression in names.
    pub fn lacks(&self, scope: &Scope, dim: &Dim) -> bool {
        let nameless = |symbol| scope.is_fresh(symbol) && !self.symbols.contains(&symbol);
        !self.of.contains_key(dim) && dim.symbols().into_iter().any(nameless)
    }

    /// Whether a size is a number or an expression in the symbols of the inputs.
    pub fn is_exact(&self, dim: &Dim) -> bool {
        dim.symbols().iter().all(|symbol| self.inputs.contains(symbol))
    }
}

/// Whether a size has no expression in symbols that somebody named.
pub fn is_vague(scope: &Scope, dim: &Dim) -> bool {
    dim.symbols().into_iter().any(|symbol| scope.is_fresh(symbol))
}

/// Whether every run computes a value.
fn is_computed(model: &Model, value: ValueId) -> bool {
    model.value(value).producer().and_then(|node| model.node(node)).is_some_and(|node| node.graph() == model.main())
}

/// Whether a text is an expression in names, and not a name.
fn is_expression(text: &str) -> bool {
    !is_identifier(text) && Scope::new().parse_known(text, &|_| true).is_some()
}
