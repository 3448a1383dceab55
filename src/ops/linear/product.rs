//! The matrix product `C += A·B`, blocked for the caches.
//!
//! Every element of `C` sums its terms in the order of `k`, in blocks of [`KC`], for any number of threads and any
//! processor. So results are equal everywhere. There is no fused multiply-add: not all processors have it, and it
//! rounds differently.
#![allow(clippy::indexing_slicing, reason = "blocks are cut from buffers made for the largest of them")]

use crate::ops::Decline;
use crate::ops::lane::{Lane, Ring, in_lane, read};
use crate::ops::vector::{has_wide_vectors, vectorized};
use crate::tensor::threads;
use crate::tensor::{DType, Tensor};

/// The terms of a partial sum.
const KC: usize = 256;
/// The rows of `A` packed at a time: `MC·KC` elements should fit in the second-level cache.
const MC: usize = 96;
/// The columns of `B` packed at a time.
const NC: usize = 2048;
/// The rows of the micro-kernel.
const MR: usize = 6;
/// The columns of the micro-kernel: the sums of all its rows fit in the registers.
const NR: usize = 8;
/// The columns for elements of 32 bits with wide vectors.
const WIDE: usize = 16;
/// The columns for floats of 32 bits with the widest vectors.
const WIDEST: usize = 32;
/// The number of multiplications from which on several threads are used.
const PARALLEL: usize = 1 << 18;

/// A matrix over a slice: element `(i, j)` is `data[i·row + j·column]`.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Matrix<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// The distance between rows.
    pub row: usize,
    /// The distance between columns.
    pub column: usize,
}

impl<'a, T: Ring> Matrix<'a, T> {
    /// Creates a row-major matrix with this many columns.
    pub fn dense(data: &'a [T], columns: usize) -> Self {
        Matrix { data, row: columns, column: 1 }
    }

    /// Creates the transpose of a row-major matrix with this many columns.
    pub fn transposed(data: &'a [T], columns: usize) -> Self {
        Matrix { data, row: 1, column: columns }
    }

    /// Elements outside the slice are 0; callers pass slices that contain the whole matrix.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> T {
        self.data.get(i * self.row + j * self.column).copied().unwrap_or_default()
    }

    /// Returns `len` elements of row `i` from column `j`, if they are contiguous.
    #[inline(always)]
    fn along_row(&self, i: usize, j: usize, len: usize) -> Option<&'a [T]> {
        if self.column != 1 {
            return None;
        }
        self.data.get(i * self.row + j..)?.get(..len)
    }
}

/// Fails if products of finite numbers may have overflowed: partial sums with infinities of both signs depend on
/// their order and on fused multiply-add. Infinities and NaN of an operand give the same result in all kernels.
///
/// # Errors
/// The result is not finite, and the finite elements of the operands may be the cause.
pub(in crate::ops) fn settled(terms: usize, operands: [&Tensor; 2], result: Tensor) -> Result<Tensor, Decline> {
    let most = match result.dtype() {
        DType::Double => f64::MAX,
        DType::Float | DType::Float16 | DType::Bfloat16 => f64::from(f32::MAX),
        _ => return Ok(result),
    };
    let is_finite = |tensor: &Tensor| -> Result<bool, Decline> {
        in_lane!(tensor.dtype(), T => Ok(read::<T>(tensor)?.chunks(1024).all(all_finite)))
    };
    if is_finite(&result)? {
        return Ok(result);
    }
    let largest = |tensor: &Tensor| -> Result<f64, Decline> {
        in_lane!(tensor.dtype(), T => {
            let sizes = read::<T>(tensor)?;
            let sizes = sizes.iter().map(|value| Lane::to_f64(*value).abs());
            Ok(sizes.filter(|size| size.is_finite()).fold(0.0, f64::max))
        })
    };
    let [a, b] = operands;
    let bound = terms as f64 * largest(a)? * largest(b)?;
    if bound <= most {
        Ok(result)
    } else {
        Err(Decline::unsupported("the product overflows, for which runtimes return different values"))
    }
}

