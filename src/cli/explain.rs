//! `onnx-slice-fold explain model.onnx`: why what is left is left.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::Document;

use super::Passes;

#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The model to fold and explain; nothing is written.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    passes: Passes,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut document = Document::open(&self.model)?;
        let report = document.fold(&self.passes.options())?;
        // A reader that closes the pipe early has seen enough.
        let _ = write!(std::io::stdout(), "{}", report.explanation());
        Ok(())
    }
}
