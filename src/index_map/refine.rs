//! Refinement: splitting digits of the result and axes of the source at common borders.
//!
//! The law of a split: if `e = r·h + l` and `0 ≤ l < r`, then `⌊e / r⌋ = h` and `e mod r = l`. Terms with a coefficient that `r`
//! divides belong to `h`; the sum of the other terms must be proved to be below `r`. A digit whose terms belong to both is split itself.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::form::{
    Atom, Axes, Axis, Index, Lookup, MOST_DIGITS, Table, Term, is_at_most, is_equal, is_negative, minus, number, one,
    over, plus, times, zero,
};
use super::undecided::Undecided;
use crate::dim::{Dim, Operation, Scope};

/// The most dims that are looked at for what follows from their being at least 1.
const MOST_POSITIVE: usize = 32;

/// Axes of a source over digits of a result, while both are split.
#[derive(Clone, Debug)]
pub(super) struct Refined<'s> {
    pub scope: &'s Scope,
    pub digits: SmallVec<[Dim; 6]>,
    /// The axes that are not aligned yet.
    pub axes: Axes,
    /// The groups of axes that are, last group first.
    pub groups: SmallVec<[Axes; 4]>,
}

impl<'s> Refined<'s> {
    pub fn new(scope: &'s Scope, digits: &[Dim], axes: &[Axis]) -> Refined<'s> {
        Refined { scope, digits: digits.into(), axes: axes.into(), groups: SmallVec::new() }
    }

    /// Groups the axes so that the product of the sizes of group `i` is `sizes[i]`; splits axes and digits where a border needs it.
    pub fn align(mut self, sizes: &[Dim]) -> Result<Refined<'s>, Undecided> {
        for (number, size) in sizes.iter().enumerate().rev() {
            let group = self.take(size, number == 0)?;
            self.groups.push(group);
        }
        self.groups.reverse();
        Ok(self)
    }

    /// Takes axes from the end whose sizes multiply to `size`.
    fn take(&mut self, size: &Dim, is_last: bool) -> Result<Axes, Undecided> {
        let scope = self.scope;
        let mut group = Axes::new();
        let mut rest = size.clone();
        // The products of all sizes on both sides are equal, wherever there are elements.
        if is_last {
            group.append(&mut self.axes);
            return Ok(group);
        }
        while !rest.is_const(1) {
            let Some(axis) = self.axes.last() else { break };
            if axis.size.is_const(1) {
                self.axes.pop();
            } else if is_equal(scope, &axis.size, &rest) {
                group.extend(self.axes.pop());
                break;
            } else if let Some(more) = over(scope, &rest, &axis.size) {
                group.extend(self.axes.pop());
                rest = more;
            } else if over(scope, &axis.size, &rest).is_some() {
                // Splitting digits rewrites the axes, those of this group too.
                self.groups.push(group);
                let mut split = self.split_last(&rest);
                let base = rest.without_content();
                if split.is_err() && base.as_const().is_none() && base != rest && over(scope, &rest, &base).is_some() {
                    // `c · base` positions: first `base`, then the number `c`, for which a table will do.
                    split = self.split_last(&base);
                }
                group = self.groups.pop().unwrap_or_default();
                split?;
                let Some(axis) = self.axes.pop() else { break };
                rest = over(scope, &rest, &axis.size).unwrap_or_else(one);
                group.push(axis);
            } else {
                let (Some(low), Some(high)) = (self.axes.pop(), self.axes.pop()) else {
                    return Err(Undecided::Divides(rest, size.clone()));
                };
                self.axes.push(Axis {
                    at: high.at.followed_by(scope, &low.size, &low.at),
                    size: times(scope, &high.size, &low.size),
                });
            }
        }
        group.reverse();
        Ok(group)
    }

    /// Splits the last axis into two, of which the second has this size.
    fn split_last(&mut self, size: &Dim) -> Result<(), Undecided> {
        let scope = self.scope;
        let Some(axis) = self.axes.last() else { return Err(Undecided::Rank) };
        let more = over(scope, &axis.size, size).ok_or_else(|| Undecided::Divides(size.clone(), axis.size.clone()))?;
        let (high, low) = match self.halves(size) {
            Ok(halves) => halves,
            Err(reason) => self.tabled_halves(size).map_err(|_| reason)?,
        };
        self.axes.pop();
        self.axes.push(Axis { size: more, at: high });
        self.axes.push(Axis { size: size.clone(), at: low });
        if self.digits.len() > MOST_DIGITS { Err(Undecided::DigitLimit) } else { Ok(()) }
    }

