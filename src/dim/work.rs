//! How much was done, counted instead of timed: the same on every machine, so that what depends on it is the same everywhere as well.

use std::cell::Cell;

thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
    static LIMIT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// What this thread has done so far, in units of about a tenth of a microsecond: the expressions it made, and what others
/// [`count`].
pub(crate) fn work() -> u64 {
    DONE.get()
}

/// Counts so many units as done.
pub(crate) fn count(units: u64) {
    DONE.set(DONE.get().saturating_add(units));
}

/// Whether more was done than [`within`] allows: whatever is computed now will not be used, so it may be anything.
pub(crate) fn is_over() -> bool {
    DONE.get() > LIMIT.get()
}

/// What a computation gives, unless it does more than so many units: then it is told by [`is_over`] that it may give up.
pub(crate) fn within<T>(units: u64, compute: impl FnOnce() -> T) -> Option<T> {
    /// Puts the limit back that there was, should the computation panic as well.
    struct Before(u64);
    impl Drop for Before {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let before = Before(LIMIT.get());
    LIMIT.set(before.0.min(work().saturating_add(units)));
    let computed = compute();
    (!is_over()).then_some(computed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_too_much_gives_nothing() {
        let doing = |units| {
            move || {
                count(units);
                is_over()
            }
        };
        assert_eq!(within(10, doing(10)), Some(false));
        assert_eq!(within(10, doing(11)), None);
        assert!(!is_over());
        // A limit inside is no more than what is left of the one outside.
        assert_eq!(within(10, || (within(100, doing(11)), is_over())), None);
        assert_eq!(within(10, || (within(5, doing(6)), is_over())), Some((None, false)));
    }
}
