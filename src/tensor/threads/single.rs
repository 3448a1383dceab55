//! The functions of `threads.rs` for targets without threads: one after another, by the iterators of the standard library, without the code of rayon.

use std::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut};

/// The methods of rayon's iterators that an iterator of the standard library lacks.
pub trait ParallelIterator: Iterator + Sized {
    /// Maps each item, with one state for all of them.
    fn map_init<S, R>(
        self,
        init: impl FnOnce() -> S,
        mut map: impl FnMut(&mut S, Self::Item) -> R,
    ) -> impl Iterator<Item = R> {
        let mut state = init();
        self.map(move |item| map(&mut state, item))
    }

    /// Calls a function with each item and one state for all of them.
    fn for_each_init<S>(self, init: impl FnOnce() -> S, mut call: impl FnMut(&mut S, Self::Item)) {
        let mut state = init();
        self.for_each(|item| call(&mut state, item));
    }

    /// Combines all items; `None` if there are none.
    fn reduce_with(self, combine: impl FnMut(Self::Item, Self::Item) -> Self::Item) -> Option<Self::Item> {
        self.reduce(combine)
    }
}

impl<I: Iterator> ParallelIterator for I {}

/// Of rayon, the methods that the standard library gives every iterator.
pub trait IndexedParallelIterator {}

/// Does nothing: there are no threads to start.
pub fn work_alone() {}

/// Returns `false`: there is one thread.
pub fn start() -> bool {
    false
}

/// Returns the number of threads.
pub fn count() -> usize {
    1
}

/// Calls both functions.
pub fn join<A, B>(one: impl FnOnce() -> A, other: impl FnOnce() -> B) -> (A, B) {
    (one(), other())
}

/// Returns pieces of `len` elements, and one of the rest.
pub fn pieces<T>(elements: &[T], len: usize) -> Chunks<'_, T> {
    elements.chunks(len)
}

/// Calls a function with each piece of `len` elements, without the rest.
pub fn each_exact_piece_mut<T>(elements: &mut [T], len: usize, work: impl Fn((usize, &mut [T]))) {
    elements.chunks_exact_mut(len).enumerate().for_each(work);
}

/// Returns pieces of `len` elements, without the rest.
pub fn exact_pieces<T>(elements: &[T], len: usize) -> ChunksExact<'_, T> {
    elements.chunks_exact(len)
}

/// Returns pieces of `len` elements, and one of the rest, to write to.
pub fn pieces_mut<T>(elements: &mut [T], len: usize) -> ChunksMut<'_, T> {
    elements.chunks_mut(len)
}

/// Returns pieces of `len` elements, without the rest, to write to.
pub fn exact_pieces_mut<T>(elements: &mut [T], len: usize) -> ChunksExactMut<'_, T> {
    elements.chunks_exact_mut(len)
}
