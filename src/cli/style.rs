//! Colors on terminals.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Colour {
    /// On terminals, unless the environment variable NO_COLOR is set.
    #[default]
    Auto,
    /// Always, also in files and pipes.
    Always,
    /// Never.
    Never,
}

/// The user's color setting, global because warnings can come from any place.
static WANTED: AtomicU8 = AtomicU8::new(0);

impl Colour {
    /// Applies this setting to the program.
    pub(super) fn set(self) {
        WANTED.store(self as u8, Ordering::Relaxed);
    }

    /// Returns `true` if `stream` gets colors.
    fn shows_on(stream: &impl IsTerminal) -> bool {
        match WANTED.load(Ordering::Relaxed) {
            wanted if wanted == Colour::Always as u8 => true,
            wanted if wanted == Colour::Never as u8 => false,
            _ => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

/// The highlighting of a word.
#[derive(Clone, Copy)]
pub(super) enum Style {
    Error,
    Warning,
    Note,
}

/// Returns a word with the highlighting that `stream` supports.
pub(super) fn styled(word: &str, style: Style, stream: &impl IsTerminal) -> String {
    if !Colour::shows_on(stream) {
        return word.to_string();
    }
    let code = match style {
        Style::Error => "1;31",
        Style::Warning => "1;33",
        Style::Note => "1;36",
    };
    format!("\u{1b}[{code}m{word}\u{1b}[0m")
}
