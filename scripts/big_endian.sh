#!/usr/bin/env bash
# Checks that a big-endian machine writes the same files: scripts/big_endian.sh [FOLDER ...]
#
# Builds the program for s390x and for this machine, folds every model of the folders (`models` if none is named) with both, by default
# and with --exact, and compares the bytes. Needs a linker for s390x and its emulator: gcc-s390x-linux-gnu and qemu-user on Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

target=s390x-unknown-linux-gnu
compiler=s390x-linux-gnu-gcc
emulator="qemu-s390x -L /usr/s390x-linux-gnu"
for tool in "$compiler" "${emulator%% *}"; do
    command -v "$tool" >/dev/null || { echo "$0: there is no $tool: install gcc-s390x-linux-gnu and qemu-user." >&2; exit 1; }
done
rustup target add "$target"
build=${CARGO_TARGET_DIR:-target}
cargo build
CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=$compiler CC_s390x_unknown_linux_gnu=$compiler cargo build --target "$target"

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
same=0
differ=0
while IFS= read -r model; do
    for mode in --no-stamp --exact; do
        code=0
        "$build/debug/onnx-slice-fold" "$model" -o "$room/here.onnx" --quiet --no-stamp "$mode" >/dev/null 2>&1 || code=$?
        other=0
        $emulator "$build/$target/debug/onnx-slice-fold" "$model" -o "$room/there.onnx" --quiet --no-stamp "$mode" >/dev/null 2>&1 || other=$?
        if [ "$code" = "$other" ] && { [ "$code" != 0 ] || cmp -s "$room/here.onnx" "$room/there.onnx"; }; then
            same=$((same + 1))
        else
            differ=$((differ + 1))
            echo "differs: $model $mode"
        fi
    done
done < <(find "${@:-models}" -name '*.onnx' | sort)
echo "$same the same, $differ differ"
[ "$differ" = 0 ] && [ "$same" != 0 ]
