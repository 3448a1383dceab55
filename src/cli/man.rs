//! `onnx-slice-fold man`: the manual page, in roff.

use anyhow::Context;
use clap::{Args, CommandFactory as _};

#[derive(Args, Debug)]
pub(super) struct Man {}

impl Man {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut page = Vec::new();
        clap_mangen::Man::new(super::Cli::command()).render(&mut page).context("cannot write the manual page")?;
        super::write(&page)
    }
}
