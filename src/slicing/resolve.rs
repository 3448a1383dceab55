//! Resolves a range on an axis; the only module that clamps bounds.
//!
//! On integers ([`resolve_integers`]), for `begin:end:step` on an axis of `dim` elements:
//! * `dim` is added once to a negative bound;
//! * forward, `begin` and `end` are clamped into `[0, dim]`, and the open bounds are `0` and `dim`;
//! * backward, `end` is clamped into `[-1, dim - 1]` and `begin` into `[floor, dim - 1]`; the open bounds are `dim -
//!   1` and `-1`;
//! * `len = max(0, ceil((end - begin) / step))`, and element `k` of the result is element `begin + k·step` of the
//!   axis.
//!
//! [`resolve`] applies the same rule to expressions. Clamping both bounds would put four clamps around every length.
//! These laws need fewer and hold for every `dim >= 0` (`b` and `e` are the bounds after `dim` was added to a
//! negative one):
//! * forward: `end - begin = max(0, min(e, d) - max(b, 0)) = max(0, min(e - b, e, d - b, d))`;
//! * backward: `begin - end = max(0, min(b, d - 1) - max(e, -1))`, where `b` is first raised to 0 if the floor is 0;
//! * `ceil(min(x, y) / s) = min(ceil(x / s), ceil(y / s))`, and the same for max;
//! * `[v < 0] = -max(-1, min(0, v))`, which adds `dim` to a bound of unknown sign.

use super::SliceError;
use super::reading::{Floor, IntMax, Reading};
use super::spec::{Bound, Range};
use crate::dim::{Dim, LONGEST_AXIS, Scope};

/// An end below this lies before the first element of every axis, even after the dim is added.
const BEFORE_EVERY_AXIS: i64 = -LONGEST_AXIS;

/// The elements that a range selects from an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The number of elements. An unknown length is a new symbol with its proved bounds.
    pub len: Dim,
    /// The selected elements, if known.
    pub selection: Option<Selection>,
    /// The end for which the readings differ, if any.
    pub disputed: Option<i64>,
}

/// Elements `start + k·step` of an axis. `start` has no meaning if the length is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The first element.
    pub start: Dim,
    /// The distance between consecutive elements, not 0.
    pub step: i64,
}

/// An end as the dialect reads it.
enum End<'d> {
    Open,
    At(&'d Dim),
    Unknown,
    Disputed(i64),
}

fn is_int_max(value: i64) -> bool {
    value == i64::from(i32::MAX) || value == i64::MAX
}

impl Reading {
    /// Reads an integer end; `None` is open.
    pub(super) fn end_of(self, end: i64, forward: bool) -> Result<Option<i64>, SliceError> {
        match self.int_max {
            IntMax::Open if is_int_max(end) => Ok(None),
            IntMax::OpenForward | IntMax::DisputedBackward if forward && is_int_max(end) => Ok(None),
            IntMax::DisputedBackward if is_int_max(end) => Err(SliceError::Disputed { end }),
            _ => Ok(Some(end)),
        }
    }

    /// Reads a symbolic end. Forward, a symbolic end counts as ordinary: an end of `INT32_MAX` differs from an open
    /// one only on an axis that is longer.
    fn end<'d>(self, scope: &Scope, end: &'d Bound, forward: bool) -> End<'d> {
        let at = match end {
            Bound::Open => return End::Open,
            Bound::Unknown => return End::Unknown,
            Bound::At(at) => at,
        };
        if let Some(value) = at.as_const() {
            return match self.end_of(value, forward) {
                Ok(None) => End::Open,
                Err(_) => End::Disputed(value),
                Ok(Some(_)) => End::At(at),
            };
        }
        let special_backward = matches!(self.int_max, IntMax::Open | IntMax::DisputedBackward);
        let may_be = |value: i64| {
            let (low, high) = scope.bounds(at);
            low.is_none_or(|low| low <= value)
                && high.is_none_or(|high| value <= high)
                && !scope.eq(at, &Dim::constant(value)).is_no()
        };
        if !forward && special_backward && (may_be(i64::from(i32::MAX)) || may_be(i64::MAX)) {
            return End::Unknown;
        }
        End::At(at)
    }

    /// Returns `true` if an end is provably a position that the dialect does not read as open.
    pub(super) fn is_ordinary(self, scope: &Scope, end: &Bound, forward: bool) -> bool {
        matches!(self.end(scope, end, forward), End::At(_))
    }
}

