//! Arithmetic on elements that are expressions: what shape computations are made of.
//!
//! An integer element is a [`Dim`]; a floating-point element that is no constant is `num / den` with `den` a power of two, and
//! is only formed where the floating-point operation is exact, so that it stands for the very bits a runtime computes.
//!
//! An element computed from sizes is exact only while the sizes fit its type. If bounds prove that, the element is the expression.
//! Otherwise the element is a separate symbol ([`Scope::assumed`]) with proved bounds only, so no comparison, branch or rewrite rests on it. Its nominal expression shapes sizes under two assumptions, and no others:
//! - **In floating point, a size without an upper bound, or a sum of such, is at most 2²⁴**, up to which `float` holds every integer. Everything
//!   built from sizes is then bounded, and is followed as long as it is exact in its element type: `2·n` and `n / 4` are in
//!   `float`, `n·m` and `n / 3` are not. Run-time integers that are no sizes get no such bound.
//! - **Products of sizes do not overflow `int32`, `uint32` or a 64-bit type**, where the numbers they meet leave room ([`Scope::fits_bits`]). What is computed of
//!   other integers, and in narrower types, is followed only where it is proved to fit, and is an integer nobody knows
//!   otherwise.
//!
//! Rounding and wrapping depend on the exact result alone, so equal results have one symbol. In 64 bits the expression itself stands for
//! the wrapped integer (`dim/size.rs`); comparisons, divisions and casts read the integer ([`Scope::unwrapped`]).

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use super::remainder::floor_remainder;
use crate::dim::{Answer, Dim, Law, Scope, Symbol};
use crate::ir::Scalar;
use crate::tensor::DType;

mod cast;
mod choose;

/// What a size without an upper bound stays below in floating point.
const SIZE_LIMIT: i64 = 1 << 24;

/// The law of a number that is rounded to a floating-point type.
const ROUNDED: &str = "rounded";

/// The largest denominator that is followed.
const MAX_DEN: i64 = 1 << 20;

/// How many elements of one tensor may become symbols of their own: shapes are short, masks are not.
const MAX_NEW: u32 = 64;

