//! The options of every subcommand that runs the passes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use onnx_slice_fold::{
    Assumption, Construct, MissingData, OnnxModel, OpenOptions, Options, Shapes, SliceName, SliceRule, sizes,
};

use super::style::Style;

/// How models are opened.
#[derive(Args, Debug)]
pub(super) struct Opening {
    /// Allow external data in this directory, in addition to the directory of MODEL and, if MODEL is a symbolic link, the directory of its
    /// target. The program follows links to files in these directories. Repeatable.
    #[arg(long, value_name = "DIR", help_heading = "External data")]
    external_data_root: Vec<PathBuf>,
}

impl Opening {
    /// Opens a model from a file or from standard input.
    pub(super) fn open(&self, path: &Path) -> anyhow::Result<OnnxModel> {
        let options = self.external_data_root.iter().fold(OpenOptions::new(), OpenOptions::external_data_root);
        if !is_stream(path) {
            return Ok(OnnxModel::open_with(path, &options)?);
        }
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        OnnxModel::from_bytes_with(bytes, &options).context("standard input")
    }

    /// Opens a model, and warns of each missing data file.
    pub(super) fn open_telling(&self, path: &Path) -> anyhow::Result<OnnxModel> {
        let model = self.open(path)?;
        warn_of_missing(&model.missing_data(), "");
        Ok(model)
    }
}

/// The largest number of warnings about single files.
const MOST_MISSING: usize = 8;

/// Warns of data files that were not found. Each warning begins with `of`, which names the model if there are several.
pub(super) fn warn_of_missing(missing: &[MissingData], of: &str) {
    let warn = |text: String| super::say(Style::Warning, "warning", &format!("{of}{text}"));
    for data in missing.iter().take(MOST_MISSING) {
        warn(format!(
            "{data}; nodes that need it are kept. If the file is elsewhere, pass its directory with --external-data-root"
        ));
    }
    if let Some(more) = missing.len().checked_sub(MOST_MISSING).filter(|&more| more > 0) {
        warn(format!("{more} more external data files are missing"));
    }
}