/// Fails unless the operands' elements are finite, and sums of `terms` of their products do not overflow. Kernels sum
/// in different orders; some include the zeros of a padding. Accepts all operands other than floats.
///
/// # Errors
/// An element is not finite, or a sum may overflow.
pub(in crate::ops) fn stays_finite(terms: usize, operands: &[&Tensor]) -> Result<(), Decline> {
    is_bounded(terms, operands, 4.0)
}

/// Does the same for products without further terms. A single product of two operands overflows only if it is too
/// large; a mask of the most negative numbers times 1 does not.
///
/// # Errors
/// An element is not finite, or a sum may overflow.
pub(super) fn products_stay_finite(terms: usize, operands: &[&Tensor]) -> Result<(), Decline> {
    is_bounded(terms, operands, if terms <= 1 && operands.len() <= 2 { 1.0 } else { 4.0 })
}

/// Fails unless the sum of `terms` products of these operands is at most the largest number divided by `room`.
fn is_bounded(terms: usize, operands: &[&Tensor], room: f64) -> Result<(), Decline> {
    let mut bound = terms.max(1) as f64;
    // Powers are products of one operand, which is read once.
    let mut known: Option<(&Tensor, f64)> = None;
    for &tensor in operands {
        if !tensor.dtype().is_float() {
            return Ok(());
        }
        if let Some((_, largest)) = known.filter(|(same, _)| std::ptr::eq(*same, tensor)) {
            bound *= largest;
            continue;
        }
        let largest: Result<f64, Decline> = in_lane!(tensor.dtype(), T => {
            let sizes = read::<T>(tensor)?;
            let sizes = sizes.iter().map(|value| Lane::to_f64(*value).abs());
            Ok(sizes.fold(0.0, |most, size| if f64::is_nan(most) || most > size { most } else { size }))
        });
        let largest = largest?;
        (known, bound) = (Some((tensor, largest)), bound * largest);
    }
    let is_double = operands.iter().all(|tensor| tensor.dtype() == DType::Double);
    let most = if is_double { f64::MAX } else { f64::from(f32::MAX) } / room;
    if bound <= most {
        Ok(())
    } else {
        Err(Decline::unsupported("intermediate results overflow in the kernels of runtimes"))
    }
}

/// Returns `true` if all values are finite. Reads all of them, so that the loop vectorizes.
fn all_finite<T: Lane>(values: &[T]) -> bool {
    values.iter().fold(true, |finite, &value| finite & Lane::to_f64(value).is_finite())
}

/// Adds `A·B` to `c`, which is `m × n`, row-major. `A` is `m × k`, `B` is `k × n`.
pub(in crate::ops) fn multiply_add<T: Ring>(
    m: usize,
    k: usize,
    n: usize,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) {
    if m == 0 || k == 0 || n == 0 {
        return;
    }
    if m < MR && b.column == 1 {
        return by_rows(k, n, a, b, c);
    }
    if T::DTYPE == DType::Float && n > WIDE && floats::are_widest() {
        by_blocks::<T, WIDEST>((m, k, n), a, b, c);
    } else if size_of::<T>() <= 4 && has_wide_vectors() {
        by_blocks::<T, WIDE>((m, k, n), a, b, c);
    } else {
        by_blocks::<T, NR>((m, k, n), a, b, c);
    }
}

