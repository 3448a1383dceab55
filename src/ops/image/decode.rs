//! ImageDecoder: an image from the bytes of its file.
//!
//! | | |
//! |---|---|
//! | computes | the pixels, `[height, width, channels]`, in the order `pixel_format` says |
//! | versions | 20 |
//! | evaluated | files that hold pixels as they are: BMP of 24 bits, PNM (`P5`, `P6`), TIFF without compression, each of 8 bits a channel, as long as the colours stay what they are |
//! | not evaluated | compressed files: decoders of the lossy formats differ in the last bit, and the pixels of the others are larger than the file, so that folding them is no gain |

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
            Some(other) => Err(Refusal::invalid(format!("pixel_format is '{other}'"))),
        }
    }

    fn channels(self) -> usize {
        if self == PixelFormat::Grayscale { 1 } else { 3 }
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let channels = PixelFormat::of(cx)?.channels();
    if cx.required(0)?.rank().is_some_and(|rank| rank != 1) {
        return Err(Refusal::invalid("the encoded image is no vector of bytes"));
    }
    let shape = vec![cx.fresh_dim(), cx.fresh_dim(), Dim::constant(channels as i64)];
    Ok(vec![Fact::tensor(Some(DType::Uint8), Some(shape))])
}

/// Where the pixels of an image lie in its file.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    height: usize,
    width: usize,
    format: PixelFormat,
    /// Where each row starts, top row first.
    rows: Vec<usize>,
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let wanted = PixelFormat::of(cx)?;
    let file = cx.tensor(0)?;
    if file.dtype() != DType::Uint8 || file.rank() != 1 {
        return Err(Decline::invalid("the encoded image is no vector of bytes"));
    }
    let bytes = file.bytes();
    let other = || Decline::unsupported("the image is compressed, or of a kind that is not decoded");
    let layout = bitmap(bytes).or_else(|| portable(bytes)).or_else(|| tagged(bytes)).ok_or_else(other)?;
    let channels = layout.format.channels();
    if channels != wanted.channels() {
        return Err(Decline::unsupported("the standard does not say how colours become shades of grey"));
    }
    let shape = [layout.height, layout.width, channels];
    cx.claim(DType::Uint8, &shape)?;
    let mut pixels: Vec<u8> = Vec::new();
    let width = layout.width.checked_mul(channels).ok_or_else(other)?;
    for start in layout.rows {
        let row = start.checked_add(width).and_then(|end| bytes.get(start..end));
        pixels.extend_from_slice(row.ok_or_else(|| Decline::unsupported("the file ends within the image"))?);
    }
    if layout.format != wanted {
        pixels.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| pixel.reverse());
    }
    Ok(vec![Tensor::from_vec(&shape, pixels)?.into()])
}

/// `count` rows of this many bytes, one after another; `None` when they are more than the file has.
fn rows(file: &[u8], start: usize, stride: usize, count: usize) -> Option<Vec<usize>> {
    let end = stride.checked_mul(count)?.checked_add(start)?;
    // An image without pixels may have any number of rows; it is not worth the trouble.
    (stride > 0 && end <= file.len()).then(|| (0..count).map(|row| start + row * stride).collect())
}

fn number<const BYTES: usize>(file: &[u8], at: usize) -> Option<[u8; BYTES]> {
    file.get(at..)?.first_chunk().copied()
}

/// A BMP file of 24 bits a pixel.
fn bitmap(file: &[u8]) -> Option<Layout> {
    let long = |at: usize| number(file, at).map(i32::from_le_bytes);
    let short = |at: usize| number(file, at).map(u16::from_le_bytes);
    // A header of 40 bytes or more; one plane, 24 bits, no compression.
    let plain = file.starts_with(b"BM") && long(14)? >= 40 && short(26)? == 1 && short(28)? == 24 && long(30)? == 0;
    let (width, height) = (usize::try_from(long(18)?).ok()?, long(22)?);
    let count = usize::try_from(height.unsigned_abs()).ok()?;
    let stride = width.checked_mul(3)?.checked_next_multiple_of(4)?;
    let mut rows = rows(file, usize::try_from(long(10)?).ok()?, stride, count).filter(|_| plain)?;
    if height > 0 {
        rows.reverse();
    }
    Some(Layout { height: count, width, format: PixelFormat::Bgr, rows })
}

