//! Pixels from components: upsampling of chroma, then conversion from YCbCr to RGB.

use super::super::{Image, PixelFormat};
use super::{Component, Frame};

/// Assembles the image from the components of a frame; `luminance` is `true` for YCbCr components.
pub(super) fn assemble(frame: Frame, luminance: bool) -> Image {
    let Frame { height, width, finest, components } = frame;
    let planes: Vec<Plane> = components.iter().map(|component| Plane::new(component, finest)).collect();
    let mut samples = Vec::new();
    let mut row = vec![Vec::new(); planes.len()];
    for y in 0..height {
        for (plane, row) in planes.iter().zip(&mut row) {
            plane.row(y, row);
        }
        match row.as_slice() {
            [grey] => samples.extend(grey.iter().take(width)),
            [first, second, third] => {
                for ((&first, &second), &third) in first.iter().zip(second).zip(third).take(width) {
                    samples.extend(if luminance { colour(first, second, third) } else { [first, second, third] });
                }
            }
            _ => {}
        }
    }
    let format = if planes.len() == 1 { PixelFormat::Grayscale } else { PixelFormat::Rgb };
    Image { height, width, format, samples }
}

/// Converts YCbCr to RGB, in fixed point with 16 fractional bits.
#[allow(clippy::disallowed_methods, reason = "samples are no indices")]
fn colour(brightness: u8, blue: u8, red: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (brightness, blue, red) = (i32::from(brightness), i32::from(blue) - 128, i32::from(red) - 128);
    // 1.402, 1.772, 0.34414 and 0.71414 times 2¹⁶, partly summed.
    let mixed = [
        brightness + ((91_881 * red + HALF) >> 16),
        brightness + ((HALF - 22_554 * blue - 46_802 * red) >> 16),
        brightness + ((116_130 * blue + HALF) >> 16),
    ];
    mixed.map(|value| value.clamp(0, 255) as u8)
}

/// A component and its subsampling.
struct Plane<'a> {
    component: &'a Component,
    /// The number of pixels per sample, horizontally and vertically.
    factors: [usize; 2],
}

impl<'a> Plane<'a> {
    fn new(component: &'a Component, finest: [usize; 2]) -> Plane<'a> {
        Plane { component, factors: [finest[0] / component.across, finest[1] / component.down] }
    }

    /// Returns row `y` of the samples; the first or last valid row if out of range.
    fn samples(&self, y: isize) -> &'a [u8] {
        let component = self.component;
        let last = component.size[0].saturating_sub(1);
        let (y, width) = (usize::try_from(y).unwrap_or(0).min(last), component.blocks[1] * 8);
        component.samples.get(y * width..).and_then(|rest| rest.get(..component.size[1])).unwrap_or_default()
    }

    /// Computes row `y` of the image. If a sample covers two pixels, interpolates: three parts of the nearer and one of the farther
    /// neighbor, with halves alternately rounded up and down. Else repeats samples.
    fn row(&self, y: usize, out: &mut Vec<u8>) {
        out.clear();
        let near = |y: usize| self.samples(isize::try_from(y).unwrap_or(isize::MAX));
        // Images that are too narrow are not interpolated horizontally.
        let wide = self.component.size[1] > 2;
        match self.factors {
            [1, 1] => out.extend(near(y)),
            [2, 1] if wide => spread(near(y).iter().map(|&sample| u32::from(sample)), [1, 2], 2, out),
            [2, 2] if wide => spread(self.between(y), [8, 7], 4, out),
            [1, 2] => {
                let rounding = if y.is_multiple_of(2) { 1 } else { 2 };
                out.extend(self.between(y).map(|sum| ((sum + rounding) >> 2) as u8));
            }
            [across, down] => {
                out.extend(near(y / down).iter().flat_map(|&sample| std::iter::repeat_n(sample, across)));
            }
        }
    }

    /// Returns three parts of the nearest sample row of image row `y`, plus one part of the adjacent row.
    fn between(&self, y: usize) -> impl Iterator<Item = u32> + use<'a> {
        let own = isize::try_from(y / 2).unwrap_or(isize::MAX);
        let next = if y.is_multiple_of(2) { own - 1 } else { own.saturating_add(1) };
        let pairs = self.samples(own).iter().zip(self.samples(next));
        pairs.map(|(&own, &next)| 3 * u32::from(own) + u32::from(next))
    }
}

/// Computes two pixels from each of at least three sums: three parts of the sum and one of its left or right neighbor, or four
/// parts at the ends. Adds the rounding terms, then shifts right by `shift`.
fn spread(sums: impl Iterator<Item = u32>, [left, right]: [u32; 2], shift: u32, out: &mut Vec<u8>) {
    let mut sums = sums.peekable();
    let mut before = None;
    while let Some(sum) = sums.next() {
        let after = sums.peek().copied();
        out.push(((3 * sum + before.unwrap_or(sum) + left) >> shift) as u8);
        out.push(((3 * sum + after.unwrap_or(sum) + right) >> shift) as u8);
        before = Some(sum);
    }
}
