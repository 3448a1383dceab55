//! Tables over as few positions as possible: affine parts become digits.

use smallvec::SmallVec;

use super::form::{Atom, Axes, Axis, Index, Table, Term, for_each, number, one, over, sizes_of, zero};
use super::refine::{Refined, merged};
use super::undecided::Undecided;
use crate::dim::{Dim, Scope};

impl Index {
    /// The values for each combination of these digits, if all of it is numbers.
    pub fn values_over(&self, over_digits: &[usize], digits: &[Dim]) -> Option<Vec<i64>> {
        let sizes = sizes_of(over_digits, digits).ok()?;
        let (used, values) = self.as_table(digits).ok()?;
        let used_sizes = sizes_of(&used, digits).ok()?;
        let places: SmallVec<[usize; 4]> =
            used.iter().map(|digit| over_digits.iter().position(|at| at == digit)).collect::<Option<_>>()?;
        let mut found = Vec::new();
        for_each(&sizes, |at| {
            let mut place = 0i64;
            for (&own, size) in places.iter().zip(&used_sizes) {
                place = place.checked_mul(*size)?.checked_add(*at.get(own)?)?;
            }
            found.push(*values.get(usize::try_from(place).ok()?)?);
            Some(())
        })?;
        Some(found)
    }
}

/// Neighbouring axes with tables of one digit are one axis, and terms of one digit are one table.
pub(super) fn with_one_table(scope: &Scope, digits: &[Dim], axes: &mut Axes) -> Result<(), Undecided> {
    let table_of = |axis: &Axis| {
        axis.at.terms.iter().find_map(|term| match &term.atom {
            Atom::Table(table) => Some(table.digits.clone()),
            _ => None,
        })
    };
    let mut at = 0;
    while at < axes.len() {
        let Some(own) = axes.get(at).and_then(table_of) else {
            at += 1;
            continue;
        };
        let next = at.saturating_add(1);
        // The neighbour depends on digits of the table only.
        let is_within = |axis: &Axis| {
            let digits = axis.at.digits();
            !digits.is_empty() && digits.iter().all(|digit| own.contains(digit))
        };
        let previous = at.checked_sub(1).filter(|&previous| axes.get(previous).is_some_and(is_within));
        if let Some(previous) = previous {
            let whole = merged(scope, axes.get(previous..=at).unwrap_or_default());
            axes.remove(at);
            if let Some(axis) = axes.get_mut(previous) {
                *axis = whole;
            }
            at = previous;
            continue;
        }
        if axes.get(next).is_some_and(is_within) {
            let whole = merged(scope, axes.get(at..=next).unwrap_or_default());
            axes.remove(next);
            if let Some(axis) = axes.get_mut(at) {
                *axis = whole;
            }
            continue;
        }
        at = next;
        let Some(axis) = axes.get_mut(next.saturating_sub(1)) else { break };
        let is_own = |term: &Term| match &term.atom {
            Atom::Digit(digit) => own.contains(digit),
            Atom::Table(table) => table.digits.iter().all(|digit| own.contains(digit)),
            Atom::Lookup(_) => false,
        };
        let terms: SmallVec<[Term; 2]> = axis.at.terms.iter().filter(|term| is_own(term)).cloned().collect();
        let Some(weight) = terms.first().map(|term| term.coefficient.without_content()) else { continue };
        let weight = if weight.as_const().is_some() { one() } else { weight };
        let scaled = terms
            .iter()
            .map(|term| Some(Term { coefficient: over(scope, &term.coefficient, &weight)?, atom: term.atom.clone() }));
        let Some(scaled) = scaled.collect::<Option<SmallVec<[Term; 2]>>>() else { continue };
        if scaled.len() < 2 {
            continue;
        }
        let Ok((used, values)) = (Index { offset: zero(), terms: scaled }).as_table(digits) else { continue };
        let index = Index::of_values(scope, &used, digits, &values)?;
        axis.at.terms.retain(|term| !is_own(term));
        axis.at.add(scope, &index, &weight);
    }
    Ok(())
}

