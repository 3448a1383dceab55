//! ImageDecoder: decodes an image file.
//!
//! | | |
//! |---|---|
//! | computes | the pixels, `[height, width, channels]`, in the order of `pixel_format` |
//! | versions | 20 |
//! | evaluated | 24-bit BMP, PNM (`P5`, `P6`), uncompressed TIFF ([`plain`]); sequential JPEG ([`jpeg`]); PNG, WebP, JPEG 2000 (`codecs`, with feature `images`); 8 bits per channel |
//! | grey | 0.299 red + 0.587 green + 0.114 blue in steps of 2⁻¹⁶, as in the conformance test |
//! | not evaluated | transparency and animation, which the standard does not define; progressive JPEG; JPEG 2000 with the float transform; grey files decoded as colors; broken files |

#[cfg(feature = "images")]
mod codecs;
mod compressed;
mod jpeg;
mod kind;
mod plain;

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

pub(super) const IMAGE_DECODER: Operator = Operator::new("ImageDecoder", &[20], infer, eval);

/// The order of the channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PixelFormat {
    Rgb,
    Bgr,
    Grayscale,
}

impl PixelFormat {
    fn of(site: &Site<'_>) -> Result<PixelFormat, Refusal> {
        match site.attr_str("pixel_format")? {
            None | Some("RGB") => Ok(PixelFormat::Rgb),
            Some("BGR") => Ok(PixelFormat::Bgr),
            Some("Grayscale") => Ok(PixelFormat::Grayscale),
            Some(other) => {
                Err(Refusal::invalid(format!("attribute 'pixel_format' is '{other}', which is not defined")))
            }
        }
    }

    fn channels(self) -> usize {
        if self == PixelFormat::Grayscale { 1 } else { 3 }
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let channels = PixelFormat::of(cx)?.channels();
    if cx.required(0)?.rank().is_some_and(|rank| rank != 1) {
        return Err(Refusal::invalid("the encoded image is not a vector of bytes"));
    }
    let shape = vec![cx.fresh_dim(), cx.fresh_dim(), Dim::constant(channels as i64)];
    Ok(vec![Fact::tensor(Some(DType::Uint8), Some(shape))])
}

/// A decoded image, top row first.
#[derive(Debug, PartialEq, Eq)]
struct Image {
    height: usize,
    width: usize,
    format: PixelFormat,
    samples: Vec<u8>,
}

/// Charges the budget for an image of this height and width, before its memory is allocated.
type Charge<'a> = dyn Fn(usize, usize) -> Result<(), Decline> + 'a;

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let wanted = PixelFormat::of(cx)?;
    let file = cx.tensor(0)?;
    if file.dtype() != DType::Uint8 || file.rank() != 1 {
        return Err(Decline::invalid("the encoded image is not a vector of bytes"));
    }
    // Decoders temporarily use wider numbers.
    let charge = |height: usize, width: usize| {
        cx.claim(DType::Complex128, &[height, width])?;
        cx.budget().take_work((height as u64).saturating_mul(width as u64).saturating_mul(64))
    };
    let bytes = file.bytes();
    let image = match plain::Layout::of(bytes) {
        Some(layout) => read(bytes, layout, &charge)?,
        None if bytes.starts_with(&jpeg::SIGNATURE) => jpeg::decode(bytes, &charge)?,
        None => compressed::decode(bytes, &charge)?,
    };
    let samples = match (image.format, wanted) {
        (from, to) if from == to => image.samples,
        (PixelFormat::Grayscale, _) => {
            return Err(Decline::unsupported("the image is grayscale, but 'pixel_format' requires colors"));
        }
        (from, PixelFormat::Grayscale) => image.samples.as_chunks().0.iter().map(|&pixel| grey(pixel, from)).collect(),
        _ => {
            let mut samples = image.samples;
            samples.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| pixel.reverse());
            samples
        }
    };
    Ok(vec![Tensor::from_vec(&[image.height, image.width, wanted.channels()], samples)?.into()])
}

fn grey([first, green, last]: [u8; 3], format: PixelFormat) -> u8 {
    let (red, blue) = if format == PixelFormat::Bgr { (last, first) } else { (first, last) };
    let weighted = 19_595 * u32::from(red) + 38_470 * u32::from(green) + 7_471 * u32::from(blue);
    ((weighted + 0x8000) >> 16) as u8
}