/// Computes [`multiply_add`] with a micro-kernel of `N` columns.
fn by_blocks<T: Ring, const N: usize>(
    (m, k, n): (usize, usize, usize),
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) {
    let many = m.saturating_mul(k).saturating_mul(n) > PARALLEL && m > MC.min(4 * MR);
    // Smaller blocks if there are fewer blocks of `MC` rows than threads.
    let threads = if many { threads::count() } else { 1 };
    let rows = MC.min(m.div_ceil(threads).next_multiple_of(MR));
    let mut packed_b = vec![T::default(); KC.min(k) * NC.min(n.next_multiple_of(N))];
    for j0 in (0..n).step_by(NC) {
        let width = NC.min(n - j0);
        for k0 in (0..k).step_by(KC) {
            let depth = KC.min(k - k0);
            let panels = &mut packed_b[..depth * width.next_multiple_of(N)];
            pack_columns::<T, N>(b, k0, depth, j0, width, panels);
            let panels = &*panels;
            let block = |(at, c): (usize, &mut [T])| {
                let i0 = at * rows;
                let height = rows.min(m - i0);
                let mut packed_a = vec![T::default(); depth * height.next_multiple_of(MR)];
                pack_rows(a, i0, height, k0, depth, &mut packed_a);
                multiply_block::<T, N>(depth, &packed_a, panels, n, j0, width, c);
            };
            let blocks = c.chunks_mut(rows * n).enumerate();
            if many {
                threads::for_each(blocks, block);
            } else {
                blocks.for_each(block);
            }
        }
    }
}

/// Multiplies few rows without packing; reads each row of `B` in place.
fn by_rows<T: Ring>(k: usize, n: usize, a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T]) {
    const WIDTH: usize = 1024;
    let mut partial = [T::default(); WIDTH];
    for (i, c) in c.chunks_mut(n).enumerate() {
        for (at, c) in c.chunks_mut(WIDTH).enumerate() {
            let partial = &mut partial[..c.len()];
            for k0 in (0..k).step_by(KC) {
                partial.fill(T::default());
                for kk in k0..k.min(k0 + KC) {
                    let factor = a.at(i, kk);
                    if let Some(row) = b.along_row(kk, at * WIDTH, c.len()) {
                        partial.iter_mut().zip(row).for_each(|(sum, &b)| *sum = sum.accumulate(factor, b));
                    }
                }
                c.iter_mut().zip(&*partial).for_each(|(c, &sum)| *c = c.plus(sum));
            }
        }
    }
}

/// Packs a block of `B` into panels of `N` columns, each row by row; missing columns are 0.
fn pack_columns<T: Ring, const N: usize>(
    b: Matrix<'_, T>,
    k0: usize,
    depth: usize,
    j0: usize,
    width: usize,
    panels: &mut [T],
) {
    for (at, panel) in panels.chunks_exact_mut(depth * N).enumerate() {
        let j = j0 + at * N;
        let columns = N.min(j0 + width - j);
        for (kk, row) in panel.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            if let Some(found) = b.along_row(k0 + kk, j, N).and_then(|found| found.first_chunk::<N>())
                && columns == N
            {
                *row = *found;
                continue;
            }
            match b.along_row(k0 + kk, j, columns) {
                Some(found) => row[..columns].copy_from_slice(found),
                None => row[..columns].iter_mut().enumerate().for_each(|(x, to)| *to = b.at(k0 + kk, j + x)),
            }
            row[columns..].fill(T::default());
        }
    }
}

/// Packs a block of `A` into panels of [`MR`] rows, each column by column; missing rows are 0.
fn pack_rows<T: Ring>(a: Matrix<'_, T>, i0: usize, height: usize, k0: usize, depth: usize, panels: &mut [T]) {
    for (at, panel) in panels.chunks_exact_mut(depth * MR).enumerate() {
        let i = i0 + at * MR;
        let rows = MR.min(i0 + height - i);
        let (columns, _) = panel.as_chunks_mut::<MR>();
        if rows < MR {
            columns.iter_mut().for_each(|column| *column = [T::default(); MR]);
        }
        for x in 0..rows {
            match a.along_row(i + x, k0, depth) {
                Some(row) => columns.iter_mut().zip(row).for_each(|(column, &element)| column[x] = element),
                None => columns.iter_mut().enumerate().for_each(|(kk, column)| column[x] = a.at(i + x, k0 + kk)),
            }
        }
    }
}

