//! Pixels from components: the coarser ones interpolated, then brightness and colour differences mixed.

use super::super::{Image, PixelFormat};
use super::{Component, Frame};

/// The image that the components of a frame make up; whether they are brightness and colour differences.
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

/// Red, green and blue from brightness and the differences of blue and red, in numbers with 16 bits behind the point.
#[allow(clippy::disallowed_methods, reason = "samples are no indices")]
fn colour(brightness: u8, blue: u8, red: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (brightness, blue, red) = (i32::from(brightness), i32::from(blue) - 128, i32::from(red) - 128);
    // 1.402, 1.772, 0.34414 and 0.71414 times 2¹⁶.
    let mixed = [
        brightness + ((91_881 * red + HALF) >> 16),
        brightness + ((HALF - 22_554 * blue - 46_802 * red) >> 16),
        brightness + ((116_130 * blue + HALF) >> 16),
    ];
    mixed.map(|value| value.clamp(0, 255) as u8)
}

/// A component and how coarse it is.
struct Plane<'a> {
    component: &'a Component,
    /// How many pixels a sample stands for, across and down.
    factors: [usize; 2],
}

impl<'a> Plane<'a> {
    fn new(component: &'a Component, finest: [usize; 2]) -> Plane<'a> {
        Plane { component, factors: [finest[0] / component.across, finest[1] / component.down] }
    }

    /// Row `y` of the samples; beyond the ends, the first or last one that counts.
    fn samples(&self, y: isize) -> &'a [u8] {
        let component = self.component;
        let last = component.size[0].saturating_sub(1);
        let (y, width) = (usize::try_from(y).unwrap_or(0).min(last), component.blocks[1] * 8);
        component.samples.get(y * width..).and_then(|rest| rest.get(..component.size[1])).unwrap_or_default()
    }

    /// Row `y` of the image: interpolated where a sample stands for two pixels, three parts of the nearer and one of the farther
    /// neighbour, halves rounded up and down by turns; else repeated.
    fn row(&self, y: usize, out: &mut Vec<u8>) {
        out.clear();
        let near = |y: usize| self.samples(isize::try_from(y).unwrap_or(isize::MAX));
        // Too narrow an image is not interpolated across.
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

    /// Three parts of the row of samples that row `y` of the image lies in, and one of the row it lies next to.
    fn between(&self, y: usize) -> impl Iterator<Item = u32> + use<'a> {
        let own = isize::try_from(y / 2).unwrap_or(isize::MAX);
        let next = if y.is_multiple_of(2) { own - 1 } else { own.saturating_add(1) };
        let pairs = self.samples(own).iter().zip(self.samples(next));
        pairs.map(|(&own, &next)| 3 * u32::from(own) + u32::from(next))
    }
}

/// Two pixels from each of three or more sums: three parts of it and one of the sum to the left and to the right, four parts
/// at the ends, with what is added before `shift` bits are cut off.
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
