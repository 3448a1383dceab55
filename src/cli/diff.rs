//! `onnx-slice-fold diff a.onnx b.onnx`: prints the differences of two models.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Diff {
    /// The first model.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The second model.
    #[arg(value_name = "B")]
    second: PathBuf,
    #[command(flatten)]
    opening: super::passes::Opening,
}

impl Diff {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (first, second) = (self.opening.open_telling(&self.first)?, self.opening.open_telling(&self.second)?);
        super::tell(&super::printable(&first.diff(&second)))
    }
}
