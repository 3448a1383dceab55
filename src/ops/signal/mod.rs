//! Signal processing: Fourier transforms, windows, the mel scale.
//!
//! | file | operators |
//! | --- | --- |
//! | [`dft`] | DFT |
//! | [`stft`] | STFT |
//! | [`windows`] | HannWindow, HammingWindow, BlackmanWindow |
//! | [`mel`] | MelWeightMatrix |

mod dft;
mod mel;
mod stft;
mod windows;

use super::{InferCx, Operator};
use crate::dim::Dim;

pub(super) const OPERATORS: &[Operator] = &[
    dft::DFT,
    stft::STFT,
    windows::HANN_WINDOW,
    windows::HAMMING_WINDOW,
    windows::BLACKMAN_WINDOW,
    mel::MEL_WEIGHT_MATRIX,
];

/// The number that integer operand `i` holds.
fn number(cx: &InferCx<'_>, i: usize) -> Option<Dim> {
    match <[Dim; 1]>::try_from(cx.ints(i)?) {
        Ok([number]) => Some(number),
        Err(_) => None,
    }
}

/// How many frequencies a transform of real numbers has: `⌊length / 2⌋ + 1`.
fn one_sided(cx: &InferCx<'_>, length: &Dim) -> Dim {
    let half = cx.scope().floor_div(length, &Dim::constant(2));
    cx.scope().add(&half, &Dim::constant(1))
}
