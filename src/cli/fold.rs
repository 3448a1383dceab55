//! `onnx-slice-fold model.onnx`: the main job.

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
use super::passes::Passes;
use super::peers::NO_RUNTIME;
use super::progress::Progress;
use super::style::Style;

#[derive(Args, Debug)]
pub(super) struct Fold {
    /// The model to fold, and where to write the result if -o does not say. `-` is standard input and output. With --out-dir any number
    /// of models, folders and patterns.
    #[arg(value_name = "MODEL [RESULT]", required = true)]
    names: Vec<PathBuf>,
    /// Where to write the result; `MODEL` with `.folded` before its extension if not given. `-` is standard output; /dev/null writes
    /// nothing.
    #[arg(short, long, value_name = "FILE", conflicts_with = "out_dir")]
    output: Option<PathBuf>,
    /// A folder for the results, which have the names of their models.
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// How many models are folded at the same time; one for each processor if not given.
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// What is told of each model.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    report: Format,
    /// Tell what each pass took: how often it ran, how many edits it made, milliseconds, and by how many MiB it raised the most memory
    /// the process held.
    #[arg(long)]
    timings: bool,
    /// Run original and result on N inputs made to tell them apart, by the program's own evaluator, and compare results and stated
    /// shapes: bit for bit under --exact, else up to rounding. What could not be compared is told. On a difference the first
    /// edit at fault is named, nothing is written, and the exit code is 3.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "8")]
    check: Option<usize>,
    /// Run original and result on the arrays of this NumPy archive as well, each named like an input. May be given several times; with no
    /// --check they are compared on nothing else.
    #[arg(long, value_name = "FILE.npz")]
    check_input: Vec<PathBuf>,
    /// What becomes of tensors whose data lie in files beside MODEL.
    #[arg(long, value_name = "HOW", default_value = "keep", help_heading = "External data")]
    external_data: External,
    /// Write tensors to a data file beside the output: those of at least the threshold.
    #[arg(long, help_heading = "External data")]
    save_as_external_data: bool,
    /// Tensors of fewer bytes stay in the output when others go to a data file. Vectors of less than 1 KiB that may be sizes stay in
    /// any case: ONNX Runtime reads sizes in the model alone.
    #[arg(long, value_name = "SIZE", default_value = "1024", value_parser = super::sizes::bytes, help_heading = "External data")]
    external_data_threshold: usize,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    pub(super) common: super::Common,
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

/// Forms of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// A JSON object for each model, on one line; docs/report.md has its schema.
    Json,
    /// A page of HTML that needs nothing beside it, for one model.
    Html,
}

/// How many inputs are named in a command that is told.
const MOST_NAMED: usize = 8;
/// How many nodes are warned of; `explain` tells all.
const MOST_WARNINGS: usize = 8;

impl Fold {
    pub(super) fn first_name(&self) -> Option<&Path> {
        self.names.first().map(PathBuf::as_path)
    }

    pub(super) fn run(self) -> anyhow::Result<()> {
        let names = self.named();
        let wanted = Wanted { names, output: self.output.clone(), folder: self.out_dir.clone() };
        let mut jobs = jobs::plan(wanted)?;
        if self.out_dir.is_some() {
            if self.report == Format::Html {
                return Err(Usage::error(
                    "a page of HTML tells of one model: say --report json with --out-dir, or leave --out-dir out",
                ));
            }
            return self.run_all(&jobs);
        }
        let Some(job) = jobs.pop() else { return Ok(()) };
        if job.target == Target::Stream && std::io::stdout().is_terminal() {
            return Err(Usage::error("a model is not written to a terminal; say where with -o"));
        }
        let progress = Progress::start(self.common.is_quiet());
        let done = self.fold(&job, &|what| progress.say(what))?;
        drop(progress);
        self.tell(&done)
    }

