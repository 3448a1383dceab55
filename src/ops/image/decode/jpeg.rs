//! JPEG: sequential Huffman coding, 8-bit samples, one or three components.
//!
//! The JPEG standard leaves some freedom in the inverse transform, chroma upsampling and color conversion, and ONNX refers to no
//! decoder. The conformance tests and most programs use libjpeg with its defaults. It computes in integers only, so its pixels are
//! reproducible; no crate without C reproduces them. Declined: progressive and arithmetic coding, 12-bit samples and four
//! components.

mod entropy;
mod pixels;
mod transform;

use entropy::{Bits, Huffman};

use super::{Charge, Image};
use crate::ops::Decline;

/// The first bytes of a file.
pub(super) const SIGNATURE: [u8; 3] = [0xff, 0xd8, 0xff];

/// The positions of coefficients in a block, in coding order.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

fn broken(reason: &str) -> Decline {
    Decline::unsupported(format!("the image cannot be decoded: {reason}"))
}

fn ends() -> Decline {
    broken("the encoded image is truncated")
}

/// The remaining bytes of a file.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Decline> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(ends)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Decline> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(ends)?;
        self.rest = rest;
        Ok(byte)
    }

    fn short(&mut self) -> Result<usize, Decline> {
        Ok(usize::from(self.byte()?) << 8 | usize::from(self.byte()?))
    }

    /// Returns the next marker; skips fill bytes.
    fn marker(&mut self) -> Result<u8, Decline> {
        if self.byte()? != 0xff {
            return Err(broken("a marker is missing"));
        }
        loop {
            match self.byte()? {
                0xff => {}
                marker => return Ok(marker),
            }
        }
    }

    /// Returns the segment after a marker, without its length field.
    fn segment(&mut self) -> Result<Reader<'a>, Decline> {
        let length = self.short()?.checked_sub(2).ok_or_else(|| broken("a segment has no length"))?;
        Ok(Reader { rest: self.take(length)? })
    }
}

/// A component of the image: luminance or chrominance.
struct Component {
    id: u8,
    /// The horizontal sampling factor.
    across: usize,
    down: usize,
    quantization: usize,
    /// The number of 8×8 blocks, rounded up to whole MCUs.
    blocks: [usize; 2],
    /// The number of valid samples: height and width.
    size: [usize; 2],
    /// The samples of all blocks, row by row.
    samples: Vec<u8>,
    /// `true` if a scan contained this component.
    seen: bool,
}

/// The frame header.
struct Frame {
    height: usize,
    width: usize,
    /// The largest sampling factors of all components: horizontal and vertical.
    finest: [usize; 2],
    components: Vec<Component>,
}

impl Frame {
    fn read(mut segment: Reader<'_>, charge: &Charge<'_>) -> Result<Frame, Decline> {
        if segment.byte()? != 8 {
            return Err(broken("samples are not of eight bits"));
        }
        let (height, width, count) = (segment.short()?, segment.short()?, segment.byte()?);
        if height == 0 || width == 0 {
            return Err(broken("it has no size"));
        }
        if count != 1 && count != 3 {
            return Err(broken("there are neither one nor three components"));
        }
        charge(height, width)?;
        let mut components = Vec::new();
        for _ in 0..count {
            let (id, sampling, quantization) = (segment.byte()?, segment.byte()?, usize::from(segment.byte()?));
            let (across, down) = (usize::from(sampling >> 4), usize::from(sampling & 15));
            if !(1..=4).contains(&across) || !(1..=4).contains(&down) {
                return Err(broken("a component has no sampling"));
            }
            let (blocks, size, samples) = ([0; 2], [0; 2], Vec::new());
            components.push(Component { id, across, down, quantization, blocks, size, samples, seen: false });
        }
        let most = |of: fn(&Component) -> usize| components.iter().map(of).max().unwrap_or(1);
        let finest = [most(|component| component.across), most(|component| component.down)];
        let odd = |component: &Component| {
            !finest[0].is_multiple_of(component.across) || !finest[1].is_multiple_of(component.down)
        };
        if components.iter().any(odd) {
            return Err(broken("a sample stands for a part of a pixel"));
        }
        let units = [height.div_ceil(8 * finest[1]), width.div_ceil(8 * finest[0])];
        for component in &mut components {
            component.blocks = [units[0] * component.down, units[1] * component.across];
            component.size =
                [(height * component.down).div_ceil(finest[1]), (width * component.across).div_ceil(finest[0])];
            component.samples = vec![0; component.blocks[0] * component.blocks[1] * 64];
        }
        Ok(Frame { height, width, finest, components })
    }
}

