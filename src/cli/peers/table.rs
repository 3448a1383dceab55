//! The flags of other tools. docs/migration.md is the same table for users, and a test runs every line of it.

use super::Becomes::{Flag, Flags, Nothing, Refused, Said as Reads};
use super::{Becomes, Said, Takes, Word};

const fn word(flag: &'static str, also: &'static [&'static str], takes: Takes, becomes: Becomes) -> Word {
    Word { flag, also, takes, becomes }
}

const ALWAYS: &str = "the program always does this";
const TYPES_STAY: &str = "the program does not change element types; quantize or convert the model with another tool, before or after folding";
const OTHER_FORMATS: &str = "the program only writes ONNX models; convert the result with the other format's own tool";
const SHAPES: &str = "the program always infers shapes itself, because rewrites rely on them; --shapes keep omits new shapes from the result";
const UNTIL_SETTLED: &str = "the passes repeat until no rule applies";
const NO_LOG: &str = "-q and -v select the amount of output; for a log file, redirect standard error";
const OWN_EVALUATOR: &str = "the program computes constants with its own evaluator on the CPU";
const UNKNOWN_KEPT: &str = "the program keeps nodes with unknown operators and needs no definition of them";
const OWN_INPUTS: &str = "--check generates its own inputs; pass further inputs with --check-input FILE.npz";
const OWN_TOLERANCE: &str = "--check derives its tolerance from the element type; --exact compares bit for bit";

/// All flags with a translation. A name that ends with `*` covers all flags with this prefix.
#[rustfmt::skip]
pub(in crate::cli) const WORDS: &[Word] = &[
    // Flags of this program that accept several values.
    word("--overwrite-input-shape", &["--input-shape", "--input-shapes", "--override-input-shapes", "--override-inputs"], Takes::Many, Flag("--overwrite-input-shape")),
    word("--dim", &[], Takes::Many, Reads(dims)),
    word("--skip", &[], Takes::Many, Reads(names)),
    word("--avoid", &[], Takes::Many, Reads(names)),
    word("--only", &[], Takes::Many, Reads(names)),
    word("--inputs", &[], Takes::Many, Reads(inputs)),
    word("--outputs", &[], Takes::Many, Reads(inputs)),
    word("--unused-output", &["--exclude-outputs"], Takes::Many, Flag("--unused-output")),
    // Selection of rules and passes.
    word("--skip-optimization", &["--skip-optimizer"], Takes::Any, Reads(skipped)),
    word("--skip-optimizations", &["--skip-fusion-patterns"], Takes::Many, Reads(skipped)),
    word("--skip-constant-folding", &[], Takes::None, Flags(&["--skip=fold-constants", "--skip=fold-results", "--skip=fold-containers"])),
    word("--skip-fuse-bn", &[], Takes::None, Flag("--skip=affine-after-weights")),
    word("--no-large-tensor", &[], Takes::Perhaps, Reads(large)),
    word("--size-threshold", &["--fold-size-threshold"], Takes::One, Flag("--fold-size-threshold")),
    word("--no-fold-shapes", &[], Takes::None, Refused("the program always folds known shapes; --stop-after 0 keeps every node, and only writes shapes")),
    word("--target-opset", &[], Takes::One, Flag("--opset")),
    // Files.
    word("--save-external-data", &["--external-data-path"], Takes::Perhaps, Flags(&["--save-as-external-data"])),
    word("--external-data-size-threshold", &[], Takes::One, Flag("--external-data-threshold")),
    word("--no-save-all-tensors-to-one-file", &[], Takes::None, Refused("the program writes all tensors to one data file")),
    word("--external-data-dir", &["--load-external-data", "--ext"], Takes::One, Flag("--external-data-root")),
    word("--ignore-external-data", &[], Takes::None, Refused("the program reads external data that exists; without the files, it folds everything that needs no weights")),
    // Output.
    word("--verbose", &[], Takes::None, Flag("--verbose")),
    word("--silent", &[], Takes::None, Flag("--quiet")),
    word("--profile", &[], Takes::Perhaps, Flags(&["--timings"])),
    word("--list-default-optimizers", &["--list-other-optimizers"], Takes::None, Refused("`onnx-slice-fold rules` lists the rules")),
    word("--graph-diff", &["--node-reduction-plot"], Takes::Perhaps, Nothing("`onnx-slice-fold diff A B` prints the differences of two models")),
    word("--dump-to-disk", &[], Takes::None, Nothing("`onnx-slice-fold show` prints a model, and --report json what changed")),
    word("--verbosity", &[], Takes::Many, Nothing(NO_LOG)),
    word("--log-format", &[], Takes::Many, Nothing(NO_LOG)),
    word("--log-file", &[], Takes::One, Nothing(NO_LOG)),
    // Default behaviour.
    word("--enable-fuse-bn", &[], Takes::None, Nothing(ALWAYS)),
    word("--enable-optimization", &[], Takes::Many, Nothing("the program uses every rule that --skip and --only do not disable")),
    word("--include-subgraph", &[], Takes::None, Nothing(ALWAYS)),
    word("--dynamic-input-shape", &[], Takes::None, Nothing("dims without a number are always dynamic")),
    word("--inline-functions", &[], Takes::None, Nothing("the program inlines functions where this reduces the node count")),
    word("--mutable-initializer", &[], Takes::None, Nothing("an initializer that is also an input is always an input with a default")),
    word("--fold-constants", &[], Takes::None, Nothing(ALWAYS)),
    word("--cleanup", &[], Takes::None, Nothing(ALWAYS)),
    word("--toposort", &[], Takes::None, Nothing(ALWAYS)),
    word("--num-passes", &["--num-const-fold-passes"], Takes::One, Nothing(UNTIL_SETTLED)),
    word("--no-per-pass-shape-inference", &[], Takes::None, Nothing(UNTIL_SETTLED)),
    word("--partitioning", &[], Takes::One, Nothing("a node that cannot be folded does not prevent the folding of other nodes")),
    word("--skip-schema-import", &[], Takes::None, Nothing(UNKNOWN_KEPT)),
    word("--custom-lib", &[], Takes::One, Nothing(UNKNOWN_KEPT)),
    word("--providers", &[], Takes::Many, Nothing(OWN_EVALUATOR)),
    word("--cuda", &[], Takes::None, Nothing(OWN_EVALUATOR)),
    word("--skip-shape-inference", &["--no-shape-infer", "--no-shape-inference", "--force-fallback-shape-inference", "--no-onnxruntime-shape-inference"], Takes::None, Nothing(SHAPES)),
    // Comparison of original and result.
    word("--model-check", &["--certify"], Takes::None, Flags(&["--check"])),
    word("--no-certify", &[], Takes::None, Nothing("the program only compares original and result with --check")),
    word("--check-rtol", &["--check-atol"], Takes::One, Nothing(OWN_TOLERANCE)),
    word("--test-input-shape", &["--input-data-path", "--model-check-inputs", "--val-range", "--load-inputs", "--load-input-data"], Takes::Many, Nothing(OWN_INPUTS)),
    word("--input-fill", &["--seed", "--iterations", "--iters", "--data-loader-backend-module", "--data-loader-script"], Takes::One, Nothing(OWN_INPUTS)),
    // Refused.
    word("--initializers-as-non-constants", &[], Takes::None, Refused("initializers are constants; --skip disables the rules that change weights, for example affine-after-weights")),
    word("--enable-onnxruntime-optimization", &[], Takes::None, Refused("ONNX Runtime optimizes the model itself when it creates a session")),
    word("--ort-profile", &["--merge-ort-profile"], Takes::Perhaps, Refused("the program does not use ONNX Runtime")),
    word("--dtype", &[], Takes::One, Refused(TYPES_STAY)),
    word("--fp-to-fp16", &["--fp16-quantize", "--bf16-quantize", "--fp8-quantize"], Takes::None, Refused(TYPES_STAY)),
    word("--fp8-format", &[], Takes::One, Refused(TYPES_STAY)),
    word("--dynamic-quantize*", &["--ternary-quantize", "--weight-only-quantize*", "--static-quantize*", "--qoperator-quantize*"], Takes::None, Refused(TYPES_STAY)),
    word("--calibration-*", &[], Takes::One, Refused(TYPES_STAY)),
    word("--emit-mlir", &["--emit-coreml", "--emit-tflite"], Takes::Perhaps, Refused(OTHER_FORMATS)),
    word("--coreml-*", &["--tflite-*", "--mlir-target", "--onnx-mlir"], Takes::Perhaps, Refused(OTHER_FORMATS)),
    word("--outputs-by-type", &[], Takes::Many, Refused("pass the names of the values to --outputs")),
    word("--set-unbounded-dds-upper-bound", &[], Takes::Many, Refused("the program does not add nodes that limit dims; give bounds with --dim and --assume")),
];

/// The last section of the help.
pub(in crate::cli) const HELP: &str = "\
Flags of other tools
  IN OUT [CHECKS]               as in onnxsim and OnnxSlim; CHECKS is --check
  surgeon sanitize IN -o OUT    as in polygraphy
  --input-shape, --input-shapes, --override-input-shapes, --override-inputs
                                --overwrite-input-shape
  --target-opset VERSION        --opset
  --skip-optimization [NAME]…   --no-rules, or --skip with the corresponding rules
  --skip-optimizations NAME…, --skip-fusion-patterns NAME…
                                --skip with the corresponding rules
  --skip-constant-folding       --skip fold-constants,fold-results,fold-containers
  --skip-fuse-bn                --skip affine-after-weights
  --no-large-tensor [SIZE], --size-threshold SIZE
                                --fold-size-threshold (default 1KB)
  --inputs NAME[:TYPE]…, --outputs NAME[:TYPE]…
                                extract the part of the model between these values; accepts patterns (conv_*)
  --unused-output, --exclude-outputs NAME…
                                --unused-output
  --model-check, --certify      --check
  MODEL... --inspect            inspect MODEL...
  --profile, --silent           --timings, --quiet
The program ignores flags that have no meaning here, and prints a note. It refuses flags that request a missing feature, and prints the reason.
docs/migration.md lists all flags of these tools.

Exit codes
  0  success
  1  the model is invalid or contradicts the options
  2  the command line is invalid
  3  --check found a difference; no result was written
  4  nodes with constructs that --avoid names remain; the result was written";

/// Reads `--dim`: one or more sizes, separated by commas (`batch=1,seq=128`). A comma inside a relation does not separate.
fn dims(flag: &str, values: &[String]) -> Result<Said, String> {
    let mut said = Said::default();
    for value in values {
        let parts: Vec<&str> = value.split(',').map(str::trim).collect();
        if parts.len() > 1 && parts.iter().all(|part| part.contains('=')) {
            said.flags.extend(parts.iter().map(|part| format!("{flag}={part}")));
        } else {
            said.flags.push(format!("{flag}={value}"));
        }
    }
    Ok(said)
}

/// Reads names that may be separated by commas (`--skip identity,movement`).
fn names(flag: &str, values: &[String]) -> Result<Said, String> {
    let names = values.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty());
    Ok(Said { flags: names.map(|name| format!("{flag}={name}")).collect(), notes: Vec::new() })
}

