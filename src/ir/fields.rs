//! Splits a message into its fields without interpreting them.

/// A field of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'m> {
    /// The field number in the schema.
    pub number: u64,
    /// All bytes of the field.
    pub whole: &'m [u8],
    /// The content of a length-delimited field: text, bytes, a message or packed numbers.
    pub content: Option<&'m [u8]>,
}

/// Returns the fields of a message in order. Ends with `None` at malformed bytes or at a group.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = Option<Field<'_>>> {
    let mut left = message;
    std::iter::from_fn(move || {
        let field = (!left.is_empty()).then(|| first(left))?;
        left = field.as_ref().and_then(|field| left.get(field.whole.len()..)).unwrap_or_default();
        Some(field)
    })
}

fn first(message: &[u8]) -> Option<Field<'_>> {
    let mut left = message;
    let tag = varint(&mut left)?;
    let content = match tag & 7 {
        0 => varint(&mut left).map(|_| None)?,
        1 => cut(&mut left, 8).map(|_| None)?,
        2 => {
            let len = varint(&mut left)?;
            Some(cut(&mut left, usize::try_from(len).ok()?)?)
        }
        5 => cut(&mut left, 4).map(|_| None)?,
        _ => return None,
    };
    let whole = message.get(..message.len().checked_sub(left.len())?)?;
    Some(Field { number: tag >> 3, whole, content })
}

fn cut<'m>(left: &mut &'m [u8], len: usize) -> Option<&'m [u8]> {
    let (front, rest) = left.split_at_checked(len)?;
    *left = rest;
    Some(front)
}

fn varint(left: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = left.split_first()?;
        *left = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_bytes_are_none() {
        let found = |bytes: &'static [u8]| fields(bytes).collect::<Vec<_>>();
        let number = || Some(Field { number: 1, whole: b"\x08\x96\x01", content: None });
        let text = Some(Field { number: 2, whole: b"\x12\x01a", content: Some(b"a") });
        let fixed = Some(Field { number: 3, whole: b"\x1d1234", content: None });
        assert_eq!(found(b""), []);
        assert_eq!(found(b"\x08\x96\x01\x12\x01a\x1d1234"), [number(), text, fixed]);
        // A truncated text, an open group, a number of more than 64 bits.
        assert_eq!(found(b"\x08\x96\x01\x12\x02a"), [number(), None]);
        assert_eq!(found(b"\x08\x96\x01\x0b\x0c"), [number(), None]);
        assert_eq!(found(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), [None]);
    }
}