fn read(file: &[u8], layout: plain::Layout, charge: &Charge<'_>) -> Result<Image, Decline> {
    charge(layout.height, layout.width)?;
    let other = || Decline::unsupported("the encoded image is truncated");
    let width = layout.width.checked_mul(layout.format.channels()).ok_or_else(other)?;
    let mut samples = Vec::new();
    for start in layout.rows {
        let row = start.checked_add(width).and_then(|end| file.get(start..end));
        samples.extend_from_slice(row.ok_or_else(other)?);
    }
    Ok(Image { height: layout.height, width: layout.width, format: layout.format, samples })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn decode(file: &[u8], format: &'static str) -> Option<(Vec<usize>, Vec<i64>)> {
        let node = Single::new("ImageDecoder", 20).with_str("pixel_format", format).values(&[file.len()], file);
        let image = node.eval().ok()?.remove(0);
        Some((image.shape().to_vec(), image.to_i64s().unwrap()))
    }

    /// Returns a BMP file of one row of two pixels, or of two rows of one.
    fn bmp(width: i32, height: i32, rows: &[u8]) -> Vec<u8> {
        let mut file = b"BM".to_vec();
        file.extend([0; 8]);
        file.extend(54i32.to_le_bytes());
        file.extend(40i32.to_le_bytes());
        file.extend(width.to_le_bytes());
        file.extend(height.to_le_bytes());
        file.extend([1, 0, 24, 0]);
        file.resize(54, 0);
        file.extend(rows);
        file
    }

    #[test]
    fn bitmaps() {
        let columns = bmp(1, 2, &[1, 2, 3, 0, 4, 5, 6, 0]);
        assert_eq!(decode(&columns, "BGR"), Some((vec![2, 1, 3], vec![4, 5, 6, 1, 2, 3])));
        assert_eq!(decode(&columns, "RGB").unwrap().1, [6, 5, 4, 3, 2, 1]);
        assert_eq!(decode(&bmp(1, -2, &[1, 2, 3, 0, 4, 5, 6, 0]), "BGR").unwrap().1, [1, 2, 3, 4, 5, 6]);
        assert_eq!(decode(&columns, "Grayscale").unwrap().1, [5, 2]);
        for (width, height) in [(2, 2), (1, 3), (-1, 1), (i32::MAX, i32::MAX), (1, i32::MIN), (0, i32::MAX)] {
            assert_eq!(decode(&bmp(width, height, &[0; 8]), "BGR"), None);
        }
        for length in 0..columns.len() {
            assert_eq!(decode(&columns[..length], "BGR"), None);
        }
    }

    #[test]
    fn portable_maps() {
        assert_eq!(decode(b"P6 1\n2 255\nabcdef", "RGB").unwrap().0, [2, 1, 3]);
        assert_eq!(decode(b"P5 2 1 255\nab", "Grayscale"), Some((vec![1, 2, 1], vec![97, 98])));
        for file in [&b"P5 2 1 255\na"[..], b"P5 2 1 65535\nabcd", b"P5 2", b"P5 # 2 1 255\nab", b"P2 1 1 255\n7"] {
            assert_eq!(decode(file, "Grayscale"), None);
        }
        assert_eq!(decode(b"P5 99999999999999999999 1 255\na", "Grayscale"), None);
        assert_eq!(decode(b"P5 0 18446744073709551615 255\n", "Grayscale"), None);
    }

    #[test]
    fn tagged_images() {
        // Two rows of one grey pixel, one strip each; the strip offsets follow the directory.
        let entries: [(u16, u16, u32, u32); 8] = [
            (256, 3, 1, 1),
            (257, 3, 1, 2),
            (258, 3, 1, 8),
            (259, 3, 1, 1),
            (262, 3, 1, 1),
            (273, 4, 2, 110),
            (277, 3, 1, 1),
            (278, 3, 1, 1),
        ];
        let file = |edit: &dyn Fn(&mut Vec<u8>)| {
            let mut file = b"II*\0\x08\0\0\0\x08\0".to_vec();
            for (tag, kind, count, value) in entries {
                file.extend(tag.to_le_bytes());
                file.extend(kind.to_le_bytes());
                file.extend(count.to_le_bytes());
                file.extend(value.to_le_bytes());
            }
            file.extend([0; 4]);
            file.extend([119, 0, 0, 0, 118, 0, 0, 0, 8, 9]);
            edit(&mut file);
            file
        };
        let whole = file(&|_| {});
        assert_eq!(decode(&whole, "Grayscale"), Some((vec![2, 1, 1], vec![9, 8])));
        for length in 0..whole.len() {
            assert_eq!(decode(&whole[..length], "Grayscale"), None);
        }
        // Compression, a second image, a strip outside the file.
        assert_eq!(decode(&file(&|file| file[54] = 5), "Grayscale"), None);
        assert_eq!(decode(&file(&|file| file[106] = 8), "Grayscale"), None);
        assert_eq!(decode(&file(&|file| file[110] = 120), "Grayscale"), None);
    }

    #[test]
    fn shapes() {
        let infer = |format| Single::new("ImageDecoder", 20).with_str("pixel_format", format).input(DType::Uint8, "N");
        assert_eq!(infer("RGB").infer(), ["uint8[?, ?, 3]"]);
        assert_eq!(infer("Grayscale").infer(), ["uint8[?, ?, 1]"]);
        assert!(infer("CMYK").infer()[0].starts_with("invalid"));
    }
}