/// Arithmetic on elements of one type.
pub(in crate::ops) struct Elements<'s> {
    scope: &'s Scope,
    dtype: DType,
    /// What stands for a size without an upper bound where its value must be bounded.
    limited: RefCell<FxHashMap<Symbol, Dim>>,
    /// How many symbols may still be made.
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
    /// Arithmetic whose results have this type.
    pub(in crate::ops) fn new(scope: &'s Scope, dtype: DType) -> Self {
        Elements { scope, dtype, limited: RefCell::default(), room: Cell::new(MAX_NEW) }
    }

    /// The symbols.
    pub(in crate::ops) fn scope(&self) -> &'s Scope {
        self.scope
    }

    /// An integer as an element of the type: constants wrap, expressions must fit.
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

    /// An integer that may have wrapped.
    fn wrapped(&self, bits: usize, signed: bool) -> Scalar {
        match (bits, signed) {
            (64, true) => self.new_symbol("integer", None, None),
            (32, true) => self.new_symbol("integer", Some(i32::MIN.into()), Some(i32::MAX.into())),
            (32, false) => self.new_symbol("integer", Some(0), Some(u32::MAX.into())),
            _ => Scalar::Unknown,
        }
    }

    /// A truth value that is decided, or else one of its own.
    pub(super) fn truth(&self, answer: Answer) -> Scalar {
        match answer {
            Answer::Yes => Scalar::Int(Dim::constant(1)),
            Answer::No => Scalar::Int(Dim::constant(0)),
            Answer::Unknown => self.new_symbol("truth", Some(0), Some(1)),
        }
    }

    /// An integer that nobody knows, as a symbol of its own while there is room.
    fn new_symbol(&self, hint: &str, low: Option<i64>, high: Option<i64>) -> Scalar {
        match self.room.get().checked_sub(1) {
            Some(left) => {
                self.room.set(left);
                Scalar::Int(self.scope.fresh_integer(hint, low, high))
            }
            None => Scalar::Unknown,
        }
    }

    /// The real number `num / den` as an element, if the type holds it exactly.
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
        // The nearest float is a multiple of the same fraction and of the same power of two, and of the same sign.
        let (odd, power) = self.odd_part(&num);
        let reach = 1i64 << digits;
        let low = self.scope.lower_bound(&odd).filter(|low| (0..=reach).contains(low));
        let law = Law { name: ROUNDED, parameter: i64::from(digits) << 32 | den, reach };
        let nominal = self.scope.nominal(&odd);
        let rounded = self.scope.assumed(law, vec![odd], Some(nominal), (low, None));
        held(self.scope.mul(&rounded, &power.into()), den)
    }

    /// The same where the result may be a zero: one that is negative in floating point has no expression.
    fn real_unless_zero(&self, num: Dim, den: i64, sign_is_positive: bool) -> Scalar {
        if num.is_const(0) && !sign_is_positive { Scalar::Unknown } else { self.real(num, den) }
    }

    /// The same of a number that the type holds, because an operand is one with its sign changed or its fraction taken away.
    fn held_unless_zero(&self, num: Dim, den: i64, sign_is_positive: bool) -> Scalar {
        if num.is_const(0) && !sign_is_positive { Scalar::Unknown } else { held(num, den) }
    }

    /// Takes common powers of two out of a fraction.
    fn reduced(&self, mut num: Dim, mut den: i64) -> Fraction {
        let two = Dim::constant(2);
        while den > 1
            && let Some(half) = self.scope.exact_div(&num, &two)
        {
            (num, den) = (half, den / 2);
        }
        (num, den)
    }

    /// The dim without the powers of two in it, and their product.
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

    /// The binary digits that the type holds; 0 of a type that is not followed.
    fn digits(&self) -> u32 {
        match self.dtype {
            DType::Float => 24,
            DType::Double => 53,
            DType::Float16 => 11,
            DType::Bfloat16 => 8,
            _ => 0,
        }
    }

    /// Whether the type holds `num / den` whatever `num` is: a power of two in it costs no digits. `within` tells whether a dim has at most
    /// some magnitude.
    fn exact(&self, num: &Dim, den: i64, within: &dyn Fn(&Dim, i64) -> bool) -> bool {
        let digits = self.digits();
        // Large ones are out of range.
        if digits == 0 || self.dtype == DType::Float16 && !within(num, den << 15) {
            return false;
        }
        let (odd, _) = self.odd_part(num);
        let is_rounded = || {
            self.scope.law_of(&odd).is_some_and(|law| law.name == ROUNDED && law.parameter >> 32 == i64::from(digits))
        };
        is_rounded() || within(&odd, 1 << digits)
    }

    /// Whether `-limit ≤ dim ≤ limit`, sizes being below [`SIZE_LIMIT`], which is an assumption.
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

    /// Whether the dim is a sum of sizes, each once, or a little less: what is joined from parts is a size like any other.
    fn is_joint_size(&self, dim: &Dim) -> bool {
        let symbols = dim.symbols();
        let sizes: Option<Vec<Dim>> =
            symbols.iter().map(|&symbol| self.limit_of(symbol).map(|_| Dim::symbol(symbol))).collect();
        let rest = sizes.map(|sizes| self.scope.sub(dim, &self.scope.sum(&sizes)));
        rest.and_then(|rest| rest.as_const()).is_some_and(|rest| (1 - SIZE_LIMIT..=1).contains(&rest))
    }

    /// A symbol with the same lower bound and the upper bound that is taken for granted; `None` for symbols that have an upper
    /// bound of their own or are no sizes.
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

    /// The exact real value of a floating-point element.
    pub(in crate::ops) fn fraction(&self, element: &Scalar) -> Option<Fraction> {
        match element {
            Scalar::Real { num, den } => Some((num.clone(), *den)),
            // A negative zero is not the number 0: what is made of it may differ.
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

    /// The value of a floating-point element that is a number.
    fn float(&self, element: &Scalar) -> Option<f64> {
        match element {
            Scalar::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// A value computed in binary64, rounded to the type.
    pub(super) fn rounded(&self, value: f64) -> Scalar {
        match self.dtype {
            DType::Double => Scalar::Float(value),
            DType::Float => Scalar::Float(f64::from(value as f32)),
            DType::Float16 => Scalar::Float(half::f16::from_f32(value as f32).to_f64()),
            DType::Bfloat16 => Scalar::Float(half::bf16::from_f32(value as f32).to_f64()),
            _ => Scalar::Unknown,
        }
    }

    /// Two fractions over one denominator.
    fn common(&self, a: &Scalar, b: &Scalar) -> Option<(Dim, Dim, i64)> {
        let ((a, a_den), (b, b_den)) = (self.fraction(a)?, self.fraction(b)?);
        let den = a_den.max(b_den);
        let scaled = |num: &Dim, of: i64| if of == den { num.clone() } else { self.scope.mul(num, &(den / of).into()) };
        Some((scaled(&a, a_den), scaled(&b, b_den), den))
    }

    /// Applies a binary operation: on integers, on floats that are numbers, or on exact fractions over one denominator.
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

    /// The sum.
    pub(in crate::ops) fn add(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let ints = |a: &Dim, b: &Dim| Some(self.scope.add(a, b));
        // What cancels is +0; neither operand is −0.
        self.combine(a, b, ints, |a, b| a + b, |a, b, den| self.real(self.scope.add(a, b), den))
    }

    /// The difference.
    pub(super) fn sub(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let ints = |a: &Dim, b: &Dim| Some(self.scope.sub(a, b));
        self.combine(a, b, ints, |a, b| a - b, |a, b, den| self.real(self.scope.sub(a, b), den))
    }

    /// The product. An integer 0 settles it whatever the other factor is.
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

    /// An integer divisor as a run that succeeds has it: not 0. `None` for the constant 0.
    fn divisor(&self, dim: &Dim) -> Option<Dim> {
        let one = Dim::constant(1);
        match dim.as_const() {
            Some(0) => None,
            None if self.not_negative(dim) => Some(self.scope.max(dim, &one)),
            _ => Some(dim.clone()),
        }
    }

    /// The quotient, truncated for integers.
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
        // (a / a_den) / (b / b_den) = (a · b_den) / (b · a_den), where the sign goes to the numerator.
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
            // A symbolic divisor must not be zero, and must divide for sure.
            None if self.scope.ge(&b, &Dim::constant(1)).is_yes() => match self.scope.exact_div(&num, &b) {
                Some(num) => self.real_unless_zero(num, a_den, self.not_negative(&a)),
                None => Scalar::Unknown,
            },
            None => Scalar::Unknown,
        }
    }

    /// The remainder: of the sign of the dividend (`truncated`, C's `fmod`), or else of the divisor.
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
            // With neither negative both remainders are one.
            if positive { held(self.scope.modulo(a, b), den) } else { Scalar::Unknown }
        };
        self.combine(a, b, ints, floats, fractions)
    }

    /// The power, for the exponents 0 to 4.
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

    /// The smaller one; NaN wins.
    pub(in crate::ops) fn min(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let floats = |a: f64, b: f64| if a <= b || a.is_nan() { a } else { b };
        let ints = |a: &Dim, b: &Dim| {
            let (a, b) = self.unwrapped(a, b);
            Some(self.scope.min(&a, &b))
        };
        self.combine(a, b, ints, floats, |a, b, den| held(self.scope.min(a, b), den))
    }

    /// The larger one; NaN wins.
    pub(in crate::ops) fn max(&self, a: &Scalar, b: &Scalar) -> Scalar {
        let floats = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
        let ints = |a: &Dim, b: &Dim| {
            let (a, b) = self.unwrapped(a, b);
            Some(self.scope.max(&a, &b))
        };
        self.combine(a, b, ints, floats, |a, b, den| held(self.scope.max(a, b), den))
    }

    /// The negative.
    pub(super) fn neg(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Int(dim) => self.int(self.scope.neg(dim)),
            Scalar::Float(value) => Scalar::Float(-value),
            Scalar::Real { num, den } => self.held_unless_zero(self.scope.neg(num), *den, false),
            Scalar::Unknown => Scalar::Unknown,
        }
    }

    /// The absolute value.
    pub(super) fn abs(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Int(dim) => self.int(self.scope.abs(&self.scope.unwrapped(dim))),
            Scalar::Float(value) => Scalar::Float(value.abs()),
            Scalar::Real { num, den } => held(self.scope.abs(num), *den),
            Scalar::Unknown => Scalar::Unknown,
        }
    }

    /// −1, 0 or 1: `max(−1, min(1, x))` for integers.
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

    /// The largest whole number that is no larger.
    pub(super) fn floor(&self, a: &Scalar) -> Scalar {
        match a {
            Scalar::Float(value) => self.rounded(value.floor()),
            Scalar::Real { num, den } => held(self.scope.floor_div(num, &(*den).into()), 1),
            _ => Scalar::Unknown,
        }
    }

    /// The smallest whole number that is no smaller; what lies between −1 and 0 becomes −0.
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

    /// The nearest whole number, of two the even one.
    ///
    /// For `n / d` with even `d`: `⌊(n + d/2) / d⌋`, less 1 where that rounded a half up to an odd number, which is where
    /// `n ≡ d/2 (mod 2d)`. Whether `x ≡ 0 (mod m)` is `⌊x / m⌋ − ⌊(x − 1) / m⌋`.
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

/// The least and the largest integer of a type, as far as expressions reach.
fn limits(bits: usize, signed: bool) -> (i64, i64) {
    let above = |bits: usize| if bits < 63 { (1i64 << bits) - 1 } else { i64::MAX };
    let most = above(bits.saturating_sub(usize::from(signed)));
    if signed { (-most - 1, most) } else { (0, most) }
}

/// The real number `num / den`, of which is known that the type holds it.
fn held(num: Dim, den: i64) -> Scalar {
    match num.as_const() {
        Some(value) => Scalar::Float(value as f64 / den as f64),
        None => Scalar::Real { num, den },
    }
}

/// Whether a constant is exact in a double, in which ONNX Runtime computes powers and `fmod` of integers. Sizes are.
fn in_double(a: &Dim) -> bool {
    a.as_const().is_none_or(|value| value.unsigned_abs() <= 1 << 53)
}
