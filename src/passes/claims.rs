//! Claims: the types that the file declares for values other than the main graph's inputs. Finds the false ones, and the names that claims give to
//! sizes.
//!
//! A claim is no premise unless the user trusts it. But it may name a size: if inference only has an expression with symbols of its own, the author's
//! name is written wherever the size occurs.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Scope, Symbol, is_identifier, is_numbered, is_word};
use crate::ir::{DeclaredDim, DeclaredType, Definition, DimClaim, Facts, Model, ValueId};
use crate::ops::EventKind;

use super::contract::{Contract, Standing};
use super::dead::live_graphs;
use super::spelling::{Spelling, short_text};

/// Returns the values with a claim, each once. The main graph's outputs come first, because authors name their sizes by hand, and the first name for
/// a size is used.
fn claimed_values(model: &Model) -> Vec<ValueId> {
    let mut seen = vec![false; model.value_count()];
    let mut values = Vec::new();
    let mut add = |&value: &ValueId| {
        let place = model.value(value);
        if place.declared.is_some()
            && place.definition() != Definition::Input(model.main())
            && seen.get_mut(value.index()).is_some_and(|seen| !std::mem::replace(seen, true))
        {
            values.push(value);
        }
    };
    model.graph(model.main()).outputs().iter().for_each(&mut add);
    for graph in live_graphs(model) {
        let held = model.graph(graph);
        held.outputs().iter().chain(held.inputs()).chain(held.initializers()).for_each(&mut add);
        let nodes = held.nodes().filter_map(|id| model.node(id));
        nodes.for_each(|node| node.outputs().iter().flatten().for_each(&mut add));
    }
    values
}

/// Returns the size that a claim states, if it is a number or an expression in known symbols.
pub(super) fn size_of(scope: &Scope, claim: &DimClaim) -> Option<Dim> {
    let is_known = |name: &str| scope.lookup(name).is_some();
    match (claim, claim.name()) {
        (DimClaim::Value(size), _) => Some(Dim::constant(*size)),
        (_, Some(name)) => scope
            .lookup(name)
            .map(|label| scope.current(&Dim::symbol(label)))
            .or_else(|| scope.parse_known(name, &is_known)),
        (_, None) => None,
    }
}

/// Returns `true` if a claim is the label of another size of inputs, and parses as an expression that equals `size` in all runs without empty
/// dims.
pub(super) fn is_spelled_as_label(scope: &Scope, claim: &DimClaim, size: &Dim) -> bool {
    let is_known = |name: &str| scope.lookup(name).is_some();
    let label = claim.name().filter(|name| !is_word(name) && is_known(name));
    let read = label.and_then(|label| scope.parse_known(label, &is_known));
    read.is_some_and(|read| scope.eq(&read, size).is_yes() || scope.is_met_by(size, &read))
}

/// Formats a shape: `[2,n]`.
fn shown(dims: impl Iterator<Item = String>) -> String {
    format!("[{}]", dims.collect::<Vec<_>>().join(","))
}

/// Returns the inputs of the main graph whose default contradicts the declared type, each with the reason.
pub fn unlike_their_defaults(model: &Model) -> impl Iterator<Item = (String, String)> + '_ {
    model.graph(model.main()).inputs().iter().filter_map(|&input| {
        let place = model.value(input);
        let (declared, tensor) = (place.declared.as_ref()?, place.tensor()?);
        let is_other = |(claim, &size): (&DeclaredDim, &usize)| match claim.claim {
            DimClaim::Value(claimed) => i64::try_from(size) != Ok(claimed),
            _ => false,
        };
        let shape = declared.shape();
        let wrong = declared.dtype().is_some_and(|dtype| dtype != tensor.dtype())
            || shape.is_some_and(|dims| dims.len() != tensor.rank() || dims.iter().zip(tensor.shape()).any(is_other));
        let is = shown(tensor.shape().iter().map(usize::to_string));
        wrong.then(|| {
            let reason = format!("its default is {}{is}, which contradicts the declaration", tensor.dtype().name());
            (format!("input '{}'", place.name), reason)
        })
    })
}

