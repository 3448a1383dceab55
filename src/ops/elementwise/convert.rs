//! Conversion between element types, by the rules of Cast.
//!
//! | from → to | rule |
//! | --- | --- |
//! | integer, bool → integer | keeps the low bits |
//! | float → integer of at least 8 bits | truncates; below the range of `int32` and `int64`: the minimum; else out of range: declined |
//! | float → integer of 2 or 4 bits | keeps the low bits of integral values; others: declined, runtimes truncate or round |
//! | any number → bool | true unless zero; NaN is true; −0 of at most 8 bits: declined, runtimes disagree |
//! | any number → float | rounded to nearest, ties to even; infinite when out of range |
//! | any number → float of at most 8 bits | see [`smallfloat`], with `saturate` and `round_mode` |
//! | integer → string | decimal |
//! | float → string | plain decimal, if the shortest notation equals that of 8 digits (17 for binary64); else declined, runtimes disagree |
//! | bool → string | declined, runtimes disagree |
//! | string → float | decimal with optional exponent, INF, NaN in any case; else declined |
//! | string → integer | decimal digits with optional sign, in range; else declined |
//!
//! Runtimes convert to floats of at most 16 bits through `float`. If this double rounding differs from a single rounding, the
//! conversion is declined.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::kernel::computed;
use crate::ops::Decline;
use crate::ops::vector::{Stored, vectorized};
use crate::tensor::smallfloat::{self, Format, RoundMode};
use crate::tensor::{Bool, Codes, DType, Element, Number, Tensor, pack};

/// The number of elements converted at a time, on the stack.
const BLOCK: usize = 512;

/// The rounding options of a conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// Replaces values out of range by the largest finite value, in 8-bit formats.
    pub(super) saturate: bool,
    /// The rounding mode of `float8e8m0`.
    pub(super) mode: RoundMode,
}

/// Converts the elements of a tensor. Callers charge the cost of the result.
pub(super) fn convert(tensor: &Tensor, to: DType, rounding: Rounding) -> Result<Tensor, Decline> {
    let from = tensor.dtype();
    if from.is_complex() || to.is_complex() {
        return Err(Decline::invalid(format!("casts from {from} to {to} are not supported")));
    }
    if from == to {
        return Ok(tensor.clone());
    }
    if to == DType::String {
        return format_elements(tensor);
    }
    if from == DType::String {
        return parse_elements(tensor, to);
    }
    let source = BlockReader::of(tensor);
    let Rounding { saturate, mode } = rounding;
    match to {
        DType::Int8 => source.to_integers::<i8>(),
        DType::Int16 => source.to_integers::<i16>(),
        DType::Int32 => source.to_integers::<i32>(),
        DType::Int64 => source.to_integers::<i64>(),
        DType::Uint8 => source.to_integers::<u8>(),
        DType::Uint16 => source.to_integers::<u16>(),
        DType::Uint32 => source.to_integers::<u32>(),
        DType::Uint64 => source.to_integers::<u64>(),
        DType::Bool if from.is_small_float() => source.convert(
            &|x| Some(Bool::from(x.0 != 0)),
            // Runtimes test the bits of such a zero; the standard tests its value.
            &|x| (x != 0.0 || x.is_sign_positive()).then(|| Bool::from(x != 0.0)),
            &|x| Some((x != 0.0).into()),
        ),
        DType::Bool => {
            source.convert(&|x| Some(Bool::from(x.0 != 0)), &|x| Some((x != 0.0).into()), &|x| Some((x != 0.0).into()))
        }
        DType::Float => source.convert(&|x| Some(x.to_f32()), &Some, &|x| Some(x as f32)),
        DType::Double => source.convert(&|x| Some(x.to_f64()), &|x| Some(f64::from(x)), &Some),
        DType::Float16 if from.is_float() && from != DType::Double => source.to_halves(),
        DType::Float16 => source.convert(
            &|x| once(x.to_f32(), x.to_f32_odd(), f16::from_f32, f16::to_bits),
            &|x| Some(f16::from_f32(x)),
            &|x| once(x as f32, round_to_odd(x), f16::from_f32, f16::to_bits),
        ),
        DType::Bfloat16 => source.convert(
            &|x| once(x.to_f32(), x.to_f32_odd(), bf16::from_f32, bf16::to_bits),
            &|x| Some(bf16::from_f32(x)),
            &|x| once(x as f32, round_to_odd(x), bf16::from_f32, bf16::to_bits),
        ),
        DType::Uint4 | DType::Int4 | DType::Uint2 | DType::Int2 => {
            source.to_codes(to, &|x| Some(x.0 as u8), &|x| low_bits(x.into()), &low_bits)
        }
        DType::Float8E8M0 => source.to_codes(
            to,
            &|x| smallfloat::encode_e8m0(x.exact_f32()?, saturate, mode),
            &|x| smallfloat::encode_e8m0(x, saturate, mode),
            &|x| smallfloat::encode_e8m0(exact_f32(x)?, saturate, mode),
        ),
        _ => {
            let format = Format::of(to)
                .ok_or_else(|| Decline::invalid(format!("casts from {from} to {to} are not supported")))?;
            let encode = |x: f32| format.encode(x, saturate);
            let agreed = |near: f32, odd: f32| encode(near).filter(|&code| encode(odd) == Some(code));
            source
                .to_codes(to, &|x| agreed(x.to_f32(), x.to_f32_odd()), &encode, &|x| agreed(x as f32, round_to_odd(x)))
        }
    }
}

