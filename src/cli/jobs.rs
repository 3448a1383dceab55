//! Plans the jobs of a command line: the models to fold, and the target of each result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onnx_slice_fold::OnnxModel;

use super::Usage;
use super::passes::is_stream;

/// One model to fold.
#[derive(Debug)]
pub(super) struct Job {
    pub model: PathBuf,
    pub target: Target,
}

/// The target of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    File(PathBuf),
    /// Standard output.
    Stream,
    /// `/dev/null`: a dry run.
    Nowhere,
}

/// The models and targets of a command line.
pub(super) struct Wanted {
    pub names: Vec<PathBuf>,
    pub output: Option<PathBuf>,
    pub folder: Option<PathBuf>,
}

impl Target {
    fn of(path: &Path) -> Self {
        match path {
            path if is_stream(path) => Target::Stream,
            path if path == Path::new("/dev/null") || path.as_os_str().eq_ignore_ascii_case("nul") => Target::Nowhere,
            path => Target::File(path.to_path_buf()),
        }
    }
}

/// Returns the jobs in the order of the models on the command line.
///
/// # Errors
/// The target of a result is missing or ambiguous.
pub(super) fn plan(wanted: Wanted) -> anyhow::Result<Vec<Job>> {
    let Wanted { names, output, folder } = wanted;
    if let Some(folder) = folder {
        return into_folder(&names, &folder);
    }
    let (model, target) = match (names.as_slice(), output) {
        ([model], Some(output)) => (model, Target::of(&output)),
        ([model], None) => (model, beside(model)?),
        ([model, target], None) => {
            not_a_count(target)?;
            let target = Target::of(target);
            no_other_model(model, &target)?;
            (model, target)
        }
        ([_, second], Some(output)) => {
            let (second, output) = (second.display(), output.display());
            return Err(Usage::error(format!(
                "two targets for one result: '{second}' and -o '{output}'; to fold several models, pass --out-dir DIR"
            )));
        }
        ([], _) => return Err(Usage::error("no model given")),
        (names, _) => {
            return Err(Usage::error(format!(
                "{} models given; pass --out-dir DIR for the results of several models",
                names.len()
            )));
        }
    };
    if let Some(advice) = other_source(model) {
        return Err(Usage::error(format!("'{}' {advice}", model.display())));
    }
    if model.is_dir() || (!model.exists() && is_pattern(model)) {
        return Err(Usage::error(format!(
            "'{}' names several models; pass --out-dir DIR for their results",
            model.display()
        )));
    }
    Ok(vec![Job { model: model.clone(), target }])
}

/// Returns the default target: `model.folded.onnx` for `model.onnx`, and standard output for standard input.
fn beside(model: &Path) -> anyhow::Result<Target> {
    if is_stream(model) {
        return Ok(Target::Stream);
    }
    let is_special = std::fs::metadata(model).is_ok_and(|data| !data.is_file() && !data.is_dir());
    if is_special {
        let model = model.display();
        return Err(Usage::error(format!("'{model}' is not a regular file; name the result with -o FILE")));
    }
    let mut name = model.file_stem().unwrap_or_default().to_os_string();
    name.push(".folded");
    if let Some(extension) = model.extension() {
        name.push(".");
        name.push(extension);
    }
    Ok(Target::File(model.with_file_name(name)))
}

/// Checks that the second name is a result, and not a second model that the shell inserted for `*.onnx`. An existing file counts as a result
/// if it has the inputs and outputs of the model.
fn no_other_model(model: &Path, target: &Target) -> anyhow::Result<()> {
    let Target::File(path) = target else { return Ok(()) };
    if !path.is_file() || is_stream(model) {
        return Ok(());
    }
    let (Ok(first), Ok(second)) = (OnnxModel::open(model), OnnxModel::open(path)) else { return Ok(()) };
    if first.interface() == second.interface() {
        return Ok(());
    }
    let (model, path) = (model.display(), path.display());
    Err(Usage::error(format!(
        "'{path}' exists, and its inputs or outputs differ from those of '{model}'; to overwrite it, pass -o '{path}'; to fold both models, pass --out-dir DIR"
    )))
}

