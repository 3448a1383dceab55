//! Equality of maps, by their canonical forms.

use std::sync::Arc;

use super::form::{
    Atom, Axis, Core, Form, Index, IndexMap, Shape, Table, is_equal, is_negative, number, one, over, plus, times, zero,
};
use super::refine::merged;
use crate::dim::{Dim, Scope, greatest_common_divisor};

impl IndexMap {
    /// Whether both maps have the same sources and result and the same canonical form: then they read the same elements.
    pub fn equals(&self, scope: &Scope, other: &IndexMap) -> bool {
        let same_dims =
            |a: &[Dim], b: &[Dim]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(scope, a, b));
        same_dims(&self.result, &other.result)
            && self.sources.len() == other.sources.len()
            && self.sources.iter().zip(&other.sources).all(|(a, b)| same_dims(a, b))
            && self.core.equals(scope, &other.core)
    }

    /// Returns `true` if an axis of the only source is proved to be an axis of the result, whole and in order.
    ///
    /// The law: the tensor that holds the position on the axis of the source, mapped, holds the position on the axis of the result.
    pub fn carries_axis(&self, scope: &Scope, axis: usize, result_axis: usize) -> bool {
        let positions = |shape: &[Dim], axis: usize| {
            let only = |(at, size): (usize, &Dim)| if at == axis { size.clone() } else { one() };
            let vector: Shape = shape.iter().enumerate().map(only).collect();
            IndexMap::expand(scope, &vector, shape).ok()
        };
        let [source] = self.sources.as_slice() else { return false };
        let sizes = source.get(axis).zip(self.result.get(result_axis));
        let moved = positions(source, axis).and_then(|positions| positions.then(scope, self).ok());
        sizes.is_some_and(|(own, size)| is_equal(scope, own, size))
            && moved
                .zip(positions(&self.result, result_axis))
                .is_some_and(|(moved, expected)| moved.core.equals(scope, &expected.core))
    }
}

impl Core {
    pub fn equals(&self, scope: &Scope, other: &Core) -> bool {
        if self == other || self.is_empty() && other.is_empty() {
            return true;
        }
        let same_digits = self.digits.len() == other.digits.len()
            && self.digits.iter().zip(&other.digits).all(|(a, b)| is_equal(scope, a, b));
        match (&self.form, &other.form) {
            (Form::Fill(a), Form::Fill(b)) => a == b,
            (Form::Read(a), Form::Read(b)) => {
                let flats = || Some((flat(scope, &a.axes)?, flat(scope, &b.axes)?));
                a.source == b.source
                    && flats().is_some_and(|(a, b)| {
                        same_digits && a.equals(scope, &b)
                            || have_same_values(scope, (&a, &self.digits), (&b, &other.digits)) == Some(true)
                    })
            }
            (Form::Pieces(a), Form::Pieces(b)) => {
                // A row of one may be several rows of the other.
                let rows = match (over(scope, &a.after, &b.after), over(scope, &b.after, &a.after)) {
                    (Some(rows), _) => (rows, one()),
                    (None, Some(rows)) => (one(), rows),
                    (None, None) => return false,
                };
                let same_len = |a: &Dim, b: &Dim| is_equal(scope, &times(scope, a, &rows.0), &times(scope, b, &rows.1));
                is_equal(scope, &a.before, &b.before)
                    && a.parts.len() == b.parts.len()
                    && a.parts
                        .iter()
                        .zip(&b.parts)
                        .all(|(a, b)| same_len(&a.len, &b.len) && a.core.equals(scope, &b.core))
            }
            _ => false,
        }
    }
}

