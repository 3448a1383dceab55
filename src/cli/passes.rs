//! What every subcommand that runs the passes takes.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use onnx_slice_fold::{Assumption, OnnxModel, Options, SliceName, SliceRule};

use super::sizes;

#[derive(Args, Debug)]
pub(super) struct Passes {
    /// What is known of a size: batch=1, seq=1..4096, seq=8..4096:8 (a multiple of 8). NAME is a dim of an input, or the place of one:
    /// x[0]=batch names the first dim of x. Takes several.
    #[arg(long, value_name = "NAME=SIZE", help_heading = "What is known of the inputs")]
    dim: Vec<String>,
    /// A relation between sizes that always holds ('past + seq <= 2048').
    #[arg(long, value_name = "RELATION", help_heading = "What is known of the inputs")]
    assume: Vec<String>,
    /// The shape of an input: x:1,3,224,224, also x:[1,3,224,224] and x:1x3x224x224, without a name if there is one input. Sizes that the
    /// model declares are overwritten; names open a dim, -1 and ? leave it as it is. Takes several.
    #[arg(
        long,
        value_name = "[INPUT:]SHAPE",
        allow_hyphen_values = true,
        help_heading = "What is known of the inputs"
    )]
    overwrite_input_shape: Vec<String>,
    /// Take what the model declares of shapes inside it as given, and not only what it declares of its inputs.
    #[arg(long, help_heading = "What is known of the inputs")]
    trust_declared_shapes: bool,
    /// Parse labels of inputs' dims as expressions: "past + seq" is the sum of past and seq. By default a label is an opaque name, because
    /// exporters write such labels on inputs for which the sum does not hold. `explain` prints how many nodes this option would save.
    #[arg(long, help_heading = "What is known of the inputs")]
    trust_input_names: bool,
    /// Only the part of the model behind these values, which become its inputs. Takes several, and patterns (conv_*).
    #[arg(long, value_name = "NAME", help_heading = "Parts of the model")]
    inputs: Vec<String>,
    /// Only the part of the model before these values, which become its outputs. Takes several, and patterns (conv_*).
    #[arg(long, value_name = "NAME", help_heading = "Parts of the model")]
    outputs: Vec<String>,
    /// An output to take away. The inputs stay. Takes several, and patterns (aux_*).
    #[arg(long, value_name = "NAME", help_heading = "Parts of the model")]
    unused_output: Vec<String>,
    /// How slices are read about which ONNX Runtime and the operator's text disagree.
    #[arg(long, value_name = "RULE", default_value = "agree", help_heading = "What is done")]
    slice_rule: Disputed,
    /// An operator of the model that is a strided slice: com.example::Crop=tensorflow. OP alone is in the default domain; DIALECT is
    /// tensorflow (StridedSlice, bit masks), openvino (StridedSlice-1, list masks) or openvino-slice (Slice-8). May be repeated.
    #[arg(long, value_name = "[DOMAIN::]OP=DIALECT", help_heading = "What is done")]
    strided_slice: Vec<SliceName>,
    /// How much larger folding may make the model, in percent of its size; 256 KiB are always allowed.
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = sizes::percent, allow_hyphen_values = true, help_heading = "What is done")]
    max_growth: f64,
    /// Leave what computes a constant of more bytes than this (16K, 1MB).
    #[arg(long, value_name = "SIZE", value_parser = sizes::bytes, help_heading = "What is done")]
    fold_size_threshold: Option<usize>,
    /// Refuse a model of which no run can succeed, or that declares false types, instead of leaving the nodes that cannot work as they are.
    #[arg(long, help_heading = "What is done")]
    strict: bool,
    /// Leave a rewrite rule or pass out; `rules` lists their names. Takes several.
    #[arg(long, value_name = "RULE", help_heading = "What is done")]
    skip: Vec<String>,
    /// Use this rewrite rule or pass and no other; inference and folding of constants go on. Takes several.
    #[arg(long, value_name = "RULE", help_heading = "What is done")]
    only: Vec<String>,
    /// Use no rewrite rule or pass; inference, folding of constants and removal of what nothing reads go on.
    #[arg(long, help_heading = "What is done")]
    no_rules: bool,
    /// Only use rewrites that keep results equal bit for bit. What is constant is computed all the same, in this program's own way.
    #[arg(long, help_heading = "What is done")]
    exact: bool,
    /// Make floats of dequantized constants that are computed with, instead of leaving them quantized for the runtime.
    #[arg(long, help_heading = "What is done")]
    fold_dequantize: bool,
    /// Write out loops that are known to run 2 to 16 times even where this takes more nodes than it saves, as long as the model has at most N
    /// nodes more. Runtimes compute nodes faster than iterations, and some consumers know no loops.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "What is done")]
    unroll: usize,
    /// Leave out of the model's metadata which version of this program folded it, and how it was asked to.
    #[arg(long, help_heading = "What is done")]
    no_stamp: bool,
    /// Do not let the file grow: shapes that it did not have are left out where it would be larger than it was, first those that readers
    /// find by themselves. Otherwise every shape is written that is known.
    #[arg(long, help_heading = "What is done")]
    lean: bool,
    /// Leave out shapes that the file did not have, those of outputs apart. Where ONNX Runtime knows shapes it makes one node of a sum and a
    /// normalization, which on a CPU takes longer than the two.
    #[arg(long, help_heading = "What is done")]
    no_new_shapes: bool,
    /// Write the model in this operator set of the default domain, 1 to the newest. Each node is written as the versions of its operator
    /// differ, in bodies and functions as well; other domains keep their versions. A model that cannot be converted is refused.
    #[arg(long, value_name = "VERSION", help_heading = "What is done")]
    opset: Option<i64>,
    /// Stop after this many edits of any pass, to find the one at fault: the first ones of those made without this. With 0 only shapes
    /// are inferred and written. `explain` tells the last edit.
    #[arg(long, value_name = "COUNT", help_heading = "To find what is at fault")]
    stop_after: Option<usize>,
    /// Verify the model after each pass that changed it, and name the pass that broke it.
    #[arg(long, help_heading = "To find what is at fault")]
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
    pub(super) fn options(&self) -> Options {
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
            .strict(self.strict)
            .opset(self.opset)
            .stamp(!self.no_stamp)
            .lean(self.lean)
            .new_shapes(!self.no_new_shapes)
    }

    /// The operators that are said to be strided slices.
    pub(super) fn slice_operators(&self) -> impl Iterator<Item = String> + '_ {
        self.strided_slice.iter().map(SliceName::operator)
    }

    /// Opens a model, and takes the part of it that is asked for.
    pub(super) fn open(&self, path: &Path) -> anyhow::Result<OnnxModel> {
        let mut model = open(path)?;
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

/// Opens a model: a file, or what standard input gives.
pub(super) fn open(path: &Path) -> anyhow::Result<OnnxModel> {
    if !is_stream(path) {
        return Ok(OnnxModel::open(path)?);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    OnnxModel::from_bytes(bytes).context("standard input")
}

/// Whether a path stands for standard input or output.
pub(super) fn is_stream(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1"].iter().any(|stream| path == Path::new(stream))
}

/// The names that fit: a name as it is, and all that a pattern with `*`, `?` or `[…]` fits. A pattern that fits nothing is returned as a name,
/// which then does not exist.
fn matching(patterns: &[String], names: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for text in patterns {
        if names.contains(&text.as_str()) || !text.contains(['*', '?', '[']) {
            found.push(text.clone());
            continue;
        }
        let pattern = glob::Pattern::new(text).with_context(|| format!("'{text}' is no pattern"))?;
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
    fn patterns_stand_for_what_they_fit() {
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