/// An integer of up to 64 bits: its bits, and `true` if they are unsigned.
#[derive(Clone, Copy)]
struct Integer(i64, bool);

impl Integer {
    fn wide(self) -> i128 {
        if self.1 { i128::from(self.0 as u64) } else { i128::from(self.0) }
    }

    fn to_f32(self) -> f32 {
        if self.1 { self.0 as u64 as f32 } else { self.0 as f32 }
    }

    fn to_f64(self) -> f64 {
        if self.1 { self.0 as u64 as f64 } else { self.0 as f64 }
    }

    /// Rounds to odd, see [`round_to_odd`].
    fn to_f32_odd(self) -> f32 {
        let magnitude = self.wide().unsigned_abs();
        let excess = (u128::BITS - magnitude.leading_zeros()).saturating_sub(f32::MANTISSA_DIGITS);
        let kept = magnitude >> excess;
        let odd = if kept << excess == magnitude { kept } else { kept | 1 };
        let rounded = (odd << excess) as f32;
        if self.wide() < 0 { -rounded } else { rounded }
    }

    fn exact_f32(self) -> Option<f32> {
        let narrow = self.to_f32();
        (narrow as i128 == self.wide()).then_some(narrow)
    }
}

/// Rounds to binary32 and sets the last bit of inexact results. A second rounding to a narrower format then equals one rounding
/// of the number itself.
fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if wide == value || value.is_nan() {
        return near;
    }
    // First round toward zero; infinity becomes the largest finite number.
    let bits = if wide.abs() > value.abs() { near.to_bits().saturating_sub(1) } else { near.to_bits() };
    f32::from_bits(bits | 1)
}

fn exact_f32(value: f64) -> Option<f32> {
    let near = value as f32;
    (f64::from(near) == value || value.is_nan()).then_some(near)
}

/// Returns a narrow float, if rounding through binary32 equals a single rounding.
fn once<T: Copy>(near: f32, odd: f32, narrow: fn(f32) -> T, bits: fn(T) -> u16) -> Option<T> {
    let narrowed = narrow(near);
    (near.is_nan() || bits(narrow(odd)) == bits(narrowed)).then_some(narrowed)
}

/// An integer type that floats are truncated to. For NaN and values above the range, processors differ. Below the range of
/// `int32` and `int64`, all of them return the minimum: both saturating ones and those with an invalid-result marker.
trait Whole: Number {
    fn of_f32(value: f32) -> Option<Self>;
    fn of_f64(value: f64) -> Option<Self>;
}

