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
    pub(super) fn start() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        if std::io::stderr().is_terminal() {
            let shown = bar.clone();
            // The thread ends with the process; a bar that is finished by then draws nothing.
            std::thread::spawn(move || {
                std::thread::sleep(PATIENCE);
                if !shown.is_finished() {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(100));
                }
            });
        }
        Progress { bar }
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
