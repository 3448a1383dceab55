//! The largest dim up to which `⌊n · scale⌋` equals `⌊n·p/q⌋`, computed without enumerating dims.
//!
//! The standard multiplies exactly; runtimes round the product to binary32 first. Let the scale be `s`,
//! `n·p = v·q + r` with `0 ≤ r < q`, and `D = n·s − v`. The exact product yields `v` if `0 ≤ D < 1`. The rounded product yields
//! more if it reaches `v + 1`. Rounding is monotonic and `v + 1` is a binary32, so this happens if `D ≥ 1 − w/2`, with `w` the
//! distance from `v + 1` to the next smaller binary32 (at equality, if the even neighbor is above). It yields less only if the
//! exact product does, at `D < 0`. For one remainder `r`, and `v` between two powers of two, `w` is constant and `D` is linear
//! in `n`. So the smallest such `n` solves one inequality.

/// Integers up to this are exact in binary32.
const EXACT: i64 = 1 << 24;
/// The largest denominator to try.
const LARGEST: i64 = 1 << 10;
/// The number of fractional bits of a scale.
const DIGITS: u32 = 44;

/// A fraction that gives the sizes of both the standard and runtimes, up to a largest dim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ScaleLaw {
    /// `p` and `q`.
    pub fraction: (i64, i64),
    /// The law holds for all dims up to this one.
    pub reach: i64,
    /// `true` if the scale equals this fraction, so the law holds while each product is exact in binary32.
    pub is_exact: bool,
}

impl ScaleLaw {
    /// Returns the law with the largest reach, among the best fractions near a scale.
    pub(super) fn of(scale: f32) -> Option<ScaleLaw> {
        let parts = Parts::of(scale)?;
        let mut candidates = convergents(scale);
        candidates.extend(fraction(scale));
        let laws = candidates.into_iter().filter(|(top, _)| *top > 0).map(|fraction| parts.law(scale, fraction));
        laws.reduce(|best, law| if law.reach > best.reach { law } else { best })
    }
}

/// Returns `⌊dim · scale⌋` with a binary32 product, as in runtimes; `None` if it is not a size.
pub(super) fn scaled(dim: i64, scale: f32) -> Option<i64> {
    let size = (dim as f32 * scale).floor();
    (0.0..9.0e15).contains(&size).then_some(size as i64)
}

/// Returns the size by the standard: the exact product, rounded down. Binary64 is exact for all dims below 2²⁹; for larger ones,
/// the standard's own inference rounds, too.
pub(super) fn scaled_exactly(dim: i64, scale: f32) -> Option<i64> {
    let size = (dim as f64 * f64::from(scale)).floor();
    (0.0..9.0e15).contains(&size).then_some(size as i64)
}

/// A scale as `whole / 2^DIGITS`.
struct Parts {
    whole: i128,
}

impl Parts {
    /// Returns `None` if the scale is not positive, is too large, or has more digits.
    fn of(scale: f32) -> Option<Parts> {
        let wide = f64::from(scale) * (1u64 << DIGITS) as f64;
        let is_held = scale > 0.0 && scale < EXACT as f32 && wide.fract() == 0.0;
        is_held.then_some(Parts { whole: wide as i128 })
    }

    fn law(&self, scale: f32, fraction: (i64, i64)) -> ScaleLaw {
        let (top, bottom) = fraction;
        let is_exact = self.whole * i128::from(bottom) == i128::from(top) << DIGITS;
        // Multiplying by a power of two is exact.
        let most = match is_exact && top.count_ones() == 1 {
            true => return ScaleLaw { fraction, reach: EXACT, is_exact },
            false => EXACT.min((EXACT - 1).saturating_mul(bottom) / top.max(1)),
        };
        let reach = (0..bottom).filter_map(|first| self.first_difference(scale, fraction, first, most)).min();
        ScaleLaw { fraction, reach: reach.map_or(most, |first| first - 1), is_exact }
    }

