#!/usr/bin/env bash
# Builds the crate `web/wasm` and writes the module next to `index.js`, and the help of the native program to `help/`, from which the program in Node
# reads its flags. PROFILE=dev builds faster, for a larger and slower module. ONNX_SLICE_FOLD names the native program; without one, cargo builds it.
set -euo pipefail
cd "$(dirname "$0")"

profile=${PROFILE:-release}
target=$(cd ../.. && pwd)/target
# Fewer calls are inlined than opt-level "s" inlines: the compressed module is 1 % smaller, and folding takes 4 % longer.
RUSTFLAGS="${RUSTFLAGS:-} -C llvm-args=-inline-threshold=25" \
    cargo build --manifest-path ../wasm/Cargo.toml --locked --target wasm32-unknown-unknown --target-dir "$target" --profile "$profile"
folder=$([ "$profile" = dev ] && echo debug || echo "$profile")
cp ../../LICENSE-* .
cp "$target/wasm32-unknown-unknown/$folder/onnx_slice_fold_wasm.wasm" onnx-slice-fold.wasm

# Binaryen writes numbers in fewer bytes than the linker: 5 % of the module before compression, 1 % after it. Its optimizations (-Oz) shorten the module by 12 %
# and lengthen the compressed one by 2 %, so they are not used. A published module is written by the version in the lock file of `web/tools`; without a registry,
# the module remains as the linker wrote it.
if [ "$profile" = release ]; then
    optimizer=../tools/node_modules/.bin/wasm-opt
    if [ ! -x $optimizer ]; then
        npm ci --prefix ../tools --ignore-scripts --no-audit --no-fund --loglevel=error || echo "$0: wasm-opt is not available here"
    fi
    if [ -x $optimizer ]; then
        $optimizer --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals --enable-reference-types \
            --enable-multivalue onnx-slice-fold.wasm -o onnx-slice-fold.wasm
    fi
fi

native=${ONNX_SLICE_FOLD:-$target/debug/onnx-slice-fold}
if [ ! -x "$native" ]; then
    cargo build --manifest-path ../../Cargo.toml --target-dir "$target"
    native=$target/debug/onnx-slice-fold
fi
mkdir -p help
"$native" -h >help/fold.txt
for command in show explain inspect diff; do
    "$native" "$command" -h >"help/$command.txt"
done
