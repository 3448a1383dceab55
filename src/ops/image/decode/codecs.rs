//! PNG, WebP and JPEG 2000, decoded by crates.
//!
//! `png` and `image-webp` are from the image-rs project; `hayro-jpeg2000`, without `unsafe`, is from a PDF renderer. Their pixels
//! equal those of libpng, libwebp and OpenJPEG bit for bit, except for the irreversible transform of JPEG 2000, which is
//! declined.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::kind::{CODESTREAM, Kind};
use super::{Charge, Image, PixelFormat};
use crate::ops::Decline;

/// Decodes a file of this kind.
pub(super) fn decode(kind: Kind, file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    let decoder = match kind {
        Kind::Png => png,
        Kind::Webp => webp,
        Kind::Jpeg2000 => jpeg_2000,
    };
    // Third-party decoders read untrusted bytes here, so catch their panics.
    catch_unwind(AssertUnwindSafe(|| decoder(file, charge))).unwrap_or_else(|_| Err(broken("the decoder gave up")))
}

fn broken(reason: impl std::fmt::Display) -> Decline {
    Decline::unsupported(format!("the image cannot be decoded: {reason}"))
}

fn transparent() -> Decline {
    Decline::unsupported("the image is transparent, and the standard does not define how to decode transparency")
}

fn animated() -> Decline {
    Decline::unsupported("the image is animated, and the standard does not define how to decode animations")
}

fn size(width: u32, height: u32) -> Result<(usize, usize), Decline> {
    let pair = usize::try_from(width).ok().zip(usize::try_from(height).ok());
    pair.ok_or_else(|| broken("it is too large"))
}

fn png(file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    // Expands palettes to colors, and grey of fewer bits to 8 bits.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(broken)?;
    let (width, height) = size(reader.info().width, reader.info().height)?;
    if reader.info().animation_control.is_some() {
        return Err(animated());
    }
    charge(height, width)?;
    let format = match reader.output_color_type() {
        (png::ColorType::Rgb, png::BitDepth::Eight) => PixelFormat::Rgb,
        (png::ColorType::Grayscale, png::BitDepth::Eight) => PixelFormat::Grayscale,
        (_, png::BitDepth::Sixteen) => return Err(Decline::unsupported("channels of 16 bits are not supported")),
        _ => return Err(transparent()),
    };
    let mut samples = vec![0; reader.output_buffer_size().ok_or_else(|| broken("it is too large"))?];
    reader.next_frame(&mut samples).map_err(broken)?;
    whole(Image { height, width, format, samples })
}

fn webp(file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(file)).map_err(broken)?;
    if decoder.is_animated() {
        return Err(animated());
    }
    if decoder.has_alpha() {
        return Err(transparent());
    }
    let (width, height) = decoder.dimensions();
    let (width, height) = size(width, height)?;
    charge(height, width)?;
    let mut samples = vec![0; decoder.output_buffer_size().ok_or_else(|| broken("it is too large"))?];
    decoder.read_image(&mut samples).map_err(broken)?;
    whole(Image { height, width, format: PixelFormat::Rgb, samples })
}

/// Returns `true` if a JPEG 2000 stream uses the integer transform for the whole image. Decoders round the other transform
/// differently, so files without this declaration count as irreversible.
fn is_reversible(file: &[u8]) -> bool {
    let mut rest = match file.windows(4).position(|bytes| bytes == CODESTREAM) {
        Some(start) => file.get(start + 2..).unwrap_or_default(),
        None => return false,
    };
    let mut reversible = false;
    // The main header: markers with lengths, up to the first tile header.
    while let [0xff, marker, high, low, ..] = *rest {
        match marker {
            0x90 => return reversible,
            // The transform precedes the precinct sizes; 1 is the integer transform.
            0x52 => reversible = rest.get(13) == Some(&1),
            // A component overrides the coding style.
            0x53 => return false,
            _ => {}
        }
        rest = rest.get(2 + usize::from(u16::from_be_bytes([high, low]))..).unwrap_or_default();
    }
    false
}

fn jpeg_2000(file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    if !is_reversible(file) {
        return Err(Decline::unsupported(
            "the image uses the irreversible transform of JPEG 2000, which decoders round differently",
        ));
    }
    let settings = hayro_jpeg2000::DecodeSettings { strict: true, ..Default::default() };
    let image = hayro_jpeg2000::Image::new(file, &settings).map_err(|error| broken(format!("{error:?}")))?;
    let (width, height) = size(image.width(), image.height())?;
    charge(height, width)?;
    if image.has_alpha() {
        return Err(transparent());
    }
    if image.original_bit_depth() != 8 {
        return Err(Decline::unsupported("only channels of 8 bits are supported"));
    }
    let format = match image.color_space() {
        hayro_jpeg2000::ColorSpace::RGB => PixelFormat::Rgb,
        hayro_jpeg2000::ColorSpace::Gray => PixelFormat::Grayscale,
        _ => return Err(Decline::unsupported("the color space is neither RGB nor grayscale")),
    };
    let mut context = hayro_jpeg2000::DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(|error| broken(format!("{error:?}")))?;
    whole(Image { height, width, format, samples: decoded.data_u8() })
}

/// Returns the image, if it has the expected number of samples.
fn whole(image: Image) -> Result<Image, Decline> {
    let count = image.height.checked_mul(image.width).and_then(|count| count.checked_mul(image.format.channels()));
    if count == Some(image.samples.len()) { Ok(image) } else { Err(broken("its size differs from its header")) }
}