/// The coding tables read so far.
#[derive(Default)]
struct Tables {
    /// The quantization steps, in coding order.
    quantization: [Option<[u16; 64]>; 4],
    /// DC tables, then AC tables.
    huffman: [[Option<Huffman>; 4]; 2],
    /// The number of MCUs between two restarts; 0 without restarts.
    restart: usize,
}

impl Tables {
    fn read_quantization(&mut self, mut segment: Reader<'_>) -> Result<(), Decline> {
        while !segment.rest.is_empty() {
            let head = segment.byte()?;
            let mut steps = [0u16; 64];
            for step in &mut steps {
                *step = if head >> 4 == 0 { segment.byte()?.into() } else { segment.short()? as u16 };
            }
            let place = self.quantization.get_mut(usize::from(head & 15));
            *place.ok_or_else(|| broken("a table has an invalid number"))? = Some(steps);
        }
        Ok(())
    }

    fn read_huffman(&mut self, mut segment: Reader<'_>) -> Result<(), Decline> {
        while !segment.rest.is_empty() {
            let head = segment.byte()?;
            let counts = segment.take(16)?;
            let symbols = segment.take(counts.iter().map(|&count| usize::from(count)).sum())?;
            let place = self.huffman.get_mut(usize::from(head >> 4)).and_then(|of| of.get_mut(usize::from(head & 15)));
            let table = Huffman::new(counts, symbols).ok_or_else(|| broken("a Huffman table does not fit"))?;
            *place.ok_or_else(|| broken("a table has an invalid number"))? = Some(table);
        }
        Ok(())
    }
}

/// Decodes a file that begins with the signature.
pub(super) fn decode(file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    let mut reader = Reader { rest: file.get(2..).unwrap_or_default() };
    let (mut tables, mut frame) = (Tables::default(), None);
    let (mut jfif, mut adobe) = (false, None);
    loop {
        match reader.marker()? {
            0xd9 => break,
            0xc0 | 0xc1 if frame.is_none() => frame = Some(Frame::read(reader.segment()?, charge)?),
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Err(Decline::unsupported("only sequential JPEG images are supported"));
            }
            0xc4 => tables.read_huffman(reader.segment()?)?,
            0xdb => tables.read_quantization(reader.segment()?)?,
            0xdd => tables.restart = reader.segment()?.short()?,
            0xda => scan(&mut reader, &tables, frame.as_mut().ok_or_else(|| broken("a scan has no frame"))?)?,
            0xe0 => jfif |= reader.segment()?.rest.starts_with(b"JFIF\0"),
            0xee => {
                let segment = reader.segment()?.rest;
                if segment.starts_with(b"Adobe") {
                    adobe = segment.get(11).copied();
                }
            }
            0xe1..=0xef | 0xfe => {
                reader.segment()?;
            }
            _ => return Err(broken("a marker is unknown")),
        }
    }
    let frame = frame.filter(|frame| frame.components.iter().all(|component| component.seen)).ok_or_else(ends)?;
    let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
    let luminance = jfif || adobe.map_or(ids != *b"RGB", |transform| transform != 0);
    Ok(pixels::assemble(frame, luminance))
}

/// A component of a scan, and its tables.
struct Part<'a> {
    component: usize,
    steps: &'a [u16; 64],
    first: &'a Huffman,
    others: &'a Huffman,
    /// The DC coefficient of the previous block.
    before: i32,
}

