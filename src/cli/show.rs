//! `onnx-slice-fold show model.onnx`: prints the model with inferred types, as text or as a drawing.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::{DrawingForm, Shapes};

use super::passes::Passes;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The model to show. `-` is standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Fold the model first; by default, only infer shapes.
    #[arg(long)]
    folded: bool,
    /// Print all data, so that the text can be parsed back to the model; by default, print type and hash of long constants.
    #[arg(long, conflicts_with_all = ["dot", "mermaid"])]
    full: bool,
    /// Print the graph in the DOT format of Graphviz.
    #[arg(long, conflicts_with = "mermaid", help_heading = "Drawing")]
    dot: bool,
    /// Print the graph as a Mermaid flowchart.
    #[arg(long, help_heading = "Drawing")]
    mermaid: bool,
    /// With --dot or --mermaid: only the graph around this node or tensor.
    #[arg(long, value_name = "NAME", help_heading = "Drawing")]
    around: Option<String>,
    /// With --around: the maximum distance in nodes.
    #[arg(long, value_name = "COUNT", default_value_t = 2, help_heading = "Drawing")]
    depth: usize,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

impl Show {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let form = match (self.dot, self.mermaid) {
            (true, _) => Some(DrawingForm::Dot),
            (_, true) => Some(DrawingForm::Mermaid),
            _ if self.around.is_some() => {
                return Err(super::Usage::error("--around needs a drawing; add --dot or --mermaid"));
            }
            _ => None,
        };
        let mut model = self.passes.open_telling(&self.model)?;
        let mut options = self.passes.options_stating(Shapes::All).fold(self.folded);
        if !self.folded {
            // The model is not changed, so it gets no stamp.
            options = options.stamp(false);
        }
        model.fold(&options)?;
        match form {
            Some(form) => super::tell(&model.drawing().text(form, self.around.as_deref(), self.depth)?),
            None => super::tell(&model.parser_text(self.full)),
        }
    }
}
