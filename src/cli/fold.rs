//! `onnx-slice-fold model.onnx`: the main job.

use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use onnx_slice_fold::{ExternalData, OnnxModel, Report, SaveOptions, Saved};

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
    /// Run original and result on N inputs made to tell them apart, by the program's own evaluator, and compare results and stated
    /// shapes: bit for bit under --exact, else up to rounding. What could not be compared is told. On a difference the first
    /// edit at fault is named, nothing is written, and the exit code is 3.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "8")]
    check: Option<usize>,
    /// What becomes of tensors whose data lie in files beside MODEL.
    #[arg(long, value_name = "HOW", default_value = "keep")]
    external_data: External,
    /// Write tensors to a data file beside the output: those of at least the threshold.
    #[arg(long)]
    save_as_external_data: bool,
    /// Tensors of fewer bytes stay in the output when others go to a data file.
    #[arg(long, value_name = "BYTES", default_value_t = SaveOptions::new().threshold)]
    external_data_threshold: usize,
    #[command(flatten)]
    passes: Passes,
}

/// The result differs from the original, so it is not written.
#[derive(Debug, thiserror::Error)]
#[error("nothing is written, because {0}")]
pub(super) struct Differs(String);

/// What becomes of external data.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum External {
    /// Leave them if the output is in the same directory, and copy them otherwise.
    Keep,
    /// Copy them to a data file beside the output.
    Copy,
    /// Leave them and refer to them; the output must be in the same directory or one above it.
    Link,
    /// Put them into the output itself.
    Inline,
}

impl From<External> for ExternalData {
    fn from(external: External) -> Self {
        match external {
            External::Keep => ExternalData::Keep,
            External::Copy => ExternalData::Copy,
            External::Link => ExternalData::Link,
            External::Inline => ExternalData::Inline,
        }
    }
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
        let (options, watch) = (self.passes.options().measure_memory(self.timings), &mut |what| progress.say(what));
        let (mut report, checked) = match self.check {
            Some(count) => {
                model.fold_checked(&options, count, watch).map(|(report, checked)| (report, Some(checked)))?
            }
            None => (model.fold_watched(&options, watch)?, None),
        };
        if let Some(checked) = checked.as_ref().filter(|checked| checked.difference.is_some()) {
            return Err(Differs(checked.to_string()).into());
        }
        progress.say("writing the result");
        let options = SaveOptions::new()
            .external_data(self.external_data.into())
            .save_as_external_data(self.save_as_external_data)
            .threshold(self.external_data_threshold);
        let saved = model.save_with(&target, &options)?;
        report.note_saved(&saved);
        drop(progress);
        let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
        let mut told = format!("{report}\nwrote {} in {milliseconds:.0} ms\n{}", target.display(), files(&saved));
        if let Some(checked) = checked {
            told.push_str(&format!("{checked}\n"));
        }
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

/// What there is to tell about files beside the model.
fn files(saved: &Saved) -> String {
    let Some(data) = &saved.data else { return String::new() };
    let mut told = format!("wrote {}: {} bytes of data\n", data.path.display(), data.bytes);
    if let Some(bytes) = saved.too_large {
        told.push_str(&format!(
            "in one file the model would take {bytes} bytes, over the 2 GiB a protobuf file can hold: its tensors are in the data file\n"
        ));
    }
    told
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