fn scan(reader: &mut Reader<'_>, tables: &Tables, frame: &mut Frame) -> Result<(), Decline> {
    let mut segment = reader.segment()?;
    let mut parts: Vec<Part<'_>> = Vec::new();
    for _ in 0..segment.byte()? {
        let (id, codes) = (segment.byte()?, segment.byte()?);
        let component = frame.components.iter().position(|component| component.id == id && !component.seen);
        let component = component.ok_or_else(|| broken("a scan has a component twice, or one that is not there"))?;
        let missing = || broken("a table is missing");
        let huffman = |kind: usize, place: u8| {
            let found = tables.huffman.get(kind).and_then(|of| of.get(usize::from(place))?.as_ref());
            found.ok_or_else(missing)
        };
        let own = frame.components.get_mut(component).ok_or_else(missing)?;
        own.seen = true;
        let steps = tables.quantization.get(own.quantization).and_then(Option::as_ref).ok_or_else(missing)?;
        let (first, others) = (huffman(0, codes >> 4)?, huffman(1, codes & 15)?);
        parts.push(Part { component, steps, first, others, before: 0 });
    }
    // A scan of one component contains its blocks row by row, without the padding blocks of MCUs.
    let alone = parts.len() == 1;
    let units = match parts.as_slice() {
        [] => return Err(broken("a scan has no component")),
        [part] => {
            let size = frame.components.get(part.component).map_or([0; 2], |component| component.size);
            size.map(|count| count.div_ceil(8))
        }
        _ => [frame.height.div_ceil(8 * frame.finest[1]), frame.width.div_ceil(8 * frame.finest[0])],
    };
    let mut bits = Bits::new(reader.rest);
    let mut left = tables.restart;
    for row in 0..units[0] {
        for column in 0..units[1] {
            if tables.restart > 0 {
                if left == 0 {
                    bits.restart().ok_or_else(|| broken("a restart is missing"))?;
                    parts.iter_mut().for_each(|part| part.before = 0);
                    left = tables.restart;
                }
                left -= 1;
            }
            for part in &mut parts {
                let Some(component) = frame.components.get_mut(part.component) else { continue };
                let [across, down] = if alone { [1, 1] } else { [component.across, component.down] };
                for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                    let coefficients = block(&mut bits, part).ok_or_else(|| broken("a block is not coded well"))?;
                    let block = transform::samples(&coefficients);
                    let width = component.blocks[1] * 8;
                    let start = (row * down + y) * 8 * width + (column * across + x) * 8;
                    for (line, samples) in block.as_chunks::<8>().0.iter().enumerate() {
                        let start = start + line * width;
                        if let Some(place) = component.samples.get_mut(start..start + 8) {
                            place.copy_from_slice(samples);
                        }
                    }
                }
            }
        }
    }
    reader.rest = bits.rest();
    Ok(())
}

/// Decodes the coefficients of the next block, row by row.
fn block(bits: &mut Bits<'_>, part: &mut Part<'_>) -> Option<[i64; 64]> {
    let mut coefficients = [0i64; 64];
    let size = part.first.next(bits)?;
    part.before += bits.signed(u32::from(size))?;
    // Valid files do not have enough blocks for this sum to overflow.
    part.before = i32::from(i16::try_from(part.before).ok()?);
    *coefficients.first_mut()? = i64::from(part.before) * i64::from(*part.steps.first()?);
    let mut place = 1;
    while place < 64 {
        let symbol = part.others.next(bits)?;
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 {
            if run < 15 {
                break;
            }
            place += 16;
            continue;
        }
        place += run;
        let value = bits.signed(size)?;
        *coefficients.get_mut(*ZIGZAG.get(place)?)? = i64::from(value) * i64::from(*part.steps.get(place)?);
        place += 1;
    }
    Some(coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 16×16 image with 2×2 chroma subsampling, in sRGB-like YCbCr; made with Pillow.
    const FILE: &[u8] = include_bytes!("../../../../models/images/colours.jpg");
    const PIXELS: &[u8] = include_bytes!("../../../../models/images/colours.ppm");

    #[test]
    fn pixels_are_those_of_libjpeg() {
        let image = decode(FILE, &|_, _| Ok(())).unwrap();
        let count = image.samples.len();
        assert_eq!(image.samples, PIXELS[PIXELS.len() - count..]);
    }

    #[test]
    fn broken_files_are_declined() {
        for length in 3..FILE.len() - 1 {
            assert!(decode(&FILE[..length], &|_, _| Ok(())).is_err(), "{length}");
        }
        for at in 2..FILE.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut file = FILE.to_vec();
                file[at] = value;
                // Some of these are valid images, too; the test checks only that decoding returns.
                let small = |height: usize, width: usize| {
                    if height * width < 1 << 12 { Ok(()) } else { Err(Decline::OverBudget(String::new())) }
                };
                let _ = decode(&file, &small);
            }
        }
    }
}
