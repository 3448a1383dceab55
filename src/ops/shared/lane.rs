//! The types that arithmetic computes in.
//!
//! | elements | lane | result |
//! |---|---|---|
//! | float16, bfloat16, float | `f32` | rounded once, at the end |
//! | double | `f64` | |
//! | integers of at most 32 bits | `u32` | truncated: ring arithmetic modulo 2ⁿ is exact modulo 2ᵐ for m ≤ n |
//! | integers of 64 bits | `u64` | |
//!
//! So each bulk algorithm has four instances instead of twelve. All arithmetic uses Rust's operators: separate multiplications
//! and additions, never fused, so results have the same bits on all machines.

use std::borrow::Cow;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::ops::Decline;
use crate::tensor::{DType, Element, Tensor};

/// A type with addition and multiplication; integers wrap.
pub(in crate::ops) trait Ring: Element + Default + PartialEq {
    /// Computes `self + a·b`.
    fn accumulate(self, a: Self, b: Self) -> Self;

    /// Computes `self + other`.
    fn plus(self, other: Self) -> Self;

    /// Computes `self · other`.
    fn times(self, other: Self) -> Self;

    /// Returns 1.
    fn one() -> Self;

    /// Returns the elements of a tensor whose arithmetic uses this type.
    fn read(tensor: &Tensor) -> Option<Cow<'_, [Self]>>;

    /// Builds a tensor of an element type whose arithmetic uses this type.
    fn write(dtype: DType, shape: &[usize], values: Vec<Self>) -> Result<Tensor, Decline>;
}

/// A binary floating-point type for arithmetic.
pub(in crate::ops) trait Lane: Ring + PartialOrd {
    fn to_f64(self) -> f64;

    /// Rounds to nearest, ties to even.
    fn of(value: f64) -> Self;
}

macro_rules! float_ring {
    ($type:ident, $read:expr, $write:expr) => {
        impl Ring for $type {
            #[inline(always)]
            fn accumulate(self, a: Self, b: Self) -> Self {
                self + a * b
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn one() -> Self {
                1.0
            }
            fn read(tensor: &Tensor) -> Option<Cow<'_, [Self]>> {
                $read(tensor)
            }
            fn write(dtype: DType, shape: &[usize], values: Vec<Self>) -> Result<Tensor, Decline> {
                $write(dtype, shape, values)
            }
        }

        impl Lane for $type {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $type
            }
        }
    };
}

float_ring!(f32, read_f32, write_f32);
float_ring!(f64, read_f64, write_f64);

fn read_f64(tensor: &Tensor) -> Option<Cow<'_, [f64]>> {
    tensor.elements::<f64>()
}

fn write_f64(dtype: DType, shape: &[usize], values: Vec<f64>) -> Result<Tensor, Decline> {
    match dtype {
        DType::Double => Ok(Tensor::from_vec(shape, values)?),
        _ => Err(not_in_lane(dtype)),
    }
}

fn read_f32(tensor: &Tensor) -> Option<Cow<'_, [f32]>> {
    match tensor.dtype() {
        DType::Float => tensor.elements::<f32>(),
        DType::Float16 => {
            let halves = tensor.elements::<f16>()?;
            let mut wide = vec![0.0; halves.len()];
            halves.convert_to_f32_slice(&mut wide);
            Some(Cow::Owned(wide))
        }
        DType::Bfloat16 => {
            let halves = tensor.elements::<bf16>()?;
            let mut wide = vec![0.0; halves.len()];
            halves.convert_to_f32_slice(&mut wide);
            Some(Cow::Owned(wide))
        }
        _ => None,
    }
}

fn write_f32(dtype: DType, shape: &[usize], values: Vec<f32>) -> Result<Tensor, Decline> {
    Ok(match dtype {
        DType::Float => Tensor::from_vec(shape, values)?,
        DType::Float16 => {
            let mut halves = vec![f16::ZERO; values.len()];
            halves.convert_from_f32_slice(&values);
            Tensor::from_vec(shape, halves)?
        }
        DType::Bfloat16 => {
            let mut halves = vec![bf16::ZERO; values.len()];
            halves.convert_from_f32_slice(&values);
            Tensor::from_vec(shape, halves)?
        }
        _ => return Err(not_in_lane(dtype)),
    })
}

