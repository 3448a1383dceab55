//! The symbol table: names, bounds, and the relations between symbols that are taken as given.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::answer::Question;
use super::attempts::Attempts;
use super::bounds::Interval;
use super::doubts::Doubts;
use super::expr::{Dim, Symbol};
use super::monomial::Atom;
use super::work::Meter;
pub use assumed::Law;
pub use attempt::PROOF_STEPS;
use attempt::Steps;
use memo::{Findings, Memo, Supposed};
use relations::Relations;

mod assumed;
mod attempt;
mod known;
mod memo;
mod relations;

/// A table of symbols, what is known of them, and the arithmetic over them.
///
/// Every method takes `&self`. What is known only grows: results already made stay correct, and later ones may come
/// out shorter. If what was assumed contradicts itself there is no assignment left, and any answer is correct.
#[derive(Debug, Default)]
pub struct Scope {
    table: RefCell<Table>,
    /// The intervals of atoms, which follow from the bounds of symbols alone.
    intervals: Memo<Atom, Interval>,
    /// The findings under the present assumptions, and the assignments that keep the relations.
    found: Findings,
    /// The findings of earlier calls of [`Scope::supposing`], by their assumptions.
    supposed: RefCell<FxHashMap<Supposed, Findings>>,
    pub(super) attempts: RefCell<Attempts>,
    /// Floors and maxima made before, so that equal ones are one and are compared by looking at where they are.
    atoms: Memo<Atom, Atom>,
    /// How expressions are written, under the present names.
    texts: Memo<Dim, Arc<str>>,
    /// The dims that broadcast to an expression. More knowledge does not make that untrue.
    parts: RefCell<FxHashMap<Dim, Arc<[Dim]>>>,
    next_name: Cell<u64>,
    /// What could not be proved, if somebody wants to know.
    pub(super) doubts: RefCell<Option<Doubts>>,
    /// The last question that was not answered, while doubts are noted.
    pub(super) open: RefCell<Option<Question>>,
    /// The symbols of which more has become known, in order.
    learned: RefCell<Vec<Symbol>>,
    /// How many steps the present attempt may still spend on proofs, and whether that has cut one short; see [`Scope::attempt`].
    pub(super) steps: Cell<Steps>,
    meter: Meter,
    /// Whether sizes are trusted to fit the types they are computed in; see [`assumed`].
    trusts: Cell<bool>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    symbols: Vec<SymbolRecord>,
    names: FxHashMap<Arc<str>, Symbol>,
    /// Each is at least 0.
    pub(super) relations: Relations,
    /// The dims that broadcast to a dim; see [`Scope::assume_met`].
    covered: FxHashMap<Dim, Vec<Dim>>,
    /// Symbols that are written as something else from now on; no right side mentions a left side.
    rewrites: Vec<(Symbol, Dim)>,
    /// While something is only supposed: the number of symbols there were before.
    supposing: Option<usize>,
    /// The number of relations that are no suppositions.
    given: usize,
    /// Whether any symbol is known to be a multiple of something.
    has_multiples: bool,
    /// Dims of tensors that every run has, but for symbols.
    axes: FxHashSet<Dim>,
    /// The symbols for what laws make of operands.
    assumed: FxHashMap<(Law, Vec<Dim>), Symbol>,
}

#[derive(Clone, Debug)]
struct SymbolRecord {
    /// Fresh symbols are named when somebody asks.
    name: Option<Arc<str>>,
    stem: Option<Arc<str>>,
    /// Whether `name` belongs to this symbol for good.
    named: bool,
    interval: Interval,
    multiple: i64,
    /// Whether it is a size; see [`super::size`].
    size: bool,
    /// The nominal expression; see [`assumed`].
    nominal: Option<Dim>,
    /// The law whose result it is.
    law: Option<Law>,
}

impl Table {
    fn entry(&self, symbol: Symbol) -> Option<&SymbolRecord> {
        self.symbols.get(symbol.0 as usize)
    }

