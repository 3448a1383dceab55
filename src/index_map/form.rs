//! The data of an index map.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::undecided::Undecided;
use crate::dim::{Dim, Scope, greatest_common_divisor};

/// The dims of a tensor.
pub type Shape = SmallVec<[Dim; 6]>;

/// The most digits of a map, the most pieces, and the most entries of a table.
pub const MOST_DIGITS: usize = 16;
/// The most pieces of a map, nested pieces included.
pub const MOST_PIECES: usize = 64;
/// The most entries of a table.
pub const MOST_ENTRIES: i64 = 65_536;

/// A function from the elements of a result to elements of sources, for every value of the symbols in the dims.
///
/// Two maps are equal (`==`) if their canonical forms are; equal maps read equal elements. Maps that read equal elements
/// may still differ if a fact about their dims is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexMap {
    pub(super) sources: SmallVec<[Shape; 1]>,
    pub(super) result: Shape,
    pub(super) core: Core,
}

/// A map of flat positions: the result is one axis whose position is written in mixed radix, most significant digit first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Core {
    /// The sizes of the digits. Their product is the number of elements.
    pub digits: SmallVec<[Dim; 6]>,
    pub form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Fill(Fill),
    Read(Read),
    Pieces(Arc<Pieces>),
}

/// A constant that the map does not interpret: equal numbers are equal constants. [`Fill::of_element`] gives the bits of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fill(pub u64);

/// An element of one source. The axes split the source's flat position in mixed radix, independent of the source's own axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    pub source: usize,
    pub axes: Axes,
}

pub(super) type Axes = Vec<Axis>;

/// One axis of a source: its size, and the position on it, which lies in `0 .. size` wherever the result has elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Axis {
    pub size: Dim,
    pub at: Index,
}

/// `offset + Σ coefficient · atom`. Digits come first, in ascending order, each at most once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Index {
    pub offset: Dim,
    pub terms: SmallVec<[Term; 2]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub coefficient: Dim,
    pub atom: Atom,
}

/// An integer of at least 0 that depends on the digits of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Digit(usize),
    Table(Arc<Table>),
    Lookup(Arc<Lookup>),
}

/// One value for each combination of some digits of constant size, in row-major order. The least value is 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Table {
    pub digits: SmallVec<[usize; 2]>,
    pub values: Arc<[i64]>,
}

/// An element of another operand, which holds positions on an axis of `size`, negative ones counted from the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lookup {
    pub read: Read,
    pub size: Dim,
}

/// The flat positions `[before, Σ len, after]`, cut along the middle digit. A piece maps the positions `[before, len, after]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pieces {
    pub before: Dim,
    pub after: Dim,
    pub parts: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub len: Dim,
    pub core: Core,
}

pub(super) fn number(value: i64) -> Dim {
    Dim::constant(value)
}

pub(super) fn zero() -> Dim {
    number(0)
}

pub(super) fn one() -> Dim {
    number(1)
}

impl Index {
    pub fn constant(offset: Dim) -> Index {
        Index { offset, terms: SmallVec::new() }
    }

    pub fn digit(digit: usize) -> Index {
        Index { offset: zero(), terms: smallvec![Term { coefficient: one(), atom: Atom::Digit(digit) }] }
    }

    pub fn of_atom(atom: Atom) -> Index {
        Index { offset: zero(), terms: smallvec![Term { coefficient: one(), atom }] }
    }

    /// The digit, if the index is an offset and that.
    pub fn as_shifted_digit(&self) -> Option<usize> {
        match self.terms.as_slice() {
            [Term { coefficient, atom: Atom::Digit(digit) }] if coefficient.is_const(1) => Some(*digit),
            _ => None,
        }
    }

    /// Adds `scale · other`.
    pub fn add(&mut self, scope: &Scope, other: &Index, scale: &Dim) {
        if scale.is_const(0) {
            return;
        }
        self.offset = plus(scope, &self.offset, &times(scope, &other.offset, scale));
        for term in &other.terms {
            self.add_term(scope, times(scope, &term.coefficient, scale), term.atom.clone());
        }
    }

    pub fn add_term(&mut self, scope: &Scope, coefficient: Dim, atom: Atom) {
        if coefficient.is_const(0) {
            return;
        }
        if let Some(at) = self.terms.iter().position(|term| term.atom == atom) {
            let Some(term) = self.terms.get_mut(at) else { return };
            term.coefficient = plus(scope, &term.coefficient, &coefficient);
            if term.coefficient.is_const(0) {
                self.terms.remove(at);
            }
            return;
        }
        let rank = |atom: &Atom| match atom {
            Atom::Digit(digit) => *digit,
            _ => usize::MAX,
        };
        let at = self.terms.iter().take_while(|term| rank(&term.atom) <= rank(&atom)).count();
        self.terms.insert(at, Term { coefficient, atom });
    }

