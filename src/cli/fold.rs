//! `onnx-slice-fold model.onnx`: folds models and writes the results.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use onnx_slice_fold::{ExternalData, Port, Report, SaveOptions, Saved};

use super::Usage;
use super::jobs::{self, Job, Target, Wanted};
use super::passes::{Passes, warn_of_missing};
use super::progress::Progress;
use super::style::Style;

#[derive(Args, Debug)]
pub(super) struct Fold {
    /// The model to fold, and optionally the result. `-` is standard input and output. With --out-dir, any number of models, directories and
    /// patterns.
    #[arg(value_name = "MODEL [RESULT]", required = true)]
    names: Vec<PathBuf>,
    /// Path of the result; the default for model.onnx is model.folded.onnx. `-` is standard output, /dev/null a dry run. With --report html, a
    /// path that ends with .html is the path of the report.
    #[arg(short, long, value_name = "FILE", conflicts_with = "out_dir", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Directory for the results, which have the names of their models.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out_dir: Option<PathBuf>,
    /// Number of models to fold in parallel; the default is the number of processors.
    #[arg(short, long, value_name = "COUNT", help_heading = "Output", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Format of the report about each model.
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    report: Format,
    /// Print runs, edits, milliseconds and peak memory of each pass.
    #[arg(long, help_heading = "Debugging")]
    timings: bool,
    /// Compare original and result on N generated inputs with the program's own evaluator: values (bit for bit with --exact, otherwise up to
    /// rounding) and written shapes. If the outputs differ, the program names the first edit that causes the difference, writes no result, and
    /// returns exit code 3.
    #[arg(long, value_name = "N", help_heading = "Debugging", num_args = 0..=1, default_missing_value = "8")]
    check: Option<usize>,
    /// Compare original and result on the arrays of this NumPy archive, which have the names of inputs. Repeatable. Without --check, these are
    /// the only inputs.
    #[arg(long, value_name = "FILE.npz", help_heading = "Debugging")]
    check_input: Vec<PathBuf>,
    /// Where to write tensors whose data is in external files.
    #[arg(long, value_name = "HOW", default_value = "keep", help_heading = "External data")]
    external_data: External,
    /// Write tensors of at least the threshold to a data file next to the output.
    #[arg(long, help_heading = "External data")]
    save_as_external_data: bool,
    /// Store tensors smaller than SIZE bytes in the model file. Vectors below 1 KiB that may be shapes are always in the model file, because ONNX
    /// Runtime does not read shapes from external data.
    #[arg(long, value_name = "SIZE", default_value = "1024", value_parser = onnx_slice_fold::sizes::bytes, help_heading = "External data")]
    external_data_threshold: usize,
    /// The command line, for the HTML report.
    #[arg(skip)]
    pub(super) command: String,
    /// The file for the HTML report.
    #[arg(skip)]
    page: Option<PathBuf>,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
}

/// The result differs from the original.
#[derive(Debug, thiserror::Error)]
#[error("no result was written, because {0}")]
pub(super) struct Differs(String);

/// The result has constructs that `--avoid` names.
#[derive(Debug, thiserror::Error)]
#[error("the result was written, but {0} with constructs that --avoid names")]
pub(super) struct Remains(String);

impl Remains {
    /// Returns an error if such nodes remain.
    fn check(nodes: usize) -> anyhow::Result<()> {
        match nodes {
            0 => Ok(()),
            1 => Err(Remains("1 node remains".into()).into()),
            _ => Err(Remains(format!("{nodes} nodes remain")).into()),
        }
    }
}

/// Where to write external data.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum External {
    /// Keep the files if the output is in the same directory and no symbolic link leads out of it; otherwise copy them.
    Keep,
    /// Copy the data to a file next to the output, unless the copy would equal the original file.
    Copy,
    /// Refer to the original files; the output must be in the same directory or in a parent of it.
    Link,
    /// Store the data in the output.
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

/// Formats of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// A JSON object per model, on one line; docs/report.md describes the schema.
    Json,
    /// A self-contained HTML page for one model, written to -o FILE.html or to standard output.
    Html,
}

/// The largest number of inputs in a suggested command.
const MOST_NAMED: usize = 8;
/// The largest number of warnings about single nodes; `explain` prints all.
const MOST_WARNINGS: usize = 8;

impl Fold {
    pub(super) fn first_name(&self) -> Option<&Path> {
        self.names.first().map(PathBuf::as_path)
    }

