#!/usr/bin/env bash
# Builds the web page into web/page/dist and tests it in Chromium.
#
# Needs npm, and the module of web/npm/build.sh, which this script builds if it is missing. CHROMIUM names a browser other than
# /usr/bin/chromium, ONNX_SLICE_FOLD the native program to compare with, MODELS a folder of models to fold. Without npm, its registry or
# Chromium, the page is not tested, and the script prints a note.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
page="$root/web/page"
export CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
ONNX_SLICE_FOLD=$(realpath -m "${ONNX_SLICE_FOLD:-$root/target/debug/onnx-slice-fold}")
export ONNX_SLICE_FOLD

if ! command -v npm >/dev/null; then
    echo "$0: there is no npm here: the page was not built and not tested"
    exit 0
fi
if [ ! -f "$root/web/npm/onnx-slice-fold.wasm" ]; then
    if ! rustup target add wasm32-unknown-unknown; then
        echo "$0: the target wasm32-unknown-unknown is not available here: the page was not built and not tested"
        exit 0
    fi
    "$root/web/npm/build.sh"
fi
cd "$page"
if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then
    echo "$0: the packages of web/page cannot be installed: the page was not built and not tested"
    exit 0
fi
npm run --silent build
if [ ! -x "$CHROMIUM" ]; then
    echo "$0: there is no Chromium at $CHROMIUM: the page was not tested"
    exit 0
fi
if [ ! -x "$ONNX_SLICE_FOLD" ]; then
    echo "$0: there is no program at $ONNX_SLICE_FOLD to compare with: the page was not tested"
    exit 0
fi
npm test --silent
