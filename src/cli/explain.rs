//! `onnx-slice-fold explain model.onnx`: why what is left is left.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::Document;

use super::Passes;

#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The model to fold and explain; nothing is written.
    #[arg(value_name = "MODEL", value_parser = super::file())]
    model: PathBuf,
    #[command(flatten)]
    passes: Passes,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut document = Document::open(&self.model)?;
        let report = document.fold(&self.passes.options())?;
        super::tell(&super::printable(&report.explanation()))
    }
}
