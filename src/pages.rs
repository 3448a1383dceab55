//! The size of the pages that the system gives this process, where it lets a process choose (Linux).
//!
//! The system clears a page as a whole before it gives it. A huge page (2 MiB) takes a fraction of the time of the 512 small ones it stands for, if
//! most of it is used, so what is best depends on how much memory a model takes, which is about a kilobyte for each node. Measured beside
//! small pages, whole processes: a sixth more time for graphs of 500 nodes; 3 to 19 % less for 2,000 to 30,000 (three families of graphs); as much
//! for 60,000; 4 to 20 % more for 200,000, on a virtual machine, which is given huge pages slowly.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many nodes a graph has that takes less time on huge pages.
const ON_HUGE_PAGES: RangeInclusive<usize> = 1_500..=48_000;

/// Whether the process is this program's own.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Says that the process does nothing but run this program, which then chooses the pages. What was allocated before, which every model needs,
/// stays on the page it has.
pub fn choose() {
    IS_OURS.store(true, Ordering::Relaxed);
    allow_huge(false);
}

/// Chooses the pages for what a graph of so many nodes will take, before any of it is allocated.
pub(crate) fn suit(nodes: impl FnOnce() -> usize) {
    if IS_OURS.load(Ordering::Relaxed) {
        allow_huge(ON_HUGE_PAGES.contains(&nodes()));
    }
}

/// Where the system has no such choice only the time is another.
fn allow_huge(is_allowed: bool) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!is_allowed);
    #[cfg(not(target_os = "linux"))]
    let _ = is_allowed;
}