    pub(super) fn run(mut self) -> anyhow::Result<()> {
        if let Some(file) = self.output.take_if(|path| is_page(path)) {
            if self.report != Format::Html {
                let file = file.display();
                return Err(Usage::error(format!(
                    "'{file}' is the name of an HTML page, and the result is an ONNX model; for an HTML report, add --report html"
                )));
            }
            self.page = Some(file);
        }
        let (names, checks) = self.named();
        self.check = self.check.or(checks);
        let wanted = Wanted { names, output: self.output.clone(), folder: self.out_dir.clone() };
        let mut jobs = jobs::plan(wanted)?;
        if self.out_dir.is_some() {
            if self.report == Format::Html {
                return Err(Usage::error("an HTML report describes one model; with --out-dir use --report json"));
            }
            return self.run_all(&jobs);
        }
        let Some(job) = jobs.pop() else { return Ok(()) };
        if job.target == Target::Stream && std::io::stdout().is_terminal() {
            return Err(Usage::error("refusing to write a model to a terminal; name the result with -o FILE"));
        }
        let is_shown = match job.target {
            Target::Stream => std::io::stderr().is_terminal(),
            _ => std::io::stdout().is_terminal(),
        };
        if self.report == Format::Html && self.page.is_none() && is_shown {
            return Err(Usage::error(
                "refusing to write an HTML report to a terminal; name its file with --report html -o FILE.html, or redirect it: --report html > FILE.html",
            ));
        }
        let progress = Progress::start(self.common.is_quiet());
        let done = self.fold(&job, &|what| progress.say(what))?;
        drop(progress);
        self.tell(&done)?;
        Remains::check(done.report.avoided.len())
    }