/// The flat position in the source. Its tables have a least value of 0, no common divisor, and coefficients that are not negative.
fn flat(scope: &Scope, axes: &[Axis]) -> Option<Index> {
    let whole = merged(scope, axes).at;
    let mut index = Index::constant(whole.offset.clone());
    for term in &whole.terms {
        let Atom::Table(table) = &term.atom else {
            index.add_term(scope, term.coefficient.clone(), term.atom.clone());
            continue;
        };
        let (mut coefficient, mut values) = (term.coefficient.clone(), table.values.to_vec());
        if is_negative(scope, &coefficient) == Some(true) {
            let most = table.most();
            index.offset = plus(scope, &index.offset, &times(scope, &coefficient, &number(most)));
            values = values.iter().map(|value| most.checked_sub(*value)).collect::<Option<_>>()?;
            coefficient = scope.neg(&coefficient);
        }
        let least = values.iter().copied().min().unwrap_or(0);
        index.offset = plus(scope, &index.offset, &times(scope, &coefficient, &number(least)));
        values = values.iter().map(|value| value.checked_sub(least)).collect::<Option<_>>()?;
        let common = values.iter().fold(0, |common, value| greatest_common_divisor(common, value.unsigned_abs()));
        let common = i64::try_from(common.max(1)).ok()?;
        values = values.iter().map(|value| value.checked_div(common)).collect::<Option<_>>()?;
        coefficient = times(scope, &coefficient, &number(common));
        let table = Table { digits: table.digits.clone(), values: values.into() };
        index.add_term(scope, coefficient, Atom::Table(Arc::new(table)));
    }
    Some(index)
}

/// The most entries of tables that are compared one by one.
const MOST_COMPARED: i64 = 1 << 14;

/// Compares indices whose tables are over different digits by their values. Digits of one size on both sides that no table depends on are
/// compared by their coefficients, so that their sizes may be symbols. `None` if that does not decide.
fn have_same_values(scope: &Scope, a: (&Index, &[Dim]), b: (&Index, &[Dim])) -> Option<bool> {
    let tabled = |index: &Index| -> Vec<usize> {
        let tables = index.terms.iter().filter(|term| !matches!(term.atom, Atom::Digit(_)));
        tables
            .flat_map(|term| Index { offset: zero(), terms: std::iter::once(term.clone()).collect() }.digits())
            .collect()
    };
    let (own, others) = (tabled(a.0), tabled(b.0));
    let (mut first, mut second) = (a.0.clone(), b.0.clone());
    let (mut rest, mut other_rest) = (Vec::new(), Vec::new());
    let (mut at, mut next) = (0usize, 0usize);
    // The digits between two borders that both lists have.
    while at < a.1.len() && next < b.1.len() {
        let (size, other) = (a.1.get(at)?, b.1.get(next)?);
        if is_equal(scope, size, other) && !own.contains(&at) && !others.contains(&next) {
            let coefficients = (first.take_digit(at), second.take_digit(next));
            if !is_equal(scope, &coefficients.0, &coefficients.1) {
                return Some(false);
            }
            (at, next) = (at.saturating_add(1), next.saturating_add(1));
            continue;
        }
        let (mut product, mut other_product) = (1i64, 1i64);
        loop {
            if product <= other_product {
                product = product.checked_mul(a.1.get(at)?.as_const()?)?;
                rest.push(at);
                at = at.saturating_add(1);
            } else {
                other_product = other_product.checked_mul(b.1.get(next)?.as_const()?)?;
                other_rest.push(next);
                next = next.saturating_add(1);
            }
            if product == other_product {
                break;
            }
        }
    }
    let count = rest.iter().try_fold(1i64, |count, &digit| count.checked_mul(a.1.get(digit)?.as_const()?))?;
    if rest.is_empty() || count > MOST_COMPARED || at < a.1.len() || next < b.1.len() {
        return None;
    }
    Some(first.values_over(&rest, a.1)? == second.values_over(&other_rest, b.1)?)
}

impl Index {
    /// Removes the term of a digit; returns its coefficient.
    fn take_digit(&mut self, digit: usize) -> Dim {
        let at = self.terms.iter().position(|term| term.atom == Atom::Digit(digit));
        at.map_or_else(zero, |at| self.terms.remove(at).coefficient)
    }

    fn equals(&self, scope: &Scope, other: &Index) -> bool {
        is_equal(scope, &self.offset, &other.offset)
            && self.terms.len() == other.terms.len()
            && self.terms.iter().all(|term| {
                let same = other.terms.iter().find(|other| other.atom == term.atom);
                same.is_some_and(|other| is_equal(scope, &term.coefficient, &other.coefficient))
            })
    }
}
