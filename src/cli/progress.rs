//! A progress bar on a terminal, once work takes long enough to wonder.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less is not shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows what is being done until it is dropped; nothing unless standard error is a terminal.
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
            // The thread ends with the process; a bar that is finished by then draws nothing. Without a thread to draw it there is no bar.
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

    /// Shows how many of `all` models are done, instead of what is done.
    pub(super) fn count(&self, all: usize) {
        self.bar.set_length(all as u64);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {pos} of {len} models {wide_bar}") {
            self.bar.set_style(style);
        }
    }

    /// Tells of one more model that is done, without the bar being in the way.
    pub(super) fn aside(&self, tell: impl FnOnce()) {
        self.bar.inc(1);
        self.bar.suspend(tell);
    }

    /// Says what is done now.
    pub(super) fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
