//! How sizes are spelled in what is written: short expressions as they are, long ones by a name that stands for them.
//!
//! Readers of a model parse the text of every size, some of them in time that grows with its square, and people read it. So a text
//! has at most [`LONGEST`] characters. An expression that needs more is written densely, without spaces; if that is still too long, one
//! name stands for the expression wherever it occurs, and a note says for what.
//!
//! A label of an input that is no word, such as `n + 1`, is written only as a whole dim: readers would parse `2*(n + 1)` as arithmetic with `n`. A
//! fresh name replaces expressions that contain one, and expressions whose text is the label of another size.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::pass::NodeEvent;
use crate::dim::{Dim, Scope, Symbol, is_word, quoted};
use crate::ir::DimClaim;
use crate::ops::EventKind;

/// The most characters of an expression.
const LONGEST: usize = 80;
/// The most characters that a note tells of an expression.
const LONGEST_TOLD: usize = 2000;

/// The expression as text, if it has a short one that means nothing else. A symbol's own name is never too long. `is_label` returns `true` for labels of
/// inputs. Texts of claims are written in parentheses, because their authors computed them.
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

/// A size as it reads where more is known.
pub fn shorter(scope: &Scope, dim: &Dim) -> Dim {
    if dim.as_const().is_some() || dim.as_symbol().is_some() {
        return dim.clone();
    }
    let symbols = dim.symbols();
    let again = scope.substitute(dim, &|_| None);
    // One that grew over what an expression may have is a symbol of its own.
    if again.symbols().iter().all(|symbol| symbols.contains(symbol)) { again } else { dim.clone() }
}

/// The names that stand for long expressions.
pub struct Spelling<'s> {
    scope: &'s Scope,
    /// Names that are not to be made.
    taken: &'s FxHashSet<String>,
    /// The symbols of inputs.
    inputs: &'s FxHashSet<Symbol>,
    names: RefCell<FxHashMap<Dim, String>>,
    notes: RefCell<Vec<NodeEvent>>,
}

impl<'s> Spelling<'s> {
    /// Authors' names for long expressions, names that mean something else, and the symbols of inputs.
    pub fn new(
        scope: &'s Scope,
        names: FxHashMap<Dim, String>,
        taken: &'s FxHashSet<String>,
        inputs: &'s FxHashSet<Symbol>,
    ) -> Self {
        Spelling { scope, taken, inputs, names: RefCell::new(names), notes: RefCell::default() }
    }

    /// A size as it is written.
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

    /// `size_1` or the next such name that means nothing else.
    fn unused(&self, names: &FxHashMap<Dim, String>) -> String {
        let is_free = |name: &String| {
            !self.taken.contains(name) && self.scope.lookup(name).is_none() && !names.values().any(|own| own == name)
        };
        // The names in use are fewer than the candidates.
        let candidates = (1..).map(|number: u64| format!("size_{number}"));
        candidates.into_iter().find(is_free).unwrap_or_default()
    }

    /// A note for each name that was written.
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
