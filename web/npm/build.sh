#!/usr/bin/env bash
# Builds the crate `web/wasm` and puts the module next to `index.js`. PROFILE=dev builds faster, for a larger and slower module.
set -euo pipefail
cd "$(dirname "$0")"

profile=${PROFILE:-release}
target=$(cd ../.. && pwd)/target
cargo build --manifest-path ../wasm/Cargo.toml --target wasm32-unknown-unknown --target-dir "$target" --profile "$profile"
folder=$([ "$profile" = dev ] && echo debug || echo "$profile")
cp ../../LICENSE-* .
cp "$target/wasm32-unknown-unknown/$folder/onnx_slice_fold_wasm.wasm" onnx-slice-fold.wasm
# Binaryen writes numbers in fewer bytes than the linker: a tenth of the module before compression, a hundredth after it.
if [ "$profile" = release ] && command -v wasm-opt >/dev/null; then
    wasm-opt --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals --enable-reference-types \
        --enable-multivalue onnx-slice-fold.wasm -o onnx-slice-fold.wasm
fi
