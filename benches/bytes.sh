#!/usr/bin/env bash
# How long a model takes to be written, beside the time its files take to be copied: whole processes, page cache warm, the durable rename
# included. Medians of runs in turn.
#
#   benches/bytes.sh [MEGABYTES] [RUNS] [MODEL ...]
#
# Generated are a model of plain weights, one whose weights all take up a factor, and one whose weights lie in a data file and stay there.
# Models that are named are measured as well. Needs python3 with onnx and numpy (PYTHON names it), and as much room as four times the
# megabytes beside DIRECTORY (a directory of its own beneath TMPDIR if that is not set). BINARY is the program that is measured.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
megabytes=${1:-1024} runs=${2:-5}
shift $(($# < 2 ? $# : 2))
binary=${BINARY:-$here/target/release/onnx-slice-fold}
python=${PYTHON:-python3}
room=$(mktemp -d "${DIRECTORY:-${TMPDIR:-/tmp}}/bytes.XXXXXX")
trap 'rm -rf "$room"' EXIT

generate() {
    "$python" - "$1" "$megabytes" "$room/$1.onnx" <<'PYTHON'
import os, sys
import numpy as np, onnx
from onnx import TensorProto, helper

kind, megabytes, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
size = 1024  # A weight of 4 MiB.
random = np.random.default_rng(0)
weight = random.standard_normal((size, size), dtype=np.float32) * 0.02
constants, nodes, value = [], [], "x"

def constant(name, array):
    constants.append(TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape, raw_data=array.tobytes()))
    return name

for layer in range(max(1, megabytes // 4)):
    # Different weights, lest equal ones be merged.
    weight[0, 0] = layer + 1
    nodes.append(helper.make_node("MatMul", [value, constant(f"w{layer}", weight)], [f"m{layer}"]))
    value = f"m{layer}"
    if kind == "scaled":
        factors = constant(f"s{layer}", random.uniform(0.5, 2, size).astype(np.float32))
        nodes.append(helper.make_node("Mul", [value, factors], [f"p{layer}"]))
        value = f"p{layer}"
    nodes.append(helper.make_node("Relu", [value], [f"r{layer}"]))
    value = f"r{layer}"
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name in ("x", value)]
graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
if kind == "external":
    onnx.save(model, target, save_as_external_data=True, location=os.path.basename(target) + ".weights")
else:
    with open(target, "wb") as file:
        file.write(model.SerializeToString())
PYTHON
}

# Seconds a command takes.
seconds() {
    local begin=$EPOCHREALTIME
    "$@" >/dev/null
    "$python" -c "print($EPOCHREALTIME - $begin)"
}

# Kilobytes of memory of its own that folding a model takes, page cache left out: the most that was seen while it ran.
private() {
    local most=0 now
    "$binary" "$1" -o "$room/out.onnx" >/dev/null &
    local process=$!
    while now=$(awk '/^RssAnon:/ { print $2 }' "/proc/$process/status" 2>/dev/null) && [ -n "$now" ]; do
        if [ "$now" -gt "$most" ]; then most=$now; fi
        sleep 0.002
    done
    wait "$process"
    echo "$most"
}

measure() {
    local model=$1 name=$2 folds=() copies=() run
    cat "$model" "$model".* >/dev/null 2>&1 || true
    for ((run = 0; run <= runs; run++)); do
        local fold copy
        fold=$(seconds "$binary" "$model" -o "$(dirname "$model")/out.onnx")
        copy=$(seconds cp "$model" "$room/copy.onnx")
        # The first run of each warms up.
        if ((run > 0)); then folds+=("$fold") copies+=("$copy"); fi
    done
    rm -f "$(dirname "$model")"/out.onnx*
    "$python" - "$name" "$(stat -c %s "$model")" "$(private "$model")" "${folds[*]}" "${copies[*]}" <<'PYTHON'
import statistics, sys
name, size, private, *rest = sys.argv[1:]
folds, copies = ([float(second) for second in text.split()] for text in rest)
ratio = statistics.median(a / b for a, b in zip(folds, copies))
fold, copy = statistics.median(folds), statistics.median(copies)
print(f"{name:<24} {int(size) / 2**20:>9.1f} {fold:>8.3f} {copy:>8.3f} {ratio:>7.2f} {int(private) / 1024:>9.1f}")
PYTHON
    rm -f "$room"/out.onnx* "$room/copy.onnx"
}

printf '%-24s %9s %8s %8s %7s %9s\n' "" "file MiB" "fold s" "cp s" "ratio" "own MiB"
for kind in plain scaled external; do
    generate "$kind"
    measure "$room/$kind.onnx" "$kind"
    rm -f "$room/$kind.onnx"*
done
for model in "$@"; do
    cp "$model" "$room/given.onnx"
    for data in "$model".data "$model"_data; do
        if [ -f "$data" ]; then cp "$data" "$room/$(basename "$data")"; fi
    done
    measure "$room/given.onnx" "$(basename "$model")"
done
