//! Translates the command lines of onnxsim, OnnxSlim and `polygraphy surgeon sanitize`.
//!
//! Before the arguments are parsed, each flag of another tool is replaced by flags of this program, ignored with a note, or refused with a
//! reason. A repeatable flag of this program is written out once for each of its values.

mod table;

use std::ffi::OsString;
use std::path::Path;

pub(super) use table::HELP;
use table::WORDS;

/// A flag of this program or of another tool.
pub(super) struct Word {
    /// The flag. A name that ends with `*` covers all flags with this prefix.
    pub flag: &'static str,
    /// Flags with the same translation.
    pub also: &'static [&'static str],
    pub takes: Takes,
    pub becomes: Becomes,
}

/// The number of values after a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    None,
    One,
    /// One, or none.
    Perhaps,
    /// One or more.
    Many,
    /// Any number.
    Any,
}

/// The translation of a flag.
pub(super) enum Becomes {
    /// This flag, once for each value, or without a value if the flag takes none.
    Flag(&'static str),
    /// These flags, for any value.
    Flags(&'static [&'static str]),
    /// The flags and notes that a function derives from the values.
    Said(fn(&str, &[String]) -> Result<Said, String>),
    /// No flag; a note with this reason.
    Nothing(&'static str),
    /// An error with this reason.
    Refused(&'static str),
}

/// The translation of a flag with its values.
#[derive(Default)]
pub(super) struct Said {
    pub flags: Vec<String>,
    pub notes: Vec<String>,
}

impl Word {
    fn covers(&self, flag: &str) -> bool {
        let is = |name: &&str| match name.strip_suffix('*') {
            Some(prefix) => flag.starts_with(prefix),
            None => *name == flag,
        };
        is(&self.flag) || self.also.iter().any(is)
    }
}

/// A translated command line.
#[derive(Debug, Default)]
pub(super) struct Translated {
    pub arguments: Vec<OsString>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Translates a command line.
///
/// # Errors
/// A flag requests something that this program does not do. The text names the flag and the reason.
pub(super) fn translate(arguments: impl IntoIterator<Item = OsString>) -> Result<Translated, String> {
    let mut translated = Translated::default();
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // polygraphy's subcommand that simplifies a model.
    if let [_, tool, subcommand, ..] = arguments.as_slice()
        && tool == "surgeon"
        && subcommand == "sanitize"
    {
        arguments.drain(1..3);
    }
    // OnnxSlim's flag is a subcommand here.
    let names = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    if let Some(at) = arguments.iter().take(names).position(|argument| argument == "--inspect") {
        arguments.remove(at);
        arguments.insert(1.min(arguments.len()), "inspect".into());
    }
    let mut rest = arguments.into_iter().peekable();
    translated.arguments.extend(rest.next());
    while let Some(argument) = rest.next() {
        if argument == "--" {
            translated.arguments.push(argument);
            translated.arguments.extend(rest);
            break;
        }
        let Some((word, flag, given)) = argument.to_str().and_then(word) else {
            translated.arguments.push(argument);
            continue;
        };
        let mut values: Vec<String> = given.map(str::to_string).into_iter().collect();
        let most = match word.takes {
            Takes::None => 0,
            Takes::One | Takes::Perhaps => 1,
            Takes::Many | Takes::Any => usize::MAX,
        };
        while given.is_none() && values.len() < most {
            let is_first = values.is_empty() && word.takes != Takes::Any;
            let is_next = |next: &OsString| next.to_str().is_some_and(|next| is_value(word, next, is_first));
            let Some(next) = rest.next_if(is_next) else { break };
            values.push(next.to_string_lossy().into_owned());
        }
        if values.is_empty() && matches!(word.takes, Takes::One | Takes::Many) {
            return Err(format!("'{flag}' needs a value"));
        }
        apply(word, flag, &values, &mut translated)?;
    }
    Ok(translated)
}

fn word(argument: &str) -> Option<(&'static Word, &str, Option<&str>)> {
    let (flag, value) = match argument.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (argument, None),
    };
    let word = WORDS.iter().find(|word| word.covers(flag))?;
    (value.is_none() || word.takes != Takes::None).then_some((word, flag, value))
}

/// Returns `true` if `next` is a value of the flag before it: not a flag, and not a file if several values may follow.
fn is_value(word: &Word, next: &str, is_first: bool) -> bool {
    let is_number = next.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if next.starts_with('-') && !is_number {
        return false;
    }
    match word.takes {
        Takes::Perhaps => next.starts_with(|c: char| c.is_ascii_digit()),
        Takes::Many | Takes::Any => {
            let is_model = [".onnx", ".pb"].iter().any(|end| next.ends_with(end));
            !is_model && (is_first || !Path::new(next).exists())
        }
        Takes::None | Takes::One => true,
    }
}

fn apply(word: &Word, flag: &str, values: &[String], translated: &mut Translated) -> Result<(), String> {
    let mut push = |flag: String| translated.arguments.push(flag.into());
    match &word.becomes {
        Becomes::Flag(ours) if word.takes == Takes::None => push((*ours).to_string()),
        Becomes::Flag(ours) => values.iter().for_each(|value| push(format!("{ours}={value}"))),
        Becomes::Flags(ours) => ours.iter().for_each(|ours| push((*ours).to_string())),
        Becomes::Said(read) => {
            let said = read(flag, values)?;
            said.flags.into_iter().for_each(push);
            translated.notes.extend(said.notes);
        }
        Becomes::Nothing(why) => translated.notes.push(format!("ignored '{flag}': {why}")),
        Becomes::Refused(why) => return Err(format!("'{flag}' is not supported: {why}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Result<String, String> {
        let translated = translate(std::iter::once("program").chain(line.split(' ')).map(OsString::from))?;
        let arguments: Vec<String> =
            translated.arguments.iter().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
        Ok([arguments.join(" "), translated.notes.join("; ")].join(" | ").trim_end_matches(" | ").to_string())
    }

    #[test]
    fn flags_with_several_values_are_written_out() {
        let shapes = "--overwrite-input-shape=x:1,3 --overwrite-input-shape=y:-1,2";
        assert_eq!(
            told("a.onnx b.onnx --input-shape x:1,3 y:-1,2").as_deref(),
            Ok(&*format!("a.onnx b.onnx {shapes}"))
        );
        assert_eq!(
            told("--override-inputs x:1,3 y:-1,2 a.onnx -o b.onnx").as_deref(),
            Ok(&*format!("{shapes} a.onnx -o b.onnx"))
        );
        assert_eq!(told("--input-shapes=x:1,3 a.onnx").as_deref(), Ok("--overwrite-input-shape=x:1,3 a.onnx"));
        assert_eq!(told("a.onnx --overwrite-input-shape -1,3").as_deref(), Ok("a.onnx --overwrite-input-shape=-1,3"));
        // An argument after `--` is a name.
        assert_eq!(told("-- --input-shape").as_deref(), Ok("-- --input-shape"));
    }

    #[test]
    fn a_threshold_may_follow() {
        assert_eq!(told("a.onnx b.onnx --no-large-tensor").as_deref(), Ok("a.onnx b.onnx --fold-size-threshold=1KB"));
        assert_eq!(told("--no-large-tensor 1M a.onnx").as_deref(), Ok("--fold-size-threshold=1M a.onnx"));
        assert_eq!(told("--no-large-tensor a.onnx").as_deref(), Ok("--fold-size-threshold=1KB a.onnx"));
    }

    #[test]
    fn refused_flags_have_a_reason() {
        assert!(told("a.onnx --dtype fp16").is_err_and(|error| error.starts_with("'--dtype' is not supported: ")));
        assert!(told("a.onnx --overwrite-input-shape").is_err());
        assert_eq!(told("a.onnx b.onnx c.onnx").as_deref(), Ok("a.onnx b.onnx c.onnx"));
    }

    #[test]
    fn every_flag_is_listed_once() {
        let mut flags: Vec<&str> = WORDS.iter().flat_map(|word| word.also.iter().copied().chain([word.flag])).collect();
        let count = flags.len();
        flags.sort_unstable();
        flags.dedup();
        assert_eq!(flags.len(), count);
    }
}
