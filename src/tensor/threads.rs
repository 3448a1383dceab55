//! The threads that large results are computed with: rayon's, started at the first use.
//!
//! A small model is folded before threads would have started, so nothing starts them in advance. A container or a user may be allowed fewer
//! threads than there are processors. Rayon gives up if one of its threads cannot be started, so they are started here and then given to it:
//! as many as the system allows. Without any, the work is done by the thread that asks for it if that is the only one at work
//! ([`work_alone`]): others would have to wait until it comes by again, which it may never do.
//!
//! Nobody else shares work out: Clippy refuses rayon's own functions elsewhere. WebAssembly has `threads/single.rs` in place of this module.

#![allow(clippy::disallowed_methods, reason = "this is where rayon is called")]

use std::io::ErrorKind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

pub use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut, ParallelSlice, ParallelSliceMut};
use rayon::{ThreadBuilder, ThreadPoolBuilder};

/// Whether one thread of the process is all that ever folds models.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// Says that one thread of the process is all that ever folds models, unless [`start`] finds others for it. It may then do the work of those that
/// cannot be started.
pub fn work_alone() {
    IS_ALONE.store(true, Ordering::Relaxed);
}

/// Starts the threads unless that has been done. Whether there are any besides the one that does the work of all.
pub fn start() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let mut idle = Vec::new();
        let refusal = (0..wanted()).find_map(|_| match idle_thread() {
            Ok(thread) => {
                idle.push(thread);
                None
            }
            Err(error) => Some(error),
        });
        let is_unsupported = refusal.is_some_and(|error| error.kind() == ErrorKind::Unsupported);
        let is_alone = idle.is_empty() && (IS_ALONE.load(Ordering::Relaxed) || is_unsupported);
        let pool = ThreadPoolBuilder::new();
        let built = match idle.len() {
            0 if is_alone => pool.num_threads(1).use_current_thread().build_global(),
            // Rayon tries once more, and panics with the reason.
            0 => return true,
            count => pool.num_threads(count).spawn_handler(|work| give(work, &mut idle)).build_global(),
        };
        // Refused if the program that uses the library has made a pool, which is then the one to use. The threads started here end.
        built.is_err() || !is_alone
    })
}

/// How many threads to start: what rayon would.
fn wanted() -> usize {
    let told = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    match told {
        Some(number @ 1..) => rayon::max_num_threads().min(number),
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// A thread that waits to be given its work.
fn idle_thread() -> std::io::Result<Sender<ThreadBuilder>> {
    let (sender, work) = channel::<ThreadBuilder>();
    std::thread::Builder::new().spawn(move || {
        if let Ok(work) = work.recv() {
            work.run();
        }
    })?;
    Ok(sender)
}

fn give(work: ThreadBuilder, idle: &mut Vec<Sender<ThreadBuilder>>) -> std::io::Result<()> {
    let gone = || std::io::Error::from(ErrorKind::WouldBlock);
    idle.pop().ok_or_else(gone)?.send(work).map_err(|_| gone())
}

/// How many threads there are.
pub fn count() -> usize {
    start();
    rayon::current_num_threads().max(1)
}

/// Does both, at the same time if there is a thread to spare.
pub fn join<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    start();
    rayon::join(one, other)
}

/// Pieces of `len` elements and one of what is left, to be read by all threads.
pub fn pieces<T: Sync>(elements: &[T], len: usize) -> Chunks<'_, T> {
    start();
    elements.par_chunks(len)
}

/// Works on each piece of `len` elements, and not on what is left: with all threads, or, where there are so few elements that telling the threads
/// takes longer than the work, one after another.
pub fn each_exact_piece_mut<T: Send>(elements: &mut [T], len: usize, work: impl Fn((usize, &mut [T])) + Send + Sync) {
    const PARALLEL: usize = 1 << 15;
    if elements.len() < PARALLEL {
        elements.chunks_exact_mut(len).enumerate().for_each(work);
    } else {
        exact_pieces_mut(elements, len).enumerate().for_each(work);
    }
}

/// Pieces of `len` elements, to be read by all threads. What is left is passed over.
pub fn exact_pieces<T: Sync>(elements: &[T], len: usize) -> ChunksExact<'_, T> {
    start();
    elements.par_chunks_exact(len)
}

/// Pieces of `len` elements and one of what is left, to be written by all threads.
pub fn pieces_mut<T: Send>(elements: &mut [T], len: usize) -> ChunksMut<'_, T> {
    start();
    elements.par_chunks_mut(len)
}

/// Pieces of `len` elements, to be written by all threads. What is left is passed over.
pub fn exact_pieces_mut<T: Send>(elements: &mut [T], len: usize) -> ChunksExactMut<'_, T> {
    start();
    elements.par_chunks_exact_mut(len)
}