macro_rules! integer_ring {
    ($type:ident: $($dtype:ident = $element:ident),*) => {
        impl Ring for $type {
            #[inline(always)]
            fn accumulate(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn one() -> Self {
                1
            }
            fn read(tensor: &Tensor) -> Option<Cow<'_, [Self]>> {
                match tensor.dtype() {
                    $(DType::$dtype => {
                        Some(Cow::Owned(tensor.elements::<$element>()?.iter().map(|&value| value as $type).collect()))
                    })*
                    _ => None,
                }
            }
            fn write(dtype: DType, shape: &[usize], values: Vec<Self>) -> Result<Tensor, Decline> {
                match dtype {
                    $(DType::$dtype => {
                        let values: Vec<$element> = values.into_iter().map(|value| value as $element).collect();
                        Ok(Tensor::from_vec(shape, values)?)
                    })*
                    _ => Err(not_in_lane(dtype)),
                }
            }
        }
    };
}

integer_ring!(u32: Int8 = i8, Int16 = i16, Int32 = i32, Uint8 = u8, Uint16 = u16, Uint32 = u32);
integer_ring!(u64: Int64 = i64, Uint64 = u64);

fn not_in_lane(dtype: DType) -> Decline {
    Decline::unsupported(format!("arithmetic on {dtype} is not supported"))
}

/// Returns the elements of a tensor in the type of its arithmetic.
///
/// # Errors
/// The tensor's arithmetic uses another type: the operands' types differ.
pub(in crate::ops) fn read<T: Ring>(tensor: &Tensor) -> Result<Cow<'_, [T]>, Decline> {
    T::read(tensor).ok_or_else(|| {
        Decline::invalid(format!("an operand has type {}, which the operator does not accept", tensor.dtype()))
    })
}

/// Checks that the operands have this type.
///
/// # Errors
/// Some operand has another type.
pub(in crate::ops) fn same_dtype(dtype: DType, operands: &[&Tensor]) -> Result<(), Decline> {
    match operands.iter().find(|operand| operand.dtype() != dtype) {
        None => Ok(()),
        Some(other) => Err(Decline::invalid(format!("the operand types {dtype} and {} do not match", other.dtype()))),
    }
}

/// Runs an expression with the [`Lane`] of a floating-point type: `in_lane!(dtype, T => f::<T>(…))`. Declines other types.
macro_rules! in_lane {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::tensor::DType::Float | $crate::tensor::DType::Float16 | $crate::tensor::DType::Bfloat16 => {
                type $T = f32;
                $body
            }
            $crate::tensor::DType::Double => {
                type $T = f64;
                $body
            }
            other => Err($crate::ops::Decline::unsupported(format!("the element type {other} is not supported"))),
        }
    };
}
pub(in crate::ops) use in_lane;

/// Runs an expression with the [`Ring`] of a number type. Declines other types.
macro_rules! in_ring {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::tensor::DType::Float | $crate::tensor::DType::Float16 | $crate::tensor::DType::Bfloat16 => {
                type $T = f32;
                $body
            }
            $crate::tensor::DType::Double => {
                type $T = f64;
                $body
            }
            $crate::tensor::DType::Int64 | $crate::tensor::DType::Uint64 => {
                type $T = u64;
                $body
            }
            $crate::tensor::DType::Int8
            | $crate::tensor::DType::Int16
            | $crate::tensor::DType::Int32
            | $crate::tensor::DType::Uint8
            | $crate::tensor::DType::Uint16
            | $crate::tensor::DType::Uint32 => {
                type $T = u32;
                $body
            }
            other => Err($crate::ops::Decline::unsupported(format!("the element type {other} is not supported"))),
        }
    };
}
pub(in crate::ops) use in_ring;
