//! Element types with the numbers and names of the standard (`TensorProto.DataType`).

use std::fmt;

/// The list that defines all else: variant, the standard's number, the name in ONNX text syntax, the bits of one element (`None`:
/// variable length).
macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $bits:expr;)*) => {
        /// The type of a tensor's elements: `TensorProto.DataType` without `UNDEFINED`. Discriminants and order are those of the
        /// standard's numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i32)]
        pub enum DType { $($(#[$doc])* $variant = $number,)* }

        impl DType {
            /// All element types, in the order of the standard's numbers.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// Returns the element type with this number in the standard; `None` for `UNDEFINED` and unknown numbers.
            pub fn from_onnx(number: i32) -> Option<DType> {
                match number { $($number => Some(DType::$variant),)* _ => None }
            }

            /// Returns the name in ONNX text syntax: `float`, `int64`, `float8e4m3fn`, …
            pub fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Returns the element type with this name in ONNX text syntax; names are lower case.
            pub fn from_name(name: &str) -> Option<DType> {
                match name { $($name => Some(DType::$variant),)* _ => None }
            }

            /// Returns the bits of one element in a dense payload; `None` for strings.
            pub const fn bits(self) -> Option<usize> {
                match self { $(DType::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    /// IEEE 754 binary32.
    Float = 1, "float", Some(32);
    Uint8 = 2, "uint8", Some(8);
    Int8 = 3, "int8", Some(8);
    Uint16 = 4, "uint16", Some(16);
    Int16 = 5, "int16", Some(16);
    Int32 = 6, "int32", Some(32);
    Int64 = 7, "int64", Some(64);
    /// Byte strings, by convention UTF-8.
    String = 8, "string", None;
    /// One byte per element; true unless zero.
    Bool = 9, "bool", Some(8);
    /// IEEE 754 binary16.
    Float16 = 10, "float16", Some(16);
    /// IEEE 754 binary64.
    Double = 11, "double", Some(64);
    Uint32 = 12, "uint32", Some(32);
    Uint64 = 13, "uint64", Some(64);
    /// Two binary32: real, imaginary.
    Complex64 = 14, "complex64", Some(64);
    /// Two binary64: real, imaginary.
    Complex128 = 15, "complex128", Some(128);
    /// The upper half of a binary32.
    Bfloat16 = 16, "bfloat16", Some(16);
    /// 4 exponent and 3 mantissa bits, no infinity.
    Float8E4M3FN = 17, "float8e4m3fn", Some(8);
    /// 4 exponent and 3 mantissa bits, no infinity, no negative zero.
    Float8E4M3FNUZ = 18, "float8e4m3fnuz", Some(8);
    /// 5 exponent and 2 mantissa bits, IEEE-like.
    Float8E5M2 = 19, "float8e5m2", Some(8);
    /// 5 exponent and 2 mantissa bits, no infinity, no negative zero.
    Float8E5M2FNUZ = 20, "float8e5m2fnuz", Some(8);
    /// Two elements per byte, the first in the low half.
    Uint4 = 21, "uint4", Some(4);
    /// Two elements per byte, the first in the low half; two's complement.
    Int4 = 22, "int4", Some(4);
    /// Two elements per byte, the first in the low half; 2 exponent bits and 1 mantissa bit, finite only.
    Float4E2M1 = 23, "float4e2m1", Some(4);
    /// A power of two: 8 exponent bits, no sign, no zero, one NaN.
    Float8E8M0 = 24, "float8e8m0", Some(8);
    /// Four elements per byte, the first in the lowest bits.
    Uint2 = 25, "uint2", Some(2);
    /// Four elements per byte, the first in the lowest bits; two's complement.
    Int2 = 26, "int2", Some(2);
    /// Four elements in three bytes, the first in the lowest bits; 2 exponent and 3 mantissa bits, finite only.
    Float6E2M3 = 27, "float6e2m3", Some(6);
    /// Four elements in three bytes, the first in the lowest bits; 3 exponent and 2 mantissa bits, finite only.
    Float6E3M2 = 28, "float6e3m2", Some(6);
}

impl DType {
    /// Returns the standard's number of this type.
    pub const fn onnx(self) -> i32 {
        self as i32
    }

    /// Returns the bytes of a dense payload with this many elements: small elements are packed, and the last byte is padded. `None`
    /// for strings, and if the number overflows.
    pub fn byte_len(self, elements: usize) -> Option<usize> {
        let bits = self.bits()?;
        if bits.is_multiple_of(8) {
            return elements.checked_mul(bits / 8);
        }
        // With bits < 8, this sum cannot overflow, because whole groups of eight elements are counted separately.
        (elements / 8).checked_mul(bits)?.checked_add((elements % 8 * bits).div_ceil(8))
    }

    /// Returns `true` if several elements share a byte.
    pub fn is_packed(self) -> bool {
        self.bits().is_some_and(|bits| bits < 8)
    }

    /// Returns `true` for real floating point of any width, including small floats; not for complex types.
    pub fn is_float(self) -> bool {
        matches!(self, DType::Float | DType::Double | DType::Float16 | DType::Bfloat16) || self.is_small_float()
    }

    /// Returns `true` for floating point of at most eight bits.
    pub fn is_small_float(self) -> bool {
        use DType::*;
        matches!(
            self,
            Float8E4M3FN
                | Float8E4M3FNUZ
                | Float8E5M2
                | Float8E5M2FNUZ
                | Float8E8M0
                | Float6E2M3
                | Float6E3M2
                | Float4E2M1
        )
    }

    /// Returns `true` for integers of any width, signed or unsigned; not for bool.
    pub fn is_integer(self) -> bool {
        use DType::*;
        matches!(self, Uint2 | Uint4 | Uint8 | Uint16 | Uint32 | Uint64) || self.is_signed_integer()
    }

    /// Returns `true` for two's complement integers of any width.
    pub fn is_signed_integer(self) -> bool {
        use DType::*;
        matches!(self, Int2 | Int4 | Int8 | Int16 | Int32 | Int64)
    }

    /// Returns `true` for complex numbers.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::Complex64 | DType::Complex128)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_go_both_ways() {
        for (at, &dtype) in DType::ALL.iter().enumerate() {
            assert_eq!(dtype.onnx(), at as i32 + 1);
            assert_eq!(DType::from_onnx(dtype.onnx()), Some(dtype));
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert_eq!(dtype.to_string(), dtype.name());
        }
        for number in [i32::MIN, -1, 0, 29, i32::MAX] {
            assert_eq!(DType::from_onnx(number), None);
        }
        assert_eq!(DType::from_name("undefined"), None);
        assert_eq!(DType::from_name("Float"), None);
    }

    #[test]
    fn kinds_partition_the_types() {
        for &dtype in DType::ALL {
            let kinds = [
                dtype.is_float(),
                dtype.is_integer(),
                dtype.is_complex(),
                dtype == DType::Bool,
                dtype == DType::String,
            ];
            assert_eq!(kinds.iter().filter(|&&kind| kind).count(), 1, "{dtype}");
            assert!(!dtype.is_small_float() || dtype.is_float());
            assert!(!dtype.is_signed_integer() || dtype.is_integer());
        }
    }

    #[test]
    fn byte_lengths_are_packed_rounded_up_and_checked() {
        assert_eq!(DType::Float.byte_len(3), Some(12));
        assert_eq!(DType::Complex128.byte_len(2), Some(32));
        for (elements, bytes) in [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)] {
            assert_eq!(DType::Int2.byte_len(elements), Some(bytes));
        }
        for (elements, bytes) in [(0, 0), (1, 1), (2, 1), (3, 2)] {
            assert_eq!(DType::Uint4.byte_len(elements), Some(bytes));
        }
        for (elements, bytes) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (8, 6), (9, 7)] {
            assert_eq!(DType::Float6E2M3.byte_len(elements), Some(bytes));
        }
        assert_eq!(DType::String.byte_len(0), None);
        assert_eq!(DType::Double.byte_len(usize::MAX), None);
        assert_eq!(DType::Double.byte_len(usize::MAX / 8 + 1), None);
        assert_eq!(DType::Int8.byte_len(usize::MAX), Some(usize::MAX));
        assert_eq!(DType::Int4.byte_len(usize::MAX), Some(usize::MAX / 2 + 1));
        assert_eq!(DType::Float6E3M2.byte_len(usize::MAX), Some(usize::MAX / 8 * 6 + 6));
    }
}
