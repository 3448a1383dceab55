"""Prints what the versions of each operator take and give, as `src/ops/engine/signatures.rs` has it, from the definitions in the onnx package.

    python scripts/operator_signatures.py > src/ops/engine/signatures.rs && cargo fmt
    python scripts/operator_signatures.py --check     # 1 if the file says something else

Operators that the program does not know are left out: `src/ops` names those it knows.
"""

import argparse
import pathlib
import re
import sys

from onnx import defs

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/ops/engine/signatures.rs"
# More than any node has: no limit.
MANY = 1 << 30
HEAD = """\
//! The numbers of operands and results and the attributes of each operator version, from the standard's definitions.
//!
//! Generated and checked by `scripts/operator_signatures.py`; read by `signature`.

/// The largest numbers of operands and results of an operator, and its attributes, for all versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    /// `1 2@18`: 1, and 2 since version 18; `*` is any number.
    pub operands: &'static str,
    /// The same form, for results.
    pub results: &'static str,
    /// `axes<18 keepdims mode@11`: removed in version 18, in all versions, added in version 11.
    pub attributes: &'static str,
}

impl Signature {
    pub(super) const fn new(operands: &'static str, results: &'static str, attributes: &'static str) -> Self {
        Signature { operands, results, attributes }
    }
}

/// The operators by domain and name: the largest numbers of operands and results, and the attributes.
#[rustfmt::skip]
pub(super) const SIGNATURES: &[(&str, &str, Signature)] = &[
"""


def changes(values):
    """`2 3@11`: 2, and 3 since version 11; `*` is any number."""
    texts, last = [], None
    for version, value in values:
        text = "*" if value >= MANY else str(value)
        if text != last:
            texts.append(text if last is None else f"{text}@{version}")
            last = text
    return " ".join(texts)


def attributes(versions):
    """`axis axes<18 mode@11`: always there, gone with version 18, there since version 11."""
    names = dict.fromkeys(name for schema in versions for name in sorted(schema.attributes))
    texts = []
    for name in names:
        held = [name in schema.attributes for schema in versions]
        first, last = held.index(True), len(held) - 1 - held[::-1].index(True)
        if not all(held[first : last + 1]):
            raise SystemExit(f"{versions[0].name}: attribute {name} comes back")
        since = f"@{versions[first].since_version}" if first else ""
        until = f"<{versions[last + 1].since_version}" if last + 1 < len(versions) else ""
        texts.append(name + since + until)
    return " ".join(texts)


def known():
    """The names in the tables of operators."""
    names = set()
    for path in (ROOT / "src/ops").rglob("*.rs"):
        if path != TARGET:
            names.update(re.findall(r'"([A-Z][A-Za-z0-9]*)"', path.read_text(encoding="utf-8")))
    return names


def table():
    versions = {}
    for schema in defs.get_all_schemas_with_history():
        versions.setdefault((schema.domain, schema.name), []).append(schema)
    names = known()
    lines = []
    for (domain, name), schemas in sorted(versions.items()):
        if name not in names:
            continue
        schemas.sort(key=lambda schema: schema.since_version)
        operands = changes((schema.since_version, schema.max_input) for schema in schemas)
        results = changes((schema.since_version, schema.max_output) for schema in schemas)
        lines.append(f'    ("{domain}", "{name}", Signature::new("{operands}", "{results}", "{attributes(schemas)}")),\n')
    return HEAD + "".join(lines) + "];\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file")
    options = parser.parse_args()
    text = table()
    if not options.check:
        sys.stdout.write(text)
        return 0
    same = TARGET.read_text(encoding="utf-8") == text
    print("the same" if same else f"{TARGET.relative_to(ROOT)} says something else")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
