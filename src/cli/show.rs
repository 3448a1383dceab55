//! `onnx-slice-fold show model.onnx`: the model as text, with the types that are inferred.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::OnnxModel;

use super::Passes;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The model to show.
    #[arg(value_name = "MODEL", value_parser = super::file())]
    model: PathBuf,
    /// Show the model folded; otherwise as it is, with types inferred.
    #[arg(long)]
    folded: bool,
    #[command(flatten)]
    passes: Passes,
}

impl Show {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut model = OnnxModel::open(&self.model)?;
        model.fold(&self.passes.options().fold(self.folded))?;
        super::tell(&model.text())
    }
}