/// The compiler can vectorize these conversions: they compare with numbers that are exact in both types, and convert without
/// failure.
macro_rules! whole {
    ($($type:ident by $wide:ident, $whole:path, $low:expr, $end:expr;)*) => {
        $(impl Whole for $type {
            #[inline(always)]
            fn of_f32(value: f32) -> Option<Self> {
                let (low, end): (f64, f64) = ($low, $end);
                (value > low as f32 && value < end as f32).then_some($whole(value) as $type)
            }
            fn of_f64(value: f64) -> Option<Self> {
                let (low, end): (f64, f64) = ($low, $end);
                (value > low && value < end).then_some(value as $wide as $type)
            }
        })*
    };
}

/// Returns the largest number that does not truncate into the range: `least − 1`.
const fn below(least: i32) -> f64 {
    least as f64 - 1.0
}

/// Truncates a number of at most 17 bits. The `as` conversion of Rust checks the range of each number separately.
#[inline(always)]
fn truncated(value: f32) -> u32 {
    // Adding 1.5·2²³ leaves the nearest integer in the low bits; it is off by one if it is farther from zero than the value.
    const SHIFT: f32 = 12_582_912.0;
    let shifted = value + SHIFT;
    let nearest = shifted - SHIFT;
    let above = (nearest > value) & (value > 0.0);
    let below = (nearest < value) & (value < 0.0);
    shifted.to_bits().wrapping_sub(u32::from(above)).wrapping_add(u32::from(below))
}

whole! {
    i8 by i32, truncated, below(i8::MIN as i32), 128.0;
    i16 by i32, truncated, below(i16::MIN as i32), 32_768.0;
    u8 by i32, truncated, below(0), 256.0;
    u16 by i32, truncated, below(0), 65_536.0;
    u32 by u32, u64_of, below(0), 4_294_967_296.0;
    u64 by u64, u64_of, below(0), 18_446_744_073_709_551_616.0;
}

/// Truncates a nonnegative number.
#[inline(always)]
fn u64_of(value: f32) -> u64 {
    value as u64
}

macro_rules! whole_or_least {
    ($($type:ident $end:literal;)*) => {
        $(impl Whole for $type {
            fn of_f32(value: f32) -> Option<Self> {
                let end: f64 = $end;
                (value < end as f32).then_some(value as $type)
            }
            fn of_f64(value: f64) -> Option<Self> {
                (value < $end).then_some(value as $type)
            }
        })*
    };
}

whole_or_least! { i32 2_147_483_648.0; i64 9_223_372_036_854_775_808.0; }

/// Wraps an integral number to a code of few bits.
fn low_bits(value: f64) -> Option<u8> {
    let whole = value.fract() == 0.0 && value.abs() < f64::from(i32::MAX);
    whole.then_some(value as i64 as u8)
}

/// Reads a tensor as integers, `f32` or `f64`, block by block.
struct BlockReader<'a> {
    tensor: &'a Tensor,
    dtype: DType,
    /// The elements in memory, if their type is `f32`.
    floats: Option<&'a [[u8; 4]]>,
}

impl<'a> BlockReader<'a> {
    fn of(tensor: &'a Tensor) -> Self {
        BlockReader { tensor, dtype: tensor.dtype(), floats: f32::stored(tensor) }
    }

    fn to_integers<T: Whole>(&self) -> Result<Tensor, Decline> {
        self.convert(&|x| Some(T::from_i64(x.0)), &T::of_f32, &T::of_f64)
    }

