//! Packed elements of less than a byte.
//!
//! The elements of a payload are a stream of bits, starting with the lowest bits of the first byte (`TensorProto.raw_data`):
//! four 2-bit or two 4-bit elements per byte, four 6-bit elements in three bytes.

/// Iterates over the codes of a packed payload, one byte each, zero-extended, up to the requested number or the end.
#[derive(Clone, Debug)]
pub struct Codes<'a> {
    bytes: &'a [u8],
    bits: usize,
    next: usize,
    end: usize,
}

impl<'a> Codes<'a> {
    /// Returns elements `start..start + len` of a payload whose elements have this many bits, from 1 to 8.
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

/// Returns one code. A 6-bit code may extend into the next byte, which always exists then.
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

const fn mask(bits: usize) -> u8 {
    if bits < 8 { (1 << bits) - 1 } else { 0xff }
}

/// Unpacks codes from the start of a payload until `codes` is full; faster than [`Codes`].
pub(super) fn unpack_into(bytes: &[u8], bits: usize, codes: &mut [u8]) {
    match bits {
        2 => unpack_groups::<2, 1, 4>(bytes, codes),
        4 => unpack_groups::<4, 1, 2>(bytes, codes),
        6 => unpack_groups::<6, 3, 4>(bytes, codes),
        _ => codes.iter_mut().zip(Codes::new(bytes, bits, 0, usize::MAX)).for_each(|(to, code)| *to = code),
    }
}

/// Unpacks groups: the smallest number of codes that is whole bytes.
fn unpack_groups<const BITS: usize, const BYTES: usize, const CODES: usize>(bytes: &[u8], codes: &mut [u8]) {
    let (groups, rest) = codes.as_chunks_mut::<CODES>();
    let whole = groups.len() * CODES;
    for (codes, bytes) in groups.iter_mut().zip(bytes.as_chunks::<BYTES>().0) {
        let word = bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        *codes = std::array::from_fn(|at| (word >> (BITS * at)) as u8 & mask(BITS));
    }
    rest.iter_mut().zip(Codes::new(bytes, BITS, whole, CODES)).for_each(|(to, code)| *to = code);
}

/// Packs the low bits (1 to 8) of codes; the last byte is padded with zeros.
pub fn pack(codes: &[u8], bits: usize) -> Vec<u8> {
    let mut packed = vec![0; (codes.len() / 8).saturating_mul(bits) + (codes.len() % 8 * bits).div_ceil(8)];
    pack_into(codes, bits, &mut packed);
    packed
}

/// Packs codes into zeroed bytes of their packed length.
pub(super) fn pack_into(codes: &[u8], bits: usize, packed: &mut [u8]) {
    match bits {
        2 => pack_groups::<2, 1, 4>(codes, packed),
        4 => pack_groups::<4, 1, 2>(codes, packed),
        6 => pack_groups::<6, 3, 4>(codes, packed),
        _ => pack_bits(codes, bits, packed),
    }
}

/// Packs groups: the smallest number of codes that is whole bytes.
fn pack_groups<const BITS: usize, const BYTES: usize, const CODES: usize>(codes: &[u8], packed: &mut [u8]) {
    let (groups, rest) = codes.as_chunks::<CODES>();
    let whole = groups.len() * BYTES;
    for (codes, bytes) in groups.iter().zip(packed.as_chunks_mut::<BYTES>().0) {
        let word = codes.iter().rev().fold(0u32, |word, &code| word << BITS | u32::from(code & mask(BITS)));
        *bytes = std::array::from_fn(|at| (word >> (8 * at)) as u8);
    }
    pack_bits(rest, BITS, packed.get_mut(whole..).unwrap_or_default());
}

fn pack_bits(codes: &[u8], bits: usize, packed: &mut [u8]) {
    let mut packed = packed.iter_mut();
    let mut pending = 0u16;
    let mut filled = 0;
    for &code in codes {
        pending |= u16::from(code & mask(bits)) << filled;
        filled += bits;
        if filled >= 8 {
            packed.next().into_iter().for_each(|byte| *byte = pending as u8);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        packed.next().into_iter().for_each(|byte| *byte = pending as u8);
    }
}

/// Sign-extends a two's complement code of this many bits.
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
        assert!(pack(&[], 4).is_empty());
    }

    #[test]
    fn codes_come_back() {
        for bits in 1..=8 {
            let codes: Vec<u8> = (0..67u32).map(|at| (at * 37 + 11) as u8 & mask(bits)).collect();
            for len in 0..codes.len() {
                let packed = pack(&codes[..len], bits);
                assert_eq!(packed.len(), (len * bits).div_ceil(8));
                assert_eq!(Codes::new(&packed, bits, 0, len).collect::<Vec<_>>(), codes[..len]);
                let mut unpacked = vec![0xff; len];
                unpack_into(&packed, bits, &mut unpacked);
                assert_eq!(unpacked, codes[..len]);
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
