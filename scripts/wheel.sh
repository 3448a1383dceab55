#!/usr/bin/env bash
# Builds the Python wheel, installs it in a clean environment, and runs its tests. These run the code blocks of its README and of docs/, and
# check types with mypy and pyright if both can be installed.
#
# Uses a package index. Without one, PYTHON names an interpreter that has maturin, pytest, onnx, onnx-ir, onnxruntime, numpy and ml_dtypes.
# Without either, the check is skipped and a note is printed. PROFILE names the build profile; the default is `dist`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
built="$root/target/wheel"
environment="$built/environment"
# The newest versions, and older ones that are still in use.
newest="onnx==1.23.2 onnxruntime==1.31.1"
older="onnx==1.19.1 onnxruntime==1.23.2"
profile=${PROFILE:-dist}
tools="maturin>=1.9,<2"
tests="pytest>=8 numpy ml_dtypes onnx-ir"
checkers="mypy>=1.18 pyright[nodejs]>=1.1.400 types-protobuf"

rm -rf "$built"
mkdir -p "$built"
if [ -n "${PYTHON:-}" ]; then
    for module in maturin pytest onnx onnx_ir onnxruntime ml_dtypes; do
        if ! "$PYTHON" -c "import $module" 2>/dev/null; then
            echo "$0: $PYTHON has no $module: the wheel is not checked"
            exit 0
        fi
    done
    "$PYTHON" -m venv --system-site-packages "$environment"
else
    python3 -m venv "$environment"
    # shellcheck disable=SC2086
    if ! "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$tools" $tests $newest; then
        echo "$0: cannot install $tools $tests $newest: the wheel is not checked"
        exit 0
    fi
    # shellcheck disable=SC2086
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check $checkers || true
fi
python="$environment/bin/python"

# One target directory for all packages of the repository, so that shared dependencies are compiled once.
(cd "$root/python" && CARGO_TARGET_DIR="$root/target" "$python" -m maturin build --profile "$profile" --strip --locked --interpreter "$python" --out "$built")
wheel=$(ls "$built"/onnx_slice_fold-*.whl)
bytes=$(wc -c <"$wheel")
echo "$(basename "$wheel"): $bytes bytes"
if [ "$bytes" -gt 10000000 ]; then
    echo "$0: the wheel is larger than 10 MB" >&2
    exit 1
fi
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"

# Tests the installed package: the folder of the tests has no package of that name.
run_tests() {
    "$python" -m pytest -q -p no:cacheprovider --rootdir "$root/python/tests" -c /dev/null "$root/python/tests" "$@"
}
for checker in mypy pyright; do
    if ! "$python" -c "import $checker" 2>/dev/null; then
        echo "$0: $checker is not installed: types are not checked with $checker"
    fi
done
run_tests
"$environment/bin/onnx-slice-fold" --version
"$python" "$root/scripts/import_time.py"
if [ -z "${PYTHON:-}" ]; then
    # shellcheck disable=SC2086
    if "$python" -m pip install --quiet --disable-pip-version-check $older; then
        # Older versions of onnx have other annotations.
        run_tests --ignore "$root/python/tests/test_types.py"
    else
        echo "$0: cannot install $older: they are not checked"
    fi
fi
