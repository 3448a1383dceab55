//! Floating point of eight bits or fewer: what the codes mean, and rounding to them.
//!
//! The rules are the tables of the standard's Cast operator and its technical notes on float 8, float 6 and float 4.
//! Where those leave an answer open or contradict one another, there is none here either: `None`.

use super::dtype::DType;

/// A small floating point format with a sign: how its bits read, and which codes are not finite. Codes occupy the low
/// bits of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

/// What a format has besides finite values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// Nothing.
    None,
    /// The code of largest magnitude is NaN.
    Nan,
    /// The code of negative zero is NaN, so zero has no sign.
    NanForNegativeZero,
    /// The largest exponent is infinity and NaN, as in IEEE 754.
    Ieee,
}

impl Format {
    pub const E4M3FN: Format = Format::new(4, 3, 7, Special::Nan);
    pub const E4M3FNUZ: Format = Format::new(4, 3, 8, Special::NanForNegativeZero);
    pub const E5M2: Format = Format::new(5, 2, 15, Special::Ieee);
    pub const E5M2FNUZ: Format = Format::new(5, 2, 16, Special::NanForNegativeZero);
    pub const E2M3: Format = Format::new(2, 3, 1, Special::None);
    pub const E3M2: Format = Format::new(3, 2, 3, Special::None);
    pub const E2M1: Format = Format::new(2, 1, 1, Special::None);

    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> Format {
        Format { exponent_bits, mantissa_bits, bias, special }
    }

    /// The format of an element type; `None` for types that are no small float, and for E8M0, which has no sign.
    pub const fn of(dtype: DType) -> Option<Format> {
        match dtype {
            DType::Float8E4M3FN => Some(Format::E4M3FN),
            DType::Float8E4M3FNUZ => Some(Format::E4M3FNUZ),
            DType::Float8E5M2 => Some(Format::E5M2),
            DType::Float8E5M2FNUZ => Some(Format::E5M2FNUZ),
            DType::Float6E2M3 => Some(Format::E2M3),
            DType::Float6E3M2 => Some(Format::E3M2),
            DType::Float4E2M1 => Some(Format::E2M1),
            _ => None,
        }
    }

    const fn sign(self) -> u8 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// All bits but the sign.
    const fn magnitude(self) -> u8 {
        self.sign() - 1
    }

    /// Infinity in an IEEE-like format.
    const fn infinity(self) -> u8 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// The largest finite value, positive.
    const fn max(self) -> u8 {
        match self.special {
            Special::None | Special::NanForNegativeZero => self.magnitude(),
            Special::Nan => self.magnitude() - 1,
            Special::Ieee => self.infinity() - 1,
        }
    }

    /// The value of a code, exactly; bits above the format's are ignored.
    pub fn decode(self, code: u8) -> f32 {
        let negative = code & self.sign() != 0;
        let magnitude = code & self.magnitude();
        let nan = match self.special {
            Special::None => false,
            Special::Nan => magnitude == self.magnitude(),
            Special::NanForNegativeZero => negative && magnitude == 0,
            Special::Ieee => magnitude > self.infinity(),
        };
        let value = if nan {
            f32::NAN
        } else if self.special == Special::Ieee && magnitude == self.infinity() {
            f32::INFINITY
        } else {
            let exponent = i32::from(magnitude >> self.mantissa_bits);
            let fraction = magnitude & ((1 << self.mantissa_bits) - 1);
            let implicit = u8::from(exponent > 0) << self.mantissa_bits;
            f32::from(fraction | implicit) * power_of_two(exponent.max(1) - self.bias - self.mantissa_bits as i32)
        };
        if negative { -value } else { value }
    }

    /// The code of a value, rounded to nearest, ties to even.
    ///
    /// What lies beyond the largest finite value *after* rounding to the format's mantissa, infinities included, becomes
    /// that value if `saturate`, and else infinity or NaN as Cast's table has it; formats without either always
    /// saturate. `None` is NaN in a format without NaN: the float 4 note says 6, implementations say −0.
    pub fn encode(self, value: f32, saturate: bool) -> Option<u8> {
        // The sign of a NaN need not survive widening, so it is taken first.
        self.encode_magnitude(value.is_sign_negative(), f64::from(value).abs(), saturate)
    }

    /// As [`encode`](Self::encode), rounding once from binary64. Runtimes that go through binary32 round twice.
    pub fn encode_f64(self, value: f64, saturate: bool) -> Option<u8> {
        self.encode_magnitude(value.is_sign_negative(), value.abs(), saturate)
    }