    /// `self · scale + low`.
    pub fn followed_by(&self, scope: &Scope, scale: &Dim, low: &Index) -> Index {
        let mut sum = Index::constant(zero());
        sum.add(scope, self, scale);
        sum.add(scope, low, &one());
        sum
    }

    /// Replaces each digit by an index over other digits.
    pub fn substitute(&self, scope: &Scope, old: &[Dim], by: &[Index], digits: &[Dim]) -> Result<Index, Undecided> {
        let mut sum = Index::constant(self.offset.clone());
        for term in &self.terms {
            match &term.atom {
                Atom::Digit(digit) => {
                    let index = by.get(*digit).ok_or(Undecided::Rank)?;
                    sum.add(scope, index, &term.coefficient);
                }
                Atom::Table(table) => {
                    let index = table.substitute(scope, old, by, digits)?;
                    sum.add(scope, &index, &term.coefficient);
                }
                Atom::Lookup(lookup) => {
                    let read = lookup.read.substitute(scope, old, by, digits)?;
                    let atom = Atom::Lookup(Arc::new(Lookup { read, size: lookup.size.clone() }));
                    sum.add_term(scope, term.coefficient.clone(), atom);
                }
            }
        }
        Ok(sum)
    }

    /// The greatest value where every digit has at least one.
    pub fn most(&self, scope: &Scope, digits: &[Dim]) -> Option<Dim> {
        let mut most = self.offset.clone();
        for term in &self.terms {
            if is_negative(scope, &term.coefficient)? {
                continue;
            }
            let reach = term.atom.reach(scope, digits);
            most = plus(scope, &most, &times(scope, &term.coefficient, &reach));
        }
        Some(most)
    }

    /// The least value where every digit has at least one.
    pub fn least(&self, scope: &Scope, digits: &[Dim]) -> Option<Dim> {
        let mut least = self.offset.clone();
        for term in &self.terms {
            if is_negative(scope, &term.coefficient)? {
                let reach = term.atom.reach(scope, digits);
                least = plus(scope, &least, &times(scope, &term.coefficient, &reach));
            }
        }
        Some(least)
    }

