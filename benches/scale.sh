#!/usr/bin/env bash
# Time a node: generated families of 1,000 to 100,000 nodes, and the models given.
#
#     benches/scale.sh [MODEL ...]
#
# Each line has the nodes, the seconds that inference alone and the whole optimisation take, and both in nanoseconds a node.
set -euo pipefail

models=()
for model in "$@"; do
    models+=("$(realpath "$model")")
done
cd "$(dirname "$0")/.."
cargo bench --quiet --bench scale -- "${models[@]}"
