//! A progress bar on a terminal, for work that takes noticeably long.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work has no progress bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows the current step until it is dropped, if standard error is a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn start(is_quiet: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        if std::io::stderr().is_terminal() && !is_quiet {
            let shown = bar.clone();
            // The thread ends with the process; a bar that is already finished draws nothing. Without a thread, there is no bar.
            let _ = std::thread::Builder::new().spawn(move || {
                std::thread::sleep(PATIENCE);
                if !shown.is_finished() {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(100));
                }
            });
        }
        Progress { bar }
    }

    /// Shows the number of finished models out of `all`, instead of the current step.
    pub(super) fn count(&self, all: usize) {
        self.bar.set_length(all as u64);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {pos} of {len} models {wide_bar}") {
            self.bar.set_style(style);
        }
    }

    /// Counts one more finished model, and calls `tell` while the bar is hidden.
    pub(super) fn aside(&self, tell: impl FnOnce()) {
        self.bar.inc(1);
        self.bar.suspend(tell);
    }

    /// Sets the current step.
    pub(super) fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