    /// Rounds floats of at most 32 bits to `float16`, a block at a time.
    fn to_halves(&self) -> Result<Tensor, Decline> {
        let table = self.table();
        let halves = computed(self.tensor.len(), &|start, out: &mut [f16]| {
            let mut buffer = [0f32; BLOCK];
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                self.read_floats(start + block * BLOCK, out.len(), &table, &mut buffer);
                out.convert_from_f32_slice(buffer.get(..out.len()).unwrap_or_default());
            }
        });
        Ok(Tensor::from_vec(self.tensor.shape(), halves)?)
    }

    fn convert<T: Element>(
        &self,
        integer: &(impl Fn(Integer) -> Option<T> + Sync),
        float: &(impl Fn(f32) -> Option<T> + Sync),
        double: &(impl Fn(f64) -> Option<T> + Sync),
    ) -> Result<Tensor, Decline> {
        Ok(Tensor::from_vec(self.tensor.shape(), self.values(integer, float, double)?)?)
    }

    /// Converts like [`convert`](Self::convert), to codes of at most eight bits.
    fn to_codes(
        &self,
        to: DType,
        integer: &(impl Fn(Integer) -> Option<u8> + Sync),
        float: &(impl Fn(f32) -> Option<u8> + Sync),
        double: &(impl Fn(f64) -> Option<u8> + Sync),
    ) -> Result<Tensor, Decline> {
        let codes = self.values(integer, float, double)?;
        let payload = match to.bits() {
            Some(bits) if to.is_packed() => pack(&codes, bits),
            _ => codes,
        };
        Ok(Tensor::from_bytes(to, self.tensor.shape(), payload.into())?)
    }

    fn values<T: Element>(
        &self,
        integer: &(impl Fn(Integer) -> Option<T> + Sync),
        float: &(impl Fn(f32) -> Option<T> + Sync),
        double: &(impl Fn(f64) -> Option<T> + Sync),
    ) -> Result<Vec<T>, Decline> {
        let failed = AtomicBool::new(false);
        let unsigned = self.dtype == DType::Uint64;
        let table = self.table();
        let values = computed(self.tensor.len(), &|start, out: &mut [T]| {
            let mut good = true;
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let start = start + block * BLOCK;
                if self.dtype == DType::Double {
                    let mut buffer = [0f64; BLOCK];
                    self.read_doubles(start, &mut buffer);
                    good &= write(&buffer, out, double);
                } else if let Some(floats) = self.floats {
                    let block = floats.get(start..).unwrap_or_default();
                    good &= vectorized(
                        #[inline(always)]
                        || write(block, out, &|bytes| float(f32::of_bytes(bytes))),
                    );
                } else if self.dtype.is_float() {
                    let mut buffer = [0f32; BLOCK];
                    self.read_floats(start, out.len(), &table, &mut buffer);
                    good &= write(&buffer, out, float);
                } else {
                    let mut buffer = [0i64; BLOCK];
                    self.read_integers(start, out.len(), &mut buffer);
                    good &= write(&buffer, out, &|x| integer(Integer(x, unsigned)));
                }
            }
            if !good {
                failed.store(true, Ordering::Relaxed);
            }
        });
        if failed.into_inner() {
            return Err(Decline::unsupported("an element has no defined value in the target type"));
        }
        Ok(values)
    }

    /// Returns the values of all codes of a float type of at most eight bits.
    fn table(&self) -> Vec<f32> {
        if !self.dtype.is_small_float() {
            return Vec::new();
        }
        (0..=u8::MAX).map(|code| smallfloat::decode(self.dtype, code).unwrap_or(f32::NAN)).collect()
    }

    /// Calls `each` with the little-endian elements, starting at index `start`.
    fn read<const WIDTH: usize, T>(&self, start: usize, out: &mut [T], each: impl Fn([u8; WIDTH]) -> T) {
        let bytes = self.tensor.bytes().get(start * WIDTH..).unwrap_or_default();
        for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<WIDTH>().0) {
            *out = each(*bytes);
        }
    }

    fn read_doubles(&self, start: usize, out: &mut [f64]) {
        self.read(start, out, f64::from_le_bytes);
    }

    fn read_floats(&self, start: usize, len: usize, table: &[f32], out: &mut [f32]) {
        match self.dtype {
            DType::Float => self.read(start, out, f32::from_le_bytes),
            DType::Float16 => {
                let mut halves = [f16::ZERO; BLOCK];
                self.read(start, &mut halves, f16::from_le_bytes);
                let len = len.min(out.len());
                if let (Some(halves), Some(out)) = (halves.get(..len), out.get_mut(..len)) {
                    halves.convert_to_f32_slice(out);
                }
            }
            DType::Bfloat16 => self.read(start, out, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            _ => {
                for (out, code) in out.iter_mut().zip(self.codes(start, len)) {
                    *out = table.get(usize::from(code)).copied().unwrap_or(f32::NAN);
                }
            }
        }
    }

    fn read_integers(&self, start: usize, len: usize, out: &mut [i64]) {
        match self.dtype {
            DType::Int8 => self.read(start, out, |bytes| i8::from_le_bytes(bytes).into()),
            DType::Int16 => self.read(start, out, |bytes| i16::from_le_bytes(bytes).into()),
            DType::Int32 => self.read(start, out, |bytes| i32::from_le_bytes(bytes).into()),
            DType::Uint8 => self.read(start, out, |bytes| u8::from_le_bytes(bytes).into()),
            DType::Uint16 => self.read(start, out, |bytes| u16::from_le_bytes(bytes).into()),
            DType::Uint32 => self.read(start, out, |bytes| u32::from_le_bytes(bytes).into()),
            DType::Int64 | DType::Uint64 => self.read(start, out, i64::from_le_bytes),
            DType::Bool => self.read(start, out, |[byte]| i64::from(byte != 0)),
            // Packed types: the sign bit is the highest bit of the code.
            dtype => {
                let sign = match dtype.bits() {
                    Some(bits @ 1..=8) if dtype.is_signed_integer() => 1i64 << (bits - 1),
                    _ => 0,
                };
                for (out, code) in out.iter_mut().zip(self.codes(start, len)) {
                    *out = (i64::from(code) ^ sign) - sign;
                }
            }
        }
    }

    fn codes(&self, start: usize, len: usize) -> Codes<'_> {
        Codes::new(self.tensor.bytes(), self.dtype.bits().unwrap_or(8), start, len)
    }
}

