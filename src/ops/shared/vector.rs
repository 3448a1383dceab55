//! Loops compiled twice: for the baseline vectors of a processor family, and for the wide vectors of most processors.
//!
//! A program for x86-64 may use only 16-byte vectors unless it detects more at run time. Results are the same bit for bit: float
//! operations are rounded separately, and the compiler neither reorders nor fuses them.

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use fearless_simd::{Avx512, Level, Simd as _};
use half::{bf16, f16};

use crate::tensor::{Number, Tensor};

/// Runs `work` with 32-byte vectors if the processor has them. Only inlined code is vectorized: write `work` as
/// `#[inline(always)] || …`, and mark the functions that its loops call in the same way.
#[inline(always)]
pub(in crate::ops) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let Some(wide) = Level::new().as_avx2() {
        return wide.vectorize(work);
    }
    work()
}

/// Returns `true` if the processor has 32-byte vectors for [`vectorized`].
pub(in crate::ops) fn has_wide_vectors() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return Level::new().as_avx2().is_some();
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    false
}

/// Returns the token for 64-byte vectors if the processor has them. The compiler uses such vectors by default in few loops.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(in crate::ops) fn widest_vectors() -> Option<Avx512> {
    Level::new().as_avx512()
}

/// The number of independent partial sums: enough to fill a vector register and hide its latency. They are also more accurate
/// than one sum.
pub(in crate::ops) const LANES: usize = 8;

/// Folds a run of elements: `step` adds an element to a partial result, `merge` combines two partial results.
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

/// Returns the index of the first (or last) element in a run that satisfies the predicate. Tests whole blocks, so that several
/// elements are compared at once.
#[inline(always)]
pub(in crate::ops) fn find_in_run<T: Copy>(run: &[T], last: bool, holds: impl Fn(T) -> bool) -> Option<usize> {
    const BLOCK: usize = 4 * LANES;
    let holds = |&element: &T| holds(element);
    let has_one = |block: &[T]| block.iter().map(|element| u32::from(holds(element))).sum::<u32>() > 0;
    if last {
        let behind = run.rchunks(BLOCK).position(has_one)? * BLOCK;
        return run.get(..run.len().checked_sub(behind)?)?.iter().rposition(holds);
    }
    let before = run.chunks(BLOCK).position(has_one)? * BLOCK;
    Some(before + run.get(before..)?.iter().position(holds)?)
}

/// A type whose elements can be read in place. In a mapped file, payloads may be unaligned; copying a payload to align it takes
/// longer than most loops.
pub(in crate::ops) trait Stored: Number {
    /// The bytes of an element, in payload order.
    type Bytes: Copy + Send + Sync;

    /// Returns the element with these bytes.
    fn of_bytes(bytes: Self::Bytes) -> Self;

    /// Returns the elements of a tensor of this type; `None` for other types.
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

stored! { f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 }

/// A float type. Without the sign, the bits of floats have the order of the floats, with NaN above infinity; integer comparisons
/// are faster.
pub(in crate::ops) trait StoredFloat: Stored {
    /// Returns the largest magnitude of these elements; 0 if there are none, infinity if one is NaN.
    fn greatest(elements: &[Self::Bytes]) -> f64;
}

macro_rules! stored_floats {
    ($($type:ident as $bits:ident)*) => {
        $(impl StoredFloat for $type {
            #[inline(always)]
            fn greatest(elements: &[Self::Bytes]) -> f64 {
                let magnitude = |bytes| $bits::from_le_bytes(bytes) & ($bits::MAX >> 1);
                let bits = fold_run(elements, 0, |most: $bits, bytes| most.max(magnitude(bytes)), $bits::max);
                let found = Number::to_f64($type::from_bits(bits));
                if found.is_nan() { f64::INFINITY } else { found }
            }
        })*
    };
}

stored_floats! { f32 as u32 f64 as u64 f16 as u16 bf16 as u16 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_find_the_same_as_a_sequential_scan() {
        let numbers: Vec<u32> = (0..300).map(|at: u32| at.wrapping_mul(2_654_435_761) >> 25).collect();
        for len in [0, 1, 31, 32, 33, 64, 100, 299] {
            for wanted in 0..130 {
                let run = &numbers[..len];
                let is_it = |x: &u32| *x == wanted;
                assert_eq!(find_in_run(run, false, |x| x == wanted), run.iter().position(is_it), "{len} {wanted}");
                assert_eq!(find_in_run(run, true, |x| x == wanted), run.iter().rposition(is_it), "{len} {wanted}");
            }
        }
    }

    #[test]
    fn the_greatest_magnitude_is_that_of_the_floats() {
        let bytes = |x: f32| x.to_le_bytes();
        assert_eq!(f32::greatest(&[]), 0.0);
        assert_eq!(f32::greatest(&[1.5, -3.0, 0.0, 1e-40].map(bytes)), 3.0);
        assert_eq!(f32::greatest(&[1.5, f32::NEG_INFINITY].map(bytes)), f64::INFINITY);
        assert_eq!(f32::greatest(&[-f32::NAN, 1.5].map(bytes)), f64::INFINITY);
        let halves: Vec<[u8; 2]> = [0.5, -2.0].map(|x| f16::from_f64(x).to_le_bytes()).to_vec();
        assert_eq!(f16::greatest(&halves), 2.0);
    }
}
