//! The cost of the passes.

use crate::clock::Instant;

/// The cost of all runs of one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct PassRun {
    /// The pass.
    pub name: &'static str,
    /// The number of runs.
    pub runs: usize,
    /// The number of edits.
    pub changes: usize,
    /// The total time in seconds.
    pub seconds: f64,
    /// The bytes by which it raised the peak memory of the process, if measured.
    pub raised: Option<u64>,
}

/// The cost of each pass, in the order of their first runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    passes: Vec<PassRun>,
    /// The peak memory of the process so far, if measured.
    peak: Option<u64>,
}

/// Returns the peak physical memory of the process in bytes, including pages of mapped files, if the system reports it (Linux does).
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

impl Profile {
    /// Creates an empty profile. Measuring memory takes a system call per pass.
    pub(super) fn new(measures_memory: bool) -> Self {
        Profile { passes: Vec::new(), peak: if measures_memory { peak_memory() } else { None } }
    }

    /// Returns the growth of the peak memory since the last call.
    fn raised(&mut self) -> Option<u64> {
        let before = self.peak?;
        self.peak = peak_memory();
        Some(self.peak?.saturating_sub(before))
    }

    /// Adds a run of a pass that began at `begin` and has just ended.
    pub(super) fn note(&mut self, name: &'static str, begin: Instant, changes: usize) {
        let (seconds, raised) = (begin.elapsed().as_secs_f64(), self.raised());
        self.add(PassRun { name, runs: 1, changes, seconds, raised });
    }

    /// Adds a run of a pass with nested passes, which are noted separately. `before` is the time of all passes at its begin, from
    /// [`Profile::seconds`].
    pub(super) fn note_around(&mut self, name: &'static str, begin: Instant, before: f64, changes: usize) {
        let inside = self.seconds() - before;
        let (seconds, raised) = ((begin.elapsed().as_secs_f64() - inside).max(0.0), self.raised());
        self.add(PassRun { name, runs: 1, changes, seconds, raised });
    }

    /// Returns the total time of all passes in seconds.
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

    /// Returns the passes with their cost.
    pub(super) fn into_passes(self) -> Vec<PassRun> {
        self.passes
    }
}
