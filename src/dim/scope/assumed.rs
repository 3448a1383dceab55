//! Symbols for integers that a runtime computes in a type that may not represent the exact result.
//!
//! `n·n` in `int32` wraps from `n = 46341` on, and `n` in `float` is rounded from `n = 2²⁴ + 1` on. Such an integer is a symbol that
//! depends only on the [`Law`] and its operands. So the same computation gives the same symbol, and every proof treats it as unknown. The
//! symbol also has a *nominal* expression: the exact result, valid for every run in which the sizes fit the types in which they are
//! computed. Only the written shapes, and the reading of targets such as that of a Reshape, use the nominal expression.

use super::{Interval, Scope, SymbolRecord};
use crate::dim::expr::{Dim, Symbol};

/// The most substitutions until an expression contains nominal expressions only: one, unless a symbol was defined in between.
const PASSES: usize = 4;

/// A function of integers that a runtime computes, and whose result exact arithmetic gives only up to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Law {
    /// The stem of the symbol's printed name.
    pub name: &'static str,
    /// The other parameter of the function: bits of a type, a scale.
    pub parameter: i64,
    /// The largest first operand for which the result is the nominal one.
    pub reach: i64,
}

impl Law {
    /// Returns the type in which the integer is computed, and the error beyond the reach.
    pub fn kind(&self) -> (&'static str, &'static str) {
        const INT32: i64 = i32::MAX as i64;
        const UINT32: i64 = u32::MAX as i64;
        match (self.name, self.reach) {
            ("wrapped", INT32) => ("int32", "overflows"),
            ("wrapped", UINT32) => ("uint32", "overflows"),
            ("wrapped", _) => ("int64", "overflows"),
            ("cast", INT32) => ("int32", "is undefined"),
            ("cast", UINT32) => ("uint32", "is undefined"),
            ("cast", _) => ("int64", "is undefined"),
            _ => ("float", "is rounded"),
        }
    }
}

impl Scope {
    /// Returns the symbol for the result of `law` on `operands`, within `low` and `high`, both included.
    pub fn assumed(
        &self,
        law: Law,
        operands: Vec<Dim>,
        nominal: Option<Dim>,
        (low, high): (Option<i64>, Option<i64>),
    ) -> Dim {
        if let (Some(only), true) = (low, low == high) {
            return Dim::constant(only);
        }
        if self.doubts.borrow().is_some()
            && let Some(slack) =
                operands.first().and_then(|operand| Dim::constant(law.reach).minus(&self.nominal(operand)))
        {
            self.doubt(&slack, 0);
        }
        let key = (law, operands);
        let known = self.table.borrow().assumed.get(&key).copied();
        let symbol = known.unwrap_or_else(|| {
            let size =
                low.is_some_and(|low| low >= 0) && nominal.as_ref().is_none_or(|nominal| self.is_of_sizes(nominal));
            let interval = Interval { low: low.map(i128::from), high: high.map(i128::from) };
            let symbol = self.make(law.name, interval, size);
            let mut table = self.table.borrow_mut();
            if let Some(entry) = table.symbols.get_mut(symbol.0 as usize) {
                (entry.nominal, entry.law) = (nominal, Some(law));
            }
            // The bounds may follow from a supposition.
            if table.supposing.is_none() {
                table.assumed.insert(key, symbol);
            }
            symbol
        });
        self.resolve(&Dim::symbol(symbol))
    }

    /// Returns the law that a symbol is a result of, and the nominal value of its first operand.
    pub fn computed(&self, symbol: Symbol) -> Option<(Law, Dim)> {
        let (law, operand) = {
            let table = self.table.borrow();
            let ((law, operands), _) = table.assumed.iter().find(|(_, known)| **known == symbol)?;
            (*law, operands.first()?.clone())
        };
        Some((law, self.nominal(&operand)))
    }

    /// Returns the law that a symbol is a result of.
    pub fn law_of(&self, dim: &Dim) -> Option<Law> {
        let symbol = dim.as_symbol()?;
        self.table.borrow().entry(symbol)?.law
    }

    /// Sets the nominal expression of a new symbol.
    pub fn set_nominal(&self, made: &Dim, nominal: Dim) {
        let mut table = self.table.borrow_mut();
        if let Some(entry) = made.as_symbol().and_then(|symbol| table.symbols.get_mut(symbol.0 as usize)) {
            entry.nominal = Some(nominal);
        }
    }

    /// Returns the expression under the assumption that every size fits the type in which it is computed.
    pub fn nominal(&self, dim: &Dim) -> Dim {
        let mut nominal = dim.clone();
        for _ in 0..PASSES {
            if !nominal.has_symbol(|symbol| self.nominal_of(symbol).is_some()) {
                break;
            }
            nominal = self.substitute(&nominal, &|symbol| self.nominal_of(symbol));
        }
        nominal
    }

    fn nominal_of(&self, symbol: Symbol) -> Option<Dim> {
        self.table.borrow().entry(symbol).and_then(|entry: &SymbolRecord| entry.nominal.clone())
    }

    /// Records the dim of a tensor that exists in every run. It is at most the longest axis.
    pub fn note_axis(&self, dim: &Dim) {
        if dim.as_const().is_none() && dim.as_symbol().is_none() && !self.trusts() {
            self.table.borrow_mut().axes.insert(dim.clone());
        }
    }

    /// Returns `true` if a tensor that exists in every run has this dim.
    pub(in crate::dim) fn is_axis(&self, dim: &Dim) -> bool {
        self.table.borrow().axes.contains(dim)
    }

    /// Returns the result of `find` under the assumption that every size fits the type in which it is computed. Facts about older symbols
    /// that are found meanwhile are dropped.
    pub fn trusting<R>(&self, find: impl FnOnce() -> R) -> R {
        let before = self.trusts.replace(true);
        let found = self.supposing(&[], find);
        self.trusts.set(before);
        found
    }

    /// Returns `true` while sizes are assumed to fit.
    pub fn trusts(&self) -> bool {
        self.trusts.get()
    }

    /// Returns `true` if any symbol is the result of a law.
    pub fn has_assumed(&self) -> bool {
        !self.table.borrow().assumed.is_empty()
    }

    /// Returns `true` if the expression contains a symbol with an index of `symbols` or above.
    pub fn has_newer(&self, dim: &Dim, symbols: usize) -> bool {
        dim.has_symbol(|symbol| symbol.0 as usize >= symbols)
    }

    /// Returns the laws in force, each with its first operand. The nominal result is valid while that operand is at most the law's reach.
    pub fn assumptions(&self) -> Vec<(Dim, Law)> {
        let laws: Vec<(Dim, Law, Symbol)> = {
            let table = self.table.borrow();
            let named = table
                .assumed
                .iter()
                .filter_map(|((law, operands), &symbol)| Some((operands.first()?.clone(), *law, symbol)));
            named.collect()
        };
        let mut laws = laws;
        laws.sort_by_key(|(_, _, symbol)| *symbol);
        laws.into_iter().map(|(operand, law, _)| (self.nominal(&operand), law)).collect()
    }
}
