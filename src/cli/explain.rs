//! `onnx-slice-fold explain model.onnx [NAME ...]`: why what is left is left, and what would let more be done.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::Shapes;

use super::passes::Passes;

#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The model to fold and explain; nothing is written. `-` is standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Nodes, tensors or sizes to tell of; without, what holds back most is told.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How many times to fold again at most, to find out what would let more be done if it were known of the inputs. Trials also end when they
    /// have taken about seven times the work of folding.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    trials: usize,
    /// How it is told.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    report: Format,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

/// Forms of the explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text.
    Text,
    /// A JSON object on one line; docs/report.md has its schema.
    Json,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut model = self.passes.open(&self.model)?;
        let (report, explanation) =
            model.explain(&self.passes.options_stating(Shapes::All), &self.names, self.trials)?;
        if self.report == Format::Json {
            let told = explanation.json(&report, &self.model.to_string_lossy());
            return super::tell(&format!("{told}\n"));
        }
        let mut told = explanation.to_string();
        if self.names.is_empty() {
            told.push_str(&format!("\nWhat was done:\n{}", report.explanation()));
        }
        super::tell(&super::printable(&told))
    }
}
