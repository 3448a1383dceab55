//! The dependencies between source files, read from the text: every path that begins with `crate`, `super`, `self`, a child module or an
//! imported module. Names are followed through the `pub use` of a folder's `mod.rs` to the file that defines them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A path of segments from the crate's root; the root itself is empty.
type ModulePath = Vec<String>;

/// A source file.
struct Module {
    /// The path of the file below `src`.
    file: String,
    tokens: Vec<String>,
    /// The imported names: those of `use`, and for other modules those of `pub use`.
    names: BTreeMap<String, ModulePath>,
}

/// All source files.
struct Sources(BTreeMap<ModulePath, Module>);

/// The files that each file uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

impl Sources {
    /// Reads every file below a folder. Tests are skipped.
    fn read(src: &Path) -> Self {
        let mut modules = BTreeMap::new();
        let mut open = vec![(Vec::new(), src.join("lib.rs"))];
        while let Some((path, file)) = open.pop() {
            let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let tokens = tokens(body);
            let own = file.file_name().is_some_and(|name| name == "lib.rs" || name == "mod.rs");
            let folder = if own { file.parent().map(Path::to_path_buf) } else { Some(file.with_extension("")) };
            for child in children(&tokens) {
                let candidates = folder
                    .iter()
                    .flat_map(|folder| [folder.join(format!("{child}.rs")), folder.join(&child).join("mod.rs")]);
                let found: Vec<PathBuf> = candidates.filter(|file| file.is_file()).collect();
                open.extend(found.into_iter().map(|file| ([path.clone(), vec![child.clone()]].concat(), file)));
            }
            let file = file.strip_prefix(src).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            modules.insert(path, Module { file, tokens, names: BTreeMap::new() });
        }
        let mut sources = Sources(modules);
        while sources.note_names() {}
        sources
    }

    /// Records the names that each module's `use` items import. Returns `true` if there are new ones, because an import may begin with an
    /// imported name.
    fn note_names(&mut self) -> bool {
        let mut is_news = false;
        let paths: Vec<ModulePath> = self.0.keys().cloned().collect();
        for path in paths {
            let module = &self.0[&path];
            let mut names = BTreeMap::new();
            for (at, _) in module.tokens.iter().enumerate().filter(|(_, token)| *token == "use") {
                for (segments, name) in trees(&module.tokens, at + 1).0 {
                    names.extend(self.absolute(&path, &segments).map(|target| (name, target)));
                }
            }
            let known = &mut self.0.get_mut(&path).expect("it was listed").names;
            is_news |= *known != names;
            *known = names;
        }
        is_news
    }

