//! Payloads that are computed when they are read, so that a large tensor takes no memory until then, and none at all where it is only
//! written block by block.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::threads;

/// How the elements of a tensor are computed, any of them at any time, always with the same result.
pub(crate) trait Recipe: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Writes the elements from number `first` on, whole ones, little-endian.
    fn fill(&self, first: usize, out: &mut [u8]);

    /// How many recipes are followed for an element: 1 if all it reads is there.
    fn depth(&self) -> usize;

    /// Bytes that are best computed at a time; a multiple of the size of every element.
    fn piece(&self) -> usize {
        PIECE
    }
}

/// A payload that is computed when it is read.
#[derive(Clone)]
pub(super) struct Deferred(Arc<Inner>);

struct Inner {
    recipe: Box<dyn Recipe>,
    /// Bytes of the payload.
    len: usize,
    /// Bytes of an element.
    width: usize,
    /// The whole payload, once somebody wanted it in one piece.
    made: OnceLock<Bytes>,
}

/// Bytes that a thread computes at a time; a multiple of the size of every element.
pub(super) const PIECE: usize = 256 << 10;

/// Recipes that are followed for an element at most: what lies deeper is computed as a whole, and kept.
pub(crate) const DEEPEST: usize = 8;

impl Deferred {
    pub fn new(recipe: Box<dyn Recipe>, len: usize, width: usize) -> Self {
        Deferred(Arc::new(Inner { recipe, len, width, made: OnceLock::new() }))
    }

    pub fn len(&self) -> usize {
        self.0.len
    }

    /// What tells it from any other that is alive.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// As [`Recipe::depth`]; 0 once the whole is there.
    pub fn depth(&self) -> usize {
        if self.0.made.get().is_some() { 0 } else { self.0.recipe.depth() }
    }

    /// As [`Recipe::piece`].
    pub fn piece(&self) -> usize {
        self.0.recipe.piece()
    }

    /// Whether the payload has been computed as a whole, and takes memory.
    pub fn is_made(&self) -> bool {
        self.0.made.get().is_some()
    }

    /// The whole payload, computed by the first who asks.
    pub fn bytes(&self) -> &Bytes {
        if let Some(bytes) = self.0.made.get() {
            return bytes;
        }
        // Not while the cell is locked: a thread that waits for its share of the work may take up work that asks for the same.
        let mut buffer = vec![0; self.0.len];
        self.compute(0, &mut buffer);
        let bytes = Bytes::from(buffer);
        self.0.made.get_or_init(|| bytes)
    }

    /// Writes the bytes from `at` on. There must be as many.
    pub fn read(&self, at: usize, out: &mut [u8]) {
        let width = self.0.width.max(1);
        if let Some(bytes) = self.0.made.get() {
            if let Some(bytes) = at.checked_add(out.len()).and_then(|end| bytes.get(at..end)) {
                out.copy_from_slice(bytes);
            }
        } else if at.is_multiple_of(width) && out.len().is_multiple_of(width) {
            self.compute(at / width, out);
        } else {
            // The elements around it.
            let before = at % width;
            let mut whole = vec![0; before.saturating_add(out.len()).next_multiple_of(width)];
            self.compute(at / width, &mut whole);
            if let Some(bytes) = whole.get(before..).and_then(|whole| whole.get(..out.len())) {
                out.copy_from_slice(bytes);
            }
        }
    }

    fn compute(&self, first: usize, out: &mut [u8]) {
        let (recipe, width) = (&self.0.recipe, self.0.width.max(1));
        let bytes = recipe.piece().next_multiple_of(PIECE).max(PIECE);
        if out.len() <= bytes {
            return recipe.fill(first, out);
        }
        threads::for_each(out.chunks_mut(bytes).enumerate(), |(piece, out)| {
            recipe.fill(first.saturating_add(piece.saturating_mul(bytes / width)), out);
        });
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes to be computed", self.0.len)
    }
}
