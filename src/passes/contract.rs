//! The dims that the file declares for the main graph's outputs. Callers find dims by these labels and numbers, so they are not rewritten.
//!
//! | declared | claims | written |
//! | --- | --- | --- |
//! | nothing, or a label that an exporter made up (`Add956_dim_0`, `unk__12`) | nothing | the proved size |
//! | a label that no input has | nothing | the label |
//! | a number, a label of an input, an expression in such labels | a size | the same, unless it is false in a run |
//!
//! A run refutes a claim if all dims of inputs and outputs are at least 1 there and the proved size differs from the claim. Empty tensors are no
//! reason to rename a size: `1` is kept for `min(1, n)`. A label is compared as text first: a label of an input is the size of that input. If the
//! label is also an expression, that is a second reading, and one true reading is enough.

use rustc_hash::FxHashSet;

use super::dead;
use super::spelling::shorter;
use crate::dim::{Dim, Scope, Symbol, is_numbered};
use crate::ir::{DimClaim, Facts, Model, ValueId};
use crate::ops::{broadcast_choices, equal_sizes};

/// The decision about a declared dim of an output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The declared dim claims nothing that a caller relies on.
    Open,
    /// The declared dim is written.
    Kept,
    /// A run refutes the declared dim.
    False,
}

/// The labels of the inputs, and the facts that hold where no input and no output is empty.
pub(super) struct Contract {
    labels: FxHashSet<String>,
    /// The symbols of the inputs' sizes.
    sizes: FxHashSet<Symbol>,
    /// Names of input dims that the user replaced by sizes.
    replaced: Vec<String>,
    /// The scope where nothing is empty; `None` if some input or output is always empty.
    filled: Option<Scope>,
    /// Expressions that are 0 in this scope: differences between sizes that nodes require to be equal.
    pub(super) zeros: Vec<Dim>,
}

