//! Arithmetic on symbolic elements, for shape computations.
//!
//! An integer element is a [`Dim`]. A float element that is not constant is `num / den` with `den` a power of two. It exists only
//! if the float operation is exact, so it represents the bits that a runtime computes.
//!
//! An element computed from sizes is exact only if the sizes fit its type. If bounds prove that, the element is the expression.
//! Otherwise the element is a fresh symbol ([`Scope::assumed`]) with proved bounds only, so no comparison, branch or rewrite
//! rests on it. Its nominal expression shapes sizes under two assumptions only:
//! - **In floating point, a size without an upper bound, or a sum of such sizes, is at most 2²⁴**; `float` represents all
//!   integers up to there. Results are then bounded, and are tracked if they are exact in their type: in `float`, `2·n` and
//!   `n / 4` are exact, `n·m` and `n / 3` are not. Run-time integers other than sizes get no such bound.
//! - **Products of sizes do not overflow `int32`, `uint32` or a 64-bit type**, if constant factors and terms leave room
//!   ([`Scope::fits_bits`]). Results from other integers, and in narrower types, are tracked only if they are proved to fit;
//!   else they are unknown integers.
//!
//! Rounding and wrapping depend only on the exact result, so equal results have one symbol. In 64 bits the expression represents
//! the wrapped integer (`dim/size.rs`); comparisons, divisions and casts read the integer ([`Scope::unwrapped`]).

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use super::remainder::floor_remainder;
use crate::dim::{Answer, Dim, Law, Scope, Symbol};
use crate::ir::Scalar;
use crate::tensor::DType;

mod cast;
mod choose;

/// The assumed maximum of sizes without an upper bound, in floating point.
const SIZE_LIMIT: i64 = 1 << 24;

/// The name of the law for rounding to a floating-point type.
const ROUNDED: &str = "rounded";

/// The largest tracked denominator.
const MAX_DEN: i64 = 1 << 20;

/// The maximum number of fresh symbols per tensor: shapes are short, masks are not.
const MAX_NEW: u32 = 64;

/// Arithmetic on elements of one type.
pub(in crate::ops) struct Elements<'s> {
    scope: &'s Scope,
    dtype: DType,
    /// Substitutes for sizes without an upper bound, if their value must be bounded.
    limited: RefCell<FxHashMap<Symbol, Dim>>,
    /// The remaining number of fresh symbols.
    room: Cell<u32>,
}

/// An order between two elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Equal,
    Less,
    LessOrEqual,
}

/// An exact real number `num / den`.
pub(in crate::ops) type Fraction = (Dim, i64);

impl<'s> Elements<'s> {
    /// Returns arithmetic with results of this type.
    pub(in crate::ops) fn new(scope: &'s Scope, dtype: DType) -> Self {
        Elements { scope, dtype, limited: RefCell::default(), room: Cell::new(MAX_NEW) }
    }