/// A binary PNM file, `P5` or `P6`.
fn portable(file: &[u8]) -> Option<Layout> {
    let format = match file.get(..2)? {
        b"P5" => PixelFormat::Grayscale,
        b"P6" => PixelFormat::Rgb,
        _ => return None,
    };
    let mut at = 2;
    let mut next = || -> Option<usize> {
        while file.get(at)?.is_ascii_whitespace() {
            at += 1;
        }
        let digits = file.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(file.get(at..at + digits)?).ok()?.parse().ok();
        at += digits;
        number
    };
    let (width, height, most) = (next()?, next()?, next()?);
    // One blank, then the pixels.
    let start = at.checked_add(1).filter(|_| file.get(at).is_some_and(u8::is_ascii_whitespace) && most == 255)?;
    let rows = rows(file, start, width.checked_mul(format.channels())?, height)?;
    Some(Layout { height, width, format, rows })
}

/// The tags of TIFF that matter here.
mod tag {
    pub const WIDTH: u16 = 256;
    pub const HEIGHT: u16 = 257;
    pub const BITS: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const STRIPS: u16 = 273;
    pub const ORIENTATION: u16 = 274;
    pub const SAMPLES: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const PLANAR: u16 = 284;
    pub const PREDICTOR: u16 = 317;
    pub const TILE_WIDTH: u16 = 322;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
}

/// A TIFF file with one image in strips without compression.
fn tagged(file: &[u8]) -> Option<Layout> {
    let big = match file.get(..4)? {
        b"II*\0" => false,
        b"MM\0*" => true,
        _ => return None,
    };
    let short = |at: usize| number(file, at).map(|n| if big { u16::from_be_bytes(n) } else { u16::from_le_bytes(n) });
    let long = |at: usize| {
        let number = number(file, at).map(|n| if big { u32::from_be_bytes(n) } else { u32::from_le_bytes(n) });
        usize::try_from(number?).ok()
    };
    let directory = long(4)?;
    let entries = usize::from(short(directory)?);
    let entry = |number: usize| directory.checked_add(2)?.checked_add(number.checked_mul(12)?);
    // Nothing follows the one image.
    if long(entry(entries)?)? != 0 {
        return None;
    }
    // The numbers of a tag: 16 or 32 bits each, in the entry itself where they fit.
    let values = |tag: u16| -> Option<Vec<usize>> {
        let at = (0..entries).filter_map(entry).find(|&at| short(at) == Some(tag))?;
        let count = long(at + 4)?;
        let size = match short(at + 2)? {
            3 => 2,
            4 => 4,
            _ => return None,
        };
        let start = if count.checked_mul(size)? <= 4 { at + 8 } else { long(at + 8)? };
        // More numbers than fit the file are none.
        if start.checked_add(count.checked_mul(size)?)? > file.len() {
            return None;
        }
        let value = |at: usize| if size == 2 { short(at).map(usize::from) } else { long(at) };
        (0..count).map(|number| value(start + number * size)).collect()
    };
    let has = |tag: u16| (0..entries).filter_map(entry).any(|at| short(at) == Some(tag));
    let single = |tag: u16, default: usize| match values(tag).as_deref() {
        None if !has(tag) => Some(default),
        Some(&[value]) => Some(value),
        _ => None,
    };
    let (width, height) = (single(tag::WIDTH, 0)?, single(tag::HEIGHT, 0)?);
    let samples = single(tag::SAMPLES, 1)?;
    let format = match (samples, single(tag::PHOTOMETRIC, 9)?) {
        (1, 1) => PixelFormat::Grayscale,
        (3, 2) => PixelFormat::Rgb,
        _ => return None,
    };
    let as_usual = |&tag: &u16| !has(tag) || values(tag).is_some_and(|values| values.iter().all(|&value| value == 1));
    let usual = [tag::COMPRESSION, tag::FILL_ORDER, tag::ORIENTATION, tag::PLANAR, tag::PREDICTOR, tag::SAMPLE_FORMAT];
    if !usual.iter().all(as_usual)
        || has(tag::TILE_WIDTH)
        || has(tag::EXTRA_SAMPLES)
        || values(tag::BITS)? != vec![8; samples]
    {
        return None;
    }
    let stride = width.checked_mul(samples)?;
    let strip = single(tag::ROWS_PER_STRIP, height)?.clamp(1, height.max(1));
    let strips = values(tag::STRIPS)?;
    if strips.len() != height.div_ceil(strip) {
        return None;
    }
    let mut starts = Vec::new();
    for (number, start) in strips.into_iter().enumerate() {
        starts.extend(rows(file, start, stride, strip.min(height - number * strip))?);
    }
    Some(Layout { height, width, format, rows: starts })
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

    /// A BMP file of one row of two pixels, or of two of one.
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
        assert_eq!(decode(&columns, "Grayscale"), None);
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
        // Two rows of one grey pixel, each a strip of its own; the offsets of both follow the directory.
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
        // Compression, another image, a strip beyond the file.
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
