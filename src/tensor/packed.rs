//! Elements of less than a byte, packed.
//!
//! The elements of a payload are one stream of bits, lowest bits of the first byte first (`TensorProto.raw_data`):
//! four 2-bit or two 4-bit elements a byte, four 6-bit elements in three bytes.

/// The codes of a packed payload, one byte each, zero-extended; as many as asked for, or fewer when the payload ends.
#[derive(Clone, Debug)]
pub struct Codes<'a> {
    bytes: &'a [u8],
    bits: usize,
    next: usize,
    end: usize,
}

impl<'a> Codes<'a> {
    /// Elements `start..start + len` of a payload whose elements have this many bits, from 1 to 8.
    pub fn new(bytes: &'a [u8], bits: usize, start: usize, len: usize) -> Codes<'a> {
        debug_assert!((1..=8).contains(&bits));
        Codes { bytes, bits, next: start, end: start.saturating_add(len) }
    }
}

impl Iterator for Codes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.next >= self.end {
            return None;
        }
        let code = code_at(self.bytes, self.bits, self.next)?;
        self.next += 1;
        Some(code)
    }
}

/// One code. A 6-bit code may reach into the next byte, which always exists then.
#[inline]
pub(super) fn code_at(bytes: &[u8], bits: usize, at: usize) -> Option<u8> {
    // Whole groups of eight elements are `bits` bytes: nothing here can overflow.
    let bit = at % 8 * bits;
    let byte = (at / 8).checked_mul(bits)?.checked_add(bit / 8)?;
    let low = u16::from(*bytes.get(byte)?);
    let high = if bit % 8 + bits > 8 { u16::from(*bytes.get(byte + 1)?) } else { 0 };
    let code = (low | high << 8) >> (bit % 8);
    Some(code as u8 & mask(bits))
}

fn mask(bits: usize) -> u8 {
    (0xffu16 >> (8 - bits.clamp(1, 8))) as u8
}

/// Packs codes of this many bits (1 to 8), their low bits; the last byte is padded with zeros.
pub fn pack(codes: &[u8], bits: usize) -> Vec<u8> {
    let mut packed = Vec::with_capacity((codes.len() / 8).saturating_mul(bits).saturating_add(8));
    pack_into(codes, bits, &mut packed);
    packed
}

/// Appends the packed codes; every call starts at a new byte.
pub(super) fn pack_into(codes: &[u8], bits: usize, packed: &mut Vec<u8>) {
    let mut pending = 0u16;
    let mut filled = 0;
    for &code in codes {
        pending |= u16::from(code & mask(bits)) << filled;
        filled += bits;
        if filled >= 8 {
            packed.push(pending as u8);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        packed.push(pending as u8);
    }
}

/// A two's complement code of this many bits, sign-extended.
pub(super) fn sign_extend(code: u8, bits: usize) -> i8 {
    let shift = 8usize.saturating_sub(bits) as u32;
    (code.wrapping_shl(shift) as i8).wrapping_shr(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_is_in_the_lowest_bits() {
        assert_eq!(pack(&[1, 2, 3], 4), [0x21, 0x03]);
        assert_eq!(pack(&[1, 2, 3, 0, 2], 2), [0b00_11_10_01, 0b10]);
        let [x0, x1, x2, x3] = [0x2a, 0x15, 0x3f, 0x01];
        assert_eq!(pack(&[x0, x1, x2, x3], 6), [x0 | (x1 & 3) << 6, x1 >> 2 | (x2 & 15) << 4, x2 >> 4 | x3 << 2]);
        assert_eq!(pack(&[], 4), []);
    }

    #[test]
    fn codes_come_back() {
        for bits in [2, 4, 6, 8] {
            let codes: Vec<u8> = (0..67u32).map(|at| (at * 37 + 11) as u8 & mask(bits)).collect();
            for len in 0..codes.len() {
                let packed = pack(&codes[..len], bits);
                assert_eq!(packed.len(), (len * bits).div_ceil(8));
                assert_eq!(Codes::new(&packed, bits, 0, len).collect::<Vec<_>>(), codes[..len]);
                assert_eq!(Codes::new(&packed, bits, len / 3, len).next(), codes[..len].get(len / 3).copied());
            }
        }
        assert_eq!(Codes::new(&[0xff], 4, 0, usize::MAX).count(), 2);
        assert_eq!(Codes::new(&[0xff], 6, usize::MAX - 1, usize::MAX).count(), 0);
    }

    #[test]
    fn signs_extend() {
        assert_eq!([0b00, 0b01, 0b10, 0b11].map(|code| sign_extend(code, 2)), [0, 1, -2, -1]);
        assert_eq!([0, 7, 8, 15].map(|code| sign_extend(code, 4)), [0, 7, -8, -1]);
        assert_eq!(sign_extend(0x80, 8), -128);
    }
}
