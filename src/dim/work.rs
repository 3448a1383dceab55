//! Counts work instead of timing it, so that a limit ends a run at the same place on every machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the work of all scopes of one run, and holds the most that they may do. One unit is about a tenth of a microsecond.
///
/// Only `explain` sets a limit, for a trial whose result is dropped once the limit is passed. No other result depends on the count.
#[derive(Clone, Debug)]
pub struct Meter {
    done: Arc<AtomicU64>,
    most: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Meter::limited(u64::MAX)
    }
}

impl Meter {
    /// Returns a meter for a run that may do `most` units of work.
    pub fn limited(most: u64) -> Self {
        Meter { done: Arc::default(), most }
    }

    /// Counts work as done.
    pub fn count(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Returns the units of work done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns `true` if the run has done more than it may. Its result will be dropped, so it may end early with any result.
    pub fn is_over(&self) -> bool {
        self.done() > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_counts_on_the_same_meter() {
        let meter = Meter::limited(10);
        meter.clone().count(10);
        assert!(!meter.is_over());
        meter.count(1);
        assert!(meter.clone().is_over() && meter.done() == 11);
        assert!(!Meter::default().is_over());
    }
}