/// Reads `--inputs` and `--outputs`. OnnxSlim allows a type after a name; the program ignores it.
fn inputs(flag: &str, values: &[String]) -> Result<Said, String> {
    let mut said = Said::default();
    for value in values {
        let name = match value.rsplit_once(':') {
            Some((name, ty @ ("fp16" | "fp32" | "int32"))) => {
                said.notes.push(format!("ignored the type '{ty}' of '{name}': {TYPES_STAY}"));
                name
            }
            _ => value,
        };
        said.flags.push(format!("{flag}={name}"));
    }
    Ok(said)
}

/// Reads `--no-large-tensor` with its optional threshold.
fn large(_: &str, values: &[String]) -> Result<Said, String> {
    let size = values.first().map_or("1KB", String::as_str);
    Ok(Said { flags: vec![format!("--fold-size-threshold={size}")], notes: Vec::new() })
}

/// Reads other tools' names of optimizers, and disables the corresponding rules.
fn skipped(_: &str, values: &[String]) -> Result<Said, String> {
    let mut said = Said::default();
    if values.is_empty() {
        said.flags.push("--no-rules".into());
    }
    for value in values {
        match OPTIMIZERS.iter().find(|(theirs, _)| theirs.contains(&value.as_str())) {
            Some((_, ["--no-rules"])) => said.flags.push("--no-rules".into()),
            Some((_, ours)) => said.flags.extend(ours.iter().map(|ours| format!("--skip={ours}"))),
            // A name of this program, or an unknown name, which causes an error later.
            None if value.contains('-') => said.flags.push(format!("--skip={value}")),
            None => said
                .notes
                .push(format!("ignored '{value}': no rule corresponds to it; `onnx-slice-fold rules` lists the rules")),
        }
    }
    Ok(said)
}