/// Returns a job for each model, with a result of the same name in `folder`.
fn into_folder(names: &[PathBuf], folder: &Path) -> anyhow::Result<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut taken: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for name in names {
        for (model, within) in models(name)? {
            let path = folder.join(&within);
            if let Some(other) = taken.insert(path.clone(), model.clone()) {
                let (path, other, model) = (path.display(), other.display(), model.display());
                return Err(Usage::error(format!("the results of '{other}' and '{model}' would both be '{path}'")));
            }
            let same = std::fs::canonicalize(&path).ok().zip(std::fs::canonicalize(&model).ok());
            if same.is_some_and(|(target, model)| target == model) {
                return Err(Usage::error(format!(
                    "the result of '{}' would overwrite the model; pass another --out-dir",
                    model.display()
                )));
            }
            jobs.push(Job { model, target: Target::File(path) });
        }
    }
    Ok(jobs)
}

/// Returns the models that a name, directory or pattern denotes, each with its path within the directory of results.
fn models(name: &Path) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    if name.is_dir() {
        let mut found = Vec::new();
        below(name, name, &mut found)?;
        found.sort();
        if found.is_empty() {
            return Err(Usage::error(format!("found no file *.onnx in '{}' and its subdirectories", name.display())));
        }
        return Ok(found);
    }
    let file = |path: PathBuf| {
        let within = path.file_name().map(PathBuf::from).unwrap_or_default();
        (path, within)
    };
    if is_stream(name) {
        return Err(Usage::error("a result from standard input has no name in --out-dir; pass -o FILE"));
    }
    if name.exists() || !is_pattern(name) {
        return Ok(vec![file(name.to_path_buf())]);
    }
    let text = name.to_string_lossy();
    let found = glob::glob(&text).map_err(|error| Usage::error(format!("'{text}' is not a valid pattern: {error}")))?;
    let found: Vec<_> = found.filter_map(Result::ok).filter(|path| path.is_file()).map(file).collect();
    if found.is_empty() {
        return Err(Usage::error(format!("no file matches '{text}'")));
    }
    Ok(found)
}

/// Collects the files *.onnx in a directory and its subdirectories. Does not follow links to directories, which may be circular.
fn below(folder: &Path, top: &Path, found: &mut Vec<(PathBuf, PathBuf)>) -> anyhow::Result<()> {
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let cannot = |error: std::io::Error| anyhow::anyhow!("cannot list '{}': {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(cannot)?);
            if kind.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "onnx") && path.is_file() {
                let within = path.strip_prefix(top).unwrap_or(&path).to_path_buf();
                found.push((path, within));
            }
        }
    }
    Ok(())
}

/// Checks that the second name is not a number of checks, which is the third argument in onnxsim.
///
/// # Errors
/// The name is a number, and no such file exists.
fn not_a_count(name: &Path) -> anyhow::Result<()> {
    match name.to_str().filter(|text| text.parse::<u32>().is_ok() && !name.exists()) {
        Some(count) => Err(Usage::error(format!(
            "'{count}' is a number; for {count} checks pass --check {count}, for a file named '{count}' pass -o {count}"
        ))),
        None => Ok(()),
    }
}

/// Describes a name that is a URL or a directory in another format, and how to get an ONNX model from it.
fn other_source(name: &Path) -> Option<&'static str> {
    let text = name.to_string_lossy();
    if ["http://", "https://", "s3://", "gs://", "hf://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Some("is a URL; download the file first, and pass its path");
    }
    if !name.is_dir() {
        return None;
    }
    if name.join("saved_model.pb").is_file() {
        return Some(
            "is a TensorFlow SavedModel; convert it with `python -m tf2onnx.convert --saved-model DIR --output model.onnx`",
        );
    }
    if name.join("Manifest.json").is_file() && text.trim_end_matches('/').ends_with(".mlpackage") {
        return Some("is a Core ML package; pass the ONNX model from which it was converted");
    }
    None
}

fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}
