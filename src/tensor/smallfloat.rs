//! Floating point of at most eight bits: decoding of codes, and rounding to them.
//!
//! The rules are the tables of the standard's Cast operator and its technical notes on float 8, float 6 and float 4. Undefined or
//! contradictory cases return `None`.

use super::dtype::DType;

/// A signed small floating-point format: its bit layout, and its codes that are not finite. Codes are in the low bits of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

/// The values of a format that are not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// The format has none.
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

    /// Returns the format of an element type; `None` for types other than small floats, and for E8M0, which has no sign.
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

    /// Returns the mask of all bits except the sign.
    const fn magnitude(self) -> u8 {
        self.sign() - 1
    }

    /// Returns infinity in an IEEE-like format.
    const fn infinity(self) -> u8 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// Returns the largest finite value.
    const fn max(self) -> u8 {
        match self.special {
            Special::None | Special::NanForNegativeZero => self.magnitude(),
            Special::Nan => self.magnitude() - 1,
            Special::Ieee => self.infinity() - 1,
        }
    }

    /// Returns `true` if some code is NaN.
    pub fn has_nan(self) -> bool {
        self.special != Special::None
    }

    /// Returns the exact value of a code; ignores bits above the format's.
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

    /// Encodes a value, rounded to nearest, ties to even.
    ///
    /// Values beyond the largest finite one *after* rounding to the format's mantissa, including infinities, become that value if
    /// `saturate`. Else they become infinity or NaN by Cast's table; formats without either always saturate. Returns `None` for
    /// - NaN with its sign bit set in a format without NaN: the float 6 note and the conformance tests of Cast convert positive NaN
    ///   to negative zero, but no source defines the other one;
    /// - without `saturate`, a magnitude in 480..496 for E4M3FN and in 61440..65536 for E5M2: ONNX Runtime returns 448 and NaN, the
    ///   table NaN and infinity.
    pub fn encode(self, value: f32, saturate: bool) -> Option<u8> {
        // Widening may lose the sign of a NaN, so read it first.
        self.encode_magnitude(value.is_sign_negative(), f64::from(value).abs(), saturate)
    }

    /// Like [`encode`](Self::encode), with a single rounding from binary64. Runtimes that convert through binary32 round twice.
    pub fn encode_f64(self, value: f64, saturate: bool) -> Option<u8> {
        self.encode_magnitude(value.is_sign_negative(), value.abs(), saturate)
    }

    fn encode_magnitude(self, negative: bool, value: f64, saturate: bool) -> Option<u8> {
        let sign = if negative { self.sign() } else { 0 };
        if value.is_nan() {
            return match self.special {
                Special::None => (!negative).then_some(self.sign()),
                Special::NanForNegativeZero => Some(self.sign()),
                Special::Nan | Special::Ieee => Some(sign | self.magnitude()),
            };
        }
        let contested = match self.special {
            Special::Nan => 480.0..496.0,
            Special::Ieee => 61440.0..65536.0,
            Special::None | Special::NanForNegativeZero => 0.0..0.0,
        };
        if !saturate && contested.contains(&value) {
            return None;
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

    /// Rounds a finite magnitude to a code with an unlimited exponent. Codes are consecutive across powers of two, so a mantissa
    /// that rounds up to the next one carries into the exponent.
    fn round(self, value: f64) -> u64 {
        const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
        let bits = value.to_bits();
        let exponent = (bits >> FRACTION_BITS) as i32 - 1023;
        if exponent == -1023 {
            // Zero or subnormal in binary64: far below half of the smallest value of all formats.
            return 0;
        }
        let significand = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
        let least = 1 - self.bias;
        // The number of bits to drop, so that the last remaining bit is one unit of the code.
        let shift = FRACTION_BITS - self.mantissa_bits + least.saturating_sub(exponent).max(0) as u32;
        let Some(kept) = significand.checked_shr(shift) else { return 0 };
        let dropped = significand - (kept << shift);
        let half = 1u64 << (shift - 1);
        let up = dropped > half || dropped == half && kept & 1 == 1;
        let binades = exponent.saturating_sub(least).max(0) as u64;
        // A normal significand includes its implicit bit, which is the exponent's first unit.
        (binades << self.mantissa_bits) + kept + u64::from(up)
    }
}

/// Returns 2ⁿ for the exponents of these formats, −126 ≤ n ≤ 127.
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// The rounding of Cast-24 and later to `float8e8m0` (attribute `round_mode`).
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
    /// Returns the mode with this name; `None` if the standard does not define it.
    pub fn from_name(name: &str) -> Option<RoundMode> {
        match name {
            "up" => Some(RoundMode::Up),
            "down" => Some(RoundMode::Down),
            "nearest" => Some(RoundMode::Nearest),
            _ => None,
        }
    }
}