    /// Quotient and remainder of the last axis's position by `size`.
    fn halves(&mut self, size: &Dim) -> Result<(Index, Index), Undecided> {
        let scope = self.scope;
        let mut next = 0;
        // First all digits are split that need it; that changes the terms.
        while let Some(term) = self.axes.last().and_then(|axis| axis.at.terms.get(next)) {
            next += 1;
            let Atom::Digit(digit) = term.atom else { continue };
            let coefficient = absolute(scope, &term.coefficient)?;
            if over(scope, &coefficient, size).is_some() {
                continue;
            }
            let Some(low) = over(scope, size, &coefficient) else { continue };
            let Some(count) = self.digits.get(digit) else { return Err(Undecided::Rank) };
            if !is_at_most(scope, count, &low) && over(scope, count, &low).is_some() {
                self.split_digit(digit, &low)?;
                next = 0;
            }
        }
        let Some(axis) = self.axes.last() else { return Err(Undecided::Rank) };
        let mut offset = axis.at.offset.clone();
        let (mut high, mut low) = (Index::constant(zero()), Index::constant(zero()));
        for term in &axis.at.terms {
            // A negative coefficient counts from the other end of its digit.
            let is_reversed = is_negative(scope, &term.coefficient).ok_or_else(|| sign(&term.coefficient))?;
            let coefficient = absolute(scope, &term.coefficient)?;
            let reach = term.atom.reach(scope, &self.digits);
            if is_reversed {
                offset = minus(scope, &offset, &times(scope, &coefficient, &reach));
            }
            let quotient = over(scope, &coefficient, size);
            let (part, coefficient) = match quotient {
                Some(quotient) => (&mut high, quotient),
                None => (&mut low, coefficient),
            };
            match &term.atom {
                _ if is_reversed => {
                    part.offset = plus(scope, &part.offset, &times(scope, &coefficient, &reach));
                    part.add_term(scope, scope.neg(&coefficient), term.atom.clone());
                }
                Atom::Table(table) if over(scope, &term.coefficient, size).is_none() => {
                    let (above, below) = split_table(scope, table, &coefficient, size, &self.digits)?;
                    high.add(scope, &above, &one());
                    low.add(scope, &below, &coefficient);
                }
                atom => part.add_term(scope, coefficient, atom.clone()),
            }
        }
        self.split_offset(offset, size, &mut high, &mut low)?;
        Ok((high, low))
    }

    /// The same, where the terms that `size` does not divide are numbers, and become a table.
    fn tabled_halves(&mut self, size: &Dim) -> Result<(Index, Index), Undecided> {
        let scope = self.scope;
        // Digits of `c · base` positions: the number `c` becomes a separate digit.
        let mut next = 0;
        while let Some(term) = self.axes.last().and_then(|axis| axis.at.terms.get(next)) {
            next += 1;
            let Atom::Digit(digit) = term.atom else { continue };
            let is_open = |count: &&Dim| count.as_const().is_none() && size.as_const().is_some();
            let Some(count) = self.digits.get(digit).filter(is_open) else { continue };
            let content = over(scope, count, &count.without_content()).filter(|content| !content.is_const(1));
            if let (Some(content), None) = (content, over(scope, &term.coefficient, size)) {
                self.split_digit(digit, &content)?;
            }
        }
        let Some(axis) = self.axes.last() else { return Err(Undecided::Rank) };
        let (mut high, mut rest) = (Index::constant(zero()), Index::constant(axis.at.offset.clone()));
        for term in &axis.at.terms {
            match over(scope, &term.coefficient, size) {
                Some(quotient) => high.add_term(scope, quotient, term.atom.clone()),
                None => rest.add_term(scope, term.coefficient.clone(), term.atom.clone()),
            }
        }
        let (above, low) = table_halves(scope, &rest, size, &self.digits)?;
        high.add(scope, &above, &one());
        Ok((high, low))
    }