    /// Returns the scope of the symbols.
    pub(in crate::ops) fn scope(&self) -> &'s Scope {
        self.scope
    }

    /// Returns an integer as an element of the type: constants wrap, expressions must fit.
    pub(super) fn int(&self, dim: Dim) -> Scalar {
        let Some(bits) = self.dtype.bits() else { return Scalar::Unknown };
        let signed = self.dtype.is_signed_integer();
        if let Some(value) = dim.as_const() {
            let shift = (64usize.saturating_sub(bits)) as u32;
            let wrapped = match signed {
                true => value.wrapping_shl(shift).wrapping_shr(shift),
                // A `uint64` beyond the signed range has no expression.
                false if bits >= 64 && value < 0 => return Scalar::Unknown,
                false => ((value as u64).wrapping_shl(shift).wrapping_shr(shift)) as i64,
            };
            return Scalar::Int(Dim::constant(wrapped));
        }
        let (least, most) = limits(bits, signed);
        if self.scope.lies_within(&dim, least, most) {
            return Scalar::Int(dim);
        }
        if bits < 32 {
            return Scalar::Unknown;
        }
        match self.scope.fits_bits(&dim, bits, signed) {
            true if bits >= 64 || self.scope.trusts() => Scalar::Int(dim),
            true => {
                let law = Law { name: "wrapped", parameter: least.signum() * bits as i64, reach: most };
                let nominal = self.scope.nominal(&dim);
                Scalar::Int(self.scope.assumed(law, vec![dim], Some(nominal), (Some(least), Some(most))))
            }
            false => self.wrapped(bits, signed),
        }
    }

    /// Returns a symbol for an integer that may have wrapped.
    fn wrapped(&self, bits: usize, signed: bool) -> Scalar {
        match (bits, signed) {
            (64, true) => self.new_symbol("integer", None, None),
            (32, true) => self.new_symbol("integer", Some(i32::MIN.into()), Some(i32::MAX.into())),
            (32, false) => self.new_symbol("integer", Some(0), Some(u32::MAX.into())),
            _ => Scalar::Unknown,
        }
    }

    /// Returns a decided boolean, or a fresh symbol.
    pub(super) fn truth(&self, answer: Answer) -> Scalar {
        match answer {
            Answer::Yes => Scalar::Int(Dim::constant(1)),
            Answer::No => Scalar::Int(Dim::constant(0)),
            Answer::Unknown => self.new_symbol("truth", Some(0), Some(1)),
        }
    }

    /// Returns an unknown integer as a fresh symbol, up to the limit.
    fn new_symbol(&self, hint: &str, low: Option<i64>, high: Option<i64>) -> Scalar {
        match self.room.get().checked_sub(1) {
            Some(left) => {
                self.room.set(left);
                Scalar::Int(self.scope.fresh_integer(hint, low, high))
            }
            None => Scalar::Unknown,
        }
    }

    /// Returns the real number `num / den` as an element, if the type represents it exactly.
    pub(in crate::ops) fn real(&self, num: Dim, den: i64) -> Scalar {
        let (num, den) = self.reduced(num, den);
        if den > MAX_DEN {
            return Scalar::Unknown;
        }
        let (nominal, digits) = (self.scope.nominal(&num), self.digits());
        if self.exact(&num, den, &|dim, limit| self.scope.lies_within(dim, -limit, limit)) {
            return held(num, den);
        }
        if !self.exact(&nominal, den, &|dim, limit| self.within(dim, limit)) {
            return Scalar::Unknown;
        }
        if self.scope.trusts() {
            return held(num, den);
        }
        // The nearest float has the same sign, and is a multiple of the same fraction and power of two.
        let (odd, power) = self.odd_part(&num);
        let reach = 1i64 << digits;
        let low = self.scope.lower_bound(&odd).filter(|low| (0..=reach).contains(low));
        let law = Law { name: ROUNDED, parameter: i64::from(digits) << 32 | den, reach };
        let nominal = self.scope.nominal(&odd);
        let rounded = self.scope.assumed(law, vec![odd], Some(nominal), (low, None));
        held(self.scope.mul(&rounded, &power.into()), den)
    }

    /// Like `real`, for results that may be zero: negative zeros have no expression.
    fn real_unless_zero(&self, num: Dim, den: i64, sign_is_positive: bool) -> Scalar {
        if num.is_const(0) && !sign_is_positive { Scalar::Unknown } else { self.real(num, den) }
    }

    /// Like `real_unless_zero`, for a number that the type represents: a negated or integral operand.
    fn held_unless_zero(&self, num: Dim, den: i64, sign_is_positive: bool) -> Scalar {
        if num.is_const(0) && !sign_is_positive { Scalar::Unknown } else { held(num, den) }
    }

    /// Cancels common powers of two.
    fn reduced(&self, mut num: Dim, mut den: i64) -> Fraction {
        let two = Dim::constant(2);
        while den > 1
            && let Some(half) = self.scope.exact_div(&num, &two)
        {
            (num, den) = (half, den / 2);
        }
        (num, den)
    }

    /// Splits the dim into an odd part and a power of two.
    fn odd_part(&self, num: &Dim) -> (Dim, i64) {
        let two = Dim::constant(2);
        let (mut odd, mut power) = (num.clone(), 1i64);
        for _ in 0..32 {
            match self.scope.exact_div(&odd, &two) {
                Some(half) if !odd.is_const(0) => (odd, power) = (half, power * 2),
                _ => break,
            }
        }
        (odd, power)
    }

    /// Returns the significand bits of the type; 0 for types that are not tracked.
    fn digits(&self) -> u32 {
        match self.dtype {
            DType::Float => 24,
            DType::Double => 53,
            DType::Float16 => 11,
            DType::Bfloat16 => 8,
            _ => 0,
        }
    }

    /// Returns `true` if the type represents `num / den` for all values of `num`: a power of two in it needs no digits. `within`
    /// tests if a dim is bounded by a magnitude.
    fn exact(&self, num: &Dim, den: i64, within: &dyn Fn(&Dim, i64) -> bool) -> bool {
        let digits = self.digits();
        // Large values are out of range.
        if digits == 0 || self.dtype == DType::Float16 && !within(num, den << 15) {
            return false;
        }
        let (odd, _) = self.odd_part(num);
        let is_rounded = || {
            self.scope.law_of(&odd).is_some_and(|law| law.name == ROUNDED && law.parameter >> 32 == i64::from(digits))
        };
        is_rounded() || within(&odd, 1 << digits)
    }

    /// Returns `true` if `-limit ≤ dim ≤ limit`, under the assumption that sizes are below [`SIZE_LIMIT`].
    fn within(&self, dim: &Dim, limit: i64) -> bool {
        let inside = |(low, high): (Option<i64>, Option<i64>)| {
            low.is_some_and(|low| low >= -limit) && high.is_some_and(|high| high <= limit)
        };
        if let Some(value) = dim.as_const() {
            return inside((Some(value), Some(value)));
        }
        let bounds = self.scope.bounds(dim);
        if inside(bounds) {
            return true;
        }
        if let Some(symbol) = dim.as_symbol() {
            let size = bounds.0.is_some_and(|low| low >= -limit) && bounds.1.is_none();
            return size && self.limit_of(symbol).is_some() && SIZE_LIMIT <= limit;
        }
        let limited = self.scope.substitute(dim, &|symbol| self.limit_of(symbol));
        inside(self.scope.bounds(&limited)) || (SIZE_LIMIT <= limit && self.is_joint_size(dim))
    }

    /// Returns `true` if the dim is at most a sum of distinct sizes: concatenated sizes are sizes, too.
    fn is_joint_size(&self, dim: &Dim) -> bool {
        let symbols = dim.symbols();
        let sizes: Option<Vec<Dim>> =
            symbols.iter().map(|&symbol| self.limit_of(symbol).map(|_| Dim::symbol(symbol))).collect();
        let rest = sizes.map(|sizes| self.scope.sub(dim, &self.scope.sum(&sizes)));
        rest.and_then(|rest| rest.as_const()).is_some_and(|rest| (1 - SIZE_LIMIT..=1).contains(&rest))
    }

    /// Returns a symbol with the same lower bound and the assumed upper bound. Returns `None` for symbols that have an upper bound or
    /// are not sizes.
    fn limit_of(&self, symbol: Symbol) -> Option<Dim> {
        let own = Dim::symbol(symbol);
        let low = self.scope.lower_bound(&own).filter(|&low| (0..SIZE_LIMIT).contains(&low))?;
        if self.scope.upper_bound(&own).is_some() {
            return None;
        }
        let mut limited = self.limited.borrow_mut();
        let of_symbol = limited
            .entry(symbol)
            .or_insert_with(|| self.scope.fresh_within("limited", Some(low), Some(SIZE_LIMIT - 1)));
        Some(of_symbol.clone())
    }

    /// Returns the exact real value of a floating-point element.
    pub(in crate::ops) fn fraction(&self, element: &Scalar) -> Option<Fraction> {
        match element {
            Scalar::Real { num, den } => Some((num.clone(), *den)),
            // Negative zero differs from the number 0: operations may return different results.
            Scalar::Float(value) if value.is_finite() && !(*value == 0.0 && value.is_sign_negative()) => {
                let mut den = 1i64;
                let mut num = *value;
                while num.fract() != 0.0 && den < MAX_DEN {
                    num *= 2.0;
                    den *= 2;
                }
                let whole = num.fract() == 0.0 && num.abs() <= (1i64 << 53) as f64;
                whole.then(|| (Dim::constant(num as i64), den))
            }
            _ => None,
        }
    }

    /// Returns the value of a constant floating-point element.
    fn float(&self, element: &Scalar) -> Option<f64> {
        match element {
            Scalar::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Rounds a binary64 value to the type.
    pub(super) fn rounded(&self, value: f64) -> Scalar {
        match self.dtype {
            DType::Double => Scalar::Float(value),
            DType::Float => Scalar::Float(f64::from(value as f32)),
            DType::Float16 => Scalar::Float(half::f16::from_f32(value as f32).to_f64()),
            DType::Bfloat16 => Scalar::Float(half::bf16::from_f32(value as f32).to_f64()),
            _ => Scalar::Unknown,
        }
    }

    /// Returns two fractions with a common denominator.
    fn common(&self, a: &Scalar, b: &Scalar) -> Option<(Dim, Dim, i64)> {
        let ((a, a_den), (b, b_den)) = (self.fraction(a)?, self.fraction(b)?);
        let den = a_den.max(b_den);
        let scaled = |num: &Dim, of: i64| if of == den { num.clone() } else { self.scope.mul(num, &(den / of).into()) };
        Some((scaled(&a, a_den), scaled(&b, b_den), den))
    }

    /// Applies a binary operation: to integers, to float constants, or to exact fractions with a common denominator.
    fn combine(
        &self,
        a: &Scalar,
        b: &Scalar,
        ints: impl FnOnce(&Dim, &Dim) -> Option<Dim>,
        floats: impl FnOnce(f64, f64) -> f64,
        fractions: impl FnOnce(&Dim, &Dim, i64) -> Scalar,
    ) -> Scalar {
        if let (Scalar::Int(a), Scalar::Int(b)) = (a, b) {
            return ints(a, b).map_or(Scalar::Unknown, |dim| self.int(dim));
        }
        if let (Some(a), Some(b)) = (self.float(a), self.float(b)) {
            return self.rounded(floats(a, b));
        }
        self.common(a, b).map_or(Scalar::Unknown, |(a, b, den)| fractions(&a, &b, den))
    }

    /// Returns the sum.
    pub(in crate::ops) fn add(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let ints = |a: &Dim, b: &Dim| Some(self.scope.add(a, b));
        // If the sum cancels, it is +0, because neither operand is −0.
        self.combine(a, b, ints, |a, b| a + b, |a, b, den| self.real(self.scope.add(a, b), den))
    }

    /// Returns the difference.
    pub(super) fn sub(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let ints = |a: &Dim, b: &Dim| Some(self.scope.sub(a, b));
        self.combine(a, b, ints, |a, b| a - b, |a, b, den| self.real(self.scope.sub(a, b), den))
    }

    /// Returns the product. An integer 0 determines it for any other factor.
    pub(in crate::ops) fn mul(&self, a: &Scalar, b: &Scalar) -> Scalar {
        if [a, b].into_iter().any(|element| element.as_const_int() == Some(0)) {
            return Scalar::Int(Dim::constant(0));
        }
        let ints = |a: &Dim, b: &Dim| Some(self.scope.mul(a, b));
        let fractions = |_: &Dim, _: &Dim, _| {
            let Some(((a, a_den), (b, b_den))) = self.fraction(a).zip(self.fraction(b)) else { return Scalar::Unknown };
            let positive = self.not_negative(&a) && self.not_negative(&b);
            self.real_unless_zero(self.scope.mul(&a, &b), a_den.saturating_mul(b_den), positive)
        };
        self.combine(a, b, ints, |a, b| a * b, fractions)
    }

    /// Returns an integer divisor without 0, which a successful run excludes. `None` for the constant 0.
    fn divisor(&self, dim: &Dim) -> Option<Dim> {
        let one = Dim::constant(1);
        match dim.as_const() {
            Some(0) => None,
            None if self.not_negative(dim) => Some(self.scope.max(dim, &one)),
            _ => Some(dim.clone()),
        }
    }

    /// Returns the quotient; integer quotients are truncated.
    pub(super) fn div(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let ints = |a: &Dim, b: &Dim| {
            let (a, b) = self.unwrapped(a, b);
            self.divisor(&b).map(|b| self.scope.trunc_div(&a, &b))
        };
        let fractions = |_: &Dim, _: &Dim, _| {
            let Some(((a, a_den), (b, b_den))) = self.fraction(a).zip(self.fraction(b)) else { return Scalar::Unknown };
            self.divide((a, a_den), (b, b_den))
        };
        self.combine(a, b, ints, |a, b| a / b, fractions)
    }

    fn divide(&self, (a, a_den): Fraction, (b, b_den): Fraction) -> Scalar {
        // (a / a_den) / (b / b_den) = (a · b_den) / (b · a_den), with the sign moved to the numerator.
        let num = self.scope.mul(&a, &b_den.into());
        match b.as_const() {
            Some(0) => Scalar::Unknown,
            Some(divisor) => {
                let positive = divisor > 0 && self.not_negative(&a);
                let num = if divisor < 0 { self.scope.neg(&num) } else { num };
                let Some(divisor) = divisor.checked_abs() else { return Scalar::Unknown };
                let odd = divisor >> divisor.trailing_zeros();
                let den = a_den.saturating_mul(divisor / odd);
                match self.scope.exact_div(&num, &odd.into()) {
                    Some(num) => self.real_unless_zero(num, den, positive),
                    None => Scalar::Unknown,
                }
            }
            // A symbolic divisor must be proved nonzero and must divide exactly.
            None if self.scope.ge(&b, &Dim::constant(1)).is_yes() => match self.scope.exact_div(&num, &b) {
                Some(num) => self.real_unless_zero(num, a_den, self.not_negative(&a)),
                None => Scalar::Unknown,
            },
            None => Scalar::Unknown,
        }
    }

    /// Returns the remainder, with the sign of the dividend if `truncated` (C's `fmod`), else of the divisor.
    pub(super) fn modulo(&self, a: &Scalar, b: &Scalar, truncated: bool) -> Scalar {
        let ints = |a: &Dim, b: &Dim| {
            let (a, b) = self.unwrapped(a, b);
            let b = self.divisor(&b)?;
            if truncated && !(in_double(&a) && in_double(&b)) {
                return None;
            }
            Some(if truncated { self.scope.rem(&a, &b) } else { self.scope.modulo(&a, &b) })
        };
        let floats = |a: f64, b: f64| if truncated { a % b } else { floor_remainder(a, b) };
        let fractions = |a: &Dim, b: &Dim, den| {
            let positive = self.not_negative(a) && self.scope.ge(b, &Dim::constant(1)).is_yes();
            // Both remainders agree for nonnegative operands.
            if positive { held(self.scope.modulo(a, b), den) } else { Scalar::Unknown }
        };
        self.combine(a, b, ints, floats, fractions)
    }

    /// Returns the power for exponents 0 to 4.
    pub(super) fn pow(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let exponent = match b {
            Scalar::Int(dim) => dim.as_const(),
            Scalar::Float(value) if value.fract() == 0.0 && (0.0..=4.0).contains(value) => Some(*value as i64),
            _ => None,
        };
        let one = match a {
            Scalar::Int(_) => Scalar::Int(Dim::constant(1)),
            Scalar::Real { .. } => Scalar::Float(1.0),
            _ => return Scalar::Unknown,
        };
        match exponent {
            Some(exponent @ 0..=4) => match (0..exponent).fold(one, |power, _| self.mul(&power, a)) {
                Scalar::Int(power) if !in_double(&power) => Scalar::Unknown,
                power => power,
            },
            _ => Scalar::Unknown,
        }
    }

    /// Returns the minimum; NaN wins.
    pub(in crate::ops) fn min(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let floats = |a: f64, b: f64| if a <= b || a.is_nan() { a } else { b };
        let ints = |a: &Dim, b: &Dim| {
            let (a, b) = self.unwrapped(a, b);
            Some(self.scope.min(&a, &b))
        };
        self.combine(a, b, ints, floats, |a, b, den| held(self.scope.min(a, b), den))
    }

    /// Returns the maximum; NaN wins.
    pub(in crate::ops) fn max(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let floats = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
        let ints = |a: &Dim, b: &Dim| {
            let (a, b) = self.unwrapped(a, b);
            Some(self.scope.max(&a, &b))
        };
        self.combine(a, b, ints, floats, |a, b, den| held(self.scope.max(a, b), den))
    }

    /// Returns the negated element.
    pub(super) fn neg(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Int(dim) => self.int(self.scope.neg(dim)),
            Scalar::Float(value) => Scalar::Float(-value),
            Scalar::Real { num, den } => self.held_unless_zero(self.scope.neg(num), *den, false),
            Scalar::Unknown => Scalar::Unknown,
        }
    }

    /// Returns the absolute value.
    pub(super) fn abs(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Int(dim) => self.int(self.scope.abs(&self.scope.unwrapped(dim))),
            Scalar::Float(value) => Scalar::Float(value.abs()),
            Scalar::Real { num, den } => held(self.scope.abs(num), *den),
            Scalar::Unknown => Scalar::Unknown,
        }
    }

    /// Returns −1, 0 or 1: `max(−1, min(1, x))` for integers.
    pub(super) fn sign(&self, a: &Scalar) -> Scalar {
        let sign = |dim: &Dim| {
            let (one, minus_one) = (Dim::constant(1), Dim::constant(-1));
            self.scope.max(&minus_one, &self.scope.min(&one, dim))
        };
        match a {
            Scalar::Int(dim) => self.int(sign(&self.scope.unwrapped(dim))),
            Scalar::Real { num, .. } => held(sign(num), 1),
            _ => Scalar::Unknown,
        }
    }

    /// Returns the largest integer that is not larger.
    pub(super) fn floor(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Float(value) => self.rounded(value.floor()),
            Scalar::Real { num, den } => held(self.scope.floor_div(num, &(*den).into()), 1),
            _ => Scalar::Unknown,
        }
    }

    /// Returns the smallest integer that is not smaller; values between −1 and 0 become −0.
    pub(super) fn ceil(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Float(value) => self.rounded(value.ceil()),
            Scalar::Real { num, den } => {
                let whole = self.scope.ceil_div(num, &(*den).into());
                self.held_unless_zero(whole, 1, self.not_negative(num))
            }
            _ => Scalar::Unknown,
        }
    }

    /// Rounds to the nearest integer, ties to even.
    ///
    /// For `n / d` with even `d`: `⌊(n + d/2) / d⌋`, minus 1 if a half was rounded up to an odd number, that is if
    /// `n ≡ d/2 (mod 2d)`. The indicator of `x ≡ 0 (mod m)` is `⌊x / m⌋ − ⌊(x − 1) / m⌋`.
    pub(super) fn round(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Float(value) => self.rounded(libm::rint(*value)),
            Scalar::Real { num, den: 1 } => held(num.clone(), 1),
            Scalar::Real { num, den } => {
                let scope = self.scope;
                let nearest = scope.floor_div(&scope.add(num, &(den / 2).into()), &(*den).into());
                let period = Dim::constant(den * 2);
                let from_half = scope.sub(num, &(den / 2).into());
                let before = scope.sub(&from_half, &1.into());
                let tie = scope.sub(&scope.floor_div(&from_half, &period), &scope.floor_div(&before, &period));
                self.held_unless_zero(scope.sub(&nearest, &tie), 1, self.not_negative(num))
            }
            _ => Scalar::Unknown,
        }
    }

    /// Returns the integers that two expressions in 64 bits compute, for operations that depend on the order.
    fn unwrapped(&self, a: &Dim, b: &Dim) -> (Dim, Dim) {
        (self.scope.unwrapped(a), self.scope.unwrapped(b))
    }

    fn not_negative(&self, dim: &Dim) -> bool {
        self.scope.ge(dim, &Dim::constant(0)).is_yes()
    }
}

/// Returns the smallest and the largest integer of a type, limited to the range of expressions.
fn limits(bits: usize, signed: bool) -> (i64, i64) {
    let above = |bits: usize| if bits < 63 { (1i64 << bits) - 1 } else { i64::MAX };
    let most = above(bits.saturating_sub(usize::from(signed)));
    if signed { (-most - 1, most) } else { (0, most) }
}

/// Returns the real number `num / den`, which the type must represent.
fn held(num: Dim, den: i64) -> Scalar {
    match num.as_const() {
        Some(value) => Scalar::Float(value as f64 / den as f64),
        None => Scalar::Real { num, den },
    }
}

/// Returns `true` if a constant is exact in a double, in which ONNX Runtime computes integer powers and `fmod`. Sizes count as exact.
fn in_double(a: &Dim) -> bool {
    a.as_const().is_none_or(|value| value.unsigned_abs() <= 1 << 53)
}
