//! The Rust types of elements, and dispatch by element type.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

use super::dtype::DType;
use super::smallfloat::{self, Format};

/// A Rust type whose memory is one element of a dense payload, except for byte order.
pub trait Element: Pod + Send + Sync {
    /// The element type.
    const DTYPE: DType;

    /// The numbers per element: 2 for complex types. Big-endian hosts swap bytes within a number.
    const COMPONENTS: usize = 1;
}

macro_rules! elements {
    ($($type:ty = $dtype:ident;)*) => {
        $(impl Element for $type { const DTYPE: DType = DType::$dtype; })*
    };
}

elements! {
    f32 = Float; f64 = Double; f16 = Float16; bf16 = Bfloat16;
    i8 = Int8; i16 = Int16; i32 = Int32; i64 = Int64;
    u8 = Uint8; u16 = Uint16; u32 = Uint32; u64 = Uint64;
    Bool = Bool;
    F8E4M3Fn = Float8E4M3FN; F8E4M3Fnuz = Float8E4M3FNUZ; F8E5M2 = Float8E5M2; F8E5M2Fnuz = Float8E5M2FNUZ;
    F8E8M0 = Float8E8M0;
}

impl Element for Complex64 {
    const DTYPE: DType = DType::Complex64;
    const COMPONENTS: usize = 2;
}

impl Element for Complex128 {
    const DTYPE: DType = DType::Complex128;
    const COMPONENTS: usize = 2;
}

/// A stored boolean: one byte, true unless zero. A file may contain any byte; equality compares truth.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(truth: bool) -> Bool {
        Bool(truth.into())
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

/// Real and imaginary part in binary32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Complex64(pub [f32; 2]);

/// Real and imaginary part in binary64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Complex128(pub [f64; 2]);

