//! The discrete Fourier transform of any length, in binary64.
//!
//! Lengths that are powers of two are transformed by halves (Cooley and Tukey). Any other length `n` is a convolution
//! (Bluestein): since `2jk = j² + k² − (k − j)²`,
//!
//! `X[k] = w^(k²) Σ x[j]·w^(j²) · w^(−(k−j)²)` with `w = exp(−πi / n)`,
//!
//! and a convolution is a product of transforms of a power of two of at least `2n − 1`.

use std::f64::consts::PI;

/// A complex number: real and imaginary part.
pub(super) type Complex = [f64; 2];

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn conjugate([a, b]: Complex) -> Complex {
    [a, -b]
}

/// Returns `exp(−2πi · numerator / denominator)` for a numerator within the denominator.
fn root(numerator: usize, denominator: usize) -> Complex {
    let angle = -2.0 * PI * (numerator as f64 / denominator as f64);
    let (sin, cos) = libm::sincos(angle);
    [cos, sin]
}

/// Tables for the transforms of one length.
pub(super) struct FourierTables {
    length: usize,
    /// `length`, or the power of two in which convolutions of this length are computed.
    inner: usize,
    /// The first half of the roots of unity of `inner`.
    roots: Vec<Complex>,
    /// The factors `w^(j²)`; empty for powers of two.
    chirp: Vec<Complex>,
    /// The transform of the conjugate of `chirp`, wrapped around.
    kernel: Vec<Complex>,
}

impl FourierTables {
    /// Returns the memory of the tables and one transform, in complex numbers.
    pub(super) fn memory(length: usize) -> usize {
        length.saturating_mul(16)
    }

    /// Returns the approximate number of multiplications of one transform.
    pub(super) fn work(length: usize) -> u64 {
        let wide = (length as u64).saturating_mul(8);
        wide.saturating_mul(u64::from(usize::BITS - length.leading_zeros()))
    }

    /// Returns the length of the transform.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Computes the tables for a length of at least 1.
    pub(super) fn new(length: usize) -> FourierTables {
        let direct = length.is_power_of_two();
        let inner = if direct { length } else { (2 * length - 1).next_power_of_two() };
        let roots = (0..inner / 2).map(|at| root(at, inner)).collect();
        let mut tables = FourierTables { length, inner, roots, chirp: Vec::new(), kernel: Vec::new() };
        if !direct {
            // w^(j²) only depends on j² modulo 2n; j² itself may be too large to be exact.
            let turns = 2 * length;
            let square = |at: usize| (at as u128 * at as u128 % turns as u128) as usize;
            tables.chirp = (0..length).map(|at| root(square(at), turns)).collect();
            tables.kernel = vec![[0.0; 2]; inner];
            for (at, &chirp) in tables.chirp.iter().enumerate() {
                for place in [at, (inner - at) % inner] {
                    if let Some(value) = tables.kernel.get_mut(place) {
                        *value = conjugate(chirp);
                    }
                }
            }
            let mut kernel = std::mem::take(&mut tables.kernel);
            tables.halves(&mut kernel);
            tables.kernel = kernel;
        }
        tables
    }

    /// Transforms `length` numbers in place.
    pub(super) fn forward(&self, values: &mut [Complex]) {
        if self.chirp.is_empty() {
            return self.halves(values);
        }
        let mut wide = vec![[0.0; 2]; self.inner];
        for ((wide, &value), &chirp) in wide.iter_mut().zip(values.iter()).zip(&self.chirp) {
            *wide = times(value, chirp);
        }
        self.halves(&mut wide);
        // The inverse transform is the conjugate of the transform of the conjugate.
        wide.iter_mut().zip(&self.kernel).for_each(|(value, &kernel)| *value = conjugate(times(*value, kernel)));
        self.halves(&mut wide);
        let share = 1.0 / self.inner as f64;
        for ((value, &[re, im]), &chirp) in values.iter_mut().zip(&wide).zip(&self.chirp) {
            *value = times([re * share, -im * share], chirp);
        }
    }

    /// Computes the inverse transform in place.
    pub(super) fn inverse(&self, values: &mut [Complex]) {
        values.iter_mut().for_each(|value| *value = conjugate(*value));
        self.forward(values);
        let length = self.length as f64;
        values.iter_mut().for_each(|[re, im]| (*re, *im) = (*re / length, -*im / length));
    }

    /// Transforms `inner` numbers, a power of two: sorts by reversed bits, then merges growing halves.
    fn halves(&self, values: &mut [Complex]) {
        let length = values.len();
        if length < 2 {
            return;
        }
        let shift = usize::BITS - length.trailing_zeros();
        for at in 0..length {
            let other = at.reverse_bits() >> shift;
            if at < other {
                values.swap(at, other);
            }
        }
        let mut half = 1;
        while half < length {
            let step = length / (2 * half);
            for block in values.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                for ((low, high), &root) in low.iter_mut().zip(high).zip(self.roots.iter().step_by(step)) {
                    let turned = times(*high, root);
                    *high = [low[0] - turned[0], low[1] - turned[1]];
                    *low = [low[0] + turned[0], low[1] + turned[1]];
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[Complex], b: &[Complex]) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9, "{a:?} for {b:?}");
        }
    }

    #[test]
    fn every_length_agrees_with_the_definition_and_comes_back() {
        for length in 1..40 {
            let values: Vec<Complex> =
                (0..length).map(|at| [((at * 7 + 3) % 11) as f64 - 5.0, ((at * 5 + 1) % 7) as f64]).collect();
            let term = |k: usize| {
                values.iter().enumerate().map(move |(at, &value)| times(value, root(at * k % length, length)))
            };
            let expected: Vec<Complex> =
                (0..length).map(|k| term(k).fold([0.0; 2], |sum, x| [sum[0] + x[0], sum[1] + x[1]])).collect();
            let mut transformed = values.clone();
            let tables = FourierTables::new(length);
            tables.forward(&mut transformed);
            close(&transformed, &expected);
            tables.inverse(&mut transformed);
            close(&transformed, &values);
        }
    }
}
