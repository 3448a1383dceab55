"""Writes the components of the program as a CycloneDX document: each package of the lock file that is part of it, with version, licence and
digest.

    python3 scripts/sbom.py [--output sbom.cdx.json] [--target TRIPLE]

The script calls cargo, and needs only Python's standard library. The same lock file gives the same bytes: the document has no time and no
random number. Packages that only tests and build scripts need are omitted, as in `cargo tree --edges normal`. `--build` lists the packages
that run during the build, because these also determine the program.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def parts(target, build):
    """Names and versions of the packages that are part of the program."""
    edges = "normal,build" if build else "normal"
    tree = cargo("tree", "--locked", "--edges", edges, "--prefix", "none", "--target", target, "--format", "{p}")
    return sorted({tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="-")
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu")
    parser.add_argument("--build", action="store_true", help="with what is needed to build")
    options = parser.parse_args()
    known = {(package["name"], package["version"]): package for package in json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]}
    locked = {(package["name"], package["version"]): package for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    own = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
    components = []
    for name, version in parts(options.target, options.build):
        version = version.removeprefix("v")
        if name == own["name"]:
            continue
        package = known[name, version]
        component = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
        component["bom-ref"] = component["purl"]
        if package.get("license"):
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if "checksum" in locked[name, version]:
            component["hashes"] = [{"alg": "SHA-256", "content": locked[name, version]["checksum"]}]
        components.append(component)
    purl = f"pkg:cargo/{own['name']}@{own['version']}"
    program = {"type": "application", "name": own["name"], "version": own["version"], "purl": purl, "bom-ref": purl}
    program["licenses"] = [{"expression": own["license"]}]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": program, "properties": [{"name": "target", "value": options.target}]},
        "components": components,
    }
    text = json.dumps(document, indent=2) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
    else:
        pathlib.Path(options.output).write_text(text)
        print(f"{len(components)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
