//! Properties of all elements of a tensor: conditions, equality, uniformity, hashes. Deferred payloads are read in blocks.

use super::super::index::Shape;
use super::{Payload, Tensor};
use bytes::Bytes;

impl Tensor {
    /// Returns `true` if a condition holds for all elements of a real tensor, converted as in [`to_f64s`](Self::to_f64s); `None` for
    /// strings and complex numbers. Reads a payload that is not in memory in blocks.
    pub fn every_f64(&self, mut holds: impl FnMut(f64) -> bool) -> Option<bool> {
        self.every_block(|block| Some(block.to_f64s()?.into_iter().all(&mut holds)))
    }

    /// Like [`every_f64`](Self::every_f64), for integers converted as in [`to_i64s`](Self::to_i64s).
    pub fn every_i64(&self, mut holds: impl FnMut(i64) -> bool) -> Option<bool> {
        self.every_block(|block| Some(block.to_i64s()?.into_iter().all(&mut holds)))
    }

    /// Returns `true` if a condition holds for the tensor or, if its payload is not in memory, for each [block](Self::block).
    fn every_block(&self, mut holds: impl FnMut(&Tensor) -> Option<bool>) -> Option<bool> {
        if self.is_in_memory() {
            return holds(self);
        }
        for first in (0..self.len).step_by(Self::BLOCK) {
            if !holds(&self.block(first)?)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns `true` if two tensors are equal bit for bit: type, shape and elements. Ignores padding after packed elements.
    pub fn same(&self, other: &Tensor) -> bool {
        if self.dtype != other.dtype || self.shape != other.shape {
            return false;
        }
        if self.strings.is_some() || other.strings.is_some() {
            return self.strings == other.strings;
        }
        if self.payload_key() == other.payload_key() {
            return true;
        }
        if self.is_deferred() || other.is_deferred() {
            return self.same_blocks(other);
        }
        let ((mine, my_tail), (others, other_tail)) = (self.whole_bytes(), other.whole_bytes());
        my_tail == other_tail && mine == others
    }

    /// Returns `true` if the payloads of two tensors of one type and shape are equal, block by block. Elements must not be packed.
    fn same_blocks(&self, other: &Tensor) -> bool {
        const BLOCK: usize = 1 << 20;
        let len = self.byte_len();
        let [mut mine, mut others] = [vec![0; len.min(BLOCK)], vec![0; len.min(BLOCK)]];
        (0..len).step_by(BLOCK).all(|at| {
            let block = BLOCK.min(len - at);
            let (Some(mine), Some(others)) = (mine.get_mut(..block), others.get_mut(..block)) else { return false };
            self.read(at, mine);
            other.read(at, others);
            mine == others
        })
    }

    /// Returns the payload without a partly padded last byte, and that byte with cleared padding.
    fn whole_bytes(&self) -> (&[u8], Option<u8>) {
        let bits = self.dtype.bits().unwrap_or(8);
        // Eight elements of any width are whole bytes.
        let used = self.len % 8 * bits % 8;
        match self.bytes().split_last() {
            Some((last, whole)) if used != 0 => (whole, Some(last & ((1 << used) - 1))),
            _ => (self.bytes(), None),
        }
    }

    /// Returns the element that all elements equal bit for bit, as a tensor of rank 0; `None` if they differ or there are none.
    pub fn uniform(&self) -> Option<Tensor> {
        if self.is_empty() {
            return None;
        }
        let mut scalar = Tensor { shape: Shape::new(), len: 1, ..self.clone() };
        if let Some(strings) = self.strings() {
            let first = strings.first()?;
            scalar.strings = Some([first.clone()].into());
            return strings.iter().all(|string| string == first).then_some(scalar);
        }
        if self.dtype.is_packed() {
            let mut codes = self.codes()?;
            let first = codes.next()?;
            scalar.payload = Payload::Here(Bytes::copy_from_slice(&[first]));
            return codes.all(|code| code == first).then_some(scalar);
        }
        // The elements are equal if the payload equals itself shifted by one element.
        let width = self.dtype.byte_len(1)?;
        if !self.is_in_memory() {
            // Block by block: in most tensors, two elements of the first, small block already differ.
            let (mut at, mut block, mut read, mut first) = (0, 1024usize.checked_mul(width)?, Vec::new(), None);
            while at < self.byte_len() {
                read.resize(block.min(self.byte_len() - at), 0);
                self.read(at, &mut read);
                let element = first.get_or_insert_with(|| read.get(..width).unwrap_or_default().to_vec());
                if !repeats(&read, element) {
                    return None;
                }
                (at, block) = (at + read.len(), block.checked_mul(4)?.min(width << 16));
            }
            scalar.payload = Payload::Here(first?.into());
            return Some(scalar);
        }
        let bytes = self.bytes();
        scalar.payload = Payload::Here(bytes.slice(..width));
        (bytes.get(width..)? == bytes.get(..bytes.len() - width)?).then_some(scalar)
    }

    /// Returns a hash of type, shape and a bounded sample of the payload, without reading a large tensor. Tensors with different
    /// hashes differ; [`Tensor::same`] compares tensors with equal ones.
    pub fn hash_sample(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        const WHOLE: usize = 4096;
        const PART: usize = 64;
        let len = self.byte_len();
        if self.strings.is_some() || len <= WHOLE {
            return self.hash_content();
        }
        let mut hasher = rustc_hash::FxHasher::default();
        self.dtype().hash(&mut hasher);
        self.shape().hash(&mut hasher);
        for at in (0..len).step_by(len / 16 + 1) {
            let mut part = [0; PART];
            let Some(part) = part.get_mut(..PART.min(len - at)) else { continue };
            self.read(at, part);
            part.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns a hash of type, shape and elements. It is equal for tensors that are the [`same`](Self::same) and identical on all
    /// machines. It does not resist deliberate collisions, so callers must confirm equality with `same`.
    pub fn hash_content(&self) -> u64 {
        let mut hash = Hash::new(self.dtype.onnx() as u64);
        hash.word(self.shape.len() as u64);
        for &dim in &self.shape {
            hash.word(dim as u64);
        }
        match self.strings() {
            Some(strings) => strings.iter().for_each(|string| hash.bytes(string)),
            None => {
                let (whole, tail) = self.whole_bytes();
                hash.bytes(whole);
                hash.word(tail.map_or(0, u64::from));
            }
        }
        hash.finish()
    }
}

/// A multiply-and-rotate hash over four independent lanes, so that hashing long payloads is limited only by memory.
struct Hash {
    state: u64,
}

impl Hash {
    /// An odd number without pattern: the fraction of the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    const LANES: usize = 4;

    fn new(seed: u64) -> Hash {
        let mut hash = Hash { state: Self::FACTOR };
        hash.word(seed);
        hash
    }

    fn word(&mut self, word: u64) {
        self.state = mix(self.state, word);
    }

    /// Hashes bytes and their number, so that adjacent strings are separated.
    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        let (blocks, words) = words.as_chunks::<{ Self::LANES }>();
        if !blocks.is_empty() {
            let mut lanes = [1, 2, 3, 4].map(|lane| mix(self.state, lane));
            for block in blocks {
                for (lane, word) in lanes.iter_mut().zip(block) {
                    *lane = mix(*lane, u64::from_le_bytes(*word));
                }
            }
            lanes.into_iter().for_each(|lane| self.word(lane));
        }
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        rest.iter().for_each(|&byte| self.word(byte.into()));
    }

    fn finish(self) -> u64 {
        let state = (self.state ^ self.state >> 32).wrapping_mul(Self::FACTOR);
        state ^ state >> 29
    }
}

/// Performs one step, which is bijective in the word for a fixed state.
fn mix(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(Hash::FACTOR)
}

/// Returns `true` if the bytes repeat one element. Compares eight bytes at a time, without calls, which WebAssembly executes slowly.
fn repeats(bytes: &[u8], element: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let Some(&first) = words.first().filter(|_| 8usize.is_multiple_of(element.len())) else {
        return bytes.chunks(element.len().max(1)).all(|other| other == element);
    };
    let word = u64::from_ne_bytes(first);
    first.chunks(element.len()).all(|other| other == element)
        && words.iter().all(|other| u64::from_ne_bytes(*other) == word)
        && rest.chunks(element.len()).all(|other| other == element)
}
