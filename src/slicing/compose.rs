//! Composes two slices of one axis, and recognizes slices that keep the whole axis.
//!
//! Laws for ranges on one axis of any length `d`, where `a, b, c, e >= 0` and `s, t > 0`:
//! * `x[a:b:s][c:e:t] = x[a + s·c : min(b, a + s·e) : s·t]`; an open end drops its term of the minimum;
//! * `x[a:b:s][::t] = x[a:b:s·t]`, whatever the signs of `a` and `b`;
//! * `x[a:-b][:-e] = x[a : -b - e]`, and the same with `b = 0` for an open end;
//! * `x[::-1][c:e:t]` reflects each bound, for either sign of `t`: position `k` of the reversed axis is `-1 - k` of
//!   the axis;
//! * `x[a:b][::-t] = x[b - 1 : a - 1 : -t]`; `a = 0` makes the end open.
//!
//! A law that needs a long enough axis applies only if the scope proves that length of the dim.

use super::reading::{Floor, Reading};
use super::resolve::resolve_exactly;
use super::spec::{Bound, Range};
use crate::dim::{Dim, Scope};

/// A range of integers whose end was read by the dialect; `None` is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    begin: Option<i64>,
    end: Option<i64>,
    step: i64,
}

impl Numbers {
    const EMPTY: Numbers = Numbers { begin: Some(0), end: Some(0), step: 1 };

    fn of(range: &Range, reading: Reading) -> Option<Numbers> {
        let number = |bound: &Bound| match bound {
            Bound::Open => Some(None),
            Bound::At(at) => at.as_const().map(Some),
            Bound::Unknown => None,
        };
        let step = range.step.filter(|&step| step != 0)?;
        let end = match number(&range.end)? {
            Some(end) => reading.end_of(end, step > 0).ok()?,
            None => None,
        };
        let begin = number(&range.begin)?;
        // These bounds are open on every axis.
        let (begin, end) = if step > 0 {
            (begin.filter(|&begin| begin != 0 && begin != i64::MIN), end.filter(|&end| end != i64::MAX))
        } else {
            (begin.filter(|&begin| begin != -1 && begin != i64::MAX), end.filter(|&end| end != i64::MIN))
        };
        Some(Numbers { begin, end, step })
    }

    /// Converts to a [`Range`]; `None` if the dialect would read the end as another value.
    fn range(self, reading: Reading) -> Option<Range> {
        if let Some(end) = self.end
            && reading.end_of(end, self.step > 0) != Ok(Some(end))
        {
            return None;
        }
        Range::constant(self.begin, self.end, self.step).ok()
    }

    fn is_reversal(self) -> bool {
        matches!(self, Numbers { begin: None, end: None, step: -1 })
    }
}

/// Returns the range with `x[first][second] = x[range]` on an axis of `dim` for every value of the symbols. `None` if
/// no law proves one. The bounds of both ranges and of the result are integers.
pub fn compose(scope: &Scope, dim: &Dim, first: &Range, second: &Range, reading: Reading) -> Option<Range> {
    let (outer, inner) = (Numbers::of(first, reading)?, Numbers::of(second, reading)?);
    let composition = Composition { scope, dim, floor: reading.floor };
    composition
        .by_law(outer, inner)
        .or_else(|| composition.by_numbers(first, second, reading))
        .and_then(|numbers| numbers.range(reading))
}

