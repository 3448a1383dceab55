#!/usr/bin/env bash
# Runs Python with what the scripts need, in an environment of its own under target/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
environment="$root/target/python"
if [ ! -x "$environment/bin/python" ]; then
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1 numpy
fi
exec "$environment/bin/python" "$@"
