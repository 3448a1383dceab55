//! `onnx-slice-fold completions SHELL`: prints a completion script for a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

#[derive(Args, Debug)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "onnx-slice-fold", &mut script);
        super::write(&script)
    }
}
