//! The modules that a source file names, in any form.
//!
//! The file is split into tokens, so comments, documentation and strings do not count, but code after a `mod tests` does. A path is found
//! everywhere: in a `use` with nested braces, after `super::super::`, in the middle of an expression, and in the call of a macro. Test
//! items are skipped.

use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The code of a source file.
pub struct Code {
    tokens: Vec<TokenTree>,
    /// The module of the file, from the root of the crate.
    module: Vec<String>,
}

impl Code {
    /// Splits the text of the file of `module`, and removes test items.
    pub fn new(text: &str, module: Vec<String>) -> Self {
        let tokens = TokenStream::from_str(text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
        Code { tokens: production(tokens), module }
    }

    /// Returns every path that starts at `root` (`crate`, or the crate's name outside), without the root. `crate::ops::{walk, slice}` gives
    /// `["ops", "walk"]` and `["ops", "slice"]`. Paths that start with `self` or `super` are resolved from the module, and count as paths
    /// of `crate`.
    pub fn paths(&self, root: &str) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        collect(&self.tokens, &self.module, root, &mut found);
        found
    }

    /// Returns the first segments of paths: crates, modules, types.
    pub fn heads(&self) -> Vec<String> {
        let mut found = Vec::new();
        heads(&self.tokens, &mut found);
        found
    }

    /// Returns `true` if the code contains a word.
    pub fn has_word(&self, word: &str) -> bool {
        has_word(&self.tokens, word)
    }
}

/// Returns the module of a file below `src`: `ops/walk.rs` and `ops/walk/mod.rs` are `["ops", "walk"]`.
pub fn module_of(source: &Path, src: &Path) -> Vec<String> {
    let relative = source.strip_prefix(src).expect("the file is below src").with_extension("");
    let mut names: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

/// Returns the names of test modules in separate files: `#[cfg(test)] mod tests;`.
pub fn test_modules(text: &str) -> Vec<String> {
    let tokens: Vec<TokenTree> =
        TokenStream::from_str(text).unwrap_or_else(|error| panic!("{error}")).into_iter().collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if !is_for_tests(token, tokens.get(at + 1)) {
            continue;
        }
        // Up to the end of the item; `pub(crate)` and further attributes are skipped.
        let item = tokens[at + 2..].split(|token| is(token, ';')).next().unwrap_or_default();
        if let [.., TokenTree::Ident(word), TokenTree::Ident(name)] = item
            && word == "mod"
        {
            found.push(name.to_string());
        }
    }
    found
}

/// Returns `true` if these two tokens are `#[test]` or a `#[cfg(test)]`, possibly with more conditions.
fn is_for_tests(token: &TokenTree, next: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = next.filter(|_| is(token, '#')) else { return false };
    let text = group.stream().to_string().replace([' ', '\n'], "");
    text == "test" || text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Returns the tokens without test items.
fn production(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if !is_for_tests(&token, tokens.peek()) {
            kept.push(token);
            continue;
        }
        // The item ends with its body, or with a semicolon.
        for token in tokens.by_ref() {
            let is_body = matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
            if is_body || is(&token, ';') {
                break;
            }
        }
    }
    kept
}

fn collect(tokens: &[TokenTree], module: &[String], root: &str, found: &mut Vec<Vec<String>>) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(name) if !is_within_path(tokens, at) && leads_on(tokens, at) => {
                let start = match name.to_string().as_str() {
                    name if name == root => Vec::new(),
                    "self" if root == "crate" => module.to_vec(),
                    "super" if root == "crate" => parent(module),
                    _ => continue,
                };
                tree(tokens, at + 3, start, found);
            }
            TokenTree::Group(group) => {
                let inner = production(group.stream());
                match inline_module(tokens, at) {
                    // In the inner module, `super` is this module.
                    Some(name) => collect(&inner, &[module, &[name]].concat(), root, found),
                    None => collect(&inner, module, root, found),
                }
            }
            _ => {}
        }
    }
}

/// Collects the paths after `path::`, from `tokens[at]` on: a name and its continuation, braces with several, or a star.
fn tree(tokens: &[TokenTree], at: usize, mut path: Vec<String>, found: &mut Vec<Vec<String>>) {
    match tokens.get(at) {
        Some(TokenTree::Ident(name)) => {
            match name.to_string().as_str() {
                "super" => path = parent(&path),
                "self" => {}
                name => path.push(name.to_string()),
            }
            if leads_on(tokens, at) { tree(tokens, at + 3, path, found) } else { found.push(path) }
        }
        Some(TokenTree::Group(group)) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for part in inner.split(|token| is(token, ',')).filter(|part| !part.is_empty()) {
                tree(part, 0, path.clone(), found);
            }
        }
        _ => found.push(path),
    }
}

fn heads(tokens: &[TokenTree], found: &mut Vec<String>) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(name) => {
                // `use name;` and `use name as other;` are paths of one name.
                let is_used = at > 0 && matches!(&tokens[at - 1], TokenTree::Ident(word) if word == "use");
                if is_used || leads_on(tokens, at) && !is_within_path(tokens, at) {
                    found.push(name.to_string());
                }
            }
            TokenTree::Group(group) => heads(&production(group.stream()), found),
            _ => {}
        }
    }
}

fn has_word(tokens: &[TokenTree], word: &str) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Ident(name) => name == word,
        TokenTree::Group(group) => has_word(&production(group.stream()), word),
        _ => false,
    })
}

fn parent(path: &[String]) -> Vec<String> {
    path[..path.len().saturating_sub(1)].to_vec()
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Returns `true` if `::` and another token follow `tokens[at]`.
fn leads_on(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| tokens.get(at).is_some_and(|token| is(token, ':'));
    colon(at + 1) && colon(at + 2) && tokens.get(at + 3).is_some()
}

/// Returns `true` if a path that started earlier continues through `tokens[at]`.
fn is_within_path(tokens: &[TokenTree], at: usize) -> bool {
    // Only a name or the end of generic arguments can precede the `::` then.
    at >= 3
        && is(&tokens[at - 1], ':')
        && is(&tokens[at - 2], ':')
        && (matches!(&tokens[at - 3], TokenTree::Ident(word) if word != "use") || is(&tokens[at - 3], '>'))
}

/// Returns the name of the module whose body `tokens[at]` is.
fn inline_module(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at.checked_sub(2)?..at)? {
        [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "mod" => Some(name.to_string()),
        _ => None,
    }
}