    /// Adds the quotient and the remainder of the offset, so that the remainder is proved to be below `size`.
    fn split_offset(&self, offset: Dim, size: &Dim, high: &mut Index, low: &mut Index) -> Result<(), Undecided> {
        let scope = self.scope;
        let mut quotients: SmallVec<[Dim; 2]> = SmallVec::new();
        if let (Some(offset), Some(size)) = (offset.as_const(), size.as_const()) {
            quotients.extend(offset.checked_div_euclid(size).map(number));
        } else {
            if let Some(quotient) = over(scope, &offset, size) {
                quotients.push(quotient);
            }
            quotients.push(zero());
            if offset.as_const().is_none() {
                let mut quotient = || {
                    let is_present = scope.ge(size, &one()).is_yes();
                    quotients.extend(is_present.then(|| scope.floor_div(&offset, size)));
                    is_present
                };
                let _ = quotient() || where_present(scope, &self.digits, quotient);
            }
        }
        for quotient in quotients {
            let rest = minus(scope, &offset, &times(scope, &quotient, size));
            let mut found = low.clone();
            found.offset = plus(scope, &found.offset, &rest);
            if self.stays_below(&found, size) {
                *low = found;
                high.offset = plus(scope, &high.offset, &quotient);
                return Ok(());
            }
        }
        Err(Undecided::AtMost(low.most(scope, &self.digits).unwrap_or_else(zero), minus(scope, size, &one())))
    }

    /// Whether `0 ≤ index < size` wherever every digit has at least one.
    fn stays_below(&self, index: &Index, size: &Dim) -> bool {
        let scope = self.scope;
        if index.terms.is_empty() && index.offset.is_const(0) {
            return true;
        }
        let (Some(least), Some(most)) = (index.least(scope, &self.digits), index.most(scope, &self.digits)) else {
            return false;
        };
        holds(scope, &self.digits, &[(&zero(), &least), (&plus(scope, &most, &one()), size)])
    }

    /// Splits a digit into two, of which the second has size `low`.
    pub fn split_digit(&mut self, digit: usize, low: &Dim) -> Result<(), Undecided> {
        let Some(size) = self.digits.get(digit) else { return Err(Undecided::Rank) };
        let more = over(self.scope, size, low).ok_or_else(|| Undecided::Divides(low.clone(), size.clone()))?;
        if self.digits.len() >= MOST_DIGITS {
            return Err(Undecided::DigitLimit);
        }
        if let Some(size) = self.digits.get_mut(digit) {
            *size = more;
        }
        self.digits.insert(digit.saturating_add(1), low.clone());
        for axis in self.groups.iter_mut().flatten().chain(&mut self.axes) {
            axis.at = axis.at.with_split_digit(self.scope, digit, low);
        }
        Ok(())
    }

    /// Splits digits of the result so that groups of them have these sizes; returns how many digits each group has.
    pub fn align_digits(&mut self, sizes: &[Dim]) -> Result<SmallVec<[usize; 6]>, Undecided> {
        let scope = self.scope;
        let mut counts: SmallVec<[usize; 6]> = SmallVec::from_elem(0, sizes.len());
        let mut end = self.digits.len();
        for (group, size) in sizes.iter().enumerate().rev() {
            let Some(count) = counts.get_mut(group) else { return Err(Undecided::Rank) };
            if group == 0 {
                *count = end;
                break;
            }
            let mut rest = size.clone();
            while !rest.is_const(1) {
                let Some(at) = end.checked_sub(1) else { break };
                let Some(digit) = self.digits.get(at).cloned() else { return Err(Undecided::Rank) };
                if digit.is_const(1) || is_equal(scope, &digit, &rest) {
                    end = at;
                    *count += 1;
                    if !digit.is_const(1) {
                        break;
                    }
                } else if let Some(more) = over(scope, &rest, &digit) {
                    end = at;
                    *count += 1;
                    rest = more;
                } else {
                    self.split_digit(at, &rest)?;
                    *count += 1;
                    break;
                }
                if *count > MOST_DIGITS {
                    return Err(Undecided::DigitLimit);
                }
            }
            // After a split the digits below `end` are as before, with the quotient as the last one.
            end = self.digits.len().saturating_sub(counts.iter().skip(group).sum());
        }
        Ok(counts)
    }
}

