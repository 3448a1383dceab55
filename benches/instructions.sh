#!/usr/bin/env bash
# What a node costs where clocks cannot be trusted: instructions by stage, and lines of cache that are not there when they are asked for.
#
#   benches/instructions.sh [BINARY ...]
#
# Counts whole runs of each program on the generated chain and the transformer of benches/nodes.sh, under callgrind: the figures do not depend
# on what else the machine does. NODES is how many nodes (10000). Needs valgrind, and python3 with onnx and numpy (PYTHON names it).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
if [ $# = 0 ]; then set -- "$here/target/release/onnx-slice-fold"; fi
room=$(mktemp -d "${TMPDIR:-/tmp}/instructions.XXXXXX")
trap 'rm -rf "$room"' EXIT
nodes=${NODES:-10000}
python=${PYTHON:-python3}

# The models are those of the other benchmark.
KEEP="$room" NODES="$nodes" PYTHON="$python" "$here/benches/nodes.sh" > "$room/said"

# The inclusive cost of a function in callgrind's list.
of() { callgrind_annotate --inclusive=yes --threshold=100 "$1" | awk -v name="$2" 'index($0, name) && !found { gsub(",", "", $1); found = $1 } END { print found + 0 }'; }

printf '%-14s%-12s%14s%10s%10s%10s%10s%16s\n' '' program instructions 'a node' open fold save 'lines missed'
for kind in chain transformer; do
    model="$room/$kind.onnx"
    for binary in "$@"; do
        out="$room/calls"
        valgrind --tool=callgrind --callgrind-out-file="$out" --cache-sim=yes --LL=1048576,16,64 "$binary" "$model" -o "$room/out.onnx" -q 2> "$room/said"
        all=$(awk '/I +refs:/ { gsub(",", ""); print $NF }' "$room/said")
        missed=$(awk '/LLd misses:/ { gsub(",", ""); print $4 }' "$room/said")
        row=("$(basename "$binary")" "$all" "$((all / nodes))")
        for stage in OnnxModel::open OnnxModel::fold_watched OnnxModel::save_with; do
            row+=("$(($(of "$out" "$stage") / nodes))")
        done
        printf '%-14s%-12s%14s%10s%10s%10s%10s%16s\n' "$kind" "${row[@]}" "$((missed / nodes))"
    done
done
