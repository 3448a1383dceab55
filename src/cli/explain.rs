//! `onnx-slice-fold explain model.onnx`: why what is left is left.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::OnnxModel;

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
        let mut model = OnnxModel::open(&self.model)?;
        let report = model.fold(&self.passes.options())?;
        super::tell(&super::printable(&report.explanation()))
    }
}