    /// What is known of a symbol; nothing, for a symbol of another scope.
    pub(super) fn interval(&self, symbol: Symbol) -> Interval {
        self.entry(symbol).map_or(Interval::ANY, |entry| entry.interval)
    }

    /// A positive number that divides the symbol's value.
    pub(super) fn multiple(&self, symbol: Symbol) -> i64 {
        self.entry(symbol).map_or(1, |entry| entry.multiple)
    }

    pub(super) fn has_multiples(&self) -> bool {
        self.has_multiples
    }

    fn push(&mut self, entry: SymbolRecord) -> Symbol {
        // A table of 2³² symbols does not fit in memory; the last index stands for all beyond it.
        let symbol = Symbol(u32::try_from(self.symbols.len()).unwrap_or(u32::MAX));
        self.symbols.push(entry);
        symbol
    }
}

impl Scope {
    /// An empty table.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// A table of its own with the same symbols, of which the same is known.
    pub fn copied(&self) -> Scope {
        let table = RefCell::new(self.table.borrow().clone());
        let (next_name, meter) = (Cell::new(self.next_name.get()), self.meter.clone());
        Scope { table, next_name, meter, ..Scope::default() }
    }

    /// An empty table whose work counts on this meter.
    pub fn metered(meter: &Meter) -> Scope {
        Scope { meter: meter.clone(), ..Scope::default() }
    }

    /// What counts the work of the run.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What is known of these sizes and no others, beside that no size is negative: expressions that are at least 0.
    pub fn known_of(&self, sizes: &[Symbol]) -> Vec<Dim> {
        let table = self.table.borrow();
        let bound = |bound: Option<i128>| bound.and_then(|bound| i64::try_from(bound).ok()).map(Dim::constant);
        let mut known = Vec::new();
        for &symbol in sizes {
            let (interval, own) = (table.interval(symbol), Dim::symbol(symbol));
            known.extend(bound(interval.low.filter(|&low| low > 0)).and_then(|low| own.minus(&low)));
            known.extend(bound(interval.high).and_then(|high| high.minus(&own)));
        }
        let is_meant = |relation: &&Dim| relation.symbols().iter().all(|symbol| sizes.contains(symbol));
        known.extend(table.relations.iter().filter(is_meant).cloned());
        known
    }

    /// The symbol named `text`, made at the first call: a size, at least 0.
    ///
    /// A fresh symbol that happens to print as `text` gives the name up; it is never confused with this one.
    pub fn named(&self, text: &str) -> Symbol {
        let mut table = self.table.borrow_mut();
        if let Some(&symbol) = table.names.get(text) {
            match table.symbols.get_mut(symbol.0 as usize) {
                Some(entry) if !entry.named => {
                    entry.name = None;
                    self.texts.forget();
                }
                _ => return symbol,
            }
        }
        let name: Arc<str> = text.into();
        let interval = Interval::at_least(0);
        let symbol = table.push(SymbolRecord {
            name: Some(name.clone()),
            stem: None,
            named: true,
            interval,
            multiple: 1,
            size: true,
            nominal: None,
            law: None,
        });
        table.names.insert(name, symbol);
        symbol
    }

    /// The symbol that [`named`](Scope::named) or [`rename`](Scope::rename) gave this name, if any.
    pub fn lookup(&self, text: &str) -> Option<Symbol> {
        let table = self.table.borrow();
        let symbol = *table.names.get(text)?;
        table.entry(symbol)?.named.then_some(symbol)
    }

    /// A new size, at least 0, that nothing else is known to equal. `hint` is the stem of its printed name.
    pub fn fresh(&self, hint: &str) -> Symbol {
        self.make(hint, Interval::at_least(0), true)
    }

    /// [`fresh`](Scope::fresh), as an expression.
    pub fn fresh_dim(&self, hint: &str) -> Dim {
        Dim::symbol(self.fresh(hint))
    }

