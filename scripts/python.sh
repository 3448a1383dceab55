#!/usr/bin/env bash
# Runs Python with the packages that the scripts need: PYTHON if that is set, otherwise a separate environment under target/, created at
# first use.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
packages="onnx==1.23.2 onnxruntime==1.31.1 numpy z3-solver==5.4.0.0"

if [ -n "${PYTHON:-}" ]; then
    exec "$PYTHON" "$@"
fi
environment="$root/target/python"
# The list of installed packages is written last, so that an interrupted installation, or one of other packages, is repeated.
if [ "$(cat "$environment/packages" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$environment"
    mkdir -p "$root/target"
    # shellcheck disable=SC2086
    if ! { python3 -m venv "$environment" &&
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check $packages; }; then
        rm -rf "$environment"
        echo "$0: cannot install $packages: this takes python3 with venv, and a package index." >&2
        echo "$0: Where they are installed already, set PYTHON to the interpreter that has them." >&2
        exit 1
    fi
    echo "$packages" >"$environment/packages"
fi
exec "$environment/bin/python" "$@"