    /// The names of models and the result. onnxsim takes a number of checks behind them.
    fn named(&self) -> Vec<PathBuf> {
        let mut names = self.names.clone();
        let count = match names.as_slice() {
            [_, _, count] if self.out_dir.is_none() && !count.exists() => {
                count.to_str().and_then(|text| text.parse::<u32>().ok())
            }
            _ => None,
        };
        if let Some(count) = count {
            names.pop();
            if count > 0 && !self.common.is_quiet() {
                super::say(Style::Note, "note", &format!("'{count}' checks have nothing to do here: {NO_RUNTIME}"));
            }
        }
        names
    }

    /// Folds one model and writes it.
    fn fold(&self, job: &Job, watch: &dyn Fn(&'static str)) -> anyhow::Result<Done> {
        let begin = Instant::now();
        watch("reading the model");
        // The process ends with this; taking a large model apart piece by piece would only take time.
        let mut model = ManuallyDrop::new(self.passes.open(&job.model)?);
        let options = self.passes.options().measure_memory(self.timings).detailed(self.report != Format::Text);
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
            Target::Nowhere => {}
        }
        let wrote = match &job.target {
            Target::File(path) => format!("wrote {}", path.display()),
            Target::Stream => "wrote to standard output".to_string(),
            Target::Nowhere => "wrote nothing".to_string(),
        };
        if let Some(checked) = checked {
            files.push_str(&format!("{checked}\n"));
        }
        let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
        let done = Done { report, model: job.model.clone(), wrote, files, milliseconds, stream };
        // A batch goes on, so there the memory is wanted back.
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

    /// Tells of one model, and writes the result if it goes to standard output.
    fn tell(&self, done: &Done) -> anyhow::Result<()> {
        let mut told = String::new();
        match self.report {
            Format::Json => told = done.json(),
            Format::Html => told = done.report.page(&done.model.to_string_lossy()).unwrap_or_default(),
            Format::Text if self.common.is_quiet() => {}
            Format::Text => {
                told.push_str(&format!("{}\n{} in {:.0} ms\n", done.report, done.wrote, done.milliseconds));
                told.push_str(&done.files);
                told.push_str(&left(&done.report));
                if self.timings || self.common.verbose > 1 {
                    told.push_str(&format!("\n{}", done.report.timings()));
                    if let Some(bytes) = Report::most_memory() {
                        told.push_str(&format!("most memory held: {:.1} MiB\n", bytes as f64 / (1 << 20) as f64));
                    }
                }
                if self.common.verbose > 0 {
                    told.push_str(&format!("\n{}", done.report.explanation()));
                }
            }
        }
        let told = super::printable(&told);
        // The model is written, whether or not anybody can be told.
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
        for operator in self.passes.slice_operators().filter(|operator| !report.before.operators.contains_key(operator))
        {
            super::say(Style::Warning, "warning", &format!("{of}the model has no operator '{operator}'"));
        }
        if !report.after.unknown.is_empty() && !self.common.is_quiet() {
            let names: Vec<String> =
                report.after.unknown.keys().take(MOST_WARNINGS).map(|name| format!("'{name}'")).collect();
            let more = report.after.unknown.len().saturating_sub(MOST_WARNINGS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            super::say(
                Style::Note,
                "note",
                &format!("{of}not known, and left as they are: operators {}{more}", names.join(", ")),
            );
        }
        for note in done.report.invalid().take(MOST_WARNINGS) {
            super::say(
                Style::Warning,
                "warning",
                &format!("{of}{} cannot work and is left as it is: {}", note.node, note.reason),
            );
        }
    }

    /// Folds several models, and tells of each in a line, in the order in which they are named.
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
        let failed = std::thread::scope(|scope| {
            // As many as there can be.
            let can_start = onnx_slice_fold::threads::start();
            let workers = (0..workers.min(jobs.len())).take_while(|_| {
                let own = sender.clone();
                let thread = std::thread::Builder::new().stack_size(super::STACK);
                can_start && thread.spawn_scoped(scope, || work(own)).is_ok()
            });
            // Without any, this thread does it all before it tells.
            if workers.count() == 0 {
                work(sender.clone());
            }
            drop(sender);
            let mut waiting: Vec<Option<anyhow::Result<Done>>> = jobs.iter().map(|_| None).collect();
            let (mut told, mut failed) = (0, 0);
            for (at, result) in results {
                if let Some(place) = waiting.get_mut(at) {
                    *place = Some(result);
                }
                while let Some(result) = waiting.get_mut(told).and_then(Option::take) {
                    failed += usize::from(result.is_err());
                    progress.aside(|| self.tell_line(jobs.get(told), result));
                    told += 1;
                }
            }
            failed
        });
        drop(progress);
        match failed {
            0 => Ok(()),
            _ => Err(anyhow::anyhow!("{failed} of {} models were not folded", jobs.len())),
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

/// How much `explain` has to tell.
fn left(report: &Report) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for note in &report.notes {
        *kinds.entry(note.kind_name()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut told = String::new();
    if report.size_nodes > 0 {
        let nodes =
            if report.size_nodes == 1 { "node that is left only computes" } else { "nodes that are left only compute" };
        told =
            format!("{} {nodes} sizes; `explain` tells which, and tries what would let them go\n", report.size_nodes);
    }
    told.push_str(&labels(report));
    told.push_str(&defaults(report));
    if !kinds.is_empty() {
        told.push_str(&format!("`explain` tells more: {}\n", kinds.join(", ")));
    }
    told
}

/// That labels of inputs look like relations, and how to find out what these would save.
fn labels(report: &Report) -> String {
    let more = match report.label_relations.len() {
        0 => return String::new(),
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let first = report.label_relations.first().map_or("", String::as_str);
    format!(
        "Labels of inputs look like relations ({first}{more}) but are only names. Run `onnx-slice-fold explain` on the model to see what \
         --trust-input-names would save.\n"
    )
}

/// That inputs have defaults, and how to make constants of them: old exporters list every weight among the inputs.
fn defaults(report: &Report) -> String {
    let (with, others): (Vec<&Port>, Vec<&Port>) = report.inputs.iter().partition(|port| port.has_default);
    if with.is_empty() || others.is_empty() {
        return String::new();
    }
    let named = if others.len() > MOST_NAMED {
        "`--inputs` with the names of the others".to_string()
    } else {
        format!("`{}`", others.iter().map(|port| format!("--inputs {}", port.name)).collect::<Vec<_>>().join(" "))
    };
    let (inputs, values) =
        if with.len() == 1 { ("input has an initializer", "a value") } else { ("inputs have initializers", "values") };
    format!(
        "{} {inputs}, which callers may replace by {values} of theirs; {named} makes constants of them\n",
        with.len()
    )
}

/// What became of a model.
struct Done {
    report: Report,
    model: PathBuf,
    wrote: String,
    /// What there is to tell about files beside the model.
    files: String,
    milliseconds: f64,
    /// The result, if it goes to standard output.
    stream: Option<Vec<u8>>,
}

impl Done {
    fn json(&self) -> String {
        format!("{}\n", self.report.json(&self.model.to_string_lossy()))
    }

    /// A line of a batch.
    fn line(&self) -> String {
        let (before, after) = (self.report.before.nodes(), self.report.after.nodes());
        let bytes = self.report.bytes_after.unwrap_or(0);
        let model = self.model.display();
        format!("{model}: {before} -> {after} nodes, {} -> {bytes} bytes, {}\n", self.report.bytes_before, self.wrote)
    }
}

/// What there is to tell about files beside the model.
fn told_of(saved: &Saved) -> String {
    let Some(data) = &saved.data else {
        return match saved.external_bytes {
            0 => String::new(),
            bytes => format!("{bytes} bytes of its data stay in the files they are in\n"),
        };
    };
    let mut told = format!("wrote {}: {} bytes of data\n", data.path.display(), data.bytes);
    if let Some(bytes) = saved.too_large {
        told.push_str(&format!(
            "in one file the model would take {bytes} bytes, over the 2 GiB a protobuf file can hold: its tensors are in the data file\n"
        ));
    }
    told
}
