//! `onnx-slice-fold model.onnx`: the main job.

use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use onnx_slice_fold::{OnnxModel, Report};

use super::Passes;
use super::progress::Progress;

#[derive(Args, Debug)]
pub(super) struct Fold {
    /// The model to fold.
    #[arg(value_name = "MODEL", required = true, value_parser = super::file())]
    model: Option<PathBuf>,
    /// Where to write the result; `MODEL` with `.folded` before its extension if not given.
    #[arg(short, long, value_name = "FILE", value_parser = super::file())]
    output: Option<PathBuf>,
    /// Tell what each pass took: how often it ran, how many edits it made, milliseconds, and by how many MiB it raised the most memory the process held.
    #[arg(long)]
    timings: bool,
    #[command(flatten)]
    passes: Passes,
}

impl Fold {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        // The parser demands it; only a subcommand does without.
        let path = self.model.unwrap_or_default();
        let target = self.output.unwrap_or_else(|| beside(&path));
        let progress = Progress::start();
        progress.say("reading the model");
        // The process ends with this; taking a large model apart piece by piece would only take time.
        let mut model = ManuallyDrop::new(OnnxModel::open(&path)?);
        let mut report =
            model.fold_watched(&self.passes.options().measure_memory(self.timings), &mut |what| progress.say(what))?;
        progress.say("writing the result");
        report.bytes_after = Some(model.save(&target)?);
        drop(progress);
        let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
        let mut told = format!("{report}\nwrote {} in {milliseconds:.0} ms\n", target.display());
        if self.timings {
            told.push_str(&format!("\n{}", report.timings()));
            if let Some(bytes) = Report::most_memory() {
                told.push_str(&format!("most memory held: {:.1} MiB\n", bytes as f64 / (1 << 20) as f64));
            }
        }
        // The model is written, whether or not anybody can be told.
        let _ = super::tell(&super::printable(&told));
        for note in report.invalid().take(MOST_WARNINGS) {
            let warning = format!("{} cannot work and is left as it is: {}", note.node, note.reason);
            let warning = super::printable(&warning);
            let _ = writeln!(std::io::stderr(), "warning: {warning}");
        }
        Ok(())
    }
}

/// How many nodes are warned of; `explain` tells all.
const MOST_WARNINGS: usize = 8;

/// `model.folded.onnx` for `model.onnx`.
fn beside(model: &Path) -> PathBuf {
    let mut name = model.file_stem().unwrap_or_default().to_os_string();
    name.push(".folded");
    if let Some(extension) = model.extension() {
        name.push(".");
        name.push(extension);
    }
    model.with_file_name(name)
}
