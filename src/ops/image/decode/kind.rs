//! Detection of compressed image formats.

/// The compressed image formats that crates decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Png,
    Webp,
    Jpeg2000,
}

/// The first two markers of a JPEG 2000 codestream.
pub(super) const CODESTREAM: &[u8] = b"\xff\x4f\xff\x51";

impl Kind {
    /// Returns the format of a file, by its first bytes.
    pub(super) fn of(file: &[u8]) -> Option<Kind> {
        let kinds = [
            (&b"\x89PNG"[..], Kind::Png),
            (b"RIFF", Kind::Webp),
            // In a JP2 box, and without one.
            (b"\0\0\0\x0cjP  ", Kind::Jpeg2000),
            (CODESTREAM, Kind::Jpeg2000),
        ];
        kinds.into_iter().find(|(signature, _)| file.starts_with(signature)).map(|(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognized_by_their_signatures() {
        assert_eq!(Kind::of(b"\x89PNG\r\n"), Some(Kind::Png));
        assert_eq!(Kind::of(b"RIFF\0\0\0\0WEBP"), Some(Kind::Webp));
        assert_eq!(Kind::of(b"\0\0\0\x0cjP  \r\n"), Some(Kind::Jpeg2000));
        assert_eq!(Kind::of(b"\xff\x4f\xff\x51\0"), Some(Kind::Jpeg2000));
        for file in [&b""[..], b"\x89PN", b"GIF89a", b"\xff\x4f\xff"] {
            assert_eq!(Kind::of(file), None);
        }
    }
}
