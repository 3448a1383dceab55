//! The file `onnx-slice-fold.toml`: flags by their long names, inserted before those of the command line.
//!
//! ```toml
//! exact = true
//! max-growth = 10
//! dim = ["batch=1", "seq=1..4096"]
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Command};
use toml::{Table, Value};

/// The default configuration file, in the current directory.
pub(super) const NAME: &str = "onnx-slice-fold.toml";

/// Flags that are invalid in a configuration file.
const NOT_IN_FILES: [&str; 5] = ["config", "no-config", "help", "version", "output"];

/// Returns the path of the configuration file, if any. `arguments` is the command line.
fn wanted(arguments: &[OsString]) -> Option<PathBuf> {
    let texts: Vec<&str> = arguments.iter().skip(1).filter_map(|text| text.to_str()).collect();
    let texts: Vec<&str> = texts.into_iter().take_while(|text| *text != "--").collect();
    if texts.contains(&"--no-config") {
        return None;
    }
    let behind = |pair: &[&str]| match pair {
        ["--config", file] => Some(PathBuf::from(file)),
        _ => None,
    };
    let given = texts.windows(2).find_map(behind);
    let given = given.or_else(|| texts.iter().find_map(|text| text.strip_prefix("--config=")).map(PathBuf::from));
    given.or_else(|| Path::new(NAME).is_file().then(|| PathBuf::from(NAME)))
}

/// Inserts the flags of the configuration file before those of the command line. Returns the path of the file.
///
/// # Errors
/// The file cannot be read, is not valid TOML, or contains an unknown key. The text names the file and the key.
pub(super) fn add(arguments: &mut Vec<OsString>, program: fn() -> Command) -> Result<Option<PathBuf>, String> {
    let Some(file) = wanted(arguments) else { return Ok(None) };
    // The flags of subcommands are only described after the build.
    let program = &mut program();
    program.build();
    // A named command has its own flags; without a command, the program folds a model.
    let command = arguments.get(1).and_then(|name| name.to_str()).and_then(|name| program.find_subcommand(name));
    let folds = |command: &Command| command.get_arguments().any(|flag| flag.get_long() == Some("config"));
    if command.is_some_and(|command| !folds(command)) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&file).map_err(|error| format!("cannot read '{}': {error}", file.display()))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        format!("'{}' is not valid TOML: {}", file.display(), error.to_string().trim().replace('\n', " "))
    })?;
    let mut flags: Vec<OsString> = Vec::new();
    for (key, value) in &table {
        let known = flag(program, key).filter(|_| !NOT_IN_FILES.contains(&key.as_str()));
        let Some(known) = known else {
            let names: Vec<&str> = program.get_arguments().filter_map(clap::Arg::get_long).collect();
            let allowed = names.iter().copied().filter(|name| !NOT_IN_FILES.contains(name));
            let nearest = onnx_slice_fold::nearest_name(key, allowed);
            let hint = nearest.map_or_else(String::new, |name| format!("; did you mean '{name}'?"));
            return Err(format!("unknown key '{key}' in '{}'{hint}", file.display()));
        };
        // Omit flags that this command does not have.
        if command.is_some_and(|command| flag(command, key).is_none()) {
            continue;
        }
        flags.extend(written(known, key, value).map_err(|expected| {
            format!("'{}': '{key}' must be {expected}, but is {}", file.display(), value.type_str())
        })?);
    }
    let at = if command.is_some() { 2 } else { 1 };
    arguments.splice(at..at, flags);
    Ok(Some(file))
}

/// The maximum number of repetitions of a counting flag.
const MOST_OFTEN: i64 = 9;

fn flag<'c>(command: &'c Command, key: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|flag| flag.get_long() == Some(key))
}

/// Converts a key and its value to flags; the error is the expected value.
fn written(flag: &clap::Arg, key: &str, value: &Value) -> Result<Vec<OsString>, &'static str> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(format!("--{key}={text}").into()),
        Value::Integer(number) => Some(format!("--{key}={number}").into()),
        Value::Float(number) => Some(format!("--{key}={number}").into()),
        _ => None,
    };
    match (flag.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(is_set)) => {
            Ok(is_set.then(|| format!("--{key}").into()).into_iter().collect())
        }
        (ArgAction::SetTrue, _) => Err("true or false"),
        (ArgAction::Count, Value::Integer(count)) => {
            Ok((0..(*count).min(MOST_OFTEN)).map(|_| format!("--{key}").into()).collect())
        }
        (ArgAction::Count, _) => Err("a number"),
        (ArgAction::Append, Value::Array(values)) => {
            values.iter().map(one).collect::<Option<_>>().ok_or("a list of texts")
        }
        (_, value) => one(value).map(|flag| vec![flag]).ok_or("a text or a number"),
    }
}