/// Whether each first dim is at most the second wherever every digit has at least one.
pub(super) fn holds(scope: &Scope, digits: &[Dim], pairs: &[(&Dim, &Dim)]) -> bool {
    let (mut undecided, mut refuted) = (false, false);
    for (a, b) in pairs {
        match (a.as_const(), b.as_const()) {
            (Some(a), Some(b)) => refuted |= a > b,
            _ => undecided |= !is_at_most(scope, a, b),
        }
    }
    if refuted || !undecided {
        return !refuted;
    }
    where_present(scope, digits, || pairs.iter().all(|(a, b)| is_at_most(scope, a, b)))
}

/// Whether both dims are equal wherever every digit has at least one.
pub(crate) fn holds_equal(scope: &Scope, digits: &[Dim], a: &Dim, b: &Dim) -> bool {
    is_equal(scope, a, b)
        || (a.as_const().is_none() || b.as_const().is_none())
            && where_present(scope, digits, || {
                is_equal(scope, a, b) || is_at_most(scope, a, b) && is_at_most(scope, b, a)
            })
}

/// A size where it is at least 1: there `max(0, e)` is `e`.
pub(crate) fn present(scope: &Scope, size: &Dim) -> Dim {
    let clamped = scope.parts(size).into_iter().find_map(|(operation, left, right)| match operation {
        Operation::Max if left.is_const(0) => Some(right),
        Operation::Max if right.is_const(0) => Some(left),
        _ => None,
    });
    clamped.unwrap_or_else(|| size.clone())
}

/// Runs `find` under the assumption that every digit is at least 1.
fn where_present(scope: &Scope, digits: &[Dim], find: impl FnOnce() -> bool) -> bool {
    let add = |positive: &mut Vec<Dim>, dim: Dim| {
        if dim.as_const().is_none() && !positive.contains(&dim) {
            positive.push(dim);
        }
    };
    let mut positive: Vec<Dim> = Vec::new();
    digits.iter().for_each(|size| add(&mut positive, size.clone()));
    let mut next = 0;
    while let Some(size) = positive.get(next).filter(|_| next < MOST_POSITIVE).cloned() {
        next += 1;
        if size.as_symbol().is_some() {
            continue;
        }
        // max(0, e) is at least 1 only if e is; min(a, b) only if both are; c·a of a number c only if a is; ⌊a / c⌋ + k only if a is at least
        // c·(1 − k); and clamped differences of one symbol from some value of it on.
        for (operation, left, right) in scope.parts(&size) {
            let is_zero = |dim: &Dim| dim.as_const().is_some_and(|value| value <= 0);
            let is_positive = |dim: &Dim| dim.as_const().is_some_and(|value| value > 0);
            let found = match operation {
                Operation::Max if is_zero(&left) => vec![right],
                Operation::Max if is_zero(&right) => vec![left],
                Operation::Mul if is_positive(&left) => vec![right],
                Operation::Mul if is_positive(&right) => vec![left],
                Operation::Min => vec![left, right],
                Operation::Div if is_positive(&right) => vec![minus(scope, &left, &minus(scope, &right, &one()))],
                Operation::Add if right.as_const().is_some() => {
                    let least = minus(scope, &one(), &right);
                    let quotients = scope.parts(&left).into_iter();
                    quotients
                        .filter(|(operation, _, divisor)| *operation == Operation::Div && is_positive(divisor))
                        .map(|(_, a, divisor)| minus(scope, &a, &minus(scope, &times(scope, &divisor, &least), &one())))
                        .collect()
                }
                _ => continue,
            };
            found.into_iter().for_each(|dim| add(&mut positive, dim));
        }
        if let Some(from) = scope.present_from(&size) {
            add(&mut positive, plus(scope, &from, &one()));
        }
    }
    if positive.is_empty() {
        return false;
    }
    let not_negative: Vec<Dim> = positive.iter().map(|size| minus(scope, size, &one())).collect();
    scope.supposing(&not_negative, find)
}

fn sign(coefficient: &Dim) -> Undecided {
    Undecided::AtMost(zero(), coefficient.clone())
}

fn absolute(scope: &Scope, coefficient: &Dim) -> Result<Dim, Undecided> {
    match is_negative(scope, coefficient) {
        Some(true) => Ok(scope.neg(coefficient)),
        Some(false) => Ok(coefficient.clone()),
        None => Err(sign(coefficient)),
    }
}