/// Adds the packed product to columns `j0 .. j0 + width` of a block of rows of `C`, which has `n` columns.
fn multiply_block<T: Ring, const N: usize>(
    depth: usize,
    packed_a: &[T],
    packed_b: &[T],
    n: usize,
    j0: usize,
    width: usize,
    c: &mut [T],
) {
    for (at, b) in packed_b.chunks_exact(depth * N).enumerate() {
        let j = at * N;
        let columns = N.min(width - j);
        for (a, c) in packed_a.chunks_exact(depth * MR).zip(c.chunks_mut(MR * n)) {
            let sums = kernel::<T, N>(a, b);
            for (c, sums) in c.chunks_mut(n).zip(&sums) {
                let c = &mut c[j0 + j..][..columns];
                // The compiler vectorizes the addition of a full row of the micro-kernel.
                match c.first_chunk_mut::<N>() {
                    Some(c) => c.iter_mut().zip(sums).for_each(|(c, &sum)| *c = c.plus(sum)),
                    None => c.iter_mut().zip(sums).for_each(|(c, &sum)| *c = c.plus(sum)),
                }
            }
        }
    }
}

/// Multiplies a panel of rows and a panel of columns, in two halves if the sums do not fit in the registers.
#[inline(never)]
fn kernel<T: Ring, const N: usize>(a: &[T], b: &[T]) -> [[T; N]; MR] {
    const HALF: usize = NR / 2;
    if N == WIDEST && T::DTYPE == DType::Float {
        let mut sums = [[T::default(); N]; MR];
        let rows = bytemuck::cast_slice_mut(sums.as_flattened_mut());
        if floats::product(bytemuck::cast_slice(a), bytemuck::cast_slice(b), rows) {
            return sums;
        }
    }
    if size_of::<T>() <= 4 || has_wide_vectors() {
        return vectorized(
            #[inline(always)]
            || kernel_part::<T, N, N>(a, b, 0),
        );
    }
    let mut sums = [[T::default(); N]; MR];
    for at in (0..N).step_by(HALF) {
        for (sums, part) in sums.iter_mut().zip(kernel_part::<T, N, HALF>(a, b, at)) {
            sums[at..][..HALF].copy_from_slice(&part);
        }
    }
    sums
}

/// Computes columns `at .. at + PART` of the product of two panels, the second with `N` columns.
#[inline(always)]
fn kernel_part<T: Ring, const N: usize, const PART: usize>(a: &[T], b: &[T], at: usize) -> [[T; PART]; MR] {
    let mut sums = [[T::default(); PART]; MR];
    let (a, _) = a.as_chunks::<MR>();
    let (b, _) = b.as_chunks::<N>();
    for (a, b) in a.iter().zip(b) {
        let Some(b) = b[at..].first_chunk::<PART>() else { break };
        for (sums, &a) in sums.iter_mut().zip(a) {
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum = sum.accumulate(a, b);
            }
        }
    }
    sums
}