/// Optimizers of onnxsim and OnnxSlim, and the corresponding rules.
#[rustfmt::skip]
const OPTIMIZERS: &[(&[&str], &[&str])] = &[
    (&["constant_folding"], &["fold-constants", "fold-results", "fold-containers"]),
    (&["graph_fusion"], &["--no-rules"]),
    (&["dead_node_elimination", "eliminate_deadend", "eliminate_unused_initializer"], &["dead-code"]),
    (&["subexpression_elimination", "weight_tying", "eliminate_common_subexpression", "eliminate_duplicate_initializer"], &["common-subexpression"]),
    (&["eliminate_identity", "eliminate_nop_dropout", "eliminate_nop_pad", "eliminate_nop_split", "eliminate_nop_transpose"], &["identity"]),
    (&["eliminate_nop_cast"], &["cast-same-type"]),
    (&["eliminate_nop_flatten", "eliminate_nop_reshape", "eliminate_nop_expand"], &["same-shape"]),
    (&["eliminate_if_with_const_cond"], &["decided-if"]),
    (&["eliminate_nop_concat"], &["single-concat"]),
    (&["eliminate_nop_with_unit"], &["neutral-element"]),
    (&["eliminate_shape_gather", "eliminate_slice_after_shape", "eliminate_shape_op"], &["size-chain", "shape-read-off"]),
    (&["fuse_bn_into_conv", "fuse_add_bias_into_conv", "FusionConvBN", "FusionConvTransposeBN", "FusionConvAdd", "FusionConvTransposeAdd", "FusionConvMul", "FusionConvTransposeMul", "FusionGemmMul", "FusionGemmAdd"], &["affine-after-weights"]),
    (&["fuse_consecutive_concats", "EliminationConcat"], &["movement"]),
    (&["fuse_consecutive_squeezes", "fuse_consecutive_squeeze_unsqueeze", "fuse_consecutive_unsqueezes", "EliminationReshape", "EliminationReshapeAs", "EliminationUnsqueeze"], &["movement"]),
    (&["fuse_consecutive_transposes", "EliminationTranspose"], &["movement"]),
    (&["EliminationTransposeAsReshape"], &["movement"]),
    (&["fuse_consecutive_slices", "EliminationSlice"], &["movement"]),
    (&["fuse_matmul_add_bias_into_gemm", "FusionGemm"], &["matmul-add-to-gemm"]),
    (&["fuse_pad_into_conv", "fuse_pad_into_pool", "FusionPadConv"], &["pad-into-window"]),
    (&["fuse_qkv"], &["parallel-weights"]),
    (&["fuse_concat_into_reshape", "FusionConcatReshape"], &["reshape-to-constant"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_correspond_exist() {
        for (_, ours) in OPTIMIZERS {
            for ours in ours.iter().filter(|ours| !ours.starts_with("--")) {
                let is_pass = ours.starts_with("fold-") || *ours == "dead-code";
                assert!(is_pass || onnx_slice_fold::rule_text(ours).is_ok(), "{ours}");
            }
        }
    }
}