/// Returns a note for each claim that contradicts the proved type: its node or value, and both types. Claimed names only count with `names`: a strict
/// reader of the standard compares numbers only, and exporters use one name for several sizes.
pub fn contradictions(model: &Model, proved: &Facts, names: bool) -> Vec<(String, EventKind, String)> {
    let scope = proved.scope();
    let mut found: Vec<_> =
        unlike_their_defaults(model).map(|(input, reason)| (input, EventKind::FalseClaim, reason)).collect();
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
                let counts = names || matches!(claim.claim, DimClaim::Value(_));
                counts && size_of(scope, &claim.claim).is_some_and(|size| scope.eq(&size, dim).is_no())
            };
            wrong |= claimed.len() != dims.len() || claimed.iter().zip(dims).any(differs);
        }
        if wrong {
            let claimed =
                declared.shape().map_or("?".to_string(), |dims| shown(dims.iter().map(|dim| dim.claim.to_string())));
            let stated =
                tensor.shape.as_ref().map_or("?".to_string(), |dims| shown(dims.iter().map(|dim| scope.format(dim))));
            let claimed_type = declared.dtype().map_or("?", |dtype| dtype.name());
            let stated_type = tensor.dtype.map_or("?", |dtype| dtype.name());
            let name = &place.name;
            let reason = format!(
                "'{name}' is declared {claimed_type}{claimed}, but is proved to be {stated_type}{stated}, which the result declares"
            );
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

/// The symbols of the inputs, and the author's names for sizes.
#[derive(Debug, Default)]
pub struct Names {
    inputs: FxHashSet<Symbol>,
    of: FxHashMap<Dim, String>,
    symbols: FxHashSet<Symbol>,
    /// Names for sizes whose expressions are too long to be written.
    long: FxHashMap<Dim, String>,
    /// Names for input dims without a claim, each with input and axis.
    of_inputs: Vec<(ValueId, usize, String)>,
    /// Every name in the file's claims.
    claimed: FxHashSet<String>,
}

impl Names {
    /// Collects the names from the claims, by the size that a claim names:
    /// * One symbol that inference made gets the name. It still counts as unnamed if the name is only a number (`unk__0`), as an earlier run of this
    ///   program wrote it.
    /// * For an expression with such symbols, a new symbol gets the name and is set equal to the expression. One of the expression's symbols is
    ///   written by it from now on.
    /// * A name that is no word cannot be part of an expression, and is written only for the whole size.
    /// * The text of an input or output for an expression in input symbols is written for the whole expression.
    /// * The name for an expression in input symbols that is too long to be written replaces the expression.
    ///
    /// Input dims that no claim names get separate names.
    ///
    /// If two sizes that are not known to be equal have one name, the first keeps it and the second gets none.
    pub fn adopt(model: &Model, proved: &Facts, contract: &Contract) -> Names {
        let scope = proved.scope();
        let mut names = Names::default();
        for &input in model.graph(model.main()).inputs() {
            let dims = proved.get(input).and_then(|fact| fact.shape()).unwrap_or_default();
            names.inputs.extend(dims.iter().flat_map(Dim::symbols).filter(|&symbol| !scope.is_fresh(symbol)));
        }
        let mut given: FxHashSet<&str> = FxHashSet::default();
        names.adopt_texts(model, proved, contract, &mut given);
        for value in claimed_values(model) {
            let declared = model.value(value).declared.as_ref().and_then(DeclaredType::shape);
            let Some((claims, dims)) = declared.zip(proved.get(value).and_then(|fact| fact.shape())) else { continue };
            if claims.len() != dims.len() {
                continue;
            }
            for (claim, dim) in claims.iter().zip(dims) {
                let Some(name) = claim.claim.name() else { continue };
                names.claimed.insert(name.to_string());
                // The name of a known symbol, or an expression, claims that this size equals another. So it is not a new name.
                let taken = given.contains(name) || scope.lookup(name).is_some() || is_expression(name);
                let dim = names.resolved(scope, dim);
                if taken {
                    continue;
                }
                if !names.lacks(scope, &dim) {
                    if is_word(name) && !names.long.contains_key(&dim) && is_long(scope, &dim) {
                        given.insert(name);
                        names.long.insert(dim, name.to_string());
                    }
                    continue;
                }
                given.insert(name);
                match dim.as_symbol() {
                    _ if !is_word(name) => {
                        names.of.insert(dim, name.to_string());
                    }
                    Some(symbol) => {
                        scope.rename(symbol, name);
                        if !is_numbered(name) {
                            names.symbols.insert(symbol);
                        }
                    }
                    // A named symbol is at least 0. The size is, too, if every run computes the value. In a subgraph that does not run, the
                    // expression may be negative, so there it must be proved.
                    None if is_computed(model, value) || scope.ge(&dim, &Dim::constant(0)).is_yes() => {
                        scope.assume_eq(&Dim::symbol(scope.named(name)), &dim);
                    }
                    None => {}
                }
            }
        }
        names.name_inputs(model, proved);
        names
    }

    /// Collects the texts of inputs and outputs for expressions in input symbols. A label of two output sizes that no input has names neither of
    /// them.
    fn adopt_texts<'m>(
        &mut self,
        model: &'m Model,
        proved: &Facts,
        contract: &Contract,
        given: &mut FxHashSet<&'m str>,
    ) {
        let scope = proved.scope();
        let main = model.graph(model.main());
        let mut of_label: FxHashMap<&str, Dim> = FxHashMap::default();
        let mut ambiguous: FxHashSet<&str> = FxHashSet::default();
        let mut texts: Vec<(Dim, &str)> = Vec::new();
        for (value, is_input) in
            main.inputs().iter().map(|value| (value, true)).chain(main.outputs().iter().map(|value| (value, false)))
        {
            let declared = model.value(*value).declared.as_ref().and_then(DeclaredType::shape);
            let Some((claims, dims)) = declared.zip(proved.get(*value).and_then(|fact| fact.shape())) else { continue };
            for (claim, dim) in claims.iter().zip(dims).filter(|_| claims.len() == dims.len()) {
                let Some(label) = claim.claim.name() else { continue };
                let dim = self.resolved(scope, dim);
                if !is_input
                    && contract.is_free(scope, label)
                    && of_label.entry(label).or_insert_with(|| dim.clone()) != &dim
                {
                    ambiguous.insert(label);
                }
                let is_expression = dim.as_const().is_none() && dim.as_symbol().is_none() && self.is_exact(&dim);
                let is_text = match is_input {
                    true => !contract.is_stale(label),
                    false => {
                        contract.standing(scope, &dim, &claim.claim) == Standing::Kept
                            && contract.may_name(scope, &dim, label)
                    }
                };
                if is_expression && is_text {
                    texts.push((dim, label));
                }
            }
        }
        for (dim, label) in texts.into_iter().filter(|(_, label)| !ambiguous.contains(label)) {
            given.insert(label);
            self.of.entry(dim).or_insert_with(|| label.to_string());
        }
    }

    /// Names the main graph's input dims without a claim: by an author's name for the size elsewhere, or after the input and the axis.
    fn name_inputs(&mut self, model: &Model, proved: &Facts) {
        let scope = proved.scope();
        for &input in model.graph(model.main()).inputs() {
            let declared = model.value(input).declared.as_ref().and_then(DeclaredType::shape);
            let Some((claims, dims)) = declared.zip(proved.get(input).and_then(|fact| fact.shape())) else { continue };
            for (axis, (claim, dim)) in claims.iter().zip(dims).enumerate() {
                let dim = self.resolved(scope, dim);
                let Some(symbol) = dim.as_symbol().filter(|_| claim.claim == DimClaim::Unknown) else { continue };
                if scope.is_fresh(symbol) && !self.symbols.contains(&symbol) {
                    scope.rename(symbol, &self.unused_name(scope, &model.value(input).name, axis));
                    self.symbols.insert(symbol);
                }
                self.inputs.insert(symbol);
                self.of_inputs.push((input, axis, scope.name(symbol).to_string()));
            }
        }
    }

    /// Returns `x_dim_0` for the first dim of `x`, or a similar unused name.
    fn unused_name(&self, scope: &Scope, input: &str, axis: usize) -> String {
        let letter = |letter: char| if letter == '_' || letter.is_alphanumeric() { letter } else { '_' };
        let mut name: String = input.chars().map(letter).collect();
        if !is_identifier(&name) {
            name.insert(0, '_');
        }
        name.push_str(&format!("_dim_{axis}"));
        while scope.lookup(&name).is_some() || self.claimed.contains(&name) {
            name.push('_');
        }
        name
    }

    /// Returns input, axis and name of the input dims without a claim.
    pub fn of_inputs(&self) -> &[(ValueId, usize, String)] {
        &self.of_inputs
    }

    /// Returns the spelling of sizes.
    pub fn spelling<'n>(&'n self, scope: &'n Scope) -> Spelling<'n> {
        Spelling::new(scope, self.long.clone(), &self.claimed, &self.inputs)
    }

    /// Returns the form of a size after symbols have been set equal to expressions.
    pub fn resolved(&self, scope: &Scope, dim: &Dim) -> Dim {
        if dim.as_const().is_some() { dim.clone() } else { scope.nominal(&scope.sum([dim])) }
    }

    /// Returns the author's name for this whole size.
    pub fn of(&self, dim: &Dim) -> Option<&str> {
        self.of.get(dim).map(String::as_str)
    }

    /// Returns `true` if a size has no name and contains unnamed symbols.
    pub fn lacks(&self, scope: &Scope, dim: &Dim) -> bool {
        let nameless = |symbol| scope.is_fresh(symbol) && !self.symbols.contains(&symbol);
        !self.of.contains_key(dim) && dim.has_symbol(nameless)
    }

    /// Returns `true` if a size that follows from claims contains unnamed symbols of inference, from this run or an earlier one.
    pub fn is_vague(&self, scope: &Scope, dim: &Dim) -> bool {
        let nameless = |symbol| scope.is_fresh(symbol) || is_numbered(&scope.name(symbol));
        dim.has_symbol(|symbol| !self.inputs.contains(&symbol) && nameless(symbol))
    }

    /// Returns `true` if a size is a number or an expression in input symbols.
    pub fn is_exact(&self, dim: &Dim) -> bool {
        !dim.has_symbol(|symbol| !self.inputs.contains(&symbol))
    }
}

/// Returns `true` if a node of the main graph computes the value, so that every run does.
fn is_computed(model: &Model, value: ValueId) -> bool {
    model.value(value).producer().and_then(|node| model.node(node)).is_some_and(|node| node.graph() == model.main())
}

/// Returns `true` if a size is too long to be written.
pub(super) fn is_long(scope: &Scope, dim: &Dim) -> bool {
    dim.as_const().is_none() && short_text(scope, dim, &|_| true).is_none()
}

/// Returns `true` if a text is an expression such as `a + b`, and not a single name.
fn is_expression(text: &str) -> bool {
    !is_word(text) && Scope::new().parse_known(text, &|_| true).is_some()
}