/// Converts a block; returns `true` if each element has a counterpart.
#[inline(always)]
fn write<S: Copy, T: Element>(block: &[S], out: &mut [T], each: &impl Fn(S) -> Option<T>) -> bool {
    let mut good = true;
    for (out, &value) in out.iter_mut().zip(block) {
        // Always write, so that the loop has no branches.
        let made = each(value);
        good &= made.is_some();
        *out = made.unwrap_or(T::zeroed());
    }
    good
}

fn undecided(text: &str) -> Decline {
    Decline::unsupported(format!("the string '{text}' has no defined value in the target type"))
}

/// Formats numbers as strings.
fn format_elements(tensor: &Tensor) -> Result<Tensor, Decline> {
    let texts: Vec<Bytes> = match tensor.dtype() {
        DType::Uint64 => {
            let values = tensor.elements::<u64>().unwrap_or_default();
            values.iter().map(|value| value.to_string().into()).collect()
        }
        dtype if dtype.is_integer() => {
            let values = tensor.to_i64s().ok_or_else(|| undecided(dtype.name()))?;
            values.iter().map(|value| value.to_string().into()).collect()
        }
        DType::Float => {
            let values = tensor.elements::<f32>().unwrap_or_default();
            values.iter().map(|&value| format_float(value.into(), value.to_string(), 8)).collect::<Result<_, _>>()?
        }
        DType::Double => {
            let values = tensor.elements::<f64>().unwrap_or_default();
            values.iter().map(|&value| format_float(value, value.to_string(), 17)).collect::<Result<_, _>>()?
        }
        dtype => return Err(undecided(dtype.name())),
    };
    Ok(Tensor::from_strings(tensor.shape(), texts)?)
}

