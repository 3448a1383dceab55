//! Payloads that are computed when they are read. A large tensor takes no memory until then, and none if it is only written block
//! by block.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::threads;

/// Computes any elements of a tensor at any time, always with the same result.
pub(crate) trait Recipe: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Writes whole elements from index `first` on, little-endian.
    fn fill(&self, first: usize, out: &mut [u8]);

    /// Returns the depth of nested recipes for an element: 1 if all operands are in memory.
    fn depth(&self) -> usize;

    /// Returns the preferred bytes per call; a multiple of all element sizes.
    fn piece(&self) -> usize {
        PIECE
    }
}

/// A payload that is computed when it is read.
#[derive(Clone)]
pub(super) struct Deferred(Arc<Inner>);

struct Inner {
    recipe: Box<dyn Recipe>,
    /// The bytes of the payload.
    len: usize,
    /// The bytes of an element.
    width: usize,
    /// The whole payload, once it was requested in one piece.
    made: OnceLock<Bytes>,
}

/// The bytes that a thread computes at a time; a multiple of all element sizes.
pub(super) const PIECE: usize = 256 << 10;

/// The maximum depth of recipes: deeper tensors are computed as a whole and kept.
pub(crate) const DEEPEST: usize = 8;

impl Deferred {
    pub fn new(recipe: Box<dyn Recipe>, len: usize, width: usize) -> Self {
        Deferred(Arc::new(Inner { recipe, len, width, made: OnceLock::new() }))
    }

    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns an identity that is unique among live payloads.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Like [`Recipe::depth`]; 0 once the whole payload is in memory.
    pub fn depth(&self) -> usize {
        if self.0.made.get().is_some() { 0 } else { self.0.recipe.depth() }
    }

    /// Like [`Recipe::piece`].
    pub fn piece(&self) -> usize {
        self.0.recipe.piece()
    }

    /// Returns `true` if the whole payload was computed and takes memory.
    pub fn is_made(&self) -> bool {
        self.0.made.get().is_some()
    }

    /// Returns the whole payload; the first caller computes it.
    pub fn bytes(&self) -> &Bytes {
        if let Some(bytes) = self.0.made.get() {
            return bytes;
        }
        // Compute outside of the cell's lock: a waiting thread may pick up work that needs the same payload.
        let mut buffer = vec![0; self.0.len];
        self.compute(0, &mut buffer);
        let bytes = Bytes::from(buffer);
        self.0.made.get_or_init(|| bytes)
    }

    /// Writes the bytes from `at` on; `out` must be within the payload.
    pub fn read(&self, at: usize, out: &mut [u8]) {
        let width = self.0.width.max(1);
        if let Some(bytes) = self.0.made.get() {
            if let Some(bytes) = at.checked_add(out.len()).and_then(|end| bytes.get(at..end)) {
                out.copy_from_slice(bytes);
            }
        } else if at.is_multiple_of(width) && out.len().is_multiple_of(width) {
            self.compute(at / width, out);
        } else {
            // The elements that contain these bytes.
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