impl Contract {
    /// Returns the contract of a model whose sizes are known in `scope`, and where each of `zeros` is 0.
    pub(super) fn of<'m>(
        model: &'m Model,
        facts: &'m Facts,
        (scope, zeros): (&Scope, &[Dim]),
        replaced: &[String],
    ) -> Contract {
        let filled = scope.copied();
        let main = model.graph(model.main());
        let shapes = |values: &'m [ValueId]| values.iter().filter_map(|&value| facts.get(value)?.shape()).flatten();
        let sizes = shapes(main.inputs()).flat_map(Dim::symbols).collect();
        for dim in shapes(main.inputs()).chain(shapes(main.outputs())).filter(|dim| dim.as_const().is_none()) {
            filled.assume_le(&Dim::constant(1), dim);
        }
        let computed = dead::live_nodes(model);
        let all = equal_sizes(model, facts, &computed).into_iter().chain(zeros.iter().cloned());
        let mut zeros: Vec<Dim> = Vec::new();
        for zero in all.map(|zero| shorter(&filled, &zero).without_content()) {
            if zero.as_const().is_none() && !zeros.contains(&zero) {
                zeros.push(zero);
            }
        }
        for zero in zeros.iter().chain(&broadcast_choices(model, facts, &computed)) {
            filled.assume_le(zero, &Dim::constant(0));
            filled.assume_le(&Dim::constant(0), zero);
        }
        let filled = Some(filled).filter(Scope::is_possible);
        Contract { labels: labels(model), sizes, replaced: replaced.to_vec(), filled, zeros }
    }

    /// Returns a contract that only has the labels of a model's inputs.
    pub(super) fn of_labels(model: &Model) -> Contract {
        let (sizes, replaced, zeros) = (FxHashSet::default(), Vec::new(), Vec::new());
        Contract { labels: labels(model), sizes, replaced, filled: None, zeros }
    }

    /// Decides about a declared dim of an output whose proved size is `proved`.
    pub(super) fn standing(&self, scope: &Scope, proved: &Dim, declared: &DimClaim) -> Standing {
        let readings = match declared {
            DimClaim::Unknown => return Standing::Open,
            DimClaim::Value(size) => vec![Dim::constant(*size)],
            DimClaim::Param(text) => match (text.parse(), declared.name()) {
                (Ok(_), _) if proved.as_const().is_some() => return Standing::Open,
                (Ok(size), _) if size >= 0 => vec![Dim::constant(size)],
                (_, None) => return Standing::Open,
                (_, Some(label)) if self.is_open(label) => return Standing::Open,
                (_, Some(label)) => self.readings(scope, label),
            },
        };
        // The possible values of a run-time size are unknown, so a single differing number refutes nothing.
        let is_false = |claim: &Dim| match proved.has_symbol(|symbol| !self.sizes.contains(&symbol)) {
            true => scope.eq(proved, claim).is_no(),
            false => self.filled.as_ref().unwrap_or(scope).differs_somewhere(proved, claim),
        };
        if !readings.is_empty() && readings.iter().all(is_false) { Standing::False } else { Standing::Kept }
    }

    /// Returns `true` if the label of an output claims nothing: no input has it, and it is no expression in labels of inputs.
    pub(super) fn is_free(&self, scope: &Scope, label: &str) -> bool {
        !self.is_open(label) && self.readings(scope, label).is_empty()
    }

    /// Returns `true` if a label may name a size inside the model: no input has it for another size.
    pub(super) fn may_name(&self, scope: &Scope, size: &Dim, label: &str) -> bool {
        let own = scope.lookup(label).map(Dim::symbol);
        own.is_none_or(|own| !self.filled.as_ref().unwrap_or(scope).differs_somewhere(size, &own))
    }

    /// Returns `true` if an exporter made up the label, or if it is stale.
    fn is_open(&self, label: &str) -> bool {
        self.is_stale(label) || !self.labels.contains(label) && is_made_up(label)
    }

    /// Returns `true` if the label contains the name of an input dim that the user replaced by a size.
    pub(super) fn is_stale(&self, label: &str) -> bool {
        let is_part = |name: &String| label.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        self.replaced.iter().any(|name| !self.labels.contains(name) && is_part(name))
    }

    /// Returns the sizes that a label may claim; none if no input has it.
    fn readings(&self, scope: &Scope, label: &str) -> Vec<Dim> {
        let is_label = |name: &str| self.labels.contains(name);
        let own = Some(label).filter(|label| is_label(label)).and_then(|label| scope.lookup(label)).map(Dim::symbol);
        let mut readings: Vec<Dim> = own.into_iter().chain(scope.parse_known(label, &is_label)).collect();
        readings.dedup();
        readings
    }
}

/// Returns `true` if some output, or input, is empty in every run.
pub fn is_always_empty(model: &Model, facts: &Facts) -> bool {
    let main = model.graph(model.main());
    let shapes = main.inputs().iter().chain(main.outputs()).filter_map(|&value| facts.get(value)?.shape());
    shapes.flatten().any(|dim| dim.is_const(0))
        || Contract::of(model, facts, (facts.scope(), &[]), &[]).filled.is_none()
}

/// Returns `true` if an exporter made up a label: TorchScript names a dim after operator, value and axis (`Add956_dim_0`), tf2onnx numbers
/// dims (`unk__12`).
fn is_made_up(label: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let of_axis =
        label.rsplit_once("_dim_").filter(|(value, axis)| is_number(axis) && !value.contains(char::is_whitespace));
    // An expression with such a label (`unk__12 - 1`) is not made up.
    let is_word = label.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    of_axis.is_some_and(|(value, _)| value.starts_with(|first: char| first.is_ascii_alphabetic()))
        || is_word && is_numbered(label)
}

/// Returns the labels of the main graph's inputs.
fn labels(model: &Model) -> FxHashSet<String> {
    let inputs = model.graph(model.main()).inputs();
    let shapes = inputs.iter().filter_map(|&input| model.value(input).declared.as_ref()?.shape());
    shapes.flatten().filter_map(|dim| dim.claim.name()).map(str::to_string).collect()
}
