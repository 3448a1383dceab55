//! Bits and Huffman codes.

/// A Huffman code: which symbol a row of bits stands for.
pub(super) struct Huffman {
    /// For each length from 1 to 16, the first code, how many there are, and the number of the first one's symbol.
    lengths: [(u32, u32, u32); 16],
    symbols: Vec<u8>,
}

impl Huffman {
    /// The code that has so many symbols of each length. `None` if there are more than the bits can tell apart.
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

    /// The symbol that the next bits stand for.
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

/// The bits of a scan, highest first.
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
            // A byte of all ones is followed by a zero that says it is no marker.
            self.rest = if byte == 0xff { rest.strip_prefix(&[0])? } else { rest };
            (self.current, self.left) = (byte, 8);
        }
        self.left -= 1;
        Some(u32::from(self.current >> self.left & 1))
    }

    /// A number of this many bits, no more than 15: the lower half of them stands for negative numbers.
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

    /// Goes on behind the restart marker that comes next. Bits before it fill the byte.
    pub(super) fn restart(&mut self) -> Option<()> {
        self.left = 0;
        self.rest = match self.rest {
            [0xff, 0xd0..=0xd7, rest @ ..] => rest,
            _ => return None,
        };
        Some(())
    }

    /// What follows the byte that is being read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