    /// A new integer of which nothing is known, such as one computed at run time.
    pub fn fresh_value(&self, hint: &str) -> Dim {
        Dim::symbol(self.make(hint, Interval::ANY, false))
    }

    /// A new size between the bounds, both included; `None` is no bound. It is an integer that is no size if it may be negative.
    pub fn fresh_within(&self, hint: &str, low: Option<i64>, high: Option<i64>) -> Dim {
        self.within(hint, low, high, low.is_some_and(|low| low >= 0))
    }

    /// A new integer between the bounds, both included, that is no size.
    pub fn fresh_integer(&self, hint: &str, low: Option<i64>, high: Option<i64>) -> Dim {
        self.within(hint, low, high, false)
    }

    fn within(&self, hint: &str, low: Option<i64>, high: Option<i64>, size: bool) -> Dim {
        let interval = Interval { low: low.map(i128::from), high: high.map(i128::from) };
        match (low, high) {
            (Some(low), Some(high)) if low == high => Dim::constant(low),
            _ => Dim::symbol(self.make(hint, interval, size)),
        }
    }

    /// Whether the symbol was made by one of the `fresh` methods, or as the result of an operation that had none.
    pub fn is_fresh(&self, symbol: Symbol) -> bool {
        self.table.borrow().entry(symbol).is_some_and(|entry| entry.stem.is_some())
    }

    /// Whether the symbol is a size.
    pub(super) fn is_size(&self, symbol: Symbol) -> bool {
        self.table.borrow().entry(symbol).is_some_and(|entry| entry.size)
    }

    fn make(&self, hint: &str, interval: Interval, size: bool) -> Symbol {
        let stem = if is_identifier(hint) { hint } else { "unk" };
        let stem = Some(stem.into());
        let (name, named, nominal, law) = (None, false, None, None);
        let entry = SymbolRecord { name, stem, named, interval, multiple: 1, size, nominal, law };
        self.table.borrow_mut().push(entry)
    }

    /// What the symbol prints as. A fresh symbol gets a name no other symbol has, such as `unk__0`, when it is first
    /// asked for.
    pub fn name(&self, symbol: Symbol) -> Arc<str> {
        let mut table = self.table.borrow_mut();
        let Some(entry) = table.entry(symbol) else {
            return format!("unk__{}", symbol.0).into();
        };
        if let Some(name) = &entry.name {
            return name.clone();
        }
        let stem = entry.stem.clone().unwrap_or_else(|| "unk".into());
        let name: Arc<str> = loop {
            let number = self.next_name.get();
            self.next_name.set(number.saturating_add(1));
            let candidate = format!("{stem}__{number}");
            if !table.names.contains_key(candidate.as_str()) {
                break candidate.into();
            }
        };
        table.names.insert(name.clone(), symbol);
        if let Some(entry) = table.symbols.get_mut(symbol.0 as usize) {
            entry.name = Some(name.clone());
        }
        name
    }

    /// Gives the symbol a name of its own; a fresh one stays fresh. Nothing happens when another symbol was given that
    /// name before.
    pub fn rename(&self, symbol: Symbol, text: &str) {
        self.texts.forget();
        let mut table = self.table.borrow_mut();
        if let Some(&holder) = table.names.get(text) {
            match table.symbols.get_mut(holder.0 as usize) {
                Some(entry) if holder == symbol => {
                    entry.named = true;
                    return;
                }
                Some(entry) if !entry.named => entry.name = None,
                _ => return,
            }
        }
        let name: Arc<str> = text.into();
        let Some(entry) = table.symbols.get_mut(symbol.0 as usize) else {
            return;
        };
        entry.named = true;
        if let Some(old) = entry.name.replace(name.clone()) {
            table.names.remove(&old);
        }
        table.names.insert(name, symbol);
    }

    /// Takes note that more is known of a symbol.
    fn learn(&self, symbol: Symbol) {
        self.learned.borrow_mut().push(symbol);
        self.forget_answers();
    }

