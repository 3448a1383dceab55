//! The functions of `threads.rs` for targets without threads: one item after another, without the code of rayon.

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
pub fn join(one: impl FnOnce(), other: impl FnOnce()) {
    one();
    other();
}

/// Calls `work` with each item.
pub fn for_each<T>(items: impl Iterator<Item = T>, work: impl Fn(T)) {
    items.for_each(work);
}

/// Calls `work` with each item and one state.
pub fn for_each_with<T, S>(items: impl Iterator<Item = T>, state: impl Fn() -> S, work: impl Fn(&mut S, T)) {
    let mut state = state();
    items.for_each(|item| work(&mut state, item));
}

/// Returns the result of `work` for each item.
pub fn map<T, R>(items: impl Iterator<Item = T>, work: impl Fn(T) -> R) -> Vec<R> {
    items.map(work).collect()
}

/// Calls `work` with each row of `len` elements and its number, and not with a shorter rest.
pub fn for_each_row<T>(elements: &mut [T], len: usize, work: impl Fn((usize, &mut [T]))) {
    elements.chunks_exact_mut(len).enumerate().for_each(work);
}