#[derive(Args, Debug)]
pub(super) struct Passes {
    #[command(flatten)]
    opening: Opening,
    /// Fix or bound a dim of the inputs: batch=1, seq=1..4096, seq=8..4096:8 (a multiple of 8). x[0]=batch names the first dim of input x.
    /// Accepts several, separated by commas or spaces.
    #[arg(long, value_name = "NAME=SIZE", help_heading = "Input shapes")]
    dim: Vec<String>,
    /// State a relation between dims that holds in every run ('past + seq <= 2048').
    #[arg(long, value_name = "RELATION", help_heading = "Input shapes")]
    assume: Vec<String>,
    /// Set the shape of an input: x:1,3,224,224, x:[1,3,224,224] or x:1x3x224x224. The name is optional for a single input. The shape
    /// overwrites declared dims; a name makes a dim dynamic, -1 and ? keep the declared dim. Accepts several.
    #[arg(long, value_name = "[INPUT:]SHAPE", allow_hyphen_values = true, help_heading = "Input shapes")]
    overwrite_input_shape: Vec<String>,
    /// Treat the declared shapes of all tensors as facts, not only those of the inputs.
    #[arg(long, help_heading = "Input shapes")]
    trust_declared_shapes: bool,
    /// Parse dim labels of inputs as expressions: the label "past + seq" means the sum of past and seq. By default a label is an opaque name,
    /// because exporters write such labels on inputs for which the sum does not hold. `explain` prints how many nodes this option would save.
    #[arg(long, help_heading = "Input shapes")]
    trust_input_names: bool,
    /// Extract the part of the model after these values, which become its inputs. Accepts several, and patterns (conv_*).
    #[arg(long, value_name = "NAME", help_heading = "Parts of the model")]
    inputs: Vec<String>,
    /// Extract the part of the model before these values, which become its outputs. Accepts several, and patterns (conv_*).
    #[arg(long, value_name = "NAME", help_heading = "Parts of the model")]
    outputs: Vec<String>,
    /// Remove this output of the model. The inputs do not change. Accepts several, and patterns (aux_*).
    #[arg(long, value_name = "NAME", help_heading = "Parts of the model")]
    unused_output: Vec<String>,
    /// How to interpret slices for which ONNX Runtime and the standard disagree.
    #[arg(long, value_name = "RULE", default_value = "agree", help_heading = "Optimization")]
    slice_rule: Disputed,
    /// Lower a custom operator as a strided slice: com.example::Crop=tensorflow. OP without a domain is in the default domain. DIALECT is
    /// tensorflow (StridedSlice, bit masks), openvino (StridedSlice-1, list masks) or openvino-slice (Slice-8). Repeatable.
    #[arg(long, value_name = "[DOMAIN::]OP=DIALECT", help_heading = "Optimization")]
    strided_slice: Vec<SliceName>,
    /// Maximum growth of the model by folded constants, in percent of its size. A growth of 256 KiB is always allowed.
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = sizes::percent, allow_hyphen_values = true, help_heading = "Optimization")]
    max_growth: f64,
    /// Do not create folded constants larger than SIZE (16K, 1MB).
    #[arg(long, value_name = "SIZE", value_parser = sizes::bytes, help_heading = "Optimization")]
    fold_size_threshold: Option<usize>,
    /// Refuse a model for which every run fails, that declares false types, or whose external data is missing. By default, the program keeps
    /// the affected nodes and prints a warning.
    #[arg(long, help_heading = "Optimization")]
    strict: bool,
    /// Disable a rewrite rule or pass; `rules` lists the names. Accepts several, separated by commas or spaces.
    #[arg(long, value_name = "RULE", help_heading = "Optimization")]
    skip: Vec<String>,
    /// Disable all other rewrite rules and passes; shape inference and constant folding remain. Accepts several, separated by commas or spaces.
    #[arg(long, value_name = "RULE", help_heading = "Optimization")]
    only: Vec<String>,
    /// Disable all rewrite rules and passes; shape inference, constant folding and dead code elimination remain.
    #[arg(long, help_heading = "Optimization")]
    no_rules: bool,
    /// Only use rewrites that preserve every bit of the results. Folded floating-point constants may still differ from a runtime's results in the
    /// last bit, because the program's own evaluator computes them.
    #[arg(long, help_heading = "Optimization")]
    exact: bool,
    /// Fold DequantizeLinear of constants to floats. By default, weights remain quantized, as integer kernels of runtimes need them.
    #[arg(long, help_heading = "Optimization")]
    fold_dequantize: bool,
    /// Unroll a Loop or Scan with a constant number of iterations (2 to 16) if this adds at most N nodes. Runtimes execute unrolled nodes faster,
    /// and some runtimes do not support loops.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Optimization")]
    unroll: usize,
    /// Avoid a construct that the consumer of the result lacks: an operator (Loop, GatherND, com.microsoft::Gelu), negative-steps, sequences,
    /// rank>5, dynamic or an element type (int64). Rules introduce no such operator or negative step, and replace nodes with it even by more nodes; loops are
    /// unrolled to avoid Loop and Scan; sequences, dynamic and element types are only listed. If nodes with it remain, the program lists them with the reasons, writes the result, and returns exit code 4. Accepts
    /// several, separated by commas or spaces.
    #[arg(long, value_name = "CONSTRUCT", help_heading = "Optimization")]
    avoid: Vec<Construct>,
    /// Do not write the version and the options of this program to the metadata of the result.
    #[arg(long, help_heading = "Output")]
    no_stamp: bool,
    /// Select the shapes of inner tensors to write. The default is `auto`; `show` and `explain` print all.
    #[arg(
        long,
        value_name = "WHICH",
        default_value_if("lean", "true", "lean"),
        default_value_if("no_new_shapes", "true", "keep"),
        help_heading = "Output"
    )]
    shapes: Option<Stated>,
    /// Short for --shapes lean.
    #[arg(long, conflicts_with_all = ["shapes", "no_new_shapes"], help_heading = "Output")]
    lean: bool,
    /// Short for --shapes keep.
    #[arg(long, conflicts_with = "shapes", help_heading = "Output")]
    no_new_shapes: bool,
    /// Convert the model to this operator set of the default domain, newer or older: a number, or `latest`. Subgraphs and functions are
    /// converted, too; other domains keep their versions. The program decomposes operators that an older set lacks, and refuses a model
    /// that it cannot convert.
    #[arg(long, value_name = "VERSION", value_parser = sizes::opset, help_heading = "Output")]
    opset: Option<i64>,
    /// Stop after this many edits, to bisect a wrong result. With 0, the program only infers and writes shapes. `explain` prints the last
    /// edit.
    #[arg(long, value_name = "COUNT", help_heading = "Debugging")]
    stop_after: Option<usize>,
    /// Verify the model after each pass that changed it, and name the pass that made it invalid.
    #[arg(long, help_heading = "Debugging")]
    verify_each: bool,
}

/// How to interpret slices for which ONNX Runtime and the standard disagree.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Disputed {
    /// Keep the node, and write no shape for its result.
    Agree,
    /// Follow ONNX Runtime.
    Onnxruntime,
    /// Follow the standard.
    Spec,
    /// Follow numpy and the reference implementation.
    Numpy,
}

