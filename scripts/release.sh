#!/usr/bin/env bash
# Builds the parts of a release for one platform, and tests each part as a user would use it.
#
#     scripts/release.sh [TARGET]
#
# Writes to target/release-files/: the program with its manual page and completions as an archive, the Python wheel, and the SHA-256 of
# each. TARGET is a target triple of rustc; the default is that of this machine. Parts for another machine are not tested.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
host=$(rustc --version --verbose | sed -n 's/^host: //p')
target=${1:-$host}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if [ "$version" != "$(sed -n 's/^version = "\(.*\)"$/\1/p' python/Cargo.toml | head -n 1)" ]; then
    echo "$0: Cargo.toml and python/Cargo.toml are of different versions" >&2
    exit 1
fi
files="$root/target/release-files"
name="onnx-slice-fold-$version-$target"
program="onnx-slice-fold"
case "$target" in *windows*) program="onnx-slice-fold.exe" ;; esac
rm -rf "$files"
mkdir -p "$files/$name/completions"

# The program contains no paths of this machine, so that the same source gives the same bytes in any folder.
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$root=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo" \
    cargo build --profile dist --locked --target "$target" --target-dir "$root/target/release-build" --config 'profile.dist.strip="symbols"'
built="$root/target/release-build/$target/dist/$program"
cp "$built" README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE "$files/$name/"
# The licences of the crates in the program. A release needs them; a test of this script on a machine without cargo-about does not.
if cargo about --version >/dev/null 2>&1; then
    cargo about generate --locked about.hbs -o "$files/$name/THIRD-PARTY-NOTICES.txt"
else
    echo "$0: cargo-about is not installed: the archive has no third-party notices" >&2
fi

if [ "$target" = "$host" ]; then
    "$built" man >"$files/$name/onnx-slice-fold.1"
    for shell in bash zsh fish; do
        "$built" completions "$shell" >"$files/$name/completions/$shell"
    done
fi
archive="$name.tar.gz"
# Packing is reproducible.
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$files" -cf - "$name" | gzip -n >"$files/$archive"
rm -rf "${files:?}/$name"

environment="$root/target/release-build/python"
if [ ! -x "$environment/bin/maturin" ]; then
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2"
fi
(cd python && "$environment/bin/maturin" build --profile dist --locked --target "$target" --target-dir "$root/target/release-build" \
    --interpreter python3 --out "$files")

if [ "$target" = "$host" ]; then
    tried="$root/target/release-build/tried"
    rm -rf "$tried"
    mkdir -p "$tried"
    tar -C "$tried" -xzf "$files/$archive"
    python3 -m venv "$tried/python"
    "$tried/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$files"/*.whl
    "$tried/$name/$program" models/bert_dy18d.onnx -o "$tried/by-archive.onnx" -q
    "$tried/python/bin/onnx-slice-fold" models/bert_dy18d.onnx -o "$tried/by-wheel.onnx" -q
    cmp "$tried/by-archive.onnx" "$tried/by-wheel.onnx"
fi
(cd "$files" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
