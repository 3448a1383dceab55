//! Loops compiled twice: for the vectors that every processor of its kind has, and for the wide ones that most have.
//!
//! A program for x86-64 may use vectors of 16 bytes only, unless it asks the processor first. What is computed is the same either way, bit
//! for bit: each operation on floats is rounded by itself, and the compiler neither reorders them nor multiplies and adds at once.

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use fearless_simd::{Avx512, Level, Simd as _};
use half::{bf16, f16};

use crate::tensor::{Number, Tensor};

/// What `work` gives, computed with vectors of 32 bytes where the processor has them. Only what is inlined into `work` is: write it as
/// `#[inline(always)] || …`, and mark the functions that its loops call likewise.
#[inline(always)]
pub(in crate::ops) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let Some(wide) = Level::new().as_avx2() {
        return wide.vectorize(work);
    }
    work()
}

/// Whether the processor has vectors of 32 bytes that [`vectorized`] uses.
pub(in crate::ops) fn has_wide_vectors() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return Level::new().as_avx2().is_some();
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    false
}

/// What stands for vectors of 64 bytes where the processor has them. Of few loops does the compiler make such vectors by itself.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(in crate::ops) fn widest_vectors() -> Option<Avx512> {
    Level::new().as_avx512()
}

/// Independent partial sums: enough to fill a vector register and hide its latency, and closer to a pairwise sum than one.
pub(in crate::ops) const LANES: usize = 8;

/// Folds a run of elements: `step` takes one into a partial result, `merge` unites two of those.
#[inline(always)]
pub(in crate::ops) fn fold_run<T: Copy, A: Copy>(
    run: &[T],
    start: A,
    step: impl Fn(A, T) -> A,
    merge: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [start; LANES];
    let (blocks, rest) = run.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &element) in lanes.iter_mut().zip(block) {
            *lane = step(*lane, element);
        }
    }
    for (lane, &element) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, element);
    }
    lanes.into_iter().reduce(merge).unwrap_or(start)
}

/// A float type whose elements can be read where they lie. In a mapped file that is at any address, and copying a payload to an aligned one
/// takes longer than most loops over it.
pub(in crate::ops) trait Stored: Number {
    /// The bytes of an element, in the order of a payload.
    type Bytes: Copy + Send + Sync;

    /// The element with these bytes.
    fn of_bytes(bytes: Self::Bytes) -> Self;

    /// The elements of a tensor of this type; `None` for other types.
    fn stored(tensor: &Tensor) -> Option<&[Self::Bytes]>;
}

macro_rules! stored {
    ($($type:ident)*) => {
        $(impl Stored for $type {
            type Bytes = [u8; size_of::<$type>()];

            #[inline(always)]
            fn of_bytes(bytes: Self::Bytes) -> Self {
                $type::from_le_bytes(bytes)
            }

            fn stored(tensor: &Tensor) -> Option<&[Self::Bytes]> {
                (tensor.dtype() == <$type as crate::tensor::Element>::DTYPE).then(|| tensor.bytes().as_chunks().0)
            }
        })*
    };
}

stored! { f32 f64 f16 bf16 }