/// The shapes of inner tensors that a result contains.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Stated {
    /// All known shapes, except new ones that make ONNX Runtime fuse Add and a normalization into a kernel that is slower on CPUs. With --exact,
    /// no new shapes, because they change the choice of kernels and thereby the last bits.
    Auto,
    /// All known shapes.
    All,
    /// Only shapes of tensors with a shape in the file.
    Keep,
    /// Like auto, but omit new shapes if they would make the file larger than the original, first those that runtimes can infer.
    Lean,
    /// No shapes.
    None,
}

impl From<Stated> for Shapes {
    fn from(stated: Stated) -> Self {
        match stated {
            Stated::Auto => Shapes::Auto,
            Stated::All => Shapes::All,
            Stated::Keep => Shapes::Keep,
            Stated::Lean => Shapes::Lean,
            Stated::None => Shapes::None,
        }
    }
}

impl Passes {
    pub(super) fn options(&self) -> Options {
        self.options_stating(Shapes::Auto)
    }

    /// Returns the options, with `default` unless the user passes `--shapes`.
    pub(super) fn options_stating(&self, default: Shapes) -> Options {
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
            .max_growth(self.max_growth / 100.0)
            .max_constant(self.fold_size_threshold.unwrap_or(usize::MAX))
            .skip(&self.skip)
            .only(&self.only)
            .rules(!self.no_rules)
            .exact(self.exact)
            .stop_after(self.stop_after.unwrap_or(usize::MAX))
            .verify_each(self.verify_each)
            .assumptions(shapes.chain(dims).chain(relations))
            .trust_declared_shapes(self.trust_declared_shapes)
            .trust_input_names(self.trust_input_names)
            .fold_dequantize(self.fold_dequantize)
            .unroll(self.unroll)
            .avoid(self.avoid.iter().cloned())
            .strict(self.strict)
            .opset(self.opset)
            .stamp(!self.no_stamp)
            .shapes(self.shapes.map_or(default, Shapes::from))
    }

    /// Returns the operators that `--strided-slice` registers.
    pub(super) fn slice_operators(&self) -> impl Iterator<Item = String> + '_ {
        self.strided_slice.iter().map(SliceName::operator)
    }

    /// Opens a model and extracts the requested part.
    pub(super) fn open(&self, path: &Path) -> anyhow::Result<OnnxModel> {
        self.part_of(self.opening.open(path)?)
    }

    /// Opens a model, and warns of each missing data file.
    pub(super) fn open_telling(&self, path: &Path) -> anyhow::Result<OnnxModel> {
        self.part_of(self.opening.open_telling(path)?)
    }

    fn part_of(&self, mut model: OnnxModel) -> anyhow::Result<OnnxModel> {
        if !self.unused_output.is_empty() {
            let gone = matching(&self.unused_output, &model.output_names())?;
            model.remove_outputs(&gone)?;
        }
        if !self.inputs.is_empty() || !self.outputs.is_empty() {
            let names = model.value_names();
            let (inputs, outputs) = (matching(&self.inputs, &names)?, matching(&self.outputs, &names)?);
            model.extract(&inputs, &outputs, &self.options())?;
        }
        Ok(model)
    }
}

/// Returns `true` if the path names standard input or output.
pub(super) fn is_stream(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1"].iter().any(|stream| path == Path::new(stream))
}

/// Expands patterns with `*`, `?` or `[…]` to the matching names. Returns a pattern without a match unchanged, so that the caller reports an
/// unknown name.
fn matching(patterns: &[String], names: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for text in patterns {
        if names.contains(&text.as_str()) || !text.contains(['*', '?', '[']) {
            found.push(text.clone());
            continue;
        }
        let pattern = glob::Pattern::new(text).with_context(|| format!("'{text}' is not a valid pattern"))?;
        let before = found.len();
        for name in names {
            if pattern.matches(name) && !found.iter().any(|known| known == name) {
                found.push((*name).to_string());
            }
        }
        if found.len() == before {
            found.push(text.clone());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn patterns_expand_to_matching_names() {
        let names = ["conv_1", "conv_2", "x[0]", "y"];
        let found = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|text| text.to_string()).collect();
            matching(&patterns, &names).map(|found| found.join(" ")).map_err(|error| error.to_string())
        };
        assert_eq!(found(&["conv_*", "y"]).as_deref(), Ok("conv_1 conv_2 y"));
        assert_eq!(found(&["x[0]", "z", "q*"]).as_deref(), Ok("x[0] z q*"));
        assert!(found(&["[z"]).is_err());
    }
}