/// Formats the shortest decimal that reads back as the number, if all runtimes agree. Declines integral values (`1` or `1.0`),
/// and magnitudes that some runtimes write with an exponent. The decimal must also equal the notation of `most` digits without
/// trailing zeros, which other runtimes write.
fn format_float(value: f64, shortest: String, most: i32) -> Result<Bytes, Decline> {
    if value.fract() == 0.0 || !(1e-4..1e8).contains(&value.abs()) {
        return Err(undecided(&shortest));
    }
    let whole = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(most - 1 - whole).unwrap_or(0);
    let long = format!("{value:.decimals$}");
    if long.trim_end_matches('0') == shortest { Ok(shortest.into()) } else { Err(undecided(&shortest)) }
}

/// Parses strings as numbers.
fn parse_elements(tensor: &Tensor, to: DType) -> Result<Tensor, Decline> {
    let texts = tensor.strings().unwrap_or_default();
    let texts: Option<Vec<&str>> = texts.iter().map(|text| std::str::from_utf8(text).ok()).collect();
    let texts = texts.ok_or_else(|| undecided("a string that is not UTF-8"))?;
    let shape = tensor.shape();
    if to.is_float() {
        let values = texts.iter().map(|text| parse_float(text).ok_or_else(|| undecided(text)));
        let values = Tensor::from_vec(shape, values.collect::<Result<Vec<f64>, _>>()?)?;
        return match to {
            DType::Double => Ok(values),
            DType::Float => parsed_floats(shape, &texts),
            DType::Float16 | DType::Bfloat16 => convert(&values, to, Rounding { saturate: true, mode: RoundMode::Up }),
            _ => Err(undecided(to.name())),
        };
    }
    fn integers<T: Element + std::str::FromStr>(shape: &[usize], texts: &[&str]) -> Result<Tensor, Decline> {
        let parse = |text: &&str| text.parse::<T>().map_err(|_| undecided(text));
        Ok(Tensor::from_vec(shape, texts.iter().map(parse).collect::<Result<Vec<T>, _>>()?)?)
    }
    match to {
        DType::Int8 => integers::<i8>(shape, &texts),
        DType::Int16 => integers::<i16>(shape, &texts),
        DType::Int32 => integers::<i32>(shape, &texts),
        DType::Int64 => integers::<i64>(shape, &texts),
        DType::Uint8 => integers::<u8>(shape, &texts),
        DType::Uint16 => integers::<u16>(shape, &texts),
        DType::Uint32 => integers::<u32>(shape, &texts),
        DType::Uint64 => integers::<u64>(shape, &texts),
        _ => Err(undecided(to.name())),
    }
}

/// Parses a decimal number, infinity or NaN. Returns `None` for other texts, and for nonzero numbers that underflow or overflow:
/// some runtimes reject them.
fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let named = if unsigned.eq_ignore_ascii_case("inf") {
        Some(f64::INFINITY)
    } else if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    } else {
        None
    };
    if let Some(value) = named {
        return Some(if text.starts_with('-') { -value } else { value });
    }
    // The parser also accepts spellings that Cast does not define, such as `infinity`.
    let decimal = unsigned.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let value: f64 = text.parse().ok().filter(|_| decimal)?;
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    (value.is_finite() && (value.is_normal() || zero)).then_some(value)
}

/// Parses binary32 numbers, if parsing as binary64 and rounding again yields the same.
fn parsed_floats(shape: &[usize], texts: &[&str]) -> Result<Tensor, Decline> {
    let parse = |text: &&str| {
        let wide = parse_float(text)?;
        let value: f32 = text.parse().ok()?;
        let same = value == wide as f32 || value.is_nan() && wide.is_nan();
        let normal = value.is_normal() || wide == 0.0 || !wide.is_finite();
        (same && normal).then_some(value)
    };
    let values: Result<Vec<f32>, Decline> =
        texts.iter().map(|text| parse(text).ok_or_else(|| undecided(text))).collect();
    Ok(Tensor::from_vec(shape, values?)?)
}
