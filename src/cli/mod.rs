//! The command line: one file per subcommand. It knows only the library's façade.

mod arrays;
mod completions;
mod config;
mod deferred;
mod diff;
mod explain;
mod fold;
mod inspect;
mod jobs;
mod man;
mod ops;
mod passes;
mod peers;
mod progress;
mod rules;
mod show;
mod style;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ErrorKind as ClapErrorKind};
use clap::{Args, CommandFactory, FromArgMatches as _, Parser, Subcommand};

use deferred::Deferred;
use style::{Colour, Style, styled};

/// Exit codes of failures.
const BAD_INPUT: u8 = 1;
const BAD_USAGE: u8 = 2;
const DIFFERS: u8 = 3;
const REMAINS: u8 = 4;

/// Simplify an ONNX model: symbolic shape inference, constant folding and graph rewriting.
#[derive(Parser, Debug)]
#[command(
    name = "onnx-slice-fold",
    version,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    override_usage = "onnx-slice-fold [OPTIONS] MODEL [RESULT]\n       onnx-slice-fold [OPTIONS] --out-dir DIR MODEL...\n       onnx-slice-fold COMMAND",
    after_help = peers::HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    fold: fold::Fold,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print a model in the ONNX text syntax, with inferred shapes.
    Show(Deferred<show::Show>),
    /// Print why each remaining node is kept, and which options would remove it.
    Explain(Deferred<explain::Explain>),
    /// Print operators, parameters, multiply-accumulates and peak memory of a model, or of several models side by side.
    Inspect(Deferred<inspect::Inspect>),
    /// Compare two models by the values that their nodes compute.
    ///
    /// The command compares: nodes and attributes of the main graph, of subgraphs and of functions; constants, in the model file or in data files;
    /// names, types and defaults of inputs and outputs; declared types of node outputs; operator sets of the model and of functions; attributes and
    /// defaults of functions; and the version of the file format, the producer, documentation and metadata of the model and of its main graph,
    /// quantization annotations and training information.
    ///
    /// The command does not compare: names of nodes and of inner values; the order of nodes and initializers; documentation and metadata of nodes,
    /// tensors, subgraphs and functions; denotations of types; and the file that stores a tensor.
    Diff(Deferred<diff::Diff>),
    /// List the supported operators and versions.
    Ops(Deferred<ops::Ops>),
    /// List the rewrite rules and passes, or print one rule: the equation it applies (its law) and the conditions under which it applies (its premises).
    Rules(Deferred<rules::Rules>),
    /// Print a completion script for a shell.
    Completions(Deferred<completions::Completions>),
    /// Print the manual page.
    Man(Deferred<man::Man>),
}

/// Options that do not concern the model.
#[derive(Args, Debug)]
struct Common {
    /// Print only warnings and errors.
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Output")]
    quiet: u8,
    /// Also print the rules that fired and notes on single nodes; twice: also the time of each pass.
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Output")]
    verbose: u8,
    /// When to use colors.
    #[arg(long, alias = "colour", value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: Colour,
    /// Read flags from this TOML file; the default is onnx-slice-fold.toml in the current directory, if it exists.
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    config: Option<PathBuf>,
    /// Do not read a configuration file.
    #[arg(long, help_heading = "Configuration")]
    no_config: bool,
}

impl Common {
    fn is_quiet(&self) -> bool {
        self.quiet > self.verbose
    }
}

/// An invalid command line.
#[derive(Debug)]
struct Usage(String);

