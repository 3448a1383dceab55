//! The Rust types of elements, and choosing among them by element type.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

use super::dtype::DType;
use super::smallfloat::{self, Format};

/// A Rust type whose memory is one element of a dense payload, byte order aside.
pub trait Element: Pod + Send + Sync {
    /// The element type.
    const DTYPE: DType;

    /// How many numbers make one element: 2 for complex types. Bytes are swapped within a number on big-endian hosts.
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

/// A boolean as stored: one byte, true unless it is zero. A file may hold any byte; equality is of truth.
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
                /// The value, exactly.
                pub fn to_f32(self) -> f32 {
                    Format::$format.decode(self.0)
                }
            }
        )*
    };
}

small_floats! {
    /// The bits of a `float8e4m3fn`; equality is of bits.
    F8E4M3Fn = E4M3FN;
    /// The bits of a `float8e4m3fnuz`; equality is of bits.
    F8E4M3Fnuz = E4M3FNUZ;
    /// The bits of a `float8e5m2`; equality is of bits.
    F8E5M2 = E5M2;
    /// The bits of a `float8e5m2fnuz`; equality is of bits.
    F8E5M2Fnuz = E5M2FNUZ;
}

/// The bits of a `float8e8m0`, a power of two; equality is of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E8M0(pub u8);

impl F8E8M0 {
    /// The value, exactly.
    pub fn to_f32(self) -> f32 {
        smallfloat::decode_e8m0(self.0)
    }
}

/// The real element types arithmetic is defined on: integers of 8 to 64 bits and floats of 16 to 64 bits.
///
/// Integers wrap, as two's complement does. `float16` and `bfloat16` compute each operation in binary32 and round once,
/// which is the correctly rounded result of that operation.
pub trait Number: Element + PartialOrd {
    /// Whether this is a floating point type.
    const FLOAT: bool;

    fn zero() -> Self;
    fn one() -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    /// The quotient, truncated for integers; `None` when an integer divides by zero or the quotient does not fit.
    fn div(self, other: Self) -> Option<Self>;

    /// The remainder with the sign of the dividend, as C's `fmod`; `None` when an integer divides by zero. The
    /// smallest integer by −1 leaves 0.
    fn rem(self, other: Self) -> Option<Self>;

    /// The negative; unsigned integers wrap.
    fn neg(self) -> Self;

    /// The absolute value; the smallest integer wraps to itself.
    fn abs(self) -> Self;

    /// Rounded to nearest for 64-bit integers above 2⁵³, otherwise exact.
    fn to_f64(self) -> f64;

    /// Floats round to nearest, ties to even; integers truncate, and `None` is out of range or NaN.
    fn from_f64(value: f64) -> Option<Self>;

    /// Floats truncate; `None` is out of range or NaN.
    fn to_i64(self) -> Option<i64>;

    /// Floats round to nearest, ties to even; integers keep the low bits, as the standard's Cast does.
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
                // Both bounds are powers of two (or 0) and so exact in binary64; MAX itself need not be.
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
            fn from_f64(value: f64) -> Option<Self> { Some($type::from_f64(value)) }
            fn to_i64(self) -> Option<i64> { <i64 as Number>::from_f64($type::to_f64(self)) }
            fn from_i64(value: i64) -> Self { $type::from_f64(round_to_odd(value)) }
        })*
    };
}

half_floats! { f16; bf16; }

/// The integer in binary64, its last bit set when something was cut off: rounding that once more to a narrower format
/// rounds as if in one step.
fn round_to_odd(value: i64) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = (u64::BITS - magnitude.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    let kept = magnitude >> excess;
    let odd = if kept << excess == magnitude { kept } else { kept | 1 };
    let rounded = (odd << excess) as f64;
    if value < 0 { -rounded } else { rounded }
}

/// Runs an expression with the [`Number`] type of an element type: `dispatch_numeric!(dtype, T => f::<T>(), else => g())`.
/// The `else` expression answers for the types that are not numbers here: bool, strings, complex, small and packed ones.
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
