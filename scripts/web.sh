#!/usr/bin/env bash
# Builds the WebAssembly module of the npm package, and tests the package in Node: its functions, its results next to those of the native program, and
# the packed package in an empty project, where it runs the README.
#
# ONNX_SLICE_FOLD names the native program, MODELS a folder with more models to compare, PROFILE the profile of the module: `dev` (the
# default) builds faster, `release` is the published one, whose size is checked. NODES are further versions of Node to test with, next to
# the one on the PATH and the one in the lock file of `web/tools`. Without the target, Node or npm, the package is not tested, and the
# script prints a note.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
package="$root/web/npm"
export PROFILE=${PROFILE:-dev}
ONNX_SLICE_FOLD=$(realpath -m "${ONNX_SLICE_FOLD:-$root/target/debug/onnx-slice-fold}")
export ONNX_SLICE_FOLD

# A toolchain that was not installed through rustup may lack the target, and not every machine can fetch it.
if ! rustup target add wasm32-unknown-unknown; then
    echo "$0: the target wasm32-unknown-unknown is not available here: the npm package was not built and not tested"
    exit 0
fi
"$package/build.sh"
if command -v npm >/dev/null && [ ! -d "$root/web/tools/node_modules" ]; then
    npm ci --prefix "$root/web/tools" --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error || echo "$0: the packages of web/tools cannot be installed"
fi
# Each version of Node once, from 20 on.
nodes=()
versions=" "
for node in ${NODES:-} node "$root/web/tools/node_modules/.bin/node"; do
    version=$("$node" --version 2>/dev/null) || continue
    major=${version#v}
    if [ "${major%%.*}" -ge 20 ] && [[ $versions != *" $version "* ]]; then
        nodes+=("$node")
        versions+="$version "
    fi
done
if [ ${#nodes[@]} = 0 ]; then
    echo "$0: Node 20 or later is not available here: the npm package was not tested"
    exit 0
fi

if [ "$PROFILE" = release ]; then
    "${nodes[0]}" --input-type=module --eval '
        import { readFileSync } from "node:fs";
        import { brotliCompressSync, constants } from "node:zlib";
        const module = readFileSync(process.argv[1]);
        // 2^24 bytes is the largest window that browsers decode, and the default of the program `brotli`.
        const small = brotliCompressSync(module, { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } }).length;
        console.log(`the module has ${module.length} bytes, ${small} compressed with brotli`);
        if (small > 1_800_000) throw new Error("the module is larger than 1.8 MB");
    ' "$package/onnx-slice-fold.wasm"
fi

cd "$package"
for node in "${nodes[@]}"; do
    echo "$0: Node $("$node" --version)"
    "$node" --test test/*.test.js
done

if ! command -v npm >/dev/null; then
    echo "$0: npm is not available here: the package was not packed"
    exit 0
fi
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
archive=$(npm pack --silent --pack-destination "$project")
cd "$project"
echo '{ "private": true, "type": "module" }' >package.json
npm install --silent --no-audit --no-fund --offline "./$archive"
cp "$root/models/bert_dy18d.onnx" model.onnx
npx --no-install onnx-slice-fold model.onnx --dim s33=1 --quiet
test -s model.folded.onnx
# The blocks of the README that are programs.
awk '/^```js$/ { number++; inside = 1; next } /^```$/ { inside = 0 } inside { print > ("readme" number ".js") }' "$package/README.md"
for block in readme*.js; do
    node "$block" >/dev/null
done
echo "$0: the packed package runs its README"