impl Usage {
    fn error(text: impl Into<String>) -> anyhow::Error {
        Usage(text.into()).into()
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The stack size for commands. The stack of the first thread is a user setting, which may be too small for nested graphs.
const STACK: usize = 8 << 20;

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    // Exits from within, because a thread that ends frees its memory piece by piece.
    let work = || std::process::exit(run(std::env::args_os()).into());
    onnx_slice_fold::threads::work_alone();
    if first_stack_is_enough() {
        work();
    }
    let thread = std::thread::Builder::new().name("main".to_string()).stack_size(STACK).spawn(work);
    match thread.map(std::thread::JoinHandle::<()>::join) {
        // Only a panic returns here, and it was already reported.
        Ok(_) => ExitCode::from(101),
        Err(error) => {
            say(Style::Error, "error", &format!("no thread can be started: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns `true` if the first thread's stack is large enough. Starting another thread would measurably slow down small models.
fn first_stack_is_enough() -> bool {
    // Only Linux is queried. Arguments and environment share the stack; Linux limits them to a quarter of it.
    #[cfg(target_os = "linux")]
    {
        let least = u64::try_from(STACK).unwrap_or(u64::MAX);
        rustix::process::getrlimit(rustix::process::Resource::Stack).current.is_none_or(|limit| limit >= least)
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// Runs the program on arguments, the first of which is its name, and returns its exit code. Always returns, so a larger process
/// can call it.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    #[cfg(feature = "seeded-faults")]
    if let Some(fault) =
        std::env::var("SEEDED_FAULT").ok().and_then(|text| onnx_slice_fold::faults::Fault::parse(&text))
    {
        return onnx_slice_fold::faults::with_fault(fault, || run_arguments(arguments)).0;
    }
    run_arguments(arguments)
}

fn run_arguments(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let result = match read(arguments.into_iter().collect()) {
        Ok(Ok((cli, notes))) => execute(cli, &notes),
        Ok(Err(code)) => return code,
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => 0,
        Err(error) => {
            say(Style::Error, "error", &format!("{error:#}"));
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<fold::Differs>() {
        return DIFFERS;
    }
    if error.is::<fold::Remains>() {
        return REMAINS;
    }
    let is_usage = error.downcast_ref::<Usage>().is_some()
        || error
            .downcast_ref::<onnx_slice_fold::Error>()
            .is_some_and(|error| error.kind() == onnx_slice_fold::ErrorKind::Usage);
    if is_usage { BAD_USAGE } else { BAD_INPUT }
}

/// Parses the arguments, after translating flags of other tools and inserting those of the configuration file. If the parser prints
/// a message, such as help, returns its exit code.
fn read(arguments: Vec<OsString>) -> anyhow::Result<Result<(Cli, Vec<String>), u8>> {
    let own: Vec<OsString> = without_help_of_help(arguments);
    let translated = peers::translate(own).map_err(Usage::error)?;
    let (mut arguments, mut notes) = (translated.arguments, translated.notes);
    if let Some(file) = config::add(&mut arguments, Cli::command).map_err(Usage::error)? {
        notes.push(format!("using the flags of '{}'", file.display()));
    }
    let mut program = Cli::command();
    let parsed = program.try_get_matches_from_mut(&arguments);
    match parsed
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches))
        .map_err(|error| error.format(&mut program))
    {
        Ok(mut cli) => {
            cli.fold.command = written(&arguments);
            Ok(Ok((cli, notes)))
        }
        Err(mut error) => {
            // Clap suggests '-- --foo' for names that begin with '--', which models do not have.
            if error.kind() == ClapErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none() {
                error.remove(ContextKind::Suggested);
            }
            let _ = error.print();
            Ok(Err(u8::try_from(error.exit_code()).unwrap_or(BAD_USAGE)))
        }
    }
}

/// Returns arguments as a command line for a shell.
fn written(arguments: &[OsString]) -> String {
    let words = arguments.iter().skip(1).map(|word| onnx_slice_fold::shell_word(&word.to_string_lossy()));
    std::iter::once("onnx-slice-fold".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Handles `help --help` like `help`.
fn without_help_of_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_help = |text: &OsString| text == "--help" || text == "-h";
    if arguments.get(1).is_some_and(|first| first == "help") && arguments.last().is_some_and(is_help) {
        arguments.pop();
    }
    arguments
}

fn execute(cli: Cli, notes: &[String]) -> anyhow::Result<()> {
    if let Some(common) = cli.common() {
        common.color.set();
        for note in notes.iter().filter(|_| !common.is_quiet()) {
            say(Style::Note, "note", note);
        }
    }
    match (cli.command, cli.fold) {
        (Some(Command::Show(Deferred(show))), _) => show.run(),
        (Some(Command::Explain(Deferred(explain))), _) => explain.run(),
        (Some(Command::Inspect(Deferred(inspect))), _) => inspect.run(),
        (Some(Command::Diff(Deferred(diff))), _) => diff.run(),
        (Some(Command::Ops(Deferred(ops))), _) => ops.run(),
        (Some(Command::Rules(Deferred(rules))), _) => rules.run(),
        (Some(Command::Completions(Deferred(completions))), _) => completions.run(),
        (Some(Command::Man(Deferred(man))), _) => man.run(),
        (None, fold) => {
            meant_as_command(fold.first_name())?;
            fold.run()
        }
    }
}

impl Cli {
    fn common(&self) -> Option<&Common> {
        match &self.command {
            None => Some(&self.fold.common),
            Some(Command::Show(Deferred(show))) => Some(&show.common),
            Some(Command::Explain(Deferred(explain))) => Some(&explain.common),
            Some(Command::Inspect(Deferred(inspect))) => Some(&inspect.common),
            Some(_) => None,
        }
    }
}

/// Checks that the first name is not a misspelled command.
///
/// # Errors
/// The name resembles a command, and no such file exists.
fn meant_as_command(name: Option<&Path>) -> anyhow::Result<()> {
    let Some(name) = name.and_then(Path::to_str).filter(|name| !name.contains(['.', '/', '*']) && *name != "-") else {
        return Ok(());
    };
    if Path::new(name).exists() {
        return Ok(());
    }
    let program = Cli::command();
    let commands: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let swapped = commands.iter().copied().find(|command| letters(command) == letters(name));
    match swapped.or_else(|| onnx_slice_fold::nearest_name(name, commands.iter().copied())) {
        Some(command) => {
            Err(Usage::error(format!("found neither a file nor a command named '{name}'; did you mean '{command}'?")))
        }
        None => Ok(()),
    }
}

/// Prints a message to standard error, and ignores a closed pipe.
fn say(style: Style, kind: &str, text: &str) {
    let stderr = std::io::stderr();
    let kind = styled(&format!("{kind}:"), style, &stderr);
    let _ = writeln!(stderr.lock(), "{kind} {}", printable(text));
}

/// Writes to standard output, and ignores a closed pipe.
fn tell(text: &str) -> anyhow::Result<()> {
    write(text.as_bytes())
}

fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Escapes control characters, which names in a file may contain.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && !['\n', '\t'].contains(&letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    #[test]
    fn control_characters_are_shown() {
        assert_eq!(super::printable("a\u{1b}[2Jb\u{9b}\nc é"), "a\\u{1b}[2Jb\\u{9b}\nc é");
    }
}
