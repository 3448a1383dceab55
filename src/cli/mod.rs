//! The command line: one file per subcommand. It knows only the library's façade.

mod explain;
mod fold;
mod ops;
mod progress;
mod rules;
mod show;

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use onnx_slice_fold::{Assumption, Options, SliceName, SliceRule};

/// Exit codes beside success.
const BAD_INPUT: u8 = 1;
const DIFFERS: u8 = 3;

/// Infer every shape of an ONNX model, fold everything that is already decided, write the smaller model.
#[derive(Parser, Debug)]
#[command(name = "onnx-slice-fold", version, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    fold: fold::Fold,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print the model in the ONNX text syntax, with inferred shapes.
    Show(show::Show),
    /// Fold without writing, and tell what fired and why the rest is left.
    Explain(explain::Explain),
    /// Print which operators and versions have inference and evaluation.
    Ops(ops::Ops),
    /// List the rewrite rules and passes, or explain one: its law, and when it applies.
    Rules(rules::Rules),
}

/// What every subcommand that runs the passes takes.
#[derive(Args, Debug)]
struct Passes {
    /// How slices are read about which ONNX Runtime and the operator's text disagree.
    #[arg(long, value_name = "RULE", default_value = "agree")]
    slice_rule: Disputed,
    /// An operator of the model that is a strided slice: com.example::Crop=tensorflow. OP alone is in the default domain; DIALECT is
    /// tensorflow (StridedSlice, bit masks), openvino (StridedSlice-1, list masks) or openvino-slice (Slice-8). May be repeated.
    #[arg(long, value_name = "[DOMAIN::]OP=DIALECT")]
    strided_slice: Vec<SliceName>,
    /// How much larger folding may make the model, in percent of its size.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    max_growth: f64,
    /// What a symbol is: a size, a range, a range and what it is a multiple of (batch=1, seq=1..4096, seq=8..4096:8).
    #[arg(long, value_name = "NAME=SIZE")]
    dim: Vec<String>,
    /// A relation between sizes that always holds ('past + seq <= 2048').
    #[arg(long, value_name = "RELATION")]
    assume: Vec<String>,
    /// The shape of an input (x:1,3,224,224; names and -1 leave a dimension open).
    #[arg(long, visible_alias = "input-shapes", value_name = "INPUT:SHAPE")]
    overwrite_input_shape: Vec<String>,
    /// Take what the model declares of shapes inside it as given, and not only what it declares of its inputs.
    #[arg(long)]
    trust_declared_shapes: bool,
    /// Refuse a model of which no run can succeed, instead of leaving the nodes that cannot work as they are.
    #[arg(long)]
    strict: bool,
    /// Leave a rewrite rule or pass out; `rules` lists their names. May be repeated.
    #[arg(long, value_name = "RULE")]
    skip: Vec<String>,
    /// Use this rewrite rule or pass and no other; inference and folding of constants go on. May be repeated.
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,
    /// Only use rewrites that keep results equal bit for bit. What is constant is computed all the same, in this program's own way.
    #[arg(long)]
    exact: bool,
    /// Make floats of dequantized constants that are computed with, instead of leaving them quantized for the runtime.
    #[arg(long)]
    fold_dequantize: bool,
    /// Stop after this many edits of any pass, to find the one at fault: the first ones of those made without this. With 0 only shapes
    /// are inferred and written. `explain` tells the last edit.
    #[arg(long, value_name = "COUNT")]
    stop_after: Option<usize>,
    /// Verify the model after each pass that changed it, and name the pass that broke it.
    #[arg(long)]
    verify_each: bool,
}

/// How the cases of slicing are read about which ONNX Runtime and the operator's text disagree.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Disputed {
    /// Neither fold nor state anything where they disagree.
    Agree,
    /// As ONNX Runtime computes it.
    Onnxruntime,
    /// As the operator's text has it.
    Spec,
    /// As numpy and the reference implementation have it.
    Numpy,
}

impl Passes {
    fn options(&self) -> Options {
        let slice_rule = match self.slice_rule {
            Disputed::Agree => SliceRule::Agree,
            Disputed::Onnxruntime => SliceRule::OnnxRuntime,
            Disputed::Spec => SliceRule::Spec,
            Disputed::Numpy => SliceRule::Numpy,
        };
        let shapes = self.overwrite_input_shape.iter().cloned().map(Assumption::InputShape);
        let dims = self.dim.iter().cloned().map(Assumption::Dim);
        let relations = self.assume.iter().cloned().map(Assumption::Relation);
        Options::new()
            .slice_rule(slice_rule)
            .slice_names(self.strided_slice.iter().cloned())
            .max_growth(self.max_growth.max(0.0) / 100.0)
            .skip(&self.skip)
            .only(&self.only)
            .exact(self.exact)
            .stop_after(self.stop_after.unwrap_or(usize::MAX))
            .verify_each(self.verify_each)
            .assumptions(shapes.chain(dims).chain(relations))
            .trust_declared_shapes(self.trust_declared_shapes)
            .fold_dequantize(self.fold_dequantize)
            .strict(self.strict)
    }
}

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match (cli.command, cli.fold) {
        (Some(Command::Show(show)), _) => show.run(),
        (Some(Command::Explain(explain)), _) => explain.run(),
        (Some(Command::Ops(ops)), _) => ops.run(),
        (Some(Command::Rules(rules)), _) => rules.run(),
        (None, fold) => fold.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody listens the exit code says it.
            let _ = writeln!(std::io::stderr(), "error: {}", printable(&format!("{error:#}")));
            ExitCode::from(if error.is::<fold::Differs>() { DIFFERS } else { BAD_INPUT })
        }
    }
}

/// Writes to standard output. A reader that closes the pipe early has seen enough.
fn tell(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// A path to a model. Models are read and written as files, so that nothing half written is ever taken for one; elsewhere `-` is
/// a stream.
fn file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("models are not read from or written to streams; './-' is the file of that name"),
        false => Ok(path),
    })
}

/// Text for a terminal. Names come from the file; control characters in them are shown, not obeyed.
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
