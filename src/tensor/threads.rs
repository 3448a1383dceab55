//! The threads that compute large results: rayon's, started at the first use.
//!
//! Small models are folded faster than threads start, so threads are not started in advance. A container or user may limit the
//! number of threads. Rayon fails if one of its threads cannot be started, so this module starts as many as the system allows and
//! gives them to rayon. Without any, the calling thread does the work if it is the only one at work ([`work_alone`]): with several
//! callers, some could wait forever.
//!
//! Iterators of the standard library distribute work: threads take items in turn. Only the loop over a thread's items is compiled
//! per use; rayon's parallel iterators made up a tenth of all code. Clippy rejects rayon's own functions in other modules.
//! WebAssembly uses `threads/single.rs` instead of this module.

#![allow(clippy::disallowed_methods, reason = "this is where rayon is called")]

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

/// `true` if only one thread of the process ever folds models.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// Declares that only one thread of the process ever folds models, apart from those of [`start`]. It may then do the work of
/// threads that cannot be started.
pub fn work_alone() {
    IS_ALONE.store(true, Ordering::Relaxed);
}

/// Starts the threads once. Returns `true` if there are any besides one that does all work.
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
            // Rayon tries again, and panics with the reason.
            0 => return true,
            count => pool.num_threads(count).spawn_handler(|work| give(work, &mut idle)).build_global(),
        };
        // An error means that the host program has already built a pool, which is then used. The threads started here end.
        built.is_err() || !is_alone
    })
}

/// Returns the number of threads to start, which equals rayon's default.
fn wanted() -> usize {
    let told = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    match told {
        Some(number @ 1..) => rayon::max_num_threads().min(number),
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Starts a thread that waits for its work.
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

/// Returns the number of threads.
pub fn count() -> usize {
    start();
    rayon::current_num_threads().max(1)
}

/// Calls both functions, concurrently if a thread is idle.
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

/// Calls `work` with each item, on all threads. Items are taken in order; one thread processes each.
pub fn for_each<T: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    for_each_with(items, || (), |(), item| work(item));
}

/// Calls `work` with each item, on all threads. The items of one thread share a state.
pub fn for_each_with<T: Send, S>(
    items: impl Iterator<Item = T> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) {
    /// The maximum number of items that a thread takes at a time.
    const MOST: usize = 1 << 10;
    let (items, threads) = (Mutex::new(items), count());
    on_all_threads(&|| {
        let (mut state, mut taken) = (state(), Vec::new());
        loop {
            // Take a fraction of the remaining items, so that all threads finish at about the same time.
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

/// Calls `work` with each row of `len` elements and its index, except a shorter rest. One thread processes small inputs, because
/// starting others would take longer.
pub fn for_each_row<T: Send>(elements: &mut [T], len: usize, work: impl Fn((usize, &mut [T])) + Sync) {
    const PARALLEL: usize = 1 << 15;
    let is_large = elements.len() >= PARALLEL;
    let rows = elements.chunks_exact_mut(len).enumerate();
    match is_large {
        true => for_each(rows, work),
        false => rows.for_each(work),
    }
}

/// Calls `work` on each idle thread and on the caller's, and returns when all calls have returned.
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
