//! Writes sizes as text: short expressions unchanged, long ones as a name.
//!
//! Tools parse the text of every size, some of them in quadratic time, and people read it. So a text has at most [`LONGEST`] characters. A longer
//! expression is written densely, without spaces. If that is still too long, one name replaces the expression everywhere, and a note explains the
//! name.
//!
//! A label of an input that is no word, such as `n + 1`, is written only as a whole dim: tools would parse `2*(n + 1)` as arithmetic with `n`. A
//! fresh name replaces expressions that contain one, and expressions whose text is the label of another size.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::pass::NodeEvent;
use crate::dim::{Dim, Scope, Symbol, is_word, quoted};
use crate::ir::DimClaim;
use crate::ops::EventKind;

/// The most characters of an expression.
const LONGEST: usize = 80;
/// The most characters of an expression in a note.
const LONGEST_TOLD: usize = 2000;

/// Returns the text of an expression, if it is short and has no other meaning. A symbol's own name is never too long. `is_label` returns `true` for
/// labels of inputs. Texts of claims are written in parentheses, because their authors computed them.
pub fn short_text(scope: &Scope, dim: &Dim, is_label: &dyn Fn(Symbol) -> bool) -> Option<String> {
    if let Some(symbol) = dim.as_symbol() {
        return Some(scope.name(symbol).to_string());
    }
    let symbols = dim.symbols().into_iter();
    let other: Vec<Symbol> =
        symbols.filter(|&symbol| !scope.is_fresh(symbol) && !is_word(&scope.name(symbol))).collect();
    if other.iter().any(|&symbol| is_label(symbol)) {
        return None;
    }
    let with_claims = |text: String| {
        other.iter().fold(text, |text, &symbol| {
            let name = scope.name(symbol);
            text.replace(&*quoted(&name), &format!("({name})"))
        })
    };
    let is_other = |text: &String| scope.lookup(text).is_some_and(|label| !scope.eq(&Dim::symbol(label), dim).is_yes());
    let fits = |text: &String| text.chars().count() <= LONGEST && !is_other(text);
    let text = Some(with_claims(scope.format(dim))).filter(fits);
    text.or_else(|| Some(with_claims(scope.format_densely(dim))).filter(fits))
}

/// Returns the form of a size under more knowledge.
pub fn shorter(scope: &Scope, dim: &Dim) -> Dim {
    if dim.as_const().is_some() || dim.as_symbol().is_some() {
        return dim.clone();
    }
    let symbols = dim.symbols();
    let again = scope.substitute(dim, &|_| None);
    // An expression that outgrew the limit becomes a new symbol.
    if again.symbols().iter().all(|symbol| symbols.contains(symbol)) { again } else { dim.clone() }
}

/// The names of long expressions.
pub struct Spelling<'s> {
    scope: &'s Scope,
    /// Names that must not be created.
    taken: &'s FxHashSet<String>,
    /// The symbols of inputs.
    inputs: &'s FxHashSet<Symbol>,
    names: RefCell<FxHashMap<Dim, String>>,
    notes: RefCell<Vec<NodeEvent>>,
}

impl<'s> Spelling<'s> {
    /// Creates a spelling from authors' names for long expressions, names with other meanings, and the symbols of inputs.
    pub fn new(
        scope: &'s Scope,
        names: FxHashMap<Dim, String>,
        taken: &'s FxHashSet<String>,
        inputs: &'s FxHashSet<Symbol>,
    ) -> Self {
        Spelling { scope, taken, inputs, names: RefCell::new(names), notes: RefCell::default() }
    }

    /// Returns the claim to write for a size.
    pub fn claim(&self, dim: &Dim) -> DimClaim {
        match dim.as_const() {
            Some(size) if size >= 0 => DimClaim::Value(size),
            Some(_) => DimClaim::Unknown,
            None => DimClaim::Param(self.text(dim).unwrap_or_else(|| self.name(dim))),
        }
    }

    fn text(&self, dim: &Dim) -> Option<String> {
        short_text(self.scope, dim, &|symbol| self.inputs.contains(&symbol))
    }

    fn name(&self, dim: &Dim) -> String {
        let mut names = self.names.borrow_mut();
        let (known, name) = match names.get(dim) {
            Some(name) => (true, name.clone()),
            None => (false, self.unused(&names)),
        };
        let reason = format!("stands for {}", told(&self.scope.format(dim)));
        let note = (format!("size '{name}'"), EventKind::NamedSize, reason);
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
        if !known {
            names.insert(dim.clone(), name.clone());
        }
        name
    }

    /// Returns `size_1` or the next unused name of this kind.
    fn unused(&self, names: &FxHashMap<Dim, String>) -> String {
        let is_free = |name: &String| {
            !self.taken.contains(name) && self.scope.lookup(name).is_none() && !names.values().any(|own| own == name)
        };
        // The names in use are fewer than the candidates.
        let candidates = (1..).map(|number: u64| format!("size_{number}"));
        candidates.into_iter().find(is_free).unwrap_or_default()
    }

    /// Returns a note for each written name.
    pub fn into_notes(self) -> Vec<NodeEvent> {
        self.notes.into_inner()
    }
}

fn told(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TOLD) {
        None => text.to_string(),
        Some((end, _)) => format!("{} … ({} characters)", text.get(..end).unwrap_or_default(), text.chars().count()),
    }
}
