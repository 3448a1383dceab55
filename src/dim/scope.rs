//! The symbol table: names, bounds, and the given relations between symbols.

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

/// A table of symbols and the facts about them, and the arithmetic over them.
///
/// Every method takes `&self`. Facts are only added: earlier results remain correct, and later ones may be shorter. If the assumptions
/// contradict each other, no assignment is left, and any answer is correct.
#[derive(Debug, Default)]
pub struct Scope {
    table: RefCell<Table>,
    /// The intervals of atoms, which derive from the bounds of symbols only.
    intervals: Memo<Atom, Interval>,
    /// The results under the present assumptions, and the assignments that satisfy the relations.
    found: Findings,
    /// The results of earlier calls of [`Scope::supposing`], by their assumptions.
    supposed: RefCell<FxHashMap<Supposed, Findings>>,
    pub(super) attempts: RefCell<Attempts>,
    /// The interned floors and maxima, so that equal ones share memory and compare by address.
    atoms: Memo<Atom, Atom>,
    /// The texts of expressions under the present names.
    texts: Memo<Dim, Arc<str>>,
    /// The dims that broadcast to an expression. Further facts do not invalidate an entry.
    parts: RefCell<FxHashMap<Dim, Arc<[Dim]>>>,
    next_name: Cell<u64>,
    /// The unproved questions, if they are recorded.
    pub(super) doubts: RefCell<Option<Doubts>>,
    /// The last unanswered question, while doubts are recorded.
    pub(super) open: RefCell<Option<Question>>,
    /// The symbols with new facts, in order.
    learned: RefCell<Vec<Symbol>>,
    /// The remaining steps of the present attempt, and `is_cut` if a proof ran out of them; see [`Scope::attempt`].
    pub(super) steps: Cell<Steps>,
    meter: Meter,
    /// `true` while sizes are assumed to fit the types in which they are computed; see [`assumed`].
    trusts: Cell<bool>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    symbols: Vec<SymbolRecord>,
    names: FxHashMap<Arc<str>, Symbol>,
    /// Expressions that are at least 0.
    pub(super) relations: Relations,
    /// The dims that broadcast to a dim; see [`Scope::assume_met`].
    covered: FxHashMap<Dim, Vec<Dim>>,
    /// Symbols with a definition, which replaces them in new results. No definition contains a defined symbol.
    rewrites: Vec<(Symbol, Dim)>,
    /// While a supposition is active: the number of symbols before it.
    supposing: Option<usize>,
    /// The number of relations that are no suppositions.
    given: usize,
    /// `true` if any symbol is known to be a multiple of a number.
    has_multiples: bool,
    /// Dims, other than symbols, of tensors that exist in every run.
    axes: FxHashSet<Dim>,
    /// The symbols for the results of laws, by law and operands.
    assumed: FxHashMap<(Law, Vec<Dim>), Symbol>,
}

#[derive(Clone, Debug)]
struct SymbolRecord {
    /// A fresh symbol gets its name at the first request.
    name: Option<Arc<str>>,
    stem: Option<Arc<str>>,
    /// `true` if `name` was given explicitly.
    named: bool,
    interval: Interval,
    multiple: i64,
    /// `true` if it is a size; see [`super::size`].
    size: bool,
    /// The nominal expression; see [`assumed`].
    nominal: Option<Dim>,
    /// The law that the symbol is a result of.
    law: Option<Law>,
}

impl Table {
    fn entry(&self, symbol: Symbol) -> Option<&SymbolRecord> {
        self.symbols.get(symbol.0 as usize)
    }

    /// Returns the interval of a symbol; unbounded for a symbol of another scope.
    pub(super) fn interval(&self, symbol: Symbol) -> Interval {
        self.entry(symbol).map_or(Interval::ANY, |entry| entry.interval)
    }

    /// Returns a positive number that divides the symbol's value.
    pub(super) fn multiple(&self, symbol: Symbol) -> i64 {
        self.entry(symbol).map_or(1, |entry| entry.multiple)
    }

    pub(super) fn has_multiples(&self) -> bool {
        self.has_multiples
    }

    fn push(&mut self, entry: SymbolRecord) -> Symbol {
        // A table of 2³² symbols does not fit in memory; the last index represents all beyond it.
        let symbol = Symbol(u32::try_from(self.symbols.len()).unwrap_or(u32::MAX));
        self.symbols.push(entry);
        symbol
    }
}

impl Scope {
    /// Returns an empty table.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Returns a separate table with the same symbols and facts.
    pub fn copied(&self) -> Scope {
        let table = RefCell::new(self.table.borrow().clone());
        let (next_name, meter) = (Cell::new(self.next_name.get()), self.meter.clone());
        Scope { table, next_name, meter, ..Scope::default() }
    }

    /// Returns an empty table whose work counts on this meter.
    pub fn metered(meter: &Meter) -> Scope {
        Scope { meter: meter.clone(), ..Scope::default() }
    }

    /// Returns the meter of the run.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the facts about these sizes only, as expressions that are at least 0. Omits that sizes are not negative.
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

    /// Returns the symbol named `text`: a size, at least 0. The first call creates it.
    ///
    /// If a fresh symbol has the generated name `text`, it gets another name. The two are never confused.
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

