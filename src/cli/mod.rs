//! The command line: one file per subcommand. It knows only the library's façade.

mod explain;
mod fold;
mod progress;
mod show;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// Exit codes beside success.
const BAD_INPUT: u8 = 1;

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
}

/// What every subcommand that runs the passes takes.
#[derive(Args, Debug)]
struct Passes {
    /// How slices are read about which ONNX Runtime and the operator's text disagree.
    #[arg(long, value_name = "RULE", default_value = "agree")]
    slice_rule: SliceRule,
    /// How much larger folding may make the model, in percent of its size.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    max_growth: f64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SliceRule {
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
    fn options(&self) -> onnx_slice_fold::Options {
        use onnx_slice_fold::slicing::Rule;
        let slice_rule = match self.slice_rule {
            SliceRule::Agree => Rule::Agree,
            SliceRule::Onnxruntime => Rule::OnnxRuntime,
            SliceRule::Spec => Rule::Spec,
            SliceRule::Numpy => Rule::Numpy,
        };
        onnx_slice_fold::Options { slice_rule, max_growth: self.max_growth / 100.0, ..Default::default() }
    }
}

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match (cli.command, cli.fold) {
        (Some(Command::Show(show)), _) => show.run(),
        (Some(Command::Explain(explain)), _) => explain.run(),
        (None, fold) => fold.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}