    /// Returns the names without the number of checks (onnxsim's third argument), and that number.
    fn named(&self) -> (Vec<PathBuf>, Option<usize>) {
        let mut names = self.names.clone();
        let count = match names.as_slice() {
            [_, _, count] if self.out_dir.is_none() && !count.exists() => {
                count.to_str().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        if count.is_some() {
            names.pop();
        }
        (names, count.filter(|&count: &usize| count > 0))
    }

    /// Folds one model and writes it.
    fn fold(&self, job: &Job, watch: &dyn Fn(&'static str)) -> anyhow::Result<Done> {
        let begin = Instant::now();
        watch("reading the model");
        // The process ends afterwards, so freeing a large model would only take time.
        let mut model = ManuallyDrop::new(self.passes.open(&job.model)?);
        let options = self.passes.options().measure_memory(self.timings).detailed(self.report == Format::Json);
        let options = options.page(self.report == Format::Html);
        let given =
            self.check_input.iter().map(|path| super::arrays::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let (mut report, checked) = match self.check {
            None if given.is_empty() => (model.fold_watched(&options, &mut |what| watch(what))?, None),
            count => {
                let count = count.unwrap_or(0);
                let (report, checked) = model.fold_checked_on(&options, count, given, &mut |what| watch(what))?;
                (report, Some(checked))
            }
        };
        if let Some(checked) = checked.as_ref().filter(|checked| checked.difference.is_some()) {
            return Err(Differs(checked.to_string()).into());
        }
        watch("writing the result");
        let (mut stream, mut files) = (None, String::new());
        match &job.target {
            Target::File(path) => {
                if let Some(folder) = self.out_dir.as_ref().and(path.parent()) {
                    std::fs::create_dir_all(folder)
                        .with_context(|| format!("cannot make folder '{}'", folder.display()))?;
                }
                let saved = model.save_with(path, &self.save_options())?;
                report.note_saved(&saved);
                files = told_of(&saved);
            }
            Target::Stream => {
                let bytes = model.to_bytes()?;
                report.bytes_after = Some(bytes.len() as u64);
                stream = Some(bytes);
            }
            // The page compares file sizes.
            Target::Nowhere if self.report == Format::Html => {
                report.bytes_after = Some(model.to_bytes()?.len() as u64);
            }
            Target::Nowhere => {}
        }
        let wrote = match &job.target {
            Target::File(path) => format!("wrote {}", path.display()),
            Target::Stream => "wrote to standard output".to_string(),
            Target::Nowhere => "dry run without a result".to_string(),
        };
        if let Some(checked) = checked {
            files.push_str(&format!("{checked}\n"));
        }
        let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
        let done = Done { report, model: job.model.clone(), wrote, files, milliseconds, stream };
        // A batch continues, so free the memory.
        if self.out_dir.is_some() {
            drop(ManuallyDrop::into_inner(model));
        }
        Ok(done)
    }

    fn save_options(&self) -> SaveOptions {
        SaveOptions::new()
            .external_data(self.external_data.into())
            .save_as_external_data(self.save_as_external_data)
            .threshold(self.external_data_threshold)
    }

    /// Prints the report about one model, and writes the result if its target is standard output.
    fn tell(&self, done: &Done) -> anyhow::Result<()> {
        let mut told = String::new();
        let page = || done.report.page(&done.model.to_string_lossy(), &self.command).unwrap_or_default();
        if let Some(file) = &self.page {
            std::fs::write(file, page()).with_context(|| format!("cannot write '{}'", file.display()))?;
        }
        match self.report {
            Format::Json => told = done.json(),
            Format::Html if self.page.is_none() => told = page(),
            _ if self.common.is_quiet() => {}
            _ => {
                told.push_str(&format!("{}\n{} in {:.0} ms\n", done.report, done.wrote, done.milliseconds));
                told.push_str(&done.files);
                if let Some(file) = &self.page {
                    told.push_str(&format!("wrote {}: the report\n", file.display()));
                }
                told.push_str(&left(&done.report));
                if self.timings || self.common.verbose > 1 {
                    told.push_str(&format!("\n{}", done.report.timings()));
                    if let Some(bytes) = Report::most_memory() {
                        told.push_str(&format!("peak memory: {:.1} MiB\n", bytes as f64 / (1 << 20) as f64));
                    }
                }
                if self.common.verbose > 0 {
                    told.push_str(&format!("\n{}", done.report.explanation()));
                }
            }
        }
        let told = super::printable(&told);
        // The result is written first, so a closed standard error does not matter.
        match &done.stream {
            Some(bytes) => {
                let _ = std::io::stderr().write_all(told.as_bytes());
                super::write(bytes)?;
            }
            None => {
                let _ = super::tell(&told);
            }
        }
        self.warn(done, "");
        Ok(())
    }

    fn warn(&self, done: &Done, of: &str) {
        let report = &done.report;
        warn_of_missing(&report.missing_data, of);
        for operator in self.passes.slice_operators().filter(|operator| !report.before.operators.contains_key(operator))
        {
            super::say(Style::Warning, "warning", &format!("{of}the model has no operator '{operator}'"));
        }
        if !report.after.unknown.is_empty() && !self.common.is_quiet() {
            let names: Vec<String> =
                report.after.unknown.keys().take(MOST_WARNINGS).map(|name| format!("'{name}'")).collect();
            let more = report.after.unknown.len().saturating_sub(MOST_WARNINGS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            super::say(Style::Note, "note", &format!("{of}unknown operators are kept: {}{more}", names.join(", ")));
        }
        for avoided in report.avoided.iter().take(MOST_WARNINGS) {
            let reason = if avoided.reason.is_empty() { String::new() } else { format!(": {}", avoided.reason) };
            let text = format!("{of}{} remains (--avoid '{}'){reason}", avoided.node, avoided.construct);
            super::say(Style::Warning, "warning", &text);
        }
        if let Some(more) = report.avoided.len().checked_sub(MOST_WARNINGS).filter(|&more| more > 0) {
            let text = format!("{of}{more} other nodes have constructs that --avoid names; --report json lists all");
            super::say(Style::Warning, "warning", &text);
        }
        for note in done.report.invalid().take(MOST_WARNINGS) {
            super::say(
                Style::Warning,
                "warning",
                &format!("{of}{} is invalid and is kept: {}", note.node, note.reason),
            );
        }
    }

    /// Folds several models and prints a line about each, in the order of the command line.
    fn run_all(&self, jobs: &[Job]) -> anyhow::Result<()> {
        let workers =
            self.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
        let progress = Progress::start(self.common.is_quiet());
        progress.count(jobs.len());
        let next = AtomicUsize::new(0);
        let (sender, results) = mpsc::channel();
        let work = |sender: mpsc::Sender<_>| {
            let take = || {
                let at = next.fetch_add(1, Ordering::Relaxed);
                Some((at, jobs.get(at)?))
            };
            while let Some((at, job)) = take() {
                if sender.send((at, self.fold(job, &|_| {}))).is_err() {
                    return;
                }
            }
        };
        let (failed, remaining) = std::thread::scope(|scope| {
            // As many threads as the system allows.
            let can_start = onnx_slice_fold::threads::start();
            let workers = (0..workers.min(jobs.len())).take_while(|_| {
                let own = sender.clone();
                let thread = std::thread::Builder::new().stack_size(super::STACK);
                can_start && thread.spawn_scoped(scope, || work(own)).is_ok()
            });
            // Without threads, this thread folds all models before it prints.
            if workers.count() == 0 {
                work(sender.clone());
            }
            drop(sender);
            let mut waiting: Vec<Option<anyhow::Result<Done>>> = jobs.iter().map(|_| None).collect();
            let (mut told, mut failed, mut remaining) = (0, 0, 0);
            for (at, result) in results {
                if let Some(place) = waiting.get_mut(at) {
                    *place = Some(result);
                }
                while let Some(result) = waiting.get_mut(told).and_then(Option::take) {
                    failed += usize::from(result.is_err());
                    remaining += result.as_ref().map_or(0, |done| done.report.avoided.len());
                    progress.aside(|| self.tell_line(jobs.get(told), result));
                    told += 1;
                }
            }
            (failed, remaining)
        });
        drop(progress);
        match failed {
            0 => Remains::check(remaining),
            _ => Err(anyhow::anyhow!("{failed} of {} models failed", jobs.len())),
        }
    }

    fn tell_line(&self, job: Option<&Job>, result: anyhow::Result<Done>) {
        match result {
            Ok(done) => {
                let told = match self.report {
                    Format::Json | Format::Html => done.json(),
                    Format::Text if self.common.is_quiet() => String::new(),
                    Format::Text => done.line(),
                };
                let _ = super::tell(&super::printable(&told));
                self.warn(&done, &format!("{}: ", done.model.display()));
            }
            Err(error) => {
                let model = job.map(|job| job.model.display().to_string()).unwrap_or_default();
                super::say(Style::Error, "error", &format!("{model}: {error:#}"));
            }
        }
    }
}

/// Returns `true` if a path names an HTML page.
fn is_page(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm"))
}

/// Summarizes the findings that `explain` describes in detail.
fn left(report: &Report) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for note in &report.notes {
        *kinds.entry(note.kind_name()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut told = String::new();
    if report.fired.values().all(|&edits| edits == 0) {
        told.push_str("nothing to simplify: no rule or pass applies to this model\n");
    }
    if report.size_nodes > 0 {
        let nodes =
            if report.size_nodes == 1 { "remaining node only computes" } else { "remaining nodes only compute" };
        told.push_str(&format!(
            "{} {nodes} shapes; `explain` lists them, and options that would remove them\n",
            report.size_nodes
        ));
    }
    if let Some(left_out) = &report.left_out {
        let (count, reason) = (left_out.shapes, &left_out.reason);
        let shapes = if count == 1 { "known shape is" } else { "known shapes are" };
        told.push_str(&format!("{count} {shapes} not written: {reason}; --shapes all writes all\n"));
    }
    told.push_str(&labels(report));
    told.push_str(&defaults(report));
    if !kinds.is_empty() {
        told.push_str(&format!("notes: {}; run `explain` for details\n", kinds.join(", ")));
    }
    told
}

/// Describes labels of inputs that look like relations, and the option that relies on them.
fn labels(report: &Report) -> String {
    let more = match report.label_relations.len() {
        0 => return String::new(),
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let first = report.label_relations.first().map_or("", String::as_str);
    format!(
        "labels of inputs look like relations ({first}{more}), but count as names; run `explain` to see how many nodes \
         --trust-input-names would save\n"
    )
}

/// Describes inputs with defaults, and the option that makes them constant. Old exporters list every weight among the inputs.
fn defaults(report: &Report) -> String {
    let (with, others): (Vec<&Port>, Vec<&Port>) = report.inputs.iter().partition(|port| port.has_default);
    if with.is_empty() || others.is_empty() {
        return String::new();
    }
    let named = if others.len() > MOST_NAMED {
        "--inputs with the names of the other inputs".to_string()
    } else {
        format!("`{}`", others.iter().map(|port| format!("--inputs {}", port.name)).collect::<Vec<_>>().join(" "))
    };
    let inputs = if with.len() == 1 { "input has a default" } else { "inputs have defaults" };
    format!("{} {inputs}, which callers may override; to treat their defaults as constants, pass {named}\n", with.len())
}

/// A folded model.
struct Done {
    report: Report,
    model: PathBuf,
    wrote: String,
    /// Lines about data files and checks.
    files: String,
    milliseconds: f64,
    /// The result, if its target is standard output.
    stream: Option<Vec<u8>>,
}

impl Done {
    fn json(&self) -> String {
        format!("{}\n", self.report.json(&self.model.to_string_lossy()))
    }

    /// Returns the line of a batch about this model.
    fn line(&self) -> String {
        let (before, after) = (self.report.before.nodes(), self.report.after.nodes());
        let bytes = self.report.bytes_after.unwrap_or(0);
        let model = self.model.display();
        format!("{model}: {before} -> {after} nodes, {} -> {bytes} bytes, {}\n", self.report.bytes_before, self.wrote)
    }
}

/// Describes the data files of a result.
fn told_of(saved: &Saved) -> String {
    let Some(data) = &saved.data else {
        return match saved.external_bytes {
            0 => String::new(),
            bytes => format!("{bytes} bytes of external data remain in the original data files\n"),
        };
    };
    let mut told = format!("wrote {}: {} bytes of data\n", data.path.display(), data.bytes);
    if let Some(bytes) = saved.too_large {
        told.push_str(&format!(
            "the model has {bytes} bytes, above the protobuf limit of 2 GiB; its tensors are in the data file\n"
        ));
    }
    told
}
