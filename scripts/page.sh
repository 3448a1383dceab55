#!/usr/bin/env bash
# Builds the web page into web/page/dist and tests it in Chromium.
#
# Needs npm, and the module that web/npm/build.sh makes, which this script calls if there is none. CHROMIUM names a browser other than
# /usr/bin/chromium, ONNX_SLICE_FOLD the native program whose results are compared, MODELS a folder of models to fold.
# Where npm, its registry or Chromium is missing, the page is not tested, and the script says so.
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
