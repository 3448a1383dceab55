//! The canonical form: as few digits, axes and pieces as possible.
//!
//! Two neighbouring digits are merged where every position moves by `size` times as much along the first as along the second; digits and
//! axes of size 1 are dropped; tables of an arithmetic progression are affine; empty pieces are dropped, and neighbouring pieces that
//! continue each other are one.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::form::{
    Atom, Axes, Axis, Core, Fill, Form, Index, Lookup, MOST_DIGITS, Read, Table, Term, is_equal, one, over, times, zero,
};
use super::refine::merged;
use super::tables::{split_tables, with_one_table};
use super::undecided::Undecided;
use crate::dim::{Dim, Scope};

impl Core {
    /// The map of a result without elements.
    pub fn empty() -> Core {
        Core { digits: smallvec![zero()], form: Form::Fill(Fill(0)) }
    }

    pub fn is_empty(&self) -> bool {
        self.digits.iter().any(|size| size.is_const(0))
    }

    /// The number of pieces, nested ones included.
    pub fn pieces(&self) -> usize {
        match &self.form {
            Form::Pieces(pieces) => pieces.parts.iter().map(|piece| piece.core.pieces()).sum(),
            _ => 1,
        }
    }
}

pub(super) fn of_fill(scope: &Scope, digits: &[Dim], fill: Fill) -> Core {
    let total = digits.iter().fold(one(), |product, size| times(scope, &product, size));
    if total.is_const(0) {
        return Core::empty();
    }
    let digits = if total.is_const(1) { SmallVec::new() } else { smallvec![total] };
    Core { digits, form: Form::Fill(fill) }
}

pub(super) fn of_read(scope: &Scope, mut digits: SmallVec<[Dim; 6]>, mut read: Read) -> Result<Core, Undecided> {
    if digits.iter().any(|size| size.is_const(0)) {
        return Ok(Core::empty());
    }
    let mut at = digits.len();
    while let Some(digit) = at.checked_sub(1) {
        at = digit;
        if digits.get(digit).is_some_and(|size| size.is_const(1)) {
            digits.remove(digit);
            for axis in &mut read.axes {
                axis.at.remove_digit(digit, None);
            }
        }
    }
    read.axes.retain(|axis| !axis.size.is_const(1));
    with_one_table(scope, &digits, &mut read.axes)?;
    // A table whose digits are merged is over one digit, which may split at another place.
    for _ in 0..MOST_DIGITS {
        split_tables(scope, &mut digits, &mut read.axes)?;
        if !merge_digits(scope, &mut digits, &mut read.axes) {
            break;
        }
    }
    if digits.len() > MOST_DIGITS { Err(Undecided::DigitLimit) } else { Ok(Core { digits, form: Form::Read(read) }) }
}

/// Merges neighbouring digits; returns `true` if two digits of a table are one now.
fn merge_digits(scope: &Scope, digits: &mut SmallVec<[Dim; 6]>, axes: &mut Axes) -> bool {
    let mut has_table_merged = false;
    let mut at = digits.len().saturating_sub(1);
    while let Some(digit) = at.checked_sub(1) {
        at = digit;
        let (Some(high), Some(low)) = (digits.get(digit), digits.get(at.saturating_add(1)).cloned()) else { continue };
        let both = times(scope, high, &low);
        // A product with minima and maxima may not have its factors any more.
        if both.as_const().is_none() && over(scope, &both, &low).as_ref() != Some(high) {
            continue;
        }
        let Some(merged) = with_merged_digits(scope, axes, digit, &low) else { continue };
        let is_table = |term: &Term| matches!(&term.atom, Atom::Table(table) if table.digits.contains(&digit));
        has_table_merged |= axes.iter().flat_map(|axis| &axis.at.terms).any(is_table);
        *axes = merged;
        digits.remove(digit.saturating_add(1));
        if let Some(high) = digits.get_mut(digit) {
            *high = both;
        }
    }
    has_table_merged
}