/// The micro-kernel for floats of 32 bits and vectors of 64 bytes, which the compiler does not generate: equal sums
/// in equal order.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod floats {
    use fearless_simd::{Simd, SimdBase, f32x16};

    use super::{MR, WIDEST};
    use crate::ops::vector::widest_vectors;

    pub(super) fn are_widest() -> bool {
        widest_vectors().is_some()
    }

    /// Writes the product of a panel of rows and one of [`WIDEST`] columns to `sums`, row by row. Returns `false` if
    /// the processor lacks these vectors.
    pub(super) fn product(a: &[f32], b: &[f32], sums: &mut [f32]) -> bool {
        let Some(widest) = widest_vectors() else { return false };
        widest.vectorize(
            #[inline(always)]
            || panels(widest, a, b, sums),
        );
        true
    }

    #[inline(always)]
    fn panels<S: Simd>(simd: S, a: &[f32], b: &[f32], sums: &mut [f32]) {
        const LANES: usize = WIDEST / 2;
        let mut rows = [[f32x16::splat(simd, 0.0); 2]; MR];
        let (a, _) = a.as_chunks::<MR>();
        let (b, _) = b.as_chunks::<WIDEST>();
        for (a, b) in a.iter().zip(b) {
            let (left, right) = b.split_at(LANES);
            let columns = [f32x16::from_slice(simd, left), f32x16::from_slice(simd, right)];
            for (row, &a) in rows.iter_mut().zip(a) {
                let a = f32x16::splat(simd, a);
                for (sum, column) in row.iter_mut().zip(columns) {
                    *sum += a * column;
                }
            }
        }
        for (out, sum) in sums.chunks_exact_mut(LANES).zip(rows.as_flattened()) {
            out.copy_from_slice(sum.as_slice());
        }
    }
}

/// Other architectures have no such vectors.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
mod floats {
    pub(super) fn are_widest() -> bool {
        false
    }

    pub(super) fn product(_: &[f32], _: &[f32], _: &mut [f32]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive<T: Ring>(m: usize, k: usize, n: usize, a: Matrix<'_, T>, b: Matrix<'_, T>) -> Vec<T> {
        let mut c = vec![T::default(); m * n];
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] = (0..k).fold(T::default(), |sum, kk| sum.accumulate(a.at(i, kk), b.at(kk, j)));
            }
        }
        c
    }

    #[test]
    fn every_layout_and_remainder_gives_the_plain_sums() {
        let numbers: Vec<u64> = (0..40_000u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        plain_sums(&numbers);
        plain_sums(&numbers.iter().map(|&number| (number >> 32) as u32).collect::<Vec<_>>());
    }

    fn plain_sums<T: Ring>(numbers: &[T]) {
        for (m, k, n) in [(1, 1, 1), (1, 300, 9), (5, 3, 1100), (6, 8, 8), (7, 257, 17), (100, 30, 31), (3, 0, 2)] {
            let layouts = |rows, columns| [Matrix::dense(numbers, columns), Matrix::transposed(numbers, rows)];
            for a in layouts(m, k) {
                for b in layouts(k, n) {
                    let mut c = vec![T::default(); m * n];
                    multiply_add(m, k, n, a, b, &mut c);
                    assert!(c == naive(m, k, n, a, b), "{m} × {k} × {n}");
                }
            }
        }
    }

    /// Results are equal in all bits for every micro-kernel.
    #[test]
    fn sums_are_those_of_blocks_of_terms() {
        let numbers: Vec<f32> = (0..40_000).map(|at| ((at * 7919) % 1009) as f32 / 997.0 - 0.5).collect();
        let (m, k, n) = (13, 600, 37);
        let (a, b) = (Matrix::dense(&numbers, k), Matrix::dense(&numbers, n));
        let mut c = vec![0.0f32; m * n];
        multiply_add(m, k, n, a, b, &mut c);
        for (i, j) in [(0, 0), (12, 36), (7, 19)] {
            let block = |from: usize| {
                let terms = from..k.min(from + KC);
                terms.fold(0.0f32, |sum, kk| sum + numbers[i * k + kk] * numbers[kk * n + j])
            };
            let expected = (0..k).step_by(KC).fold(0.0f32, |sum, from| sum + block(from));
            assert_eq!(c[i * n + j].to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let numbers: Vec<f32> = (0..300 * 300).map(|at| ((at * 7919) % 1009) as f32 / 997.0).collect();
        let product = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut c = vec![0.0f32; 300 * 300];
            let numbers = Matrix::dense(&numbers, 300);
            pool.install(|| multiply_add(300, 300, 300, numbers, numbers, &mut c));
            c
        };
        assert_eq!(product(1), product(3));
    }
}