    /// Returns a path in a module as a path from the crate's root; `None` if it leaves this crate.
    fn absolute(&self, module: &ModulePath, segments: &[String]) -> Option<ModulePath> {
        let (first, rest) = segments.split_first()?;
        let mut base = module.clone();
        let mut rest = rest;
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
                while let Some((next, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
                    debug_assert_eq!(next, "super");
                    base.pop();
                    rest = after;
                }
            }
            child => {
                base.push(child.to_string());
                if !self.0.contains_key(&base) {
                    base = self.0.get(module)?.names.get(child)?.clone();
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// Returns the module that defines the end of a path.
    fn home(&self, path: &[String], depth: usize) -> Option<&ModulePath> {
        let len = (0..=path.len()).rev().find(|&len| self.0.contains_key(&path[..len]))?;
        let (module, _) = self.0.get_key_value(&path[..len])?;
        let renamed = path.get(len).and_then(|name| self.0[module].names.get(name)).filter(|_| depth < 16);
        match renamed {
            Some(target) => self.home(&[target.as_slice(), &path[len + 1..]].concat(), depth + 1),
            None => Some(module),
        }
    }

    /// Returns the files that each file uses. A folder's `mod.rs` that lists the folder's files does not count as use.
    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (path, module) in &self.0 {
            let found = uses.entry(module.file.clone()).or_default();
            let mut at = 0;
            while at < module.tokens.len() {
                let starts = is_word(&module.tokens[at]) && module.tokens.get(at + 1).is_some_and(|next| next == "::");
                if !starts {
                    at += 1;
                    continue;
                }
                let (leaves, next) = trees(&module.tokens, at);
                at = next.max(at + 1);
                for (segments, _) in leaves {
                    let Some(target) = self.absolute(path, &segments) else { continue };
                    // A folder that is imported as a whole is used where one of its items is named.
                    if self.0.get(&target).is_some_and(|target| target.file.ends_with("mod.rs")) {
                        continue;
                    }
                    let Some(home) = self.home(&target, 0).filter(|home| !home.starts_with(path)) else { continue };
                    found.insert(self.0[home].file.clone());
                }
            }
        }
        uses
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Splits a text into words and signs, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let next = |at: usize| letters.get(at).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        let start = at;
        if letter == '/' && next(at + 1) == '/' {
            while at < letters.len() && letters[at] != '\n' {
                at += 1;
            }
        } else if letter == 'r' && (next(at + 1) == '"' || (next(at + 1) == '#' && matches!(next(at + 2), '"' | '#'))) {
            let hashes = letters[at + 1..].iter().take_while(|letter| **letter == '#').count();
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let rest: String = letters[at + hashes + 2..].iter().collect();
            at += hashes
                + 2
                + rest.find(&end).map_or(rest.chars().count(), |end| rest[..end].chars().count())
                + end.len();
        } else if letter == '"' {
            at += 1;
            while at < letters.len() && letters[at] != '"' {
                at += if letters[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if letter == '\'' && (next(at + 1) == '\\' || next(at + 2) == '\'') {
            at += if next(at + 1) == '\\' { 3 } else { 2 };
            while at < letters.len() && letters[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else if letter.is_alphanumeric() || letter == '_' {
            while next(at).is_alphanumeric() || next(at) == '_' {
                at += 1;
            }
            found.push(letters[start..at].iter().collect());
        } else if letter == ':' && next(at + 1) == ':' {
            found.push("::".to_string());
            at += 2;
        } else {
            if !letter.is_whitespace() {
                found.push(letter.to_string());
            }
            at += 1;
        }
    }
    found
}

/// Returns the modules that a file declares, without test modules.
fn children(tokens: &[String]) -> Vec<String> {
    let is_test = |at: usize| {
        let end = tokens[..at].iter().rposition(|token| token == "]");
        let visible = end
            .is_some_and(|end| tokens[end + 1..at].iter().all(|token| is_word(token) || "()".contains(token.as_str())));
        let cfg = end.and_then(|end| {
            tokens[..end].iter().rposition(|token| token == "#").map(|begin| tokens[begin..end].concat())
        });
        visible && cfg.is_some_and(|cfg| cfg == "#[cfg(test)")
    };
    let declared = tokens.windows(3).enumerate().filter(|(_, window)| window[0] == "mod" && window[2] == ";");
    declared.filter(|(at, _)| !is_test(*at)).map(|(_, window)| window[1].clone()).collect()
}

/// Returns the paths of a use tree that begins at a token, each with its local name, and the position after the tree.
fn trees(tokens: &[String], begin: usize) -> (Vec<(Vec<String>, String)>, usize) {
    let mut prefix: Vec<String> = Vec::new();
    let mut at = begin;
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                let mut found = Vec::new();
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    let (inner, next) = trees(tokens, at);
                    for (segments, name) in inner {
                        let is_self = segments == ["self"];
                        let whole = if is_self { prefix.clone() } else { [prefix.clone(), segments].concat() };
                        let name = if name == "self" { whole.last().cloned().unwrap_or_default() } else { name };
                        found.push((whole, name));
                    }
                    at = if next > at { next } else { at + 1 };
                    if tokens.get(at).is_some_and(|token| token == ",") {
                        at += 1;
                    }
                }
                return (found, at + 1);
            }
            Some("*") => return (vec![(prefix, "*".to_string())], at + 1),
            Some(word) if is_word(word) => {
                prefix.push(word.to_string());
                at += 1;
                if tokens.get(at).is_some_and(|token| token == "::") {
                    at += 1;
                    continue;
                }
                let mut name = word.to_string();
                if tokens.get(at).is_some_and(|token| token == "as") {
                    name = tokens.get(at + 1).cloned().unwrap_or_default();
                    at += 2;
                }
                return (vec![(prefix, name)], at);
            }
            // Another continuation of a path, such as `Vec::<…>`.
            _ if prefix.is_empty() => return (Vec::new(), at),
            _ => return (vec![(prefix.clone(), prefix.last().cloned().unwrap_or_default())], at),
        }
    }
}

/// Returns the groups of names that use one another in a cycle, each sorted.
fn cycles(uses: &Uses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = uses
        .keys()
        .map(|name| {
            let mut seen: BTreeSet<&String> = BTreeSet::new();
            let mut open: Vec<&String> = uses[name].iter().collect();
            while let Some(next) = open.pop() {
                if seen.insert(next) {
                    open.extend(uses.get(next).into_iter().flatten());
                }
            }
            (name, seen)
        })
        .collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, seen) in reached.iter().filter(|(name, seen)| seen.contains(*name)) {
        let back = |other: &&&String| reached.get(**other).is_some_and(|back| back.contains(name));
        groups.insert(seen.iter().filter(back).map(|other| other.to_string()).collect());
    }
    groups.into_iter().collect()
}

/// The same between folders: a file of one folder uses a file of another that does not contain it.
fn of_folders(uses: &Uses) -> Uses {
    let folder = |file: &str| file.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string());
    let mut found = Uses::new();
    for (file, used) in uses {
        for other in used {
            let (from, to) = (folder(file), folder(other));
            let around = |outer: &str, inner: &str| {
                outer.is_empty() || inner == outer || inner.starts_with(&format!("{outer}/"))
            };
            if !around(&from, &to) && !around(&to, &from) {
                found.entry(from).or_default().insert(to);
            }
        }
    }
    found
}

#[test]
fn every_spelling_of_an_import_is_read() {
    let text = "
        use crate::{ir::{self, Model as M}, dim::Dim};
        pub(super) use super::super::ops; // crate::comment
        fn f() { let s = \"crate::text\"; crate::tensor::copy::go::<u8>(); self::inner::x(); r#\"crate::raw \"quoted\"\"#; 'c'; }";
    let tokens = tokens(text);
    let starts = tokens.iter().enumerate().filter(|(at, token)| {
        matches!(token.as_str(), "crate" | "super" | "self")
            && tokens[..*at].last().is_none_or(|before| before != "::" && before != "{")
    });
    let found: Vec<String> = starts
        .filter(|(at, _)| tokens[at + 1] == "::")
        .flat_map(|(at, _)| trees(&tokens, at).0)
        .map(|(path, name)| format!("{} {name}", path.join("::")))
        .collect();
    let expected = [
        "crate::ir ir",
        "crate::ir::Model M",
        "crate::dim::Dim Dim",
        "super::super::ops ops",
        "crate::tensor::copy::go go",
        "self::inner::x x",
    ];
    assert_eq!(found, expected);
}

#[test]
fn cycles_are_found() {
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (from, to) in pairs {
            uses.entry(from.to_string()).or_default().insert(to.to_string());
        }
        uses
    };
    let files = uses(&[("a/x", "a/y"), ("a/y", "a/x"), ("a/y", "b/z"), ("b/z", "b/w"), ("b/v", "a/x")]);
    assert_eq!(cycles(&files), [["a/x", "a/y"]]);
    assert_eq!(cycles(&of_folders(&files)), [["a", "b"]]);
}

/// Uses that close a cycle, from a file to files with this prefix, with the reason why each is allowed. Without them, neither files nor
/// folders have cycles.
const BACKWARD: &[(&str, &str, &str)] = &[
    (
        "dim/monomial.rs",
        "dim/expr.rs",
        "an expression is a sum of products of atoms, and the operands of an atom are expressions",
    ),
    (
        "ops/engine/registry.rs",
        "ops/",
        "the table of all operators names their families; these call the walk for the graphs in their attributes",
    ),
    (
        "ops/engine/context.rs",
        "ops/engine/walk.rs",
        "an operator that holds a body has it walked by the walk that called the operator",
    ),
    ("ops/engine/context.rs", "ops/engine/interpret.rs", "and evaluated by the interpreter that called it"),
    (
        "ops/traits/counting.rs",
        "ops/traits/view.rs",
        "the facts around a node offer the tensors that count, which are worked out from such facts",
    ),
    (
        "ops/slice_cuts.rs",
        "ops/slice.rs",
        "what a Slice takes is read by its family, whose table names traits that ask what it takes",
    ),
];

/// Returns the uses without those that are known to close a cycle; `but` keeps one of these.
fn forward(uses: &Uses, but: Option<usize>) -> Uses {
    let mut uses = uses.clone();
    for (at, (from, to, _)) in BACKWARD.iter().enumerate().filter(|(at, _)| Some(*at) != but) {
        let used = uses.get_mut(*from).unwrap_or_else(|| panic!("BACKWARD[{at}] names {from}, which is gone"));
        used.retain(|file| !file.starts_with(to));
    }
    uses
}

#[test]
fn files_and_folders_use_one_another_in_one_direction() {
    let uses = Sources::read(&super::root().join("src")).uses();
    let circles = cycles(&forward(&uses, None));
    assert!(circles.is_empty(), "these files use one another in a circle: {circles:#?}");
    let circles = cycles(&of_folders(&forward(&uses, None)));
    assert!(circles.is_empty(), "these folders use one another in a circle: {circles:#?}");
    for (at, (from, to, _)) in BACKWARD.iter().enumerate() {
        let closes = !cycles(&forward(&uses, Some(at))).is_empty();
        assert!(closes, "that {from} uses {to} closes no circle: take it off the list");
    }
}
