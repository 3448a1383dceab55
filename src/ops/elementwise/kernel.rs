//! The loops: every element of one operand, of two that broadcast, and the widths they run in.
//!
//! Arithmetic runs in the element's own type, except that `float16` and `bfloat16` are widened to binary32 first and rounded
//! once at the end. Large results are computed in parallel pieces; no element depends on another, so the pieces do not show.

use std::borrow::Cow;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;

use crate::ops::broadcast::Broadcast;
use crate::ops::{Decline, EvalCx, EvalResult};
use crate::tensor::{DType, Element, Tensor};

/// Elements one task computes.
const PIECE: usize = 1 << 16;

/// Results of more bytes than this are computed by several threads.
const PARALLEL_BYTES: usize = 4 << 20;

/// Runs an expression with the type an element type computes in: `lanes!(dtype, T => f::<T>(), else => g())`. `float16` and
/// `bfloat16` are not among them: [`widened`] takes them away first.
macro_rules! lanes {
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
pub(super) use lanes;

/// The decline for an element type the standard does not allow here.
pub(super) fn wrong_dtype(dtype: DType) -> Decline {
    Decline::invalid(format!("{dtype} is not an element type of this operator"))
}

/// `len` elements, computed piece by piece: `fill` gets where a piece starts, and the piece.
pub(super) fn computed<O: Element>(len: usize, fill: &(dyn Fn(usize, &mut [O]) + Sync)) -> Vec<O> {
    let mut result = vec![O::zeroed(); len];
    if len.saturating_mul(size_of::<O>()) > PARALLEL_BYTES {
        result.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| fill(piece * PIECE, out));
    } else {
        fill(0, &mut result);
    }
    result
}

/// A function of each element.
pub(super) fn map<T: Element, O: Element>(values: &[T], function: impl Fn(T) -> O + Sync) -> Vec<O> {
    computed(values.len(), &|start, out| {
        let values = values.get(start..).unwrap_or_default();
        for (out, &value) in out.iter_mut().zip(values) {
            *out = function(value);
        }
    })
}

/// A function of each pair of elements of two operands that broadcast.
pub(super) fn zip<A: Element, B: Element, O: Element>(
    way: &Broadcast<2>,
    a: &[A],
    b: &[B],
    function: impl Fn(A, B) -> O + Sync,
) -> Vec<O> {
    computed(way.len(), &|start, out| {
        way.runs(start..start + out.len(), |run, [of_a, of_b]| {
            let out = out.get_mut(run).unwrap_or_default();
            let (a, b) = (a.get(of_a).unwrap_or_default(), b.get(of_b).unwrap_or_default());
            match (a, b) {
                (&[a], b) if out.len() > 1 && b.len() > 1 => {
                    out.iter_mut().zip(b).for_each(|(out, &b)| *out = function(a, b));
                }
                (a, &[b]) if out.len() > 1 => out.iter_mut().zip(a).for_each(|(out, &a)| *out = function(a, b)),
                _ => out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = function(a, b)),
            }
        });
    })
}

/// The tensor, `float16` and `bfloat16` widened to `float`, which is exact.
pub(super) fn widened(tensor: &Tensor) -> Result<Cow<'_, Tensor>, Decline> {
    let values = if let Some(values) = tensor.elements::<f16>() {
        computed(values.len(), &|start, out: &mut [f32]| {
            values.get(start..start + out.len()).unwrap_or_default().convert_to_f32_slice(out);
        })
    } else if let Some(values) = tensor.elements::<bf16>() {
        map(&values, bf16::to_f32)
    } else {
        return Ok(Cow::Borrowed(tensor));
    };
    Ok(Cow::Owned(Tensor::from_vec(tensor.shape(), values)?))
}

/// A tensor computed in the width of [`widened`] operands, rounded back to their type.
pub(super) fn narrowed(dtype: DType, tensor: Tensor) -> Result<Tensor, Decline> {
    let Some(values) = tensor.elements::<f32>().filter(|_| tensor.dtype() != dtype) else { return Ok(tensor) };
    let shape = tensor.shape();
    Ok(match dtype {
        DType::Float16 => {
            let narrow = computed(values.len(), &|start, out: &mut [f16]| {
                out.convert_from_f32_slice(values.get(start..start + out.len()).unwrap_or_default());
            });
            Tensor::from_vec(shape, narrow)?
        }
        DType::Bfloat16 => Tensor::from_vec(shape, map(&values, bf16::from_f32))?,
        _ => return Err(wrong_dtype(dtype)),
    })
}

/// A function of each element of a floating-point tensor, computed in binary64 and rounded: to the 16-bit types by way of
/// binary32, as runtimes do.
pub(super) fn map_floats(tensor: &Tensor, function: impl Fn(f64) -> f64 + Sync) -> Result<Tensor, Decline> {
    let shape = tensor.shape();
    Ok(match tensor.dtype() {
        DType::Float => Tensor::from_vec(shape, map(&elements::<f32>(tensor)?, |x| function(f64::from(x)) as f32))?,
        DType::Double => Tensor::from_vec(shape, map(&elements::<f64>(tensor)?, function))?,
        DType::Float16 => {
            Tensor::from_vec(shape, map(&elements::<f16>(tensor)?, |x| f16::from_f32(function(x.to_f64()) as f32)))?
        }
        DType::Bfloat16 => {
            Tensor::from_vec(shape, map(&elements::<bf16>(tensor)?, |x| bf16::from_f32(function(x.to_f64()) as f32)))?
        }
        dtype => return Err(wrong_dtype(dtype)),
    })
}

/// Takes what an elementwise result costs from the budget: its bytes, and `work` operations an element.
pub(super) fn charge(cx: &EvalCx<'_>, dtype: DType, shape: &[usize], work: u64) -> Result<(), Decline> {
    cx.claim(dtype, shape)?;
    let len = crate::tensor::product(shape).unwrap_or(usize::MAX);
    cx.budget().take_work(u64::try_from(len).unwrap_or(u64::MAX).saturating_mul(work))
}

/// The elements of a tensor whose type was asked for before.
pub(super) fn elements<T: Element>(tensor: &Tensor) -> Result<Cow<'_, [T]>, Decline> {
    tensor.elements::<T>().ok_or_else(|| wrong_dtype(tensor.dtype()))
}

/// The one result of an evaluation.
pub(super) fn single(tensor: Tensor) -> EvalResult {
    Ok(vec![tensor.into()])
}
