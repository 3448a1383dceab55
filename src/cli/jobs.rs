//! Which models are folded, and where each result goes.

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

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    File(PathBuf),
    /// Standard output.
    Stream,
    /// `/dev/null`: nothing is written.
    Nowhere,
}

/// What the command line says of models and results.
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

/// The jobs, in the order in which the models are named.
///
/// # Errors
/// The names do not say where the results go.
pub(super) fn plan(wanted: Wanted) -> anyhow::Result<Vec<Job>> {
    let Wanted { names, output, folder } = wanted;
    if let Some(folder) = folder {
        return into_folder(&names, &folder);
    }
    let (model, target) = match (names.as_slice(), output) {
        ([model], Some(output)) => (model, Target::of(&output)),
        ([model], None) => (model, beside(model)?),
        ([model, target], None) => {
            let target = Target::of(target);
            no_other_model(model, &target)?;
            (model, target)
        }
        ([_, second], Some(output)) => {
            let (second, output) = (second.display(), output.display());
            return Err(Usage::error(format!(
                "the result is to go to '{second}' and, by -o, to '{output}'; several models go to --out-dir"
            )));
        }
        ([], _) => return Err(Usage::error("no model is named")),
        (names, _) => {
            return Err(Usage::error(format!(
                "{} names are given: the results of several models go to --out-dir DIR",
                names.len()
            )));
        }
    };
    if model.is_dir() || (!model.exists() && is_pattern(model)) {
        return Err(Usage::error(format!(
            "'{}' stands for several models: their results go to --out-dir DIR",
            model.display()
        )));
    }
    Ok(vec![Job { model: model.clone(), target }])
}

/// `model.folded.onnx` for `model.onnx`; a stream for a stream.
fn beside(model: &Path) -> anyhow::Result<Target> {
    if is_stream(model) {
        return Ok(Target::Stream);
    }
    let is_special = std::fs::metadata(model).is_ok_and(|data| !data.is_file() && !data.is_dir());
    if is_special {
        let model = model.display();
        return Err(Usage::error(format!(
            "'{model}' is no regular file, so the result does not go beside it; say where with -o"
        )));
    }
    let mut name = model.file_stem().unwrap_or_default().to_os_string();
    name.push(".folded");
    if let Some(extension) = model.extension() {
        name.push(".");
        name.push(extension);
    }
    Ok(Target::File(model.with_file_name(name)))
}

/// Two names may be the model and its result, or two models that the shell put in the place of `*.onnx`. A file that is there is replaced if it
/// has the interface of the model, as an earlier result has.
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
        "'{path}' exists and has not the inputs and outputs of '{model}': to replace it say -o '{path}', to fold both say --out-dir DIR"
    )))
}

/// A job for each model, with a result of the same name in `folder`.
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
                    "the result of '{}' would replace it; say another --out-dir",
                    model.display()
                )));
            }
            jobs.push(Job { model, target: Target::File(path) });
        }
    }
    Ok(jobs)
}

/// The models a name stands for, each with its place below the folder of results.
fn models(name: &Path) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    if name.is_dir() {
        let mut found = Vec::new();
        below(name, name, &mut found)?;
        found.sort();
        if found.is_empty() {
            return Err(Usage::error(format!("there is no model below '{}': none is called *.onnx", name.display())));
        }
        return Ok(found);
    }
    let file = |path: PathBuf| {
        let within = path.file_name().map(PathBuf::from).unwrap_or_default();
        (path, within)
    };
    if is_stream(name) {
        return Err(Usage::error("standard input has no name to give the result in --out-dir; say -o"));
    }
    if name.exists() || !is_pattern(name) {
        return Ok(vec![file(name.to_path_buf())]);
    }
    let text = name.to_string_lossy();
    let found = glob::glob(&text).map_err(|error| Usage::error(format!("'{text}' is no pattern: {error}")))?;
    let found: Vec<_> = found.filter_map(Result::ok).filter(|path| path.is_file()).map(file).collect();
    if found.is_empty() {
        return Err(Usage::error(format!("no file is called '{text}'")));
    }
    Ok(found)
}

/// The files named *.onnx below a folder. Links to folders are not followed, so that this ends.
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

fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}
