//! Colour, where a terminal shows it.

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

/// What the user wants, as the program's one setting that warnings from any place must know.
static WANTED: AtomicU8 = AtomicU8::new(0);

impl Colour {
    /// Makes this the setting of the program.
    pub(super) fn set(self) {
        WANTED.store(self as u8, Ordering::Relaxed);
    }

    /// Whether to write colours to `stream`.
    fn shows_on(stream: &impl IsTerminal) -> bool {
        match WANTED.load(Ordering::Relaxed) {
            wanted if wanted == Colour::Always as u8 => true,
            wanted if wanted == Colour::Never as u8 => false,
            _ => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

/// How a word is set off.
#[derive(Clone, Copy)]
pub(super) enum Style {
    Error,
    Warning,
    Note,
}

/// A word as `stream` shows it.
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
