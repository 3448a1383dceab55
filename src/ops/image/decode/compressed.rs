//! Compressed images decoded by `codecs`. Builds without the feature `images` omit this module.

use super::kind::Kind;
use super::{Charge, Image};
use crate::ops::Decline;

/// Decodes a PNG, WebP or JPEG 2000 file.
pub(super) fn decode(file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    let kind =
        Kind::of(file).ok_or_else(|| Decline::unsupported("the format of the encoded image is not supported"))?;
    decode_kind(kind, file, charge)
}

#[cfg(feature = "images")]
use super::codecs::decode as decode_kind;

#[cfg(not(feature = "images"))]
fn decode_kind(kind: Kind, _: &[u8], _: &Charge<'_>) -> Result<Image, Decline> {
    let name = match kind {
        Kind::Png => "PNG",
        Kind::Webp => "WebP",
        Kind::Jpeg2000 => "JPEG 2000",
    };
    Err(Decline::unsupported(format!("this build cannot decode {name}, because the Cargo feature 'images' is off")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_formats_are_declined_by_name() {
        let reason = |file: &[u8]| decode(file, &|_, _| Ok(())).unwrap_err().to_string();
        assert!(reason(b"GIF89a").ends_with("the format of the encoded image is not supported"));
        let broken = if cfg!(feature = "images") { "the image cannot be decoded" } else { "cannot decode PNG" };
        assert!(reason(b"\x89PNG").contains(broken), "{}", reason(b"\x89PNG"));
    }
}
