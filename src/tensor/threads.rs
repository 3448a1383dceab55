//! The threads that large results are computed with: rayon's, started at the first use.
//!
//! A small model is folded before threads would have started, so nothing starts them in advance. A container or a user may be allowed fewer
//! threads than there are processors. Rayon gives up if one of its threads cannot be started, so they are started here and then given to it:
//! as many as the system allows. Without any, the work is done by the thread that asks for it if that is the only one at work
//! ([`work_alone`]): others would have to wait until it comes by again, which it may never do.
//!
//! Work is shared out by iterators of the standard library, from which the threads take items in turn. The loop over a thread's items is the
//! only code that is compiled for each use: rayon's parallel iterators were a tenth of all code. No other module shares work out: Clippy refuses
//! rayon's own functions elsewhere. WebAssembly has `threads/single.rs` in place of this module.

#![allow(clippy::disallowed_methods, reason = "this is where rayon is called")]

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

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

/// Calls both functions, at the same time if a thread is idle.
pub fn join(one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    fn both(one: &mut (dyn FnMut() + Send), other: &mut (dyn FnMut() + Send)) {
        start();
        rayon::join(one, other);
    }
    let (mut one, mut other) = (Some(one), Some(other));
    both(&mut || one.take().into_iter().for_each(|one| one()), &mut || {
        other.take().into_iter().for_each(|other| other());
    });
}

/// Calls `work` with each item, on all threads. Items are taken in order; each is worked on by one thread.
pub fn for_each<T: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    for_each_with(items, || (), |(), item| work(item));
}

/// Calls `work` with each item, on all threads. The items of one thread share a state.
pub fn for_each_with<T: Send, S>(
    items: impl Iterator<Item = T> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) {
    /// The most items that a thread takes at a time.
    const MOST: usize = 1 << 10;
    let (items, threads) = (Mutex::new(items), count());
    on_all_threads(&|| {
        let (mut state, mut taken) = (state(), Vec::new());
        loop {
            // A share of the items that remain, so that all threads finish at about the same time.
            let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
            #[allow(clippy::disallowed_methods, reason = "a number of items")]
            let share = (items.size_hint().0 / threads.saturating_mul(4)).clamp(1, MOST);
            taken.extend(items.by_ref().take(share));
            drop(items);
            if taken.is_empty() {
                return;
            }
            taken.drain(..).for_each(|item| work(&mut state, item));
        }
    });
}

/// Returns the result of `work` for each item, in the order of the items, computed on all threads.
pub fn map<T: Send, R: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let items: Vec<T> = items.collect();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for_each(results.iter_mut().zip(items), |(result, item)| *result = Some(work(item)));
    results.into_iter().flatten().collect()
}

/// Calls `work` with each row of `len` elements and its number, and not with a shorter rest. A few elements are worked on by one thread: others
/// would take longer to start.
pub fn for_each_row<T: Send>(elements: &mut [T], len: usize, work: impl Fn((usize, &mut [T])) + Sync) {
    const PARALLEL: usize = 1 << 15;
    let is_large = elements.len() >= PARALLEL;
    let rows = elements.chunks_exact_mut(len).enumerate();
    match is_large {
        true => for_each(rows, work),
        false => rows.for_each(work),
    }
}

/// Calls `work` on every thread that is idle, the caller's included, and returns when all calls have.
fn on_all_threads(work: &(dyn Fn() + Sync)) {
    match count() {
        1 => work(),
        threads => rayon::scope(|scope| {
            (1..threads).for_each(|_| scope.spawn(|_| work()));
            work();
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once_and_results_are_in_order() {
        for len in [0, 1, 2, 5, 1000, 100_000] {
            let squares = map(0..len, |at: usize| at * at);
            assert!(squares.into_iter().eq((0..len).map(|at| at * at)), "{len}");
        }
    }

    #[test]
    fn work_may_share_work_out() {
        let sums = map(0..64usize, |row| map(0..row, |at| at).into_iter().sum::<usize>());
        assert!(sums.into_iter().eq((0..64usize).map(|row| row * row.saturating_sub(1) / 2)));
    }

    #[test]
    fn both_functions_are_called() {
        let (mut one, mut other) = (0, 0);
        join(|| one += 1, || other += 2);
        assert_eq!((one, other), (1, 2));
    }
}