/// Returns the value of a `float8e8m0` code: 2 to the power `code − 127`; 255 is NaN.
pub fn decode_e8m0(code: u8) -> f32 {
    match code {
        255 => f32::NAN,
        // 2⁻¹²⁷ is subnormal in binary32.
        0 => f32::from_bits(1 << 22),
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

/// Encodes a value as `float8e8m0`.
///
/// Values outside `2⁻¹²⁷ ..= 2¹²⁷`, including zero and infinity, become the nearer end if `saturate`, else NaN. Rounding of values
/// inside does not leave the range. Returns `None` for
/// - negative values and negative zero, which Cast does not define;
/// - values other than NaN outside `2⁻¹²⁶ ..= 2¹²⁷`, except when saturating upward or rounding to nearest without saturating:
///   Cast's table defines only these two, and ONNX Runtime and the reference implementation differ on the rest.
pub fn encode_e8m0(value: f32, saturate: bool, mode: RoundMode) -> Option<u8> {
    const NAN: u8 = 255;
    const MAX: u8 = 254;
    if value.is_nan() {
        return Some(NAN);
    }
    let (min, max) = (decode_e8m0(0), decode_e8m0(MAX));
    let tabled = matches!((saturate, mode), (true, RoundMode::Up) | (false, RoundMode::Nearest));
    if value.is_sign_negative() || !tabled && !(f32::MIN_POSITIVE..=max).contains(&value) {
        return None;
    }
    if value < min {
        return Some(if saturate { 0 } else { NAN });
    }
    if value > max {
        return Some(if saturate { MAX } else { NAN });
    }
    let bits = value.to_bits();
    // Below 2⁻¹²⁶ a binary32 has no implicit bit: 2⁻¹²⁷ is its upper fraction bit, and the fraction is one bit shorter.
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

/// Returns the value of a code of a small float type; `None` for other types.
pub fn decode(dtype: DType, code: u8) -> Option<f32> {
    match dtype {
        DType::Float8E8M0 => Some(decode_e8m0(code)),
        _ => Some(Format::of(dtype)?.decode(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: [(DType, Format); 7] = [
        (DType::Float8E4M3FN, Format::E4M3FN),
        (DType::Float8E4M3FNUZ, Format::E4M3FNUZ),
        (DType::Float8E5M2, Format::E5M2),
        (DType::Float8E5M2FNUZ, Format::E5M2FNUZ),
        (DType::Float6E2M3, Format::E2M3),
        (DType::Float6E3M2, Format::E3M2),
        (DType::Float4E2M1, Format::E2M1),
    ];

    /// Computes the sums of the technical notes: sign, exponent and mantissa bit by bit.
    fn defined(code: u8, exponent_bits: u32, mantissa_bits: u32, bias: i32) -> f64 {
        let bit = |at: u32| f64::from(code >> at & 1);
        let exponent: f64 = (0..exponent_bits).map(|at| bit(mantissa_bits + at) * 2f64.powi(at as i32)).sum();
        let fraction: f64 = (0..mantissa_bits).map(|at| bit(at) * 2f64.powi(at as i32 - mantissa_bits as i32)).sum();
        let magnitude = match exponent {
            0.0 => 2f64.powi(1 - bias) * fraction,
            _ => 2f64.powi(exponent as i32 - bias) * (1.0 + fraction),
        };
        if bit(exponent_bits + mantissa_bits) == 1.0 { -magnitude } else { magnitude }
    }

    /// Returns the nonnegative finite codes, zero first: their order as unsigned numbers is that of their values.
    fn finite(format: Format) -> impl Iterator<Item = u8> {
        0..=format.max()
    }

    #[test]
    fn codes_mean_what_the_notes_define() {
        for (dtype, format) in FORMATS {
            let Format { exponent_bits, mantissa_bits, bias, .. } = format;
            assert_eq!(dtype.bits(), Some((1 + exponent_bits + mantissa_bits) as usize));
            assert_eq!(Format::of(dtype), Some(format));
            for code in finite(format) {
                let value = f64::from(format.decode(code));
                assert_eq!(value, defined(code, exponent_bits, mantissa_bits, bias), "{dtype} {code:#x}");
                if code > 0 {
                    assert_eq!(f64::from(format.decode(code | format.sign())), -value);
                }
            }
        }
        let rest = |format: Format| -> Vec<f32> {
            let codes = 0..=(format.sign() | format.magnitude());
            codes.filter(|code| code & format.magnitude() > format.max()).map(|code| format.decode(code)).collect()
        };
        assert!(matches!(rest(Format::E4M3FN)[..], [a, b] if a.is_nan() && b.is_nan()));
        assert!(matches!(rest(Format::E5M2)[..], [f32::INFINITY, a, b, c, f32::NEG_INFINITY, d, e, f]
            if [a, b, c, d, e, f].iter().all(|value| value.is_nan())));
        for (dtype, format) in FORMATS {
            let negative_zero = format.decode(format.sign());
            match format.special {
                Special::NanForNegativeZero => assert!(negative_zero.is_nan()),
                _ => assert!(negative_zero == 0.0 && negative_zero.is_sign_negative()),
            }
            assert_eq!(decode(dtype, 1), Some(format.decode(1)));
        }
        let largest = FORMATS.map(|(_, format)| format.decode(format.max()));
        assert_eq!(largest, [448.0, 240.0, 57344.0, 57344.0, 7.5, 28.0, 6.0]);
        assert_eq!(decode(DType::Float8E8M0, 127), Some(1.0));
        assert_eq!((decode(DType::Float, 0), decode(DType::Int4, 0)), (None, None));
    }

    #[test]
    fn values_round_to_the_nearest_code_ties_to_even() {
        for (dtype, format) in FORMATS {
            for (low, high) in finite(format).zip(finite(format).skip(1)) {
                // Exact: a code has few bits, and the mean of two codes one more.
                let tie = (format.decode(low) + format.decode(high)) / 2.0;
                let even = if low % 2 == 0 { low } else { high };
                for saturate in [false, true] {
                    for (value, code) in [
                        (format.decode(low), low),
                        (tie.next_down(), low),
                        (tie, even),
                        (tie.next_up(), high),
                        (format.decode(high), high),
                    ] {
                        let case = format!("{dtype} {value:e} {saturate}");
                        assert_eq!(format.encode(value, saturate), Some(code), "{case}");
                        assert_eq!(format.encode_f64(value.into(), saturate), Some(code), "{case}");
                        let unsigned = code == 0 && format.special == Special::NanForNegativeZero;
                        let negative = if unsigned { 0 } else { code | format.sign() };
                        assert_eq!(format.encode(-value, saturate), Some(negative), "{case}");
                    }
                }
                let just_above = f64::from(tie).next_up();
                assert_eq!(format.encode_f64(just_above, true), Some(high), "{dtype} {just_above:e}");
            }
            for tiny in [f64::MIN_POSITIVE, f64::from_bits(1), 1e-300] {
                assert_eq!(format.encode_f64(tiny, false), Some(0));
            }
        }
    }

    /// Cast's two tables; the second is for finite values that overflow after rounding.
    #[test]
    fn numbers_out_of_range_follow_the_tables() {
        const NAN: f32 = f32::NAN;
        const INFINITY: f32 = f32::INFINITY;
        // Codes of: NaN, −NaN, infinity, the smallest overflowing value (and its negative).
        let unsaturated = [
            (Format::E4M3FN, [0x7f, 0xff, 0x7f, 0x7f], 464f32.next_up()),
            (Format::E4M3FNUZ, [0x80, 0x80, 0x80, 0x80], 248.0),
            (Format::E5M2, [0x7f, 0xff, 0x7c, 0x7c], 65536.0),
            (Format::E5M2FNUZ, [0x80, 0x80, 0x80, 0x80], 61440.0),
        ];
        for (format, [nan, negative_nan, infinity, over], overflows) in unsaturated {
            let sign = |code: u8| if code == 0x80 { 0x80 } else { code | 0x80 };
            let max = format.max();
            for saturate in [false, true] {
                assert_eq!(format.encode(NAN, saturate), Some(nan));
                assert_eq!(format.encode(-NAN, saturate), Some(negative_nan));
                assert_eq!(format.encode(format.decode(max).next_up(), saturate), Some(max));
            }
            for (value, code) in [(INFINITY, infinity), (f32::MAX, over), (overflows, over)] {
                assert_eq!(format.encode(value, false), Some(code), "{format:?} {value}");
                assert_eq!(format.encode(-value, false), Some(sign(code)), "{format:?} {value}");
                assert_eq!(format.encode(value, true), Some(max));
                assert_eq!(format.encode(-value, true), Some(max | 0x80));
            }
        }
        assert_eq!(Format::E4M3FN.encode(464.0, false), Some(0x7e));
        assert_eq!(Format::E4M3FNUZ.encode(248f32.next_down(), false), Some(0x7f));
        for format in [Format::E2M3, Format::E3M2, Format::E2M1] {
            for saturate in [false, true] {
                assert_eq!(format.encode(NAN, saturate), Some(format.sign()));
                assert_eq!(format.encode(-NAN, saturate), None);
                assert_eq!(format.encode(INFINITY, saturate), Some(format.magnitude()));
                assert_eq!(format.encode(-f32::MAX, saturate), Some(format.magnitude() | format.sign()));
            }
        }
        // The standard and ONNX Runtime differ.
        for (format, low, high) in [(Format::E4M3FN, 480f32, 496f32), (Format::E5M2, 61440.0, 65536.0)] {
            for value in [low, -low, high.next_down()] {
                assert_eq!(format.encode(value, false), None);
                assert!(format.encode(value, true).is_some());
            }
            assert!(format.encode(low.next_down(), false).is_some() && format.encode(high, false).is_some());
        }
    }

    #[test]
    fn e8m0_rounds_as_asked() {
        use RoundMode::{Down, Nearest, Up};
        const COMBINATIONS: [(bool, RoundMode); 6] =
            [(true, Up), (true, Down), (true, Nearest), (false, Up), (false, Down), (false, Nearest)];
        for code in 1..=254u8 {
            let power = decode_e8m0(code);
            assert_eq!(f64::from(power), 2f64.powi(i32::from(code) - 127));
            for (saturate, mode) in COMBINATIONS {
                assert_eq!(encode_e8m0(power, saturate, mode), Some(code));
                if code < 254 {
                    let next = code + 1;
                    let round = |value: f32| encode_e8m0(value, saturate, mode);
                    let [above, below_half, half, below] =
                        [power.next_up(), (power * 1.5).next_down(), power * 1.5, (power * 2.0).next_down()];
                    let expected = match mode {
                        Up => [next; 4],
                        Down => [code; 4],
                        Nearest => [code, code, next, next],
                    };
                    assert_eq!([above, below_half, half, below].map(round), expected.map(Some), "{power:e} {mode:?}");
                }
            }
        }
        let tiny = 2f32.powi(-127);
        assert_eq!(decode_e8m0(0), tiny);
        let up = |value| encode_e8m0(value, true, Up);
        let nearest = |value| encode_e8m0(value, false, Nearest);
        assert_eq!(
            [0.0, tiny / 2.0, tiny, tiny * 1.25, f32::MAX, f32::INFINITY].map(up),
            [0, 0, 0, 1, 254, 254].map(Some)
        );
        assert_eq!(
            [0.0, tiny.next_down(), tiny, tiny * 1.25, tiny * 1.5, f32::MAX, f32::INFINITY].map(nearest),
            [255, 255, 0, 0, 1, 255, 255].map(Some)
        );
        for (saturate, mode) in COMBINATIONS {
            assert_eq!(encode_e8m0(f32::NAN, saturate, mode), Some(255));
            for negative in [-0.0, -1.0, f32::NEG_INFINITY] {
                assert_eq!(encode_e8m0(negative, saturate, mode), None);
            }
            let open = [0.0, tiny, f32::MAX, f32::INFINITY].map(|value| encode_e8m0(value, saturate, mode).is_none());
            assert_eq!(open, [!matches!((saturate, mode), (true, Up) | (false, Nearest)); 4]);
        }
        assert_eq!(
            ["up", "down", "nearest", "Up"].map(RoundMode::from_name),
            [Some(Up), Some(Down), Some(Nearest), None]
        );
    }
}