macro_rules! small_floats {
    ($($(#[$doc:meta])* $name:ident = $format:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
            #[repr(transparent)]
            pub struct $name(pub u8);

            impl $name {
                /// Returns the exact value.
                pub fn to_f32(self) -> f32 {
                    Format::$format.decode(self.0)
                }
            }
        )*
    };
}

small_floats! {
    /// The bits of a `float8e4m3fn`; equality compares bits.
    F8E4M3Fn = E4M3FN;
    /// The bits of a `float8e4m3fnuz`; equality compares bits.
    F8E4M3Fnuz = E4M3FNUZ;
    /// The bits of a `float8e5m2`; equality compares bits.
    F8E5M2 = E5M2;
    /// The bits of a `float8e5m2fnuz`; equality compares bits.
    F8E5M2Fnuz = E5M2FNUZ;
}

/// The bits of a `float8e8m0`, a power of two; equality compares bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E8M0(pub u8);

impl F8E8M0 {
    /// Returns the exact value.
    pub fn to_f32(self) -> f32 {
        smallfloat::decode_e8m0(self.0)
    }
}

/// The real element types with arithmetic: integers of 8 to 64 bits and floats of 16 to 64 bits.
///
/// Integers wrap in two's complement. `float16` and `bfloat16` compute each operation in binary32 and round once, which is the
/// correctly rounded result.
pub trait Number: Element + PartialOrd {
    /// `true` for floating-point types.
    const FLOAT: bool;

    fn zero() -> Self;
    fn one() -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    /// Returns the quotient, truncated for integers; `None` if an integer is divided by zero or the quotient overflows.
    fn div(self, other: Self) -> Option<Self>;

    /// Returns the remainder with the sign of the dividend, like C's `fmod`; `None` if an integer is divided by zero. The smallest
    /// integer modulo −1 is 0.
    fn rem(self, other: Self) -> Option<Self>;

    /// Returns the negated number; unsigned integers wrap.
    fn neg(self) -> Self;

    /// Returns the absolute value; the smallest integer wraps to itself.
    fn abs(self) -> Self;

    /// Converts to binary64: rounds 64-bit integers above 2⁵³ to nearest; exact otherwise.
    fn to_f64(self) -> f64;

    /// Floats round to nearest, ties to even; integers truncate. `None` if out of range or NaN.
    fn from_f64(value: f64) -> Option<Self>;

    /// Floats truncate. `None` if out of range or NaN.
    fn to_i64(self) -> Option<i64>;

    /// Floats round to nearest, ties to even; integers keep the low bits, like the standard's Cast.
    fn from_i64(value: i64) -> Self;
}

macro_rules! integers {
    ($($type:ident: $abs:path;)*) => {
        $(impl Number for $type {
            const FLOAT: bool = false;
            fn zero() -> Self { 0 }
            fn one() -> Self { 1 }
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn div(self, other: Self) -> Option<Self> { self.checked_div(other) }
            fn rem(self, other: Self) -> Option<Self> { (other != 0).then(|| self.wrapping_rem(other)) }
            fn neg(self) -> Self { self.wrapping_neg() }
            fn abs(self) -> Self { $abs(self) }
            fn to_f64(self) -> f64 { self as f64 }
            fn from_f64(value: f64) -> Option<Self> {
                // Both bounds are powers of two (or 0) and therefore exact in binary64; MAX may not be.
                let end = ($type::MAX / 2 + 1) as f64 * 2.0;
                let whole = value.trunc();
                (whole >= $type::MIN as f64 && whole < end).then_some(whole as $type)
            }
            fn to_i64(self) -> Option<i64> { i64::try_from(self).ok() }
            fn from_i64(value: i64) -> Self { value as $type }
        })*
    };
}

integers! {
    i8: i8::wrapping_abs; i16: i16::wrapping_abs; i32: i32::wrapping_abs; i64: i64::wrapping_abs;
    u8: std::convert::identity; u16: std::convert::identity; u32: std::convert::identity; u64: std::convert::identity;
}

macro_rules! floats {
    ($($type:ident;)*) => {
        $(impl Number for $type {
            const FLOAT: bool = true;
            fn zero() -> Self { 0.0 }
            fn one() -> Self { 1.0 }
            fn add(self, other: Self) -> Self { self + other }
            fn sub(self, other: Self) -> Self { self - other }
            fn mul(self, other: Self) -> Self { self * other }
            fn div(self, other: Self) -> Option<Self> { Some(self / other) }
            fn rem(self, other: Self) -> Option<Self> { Some(self % other) }
            fn neg(self) -> Self { -self }
            fn abs(self) -> Self { $type::abs(self) }
            fn to_f64(self) -> f64 { self.into() }
            fn from_f64(value: f64) -> Option<Self> { Some(value as $type) }
            fn to_i64(self) -> Option<i64> { <i64 as Number>::from_f64(self.into()) }
            fn from_i64(value: i64) -> Self { value as $type }
        })*
    };
}

floats! { f32; f64; }

macro_rules! half_floats {
    ($($type:ident;)*) => {
        $(impl Number for $type {
            const FLOAT: bool = true;
            fn zero() -> Self { $type::ZERO }
            fn one() -> Self { $type::ONE }
            fn add(self, other: Self) -> Self { $type::from_f32(self.to_f32() + other.to_f32()) }
            fn sub(self, other: Self) -> Self { $type::from_f32(self.to_f32() - other.to_f32()) }
            fn mul(self, other: Self) -> Self { $type::from_f32(self.to_f32() * other.to_f32()) }
            fn div(self, other: Self) -> Option<Self> { Some($type::from_f32(self.to_f32() / other.to_f32())) }
            fn rem(self, other: Self) -> Option<Self> { Some($type::from_f32(self.to_f32() % other.to_f32())) }
            fn neg(self) -> Self { -self }
            fn abs(self) -> Self { $type::from_bits(self.to_bits() & 0x7fff) }
            fn to_f64(self) -> f64 { $type::to_f64(self) }
            fn from_f64(value: f64) -> Option<Self> { Some($type::from_f32(narrowed_to_odd(value))) }
            fn to_i64(self) -> Option<i64> { <i64 as Number>::from_f64($type::to_f64(self)) }
            fn from_i64(value: i64) -> Self { $type::from_f32(narrowed_to_odd(widened_to_odd(value))) }
        })*
    };
}

half_floats! { f16; bf16; }

/// Rounds to the nearest binary16 number, ties to even. `f16::from_f64` rounds twice on machines whose instruction converts only
/// from binary32.
pub fn nearest_f16(value: f64) -> f16 {
    f16::from_f32(narrowed_to_odd(value))
}

/// Rounds to the nearest bfloat16 number, ties to even.
pub fn nearest_bf16(value: f64) -> bf16 {
    bf16::from_f32(narrowed_to_odd(value))
}

// Rounding to a middle format and then to a narrow one can differ from rounding once, because the first result may be a tie.
// Rounding to odd first avoids this: it truncates, and sets the last bit of inexact results.

/// Rounds to binary32, to odd.
fn narrowed_to_odd(value: f64) -> f32 {
    let near = value as f32;
    if value.is_nan() || f64::from(near) == value {
        return near;
    }
    let away = f64::from(near).abs() > value.abs();
    f32::from_bits((near.to_bits() - u32::from(away)) | 1)
}

/// Rounds an integer to binary64, to odd.
fn widened_to_odd(value: i64) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = (u64::BITS - magnitude.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    let kept = magnitude >> excess;
    let odd = kept | u64::from(kept << excess != magnitude);
    let rounded = (odd << excess) as f64;
    if value < 0 { -rounded } else { rounded }
}

/// Runs an expression with the [`Number`] type of an element type: `dispatch_numeric!(dtype, T => f::<T>(), else => g())`. The
/// `else` expression handles bool, strings, complex, small and packed types.
macro_rules! dispatch_numeric {
    ($dtype:expr, $T:ident => $body:expr, else => $other:expr) => {{
        macro_rules! with {
            ($type:ty) => {{
                type $T = $type;
                $body
            }};
        }
        match $dtype {
            $crate::tensor::DType::Float => with!(f32),
            $crate::tensor::DType::Double => with!(f64),
            $crate::tensor::DType::Float16 => with!(half::f16),
            $crate::tensor::DType::Bfloat16 => with!(half::bf16),
            $crate::tensor::DType::Int8 => with!(i8),
            $crate::tensor::DType::Int16 => with!(i16),
            $crate::tensor::DType::Int32 => with!(i32),
            $crate::tensor::DType::Int64 => with!(i64),
            $crate::tensor::DType::Uint8 => with!(u8),
            $crate::tensor::DType::Uint16 => with!(u16),
            $crate::tensor::DType::Uint32 => with!(u32),
            $crate::tensor::DType::Uint64 => with!(u64),
            _ => $other,
        }
    }};
}
pub(crate) use dispatch_numeric;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_once() {
        // Just above the middle of two numbers, by less than the precision of binary32.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(nearest_f16(above), f16::from_f32(1.0 + 2f32.powi(-10)));
        assert_eq!(nearest_bf16(1.0 + 2f64.powi(-8) + 2f64.powi(-40)), bf16::from_f32(1.0 + 2f32.powi(-7)));
    }

    #[test]
    fn integers_wrap_and_divide_with_care() {
        assert_eq!(Number::add(i8::MAX, 1), i8::MIN);
        assert_eq!(Number::sub(0u16, 1), u16::MAX);
        assert_eq!(Number::mul(i32::MAX, 2), -2);
        assert_eq!((Number::div(i64::MIN, -1), Number::div(7i64, 0), Number::div(-7i64, 2)), (None, None, Some(-3)));
        assert_eq!((Number::rem(i64::MIN, -1), Number::rem(7u8, 0), Number::rem(-7i64, 2)), (Some(0), None, Some(-1)));
        assert_eq!((Number::neg(i8::MIN), Number::neg(1u32), Number::abs(i16::MIN)), (i8::MIN, u32::MAX, i16::MIN));
        assert_eq!((Number::abs(-3i32), Number::abs(3u32)), (3, 3));
        assert_eq!((<u8 as Number>::from_i64(-1), <i8 as Number>::from_i64(200)), (255, -56));
        assert_eq!((Number::to_i64(u64::MAX), Number::to_i64(u32::MAX)), (None, Some(0xffff_ffff)));
    }

    #[test]
    fn floats_become_integers_only_in_range() {
        assert_eq!((<i8 as Number>::from_f64(-128.9), <i8 as Number>::from_f64(-129.0)), (Some(-128), None));
        assert_eq!((<i8 as Number>::from_f64(127.9), <i8 as Number>::from_f64(128.0)), (Some(127), None));
        assert_eq!((<u8 as Number>::from_f64(-0.9), <u8 as Number>::from_f64(-1.0)), (Some(0), None));
        assert_eq!((<u8 as Number>::from_f64(255.9), <u8 as Number>::from_f64(256.0)), (Some(255), None));
        let end = 2f64.powi(63);
        assert_eq!((<i64 as Number>::from_f64(end), <i64 as Number>::from_f64(-end)), (None, Some(i64::MIN)));
        assert_eq!(<i64 as Number>::from_f64(end.next_down()), Some(i64::MAX - 1023));
        assert_eq!((<u64 as Number>::from_f64(end), <u64 as Number>::from_f64(2.0 * end)), (Some(1 << 63), None));
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!((<i32 as Number>::from_f64(value), <u64 as Number>::from_f64(value)), (None, None));
            assert_eq!((Number::to_i64(value), Number::to_i64(f16::from_f64(value))), (None, None));
        }
        assert_eq!(Number::to_i64(-1.5f32), Some(-1));
    }

    #[test]
    fn half_floats_round_once() {
        let f16_of = |value: f64| <f16 as Number>::from_f64(value).unwrap();
        let tie = 1.0 + 2f64.powi(-11);
        assert_eq!(f16_of(tie), f16::ONE);
        // Truncated to binary32, these would be ties.
        assert_eq!(f16_of(tie + 2f64.powi(-50)).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(f16_of(-tie - 2f64.powi(-50)).to_f64(), -1.0 - 2f64.powi(-10));
        assert_eq!(f16_of(3.0 * 2f64.powi(-11) + 1.0 - 2f64.powi(-50)).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!((f16_of(65519.999), f16_of(65520.0), f16_of(1e300)), (f16::MAX, f16::INFINITY, f16::INFINITY));
        assert_eq!((f16_of(2f64.powi(-25)), f16_of(2f64.powi(-25).next_up())), (f16::ZERO, f16::from_bits(1)));
        assert_eq!((f16_of(5e-324), f16_of(-5e-324).to_bits()), (f16::ZERO, 0x8000));
        assert!(f16_of(f64::NAN).is_nan());
        let bf16_of = |value: i64| <bf16 as Number>::from_i64(value).to_f64();
        assert_eq!(bf16_of((1 << 62) + (1 << 54)), 2f64.powi(62));
        assert_eq!(bf16_of((1 << 62) + (1 << 54) + 1), 2f64.powi(62) + 2f64.powi(55));
        assert_eq!(bf16_of(-(1 << 62) - (1 << 54) - 1), -(2f64.powi(62) + 2f64.powi(55)));
        assert_eq!((bf16_of(i64::MIN), bf16_of(0), bf16_of(-3)), (-(2f64.powi(63)), 0.0, -3.0));
        assert_eq!(<f16 as Number>::from_i64(2049).to_f64(), 2048.0);
        assert_eq!((Number::abs(f16::NEG_ZERO).to_bits(), Number::neg(bf16::ONE).to_f64()), (0, -1.0));
        let sum = Number::add(f16::from_f32(2048.0), f16::ONE);
        assert_eq!((sum.to_f64(), Number::div(f16::ONE, f16::ZERO)), (2048.0, Some(f16::INFINITY)));
    }

    #[test]
    fn dispatch_covers_the_numbers_and_nothing_else() {
        for &dtype in DType::ALL {
            let chosen = dispatch_numeric!(dtype, T => Some((T::DTYPE, T::FLOAT)), else => None);
            let wide = dtype.bits().is_some_and(|bits| bits >= 8) && !dtype.is_small_float();
            let number = wide && (dtype.is_integer() || dtype.is_float());
            assert_eq!(chosen, number.then(|| (dtype, dtype.is_float())));
        }
    }

    #[test]
    fn bools_are_their_truth() {
        assert_eq!((Bool(2), Bool(0)), (Bool(1), Bool::from(false)));
        assert_ne!(Bool(0), Bool::from(true));
    }
}
