//! Uncompressed image files: BMP, PNM, TIFF.

use super::PixelFormat;

/// The location of an image's pixels in its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) format: PixelFormat,
    /// The offset of each row, top row first.
    pub(super) rows: Vec<usize>,
}

impl Layout {
    /// Returns the layout of a file in one of these formats.
    pub(super) fn of(file: &[u8]) -> Option<Layout> {
        bitmap(file).or_else(|| portable(file)).or_else(|| tagged(file))
    }
}

/// Returns the offsets of `count` consecutive rows of `stride` bytes; `None` if they exceed the file.
fn rows(file: &[u8], start: usize, stride: usize, count: usize) -> Option<Vec<usize>> {
    let end = stride.checked_mul(count)?.checked_add(start)?;
    // An image without pixels may declare any number of rows, so reject it.
    (stride > 0 && end <= file.len()).then(|| (0..count).map(|row| start + row * stride).collect())
}

fn number<const BYTES: usize>(file: &[u8], at: usize) -> Option<[u8; BYTES]> {
    file.get(at..)?.first_chunk().copied()
}

/// Reads the layout of a 24-bit BMP file.
fn bitmap(file: &[u8]) -> Option<Layout> {
    let long = |at: usize| number(file, at).map(i32::from_le_bytes);
    let short = |at: usize| number(file, at).map(u16::from_le_bytes);
    // A header of at least 40 bytes; one plane, 24 bits, no compression.
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

/// Reads the layout of a binary PNM file, `P5` or `P6`.
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
    // One whitespace byte, then the pixels.
    let start = at.checked_add(1).filter(|_| file.get(at).is_some_and(u8::is_ascii_whitespace) && most == 255)?;
    let rows = rows(file, start, width.checked_mul(format.channels())?, height)?;
    Some(Layout { height, width, format, rows })
}

/// The TIFF tags this reader needs.
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

/// Reads the layout of a TIFF file with one image in uncompressed strips.
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
    // Reject files with a second image.
    if long(entry(entries)?)? != 0 {
        return None;
    }
    // The values of a tag: 16 or 32 bits each, stored in the entry itself if they fit.
    let values = |tag: u16| -> Option<Vec<usize>> {
        let at = (0..entries).filter_map(entry).find(|&at| short(at) == Some(tag))?;
        let count = long(at + 4)?;
        let size = match short(at + 2)? {
            3 => 2,
            4 => 4,
            _ => return None,
        };
        let start = if count.checked_mul(size)? <= 4 { at + 8 } else { long(at + 8)? };
        // Reject tags with more values than fit the file.
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
    #[allow(clippy::disallowed_methods, reason = "a number of rows")]
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
