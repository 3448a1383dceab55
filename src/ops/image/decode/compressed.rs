//! Which kind of compressed image a file is. The decoders are those of `codecs`, which a build without the feature
//! `images` leaves out.

use super::{Charge, Image};
use crate::ops::Decline;

/// The kinds of compressed images that crates decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Png,
    Webp,
    Jpeg2000,
}

/// The first marks of a JPEG 2000 codestream.
pub(super) const CODESTREAM: &[u8] = b"\xff\x4f\xff\x51";

impl Kind {
    fn of(file: &[u8]) -> Option<Kind> {
        let kinds = [
            (&b"\x89PNG"[..], Kind::Png),
            (b"RIFF", Kind::Webp),
            // In a box, and bare.
            (b"\0\0\0\x0cjP  ", Kind::Jpeg2000),
            (CODESTREAM, Kind::Jpeg2000),
        ];
        kinds.into_iter().find(|(signature, _)| file.starts_with(signature)).map(|(_, kind)| kind)
    }
}

/// The image of a file of one of these kinds.
pub(super) fn decode(file: &[u8], charge: &Charge<'_>) -> Result<Image, Decline> {
    let kind = Kind::of(file).ok_or_else(|| Decline::unsupported("the image is of a kind that is not decoded"))?;
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
    Err(Decline::unsupported(format!("this build does not decode {name}: it was made without the feature 'images'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_signatures() {
        assert_eq!(Kind::of(b"\x89PNG\r\n"), Some(Kind::Png));
        assert_eq!(Kind::of(b"RIFF\0\0\0\0WEBP"), Some(Kind::Webp));
        assert_eq!(Kind::of(b"\0\0\0\x0cjP  \r\n"), Some(Kind::Jpeg2000));
        assert_eq!(Kind::of(b"\xff\x4f\xff\x51\0"), Some(Kind::Jpeg2000));
        for file in [&b""[..], b"\x89PN", b"GIF89a", b"\xff\x4f\xff"] {
            assert_eq!(Kind::of(file), None);
        }
    }

    #[test]
    fn what_is_not_decoded_is_declined_by_name() {
        let reason = |file: &[u8]| decode(file, &|_, _| Ok(())).unwrap_err().to_string();
        assert!(reason(b"GIF89a").ends_with("the image is of a kind that is not decoded"));
        let broken = if cfg!(feature = "images") { "the image cannot be decoded" } else { "does not decode PNG" };
        assert!(reason(b"\x89PNG").contains(broken), "{}", reason(b"\x89PNG"));
    }
}
