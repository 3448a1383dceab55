//! What the passes took.

use std::time::Instant;

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
}

/// What each pass took, in the order in which they first ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(Vec<PassRun>);

impl Profile {
    /// Adds one run of a pass, which began at `begin` and has just ended.
    pub(super) fn note(&mut self, name: &'static str, begin: Instant, changes: usize) {
        self.add(PassRun { name, runs: 1, changes, seconds: begin.elapsed().as_secs_f64() });
    }

    /// Adds one run of a pass that ran others, which are noted for themselves: when it began, all passes had taken `before`, as
    /// [`Profile::seconds`] gives it.
    pub(super) fn note_around(&mut self, name: &'static str, begin: Instant, before: f64, changes: usize) {
        let inside = self.seconds() - before;
        self.add(PassRun { name, runs: 1, changes, seconds: (begin.elapsed().as_secs_f64() - inside).max(0.0) });
    }

    /// Seconds that all passes took.
    pub(super) fn seconds(&self) -> f64 {
        self.0.iter().map(|pass| pass.seconds).sum()
    }

    fn add(&mut self, run: PassRun) {
        match self.0.iter_mut().find(|known| known.name == run.name) {
            Some(known) => {
                known.runs += run.runs;
                known.changes += run.changes;
                known.seconds += run.seconds;
            }
            None => self.0.push(run),
        }
    }

    /// Adds the runs of another profile.
    pub(super) fn add_all(&mut self, other: Profile) {
        other.0.into_iter().for_each(|run| self.add(run));
    }

    /// The passes with what they took.
    pub(super) fn into_passes(self) -> Vec<PassRun> {
        self.0
    }
}