/// Returns `true` if `range` provably selects every element of an axis of `dim` in order.
pub fn is_identity(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> bool {
    is_in_order(scope, dim, range)
        && resolve_exactly(scope, dim, range, reading).is_some_and(|(_, len)| scope.eq(&len, dim).is_yes())
}

/// Returns `true` if `range` is the identity, given that it selects `len` elements.
pub fn takes_all(scope: &Scope, dim: &Dim, range: &Range, len: &Dim) -> bool {
    // A forward range of step 1 that selects `dim` elements selects all of them.
    is_in_order(scope, dim, range) && scope.eq(len, dim).is_yes()
}

fn is_in_order(scope: &Scope, dim: &Dim, range: &Range) -> bool {
    range.step == Some(1) || scope.le(dim, &Dim::constant(1)).is_yes()
}

/// Returns the negative index of position `at`: `-k` for `at = dim - k`, if `k > 0` and the axis has at least `k`
/// elements.
pub fn from_end(scope: &Scope, dim: &Dim, at: &Dim) -> Option<i64> {
    let before = scope.sub(dim, at).as_const().filter(|&before| before > 0)?;
    scope.ge(dim, &Dim::constant(before)).is_yes().then(|| before.checked_neg()).flatten()
}

/// Replaces symbolic bounds by integers: `dim - k` becomes `-k` on an axis of at least `k` elements. A bound beyond
/// the axis becomes open, or `i64::MAX` as a forward begin. Keeps all other bounds.
pub fn with_numbers(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> Range {
    let Some(step) = range.step else { return range.clone() };
    let is_beyond = |at: &Dim, end: &Dim| scope.ge(at, end).is_yes();
    let from_end = |at: &Dim| from_end(scope, dim, at).map(|number| Bound::At(Dim::constant(number)));
    let is_before = |at: &Dim, first: i64| {
        scope.lt(at, &Dim::constant(0)).is_yes() && scope.le(&scope.add(at, dim), &Dim::constant(first)).is_yes()
    };
    let begin = |at: &Dim| match step > 0 {
        true if is_before(at, 0) => Some(Bound::Open),
        true if is_beyond(at, dim) => Some(Bound::At(Dim::constant(i64::MAX))),
        false if is_beyond(at, &scope.sub(dim, &Dim::constant(1))) => Some(Bound::Open),
        _ => from_end(at),
    };
    let end = |at: &Dim| match step > 0 {
        true if is_beyond(at, dim) => Some(Bound::Open),
        false if is_before(at, -1) => Some(Bound::Open),
        _ => from_end(at),
    };
    let is_expression = |bound: &Bound| matches!(bound, Bound::At(at) if at.as_const().is_none());
    let mut told = range.clone();
    if let Bound::At(at) = &range.begin
        && is_expression(&range.begin)
    {
        told.begin = begin(at).unwrap_or(told.begin);
    }
    if let Bound::At(at) = &range.end
        && is_expression(&range.end)
        && reading.is_ordinary(scope, &range.end, step > 0)
    {
        told.end = end(at).unwrap_or(told.end);
    }
    told
}

struct Composition<'s> {
    scope: &'s Scope,
    dim: &'s Dim,
    floor: Floor,
}

impl Composition<'_> {
    /// Returns `true` if the axis provably has at least `elements` elements.
    fn is_long(&self, elements: i64) -> bool {
        elements <= 0 || self.scope.ge(self.dim, &Dim::constant(elements)).is_yes()
    }

    fn is_short(&self, elements: i64) -> bool {
        self.scope.le(self.dim, &Dim::constant(elements)).is_yes()
    }

    /// Returns `true` if the floor cannot change this begin of a backward range. A begin before the first element
    /// must not be raised to it.
    fn can_begin(&self, bound: i64) -> bool {
        self.floor == Floor::BeforeFirst
            || bound >= -1
            || bound.checked_neg().is_some_and(|length| self.is_long(length))
    }

    fn by_law(&self, outer: Numbers, inner: Numbers) -> Option<Numbers> {
        if outer.is_reversal() {
            return self.of_reversed(inner);
        }
        match (outer.step > 0, inner.step > 0) {
            (true, true) => self.forward(outer, inner),
            (true, false) if outer.step == 1 && inner.begin.is_none() && inner.end.is_none() => {
                self.reversed(outer, inner.step)
            }
            _ => None,
        }
    }

    /// `x[a:b:s][c:e:t]`.
    fn forward(&self, outer: Numbers, inner: Numbers) -> Option<Numbers> {
        let step = outer.step.checked_mul(inner.step)?;
        let (a, c) = (outer.begin.unwrap_or(0), inner.begin.unwrap_or(0));
        if c < 0 {
            return None;
        }
        let begin = match c {
            0 => a,
            _ if a >= 0 => a.checked_add(outer.step.checked_mul(c)?)?,
            // A begin counted from the end needs an axis that contains it.
            _ if self.is_long(a.checked_neg()?) => match a.checked_add(outer.step.checked_mul(c)?)? {
                begin if begin < 0 => begin,
                _ => return Some(Numbers::EMPTY),
            },
            _ => return None,
        };
        let end = match inner.end {
            None => outer.end,
            Some(0) => return Some(Numbers::EMPTY),
            Some(e) if e > 0 => {
                let limit = a.checked_add(outer.step.checked_mul(e)?)?;
                if a >= 0 {
                    self.earlier(outer.end, limit)?
                } else if !self.is_long(a.checked_neg()?) {
                    return None;
                } else if limit < 0 {
                    self.earlier_from_end(outer.end, limit)?
                } else {
                    outer.end
                }
            }
            Some(e) => self.shortened(outer, e)?,
        };
        Some(Numbers { begin: Some(begin).filter(|&begin| begin != 0), end, step })
    }

    /// Returns the smaller of an end and a position that is not negative.
    fn earlier(&self, end: Option<i64>, limit: i64) -> Option<Option<i64>> {
        match end {
            None => Some(Some(limit)),
            Some(end) if end >= 0 => Some(Some(end.min(limit))),
            // `dim + end` is at least `limit`, or at most `limit`.
            Some(end) if self.is_long(limit.checked_sub(end)?) => Some(Some(limit)),
            Some(end) if self.is_short(limit.checked_sub(end)?) => Some(Some(end)),
            Some(_) => None,
        }
    }

    /// Returns the smaller of an end and a position counted from the end, on an axis that contains this position.
    fn earlier_from_end(&self, end: Option<i64>, limit: i64) -> Option<Option<i64>> {
        match end {
            None => Some(Some(limit)),
            Some(end) if end < 0 => Some(Some(end.min(limit))),
            Some(end) if self.is_long(end.checked_sub(limit)?) => Some(Some(end)),
            Some(end) if self.is_short(end.checked_sub(limit)?) => Some(Some(limit)),
            Some(_) => None,
        }
    }

    /// Returns the end of `x[a:b]` without its last `-e` elements.
    fn shortened(&self, outer: Numbers, e: i64) -> Option<Option<i64>> {
        if outer.step != 1 {
            return None;
        }
        match outer.end {
            None => Some(Some(e)),
            Some(b) if b < 0 => b.checked_add(e).map(Some),
            Some(b) if self.is_short(b) => Some(Some(e)),
            // An end before the first element makes the range empty.
            Some(b) if self.is_long(b) => b.checked_add(e).map(|end| Some(end.max(0))),
            Some(_) => None,
        }
    }

    /// `x[::-1][c:e:t]`.
    fn of_reversed(&self, inner: Numbers) -> Option<Numbers> {
        // Maps a bound of either sign to the reversed axis.
        let turned = |k: i64| (-1i64).checked_sub(k);
        let step = inner.step.checked_neg()?;
        let begin = inner.begin.map(turned).map_or(Some(None), |begin| begin.map(Some))?;
        let end = inner.end.map(turned).map_or(Some(None), |end| end.map(Some))?;
        if let Some((k, begin)) = inner.begin.zip(begin) {
            let held = if step < 0 { self.can_begin(begin) } else { self.can_begin(k) };
            if !held {
                return None;
            }
        }
        Some(Numbers { begin, end, step })
    }

    /// `x[a:b][::-t]`.
    fn reversed(&self, outer: Numbers, step: i64) -> Option<Numbers> {
        let a = outer.begin.unwrap_or(0);
        let begin = match outer.end {
            None => None,
            Some(0) => return Some(Numbers::EMPTY),
            Some(b) => Some(b.checked_sub(1)?),
        };
        let end = if a == 0 { None } else { Some(a.checked_sub(1)?) };
        // With an end that is not negative, either floor gives an empty range.
        let held = begin.is_none_or(|begin| self.can_begin(begin)) || end.is_some_and(|end| end >= 0);
        held.then_some(Numbers { begin, end, step })
    }

    /// Composes two ranges whose starts, steps and composed length are integers.
    fn by_numbers(&self, first: &Range, second: &Range, reading: Reading) -> Option<Numbers> {
        let (outer, outer_len) = resolve_exactly(self.scope, self.dim, first, reading)?;
        let (offset, by) = (outer.start.as_const()?, outer.step);
        let (inner, len) = resolve_exactly(self.scope, &outer_len, second, reading)?;
        let len = len.as_const()?;
        if len == 0 {
            return Some(Numbers::EMPTY);
        }
        let step = by.checked_mul(inner.step)?;
        let start = by.checked_mul(inner.start.as_const()?)?.checked_add(offset)?;
        let last = step.checked_mul(len.checked_sub(1)?)?.checked_add(start)?;
        if start < 0 || last < 0 {
            return None;
        }
        let end = if step > 0 { last.checked_add(1) } else { last.checked_sub(1).filter(|&end| end >= 0) };
        Some(Numbers { begin: Some(start), end, step })
    }
}