/// Returns start, step and length of `begin:end:step` on an axis of `dim` elements. `None` is an open bound. The
/// start of an empty range is 0.
///
/// # Errors
/// [`SliceError::ZeroStep`]; [`SliceError::Disputed`] if the readings of this end differ and the axis is not empty.
pub fn resolve_integers(
    dim: i64,
    begin: Option<i64>,
    end: Option<i64>,
    step: i64,
    reading: Reading,
) -> Result<(i64, i64, i64), SliceError> {
    if step == 0 {
        return Err(SliceError::ZeroStep);
    }
    if dim <= 0 {
        return Ok((0, step, 0));
    }
    let forward = step > 0;
    let end = match end {
        Some(end) => reading.end_of(end, forward)?,
        None => None,
    };
    // Sums of three 64-bit integers fit in 128 bits.
    let (dim, wide_step) = (i128::from(dim), i128::from(step));
    let counted = |bound: i64| if bound < 0 { i128::from(bound) + dim } else { i128::from(bound) };
    let (lowest, highest) = if forward { (0, dim) } else { (-1, dim - 1) };
    let floor = if !forward && reading.floor == Floor::First { 0 } else { lowest };
    let open = if forward { (lowest, highest) } else { (highest, lowest) };
    #[allow(clippy::disallowed_methods, reason = "this is where indices are clamped")]
    let begin = begin.map_or(open.0, |begin| counted(begin).clamp(floor, highest));
    #[allow(clippy::disallowed_methods, reason = "this is where indices are clamped")]
    let end = end.map_or(open.1, |end| counted(end).clamp(lowest, highest));
    let distance = if forward { end - begin } else { begin - end };
    let len = if distance > 0 { (distance - 1) / wide_step.abs() + 1 } else { 0 };
    let start = if len > 0 { begin } else { 0 };
    // Both values lie in `[0, dim]`.
    Ok((start as i64, step, len as i64))
}