/// Splits digits so that tables are over as few positions as possible.
pub(super) fn split_tables(scope: &Scope, digits: &mut SmallVec<[Dim; 6]>, axes: &mut Axes) -> Result<(), Undecided> {
    let table_of = |term: &Term| match &term.atom {
        Atom::Table(table) => match table.digits.as_slice() {
            [digit] => separation(&table.values).map(|low| (*digit, low)),
            _ => None,
        },
        _ => None,
    };
    while let Some((digit, low)) = axes.iter().flat_map(|axis| &axis.at.terms).find_map(table_of) {
        let next = digit.saturating_add(1);
        let mut refined = Refined::new(scope, digits, axes);
        refined.split_digit(digit, &number(i64::try_from(low).map_err(|_| Undecided::Overflow)?))?;
        for axis in &mut refined.axes {
            let is_split =
                |term: &Term| matches!(&term.atom, Atom::Table(table) if table.digits.as_slice() == [digit, next]);
            let tables: SmallVec<[Term; 2]> = axis.at.terms.iter().filter(|term| is_split(term)).cloned().collect();
            axis.at.terms.retain(|term| !is_split(term));
            for term in tables {
                let Atom::Table(table) = &term.atom else { continue };
                let index = separated(scope, table, low, &refined.digits)?;
                axis.at.add(scope, &index, &term.coefficient);
            }
        }
        (*digits, *axes) = (refined.digits, refined.axes);
    }
    Ok(())
}

/// The table as a sum of an index over each of its two digits, if it is one.
fn separated(scope: &Scope, table: &Table, low: usize, digits: &[Dim]) -> Result<Index, Undecided> {
    let [high_digit, low_digit] = table.digits.as_slice() else { return Err(Undecided::Rank) };
    let rows: Vec<i64> = table.values.chunks(low).filter_map(|row| row.first().copied()).collect();
    let first = table.values.first().copied().unwrap_or(0);
    let columns: Vec<i64> = table.values.iter().take(low).filter_map(|value| value.checked_sub(first)).collect();
    let is_sum =
        table.values.chunks(low).zip(&rows).all(|(row, start)| {
            row.iter().zip(&columns).all(|(value, column)| start.checked_add(*column) == Some(*value))
        });
    if !is_sum {
        // Another table was split with the digit.
        return Index::of_values(scope, &[*high_digit, *low_digit], digits, &table.values);
    }
    let mut index = Index::of_values(scope, &[*high_digit], digits, &rows)?;
    index.add(scope, &Index::of_values(scope, &[*low_digit], digits, &columns)?, &one());
    Ok(index)
}

/// The most entries of a table that is taken apart.
const MOST_SEPARATED: usize = 4096;

/// The size of the second of two digits of which one only adds a multiple of itself: `T(a, b) = U(a) + c · b`, or `c · a + U(b)`.
fn separation(values: &[i64]) -> Option<usize> {
    if values.len() > MOST_SEPARATED {
        return None;
    }
    let steps = |values: &[i64]| -> Option<i64> { values.get(1)?.checked_sub(*values.first()?) };
    let is_progression = |values: &[i64], step: i64| {
        values.windows(2).all(|pair| matches!(pair, [a, b] if b.checked_sub(*a) == Some(step)))
    };
    let divides = |low: &usize| values.len().checked_rem(*low) == Some(0);
    let step = steps(values)?;
    let inner =
        (2..values.len()).rev().filter(divides).find(|&low| values.chunks(low).all(|row| is_progression(row, step)));
    inner.or_else(|| {
        (2..values.len()).filter(divides).find(|&low| {
            let Some(step) = values.get(low).zip(values.first()).and_then(|(next, first)| next.checked_sub(*first))
            else {
                return false;
            };
            values.iter().zip(values.iter().skip(low)).all(|(value, next)| next.checked_sub(*value) == Some(step))
        })
    })
}
