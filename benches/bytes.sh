#!/usr/bin/env bash
# How long a model takes to be written, beside the time its files take to be copied: whole processes, page cache warm, the durable rename
# included. Medians of runs in turn.
#
#   benches/bytes.sh [MEGABYTES] [RUNS] [MODEL ...]
#
# Generated are a model of plain weights, models whose weights are all changed (they take up a factor, are transposed, joined to wider ones,
# cast to float16, or computed of two of half the number), and one whose weights lie in a data file and stay there. More than 2000 megabytes
# lie in a data file in any case, and are then written to another. KINDS names the models that are wanted. Models that are named are measured
# as well. Where other programs run too, the ratio of processor times tells more. Needs python3 with onnx and numpy (PYTHON names it), and as
# much room as four times the megabytes beside DIRECTORY (a directory of its own beneath TMPDIR if that is not set). BINARY is the program
# that is measured.
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
element = TensorProto.FLOAT16 if kind == "cast" else TensorProto.FLOAT

def constant(name, array):
    constants.append(TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape, raw_data=array.tobytes()))
    return name

def node(operator, operands, result, **attributes):
    nodes.append(helper.make_node(operator, operands, [result], **attributes))
    return result

for layer in range(max(1, megabytes // 4)):
    # Different weights, lest equal ones be merged.
    weight[0, 0] = layer + 1
    name = constant(f"w{layer}", weight)
    if kind == "transposed":
        name = node("Transpose", [name], f"t{layer}", perm=[1, 0])
    if kind == "cast":
        name = node("Cast", [name], f"t{layer}", to=element)
    if kind == "computed":
        name = node("Sub", [name, constant(f"c{layer}", weight[:1])], f"t{layer}")
    if kind == "joined":
        # Two products of one operand.
        m = node("MatMul", [value, name], f"m{layer}")
        if layer % 2 == 0:
            first = m
            continue
        value = node("Mul", [node("Relu", [first], f"a{layer}"), node("Tanh", [m], f"b{layer}")], f"r{layer}")
        continue
    value = node("MatMul", [value, name], f"m{layer}")
    if kind == "scaled":
        factors = constant(f"s{layer}", random.uniform(0.5, 2, size).astype(np.float32))
        value = node("Mul", [value, factors], f"p{layer}")
    value = node("Relu", [value], f"r{layer}")
ends = [helper.make_tensor_value_info(name, element, ["n", size]) for name in ("x", value)]
graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
if kind == "external" or megabytes > 2000:  # More than a protobuf may have.
    onnx.save(model, target, save_as_external_data=True, location=os.path.basename(target) + ".weights")
else:
    with open(target, "wb") as file:
        file.write(model.SerializeToString())
PYTHON
}

# Seconds a command takes, and seconds of processor time.
seconds() {
    "$python" - "$@" <<'PYTHON'
import resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - begin},{used.ru_utime + used.ru_stime}")
PYTHON
}

# Kilobytes of memory of its own that folding a model takes, page cache left out: the most that was seen while it ran.
private() {
    "$python" - "$binary" "$@" -o "$room/out.onnx" <<'PYTHON'
import subprocess, sys, time
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
most = 0
while process.poll() is None:
    with open(f"/proc/{process.pid}/status") as status:
        most = max([most] + [int(line.split()[1]) for line in status if line.startswith("RssAnon:")])
    time.sleep(0.001)
print(most)
PYTHON
}

measure() {
    local model=$1 name=$2 folds=() copies=() run files=("$1") flags=()
    cat "$model" "$model".* >/dev/null 2>&1 || true
    if [ "$name" != external ] && [ -f "$model.weights" ]; then files+=("$model.weights") flags=(--external-data copy); fi
    mkdir -p "$room/copies"
    for ((run = 0; run <= runs; run++)); do
        local fold copy
        fold=$(seconds "$binary" "$model" -o "$(dirname "$model")/out.onnx" ${flags[@]+"${flags[@]}"})
        copy=$(seconds cp "${files[@]}" "$room/copies")
        # The first run of each warms up.
        if ((run > 0)); then folds+=("$fold") copies+=("$copy"); fi
    done
    rm -f "$(dirname "$model")"/out.onnx*
    "$python" - "$name" "$(cat "${files[@]}" | wc -c)" "$(private "$model" ${flags[@]+"${flags[@]}"})" "${folds[*]}" "${copies[*]}" <<'PYTHON'
import statistics, sys
name, size, private, *rest = sys.argv[1:]
folds, copies = ([[float(second) for second in run.split(",")] for run in text.split()] for text in rest)
median = lambda number, runs: statistics.median(run[number] for run in runs)
ratio = lambda number: statistics.median(a[number] / max(b[number], 0.001) for a, b in zip(folds, copies))
print(f"{name:<24} {int(size) / 2**20:>9.1f} {median(0, folds):>8.3f} {median(0, copies):>8.3f} {ratio(0):>7.2f}"
      f" {median(1, folds):>8.3f} {median(1, copies):>8.3f} {ratio(1):>7.2f} {int(private) / 1024:>9.1f}")
PYTHON
    rm -rf "$room"/out.onnx* "$room/copies"
}

printf '%-24s %9s %8s %8s %7s %8s %8s %7s %9s\n' "" "file MiB" "fold s" "cp s" "ratio" "cpu s" "cp cpu" "ratio" "own MiB"
for kind in ${KINDS:-plain scaled transposed joined cast computed external}; do
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
