//! `onnx-slice-fold explain model.onnx [NAME ...]`: prints why nodes remain, and which options would remove them.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::Shapes;

use super::passes::Passes;

#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The model to explain; `-` is standard input. The program writes no model.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Nodes, tensors or dims to explain; by default, the most frequent reasons.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Fold the model up to COUNT more times to find assumptions about the inputs that remove nodes. The search also ends when it has cost about
    /// seven times as much work as folding the model once.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    trials: usize,
    /// Print why RULE does not apply: for each remaining node that has the pattern of RULE, the first premise that fails.
    #[arg(long, value_name = "RULE", conflicts_with_all = ["names", "trials"])]
    rule: Option<String>,
    /// Explain the node of this name, or the node that computes a tensor of this name. With --rule: only why RULE does not apply to this node.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Format of the explanation.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    report: Format,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

/// Formats of the explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text.
    Text,
    /// A JSON object on one line; docs/explain.md describes the fields.
    Json,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut model = self.passes.open_telling(&self.model)?;
        let options = self.passes.options_stating(Shapes::All);
        if let Some(rule) = &self.rule {
            let (_, explanation) = model.explain_rule(&options, rule, self.node.as_deref())?;
            return match self.report {
                Format::Json => super::tell(&format!("{}\n", explanation.json(&self.model.to_string_lossy()))),
                Format::Text => super::tell(&super::printable(&explanation.to_string())),
            };
        }
        let names: Vec<String> = self.names.into_iter().chain(self.node).collect();
        let (report, explanation) = model.explain(&options, &names, self.trials)?;
        if self.report == Format::Json {
            let told = explanation.json(&report, &self.model.to_string_lossy());
            return super::tell(&format!("{told}\n"));
        }
        let mut told = explanation.to_string();
        if names.is_empty() {
            told.push_str(&format!("\nRules, passes and notes:\n{}", report.explanation()));
        }
        super::tell(&super::printable(&told))
    }
}
