//! `onnx-slice-fold explain model.onnx`: why what is left is left.

use std::path::PathBuf;

use clap::Args;

use super::passes::Passes;

#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The model to fold and explain; nothing is written. `-` is standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut model = self.passes.open(&self.model)?;
        let report = model.fold(&self.passes.options())?;
        super::tell(&super::printable(&report.explanation()))
    }
}