    /// Returns the symbol that [`named`](Scope::named) or [`rename`](Scope::rename) gave this name, if any.
    pub fn lookup(&self, text: &str) -> Option<Symbol> {
        let table = self.table.borrow();
        let symbol = *table.names.get(text)?;
        table.entry(symbol)?.named.then_some(symbol)
    }

    /// Returns a new size, at least 0, without further facts. `hint` is the stem of its printed name.
    pub fn fresh(&self, hint: &str) -> Symbol {
        self.make(hint, Interval::at_least(0), true)
    }

    /// Returns [`fresh`](Scope::fresh) as an expression.
    pub fn fresh_dim(&self, hint: &str) -> Dim {
        Dim::symbol(self.fresh(hint))
    }

    /// Returns a new integer without facts, for example one that is computed at run time.
    pub fn fresh_value(&self, hint: &str) -> Dim {
        Dim::symbol(self.make(hint, Interval::ANY, false))
    }

    /// Returns a new integer between the bounds, both included; `None` is the absence of a bound. It is a size if the lower bound is 0 or
    /// above.
    pub fn fresh_within(&self, hint: &str, low: Option<i64>, high: Option<i64>) -> Dim {
        self.within(hint, low, high, low.is_some_and(|low| low >= 0))
    }

    /// Returns a new integer between the bounds, both included, that is not a size.
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

    /// Returns `true` for a symbol that a `fresh` method made, or that represents the result of a failed operation.
    pub fn is_fresh(&self, symbol: Symbol) -> bool {
        self.table.borrow().entry(symbol).is_some_and(|entry| entry.stem.is_some())
    }

    /// Returns `true` if the symbol is a size.
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

    /// Returns the printed name of the symbol. At the first call, a fresh symbol gets a unique name such as `unk__0`.
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

    /// Gives the symbol an explicit name; a fresh symbol is still fresh. Has no effect if another symbol was given that name before.
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

    /// Records that there are new facts about a symbol.
    fn learn(&self, symbol: Symbol) {
        self.learned.borrow_mut().push(symbol);
        self.forget_answers();
    }

    /// Returns the number of recorded changes of facts about symbols.
    pub fn learned(&self) -> usize {
        self.learned.borrow().len()
    }

    /// Returns `true` if there are new facts about any of the first `symbols` symbols since [`learned`](Scope::learned) returned this
    /// number.
    pub fn has_learned_since(&self, learned: usize, symbols: usize) -> bool {
        let all = self.learned.borrow();
        all.get(learned..).unwrap_or_default().iter().any(|symbol| (symbol.0 as usize) < symbols)
    }

    /// Returns the first symbol without a possible value, as far as its bounds show it.
    pub fn impossible(&self) -> Option<Symbol> {
        let table = self.table.borrow();
        let empty =
            |entry: &SymbolRecord| entry.interval.low.zip(entry.interval.high).is_some_and(|(low, high)| low > high);
        let index = table.symbols.iter().position(empty)?;
        u32::try_from(index).ok().map(Symbol)
    }

    /// Returns `false` if no assignment satisfies the facts, as far as bounds show it.
    pub fn is_possible(&self) -> bool {
        let relations = self.table.borrow().relations.clone();
        self.impossible().is_none()
            && !relations.iter().any(|relation| self.upper_bound(relation).is_some_and(|high| high < 0))
    }

    /// Returns `a` with every defined symbol replaced by its definition.
    pub(super) fn resolve(&self, a: &Dim) -> Dim {
        let applies = self.with_table(|table| table.rewrites.iter().any(|(symbol, _)| a.mentions(*symbol)));
        if !applies {
            return a.clone();
        }
        // No definition contains a defined symbol, so the result needs no second pass. While it is built, no definition applies.
        let rewrites = std::mem::take(&mut self.table.borrow_mut().rewrites);
        let find = |symbol| rewrites.iter().find(|(left, _)| *left == symbol).map(|(_, right)| right.clone());
        let resolved = self.try_substitute(a, &find);
        self.table.borrow_mut().rewrites = rewrites;
        resolved.unwrap_or_else(|| a.clone())
    }

    pub(super) fn with_table<R>(&self, read: impl FnOnce(&Table) -> R) -> R {
        read(&self.table.borrow())
    }

    /// Forgets results that weaker assumptions gave.
    fn forget(&self) {
        self.intervals.forget();
        self.texts.forget();
        self.forget_searches();
    }

    /// Forgets such results, except those that derive from the bounds of symbols only. Proofs remain valid.
    fn forget_searches(&self) {
        self.found.forget_searches();
        self.forget_answers();
    }

    fn forget_answers(&self) {
        self.found.forget_answers();
        self.supposed.borrow_mut().clear();
    }

    /// Returns the number of symbols.
    pub fn symbol_count(&self) -> usize {
        self.table.borrow().symbols.len()
    }

    /// Removes the symbols from index `count` on. No later expression may contain them.
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

/// Returns `true` if `text` parses as one name in the expression syntax.
pub fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
        && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
}

/// Returns `true` if a name is one that [`Scope::name`] generates, such as `unk__0`, or an expression with such a name.
pub fn is_numbered(name: &str) -> bool {
    let words = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut numbers = words.filter_map(|word| word.rsplit_once("__")).map(|(_, number)| number);
    numbers.any(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}