/// The axes where digits `digit` and `digit + 1` are one, of which the second has size `low`; `None` if some position does not depend on
/// them as one.
fn with_merged_digits(scope: &Scope, axes: &[Axis], digit: usize, low: &Dim) -> Option<Axes> {
    let next = digit.saturating_add(1);
    // An axis with the first digit and the next axis with the second one are one axis.
    let mut pairs: SmallVec<[usize; 4]> = SmallVec::new();
    let mut rest = (0..).zip(axes);
    while let Some((at, axis)) = rest.next() {
        match (axis.at.coefficient(digit), axis.at.coefficient(next)) {
            (None, None) => {}
            (Some(high), Some(weight)) if is_equal(scope, high, &times(scope, weight, low)) => {}
            (Some(high), None) => {
                let (_, below) = rest.next()?;
                let weight = below.at.coefficient(next).filter(|_| below.at.coefficient(digit).is_none())?;
                if !is_equal(scope, &times(scope, high, &below.size), &times(scope, weight, low)) {
                    return None;
                }
                pairs.push(at);
            }
            _ => return None,
        }
    }
    let mut merged_axes: Axes = axes.into();
    for &at in pairs.iter().rev() {
        let whole = merged(scope, merged_axes.get(at..at.saturating_add(2))?);
        merged_axes.remove(at);
        *merged_axes.get_mut(at)? = whole;
    }
    for axis in &mut merged_axes {
        for term in &mut axis.at.terms {
            match &mut term.atom {
                Atom::Lookup(lookup) => {
                    let axes = with_merged_digits(scope, &lookup.read.axes, digit, low)?;
                    let read = Read { source: lookup.read.source, axes };
                    term.atom = Atom::Lookup(Arc::new(Lookup { read, size: lookup.size.clone() }));
                }
                Atom::Table(table) => *table = Arc::new(table.with_merged_digits(digit)?),
                Atom::Digit(_) => {}
            }
        }
        axis.at.remove_digit(digit, Some(next));
    }
    Some(merged_axes)
}

impl Table {
    fn with_merged_digits(&self, digit: usize) -> Option<Table> {
        let next = digit.saturating_add(1);
        let mut digits = self.digits.clone();
        match digits.iter().position(|&at| at == digit) {
            Some(at) if digits.get(at.saturating_add(1)) == Some(&next) => {
                digits.remove(at.saturating_add(1));
            }
            None if !digits.contains(&next) => {}
            _ => return None,
        }
        Some(Table { digits, values: self.values.clone() })
    }
}

impl Index {
    /// The coefficient of a digit, if it occurs.
    fn coefficient(&self, digit: usize) -> Option<&Dim> {
        self.terms.iter().find(|term| matches!(term.atom, Atom::Digit(at) if at == digit)).map(|term| &term.coefficient)
    }

    /// Removes a digit: its terms are 0, or those of `merged` with the coefficient of `merged`.
    fn remove_digit(&mut self, digit: usize, merged: Option<usize>) {
        let is_dropped = |at: usize| at == digit;
        self.terms.retain(|term| !matches!(&term.atom, Atom::Digit(at) if is_dropped(*at)));
        for term in &mut self.terms {
            match &mut term.atom {
                Atom::Digit(at) => {
                    if *at > digit {
                        *at -= 1;
                    }
                }
                Atom::Table(table) => {
                    let table = Arc::make_mut(table);
                    if merged.is_none() {
                        table.digits.retain(|at| !is_dropped(*at));
                    }
                    for at in &mut table.digits {
                        if *at > digit {
                            *at -= 1;
                        }
                    }
                }
                Atom::Lookup(lookup) => {
                    if merged.is_none() {
                        let mut read = lookup.read.clone();
                        for axis in &mut read.axes {
                            axis.at.remove_digit(digit, merged);
                        }
                        let size = lookup.size.clone();
                        *lookup = Arc::new(Lookup { read, size });
                    }
                }
            }
        }
    }
}
