//! `onnx-slice-fold show model.onnx`: the model as text, with the types that are inferred.

use std::path::PathBuf;

use clap::Args;

use super::passes::Passes;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The model to show. `-` is standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Show the model folded; otherwise as it is, with types inferred.
    #[arg(long)]
    folded: bool,
    /// Print all data, so that the text can be read back as the whole model. Otherwise long constants are told of by type and hash.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

impl Show {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut model = self.passes.open(&self.model)?;
        model.fold(&self.passes.options().fold(self.folded))?;
        super::tell(&model.parser_text(self.full))
    }
}