    /// The digits that occur, in ascending order.
    pub fn digits(&self) -> SmallVec<[usize; 4]> {
        let mut found = SmallVec::new();
        for term in &self.terms {
            match &term.atom {
                Atom::Digit(digit) => found.push(*digit),
                Atom::Table(table) => found.extend(table.digits.iter().copied()),
                Atom::Lookup(lookup) => found.extend(lookup.read.axes.iter().flat_map(|axis| axis.at.digits())),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the same index as one table over its digits, if all of it is numbers.
    pub fn as_table(&self, digits: &[Dim]) -> Result<(SmallVec<[usize; 4]>, Vec<i64>), Undecided> {
        let used = self.digits();
        let sizes = sizes_of(&used, digits)?;
        let mut values = Vec::new();
        let mut at: SmallVec<[i64; 16]> = SmallVec::from_elem(0, digits.len());
        for_each(&sizes, |position| {
            for (&digit, &value) in used.iter().zip(position) {
                if let Some(at) = at.get_mut(digit) {
                    *at = value;
                }
            }
            values.push(self.value(digits, &at)?);
            Some(())
        })
        .ok_or(Undecided::Symbolic)?;
        Ok((used, values))
    }

    /// The value at one combination of the digits, if all of it is numbers.
    fn value(&self, digits: &[Dim], at: &[i64]) -> Option<i64> {
        let mut sum = self.offset.as_const()?;
        for term in &self.terms {
            let value = match &term.atom {
                Atom::Digit(digit) => *at.get(*digit)?,
                Atom::Table(table) => table.value(digits, at)?,
                Atom::Lookup(_) => return None,
            };
            sum = sum.checked_add(term.coefficient.as_const()?.checked_mul(value)?)?;
        }
        Some(sum)
    }

    /// An index that has these values: a term for each digit that adds to the others, and a table over the digits that do not.
    pub fn of_values(scope: &Scope, used: &[usize], digits: &[Dim], values: &[i64]) -> Result<Index, Undecided> {
        let mut sizes: SmallVec<[usize; 4]> = SmallVec::new();
        for size in sizes_of(used, digits)? {
            sizes.push(usize::try_from(size).map_err(|_| Undecided::Overflow)?);
        }
        let Some(&offset) = values.first() else { return Ok(Index::constant(zero())) };
        let mut index = Index::constant(number(offset));
        let mut coupled: SmallVec<[usize; 4]> = used.into();
        let mut values: Cow<'_, [i64]> = Cow::Borrowed(values);
        let mut at = 0;
        while let (Some(&digit), Some(&size)) = (coupled.get(at), sizes.get(at)) {
            let inner: usize = sizes.iter().skip(at.saturating_add(1)).product();
            let Some(steps) = steps_along(&values, size, inner) else {
                at = at.saturating_add(1);
                continue;
            };
            values =
                values.chunks(size.saturating_mul(inner)).flat_map(|block| block.iter().take(inner)).copied().collect();
            coupled.remove(at);
            sizes.remove(at);
            index.add_steps(scope, digit, &steps)?;
        }
        if !coupled.is_empty() {
            index.offset = minus(scope, &index.offset, &number(offset));
            index.add_table(scope, coupled.into_iter().collect(), &values)?;
        }
        Ok(index)
    }

    /// Adds the steps along one digit, the first of which is 0.
    fn add_steps(&mut self, scope: &Scope, digit: usize, steps: &[i64]) -> Result<(), Undecided> {
        let step = steps.get(1).copied().unwrap_or(0);
        let is_affine = (0i64..).zip(steps).all(|(at, &value)| at.checked_mul(step) == Some(value));
        if is_affine {
            self.add_term(scope, number(step), Atom::Digit(digit));
            return Ok(());
        }
        self.add_table(scope, std::iter::once(digit).collect(), steps)
    }

    /// Adds values over digits as a table whose least value is 0 and whose values have no common divisor.
    fn add_table(&mut self, scope: &Scope, digits: SmallVec<[usize; 2]>, values: &[i64]) -> Result<(), Undecided> {
        let least = values.iter().copied().min().unwrap_or(0);
        let values = values.iter().map(|value| value.checked_sub(least)).collect::<Option<Vec<_>>>();
        let mut values = values.ok_or(Undecided::Overflow)?;
        let common = values.iter().fold(0, |common, value| greatest_common_divisor(common, value.unsigned_abs()));
        let common = i64::try_from(common.max(1)).map_err(|_| Undecided::Overflow)?;
        for value in &mut values {
            *value = value.checked_div(common).unwrap_or(0);
        }
        self.offset = plus(scope, &self.offset, &number(least));
        self.add_term(scope, number(common), Atom::Table(Arc::new(Table { digits, values: values.into() })));
        Ok(())
    }
}

/// How values change along a digit of this size with `inner` values for each position, if that is independent of the other digits.
fn steps_along(values: &[i64], size: usize, inner: usize) -> Option<Vec<i64>> {
    let first = *values.first()?;
    let steps: Vec<i64> =
        values.iter().step_by(inner.max(1)).take(size).map(|value| value.checked_sub(first)).collect::<Option<_>>()?;
    for block in values.chunks(size.checked_mul(inner)?.max(1)) {
        for (row, step) in block.chunks(inner.max(1)).zip(&steps) {
            let adds = |(value, base): (&i64, &i64)| base.checked_add(*step) == Some(*value);
            if !row.iter().zip(block).all(adds) {
                return None;
            }
        }
    }
    Some(steps)
}

impl Atom {
    /// The greatest value, where every digit has at least one.
    pub fn reach(&self, scope: &Scope, digits: &[Dim]) -> Dim {
        match self {
            Atom::Digit(digit) => digits.get(*digit).map_or_else(zero, |size| minus(scope, size, &one())),
            Atom::Table(table) => number(table.most()),
            Atom::Lookup(lookup) => minus(scope, &lookup.size, &one()),
        }
    }
}

impl Table {
    pub fn most(&self) -> i64 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    fn value(&self, digits: &[Dim], at: &[i64]) -> Option<i64> {
        let mut place = 0i64;
        for &digit in &self.digits {
            place = place.checked_mul(digits.get(digit)?.as_const()?)?.checked_add(*at.get(digit)?)?;
        }
        self.values.get(usize::try_from(place).ok()?).copied()
    }

    fn substitute(&self, scope: &Scope, old: &[Dim], by: &[Index], digits: &[Dim]) -> Result<Index, Undecided> {
        let indices: SmallVec<[&Index; 4]> =
            self.digits.iter().map(|&digit| by.get(digit).ok_or(Undecided::Rank)).collect::<Result<_, _>>()?;
        let mut used: SmallVec<[usize; 4]> = indices.iter().flat_map(|index| index.digits()).collect();
        used.sort_unstable();
        used.dedup();
        let sizes = sizes_of(&used, digits)?;
        let mut values = Vec::new();
        let mut at: SmallVec<[i64; 16]> = SmallVec::from_elem(0, digits.len());
        let mut place: SmallVec<[i64; 16]> = SmallVec::from_elem(0, old.len());
        for_each(&sizes, |position| {
            for (&digit, &value) in used.iter().zip(position) {
                *at.get_mut(digit)? = value;
            }
            for (&digit, index) in self.digits.iter().zip(&indices) {
                *place.get_mut(digit)? = index.value(digits, &at)?;
            }
            values.push(self.value(old, &place)?);
            Some(())
        })
        .ok_or(Undecided::Symbolic)?;
        Index::of_values(scope, &used, digits, &values)
    }
}

impl Read {
    pub fn substitute(&self, scope: &Scope, old: &[Dim], by: &[Index], digits: &[Dim]) -> Result<Read, Undecided> {
        let axes = self.axes.iter().map(|axis| {
            let at = axis.at.substitute(scope, old, by, digits)?;
            Ok(Axis { size: axis.size.clone(), at })
        });
        Ok(Read { source: self.source, axes: axes.collect::<Result<_, Undecided>>()? })
    }

    /// Renumbers the sources, those of run-time positions too.
    pub fn with_sources(&self, to: &dyn Fn(usize) -> usize) -> Read {
        let axes = self.axes.iter().map(|axis| {
            let terms = axis.at.terms.iter().map(|term| match &term.atom {
                Atom::Lookup(lookup) => {
                    let read = lookup.read.with_sources(to);
                    let atom = Atom::Lookup(Arc::new(Lookup { read, size: lookup.size.clone() }));
                    Term { coefficient: term.coefficient.clone(), atom }
                }
                _ => term.clone(),
            });
            Axis { size: axis.size.clone(), at: Index { offset: axis.at.offset.clone(), terms: terms.collect() } }
        });
        Read { source: to(self.source), axes: axes.collect() }
    }
}

/// The constant sizes of these digits; their product is at most [`MOST_ENTRIES`].
pub(super) fn sizes_of(used: &[usize], digits: &[Dim]) -> Result<SmallVec<[i64; 4]>, Undecided> {
    let mut sizes = SmallVec::new();
    let mut entries = 1i64;
    for &digit in used {
        let size = digits.get(digit).and_then(Dim::as_const).ok_or(Undecided::Symbolic)?;
        entries = entries.checked_mul(size).filter(|&entries| entries <= MOST_ENTRIES).ok_or(Undecided::TableLimit)?;
        sizes.push(size);
    }
    Ok(sizes)
}

/// Calls `act` for each position in a box of these sizes, in row-major order.
pub(super) fn for_each(sizes: &[i64], mut act: impl FnMut(&[i64]) -> Option<()>) -> Option<()> {
    if sizes.contains(&0) {
        return Some(());
    }
    let mut position: SmallVec<[i64; 8]> = SmallVec::from_elem(0, sizes.len());
    loop {
        act(&position)?;
        let mut axis = sizes.len();
        loop {
            axis = match axis.checked_sub(1) {
                Some(axis) => axis,
                None => return Some(()),
            };
            let (at, size) = (position.get_mut(axis)?, *sizes.get(axis)?);
            *at = at.checked_add(1)?;
            if *at < size {
                break;
            }
            *at = 0;
        }
    }
}

/// Whether a coefficient is negative; `None` if its sign is not known.
pub(super) fn is_negative(scope: &Scope, coefficient: &Dim) -> Option<bool> {
    if let Some(value) = coefficient.as_const() {
        return Some(value < 0);
    }
    if scope.ge(coefficient, &zero()).is_yes() {
        return Some(false);
    }
    scope.le(coefficient, &zero()).is_yes().then_some(true)
}

pub(super) fn times(scope: &Scope, a: &Dim, b: &Dim) -> Dim {
    if a.is_const(1) {
        b.clone()
    } else if b.is_const(1) {
        a.clone()
    } else {
        scope.mul(a, b)
    }
}

pub(super) fn plus(scope: &Scope, a: &Dim, b: &Dim) -> Dim {
    if a.is_const(0) {
        b.clone()
    } else if b.is_const(0) {
        a.clone()
    } else {
        scope.add(a, b)
    }
}

pub(super) fn minus(scope: &Scope, a: &Dim, b: &Dim) -> Dim {
    if b.is_const(0) { a.clone() } else { scope.sub(a, b) }
}

pub(super) fn over(scope: &Scope, a: &Dim, b: &Dim) -> Option<Dim> {
    if b.is_const(1) {
        return Some(a.clone());
    }
    if a == b {
        return Some(one());
    }
    match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => (a.checked_rem(b)? == 0).then(|| a.checked_div(b).map(number))?,
        _ => scope.quotient(a, b),
    }
}

pub(super) fn is_at_most(scope: &Scope, a: &Dim, b: &Dim) -> bool {
    match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => a <= b,
        _ => a == b || scope.le(a, b).is_yes(),
    }
}

pub(super) fn is_equal(scope: &Scope, a: &Dim, b: &Dim) -> bool {
    match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || scope.eq(a, b).is_yes(),
    }
}