/// Resolves a symbolic range on an axis of `dim`, for every value of the symbols. Agrees with [`resolve_integers`] on
/// integers. An unknown bound or step, or a disputed end, gives a new symbol with bounds as the length.
///
/// # Errors
/// [`SliceError::ZeroStep`].
pub fn resolve(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> Result<Resolved, SliceError> {
    Ok(match lay(scope, dim, range, reading)? {
        Laid::Exactly(selection, len) => {
            Resolved { len: stated(scope, dim, len), selection: Some(selection), disputed: None }
        }
        Laid::AtMost(most, disputed) => Resolved { len: at_most(scope, &most), selection: None, disputed },
    })
}

/// Resolves a range exactly and adds no symbol to the scope. `None` if start or length is not known exactly.
pub fn resolve_exactly(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> Option<(Selection, Dim)> {
    match lay(scope, dim, range, reading) {
        Ok(Laid::Exactly(selection, len)) => Some((selection, len)),
        _ => None,
    }
}

/// The result of resolving a range: exact, or an upper bound.
enum Laid {
    Exactly(Selection, Dim),
    /// An upper bound of the length, and the disputed end, if any.
    AtMost(Dim, Option<i64>),
}

fn lay(scope: &Scope, dim: &Dim, range: &Range, reading: Reading) -> Result<Laid, SliceError> {
    let Some(step) = range.step else {
        return Ok(Laid::AtMost(dim.clone(), None));
    };
    if let (Some(dim), Some(begin), Some(end)) = (dim.as_const(), constant(&range.begin), constant(&range.end)) {
        match resolve_integers(dim, begin, end, step, reading) {
            Ok((start, step, len)) => {
                let selection = Selection { start: Dim::constant(start), step };
                return Ok(Laid::Exactly(selection, Dim::constant(len)));
            }
            Err(SliceError::Disputed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if step == 0 {
        return Err(SliceError::ZeroStep);
    }
    let mut begin = match &range.begin {
        Bound::Open => Some(None),
        Bound::At(at) => Some(Some(at)),
        Bound::Unknown => None,
    };
    let (mut end, disputed) = match reading.end(scope, &range.end, step > 0) {
        End::Open => (Some(None), None),
        End::At(at) => (Some(Some(at)), None),
        End::Unknown => (None, None),
        End::Disputed(end) => (None, Some(end)),
    };
    // With a run-time integer of unknown sign and a second bound, the length would be an expression too large to
    // reason about. The scope could not even prove that it is at least 0.
    let is_open = |bound: Option<Option<&Dim>>| matches!(bound, Some(at) if at.is_none_or(|at| at.is_const(0)));
    let is_run_time = |bound: Option<Option<&Dim>>| bound.flatten().is_some_and(|at| has_any_sign(scope, at));
    let both = (begin, end);
    begin = begin.filter(|_| is_open(both.1) || !is_run_time(both.0));
    end = end.filter(|_| is_open(both.0) || !is_run_time(both.1));
    // Opening a bound can only increase the length.
    let (start, most) = Symbolic { scope, dim, step }.lay(begin.flatten(), end.flatten(), reading.floor);
    let is_exact = begin.is_some() && end.is_some() || most.is_const(0);
    let is_readable =
        || !(is_run_time(begin) || is_run_time(end)) || scope.lower_bound(&most).is_some_and(|low| low >= 0);
    if is_exact && is_readable() {
        return Ok(Laid::Exactly(Selection { start, step }, most));
    }
    let most = if is_exact { dim.clone() } else { most };
    Ok(Laid::AtMost(most, disputed))
}

/// Returns `true` if the sign of a bound is unknown and the bound contains a symbol that may be negative.
fn has_any_sign(scope: &Scope, bound: &Dim) -> bool {
    let of_any_sign = |symbol| scope.lower_bound(&Dim::symbol(symbol)).is_none_or(|low| low < 0);
    bound.symbols().into_iter().any(of_any_sign) && {
        let zero = Dim::constant(0);
        !scope.ge(bound, &zero).is_yes() && !scope.lt(bound, &zero).is_yes()
    }
}

/// Returns the integer of a bound; `Some(None)` is open, `None` is no integer.
fn constant(bound: &Bound) -> Option<Option<i64>> {
    match bound {
        Bound::Open => Some(None),
        Bound::At(at) => at.as_const().map(Some),
        Bound::Unknown => None,
    }
}

/// Returns a new symbol for a length of at most `most`.
fn at_most(scope: &Scope, most: &Dim) -> Dim {
    let high = scope.upper_bound(most);
    if high == Some(0) {
        return Dim::constant(0);
    }
    let len = scope.fresh_within("slice", Some(0), high);
    if most.as_const().is_none() {
        scope.assume_le(&len, most);
    }
    len
}

/// Converts a bound to a position: adds `dim` to a negative bound.
pub(super) fn position(scope: &Scope, dim: &Dim, bound: &Dim) -> Dim {
    let zero = Dim::constant(0);
    if scope.ge(bound, &zero).is_yes() {
        return bound.clone();
    }
    if scope.lt(bound, &zero).is_yes() {
        return scope.add(bound, dim);
    }
    // The bound is at least `dim - 1`. It is negative only on an empty axis, where every position is equivalent.
    if scope.gt(bound, &scope.sub(dim, &Dim::constant(2))).is_yes() {
        return bound.clone();
    }
    let minus_one_if_negative = scope.max(&Dim::constant(-1), &scope.min(&zero, bound));
    scope.sub(bound, &scope.mul(dim, &minus_one_if_negative))
}

/// The position of a bound relative to axes of any length.
enum BoundPosition {
    /// Before the first element.
    Before,
    /// At this position, which may lie outside the axis.
    At(Dim),
    /// After the last element.
    After,
}

/// Resolves ranges on one axis with one step.
struct Symbolic<'s> {
    scope: &'s Scope,
    dim: &'s Dim,
    step: i64,
}

impl Symbolic<'_> {
    /// Returns start and length; `None` is an open bound.
    fn lay(&self, begin: Option<&Dim>, end: Option<&Dim>, floor: Floor) -> (Dim, Dim) {
        if self.step > 0 { self.lay_forward(begin, end) } else { self.lay_backward(begin, end, floor) }
    }

    fn lay_forward(&self, begin: Option<&Dim>, end: Option<&Dim>) -> (Dim, Dim) {
        let (scope, dim, zero) = (self.scope, self.dim, Dim::constant(0));
        let nothing = (zero.clone(), zero.clone());
        let begin = match begin.map(|begin| self.place(begin)) {
            Some(BoundPosition::After) => return nothing,
            Some(BoundPosition::At(begin)) => Some(begin).filter(|begin| !scope.le(begin, &zero).is_yes()),
            Some(BoundPosition::Before) | None => None,
        };
        let end = match end.map(|end| self.place(end)) {
            Some(BoundPosition::Before) => return nothing,
            Some(BoundPosition::At(end)) => Some(end).filter(|end| !scope.ge(end, dim).is_yes()),
            Some(BoundPosition::After) | None => None,
        };
        let start = begin.as_ref().map_or(zero.clone(), |begin| scope.max(begin, &zero));
        let (mut tops, mut bottoms) = (vec![dim.clone()], vec![zero]);
        tops.extend(end);
        bottoms.extend(begin);
        (start, self.count(&tops, &bottoms))
    }

    fn lay_backward(&self, begin: Option<&Dim>, end: Option<&Dim>, floor: Floor) -> (Dim, Dim) {
        let (scope, zero, before) = (self.scope, Dim::constant(0), Dim::constant(-1));
        let nothing = (zero.clone(), zero.clone());
        let last = scope.add(self.dim, &before);
        // Begin -1 is `dim - 1` even on an empty axis. It equals an open begin and needs no floor.
        let begin = match begin.filter(|begin| !begin.is_const(-1)).map(|begin| self.place(begin)) {
            Some(BoundPosition::Before) if floor == Floor::BeforeFirst => return nothing,
            Some(BoundPosition::Before) => Some(before.clone()),
            Some(BoundPosition::At(begin)) => Some(begin).filter(|begin| !scope.ge(begin, &last).is_yes()),
            Some(BoundPosition::After) | None => None,
        };
        let end = match end.map(|end| self.place(end)) {
            Some(BoundPosition::After) => return nothing,
            Some(BoundPosition::At(end)) => Some(end).filter(|end| !scope.le(end, &before).is_yes()),
            Some(BoundPosition::Before) | None => None,
        };
        let Some(begin) = begin else {
            let bottoms: Vec<Dim> = std::iter::once(before).chain(end).collect();
            return (last.clone(), self.count(&[last], &bottoms));
        };
        if floor == Floor::First && !scope.ge(&begin, &zero).is_yes() {
            let raised = scope.min(&scope.max(&zero, &begin), &last);
            return (raised, self.count_raised(&begin, end.as_ref()));
        }
        let start = scope.min(&begin, &last);
        let bottoms: Vec<Dim> = std::iter::once(before).chain(end).collect();
        (start, self.count(&[last, begin], &bottoms))
    }

    /// Returns the length of a backward range whose begin is raised to the first element. With `m = max(0, b)`, the
    /// length is the least of `d`, `m + 1` and `m - e`: `b` exceeds `d - 1` only where `m` does. A raised begin
    /// selects at most one element, so `max(1, b - e)` is an upper bound. The bound is redundant, but useful if it is
    /// a number.
    fn count_raised(&self, begin: &Dim, end: Option<&Dim>) -> Dim {
        let (scope, one) = (self.scope, Dim::constant(1));
        let raised = scope.max(&Dim::constant(0), begin);
        let last = scope.sub(self.dim, &one);
        let mut distances = vec![self.dim.clone(), scope.add(&raised, &one)];
        if let Some(end) = end {
            distances.extend([scope.sub(&raised, end), scope.sub(&last, end)]);
            let most = scope.max(&one, &scope.sub(begin, end));
            distances.extend(Some(most).filter(|most| most.as_const().is_some()));
        }
        self.least(distances)
    }

    /// Converts a bound to a position, without overflow.
    fn place(&self, bound: &Dim) -> BoundPosition {
        match bound.as_const() {
            // Such a bound lies beyond every axis, and sums with it could overflow.
            Some(LONGEST_AXIS..) => BoundPosition::After,
            Some(..BEFORE_EVERY_AXIS) => BoundPosition::Before,
            _ => BoundPosition::At(position(self.scope, self.dim, bound)),
        }
    }

    /// `max(0, ceil((min(tops) - max(bottoms)) / |step|))`.
    fn count(&self, tops: &[Dim], bottoms: &[Dim]) -> Dim {
        let pairs = tops.iter().flat_map(|top| bottoms.iter().map(move |bottom| self.scope.sub(top, bottom)));
        self.least(pairs.collect())
    }

    /// `max(0, ceil(min(distances) / |step|))`.
    fn least(&self, distances: Vec<Dim>) -> Dim {
        let scope = self.scope;
        // No axis is longer than 2⁶³ - 1: a step of that size selects at most one element.
        let step = i64::try_from(self.step.unsigned_abs()).ok().filter(|&step| step < i64::MAX);
        let mut terms: Vec<Dim> = Vec::new();
        let mut add = |term: Dim| {
            if terms.iter().any(|known| scope.le(known, &term).is_yes()) {
                return;
            }
            terms.retain(|known| !scope.le(&term, known).is_yes());
            terms.push(term);
        };
        for distance in distances {
            add(match step {
                Some(1) | None => distance,
                Some(step) => scope.ceil_div(&distance, &Dim::constant(step)),
            });
        }
        if step.is_none() {
            add(Dim::constant(1));
        }
        let mut terms = terms.into_iter();
        let Some(first) = terms.next() else { return Dim::constant(0) };
        let least = terms.fold(first, |least, term| scope.min(&least, &term));
        scope.max(&Dim::constant(0), &least)
    }
}

/// Returns the length, and adds `0 <= len <= dim` to the scope where the scope cannot prove it.
fn stated(scope: &Scope, dim: &Dim, len: Dim) -> Dim {
    let zero = Dim::constant(0);
    if !scope.ge(&len, &zero).is_yes() {
        scope.assume_le(&zero, &len);
    }
    if !scope.le(&len, dim).is_yes() {
        scope.assume_le(&len, dim);
    }
    len
}

/// Checks an index of an axis and counts it from the front.
///
/// # Errors
/// [`SliceError::IndexOutOfRange`] unless `-dim <= index < dim`.
pub fn index_integer(dim: i64, index: i64) -> Result<i64, SliceError> {
    let counted = if index < 0 { index.checked_add(dim) } else { Some(index) };
    counted.filter(|counted| (0..dim).contains(counted)).ok_or(SliceError::IndexOutOfRange { index, dim })
}

/// Checks a symbolic index and counts it from the front; `None` if the index is unknown.
///
/// # Errors
/// The index is outside the axis for every value of the symbols.
pub fn resolve_index(scope: &Scope, dim: &Dim, index: &Bound) -> Result<Option<Dim>, SliceError> {
    let Bound::At(index) = index else {
        return if dim.is_const(0) { Err(SliceError::IndexNeverInRange) } else { Ok(None) };
    };
    if let (Some(dim), Some(index)) = (dim.as_const(), index.as_const()) {
        return index_integer(dim, index).map(|at| Some(Dim::constant(at)));
    }
    if scope.ge(index, dim).is_yes() || scope.lt(&scope.add(index, dim), &Dim::constant(0)).is_yes() {
        return Err(SliceError::index(index, dim));
    }
    Ok(Some(position(scope, dim, index)))
}
