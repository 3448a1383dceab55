//! The flags one by one. docs/migration.md is the same table for users, and a test runs every line of it.

use super::Becomes::{Flag, Flags, Nothing, Refused, Said as Reads};
use super::{Becomes, Said, Takes, Word};

const fn word(flag: &'static str, also: &'static [&'static str], takes: Takes, becomes: Becomes) -> Word {
    Word { flag, also, takes, becomes }
}

/// Why nothing is compared by running models.
pub(in crate::cli) const NO_RUNTIME: &str =
    "this program runs no models; scripts/compare_onnxruntime.py compares results in ONNX Runtime";
const ALWAYS: &str = "it is always done";
const TYPES_STAY: &str = "element types stay as the model has them";
const OTHER_FORMATS: &str = "only ONNX models are written";
const SHAPES: &str = "shapes are always inferred, and by this program itself: everything else rests on them (--shapes keep does not write new ones)";
const UNTIL_SETTLED: &str = "passes run until nothing changes";
const NO_LOG: &str = "-q and -v say how much is told, and a log is what is redirected";

/// Every flag that is put into other words.
#[rustfmt::skip]
pub(in crate::cli) const WORDS: &[Word] = &[
    // Ours that take several values.
    word("--overwrite-input-shape", &["--input-shape", "--input-shapes", "--override-input-shapes", "--override-inputs"], Takes::Many, Flag("--overwrite-input-shape")),
    word("--dim", &[], Takes::Many, Flag("--dim")),
    word("--skip", &[], Takes::Many, Flag("--skip")),
    word("--only", &[], Takes::Many, Flag("--only")),
    word("--inputs", &[], Takes::Many, Reads(inputs)),
    word("--outputs", &[], Takes::Many, Reads(inputs)),
    word("--unused-output", &["--exclude-outputs"], Takes::Many, Flag("--unused-output")),
    // What is left out.
    word("--skip-optimization", &["--skip-optimizer"], Takes::Any, Reads(skipped)),
    word("--skip-optimizations", &["--skip-fusion-patterns"], Takes::Many, Reads(skipped)),
    word("--skip-constant-folding", &[], Takes::None, Flags(&["--skip=fold-constants", "--skip=fold-results", "--skip=fold-containers"])),
    word("--skip-fuse-bn", &[], Takes::None, Flags(&["--skip=affine-after-weights", "--skip=affine-before-weights"])),
    word("--no-large-tensor", &[], Takes::Perhaps, Reads(large)),
    word("--size-threshold", &["--fold-size-threshold"], Takes::One, Flag("--fold-size-threshold")),
    word("--no-fold-shapes", &[], Takes::None, Refused("sizes that are known are known everywhere; --stop-after 0 leaves every node and writes the shapes")),
    word("--save-external-data", &["--external-data-path"], Takes::Perhaps, Flags(&["--save-as-external-data"])),
    word("--external-data-size-threshold", &[], Takes::One, Flag("--external-data-threshold")),
    word("--no-save-all-tensors-to-one-file", &[], Takes::None, Refused("tensors go to one data file")),
    // What is told.
    word("--verbose", &[], Takes::None, Flag("--verbose")),
    word("--silent", &[], Takes::None, Flag("--quiet")),
    word("--profile", &[], Takes::Perhaps, Flags(&["--timings"])),
    word("--inspect", &[], Takes::None, Flags(&["--output=/dev/null", "--stop-after=0"])),
    word("--list-default-optimizers", &["--list-other-optimizers"], Takes::None, Refused("`onnx-slice-fold rules` lists the rules")),
    word("--graph-diff", &["--node-reduction-plot"], Takes::Perhaps, Nothing("`onnx-slice-fold diff` tells what is different in two models")),
    word("--dump-to-disk", &[], Takes::None, Nothing("`onnx-slice-fold show` and --report tell what is in a model and what became of it")),
    word("--verbosity", &[], Takes::Many, Nothing(NO_LOG)),
    word("--log-format", &[], Takes::Many, Nothing(NO_LOG)),
    word("--log-file", &[], Takes::One, Nothing(NO_LOG)),
    // What is done anyway.
    word("--enable-fuse-bn", &[], Takes::None, Nothing(ALWAYS)),
    word("--enable-optimization", &[], Takes::Many, Nothing("every rule is used unless --skip or --only says otherwise")),
    word("--include-subgraph", &[], Takes::None, Nothing(ALWAYS)),
    word("--dynamic-input-shape", &[], Takes::None, Nothing("sizes that are open stay open")),
    word("--inline-functions", &[], Takes::None, Nothing("calls become the function's body where that leaves fewer nodes")),
    word("--mutable-initializer", &[], Takes::None, Nothing("an initializer that is an input is always taken as an input with a default")),
    word("--fold-constants", &[], Takes::None, Nothing(ALWAYS)),
    word("--cleanup", &[], Takes::None, Nothing(ALWAYS)),
    word("--toposort", &[], Takes::None, Nothing(ALWAYS)),
    word("--num-passes", &["--num-const-fold-passes"], Takes::One, Nothing(UNTIL_SETTLED)),
    word("--no-per-pass-shape-inference", &[], Takes::None, Nothing(UNTIL_SETTLED)),
    word("--partitioning", &[], Takes::One, Nothing("a node that cannot be folded keeps no other from being folded")),
    word("--skip-schema-import", &[], Takes::None, Nothing("operators that are not known are left as they are")),
    word("--custom-lib", &[], Takes::One, Nothing("operators that are not known are left as they are; --strided-slice registers strided slices")),
    // Checks by running the model.
    word("--check-rtol", &["--check-atol"], Takes::One, Nothing(NO_RUNTIME)),
    word("--model-check", &["--certify", "--no-certify"], Takes::None, Nothing(NO_RUNTIME)),
    word("--test-input-shape", &["--input-data-path", "--model-check-inputs", "--val-range", "--load-inputs", "--load-input-data"], Takes::Many, Nothing(NO_RUNTIME)),
    word("--input-fill", &["--seed", "--iterations", "--iters", "--data-loader-backend-module", "--data-loader-script"], Takes::One, Nothing(NO_RUNTIME)),
    word("--providers", &[], Takes::Many, Nothing("constants are computed by this program's own evaluator")),
    word("--cuda", &[], Takes::None, Nothing("constants are computed by this program's own evaluator")),
    // Inference.
    word("--skip-shape-inference", &["--no-shape-infer", "--no-shape-inference", "--force-fallback-shape-inference", "--no-onnxruntime-shape-inference"], Takes::None, Nothing(SHAPES)),
    // What is not done.
    word("--initializers-as-non-constants", &[], Takes::None, Refused("initializers are constants; leave rules out that change weights with --skip, for example affine-after-weights")),
    word("--enable-onnxruntime-optimization", &[], Takes::None, Refused("ONNX Runtime optimizes the model itself when it loads it")),
    word("--ort-profile", &["--merge-ort-profile"], Takes::Perhaps, Refused("this program runs no models")),
    word("--dtype", &[], Takes::One, Refused(TYPES_STAY)),
    word("--fp-to-fp16", &["--fp16-quantize", "--bf16-quantize", "--fp8-quantize"], Takes::None, Refused(TYPES_STAY)),
    word("--dynamic-quantize", &["--dynamic-quantize-matmul-integer-to-float", "--ternary-quantize", "--weight-only-quantize", "--weight-only-quantize-int4", "--weight-only-quantize-int16", "--weight-only-quantize-int8-block", "--static-quantize", "--static-quantize-int16", "--qoperator-quantize"], Takes::None, Refused("models are not quantized; quantized models stay as they are")),
    word("--emit-mlir", &["--emit-coreml", "--emit-tflite"], Takes::Perhaps, Refused(OTHER_FORMATS)),
    word("--external-data-dir", &["--load-external-data", "--ext"], Takes::One, Refused("external data is read beside the model only; put the model there")),
    word("--ignore-external-data", &[], Takes::None, Refused("a model is written with its weights or not at all")),
    word("--outputs-by-type", &[], Takes::Many, Refused("name the values with --outputs")),
    word("--set-unbounded-dds-upper-bound", &[], Takes::Many, Refused("nodes are not added; --dim and --assume say what is known of sizes")),
];

/// The last section of the help.
pub(in crate::cli) const HELP: &str = "\
In the words of other tools
  IN OUT                        as onnxsim and OnnxSlim have it; as well as -o
  --input-shape, --input-shapes, --override-input-shapes, --override-inputs
                                --overwrite-input-shape
  --skip-optimization [NAME]…   --no-rules, or --skip the rules that correspond
  --skip-optimizations NAME…, --skip-fusion-patterns NAME…
                                --skip the rules that correspond
  --skip-constant-folding       --skip fold-constants and its like
  --skip-fuse-bn                --skip affine-after-weights, affine-before-weights
  --no-large-tensor [SIZE], --size-threshold SIZE
                                --fold-size-threshold (1KB if nothing is given)
  --inputs NAME[:TYPE]…, --outputs NAME[:TYPE]…
                                the part between these values; names may be patterns (conv_*); types stay
  --unused-output, --exclude-outputs NAME…
                                --unused-output
  --inspect                     -o /dev/null --stop-after 0
  --profile, --silent           --timings, --quiet
Flags of theirs that have nothing to do here are accepted and told of. What asks for something that is not done is refused with the
reason. docs/migration.md has every flag.

Exit codes: 0 done, 1 bad input or a model that what is asked for does not fit, 2 wrong usage.";

/// `--inputs`, `--outputs`: a type behind a name, as OnnxSlim has it, changes nothing.
fn inputs(flag: &str, values: &[String]) -> Result<Said, String> {
    let mut said = Said::default();
    for value in values {
        let name = match value.rsplit_once(':') {
            Some((name, ty @ ("fp16" | "fp32" | "int32"))) => {
                said.notes.push(format!("the type '{ty}' of '{name}' has nothing to do here: {TYPES_STAY}"));
                name
            }
            _ => value,
        };
        said.flags.push(format!("{flag}={name}"));
    }
    Ok(said)
}

/// `--no-large-tensor`, with a threshold or without.
fn large(_: &str, values: &[String]) -> Result<Said, String> {
    let size = values.first().map_or("1KB", String::as_str);
    Ok(Said { flags: vec![format!("--fold-size-threshold={size}")], notes: Vec::new() })
}

/// What rules correspond to the names that other tools have for theirs.
fn skipped(_: &str, values: &[String]) -> Result<Said, String> {
    let mut said = Said::default();
    if values.is_empty() {
        said.flags.push("--no-rules".into());
    }
    for value in values {
        match OPTIMIZERS.iter().find(|(theirs, _)| theirs.contains(&value.as_str())) {
            Some((_, ["--no-rules"])) => said.flags.push("--no-rules".into()),
            Some((_, ours)) => said.flags.extend(ours.iter().map(|ours| format!("--skip={ours}"))),
            // A name of ours, or a wrong one, which is told of later.
            None if value.contains('-') => said.flags.push(format!("--skip={value}")),
            None => said
                .notes
                .push(format!("'{value}' has nothing to do here: no rule corresponds to it; `rules` lists them")),
        }
    }
    Ok(said)
}

/// Names of optimizers of onnxsim and OnnxSlim, and the rules that do the like.
#[rustfmt::skip]
const OPTIMIZERS: &[(&[&str], &[&str])] = &[
    (&["constant_folding"], &["fold-constants", "fold-results", "fold-containers"]),
    (&["graph_fusion"], &["--no-rules"]),
    (&["dead_node_elimination", "eliminate_deadend", "eliminate_unused_initializer"], &["dead-code"]),
    (&["subexpression_elimination", "weight_tying", "eliminate_common_subexpression", "eliminate_duplicate_initializer"], &["common-subexpression"]),
    (&["eliminate_identity"], &["identity"]),
    (&["eliminate_nop_cast"], &["cast-same-type"]),
    (&["eliminate_nop_dropout"], &["dropout-inference"]),
    (&["eliminate_nop_flatten", "eliminate_nop_reshape", "eliminate_nop_expand"], &["same-shape"]),
    (&["eliminate_consecutive_idempotent_ops"], &["idempotent"]),
    (&["eliminate_if_with_const_cond"], &["decided-if"]),
    (&["eliminate_nop_pad"], &["pad-nothing"]),
    (&["eliminate_nop_concat"], &["single-concat"]),
    (&["eliminate_nop_split"], &["single-split"]),
    (&["eliminate_nop_transpose"], &["transpose-nothing"]),
    (&["eliminate_nop_with_unit"], &["neutral-element"]),
    (&["eliminate_shape_gather", "eliminate_slice_after_shape", "eliminate_shape_op"], &["size-chain", "shape-read-off"]),
    (&["fuse_bn_into_conv", "fuse_add_bias_into_conv", "FusionConvBN", "FusionConvTransposeBN", "FusionConvAdd", "FusionConvTransposeAdd", "FusionConvMul", "FusionConvTransposeMul", "FusionGemmMul", "FusionGemmAdd"], &["affine-after-weights", "affine-before-weights"]),
    (&["fuse_consecutive_concats", "EliminationConcat"], &["concat-concat"]),
    (&["fuse_consecutive_squeezes", "fuse_consecutive_squeeze_unsqueeze", "fuse_consecutive_unsqueezes", "EliminationReshape", "EliminationReshapeAs", "EliminationUnsqueeze"], &["reshape-reshape"]),
    (&["fuse_consecutive_reduce_unsqueeze", "FusionReduce"], &["reduction-keeping-axes"]),
    (&["fuse_consecutive_transposes", "EliminationTranspose"], &["transpose-transpose"]),
    (&["EliminationTransposeViewTranspose"], &["transpose-around-reshape"]),
    (&["EliminationTransposeAsReshape"], &["transpose-as-reshape"]),
    (&["fuse_consecutive_slices", "EliminationSlice"], &["slice-slice"]),
    (&["fuse_matmul_add_bias_into_gemm", "FusionGemm"], &["matmul-add-to-gemm"]),
    (&["fuse_transpose_into_gemm"], &["transpose-into-gemm"]),
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