    /// Returns the smallest of the dims `first`, `first + q`, … up to `most` for which the standard or runtimes have another size.
    fn first_difference(&self, scale: f32, (top, bottom): (i64, i64), first: i64, most: i64) -> Option<i64> {
        // All inequalities are multiplied by q · 2^(DIGITS + 25); the spacing below a power of two `2^e` is 2^(e − 24).
        const FINEST: u32 = 25;
        let slope = (self.whole * i128::from(bottom) - (i128::from(top) << DIGITS)) << FINEST;
        let one = i128::from(bottom) << (DIGITS + FINEST);
        let start = i128::from((first * top).rem_euclid(bottom)) << (DIGITS + FINEST);
        let differs = |n: i64| {
            let size = Some((n * top).div_euclid(bottom));
            scaled(n, scale) != size || scaled_exactly(n, scale) != size
        };
        let mut found: Option<i64> = None;
        // The size lies in [from, to): 0, then the intervals between powers of two.
        for exponent in 0..=24u32 {
            let (from, to) = if exponent == 0 { (0, 1) } else { (1i64 << (exponent - 1), 1i64 << exponent) };
            let low = (from * bottom + top - 1).div_euclid(top).max(0);
            let high = (to * bottom - 1).div_euclid(top).min(most);
            let low = low + (first - low).rem_euclid(bottom);
            if low > high || found.is_some_and(|found| found < low) {
                continue;
            }
            // Half the spacing below `v + 1`, which is at most `to`.
            let half = one >> (FINEST - exponent);
            let reaches = |bound: i128, sign: i128| -> Option<i64> {
                // sign · (slope·n + start) ≥ bound
                let (slope, need) = (sign * slope, bound - sign * start);
                let at = if slope > 0 { -((-need).div_euclid(slope)) } else { i128::from(low) };
                let at = i64::try_from(at.max(i128::from(low))).ok()?;
                Some(at + (low - at).rem_euclid(bottom)).filter(|at| *at <= high)
            };
            // If the rounded product is below `v`, so is the exact one.
            let candidates = [reaches(one - half, 1), reaches(1, -1)];
            for candidate in candidates.into_iter().flatten() {
                // At equality the even neighbor wins, so a later candidate may be the first difference.
                let near = (0..3).map(|step| candidate + step * bottom).filter(|n| *n <= high);
                found = near.into_iter().find(|&n| differs(n)).into_iter().chain(found).min();
            }
        }
        found
    }
}

/// Returns a positive float as a reduced fraction whose denominator is a power of two; `None` if its terms are large.
fn fraction(value: f32) -> Option<(i64, i64)> {
    let mut denominator = 1i64;
    let mut numerator = f64::from(value);
    while numerator.fract() != 0.0 {
        numerator *= 2.0;
        denominator = denominator.checked_mul(2).filter(|&most| most <= LARGEST)?;
    }
    (numerator <= EXACT as f64).then_some((numerator as i64, denominator))
}

/// Returns the best fractions near a positive float, up to a largest denominator. The decimal 2.3 is not 23/10 in binary32, but
/// its rounded products equal those of 23/10.
fn convergents(value: f32) -> Vec<(i64, i64)> {
    let (mut before, mut last) = ((0i64, 1i64), (1i64, 0i64));
    let mut found = Vec::new();
    let mut rest = f64::from(value);
    // After the first step, each integral part is at least 1, so the denominators grow like Fibonacci numbers.
    while rest.is_finite() && rest < EXACT as f64 {
        let whole = rest.floor() as i64;
        let (next_top, next_bottom) = (whole * last.0 + before.0, whole * last.1 + before.1);
        if next_bottom > LARGEST || next_top > EXACT {
            break;
        }
        (before, last) = (last, (next_top, next_bottom));
        found.push(last);
        rest = (rest - rest.floor()).recip();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(scale: f32) -> (i64, i64, i64) {
        let law = ScaleLaw::of(scale).unwrap();
        (law.fraction.0, law.fraction.1, law.reach)
    }

    #[test]
    fn laws_reach_as_far_as_the_arithmetic_says() {
        assert_eq!(law(2.0), (2, 1, 1 << 24));
        assert_eq!(law(0.5), (1, 2, 1 << 24));
        assert_eq!(law(0.125), (1, 8, 1 << 24));
        assert_eq!(law(1.7), (17, 10, 786_436));
        // 0.7 in binary32 is below 7/10: the standard returns 6 for 10, runtimes return 7.
        assert_eq!(law(0.7).2, 9);
        assert!(ScaleLaw::of(f32::INFINITY).is_none() && ScaleLaw::of(0.0).is_none() && ScaleLaw::of(1e-30).is_none());
    }

    #[test]
    fn no_dim_within_reach_differs_and_the_next_one_does() {
        for scale in [1.5, 3.0, 0.75, 1.7, 2.3, 1.0 / 3.0, 2.94, 0.6, 1.1, 5.0 / 7.0, 0.3, 33.3] {
            let ScaleLaw { fraction: (top, bottom), reach, is_exact } = ScaleLaw::of(scale).unwrap();
            let differs = |n: i64| {
                let size = Some(n * top / bottom);
                scaled(n, scale) != size || scaled_exactly(n, scale) != size
            };
            assert!((0..=reach).all(|n| !differs(n)), "{scale}");
            assert!(differs(reach + 1) || reach * top / bottom + 2 >= EXACT - top, "{scale} {reach} {is_exact}");
        }
    }
}