    fn encode_magnitude(self, negative: bool, value: f64, saturate: bool) -> Option<u8> {
        let sign = if negative { self.sign() } else { 0 };
        if value.is_nan() {
            return match self.special {
                Special::None => None,
                Special::NanForNegativeZero => Some(self.sign()),
                Special::Nan | Special::Ieee => Some(sign | self.magnitude()),
            };
        }
        let rounded = if value.is_infinite() { u64::MAX } else { self.round(value) };
        if rounded > u64::from(self.max()) {
            return Some(match self.special {
                _ if saturate => sign | self.max(),
                Special::None => sign | self.max(),
                Special::Nan => sign | self.magnitude(),
                Special::NanForNegativeZero => self.sign(),
                Special::Ieee => sign | self.infinity(),
            });
        }
        let code = rounded as u8;
        let unsigned = code == 0 && self.special == Special::NanForNegativeZero;
        Some(if unsigned { 0 } else { sign | code })
    }

    /// The code a finite magnitude rounds to if exponents had no end. Codes are consecutive over binades, so a mantissa
    /// that rounds up to the next power of two carries into the exponent by itself.
    fn round(self, value: f64) -> u64 {
        const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
        let bits = value.to_bits();
        let exponent = (bits >> FRACTION_BITS) as i32 - 1023;
        if exponent == -1023 {
            // Zero or subnormal in binary64: far below half of any smallest value here.
            return 0;
        }
        let significand = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
        let least = 1 - self.bias;
        // Bits to drop so that the last one left weighs one unit of the code.
        let shift = FRACTION_BITS - self.mantissa_bits + least.saturating_sub(exponent).max(0) as u32;
        let Some(kept) = significand.checked_shr(shift) else { return 0 };
        let dropped = significand - (kept << shift);
        let half = 1u64 << (shift - 1);
        let up = dropped > half || dropped == half && kept & 1 == 1;
        let binades = exponent.saturating_sub(least).max(0) as u64;
        // A normal significand carries its implicit bit, which is the exponent's first unit.
        (binades << self.mantissa_bits) + kept + u64::from(up)
    }
}

/// 2ⁿ for the exponents of these formats, −126 ≤ n ≤ 127.
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// How Cast-24 and later round to `float8e8m0` (attribute `round_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundMode {
    /// Away from zero: the default.
    Up,
    /// Toward zero.
    Down,
    /// To nearest, ties up.
    Nearest,
}

impl RoundMode {
    /// The mode an attribute names; `None` if it is not one of the standard's.
    pub fn from_name(name: &str) -> Option<RoundMode> {
        match name {
            "up" => Some(RoundMode::Up),
            "down" => Some(RoundMode::Down),
            "nearest" => Some(RoundMode::Nearest),
            _ => None,
        }
    }
}

/// The value of a `float8e8m0` code: 2 to the power `code − 127`; 255 is NaN.
pub fn decode_e8m0(code: u8) -> f32 {
    match code {
        255 => f32::NAN,
        // 2⁻¹²⁷ is subnormal in binary32.
        0 => f32::from_bits(1 << 22),
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

/// The `float8e8m0` code of a value.
///
/// Values outside `2⁻¹²⁷ ..= 2¹²⁷`, zero and infinity included, become the nearer end if `saturate` and else NaN; inside,
/// rounding never leaves the range. `None` is what Cast leaves unspecified: negative values and negative zero. ONNX
/// Runtime agrees on everything else; the reference implementation in Python does not on infinities, zeros and values
/// below 2⁻¹²⁶, against Cast's table.
pub fn encode_e8m0(value: f32, saturate: bool, mode: RoundMode) -> Option<u8> {
    const NAN: u8 = 255;
    const MAX: u8 = 254;
    if value.is_nan() {
        return Some(NAN);
    }
    if value.is_sign_negative() {
        return None;
    }
    if value < decode_e8m0(0) {
        return Some(if saturate { 0 } else { NAN });
    }
    if value > decode_e8m0(MAX) {
        return Some(if saturate { MAX } else { NAN });
    }
    let bits = value.to_bits();
    // Below 2⁻¹²⁶ a binary32 has no implicit bit: 2⁻¹²⁷ is its upper fraction bit, and the fraction one bit shorter.
    let (exponent, fraction, half) = match bits >> 23 {
        0 => (0, bits - (1 << 22), 1 << 21),
        exponent => (exponent as u8, bits & ((1 << 23) - 1), 1 << 22),
    };
    let up = match mode {
        RoundMode::Up => fraction > 0,
        RoundMode::Down => false,
        RoundMode::Nearest => fraction >= half,
    };
    Some(exponent + u8::from(up))
}

/// The value of a code of a small float type; `None` for other types.
pub fn decode(dtype: DType, code: u8) -> Option<f32> {
    match dtype {
        DType::Float8E8M0 => Some(decode_e8m0(code)),
        _ => Some(Format::of(dtype)?.decode(code)),
    }
}
