//! `onnx-slice-fold inspect model.onnx…`: prints properties of models side by side.

use std::path::PathBuf;

use clap::Args;
use onnx_slice_fold::{Inspection, inspection_text};

use super::passes::Passes;

#[derive(Args, Debug)]
pub(super) struct Inspect {
    /// The models to inspect, printed as columns. `-` is standard input.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Print one JSON object per line and model (docs/report.md).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

impl Inspect {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut inspected: Vec<(String, Inspection)> = Vec::new();
        for path in &self.models {
            let model = self.passes.open(path)?;
            inspected.push((path.to_string_lossy().into_owned(), model.inspect(&self.passes.options())?));
        }
        if self.json {
            let lines: Vec<String> = inspected.iter().map(|(name, inspection)| inspection.json(name) + "\n").collect();
            return super::tell(&lines.concat());
        }
        super::tell(&super::printable(&inspection_text(&inspected)))
    }
}
