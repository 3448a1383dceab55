//! Bit reader and Huffman codes.

/// A Huffman code, which maps bit sequences to symbols.
pub(super) struct Huffman {
    /// For each length from 1 to 16: the first code, the number of codes, and the index of the first symbol.
    lengths: [(u32, u32, u32); 16],
    symbols: Vec<u8>,
}

impl Huffman {
    /// Builds the code with these counts of symbols per length. Returns `None` if the counts exceed the available codes.
    pub(super) fn new(counts: &[u8], symbols: &[u8]) -> Option<Huffman> {
        let mut lengths = [(0, 0, 0); 16];
        let (mut code, mut number) = (0u32, 0u32);
        for (length, (place, &count)) in lengths.iter_mut().zip(counts).enumerate() {
            let count = u32::from(count);
            *place = (code, count, number);
            code += count;
            number += count;
            if code > 1 << (length + 1) {
                return None;
            }
            code <<= 1;
        }
        Some(Huffman { lengths, symbols: symbols.to_vec() })
    }

    /// Decodes the next symbol.
    pub(super) fn next(&self, bits: &mut Bits<'_>) -> Option<u8> {
        let mut code = 0;
        for &(first, count, number) in &self.lengths {
            code = code << 1 | bits.bit()?;
            if let Some(place) = code.checked_sub(first).filter(|&place| place < count) {
                return self.symbols.get((number + place) as usize).copied();
            }
        }
        None
    }
}

/// The bits of a scan, most significant first.
pub(super) struct Bits<'a> {
    rest: &'a [u8],
    current: u8,
    left: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Bits<'a> {
        Bits { rest, current: 0, left: 0 }
    }

    fn bit(&mut self) -> Option<u32> {
        if self.left == 0 {
            let (&byte, rest) = self.rest.split_first()?;
            // A stuffed zero after a byte of all ones marks it as data, not a marker.
            self.rest = if byte == 0xff { rest.strip_prefix(&[0])? } else { rest };
            (self.current, self.left) = (byte, 8);
        }
        self.left -= 1;
        Some(u32::from(self.current >> self.left & 1))
    }

    /// Reads a number of this many bits, at most 15: the lower half of the range represents negative numbers.
    pub(super) fn signed(&mut self, size: u32) -> Option<i32> {
        if size > 15 {
            return None;
        }
        let mut value = 0u32;
        for _ in 0..size {
            value = value << 1 | self.bit()?;
        }
        let value = value as i32;
        Some(if size > 0 && value < 1 << (size - 1) { value - (1 << size) + 1 } else { value })
    }

    /// Continues after the next restart marker. The bits before it only fill the byte.
    pub(super) fn restart(&mut self) -> Option<()> {
        self.left = 0;
        self.rest = match self.rest {
            [0xff, 0xd0..=0xd7, rest @ ..] => rest,
            _ => return None,
        };
        Some(())
    }

    /// Returns the bytes after the current one.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
