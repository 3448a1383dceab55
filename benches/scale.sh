#!/usr/bin/env bash
# What large models cost: bytes beside `cp`, nodes by themselves, and where the time goes.
#
#     benches/scale.sh [MODEL ...]
#
# Prints, for generated models and those given: whole processes beside `cp` with the memory of their own (`bytes.sh`, MEGABYTES of weights,
# 512 if that is not set), whole processes on graphs of 10 to a million nodes (`nodes.sh`), and the time a node that inference alone and the
# whole optimisation take in the library (`scale.rs`). BINARY is the program that is measured.
set -euo pipefail

models=()
for model in "$@"; do
    models+=("$(realpath "$model")")
done
cd "$(dirname "$0")/.."
binary=${BINARY:-target/release/onnx-slice-fold}
if [ -z "${BINARY:-}" ]; then cargo build --release --quiet; fi
BINARY=$binary benches/bytes.sh "${MEGABYTES:-512}" "${RUNS:-5}" "${models[@]}"
benches/nodes.sh "$binary"
cargo bench --quiet --bench scale -- "${models[@]}"
