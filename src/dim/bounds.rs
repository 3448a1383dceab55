//! Interval arithmetic over the canonical form.

use super::integer::floor_quotient;

/// All integers from `low` to `high`, both included; `None` is the absence of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub(super) low: Option<i128>,
    pub(super) high: Option<i128>,
}

/// One end of an interval, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Below,
    At(i128),
    Above,
}

impl End {
    fn times(self, other: End) -> End {
        if let (End::At(a), End::At(b)) = (self, other)
            && let Some(product) = a.checked_mul(b)
        {
            return End::At(product);
        }
        match self.sign() * other.sign() {
            0 => End::At(0),
            1 => End::Above,
            _ => End::Below,
        }
    }

    fn sign(self) -> i32 {
        match self {
            End::Below => -1,
            End::At(value) => value.signum() as i32,
            End::Above => 1,
        }
    }

    /// Returns the value as a lower bound. A number above the largest `i128` is at least that `i128`.
    fn as_low(self) -> Option<i128> {
        match self {
            End::Below => None,
            End::At(value) => Some(value),
            End::Above => Some(i128::MAX),
        }
    }

    fn as_high(self) -> Option<i128> {
        match self {
            End::Below => Some(i128::MIN),
            End::At(value) => Some(value),
            End::Above => None,
        }
    }
}

impl Interval {
    pub(super) const ANY: Interval = Interval { low: None, high: None };

    pub(super) fn at_least(low: i128) -> Interval {
        Interval { low: Some(low), high: None }
    }

    pub(super) fn point(value: i128) -> Interval {
        Interval { low: Some(value), high: Some(value) }
    }

    pub(super) fn is_non_negative(self) -> bool {
        self.low.is_some_and(|low| low >= 0)
    }

    pub(super) fn is_non_positive(self) -> bool {
        self.high.is_some_and(|high| high <= 0)
    }

    /// Returns the only value, if the interval has just one.
    pub(super) fn single(self) -> Option<i128> {
        self.low.filter(|_| self.low == self.high)
    }

    pub(super) fn intersect(self, other: Interval) -> Interval {
        let low = self.low.max(other.low);
        let high = match (self.high, other.high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Interval { low, high }
    }

    /// Moves both ends inwards to multiples of `factor`, which is positive.
    pub(super) fn shrink_to_multiples(self, factor: i64) -> Interval {
        let factor = i128::from(factor.max(1));
        let down = |bound: i128| floor_quotient(bound, factor)?.checked_mul(factor);
        let up = |bound: i128| floor_quotient(bound.checked_add(factor)?.checked_sub(1)?, factor)?.checked_mul(factor);
        Interval { low: self.low.and_then(up), high: self.high.and_then(down) }
    }

    /// Returns the integers `s` with `coefficient · s + offset ≥ 0`.
    pub(super) fn of_affine_root(coefficient: i64, offset: i64) -> Interval {
        let (coefficient, offset) = (i128::from(coefficient), i128::from(offset));
        // s ≥ ⌈−offset / c⌉ = −⌊offset / c⌋ for c > 0; s ≤ ⌊offset / −c⌋ for c < 0.
        match coefficient {
            1.. => Interval { low: floor_quotient(offset, coefficient).map(|q| -q), high: None },
            _ => Interval { low: None, high: floor_quotient(offset, -coefficient) },
        }
    }

    pub(super) fn plus(self, other: Interval) -> Interval {
        let add = |a: Option<i128>, b: Option<i128>| a?.checked_add(b?);
        Interval { low: add(self.low, other.low), high: add(self.high, other.high) }
    }

    pub(super) fn scaled(self, factor: i128) -> Interval {
        let scale = |bound: Option<i128>| bound?.checked_mul(factor);
        match factor {
            0 => Interval::point(0),
            1.. => Interval { low: scale(self.low), high: scale(self.high) },
            _ => Interval { low: scale(self.high), high: scale(self.low) },
        }
    }

    pub(super) fn times(self, other: Interval) -> Interval {
        // A fast path for sizes, the most frequent operands: the corners are the ends.
        if let (Some(low), Some(other_low), None, None) = (self.low, other.low, self.high, other.high)
            && low >= 0
            && other_low >= 0
        {
            let high = None;
            return Interval { low: Some(low.checked_mul(other_low).unwrap_or(i128::MAX)), high };
        }
        let corners = self.ends().map(|a| other.ends().map(|b| a.times(b)));
        let [low, high] = corners
            .into_iter()
            .flatten()
            .fold([End::Above, End::Below], |[low, high], corner| [low.min(corner), high.max(corner)]);
        Interval { low: low.as_low(), high: high.as_high() }
    }

    fn ends(self) -> [End; 2] {
        [self.low.map_or(End::Below, End::At), self.high.map_or(End::Above, End::At)]
    }

    pub(super) fn power(self, exponent: u32) -> Interval {
        if exponent == 1 {
            return self;
        }
        let pow = |bound: Option<i128>| bound?.checked_pow(exponent);
        let odd = Interval { low: pow(self.low), high: pow(self.high) };
        if exponent % 2 == 1 || self.is_non_negative() {
            return odd;
        }
        if self.is_non_positive() {
            return Interval { low: odd.high, high: odd.low };
        }
        let high = odd.low.zip(odd.high).map(|(a, b)| a.max(b));
        Interval { low: Some(0), high }
    }

    /// Returns the floor of the quotient; `denominator` is at least 1.
    pub(super) fn floor_over(self, denominator: Interval) -> Interval {
        let least = denominator.low.unwrap_or(1).max(1);
        let over = |bound: Option<i128>, by: i128| floor_quotient(bound?, by);
        // A larger divisor moves a quotient above 0 towards 0, and one below towards −1.
        let low = match self.low {
            Some(low) if low >= 0 => Some(denominator.high.map_or(0, |most| low / most.max(1))),
            low => over(low, least),
        };
        let high = match self.high {
            Some(high) if high < 0 => {
                Some(denominator.high.and_then(|most| floor_quotient(high, most.max(1))).unwrap_or(-1))
            }
            high => over(high, least),
        };
        Interval { low, high }
    }
}
