#!/usr/bin/env bash
# Builds the program twice, from the committed source, in two directories, and compares the bytes: scripts/reproducible.sh [PROFILE] The
# program contains no paths, so the same toolchain and lock file give the printed digest on every machine.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${1:-release}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
home=${CARGO_HOME:-$HOME/.cargo}
rustc -vV
for place in one another/place/further/down; do
    here="$folder/$place"
    mkdir -p "$here"
    git archive HEAD | tar x -C "$here"
    (
        cd "$here"
        export CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$here/target" SOURCE_DATE_EPOCH=0
        export RUSTFLAGS="--remap-path-prefix=$here=/source --remap-path-prefix=$home=/cargo"
        export CFLAGS="-ffile-prefix-map=$here=/source -ffile-prefix-map=$home=/cargo"
        cargo build --locked --quiet --profile "$profile"
    )
    cp "$here/target/$([ "$profile" = dev ] && echo debug || echo "$profile")/onnx-slice-fold" "$folder/${place%%/*}.program"
    rm -rf "$here"
done
sha256sum "$folder/one.program" "$folder/another.program" | sed "s#$folder/##"
cmp "$folder/one.program" "$folder/another.program" && echo "the same bytes"
