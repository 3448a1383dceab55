//! The public API as a snapshot: everything that `lib.rs` exports, with public fields, variants and methods. The difference of the snapshot
//! makes a change of the API visible. It is read from the source's tokens, so that no nightly tool is needed.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::{root, sources};

/// Formats tokens on one line, with uniform spaces.
fn text(tokens: &[TokenTree]) -> String {
    let line = tokens.iter().cloned().collect::<TokenStream>().to_string();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    }
}

fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

fn tokens(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

/// Removes attributes and documentation, which are a `#` and brackets.
fn plain(stream: TokenStream) -> Vec<TokenTree> {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in stream {
        let is_attribute = matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
            && matches!(kept.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        if is_attribute {
            kept.pop();
        } else {
            kept.push(token);
        }
    }
    kept
}

/// Returns the names after `pub use` in `lib.rs`.
fn exported() -> BTreeSet<String> {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("lib.rs can be read");
    let code = plain(lib.parse().expect("lib.rs can be split into tokens"));
    let mut names = BTreeSet::new();
    for (at, pair) in code.windows(2).enumerate() {
        if word(pair.first()).as_deref() != Some("pub") || word(pair.get(1)).as_deref() != Some("use") {
            continue;
        }
        let end = code[at..].iter().position(|token| token.to_string() == ";").expect("a `use` ends");
        let last = &code[at + end - 1];
        match braces(last) {
            Some(group) => names.extend(tokens(group.stream()).iter().filter_map(|token| word(Some(token)))),
            None => names.extend(word(Some(last))),
        }
    }
    names
}

/// Collects the public functions in the body of an `impl`, without their bodies.
fn methods(owner: &str, body: &Group, found: &mut BTreeSet<String>) {
    let code = plain(body.stream());
    let mut from = 0;
    for (at, token) in code.iter().enumerate() {
        if braces(token).is_none() && token.to_string() != ";" {
            continue;
        }
        let item = &code[from..at];
        if word(item.first()).as_deref() == Some("pub") && word(item.get(1)).is_some() {
            found.insert(format!("{owner}: {}", text(item)));
        }
        from = at + 1;
    }
}

/// Collects everything in a file that belongs to exported names.
fn items(code: &[TokenTree], names: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    for (at, token) in code.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).and_then(|before| word(code.get(before)));
        if let Some(body) = braces(token) {
            // `impl NAME { … }`, also with lifetimes or parameters; an `impl TRAIT for NAME` contains `for`.
            let start = code[..at].iter().rposition(|token| braces(token).is_some() || token.to_string() == ";");
            let head = &code[start.map_or(0, |start| start + 1)..at];
            let is_impl = word(head.first()).as_deref() == Some("impl");
            let of_trait = head.iter().any(|token| token.to_string() == "for");
            if let Some(owner) = head.iter().filter_map(|token| word(Some(token))).find(|name| names.contains(name))
                && is_impl
                && !of_trait
            {
                methods(&owner, body, found);
            }
            // The options are a list in a macro.
            if before(2).as_deref() == Some("options") && names.contains("Options") {
                for line in text(&plain(body.stream())).split(" ; ") {
                    found.insert(format!("Options: {}", line.trim_end_matches(" ;")));
                }
            }
        }
        let Some(name) = word(Some(token)).filter(|name| names.contains(name)) else { continue };
        let kind = before(1).unwrap_or_default();
        if before(2).as_deref() != Some("pub") || !["struct", "enum", "fn"].contains(&kind.as_str()) {
            continue;
        }
        let end = code[at..].iter().position(|token| braces(token).is_some() || token.to_string() == ";");
        let end = at + end.expect("an item ends");
        found.insert(format!("{kind} {}", text(&code[at..end])));
        let Some(body) = braces(&code[end]) else { continue };
        // A comma between angle brackets belongs to a type.
        let mut open = 0;
        let is_end = |token: &TokenTree| {
            let letter = token.to_string();
            open += i32::from(letter == "<") - i32::from(letter == ">");
            open == 0 && letter == ","
        };
        for part in plain(body.stream()).split(is_end).filter(|part| !part.is_empty()) {
            if kind == "enum" || kind == "struct" && word(part.first()).as_deref() == Some("pub") {
                found.insert(format!("{name}: {}", text(part)));
            }
        }
    }
}

#[test]
fn the_public_api_matches_its_snapshot() {
    let names = exported();
    assert!(names.contains("OnnxModel") && names.contains("Options"), "{names:?}");
    let mut found = BTreeSet::new();
    for path in sources(&root().join("src")) {
        let source = fs::read_to_string(&path).expect("the file can be read");
        items(&plain(source.parse().expect("it can be split into tokens")), &names, &mut found);
    }
    insta::assert_snapshot!(found.into_iter().collect::<Vec<_>>().join("\n"));
}