    /// How often more has become known of a symbol.
    pub fn learned(&self) -> usize {
        self.learned.borrow().len()
    }

    /// Returns `true` if more has become known of any of the first `symbols` symbols since [`learned`](Scope::learned) returned this number.
    pub fn has_learned_since(&self, learned: usize, symbols: usize) -> bool {
        let all = self.learned.borrow();
        all.get(learned..).unwrap_or_default().iter().any(|symbol| (symbol.0 as usize) < symbols)
    }

    /// The first symbol for which the assumptions leave no value, if that has come to light.
    pub fn impossible(&self) -> Option<Symbol> {
        let table = self.table.borrow();
        let empty =
            |entry: &SymbolRecord| entry.interval.low.zip(entry.interval.high).is_some_and(|(low, high)| low > high);
        let index = table.symbols.iter().position(empty)?;
        u32::try_from(index).ok().map(Symbol)
    }

    /// Returns `false` if no assignment satisfies what is known, as far as bounds show it.
    pub fn is_possible(&self) -> bool {
        let relations = self.table.borrow().relations.clone();
        self.impossible().is_none()
            && !relations.iter().any(|relation| self.upper_bound(relation).is_some_and(|high| high < 0))
    }

    /// `a` with every rewritten symbol replaced; `a` itself where there is none.
    pub(super) fn resolve(&self, a: &Dim) -> Dim {
        let applies = self.with_table(|table| table.rewrites.iter().any(|(symbol, _)| a.mentions(*symbol)));
        if !applies {
            return a.clone();
        }
        // No right side mentions a left side, so the replaced expression needs no second pass; while it is being built
        // there is nothing to rewrite.
        let rewrites = std::mem::take(&mut self.table.borrow_mut().rewrites);
        let find = |symbol| rewrites.iter().find(|(left, _)| *left == symbol).map(|(_, right)| right.clone());
        let resolved = self.try_substitute(a, &find);
        self.table.borrow_mut().rewrites = rewrites;
        resolved.unwrap_or_else(|| a.clone())
    }

    pub(super) fn with_table<R>(&self, read: impl FnOnce(&Table) -> R) -> R {
        read(&self.table.borrow())
    }

    /// What was concluded under weaker assumptions is to be concluded anew.
    fn forget(&self) {
        self.intervals.forget();
        self.texts.forget();
        self.forget_searches();
    }

    /// The same, but for what was concluded from the bounds of symbols alone. What is proved stays proved.
    fn forget_searches(&self) {
        self.found.forget_searches();
        self.forget_answers();
    }

    fn forget_answers(&self) {
        self.found.forget_answers();
        self.supposed.borrow_mut().clear();
    }

    /// How many symbols there are.
    pub fn symbol_count(&self) -> usize {
        self.table.borrow().symbols.len()
    }

    /// Takes back the symbols made since there were `count`. Nothing that mentions them may be used afterwards.
    pub(super) fn truncate(&self, count: usize) {
        let mut table = self.table.borrow_mut();
        let removed = if count < table.symbols.len() { table.symbols.split_off(count) } else { Vec::new() };
        for name in removed.into_iter().filter_map(|entry| entry.name) {
            table.names.remove(&name);
        }
        table.axes.retain(|dim| !dim.has_symbol(|symbol| symbol.0 as usize >= count));
        table.assumed.retain(|_, symbol| (symbol.0 as usize) < count);
        drop(table);
        self.attempts.take();
        self.found.take();
        self.forget();
    }
}

/// Whether `text` reads back as one name in the expression syntax.
pub fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
        && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
}

/// Whether a name is one that [`Scope::name`] makes, such as `unk__0`, or an expression with such a name: nobody chose it.
pub fn is_numbered(name: &str) -> bool {
    let words = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut numbers = words.filter_map(|word| word.rsplit_once("__")).map(|(_, number)| number);
    numbers.any(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}