/// `(h, l)` with `coefficient·table = size·h + coefficient·l`, where the remainder is below `size`.
fn split_table(
    scope: &Scope,
    table: &Arc<Table>,
    coefficient: &Dim,
    size: &Dim,
    digits: &[Dim],
) -> Result<(Index, Index), Undecided> {
    let whole = || Index::of_atom(Atom::Table(Arc::clone(table)));
    let Some(period) = over(scope, size, coefficient) else { return Ok((Index::constant(zero()), whole())) };
    if is_at_most(scope, &number(table.most().saturating_add(1)), &period) {
        return Ok((Index::constant(zero()), whole()));
    }
    table_halves(scope, &whole(), &period, digits)
}

/// Quotient and remainder of an index that is all numbers.
fn table_halves(scope: &Scope, index: &Index, size: &Dim, digits: &[Dim]) -> Result<(Index, Index), Undecided> {
    let size = size.as_const().filter(|&size| size > 0).ok_or(Undecided::Symbolic)?;
    let (used, values) = index.as_table(digits)?;
    let high: Vec<i64> = values.iter().filter_map(|value| value.checked_div_euclid(size)).collect();
    let low: Vec<i64> = values.iter().filter_map(|value| value.checked_rem_euclid(size)).collect();
    Ok((Index::of_values(scope, &used, digits, &high)?, Index::of_values(scope, &used, digits, &low)?))
}

impl Index {
    fn with_split_digit(&self, scope: &Scope, digit: usize, low: &Dim) -> Index {
        let mut terms: SmallVec<[Term; 2]> = SmallVec::new();
        let moved = |at: usize| if at > digit { at.saturating_add(1) } else { at };
        let below = digit.saturating_add(1);
        for term in &self.terms {
            let coefficient = term.coefficient.clone();
            let atom = match &term.atom {
                Atom::Digit(at) if *at == digit => {
                    terms.push(Term { coefficient: times(scope, &coefficient, low), atom: Atom::Digit(digit) });
                    Atom::Digit(below)
                }
                Atom::Digit(at) => Atom::Digit(moved(*at)),
                Atom::Table(table) => {
                    let both = |&at: &usize| -> SmallVec<[usize; 2]> {
                        if at == digit { smallvec![digit, below] } else { smallvec![moved(at)] }
                    };
                    let digits = table.digits.iter().flat_map(both).collect();
                    Atom::Table(Arc::new(Table { digits, values: table.values.clone() }))
                }
                Atom::Lookup(lookup) => {
                    let mut read = lookup.read.clone();
                    for axis in &mut read.axes {
                        axis.at = axis.at.with_split_digit(scope, digit, low);
                    }
                    Atom::Lookup(Arc::new(Lookup { read, size: lookup.size.clone() }))
                }
            };
            terms.push(Term { coefficient, atom });
        }
        Index { offset: self.offset.clone(), terms }
    }
}

/// The sizes into which axes split so that each has the position of one digit, as far as their weights divide each other.
pub(super) fn sizes_by_digit(scope: &Scope, axes: &[Axis]) -> SmallVec<[Dim; 6]> {
    let mut sizes = SmallVec::new();
    for axis in axes {
        let weights = axis.at.terms.iter().filter_map(|term| absolute(scope, &term.coefficient).ok());
        let mut weights: SmallVec<[Dim; 4]> = weights.filter(|weight| !weight.is_const(1)).collect();
        let mut rest = axis.size.clone();
        // The greatest weight first: the one that all others divide.
        let greatest = |weights: &[Dim]| {
            weights.iter().position(|weight| weights.iter().all(|other| over(scope, weight, other).is_some()))
        };
        while let Some(at) = greatest(&weights) {
            let weight = weights.remove(at);
            if let Some(high) = over(scope, &rest, &weight) {
                sizes.push(high);
                rest = weight;
            }
        }
        sizes.push(rest);
    }
    sizes
}

/// The position on all of these axes together.
pub(super) fn merged(scope: &Scope, axes: &[Axis]) -> Axis {
    let mut whole = Axis { size: one(), at: Index::constant(zero()) };
    for (number, axis) in axes.iter().enumerate() {
        whole = if number == 0 {
            axis.clone()
        } else {
            Axis { at: whole.at.followed_by(scope, &axis.size, &axis.at), size: times(scope, &whole.size, &axis.size) }
        };
    }
    whole
}
