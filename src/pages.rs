//! The page size of the process's memory, on systems where a process can choose it (Linux).
//!
//! The system clears a page before it maps it. Clearing one huge page (2 MiB) is faster than clearing 512 small ones, if most of it is
//! used. So the best choice depends on the memory that a model takes, about a kilobyte per node. Measured for whole processes, relative to
//! small pages, on a virtual machine that maps huge pages slowly:
//!
//! | nodes | time with huge pages |
//! | --- | --- |
//! | 500 | +17 % |
//! | 2,000 to 30,000 (three families of graphs) | −3 to −19 % |
//! | 60,000 | equal |
//! | 200,000 | +4 to +20 % |

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

/// The numbers of nodes for which huge pages are faster.
const ON_HUGE_PAGES: RangeInclusive<usize> = 1_500..=48_000;

/// `true` if this program owns the process.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Records that this program owns the process and may choose the page size. Earlier allocations, which every model needs, keep their pages.
pub fn choose() {
    IS_OURS.store(true, Ordering::Relaxed);
    allow_huge(false);
}

/// Chooses the pages for a graph with this number of nodes, before its memory is allocated.
pub(crate) fn suit(nodes: impl FnOnce() -> usize) {
    if IS_OURS.load(Ordering::Relaxed) {
        allow_huge(ON_HUGE_PAGES.contains(&nodes()));
    }
}

/// On other systems this function has no effect, and only the time differs.
fn allow_huge(is_allowed: bool) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!is_allowed);
    #[cfg(not(target_os = "linux"))]
    let _ = is_allowed;
}
