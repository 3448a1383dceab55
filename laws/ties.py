"""The consistency of laws and code: each law names an existing function, each rule names existing laws, and every law is used."""

import re
import tomllib

# Laws of these folders serve all their callers; other laws need a rule.
FOUNDATIONS = ("src/dim/", "src/slicing/", "src/index_map/", "src/passes/chains/", "src/ops/needs.rs", "src/ops/movement/moves.rs")


def names_in_source(root):
    """The names of the rules, and of the passes that change a model, from the source."""
    rules, passes = set(), set()
    for path in sorted((root / "src/rewrite").rglob("*.rs")):
        rules |= set(re.findall(r'\bname: "([a-z0-9-]+)"', path.read_text()))
    for path in sorted((root / "src/passes").rglob("*.rs")):
        text = path.read_text().split("#[cfg(test)]\nmod tests {")[0]
        passes |= set(re.findall(r'\bconst NAME: &str = "([a-z0-9-]+)"', text))
        passes |= set(re.findall(r'\bedits\.take\("([a-z0-9-]+)"', text))
    return rules, passes


def places(laws, root):
    """The errors in the places that laws name."""
    texts = {path: path.read_text() for path in sorted((root / "src").rglob("*.rs"))}
    for law in laws.values():
        file, _, function = law.at.partition(": ")
        pattern = re.compile(rf"\bfn {re.escape(function)}\b")
        text = texts.get(root / file)
        if text is not None and pattern.search(text):
            continue
        folder = str((root / file).parent)
        elsewhere = [path for path, text in texts.items() if pattern.search(text)]
        near = [path for path in elsewhere if str(path).startswith(folder)] or elsewhere
        hint = ", ".join(str(path.relative_to(root)) for path in near[:4]) or "nowhere"
        yield f"law {law.name}: there is no {function} in {file} (found in: {hint})"


def check(laws, here, listed):
    """Prints the inconsistencies, and the number of rules for each law. Returns the exit status."""
    root = here.parent
    table = tomllib.loads((here / "rules.toml").read_text())
    entries = table["rules"] | table["passes"]
    rules, passes = names_in_source(root)
    wanted = rules | passes
    if listed:
        wanted = {line.split()[0] for line in open(listed) if line.strip() and not line.startswith("#")}
        rules = wanted
    faults = [f"{name} has no entry in laws/rules.toml" for name in sorted(wanted - set(entries))]
    faults += [f"laws/rules.toml lists {name}, which is no rule" for name in sorted(set(table["rules"]) - wanted)]
    users = {name: [] for name in laws}
    for name, entry in entries.items():
        if not entry.get("laws") and not entry.get("rests"):
            faults.append(f"{name} rests on nothing")
        for law in entry.get("laws", []):
            if law in users:
                users[law].append(name)
            else:
                faults.append(f"{name} names {law}, which is no law")
    for name, law in laws.items():
        if not users[name] and not law.at.startswith(FOUNDATIONS):
            faults.append(f"law {name} is named by no rule")
    faults += places(laws, root)
    for name, law in laws.items():
        own = len(users[name])
        print(f"{own:3} {'rule ' if own == 1 else 'rules'} {name}" + ("" if own else f"  (of {law.at})"))
    tied = sum(bool(entry.get("laws")) for entry in entries.values())
    for fault in faults:
        print(f"FAILED   {fault}")
    print(f"{len(laws)} laws, {len(entries)} rules and passes, {tied} of them on laws; {len(faults)} failed")
    return 1 if faults else 0
