//! What the passes took.

use crate::clock::Instant;

/// What the runs of one pass took.
#[derive(Clone, Debug, PartialEq)]
pub struct PassRun {
    /// The pass.
    pub name: &'static str,
    /// How often it ran.
    pub runs: usize,
    /// How many edits it made.
    pub changes: usize,
    /// Seconds it took in all.
    pub seconds: f64,
    /// By how many bytes it raised the most memory that the process held, where that is measured.
    pub raised: Option<u64>,
}

/// What each pass took, in the order in which they first ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    passes: Vec<PassRun>,
    /// The most memory the process held so far, if that is measured.
    peak: Option<u64>,
}

/// The most physical memory the process had, in bytes, pages of mapped files included, where the system tells (Linux does).
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

impl Profile {
    /// A profile of no pass yet, which measures memory if asked to: that takes a system call a pass.
    pub(super) fn new(measures_memory: bool) -> Self {
        Profile { passes: Vec::new(), peak: if measures_memory { peak_memory() } else { None } }
    }

    /// By how much the most memory held has grown since this was asked last.
    fn raised(&mut self) -> Option<u64> {
        let before = self.peak?;
        self.peak = peak_memory();
        Some(self.peak?.saturating_sub(before))
    }

    /// Adds one run of a pass, which began at `begin` and has just ended.
    pub(super) fn note(&mut self, name: &'static str, begin: Instant, changes: usize) {
        let (seconds, raised) = (begin.elapsed().as_secs_f64(), self.raised());
        self.add(PassRun { name, runs: 1, changes, seconds, raised });
    }

    /// Adds one run of a pass that ran others, which are noted for themselves: when it began, all passes had taken `before`, as
    /// [`Profile::seconds`] gives it.
    pub(super) fn note_around(&mut self, name: &'static str, begin: Instant, before: f64, changes: usize) {
        let inside = self.seconds() - before;
        let (seconds, raised) = ((begin.elapsed().as_secs_f64() - inside).max(0.0), self.raised());
        self.add(PassRun { name, runs: 1, changes, seconds, raised });
    }

    /// Seconds that all passes took.
    pub(super) fn seconds(&self) -> f64 {
        self.passes.iter().map(|pass| pass.seconds).sum()
    }

    fn add(&mut self, run: PassRun) {
        match self.passes.iter_mut().find(|known| known.name == run.name) {
            Some(known) => {
                known.runs += run.runs;
                known.changes += run.changes;
                known.seconds += run.seconds;
                known.raised = known.raised.zip(run.raised).map(|(known, run)| known.saturating_add(run));
            }
            None => self.passes.push(run),
        }
    }

    /// Adds the runs of another profile.
    pub(super) fn add_all(&mut self, other: Profile) {
        self.peak = other.peak;
        other.passes.into_iter().for_each(|run| self.add(run));
    }

    /// The passes with what they took.
    pub(super) fn into_passes(self) -> Vec<PassRun> {
        self.passes
    }
}
