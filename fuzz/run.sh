#!/usr/bin/env bash
# Runs each target for some seconds, guided by coverage: fuzz/run.sh [SECONDS] [TARGET ...]
# Seeds are the models and fixtures of the repository; what is found lies under fuzz/artifacts.
#
# The counters that libFuzzer reads are put in by a pass of LLVM that every toolchain has, so this takes neither a nightly one nor
# cargo-fuzz. There is no address sanitizer: unsafe code has one home, and that is not fuzzed but tested by faults.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(decode text dim external_data pipeline fold_text graphs)

coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
# With a target named, build scripts and macros are built without the counters.
RUSTFLAGS="--cfg fuzzing $coverage" cargo build --release --manifest-path fuzz/Cargo.toml --target "$host"

seed() {
    mkdir -p "fuzz/corpus/$1"
    find "$2" -name "$3" -size -32k -exec cp {} "fuzz/corpus/$1/" \;
}

for target in "${targets[@]}"; do
    case $target in
        decode | pipeline) seed "$target" models '*.onnx'; words=wire ;;
        external_data) seed "$target" models '*.onnx'; words=wire ;;
        text | fold_text) seed "$target" tests/rules '*.onnxtxt'; words=text ;;
        dim) mkdir -p fuzz/corpus/dim; printf 'max(0, floor((s + 3)/4) - Mod(7*s, 8)*min(a, b))' > fuzz/corpus/dim/seed; words=dim ;;
        *) mkdir -p "fuzz/corpus/$target"; head -c 96 Cargo.lock > "fuzz/corpus/$target/seed"; words=text ;;
    esac
    mkdir -p "fuzz/artifacts/$target"
    "fuzz/target/$host/release/$target" "fuzz/corpus/$target" -artifact_prefix="fuzz/artifacts/$target/" \
        -max_total_time="$seconds" -max_len=32768 -rss_limit_mb=2048 -timeout=20 \
        -dict="fuzz/dictionaries/$words.dict" -print_final_stats=1
done
