//! The inverse cosine transform of a block in integers, as in libjpeg's accurate method: the factorization of Loeffler,
//! Ligtenberg and Moschytz with 13-bit constants; column results have two extra bits.
#![allow(clippy::indexing_slicing, reason = "the arrays have eight elements and the indices are constants")]

const BITS: u32 = 13;
const EXTRA: u32 = 2;

/// Returns a constant of the transform with 13 fractional bits.
const fn fixed(value: f64) -> i64 {
    (value * (1 << BITS) as f64 + 0.5) as i64
}

/// Transforms eight numbers, scaled by √8 and 2¹³, then shifts right by `shift` with rounding.
fn line(x: [i64; 8], shift: u32) -> [i64; 8] {
    // The even part.
    let turn = (x[2] + x[6]) * fixed(0.541_196_100);
    let (a, b) = (turn - x[6] * fixed(1.847_759_065), turn + x[2] * fixed(0.765_366_865));
    let (sum, difference) = ((x[0] + x[4]) << BITS, (x[0] - x[4]) << BITS);
    let even = [sum + b, difference + a, difference - a, sum - b];
    // The odd part.
    let all = (x[7] + x[3] + x[5] + x[1]) * fixed(1.175_875_602);
    let outer = -(x[7] + x[1]) * fixed(0.899_976_223);
    let inner = -(x[5] + x[3]) * fixed(2.562_915_447);
    let low = all - (x[7] + x[3]) * fixed(1.961_570_560);
    let high = all - (x[5] + x[1]) * fixed(0.390_180_644);
    let odd = [
        x[1] * fixed(1.501_321_110) + outer + high,
        x[3] * fixed(3.072_711_026) + inner + low,
        x[5] * fixed(2.053_119_869) + inner + high,
        x[7] * fixed(0.298_631_336) + outer + low,
    ];
    let half = 1 << (shift - 1);
    std::array::from_fn(|place| {
        let value = if place < 4 { even[place] + odd[place] } else { even[7 - place] - odd[7 - place] };
        (value + half) >> shift
    })
}

/// Computes the samples of a block from its coefficients, both row by row.
#[allow(clippy::disallowed_methods, reason = "samples are no indices")]
pub(super) fn samples(coefficients: &[i64; 64]) -> [u8; 64] {
    let mut columns = [[0i64; 8]; 8];
    for (place, column) in columns.iter_mut().enumerate() {
        *column = line(std::array::from_fn(|row| coefficients[row * 8 + place]), BITS - EXTRA);
    }
    let mut samples = [0; 64];
    for (place, row) in samples.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let values = line(std::array::from_fn(|column| columns[column][place]), BITS + EXTRA + 3);
        *row = values.map(|value| (value + 128).clamp(0, 255) as u8);
    }
    samples
}
