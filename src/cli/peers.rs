//! The words of other tools' command lines: those of onnxsim, OnnxSlim and `polygraphy surgeon sanitize`, in our own.
//!
//! Before the arguments are parsed, every flag of theirs is replaced by flags of ours, by a note that it has nothing to do here, or by the
//! reason why what it asks for is not done. A flag of ours that may have several values is written out once for each.

mod table;

use std::ffi::OsString;
use std::path::Path;

use table::WORDS;
pub(super) use table::{HELP, NO_RUNTIME};

/// A flag, ours or another tool's.
pub(super) struct Word {
    /// How it is written.
    pub flag: &'static str,
    /// Other spellings.
    pub also: &'static [&'static str],
    pub takes: Takes,
    pub becomes: Becomes,
}

/// How many values follow a flag.
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

/// What a flag is here.
pub(super) enum Becomes {
    /// This flag, once for each value. It takes values if the other does.
    Flag(&'static str),
    /// These flags, whatever the value.
    Flags(&'static [&'static str]),
    /// What its values say.
    Said(fn(&str, &[String]) -> Result<Said, String>),
    /// Nothing: a note says why it has nothing to do.
    Nothing(&'static str),
    /// Refused: what it asks for is not done here, for this reason.
    Refused(&'static str),
}

/// What became of a flag with its values.
#[derive(Default)]
pub(super) struct Said {
    pub flags: Vec<String>,
    pub notes: Vec<String>,
}

/// Arguments in our own words.
#[derive(Debug, Default)]
pub(super) struct Translated {
    pub arguments: Vec<OsString>,
    /// What the user is told.
    pub notes: Vec<String>,
}

/// Puts the words of other tools into ours.
///
/// # Errors
/// A flag asks for what this program does not do. The text says what, and why.
pub(super) fn translate(arguments: impl IntoIterator<Item = OsString>) -> Result<Translated, String> {
    let mut translated = Translated::default();
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
    let word = WORDS.iter().find(|word| word.flag == flag || word.also.contains(&flag))?;
    (value.is_none() || word.takes != Takes::None).then_some((word, flag, value))
}

/// Whether what follows a flag is a value of it: no flag, and, where more than one value may follow, no file.
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
        Becomes::Nothing(why) => translated.notes.push(format!("'{flag}' has nothing to do here: {why}")),
        Becomes::Refused(why) => return Err(format!("'{flag}' is not offered here: {why}")),
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
        // What stands behind `--` is a name.
        assert_eq!(told("-- --input-shape").as_deref(), Ok("-- --input-shape"));
    }

    #[test]
    fn a_threshold_may_follow() {
        assert_eq!(told("a.onnx b.onnx --no-large-tensor").as_deref(), Ok("a.onnx b.onnx --fold-size-threshold=1KB"));
        assert_eq!(told("--no-large-tensor 1M a.onnx").as_deref(), Ok("--fold-size-threshold=1M a.onnx"));
        assert_eq!(told("--no-large-tensor a.onnx").as_deref(), Ok("--fold-size-threshold=1KB a.onnx"));
    }

    #[test]
    fn what_is_not_done_is_said() {
        assert!(told("a.onnx --dtype fp16").is_err_and(|error| error.starts_with("'--dtype' is not offered here: ")));
        assert!(told("a.onnx --overwrite-input-shape").is_err());
        assert_eq!(told("a.onnx b.onnx c.onnx").as_deref(), Ok("a.onnx b.onnx c.onnx"));
    }

    #[test]
    fn every_flag_is_told_once() {
        let mut flags: Vec<&str> = WORDS.iter().flat_map(|word| word.also.iter().copied().chain([word.flag])).collect();
        let count = flags.len();
        flags.sort_unstable();
        flags.dedup();
        assert_eq!(flags.len(), count);
    }
}
